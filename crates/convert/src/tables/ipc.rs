//! Arrow IPC files and streams, as outputs.

use super::table::Table;
use crate::error::ConvertError;
use crate::out::{self, Written};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;
use std::io::Write;
use std::path::Path;

/// Writes a table as a file, and returns the numbers of its rows and bytes.
pub(super) fn write_file(
    table: &mut Table<'_>,
    (out, force): (&Path, bool),
) -> Result<Written, ConvertError> {
    let failed = |e| ConvertError::arrow(out, e);
    let file = out::buffered(out, force)?;
    let mut writer = FileWriter::try_new(file, &table.schema).map_err(failed)?;
    let rows = table.for_each(|batch| writer.write(batch).map_err(failed))?;
    out::commit_buffered(out, writer.into_inner().map_err(failed)?, rows)
}

/// Writes a table as a stream to a file, and returns the numbers of its rows and bytes.
pub(super) fn write_stream(
    table: &mut Table<'_>,
    (out, force): (&Path, bool),
) -> Result<Written, ConvertError> {
    let mut file = out::buffered(out, force)?;
    let rows = stream(table, &mut file).map_err(|e| match e {
        ConvertError::Sink(e) => ConvertError::io(out, e),
        e => e,
    })?;
    out::commit_buffered(out, file, rows)
}

/// Writes a table as a stream, and returns the number of its rows.
pub(super) fn stream(table: &mut Table<'_>, out: &mut impl Write) -> Result<u64, ConvertError> {
    let failed = |e| match e {
        ArrowError::IoError(_, e) => ConvertError::Sink(e),
        e => e.into(),
    };
    let mut writer = StreamWriter::try_new(out, &table.schema).map_err(failed)?;
    let rows = table.for_each(|batch| writer.write(batch).map_err(failed))?;
    writer.finish().map_err(failed)?;
    Ok(rows)
}
