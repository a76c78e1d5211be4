//! Data sets that TensorFlow Datasets (TFDS) prepared as TFRecord files. `docs/tfds.md` has the meaning of all files.

#![cfg_attr(docsrs, feature(doc_cfg))]
// No file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod error;

pub use error::{Result, TfdsError, TfdsErrorKind};
