//! TFRecord files of `tf.train.Example` in other formats, and back.
//!
//! [`export`] converts the records of a dataset to a file, [`import`] makes TFRecords of such files. The suffix of a name states its format
//! ([`FileFormat`]). Outputs get their names when they are complete.
//!
//! | Format | Out | In |
//! | --- | --- | --- |
//! | Parquet | scalars and lists; `Binary` or text, Snappy, row groups of 64 MiB | any columns that `tfseek_arrow::Encoder` takes |
//! | Arrow IPC | the same columns, uncompressed | the same; a file or a stream, whatever its suffix |
//! | JSON lines | as `tfseek cat -f json` prints records, or in protobuf's JSON mapping, which is exact | these forms, and objects of features |
//!
//! A table has a row per record. Features that always have one value are scalars, and null where they are missing. All others are lists; a
//! missing one is null, and a list without values is empty. Features without a kind are null. The names of feature lists are in the metadata of
//! the table, under `tfseek.feature_lists`.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let (path, lines, again) = (dir.path().join("a.tfrecord"), dir.path().join("a.jsonl"), dir.path().join("b.tfrecord"));
//! use tfseek::{DatasetOptions, ExampleBuilder, IndexMode, Writer};
//! use tfseek_convert::{ExportOptions, ImportOptions, export, import};
//!
//! let mut writer = Writer::create(&path)?;
//! writer.write(&ExampleBuilder::new().int64("label", [3]).encode()?)?;
//! writer.close()?;
//!
//! let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path)?;
//! export(&ds, &lines, &ExportOptions::new(), &|_| {})?;
//! assert_eq!(std::fs::read_to_string(&lines)?, "{\"index\":0,\"record\":0,\"features\":{\"label\":[3]}}\n");
//! import(&[lines], &again, &ImportOptions::new(), &|_| {})?;
//! assert_eq!(std::fs::read(&again)?, std::fs::read(&path)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// No file content causes a panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

mod error;
mod exact;
mod format;
mod guard;
mod ipc;
mod ipc_lengths;
mod ipc_rows;
mod json_lines;
mod options;
mod out;
mod parquet_file;
mod records;
mod rows;
mod table;

pub use error::ConvertError;
pub use format::FileFormat;
pub use options::{ConvertReport, ExportOptions, ImportOptions};

use out::Written;
use records::SelectedRecords;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use table::Table;
use tfseek::Dataset;
use tfseek_tools::outputs;
use tfseek_tools::set::{SetOptions, SetWriter};

/// Converts the records of a dataset to a file. `progress` is called with numbers of records.
///
/// # Errors
/// [`ConvertError`].
pub fn export(
    ds: &Dataset,
    out: &Path,
    options: &ExportOptions,
    progress: &dyn Fn(u64),
) -> Result<ConvertReport, ConvertError> {
    let format = FileFormat::of_output(out)?;
    if !options.force {
        outputs::check_new(out)?;
    }
    let target = (out, options.force);
    let records = SelectedRecords { ds, only: options.records.as_ref(), kind: options.kind };
    let written = match format {
        FileFormat::JsonLines => json_lines::export(records, out, options, progress)?,
        FileFormat::Parquet => {
            parquet_file::write(&Table::new(records, options)?, target, options.row_group_bytes, progress)?
        }
        FileFormat::ArrowFile => ipc::write_file(&Table::new(records, options)?, target, progress)?,
        FileFormat::ArrowStream => ipc::write_stream(&Table::new(records, options)?, target, progress)?,
        FileFormat::TfRecord(_) => {
            return Err(ConvertError::Options(format!(
                "{}: expected another format than that of the inputs, found {format}",
                out.display()
            )));
        }
    };
    let Written { records, bytes } = written;
    Ok(ConvertReport { path: out.into(), shards: vec![out.into()], format, records, bytes })
}

/// Writes the records of a dataset as an Arrow IPC stream, and returns their number.
///
/// # Errors
/// [`ConvertError`]; [`ConvertError::Sink`] for errors of `out`.
pub fn stream(
    ds: &Dataset,
    options: &ExportOptions,
    out: &mut impl Write,
    progress: &dyn Fn(u64),
) -> Result<u64, ConvertError> {
    let records = SelectedRecords { ds, only: options.records.as_ref(), kind: options.kind };
    ipc::stream(&Table::new(records, options)?, out, progress)
}

/// Makes a TFRecord file, or a set of shards such as `train@8.tfrecord`, of files of another format, in their order. `progress` is called with
/// numbers of bytes of the inputs.
///
/// # Errors
/// [`ConvertError`].
pub fn import(
    inputs: &[PathBuf],
    out: &Path,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<ConvertReport, ConvertError> {
    let format = FileFormat::of_output(out)?;
    let FileFormat::TfRecord(_) = format else {
        return Err(ConvertError::Options(format!(
            "{}: expected a TFRecord file for these inputs, found {format}",
            out.display()
        )));
    };
    let mut from = None;
    for path in inputs {
        let found = match FileFormat::of(path) {
            Some(found) if !matches!(found, FileFormat::TfRecord(_)) => found,
            _ => {
                let reason = "expected a file of another format than TFRecord";
                return Err(ConvertError::Options(format!("{}: {reason}", path.display())));
            }
        };
        let expected = *from.get_or_insert(found);
        if found != expected {
            let reason = format!("expected the format of the other inputs, {expected}, found {found}");
            return Err(ConvertError::Options(format!("{}: {reason}", path.display())));
        }
    }
    let mut set = SetOptions::new(out);
    set.shards = options.shards;
    set.force = options.force;
    if from == Some(FileFormat::Parquet) {
        set.records = Some(rows::count_parquet(inputs)?);
    }
    let mut writer = SetWriter::new(&set)?;
    match from {
        Some(FileFormat::Parquet) => {
            for path in inputs {
                rows::import_parquet(path, &mut writer, options, progress)?;
            }
        }
        Some(FileFormat::ArrowFile | FileFormat::ArrowStream) => {
            for path in inputs {
                rows::import_ipc(path, &mut writer, options, progress)?;
            }
        }
        _ => json_lines::import(inputs, &mut writer, options, progress)?,
    }
    let set = writer.close(&|_| ControlFlow::Continue(()))?;
    Ok(ConvertReport { path: set.path, shards: set.shards, format, records: set.records, bytes: set.bytes })
}
