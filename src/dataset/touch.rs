//! Loads that overlap: of index entries and records that somebody will look at in a moment.
//!
//! A processor has a dozen cache misses under way, if it finds as many loads among the few hundred instructions that it looks
//! ahead. So addresses are worked out first, and then nothing but loaded.

use super::{Dataset, Located};
use crate::error::Result;
use crate::frame::OVERHEAD;

/// A cache line.
const LINE: u64 = 64;
/// Of a record that is not longer all lines are loaded; the processor sees by itself where a longer one goes on.
const SHORT: u64 = 4 * LINE;

/// Addresses that were worked out.
struct Loads<'a> {
    bytes: [&'a u8; Loads::MOST],
    len: usize,
}

impl<'a> Loads<'a> {
    const MOST: usize = 64;

    fn new() -> Loads<'a> {
        Loads { bytes: [&0; Loads::MOST], len: 0 }
    }

    #[inline]
    fn push(&mut self, byte: Option<&'a u8>) {
        if let Some(byte) = byte {
            if self.len == Loads::MOST {
                self.run();
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
    }

    fn run(&mut self) {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        std::hint::black_box(bytes.iter().fold(0, |all, &&byte| all ^ byte));
        self.len = 0;
    }
}

impl Dataset {
    /// As [`locate`](Dataset::locate) for each of `ids`, in that order.
    pub(crate) fn locate_all(&self, ids: &[u64], mut each: impl FnMut(Result<Located>)) {
        for ids in ids.chunks(Loads::MOST) {
            let mut places = [None; Loads::MOST];
            let mut loads = Loads::new();
            for (place, &id) in places.iter_mut().zip(ids) {
                *place = self.shard_of(id).ok();
                loads.push(place.and_then(|(s, k)| self.0.shards[s].entry(k)));
            }
            loads.run();
            for (place, &id) in places.iter().zip(ids) {
                each(match *place {
                    Some((s, k)) => self.locate_in(s, k),
                    None => self.locate(id),
                });
            }
        }
    }

    /// Loads the header of each of these lent records, and all of those that are short.
    pub(crate) fn touch_all<'a>(&self, records: impl IntoIterator<Item = &'a Located>) {
        let mut loads = Loads::new();
        for at in records {
            let bytes = self.shard_at(at).bytes().unwrap_or_default();
            let (start, stored) = (at.span.offset, at.span.payload_len.saturating_add(OVERHEAD as u64));
            let byte = |at: u64| usize::try_from(at).ok().and_then(|at| bytes.get(at));
            loads.push(byte(start));
            if stored <= SHORT {
                let (first, last) = (start / LINE, start.saturating_add(stored - 1) / LINE);
                (first + 1..=last).for_each(|line| loads.push(byte(line * LINE)));
            }
        }
        loads.run();
    }
}

#[cfg(test)]
mod tests {
    use crate::dataset::DatasetOptions;
    use crate::frame::put_record;
    use crate::io::Region;
    use crate::policy::IndexMode;

    #[test]
    fn the_same_as_one_by_one() {
        let shard = |n: usize| {
            let mut bytes = Vec::new();
            (0..n).for_each(|i| put_record(&mut bytes, &vec![7; i * 5 % 300]).unwrap());
            Region::from(bytes)
        };
        let shards = [0, 300, 1, 2000].map(shard);
        let ds = DatasetOptions::new().index(IndexMode::Memory).open_regions(shards).unwrap();
        let ids: Vec<u64> = (0..2301).map(|k| k * 7 % 2301).chain([2301, u64::MAX]).collect();
        for len in [0, 1, 63, 64, 65, ids.len()] {
            let ids = &ids[ids.len() - len..];
            let mut found = Vec::new();
            ds.locate_all(ids, |at| found.push(at));
            assert_eq!(found.len(), len);
            for (found, &id) in found.iter().zip(ids) {
                match (found, ds.locate(id)) {
                    (Ok(found), Ok(at)) => {
                        assert_eq!((found.shard, found.i, found.span), (at.shard, at.i, at.span))
                    }
                    (Err(found), Err(e)) => assert_eq!(found.to_string(), e.to_string()),
                    (found, at) => panic!("{id}: {found:?}, {at:?}"),
                }
            }
            ds.touch_all(found.iter().flatten());
        }
    }
}
