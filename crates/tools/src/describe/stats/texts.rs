//! Numbers of occurrences of byte strings, as for numbers in `frequent`. Strings of more than 256 bytes are
//! counted by their length and hash only.

use super::distinct::HyperLogLog;
use super::frequent::{BLOCK, EXACT, MERGED, excess, merged};
use std::cmp::Ordering;
use xxhash_rust::xxh3::xxh3_64;

/// The longest byte string whose bytes are kept.
pub(crate) const KEPT: usize = 256;
/// Strings are counted together from this number of bytes, or from as many as the counted ones have.
const BLOCK_BYTES: usize = 1 << 20;

/// A distinct byte string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextCounter {
    pub(crate) hash: u64,
    pub(crate) len: u64,
    /// Start of its bytes, if it is short.
    start: usize,
    pub(crate) count: u64,
}

impl TextCounter {
    /// Returns the bytes of a short string, and none of a long one.
    fn text<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let len = usize::try_from(self.len).ok().filter(|len| *len <= KEPT)?;
        bytes.get(self.start..self.start.checked_add(len)?)
    }

    /// Compares strings by hash, length and bytes. Two strings with one hash are rare.
    #[inline]
    fn order(&self, bytes: &[u8], other: &TextCounter, other_bytes: &[u8]) -> Ordering {
        let by_hash = (self.hash, self.len).cmp(&(other.hash, other.len));
        by_hash.then_with(|| self.text(bytes).cmp(&other.text(other_bytes)))
    }

    fn plus(self, other: TextCounter) -> TextCounter {
        TextCounter { count: self.count + other.count, ..self }
    }
}

/// Byte strings that are not counted yet.
#[derive(Clone)]
struct TextBlock {
    /// Hash, and start and length of the bytes of a short string, or [`LONG`] and the length of a long one.
    texts: Vec<(u64, u64)>,
    /// The bytes of the short strings.
    bytes: Vec<u8>,
    /// Number of strings and number of bytes from which they are counted.
    full: (usize, usize),
}

/// The mark of a long string.
const LONG: u64 = 1 << 63;
/// Number of bits of the length of a short string.
const LEN_BITS: u32 = 9;

impl Default for TextBlock {
    fn default() -> TextBlock {
        TextBlock { texts: Vec::new(), bytes: Vec::new(), full: (BLOCK, BLOCK_BYTES) }
    }
}

impl TextBlock {
    #[inline]
    fn push(&mut self, hash: u64, text: &[u8]) {
        let place = if text.len() <= KEPT {
            let start = self.bytes.len() as u64;
            self.bytes.extend_from_slice(text);
            start << LEN_BITS | text.len() as u64
        } else {
            LONG | text.len() as u64
        };
        self.texts.push((hash, place));
    }

    /// Returns the distinct strings in the order of the counters.
    fn counters(&mut self) -> Vec<TextCounter> {
        self.texts.sort_unstable_by_key(|(hash, _)| *hash);
        let mut all: Vec<TextCounter> = Vec::new();
        for &(hash, place) in &self.texts {
            let (start, len) = match place & LONG {
                0 => ((place >> LEN_BITS) as usize, place & ((1 << LEN_BITS) - 1)),
                _ => (0, place & !LONG),
            };
            let next = TextCounter { hash, len, start, count: 1 };
            match all.last_mut() {
                Some(last) if last.order(&self.bytes, &next, &self.bytes).is_eq() => last.count += 1,
                _ => all.push(next),
            }
        }
        distinct(&mut all, &self.bytes);
        all
    }
}

/// Sorts counters, and adds the counters of equal strings.
fn distinct(all: &mut Vec<TextCounter>, bytes: &[u8]) {
    all.sort_by(|a, b| a.order(bytes, b, bytes));
    all.dedup_by(|next, first| {
        let equal = first.order(bytes, next, bytes).is_eq();
        if equal {
            *first = first.plus(*next);
        }
        equal
    });
}

/// Counters of byte strings.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct TextFrequencies {
    /// Each record changes these fields, which are in one cache line.
    block: TextBlock,
    /// Counters in the order of hash, length and bytes.
    counters: Vec<TextCounter>,
    /// The bytes of the short strings.
    bytes: Vec<u8>,
    pub(crate) keep: usize,
    pub(crate) missed: u64,
    pub(crate) distinct: Option<HyperLogLog>,
}

impl Default for TextFrequencies {
    fn default() -> TextFrequencies {
        TextFrequencies {
            counters: Vec::new(),
            bytes: Vec::new(),
            block: TextBlock::default(),
            keep: EXACT,
            missed: 0,
            distinct: None,
        }
    }
}

impl TextFrequencies {
    /// Adds a byte string. Returns true if it is time to [`flush`](TextFrequencies::flush).
    #[inline]
    pub(crate) fn add(&mut self, text: &[u8]) -> bool {
        self.block.push(xxh3_64(text), text);
        self.block.texts.len() >= self.block.full.0 || self.block.bytes.len() >= self.block.full.1
    }

    /// Adds a string with a counter, whose bytes matter if it is short. It is counted by
    /// [`sort`](TextFrequencies::sort).
    pub(crate) fn push(&mut self, hash: u64, len: u64, text: &[u8], n: u64) {
        self.counters.push(TextCounter { hash, len, start: self.bytes.len(), count: n });
        if len <= KEPT as u64 {
            self.bytes.extend_from_slice(text);
        }
    }

    /// Sorts what was [pushed](TextFrequencies::push).
    pub(crate) fn sort(&mut self) {
        distinct(&mut self.counters, &self.bytes);
    }

    /// Counts what was added. `short` is called with the distinct short strings, and the number of times that
    /// each was added. It precedes reading and merging.
    pub(crate) fn flush(&mut self, mut short: impl FnMut(&[u8], u64)) {
        if self.block.texts.is_empty() {
            return;
        }
        let mut block = std::mem::take(&mut self.block);
        let counters = block.counters();
        for counter in &counters {
            if let Some(text) = counter.text(&block.bytes) {
                short(text, counter.count);
            }
        }
        if let Some(distinct) = &mut self.distinct {
            counters.iter().for_each(|counter| distinct.add(counter.hash));
        }
        self.count(&counters, &block.bytes);
        block.texts.clear();
        block.bytes.clear();
        self.block = block;
        self.set_full();
    }

    fn set_full(&mut self) {
        self.block.full = (BLOCK.min(self.keep).max(self.counters.len()), BLOCK_BYTES.max(self.bytes.len()));
    }

    /// Adds counters, which are in order.
    fn count(&mut self, counters: &[TextCounter], bytes: &[u8]) {
        let mut new = Vec::new();
        let start = self.bytes.len();
        let copied = |counter: TextCounter| {
            let place = start + new.len();
            if let Some(text) = counter.text(bytes) {
                new.extend_from_slice(text);
            }
            TextCounter { start: place, ..counter }
        };
        let order = |a: &TextCounter, b: &TextCounter| a.order(&self.bytes, b, bytes);
        self.counters = merged(&self.counters, counters, order, TextCounter::plus, copied);
        self.bytes.extend_from_slice(&new);
        if self.distinct.is_none() && self.counters.len() > EXACT {
            self.approximate(EXACT);
        }
        if self.counters.len() > self.keep + self.keep / 4 {
            self.shrink();
        }
    }

    /// Returns the counters with the bytes of short strings.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TextCounter, Option<&[u8]>)> {
        self.counters.iter().map(|counter| (*counter, counter.text(&self.bytes)))
    }

    /// Stops exact counting. At most about `keep` counters remain.
    pub(crate) fn approximate(&mut self, keep: usize) {
        if self.distinct.is_none() {
            let distinct = self.distinct.insert(HyperLogLog::default());
            self.counters.iter().for_each(|counter| distinct.add(counter.hash));
        }
        self.keep = self.keep.min(keep);
        if self.keep < EXACT {
            self.shrink();
        }
        self.set_full();
    }

    fn shrink(&mut self) {
        let excess = excess(self.counters.iter().map(|counter| counter.count), self.keep);
        if excess == 0 {
            return;
        }
        let mut kept = TextFrequencies { keep: self.keep, ..TextFrequencies::default() };
        for (counter, text) in self.iter().filter(|(counter, _)| counter.count > excess) {
            kept.push(counter.hash, counter.len, text.unwrap_or_default(), counter.count - excess);
        }
        kept.missed = self.missed + excess;
        kept.distinct = self.distinct.take();
        kept.block = std::mem::take(&mut self.block);
        *self = kept;
    }

    /// Adds the counters of `other`.
    pub(crate) fn merge(&mut self, other: &TextFrequencies) {
        if let Some(theirs) = &other.distinct {
            self.approximate(other.keep);
            self.distinct.get_or_insert_default().merge(theirs);
        }
        let mut less = 0;
        if let Some(distinct) = &mut self.distinct {
            other.counters.iter().for_each(|counter| distinct.add(counter.hash));
            less = excess(other.counters.iter().map(|counter| counter.count), MERGED.min(self.keep));
        }
        self.missed += other.missed + less;
        if less == 0 {
            self.count(&other.counters, &other.bytes);
        } else {
            let more = other.counters.iter().filter(|counter| counter.count > less);
            let counters: Vec<_> =
                more.map(|counter| TextCounter { count: counter.count - less, ..*counter }).collect();
            self.count(&counters, &other.bytes);
        }
    }

    /// Returns the number of counters.
    pub(crate) fn len(&self) -> usize {
        self.counters.len()
    }

    /// Returns the number of bytes in memory.
    pub(crate) fn memory(&self) -> u64 {
        let counters = self.counters.capacity() * size_of::<TextCounter>() + self.bytes.capacity();
        let block = self.block.texts.capacity() * 16 + self.block.bytes.capacity();
        (counters + block) as u64 + self.distinct.as_ref().map_or(0, |_| 1 << 14)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tfseek_testkit::rng::Rng;

    fn counted(texts: &[Vec<u8>]) -> TextFrequencies {
        let mut found = TextFrequencies::default();
        let mut shorts = 0;
        let mut flushed = 0;
        for text in texts {
            shorts += u64::from(text.len() <= KEPT);
            if found.add(text) {
                found.flush(|_, n| flushed += n);
            }
        }
        found.flush(|_, n| flushed += n);
        assert_eq!(shorts, flushed);
        found
    }

    #[test]
    fn counters_are_within_the_bound() {
        for seed in 0..1000 {
            let mut rng = Rng::new(seed);
            let (n, distinct) = if seed % 500 == 0 { (110_000, 1 << 40) } else { (200, 1 << (seed % 16)) };
            let text = |rng: &mut Rng| {
                let k = if rng.chance(90) { rng.below_u64(3) } else { rng.below_u64(distinct) };
                format!("{k}{}", "x".repeat((k % 300) as usize)).into_bytes()
            };
            let texts: Vec<_> = (0..n).map(|_| text(&mut rng)).collect();
            let mut exact = BTreeMap::new();
            texts.iter().for_each(|text| *exact.entry(text.clone()).or_insert(0u64) += 1);
            let by_hash: BTreeMap<u64, u64> = exact.iter().map(|(text, n)| (xxh3_64(text), *n)).collect();
            let mut merged = TextFrequencies::default();
            texts.chunks(1 + n / 4).for_each(|unit| merged.merge(&counted(unit)));
            for found in [counted(&texts), merged] {
                assert_eq!(found.distinct.is_none(), exact.len() <= EXACT);
                assert!(found.missed <= n as u64 / 4096 + 1);
                for (counter, text) in found.iter() {
                    let count = text.map_or_else(|| by_hash[&counter.hash], |text| exact[text]);
                    assert!(counter.count <= count && count - counter.count <= found.missed);
                }
                if found.distinct.is_none() {
                    assert_eq!(found.len(), exact.len());
                }
            }
        }
    }

    /// Strings with one hash keep counters of their own.
    #[test]
    fn equal_hashes_are_separate() {
        let mut found = TextFrequencies::default();
        for text in ["a", "b", "a", "b", "a", "c"] {
            found.block.push(7, text.as_bytes());
            if text == "c" {
                found.flush(|_, _| ());
                let other = found.clone();
                found.merge(&other);
            }
        }
        let counters: Vec<_> = found.iter().map(|(counter, text)| (counter.count, text.unwrap())).collect();
        assert_eq!(counters, [(6, &b"a"[..]), (4, b"b"), (2, b"c")]);
    }
}
