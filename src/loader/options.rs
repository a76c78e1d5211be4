//! What can be said of a loader.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use super::loader::{Loader, Settings};
use super::plan::{Cursor, Sharing};
use super::queue::Limits;
use super::worker::{ErrorPolicy, Workshop};
use crate::batch::{BatchParser, BytePool};
use crate::column::{Classes, Selection};
use crate::dataset::Dataset;
use crate::error::{OptionsError, OrderError, Result};
use crate::io::{ReadAhead, memory_limit, threads};
use crate::order::{LastBatch, Order, Spec, Subset, check_memory};
use crate::policy::Verify;
use crate::schema::Schema;
use std::fmt;

/// How records are shuffled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shuffle {
    /// Not at all.
    #[default]
    None,
    /// A permutation of all records: the best there is.
    Global,
    /// Blocks of about 1 MiB of neighbours, and the records of some blocks at a time: for disks that seek, and networks.
    Block,
    /// Any other order: a block order of given sizes, a filter, a mixture, classes in balance, weights.
    Order(Spec),
}

/// What is checked of each record that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoaderVerify {
    /// The same in every epoch.
    Always(Verify),
    /// Payloads in epoch 0, headers in the others.
    FirstEpoch,
}

/// A loader to be: [`Dataset::loader`] and [`Dataset::record_loader`] make one, [`build`](LoaderOptions::build) opens it.
#[must_use]
pub struct LoaderOptions {
    dataset: Dataset,
    parser: Option<BatchParser>,
    /// Samples of a batch: of one rank's (false), or of all ranks' (true).
    batch: Option<(u64, bool)>,
    shuffle: Shuffle,
    subset: Option<Subset>,
    /// The feature, and the records of each class.
    classes: Option<(Box<str>, Vec<Vec<u64>>)>,
    seed: u64,
    epoch: u64,
    rank: (u64, u64),
    worker: (u64, u64),
    last: Option<LastBatch>,
    threads: Option<usize>,
    batches: Option<usize>,
    memory: Option<u64>,
    ahead: Option<u64>,
    policy: ErrorPolicy,
    verify: Option<LoaderVerify>,
    repeat: bool,
    hook: Option<super::worker::Hook>,
}

/// Records that are planned ahead of the workers, at most and at least.
const AHEAD_RECORDS: u64 = 1024;
const AHEAD_LEAST: u64 = 16;
const AHEAD_BYTES: u64 = 256 << 20;
/// Payload bytes of batches under way, unless told otherwise.
const MEMORY: u64 = 1 << 30;
/// Samples of a rank's batch: beyond that somebody has mistaken himself, and the list of them alone takes memory.
const MOST_SAMPLES: u64 = 1 << 24;
/// Records so small that a global order pays for each with a page of its own.
const SMALL: u64 = 64 << 10;

impl Dataset {
    /// A loader that parses records by a schema.
    pub fn loader(&self, schema: &Schema) -> LoaderOptions {
        LoaderOptions::new(self.clone(), Some(BatchParser::new(schema)))
    }

    /// A loader that hands out records as they are.
    pub fn record_loader(&self) -> LoaderOptions {
        LoaderOptions::new(self.clone(), None)
    }
}

impl LoaderOptions {
    fn new(dataset: Dataset, parser: Option<BatchParser>) -> LoaderOptions {
        LoaderOptions {
            dataset,
            parser,
            batch: None,
            shuffle: Shuffle::None,
            subset: None,
            classes: None,
            seed: 0,
            epoch: 0,
            rank: (0, 1),
            worker: (0, 1),
            last: None,
            threads: None,
            batches: None,
            memory: None,
            ahead: None,
            policy: ErrorPolicy::Raise,
            verify: None,
            repeat: false,
            hook: None,
        }
    }

    /// Another parser for the same loader: one with options of its own.
    pub fn parser(self, parser: BatchParser) -> LoaderOptions {
        LoaderOptions { parser: Some(parser), ..self }
    }

    /// Samples of one rank's batch, as in torch: the global batch has as many for each rank.
    pub fn batch_size(self, samples: u64) -> LoaderOptions {
        LoaderOptions { batch: Some((samples, false)), ..self }
    }

    /// Samples of a batch over all ranks, a multiple of their number. Batches stay the same when the number of ranks changes.
    pub fn global_batch_size(self, samples: u64) -> LoaderOptions {
        LoaderOptions { batch: Some((samples, true)), ..self }
    }

    /// A global shuffle with this seed: `.order(Shuffle::Global).seed(seed)`.
    pub fn shuffle(self, seed: u64) -> LoaderOptions {
        LoaderOptions { shuffle: Shuffle::Global, seed, ..self }
    }

    /// How records are shuffled. Not at all by default.
    pub fn order(self, shuffle: Shuffle) -> LoaderOptions {
        LoaderOptions { shuffle, ..self }
    }

    /// Only these records, in the order that is chosen: as if they were all there is.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..1000 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i % 10]).encode()?)?; }
    /// # writer.close()?;
    /// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// let threes = ds.select(&"label == 3".parse()?)?;
    /// let loader = ds.record_loader().batch_size(10).shuffle(42).select(&threes).build()?;
    /// assert_eq!(loader.steps_left(), 10);
    ///
    /// // As many of each of the ten classes in every batch.
    /// let label = ds.column("label")?;
    /// let mut loader = ds.record_loader().batch_size(20).seed(42).balance(&label.classes()?).build()?;
    /// let ids = loader.next().unwrap()?.ids().to_vec();
    /// assert!((0..10).all(|class| ids.iter().filter(|&&id| id % 10 == class).count() == 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select(self, selection: &Selection) -> LoaderOptions {
        self.subset(Subset::from_bits(selection.words()))
    }

    /// As [`select`](LoaderOptions::select), by their numbers.
    pub fn subset(self, subset: Subset) -> LoaderOptions {
        LoaderOptions { subset: Some(subset), ..self }
    }

    /// As many samples of each class, in a shuffle of its own for each ([`Spec::balanced`]): this takes the place of the
    /// order that is chosen. With [`select`](LoaderOptions::select), of the selected records; a class of which none is selected
    /// is left out. Takes eight bytes a record.
    pub fn balance(self, classes: &Classes<'_>) -> LoaderOptions {
        let records = classes.iter().map(|(_, ids)| ids.to_vec()).collect();
        LoaderOptions { classes: Some((classes.feature().into(), records)), ..self }
    }

    /// The seed of the order. 0 by default. [`seed_of`](crate::order::seed_of) makes one of a negative number.
    pub fn seed(self, seed: u64) -> LoaderOptions {
        LoaderOptions { seed, ..self }
    }

    /// The first epoch. 0 by default.
    pub fn epoch(self, epoch: u64) -> LoaderOptions {
        LoaderOptions { epoch, ..self }
    }

    /// This rank, of so many. 0 of 1 by default.
    pub fn rank(self, rank: u64, ranks: u64) -> LoaderOptions {
        LoaderOptions { rank: (rank, ranks), ..self }
    }

    /// Only the steps `worker`, `worker + workers`, .. of this rank: for processes that hand out their batches in turn, as the
    /// workers of torch's `DataLoader` do. Taken in turn they are the batches of one loader, in the same sequence. 0 of 1 by default.
    ///
    /// [`state`](Loader::state) is then where the worker's round ends, one step of each worker: a worker of as many goes on from
    /// its own state exactly, and all of them from that of any, where all have delivered the same number of steps.
    pub fn worker(self, worker: u64, workers: u64) -> LoaderOptions {
        LoaderOptions { worker: (worker, workers), ..self }
    }

    /// What becomes of the last batch of an epoch. By default nothing is lost: it is short on one rank, and filled up with
    /// padding on several.
    pub fn last_batch(self, last: LastBatch) -> LoaderOptions {
        LoaderOptions { last: Some(last), ..self }
    }

    /// Threads that make batches; one for each processor by default. 0: batches are made by the caller's thread, when they are
    /// asked for. At most [`MAX_THREADS`](crate::MAX_THREADS). What comes out does not depend on it.
    pub fn threads(self, threads: usize) -> LoaderOptions {
        LoaderOptions { threads: Some(threads), ..self }
    }

    /// Batches under way at most: being made, or made and not yet asked for. Twice the threads by default.
    pub fn batches_ahead(self, batches: usize) -> LoaderOptions {
        LoaderOptions { batches: Some(batches), ..self }
    }

    /// Payload bytes of the batches under way at most; one batch is always made, however large. 1 GiB by default, or an eighth
    /// of the memory that the process may have, if that is less.
    ///
    /// Records that are lent from a map take no other memory. Where bytes are copied (numbers into columns, strings on request,
    /// everything with positional reads) the process also holds the batch that is in the caller's hands, and each thread keeps the
    /// buffers of batches that were dropped for its next ones: for each thread at most as much as this bound and a batch more,
    /// plus an eighth. `docs/performance.md` has what was measured.
    pub fn memory(self, bytes: u64) -> LoaderOptions {
        LoaderOptions { memory: Some(bytes), ..self }
    }

    /// Bytes of records that the system is asked for before their turn. 256 MiB by default, or a twentieth of the memory that
    /// the process may have, if that is less.
    pub fn look_ahead(self, bytes: u64) -> LoaderOptions {
        LoaderOptions { ahead: Some(bytes), ..self }
    }

    /// What happens at a record that is damaged, or does not go with the schema. Its batch is an error by default.
    pub fn errors(self, policy: ErrorPolicy) -> LoaderOptions {
        LoaderOptions { policy, ..self }
    }

    /// What is checked of each record. What the dataset checks, by default.
    pub fn verify(self, verify: LoaderVerify) -> LoaderOptions {
        LoaderOptions { verify: Some(verify), ..self }
    }

    /// One epoch follows the other without an end. By default the iterator ends with each epoch, and goes on with the next one
    /// when it is asked again.
    pub fn repeat(self, repeat: bool) -> LoaderOptions {
        LoaderOptions { repeat, ..self }
    }

    /// Called by the thread that makes a batch, with the numbers of its records, before they are read. For tests and tracing.
    pub fn before_read(self, hook: impl Fn(&[u64]) + Send + Sync + 'static) -> LoaderOptions {
        LoaderOptions { hook: Some(Box::new(hook)), ..self }
    }

    /// The order that the loader will have, without a loader: to look at what a run saw, say, on a machine with less memory.
    ///
    /// # Errors
    /// As [`build`](LoaderOptions::build), of what concerns the order.
    pub fn to_order(&self) -> Result<Order> {
        let n = self.dataset.len();
        let spec = match &self.shuffle {
            Shuffle::None => Spec::Sequential,
            Shuffle::Global => Spec::Global,
            Shuffle::Order(spec) => spec.clone(),
            Shuffle::Block => Spec::block_for(n, self.dataset.stored_bytes()?, self.global_batch()?),
        };
        let spec = match (&self.classes, &self.subset) {
            (Some((feature, classes)), subset) => {
                balanced(classes, subset.as_ref()).map_err(|e| e.feature(feature.as_bytes()))?
            }
            (None, Some(subset)) => spec.filtered(subset.clone()),
            (None, None) => spec,
        };
        Order::new(&spec, n, self.seed, self.epoch)
    }

    /// Samples of a batch over all ranks.
    fn global_batch(&self) -> Result<u64> {
        let Some((batch, global)) = self.batch else {
            return Err(OptionsError::NoBatchSize.into());
        };
        let ranks = self.rank.1;
        let of_all = if global { Some(batch) } else { batch.checked_mul(ranks) };
        of_all.filter(|of_all| of_all / ranks.max(1) <= MOST_SAMPLES).ok_or_else(|| {
            let reason = format!("a batch of {batch} samples: a rank takes at most {MOST_SAMPLES}");
            OrderError::Refused { reason: reason.into() }.into()
        })
    }

    /// Checks what was said. Nothing is read, and no thread is started, before the first batch is asked for.
    ///
    /// # Errors
    /// [`OrderError`]: a rank that there is not, a batch that the ranks cannot share or of more than 2^24 samples, an order that does not go with the
    /// dataset; [`OptionsError`] without a batch size, and for more than [`MAX_THREADS`](crate::MAX_THREADS) threads.
    pub fn build(self) -> Result<Loader> {
        let (rank, ranks) = self.rank;
        let global_batch = self.global_batch()?;
        let order = self.to_order()?;
        let memory = memory_limit();
        let dataset = self.dataset;
        let warnings = match dataset.known_bytes() {
            Some(bytes) => {
                let n = dataset.len();
                if let Spec::Block { block, window } = *plain(order.spec()) {
                    check_memory(n, bytes, block, window, memory)?;
                }
                scattered(order.spec(), n, bytes, memory).into_iter().collect()
            }
            None => Vec::new(),
        };
        let last = self.last.unwrap_or(LastBatch::default_for(ranks));
        let (worker, workers) = self.worker;
        if worker >= workers || (workers > 1 && last == LastBatch::Continuous) {
            let reason = match worker >= workers {
                true => format!("worker {worker} of {workers}"),
                false => format!("batches that go on across epochs, for {workers} workers"),
            };
            return Err(OrderError::Refused { reason: reason.into() }.into());
        }
        let sharing = Sharing { global_batch, rank, ranks, last, worker, workers };
        let cursor = Cursor { epoch: self.epoch, position: 0 };
        sharing.share(&order, cursor)?;
        let threads = self.threads.map_or_else(|| threads(0), |n| if n == 0 { Ok(0) } else { threads(n) })?;
        let limits = Limits {
            batches: self.batches.unwrap_or(2 * threads).max(1),
            memory: self.memory.unwrap_or(MEMORY.min(memory / 8)),
            ahead_records: AHEAD_RECORDS.max(global_batch / ranks.max(1)),
            ahead_bytes: self.ahead.unwrap_or(AHEAD_BYTES.min(memory / 20)),
            ahead_least: AHEAD_LEAST,
        };
        let verify = match self.verify.unwrap_or(LoaderVerify::Always(dataset.set().verify())) {
            LoaderVerify::Always(verify) => [verify; 2],
            LoaderVerify::FirstEpoch => [Verify::Payload, Verify::Header],
        };
        let shop = Workshop {
            dataset,
            parser: self.parser,
            policy: self.policy,
            verify,
            ahead: ReadAhead::default(),
            buffers: BytePool::default(),
            hook: self.hook,
        };
        let settings = Settings { sharing, limits, threads, repeat: self.repeat };
        Ok(Loader::new(shop, order, settings, cursor, warnings))
    }
}

/// Why this order will be slow here, if it will. Said once, to those who ask: the order is not changed.
fn scattered(spec: &Spec, n: u64, bytes: u64, memory: u64) -> Option<String> {
    let mean = bytes / n.max(1);
    (*spec == Spec::Global && bytes > memory && mean < SMALL).then(|| {
        format!(
            "a global order over records of {mean} bytes, in a set of {bytes} bytes with {memory} bytes of memory: each record \
             is a read of its own, again in every epoch; a block order reads neighbours together"
        )
    })
}

/// The order without its subset.
fn plain(spec: &Spec) -> &Spec {
    match spec {
        Spec::Filtered { order, .. } => order,
        spec => spec,
    }
}

/// As many of each class, of the records of a subset.
fn balanced(classes: &[Vec<u64>], subset: Option<&Subset>) -> Result<Spec> {
    let of_subset = |ids: &Vec<u64>| match subset {
        Some(subset) => ids.iter().copied().filter(|&id| subset.rank(id).is_some()).collect(),
        None => ids.clone(),
    };
    let classes: Vec<Vec<u64>> = classes.iter().map(of_subset).filter(|ids| !ids.is_empty()).collect();
    if classes.is_empty() {
        let of = if subset.is_some() { "none of the chosen records" } else { "no record" };
        let reason = format!("there are no classes to balance: {of} has a value");
        return Err(OrderError::Refused { reason: reason.into() }.into());
    }
    Ok(Spec::balanced(classes.into_iter().map(Subset::from_ids).collect::<Result<Vec<_>>>()?))
}

impl fmt::Debug for LoaderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderOptions")
            .field("dataset", &self.dataset)
            .field("batch", &self.batch)
            .field("shuffle", &self.shuffle)
            .field("seed", &self.seed)
            .field("epoch", &self.epoch)
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_all_measure_are_refused_or_do_no_harm() {
        let mut bytes = Vec::new();
        (0..64).for_each(|_| crate::frame::put_record(&mut bytes, &[7; 100]).unwrap());
        let dataset = crate::Mapped::from_bytes(bytes).unwrap();
        let loader = || dataset.dataset().record_loader().batch_size(8);
        for threads in [crate::MAX_THREADS + 1, 1 << 63, usize::MAX] {
            let e = loader().threads(threads).build().unwrap_err();
            assert!(e.to_string().contains("at most 1024"), "{e}");
        }
        let most = loader().threads(2).batches_ahead(usize::MAX).memory(u64::MAX).look_ahead(u64::MAX);
        assert_eq!(most.build().unwrap().map(|step| step.unwrap().len()).sum::<usize>(), 64);
        let least = loader().threads(2).batches_ahead(0).memory(0).look_ahead(0);
        assert_eq!(least.build().unwrap().map(|step| step.unwrap().len()).sum::<usize>(), 64);
        for jobs in [crate::MAX_THREADS + 1, usize::MAX] {
            let index = crate::index::IndexOptions::new().jobs(jobs);
            let e = crate::DatasetOptions::new().index(index).open("nowhere").unwrap_err();
            assert!(e.to_string().contains("at most 1024"), "{e}");
        }
    }

    #[test]
    fn a_global_order_over_small_records_in_a_large_set_is_warned_of() {
        let warned = |spec, n, bytes| scattered(&spec, n, bytes, 1 << 30);
        let text = warned(Spec::Global, 1 << 20, 2 << 30).unwrap();
        assert!(text.contains("records of 2048 bytes") && text.contains("block order"), "{text}");
        assert_eq!(warned(Spec::Global, 1 << 20, 1 << 29), None);
        assert_eq!(warned(Spec::Global, 1 << 10, 2 << 30), None);
        assert_eq!(warned(Spec::block_for(1 << 20, 2 << 30, 64), 1 << 20, 2 << 30), None);
    }
}
