//! Sound records of damaged files.

#[cfg(test)]
mod tests;

use crate::work::damage::{self, NamedSink, SalvageReport};
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;
use tfseek::io::{Existing, Output};
use tfseek::stream::StreamOptions;
use tfseek::{Error, Result};

/// Minimum size of a buffer in bytes.
const BUFFER: usize = 256 << 10;

/// Copies the sound records of a file to `output`, in order and as they are, and the bytes between them to
/// `rest`. The files get their names when they are complete. The file is only read.
///
/// Both checksums of a record must be correct. [`SalvageReader`](tfseek::io::SalvageReader) defines the
/// search after damage, also in compressed files. Memory holds about the two largest records.
///
/// `progress` is called with the number of bytes of the file that were read since the last call.
///
/// # Errors
/// I/O errors; `ErrorKind::NotTfRecord` or the first error of the file if it contains no sound record. No
/// file is written then.
pub fn salvage(
    input: &Path,
    output: &Path,
    rest: Option<&Path>,
    existing: Existing,
    max_record: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<SalvageReport> {
    let create = |path: &Path| Output::open(path, existing).map_err(|e| Error::from(e).in_file(path));
    let mut out = BufWriter::with_capacity(BUFFER, create(output)?);
    let mut left =
        rest.map(|path| create(path).map(|file| BufWriter::with_capacity(BUFFER, file))).transpose()?;
    let mut sink = io::sink();
    let rest_writer: &mut dyn Write = left.as_mut().map_or(&mut sink, |left| left);
    let sinks = [NamedSink(&mut out, output), NamedSink(rest_writer, rest.unwrap_or(output))];
    let mut file = damage::open(input)?;
    let (report, first) = damage::copy(&file, input, sinks, max_record, progress)?;
    if let Some(e) = first.filter(|_| report.records == 0) {
        // The stream's error names the format of a file that is not a TFRecord file.
        file.rewind().map_err(|e| Error::from(e).in_file(input))?;
        StreamOptions::default().read(file, input)?.next()?;
        return Err(e.in_file(input));
    }
    for (file, path) in [(Some(out), output), (left, rest.unwrap_or(output))] {
        let Some(file) = file else { continue };
        let done = file.into_inner().map_err(io::IntoInnerError::into_error).and_then(Output::commit);
        done.map_err(|e| Error::from(e).in_file(path))?;
    }
    Ok(report)
}
