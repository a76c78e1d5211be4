//! Options of a [`Loader`].

use super::loader::{Loader, ThreadNumber};
use super::pace::Pace;
use super::queue::QueueLimits;
use super::sources::{MixSource, MixSources, restricted};
use super::times::WorkerClock;
use super::worker::{BatchWorker, ObjectBlocks};
use crate::batch::{BatchParser, BytePool};
use crate::column::DatasetColumn;
use crate::dataset::{Dataset, INFLATED_BYTES, OrderBlocks};
use crate::error::{Error, OptionsError, Result};
use crate::io::{ReadAhead, memory_limit, threads};
use crate::order::{
    BLOCK_BYTES, Buckets, Classes, Cursor, LastBatch, MAX_SAMPLES, MixStop, Order, RankShare, Spec, Subset,
    block_records, check_memory,
};
use crate::policy::{Damage, Verify};
use crate::schema::Schema;
use crate::warning::Warning;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The order of the records in an epoch.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shuffle {
    /// No shuffle: the order of the dataset.
    #[default]
    None,
    /// A permutation of all records: the best shuffle.
    Global,
    /// Shuffles blocks of about 1 MiB, and the records within a window of several blocks. Suits hard disks
    /// and network storage.
    Block,
    /// Any other order: a block order of given sizes, a filter, a mixture, balanced classes, weights.
    Order(Spec),
}

/// Options of a [`Loader`], made by [`Dataset::loader`] and [`Dataset::record_loader`].
/// [`build`](LoaderOptions::build) makes the loader.
///
/// A clone shares no memory pools, threads or locks with the original options or with their loaders. A forked
/// child can therefore build the same loader again from a clone.
#[must_use]
#[derive(Clone)]
pub struct LoaderOptions {
    dataset: Dataset,
    parser: Option<BatchParser>,
    /// The sources of a mix. `dataset` has the records of all, and `parser` is the parser of the first.
    mix: Option<MixSources>,
    batch: Option<BatchSamples>,
    /// `None`: no shuffle, or with balanced classes the global one.
    shuffle: Option<Shuffle>,
    block_bytes: Option<u64>,
    subset: Option<Subset>,
    classes: Option<ClassSubsets>,
    buckets: Option<Buckets>,
    seed: u64,
    epoch: u64,
    rank: (u64, u64),
    worker: (u64, u64),
    last: Option<LastBatch>,
    threads: Option<usize>,
    batches: Option<usize>,
    memory: Option<u64>,
    ahead: Option<u64>,
    damage: Damage,
    verify: Option<[Verify; 2]>,
    repeat: bool,
    #[cfg(test)]
    before_read: Option<super::worker::BeforeRead>,
}

/// The number of samples of a batch.
#[derive(Clone, Copy, Debug)]
enum BatchSamples {
    PerRank(u64),
    Global(u64),
}

/// The records of each class of a feature.
#[derive(Clone)]
struct ClassSubsets {
    feature: Box<str>,
    classes: Arc<[Subset]>,
}

/// Limits of the records that are planned ahead of the workers: the largest number, the number that is always
/// allowed, and the default limit in bytes.
const MAX_RECORDS_AHEAD: u64 = 1024;
const MIN_RECORDS_AHEAD: u64 = 16;
const BYTES_AHEAD: u64 = 256 << 20;
/// Default limit of the payload bytes of batches in flight.
const MEMORY: u64 = 1 << 30;
/// Bytes of the blocks in which objects are read in order, and the number of blocks that are requested ahead.
/// With blocks of 1 MiB a trainer waits no less at its start, and for four times the requests: all that are
/// under way share the link, so they arrive together.
const IN_ORDER_BLOCK: u64 = 4 << 20;
const IN_ORDER_BLOCKS: u64 = 32;
/// Mean size of records of objects below which a request takes longer to begin than to read. Sets of few
/// bytes do not matter.
const SMALL_REQUEST: u64 = 256 << 10;
const FEW_BYTES: u64 = 16 << 20;
/// A block of a compressed shard that is this number of times as long as the decompression up to its start is
/// long enough.
const START_SHARE: u64 = 5;
/// Mean record size below which a global order reads scattered pages.
const SMALL_RECORD: u64 = 64 << 10;

impl Dataset {
    /// Returns the options of a loader that parses records with a schema.
    pub fn loader(&self, schema: &Schema) -> LoaderOptions {
        LoaderOptions::new(self.clone(), Some(BatchParser::new(schema)))
    }

    /// Returns the options of a loader that yields unparsed records.
    pub fn record_loader(&self) -> LoaderOptions {
        LoaderOptions::new(self.clone(), None)
    }
}

impl LoaderOptions {
    fn new(dataset: Dataset, parser: Option<BatchParser>) -> LoaderOptions {
        let damage = dataset.damage();
        LoaderOptions {
            dataset,
            parser,
            mix: None,
            batch: None,
            shuffle: None,
            block_bytes: None,
            subset: None,
            classes: None,
            buckets: None,
            seed: 0,
            epoch: 0,
            rank: (0, 1),
            worker: (0, 1),
            last: None,
            threads: None,
            batches: None,
            memory: None,
            ahead: None,
            damage,
            verify: None,
            repeat: false,
            #[cfg(test)]
            before_read: None,
        }
    }

    /// Returns options for all sources of a mix.
    pub(super) fn of_mix(sources: MixSources, dataset: Dataset) -> LoaderOptions {
        let parser = sources.parser();
        LoaderOptions { mix: Some(sources), ..LoaderOptions::new(dataset, parser) }
    }

    /// Returns the source of a mix. `None` if options other than a source's were set.
    pub(super) fn into_source(self, weight: u64) -> Option<MixSource> {
        let plain =
            self.mix.is_none() && self.buckets.is_none() && self.classes.is_none() && self.batch.is_none();
        let ordered = *self.order() != Shuffle::None || self.block_bytes.is_some() || self.last.is_some();
        let LoaderOptions { dataset, parser, subset, .. } = self;
        (plain && !ordered).then_some(MixSource { dataset, parser, subset, weight })
    }

    /// Returns the identifier of the records that saved states contain: [`Dataset::fingerprint`], or for a
    /// mix the fingerprint of all sources together.
    ///
    /// # Errors
    /// For a dataset opened from a pack: the errors of opening each shard.
    pub fn fingerprint(&self) -> Result<String> {
        self.mix.as_ref().map_or_else(|| self.dataset.fingerprint(), MixSources::fingerprint)
    }

    /// Replaces the parser made from the schema by one with other options.
    pub fn parser(self, parser: BatchParser) -> LoaderOptions {
        LoaderOptions { parser: Some(parser), ..self }
    }

    /// Sets the number of samples in one rank's batch, as in torch. The global batch is this number times the
    /// number of ranks.
    pub fn batch_size(self, samples: u64) -> LoaderOptions {
        LoaderOptions { batch: Some(BatchSamples::PerRank(samples)), ..self }
    }

    /// Sets the number of samples of a batch over all ranks, a multiple of the number of ranks. Global
    /// batches then do not depend on the number of ranks.
    pub fn global_batch_size(self, samples: u64) -> LoaderOptions {
        LoaderOptions { batch: Some(BatchSamples::Global(samples)), ..self }
    }

    /// Sets the order of the records in an epoch. Default: no shuffle.
    pub fn shuffle(self, shuffle: Shuffle) -> LoaderOptions {
        LoaderOptions { shuffle: Some(shuffle), ..self }
    }

    /// Sets the size of the blocks of [`Shuffle::Block`] in bytes, of compressed shards decompressed.
    /// Default: 1 MiB. A run that resumes has the blocks of its saved state. All ranks must have the same
    /// size.
    ///
    /// A window has the same number of blocks, so larger blocks take more memory. They suit storage with
    /// expensive seeks, and compressed shards, where [`Warning::BlockStarts`] names a size.
    pub fn block_bytes(self, bytes: u64) -> LoaderOptions {
        LoaderOptions { block_bytes: Some(bytes), ..self }
    }

    /// Restricts the loader to these records, in the configured order. Other records are ignored, as if
    /// the dataset did not contain them.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..1000 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i % 10]).encode()?)?; }
    /// # writer.close()?;
    /// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// let (threes, _) = ds.select(&"label == 3".parse()?, &Default::default())?;
    /// let loader = ds.record_loader().batch_size(10).shuffle(tfseek::loader::Shuffle::Global).seed(42).select(threes).build()?;
    /// assert_eq!(loader.cursor().steps_left()?, 10);
    ///
    /// // Every batch has the same number of records of each of the ten classes.
    /// let label = ds.column("label", &Default::default())?;
    /// let mut loader = ds.record_loader().batch_size(20).seed(42).balance(&label)?.build()?;
    /// let ids = loader.next().unwrap()?.ids.to_vec();
    /// assert!((0..10).all(|class| ids.iter().filter(|&&id| id % 10 == class).count() == 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select(self, records: impl Into<Subset>) -> LoaderOptions {
        LoaderOptions { subset: Some(records.into()), ..self }
    }

    /// Delivers the same number of samples of each value of a column, and shuffles each class separately:
    /// globally ([`Spec::Mix`]), or with a block shuffle within the blocks of a window
    /// ([`Spec::BalancedBlock`]). Other orders are refused.
    ///
    /// With [`select`](LoaderOptions::select) only the selected records count, and a class without a selected
    /// record is left out. The lists take eight bytes per record.
    ///
    /// # Errors
    /// Errors of [`DatasetColumn::classes`].
    pub fn balance(mut self, column: &DatasetColumn) -> Result<LoaderOptions> {
        let subsets = column.classes()?.into_iter().map(|(_, ids)| Subset::from_ascending(ids)).collect();
        self.classes = Some(ClassSubsets { feature: column.feature.clone(), classes: subsets });
        Ok(self)
    }

    /// Delivers batches of records of like length. The buckets have the batch sizes, in place of the
    /// loader's. The shuffle, which is [`Shuffle::None`] or [`Shuffle::Global`], and the treatment of last
    /// batches are the loader's. Sizes are not options of the loader, because other orders would refuse them.
    ///
    /// The buckets have the lengths of all records, or with [`select`](LoaderOptions::select) of the selected
    /// ones.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("train.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..1000 { writer.write(&vec![0; i % 100])?; }
    /// # writer.close()?;
    /// # let ds = tfseek::DatasetOptions::new().index(tfseek::IndexMode::Memory).open(&path)?;
    /// use tfseek::{loader::Shuffle, order::Buckets};
    /// let lengths = (0..1000).map(|i| i % 100); // of the payloads
    /// let buckets = Buckets::new(lengths, [16, 32, 64])?.tokens_per_batch(4096, 1);
    /// let loader = ds.record_loader().buckets(buckets).shuffle(Shuffle::Global).seed(42).build()?;
    /// for step in loader {
    ///     let step = step?;
    ///     assert!(step.ids.len() as u64 * step.lengths.unwrap().longest <= 4096);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn buckets(self, buckets: Buckets) -> LoaderOptions {
        LoaderOptions { buckets: Some(buckets), ..self }
    }

    /// Sets the seed of the order. Default: 0. [`seed_of`](crate::order::seed_of) converts a negative number
    /// to a seed.
    pub fn seed(self, seed: u64) -> LoaderOptions {
        LoaderOptions { seed, ..self }
    }

    /// Sets the first epoch. Default: 0.
    pub fn epoch(self, epoch: u64) -> LoaderOptions {
        LoaderOptions { epoch, ..self }
    }

    /// Sets the rank and the number of ranks. Default: rank 0 of 1.
    pub fn rank(self, rank: u64, ranks: u64) -> LoaderOptions {
        LoaderOptions { rank: (rank, ranks), ..self }
    }

    /// Restricts the loader to the steps `worker`, `worker + workers`, .. of this rank. Default: worker 0 of
    /// 1.
    ///
    /// This serves worker processes that deliver batches in round-robin order, as the workers of torch's
    /// `DataLoader` do. In that order their batches are the batches of one loader.
    ///
    /// [`state`](Loader::state) is then the end of the round that the worker's last step belongs to. A round
    /// has one step of each worker. With the same number of workers, each worker resumes exactly from its own
    /// state. If all workers have delivered the same number of steps, all of them can resume from the state
    /// of any one.
    pub fn worker(self, worker: u64, workers: u64) -> LoaderOptions {
        LoaderOptions { worker: (worker, workers), ..self }
    }

    /// Sets the treatment of the last, incomplete batch of an epoch. By default no record is lost: with one
    /// rank the batch is short, with several ranks it is padded.
    pub fn last_batch(self, last: LastBatch) -> LoaderOptions {
        LoaderOptions { last: Some(last), ..self }
    }

    /// Sets the number of [`threads`](crate::threads) that make batches, at most
    /// [`MAX_THREADS`](crate::MAX_THREADS). 0: the calling thread makes each batch on request. The batches do
    /// not depend on this number.
    ///
    /// By default the loader begins with one thread. It adds threads, up to one per processor, while the
    /// caller waits for batches more than a twentieth of the time, and parks those that do not bring more
    /// batches. The last processor gets a thread only if the caller waits more than a quarter of the time.
    /// [`Loader::threads`] returns the chosen number.
    pub fn threads(self, threads: impl Into<Option<usize>>) -> LoaderOptions {
        LoaderOptions { threads: threads.into(), ..self }
    }

    /// Sets the largest number of batches in flight: being made, or made and not yet returned. Default: twice
    /// the number of threads that work, at least 4.
    pub fn batches_ahead(self, batches: usize) -> LoaderOptions {
        LoaderOptions { batches: Some(batches), ..self }
    }

    /// Sets the limit of the payload bytes of all batches in flight. Default: 1 GiB or an eighth of the
    /// memory available to the process, whichever is less. One batch is always made, even if it is larger
    /// than the limit.
    ///
    /// Records borrowed from a map take no other memory. Other bytes are copied: numbers into columns,
    /// strings on request, and everything with positional reads. In this case the process also holds the
    /// batch that the caller has. Each thread also keeps the buffers of dropped batches for its next ones:
    /// per thread at most this limit plus one batch, plus an eighth of that. `docs/performance.md` has
    /// measurements.
    pub fn memory(self, bytes: u64) -> LoaderOptions {
        LoaderOptions { memory: Some(bytes), ..self }
    }

    /// Sets the number of bytes that are prefetched ahead of the workers. Default: 256 MiB or a twentieth of
    /// the memory available to the process, whichever is less.
    pub fn look_ahead(self, bytes: u64) -> LoaderOptions {
        LoaderOptions { ahead: Some(bytes), ..self }
    }

    /// Sets the treatment of records whose payload is damaged or does not match the schema. With
    /// [`Damage::Skip`] they are left out and listed in [`Step::skipped`](super::Step#structfield.skipped);
    /// their positions count as delivered. On one rank the records that follow take their places, so that
    /// only the last batch is short. On several ranks and workers, with buckets and in a mix, the rank's
    /// nearest sound row is repeated there as padding. Otherwise the batch is an error at its position in the
    /// order, and later batches stay valid. Default: the dataset's treatment, which decides about damaged
    /// lengths.
    pub fn damage(self, damage: Damage) -> LoaderOptions {
        LoaderOptions { damage, ..self }
    }

    /// Sets the checksums that are verified on each access: in epoch 0, and in later epochs. Default: those
    /// that the dataset verifies.
    pub fn verify(self, first_epoch: Verify, later: Verify) -> LoaderOptions {
        LoaderOptions { verify: Some([first_epoch, later]), ..self }
    }

    /// Makes the iterator continue with the next epoch without returning `None`. By default it returns `None`
    /// at the end of each epoch, and the next call starts the next one.
    pub fn repeat(self, repeat: bool) -> LoaderOptions {
        LoaderOptions { repeat, ..self }
    }

    /// Calls `f` with the record numbers of a batch, in the thread that makes it, before the records are
    /// read.
    #[cfg(test)]
    pub(super) fn before_read(self, f: impl Fn(&[u64]) + Send + Sync + 'static) -> LoaderOptions {
        LoaderOptions { before_read: Some(Arc::new(f)), ..self }
    }

    /// Returns the position at which the loader starts, with its order and its share of it. No loader is
    /// made.
    ///
    /// A cursor can tell which records a run has seen, also on a machine with less memory. It can also drive
    /// another reader in the same order.
    ///
    /// # Errors
    /// Those errors of [`build`](LoaderOptions::build) that concern the order.
    pub fn to_cursor(&self) -> Result<Cursor> {
        let n = self.dataset.len();
        let (rank, ranks) = self.rank;
        let last = self.last.unwrap_or(LastBatch::default_for(ranks));
        let (worker, workers) = self.worker;
        // Only a block order has a size of blocks.
        self.blocks_of_bytes()?;
        if let (Some(buckets), None) = (&self.buckets, &self.mix) {
            let spec = Spec::Buckets(buckets.clone().shuffle(self.shuffles_buckets()?).last_batch(last));
            let order = Order::new(&restricted(spec, self.subset.as_ref()), n, self.seed, self.epoch)?;
            let share = order.bucket_share(rank, ranks)?.worker(worker, workers)?;
            return Ok(Cursor::new(order, share)?.repeat(self.repeat));
        }
        let batch = self.global_batch()?;
        if let Some(mix) = &self.mix {
            return self.mix_cursor(mix, batch);
        }
        let spec = self.spec_of(&self.dataset, batch)?;
        let subset = self.subset.as_ref();
        let spec = match &self.classes {
            None => restricted(spec, subset),
            Some(ClassSubsets { feature, classes }) => {
                let blocks = match (&self.shuffle, &spec) {
                    (None | Some(Shuffle::Global), _) => None,
                    (Some(_), &Spec::Block { block, window }) => Some((block, window)),
                    _ => return Err(other_than_balanced().feature(feature.as_bytes())),
                };
                balanced(n, classes, subset, blocks).map_err(|e| e.feature(feature.as_bytes()))?
            }
        };
        self.cursor_of(&spec, batch, last)
    }

    /// Returns the start of this rank's and worker's share of an order.
    fn cursor_of(&self, spec: &Spec, batch: u64, last: LastBatch) -> Result<Cursor> {
        let (rank, ranks) = self.rank;
        let (worker, workers) = self.worker;
        let order = Order::new(spec, self.dataset.len(), self.seed, self.epoch)?;
        let share = RankShare::new(order.len(), batch, rank, ranks, last)?;
        Ok(Cursor::new(order, share.worker(worker, workers)?)?.repeat(self.repeat))
    }

    fn order(&self) -> &Shuffle {
        self.shuffle.as_ref().unwrap_or(&Shuffle::None)
    }

    /// Returns the order of all records of a dataset.
    fn spec_of(&self, dataset: &Dataset, batch: u64) -> Result<Spec> {
        Ok(match self.order() {
            Shuffle::None => Spec::Sequential,
            Shuffle::Global => Spec::Global,
            Shuffle::Order(spec) => spec.clone(),
            Shuffle::Block => {
                Spec::block_of(self.blocks_of_bytes()?, dataset.len(), dataset.stored_bytes()?, batch)
            }
        })
    }

    /// Returns the size of a block of a block order in bytes. Refuses a size that no block has.
    fn blocks_of_bytes(&self) -> Result<u64> {
        match self.block_bytes {
            None => Ok(BLOCK_BYTES),
            Some(0) => Err(Error::order("block_bytes: expected at least 1, found 0")),
            Some(bytes) if *self.order() == Shuffle::Block => Ok(bytes),
            Some(bytes) => Err(Error::order(format!(
                "block_bytes: expected a block shuffle, whose blocks have {bytes} bytes, found another order"
            ))),
        }
    }

    /// Returns true if buckets are shuffled. Refuses options that buckets do not have.
    fn shuffles_buckets(&self) -> Result<bool> {
        let refused = |reason: &str| Err(Error::order(reason));
        if self.batch.is_some() {
            return refused("buckets have batch sizes of their own: expected no other batch size");
        }
        if self.classes.is_some() {
            return refused("buckets do not balance classes: expected one of the two");
        }
        match self.order() {
            Shuffle::None => Ok(false),
            Shuffle::Global => Ok(true),
            Shuffle::Block => refused("buckets have no block order: expected a global shuffle or none"),
            Shuffle::Order(_) => {
                refused("buckets have an order of their own: expected a global shuffle or none")
            }
        }
    }

    /// Returns the largest number of samples of a batch of this rank. Refuses more than [`MAX_SAMPLES`].
    fn rank_samples(&self) -> Result<u64> {
        let batch = match &self.buckets {
            Some(buckets) => buckets.largest_batch(),
            None => self.global_batch()?,
        };
        let samples = batch / self.rank.1.max(1);
        match self.batch {
            _ if samples <= MAX_SAMPLES => Ok(samples),
            Some(BatchSamples::PerRank(given) | BatchSamples::Global(given)) => Err(too_many_samples(given)),
            None => Err(too_many_samples(samples)),
        }
    }

    /// Returns true if no other rank or worker reads the same order.
    fn is_alone(&self) -> bool {
        (self.rank.1, self.worker.1) == (1, 1)
    }

    /// Returns the start of a mix.
    fn mix_cursor(&self, mix: &MixSources, batch: u64) -> Result<Cursor> {
        if self.subset.is_some() || self.classes.is_some() || self.buckets.is_some() {
            return Err(Error::order(
                "expected records that are selected in the sources of a mix, and no buckets and balanced classes",
            ));
        }
        let last = match (mix.stop, self.last) {
            (MixStop::Never, None | Some(LastBatch::Continuous)) => LastBatch::Continuous,
            (MixStop::Never, Some(_)) => {
                return Err(Error::order(
                    "expected a continuous last batch of a mix that never stops: no batch of it is short",
                ));
            }
            (_, last) => last.unwrap_or(LastBatch::default_for(self.rank.1)),
        };
        if let Shuffle::Order(_) = self.order() {
            return Err(Error::order(
                "expected no shuffle, a global or a block shuffle of a mix, found another order",
            ));
        }
        let spec = mix.spec(batch, |dataset| self.spec_of(dataset, batch))?;
        self.cursor_of(&spec, batch, last)
    }

    /// Returns the number of samples of a batch over all ranks.
    fn global_batch(&self) -> Result<u64> {
        match self.batch {
            None => Err(OptionsError::NoBatchSize.into()),
            Some(BatchSamples::Global(samples)) => Ok(samples),
            Some(BatchSamples::PerRank(samples)) => {
                samples.checked_mul(self.rank.1).ok_or_else(|| too_many_samples(samples))
            }
        }
    }

    /// Validates the options and makes the loader. Before the first call of `next` no record is read and no
    /// thread is started.
    ///
    /// # Errors
    /// [`OrderError`](crate::error::OrderError) if the rank is not below the number of ranks, the batch
    /// cannot be divided among the ranks, a rank's batch has more than 2^24 samples, or the order is
    /// unsuitable for the dataset. [`OptionsError`] without a batch size, and for more than
    /// [`MAX_THREADS`](crate::MAX_THREADS) threads.
    pub fn build(self) -> Result<Loader> {
        let samples = self.rank_samples()?;
        let cursor = self.to_cursor()?;
        let memory = memory_limit();
        let spec = cursor.order().spec();
        let (blocks, window_records) = self.order_blocks(spec, memory)?;
        if window_records > 0 {
            self.dataset.set().keep_inflated(window_records);
        }
        let object_blocks = self.object_blocks(spec, &blocks, window_records);
        let warnings = self.warnings(spec, memory);
        // A rank and a worker cannot know what others lost, and batches of buckets and of a mix have places
        // of their own.
        let has_places = cursor.order().has_buckets() || matches!(spec, Spec::Mix(mix) if !mix.is_balanced());
        let fills = self.damage == Damage::Skip && self.is_alone() && !has_places;
        let threads = match self.threads {
            Some(0) => ThreadNumber::Fixed(0),
            Some(n) => ThreadNumber::Fixed(self::threads::threads(Some(n))?),
            None => ThreadNumber::Chosen(Pace::new(self::threads::threads(None)?)),
        };
        let limits = QueueLimits {
            batches: self.batches.map(|batches| batches.max(1)),
            memory: self.memory.unwrap_or(MEMORY.min(memory / 8)),
            ahead_records: MAX_RECORDS_AHEAD.max(samples),
            ahead_bytes: self.ahead.unwrap_or(BYTES_AHEAD.min(memory / 20)),
            min_ahead_records: MIN_RECORDS_AHEAD,
        };
        let verify = self.verify.unwrap_or([self.dataset.set().verify(); 2]);
        let cancelled = Arc::default();
        let worker = BatchWorker {
            fills,
            left_out: Mutex::default(),
            dataset: self.dataset,
            parser: self.parser.map(|parser| parser.of_loader(&cancelled)),
            mix: self.mix.map(|mix| mix.of_loader(&cancelled)),
            cancelled,
            damage: self.damage,
            verify,
            blocks,
            object_blocks,
            ahead: ReadAhead::default(),
            buffers: BytePool::default(),
            clock: WorkerClock::default(),
            #[cfg(test)]
            before_read: self.before_read,
        };
        Ok(Loader::new(worker, cursor, limits, threads, warnings))
    }

    /// Returns the blocks of a block order, of each source of a mix, and the number of records of all
    /// windows. Checks that the windows fit into memory.
    fn order_blocks(&self, spec: &Spec, memory: u64) -> Result<(Vec<Option<OrderBlocks>>, u64)> {
        if let Some(mix) = &self.mix {
            return mix.blocks(spec, memory);
        }
        let Some((block, window)) = spec.block_sizes() else { return Ok((Vec::new(), 0)) };
        if let Some(bytes) = self.dataset.known_bytes() {
            check_memory(self.dataset.len(), bytes, block, window, memory)?;
        }
        let blocks = match spec {
            // Its blocks are of the records that pass.
            Spec::Filtered { .. } => Vec::new(),
            _ => vec![Some(OrderBlocks { first: 0, len: block })],
        };
        Ok((blocks, block.saturating_mul(window)))
    }

    /// Returns the blocks of objects that are requested whole. `None` for files, and for orders that need
    /// only parts of blocks.
    fn object_blocks(
        &self,
        spec: &Spec,
        blocks: &[Option<OrderBlocks>],
        window_records: u64,
    ) -> Option<ObjectBlocks> {
        // Other ranks read other parts of the blocks.
        let in_order = matches!(spec, Spec::Sequential) && self.is_alone();
        let has_blocks = in_order || blocks.iter().any(Option::is_some);
        if !self.dataset.set().has_objects() || !has_blocks {
            return None;
        }
        let n = self.dataset.len();
        let bytes = self.dataset.known_bytes().or_else(|| self.dataset.stored_bytes().ok())?;
        if in_order {
            let len = block_records(IN_ORDER_BLOCK, n, bytes);
            let blocks = vec![Some(OrderBlocks { first: 0, len })];
            return Some(ObjectBlocks::new(blocks, IN_ORDER_BLOCKS * IN_ORDER_BLOCK));
        }
        let two_windows = (2 * u128::from(window_records)).min(n.into());
        let room = two_windows * u128::from(bytes) / u128::from(n.max(1));
        Some(ObjectBlocks::new(blocks.to_vec(), room as u64))
    }

    /// Returns warnings about the order.
    fn warnings(&self, spec: &Spec, memory: u64) -> Vec<Warning> {
        let dataset = &self.dataset;
        let n = dataset.len();
        let bytes = dataset.known_bytes();
        let reads = bytes.and_then(|bytes| {
            if dataset.set().has_objects() {
                scattered_requests(spec, n, bytes)
            } else {
                scattered_reads(spec, n, bytes, memory)
            }
        });
        let inflation = bytes.and_then(|_| scattered_inflation(spec, dataset.inflated_bytes()));
        let starts = match &self.mix {
            Some(mix) => mix.orders(spec).find_map(|(spec, dataset)| block_starts(spec, dataset)),
            None => block_starts(spec, dataset),
        };
        let derived = if spec.is_scattered() { dataset.set().scattered() } else { None };
        let all = [reads, inflation, starts, derived, rare_class(spec, n)];
        all.into_iter().flatten().collect()
    }
}

#[cold]
fn too_many_samples(samples: u64) -> Error {
    Error::order(format!("expected at most {MAX_SAMPLES} samples per batch and rank, found {samples}"))
}

/// Returns a warning if a global order over small records will be slow on this machine. The order is not
/// changed, because results must not depend on the machine.
fn scattered_reads(spec: &Spec, n: u64, bytes: u64, memory: u64) -> Option<Warning> {
    let mean = bytes / n.max(1);
    (spec.is_scattered() && bytes > memory && mean < SMALL_RECORD).then_some(Warning::ScatteredReads {
        record_bytes: mean,
        dataset_bytes: bytes,
        memory_bytes: memory,
    })
}

/// Returns a warning if a global order makes more requests than its bytes need.
fn scattered_requests(spec: &Spec, n: u64, bytes: u64) -> Option<Warning> {
    let record_bytes = bytes / n.max(1);
    let scattered = spec.is_scattered() && bytes > FEW_BYTES && record_bytes < SMALL_REQUEST;
    scattered.then_some(Warning::ScatteredRequests { record_bytes, records: n })
}

/// Returns a warning for a global order over compressed shards that the cache of decompressed bytes cannot
/// hold.
fn scattered_inflation(spec: &Spec, inflated_bytes: u64) -> Option<Warning> {
    let scattered = spec.is_scattered() && inflated_bytes > INFLATED_BYTES;
    scattered.then_some(Warning::ScatteredInflation { inflated_bytes })
}

/// Returns a warning about a block order over compressed shards whose blocks are so short that decompression
/// up to their starts takes more than a fifth of them. A checkpoint is half of their distance before a start
/// on average. A single window is decompressed whole.
fn block_starts(spec: &Spec, dataset: &Dataset) -> Option<Warning> {
    let (block, window) = spec.block_sizes()?;
    if dataset.inflated_bytes() <= INFLATED_BYTES || block.saturating_mul(window) >= dataset.len() {
        return None;
    }
    // No size of blocks helps where checkpoints are far apart, and opening the dataset warned of that.
    let start_bytes = dataset.checkpoint_distance().filter(|bytes| *bytes <= INFLATED_BYTES / 8)? / 2;
    // A block is shorter than the dataset, so its bytes fit.
    let record = dataset.known_bytes()? / dataset.len();
    let block_bytes = record * block;
    let enough = start_bytes * START_SHARE;
    // A block has whole records, so it may lack the bytes of one.
    (enough > block_bytes).then(|| Warning::BlockStarts {
        block_bytes,
        start_bytes,
        enough_bytes: (enough + record).next_multiple_of(BLOCK_BYTES),
    })
}

#[cold]
fn other_than_balanced() -> Error {
    Error::order("balanced classes are shuffled: expected a global or a block shuffle, found another order")
}

/// Returns an order with the same number of samples of each class, restricted to the records of a subset: a
/// global one, or one in blocks of this size and windows of this number of them.
fn balanced(n: u64, classes: &[Subset], subset: Option<&Subset>, blocks: Option<(u64, u64)>) -> Result<Spec> {
    let in_subset = |class: &Subset| match subset {
        Some(subset) => {
            Subset::from_ascending(class.iter().filter(|&id| subset.rank(id).is_some()).collect())
        }
        None => class.clone(),
    };
    let classes: Vec<Subset> = classes.iter().map(in_subset).filter(|class| !class.is_empty()).collect();
    if classes.is_empty() {
        let without = if subset.is_some() { "none of the selected records" } else { "no record" };
        return Err(Error::order(format!("there are no classes to balance: {without} has a value")));
    }
    let Some((block, window)) = blocks else { return Ok(Spec::balanced(classes)) };
    let (classes, subset) = Classes::new(n, &classes)?;
    Ok(restricted(Spec::BalancedBlock { classes, block, window }, subset.as_ref()))
}

/// Returns a warning about balanced blocks if a class is in so few blocks that windows lack it.
fn rare_class(spec: &Spec, n: u64) -> Option<Warning> {
    let (inner, len) = match spec {
        Spec::Filtered { subset, order } => (&**order, subset.len()),
        spec => (spec, n),
    };
    let Spec::BalancedBlock { classes, block, window } = inner else { return None };
    let blocks = classes.fewest_blocks(*block);
    let windows = len.div_ceil(*block).div_ceil(*window);
    (blocks < windows).then_some(Warning::RareClass { blocks, windows })
}

impl fmt::Debug for LoaderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderOptions")
            .field("dataset", &self.dataset)
            .field("batch", &self.batch)
            .field("shuffle", self.order())
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
    fn extreme_option_values_are_refused_or_harmless() {
        let mut bytes = Vec::new();
        (0..64).for_each(|_| crate::frame::put_record(&mut bytes, &[7; 100]).unwrap());
        let dataset = crate::Mapped::from_bytes(bytes).unwrap();
        let loader = || dataset.dataset().record_loader().batch_size(8);
        for threads in [crate::MAX_THREADS + 1, 1 << 31, usize::MAX] {
            let e = loader().threads(threads).build().unwrap_err();
            assert!(e.to_string().contains("at most 1024"), "{e}");
        }
        let most = loader().threads(2).batches_ahead(usize::MAX).memory(u64::MAX).look_ahead(u64::MAX);
        assert_eq!(most.build().unwrap().map(|step| step.unwrap().ids.len()).sum::<usize>(), 64);
        let least = loader().threads(2).batches_ahead(0).memory(0).look_ahead(0);
        assert_eq!(least.build().unwrap().map(|step| step.unwrap().ids.len()).sum::<usize>(), 64);
        for threads in [crate::MAX_THREADS + 1, usize::MAX] {
            let index = crate::index::IndexOptions::new().threads(threads);
            let e = crate::DatasetOptions::new().index(index).open("nowhere").unwrap_err();
            assert!(e.to_string().contains("at most 1024"), "{e}");
        }
    }

    #[test]
    fn a_global_order_over_small_records_in_a_large_dataset_warns() {
        let warned = |spec, n, bytes| scattered_reads(&spec, n, bytes, 1 << 30);
        let text = warned(Spec::Global, 1 << 20, 2 << 30).unwrap().to_string();
        assert!(text.contains("records of 2048 bytes") && text.contains("block order"), "{text}");
        assert_eq!(warned(Spec::Global, 1 << 20, 1 << 29), None);
        assert_eq!(warned(Spec::Global, 1 << 10, 2 << 30), None);
        assert_eq!(warned(Spec::block_of(1 << 20, 1 << 20, 2 << 30, 64), 1 << 20, 2 << 30), None);
    }
}
