//! The order and the rank's share that the arguments specify, for the verbs `epoch` and `order`.

use crate::args::{LastBatchChoice, ShareArgs, ShuffleChoice};
use crate::console::Console;
use crate::dataset;
use crate::exit::{Failure, Outcome};
use crate::text;
use tfseek::Dataset;
use tfseek::loader::{Loader, LoaderOptions, Shuffle};
use tfseek::order::{Cursor, LastBatch, State};

impl ShareArgs {
    /// Builds a loader, at its start position.
    pub(crate) fn loader(
        &self,
        dataset: &Dataset,
        options: LoaderOptions,
        console: &mut Console,
    ) -> Outcome<Loader> {
        let mut loader = self.configure(dataset, options, console)?.build()?;
        if let Some(state) = self.state()? {
            loader.seek(&state)?;
        }
        Ok(loader)
    }

    /// Returns the start position of that loader, with its order and its share, without building a loader.
    pub(crate) fn cursor(&self, dataset: &Dataset, console: &mut Console) -> Outcome<Cursor> {
        let options = self.configure(dataset, dataset.record_loader(), console)?;
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
        console: &mut Console,
    ) -> Outcome<LoaderOptions> {
        let shuffle = match self.shuffle {
            ShuffleChoice::Global => Shuffle::Global,
            ShuffleChoice::Block => Shuffle::Block,
            ShuffleChoice::None => Shuffle::None,
        };
        let mut options = options
            .global_batch_size(self.global_batch()?)
            .shuffle(shuffle)
            .seed(self.seed)
            .epoch(self.epoch)
            .rank(self.rank, self.world_size.get())
            .last_batch(self.last_batch());
        if let Some(bytes) = self.block_bytes {
            options = options.block_bytes(bytes);
        }
        if let Some(filter) = &self.select.condition {
            options = options.select(dataset::select(dataset, filter, console)?);
        }
        if let Some(feature) = &self.balance {
            if self.shuffle == ShuffleChoice::None {
                return Err(Failure::usage("--balance: expected --shuffle global or block, found none"));
            }
            options = options.balance(&dataset::column(dataset, feature, console)?)?;
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
        match self.last_batch {
            Some(LastBatchChoice::Drop) => LastBatch::Drop,
            Some(LastBatchChoice::Pad) => LastBatch::Pad,
            Some(LastBatchChoice::Short) => LastBatch::Short,
            Some(LastBatchChoice::Continuous) => LastBatch::Continuous,
            None if self.world_size.get() == 1 => LastBatch::Short,
            None => LastBatch::Pad,
        }
    }

    fn state(&self) -> Outcome<Option<State>> {
        let Some(path) = &self.resume else { return Ok(None) };
        text::parsed(path, State::from_json(&text::read_file(path, "a saved state")?)).map(Some)
    }
}
