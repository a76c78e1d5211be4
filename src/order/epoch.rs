//! An order: a spec applied to a number of records, a seed and an epoch.

use super::buckets::{BucketOrder, BucketSteps};
use super::mix::Mix;
use super::share::{RankShare, Run};
use super::source::{OrderSource, SourceKey};
use super::spec::{MixStart, Spec};
use crate::error::{Error, ErrorKind, OrderError, Result};
use std::fmt;
use std::sync::Arc;

/// The order of one epoch: the record at each position.
///
/// It is immutable and cheap to clone. Creating one takes well under a microsecond, except for a mixture of
/// very many components. [`at_epoch`](Order::at_epoch) shares all data with the order it was called on.
///
/// ```
/// use tfseek::order::{Subset, Order, Spec};
/// let order = Order::new(&Spec::Global, 1000, 42, 7)?;
/// let mut batch = [0; 4];
/// order.fill(0, &mut batch)?;
/// assert_eq!(batch, [34, 319, 461, 155]);
/// assert_eq!(order.position_of(461)?, Some(2));
/// assert!(order.get(1000).is_err());
///
/// // Only the records 0, 10, 20, ..
/// let tens = Spec::Global.filtered(Subset::from_fn(1000, |i| i % 10 == 0));
/// let order = Order::new(&tens, 1000, 42, 7)?;
/// assert_eq!((order.len(), order.get(5)? % 10), (100, 0));
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone)]
pub struct Order {
    base: Arc<OrderBase>,
    epoch: u64,
    order: EpochOrder,
}

/// The data shared by all epochs of an order.
struct OrderBase {
    spec: Spec,
    n: u64,
    len: u64,
    seed: u64,
}

/// The source of the records, and its key of one epoch.
#[derive(Clone)]
enum EpochOrder {
    One(Arc<OrderSource>, SourceKey),
    /// A mix, and its turn at which the epoch begins, counted over all epochs.
    Mixed(Arc<Mix>, u64),
}

impl Order {
    /// Creates the order of `n` records in an epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if
    /// - the spec does not match `n` records (a filter or weights of another dataset, an empty component),
    /// - specs are nested that must not be,
    /// - the spec has sizes of 0 or too many windows, or
    /// - a mixture's positions up to this epoch are beyond u64.
    pub fn new(spec: &Spec, n: u64, seed: u64, epoch: u64) -> Result<Order> {
        let (len, order) = match spec {
            Spec::Mix(mix) => {
                let mix = Mix::new(mix, n, seed)?;
                let first = mix.first_turn(epoch)?;
                (mix.len, EpochOrder::Mixed(Arc::new(mix), first))
            }
            _ => {
                let source = OrderSource::new(spec, 0..n)?;
                let key = source.key(seed, epoch, 0);
                (source.len, EpochOrder::One(Arc::new(source), key))
            }
        };
        Ok(Order { base: Arc::new(OrderBase { spec: spec.clone(), n, len, seed }), epoch, order })
    }

    /// Returns the same order in another epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) for a mixture whose positions up to that epoch are
    /// beyond u64. Other orders return no error.
    pub fn at_epoch(&self, epoch: u64) -> Result<Order> {
        let order = match &self.order {
            EpochOrder::One(source, _) => {
                EpochOrder::One(source.clone(), source.key(self.base.seed, epoch, 0))
            }
            EpochOrder::Mixed(mix, _) => EpochOrder::Mixed(mix.clone(), mix.first_turn(epoch)?),
        };
        Ok(Order { base: self.base.clone(), epoch, order })
    }

    /// Returns the number of positions per epoch.
    pub fn len(&self) -> u64 {
        self.base.len
    }

    /// Returns the number of positions at which a run can start or be saved: the positions of an epoch, or
    /// the steps of an order of buckets.
    pub(super) fn steps(&self) -> u64 {
        self.buckets().map_or(self.base.len, BucketOrder::steps)
    }

    /// Returns the buckets, if this is an order of buckets.
    fn buckets(&self) -> Option<&BucketOrder> {
        match &self.order {
            EpochOrder::One(_, SourceKey::Buckets(buckets, _)) => Some(buckets),
            _ => None,
        }
    }

    /// Returns true for an order of buckets.
    pub(crate) fn has_buckets(&self) -> bool {
        self.buckets().is_some()
    }

    /// Returns the batches of this epoch, for an order of buckets.
    fn bucket_steps(&self, ranks: u64) -> Result<Option<BucketSteps>> {
        let steps = |buckets| BucketSteps::new(buckets, ranks, self.base.seed, self.epoch);
        self.buckets().map(steps).transpose()
    }

    /// Returns the share of `rank` of `ranks` in this epoch of [`Spec::Buckets`], which have the batch sizes
    /// and the treatment of last batches. Its starts and ends count steps instead of positions. Each epoch
    /// has a share of its own, which [`Cursor::share`](super::Cursor::share) returns.
    ///
    /// # Errors
    /// [`ErrorKind::Order`](crate::ErrorKind::Order) if `rank` is not below `ranks`, if a batch size is not a
    /// multiple of `ranks` or has more than 2^24 samples per rank, and for an order without buckets.
    pub fn bucket_share(&self, rank: u64, ranks: u64) -> Result<RankShare> {
        if rank >= ranks {
            return Err(OrderError::Rank { rank, ranks }.into());
        }
        let steps = self.bucket_steps(ranks)?;
        let steps = steps.ok_or_else(|| Error::order("expected an order of buckets, found another kind"))?;
        RankShare::of_buckets(steps, rank, ranks)
    }

    /// Returns the share of the same rank in this order: in another epoch of its buckets, or with the batch
    /// sizes of a saved state. Without buckets it is the same share.
    pub(crate) fn share_of(&self, share: RankShare) -> Result<RankShare> {
        Ok(match self.bucket_steps(share.ranks())? {
            Some(steps) => share.with_buckets(steps),
            // The epochs of a mix have the length of epoch 0 of the run that was resumed.
            None if share.len != self.base.len => share.of_len(self.base.len),
            None => share,
        })
    }

    /// Returns the largest length of the rows at these positions and the sum of their lengths, for an order
    /// of buckets.
    #[expect(clippy::indexing_slicing, reason = "`here` is at most the length of the chunk")]
    pub(crate) fn lengths(&self, runs: impl Iterator<Item = Run>) -> Option<(u64, u64)> {
        let EpochOrder::One(_, SourceKey::Buckets(buckets, key)) = &self.order else { return None };
        let mut lengths = [0; 64];
        let mut longest = 0;
        let mut sum = 0;
        for run in runs {
            let mut done = 0;
            while done < run.len {
                let here = (run.len - done).min(lengths.len() as u64);
                let lengths = &mut lengths[..here as usize];
                buckets.fill_lengths(key, run.start + done, lengths);
                longest = lengths.iter().copied().fold(longest, u64::max);
                sum += lengths.iter().sum::<u64>();
                done += here;
            }
        }
        Some((longest, sum))
    }

    /// Returns true if an epoch has no positions.
    pub fn is_empty(&self) -> bool {
        self.base.len == 0
    }

    /// Returns the number of records that the order was created for.
    pub fn records(&self) -> u64 {
        self.base.n
    }

    /// Returns the seed.
    pub(crate) fn seed(&self) -> u64 {
        self.base.seed
    }

    /// Returns the epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the spec that the order was created from.
    pub fn spec(&self) -> &Spec {
        &self.base.spec
    }

    /// Returns the record at a position. Positions come from users and files, so a wrong one is an error.
    ///
    /// # Errors
    /// [`OrderError::Position`] if the position is not below [`len`](Order::len).
    pub fn get(&self, position: u64) -> Result<u64> {
        self.check(position, 1)?;
        Ok(match &self.order {
            EpochOrder::One(source, key) => source.get(key, position),
            EpochOrder::Mixed(mix, first) => {
                let mut record = [0];
                mix.fill(self.base.seed, *first, position, &mut record)?;
                let [record] = record;
                record
            }
        })
    }

    /// Fills `out` with the records at the positions from `start` on. It does not allocate, except for the
    /// table of a mixture's cycle, whose memory is reused.
    ///
    /// # Errors
    /// [`OrderError::Position`] if the epoch ends before `start + out.len()`. `out` is not changed then.
    pub fn fill(&self, start: u64, out: &mut [u64]) -> Result<()> {
        self.check(start, out.len() as u64)?;
        match &self.order {
            EpochOrder::One(source, key) => source.fill(key, start, out),
            EpochOrder::Mixed(mix, first) => mix.fill(self.base.seed, *first, start, out)?,
        }
        Ok(())
    }

    /// Returns the first position of this epoch that has a record. It is 0, except after a change of a mix's
    /// weights within the epoch.
    pub(super) fn start(&self) -> u64 {
        match &self.order {
            EpochOrder::One(..) => 0,
            EpochOrder::Mixed(mix, first) => mix.start(*first),
        }
    }

    /// Returns the number of positions that a saved state counts as one: the rows of a batch, if a mix has
    /// whole batches.
    pub(super) fn unit(&self) -> u64 {
        match &self.order {
            EpochOrder::One(..) => 1,
            EpochOrder::Mixed(mix, _) => mix.rows,
        }
    }

    /// Returns the start of the cycles of a mix.
    pub(super) fn mix_start(&self) -> Option<MixStart> {
        match &self.order {
            EpochOrder::One(..) => None,
            EpochOrder::Mixed(mix, _) => Some(mix.started()),
        }
    }

    /// Returns the start of a mix's cycles with other weights at a position of this epoch, or at its end.
    pub(super) fn mix_restart(&self, position: u64) -> Result<Option<MixStart>> {
        match &self.order {
            EpochOrder::One(..) => Ok(None),
            EpochOrder::Mixed(mix, first) => mix.restarted(first + position / mix.rows).map(Some),
        }
    }

    /// Returns the position of a record: the inverse of [`get`](Order::get). It returns `None` for a record
    /// that a filter excludes, and for mixtures, balanced and weighted orders, where a record may have
    /// several positions (see [`rows_of`](Order::rows_of)).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) if the record is not below
    /// [`records`](Order::records).
    pub fn position_of(&self, record: u64) -> Result<Option<u64>> {
        self.check_record(record)?;
        Ok(match &self.order {
            EpochOrder::One(source, key) => source.inverse(key, record),
            EpochOrder::Mixed(..) => None,
        })
    }

    /// Returns all positions of a record in this epoch in ascending order, for any kind of order.
    pub(super) fn positions_of(&self, record: u64) -> Result<Vec<u64>> {
        self.check_record(record)?;
        let mut positions = Vec::new();
        match &self.order {
            EpochOrder::One(source, key) => source.positions(key, record, |t| positions.push(t)),
            EpochOrder::Mixed(mix, first) => {
                mix.positions(self.base.seed, *first, record, |t| positions.push(t));
            }
        }
        positions.sort_unstable();
        Ok(positions)
    }

    fn check_record(&self, record: u64) -> Result<()> {
        if record >= self.base.n {
            return Err(ErrorKind::OutOfRange { what: "record", i: record.into(), len: self.base.n }.into());
        }
        Ok(())
    }

    /// Describes the order and its cost as text for users. With the samples of a global batch it has the
    /// design effect for such batches.
    ///
    /// ```
    /// use tfseek::order::{Order, Spec};
    /// let order = Order::new(&Spec::Block { block: 256, window: 256 }, 1 << 20, 0, 0)?;
    /// assert_eq!(
    ///     order.describe(Some(256)),
    ///     "1048576 records in block order: 4096 blocks of 256, 16 windows of 256 blocks, at most 131072 records in \
    ///      memory; deff(rho=1) = 2.00 for batches of 256"
    /// );
    /// assert_eq!(Order::new(&Spec::Global, 1000, 0, 0)?.describe(None), "1000 records in global order");
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    pub fn describe(&self, global_batch: Option<u64>) -> String {
        match &self.order {
            EpochOrder::One(source, _) => source.describe(global_batch),
            EpochOrder::Mixed(mix, _) => mix.describe(global_batch),
        }
    }

    fn check(&self, start: u64, count: u64) -> Result<()> {
        let len = self.base.len;
        if count > len || start > len - count {
            // The first position that does not exist.
            return Err(OrderError::Position { position: start.max(len), len }.into());
        }
        Ok(())
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("spec", &self.base.spec)
            .field("records", &self.base.n)
            .field("seed", &self.base.seed)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}
