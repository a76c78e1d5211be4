//! Data sets that TensorFlow Datasets (TFDS) prepared as TFRecord files. `docs/tfds.md` has the meaning of all files.

#![cfg_attr(docsrs, feature(doc_cfg))]
// No file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod check;
#[cfg(test)]
mod check_tests;
mod error;
mod info;
mod json;
mod template;
mod feature;
mod grammar;

pub use check::{CheckedInfo, CheckedSplit, FileSplit, SplitCheck};
pub use error::{Result, TfdsError, TfdsErrorKind};
pub use info::{DatasetInfo, SplitInfo};
pub use feature::{Encoding, Feature, Features, Labels, LeafClass, LeafFeature, SequenceFeature};
