//! The two-level block order: blocks of adjacent records are permuted, and then the records within windows of
//! W blocks.
//!
//! ```text
//! records    | block 0 | block 1 | .. | last, short |       b records each, shard boundaries ignored
//! blocks     permuted by PRP1, stream 1
//! windows    W consecutive blocks of that permutation each, the last window may have fewer
//! window j   its m records permuted by PRP1, stream 2 + j
//! ```
//!
//! The short block occupies one *slot* of one window. All later windows begin earlier by the number of
//! records that it lacks.

use super::prp::Permutation;
use crate::error::{Error, OrderError, Result};
use std::ops::Range;

/// Stream of the block permutation.
const BLOCK_STREAM: u64 = 1;
/// Stream of window 0; window j has the stream j above it.
const WINDOW_STREAM: u64 = 2;
/// Maximum number of windows. The streams of more windows would collide with other streams.
const MAX_WINDOWS: u64 = 1 << 32;

/// Default size of a block in bytes: large enough to read a disk at its full throughput.
pub(crate) const BLOCK_BYTES: u64 = 1 << 20;
/// Minimum of the default window size, in blocks.
const MIN_WINDOW: u64 = 64;

/// Number of in-block offsets kept on the stack while the blocks are computed.
const BATCH: usize = 64;

/// A shuffle that reads in blocks: records come from `window` blocks at a time, and each block is read once
/// per epoch.
#[derive(Clone, Debug)]
pub(super) struct BlockOrder {
    n: u64,
    block: u64,
    /// Blocks per window, at most `blocks`.
    window: u64,
    blocks: u64,
    /// Number of records in the last block.
    last: u64,
    /// Position of the last block in the block permutation.
    last_at: u64,
    permuted: Permutation,
    seed: u64,
    epoch: u64,
    stream: u64,
}

/// One window of an epoch.
struct BlockWindow {
    start: u64,
    len: u64,
    /// Position of its first block in the block permutation.
    first: u64,
    /// Slot of the last block, if this window contains it.
    short: Option<u64>,
    permuted: Permutation,
}

impl BlockOrder {
    /// Creates the order of `n` records in blocks of `block` records and windows of `window` blocks, sizes
    /// that [`check`] has accepted. `stream` is added to all streams: the stream of a mixture component, or
    /// 0.
    pub(super) fn new(n: u64, block: u64, window: u64, seed: u64, epoch: u64, stream: u64) -> BlockOrder {
        let blocks = n.div_ceil(block);
        let permuted = Permutation::new(blocks, seed, epoch, stream + BLOCK_STREAM);
        let (last, last_at) = match blocks.checked_sub(1) {
            Some(others) => (n - others * block, permuted.inverse(others)),
            None => (0, 0),
        };
        let window = window.min(blocks.max(1));
        BlockOrder { n, block, window, blocks, last, last_at, permuted, seed, epoch, stream }
    }

    /// Returns the record at a position.
    ///
    /// # Panics
    /// Panics if the position does not exist.
    // Not inlined: otherwise the other kinds of order would save and restore its registers too.
    #[inline(never)]
    pub(super) fn get(&self, position: u64) -> u64 {
        let window = self.window(self.window_of(position));
        let (slot, offset) = self.split(&window, window.permuted.get(position - window.start));
        self.permuted.get(window.first + slot) * self.block + offset
    }

    /// Returns the position of a record: `inverse(get(t)) == t`.
    ///
    /// # Panics
    /// Panics if the record does not exist.
    // Not inlined, for the same reason as `get`.
    #[inline(never)]
    pub(super) fn inverse(&self, record: u64) -> u64 {
        assert!(record < self.n, "no record {record}: there are {}", self.n);
        let (window, place) = self.place_of(record);
        let window = self.window(window);
        window.start + window.permuted.inverse(place)
    }

    /// Fills `out` with the records at the positions from `start` on. It derives the keys of a window only
    /// once.
    ///
    /// # Panics
    /// Panics if there are fewer than `start + out.len()` positions.
    pub(super) fn fill(&self, start: u64, mut out: &mut [u64]) {
        let mut position = start;
        while !out.is_empty() {
            let window = self.window(self.window_of(position));
            let inside = position - window.start;
            let here = (window.len - inside).min(out.len() as u64) as usize;
            let (now, later) = out.split_at_mut(here);
            window.permuted.fill(inside, now);
            for now in now.chunks_mut(BATCH) {
                let mut offsets = [0; BATCH];
                for (record, offset) in now.iter_mut().zip(&mut offsets) {
                    let slot;
                    (slot, *offset) = self.split(&window, *record);
                    *record = window.first + slot;
                }
                self.permuted.apply(now);
                for (record, offset) in now.iter_mut().zip(offsets) {
                    *record = *record * self.block + offset;
                }
            }
            (position, out) = (position + here as u64, later);
        }
    }

    /// Returns the seed, the epoch and the stream.
    pub(super) fn key(&self) -> [u64; 3] {
        [self.seed, self.epoch, self.stream]
    }

    /// Returns the records of each block of a window, in the order in which they are laid out.
    pub(super) fn blocks_of(&self, window: u64) -> impl Iterator<Item = Range<u64>> {
        let first = window * self.window;
        (first..(first + self.window).min(self.blocks)).map(|at| {
            let start = self.permuted.get(at) * self.block;
            start..start + self.block.min(self.n - start)
        })
    }

    /// Returns the record at a place of the laid out records of a window.
    pub(super) fn record_at(&self, window: u64, place: u64) -> u64 {
        let window = self.window(window);
        let (slot, offset) = self.split(&window, place);
        self.permuted.get(window.first + slot) * self.block + offset
    }

    /// Returns the window of a record, and its place there: the inverse of
    /// [`record_at`](BlockOrder::record_at).
    pub(super) fn place_of(&self, record: u64) -> (u64, u64) {
        let block_position = self.permuted.inverse(record / self.block);
        let number = block_position / self.window;
        let window = self.window(number);
        let slot = block_position - window.first;
        let missing = match window.short {
            Some(short) if slot > short => self.block - self.last,
            _ => 0,
        };
        (number, slot * self.block - missing + record % self.block)
    }

    /// Returns the number of windows.
    fn windows(&self) -> u64 {
        self.blocks.div_ceil(self.window)
    }

    /// Returns the window that contains a position.
    ///
    /// # Panics
    /// Panics if the position does not exist.
    pub(super) fn window_of(&self, position: u64) -> u64 {
        assert!(position < self.n, "no position {position}: there are {}", self.n);
        // If the product exceeds u64, one window contains all records.
        let j = position / self.window.saturating_mul(self.block);
        if j + 1 < self.windows() && position >= self.start(j + 1) { j + 1 } else { j }
    }

    /// Returns the first position of a window, or the number of positions for the window after the last one.
    ///
    /// # Panics
    /// Panics if `window` is above the number of windows.
    pub(super) fn start(&self, window: u64) -> u64 {
        let windows = self.windows();
        assert!(window <= windows, "no window {window}: there are {windows}");
        if window == windows {
            // The products below can exceed u64 for the last window's end.
            return self.n;
        }
        let before = window * self.window;
        before * self.block - if self.last_at < before { self.block - self.last } else { 0 }
    }

    fn window(&self, j: u64) -> BlockWindow {
        let start = self.start(j);
        let end = self.start(j + 1);
        let first = j * self.window;
        BlockWindow {
            start,
            len: end - start,
            first,
            short: self.last_at.checked_sub(first).filter(|slot| *slot < self.window),
            permuted: Permutation::new(end - start, self.seed, self.epoch, self.stream + WINDOW_STREAM + j),
        }
    }

    /// Splits a number below the window's length into a slot and an offset in the block of that slot.
    fn split(&self, window: &BlockWindow, u: u64) -> (u64, u64) {
        let slot = u / self.block;
        let offset = u % self.block;
        match window.short {
            // The short block begins at `short * block`, and the next block begins `last` records later.
            Some(short) if slot >= short => match (u - short * self.block).checked_sub(self.last) {
                None => (short, offset),
                Some(after) => (short + 1 + after / self.block, after % self.block),
            },
            _ => (slot, offset),
        }
    }
}

/// Rejects block and window sizes of 0, and more than [`MAX_WINDOWS`] windows.
pub(super) fn check(n: u64, block: u64, window: u64) -> Result<()> {
    if block == 0 || window == 0 {
        let reason = format!("expected block and window sizes of at least 1, found {block} and {window}");
        return Err(Error::order(reason));
    }
    let windows = n.div_ceil(block).div_ceil(window);
    if windows > MAX_WINDOWS {
        return Err(OrderError::Windows { found: windows, limit: MAX_WINDOWS }.into());
    }
    Ok(())
}

/// Returns the design effect of a block order: 1 + rho (B - 1) / W.
///
/// This is the variance of a batch's mean, divided by that variance for batches drawn at random, if two
/// records of a block have correlation `rho`. A perfect shuffle has 1. The worst case is rho = 1, where all
/// records of a block are alike.
pub(crate) fn deff(rho: f64, batch: u64, window: u64) -> f64 {
    1.0 + rho * batch.saturating_sub(1) as f64 / window.max(1) as f64
}

/// Returns the number of records of a block of about `bytes`, at least one. `stored_bytes` is the size of all
/// `n` records on disk.
pub(crate) fn block_records(bytes: u64, n: u64, stored_bytes: u64) -> u64 {
    let block = u128::from(bytes) * u128::from(n) / u128::from(stored_bytes.max(1));
    u64::try_from(block).unwrap_or(u64::MAX).max(1)
}

/// Returns the default window size: four blocks per sample of a global batch, at least 64. This keeps
/// [`deff`] below 1.25.
///
/// It depends only on the batch, never on the machine, because all ranks must agree on it.
pub(super) fn default_window(global_batch: u64) -> u64 {
    global_batch.saturating_mul(4).max(MIN_WINDOW)
}

/// Checks that two windows fit into a memory budget in bytes.
///
/// # Errors
/// [`OrderError::Memory`], with the largest window that fits. The window is never reduced silently, because
/// the order depends on it.
pub(crate) fn check_memory(n: u64, stored_bytes: u64, block: u64, window: u64, budget: u64) -> Result<()> {
    let of_window = (u128::from(block) * u128::from(window)).min(u128::from(n));
    let records = (2 * of_window).min(u128::from(n));
    let bytes_of = |records: u128| (records * u128::from(stored_bytes)).div_ceil(u128::from(n.max(1)));
    // n and stored_bytes are below 2^64, so the product is below 2^128.
    let need = bytes_of(records);
    if need <= u128::from(budget) {
        return Ok(());
    }
    // Some records do not fit into the budget, so neither n nor stored_bytes is 0.
    let largest =
        u128::from(budget) * u128::from(n) / u128::from(stored_bytes.max(1)) / (2 * u128::from(block.max(1)));
    let cast = |x: u128| u64::try_from(x).unwrap_or(u64::MAX);
    Err(OrderError::Memory { need: cast(need), budget, largest_window: cast(largest) }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::order::{Order, Spec};

    impl BlockOrder {
        /// Returns the blocks of a window. Block k contains the records from `k * block` on.
        fn blocks(&self, window: u64) -> Vec<u64> {
            let first = window * self.window;
            let end = self.blocks.min(first.saturating_add(self.window));
            (first..end).map(|position| self.permuted.get(position)).collect()
        }
    }

    /// Each window contains the records of its blocks and no others.
    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn windows_over_a_grid_of_shapes() {
        for (n, b, w) in [
            (1, 1, 1),
            (5, 16, 4),
            (16, 16, 1),
            (17, 16, 1),
            (100, 7, 1),
            (100, 1, 7),
            (100, 10, 3),
            (101, 10, 3),
            (1003, 16, 4),
            (1003, 16, 1000),
            (4096, 64, 8),
            (4097, 64, 8),
            (5000, 13, 11),
        ] {
            for epoch in 0..3 {
                let block = BlockOrder::new(n, b, w, 5, epoch, 0);
                let order: Vec<u64> = (0..n).map(|t| block.get(t)).collect();
                assert_eq!((block.start(0), block.start(block.windows())), (0, n));
                for j in 0..block.windows() {
                    let mut blocks = block.blocks(j);
                    assert!(blocks.len() as u64 <= w);
                    let span = &order[block.start(j) as usize..block.start(j + 1) as usize];
                    assert!(span.iter().all(|record| blocks.contains(&(record / b))));
                    let records: u64 = blocks.iter().map(|k| b.min(n - k * b)).sum();
                    assert_eq!(records, span.len() as u64);
                    blocks.dedup();
                    assert!((block.start(j)..block.start(j + 1)).all(|t| block.window_of(t) == j));
                }
            }
        }
        let empty = BlockOrder::new(0, 4, 4, 0, 0, 0);
        assert_eq!((empty.windows(), empty.start(0)), (0, 0));
    }

    /// For sizes of all magnitudes, each position is inside its window.
    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn windows_of_any_size() {
        let size = |bits: u32, i: u64| (crate::order::prp::mix(i) >> (64 - bits)).max(1);
        for bits in 1..=64 {
            for i in 0..200 {
                let (n, b, w) =
                    (size(bits, i), size(1 + i as u32 % 64, i + 1000), size(1 + bits / 2, i + 2000));
                if check(n, b, w).is_ok() {
                    let order = BlockOrder::new(n, b, w, i, 1, 0);
                    let t = size(64, i + 3000) % n;
                    let j = order.window_of(t);
                    assert!(order.start(j) <= t && t < order.start(j + 1), "{n} {b} {w} {t}");
                }
            }
        }
    }

    /// The blocks of any batch belong to at most two windows, so no more than two windows need memory.
    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn two_windows_are_enough() {
        let n = 10_007;
        let b = 32;
        let w = 8;
        let block = BlockOrder::new(n, b, w, 1, 2, 0);
        let order: Vec<u64> = (0..n).map(|t| block.get(t)).collect();
        for (start, batch) in (0..n).step_by(61).flat_map(|start| [1, 64, 200].map(|batch| (start, batch))) {
            let end = n.min(start + batch);
            let mut blocks: Vec<u64> = order[start as usize..end as usize].iter().map(|r| r / b).collect();
            blocks.sort();
            blocks.dedup();
            let windows = block.window_of(start)..=block.window_of(end - 1);
            assert!(windows.clone().count() <= 2);
            let available: Vec<u64> = windows.flat_map(|j| block.blocks(j)).collect();
            assert!(available.len() as u64 <= 2 * w && blocks.iter().all(|k| available.contains(k)));
        }
    }

    #[test]
    fn defaults_and_memory() {
        let n = 1_281_167;
        let stored = 144_000_000_000;
        let refused = |e: crate::Error| match e.into_kind() {
            ErrorKind::Order(e) => e,
            other => panic!("{other:?}"),
        };
        // 1,281,167 records in 144 GB: about 112 KB each.
        assert_eq!((block_records(BLOCK_BYTES, n, stored), default_window(256)), (9, 1024));
        assert_eq!((default_window(1), default_window(u64::MAX)), (64, u64::MAX));
        assert_eq!(
            [(10, 0), (10, u64::MAX), (0, 0)].map(|(n, stored)| block_records(BLOCK_BYTES, n, stored)),
            [10 << 20, 1, 1]
        );

        let window = 9 * 1024 * stored / n;
        assert!(check_memory(n, stored, 9, 1024, 3 * window).is_ok());
        match refused(check_memory(n, stored, 9, 1024, window).unwrap_err()) {
            OrderError::Memory { need, budget, largest_window } => {
                assert_eq!((need / window, budget, largest_window), (2, window, 511));
                assert!(check_memory(n, stored, 9, largest_window, window).is_ok());
                assert!(check_memory(n, stored, 9, largest_window + 1, window).is_err());
            }
            other => panic!("{other:?}"),
        }
        let tiny = check_memory(n, stored, 9, 1024, 10).unwrap_err();
        assert!(tiny.to_string().contains("use smaller blocks"), "{tiny}");
        // A window larger than the dataset counts as the size of the dataset.
        assert!(check_memory(10, 1000, u64::MAX, u64::MAX, 1000).is_ok());
        assert!(check_memory(u64::MAX, u64::MAX, u64::MAX, u64::MAX, 1000).is_err());
        assert!(check_memory(0, 0, 1, 1, 0).is_ok());
        assert!(Order::new(&Spec::Block { block: u64::MAX, window: u64::MAX }, 10, 0, 0).is_ok());
    }
}
