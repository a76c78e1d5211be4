//! One source of records: a validated spec without mixtures, for all records or for one component, and its
//! keys for one epoch.

use super::block::{self, BlockOrder};
use super::buckets::BucketOrder;
use super::classes::BalancedBlocks;
use super::prp::Permutation;
use super::spec::{Component, Spec};
use super::subset::Subset;
use super::weighted::Weights;
use crate::error::{Count, Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Stream of a permutation of all records or of a filter's survivors, and of weighted draws.
const GLOBAL_STREAM: u64 = 0;

/// One source of records, shared by all epochs.
pub(super) struct OrderSource {
    /// Record number of its first record in the dataset.
    pub(super) first: u64,
    /// Number of its positions per epoch.
    pub(super) len: u64,
    pub(super) filter: Option<Subset>,
    pub(super) kind: SourceKind,
}

/// The kind of order of a source.
pub(super) enum SourceKind {
    Sequential,
    Global,
    Block { block: u64, window: u64 },
    Weighted(Weights),
    Buckets(BucketOrder),
    Balanced(Arc<BalancedBlocks>),
}

/// The key of a source in one epoch.
#[derive(Clone)]
pub(super) enum SourceKey {
    Sequential,
    Global(Permutation),
    Block(BlockOrder),
    /// The weights, and the start value of the draws.
    Weighted(Weights, u64),
    /// The buckets, and a permutation for each, or none for stored order.
    Buckets(BucketOrder, Vec<Permutation>),
    Balanced(Arc<BalancedBlocks>, BlockOrder),
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

    /// Creates the source of a component of a mixture over `n` records.
    ///
    /// # Errors
    /// Errors of [`new`](OrderSource::new); [`ErrorKind::Order`](crate::ErrorKind::Order) for a range that
    /// ends before it begins or beyond the records, and for buckets and balanced blocks.
    pub(super) fn component(component: &Component, n: u64) -> Result<OrderSource> {
        let records = component.records.clone().unwrap_or(0..n);
        if records.start > records.end || records.end > n {
            return Err(Error::order(format!("expected records within 0..{n}, found {records:?}")));
        }
        let source = OrderSource::new(&component.order, records)?;
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
                let start = weights.start(seed, epoch, stream + GLOBAL_STREAM);
                SourceKey::Weighted(weights.clone(), start)
            }
            // Buckets are never a component, which other streams would belong to.
            SourceKind::Buckets(buckets) => SourceKey::Buckets(buckets.clone(), buckets.key(seed, epoch)),
            SourceKind::Balanced(balanced) => {
                let block = balanced.block;
                let window = balanced.window;
                let blocks = BlockOrder::new(self.len, block, window, seed, epoch, stream);
                SourceKey::Balanced(balanced.clone(), blocks)
            }
        }
    }

    /// Returns the record at a position below `len`.
    pub(super) fn get(&self, key: &SourceKey, position: u64) -> u64 {
        self.record(match key {
            SourceKey::Sequential => position,
            SourceKey::Global(order) => order.get(position),
            SourceKey::Block(order) => order.get(position),
            SourceKey::Weighted(weights, start) => weights.draw(*start, position),
            SourceKey::Buckets(buckets, key) => buckets.get(key, position),
            SourceKey::Balanced(balanced, blocks) => {
                let mut record = [position];
                balanced.fill(blocks, position, &mut record);
                let [record] = record;
                record
            }
        })
    }

    /// Fills `out` with the records at the positions from `start` on. All positions must be below `len`, and
    /// the source must be of all records: no component.
    pub(super) fn fill(&self, key: &SourceKey, start: u64, out: &mut [u64]) {
        match key {
            SourceKey::Global(order) => order.fill(start, out),
            SourceKey::Block(order) => order.fill(start, out),
            // The open range is second, so that it does not step beyond the last position.
            SourceKey::Sequential => out.iter_mut().zip(start..).for_each(|(out, t)| *out = t),
            SourceKey::Weighted(weights, first) => {
                (start..).zip(&mut *out).for_each(|(t, out)| *out = weights.draw(*first, t))
            }
            SourceKey::Buckets(buckets, key) => buckets.fill(key, start, out),
            SourceKey::Balanced(balanced, blocks) => balanced.fill(blocks, start, out),
        }
        if self.filter.is_some() {
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
            SourceKey::Weighted(..) | SourceKey::Balanced(..) => None,
            SourceKey::Buckets(buckets, key) => buckets.inverse(key, index),
        }
    }

    /// Calls `found` with each position of a record.
    pub(super) fn positions(&self, key: &SourceKey, record: u64, found: impl FnMut(u64)) {
        match key {
            SourceKey::Balanced(balanced, blocks) => {
                if let Some(index) = self.index_of(record) {
                    balanced.positions(blocks, index, found);
                }
            }
            SourceKey::Weighted(weights, start) => {
                let Some(index) = self.index_of(record) else { return };
                (0..self.len).filter(|t| weights.draw(*start, *t) == index).for_each(found);
            }
            _ => self.inverse(key, record).into_iter().for_each(found),
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
