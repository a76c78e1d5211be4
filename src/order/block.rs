//! The two-level block order: blocks of neighbours are permuted, and the records of W blocks at a time.
//!
//! ```text
//! records    | block 0 | block 1 | .. | last, short |       b records each, shard edges ignored
//! blocks     permuted by PRP1, stream 1
//! windows    W blocks of that permutation each, the last may have fewer
//! in one     its m records permuted by PRP1, stream 2 + window
//! ```
//!
//! The short block stands in some window in some *slot*; the windows behind it begin that much earlier.

use super::prp::Permutation;
use crate::error::{OrderError, Result};

/// Streams of the blocks' permutation and of the first window's.
const BLOCKS: u64 = 1;
const WINDOWS: u64 = 2;
/// Further windows would reach into other streams.
const MAX_WINDOWS: u64 = 1 << 32;

/// Bytes of a block by default: enough for a disk to be read at its speed.
const BLOCK_BYTES: u64 = 1 << 20;
/// The least number of blocks in a window by default.
const MIN_WINDOW: u64 = 64;

/// Offsets that are kept on the stack while the blocks are looked up.
const BATCH: usize = 64;

/// A shuffle that reads in blocks: records come from `window` blocks at a time, and each block is read once an epoch.
#[derive(Clone, Debug)]
pub(super) struct BlockOrder {
    n: u64,
    block: u64,
    /// Blocks of a window, at most all of them.
    window: u64,
    blocks: u64,
    /// Records of the last block.
    last: u64,
    /// Where the permutation puts the last block.
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
    /// Its first place among the permuted blocks.
    first: u64,
    /// The place in it of the last block, if that is short and stands here.
    short: Option<u64>,
    permuted: Permutation,
}

impl BlockOrder {
    /// The order of `n` records in blocks of `block` and windows of `window` blocks, which [`check`] has accepted. `stream` is
    /// added to all streams: a component's, or 0.
    pub(super) fn new(n: u64, block: u64, window: u64, seed: u64, epoch: u64, stream: u64) -> BlockOrder {
        let blocks = n.div_ceil(block);
        let permuted = Permutation::new(blocks, seed, epoch, stream + BLOCKS);
        let (last, last_at) = match blocks.checked_sub(1) {
            Some(others) => (n - others * block, permuted.inverse(others)),
            None => (0, 0),
        };
        let window = window.min(blocks.max(1));
        BlockOrder { n, block, window, blocks, last, last_at, permuted, seed, epoch, stream }
    }

    /// The record at a position.
    ///
    /// # Panics
    /// If there is no such position.
    // Never inline: the other kinds of order would save and restore its registers too.
    #[inline(never)]
    pub(super) fn get(&self, position: u64) -> u64 {
        let window = self.window(self.window_of(position));
        let (slot, offset) = self.split(&window, window.permuted.get(position - window.start));
        self.permuted.get(window.first + slot) * self.block + offset
    }

    /// The position of a record: `inverse(get(t)) == t`.
    ///
    /// # Panics
    /// If there is no such record.
    // Never inline, as `get`.
    #[inline(never)]
    pub(super) fn inverse(&self, record: u64) -> u64 {
        assert!(record < self.n, "no record {record}: there are {}", self.n);
        let place = self.permuted.inverse(record / self.block);
        let window = self.window(place / self.window);
        let slot = place - window.first;
        let missing = match window.short {
            Some(short) if slot > short => self.block - self.last,
            _ => 0,
        };
        window.start + window.permuted.inverse(slot * self.block - missing + record % self.block)
    }

    /// The records at the positions from `start` on: the keys of a window are made once.
    ///
    /// # Panics
    /// If there are fewer than `start + out.len()` positions.
    pub(super) fn fill(&self, start: u64, mut out: &mut [u64]) {
        let mut position = start;
        while !out.is_empty() {
            let window = self.window(self.window_of(position));
            let inside = position - window.start;
            let here = usize::try_from(window.len - inside).unwrap_or(usize::MAX).min(out.len());
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

    /// Number of windows.
    fn windows(&self) -> u64 {
        self.blocks.div_ceil(self.window)
    }

    /// The window that a position lies in.
    ///
    /// # Panics
    /// If there is no such position.
    fn window_of(&self, position: u64) -> u64 {
        assert!(position < self.n, "no position {position}: there are {}", self.n);
        // A product beyond u64 is one window of everything.
        let j = position / self.window.saturating_mul(self.block);
        if j + 1 < self.windows() && position >= self.start(j + 1) { j + 1 } else { j }
    }

    /// The first position of a window; the number of positions for the window after the last one.
    ///
    /// # Panics
    /// If there are fewer windows.
    fn start(&self, window: u64) -> u64 {
        assert!(window <= self.windows(), "no window {window}: there are {}", self.windows());
        let before = window.saturating_mul(self.window).min(self.blocks);
        if before == self.blocks {
            // Before the product: it may be beyond u64 by less than a block.
            return self.n;
        }
        before * self.block - if self.last_at < before { self.block - self.last } else { 0 }
    }

    fn window(&self, j: u64) -> BlockWindow {
        let (start, end, first) = (self.start(j), self.start(j + 1), j * self.window);
        BlockWindow {
            start,
            len: end - start,
            first,
            short: self.last_at.checked_sub(first).filter(|slot| *slot < self.window),
            permuted: Permutation::new(end - start, self.seed, self.epoch, self.stream + WINDOWS + j),
        }
    }

    /// A number below a window's length as a slot and an offset in its block.
    fn split(&self, window: &BlockWindow, u: u64) -> (u64, u64) {
        let (slot, offset) = (u / self.block, u % self.block);
        match window.short {
            // The short block stands at `short * block`, and what follows begins `last` further on.
            Some(short) if slot >= short => match (u - short * self.block).checked_sub(self.last) {
                None => (short, offset),
                Some(behind) => (short + 1 + behind / self.block, behind % self.block),
            },
            _ => (slot, offset),
        }
    }
}

/// Refuses sizes of 0, and more windows than have streams.
pub(super) fn check(n: u64, block: u64, window: u64) -> Result<()> {
    if block == 0 || window == 0 {
        return Err(OrderError::Refused { reason: "blocks and windows of 0 make no order".into() }.into());
    }
    let windows = n.div_ceil(block).div_ceil(window);
    if windows > MAX_WINDOWS {
        return Err(OrderError::Windows { found: windows, limit: MAX_WINDOWS }.into());
    }
    Ok(())
}

/// The design effect of a block order: the variance of a batch's mean over that of a batch drawn at random, where two
/// records of one block correlate by `rho`. 1 + rho (B - 1) / W.
///
/// 1 is a perfect shuffle. With rho = 1, where the records of a block are all alike, it is the worst case.
pub(crate) fn deff(rho: f64, batch: u64, window: u64) -> f64 {
    1.0 + rho * batch.saturating_sub(1) as f64 / window.max(1) as f64
}

/// The default block: about 1 MiB of records, and at least one. `stored_bytes` are the bytes of all `n` records on disk.
pub(super) fn default_block(n: u64, stored_bytes: u64) -> u64 {
    let block = u128::from(BLOCK_BYTES) * u128::from(n) / u128::from(stored_bytes.max(1));
    u64::try_from(block).unwrap_or(u64::MAX).max(1)
}

/// The default window: four blocks for each sample of a global batch, so that [`deff`] stays below 1.25, and at least 64.
///
/// It depends on the batch alone, never on the machine: two ranks must agree.
pub(super) fn default_window(global_batch: u64) -> u64 {
    global_batch.saturating_mul(4).max(MIN_WINDOW)
}

/// Checks that two windows fit into memory.
///
/// # Errors
/// [`OrderError::Memory`], which names the largest window that would. The window is never made smaller in silence: it is
/// part of what the order is.
pub(crate) fn check_memory(n: u64, stored_bytes: u64, block: u64, window: u64, budget: u64) -> Result<()> {
    let records = (u128::from(block) * u128::from(window)).saturating_mul(2).min(u128::from(n));
    let bytes_of = |records: u128| (records * u128::from(stored_bytes)).div_ceil(u128::from(n.max(1)));
    // n and stored_bytes are below 2^64, and so the product is a u128.
    let need = bytes_of(records);
    if need <= u128::from(budget) {
        return Ok(());
    }
    // The data set does not fit, so neither n nor its bytes are 0.
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
        /// The blocks of a window. Block k is the records from `k * block` on.
        fn blocks(&self, window: u64) -> Vec<u64> {
            let first = window * self.window;
            let end = self.blocks.min(first.saturating_add(self.window));
            (first..end).map(|place| self.permuted.get(place)).collect()
        }
    }

    /// Each window holds the records of its blocks and no other.
    #[test]
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
        let nothing = BlockOrder::new(0, 4, 4, 0, 0, 0);
        assert_eq!((nothing.windows(), nothing.start(0)), (0, 0));
    }

    /// Sizes of all magnitudes: a position lies in its window.
    #[test]
    fn windows_of_any_size() {
        let size = |bits: u32, i: u64| (crate::order::prp::mix(i) >> (64 - bits)).max(1);
        for bits in 1..=64 {
            for i in 0..200 {
                let (n, b, w) =
                    (size(bits, i), size(1 + i as u32 % 64, i + 1000), size(1 + bits / 2, i + 2000));
                if check(n, b, w).is_ok() {
                    let (order, t) = (BlockOrder::new(n, b, w, i, 1, 0), size(64, i + 3000) % n);
                    let j = order.window_of(t);
                    assert!(order.start(j) <= t && t < order.start(j + 1), "{n} {b} {w} {t}");
                }
            }
        }
    }

    /// Whatever batch is read: its blocks are those of two windows at most, so that these are all that memory holds.
    #[test]
    fn two_windows_are_enough() {
        let (n, b, w) = (10_007, 32, 8);
        let block = BlockOrder::new(n, b, w, 1, 2, 0);
        let order: Vec<u64> = (0..n).map(|t| block.get(t)).collect();
        for (start, batch) in (0..n).step_by(61).flat_map(|start| [1, 64, 200].map(|batch| (start, batch))) {
            let end = n.min(start + batch);
            let mut blocks: Vec<u64> = order[start as usize..end as usize].iter().map(|r| r / b).collect();
            blocks.sort();
            blocks.dedup();
            let windows = block.window_of(start)..=block.window_of(end - 1);
            assert!(windows.clone().count() <= 2);
            let held: Vec<u64> = windows.flat_map(|j| block.blocks(j)).collect();
            assert!(held.len() as u64 <= 2 * w && blocks.iter().all(|k| held.contains(k)));
        }
    }

    #[test]
    fn defaults_and_memory() {
        let (n, stored) = (1_281_167, 144_000_000_000);
        let refused = |e: crate::Error| match e.into_kind() {
            ErrorKind::Order(e) => e,
            other => panic!("{other:?}"),
        };
        assert_eq!((default_window(1), default_window(u64::MAX)), (64, u64::MAX));
        assert_eq!(
            (default_block(10, 0), default_block(10, u64::MAX), default_block(0, 0)),
            (10 << 20, 1, 1)
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
        assert!(tiny.to_string().contains("make blocks smaller"), "{tiny}");
        // What is larger than everything holds everything, and no more.
        assert!(check_memory(10, 1000, u64::MAX, u64::MAX, 1000).is_ok());
        assert!(check_memory(u64::MAX, u64::MAX, u64::MAX, u64::MAX, 1000).is_err());
        assert!(check_memory(0, 0, 1, 1, 0).is_ok());
        assert!(Order::new(&Spec::Block { block: u64::MAX, window: u64::MAX }, 10, 0, 0).is_ok());
    }
}
