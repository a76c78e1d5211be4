//! The index of a shard: a table of record offsets, and the small files that store it.
//!
//! An index is a cache. It can be deleted and rebuilt, and it is never trusted for the content of records.
//!
//! - [`open_shards`] finds, extends or builds the indexes of a set of shards.
//! - [`build_beside`] does the work of the command `tfseek index`.
//! - [`write_pack`] writes the indexes of a whole dataset to one file.
//! - [`export_text`] writes the text format of `tfrecord2idx`.
//!
//! ```
//! use tfseek::index::{IndexOptions, open_shards};
//! use tfseek::IndexMode;
//! # let dir = tempfile::tempdir()?;
//! let path = dir.path().join("train-00000.tfrecord");
//! # let mut file = Vec::new();
//! # tfseek::frame::put_record(&mut file, b"one")?;
//! # tfseek::frame::put_record(&mut file, b"three")?;
//! # std::fs::write(&path, file)?;
//! let opened = open_shards(&[path], &IndexOptions::new().mode(IndexMode::Memory))?;
//! let index = &opened.indexes[0];
//! assert_eq!(index.len(), 2);
//! assert_eq!((index.locate(1)?.offset, index.locate(1)?.payload_len), (19, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod chains;
mod changed;
mod checkpoints;
mod chunks;
#[cfg(test)]
mod chunks_tests;
mod companions;
mod dali;
mod file;
mod identity;
pub(crate) mod layout;
mod left_out;
mod lookup;
mod losses;
mod obtain;
mod open;
mod options;
mod pack;
mod packed;
mod progress;
mod salvage;
mod scan;
mod sidecar;
mod store;
mod table;

pub use dali::export_text;
pub use lookup::Index;
pub use open::{Indexes, build_beside, open_shards};
pub use options::IndexOptions;
pub use pack::write_pack;
pub use sidecar::Span;

pub(crate) use build::index_bytes;
pub(crate) use changed::check_start;
pub(crate) use companions::{
    CompanionReasons, CompanionSearch, CompanionShard, header_for, header_in_memory, never_used,
    search_companion,
};
pub(crate) use file::{OpenedFile, SidecarFile, read_section, sections_in_start, slice};
pub(crate) use identity::{fingerprints, hex128, same_records};
pub(crate) use layout::{HEADER_LEN, IndexHeader, MAX_PREFIX, Refusal, Section, compression_flags, refused};
pub(crate) use left_out::{LONG_SEGMENT, long_blocks, report, warning};
pub(crate) use lookup::dataset_fingerprint;
pub(crate) use obtain::{Obtained, SearchResult, ShardFiles, build_advice, obtain, refused_file};
pub(crate) use open::sidecar_for_written;
pub(crate) use packed::Pack;
pub(crate) use progress::{ProgressCallback, REPORT, Work};
pub(crate) use store::{Save, save_required, save_somewhere};
pub(crate) use table::{Table, TableBuilder, TableEnds};
