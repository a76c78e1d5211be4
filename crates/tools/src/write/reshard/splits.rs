//! The split of each record: one pass over the records, which hashes a feature or the payload of each.

use super::members::NONE;
use super::options::SplitOptions;
use super::rewrite::{self, Rewrite};
use crate::error::{SplitReason, ToolsError};
use crate::forms::content::for_each_value;
use crate::work::in_order;
use crate::write::WriteProgress;
use tfseek::error::OrderError;
use tfseek::example::MessageKind;
use tfseek::order::{Split, Subset};
use tfseek::{Dataset, ErrorKind, Feature, Record};

/// Number of records of a unit of work.
const UNIT: u64 = 65_536;
/// Number of record numbers that are passed to the library at once.
pub(super) const BATCH: u64 = 4096;
/// Number of splits, at most.
const MOST_SPLITS: usize = 64;

/// A split that was checked.
pub(super) struct Splitter<'a> {
    split: Split,
    by: Option<&'a str>,
    /// The split of the records without a value.
    missing: Option<u8>,
    seed: u64,
    kind: MessageKind,
}

impl<'a> Splitter<'a> {
    pub(super) fn new(
        given: &'a SplitOptions,
        seed: u64,
        kind: MessageKind,
    ) -> Result<Splitter<'a>, ToolsError> {
        let SplitOptions { splits, by, missing } = given;
        let refused = ToolsError::Split;
        if splits.is_empty() || splits.len() > MOST_SPLITS {
            return Err(refused(SplitReason::Count { limit: MOST_SPLITS, found: splits.len() }));
        }
        for (k, (name, fraction)) in splits.iter().enumerate() {
            let plain = name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-.".contains(&c));
            if !plain || name.is_empty() || name.starts_with('.') {
                return Err(refused(SplitReason::Name(name.clone())));
            }
            if splits.iter().take(k).any(|(other, _)| other == name) {
                return Err(refused(SplitReason::Twice(name.clone())));
            }
            if *fraction == 0.0 {
                return Err(refused(SplitReason::Zero(name.clone())));
            }
        }
        let fractions: Vec<f64> = splits.iter().map(|(_, fraction)| *fraction).collect();
        let split = Split::new(&fractions).map_err(|e| match e.kind() {
            ErrorKind::Order(OrderError::Refused { reason }) => {
                refused(SplitReason::Fractions(reason.clone()))
            }
            _ => e.into(),
        })?;
        if !split.is_complete() {
            return Err(refused(SplitReason::Incomplete));
        }
        if by.is_some() && kind == MessageKind::Other {
            return Err(refused(SplitReason::NoFeatures));
        }
        let missing = match missing {
            Some(_) if by.is_none() => return Err(refused(SplitReason::MissingWithoutFeature)),
            Some(name) => {
                let split = splits.iter().position(|(other, _)| other == name);
                let split = split.ok_or_else(|| refused(SplitReason::Missing(name.clone())))?;
                u8::try_from(split).ok()
            }
            None => None,
        };
        Ok(Splitter { split, by: by.as_deref(), missing, seed, kind })
    }

    /// Returns the split of a record. `buffer` is memory for the values.
    fn split(&self, record: Record<'_>, buffer: &mut Vec<u8>) -> Result<u8, ToolsError> {
        let hash = match self.by {
            None => Split::hash(record.payload(), self.seed),
            Some(key) => {
                let example = match self.kind {
                    MessageKind::SequenceExample => record.sequence_example().context(),
                    _ => record.example(),
                };
                match example.get(key)?.filter(|feature| !feature.is_empty()) {
                    Some(feature) => hash_values(feature, self.seed, buffer),
                    None => {
                        let at = record.at();
                        return self.missing.ok_or_else(|| ToolsError::NoValue {
                            path: at.path.unwrap_or(std::path::Path::new("")).into(),
                            record: at.record.unwrap_or(0),
                            feature: key.to_owned(),
                        });
                    }
                }
            }
        };
        let split = self.split.number(hash).and_then(|split| u8::try_from(split).ok());
        split.ok_or(ToolsError::Split(SplitReason::Incomplete))
    }
}

/// Returns the XXH3-64 of the values of a feature: an int64 as 8 bytes, a float as 4 bytes, a byte string as
/// 8 bytes of length followed by its bytes. All numbers are little-endian.
pub(super) fn hash_values(feature: Feature<'_>, seed: u64, buffer: &mut Vec<u8>) -> u64 {
    buffer.clear();
    for_each_value(feature, |bytes| buffer.extend_from_slice(bytes));
    Split::hash(buffer, seed)
}

/// Facts about each record of the dataset.
#[derive(Default)]
pub(super) struct Scanned {
    /// The split, which is [`NONE`] for a record that is not written. Empty without splits.
    pub(super) splits: Vec<u8>,
    /// The length of the new payload, or 0 for a record that is not written. Empty if it was not requested.
    pub(super) lens: Vec<u32>,
}

/// Reads all records, and finds their splits and the lengths of their new payloads. Without both nothing is
/// read.
pub(super) fn scan(
    ds: &Dataset,
    records: Option<&Subset>,
    splitter: Option<&Splitter<'_>>,
    sized: Option<&Rewrite>,
    threads: usize,
    progress: &WriteProgress,
) -> Result<Scanned, ToolsError> {
    if splitter.is_none() && sized.is_none() {
        return Ok(Scanned::default());
    }
    let n = ds.len();
    let scan = |unit: u64| {
        let mut buffer = Vec::new();
        let mut refused = None;
        let mut tally = progress.tally();
        let start = unit * UNIT;
        let end = start + UNIT.min(n - start);
        let len = (end - start) as usize;
        let mut scanned = Scanned {
            splits: splitter.map_or(Vec::new(), |_| vec![NONE; len]),
            lens: sized.map_or(Vec::new(), |_| vec![0; len]),
        };
        let written = |i: &u64| records.is_none_or(|records| records.rank(*i).is_some());
        let ids: Vec<u64> = (start..end).filter(written).collect();
        let mut numbers = ids.iter();
        let read = ds.read_many(&ids, |record| {
            let k = numbers.next().map_or(0, |i| (i - start) as usize);
            if let (Some(splitter), Some(to)) = (splitter, scanned.splits.get_mut(k)) {
                match splitter.split(record, &mut buffer) {
                    Ok(split) => *to = split,
                    Err(ToolsError::Error(e)) => return Err(e),
                    Err(e) => {
                        refused = Some(e);
                        return Err(ErrorKind::Cancelled.into());
                    }
                }
            }
            if let Some(to) = scanned.lens.get_mut(k) {
                let len = rewrite::payload(sized, record)?.len();
                *to = u32::try_from(len).unwrap_or(u32::MAX);
            }
            tally.record(record.payload().len())
        });
        let read = read.and_then(|()| tally.end());
        match (refused, read) {
            (Some(e), _) => Err(e),
            (None, Err(e)) => Err(e.into()),
            (None, Ok(())) => Ok(scanned),
        }
    };
    let mut all = Scanned::default();
    in_order(threads, usize::MAX, 0..n.div_ceil(UNIT), scan, |Scanned { splits, lens }| {
        all.splits.extend(splits);
        all.lens.extend(lens);
        Ok(())
    })?;
    Ok(all)
}
