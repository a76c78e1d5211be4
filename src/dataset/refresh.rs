//! Opening a dataset again after its shards have grown.

use super::dataset::Dataset;
use super::mapped::Mapped;
use super::options::DatasetOptions;
use super::shard::ShardFile;
use super::shards::ShardSet;
use crate::error::{Count, Error, ErrorKind, Result};
use crate::index;
use crate::io::Storage;
use std::ops::ControlFlow;

impl Dataset {
    /// Opens the dataset again with the same paths and options, and returns a dataset with the records that
    /// were added since. The paths are resolved again, so a pattern or a folder also yields new shards. Only
    /// the new parts of shards are scanned. A pack is read again; it grows when it is written again.
    ///
    /// The records of this dataset keep their numbers in the new one: its last shard may have grown, and new
    /// shards may follow. Every other change is an error that names a shard. This dataset itself does not
    /// change, and neither do its clones and loaders. A dataset in memory is returned as it is. Training jobs
    /// and saved selections refer to records by number.
    ///
    /// A file that is being written usually ends inside a record, so its readers open it with
    /// [`Tail::Tolerate`](crate::Tail::Tolerate).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// use std::io::Write;
    /// use tfseek::frame::put_record;
    ///
    /// let mut file = std::fs::File::create(&path)?;
    /// let append = |mut file: &std::fs::File, payload: &[u8]| {
    ///     let mut record = Vec::new();
    ///     put_record(&mut record, payload)?;
    ///     file.write_all(&record)
    /// };
    /// append(&file, b"one")?;
    /// let options = tfseek::index::IndexOptions::from(tfseek::IndexMode::Memory).tail(tfseek::Tail::Tolerate);
    /// let ds = tfseek::DatasetOptions::new().index(options).open(&path)?;
    /// append(&file, b"two")?;
    /// file.write_all(&[3, 0, 0])?; // a part of the next record
    ///
    /// let grown = ds.refresh()?;
    /// assert_eq!((ds.len(), grown.len()), (1, 2));
    /// assert_eq!(grown.read(1, &mut Vec::new())?.payload(), b"two");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - Errors of [`Dataset::open`]
    /// - [`ErrorKind::Renumbered`], if a shard was added before the last one, removed, or has grown without
    ///   being the last one
    /// - [`IndexError::Stale`](crate::error::IndexError::Stale), if a shard became shorter or has other
    ///   content
    pub fn refresh(&self) -> Result<Dataset> {
        self.refreshed(|options| options)
    }

    /// Opens the dataset again like [`refresh`](Dataset::refresh), with another callback for the progress of
    /// scans ([`DatasetOptions::progress`]).
    ///
    /// # Errors
    /// Errors of [`refresh`](Dataset::refresh).
    pub fn refresh_with(
        &self,
        progress: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Result<Dataset> {
        self.refreshed(|options| options.progress(progress))
    }

    fn refreshed(&self, change: impl FnOnce(DatasetOptions) -> DatasetOptions) -> Result<Dataset> {
        let Some(origin) = self.origin() else { return Ok(self.clone()) };
        let options = change(origin.options.clone());
        let new = options.build(origin.paths.clone(), origin.promise)?;
        check_numbers(self.set(), new.set(), &new.index_options().storage)?;
        Ok(new)
    }
}

impl Mapped {
    /// Opens the dataset again like [`Dataset::refresh`], with new maps. The guarantee given to
    /// [`Mapped::open`] covers them too.
    ///
    /// # Errors
    /// Errors of [`Dataset::refresh`] and of [`Mapped::open`].
    pub fn refresh(&self) -> Result<Mapped> {
        Mapped::of_maps(self.dataset().refresh()?)
    }
}

/// Checks that the records of `old` have the same numbers in `new`. Shards without records have no influence
/// on numbers.
fn check_numbers(old: &ShardSet, new: &ShardSet, storage: &Storage) -> Result<()> {
    fn with_records(set: &ShardSet) -> impl Iterator<Item = &ShardFile> {
        set.files().iter().filter(|file| file.len() > 0)
    }
    let mut before = with_records(old).peekable();
    let mut now = with_records(new);
    while let Some(was) = before.next() {
        let found = now.next();
        let is =
            found.filter(|found| found.path() == was.path()).ok_or_else(|| misplaced(was, found, old))?;
        check_content(was, is, storage).map_err(|e| e.in_file(was.path()))?;
        let is_last = before.peek().is_none();
        if is.len() < was.len() || (is.len() > was.len() && !is_last) {
            let expected = Count(was.len(), "record");
            let found = Count(is.len(), "record");
            let after = if is_last { "" } else { " before the next shard" };
            return Err(renumbered(format!("expected {expected}{after}, found {found}"), is));
        }
    }
    Ok(())
}

/// Checks that a shard begins with the records that were indexed before.
fn check_content(was: &ShardFile, is: &ShardFile, storage: &Storage) -> Result<()> {
    let known = was.index_header()?;
    let header = is.index_header()?;
    // Two files that were written within one clock tick have the same time, so the file must be the same as
    // well.
    let same_file = was.file_id() == is.file_id();
    if same_file && index::same_records(&known, &header) {
        return Ok(());
    }
    index::check_start(&known, storage.open(is.path())?.source())?;
    if known.has_gaps() || header.has_gaps() { check_offsets(was, is) } else { Ok(()) }
}

/// Checks that records have the same offsets, if damage was skipped: when a record that was in parts becomes
/// whole, records that were found inside it are none.
fn check_offsets(was: &ShardFile, is: &ShardFile) -> Result<()> {
    for i in 0..was.len().min(is.len()) {
        let expected = was.locate(i)?.offset;
        let found = is.locate(i)?.offset;
        if expected != found {
            let reason = format!("expected record {i} at byte {expected}, found it at byte {found}");
            return Err(renumbered(reason, is));
        }
    }
    Ok(())
}

/// Returns the error of a shard of the old dataset that is not at its place. `found` is the one that is.
#[cold]
fn misplaced(was: &ShardFile, found: Option<&ShardFile>, old: &ShardSet) -> Error {
    let path = was.path().display();
    match found {
        None => renumbered("expected a shard, found none".into(), was),
        Some(found) if old.files().iter().any(|file| file.path() == found.path()) => {
            renumbered(format!("expected a shard, found {} at its place", found.path().display()), was)
        }
        Some(found) => renumbered(format!("expected no shard before {path}, found a new one"), found),
    }
}

#[cold]
fn renumbered(reason: String, file: &ShardFile) -> Error {
    Error::from(ErrorKind::Renumbered { reason: reason.into() }).in_file(file.path())
}
