//! Record counts and names of shards, compared with the `dataset_info.json` of their folder.
//!
//! The file lies in the folder of the shards, or in the folder above it if the template of its names contains
//! folders.

use crate::error::Result;
use crate::info::{DatasetInfo, SplitInfo};
use crate::set_folder::{SetFolder, is_denied, with_store};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::io::Store;

/// Maximum number of missing shards that a message names.
const MAX_NAMED: usize = 4;

/// Compares shards with the `dataset_info.json` of their folders, each of which is read once.
#[derive(Debug, Default)]
pub struct SplitCheck {
    /// The files that were read, with the shards compared so far.
    pub infos: Vec<CheckedInfo>,
    /// Warnings about files that are not used, each once.
    pub warnings: Vec<String>,
    folders: HashMap<PathBuf, Option<usize>>,
    store: Option<Arc<dyn Store>>,
}

/// A [`DatasetInfo`], and the shards that were compared with it.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckedInfo {
    folder: SetFolder,
    /// The content of the file.
    pub info: DatasetInfo,
    /// The shards of each split.
    pub splits: Vec<CheckedSplit>,
    /// Number of files that belong to no split.
    pub other_files: u64,
    /// Number of files that differ.
    pub differences: u64,
}

/// The shards of a split that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckedSplit {
    /// Records of the shards. `None` if the records of one could not be counted.
    pub records: Option<u64>,
    /// Number of shards that were found.
    pub shards: u64,
    /// True for each shard that was found.
    seen: Vec<bool>,
}

/// The split of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileSplit {
    /// Name of the dataset, with its version.
    pub dataset: String,
    /// Name of the split.
    pub split: String,
    /// Number of the shard in the split, from 0. `None` if the file is not one of the split's shards.
    pub shard: Option<u64>,
    /// Number of shards of the split.
    pub shards: Option<u64>,
    /// Number of records that the shard should have.
    pub records: Option<u64>,
    /// How the file differs from the `dataset_info.json`.
    pub difference: Option<String>,
}

impl SplitCheck {
    /// Creates a comparison of files, and of objects in `store`.
    pub fn new(store: Option<Arc<dyn Store>>) -> SplitCheck {
        SplitCheck { store, ..SplitCheck::default() }
    }

    /// Adds a file with its number of records, if they could be counted. Returns the split that the file
    /// belongs to by its name.
    pub fn add(&mut self, path: &Path, records: Option<u64>) -> Option<FileSplit> {
        let folder = path.parent()?;
        let above = folder.parent().filter(|above| *above != folder);
        let k = self.load(folder).or_else(|| {
            // In the folder above, only a template with folders names files in this one.
            let k = self.load(above?)?;
            self.infos.get(k)?.info.splits.iter().any(|split| split.template.has_folders()).then_some(k)
        })?;
        self.infos.get_mut(k)?.add(path, records)
    }

    /// Reads the file of a folder that is opened as a whole. Its shards are then expected to be complete.
    pub fn add_folder(&mut self, folder: &Path) {
        self.load(folder);
    }

    /// Returns the shards that are missing in a folder, one message for each split that lacks some. Files
    /// that exist are not missing.
    pub fn missing(&self, folder: &Path) -> Vec<String> {
        let known = self.folders.get(folder).copied().flatten();
        known.and_then(|k| self.infos.get(k)).map_or(Vec::new(), CheckedInfo::missing)
    }

    /// Returns the number of the folder's file in `found`, if it has one that is used.
    fn load(&mut self, folder: &Path) -> Option<usize> {
        if let Some(&known) = self.folders.get(folder) {
            return known;
        }
        let found = SetFolder::new(folder, &with_store(self.store.as_ref()))
            .and_then(|folder| Ok(DatasetInfo::read(&folder)?.map(|info| (folder, info))));
        let path = folder.join(DatasetInfo::FILE_NAME);
        let path = path.display();
        let loaded = match found {
            Ok(Some((folder, info))) if info.is_tfrecord() => {
                self.infos.push(CheckedInfo::new(folder, info));
                Some(self.infos.len() - 1)
            }
            Ok(Some((_, info))) => {
                let format = info.file_format.escape_debug();
                self.warnings.push(format!(
                    "{path}: records are not compared: the dataset's files are {format}, not tfrecord"
                ));
                None
            }
            Ok(None) => None,
            Err(e) if is_denied(&e) => None,
            Err(e) => {
                let text = e.to_string();
                let begin = format!("{path}: ");
                let text = text.strip_prefix(&begin).unwrap_or(&text);
                self.warnings.push(format!("{begin}records are not compared: {text}"));
                None
            }
        };
        self.folders.insert(folder.to_path_buf(), loaded);
        loaded
    }
}

impl CheckedInfo {
    fn new(folder: SetFolder, info: DatasetInfo) -> CheckedInfo {
        let split = |split: &SplitInfo| CheckedSplit {
            records: Some(0),
            shards: 0,
            seen: vec![false; split.shard_lengths.as_ref().map_or(0, Vec::len)],
        };
        let splits = info.splits.iter().map(split).collect();
        CheckedInfo { folder, info, splits, other_files: 0, differences: 0 }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> PathBuf {
        self.folder.join(DatasetInfo::FILE_NAME)
    }

    fn add(&mut self, path: &Path, records: Option<u64>) -> Option<FileSplit> {
        let info_path = self.path();
        let name = path.strip_prefix(self.folder.path()).ok().and_then(Path::to_str);
        let matching = |name: &str| {
            let mut all = self.info.splits.iter().enumerate();
            let first = all.find_map(|(k, split)| Some((k, split.template.shard(name)?)))?;
            // Splits whose shards have the same names cannot be compared.
            all.all(|(_, split)| split.template.shard(name).is_none()).then_some(first)
        };
        let place = name.and_then(matching);
        let Some((name, (k, shard))) = name.zip(place) else {
            self.other_files += 1;
            return None;
        };
        let split = self.info.splits.get(k)?;
        let checked = self.splits.get_mut(k)?;
        let split_name = split.name.escape_debug();
        let shards = split.shards();
        let is_one = shards.is_none_or(|n| shard < n && split.shard_path(shard, n) == Path::new(name));
        let expected =
            usize::try_from(shard).ok().filter(|_| is_one).and_then(|i| split.shard_lengths.as_ref()?.get(i));
        let difference = match (shards, expected, records) {
            (Some(n), _, _) if !is_one => {
                let n = if n == 1 { "1 shard".to_owned() } else { format!("{n} shards") };
                Some(format!("expected a shard of split {split_name}, which has {n}, found another name"))
            }
            (_, Some(&expected), Some(records)) if records != expected => {
                Some(wrong_count(expected, records, shard, &split.name))
            }
            _ => None,
        };
        if is_one {
            checked.shards += 1;
            checked.records = checked.records.zip(records).and_then(|(sum, n)| sum.checked_add(n));
            if let Some(seen) = usize::try_from(shard).ok().and_then(|i| checked.seen.get_mut(i)) {
                *seen = true;
            }
        }
        self.differences += u64::from(difference.is_some());
        Some(FileSplit {
            dataset: self.info.title(),
            split: split.name.clone(),
            shard: is_one.then_some(shard),
            shards,
            records: expected.copied(),
            difference: difference
                .map(|text| format!("{}: {text}, by {}", path.display(), info_path.display())),
        })
    }

    fn missing(&self) -> Vec<String> {
        let mut messages = Vec::new();
        for (split, checked) in self.info.splits.iter().zip(&self.splits) {
            let n = checked.seen.len() as u64;
            let unseen = (0..n).zip(&checked.seen).filter(|(_, seen)| !**seen);
            // A file without a TFRecord extension is not opened with its folder.
            let missing = missing_shards(&self.folder, split, unseen.map(|(shard, _)| shard), n);
            match missing {
                Ok(missing) => {
                    messages.extend(missing.map(|text| format!("{}: {text}", self.path().display())));
                }
                Err(e) => messages.push(e.to_string()),
            }
        }
        messages
    }
}

/// Returns the message of a shard with another number of records.
pub(crate) fn wrong_count(expected: u64, found: u64, shard: u64, split: &str) -> String {
    let split = split.escape_debug();
    format!("expected {expected} records, found {found} (shard {shard} of split {split})")
}

/// Number of missing shards after which no more are looked for: a small file can state the lengths of a
/// million.
const MAX_MISSING: u64 = 1000;

/// Returns a message with the missing ones of the given shards of a split. `n` is the number of all shards.
pub(crate) fn missing_shards(
    folder: &SetFolder,
    split: &SplitInfo,
    shards: impl Iterator<Item = u64>,
    n: u64,
) -> Result<Option<String>> {
    let mut missing = 0u64;
    let mut names = Vec::new();
    for shard in shards.map(|shard| split.shard_path(shard, n)) {
        if folder.find(&shard)?.is_some() {
            continue;
        }
        let path = folder.join(shard);
        missing += 1;
        if names.len() < MAX_NAMED {
            // The template may contain any characters.
            names.push(path.display().to_string().escape_debug().to_string());
        }
        if missing == MAX_MISSING {
            break;
        }
    }
    let more = if missing > names.len() as u64 { ", .." } else { "" };
    let names = names.join(", ");
    let name = split.name.escape_debug();
    let are = if missing == 1 { "is" } else { "are" };
    let least = if missing == MAX_MISSING && n > missing { "at least " } else { "" };
    Ok((missing > 0)
        .then(|| format!("{least}{missing} of {n} shards of split {name} {are} missing: {names}{more}")))
}
