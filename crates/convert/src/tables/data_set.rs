//! Records of a data set of TensorFlow Datasets as the rows of a table.

use crate::error::ConvertError;
use crate::options::ExportOptions;
use std::sync::Arc;
use tfseek::TensorDType;
use tfseek_arrow::{ByteStrings, Converter, Options};
use tfseek_tfds::{DecodeOptions, Features, LeafClass, LeafFeature};
use tfseek_tools::wildcards::matches;

/// Returns the converter of the features that the options name. Pictures are files, missing values null, and
/// steps lists.
pub(super) fn converter(
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
        encoded: true,
        missing_none: true,
        batch_steps: true,
        ..DecodeOptions::default()
    };
    let is_string = |leaf: &LeafFeature| leaf.class == LeafClass::Text || leaf.dtype == TensorDType::String;
    let strings = leaves.iter().filter(|(_, leaf)| is_string(leaf)).map(|(path, _)| path.as_str());
    let arrow = with_text(options, &strings.collect::<Vec<_>>(), names)?;
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

/// Returns the options of a table's columns. The columns of byte strings that the patterns for text match are
/// text.
pub(super) fn with_text(
    options: &ExportOptions,
    strings: &[&str],
    is_match: fn(&str, &str) -> bool,
) -> Result<Options, ConvertError> {
    let mut arrow = Options::new().bytes(ByteStrings::Copy);
    for pattern in &options.text {
        let before = arrow.text.len();
        let found = strings.iter().filter(|name| is_match(pattern, name));
        arrow.text.extend(found.map(|name| (*name).to_owned()));
        if arrow.text.len() == before {
            let reason = "expected a feature of byte strings that matches";
            return Err(ConvertError::Options(format!("{reason} {pattern} for text, found none")));
        }
    }
    Ok(arrow)
}
