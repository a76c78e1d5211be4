//! An order and a rank's share of it, as they were asked for: the same for the verb that runs through it and the one that
//! only tells.

use crate::args::{self, Global};
use crate::dataset;
use crate::exit::{Failure, Outcome};
use crate::text;
use tfseek::Dataset;
use tfseek::loader::{Loader, LoaderOptions};
use tfseek::order::{LastBatch, Order, RankShare, State};

impl args::Share {
    /// A loader at the place where it is to begin, and its share of the epoch from there on.
    pub(crate) fn loader(
        &self,
        dataset: &Dataset,
        options: LoaderOptions,
        global: &Global,
    ) -> Outcome<(Loader, RankShare)> {
        let mut loader = self.tell(dataset, options, global)?.build()?;
        let state = self.state()?;
        if let Some(state) = &state {
            loader.seek(state)?;
        }
        let share = self.share(loader.order(), state.as_ref())?;
        Ok((loader, share))
    }

    /// The order and the share of that loader, without one that runs.
    pub(crate) fn order(&self, dataset: &Dataset, global: &Global) -> Outcome<(Order, RankShare)> {
        let order = self.tell(dataset, dataset.record_loader(), global)?.to_order()?;
        let state = self.state()?;
        let order = match &state {
            None => order,
            Some(state) => state.resume(order.spec(), dataset.len(), &dataset.fingerprint()?)?,
        };
        let share = self.share(&order, state.as_ref())?;
        Ok((order, share))
    }

    fn tell(&self, dataset: &Dataset, options: LoaderOptions, global: &Global) -> Outcome<LoaderOptions> {
        let mut options = options
            .global_batch_size(self.global_batch()?)
            .order(self.shuffle.into())
            .seed(self.seed)
            .epoch(self.epoch)
            .rank(self.rank, self.world_size.get())
            .last_batch(self.last());
        if let Some(filter) = &self.filter {
            options = options.select(&dataset::select(dataset, filter, global)?);
        }
        if let Some(feature) = &self.balance {
            options = options.balance(&dataset::column(dataset, feature, global)?.classes()?);
        }
        Ok(options)
    }

    /// Samples of a batch over all ranks.
    pub(crate) fn global_batch(&self) -> Outcome<u64> {
        let ranks = self.world_size.get();
        match (self.batch.global_batch_size, self.batch.batch_size) {
            (Some(global), _) => Ok(global.get()),
            (None, Some(each)) => each.get().checked_mul(ranks).ok_or_else(|| {
                Failure::usage(format!("{ranks} batches of {each} samples are more than 2^64 samples"))
            }),
            (None, None) => Err(Failure::usage("a batch has how many samples? --batch-size says")),
        }
    }

    /// What becomes of the last batch.
    pub(crate) fn last(&self) -> LastBatch {
        self.last_batch.map_or(LastBatch::default_for(self.world_size.get()), LastBatch::from)
    }

    fn share(&self, order: &Order, state: Option<&State>) -> Outcome<RankShare> {
        let (rank, ranks) = (self.rank, self.world_size.get());
        let share = RankShare::new(order.len(), self.global_batch()?, rank, ranks, self.last())?;
        Ok(share.starting_at(state.map_or(0, State::position))?)
    }

    fn state(&self) -> Outcome<Option<State>> {
        let Some(path) = &self.resume else { return Ok(None) };
        text::parsed(path, "a saved state", State::from_json).map(Some)
    }
}
