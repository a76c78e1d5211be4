//! File access: memory maps, positional reads, reference-counted byte regions, and files that are created atomically.
//!
//! All platform-specific code is in this module.

mod atomic;
pub(crate) mod compression;
mod existing;
mod file_state;
pub(crate) mod inflate;
mod map;
mod memory;
mod nameless;
mod open;
mod output;
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
pub(crate) mod threads;
mod url;
mod watched;

pub(crate) use atomic::NameNotSynced;
pub(crate) use atomic::{AtomicFile, TMP_PREFIX, sync_folder};
pub(crate) use compression::{CompressedFormat, Compression};
pub use existing::Existing;
pub(crate) use file_state::FileId;
pub use file_state::Stamp;
pub(crate) use inflate::{Inflate, InflateFrom, PausableInflate, PausedInflate};
pub(crate) use map::{Map, Promise};
pub(crate) use memory::memory_limit;
pub(crate) use open::{Budget, KeptFile, Reserved, check_regular, file_type_name, open_regular};
pub use output::Output;
pub(crate) use path::{OutputTarget, path_from_bytes};
pub(crate) use pread::{PositionalFile, size};
pub(crate) use process::Process;
pub(crate) use read_ahead::{ReadAhead, Requested};
pub(crate) use read_buffer::ReadBuffer;
pub use region::Region;
pub use salvage::{SalvageItem, SalvageReader};
pub(crate) use sequential::{Ahead, Scans, Sequential};
pub use source::{Fetched, Source};
pub(crate) use source::{ReadRange, check_answer, read_exact_at};
pub(crate) use storage::{OpenedShard, Storage};
pub use store::{Listing, Object, Store};
pub(crate) use threads::threads;
pub use url::bare_url;
pub(crate) use url::{check_local, folder, join, split_query, url_of};
pub(crate) use watched::Watched;
