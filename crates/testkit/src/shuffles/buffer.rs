//! A shuffle buffer, as in common input pipelines, and its sources.

use crate::rng::Rng;
use std::ops::Range;

/// A shuffle buffer. It returns a random record of its content and replaces it with the next record of the
/// source. It is filled before it returns the first record, like the buffer of `tf.data`.
pub(super) struct Buffer<I> {
    source: I,
    held: Vec<u64>,
    size: usize,
    rng: Rng,
    /// Number of records read from the source so far.
    pub(super) read: u64,
}

impl<I: Iterator<Item = u64>> Buffer<I> {
    pub(super) fn new(source: I, size: usize, rng: Rng) -> Buffer<I> {
        Buffer { source, held: Vec::with_capacity(size), size, rng, read: 0 }
    }
}

impl<I: Iterator<Item = u64>> Iterator for Buffer<I> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.held.len() < self.size
            && let Some(record) = self.source.next()
        {
            self.held.push(record);
            self.read += 1;
        }
        if self.held.is_empty() {
            return None;
        }
        Some(self.held.swap_remove(self.rng.below(self.held.len())))
    }
}

pub(super) fn in_file_order(n: u64) -> Range<u64> {
    0..n
}

/// Returns one record from each of `at_once` open shards alternately. The next shard, in a random order,
/// replaces a finished one.
pub(super) fn interleaved(
    n: u64,
    shards: u64,
    at_once: usize,
    rng: &mut Rng,
) -> impl Iterator<Item = u64> + use<> {
    let mut waiting: Vec<Range<u64>> = (0..shards).map(|k| k * n / shards..(k + 1) * n / shards).collect();
    for i in (1..waiting.len()).rev() {
        waiting.swap(i, rng.below(i + 1));
    }
    let mut open: Vec<Range<u64>> = waiting.split_off(waiting.len() - at_once);
    let mut turn = 0;
    std::iter::from_fn(move || {
        while !open.is_empty() {
            turn %= open.len();
            if let Some(record) = open[turn].next() {
                turn += 1;
                return Some(record);
            }
            match waiting.pop() {
                Some(shard) => open[turn] = shard,
                None => drop(open.remove(turn)),
            }
        }
        None
    })
}
