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

/// What a block holds unless told otherwise: enough for a disk to be read at its speed.
const BLOCK_BYTES: u64 = 1 << 20;
/// The least number of blocks in a window that is chosen for the caller.
const MIN_WINDOW: u64 = 64;

/// Offsets that are kept on the stack while the blocks are looked up.
const BATCH: usize = 64;

/// A shuffle that reads in blocks: records come from `window` blocks at a time, and each block is read once an epoch.
///
/// For data on slow disks or behind a network, where a global shuffle would pay a seek for every record. About two windows
/// are in memory: one that is used up, one that is being read. How much worse than a global shuffle it can be is a number,
/// [`deff`].
///
/// ```
/// use tfseek::order::BlockOrder;
/// let order = BlockOrder::new(1003, 16, 4, 9, 0)?;
/// let first: Vec<u64> = (0..4).map(|t| order.get(t)).collect();
/// assert_eq!(first, [322, 653, 335, 647]);
/// assert_eq!(order.inverse(335), 2);
/// // All of them from the four blocks of the first window.
/// let blocks: Vec<u64> = order.blocks(0).collect();
/// assert!(first.iter().all(|record| blocks.contains(&(record / 16))));
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockOrder {
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

/// One window, ready to be looked into.
struct Window {
    start: u64,
    len: u64,
    /// Its first place among the permuted blocks.
    first: u64,
    /// The place in it of the last block, if that is short and stands here.
    short: Option<u64>,
    permuted: Permutation,
}

impl BlockOrder {
    /// The order of `n` records in blocks of `block` and windows of `window` blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order): a size of 0, or more than 2^32 windows.
    pub fn new(n: u64, block: u64, window: u64, seed: u64, epoch: u64) -> Result<BlockOrder> {
        check(n, block, window)?;
        Ok(BlockOrder::checked(n, block, window, seed, epoch, 0))
    }

    /// The same for sizes that [`check`] has seen, with all streams moved by `stream`: a component's.
    pub(super) fn checked(n: u64, block: u64, window: u64, seed: u64, epoch: u64, stream: u64) -> BlockOrder {
        let blocks = n.div_ceil(block);
        let permuted = Permutation::new(blocks, seed, epoch, stream + BLOCKS);
        let (last, last_at) = match blocks.checked_sub(1) {
            Some(others) => (n - others * block, permuted.inverse(others)),
            None => (0, 0),
        };
        let window = window.min(blocks.max(1));
        BlockOrder { n, block, window, blocks, last, last_at, permuted, seed, epoch, stream }
    }

    /// How many records there are.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks it of an order")]
    pub fn len(&self) -> u64 {
        self.n
    }

    /// The record at a position.
    ///
    /// # Panics
    /// If `position` is not below [`len`](BlockOrder::len).
    pub fn get(&self, position: u64) -> u64 {
        let window = self.window(self.window_of(position));
        let (slot, offset) = self.split(&window, window.permuted.get(position - window.start));
        self.permuted.get(window.first + slot) * self.block + offset
    }

    /// The position of a record: `inverse(get(t)) == t`.
    ///
    /// # Panics
    /// If `record` is not below [`len`](BlockOrder::len).
    pub fn inverse(&self, record: u64) -> u64 {
        assert!(record < self.n, "no record {record}, there are {}", self.n);
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
    pub fn fill(&self, start: u64, mut out: &mut [u64]) {
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

    /// How many windows there are.
    pub fn windows(&self) -> u64 {
        self.blocks.div_ceil(self.window)
    }

    /// The window that a position lies in.
    ///
    /// # Panics
    /// If `position` is not below [`len`](BlockOrder::len).
    pub fn window_of(&self, position: u64) -> u64 {
        assert!(position < self.n, "no position {position}, there are {}", self.n);
        // A product beyond u64 is one window of everything.
        let j = position / self.window.saturating_mul(self.block);
        if j + 1 < self.windows() && position >= self.start(j + 1) { j + 1 } else { j }
    }

    /// The first position of a window; that of the window behind the last one is [`len`](BlockOrder::len).
    ///
    /// # Panics
    /// If there are fewer windows.
    pub fn start(&self, window: u64) -> u64 {
        assert!(window <= self.windows(), "no window {window}, there are {}", self.windows());
        let before = window.saturating_mul(self.window).min(self.blocks);
        if before == self.blocks {
            // Before the product: it may be beyond u64 by less than a block.
            return self.n;
        }
        before * self.block - if self.last_at < before { self.block - self.last } else { 0 }
    }

    /// The blocks of a window. Block k is the records from `k * block` on.
    ///
    /// # Panics
    /// If there is no such window.
    pub fn blocks(&self, window: u64) -> impl Iterator<Item = u64> + '_ {
        assert!(window < self.windows(), "no window {window}, there are {}", self.windows());
        let first = window * self.window;
        (first..self.blocks.min(first.saturating_add(self.window))).map(|place| self.permuted.get(place))
    }

    fn window(&self, j: u64) -> Window {
        let (start, end, first) = (self.start(j), self.start(j + 1), j * self.window);
        Window {
            start,
            len: end - start,
            first,
            short: self.last_at.checked_sub(first).filter(|slot| *slot < self.window),
            permuted: Permutation::new(end - start, self.seed, self.epoch, self.stream + WINDOWS + j),
        }
    }

    /// A number below a window's length as a slot and an offset in its block.
    fn split(&self, window: &Window, u: u64) -> (u64, u64) {
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

/// What [`BlockOrder::new`] refuses.
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

/// What a block order costs in quality: the variance of a batch's mean over that of a batch drawn at random, where two
/// records of one block correlate by `rho`. 1 + rho (B - 1) / W.
///
/// With rho = 1, the records of a block being all alike, it is the worst case; 1 is a perfect shuffle.
pub fn deff(rho: f64, batch: u64, window: u64) -> f64 {
    1.0 + rho * batch.saturating_sub(1) as f64 / window.max(1) as f64
}

/// The block that is taken where nobody says: about 1 MiB of records, and at least one.
///
/// `stored_bytes` are the bytes of all `n` records on disk. On object stores, network and spinning disks 4 MiB are
/// better: [`block_of`].
pub fn default_block(n: u64, stored_bytes: u64) -> u64 {
    block_of(BLOCK_BYTES, n, stored_bytes)
}

/// The block of about `bytes` bytes.
pub fn block_of(bytes: u64, n: u64, stored_bytes: u64) -> u64 {
    let block = u128::from(bytes) * u128::from(n) / u128::from(stored_bytes.max(1));
    u64::try_from(block).unwrap_or(u64::MAX).max(1)
}

/// The window that is taken where nobody says: four blocks for each sample of a global batch, so that [`deff`] stays below
/// 1.25, and at least 64.
///
/// It looks at the batch alone, never at the machine: two ranks must agree.
pub fn default_window(global_batch: u64) -> u64 {
    global_batch.saturating_mul(4).max(MIN_WINDOW)
}

/// Whether two windows fit into memory.
///
/// # Errors
/// [`OrderError::Memory`], which names the largest window that would. The window is never made smaller in silence: it is
/// part of what the order is.
pub fn check_memory(n: u64, stored_bytes: u64, block: u64, window: u64, budget: u64) -> Result<()> {
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
