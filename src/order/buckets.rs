//! Buckets of records of like length: the rows of each, their order, and the batches of an epoch.
//!
//! ```text
//! lengths     3 17 5 30 2 ..                 one per row
//! bucket k    boundaries[k - 1] < length <= boundaries[k], and one more for what is longer
//! position    | rows of bucket 0 | rows of bucket 1 | ..        each permuted
//! batch       | 0  1  2 | 3  4 | ..                             sizes[k] positions of one bucket
//! step s      batch PRP1(M, ..).get(s)
//! ```

#![expect(clippy::indexing_slicing, reason = "each bucket has rows, a size, a start and a first batch")]

use super::digest::digest;
use super::last_batch::{LastBatch, MAX_SAMPLES};
use super::prp::Permutation;
use super::subset::Subset;
use crate::error::{Error, OrderError, Result};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Stream of the rows of bucket 0. Bucket k has stream `ROWS + k`.
const ROWS: u64 = 4 << 32;
/// Stream of the batches.
const BATCHES: u64 = 5 << 32;
/// Limit of the text of boundaries and sizes, which a saved state lists.
const MAX_TEXT: usize = 3500;

/// Rows sorted into buckets by length: bucket k has the rows with
/// `boundaries[k - 1] < length <= boundaries[k]`, and one bucket more has those that are longer. A batch has
/// rows of one bucket.
///
/// The rows are the order's: all records, or the survivors of a filter. Clones share the lengths, four bytes
/// per row, and the lists of rows: per row at most eight bytes, or 1.13 bits per bucket if that is less.
///
/// ```
/// use tfseek::order::{Buckets, Order, Spec};
/// // Two rows of up to 4 values in a batch, or one longer row.
/// let buckets = Buckets::new([3, 9, 1, 4, 2, 7], [4])?.batch_sizes([2, 1]);
/// let order = Order::new(&Spec::Buckets(buckets), 6, 0, 0)?;
/// let share = order.bucket_share(0, 1)?;
/// assert_eq!(share.steps(), 4);
/// let batch = |k| order.samples(share.step(k).unwrap()).unwrap().iter().map(|row| row.record).collect::<Vec<_>>();
/// assert_eq!([batch(0), batch(1), batch(2), batch(3)], [vec![0, 2], vec![3, 4], vec![1], vec![5]]);
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Buckets {
    rows: Arc<BucketRows>,
    /// Rows of a global batch of each bucket.
    pub(super) sizes: Arc<[u64]>,
    pub(super) shuffle: bool,
    last: LastBatch,
}

struct BucketRows {
    boundaries: Vec<u64>,
    lengths: Vec<u32>,
    /// The rows of each bucket.
    buckets: Vec<Subset>,
    digest: OnceLock<u128>,
}

impl Buckets {
    /// Sorts rows into buckets by their lengths, one for each row. The boundaries ascend, and each is the
    /// largest length of its bucket.
    ///
    /// Without [`batch_sizes`](Buckets::batch_sizes) or [`tokens_per_batch`](Buckets::tokens_per_batch) no
    /// order can be created from it.
    ///
    /// # Errors
    /// [`OrderError::Refused`] for boundaries that do not ascend, and for a length of 2^32 or more.
    pub fn new(lengths: impl IntoIterator<Item = u64>, boundaries: impl Into<Vec<u64>>) -> Result<Buckets> {
        let boundaries = boundaries.into();
        if let Some(pair) = boundaries.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::order(format!(
                "expected ascending boundaries, found {} after {}",
                pair[1], pair[0]
            )));
        }
        let mut kept = Vec::new();
        let mut rows = vec![Vec::new(); boundaries.len() + 1];
        for (row, length) in (0u64..).zip(lengths) {
            let length = u32::try_from(length).map_err(|_| {
                Error::order(format!("expected lengths below 2^32, found {length} as length {row}"))
            })?;
            kept.push(length);
            rows[bucket_of(&boundaries, length)].push(row);
        }
        let buckets = rows.into_iter().map(Subset::from_ascending).collect();
        let rows = BucketRows { boundaries, lengths: kept, buckets, digest: OnceLock::new() };
        Ok(Buckets { rows: Arc::new(rows), sizes: Arc::from([]), shuffle: false, last: LastBatch::Short })
    }

    /// Sets the number of rows of a batch over all ranks, one for each bucket.
    #[must_use]
    pub fn batch_sizes(self, sizes: impl Into<Vec<u64>>) -> Buckets {
        Buckets { sizes: sizes.into().into(), ..self }
    }

    /// Sets the batch size of each bucket: the largest multiple of the ranks with at most `tokens` values
    /// when all rows are as long as the bucket allows, and at least one row per rank. In the last bucket they
    /// are as long as its longest row.
    #[must_use]
    pub fn tokens_per_batch(self, tokens: u64, ranks: u64) -> Buckets {
        let ranks = ranks.max(1);
        let last = self.bucket_count() - 1;
        let sizes = (0..=last).map(|k| {
            let longest = match self.rows.boundaries.get(k) {
                Some(&boundary) => boundary,
                None if self.rows.buckets[last].is_empty() => return ranks,
                None => self.longest(last),
            };
            (tokens / longest.max(1) / ranks * ranks).max(ranks)
        });
        let sizes: Vec<u64> = sizes.collect();
        self.batch_sizes(sizes)
    }

    /// Shuffles the rows of each bucket, and the batches of all buckets. Default: false, stored order and
    /// bucket after bucket.
    #[must_use]
    pub fn shuffle(self, shuffle: bool) -> Buckets {
        Buckets { shuffle, ..self }
    }

    /// Sets the treatment of the last batch of each bucket. [`LastBatch::Pad`] repeats the first rows of the
    /// same bucket, and [`LastBatch::Continuous`] is refused. Default: [`LastBatch::Short`].
    #[must_use]
    pub fn last_batch(self, last: LastBatch) -> Buckets {
        Buckets { last, ..self }
    }

    /// Returns the length of the longest row of a bucket.
    fn longest(&self, bucket: usize) -> u64 {
        let lengths = self.rows.buckets[bucket].iter().map(|row| self.length(row));
        lengths.max().unwrap_or(0)
    }

    fn bucket_count(&self) -> usize {
        self.rows.buckets.len()
    }

    fn length(&self, row: u64) -> u64 {
        usize::try_from(row).ok().and_then(|row| self.rows.lengths.get(row)).copied().unwrap_or(0).into()
    }

    pub(super) fn boundaries(&self) -> &[u64] {
        &self.rows.boundaries
    }

    /// Returns the largest batch size, or 0 if there are no sizes yet.
    pub(crate) fn largest_batch(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }

    /// Returns true if incomplete batches are left out.
    pub(super) fn drops(&self) -> bool {
        self.last == LastBatch::Drop
    }

    /// Returns the XXH3-128 of the bucket numbers of all rows. It is computed once.
    pub(super) fn digest(&self) -> u128 {
        let BucketRows { boundaries, lengths, digest: known, .. } = &*self.rows;
        *known.get_or_init(|| digest(lengths.iter().map(|&length| bucket_of(boundaries, length) as u64)))
    }

    /// Refuses what no order can be made of. The order has `len` rows.
    fn check(&self, len: u64) -> Result<()> {
        let found = self.rows.lengths.len();
        let buckets = self.bucket_count();
        let sizes = &self.sizes;
        if found as u64 != len {
            return Err(Error::order(format!("expected {len} lengths, one per record, found {found}")));
        }
        if sizes.len() != buckets {
            return Err(Error::order(format!(
                "expected {buckets} batch sizes, one for each bucket, found {}",
                sizes.len()
            )));
        }
        if sizes.contains(&0) {
            return Err(Error::order("expected batch sizes above 0, found 0"));
        }
        if self.last == LastBatch::Continuous {
            return Err(Error::order(
                "batches of buckets are not continuous: expected drop, pad or short as the last batch",
            ));
        }
        let text = |list: &[u64]| list.iter().map(|number| number.to_string().len() + 1).sum::<usize>();
        let text = text(self.boundaries()) + text(sizes);
        if text > MAX_TEXT {
            return Err(Error::order(format!(
                "expected boundaries and batch sizes of at most {MAX_TEXT} characters in a saved state, found {text}"
            )));
        }
        Ok(())
    }
}

/// Rows are equal if their lengths and boundaries are. The rest follows from them.
impl PartialEq for BucketRows {
    fn eq(&self, other: &BucketRows) -> bool {
        self.boundaries == other.boundaries && self.lengths == other.lengths
    }
}

impl Eq for BucketRows {}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buckets")
            .field("boundaries", &self.rows.boundaries)
            .field("sizes", &self.sizes)
            .field("rows", &self.rows.lengths.len())
            .finish_non_exhaustive()
    }
}

/// Returns the bucket of a length.
fn bucket_of(boundaries: &[u64], length: u32) -> usize {
    boundaries.partition_point(|boundary| *boundary < u64::from(length))
}

/// The positions and batches of all epochs: first of bucket 0, then of bucket 1, ..
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BucketOrder {
    pub(super) buckets: Buckets,
    /// Number of positions, and of batches, before each bucket, and of all.
    starts: Arc<[u64]>,
    batches: Arc<[u64]>,
}

impl BucketOrder {
    /// Creates the order of `len` rows.
    ///
    /// # Errors
    /// [`OrderError::Refused`] if the lengths or sizes do not match, or if there is no batch.
    pub(super) fn new(buckets: &Buckets, len: u64) -> Result<BucketOrder> {
        buckets.check(len)?;
        let mut starts = vec![0];
        let mut batches = vec![0];
        let mut start = 0;
        let mut batch = 0;
        for (rows, size) in buckets.rows.buckets.iter().zip(&*buckets.sizes) {
            let rows = rows.len();
            start += rows;
            batch += if buckets.drops() { rows / size } else { rows.div_ceil(*size) };
            starts.push(start);
            batches.push(batch);
        }
        if batch == 0 {
            let why = if len == 0 { "there are no rows" } else { "no bucket has the rows of one" };
            return Err(Error::order(format!("there is no batch: {why}")));
        }
        let buckets = buckets.clone();
        Ok(BucketOrder { buckets, starts: starts.into(), batches: batches.into() })
    }

    /// Returns the number of batches, which is the number of steps of an epoch.
    pub(super) fn steps(&self) -> u64 {
        self.batches.last().copied().unwrap_or(0)
    }

    /// Returns the keys of an epoch: the permutation of each bucket, or none for stored order.
    pub(super) fn key(&self, seed: u64, epoch: u64) -> Vec<Permutation> {
        let rows = self.buckets.rows.buckets.iter().zip(ROWS..);
        let keys = rows.map(|(rows, stream)| Permutation::new(rows.len(), seed, epoch, stream));
        if self.buckets.shuffle { keys.collect() } else { Vec::new() }
    }

    /// Returns the row at a position, which must exist.
    pub(super) fn get(&self, key: &[Permutation], position: u64) -> u64 {
        let bucket = last_at(&self.starts, position);
        let index = position - self.starts[bucket];
        let index = key.get(bucket).map_or(index, |key| key.get(index));
        self.row(bucket, index)
    }

    /// Fills `out` with the rows at the positions from `start` on, which must exist.
    pub(super) fn fill(&self, key: &[Permutation], start: u64, out: &mut [u64]) {
        let mut done = 0;
        while done < out.len() {
            let position = start + done as u64;
            let bucket = last_at(&self.starts, position);
            let left = self.starts[bucket + 1] - position;
            let end = done + left.min((out.len() - done) as u64) as usize;
            let index = position - self.starts[bucket];
            let out = &mut out[done..end];
            match key.get(bucket) {
                Some(key) => key.fill(index, out),
                None => (index..).zip(&mut *out).for_each(|(index, out)| *out = index),
            }
            out.iter_mut().for_each(|out| *out = self.row(bucket, *out));
            done = end;
        }
    }

    /// Returns the position of a row.
    pub(super) fn inverse(&self, key: &[Permutation], row: u64) -> Option<u64> {
        let length = *self.buckets.rows.lengths.get(usize::try_from(row).ok()?)?;
        let bucket = bucket_of(self.buckets.boundaries(), length);
        let index = self.buckets.rows.buckets[bucket].rank(row)?;
        Some(self.starts[bucket] + key.get(bucket).map_or(index, |key| key.inverse(index)))
    }

    /// Returns the row at `index` of a bucket.
    fn row(&self, bucket: usize, index: u64) -> u64 {
        // The bucket has a row for each index below its length.
        self.buckets.rows.buckets[bucket].select(index).unwrap_or_default()
    }

    /// Fills `out` with the lengths of the rows at the positions from `start` on, which must exist.
    pub(super) fn fill_lengths(&self, key: &[Permutation], start: u64, out: &mut [u64]) {
        self.fill(key, start, out);
        out.iter_mut().for_each(|out| *out = self.buckets.length(*out));
    }

    /// Describes the buckets as text for users.
    pub(super) fn describe(&self) -> String {
        let Buckets { rows, sizes, shuffle, .. } = &self.buckets;
        let order = if *shuffle { "shuffled" } else { "in stored order" };
        let mut text =
            format!("in {} buckets, {order}, {} batches", self.buckets.bucket_count(), self.steps());
        for (k, (rows_of, size)) in rows.buckets.iter().zip(sizes.iter()).enumerate() {
            let lengths = match (rows.boundaries.get(k), k.checked_sub(1).map(|k| rows.boundaries[k])) {
                (Some(most), _) => format!("up to {most}"),
                (None, Some(above)) => format!("above {above}"),
                (None, None) => "all lengths".to_owned(),
            };
            text += &format!(
                "\n  {lengths}: {} in batches of {size}",
                crate::error::Count(rows_of.len(), "record")
            );
        }
        text
    }
}

/// Returns the index of the last start that is at most `at`. The first start is 0.
fn last_at(starts: &[u64], at: u64) -> usize {
    // An empty bucket has the start of the next one, which is the one that is found.
    starts.partition_point(|start| *start <= at) - 1
}

/// The batches of one epoch in the order of its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BucketSteps {
    order: BucketOrder,
    /// The order of the batches. `None`: bucket after bucket.
    batches: Option<Permutation>,
}

/// The positions of a batch: `size` from `begin` on, counted from position `first` of the order, modulo the
/// bucket's `rows`.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketBatch {
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) begin: u64,
    pub(super) size: u64,
}

impl BucketSteps {
    /// Creates the steps of an epoch for a number of ranks.
    ///
    /// # Errors
    /// [`OrderError::Batch`] for a size that is not a multiple of the ranks, and [`OrderError::Refused`] for
    /// one that is too large.
    pub(super) fn new(order: &BucketOrder, ranks: u64, seed: u64, epoch: u64) -> Result<BucketSteps> {
        for &batch in &*order.buckets.sizes {
            if !batch.is_multiple_of(ranks) {
                return Err(OrderError::Batch { batch, ranks }.into());
            }
            if batch / ranks > MAX_SAMPLES {
                return Err(Error::order(format!(
                    "expected at most {MAX_SAMPLES} samples per batch and rank, found {}",
                    batch / ranks
                )));
            }
        }
        let shuffle = order.buckets.shuffle;
        let batches = shuffle.then(|| Permutation::new(order.steps(), seed, epoch, BATCHES));
        Ok(BucketSteps { order: order.clone(), batches })
    }

    pub(super) fn count(&self) -> u64 {
        self.order.steps()
    }

    /// Returns true if the last batch of a bucket is filled up with rows of the same bucket.
    pub(super) fn pads(&self) -> bool {
        self.order.buckets.last == LastBatch::Pad
    }

    /// Returns the batch of a step, which must exist.
    pub(super) fn batch(&self, step: u64) -> BucketBatch {
        let number = self.batches.as_ref().map_or(step, |batches| batches.get(step));
        let bucket = last_at(&self.order.batches, number);
        let first = self.order.starts[bucket];
        let size = self.order.buckets.sizes[bucket];
        let rows = self.order.starts[bucket + 1] - first;
        // The batch exists, so it begins below the number of rows.
        let begin = (number - self.order.batches[bucket]) * size;
        BucketBatch { first, rows, begin, size: if self.pads() { size } else { size.min(rows - begin) } }
    }

    /// Returns the step of a position, which must exist, its place in the batch, and the batch's size. `None`
    /// if its batch is left out.
    pub(super) fn locate(&self, position: u64) -> Option<(u64, u64, u64)> {
        let starts = &self.order.starts;
        let batches = &self.order.batches;
        let bucket = last_at(starts, position);
        let size = self.order.buckets.sizes[bucket];
        let inside = position - starts[bucket];
        let number = Some(batches[bucket] + inside / size).filter(|number| *number < batches[bucket + 1])?;
        let step = self.batches.as_ref().map_or(number, |batches| batches.inverse(number));
        Some((step, inside % size, self.batch(step).size))
    }
}
