//! Options for finding, building and saving indexes.

use super::progress::ProgressCallback;
use crate::error::{Error, Result};
use crate::io::inflate::SPACING;
use crate::io::{Budget, Promise, Storage, Store, check_own_folder, url_of, user_cache};
use crate::policy::{Damage, IndexMode, Tail};
use crate::warning::Warning;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of [`open_shards`](super::open_shards), [`build_beside`](super::build_beside) and
/// [`write_pack`](super::write_pack).
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
    auto_limit: Option<u64>,
    pub(crate) check_payloads: bool,
    pub(crate) tail: Tail,
    pub(crate) damage: Damage,
    /// The lengths in headers are not verified.
    pub(crate) unverified: bool,
    pub(crate) rest: Option<PathBuf>,
    pub(crate) checkpoint_every: u64,
    pub(crate) threads: Option<usize>,
    pub(crate) may_map: Option<Promise>,
    pub(crate) progress: Option<ProgressCallback>,
    /// The budget shared by all files of one dataset. `None`: each call creates a new one.
    budget: Option<Arc<Budget>>,
    /// Access to the shards, and to index files beside them.
    pub(crate) storage: Storage,
    /// The default folders that are not used, because others can write to them.
    untrusted: Vec<Warning>,
}

impl Default for IndexOptions {
    fn default() -> IndexOptions {
        IndexOptions {
            mode: IndexMode::Auto,
            index_dir: None,
            env_dir: std::env::var_os("TFSEEK_INDEX_DIR").filter(|d| !d.is_empty()).map(PathBuf::from),
            cache_dir: user_cache(),
            auto_limit: None,
            check_payloads: false,
            tail: Tail::Strict,
            damage: Damage::Raise,
            unverified: false,
            rest: None,
            checkpoint_every: SPACING,
            threads: None,
            may_map: None,
            progress: None,
            budget: None,
            storage: Storage::default(),
            untrusted: Vec::new(),
        }
    }
}

impl IndexOptions {
    /// Returns the defaults: search everywhere, build missing indexes, save them to the user's cache.
    pub fn new() -> IndexOptions {
        IndexOptions::default()
    }

    /// Sets which index files are read and written, and whether shards are scanned. Default:
    /// [`IndexMode::Auto`].
    #[must_use]
    pub fn mode(mut self, mode: IndexMode) -> IndexOptions {
        self.mode = mode;
        self
    }

    /// Sets a folder for index files. It is searched first and written first, and is created if it is
    /// missing. Default: none.
    #[must_use]
    pub fn index_dir(mut self, dir: impl Into<PathBuf>) -> IndexOptions {
        self.index_dir = Some(dir.into());
        self
    }

    /// Replaces the default folders. `env` replaces the folder given by `TFSEEK_INDEX_DIR`, and `cache`
    /// replaces `tfseek/` in the user's cache folder. `None`: no folder.
    #[must_use]
    pub fn default_dirs(mut self, env: Option<PathBuf>, cache: Option<PathBuf>) -> IndexOptions {
        (self.env_dir, self.cache_dir) = (env, cache);
        self
    }

    /// Sets the maximum number of bytes that [`IndexMode::Auto`] scans, over all shards. Default: 64 GiB. If
    /// shards are in a store: 4 GiB, and about 20,000 requests.
    #[must_use]
    pub fn auto_limit(mut self, bytes: u64) -> IndexOptions {
        self.auto_limit = Some(bytes);
        self
    }

    /// Sets whether the CRC of every payload must be verified. A scan then reads all bytes. Default: false.
    #[must_use]
    pub fn check_payloads(mut self, yes: bool) -> IndexOptions {
        self.check_payloads = yes;
        self
    }

    /// Sets the minimum number of decompressed bytes between two checkpoints of a compressed shard. Default:
    /// 1 MiB.
    ///
    /// Access to a record decompresses the bytes from the checkpoint before it, half of this number on
    /// average. A checkpoint takes 32 KiB of the index, or 32 bytes at the start of a gzip member. Existing
    /// indexes are used whatever their spacing.
    ///
    /// Checkpoints of 32 KiB are further apart in a file that inflates to more than 32 times its size: beyond
    /// 16 MiB they take at most as many bytes as the file, or at a spacing of 1 MiB / k at most k times as
    /// many.
    #[must_use]
    pub fn checkpoint_every(mut self, bytes: u64) -> IndexOptions {
        self.checkpoint_every = bytes;
        self
    }

    /// Sets the meaning of bytes after the last whole record. Default: [`Tail::Strict`].
    #[must_use]
    pub fn tail(mut self, tail: Tail) -> IndexOptions {
        self.tail = tail;
        self
    }

    /// Sets the treatment of damaged records. Default: [`Damage::Raise`].
    ///
    /// With [`Damage::Skip`] an index is used if it has gaps, or if its payloads were verified. Otherwise the
    /// shard is scanned again. A record with a payload of 2^31 bytes or more counts as damaged.
    /// [`SalvageReader`](crate::io::SalvageReader) defines which other records do.
    #[must_use]
    pub fn damage(mut self, damage: Damage) -> IndexOptions {
        self.damage = damage;
        self
    }

    /// Sets a folder for the bytes that [`Damage::Skip`] leaves out. It is created if it is missing. Default:
    /// none.
    ///
    /// For each damaged shard a file `<file name of the shard>.rest` is written, whether its index was found
    /// or built. It contains the damaged bytes of the record stream, one range after the other, as
    /// `tfseek salvage --rest` writes them. Shards in memory have no such file.
    #[must_use]
    pub fn rest(mut self, dir: impl Into<PathBuf>) -> IndexOptions {
        self.rest = Some(dir.into());
        self
    }

    /// Sets the number of [`threads`](crate::threads). Default: one per processor. 0: the calling thread.
    /// More than [`MAX_THREADS`](crate::MAX_THREADS) is an error when the options are used. With fewer shards
    /// than threads, several threads scan each plain shard that is mapped or in memory, if its records are
    /// small or its payloads are verified.
    #[must_use]
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> IndexOptions {
        self.threads = threads.into();
        self
    }

    /// Sets the store of shards whose names are URLs. Default: none; a URL is then an error. Their index
    /// files are searched in the same folders as for files, and beside them. They are saved to the user's
    /// cache, by the hash of the URL.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> IndexOptions {
        self.storage = Storage::with_store(store);
        self
    }

    /// Sets a callback for progress. It receives the number of bytes of files scanned since its last call,
    /// about once per MiB, and 0 before each shard. Scans of compressed shards and of maps also call it with
    /// 0 in between. Any thread may call it.
    ///
    /// [`ControlFlow::Break`] stops all threads with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    /// Complete files stay, and no partial file is left. `f` is not called again, except by threads that have
    /// already started a call.
    #[must_use]
    pub fn progress(mut self, f: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static) -> IndexOptions {
        self.progress = Some(ProgressCallback::new(f));
        self
    }
}

/// The default options with this mode.
impl From<IndexMode> for IndexOptions {
    fn from(mode: IndexMode) -> IndexOptions {
        IndexOptions::new().mode(mode)
    }
}

impl IndexOptions {
    /// Returns the same options with a budget. If they have none, it is a new one, objects of a store are
    /// listed again, and default folders that others can write to are left out.
    pub(crate) fn budgeted(&self) -> IndexOptions {
        if self.budget.is_some() {
            return self.clone();
        }
        let mut options =
            IndexOptions { budget: Some(self.budget()), storage: self.storage.renewed(), ..self.clone() };
        if options.mode != IndexMode::Memory {
            for dir in [&mut options.env_dir, &mut options.cache_dir] {
                let refused = dir.as_ref().and_then(|dir| Some((dir.clone(), check_own(dir).err()?)));
                if let Some((path, e)) = refused {
                    options.untrusted.push(Warning::FileRefused { path, reason: e.to_string().into() });
                    *dir = None;
                }
            }
        }
        options
    }

    /// Returns the warnings about default folders that are not used.
    pub(crate) fn untrusted(&self) -> impl Iterator<Item = Warning> {
        self.untrusted.clone().into_iter()
    }

    /// Checks that no other user can write to the folder for index files that the caller gave.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`].
    pub(crate) fn check_index_dir(&self) -> Result<()> {
        let Some(dir) = &self.index_dir else { return Ok(()) };
        check_own(dir).map_err(|e| Error::from(e).in_file(dir))
    }

    /// Allows maps for scanning shards and for reading large index files; processes share mapped memory. The
    /// contract covers the shards while they are scanned, and the index files while an
    /// [`Index`](super::Index) or [`Pack`](super::Pack) made with these options lives. Files that tfseek
    /// writes are replaced by rename, so they keep the contract.
    pub(crate) fn may_map(self, promise: Promise) -> IndexOptions {
        IndexOptions { may_map: Some(promise), ..self }
    }

    /// Returns the budget of these options, or a new one.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        self.budget.clone().unwrap_or_else(|| Arc::new(Budget::new()))
    }

    /// Returns the maximum number of bytes that [`IndexMode::Auto`] scans.
    pub(crate) fn scan_limit(&self, has_objects: bool) -> u64 {
        self.auto_limit.unwrap_or(if has_objects { 4 << 30 } else { 64 << 30 })
    }

    /// Returns the largest number of requests for scans of objects that [`IndexMode::Auto`] makes.
    pub(crate) fn request_limit(&self) -> u64 {
        if self.auto_limit.is_some() { u64::MAX } else { 20_000 }
    }

    /// Returns true if a scan must verify payloads.
    pub(crate) fn checks_payloads(&self) -> bool {
        self.check_payloads || self.damage == Damage::Skip
    }

    /// Returns true if a torn tail is no error.
    pub(crate) fn allows_torn(&self) -> bool {
        self.tail == Tail::Tolerate || self.damage == Damage::Skip
    }

    /// Returns true if the mode reads index files.
    pub(crate) fn reads_indexes(&self) -> bool {
        matches!(self.mode, IndexMode::Auto | IndexMode::Require)
    }
}

/// Checks that no other user can write to a folder. Objects of a store have owners of their own.
fn check_own(dir: &Path) -> io::Result<()> {
    if url_of(dir).is_some() { Ok(()) } else { check_own_folder(dir) }
}
