//! Fetches of data sets of TensorFlow Datasets: their splits and other files, and the description of what was
//! fetched.

use super::journal::Earlier;
use super::wanted::{NotedStore, WantedFile, WantedPart, check_name, no_object};
use crate::error::ToolsError;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::Filter;
use tfseek::frame::OVERHEAD;
use tfseek::io::Store;
use tfseek::paths::has_extension;
use tfseek_tfds::{CopySource, DatasetInfo, Features, SetMetadata, WrittenSplit};

/// Maximum size of a description in bytes.
const MAX_INFO: u64 = 8 << 20;

/// A data set in a store.
#[derive(Debug)]
pub(super) struct DataSet {
    source: CopySource,
    /// The splits of the files: for each split its number, and the numbers of its shards among the files.
    splits: BTreeMap<usize, Vec<usize>>,
    /// True if all records of all splits are wanted.
    is_whole: bool,
    /// True if shards are left out, so that the others get other names.
    pub(super) is_new_set: bool,
    /// The description as it is in the store, if all is wanted.
    info: Vec<u8>,
}

impl DataSet {
    /// Finds the data set at a URL, and adds its files: the other files first, then the shards of the wanted
    /// records, and the description last. `None` if there is none, and no split is wanted.
    pub(super) fn find(
        store: &Arc<NotedStore>,
        url: &str,
        split: Option<&str>,
        has_condition: bool,
    ) -> Result<Option<(DataSet, Vec<WantedFile>)>, ToolsError> {
        let listed: Arc<dyn Store> = store.clone();
        let Some(source) = open(&listed, url, split)? else { return Ok(None) };
        let folder = source.metadata().folder().to_string_lossy().into_owned();
        let wanted = wanted_ranges(&source, split)?;
        let mut files = Vec::new();
        for (path, _) in source.metadata().other_files()? {
            files.push(file(store, &folder, &path, WantedPart::File, None)?);
        }
        let mut splits = BTreeMap::<usize, Vec<usize>>::new();
        let mut is_whole = !has_condition;
        for (k, found) in source.splits().iter().enumerate() {
            let Some(ranges) = wanted.get(&k) else {
                is_whole = false;
                continue;
            };
            let shards = splits.entry(k).or_default();
            let mut start = 0u64;
            for (shard, path) in found.shards.iter().enumerate() {
                let records = found.shard_lengths.as_ref().and_then(|all| all.get(shard)).copied();
                // A split has fewer than 2^64 records.
                let end = start + records.unwrap_or(0);
                let (part, is_all) = match (ranges, records) {
                    (Some(ranges), Some(records)) => part_of(ranges, start, records),
                    _ => (Some(WantedPart::Shard), true),
                };
                is_whole &= is_all;
                start = end;
                let Some(part) = part else { continue };
                let part = match part {
                    WantedPart::Shard if has_condition => WantedPart::Records(None),
                    part => part,
                };
                let relative = path.strip_prefix(&folder).unwrap_or(path).to_path_buf();
                shards.push(files.len());
                files.push(file(store, &folder, &relative, part, records)?);
            }
        }
        let description = Path::new(DatasetInfo::FILE_NAME);
        files.push(file(store, &folder, description, WantedPart::Description, None)?);
        // A split without some of its shards has other numbers in the names of the others.
        let has_fewer = |(k, shards): (&usize, &Vec<usize>)| {
            source.splits().get(*k).is_some_and(|split| shards.len() < split.shards.len())
        };
        let is_new_set = files.iter().any(|file| matches!(file.part, WantedPart::Records(_)))
            || splits.iter().any(has_fewer);
        let mut info = Vec::new();
        if is_whole {
            let url = format!("{folder}/{}", DatasetInfo::FILE_NAME);
            info = listed.small(&url, MAX_INFO)?.map_or_else(Vec::new, |(bytes, _)| bytes.to_vec());
        }
        Ok(Some((DataSet { source, splits, is_whole, is_new_set, info }, files)))
    }

    /// Returns a condition that knows the names of the classes.
    pub(super) fn filter(&self, store: &Arc<NotedStore>, filter: &Filter) -> Result<Filter, ToolsError> {
        let store: Arc<dyn Store> = store.clone();
        let (features, _) = Features::read(self.source.metadata().folder(), Some(&store))?;
        Ok(features.filter(filter)?)
    }

    /// Returns true for a shard that is not left out.
    fn keeps(&self, files: &[Earlier], k: usize) -> bool {
        !self.is_new_set || selected(files, k) > 0
    }

    /// Returns the names of the shards of each split that have selected records, by their numbers among the
    /// files.
    pub(super) fn names(&self, files: &[Earlier]) -> Vec<(usize, PathBuf)> {
        let mut names = Vec::new();
        for (split, shards) in &self.splits {
            let kept: Vec<usize> = shards.iter().copied().filter(|k| self.keeps(files, *k)).collect();
            let paths = self.source.shard_paths(*split, kept.len() as u64).unwrap_or_default();
            names.extend(kept.into_iter().zip(paths));
        }
        names
    }

    /// Returns the text of the description of what was fetched.
    pub(super) fn info_text(&self, files: &[Earlier]) -> Vec<u8> {
        if self.is_whole {
            return self.info.clone();
        }
        let mut written: Vec<Option<WrittenSplit>> = Vec::new();
        for (k, split) in self.source.splits().iter().enumerate() {
            let shards = self.splits.get(&k).map(|shards| {
                let mut shard_lengths = Vec::new();
                let mut num_bytes = 0u64;
                for k in shards.iter().filter(|k| self.keeps(files, **k)) {
                    let bytes = files.get(*k).and_then(|file| file.done).map_or(0, |done| done.bytes);
                    let records = selected(files, *k);
                    shard_lengths.push(records);
                    let payloads = bytes.saturating_sub(records.saturating_mul(OVERHEAD as u64));
                    num_bytes = num_bytes.saturating_add(payloads);
                }
                WrittenSplit { name: split.name.clone(), shard_lengths, num_bytes }
            });
            written.push(shards);
        }
        self.source.info_text(&written).into_bytes()
    }
}

/// Opens the data set at a URL. `None` for a URL of files, unless a split is wanted.
fn open(store: &Arc<dyn Store>, url: &str, split: Option<&str>) -> Result<Option<CopySource>, ToolsError> {
    let url = url.trim_end_matches('/');
    let name = url.rsplit('/').next().unwrap_or(url);
    if split.is_none() && (has_extension(name) || url.contains(['*', '?', '[', '{', '@'])) {
        return Ok(None);
    }
    let found = CopySource::open(Path::new(url), Some(store))?;
    if found.is_some() || split.is_none() {
        return Ok(found);
    }
    let found = SetMetadata::find(Path::new(url), Some(store))?;
    Ok(CopySource::open(found.folder(), Some(store))?)
}

fn selected(files: &[Earlier], k: usize) -> u64 {
    files.get(k).and_then(|file| file.done).map_or(0, |done| done.selected)
}

/// The wanted records of a split. `None` for all of them.
type SplitRecords = Option<Vec<Range<u64>>>;

/// Returns the wanted records of each split.
fn wanted_ranges(
    source: &CopySource,
    split: Option<&str>,
) -> Result<BTreeMap<usize, SplitRecords>, ToolsError> {
    let Some(spec) = split else {
        return Ok((0..source.splits().len()).map(|k| (k, None)).collect());
    };
    // A plain name needs no numbers of records.
    if let Some(k) = source.splits().iter().position(|split| split.name == spec) {
        return Ok(BTreeMap::from([(k, None)]));
    }
    let mut wanted = BTreeMap::<usize, Vec<Range<u64>>>::new();
    for (split, records) in source.select(spec)? {
        let ranges = wanted.entry(split).or_default();
        ranges.extend((!records.is_empty()).then_some(records));
    }
    // A record that is selected twice is there once.
    let merged = |mut ranges: Vec<Range<u64>>| {
        ranges.sort_by_key(|range| range.start);
        let mut merged = Vec::<Range<u64>>::new();
        for range in ranges {
            match merged.last_mut().filter(|last| range.start <= last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => merged.push(range),
            }
        }
        merged
    };
    Ok(wanted.into_iter().map(|(split, ranges)| (split, Some(merged(ranges)))).collect())
}

/// Returns the wanted part of a shard that begins at record `start` of its split, and whether it is all of
/// it. `None` if nothing is wanted.
fn part_of(ranges: &[Range<u64>], start: u64, records: u64) -> (Option<WantedPart>, bool) {
    let end = start + records;
    let local = ranges.iter().filter(|range| range.start < end && range.end > start);
    let local: Vec<Range<u64>> =
        local.map(|range| range.start.max(start) - start..range.end.min(end) - start).collect();
    match local.as_slice() {
        _ if records == 0 => (None, true),
        [] => (None, false),
        [all] if *all == (0..records) => (Some(WantedPart::Shard), true),
        _ => (Some(WantedPart::Records(Some(local))), false),
    }
}

/// Returns a file of the data set, as it was listed.
fn file(
    store: &NotedStore,
    folder: &str,
    relative: &Path,
    part: WantedPart,
    records: Option<u64>,
) -> Result<WantedFile, ToolsError> {
    let names: Vec<_> = relative.iter().map(|name| name.to_string_lossy()).collect();
    let name = names.join("/");
    let url = format!("{folder}/{name}");
    check_name(&url, &name)?;
    let object = store.noted(&url).ok_or_else(|| no_object(&url))?;
    Ok(WantedFile { name, object, part, records })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "ranges are what is tested")]

    use super::*;

    #[test]
    fn parts_of_shards() {
        let part = |ranges: &[Range<u64>]| part_of(ranges, 10, 5);
        assert_eq!(part(&[0..10, 15..20]), (None, false));
        assert_eq!(part(&[0..30]), (Some(WantedPart::Shard), true));
        assert_eq!(part(&[0..12, 14..20]), (Some(WantedPart::Records(Some(vec![0..2, 4..5]))), false));
        assert_eq!(part_of(&[0..9], 3, 0), (None, true));
    }
}
