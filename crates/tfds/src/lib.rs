//! Data sets that TensorFlow Datasets (TFDS) prepared as TFRecord files. `docs/tfds.md` has the meaning of all files.

#![cfg_attr(docsrs, feature(doc_cfg))]
// No file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod array;
mod builder;
mod check;
#[cfg(test)]
mod check_tests;
mod columns;
mod compile;
mod decoder;
mod error;
mod feature;
mod folder;
mod grammar;
mod info;
mod item;
mod json;
mod labels;
mod parts;
mod pixels;
mod record;
mod splits;
mod template;

pub use array::Array;
pub use builder::{Builder, BuilderOptions, Opener, Split, SplitSelection};
pub use check::{CheckedInfo, CheckedSplit, FileSplit, SplitCheck};
pub use compile::{DecodeOptions, EncodedPictures, Node};
pub use decoder::Decoder;
pub use error::{Result, TfdsError, TfdsErrorKind};
pub use feature::{Encoding, FeatureTree, Features, Labels, LeafClass, LeafFeature, SequenceFeature};
pub use info::{DatasetInfo, SplitInfo};
pub use record::{Record, RecordValue, Steps};
pub use splits::Rounding;
