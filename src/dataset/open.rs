//! Opening: from paths, or bytes, to a [`Dataset`] or a [`Mapped`]. All constructors of these types stand here.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use super::dataset::Dataset;
use super::mapped::Mapped;
use super::options::DatasetOptions;
use super::shard::{Access, IndexSource, ShardFile};
use super::shards::ShardSet;
use crate::error::{ErrorKind, PathsError, Result};
use crate::index::{self, IndexOptions, Pack, Work};
use crate::io::{Map, Promise, Region, threads};
use crate::paths::{self, IntoPaths};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Dataset {
    /// Opens shards for positional reads: a path, a pattern, or a list of them (`docs/paths.md` has the forms). Finds
    /// their indexes, and builds what is missing. [`DatasetOptions`] has the options.
    ///
    /// # Errors
    /// [`ErrorKind::Paths`] where nothing or not all of a set is found, [`ErrorKind::Compressed`], the place of the
    /// first damage in a shard that had to be scanned, [`ErrorKind::Cancelled`] where the callback of
    /// [`DatasetOptions::progress`] ends the call, and I/O errors.
    pub fn open(paths: impl IntoPaths) -> Result<Dataset> {
        DatasetOptions::new().open(paths)
    }
}

impl Mapped {
    /// Opens shards through maps.
    ///
    /// # Errors
    /// Those of [`Dataset::open`]; [`PathsError::TooManyMaps`] above the number of maps that a process may hold.
    ///
    /// # Safety
    /// Nobody writes to or truncates the shards, or the index and column files that belong to them, while this dataset lives, a
    /// clone of it, or what was taken from it and keeps its memory: an [`Index`](crate::Index), a [`Region`], a column, a batch.
    /// Replacing a file by rename is fine: the maps keep the old one.
    ///
    /// A truncated file makes the next access to its missing pages a SIGBUS, and bytes that change under a `&[u8]` are undefined
    /// behaviour. What tfseek writes itself goes through a rename.
    #[allow(unsafe_code)]
    pub unsafe fn open(paths: impl IntoPaths) -> Result<Mapped> {
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { DatasetOptions::new().open_mapped(paths) }
    }

    /// Opens one shard that is in memory; scanned at once, and never written to disk.
    ///
    /// # Errors
    /// The place of the first damage.
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Mapped> {
        DatasetOptions::new().open_regions([Region::new(bytes)])
    }
}

impl DatasetOptions {
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
        // SAFETY: a promise asks that the files mapped with it stay as they are for as long as the maps live. This one goes to
        // the shards and, in the options, to the index and column files of the new dataset, and nowhere else: it is private to
        // the crate, and the caller's options, which may open other datasets, are left without it. The maps live in the dataset
        // and in what is taken from it, and for all of those the caller has promised just that.
        let promise = unsafe { Promise::new() };
        Ok(Mapped::new(self.build(paths, Some(promise))?))
    }

    /// Opens shards that are in memory, in this order. They are scanned at once, and nothing is written to disk.
    ///
    /// # Errors
    /// The place of the first damage; its path is `<memory 0>` for the first region.
    pub fn open_regions(&self, regions: impl IntoIterator<Item = Region>) -> Result<Mapped> {
        let work = Work::new(self.index.progress.as_ref());
        let mut shards = Vec::new();
        for (k, region) in regions.into_iter().enumerate() {
            let path = PathBuf::from(format!("<memory {k}>"));
            let index = index::index_bytes(&region, &self.index, &work);
            let index = work.end(index.map_err(|e| e.in_file(&path)))?;
            let (len, access) = (index.len(), Access::Memory(region));
            shards.push(ShardFile::new(path, len, IndexSource::Index(index), access, self.max_record));
        }
        let set = ShardSet::new(shards, self.verify)?;
        Ok(Mapped::new(Dataset::new(set, Vec::new(), self.index.clone())))
    }

    fn build(&self, paths: impl IntoPaths, promise: Option<Promise>) -> Result<Dataset> {
        threads(self.index.jobs)?;
        let paths = paths::resolve(paths, self.allow_missing)?;
        let options = self.index.budgeted();
        let options = match promise {
            Some(promise) => options.may_map(promise),
            None => options,
        };
        let access = || match promise {
            Some(promise) => Access::Map(promise),
            None => Access::Read(options.budget()),
        };
        if let [pack] = paths.as_slice()
            && paths::is_pack(pack)
        {
            return self.build_from_pack(pack, &options, promise, access);
        }
        self.build_from_list(paths, &options, promise, access)
    }

    fn build_from_list(
        &self,
        paths: Vec<PathBuf>,
        options: &IndexOptions,
        promise: Option<Promise>,
        access: impl Fn() -> Access,
    ) -> Result<Dataset> {
        check_budget(paths.len(), promise)?;
        let found = index::open_shards(&paths, options)?;
        let shards = paths.into_iter().zip(found.indexes);
        let shards = shards.map(|(path, index)| {
            ShardFile::new(path, index.len(), IndexSource::Index(index), access(), self.max_record)
        });
        let set = ShardSet::new(shards.collect(), self.verify)?;
        Ok(Dataset::new(set, found.warnings, options.clone()))
    }

    fn build_from_pack(
        &self,
        path: &Path,
        options: &IndexOptions,
        promise: Option<Promise>,
        access: impl Fn() -> Access,
    ) -> Result<Dataset> {
        let pack = Pack::open(path, options)?;
        // An index that is not to be believed is not to be believed in a pack either: then it is a list of shards.
        if !options.reads_indexes() {
            return self.build_from_list(
                pack.shards().map(|(path, _)| path).collect(),
                options,
                promise,
                access,
            );
        }
        check_budget(pack.len(), promise)?;
        let pack = Arc::new(pack);
        let shards = pack.shards().enumerate().map(|(slot, (path, len))| {
            let index = IndexSource::Pack { pack: Arc::clone(&pack), slot };
            ShardFile::new(path, len, index, access(), self.max_record)
        });
        let set = ShardSet::new(shards.collect(), self.verify)?;
        Ok(Dataset::new(set, Vec::new(), options.clone()))
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
