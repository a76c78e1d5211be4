//! Records of inputs in any other format.

use crate::error::ConvertError;
use crate::format::FileFormat;
use crate::input::{ImportInput, ImportTarget};
use crate::options::ImportOptions;
#[cfg(feature = "tables")]
use crate::rows;
use crate::{bare, json_lines};

/// Writes the records of inputs.
pub(crate) fn import_to(
    inputs: Vec<ImportInput>,
    from: FileFormat,
    target: &mut ImportTarget<'_>,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<(), ConvertError> {
    match from {
        FileFormat::Bare => bare::import(inputs, target, options, progress),
        FileFormat::JsonLines | FileFormat::TfRecord(_) => {
            json_lines::import(inputs, target, options, progress)
        }
        FileFormat::Parquet | FileFormat::ArrowFile | FileFormat::ArrowStream => {
            inputs.iter().try_for_each(|input| match from {
                #[cfg(feature = "tables")]
                FileFormat::Parquet => rows::import_parquet(input.path(), target, options, progress),
                #[cfg(feature = "tables")]
                _ => rows::import_ipc(input.path(), target, options, progress),
                #[cfg(not(feature = "tables"))]
                _ => Err(from.missing(input.path())),
            })
        }
    }
}

/// Returns the number of records, if the files state it.
#[cfg(feature = "tables")]
pub(crate) fn record_count(inputs: &[ImportInput], from: FileFormat) -> Result<Option<u64>, ConvertError> {
    match from {
        FileFormat::Parquet => rows::count_parquet(inputs.iter().map(ImportInput::path)).map(Some),
        _ => Ok(None),
    }
}

#[cfg(not(feature = "tables"))]
pub(crate) fn record_count(_: &[ImportInput], _: FileFormat) -> Result<Option<u64>, ConvertError> {
    Ok(None)
}
