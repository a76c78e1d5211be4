//! The files to write: their names, and the records of each.

use super::limits;
use super::names::{OutPattern, SetNames};
use super::options::{ReshardOptions, ReshardSet, ReshardWay, ShardCount};
use super::prepared::PreparedCopy;
use super::sets::{self, check_count};
use super::split_order::SplitOrder;
use super::splits::BATCH;
use crate::error::ToolsError;
use std::path::PathBuf;
use tfseek::frame::OVERHEAD;
use tfseek::{Compression, Dataset};

/// The files to write.
pub(super) struct Plan<'a> {
    target: Target<'a>,
    /// The names of the splits.
    splits: Vec<Option<String>>,
    /// The files of each split. Empty while their number is not known.
    pub(super) sets: Vec<PlannedSet>,
}

/// The form of the names of the files.
enum Target<'a> {
    Pattern(OutPattern),
    Prepared(PreparedCopy<'a>),
}

/// The files of a split.
pub(super) struct PlannedSet {
    pub(super) names: SetNames,
    pub(super) sequence: SplitOrder,
    /// The position of the first record of each shard, and the number of records.
    pub(super) starts: Vec<u64>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(options: &'a ReshardOptions) -> Result<Plan<'a>, ToolsError> {
        if let Some(source) = &options.prepared {
            let copy = PreparedCopy::new(source, options)?;
            let splits = source.splits().iter().map(|split| Some(split.name.clone())).collect();
            return Ok(Plan { target: Target::Prepared(copy), splits, sets: Vec::new() });
        }
        let pattern = OutPattern::parse(&options.out, options.shards, options.split.is_some())?;
        let splits = match &options.split {
            Some(split) => split.splits.iter().map(|(name, _)| Some(name.clone())).collect(),
            None => vec![None],
        };
        Ok(Plan { target: Target::Pattern(pattern), splits, sets: Vec::new() })
    }

    /// Returns the copy of a prepared data set, if the files are one.
    pub(super) fn prepared(&self) -> Option<&PreparedCopy<'a>> {
        match &self.target {
            Target::Prepared(copy) => Some(copy),
            Target::Pattern(_) => None,
        }
    }

    /// Returns the number of splits.
    pub(super) fn splits(&self) -> usize {
        self.splits.len()
    }

    /// Returns the compression of the files.
    pub(super) fn compression(&self, options: &ReshardOptions) -> Compression {
        match &self.target {
            Target::Pattern(pattern) => options.compression.unwrap_or_else(|| pattern.compression()),
            Target::Prepared(_) => Compression::None,
        }
    }

    /// Returns the number or the size of the shards of a split. `None`: one file.
    fn count(&self, split: usize) -> Option<ShardCount> {
        match &self.target {
            Target::Pattern(pattern) => pattern.shards,
            Target::Prepared(copy) => Some(copy.shards(split)),
        }
    }

    /// Returns true if the number of shards depends on the sizes of the records.
    pub(super) fn was_sized(&self) -> bool {
        (0..self.splits()).any(|split| matches!(self.count(split), Some(ShardCount::Size(_))))
    }

    /// Returns the names of the files of a split. `count` is the number of its shards, if they are a set.
    fn set_names(&self, split: usize, count: Option<u64>) -> Result<SetNames, ToolsError> {
        match &self.target {
            Target::Pattern(pattern) => {
                Ok(pattern.set(self.splits.get(split).and_then(Option::as_deref), count))
            }
            Target::Prepared(copy) => copy.names(split, count.unwrap_or(1)),
        }
    }

    /// Returns the names of each set, as far as the number of shards is known.
    fn names(&self) -> Result<Vec<SetNames>, ToolsError> {
        if !self.sets.is_empty() {
            return Ok(self.sets.iter().map(|set| set.names.clone()).collect());
        }
        if self.was_sized() {
            return Ok(Vec::new());
        }
        let names = |split| {
            let count = match self.count(split) {
                Some(ShardCount::Count(count)) => Some(count),
                _ => None,
            };
            self.set_names(split, count)
        };
        (0..self.splits()).map(names).collect()
    }

    /// Checks that the files may be opened together and written.
    pub(super) fn check_outputs(&self, inputs: &[PathBuf], force: bool) -> Result<(), ToolsError> {
        sets::check(&self.names()?, inputs, force)
    }

    /// Decides about the records of each shard.
    pub(super) fn cut(
        &mut self,
        ds: &Dataset,
        sequences: Vec<SplitOrder>,
        lens: &[u32],
        way: ReshardWay,
    ) -> Result<(), ToolsError> {
        let mut sets = Vec::new();
        let mut files = 0u64;
        for (split, mut sequence) in sequences.into_iter().enumerate() {
            let shards = self.count(split);
            let len = sequence.len();
            let even = |count: u64| {
                let start = |s: u64| {
                    u64::try_from(u128::from(s) * u128::from(len) / u128::from(count)).unwrap_or(len)
                };
                (0..=count).map(start).collect()
            };
            let starts: Vec<u64> = match shards {
                None => vec![0, len],
                // A split without shards, and so without records.
                Some(ShardCount::Count(0)) => vec![0],
                Some(ShardCount::Count(count)) => {
                    check_count(files.saturating_add(count))?;
                    even(count)
                }
                Some(ShardCount::Size(size)) => cut_by_size(&sequence, size, files, |i| match lens {
                    [] => stored_len(ds, i),
                    lens => {
                        Ok(usize::try_from(i).ok().and_then(|i| lens.get(i)).copied().unwrap_or(0).into())
                    }
                })?,
            };
            let count = starts.len() as u64 - 1;
            files += count;
            if way != ReshardWay::Direct {
                sequence.invert(ds.len());
            }
            let names = self.set_names(split, shards.map(|_| count))?;
            sets.push(PlannedSet { names, sequence, starts });
        }
        self.sets = sets;
        Ok(())
    }

    /// Returns the number of records that are written.
    pub(super) fn records(&self) -> u64 {
        self.sets.iter().map(|set| set.sequence.len()).sum()
    }

    /// Returns all shards, as numbers of a set and of a shard in it.
    pub(super) fn shards(&self) -> Vec<(usize, usize)> {
        let shards = |(s, set): (usize, &PlannedSet)| {
            (0..set.starts.len() - 1).map(move |k| (s, k)).collect::<Vec<_>>()
        };
        self.sets.iter().enumerate().flat_map(shards).collect()
    }

    /// Checks that the disk has room. `known` is the size of all files together, if it is known. `temporary`
    /// is the most that temporary files, in the folder of the first set, and files take together.
    pub(super) fn check_space(&self, known: Option<u64>, temporary: Option<u64>) -> Result<(), ToolsError> {
        let disks: Option<Vec<_>> =
            self.sets.iter().map(|set| limits::disk_space(set.names.folder())).collect();
        let (Some(disks), Some(first)) = (disks, self.sets.first()) else { return Ok(()) };
        let Some(disk) = disks.first() else { return Ok(()) };
        // The shares of several file systems are not known.
        let known = known.filter(|_| disks.iter().all(|other| other.device == disk.device));
        let expected = known.max(temporary).unwrap_or(0);
        if expected > disk.free {
            let folder = first.names.folder().into();
            return Err(ToolsError::Space { folder, expected, found: disk.free });
        }
        Ok(())
    }

    /// Returns the sets that were written.
    pub(super) fn report(&self) -> Result<Vec<ReshardSet>, ToolsError> {
        let report = |(set, split): (&PlannedSet, &Option<String>)| {
            let lengths = set.starts.iter().zip(set.starts.iter().skip(1)).map(|(start, end)| end - start);
            Ok(sets::written(&set.names, split.clone(), lengths.collect())?)
        };
        self.sets.iter().zip(&self.splits).map(report).collect()
    }
}

/// Returns the payload length of a record.
fn stored_len(ds: &Dataset, i: u64) -> tfseek::Result<u64> {
    let (shard, record) = ds.shard_of(i)?;
    Ok(ds.index(shard)?.locate(record)?.payload_len)
}

/// Cuts shards of about the same number of bytes. Shard s has the records that begin in the s-th of N equal
/// parts of the bytes.
fn cut_by_size(
    sequence: &SplitOrder,
    size: u64,
    files: u64,
    payload_len: impl Fn(u64) -> tfseek::Result<u64>,
) -> Result<Vec<u64>, ToolsError> {
    let len = sequence.len();
    let mut ids = Vec::new();
    let mut each = |f: &mut dyn FnMut(u64, u128)| -> tfseek::Result<()> {
        let mut start = 0;
        while start < len {
            ids.resize(usize::try_from(BATCH.min(len - start)).unwrap_or(1), 0);
            sequence.fill(start, &mut ids)?;
            for (position, &id) in (start..).zip(&ids) {
                f(position, u128::from(payload_len(id)?) + OVERHEAD as u128);
            }
            start += ids.len() as u64;
        }
        Ok(())
    };
    let mut total = 0u128;
    each(&mut |_, bytes| total += bytes)?;
    let count = total.div_ceil(size.into()).clamp(1, len.max(1).into()) as u64;
    check_count(files + count)?;
    let mut starts = Vec::new();
    let mut before = 0u128;
    each(&mut |position, bytes| {
        // The first record at or after the border of a shard.
        while (starts.len() as u128) * total <= before * u128::from(count) {
            starts.push(position);
        }
        before += bytes;
    })?;
    starts.resize(usize::try_from(count).unwrap_or(1), len);
    starts.push(len);
    Ok(starts)
}
