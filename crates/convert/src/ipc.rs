//! Arrow IPC files and streams, as outputs.

use crate::error::ConvertError;
use crate::out::{self, Written};
use crate::table::Table;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;
use std::io::Write;
use std::path::Path;

/// Writes a table as a file, and returns the numbers of its rows and bytes.
pub(crate) fn write_file(
    table: &Table,
    (out, force): (&Path, bool),
    progress: &dyn Fn(u64),
) -> Result<Written, ConvertError> {
    let failed = |e| ConvertError::arrow(out, e);
    let file = out::buffered(out, force)?;
    let mut writer = FileWriter::try_new(file, table.schema()).map_err(failed)?;
    let rows = table.for_each(|batch| {
        writer.write(batch).map_err(failed)?;
        progress(batch.num_rows() as u64);
        Ok(())
    })?;
    out::commit_buffered(out, writer.into_inner().map_err(failed)?, rows)
}

/// Writes a table as a stream to a file, and returns the numbers of its rows and bytes.
pub(crate) fn write_stream(
    table: &Table,
    (out, force): (&Path, bool),
    progress: &dyn Fn(u64),
) -> Result<Written, ConvertError> {
    let mut file = out::buffered(out, force)?;
    let rows = stream(table, &mut file, progress).map_err(|e| match e {
        ConvertError::Sink(e) => ConvertError::io(out, e),
        e => e,
    })?;
    out::commit_buffered(out, file, rows)
}

/// Writes a table as a stream, and returns the number of its rows.
pub(crate) fn stream(
    table: &Table,
    out: &mut impl Write,
    progress: &dyn Fn(u64),
) -> Result<u64, ConvertError> {
    let failed = |e| match e {
        ArrowError::IoError(_, e) => ConvertError::Sink(e),
        e => e.into(),
    };
    let mut writer = StreamWriter::try_new(out, table.schema()).map_err(failed)?;
    let rows = table.for_each(|batch| {
        writer.write(batch).map_err(failed)?;
        progress(batch.num_rows() as u64);
        Ok(())
    })?;
    writer.finish().map_err(failed)?;
    Ok(rows)
}
