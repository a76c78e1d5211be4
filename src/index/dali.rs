//! The text index of `tfrecord2idx`: one line per record, `offset SP size LF`, where size = payload + 16.

use super::build::from_offsets;
use super::lookup::Index;
use super::table::TableBuilder;
use crate::error::{Error, ErrorKind, IndexError, Result};
use crate::frame::OVERHEAD;
use crate::io::Compression;
use crate::io::folder;
use std::io::{BufRead, Read, Write};
use std::path::Path;

/// Maximum bytes of a line: two u64, a space and a line ending.
const LINE: u64 = 20 + 1 + 20 + 2;

/// Writes the text index of `records`, for DALI and the Python package `tfrecord`. Pass `0..index.len()` for all records: those
/// tools find no others.
///
/// # Errors
/// [`ErrorKind::Compressed`], because those tools seek in the file itself. Errors of `w` and of [`Index::locate`].
pub fn export_text(index: &Index, records: impl IntoIterator<Item = u64>, w: &mut impl Write) -> Result<()> {
    match index.compression() {
        Compression::None => {}
        compression => return Err(ErrorKind::Compressed { format: compression.name() }.into()),
    }
    for i in records {
        let span = index.locate(i)?;
        #[expect(
            clippy::arithmetic_side_effects,
            reason = "`locate` returns spans that end at `stream_end` or before"
        )]
        let size = span.payload_len + OVERHEAD as u64;
        writeln!(w, "{} {size}", span.offset)?;
    }
    Ok(())
}

/// Reads the text index of the uncompressed shard `path`. It must cover the whole shard. Record headers are not read here; they
/// are verified on each access.
///
/// # Errors
/// [`IndexError::Text`] with the line: a malformed line, records out of order, a first offset other than 0, missing lines (a
/// selection of records is not an index of the shard), or an end that is not the end of the file. I/O errors.
pub fn import_text(text: &mut impl BufRead, path: &Path) -> Result<Index> {
    let (offsets, end) = parse(text)?;
    let lines = offsets.len();
    let size = std::fs::metadata(path).map_err(|e| Error::from(e).in_file(path))?.len();
    if end != size {
        let name = path.strip_prefix(folder(path)).unwrap_or(path).display();
        let why = if end < size {
            "lines are missing, or the file has grown"
        } else {
            "the index belongs to another file"
        };
        let reason = format!(
            "expected the last record to end at byte {size}, the size of {name}, found byte {end}: {why}"
        );
        return Err(invalid(lines, reason));
    }
    Ok(from_offsets(path, Compression::None, offsets, end, false).map_err(|e| e.in_file(path))?.into())
}

#[expect(clippy::arithmetic_side_effects, reason = "a count of lines that were read")]
fn parse(text: &mut impl BufRead) -> Result<(TableBuilder, u64)> {
    let mut offsets = TableBuilder::offsets();
    let (mut end, mut number, mut line) = (0u64, 0, Vec::new());
    loop {
        line.clear();
        if text.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok((offsets, end));
        }
        number += 1;
        // The rest of a longer line would count as a line of its own.
        let is_whole = (line.len() as u64) < LINE || line.ends_with(b"\n");
        let (start, size) = fields(&line).filter(|_| is_whole).ok_or_else(|| {
            let line = line.trim_ascii_end().escape_ascii();
            invalid(number, format!("expected an offset and a size, found \"{line}\""))
        })?;
        if size < OVERHEAD as u64 {
            return Err(invalid(number, format!("expected a size of at least {OVERHEAD}, found {size}")));
        }
        if start > end {
            return Err(invalid(
                number,
                format!(
                    "record starts at {start}, the previous one ends at {end}: lines are missing, and a selection of \
                     records is not an index of the shard"
                ),
            ));
        }
        if start < end {
            return Err(invalid(
                number,
                format!("expected a record that starts at byte {end} or later, found byte {start}"),
            ));
        }
        offsets.push(start);
        end = start.checked_add(size).ok_or_else(|| invalid(number, "the record's end overflows".into()))?;
    }
}

/// Parses `start SP size` in decimal. The line may end with LF or CR LF; the last line may have no ending.
fn fields(line: &[u8]) -> Option<(u64, u64)> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()?;
    let (start, size) = line.split_once(' ')?;
    let number = |s: &str| if s.starts_with('+') { None } else { s.parse().ok() };
    Some((number(start)?, number(size)?))
}

#[cold]
fn invalid(line: u64, reason: String) -> Error {
    IndexError::Text { line, reason: reason.into() }.into()
}
