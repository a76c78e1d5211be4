//! Tables: Parquet files, and Arrow IPC files and streams.

mod data_set;
mod exact;
mod guard;
mod ipc;
mod ipc_lengths;
mod ipc_rows;
mod observed;
mod parquet_file;
mod progress;
mod rows;
mod table;

pub(crate) use rows::{count_parquet, import};

use crate::error::ConvertError;
use crate::format::FileFormat;
use crate::options::{ConvertReport, ExportOptions, TableNotes};
use crate::out::Written;
use crate::records::SelectedRecords;
use std::io::Write;
use std::path::Path;
use table::Table;
use tfseek::Dataset;

/// Writes records as a table. Also returns what is to be said about it.
pub(crate) fn export(
    records: SelectedRecords<'_>,
    (out, format): (&Path, FileFormat),
    options: &ExportOptions,
    progress: &dyn Fn(u64),
) -> Result<(Written, TableNotes), ConvertError> {
    let mut table = Table::new(records, options, progress)?;
    let target = (out, options.force);
    let written = match format {
        FileFormat::Parquet => parquet_file::write(&mut table, target, options.row_group_bytes)?,
        FileFormat::ArrowFile => ipc::write_file(&mut table, target)?,
        _ => ipc::write_stream(&mut table, target)?,
    };
    Ok((written, table.notes))
}

/// Writes the records of a dataset as an Arrow IPC stream. The report has the path `-`, and no shards and
/// bytes.
///
/// # Errors
/// [`ConvertError`]; [`ConvertError::Sink`] for errors of `out`.
pub fn stream(
    ds: &Dataset,
    options: &ExportOptions,
    out: &mut impl Write,
    progress: &dyn Fn(u64),
) -> Result<ConvertReport, ConvertError> {
    let records = SelectedRecords { ds, only: options.records.as_ref(), kind: options.kind };
    let mut table = Table::new(records, options, progress)?;
    let written = Written { records: ipc::stream(&mut table, out)?, bytes: 0 };
    Ok(ConvertReport::of(Path::new("-"), FileFormat::ArrowStream, written, table.notes))
}
