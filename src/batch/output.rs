//! The columns of a batch, by name.

use super::column::Column;
use super::compile::{BatchPlan, PlanPart};
use super::pool::{Buf, BufPool};
use crate::io::Region;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The columns of a batch of records. It is `'static` and `Send`.
///
/// Its memory returns to the parser once the batch and everything cloned from it are dropped.
pub struct Batch {
    data: BatchData,
    plan: Arc<BatchPlan>,
    pool: Arc<BatchDataPool>,
}

/// The reusable vectors of a batch.
#[derive(Default)]
pub(super) struct BatchData {
    pub(super) rows: usize,
    pub(super) features: Vec<Column>,
    pub(super) lists: Vec<Column>,
    pub(super) lengths: Vec<Option<Buf<i64>>>,
    /// Memory that borrowed byte strings refer to.
    pub(super) regions: BufPool<Region>,
    pub(super) list_regions: BufPool<Region>,
}

/// [`BatchData`] of dropped batches, kept for the next ones.
#[derive(Default)]
pub(super) struct BatchDataPool(Mutex<Vec<BatchData>>);

impl BatchDataPool {
    /// Maximum number of entries; beyond it, the data of a dropped batch is freed.
    const MAX_ENTRIES: usize = 64;

    pub(super) fn take(&self) -> BatchData {
        self.0.lock().ok().and_then(|mut free| free.pop()).unwrap_or_default()
    }
}

impl Batch {
    pub(super) fn new(data: BatchData, plan: &Arc<BatchPlan>, pool: &Arc<BatchDataPool>) -> Batch {
        Batch { data, plan: Arc::clone(plan), pool: Arc::clone(pool) }
    }

    /// Returns the number of records; 1 after [`parse_single`](super::BatchParser::parse_single).
    pub fn rows(&self) -> usize {
        self.data.rows
    }

    /// Returns the column `name` of the features of an Example or of a context.
    pub fn get(&self, name: &str) -> Option<&Column> {
        self.data.features.get(self.plan.features.column(name)?)
    }

    /// Returns the columns of the features and their names, sorted by name.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&str, &Column)> {
        named(&self.plan.features, &self.data.features)
    }

    /// Returns the column `name` of the feature lists.
    pub fn feature_list(&self, name: &str) -> Option<&Column> {
        self.data.lists.get(self.plan.lists.column(name)?)
    }

    /// Returns the columns of the feature lists and their names, sorted by name.
    pub fn feature_lists(&self) -> impl ExactSizeIterator<Item = (&str, &Column)> {
        named(&self.plan.lists, &self.data.lists)
    }

    /// Returns the number of steps of each record in the dense feature list `name`.
    ///
    /// Returns `None` for other columns, and after [`parse_single`](super::BatchParser::parse_single): the shape then contains the
    /// number of steps.
    pub fn lengths(&self, name: &str) -> Option<&Buf<i64>> {
        self.data.lengths.get(self.plan.lists.column(name)?)?.as_ref()
    }
}

fn named<'a>(
    part: &'a PlanPart,
    columns: &'a [Column],
) -> impl ExactSizeIterator<Item = (&'a str, &'a Column)> {
    part.columns.iter().zip(columns).map(|(planned, column)| (&*planned.name, column))
}

impl Drop for Batch {
    fn drop(&mut self) {
        let mut data = std::mem::take(&mut self.data);
        data.features.iter_mut().chain(&mut data.lists).for_each(Column::release);
        data.lengths.clear();
        // Releases maps and buffers now, and not only at the next batch.
        data.regions.release_unused();
        data.list_regions.release_unused();
        if let Ok(mut free) = self.pool.0.lock()
            && free.len() < BatchDataPool::MAX_ENTRIES
        {
            free.push(data);
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.columns()).entries(self.feature_lists()).finish()
    }
}
