//! The constructors of [`Dataset`] and [`Mapped`], from paths or from bytes.
//!
//! They are in a file above both types, because opening needs the options, and the options make datasets.

use super::dataset::{Dataset, Origin};
use super::mapped::Mapped;
use super::options::DatasetOptions;
use super::shard::{Access, IndexSource, ShardFile};
use super::shards::ShardSet;
use crate::error::{ErrorKind, OptionsError, PathsError, Result};
use crate::index::{self, Index, IndexOptions, Pack, Work};
use crate::io::{Compression, Map, Promise, Region, threads, url_of};
use crate::paths::{self, IntoPaths};
use crate::policy::{Damage, IndexMode, Tail, Verify};
use crate::warning::Warning;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Dataset {
    /// Opens shards for positional reads. `paths` is a path, a pattern, or a list of them; `docs/paths.md`
    /// lists the forms. Finds the indexes of the shards, and builds missing ones. [`DatasetOptions`] opens
    /// shards with other options.
    ///
    /// # Errors
    /// - [`ErrorKind::Paths`], if no shard is found or a set is incomplete
    /// - the first corrupt record of a shard that was scanned, with its location
    /// - [`ErrorKind::Cancelled`], if the callback of [`DatasetOptions::progress`] cancels the call
    /// - I/O errors
    pub fn open(paths: impl IntoPaths) -> Result<Dataset> {
        DatasetOptions::new().open(paths)
    }
}

impl Mapped {
    /// Opens shards through maps.
    ///
    /// # Errors
    /// Errors of [`Dataset::open`]; [`PathsError::TooManyMaps`] for more shards than the process may map;
    /// [`ErrorKind::Compressed`] for compressed shards, whose records cannot borrow from a map.
    /// [`Dataset::open`] reads them.
    ///
    /// # Safety
    /// The bytes of the shards, and of the index and column files that belong to them, must not be
    /// overwritten or truncated while this dataset lives. The same holds while a clone of the dataset lives,
    /// or an object that keeps its memory: an [`Index`](crate::Index), a [`Region`], a column, a batch. It
    /// also holds for the files that [`refresh`](Mapped::refresh) opens. Appending to a file is fine, because
    /// a map has the length that the file had. Replacing a file by rename is fine, because the maps keep the
    /// old file.
    ///
    /// Access to the missing pages of a truncated file raises SIGBUS, and a change of the bytes of a `&[u8]`
    /// is undefined behaviour. Files that tfseek itself writes are only replaced by rename.
    #[allow(unsafe_code)]
    pub unsafe fn open(paths: impl IntoPaths) -> Result<Mapped> {
        // SAFETY: this function has the same contract, which the caller fulfils.
        unsafe { DatasetOptions::new().open_mapped(paths) }
    }

    /// Opens one shard in memory. It is scanned at once, and nothing is written to disk.
    ///
    /// # Errors
    /// The first corrupt record, with its location.
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Mapped> {
        DatasetOptions::new().open_regions([Region::new(bytes)])
    }
}

impl DatasetOptions {
    /// Opens shards for positional reads.
    ///
    /// # Errors
    /// Errors of [`Dataset::open`].
    pub fn open(&self, paths: impl IntoPaths) -> Result<Dataset> {
        self.build(paths.into_paths(), None)
    }

    /// Opens shards through maps.
    ///
    /// # Errors
    /// Errors of [`Mapped::open`].
    ///
    /// # Safety
    /// The contract of [`Mapped::open`].
    #[allow(unsafe_code)]
    pub unsafe fn open_mapped(&self, paths: impl IntoPaths) -> Result<Mapped> {
        // SAFETY: this function has the same contract, which the caller fulfils.
        Mapped::of_maps(unsafe { self.open_with_maps(paths) }?)
    }

    /// Opens shards through maps, except compressed ones, which are read with positional reads. If there are
    /// none, [`Mapped::from_dataset`] returns the dataset with records that borrow.
    ///
    /// # Errors
    /// Errors of [`Dataset::open`]; [`PathsError::TooManyMaps`] for more shards than the process may map.
    ///
    /// # Safety
    /// The contract of [`Mapped::open`].
    #[allow(unsafe_code)]
    pub unsafe fn open_with_maps(&self, paths: impl IntoPaths) -> Result<Dataset> {
        // SAFETY: the contract of a promise is that the mapped bytes of files do not change while the maps
        // live. This promise is used for the shards and, through the options, for the index and column files
        // of the new dataset and of those that `refresh` makes of it, and for nothing else. It is private to
        // the crate, and `self`, which may open other datasets, does not contain it. The maps live in these
        // datasets and in objects taken from them. The caller guarantees for exactly these files and objects
        // that the bytes do not change.
        let promise = unsafe { Promise::new() };
        self.build(paths.into_paths(), Some(promise))
    }

    /// Opens shards in memory, in this order. They are scanned at once, and nothing is written to disk.
    ///
    /// # Errors
    /// The first corrupt record, with its location. The path of the first region is `<memory 0>`.
    pub fn open_regions(&self, regions: impl IntoIterator<Item = Region>) -> Result<Mapped> {
        let DatasetOptions { index: options, .. } = self.checked()?;
        let work = Work::new(options.progress.as_ref());
        let mut shards = Vec::new();
        let mut warnings = Vec::new();
        for (k, region) in regions.into_iter().enumerate() {
            let path = PathBuf::from(format!("<memory {k}>"));
            let index = index::index_bytes(&region, &options, &work);
            let index = work.end(index.map_err(|e| e.in_file(&path)))?;
            warnings.extend(index::warning(&path, &index, &options)?);
            let len = index.len();
            let access = Access::Memory(region);
            let file = ShardFile::new(path, len, IndexSource::Index(index), access, self.max_record);
            shards.push(file.unverified(options.unverified));
        }
        let set = ShardSet::new(shards, self.verify)?;
        Ok(Mapped(Dataset::new(set, warnings, options)))
    }

    /// Returns the options with which shards are opened. Without verification no index file is read or
    /// written, because a reader that verifies would trust it.
    fn checked(&self) -> Result<DatasetOptions> {
        let mut options = self.clone();
        if self.verify == Verify::None {
            let asked = match (self.index.mode, self.index.damage) {
                (IndexMode::Require, _) => Some("an existing index"),
                (IndexMode::Rebuild, _) => Some("a new index file"),
                (_, Damage::Skip) => Some("to leave out damage"),
                _ => None,
            };
            if let Some(asked) = asked {
                return Err(OptionsError::Unverified { asked }.into());
            }
            (options.index.mode, options.index.unverified) = (IndexMode::Memory, true);
        }
        Ok(options)
    }

    /// Opens shards. The dataset keeps the paths and the options.
    pub(super) fn build(&self, paths: Vec<PathBuf>, promise: Option<Promise>) -> Result<Dataset> {
        let dataset = self.checked()?.resolve_and_build(&paths, promise).map_err(paths::explained)?;
        Ok(dataset.with_origin(Origin { paths, options: self.clone(), promise }))
    }

    fn resolve_and_build(&self, paths: &[PathBuf], promise: Option<Promise>) -> Result<Dataset> {
        threads(self.index.threads)?;
        let options = self.index.budgeted();
        let (paths, warnings) = paths::resolve_in(&options.storage, paths, self.allow_missing)?;
        let options = match promise {
            Some(promise) => options.may_map(promise),
            None => options,
        };
        let cache = &self.segments;
        let access = |path: &Path, compression: Compression| match (compression.format(), promise) {
            (None, _) if let Some((source, whole)) = options.storage.whole(path) => {
                Access::Whole(source, whole)
            }
            (format, _) if url_of(path).is_some() => {
                let inflate = format.map(|format| (format, Arc::clone(cache)));
                Access::Object(options.storage.clone(), inflate)
            }
            (None, Some(promise)) => Access::Map(promise),
            (None, None) => Access::Read(options.budget()),
            (Some(format), _) => Access::Inflate(format, options.budget(), Arc::clone(cache)),
        };
        if let [pack] = paths.as_slice()
            && paths::is_pack(pack)
        {
            return self.build_from_pack(pack, &options, promise, access);
        }
        self.build_from_list(paths, warnings, &options, promise, access)
    }

    fn build_from_list(
        &self,
        paths: Vec<PathBuf>,
        mut warnings: Vec<Warning>,
        options: &IndexOptions,
        promise: Option<Promise>,
        access: impl Fn(&Path, Compression) -> Access,
    ) -> Result<Dataset> {
        check_budget(paths.len(), promise)?;
        let found = index::open_shards(&paths, options)?;
        let segments = paths.iter().zip(found.indexes.iter().map(Index::longest_segment));
        warnings.extend(index::long_blocks(segments.map(|(path, longest)| (path.clone(), longest))));
        let shards = paths.into_iter().zip(found.indexes);
        let shards = shards.map(|(path, index)| {
            let access = access(&path, index.compression());
            let file = ShardFile::new(path, index.len(), IndexSource::Index(index), access, self.max_record);
            file.unverified(options.unverified)
        });
        let set = ShardSet::new(shards.collect(), self.verify)?;
        warnings.extend(found.warnings);
        Ok(Dataset::new(set, warnings, options.clone()))
    }

    fn build_from_pack(
        &self,
        path: &Path,
        options: &IndexOptions,
        promise: Option<Promise>,
        access: impl Fn(&Path, Compression) -> Access,
    ) -> Result<Dataset> {
        let pack = Pack::open(path, options)?;
        let paths: Vec<PathBuf> = pack.shards().map(|(path, _)| path).collect();
        // If the mode does not read indexes, the pack serves as a list of shards only.
        if !options.reads_indexes() {
            return self.build_from_list(paths, Vec::new(), options, promise, access);
        }
        check_budget(pack.len(), promise)?;
        options.check_index_dir()?;
        let pack = Arc::new(pack);
        let mut warnings: Vec<Warning> = options.untrusted().collect();
        if options.damage == Damage::Skip || options.tail == Tail::Tolerate {
            // The caller learns now of what is left out, so those shards are opened now.
            let work = Work::new(options.progress.as_ref());
            for (slot, (path, _)) in pack.shards().enumerate() {
                if options.damage == Damage::Raise && !pack.header(slot)?.is_torn() {
                    continue;
                }
                let opened = options.storage.open(&path);
                let opened = opened.and_then(|file| pack.index(slot, pack.stream(slot).0, file.source()));
                let reported = opened.and_then(|index| index::report(&path, &index, options, &work));
                warnings.extend(work.end(reported.map_err(|e| e.in_file(&path)))?);
            }
        }
        // Objects that are not listed together are listed one by one when they are opened, and tell of errors
        // then.
        let _ = paths::list_many(&options.storage, &paths, false);
        let segments = pack.shards().enumerate().map(|(slot, (path, _))| (path, pack.longest_segment(slot)));
        warnings.extend(index::long_blocks(segments));
        let shards = pack.shards().enumerate().map(|(slot, (path, len))| {
            let (compression, stream_end) = pack.stream(slot);
            let index = IndexSource::Pack { pack: Arc::clone(&pack), slot, compression, stream_end };
            let access = access(&path, compression);
            ShardFile::new(path, len, index, access, self.max_record)
        });
        let set = ShardSet::new(shards.collect(), self.verify)?;
        Ok(Dataset::new(set, warnings, options.clone()))
    }
}

fn check_budget(shards: usize, promise: Option<Promise>) -> Result<()> {
    let budget = Map::budget();
    if promise.is_some() && shards > budget {
        return Err(ErrorKind::Paths(PathsError::TooManyMaps { shards, budget }).into());
    }
    Ok(())
}
