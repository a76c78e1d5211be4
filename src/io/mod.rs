//! Where bytes live: regions that own them, maps, positional reads, files that appear whole or not at all.
//!
//! Unix, Windows and macOS differ only in this folder.

pub mod atomic;
pub mod inflate;
pub mod map;
mod memory;
pub(crate) mod names;
mod open;
pub mod pread;
mod region;
pub mod sniff;

pub use atomic::AtomicFile;
pub use inflate::{Compression, Inflate};
pub use map::{Map, Promise};
pub(crate) use memory::{grow, grow_exact, memory_limit, zeroed};
pub(crate) use open::{Budget, FileId, KeptFile, file_id, not_regular, open_regular};
pub use pread::ReadAt;
pub use region::Region;
