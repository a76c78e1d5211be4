//! Requested features that no record has. They are distinguished from features that occur without a value.

use super::feature::FeatureColumn;
use crate::dataset::{Dataset, ShardEntry};
use crate::error::{Error, ErrorKind, Result};
use crate::filter::{Filter, FirstNames, list_key};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Number of records whose keys are read, per shard and per dataset.
const RECORDS_PER_SHARD: u64 = 16;
const RECORDS_PER_DATASET: u64 = 4096;
/// Limit of the bytes of these records. A record that exceeds the rest of it is left out.
const MAX_BYTES: u64 = 64 << 20;

/// The requested features that are known to occur. Scans of several shards update it concurrently.
pub(super) struct KnownFeatures(Vec<AtomicBool>);

impl KnownFeatures {
    /// Returns the state of `features` features. If `all` is true, all of them are known; otherwise none is.
    pub(super) fn new(features: usize, all: bool) -> KnownFeatures {
        KnownFeatures((0..features).map(|_| AtomicBool::new(all)).collect())
    }

    /// Returns true if all features are known. Then their columns can be saved.
    pub(super) fn all(&self) -> bool {
        self.0.iter().all(|known| known.load(Relaxed))
    }

    /// Marks the features with values as known. `columns` has a shard's column of each feature.
    pub(super) fn note(&self, columns: &[FeatureColumn]) {
        for (known, column) in self.0.iter().zip(columns) {
            if !known.load(Relaxed) && column.loaded().is_some_and(|data| data.count() > 0) {
                known.store(true, Relaxed);
            }
        }
    }

    /// Marks the features whose keys occur in the first records of the first nonempty shard as known. Most
    /// scans can then save their columns immediately.
    pub(super) fn note_first(&self, dataset: &Dataset, features: &[&str]) {
        // A record that cannot be read is an error of the later scan.
        let mut names = FirstNames::default();
        let mut records = RECORDS_PER_SHARD;
        let mut bytes = MAX_BYTES;
        let first = dataset.shards().find(|shard| shard.len > 0);
        if first.is_some_and(|shard| read_shard(dataset, shard, &mut names, &mut records, &mut bytes).is_ok())
        {
            self.note_names(features, &names);
        }
    }

    fn note_names(&self, features: &[&str], names: &FirstNames) {
        for (known, feature) in self.0.iter().zip(features) {
            known.fetch_or(names.has(feature), Relaxed);
        }
    }

    /// Refuses the first feature that has no value and whose key does not occur in the first records. The
    /// error names the nearest key.
    pub(super) fn check(&self, dataset: &Dataset, features: &[&str]) -> Result<()> {
        if self.all() || dataset.is_empty() {
            return Ok(());
        }
        let names = read_names(dataset)?;
        self.note_names(features, &names);
        match self.0.iter().zip(features).find(|(known, _)| !known.load(Relaxed)) {
            Some((_, feature)) => Err(refuse(&names, feature)),
            None => Ok(()),
        }
    }
}

impl Dataset {
    /// Checks the names in a condition against the features of the first records of each shard, before other
    /// processes evaluate it on parts. Returns the names that none of these records has, as `steps(NAME)` of a
    /// feature list.
    ///
    /// [`select`](Dataset::select) needs no check: it reads all records, and refuses a name that occurs
    /// nowhere.
    ///
    /// # Errors
    /// [`ErrorKind::Filter`] for a name that none of these records has, if one of their features has a
    /// similar name or if it is the name of a feature list. I/O errors.
    pub fn check_names<'f>(&self, filter: &'f Filter) -> Result<Vec<&'f str>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let names = read_names(self)?;
        let features = filter.features().into_iter().filter(|name| !names.has(name));
        let lists = filter.lists().filter(|name| !names.has_list(list_key(name)));
        filter.check_names(features.clone(), lists.clone(), &names)?;
        Ok(features.chain(lists).collect())
    }
}

/// Reads the names of the first records of each shard.
pub(super) fn read_names(dataset: &Dataset) -> Result<FirstNames> {
    let mut names = FirstNames::default();
    let mut records = RECORDS_PER_DATASET;
    let mut bytes = MAX_BYTES;
    for shard in dataset.shards() {
        read_shard(dataset, shard, &mut names, &mut records, &mut bytes)?;
    }
    Ok(names)
}

fn read_shard(
    dataset: &Dataset,
    shard: ShardEntry<'_>,
    names: &mut FirstNames,
    records: &mut u64,
    bytes: &mut u64,
) -> Result<()> {
    let mut buffer = Vec::new();
    for i in shard.start..shard.start + shard.len.min(RECORDS_PER_SHARD).min(*records) {
        *records -= 1;
        let size = dataset.set().locate(i)?.payload_len();
        let Some(left) = bytes.checked_sub(size) else { continue };
        *bytes = left;
        // A damaged record is an error of the scan. It does not matter for a column that was built before.
        match dataset.read(i, &mut buffer) {
            Err(e) if !e.is_data() => return Err(e),
            Err(_) => {}
            Ok(record) => names.add(record.payload()),
        }
    }
    Ok(())
}

fn refuse(names: &FirstNames, feature: &str) -> Error {
    let list = names.has_list(feature);
    let near = names.nearest(feature).filter(|_| !list);
    let nearest = near.map(|(near, _)| near.into());
    let e = Error::from(ErrorKind::UnknownFeature { nearest, list, keys: names.some() });
    let e = e.feature(feature.as_bytes());
    match near {
        _ if list => e.hint("a condition tests its steps with `any(steps(..))`"),
        Some((_, true)) => e.hint("a condition tests its values with `any(..)`"),
        _ => e,
    }
}
