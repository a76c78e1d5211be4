//! The features of the files that a verb reads, by a `features.json` of TensorFlow Datasets.

use crate::console::Console;
use crate::records::STDIN;
use crate::store;
use std::path::Path;
use tfseek_tfds::FoundFeatures;

/// Finds the features of a verb's files, and prints warnings about them.
pub(crate) fn find<'p>(paths: impl IntoIterator<Item = &'p Path>, console: &mut Console) -> FoundFeatures {
    let paths: Vec<_> = paths.into_iter().collect();
    // Standard input has no folder.
    if paths.contains(&Path::new(STDIN)) {
        return FoundFeatures::default();
    }
    let found = FoundFeatures::of_files(paths, store::store().as_ref());
    found.warnings.iter().for_each(|warning| console.note(format_args!("tfseek: {warning}")));
    found
}
