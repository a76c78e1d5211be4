//! The order of the records of a split.

use super::members::Members;
use super::options::OrderOptions;
use crate::error::{OptionsReason, ToolsError};
use crate::write::WriteProgress;
use std::cmp::Ordering;
use tfseek::column::{ColumnOptions, Value};
use tfseek::order::{Spec, Subset};
use tfseek::{Dataset, ErrorKind, Order, Result};

/// The records of a split by position.
pub(super) enum SplitOrder {
    /// Stored order or a shuffle.
    Order(Order),
    /// Record numbers in a sorted order, and the position of each record if it is needed.
    Sorted(Vec<u32>, Vec<u32>),
}

impl SplitOrder {
    /// Returns the number of records.
    pub(super) fn len(&self) -> u64 {
        match self {
            SplitOrder::Order(order) => order.len(),
            SplitOrder::Sorted(ids, _) => ids.len() as u64,
        }
    }

    /// Fills `out` with the records from a position on.
    pub(super) fn fill(&self, start: u64, out: &mut [u64]) -> Result<()> {
        match self {
            SplitOrder::Order(order) => order.fill(start, out),
            SplitOrder::Sorted(ids, _) => {
                let from = usize::try_from(start).ok().and_then(|start| ids.get(start..));
                for (to, &id) in out.iter_mut().zip(from.into_iter().flatten()) {
                    *to = id.into();
                }
                Ok(())
            }
        }
    }

    /// Prepares [`position_of`](SplitOrder::position_of) for `n` records.
    pub(super) fn invert(&mut self, n: u64) {
        if let SplitOrder::Sorted(ids, positions) = self {
            positions.resize(usize::try_from(n).unwrap_or(0), u32::MAX);
            for (position, &id) in (0..).zip(ids.iter()) {
                if let Some(to) = positions.get_mut(id as usize) {
                    *to = position;
                }
            }
        }
    }

    /// Returns the position of a record of the split.
    pub(super) fn position_of(&self, record: u64) -> Result<u64> {
        let found = match self {
            SplitOrder::Order(order) => order.position_of(record)?,
            SplitOrder::Sorted(_, positions) => {
                let found = usize::try_from(record).ok().and_then(|record| positions.get(record).copied());
                found.filter(|&position| position != u32::MAX).map(u64::from)
            }
        };
        found
            .ok_or_else(|| ErrorKind::OutOfRange { what: "record", i: record.into(), len: self.len() }.into())
    }
}

/// Returns the orders of all splits.
pub(super) fn split_orders(
    ds: &Dataset,
    order: &OrderOptions,
    seed: u64,
    members: &Members<'_>,
    count: usize,
    progress: &WriteProgress,
) -> Result<Vec<SplitOrder>, ToolsError> {
    let n = ds.len();
    let spec = match order {
        OrderOptions::Stored => Spec::Sequential,
        OrderOptions::Shuffled => Spec::Global,
        OrderOptions::Sorted { feature, reverse } => {
            let sorted = sorted(ds, feature, *reverse, progress)?;
            if members.is_whole() {
                return Ok(vec![SplitOrder::Sorted(sorted, Vec::new())]);
            }
            let of = |split: usize| {
                sorted.iter().copied().filter(move |&i| members.split_of(i.into()) == Some(split))
            };
            return Ok((0..count).map(|split| SplitOrder::Sorted(of(split).collect(), Vec::new())).collect());
        }
    };
    let spec_of = |split: usize| {
        if members.is_whole() {
            spec.clone()
        } else {
            spec.clone().filtered(Subset::from_fn(n, |i| members.split_of(i) == Some(split)))
        }
    };
    (0..count).map(|split| Ok(SplitOrder::Order(Order::new(&spec_of(split), n, seed, 0)?))).collect()
}

/// Returns the records in the order of a feature. The sort is stable, and records without a value come last.
fn sorted(
    ds: &Dataset,
    feature: &str,
    reverse: bool,
    progress: &WriteProgress,
) -> Result<Vec<u32>, ToolsError> {
    let n = u32::try_from(ds.len()).map_err(|_| {
        ToolsError::Options(OptionsReason::SortedRecords { limit: u32::MAX.into(), found: ds.len() })
    })?;
    let columns = ColumnOptions { progress: Some(progress.advance.clone()), ..ColumnOptions::default() };
    let column = ds.column(feature, &columns)?;
    let mut ids: Vec<u32> = (0..n).collect();
    let value = |i: &u32| column.get(u64::from(*i));
    ids.sort_by(|a, b| match (value(a), value(b)) {
        (Some(a), Some(b)) if reverse => compare(b, a),
        (Some(a), Some(b)) => compare(a, b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    Ok(ids)
}

/// Compares values: numbers by value, floats by IEEE 754's total order, byte strings by their bytes. A column
/// has one kind.
fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(&b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}
