//! TFRecord files of `tf.train.Example` in other formats, and back.
//!
//! [`export`] converts the records of a dataset to a file, [`import`] makes TFRecords of such files. The suffix of a name states its format
//! ([`FileFormat`]). Outputs get their names when they are complete.
//!
//! | Format | Out | In |
//! | --- | --- | --- |
//! | JSON lines | as `tfseek cat -f json` prints records, or in protobuf's JSON mapping, which is exact | these forms, and objects of features |
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
mod format;
mod json_lines;
mod options;
mod records;

pub use error::ConvertError;
pub use format::FileFormat;
pub use options::{ConvertReport, ExportOptions, ImportOptions};

use records::SelectedRecords;
use std::path::{Path, PathBuf};
use tfseek::Dataset;
use tfseek::writer::WriterOptions;

/// Converts the records of a dataset to a file, which is replaced if it exists. `progress` is called with numbers of records.
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
    let records = SelectedRecords { ds, only: options.records.as_ref(), kind: options.kind };
    let records = match format {
        FileFormat::JsonLines => json_lines::export(records, out, options, progress)?,
        FileFormat::TfRecord(_) => {
            return Err(ConvertError::Options(format!(
                "{}: expected another format than that of the inputs, found {format}",
                out.display()
            )));
        }
    };
    Ok(report(out, format, records))
}

/// Makes a TFRecord file of files of another format, in their order. It is replaced if it exists. `progress` is called with numbers of bytes
/// of the inputs.
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
    let FileFormat::TfRecord(compression) = format else {
        return Err(ConvertError::Options(format!(
            "{}: expected a TFRecord file for these inputs, found {format}",
            out.display()
        )));
    };
    let formats = inputs.iter().map(|path| FileFormat::of(path));
    let mut writer = WriterOptions::new().compression(compression).create(out)?;
    for (path, format) in inputs.iter().zip(formats) {
        match format {
            Some(FileFormat::JsonLines) => {}
            _ => {
                let reason = "expected a file of another format than TFRecord";
                return Err(ConvertError::Options(format!("{}: {reason}", path.display())));
            }
        }
    }
    json_lines::import(inputs, &mut writer, options, progress)?;
    writer.close()?;
    Ok(report(out, format, writer.records_written()))
}

fn report(path: &Path, format: FileFormat, records: u64) -> ConvertReport {
    let bytes = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map_or(0, |meta| meta.len());
    ConvertReport { path: path.into(), format, records, bytes }
}
