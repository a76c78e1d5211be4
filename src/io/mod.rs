//! Where bytes live: regions that own them, maps, positional reads, files that appear whole or not at all.
//!
//! Unix, Windows and macOS differ only in this folder.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

pub mod atomic;
pub mod inflate;
pub mod map;
mod memory;
pub(crate) mod names;
mod open;
mod output;
mod place;
pub mod pread;
pub(crate) mod process;
mod region;
pub(crate) mod sniff;
pub(crate) mod threads;

pub use atomic::{AtomicFile, NameNotSynced};
pub use inflate::{Compression, Inflate};
pub use map::{Map, Promise};
pub(crate) use memory::{grow, grow_exact, memory_limit, zeroed};
pub(crate) use open::{Budget, KeptFile, Reserved, not_regular, open_regular};
pub use output::{Output, OutputKey};
pub use place::FileId;
pub(crate) use place::folder;
pub use pread::ReadAt;
pub use region::Region;
pub use threads::{MAX_THREADS, threads};
