//! Options of finding, building and keeping indexes.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use super::progress::ProgressCallback;
use crate::io::{Budget, Promise};
use crate::policy::{IndexMode, Tail};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of [`open_shards`](super::open_shards), [`build_beside`](super::build_beside) and [`write_pack`](super::write_pack).
///
/// ```
/// use tfseek::index::IndexOptions;
/// use tfseek::{IndexMode, Tail};
/// let options = IndexOptions::new().mode(IndexMode::Memory).tail(Tail::Tolerate);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct IndexOptions {
    pub(crate) mode: IndexMode,
    pub(crate) index_dir: Option<PathBuf>,
    pub(crate) env_dir: Option<PathBuf>,
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) auto_limit: u64,
    pub(crate) check_payloads: bool,
    pub(crate) trust_columns: bool,
    pub(crate) tail: Tail,
    pub(crate) jobs: usize,
    pub(crate) may_map: Option<Promise>,
    pub(crate) progress: Option<ProgressCallback>,
    /// Shared by all files of one dataset; `None` for one that is made for each call.
    budget: Option<Arc<Budget>>,
}

impl Default for IndexOptions {
    fn default() -> IndexOptions {
        IndexOptions {
            mode: IndexMode::Auto,
            index_dir: None,
            env_dir: std::env::var_os("TFSEEK_INDEX_DIR").filter(|d| !d.is_empty()).map(PathBuf::from),
            cache_dir: user_cache(),
            auto_limit: 64 << 30,
            check_payloads: false,
            trust_columns: false,
            tail: Tail::Strict,
            jobs: 0,
            may_map: None,
            progress: None,
            budget: None,
        }
    }
}

impl IndexOptions {
    /// The defaults: search everywhere, build what is missing, write into the user's cache.
    pub fn new() -> IndexOptions {
        IndexOptions::default()
    }

    /// What may be read, scanned and written.
    #[must_use]
    pub fn mode(mut self, mode: IndexMode) -> IndexOptions {
        self.mode = mode;
        self
    }

    /// A folder for index files, which then is looked into first and written to first. Made if it is missing.
    #[must_use]
    pub fn index_dir(mut self, dir: impl Into<PathBuf>) -> IndexOptions {
        self.index_dir = Some(dir.into());
        self
    }

    /// Replaces the default folders: `env` stands for the one that `TFSEEK_INDEX_DIR` names, `cache` for `tfseek/` in the user's
    /// cache folder. `None` for none.
    #[must_use]
    pub fn default_dirs(mut self, env: Option<PathBuf>, cache: Option<PathBuf>) -> IndexOptions {
        (self.env_dir, self.cache_dir) = (env, cache);
        self
    }

    /// The bytes that [`IndexMode::Auto`] may scan, all shards together: 64 GiB unless set.
    #[must_use]
    pub fn auto_limit(mut self, bytes: u64) -> IndexOptions {
        self.auto_limit = bytes;
        self
    }

    /// Whether every payload's crc must have been checked: a scan then reads everything.
    #[must_use]
    pub fn check_payloads(mut self, yes: bool) -> IndexOptions {
        self.check_payloads = yes;
        self
    }

    /// Whether a column is taken that was built when the shard had another size or time: after a copy or a sync, say, that
    /// brought the column files along. A column that is out of date passes unnoticed then, if head and tail of the shard
    /// are what they were.
    #[must_use]
    pub fn trust_columns(mut self, yes: bool) -> IndexOptions {
        self.trust_columns = yes;
        self
    }

    /// What bytes after the last whole record mean.
    #[must_use]
    pub fn tail(mut self, tail: Tail) -> IndexOptions {
        self.tail = tail;
        self
    }

    /// Threads; 0 for as many as the machine has. At most [`MAX_THREADS`](crate::MAX_THREADS): more are an error when the options
    /// are used.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> IndexOptions {
        self.jobs = jobs;
        self
    }

    /// Calls `f` with the number of bytes scanned since its last call, from any thread: after each MiB at most, and with 0 before each
    /// shard.
    ///
    /// [`ControlFlow::Break`] ends the work on all threads with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled). Files that were
    /// complete by then stay, no file is left in part, and `f` is not called again but for threads that are in it already.
    #[must_use]
    pub fn progress(mut self, f: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static) -> IndexOptions {
        self.progress = Some(ProgressCallback::new(f));
        self
    }
}

/// The defaults with this mode.
impl From<IndexMode> for IndexOptions {
    fn from(mode: IndexMode) -> IndexOptions {
        IndexOptions::new().mode(mode)
    }
}

impl IndexOptions {
    /// The same options with a budget: the one they have, or a new one.
    pub(crate) fn budgeted(&self) -> IndexOptions {
        IndexOptions { budget: Some(self.budget()), ..self.clone() }
    }

    /// Lets shards be scanned and large index files be read through maps, which processes share. The promise is for the
    /// shards while they are scanned, and for the index files as long as an [`Index`](super::Index) or
    /// [`Pack`](super::Pack) made with these options lives. What tfseek writes keeps it.
    pub(crate) fn may_map(self, promise: Promise) -> IndexOptions {
        IndexOptions { may_map: Some(promise), ..self }
    }

    /// The budget of these options, or a new one.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        self.budget.clone().unwrap_or_else(|| Arc::new(Budget::new()))
    }

    /// Whether index files are read at all.
    pub(crate) fn reads_indexes(&self) -> bool {
        matches!(self.mode, IndexMode::Auto | IndexMode::Require)
    }
}

/// `tfseek/` in the user's cache folder, by the habit of the system.
fn user_cache() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Caches"))
    } else {
        // A relative XDG_CACHE_HOME is to be ignored, by the base directory specification.
        folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))
    };
    Some(cache?.join("tfseek"))
}
