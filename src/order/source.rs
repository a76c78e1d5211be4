//! One source of records: a validated spec without mixtures, for all records or for one component, and its
//! keys for one epoch.

use super::block::{self, BlockOrder};
use super::buckets::BucketOrder;
use super::classes::BalancedBlocks;
use super::prp::Permutation;
use super::spec::Spec;
use super::subset::Subset;
use super::weighted::Weights;
use crate::error::{Count, Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Stream of a permutation of all records or of a filter's survivors, and of weighted draws.
const GLOBAL_STREAM: u64 = 0;

/// One source of records, shared by all epochs.
#[derive(Clone, Debug)]
pub(super) struct OrderSource {
    /// Record number of its first record in the dataset.
    pub(super) first: u64,
    /// Number of its positions per epoch.
    pub(super) len: u64,
    pub(super) filter: Option<Subset>,
    pub(super) kind: SourceKind,
}

/// The kind of order of a source.
#[derive(Clone, Debug)]
pub(super) enum SourceKind {
    Sequential,
    Global,
    Block { block: u64, window: u64 },
    Weighted(Weights),
    Buckets(BucketOrder),
    Balanced(Arc<BalancedBlocks>),
}

/// The key of a source in one epoch.
#[derive(Clone, Debug)]
pub(super) enum SourceKey {
    Sequential,
    Global(Permutation),
    Block(BlockOrder),
    /// Start value of the draws.
    Weighted(u64),
    /// A permutation per bucket, or none for stored order.
    Buckets(Vec<Permutation>),
    Balanced(BlockOrder),
}

impl OrderSource {
    /// Creates the source of a spec over `records`.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if the spec does not match the number of records, is
    /// nested, or has invalid block sizes.
    pub(super) fn new(spec: &Spec, records: Range<u64>) -> Result<OrderSource> {
        let n = records.end - records.start;
        let (filter, spec) = match spec {
            Spec::Filtered { subset, order } => (Some(subset.clone()), &**order),
            spec => (None, spec),
        };
        if let Some(filter) = filter.as_ref().filter(|filter| filter.end() > n) {
            let reason = format!("expected a filter of records below {n}, found record {}", filter.end() - 1);
            return Err(Error::order(reason));
        }
        let len = filter.as_ref().map_or(n, Subset::len);
        let kind = match spec {
            Spec::Sequential => SourceKind::Sequential,
            Spec::Global => SourceKind::Global,
            &Spec::Block { block, window } => {
                block::check(len, block, window)?;
                SourceKind::Block { block, window }
            }
            Spec::Weighted(weights) if weights.len() == len => SourceKind::Weighted(weights.clone()),
            Spec::Weighted(weights) => {
                let reason = format!("expected {len} weights, one per record, found {}", weights.len());
                return Err(Error::order(reason));
            }
            Spec::Buckets(buckets) => SourceKind::Buckets(BucketOrder::new(buckets, len)?),
            Spec::BalancedBlock { classes, block, window } => {
                block::check(len, *block, *window)?;
                if classes.records() != len {
                    let reason =
                        format!("expected the classes of {len} records, found {}", classes.records());
                    return Err(Error::order(reason));
                }
                SourceKind::Balanced(Arc::new(BalancedBlocks::new(classes.clone(), *block, *window)))
            }
            Spec::Filtered { .. } | Spec::Mix(_) => {
                let reason = "a filter or a component must have a plain order: no mixture, no second filter";
                return Err(Error::order(reason));
            }
        };
        Ok(OrderSource { first: records.start, len, filter, kind })
    }

    /// Creates the source of a component of a mixture.
    pub(super) fn component(spec: &Spec, records: Range<u64>) -> Result<OrderSource> {
        let source = OrderSource::new(spec, records)?;
        if matches!(source.kind, SourceKind::Buckets(_) | SourceKind::Balanced(_)) {
            return Err(Error::order("a component must have a plain order: no buckets, no balanced blocks"));
        }
        Ok(source)
    }

    /// Returns the key of an epoch. `stream` is added to all streams.
    pub(super) fn key(&self, seed: u64, epoch: u64, stream: u64) -> SourceKey {
        match &self.kind {
            SourceKind::Sequential => SourceKey::Sequential,
            SourceKind::Global => {
                SourceKey::Global(Permutation::new(self.len, seed, epoch, stream + GLOBAL_STREAM))
            }
            &SourceKind::Block { block, window } => {
                SourceKey::Block(BlockOrder::new(self.len, block, window, seed, epoch, stream))
            }
            SourceKind::Weighted(weights) => {
                SourceKey::Weighted(weights.start(seed, epoch, stream + GLOBAL_STREAM))
            }
            // Buckets are never a component, which other streams would belong to.
            SourceKind::Buckets(buckets) => SourceKey::Buckets(buckets.key(seed, epoch)),
            SourceKind::Balanced(balanced) => {
                let block = balanced.block;
                let window = balanced.window;
                SourceKey::Balanced(BlockOrder::new(self.len, block, window, seed, epoch, stream))
            }
        }
    }

    /// Returns the record at a position below `len`.
    pub(super) fn get(&self, key: &SourceKey, position: u64) -> u64 {
        self.record(match key {
            SourceKey::Sequential => position,
            SourceKey::Global(order) => order.get(position),
            SourceKey::Block(order) => order.get(position),
            SourceKey::Weighted(start) => self.draw(*start, position),
            SourceKey::Buckets(key) => self.buckets().map_or(position, |buckets| buckets.get(key, position)),
            SourceKey::Balanced(blocks) => {
                let mut record = [position];
                self.fill_balanced(blocks, position, &mut record);
                let [record] = record;
                record
            }
        })
    }

    /// Fills `out` with the records at the positions from `start` on. All positions must be below `len`.
    pub(super) fn fill(&self, key: &SourceKey, start: u64, out: &mut [u64]) {
        match key {
            SourceKey::Global(order) => order.fill(start, out),
            SourceKey::Block(order) => order.fill(start, out),
            SourceKey::Sequential => (start..).zip(&mut *out).for_each(|(t, out)| *out = t),
            SourceKey::Weighted(first) => {
                (start..).zip(&mut *out).for_each(|(t, out)| *out = self.draw(*first, t))
            }
            SourceKey::Buckets(key) => {
                if let Some(buckets) = self.buckets() {
                    buckets.fill(key, start, out);
                }
            }
            SourceKey::Balanced(blocks) => self.fill_balanced(blocks, start, out),
        }
        if self.first != 0 || self.filter.is_some() {
            out.iter_mut().for_each(|out| *out = self.record(*out));
        }
    }

    /// Returns the position of a record, or `None` if it has no position or may have several.
    pub(super) fn inverse(&self, key: &SourceKey, record: u64) -> Option<u64> {
        let index = self.index_of(record)?;
        match key {
            SourceKey::Sequential => Some(index),
            SourceKey::Global(order) => Some(order.inverse(index)),
            SourceKey::Block(order) => Some(order.inverse(index)),
            SourceKey::Weighted(_) | SourceKey::Balanced(_) => None,
            SourceKey::Buckets(key) => self.buckets()?.inverse(key, index),
        }
    }

    /// Calls `found` with each position of a record.
    pub(super) fn positions(&self, key: &SourceKey, record: u64, found: impl FnMut(u64)) {
        match key {
            SourceKey::Balanced(blocks) => {
                if let (SourceKind::Balanced(balanced), Some(index)) = (&self.kind, self.index_of(record)) {
                    balanced.positions(blocks, index, found);
                }
            }
            SourceKey::Weighted(start) => {
                let Some(index) = self.index_of(record) else { return };
                (0..self.len).filter(|t| self.draw(*start, *t) == index).for_each(found);
            }
            _ => self.inverse(key, record).into_iter().for_each(found),
        }
    }

    fn fill_balanced(&self, blocks: &BlockOrder, start: u64, out: &mut [u64]) {
        // Only `key` creates keys, so they have this kind.
        if let SourceKind::Balanced(balanced) = &self.kind {
            balanced.fill(blocks, start, out);
        }
    }

    /// Returns the buckets, if this is an order of buckets.
    pub(super) fn buckets(&self) -> Option<&BucketOrder> {
        match &self.kind {
            SourceKind::Buckets(buckets) => Some(buckets),
            _ => None,
        }
    }

    /// Fills `out` with the lengths of the rows at the positions from `start` on. `None` for an order without
    /// buckets.
    pub(super) fn fill_lengths(&self, key: &SourceKey, start: u64, out: &mut [u64]) -> Option<()> {
        match (&self.kind, key) {
            (SourceKind::Buckets(buckets), SourceKey::Buckets(key)) => {
                buckets.fill_lengths(key, start, out);
                Some(())
            }
            _ => None,
        }
    }

    fn draw(&self, start: u64, t: u64) -> u64 {
        match &self.kind {
            SourceKind::Weighted(weights) => weights.draw(start, t),
            // Not reached: only `key` creates keys, and a weighted key is used with its own source. `t` is a
            // valid index anyway.
            _ => t,
        }
    }

    /// Returns the index of a record among the records of this source, if it is one of them.
    fn index_of(&self, record: u64) -> Option<u64> {
        let record = record.checked_sub(self.first)?;
        match &self.filter {
            Some(filter) => filter.rank(record),
            None => Some(record).filter(|record| *record < self.len),
        }
    }

    /// Returns the record number, in the dataset, of the record at `index` of this source.
    fn record(&self, index: u64) -> u64 {
        match &self.filter {
            // The index is below len, so the filter has this survivor.
            Some(filter) => self.first + filter.select(index).unwrap_or_default(),
            None => self.first + index,
        }
    }
}

impl OrderSource {
    /// Describes the source as text for users, for [`Order::describe`](super::Order::describe).
    pub(super) fn describe(&self, global_batch: Option<u64>) -> String {
        let records = match &self.filter {
            Some(filter) => format!("{} of a filter", Count(filter.len(), "record")),
            None => Count(self.len, "record").to_string(),
        };
        let deff = |window: Option<u64>| match (global_batch, window) {
            (None, _) => String::new(),
            (Some(batch), None) => format!("; deff(rho=1) = 1.00 for batches of {batch}"),
            (Some(batch), Some(window)) => {
                format!("; deff(rho=1) = {:.2} for batches of {batch}", block::deff(1.0, batch, window))
            }
        };
        let blocks = |classes: &str, block: u64, window: u64| {
            let blocks = self.len.div_ceil(block);
            let windows = self.len.div_ceil(block).div_ceil(window);
            let blocks = Count(blocks, "block");
            if windows <= 1 {
                let deff = deff(None);
                return format!(
                    "{records}{classes} in block order: {blocks} of {block} in one window (`global` shuffles equally well at lower \
                     cost){deff}"
                );
            }
            // One of several windows has fewer records than all.
            let of_window = block * window;
            let in_memory = of_window + of_window.min(self.len - of_window);
            let (window, in_memory, deff) =
                (Count(window, "block"), Count(in_memory, "record"), deff(Some(window)));
            format!(
                "{records}{classes} in block order: {blocks} of {block}, {windows} windows of {window}, at most {in_memory} in \
                 memory{deff}"
            )
        };
        match &self.kind {
            SourceKind::Sequential => format!("{records} in sequential order"),
            SourceKind::Global => format!("{records} in global order{}", deff(None)),
            SourceKind::Weighted(_) => format!("{records} drawn by weight, with replacement"),
            SourceKind::Buckets(buckets) => format!("{records} {}", buckets.describe()),
            &SourceKind::Block { block, window } => blocks("", block, window),
            SourceKind::Balanced(balanced) => blocks(" of balanced classes", balanced.block, balanced.window),
        }
    }
}
