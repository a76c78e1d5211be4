//! Records of inputs in any other format.

use crate::error::ConvertError;
use crate::format::FileFormat;
use crate::input::{Import, ImportInput};
#[cfg(feature = "tables")]
use crate::tables;
use crate::{bare, json_lines};

impl Import<'_> {
    /// Writes the records of inputs.
    pub(crate) fn run(mut self, inputs: Vec<ImportInput>, from: FileFormat) -> Result<(), ConvertError> {
        match from {
            FileFormat::Bare => bare::import(inputs, &mut self),
            FileFormat::JsonLines | FileFormat::TfRecord(_) => json_lines::import(inputs, &mut self),
            #[cfg(feature = "tables")]
            _ => inputs.iter().try_for_each(|input| tables::import(input.path(), from, &mut self)),
            #[cfg(not(feature = "tables"))]
            _ => inputs.iter().try_for_each(|input| Err(from.missing(input.path()))),
        }
    }
}

/// Returns the number of records, if the files state it.
pub(crate) fn record_count(inputs: &[ImportInput], from: FileFormat) -> Result<Option<u64>, ConvertError> {
    match (from, inputs) {
        #[cfg(feature = "tables")]
        (FileFormat::Parquet, files) => tables::count_parquet(files.iter().map(ImportInput::path)).map(Some),
        _ => Ok(None),
    }
}
