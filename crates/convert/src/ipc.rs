//! Arrow IPC files and streams, as outputs.

use crate::error::ConvertError;
use crate::table::Table;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;
use std::io::{BufWriter, Write};
use std::path::Path;
use tfseek::io::Output;

const BUFFER: usize = 256 << 10;

/// Writes a table as a file, and returns the number of its rows.
pub(crate) fn write_file(table: &Table, out: &Path, progress: &dyn Fn(u64)) -> Result<u64, ConvertError> {
    let in_file = |e| ConvertError::io(out, e);
    let failed = |e| ConvertError::arrow(out, e);
    let file = BufWriter::with_capacity(BUFFER, Output::create(out).map_err(in_file)?);
    let mut writer = FileWriter::try_new(file, table.schema()).map_err(failed)?;
    let rows = table.for_each(|batch| {
        writer.write(batch).map_err(failed)?;
        progress(batch.num_rows() as u64);
        Ok(())
    })?;
    let file = writer.into_inner().map_err(failed)?;
    file.into_inner().map_err(|e| in_file(e.into_error()))?.commit().map_err(in_file)?;
    Ok(rows)
}

/// Writes a table as a stream to a file, and returns the number of its rows.
pub(crate) fn write_stream(table: &Table, out: &Path, progress: &dyn Fn(u64)) -> Result<u64, ConvertError> {
    let in_file = |e| ConvertError::io(out, e);
    let mut file = BufWriter::with_capacity(BUFFER, Output::create(out).map_err(in_file)?);
    let rows = stream(table, &mut file, progress).map_err(|e| match e {
        ConvertError::Sink(e) => in_file(e),
        e => e,
    })?;
    file.into_inner().map_err(|e| in_file(e.into_error()))?.commit().map_err(in_file)?;
    Ok(rows)
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
