//! The columns of a batch, by name.

use super::column::Column;
use super::compile::{BatchPlan, PlanPart};
use super::pool::{Buf, BufPool};
use crate::io::Region;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The columns of some records: `'static`, `Send`, made of memory that goes back to its parser when the batch and all that
/// was cloned from it are dropped.
pub struct Batch {
    body: BatchBody,
    plan: Arc<BatchPlan>,
    bodies: Arc<BodyPool>,
}

/// The parts of a batch, which are used again.
#[derive(Default)]
pub(super) struct BatchBody {
    pub(super) rows: usize,
    pub(super) features: Vec<Column>,
    pub(super) lists: Vec<Column>,
    pub(super) lengths: Vec<Option<Buf<i64>>>,
    /// Memory that byte strings refer to.
    pub(super) regions: BufPool<Region>,
    pub(super) list_regions: BufPool<Region>,
}

/// Bodies that wait for the next batch.
#[derive(Default)]
pub(super) struct BodyPool(Mutex<Vec<BatchBody>>);

impl BodyPool {
    /// Bodies kept; one more is simply freed.
    const MOST: usize = 64;

    pub(super) fn take(&self) -> BatchBody {
        self.0.lock().ok().and_then(|mut bodies| bodies.pop()).unwrap_or_default()
    }
}

impl Batch {
    pub(super) fn new(body: BatchBody, plan: &Arc<BatchPlan>, bodies: &Arc<BodyPool>) -> Batch {
        Batch { body, plan: Arc::clone(plan), bodies: Arc::clone(bodies) }
    }

    /// Number of records; 1 where a single one was parsed.
    pub fn rows(&self) -> usize {
        self.body.rows
    }

    /// The column of this name: of an Example's features, or of a context's.
    pub fn get(&self, name: &str) -> Option<&Column> {
        self.body.features.get(self.plan.features.column(name)?)
    }

    /// The columns and their names, in the order of the names.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&str, &Column)> {
        named(&self.plan.features, &self.body.features)
    }

    /// The column of this name, of feature lists.
    pub fn feature_list(&self, name: &str) -> Option<&Column> {
        self.body.lists.get(self.plan.lists.column(name)?)
    }

    /// The columns of feature lists and their names, in the order of the names.
    pub fn feature_lists(&self) -> impl ExactSizeIterator<Item = (&str, &Column)> {
        named(&self.plan.lists, &self.body.lists)
    }

    /// How many steps each record has in the dense feature list `name`. `None` for other columns, and where a single record was
    /// parsed: there the shape says it.
    pub fn lengths(&self, name: &str) -> Option<&Buf<i64>> {
        self.body.lengths.get(self.plan.lists.column(name)?)?.as_ref()
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
        let mut body = std::mem::take(&mut self.body);
        body.features.iter_mut().chain(&mut body.lists).for_each(Column::release);
        body.lengths.clear();
        // Maps and buffers are not held until the next batch.
        body.regions.settle();
        body.list_regions.settle();
        if let Ok(mut bodies) = self.bodies.0.lock()
            && bodies.len() < BodyPool::MOST
        {
            bodies.push(body);
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.columns()).entries(self.feature_lists()).finish()
    }
}
