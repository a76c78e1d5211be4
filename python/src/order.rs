//! What `tfseek.torch.Sampler` stands on: the order of a loader, without a loader.

use crate::dataset::{self, Dataset};
use crate::failure::Result;
use crate::memory::Held;
use crate::recipe::{self, value_error};
use crate::wait;
use crate::words::{Seed, Word};
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};
use tfseek::order::Spec;
use tfseek::order::{self, LastBatch, RankShare, State};

/// One rank's share of the order that a `tfseek.Loader` with the same arguments has. A value: asking changes nothing.
#[pyclass(frozen, module = "tfseek._tfseek", name = "OrderCore")]
#[derive(Clone)]
pub(crate) struct Order {
    dataset: tfseek::Dataset,
    order: order::Order,
    /// From the start of an epoch.
    share: RankShare,
    /// The dataset's, once it was asked for.
    fingerprint: Arc<OnceLock<String>>,
}

impl Order {
    fn fingerprint(&self, py: Python<'_>) -> Result<&str> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let fingerprint = dataset::fingerprint(py, &self.dataset)?;
        Ok(self.fingerprint.get_or_init(|| fingerprint))
    }
}

#[pymethods]
impl Order {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        dataset: &Bound<'_, Dataset>,
        shuffle: Option<String>,
        seed: Seed,
        batch_size: u64,
        rank: u64,
        world_size: u64,
        tail: Option<Word<LastBatch>>,
    ) -> Result<Order> {
        let ids = dataset.get().view_ids();
        let dataset = dataset.get().shared.dataset.clone();
        wait::run(py, None, move |_| {
            let global_batch = batch_size.checked_mul(world_size);
            let global_batch = global_batch.ok_or_else(|| value_error("a batch beyond 2^64 samples"))?;
            let mut options = dataset.record_loader().batch_size(batch_size).rank(rank, world_size);
            if let Some(ids) = ids {
                options = options.subset(ids.subset()?);
            }
            let order = options.order(recipe::shuffle(shuffle.as_deref())?).seed(seed.0).to_order()?;
            let last = tail.map_or(LastBatch::default_for(world_size), |Word(last)| last);
            let share = RankShare::new(order.len(), global_batch, rank, world_size, last)?;
            Ok(Order { dataset, order, share, fingerprint: Arc::default() })
        })
    }

    /// Positions of an epoch.
    #[getter]
    fn positions(&self) -> u64 {
        self.order.len()
    }

    /// Samples of this rank in an epoch that is gone on with at a position.
    fn samples(&self, position: u64) -> Result<u64> {
        Ok(self.share.clone().starting_at(position)?.samples())
    }

    /// Where a run stands that went on at `position` and had so many steps since.
    fn after(&self, position: u64, steps: u64) -> Result<u64> {
        let share = self.share.clone().starting_at(position)?;
        let after = steps.min(share.steps()).checked_sub(1).and_then(|last| share.after(last));
        Ok(after.map_or(position, |(_, position)| position))
    }

    /// What this rank has in the steps `first`, `first + 1`, .. (`steps` of them, or as many as there are) of an epoch that is gone
    /// on with at `position`: numbers in the view that the order was made for.
    fn records<'py>(
        &self,
        py: Python<'py>,
        epoch: u64,
        position: u64,
        first: u64,
        steps: u64,
    ) -> Result<Bound<'py, PyAny>> {
        let ids = py.detach(|| -> Result<Vec<i64>> {
            let share = self.share.clone().starting_at(position)?;
            let order = self.order.at_epoch(epoch)?;
            let mut ids: Vec<u64> = Vec::new();
            for run in (first..first.saturating_add(steps)).map_while(|step| share.step(step)).flatten() {
                let from = ids.len();
                ids.resize(from + run.len as usize, 0);
                order.fill(run.start, ids.get_mut(from..).unwrap_or_default())?;
            }
            let Spec::Filtered { subset, .. } = self.order.spec() else {
                return Ok(ids.into_iter().map(|id| id as i64).collect());
            };
            // Every one of them is a survivor.
            Ok(ids.into_iter().filter_map(|id| subset.rank(id)).map(|k| k as i64).collect())
        })?;
        Ok(Held::Int64(ids.into()).flat(py)?)
    }

    /// A saved state: the loader's.
    fn state(&self, py: Python<'_>, epoch: u64, position: u64) -> Result<String> {
        let fingerprint = self.fingerprint(py)?;
        py.detach(|| Ok(State::new(&self.order.at_epoch(epoch)?, position, fingerprint)?.to_json()))
    }

    /// The order to go on with after a saved state, the epoch and the position.
    fn resume(&self, py: Python<'_>, state: &str) -> Result<(Order, u64, u64)> {
        let fingerprint = self.fingerprint(py)?;
        py.detach(|| {
            let state = State::from_json(state)?;
            let order = state.resume(self.order.spec(), self.order.records(), fingerprint)?;
            Ok((Order { order, ..self.clone() }, state.epoch(), state.position()))
        })
    }
}
