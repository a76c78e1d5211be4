//! The text index of `tfrecord2idx`: one line per record, `offset SP size LF`, where size = payload + 16.

use super::lookup::Index;
use crate::error::{ErrorKind, Result};
use crate::frame::OVERHEAD;
use std::io::Write;

/// Writes the text index of `records`, for DALI and the Python package `tfrecord`. Pass `0..index.len()` for
/// all records: those tools find no others.
///
/// # Errors
/// [`ErrorKind::Compressed`], because those tools seek in the file itself. Errors of `w` and of
/// [`Index::locate`].
pub fn export_text(index: &Index, records: impl IntoIterator<Item = u64>, w: &mut impl Write) -> Result<()> {
    if let Some(format) = index.compression().format() {
        return Err(ErrorKind::Compressed { format: format.name() }.into());
    }
    for i in records {
        let span = index.locate(i)?;
        let size = span.payload_len + OVERHEAD as u64;
        writeln!(w, "{} {size}", span.offset)?;
    }
    Ok(())
}
