//! Balanced classes in a block order: the classes of a window have equally many samples.
//!
//! ```text
//! blocks, windows    as in the block order
//! window j           as many samples as it has records: the first of a mixture of its classes, of weight 1 each, with a seed of its own
//! ```
//!
//! The records of a window by class are a table. Few tables are kept, because readers are at adjacent
//! windows.

#![expect(clippy::indexing_slicing, reason = "classes, slots and their ends are those of one window")]

use super::block::BlockOrder;
use super::digest::digest;
use super::mixture::{CYCLE_STREAM, stream};
use super::prp::{Permutation, SMALL, absorb};
use super::subset::Subset;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::{Arc, Mutex};

const TAG: u64 = u64::from_be_bytes(*b"TFRDBAL1");

/// Number of windows whose tables are kept: those that are read, and those that are looked up ahead.
const TABLES: usize = 4;

/// The class of each record, for a block order with equal classes. Made by
/// [`balance`](crate::LoaderOptions::balance) of a loader with a block shuffle.
#[derive(Clone)]
pub struct Classes(Arc<ClassNumbers>);

struct ClassNumbers {
    of: Vec<u32>,
    count: u32,
    digest: u128,
}

impl Classes {
    /// Numbers the classes of `n` records, which are disjoint. Returns the records that have one too, unless
    /// all have.
    ///
    /// # Errors
    /// [`OrderError::Refused`](crate::error::OrderError::Refused) for 2^32 - 1 records or more, and for
    /// classes of other records.
    pub(crate) fn new(n: u64, classes: &[Subset]) -> Result<(Classes, Option<Subset>)> {
        const NONE: u32 = u32::MAX;
        if n >= u64::from(NONE) {
            let reason = format!("expected at most 2^32 - 2 records in balanced blocks, found {n}");
            return Err(Error::order(reason));
        }
        if let Some(class) = classes.iter().find(|class| class.end() > n) {
            let reason = format!("expected classes of records below {n}, found record {}", class.end() - 1);
            return Err(Error::order(reason));
        }
        let mut of = vec![NONE; n as usize];
        for (number, class) in (0..).zip(classes) {
            class.iter().for_each(|record| of[record as usize] = number);
        }
        let with_class = of.iter().filter(|class| **class != NONE).count();
        let subset =
            (with_class < of.len()).then(|| Subset::from_fn(n, |record| of[record as usize] != NONE));
        of.retain(|class| *class != NONE);
        let digest = digest(of.iter().map(|class| u64::from(*class)));
        Ok((Classes(Arc::new(ClassNumbers { of, count: classes.len() as u32, digest })), subset))
    }

    /// Returns the number of records that have a class.
    pub(super) fn records(&self) -> u64 {
        self.0.of.len() as u64
    }

    /// Returns the XXH3-128 of the records' class numbers, which represents them in a state.
    pub(super) fn digest(&self) -> u128 {
        self.0.digest
    }

    /// Returns how many of the blocks have a record of the class that is in the fewest blocks.
    pub(crate) fn fewest_blocks(&self, block: u64) -> u64 {
        let mut blocks = vec![(0u64, u64::MAX); self.0.count as usize];
        for (record, class) in (0..).zip(&self.0.of) {
            let (count, last) = &mut blocks[*class as usize];
            let number: u64 = record / block;
            if *last != number {
                (*count, *last) = (*count + 1, number);
            }
        }
        blocks.iter().map(|(count, _)| *count).min().unwrap_or(0)
    }
}

/// Classes are equal if their lists are.
impl PartialEq for Classes {
    fn eq(&self, other: &Classes) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.of == other.0.of
    }
}

impl Eq for Classes {}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classes").field("count", &self.0.count).finish_non_exhaustive()
    }
}

/// The classes of a source, and the tables of the windows that were used last.
pub(super) struct BalancedBlocks {
    pub(super) classes: Classes,
    pub(super) block: u64,
    pub(super) window: u64,
    tables: Mutex<Vec<Arc<ClassWindow>>>,
}

/// The records of one window by class.
struct ClassWindow {
    /// The seed, the epoch, the stream and the number of the window.
    of: [u64; 4],
    /// The seed of its mixture.
    seed: u64,
    /// Its first position, and the number of its records.
    start: u64,
    len: u64,
    /// Places of its records, class after class, and the end of each class in this list.
    places: Vec<u32>,
    ends: Vec<u32>,
}

impl BalancedBlocks {
    pub(super) fn new(classes: Classes, block: u64, window: u64) -> BalancedBlocks {
        BalancedBlocks { classes, block, window, tables: Mutex::default() }
    }

    /// Fills `out` with the records at the positions from `start` on.
    pub(super) fn fill(&self, blocks: &BlockOrder, start: u64, mut out: &mut [u64]) {
        let mut position = start;
        while !out.is_empty() {
            let window = self.window(blocks, blocks.window_of(position));
            let inside = position - window.start;
            let here = (window.len - inside).min(out.len() as u64) as usize;
            let (now, later) = out.split_at_mut(here);
            window.fill(inside, now);
            now.iter_mut().for_each(|place| *place = blocks.record_at(window.of[3], *place));
            (position, out) = (position + here as u64, later);
        }
    }

    /// Calls `found` with each position of a record.
    pub(super) fn positions(&self, blocks: &BlockOrder, record: u64, mut found: impl FnMut(u64)) {
        let (number, place) = blocks.place_of(record);
        let window = self.window(blocks, number);
        let Some(at) = window.places.iter().position(|other| u64::from(*other) == place) else { return };
        let class = window.ends.partition_point(|end| *end as usize <= at);
        let members = window.members(class);
        let own = at as u64 - u64::from(window.ends[class] - members.len() as u32);
        let cycle_len = window.ends.len() as u64;
        let len = members.len() as u64;
        for pass in 0..window.len.div_ceil(cycle_len).div_ceil(len) {
            let cycle = pass * len + inverse(len, window.seed, pass, stream(class), own);
            let at = cycle * cycle_len + inverse(cycle_len, window.seed, cycle, CYCLE_STREAM, class as u64);
            if at < window.len {
                found(window.start + at);
            }
        }
    }

    /// Returns the table of a window. A forked child may find the tables locked forever.
    fn window(&self, blocks: &BlockOrder, number: u64) -> Arc<ClassWindow> {
        let [seed, epoch, stream] = blocks.key();
        let of = [seed, epoch, stream, number];
        if let Ok(tables) = self.tables.try_lock()
            && let Some(table) = tables.iter().find(|table| table.of == of)
        {
            return Arc::clone(table);
        }
        let made = Arc::new(self.make(blocks, of));
        if let Ok(mut tables) = self.tables.try_lock() {
            if tables.len() == TABLES {
                tables.remove(0);
            }
            tables.push(Arc::clone(&made));
        }
        made
    }

    fn make(&self, blocks: &BlockOrder, of: [u64; 4]) -> ClassWindow {
        let [seed, epoch, stream, number] = of;
        let mut ends = vec![0; self.classes.0.count as usize];
        let mut len = 0;
        for records in blocks.blocks_of(number) {
            len += records.end - records.start;
            let classes = &self.classes.0.of[records.start as usize..records.end as usize];
            classes.iter().for_each(|class| ends[*class as usize] += 1);
        }
        let mut end = 0u32;
        for count in &mut ends {
            // The start of the class, until its records are placed.
            (end, *count) = (end + *count, end);
        }
        let mut places = vec![0; len as usize];
        let mut place = 0;
        for records in blocks.blocks_of(number) {
            for class in &self.classes.0.of[records.start as usize..records.end as usize] {
                let next = &mut ends[*class as usize];
                places[*next as usize] = place;
                (*next, place) = (*next + 1, place + 1);
            }
        }
        // A class without a record ends where the one before it does.
        ends.dedup();
        if ends.first() == Some(&0) {
            ends.remove(0);
        }
        ClassWindow {
            of,
            seed: absorb([TAG, seed, epoch, stream, number]),
            start: blocks.start(number),
            len,
            places,
            ends,
        }
    }
}

impl ClassWindow {
    /// Returns the places of the records of a class.
    fn members(&self, class: usize) -> &[u32] {
        let start = class.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[start as usize..self.ends[class] as usize]
    }

    /// Fills `out` with the places of the samples from `start` on.
    fn fill(&self, start: u64, out: &mut [u64]) {
        let cycle_len = self.ends.len() as u64;
        let mut numbers = [0; SMALL];
        let mut known = None;
        for (at, out) in (start..).zip(out) {
            let cycle = at / cycle_len;
            let inside = at % cycle_len;
            let class = if cycle_len > SMALL as u64 {
                Permutation::new(cycle_len, self.seed, cycle, CYCLE_STREAM).get(inside)
            } else {
                let numbers = &mut numbers[..cycle_len as usize];
                if known.replace(cycle) != Some(cycle) {
                    Permutation::new(cycle_len, self.seed, cycle, CYCLE_STREAM).fill_small(numbers);
                }
                numbers[inside as usize]
            } as usize;
            let members = self.members(class);
            let len = members.len() as u64;
            let order = Permutation::new(len, self.seed, cycle / len, stream(class));
            let own = if len == 1 { 0 } else { order.get(cycle % len) };
            *out = u64::from(members[own as usize]);
        }
    }
}

fn inverse(n: u64, seed: u64, epoch: u64, stream: u64, number: u64) -> u64 {
    if n == 1 { 0 } else { Permutation::new(n, seed, epoch, stream).inverse(number) }
}
