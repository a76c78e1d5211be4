//! Where bytes live: regions that own them, maps, positional reads, files that appear whole or not at all.
//!
//! Unix, Windows and macOS differ only in this folder.

pub mod atomic;
pub mod inflate;
mod limit;
pub mod map;
pub(crate) mod names;
pub mod pread;
mod region;
pub mod sniff;

pub use atomic::AtomicFile;
pub use inflate::{Compression, Inflate};
pub(crate) use limit::memory_limit;
pub use map::{Map, Promise};
pub use pread::ReadAt;
pub use region::Region;
