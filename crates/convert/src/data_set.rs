//! Records of a data set of TensorFlow Datasets as the rows of a table.

use crate::error::ConvertError;
use crate::options::ExportOptions;
use std::sync::Arc;
use tfseek::TensorDType;
use tfseek_arrow::{ByteStrings, Converter, Options};
use tfseek_tfds::{DecodeOptions, EncodedPictures, Features, LeafClass};
use tfseek_tools::wildcards::matches;

/// Returns the converter of the features that the options name. Pictures are files, missing values null, and
/// steps lists.
pub(crate) fn converter(
    features: &Arc<Features>,
    options: &ExportOptions,
) -> Result<Converter, ConvertError> {
    let leaves = features.root.leaves();
    let paths = || leaves.iter().map(|(path, _)| path.as_str());
    if let Some(pattern) = options.features.iter().find(|pattern| !paths().any(|path| names(pattern, path))) {
        return Err(ConvertError::no_feature(pattern, paths()));
    }
    let select = (!options.features.is_empty()).then(|| {
        let kept = paths().filter(|path| options.features.iter().any(|pattern| names(pattern, path)));
        kept.map(str::to_owned).collect()
    });
    let decode = DecodeOptions {
        select,
        encoded: EncodedPictures::All,
        missing_none: true,
        batch_steps: true,
        ..DecodeOptions::default()
    };
    let mut arrow = Options::new().bytes(ByteStrings::Copy);
    for pattern in &options.text {
        let is_string = |class: &LeafClass, dtype| *class == LeafClass::Text || dtype == TensorDType::String;
        let columns: Vec<&String> = leaves
            .iter()
            .filter(|(path, leaf)| is_string(&leaf.class, leaf.dtype) && names(pattern, path))
            .map(|(path, _)| path)
            .collect();
        if columns.is_empty() {
            let reason = "expected a feature of byte strings that matches";
            return Err(ConvertError::Options(format!("{reason} {pattern} for text, found none")));
        }
        arrow = columns.into_iter().fold(arrow, |arrow, path| arrow.text(path));
    }
    let converter = Converter::of_features(features, &decode, &arrow)?;
    if converter.schema().fields().is_empty() {
        let reason = "expected a feature with values, because a table needs a column, found none";
        return Err(ConvertError::Records(reason.into()));
    }
    Ok(converter)
}

/// Returns true if a pattern matches the path of a feature, or of a dict around it.
fn names(pattern: &str, path: &str) -> bool {
    let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
    above.chain([path]).any(|path| matches(pattern, path))
}
