//! Copies of prepared data sets: the folder of a version that TensorFlow Datasets reads again.

use super::names::{SPLIT, SetNames};
use super::new_folder::{NewFolder, check_plain, create_folder, folder_of};
use super::options::{ReshardOptions, ReshardSet, ShardCount};
use crate::error::{OptionsReason, ToolsError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tfseek::paths::has_extension;
use tfseek::{Compression, Dataset};
use tfseek_tfds::{CopySource, WrittenSplit};

/// Returns the prepared data set that an output is a copy of: if the only path is the folder of one, and the
/// output has not the name of a TFRecord file. Another option would have to be known, and a name without a
/// TFRecord extension is no good name for plain files.
///
/// # Errors
/// [`ToolsError::Tfds`] for a data set that cannot be copied, for example if shards are missing.
pub fn prepared(paths: &[impl AsRef<Path>], out: &Path) -> Result<Option<CopySource>, ToolsError> {
    let [folder] = paths else { return Ok(None) };
    if names_files(out) {
        return Ok(None);
    }
    if !folder.as_ref().is_dir() {
        return Ok(None);
    }
    Ok(CopySource::open(folder.as_ref(), None)?)
}

/// Returns true for the path of TFRecord files, or of a set of a form that only files have.
fn names_files(out: &Path) -> bool {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let (stem, count) = name.rsplit_once('@').unwrap_or((&name, ""));
    let suffix = count.trim_start_matches(|c: char| c.is_ascii_digit() || c == '*');
    out.to_string_lossy().contains(SPLIT)
        || Compression::of_name(&name).0 != Compression::None
        || has_extension(stem)
        || (suffix.starts_with('.') && suffix.len() < count.len())
}

/// A copy of a prepared data set that is being written.
pub(super) struct PreparedCopy<'a> {
    source: &'a CopySource,
    /// The number or the size of the shards of each split. `None`: the numbers of the source.
    shards: Option<ShardCount>,
    folder: NewFolder,
}

impl<'a> PreparedCopy<'a> {
    /// Checks the options, and creates the folder of the files.
    pub(super) fn new(
        source: &'a CopySource,
        options: &ReshardOptions,
    ) -> Result<PreparedCopy<'a>, ToolsError> {
        let refused = |what, reason| Err(ToolsError::Options(OptionsReason::Prepared { what, reason }));
        if options.split.is_some() {
            return refused("split", "which has splits of its own");
        }
        // A rewritten `features.json` would have to be right for three generations of that file.
        if !options.keep.is_empty() || !options.drop.is_empty() {
            return refused("features to keep or to drop", "because its features.json describes all");
        }
        check_plain(options.compression, options.members, options.force)?;
        let (out, shards) = folder_of(&options.out, options.shards)?;
        let folder = NewFolder::create(out, source.metadata())?;
        Ok(PreparedCopy { source, shards, folder })
    }

    /// Returns the number of records up to the end of each split.
    pub(super) fn ends(&self, ds: &Dataset) -> Result<Vec<u64>, ToolsError> {
        Ok(self.source.ends(ds)?)
    }

    /// Returns the number or the size of the shards of a split. A split without shards gets none.
    pub(super) fn shards(&self, split: usize) -> ShardCount {
        let own = self.source.splits().get(split).map_or(0, |split| split.shards.len() as u64);
        match self.shards {
            Some(shards) if own > 0 => shards,
            _ => ShardCount::Count(own),
        }
    }

    /// Returns the names of the files of a split.
    pub(super) fn names(&self, split: usize, count: u64) -> Result<SetNames, ToolsError> {
        let paths = self.source.shard_paths(split, count).ok_or_else(|| {
            let split = self.source.splits().get(split).map_or_else(String::new, |split| split.name.clone());
            ToolsError::Options(OptionsReason::PreparedShards { split, found: count })
        })?;
        Ok(SetNames::listed(self.folder.path(), paths))
    }

    /// Creates the folders of all files.
    pub(super) fn create_folders<'n>(
        &self,
        sets: impl IntoIterator<Item = &'n SetNames>,
    ) -> Result<(), ToolsError> {
        let shards = sets.into_iter().flat_map(SetNames::paths);
        let folders: BTreeSet<PathBuf> = shards.filter_map(|path| Some(path.parent()?.into())).collect();
        folders.iter().try_for_each(|folder| create_folder(folder))
    }

    /// Copies the other files, writes `dataset_info.json` with the lengths of each split's shards, and gives
    /// the folder its name. The paths of the sets become those in it.
    pub(super) fn publish(&self, sets: &mut [ReshardSet]) -> Result<(), ToolsError> {
        let info_text = |splits: &[WrittenSplit]| {
            let all: Vec<_> = splits.iter().cloned().map(Some).collect();
            self.source.info_text(&all)
        };
        self.folder.publish(self.source.metadata(), sets, info_text)
    }
}
