//! Options of a [`Loader`].

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use super::loader::Loader;
use super::queue::QueueLimits;
use super::worker::{BatchWorker, ErrorPolicy};
use crate::batch::{BatchParser, BytePool};
use crate::column::{Classes, Selection};
use crate::dataset::Dataset;
use crate::error::{ErrorKind, OptionsError, OrderError, Result};
use crate::io::{ReadAhead, memory_limit, threads};
use crate::order::{Cursor, LastBatch, Order, RankShare, Spec, Subset, check_memory};
use crate::policy::Verify;
use crate::schema::Schema;
use crate::warning::Warning;
use std::fmt;
use std::sync::Arc;

/// How records are shuffled.
#[non_exhaustive]
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

/// Which checksums are verified of each record, in which epochs.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoaderVerify {
    /// The same in every epoch.
    Always(Verify),
    /// Payloads in epoch 0, headers in the others.
    FirstEpoch,
}

/// Options of a [`Loader`]: [`Dataset::loader`] and [`Dataset::record_loader`] make them, [`build`](LoaderOptions::build) makes the
/// loader.
///
/// A clone shares no memory pools, threads or locks with the options it was made from, nor with their loaders: in a forked child it
/// makes the same loader again.
#[must_use]
#[derive(Clone)]
pub struct LoaderOptions {
    dataset: Dataset,
    parser: Option<BatchParser>,
    batch: Option<BatchSize>,
    shuffle: Shuffle,
    subset: Option<Subset>,
    classes: Option<ClassSubsets>,
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
    #[cfg(test)]
    before_read: Option<super::worker::BeforeRead>,
}

/// Samples of a batch.
#[derive(Clone, Copy, Debug)]
enum BatchSize {
    OfRank(u64),
    OfAllRanks(u64),
}

/// The records of each class of a feature.
#[derive(Clone)]
struct ClassSubsets {
    feature: Box<str>,
    /// The error is that of a column whose numbers do not ascend.
    classes: std::result::Result<Arc<[Subset]>, OrderError>,
}

/// Records that are planned ahead of the workers, at most and at least.
const AHEAD_RECORDS: u64 = 1024;
const AHEAD_LEAST: u64 = 16;
const AHEAD_BYTES: u64 = 256 << 20;
/// Payload bytes of batches under way by default.
const MEMORY: u64 = 1 << 30;
/// Samples of a rank's batch at most: a larger number is a mistake, and the list of samples alone takes memory.
const MOST_SAMPLES: u64 = 1 << 24;
/// Records below this size take a page each in a global order.
const SMALL: u64 = 64 << 10;

impl Dataset {
    /// Options of a loader that parses records by a schema.
    pub fn loader(&self, schema: &Schema) -> LoaderOptions {
        LoaderOptions::new(self.clone(), Some(BatchParser::new(schema)))
    }

    /// Options of a loader that hands out records as they are.
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
            #[cfg(test)]
            before_read: None,
        }
    }

    /// A parser with options of its own, in place of the schema's.
    pub fn parser(mut self, parser: BatchParser) -> LoaderOptions {
        self.parser = Some(parser);
        self
    }

    /// Samples of one rank's batch, as in torch: the global batch has as many for each rank.
    pub fn batch_size(mut self, samples: u64) -> LoaderOptions {
        self.batch = Some(BatchSize::OfRank(samples));
        self
    }

    /// Samples of a batch over all ranks, a multiple of their number. Batches stay the same when the number of ranks changes.
    pub fn global_batch_size(mut self, samples: u64) -> LoaderOptions {
        self.batch = Some(BatchSize::OfAllRanks(samples));
        self
    }

    /// How records are shuffled. Not at all by default.
    pub fn order(mut self, shuffle: Shuffle) -> LoaderOptions {
        self.shuffle = shuffle;
        self
    }

    /// Only these records, a [`Selection`] or a [`Subset`], in the chosen order: as if they were all there is.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..1000 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i % 10]).encode()?)?; }
    /// # writer.close()?;
    /// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// let threes = ds.select(&"label == 3".parse()?, &Default::default())?;
    /// let loader = ds.record_loader().batch_size(10).order(tfseek::loader::Shuffle::Global).seed(42).select(&threes).build()?;
    /// assert_eq!(loader.cursor().steps_left()?, 10);
    ///
    /// // As many of each of the ten classes in every batch.
    /// let label = ds.column("label", &Default::default())?;
    /// let mut loader = ds.record_loader().batch_size(20).seed(42).balance(&label.classes()?).build()?;
    /// let ids = loader.next().unwrap()?.ids().to_vec();
    /// assert!((0..10).all(|class| ids.iter().filter(|&&id| id % 10 == class).count() == 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select(mut self, records: impl Into<Subset>) -> LoaderOptions {
        self.subset = Some(records.into());
        self
    }

    /// As many samples of each class, in a shuffle of its own for each ([`Spec::balanced`]): this takes the place of the
    /// order that is chosen. With [`select`](LoaderOptions::select), of the selected records; a class of which none is selected
    /// is left out. Takes eight bytes a record.
    pub fn balance(mut self, classes: &Classes<'_>) -> LoaderOptions {
        let subsets = classes.iter().map(|(_, ids)| Subset::from_ids(ids)).collect::<Result<_>>();
        let subsets = subsets.map_err(|e| match e.into_kind() {
            ErrorKind::Order(e) => e,
            other => OrderError::Refused { reason: other.to_string().into() },
        });
        self.classes = Some(ClassSubsets { feature: classes.feature().into(), classes: subsets });
        self
    }

    /// The seed of the order. 0 by default. [`seed_of`](crate::order::seed_of) makes one of a negative number.
    pub fn seed(mut self, seed: u64) -> LoaderOptions {
        self.seed = seed;
        self
    }

    /// The first epoch. 0 by default.
    pub fn epoch(mut self, epoch: u64) -> LoaderOptions {
        self.epoch = epoch;
        self
    }

    /// The rank, and the number of ranks. 0 of 1 by default.
    pub fn rank(mut self, rank: u64, ranks: u64) -> LoaderOptions {
        self.rank = (rank, ranks);
        self
    }

    /// Only the steps `worker`, `worker + workers`, .. of this rank: for processes that hand out their batches in turn, as the
    /// workers of torch's `DataLoader` do. Taken in turn they are the batches of one loader, in the same sequence. 0 of 1 by default.
    ///
    /// [`state`](Loader::state) is then where the worker's round ends, one step of each worker: a worker of as many goes on from
    /// its own state exactly, and all of them from that of any, where all have delivered the same number of steps.
    pub fn worker(mut self, worker: u64, workers: u64) -> LoaderOptions {
        self.worker = (worker, workers);
        self
    }

    /// How the last batch of an epoch is made. By default nothing is lost: it is short on one rank, and filled up with
    /// padding on several.
    pub fn last_batch(mut self, last: LastBatch) -> LoaderOptions {
        self.last = Some(last);
        self
    }

    /// Threads that make batches; one for each processor by default. 0: batches are made by the caller's thread, when they are
    /// asked for. At most [`MAX_THREADS`](crate::MAX_THREADS). Batches do not depend on it.
    pub fn threads(mut self, threads: usize) -> LoaderOptions {
        self.threads = Some(threads);
        self
    }

    /// Batches under way at most: being made, or made and not yet asked for. Twice the threads by default.
    pub fn batches_ahead(mut self, batches: usize) -> LoaderOptions {
        self.batches = Some(batches);
        self
    }

    /// Payload bytes of the batches under way at most; one batch is always made, however large. 1 GiB by default, or an eighth
    /// of the memory that the process may have, if that is less.
    ///
    /// Records that are lent from a map take no other memory. Where bytes are copied (numbers into columns, strings on request,
    /// everything with positional reads) the process also holds the batch that is in the caller's hands, and each thread keeps the
    /// buffers of batches that were dropped for its next ones: for each thread at most as much as this bound and a batch more,
    /// plus an eighth. `docs/performance.md` has what was measured.
    pub fn memory(mut self, bytes: u64) -> LoaderOptions {
        self.memory = Some(bytes);
        self
    }

    /// Bytes of records that the system is asked for before their turn. 256 MiB by default, or a twentieth of the memory that
    /// the process may have, if that is less.
    pub fn look_ahead(mut self, bytes: u64) -> LoaderOptions {
        self.ahead = Some(bytes);
        self
    }

    /// The reaction to a record that is damaged, or does not match the schema. Its batch is an error by default.
    pub fn errors(mut self, policy: ErrorPolicy) -> LoaderOptions {
        self.policy = policy;
        self
    }

    /// Which checksums are verified of each record. Those that the dataset verifies, by default.
    pub fn verify(mut self, verify: LoaderVerify) -> LoaderOptions {
        self.verify = Some(verify);
        self
    }

    /// One epoch follows the other without an end. By default the iterator ends with each epoch, and goes on with the next one
    /// when it is asked again.
    pub fn repeat(mut self, repeat: bool) -> LoaderOptions {
        self.repeat = repeat;
        self
    }

    /// Calls `f` in the thread that makes a batch, with the numbers of its records, before they are read.
    #[cfg(test)]
    pub(super) fn before_read(mut self, f: impl Fn(&[u64]) + Send + Sync + 'static) -> LoaderOptions {
        self.before_read = Some(Arc::new(f));
        self
    }

    /// The place at which the loader begins, with its order and its share, without a loader: to find out what a run saw, say, on a
    /// machine with less memory; or to read records in that order by other means.
    ///
    /// # Errors
    /// As [`build`](LoaderOptions::build), as far as they concern the order.
    pub fn to_cursor(&self) -> Result<Cursor> {
        let n = self.dataset.len();
        let (rank, ranks) = self.rank;
        let batch = self.global_batch()?;
        let spec = match &self.shuffle {
            Shuffle::None => Spec::Sequential,
            Shuffle::Global => Spec::Global,
            Shuffle::Order(spec) => spec.clone(),
            Shuffle::Block => Spec::block_for(n, self.dataset.stored_bytes()?, batch),
        };
        let spec = match (&self.classes, &self.subset) {
            (Some(ClassSubsets { feature, classes }), subset) => {
                let classes = classes.as_ref().map_err(|e| crate::Error::from(e.clone()));
                let spec = classes.and_then(|classes| balanced(classes, subset.as_ref()));
                spec.map_err(|e| e.feature(feature.as_bytes()))?
            }
            (None, Some(subset)) => spec.filtered(subset.clone()),
            (None, None) => spec,
        };
        let order = Order::new(&spec, n, self.seed, self.epoch)?;
        let last = self.last.unwrap_or(LastBatch::default_for(ranks));
        let share = RankShare::new(order.len(), batch, rank, ranks, last)?;
        let (worker, workers) = self.worker;
        Ok(Cursor::new(order, share.worker(worker, workers)?)?.repeat(self.repeat))
    }

    /// Samples of a batch over all ranks.
    fn global_batch(&self) -> Result<u64> {
        match self.batch {
            None => Err(OptionsError::NoBatchSize.into()),
            Some(BatchSize::OfAllRanks(samples)) => Ok(samples),
            Some(BatchSize::OfRank(samples)) => {
                samples.checked_mul(self.rank.1).ok_or_else(|| too_many_samples(samples))
            }
        }
    }

    /// Checks the options. Nothing is read, and no thread is started, before the first batch is asked for.
    ///
    /// # Errors
    /// [`OrderError`]: a rank that there is not, a batch that the ranks cannot share or of more than 2^24 samples, an order that does not go with the
    /// dataset; [`OptionsError`] without a batch size, and for more than [`MAX_THREADS`](crate::MAX_THREADS) threads.
    pub fn build(self) -> Result<Loader> {
        let samples = self.global_batch()? / self.rank.1.max(1);
        if samples > MOST_SAMPLES {
            return Err(match self.batch {
                Some(BatchSize::OfRank(samples) | BatchSize::OfAllRanks(samples)) => {
                    too_many_samples(samples)
                }
                None => too_many_samples(samples),
            });
        }
        let cursor = self.to_cursor()?;
        let memory = memory_limit();
        let dataset = self.dataset;
        let warnings = match dataset.known_bytes() {
            Some(bytes) => {
                let (spec, n) = (cursor.order().spec(), dataset.len());
                if let Spec::Block { block, window } = *plain(spec) {
                    check_memory(n, bytes, block, window, memory)?;
                }
                scattered(spec, n, bytes, memory).into_iter().collect()
            }
            None => Vec::new(),
        };
        let threads = match self.threads {
            Some(0) => 0,
            threads => self::threads::threads(threads.unwrap_or(0))?,
        };
        let limits = QueueLimits {
            batches: self.batches.unwrap_or(2 * threads).max(1),
            memory: self.memory.unwrap_or(MEMORY.min(memory / 8)),
            ahead_records: AHEAD_RECORDS.max(samples),
            ahead_bytes: self.ahead.unwrap_or(AHEAD_BYTES.min(memory / 20)),
            ahead_least: AHEAD_LEAST,
        };
        let verify = match self.verify.unwrap_or(LoaderVerify::Always(dataset.set().verify())) {
            LoaderVerify::Always(verify) => [verify; 2],
            LoaderVerify::FirstEpoch => [Verify::Payload, Verify::Header],
        };
        let worker = BatchWorker {
            dataset,
            parser: self.parser,
            policy: self.policy,
            verify,
            ahead: ReadAhead::default(),
            buffers: BytePool::default(),
            #[cfg(test)]
            before_read: self.before_read,
        };
        Ok(Loader::new(worker, cursor, limits, threads, warnings))
    }
}

impl From<&Selection> for Subset {
    fn from(selection: &Selection) -> Subset {
        Subset::from_bits(selection.words())
    }
}

#[cold]
fn too_many_samples(samples: u64) -> crate::Error {
    let reason = format!("a batch of {samples} samples: a rank takes at most {MOST_SAMPLES}");
    OrderError::Refused { reason: reason.into() }.into()
}

/// A warning of an order that will be slow here. The order is not changed.
fn scattered(spec: &Spec, n: u64, bytes: u64, memory: u64) -> Option<Warning> {
    let mean = bytes / n.max(1);
    (*spec == Spec::Global && bytes > memory && mean < SMALL).then_some(Warning::ScatteredReads {
        record_bytes: mean,
        dataset_bytes: bytes,
        memory_bytes: memory,
    })
}

/// The order without its subset.
fn plain(spec: &Spec) -> &Spec {
    match spec {
        Spec::Filtered { order, .. } => order,
        spec => spec,
    }
}

/// An order with as many samples of each class, of the records of a subset.
fn balanced(classes: &[Subset], subset: Option<&Subset>) -> Result<Spec> {
    let of_subset = |class: &Subset| match subset {
        Some(subset) => {
            Subset::from_ascending(class.iter().filter(|&id| subset.rank(id).is_some()).collect())
        }
        None => class.clone(),
    };
    let classes: Vec<Subset> = classes.iter().map(of_subset).filter(|class| class.len() > 0).collect();
    if classes.is_empty() {
        let of = if subset.is_some() { "none of the chosen records" } else { "no record" };
        let reason = format!("there are no classes to balance: {of} has a value");
        return Err(OrderError::Refused { reason: reason.into() }.into());
    }
    Ok(Spec::balanced(classes))
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
        assert_eq!(most.build().unwrap().map(|step| step.unwrap().ids().len()).sum::<usize>(), 64);
        let least = loader().threads(2).batches_ahead(0).memory(0).look_ahead(0);
        assert_eq!(least.build().unwrap().map(|step| step.unwrap().ids().len()).sum::<usize>(), 64);
        for jobs in [crate::MAX_THREADS + 1, usize::MAX] {
            let index = crate::index::IndexOptions::new().jobs(jobs);
            let e = crate::DatasetOptions::new().index(index).open("nowhere").unwrap_err();
            assert!(e.to_string().contains("at most 1024"), "{e}");
        }
    }

    #[test]
    fn a_global_order_over_small_records_in_a_large_set_is_warned_of() {
        let warned = |spec, n, bytes| scattered(&spec, n, bytes, 1 << 30);
        let text = warned(Spec::Global, 1 << 20, 2 << 30).unwrap().to_string();
        assert!(text.contains("records of 2048 bytes") && text.contains("block order"), "{text}");
        assert_eq!(warned(Spec::Global, 1 << 20, 1 << 29), None);
        assert_eq!(warned(Spec::Global, 1 << 10, 2 << 30), None);
        assert_eq!(warned(Spec::block_for(1 << 20, 2 << 30, 64), 1 << 20, 2 << 30), None);
    }
}
