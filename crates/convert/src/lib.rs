//! Internal crate of tfseek: TFRecord files of `tf.train.Example` in other formats, and back.
//!
//! [`export`] converts the records of a dataset to a file, [`import`] makes TFRecords of such files. The
//! suffix of a name states its format ([`FileFormat`]). Outputs get their names when they are complete.
//!
//! | Format | Out | In |
//! | --- | --- | --- |
//! | Parquet | scalars and lists; `Binary` or text, Snappy, row groups of 64 MiB | any columns that `tfseek_arrow::Encoder` takes |
//! | Arrow IPC | the same columns, uncompressed | the same; a file or a stream, whatever its suffix |
//! | JSON lines | as `tfseek cat -f json` prints records, or in protobuf's JSON mapping, which is exact | these forms, and objects of features |
//! | payloads that follow their length | | as `tfseek cat --bare` prints them |
//!
//! Parquet and Arrow need the feature `tables`, which is on by default.
//!
//! A table has a row per record. Features that always have one value are scalars, and null where they are
//! missing. All others are lists; a missing one is null, and a list without values is empty. Features without
//! a kind are null. The names of feature lists are in the metadata of the table, under
//! `tfseek.feature_lists`.
//!
//! The table of a data set of TensorFlow Datasets ([`ExportOptions::data_set`]) has nested columns of decoded
//! values, as [`Converter::of_features`](tfseek_arrow::Converter::of_features) makes them.
//! [`import_data_set`] makes a data set of such tables.
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
//! export(&ds, &lines, &ExportOptions::default(), &|_| {})?;
//! assert_eq!(std::fs::read_to_string(&lines)?, "{\"index\":0,\"record\":0,\"features\":{\"label\":[3]}}\n");
//! import([lines], &again, &ImportOptions::default(), &|_| {})?;
//! assert_eq!(std::fs::read(&again)?, std::fs::read(&path)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// On docs.rs, items name the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
// No file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod bare;
mod error;
mod format;
mod import;
mod input;
mod json_lines;
mod options;
mod out;
mod records;
#[cfg(feature = "tables")]
mod splits;
#[cfg(feature = "tables")]
mod tables;

pub use error::ConvertError;
pub use format::FileFormat;
pub use input::ImportInput;
pub use options::{ConvertReport, ExportOptions, ImportOptions};
#[cfg(feature = "tables")]
pub use splits::import_data_set;
#[cfg(feature = "tables")]
pub use tables::stream;

use import::record_count;
use input::{Import, ImportTarget};
use options::TableNotes;
use out::Written;
use records::SelectedRecords;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use tfseek::Dataset;
use tfseek_tools::outputs;
use tfseek_tools::set::{SetOptions, SetWriter};

/// Converts the records of a dataset to a file. `progress` is called with numbers of records. Where they are
/// read twice, for a table without a schema, the first pass counts as a third of them.
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
    let records = SelectedRecords { ds, only: options.records.as_ref(), kind: options.kind };
    let (written, notes) = match format {
        FileFormat::JsonLines => {
            (json_lines::export(records, out, options, progress)?, TableNotes::default())
        }
        FileFormat::TfRecord(_) | FileFormat::Bare => {
            let reason = format!("expected another format than that of the inputs, found {format}");
            return Err(ConvertError::refused(out, reason));
        }
        #[cfg(feature = "tables")]
        _ => tables::export(records, (out, format), options, progress)?,
        #[cfg(not(feature = "tables"))]
        _ => return Err(format.missing(out)),
    };
    Ok(ConvertReport { shards: vec![out.into()], ..ConvertReport::of(out, format, written, notes) })
}

/// Makes a TFRecord file, or a set of shards such as `train@8.tfrecord`, of inputs in another format, in
/// their order. `progress` is called with numbers of bytes of the inputs.
///
/// # Errors
/// [`ConvertError`].
pub fn import(
    inputs: impl IntoIterator<Item = impl Into<ImportInput>>,
    out: &Path,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<ConvertReport, ConvertError> {
    let format = FileFormat::of_output(out)?;
    // OUT needs the suffix of a TFRecord file, so that a misspelt `.parquet` is an error.
    let FileFormat::TfRecord(_) = format else {
        let reason = format!("expected a TFRecord file for these inputs, found {format}");
        return Err(ConvertError::refused(out, reason));
    };
    let inputs: Vec<ImportInput> = inputs.into_iter().map(Into::into).collect();
    let from = input::format(&inputs, options)?;
    let mut set = SetOptions::new(out);
    set.shards = options.shards;
    set.force = options.force;
    set.records = record_count(&inputs, from)?;
    let mut writer = SetWriter::new(&set)?;
    Import { target: ImportTarget::Set(&mut writer), options, progress }.run(inputs, from)?;
    let set = writer.close(&|_| ControlFlow::Continue(()))?;
    let written = Written { records: set.records, bytes: set.bytes };
    let report = ConvertReport::of(&set.path, format, written, TableNotes::default());
    Ok(ConvertReport { shards: set.shards, ..report })
}

/// Writes inputs of another format as an uncompressed TFRecord stream. The records before an error remain in
/// `out`.
///
/// # Errors
/// [`ConvertError`]; [`ConvertError::Sink`] for errors of `out`.
pub fn import_stream(
    inputs: impl IntoIterator<Item = impl Into<ImportInput>>,
    out: &mut dyn Write,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<(), ConvertError> {
    let inputs: Vec<ImportInput> = inputs.into_iter().map(Into::into).collect();
    let from = input::format(&inputs, options)?;
    Import { target: ImportTarget::Stream(out), options, progress }.run(inputs, from)
}
