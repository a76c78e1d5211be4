//! Options for opening datasets.

use super::segments::SegmentCache;
use crate::error::Result;
use crate::index::IndexOptions;
use crate::io::Store;
use crate::policy::Verify;
use crate::record::MAX_RECORD;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Options for opening a dataset. [`IndexOptions`] are the options of its indexes.
///
/// ```no_run
/// use tfseek::index::IndexOptions;
/// use tfseek::{DatasetOptions, IndexMode, Verify};
/// let ds = DatasetOptions::new().index(IndexMode::Require).verify(Verify::Header).open("train-*.tfrecord")?;
/// let options = IndexOptions::new().index_dir("indexes").threads(4);
/// let ds = DatasetOptions::new().index(options).open("train-*.tfrecord")?;
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DatasetOptions {
    pub(super) index: IndexOptions,
    pub(super) verify: Verify,
    pub(super) max_record: u64,
    pub(super) allow_missing: bool,
    /// The cache of decompressed bytes. Tests have their own.
    pub(crate) segments: Arc<SegmentCache>,
}

impl Default for DatasetOptions {
    fn default() -> DatasetOptions {
        DatasetOptions {
            index: IndexOptions::default(),
            verify: Verify::default(),
            max_record: MAX_RECORD,
            allow_missing: false,
            segments: SegmentCache::of_process(),
        }
    }
}

impl DatasetOptions {
    /// Returns the defaults: indexes are found or built, payloads are verified, and a torn tail or a missing
    /// shard is an error.
    pub fn new() -> DatasetOptions {
        DatasetOptions::default()
    }

    /// Sets the options for finding and building indexes, and replaces earlier ones. An
    /// [`IndexMode`](crate::IndexMode) means the default options with that mode. The callback of
    /// [`progress`](DatasetOptions::progress) and the [`store`](DatasetOptions::store) stay, unless `options`
    /// have them.
    #[must_use]
    pub fn index(mut self, options: impl Into<IndexOptions>) -> DatasetOptions {
        let before = std::mem::replace(&mut self.index, options.into());
        self.index.progress = self.index.progress.or(before.progress);
        if !self.index.storage.has_store() {
            self.index.storage = before.storage;
        }
        self
    }

    /// Returns the options for finding and building indexes.
    pub fn index_options(&self) -> &IndexOptions {
        &self.index
    }

    /// Sets which checksums are verified on each access.
    #[must_use]
    pub fn verify(mut self, verify: Verify) -> DatasetOptions {
        self.verify = verify;
        self
    }

    /// Sets the maximum number of payload bytes of a record. Default: 2^31 - 1, the longest message that
    /// protobuf parses. Access to a longer record returns
    /// [`ErrorKind::RecordTooLarge`](crate::ErrorKind::RecordTooLarge), before any memory is allocated for
    /// it. Other records stay readable. The limit is checked when a record is returned, so no index depends
    /// on it. Maps apply it too, so that both readers accept the same files.
    #[must_use]
    pub fn max_record(mut self, bytes: u64) -> DatasetOptions {
        self.max_record = bytes;
        self
    }

    /// Sets whether shards of a set `-NNNNN-of-NNNNN` may be missing. Record numbers then count the records
    /// of the shards that exist. Default: false.
    #[must_use]
    pub fn allow_missing(mut self, allow: bool) -> DatasetOptions {
        self.allow_missing = allow;
        self
    }

    /// Sets the store of shards whose names are URLs. Default: none; a URL is then an error. Maps are of
    /// files only: objects are read with ranges. [`IndexOptions::store`] tells where their indexes are.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> DatasetOptions {
        self.index = self.index.store(store);
        self
    }

    /// Returns the store that a name is opened from. `None` for the path of a file.
    ///
    /// # Errors
    /// [`PathsError::NotLocal`](crate::error::PathsError::NotLocal) for a URL without a store.
    pub fn store_of(&self, name: &Path) -> Result<Option<Arc<dyn Store>>> {
        self.index.storage.store_of(name)
    }

    /// Sets a callback for progress, as described at [`IndexOptions::progress`]. It receives the number of
    /// bytes scanned since its last call. Scans happen for indexes when the dataset is opened, and for
    /// columns when they are built; for these,
    /// [`ColumnOptions::progress`](crate::column::ColumnOptions::progress) can set another callback per call.
    /// `f` can cancel the call:
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
        self.index = self.index.progress(f);
        self
    }
}
