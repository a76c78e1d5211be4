//! Tables as the splits of a data set of TensorFlow Datasets.

use crate::error::ConvertError;
use crate::format::FileFormat;
use crate::import::record_count;
use crate::input::{self, Import, ImportInput, ImportTarget};
use crate::options::ImportOptions;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::paths::set_of;
use tfseek_tfds::{Features, SetMetadata};
use tfseek_tools::reshard::ReshardSet;
use tfseek_tools::set::{DataSetWriter, SetOptions};

/// Makes the folder of a data set that TensorFlow Datasets reads of Parquet or Arrow files, with the features
/// and the description of another data set. Columns are those that [`export`](crate::export) makes of its
/// features. A file is a split, or a part of one, by its name: `train.parquet`,
/// `train-00000-of-00004.parquet`. `out` is new, and may end in `@` and the number of shards of each split.
/// `progress` is called with numbers of bytes of the inputs. A schema of Arrow does not say whether bytes are
/// a picture or text, or integers a label, so they have the features of another data set.
///
/// # Errors
/// [`ConvertError`].
pub fn import_data_set(
    inputs: &[PathBuf],
    out: &Path,
    (metadata, features): (SetMetadata, &Arc<Features>),
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<Vec<ReshardSet>, ConvertError> {
    let options = ImportOptions { data_set: Some(Arc::clone(features)), ..options.clone() };
    let splits = splits(inputs);
    for input in inputs {
        let from = FileFormat::of(input);
        if !matches!(from, Some(FileFormat::Parquet | FileFormat::ArrowFile | FileFormat::ArrowStream)) {
            let found = from.map_or("another name".to_owned(), |from| from.to_string());
            let reason = format!("expected Parquet or Arrow for a data set, found {found}");
            return Err(ConvertError::refused(input, reason));
        }
    }
    let mut set = SetOptions::new(out);
    (set.shards, set.force) = (options.shards, options.force);
    let mut writer = DataSetWriter::new(metadata, &set)?;
    for (name, files) in splits {
        let files: Vec<ImportInput> = files.into_iter().map(ImportInput::from).collect();
        let from = input::format(&files, &options)?;
        let records = record_count(&files, from)?;
        writer.split(&name, records, &|_| ControlFlow::Continue(()), |split| {
            Import { target: ImportTarget::Set(split), options: &options, progress }.run(files, from)
        })?;
    }
    Ok(writer.close()?)
}

/// Returns the splits that files are by their names, in the order of their first files.
fn splits(inputs: &[PathBuf]) -> Vec<(String, Vec<&PathBuf>)> {
    let mut splits: Vec<(String, Vec<&PathBuf>)> = Vec::new();
    for input in inputs {
        let set = set_of(input);
        let end = if set.is_some() { '@' } else { '.' };
        let name = set.as_ref().unwrap_or(input).file_name().unwrap_or_default().to_string_lossy();
        let name = name.split_once(end).map_or(&*name, |(name, _)| name);
        match splits.iter_mut().find(|(split, _)| split == name) {
            Some((_, files)) => files.push(input),
            None => splits.push((name.to_owned(), vec![input])),
        }
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_splits() {
        let inputs = [
            "b/train-00000-of-00002.parquet",
            "test.v2.parquet",
            "a/train-00001-of-00002.parquet",
            "x/train.arrow",
        ];
        let inputs = inputs.map(PathBuf::from);
        let found: Vec<(String, usize)> =
            splits(&inputs).into_iter().map(|(name, files)| (name, files.len())).collect();
        assert_eq!(found, [("train".to_owned(), 3), ("test".to_owned(), 1)]);
    }
}
