//! Wanted features that no record has: told from features that are there and have no values.

use super::feature::FeatureColumn;
use crate::dataset::{Dataset, ShardEntry};
use crate::error::{Error, ErrorKind, Result};
use crate::example::SequenceExample;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Records whose keys are looked at: of each shard, and over all shards.
const OF_SHARD: u64 = 16;
const OF_ALL: u64 = 4096;
/// Bytes of these records. Larger ones are left out.
const BYTES: u64 = 64 << 20;
/// FirstKeys that are remembered: a dataset with more of them has an error with fewer names to choose from.
const KEYS: usize = 4096;
/// FirstKeys that an error lists.
const LISTED: usize = 8;

/// The features of a scan that are known to exist, while shards are scanned in any order.
pub(super) struct KnownFeatures(Vec<AtomicBool>);

/// FirstKeys of the first records.
#[derive(Default)]
struct FirstKeys {
    features: BTreeSet<Box<str>>,
    lists: BTreeSet<Box<str>>,
}

impl KnownFeatures {
    /// Nothing is known of these features, unless all of them count as known.
    pub(super) fn new(features: usize, all: bool) -> KnownFeatures {
        KnownFeatures((0..features).map(|_| AtomicBool::new(all)).collect())
    }

    /// Returns true if all features are known, so that their columns can be saved.
    pub(super) fn all(&self) -> bool {
        self.0.iter().all(|known| known.load(Relaxed))
    }

    /// Notes which of a shard's columns, one for each feature, have values.
    pub(super) fn note(&self, columns: &[FeatureColumn]) {
        for (known, column) in self.0.iter().zip(columns) {
            if !known.load(Relaxed) && column.loaded().is_some_and(|data| data.count() > 0) {
                known.store(true, Relaxed);
            }
        }
    }

    /// Notes the features whose keys are among those of the first records of the first shard that has any: then most scans can
    /// save what they built at once.
    pub(super) fn note_first(&self, dataset: &Dataset, features: &[&str]) {
        // A record that cannot be read is an error of the scan.
        let mut keys = FirstKeys::default();
        let (mut records, mut bytes) = (OF_SHARD, BYTES);
        let first = dataset.shards().find(|shard| shard.len > 0);
        if first.is_some_and(|shard| keys.of_shard(dataset, shard, &mut records, &mut bytes).is_ok()) {
            self.note_keys(features, &keys);
        }
    }

    fn note_keys(&self, features: &[&str], keys: &FirstKeys) {
        for (known, feature) in self.0.iter().zip(features) {
            known.fetch_or(keys.features.contains(*feature), Relaxed);
        }
    }

    /// Refuses the first feature without any value whose key none of the first records has, with the key that is nearest.
    pub(super) fn check(&self, dataset: &Dataset, features: &[&str]) -> Result<()> {
        if self.all() || dataset.is_empty() {
            return Ok(());
        }
        let keys = FirstKeys::of(dataset)?;
        self.note_keys(features, &keys);
        match self.0.iter().zip(features).find(|(known, _)| !known.load(Relaxed)) {
            Some((_, feature)) => Err(keys.refuse(feature)),
            None => Ok(()),
        }
    }
}

impl FirstKeys {
    /// FirstKeys of the first records of each shard.
    fn of(dataset: &Dataset) -> Result<FirstKeys> {
        let mut keys = FirstKeys::default();
        let (mut records, mut bytes) = (OF_ALL, BYTES);
        for shard in dataset.shards() {
            keys.of_shard(dataset, shard, &mut records, &mut bytes)?;
        }
        Ok(keys)
    }

    fn of_shard(
        &mut self,
        dataset: &Dataset,
        shard: ShardEntry<'_>,
        records: &mut u64,
        bytes: &mut u64,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        for i in shard.start..shard.start + shard.len.min(OF_SHARD).min(*records) {
            *records -= 1;
            let size = dataset.set().locate(i)?.payload_len();
            let Some(left) = bytes.checked_sub(size) else { continue };
            *bytes = left;
            // A damaged record is an error of the scan, and of no consequence for a column that was built before.
            let record = match dataset.read(i, &mut buffer) {
                Err(e) if !e.is_data() => return Err(e),
                Err(_) => continue,
                Ok(record) => SequenceExample::new(record.payload()),
            };
            for (key, _) in record.context().entries().map_while(Result::ok) {
                remember(&mut self.features, key);
            }
            for (key, _) in record.feature_lists().map_while(Result::ok) {
                remember(&mut self.lists, key);
            }
        }
        Ok(())
    }

    fn refuse(&self, feature: &str) -> Error {
        let list = self.lists.contains(feature);
        let nearest = if list { None } else { nearest(feature, &self.features) };
        let keys = self.features.iter().take(LISTED).cloned().collect();
        Error::from(ErrorKind::UnknownFeature { nearest, list, keys }).feature(feature.as_bytes())
    }
}

fn remember(keys: &mut BTreeSet<Box<str>>, key: &str) {
    if keys.len() < KEYS && !keys.contains(key) {
        keys.insert(key.into());
    }
}

/// The key that was probably meant: one that differs in case only, or has the same last part (`image/class/label` for `label`),
/// or few edits away.
fn nearest(feature: &str, keys: &BTreeSet<Box<str>>) -> Option<Box<str>> {
    let wanted = feature.to_lowercase();
    let last = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
    let rank = |key: &str| {
        let key = key.to_lowercase();
        if key == wanted {
            return Some((0, 0));
        }
        if last(&key) == last(&wanted) {
            return Some((1, key.chars().count()));
        }
        let edits = strsim::osa_distance(&key, &wanted);
        (edits <= (wanted.chars().count() / 3).max(1)).then_some((2, edits))
    };
    let ranked = keys.iter().filter_map(|key| Some((rank(key)?, key)));
    ranked.min().map(|(_, key)| key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_was_meant() {
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
