//! Requested features that no record has. They are distinguished from features that occur without a value.

use super::feature::FeatureColumn;
use crate::dataset::{Dataset, ShardEntry};
use crate::error::{Error, ErrorKind, Result};
use crate::example::SequenceExample;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Number of records whose keys are read, per shard and per dataset.
const RECORDS_PER_SHARD: u64 = 16;
const RECORDS_PER_DATASET: u64 = 4096;
/// Limit of the bytes of these records. A record that exceeds the rest of it is left out.
const MAX_BYTES: u64 = 64 << 20;
/// Largest number of keys that are collected. In a dataset with more keys, the error has fewer names to choose from.
const MAX_KEYS: usize = 4096;
/// Largest number of keys that an error lists.
const MAX_LISTED: usize = 8;

/// The requested features that are known to occur. Scans of several shards update it concurrently.
pub(super) struct KnownFeatures(Vec<AtomicBool>);

/// The keys of the first records.
#[derive(Default)]
struct FirstKeys {
    features: BTreeSet<Box<str>>,
    lists: BTreeSet<Box<str>>,
}

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

    /// Marks the features whose keys occur in the first records of the first nonempty shard as known. Most scans can then save their
    /// columns immediately.
    pub(super) fn note_first(&self, dataset: &Dataset, features: &[&str]) {
        // A record that cannot be read is an error of the later scan.
        let mut keys = FirstKeys::default();
        let (mut records, mut bytes) = (RECORDS_PER_SHARD, MAX_BYTES);
        let first = dataset.shards().find(|shard| shard.len > 0);
        if first.is_some_and(|shard| keys.read_shard(dataset, shard, &mut records, &mut bytes).is_ok()) {
            self.note_keys(features, &keys);
        }
    }

    fn note_keys(&self, features: &[&str], keys: &FirstKeys) {
        for (known, feature) in self.0.iter().zip(features) {
            known.fetch_or(keys.features.contains(*feature), Relaxed);
        }
    }

    /// Refuses the first feature that has no value and whose key does not occur in the first records. The error names the nearest key.
    pub(super) fn check(&self, dataset: &Dataset, features: &[&str]) -> Result<()> {
        if self.all() || dataset.is_empty() {
            return Ok(());
        }
        let keys = FirstKeys::read(dataset)?;
        self.note_keys(features, &keys);
        match self.0.iter().zip(features).find(|(known, _)| !known.load(Relaxed)) {
            Some((_, feature)) => Err(keys.refuse(feature)),
            None => Ok(()),
        }
    }
}

impl FirstKeys {
    /// Reads the keys of the first records of each shard.
    fn read(dataset: &Dataset) -> Result<FirstKeys> {
        let mut keys = FirstKeys::default();
        let (mut records, mut bytes) = (RECORDS_PER_DATASET, MAX_BYTES);
        for shard in dataset.shards() {
            keys.read_shard(dataset, shard, &mut records, &mut bytes)?;
        }
        Ok(keys)
    }

    fn read_shard(
        &mut self,
        dataset: &Dataset,
        shard: ShardEntry<'_>,
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
            let record = match dataset.read(i, &mut buffer) {
                Err(e) if !e.is_data() => return Err(e),
                Err(_) => continue,
                Ok(record) => SequenceExample::new(record.payload()),
            };
            for (key, _) in record.context().entries().map_while(Result::ok) {
                collect(&mut self.features, key);
            }
            for (key, _) in record.feature_lists().map_while(Result::ok) {
                collect(&mut self.lists, key);
            }
        }
        Ok(())
    }

    fn refuse(&self, feature: &str) -> Error {
        let list = self.lists.contains(feature);
        let nearest = if list { None } else { nearest(feature, &self.features) };
        let keys = self.features.iter().take(MAX_LISTED).cloned().collect();
        Error::from(ErrorKind::UnknownFeature { nearest, list, keys }).feature(feature.as_bytes())
    }
}

fn collect(keys: &mut BTreeSet<Box<str>>, key: &str) {
    if keys.len() < MAX_KEYS && !keys.contains(key) {
        keys.insert(key.into());
    }
}

/// Returns the nearest key: one that differs only in case, has the same last part (`image/class/label` for `label`), or is a few
/// edits away.
fn nearest(feature: &str, keys: &BTreeSet<Box<str>>) -> Option<Box<str>> {
    let requested = feature.to_lowercase();
    let last = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
    let rank = |key: &str| {
        let key = key.to_lowercase();
        if key == requested {
            return Some((0, 0));
        }
        if last(&key) == last(&requested) {
            return Some((1, key.chars().count()));
        }
        let edits = strsim::osa_distance(&key, &requested);
        (edits <= (requested.chars().count() / 3).max(1)).then_some((2, edits))
    };
    let ranked = keys.iter().filter_map(|key| Some((rank(key)?, key)));
    ranked.min().map(|(_, key)| key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_key() {
        let keys = ["image/class/label", "image/class/text", "image/encoded", "Label", "tokens", "id"];
        let keys: BTreeSet<Box<str>> = keys.into_iter().map(Box::from).collect();
        for (feature, want) in [
            ("label", Some("Label")),
            ("text", Some("image/class/text")),
            ("image/tokens", Some("tokens")),
            ("imgae/encoded", Some("image/encoded")),
            ("IMAGE/ENCODED", Some("image/encoded")),
            ("token", Some("tokens")),
            ("ids", Some("id")),
            ("nope", None),
            ("", None),
        ] {
            assert_eq!(nearest(feature, &keys).as_deref(), want, "{feature}");
        }
        assert_eq!(nearest("label", &BTreeSet::new()), None);
    }
}
