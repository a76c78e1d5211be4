//! The index form of `tfrecord2idx`: a line a record, `offset SP size LF`, size = payload + 16.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use super::build::from_offsets;
use super::lookup::Index;
use super::table::TableBuilder;
use crate::error::{Error, ErrorKind, IndexError, Result};
use crate::frame::OVERHEAD;
use crate::io::Compression;
use crate::io::folder;
use std::io::{BufRead, Read, Write};
use std::path::Path;

/// The longest line: two u64, a space, an end of line.
const LINE: u64 = 20 + 1 + 20 + 2;

/// Writes the lines of `records` as text, for DALI and the Python package `tfrecord`: `0..index.len()` for all of them. Those tools see
/// no other records.
///
/// # Errors
/// [`ErrorKind::Compressed`]: those tools seek in the file itself. Those of `w` and of [`Index::locate`].
pub fn export_text(index: &Index, records: impl IntoIterator<Item = u64>, w: &mut impl Write) -> Result<()> {
    match index.compression() {
        Compression::None => {}
        compression => return Err(ErrorKind::Compressed { format: compression.name() }.into()),
    }
    for i in records {
        let span = index.locate(i)?;
        // A span lies inside the stream, so this does not overflow.
        writeln!(w, "{} {}", span.offset, span.payload_len + OVERHEAD as u64)?;
    }
    Ok(())
}

/// Reads the text index of the uncompressed shard `path`, which must cover the whole of it. The headers are not read:
/// they are checked at each access.
///
/// # Errors
/// [`IndexError::Text`] with the line: numbers, order, a start that is not 0, rows left out (a selection of records is
/// not an index of the shard), an end that is not the file's. Those of the system.
pub fn import_text(text: &mut impl BufRead, path: &Path) -> Result<Index> {
    let (offsets, end) = parse(text)?;
    let lines = offsets.len();
    let size = std::fs::metadata(path).map_err(|e| Error::from(e).in_file(path))?.len();
    if end != size {
        let name = path.strip_prefix(folder(path)).unwrap_or(path).display();
        let what =
            if end < size { "rows are left out, or the file has grown" } else { "it is of another file" };
        return Err(wrong(lines, format!("the rows end at byte {end}, {name} has {size}: {what}")));
    }
    Ok(from_offsets(path, Compression::None, offsets, end, false).map_err(|e| e.in_file(path))?.into())
}

fn parse(text: &mut impl BufRead) -> Result<(TableBuilder, u64)> {
    let mut offsets = TableBuilder::offsets();
    let (mut end, mut number, mut line) = (0u64, 0, Vec::new());
    loop {
        line.clear();
        if text.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok((offsets, end));
        }
        number += 1;
        let (start, size) = fields(&line).ok_or_else(|| {
            wrong(number, format!("\"{}\" is not an offset and a size", line.trim_ascii_end().escape_ascii()))
        })?;
        if size < OVERHEAD as u64 {
            return Err(wrong(number, format!("size {size}, a record has {OVERHEAD} bytes or more")));
        }
        if start > end {
            return Err(wrong(
                number,
                format!(
                    "starts at {start}, the one before ends at {end}: rows are left out, and a selection of records \
                     is not an index of the shard"
                ),
            ));
        }
        if start < end {
            return Err(wrong(
                number,
                format!("starts at {start}, inside the one before, which ends at {end}"),
            ));
        }
        offsets.push(start);
        end = start.checked_add(size).ok_or_else(|| wrong(number, "the record's end overflows".into()))?;
    }
}

/// `start SP size`, decimal; the line's end may be CR LF, or missing in the last line.
fn fields(line: &[u8]) -> Option<(u64, u64)> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()?;
    let (start, size) = line.split_once(' ')?;
    let number = |s: &str| if s.starts_with('+') { None } else { s.parse().ok() };
    Some((number(start)?, number(size)?))
}

#[cold]
fn wrong(line: u64, reason: String) -> Error {
    IndexError::Text { line, reason: reason.into() }.into()
}
