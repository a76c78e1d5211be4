//! How a dataset is to be opened.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use super::shard::{Door, Shard, Table};
use super::{Building, Dataset, Mapped};
use crate::error::{ErrorKind, PathsError, Result};
use crate::index::{self, IndexOptions, Pack, Work};
use crate::io::threads;
use crate::io::{Map, Promise, Region};
use crate::paths::{self, IntoPaths};
use crate::policy::Verify;
use crate::policy::{IndexMode, Tail};
use crate::record::MAX_RECORD;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A [`Progress`](index::Progress) that is kept.
pub(crate) type Callback = Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>;

/// Calls it, if there is one.
pub(crate) fn call(progress: Option<&Callback>, bytes: u64) -> ControlFlow<()> {
    progress.map_or(ControlFlow::Continue(()), |progress| progress(bytes))
}

/// Everything that can be said when a dataset is opened.
///
/// ```no_run
/// use tfseek::{IndexMode, DatasetOptions, Verify};
/// let ds = DatasetOptions::new().index(IndexMode::Require).verify(Verify::Header).open("train-*.tfrecord")?;
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone)]
pub struct DatasetOptions {
    index: IndexOptions,
    verify: Verify,
    max_record: u64,
    allow_missing: bool,
    check_shards: bool,
    base_dir: Option<PathBuf>,
    progress: Option<Callback>,
}

impl Default for DatasetOptions {
    fn default() -> DatasetOptions {
        DatasetOptions {
            index: IndexOptions::default(),
            verify: Verify::default(),
            max_record: MAX_RECORD,
            allow_missing: false,
            check_shards: false,
            base_dir: None,
            progress: None,
        }
    }
}

impl DatasetOptions {
    /// The defaults: indexes are found or built, payloads verified, a torn tail or a missing shard is an error.
    pub fn new() -> DatasetOptions {
        DatasetOptions::default()
    }

    /// Where indexes come from, and whether they may be built.
    #[must_use]
    pub fn index(mut self, mode: IndexMode) -> DatasetOptions {
        self.index = self.index.mode(mode);
        self
    }

    /// All about index files at once, in place of what was said before.
    #[must_use]
    pub fn index_options(mut self, options: IndexOptions) -> DatasetOptions {
        self.index = options;
        self
    }

    /// A folder for index files that is searched and written first.
    #[must_use]
    pub fn index_dir(mut self, dir: impl Into<PathBuf>) -> DatasetOptions {
        self.index = self.index.index_dir(dir);
        self
    }

    /// Bytes that may be scanned unasked, over all shards; 64 GiB by default.
    #[must_use]
    pub fn auto_limit(mut self, bytes: u64) -> DatasetOptions {
        self.index = self.index.auto_limit(bytes);
        self
    }

    /// What is checked each time a record is handed out.
    #[must_use]
    pub fn verify(mut self, verify: Verify) -> DatasetOptions {
        self.verify = verify;
        self
    }

    /// Payload bytes of a record, at most; 2^31 - 1 by default, the longest message that protobuf parses. A longer record is
    /// [`ErrorKind::RecordTooLarge`] when it is asked for, before memory is allocated for it; the others stay readable.
    #[must_use]
    pub fn max_record(mut self, bytes: u64) -> DatasetOptions {
        self.max_record = bytes;
        self
    }

    /// Whether bytes after the last whole record are an error.
    #[must_use]
    pub fn tail(mut self, tail: Tail) -> DatasetOptions {
        self.index = self.index.tail(tail);
        self
    }

    /// Takes columns that were built when a shard had another size or time;
    /// [`IndexOptions::trust_columns`](crate::index::IndexOptions::trust_columns) says when that is right.
    #[must_use]
    pub fn trust_columns(mut self, trust: bool) -> DatasetOptions {
        self.index = self.index.trust_columns(trust);
        self
    }

    /// Goes on where shards of a set `-NNNNN-of-NNNNN` are missing. Record numbers are then those of what is there.
    #[must_use]
    pub fn allow_missing(mut self, allow: bool) -> DatasetOptions {
        self.allow_missing = allow;
        self
    }

    /// Threads that scan shards; 0, the default, is one for each processor. At most [`MAX_THREADS`](crate::MAX_THREADS): more are an
    /// error when the dataset is opened.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> DatasetOptions {
        self.index = self.index.jobs(jobs);
        self
    }

    /// For a dataset opened from a pack: compares every shard with its index now, and not at its first touch.
    /// What is stale may then be built again, as [`IndexMode`] says; later it is an error, since record numbers are out.
    #[must_use]
    pub fn check_shards(mut self, check: bool) -> DatasetOptions {
        self.check_shards = check;
        self
    }

    /// For a dataset opened from a pack: the folder its names count from, in place of the one that holds `.tfseek/`.
    #[must_use]
    pub fn base_dir(mut self, dir: impl Into<PathBuf>) -> DatasetOptions {
        self.base_dir = Some(dir.into());
        self
    }

    /// Calls `f` with the number of bytes scanned since its last call, from any thread, as [`Progress`](index::Progress) says:
    /// for indexes while the dataset is opened, and for columns when they are asked for, unless
    /// [`ColumnOptions::progress`](crate::column::ColumnOptions::progress) names another callback for one call. `f` may end the work:
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # std::fs::write(&path, b"")?;
    /// use std::ops::ControlFlow;
    /// use tfseek::{ErrorKind, DatasetOptions};
    /// let e = DatasetOptions::new().progress(|_bytes| ControlFlow::Break(())).open(&path).unwrap_err();
    /// assert!(matches!(e.kind(), ErrorKind::Cancelled));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn progress(mut self, f: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static) -> DatasetOptions {
        self.progress = Some(Arc::new(f));
        self
    }

    /// Opens shards for positional reads.
    ///
    /// # Errors
    /// Those of [`Dataset::open`].
    pub fn open(&self, paths: impl IntoPaths) -> Result<Dataset> {
        self.build(paths, None)
    }

    /// Opens shards through maps.
    ///
    /// # Errors
    /// Those of [`Mapped::open`].
    ///
    /// # Safety
    /// The contract of [`Mapped::open`].
    #[allow(unsafe_code)]
    pub unsafe fn open_mapped(&self, paths: impl IntoPaths) -> Result<Mapped> {
        // SAFETY: a promise asks that the files mapped with it stay as they are for as long as the maps live. The maps made
        // with this one are of the dataset's shards and their index files, they live in the dataset, and for all
        // of those the caller has promised just that.
        let promise = unsafe { Promise::new() };
        Ok(Mapped(self.build(paths, Some(promise))?))
    }

    /// Shards that are bytes already, in this order. They are scanned at once, and nothing is written to disk.
    ///
    /// # Errors
    /// The place of the first damage; its path is `<memory 0>` for the first region.
    pub fn open_regions(&self, regions: impl IntoIterator<Item = Region>) -> Result<Mapped> {
        let progress = |bytes| call(self.progress.as_ref(), bytes);
        let work = Work::new(&progress);
        let mut shards = Vec::new();
        for (k, region) in regions.into_iter().enumerate() {
            let path = PathBuf::from(format!("<memory {k}>"));
            let index = index::of_bytes(&region, &self.index, &work);
            let index = work.end(index.map_err(|e| e.in_file(&path)))?;
            let (len, door) = (index.len(), Door::Region(region));
            shards.push(Shard::new(path, len, Table::Index(index), door, self.max_record));
        }
        Ok(Mapped(Dataset::new(shards, self.verify, Vec::new(), self.building(&self.index))?))
    }

    /// What columns are found and built by, later.
    fn building(&self, options: &IndexOptions) -> Building {
        Building { options: options.clone(), progress: self.progress.clone() }
    }

    fn build(&self, paths: impl IntoPaths, promise: Option<Promise>) -> Result<Dataset> {
        threads::threads(self.index.jobs)?;
        let paths = paths::resolve(paths, self.allow_missing)?;
        let options = self.index.budgeted();
        let options = match promise {
            Some(promise) => options.may_map(promise),
            None => options,
        };
        let door = || match promise {
            Some(promise) => Door::Map(promise),
            None => Door::Pread(options.budget()),
        };
        if let [pack] = paths.as_slice()
            && paths::is_pack(pack)
        {
            return self.build_from_pack(pack, &options, promise, door);
        }
        self.build_from_list(paths, &options, promise, door)
    }

    fn build_from_list(
        &self,
        paths: Vec<PathBuf>,
        options: &IndexOptions,
        promise: Option<Promise>,
        door: impl Fn() -> Door,
    ) -> Result<Dataset> {
        check_budget(paths.len(), promise)?;
        let progress = |bytes| call(self.progress.as_ref(), bytes);
        let found = index::open_shards(&paths, options, &progress)?;
        let shards = paths.into_iter().zip(found.indexes);
        let shards = shards
            .map(|(path, index)| Shard::new(path, index.len(), Table::Index(index), door(), self.max_record));
        Dataset::new(shards.collect(), self.verify, found.warnings, self.building(options))
    }

    fn build_from_pack(
        &self,
        path: &Path,
        options: &IndexOptions,
        promise: Option<Promise>,
        door: impl Fn() -> Door,
    ) -> Result<Dataset> {
        let mut pack = Pack::open(path, options)?;
        if let Some(dir) = &self.base_dir {
            pack = pack.base_dir(dir);
        }
        // An index that is not to be believed is not to be believed in a pack either: then it is a list of shards.
        if !options.reads_indexes() || (self.check_shards && pack.check_shards().is_err()) {
            return self.build_from_list(
                pack.shards().map(|(path, _)| path).collect(),
                options,
                promise,
                door,
            );
        }
        check_budget(pack.len(), promise)?;
        let pack = Arc::new(pack);
        let shards = pack.shards().enumerate().map(|(slot, (path, len))| {
            let table = Table::Pack { pack: Arc::clone(&pack), slot };
            Shard::new(path, len, table, door(), self.max_record)
        });
        Dataset::new(shards.collect(), self.verify, Vec::new(), self.building(options))
    }
}

fn check_budget(shards: usize, promise: Option<Promise>) -> Result<()> {
    let budget = Map::budget();
    match promise {
        Some(_) if shards > budget => {
            Err(ErrorKind::Paths(PathsError::TooManyMaps { shards, budget }).into())
        }
        _ => Ok(()),
    }
}

impl fmt::Debug for DatasetOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DatasetOptions { index, verify, max_record, allow_missing, check_shards, base_dir, progress: _ } =
            self;
        let mut s = f.debug_struct("DatasetOptions");
        s.field("index", index)
            .field("verify", verify)
            .field("max_record", max_record)
            .field("allow_missing", allow_missing)
            .field("check_shards", check_shards)
            .field("base_dir", base_dir)
            .finish_non_exhaustive()
    }
}
