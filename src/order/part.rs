//! One source of records, whole or a component: a spec without mixtures, checked; and what an epoch needs to look into it.

use super::block::{self, BlockOrder};
use super::prp::Permutation;
use super::spec::Spec;
use super::subset::Subset;
use super::weighted::Weights;
use crate::error::{OrderError, Result};
use std::ops::Range;

/// The stream of a permutation of everything, of a filter's survivors, and of weighted draws.
const GLOBAL: u64 = 0;

/// A source: the same for all epochs.
#[derive(Clone, Debug)]
pub(super) struct OrderPart {
    /// The number of its first record among all.
    pub(super) first: u64,
    /// Its positions in an epoch.
    pub(super) len: u64,
    pub(super) filter: Option<Subset>,
    pub(super) kind: Kind,
}

/// How a source is ordered.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Sequential,
    Global,
    Block { block: u64, window: u64 },
    Weighted(Weights),
}

/// What a source is looked into with in one epoch.
#[derive(Clone, Debug)]
pub(super) enum PartKey {
    Sequential,
    Global(Permutation),
    Block(BlockOrder),
    /// What the draws begin with.
    Weighted(u64),
}

impl OrderPart {
    /// The source that a spec describes over `records`.
    pub(super) fn new(spec: &Spec, records: Range<u64>) -> Result<OrderPart> {
        let n = records.end - records.start;
        let (filter, spec) = match spec {
            Spec::Filtered { subset, order } => (Some(subset.clone()), &**order),
            spec => (None, spec),
        };
        if let Some(filter) = filter.as_ref().filter(|filter| filter.end() > n) {
            let reason = format!("a filter with record {}, of {n} records", filter.end() - 1);
            return Err(OrderError::Refused { reason: reason.into() }.into());
        }
        let len = filter.as_ref().map_or(n, Subset::len);
        let kind = match spec {
            Spec::Sequential => Kind::Sequential,
            Spec::Global => Kind::Global,
            &Spec::Block { block, window } => {
                block::check(len, block, window)?;
                Kind::Block { block, window }
            }
            Spec::Weighted(weights) if weights.len() == len => Kind::Weighted(weights.clone()),
            Spec::Weighted(weights) => {
                let reason = format!("{} weights for {len} records", weights.len());
                return Err(OrderError::Refused { reason: reason.into() }.into());
            }
            Spec::Filtered { .. } | Spec::Mixture(_) => {
                let reason = "a filter or a component holds a plain order: no mixture, no second filter";
                return Err(OrderError::Refused { reason: reason.into() }.into());
            }
        };
        Ok(OrderPart { first: records.start, len, filter, kind })
    }

    /// The key of an epoch, all streams moved by `stream`.
    pub(super) fn key(&self, seed: u64, epoch: u64, stream: u64) -> PartKey {
        match &self.kind {
            Kind::Sequential => PartKey::Sequential,
            Kind::Global => PartKey::Global(Permutation::new(self.len, seed, epoch, stream + GLOBAL)),
            &Kind::Block { block, window } => {
                PartKey::Block(BlockOrder::new(self.len, block, window, seed, epoch, stream))
            }
            Kind::Weighted(weights) => PartKey::Weighted(weights.start(seed, epoch, stream + GLOBAL)),
        }
    }

    /// The record at a position, which is below `len`.
    pub(super) fn get(&self, key: &PartKey, position: u64) -> u64 {
        self.record(match key {
            PartKey::Sequential => position,
            PartKey::Global(order) => order.get(position),
            PartKey::Block(order) => order.get(position),
            PartKey::Weighted(start) => self.draw(*start, position),
        })
    }

    /// The records at the positions from `start` on, all below `len`.
    pub(super) fn fill(&self, key: &PartKey, start: u64, out: &mut [u64]) {
        match key {
            PartKey::Global(order) => order.fill(start, out),
            PartKey::Block(order) => order.fill(start, out),
            PartKey::Sequential => (start..).zip(&mut *out).for_each(|(t, out)| *out = t),
            PartKey::Weighted(first) => {
                (start..).zip(&mut *out).for_each(|(t, out)| *out = self.draw(*first, t))
            }
        }
        if self.first != 0 || self.filter.is_some() {
            out.iter_mut().for_each(|out| *out = self.record(*out));
        }
    }

    /// The position of a record, if it has exactly one.
    pub(super) fn inverse(&self, key: &PartKey, record: u64) -> Option<u64> {
        let place = self.place(record)?;
        match key {
            PartKey::Sequential => Some(place),
            PartKey::Global(order) => Some(order.inverse(place)),
            PartKey::Block(order) => Some(order.inverse(place)),
            PartKey::Weighted(_) => None,
        }
    }

    /// Each position of a record, ascending.
    pub(super) fn positions(&self, key: &PartKey, record: u64, found: impl FnMut(u64)) {
        match key {
            PartKey::Weighted(start) => {
                let Some(place) = self.place(record) else { return };
                (0..self.len).filter(|t| self.draw(*start, *t) == place).for_each(found);
            }
            _ => self.inverse(key, record).into_iter().for_each(found),
        }
    }

    fn draw(&self, start: u64, t: u64) -> u64 {
        match &self.kind {
            Kind::Weighted(weights) => weights.draw(start, t),
            // Keys are made by `key` only, and go with their part. Of another part's this is a place all the same.
            _ => t,
        }
    }

    /// Which of this source's records it is, if it is one of them.
    fn place(&self, record: u64) -> Option<u64> {
        let record = record.checked_sub(self.first)?;
        match &self.filter {
            Some(filter) => filter.rank(record),
            None => Some(record).filter(|record| *record < self.len),
        }
    }

    /// The number among all records of the place-th of this source.
    fn record(&self, place: u64) -> u64 {
        match &self.filter {
            // The place is below len, so there is one.
            Some(filter) => self.first + filter.select(place).unwrap_or_default(),
            None => self.first + place,
        }
    }
}

impl OrderPart {
    /// For people: see [`Order::describe`](super::Order::describe).
    pub(super) fn describe(&self, global_batch: u64) -> String {
        let what = match &self.filter {
            Some(filter) => format!("{} records of a filter", filter.len()),
            None => format!("{} records", self.len),
        };
        match &self.kind {
            Kind::Sequential => format!("{what} as they lie"),
            Kind::Global => {
                format!("{what} in global order; deff(rho=1) = 1.00 for batches of {global_batch}")
            }
            Kind::Weighted(_) => format!("{what} drawn by weight, with replacement"),
            &Kind::Block { block, window } => {
                let (blocks, windows) = (self.len.div_ceil(block), self.len.div_ceil(block).div_ceil(window));
                if windows <= 1 {
                    return format!(
                        "{what} in block order: {blocks} blocks of {block} in one window, which `global` shuffles \
                         as well and at less cost; deff(rho=1) = 1.00 for batches of {global_batch}"
                    );
                }
                let held = block.saturating_mul(window).saturating_mul(2).min(self.len);
                let deff = block::deff(1.0, global_batch, window);
                format!(
                    "{what} in block order: {blocks} blocks of {block}, {windows} windows of {window} blocks, \
                     at most {held} records in memory; deff(rho=1) = {deff:.2} for batches of {global_batch}"
                )
            }
        }
    }
}
