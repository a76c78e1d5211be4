//! The decompressed segments that are in memory, in maps with a lock each.

use crate::io::Region;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of maps. Each small record of a compressed shard is one look into a map: with one lock, 16 threads
/// read at two thirds of the rate of one.
const MAPS: usize = 1 << 6;

/// A shard, by its number in the cache, and the start and end of a segment or block in its stream.
pub(super) type SegmentKey = (u64, u64, u64);

/// A decompressed segment, and a number that grows with the time of its last use.
#[derive(Debug)]
struct ReadySegment {
    bytes: Region,
    used: u64,
}

type Map = HashMap<SegmentKey, ReadySegment>;

/// Decompressed segments, the most recently used ones.
#[derive(Debug)]
pub(super) struct ReadySegments {
    maps: [Mutex<Map>; MAPS],
    /// Bytes of all segments.
    bytes: AtomicU64,
    /// Number of segments that were added.
    added: AtomicU64,
}

impl Default for ReadySegments {
    fn default() -> ReadySegments {
        let [bytes, added] = Default::default();
        ReadySegments { maps: std::array::from_fn(|_| Mutex::default()), bytes, added }
    }
}

impl ReadySegments {
    fn map(&self, key: &SegmentKey) -> MutexGuard<'_, Map> {
        // The golden ratio and an odd constant of xxHash spread shards and offsets over the highest bits.
        let mixed = (key.0 ^ key.1.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let [first, ..] = &self.maps;
        lock(self.maps.get((mixed >> 58) as usize).unwrap_or(first))
    }

    /// Returns a segment, which is then the most recently used one.
    pub(super) fn get(&self, key: &SegmentKey) -> Option<Region> {
        let mut map = self.map(key);
        let segment = map.get_mut(key)?;
        // Uses between two additions are alike, and later than the addition before them.
        segment.used = self.added.load(Relaxed).wrapping_mul(2).wrapping_add(1);
        Some(segment.bytes.clone())
    }

    pub(super) fn contains(&self, key: &SegmentKey) -> bool {
        self.map(key).contains_key(key)
    }

    /// Adds a segment, and removes those that were not used for the longest time while there are more than
    /// `limit` bytes.
    pub(super) fn add(&self, key: SegmentKey, bytes: Region, limit: u64) {
        let used = self.added.fetch_add(1, Relaxed).wrapping_add(1).wrapping_mul(2);
        self.bytes.fetch_add(bytes.len() as u64, Relaxed);
        let before = self.map(&key).insert(key, ReadySegment { bytes, used });
        self.subtract(before);
        while self.bytes() > limit {
            let oldest = self.maps.iter().filter_map(|map| {
                let map = lock(map);
                map.iter()
                    .filter(|(other, _)| **other != key)
                    .map(|(other, segment)| (segment.used, *other))
                    .min()
            });
            let Some((_, oldest)) = oldest.min() else { return };
            let removed = self.map(&oldest).remove(&oldest);
            self.subtract(removed);
        }
    }

    /// Removes the segments of a shard.
    pub(super) fn remove_shard(&self, shard: u64) {
        for map in &self.maps {
            let removed: Vec<_> = lock(map).extract_if(|&(other, ..), _| other == shard).collect();
            removed.into_iter().for_each(|(_, segment)| self.subtract(Some(segment)));
        }
    }

    fn subtract(&self, removed: Option<ReadySegment>) {
        let bytes = removed.map_or(0, |segment| segment.bytes.len() as u64);
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns the keys of all segments.
    #[cfg(test)]
    pub(super) fn keys(&self) -> Vec<SegmentKey> {
        self.maps.iter().flat_map(|map| lock(map).keys().copied().collect::<Vec<_>>()).collect()
    }
}

fn lock(map: &Mutex<Map>) -> MutexGuard<'_, Map> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use tfseek_testkit::rng::Rng;

    /// Compares with a list whose last segment is the most recently used one. A thread has one use after each
    /// addition, so that no two are alike.
    #[test]
    fn the_least_recently_used_are_removed() {
        let (ready, mut list, mut rng) =
            (ReadySegments::default(), VecDeque::<(SegmentKey, u64)>::new(), Rng::new(7));
        for _ in 0..3000 {
            let key = (rng.below(3) as u64, rng.below(40) as u64, 99);
            let len = rng.below(10) as u64 + 1;
            let found = list.iter().position(|(other, _)| *other == key);
            assert_eq!(ready.contains(&key), found.is_some());
            assert_eq!(ready.get(&key).map(|bytes| bytes.len() as u64), found.map(|k| list[k].1));
            match found {
                Some(k) => {
                    let used = list.remove(k).unwrap();
                    list.push_back(used);
                    // Something is added, so that the next use is another one.
                    ready.add((9, 0, 0), Region::from(Vec::new()), u64::MAX);
                }
                None => {
                    ready.add(key, Region::from(vec![1; len as usize]), 60);
                    list.push_back((key, len));
                    while list.iter().map(|(_, len)| len).sum::<u64>() > 60 {
                        list.pop_front();
                    }
                }
            }
            let bytes = list.iter().map(|(_, len)| len).sum::<u64>();
            assert_eq!(ready.bytes(), bytes);
        }
        ready.remove_shard(1);
        list.retain(|((shard, ..), _)| *shard != 1);
        let mut keys = ready.keys();
        keys.retain(|key| key.0 != 9);
        keys.sort_unstable();
        let mut want: Vec<_> = list.iter().map(|(key, _)| *key).collect();
        want.sort_unstable();
        assert_eq!(keys, want);
        assert_eq!(ready.bytes(), list.iter().map(|(_, len)| len).sum::<u64>());
    }

    #[test]
    fn threads_add_and_remove_at_once() {
        let ready = ReadySegments::default();
        std::thread::scope(|scope| {
            for t in 0..8u64 {
                let ready = &ready;
                scope.spawn(move || {
                    for k in 0..2000u64 {
                        let key = (t % 3, k * 31 % 50, 9);
                        if ready.get(&key).is_none() {
                            ready.add(key, Region::from(vec![1; 1 + (k % 5) as usize]), 40);
                        }
                    }
                    ready.remove_shard(t % 3);
                });
            }
        });
        (0..3).for_each(|shard| ready.remove_shard(shard));
        assert_eq!((ready.bytes(), ready.keys().len()), (0, 0));
    }
}
