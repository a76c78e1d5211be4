//! The order and the rank's share that the arguments give, for the verb that reads its records and the one that only prints it.

use crate::args::{self, Global};
use crate::dataset;
use crate::exit::{Failure, Outcome};
use crate::text;
use tfseek::Dataset;
use tfseek::loader::{Loader, LoaderOptions};
use tfseek::order::{Cursor, State};

impl args::Share {
    /// A loader at the place where it is to begin.
    pub(crate) fn loader(
        &self,
        dataset: &Dataset,
        options: LoaderOptions,
        global: &Global,
    ) -> Outcome<Loader> {
        let mut loader = self.tell(dataset, options, global)?.build()?;
        if let Some(state) = self.state()? {
            loader.seek(&state)?;
        }
        Ok(loader)
    }

    /// The place at which that loader begins, with its order and its share, without a loader.
    pub(crate) fn cursor(&self, dataset: &Dataset, global: &Global) -> Outcome<Cursor> {
        let mut cursor = self.tell(dataset, dataset.record_loader(), global)?.to_cursor()?;
        if let Some(state) = self.state()? {
            cursor.seek(&state, &dataset.fingerprint()?)?;
        }
        Ok(cursor)
    }

    fn tell(&self, dataset: &Dataset, options: LoaderOptions, global: &Global) -> Outcome<LoaderOptions> {
        let mut options = options
            .global_batch_size(self.global_batch()?)
            .order(self.shuffle.into())
            .seed(self.seed)
            .epoch(self.epoch)
            .rank(self.rank, self.world_size.get());
        if let Some(last) = self.last_batch {
            options = options.last_batch(last.into());
        }
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

    fn state(&self) -> Outcome<Option<State>> {
        let Some(path) = &self.resume else { return Ok(None) };
        text::parsed(path, "a saved state", State::from_json).map(Some)
    }
}
