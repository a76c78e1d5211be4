//! Internal crate of tfseek: the steps of episodes, which are records that have the values of many steps, as
//! data sets of robots do (RLDS). A version of it fits one version of the library.
//!
//! * An [`EpisodeTable`] has the place of each step in the payload of its episode. It is made of one payload
//!   by one function, and stored in files that are found, built and extended like columns (`docs/index.md`).
//! * [`Episodes`] are all steps of a dataset, numbered as one array.
//! * [`Windows`] are records made of several steps around an anchor, as a dataset for loaders.
//!
//! This crate is internal to `tfseek`: a version of it fits one version of the library, and its items change
//! without notice. Names and shapes are as in `features.json`, which the crate `tfseek-tfds` reads.

#![cfg_attr(docsrs, feature(doc_cfg))]
// No file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod anchors;
mod build;
mod cache;
mod encode;
mod episodes;
mod format;
mod keys;
mod lengths;
mod payload;
mod pool;
mod rows;
mod table;
mod windows;

pub use episodes::Episodes;
pub use keys::{EpisodeKey, EpisodeKeys, EpisodeValues};
pub use table::EpisodeTable;
pub use tfseek::tables::TableOptions as EpisodeOptions;
pub use windows::{Pad, PadRow, Windows, WindowsBuilder};
