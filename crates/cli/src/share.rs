//! The order and the rank's share that the arguments specify, for the verbs `epoch` and `order`.

use crate::args::{self, GlobalArgs};
use crate::console::Console;
use crate::dataset;
use crate::exit::{Failure, Outcome};
use crate::text;
use tfseek::Dataset;
use tfseek::loader::{Loader, LoaderOptions, Shuffle};
use tfseek::order::{Cursor, LastBatch, State};

impl args::ShareArgs {
    /// Builds a loader, at its start position.
    pub(crate) fn loader(
        &self,
        dataset: &Dataset,
        options: LoaderOptions,
        global: &GlobalArgs,
        console: &mut Console,
    ) -> Outcome<Loader> {
        let mut loader = self.configure(dataset, options, global, console)?.build()?;
        if let Some(state) = self.state()? {
            loader.seek(&state)?;
        }
        Ok(loader)
    }

    /// Returns the start position of that loader, with its order and its share, without building a loader.
    pub(crate) fn cursor(
        &self,
        dataset: &Dataset,
        global: &GlobalArgs,
        console: &mut Console,
    ) -> Outcome<Cursor> {
        let options = self.configure(dataset, dataset.record_loader(), global, console)?;
        let mut cursor = options.to_cursor()?;
        if let Some(state) = self.state()? {
            cursor.seek(&state, &dataset.fingerprint()?)?;
        }
        Ok(cursor)
    }

    fn configure(
        &self,
        dataset: &Dataset,
        options: LoaderOptions,
        global: &GlobalArgs,
        console: &mut Console,
    ) -> Outcome<LoaderOptions> {
        let mut options = options
            .global_batch_size(self.global_batch()?)
            .shuffle(self.shuffle.into())
            .seed(self.seed)
            .epoch(self.epoch)
            .rank(self.rank, self.world_size.get())
            .last_batch(self.last_batch());
        if let Some(bytes) = self.block_bytes {
            options = options.block_bytes(bytes);
        }
        if let Some(filter) = &self.select.condition {
            options = options.select(dataset::select(dataset, filter, global, console)?);
        }
        if let Some(feature) = &self.balance {
            if Shuffle::from(self.shuffle) == Shuffle::None {
                return Err(Failure::usage("--balance: expected --shuffle global or block, found none"));
            }
            options = options.balance(&dataset::column(dataset, feature, global, console)?)?;
        }
        Ok(options)
    }

    /// Returns the number of samples per batch over all ranks.
    pub(crate) fn global_batch(&self) -> Outcome<u64> {
        let ranks = self.world_size.get();
        match (self.batch.global_batch_size, self.batch.batch_size) {
            (Some(global), _) => Ok(global.get()),
            (None, Some(each)) => each.get().checked_mul(ranks).ok_or_else(|| {
                Failure::usage(format!(
                    "expected fewer than 2^64 samples per step, found {ranks} batches of {each}"
                ))
            }),
            (None, None) => Err(Failure::usage("the batch size is missing: specify --batch-size")),
        }
    }

    /// Returns the treatment of an incomplete last batch.
    pub(crate) fn last_batch(&self) -> LastBatch {
        let default = if self.world_size.get() == 1 { LastBatch::Short } else { LastBatch::Pad };
        self.last_batch.map_or(default, LastBatch::from)
    }

    fn state(&self) -> Outcome<Option<State>> {
        let Some(path) = &self.resume else { return Ok(None) };
        text::parse_file(path, "a saved state", State::from_json).map(Some)
    }
}
