//! File access: memory maps, positional reads, reference-counted byte regions, and files that are created
//! atomically.
//!
//! All that differs between operating systems is in `system`.

mod atomic;
pub(crate) mod compression;
mod existing;
mod file_state;
#[cfg(test)]
pub(crate) mod flipped;
mod hidden;
pub(crate) mod inflate;
mod interrupt;
mod map;
mod memory;
mod open;
mod output;
mod own_folder;
mod path;
mod pipe;
mod pread;
mod process;
pub(crate) mod read_ahead;
mod read_buffer;
mod region;
mod salvage;
mod sequential;
pub(crate) mod sniff;
mod source;
mod storage;
mod store;
mod system;
pub(crate) mod threads;
mod traffic;
mod unframed;
mod url;
mod watched;

pub(crate) use atomic::{AtomicFile, NameNotSynced, TMP_PREFIX};
pub(crate) use compression::{CompressedFormat, Compression};
pub use existing::Existing;
pub(crate) use file_state::FileId;
pub use file_state::Stamp;
pub use hidden::HiddenFolder;
pub(crate) use inflate::{Inflate, InflateFrom, PausableInflate, PausedInflate};
pub(crate) use interrupt::Interrupt;
pub use interrupt::is_interrupted;
pub(crate) use map::{Map, Promise};
pub(crate) use memory::memory_limit;
pub(crate) use open::{Budget, KeptFile, Reserved, check_regular, open_regular};
pub use output::Output;
pub use own_folder::check_own_folder;
pub(crate) use path::OutputTarget;
pub(crate) use pread::PositionalFile;
pub use process::PerProcess;
pub(crate) use process::Process;
pub(crate) use read_ahead::{ReadAhead, Requested};
pub(crate) use read_buffer::ReadBuffer;
pub use region::Region;
pub use salvage::{SalvageItem, SalvageReader};
pub(crate) use sequential::{Ahead, Scans, Sequential};
pub use source::{Fetched, Source};
pub(crate) use source::{ReadRange, in_steps, is_corrupt, read_exact_at, truncated_range};
pub(crate) use storage::{OpenedShard, Storage, two_of_one_name};
pub use store::{Listing, Object, Store};
pub(crate) use system::create_own_folder;
pub(crate) use system::{file_type_name, is_foreign_separator, path_from_bytes, sync_folder, user_cache};
pub(crate) use threads::threads;
pub use traffic::Traffic;
pub use url::bare_url;
pub(crate) use url::{check_local, folder, join, portable_url, split_query, url_of};
pub(crate) use watched::Watched;
