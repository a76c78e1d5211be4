//! Whole blocks of objects, requested ahead of the batches that need them.
//!
//! A block order takes each record of a window from another block. So the blocks of a window are requested
//! whole, in the order in which they are needed, and kept until their last record was read. Batches are
//! looked up ahead of their plans, as far as the blocks of two windows. The ids of a later batch cost 20 ns
//! each, so this is cheap, and it serves mixes, ranks and resumes alike.

use super::plan::BatchTickets;
use crate::dataset::{OrderBlocks, ShardSet, prefetch};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Number of batches that are looked up for each plan, at most.
const STEPS: usize = 32;

/// The blocks of objects that batches will need.
pub(super) struct BlocksAhead {
    /// The batches that were not looked up.
    tickets: BatchTickets,
    /// Number of batches that were looked up, and of those that were planned.
    seen: u64,
    planned: u64,
    /// All batches were looked up.
    is_last: bool,
    blocks: HashMap<BlockKey, Block>,
    /// The blocks that are not requested yet, in the order of their need, each with the number of its first
    /// batch.
    waiting: VecDeque<(BlockKey, u64)>,
    /// Bytes of these, bytes of the requested ones, and the limit of the latter.
    waiting_bytes: u128,
    bytes: u128,
    room: u64,
    /// The blocks whose records of looked up batches were all read.
    ended: Vec<BlockKey>,
    ids: Vec<u64>,
}

/// The shard of a block, and its first record there.
type BlockKey = (u32, u64);

/// A block with records in batches that were looked up and not made.
struct Block {
    /// Its records in the shard, and their bytes.
    of: Range<u64>,
    bytes: u128,
    requested: bool,
    /// Number of those records.
    records: u64,
}

impl BlocksAhead {
    /// Begins before the first of these batches. Blocks of up to `room` bytes are requested and not read.
    pub(super) fn new(tickets: BatchTickets, room: u64) -> BlocksAhead {
        BlocksAhead {
            tickets,
            seen: 0,
            planned: 0,
            is_last: false,
            blocks: HashMap::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            bytes: 0,
            room,
            ended: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// Drops the blocks that have ended. Requests the blocks of the next planned batch, and of some later
    /// ones. `blocks_of` returns the blocks of a record.
    pub(super) fn plan(&mut self, set: &ShardSet, blocks_of: impl Fn(u64) -> Option<OrderBlocks>) {
        self.planned += 1;
        self.advance(set, blocks_of);
    }

    /// Looks up batches, drops the blocks that have ended, and requests others.
    fn advance(&mut self, set: &ShardSet, blocks_of: impl Fn(u64) -> Option<OrderBlocks>) {
        // The next batches may have more records of a block that seems to have ended.
        let ended = self.ended.iter().filter_map(|key| self.blocks.get(key)).map(|block| block.bytes);
        self.look_up(set, blocks_of, ended.sum());
        for key in self.ended.drain(..) {
            let is_ended = |block: &&Block| block.records == 0 && block.requested;
            if self.blocks.get(&key).filter(is_ended).is_some()
                && let Some(block) = self.blocks.remove(&key)
            {
                self.bytes -= block.bytes;
                prefetch::forget_block(set, (key.0, block.of));
            }
        }
        self.request(set);
    }

    /// Looks up batches until their blocks have more bytes than the limit and `ended`.
    fn look_up(&mut self, set: &ShardSet, blocks_of: impl Fn(u64) -> Option<OrderBlocks>, ended: u128) {
        for _ in 0..STEPS {
            let bytes = self.bytes + self.waiting_bytes;
            if self.seen >= self.planned && bytes >= u128::from(self.room) + ended {
                return;
            }
            // The plan returns the same error.
            let Some(Ok(ticket)) = self.tickets.next() else {
                self.is_last = true;
                return;
            };
            self.seen += 1;
            let mut ids = std::mem::take(&mut self.ids);
            ids.clear();
            if ticket.add_ids(&mut ids).is_ok() {
                for &id in &ids {
                    let block = blocks_of(id).and_then(|blocks| set.object_block(id, blocks));
                    if let Some(block) = block {
                        self.add(set, block);
                    }
                }
            }
            self.ids = ids;
        }
    }

    /// Counts a record of a block.
    fn add(&mut self, set: &ShardSet, (shard, records): (u32, Range<u64>)) {
        let key = (shard, records.start);
        let block = self.blocks.entry(key).or_insert_with(|| {
            // The read of the record returns the error.
            let bytes = u128::from(prefetch::block_bytes(set, (shard, records.clone())).unwrap_or(0));
            self.waiting.push_back((key, self.seen));
            self.waiting_bytes += bytes;
            Block { of: records, bytes, requested: false, records: 0 }
        });
        block.records += 1;
    }

    /// Requests blocks while there is room, and the blocks of planned batches.
    fn request(&mut self, set: &ShardSet) {
        while let Some(&(key, number)) = self.waiting.front() {
            if number > self.planned && self.bytes >= u128::from(self.room) {
                return;
            }
            self.waiting.pop_front();
            let Some(block) = self.blocks.get_mut(&key) else { continue };
            block.requested = true;
            self.waiting_bytes -= block.bytes;
            self.bytes += block.bytes;
            prefetch::request_block(set, (key.0, block.of.clone()), self.room);
        }
    }

    /// Notes the blocks of which these records were the last. They are dropped with the next plan, or at once
    /// if there is none.
    pub(super) fn made(
        &mut self,
        set: &ShardSet,
        ids: &[u64],
        blocks_of: impl Fn(u64) -> Option<OrderBlocks>,
    ) {
        for &id in ids {
            let Some((shard, records)) = blocks_of(id).and_then(|blocks| set.object_block(id, blocks)) else {
                continue;
            };
            let key = (shard, records.start);
            let Some(block) = self.blocks.get_mut(&key) else { continue };
            block.records = block.records.saturating_sub(1);
            if block.records == 0 {
                self.ended.push(key);
            }
        }
        if self.is_last && self.planned >= self.seen {
            self.advance(set, blocks_of);
        }
    }

    /// Drops all blocks.
    pub(super) fn end(self, set: &ShardSet) {
        let requested = self.blocks.into_iter().filter(|(_, block)| block.requested);
        requested.for_each(|((shard, _), block)| prefetch::forget_block(set, (shard, block.of)));
    }
}
