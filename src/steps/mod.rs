//! The steps of episodes: records that have the values of many steps, as data sets of robots do (RLDS).
//!
//! * An [`EpisodeTable`] has the place of each step in the payload of its episode. It is made of one payload
//!   by one function, and stored in files that are found, built and extended like columns (`docs/index.md`).
//! * [`Episodes`] are all steps of a dataset, with access by number.
//! * [`Windows`] are records made of several steps around an anchor, as a dataset for loaders.
//!
//! Names and shapes are as in `features.json`, which the crate `tfseek-tfds` reads.

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
mod step;
mod table;
mod windows;

pub use crate::tables::TableOptions as EpisodeOptions;
pub use episodes::{EpisodeFile, Episodes};
pub use keys::{EpisodeKey, EpisodeKeys, EpisodeValues};
pub use step::EpisodeStep;
pub use table::EpisodeTable;
pub use windows::{Pad, PadRow, Windows, WindowsBuilder};
