//! Search for records that meet a condition or contain a text.

use crate::memory::append;
use crate::work::NumberedRecords;
use crate::work::units::{
    MergedUnit, UnitOptions, UnitRecord, UnitSource, UnitWork, for_each_unit, unknown_number,
};
use memchr::memmem::Finder;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tfseek::example::MessageKind;
use tfseek::filter::RecordFilter;
use tfseek::{At, Damage, Dataset, Error, Feature, Filter, Record, Result, SequenceExample};

/// Size of the units in which records are searched. Matches are kept until their unit is merged, so units are
/// small.
const UNIT_BYTES: usize = 8 << 20;

/// A search for records.
#[derive(Debug)]
pub struct Grep {
    pattern: GrepPattern,
    options: GrepOptions,
}

/// The property of a record that is searched for.
#[derive(Debug)]
enum GrepPattern {
    Filter(Box<Filter>),
    Text(Box<Finder<'static>>),
}

/// Options of a [`Grep`].
#[derive(Clone, Copy, Debug, Default)]
pub struct GrepOptions {
    /// Find the records that do not match.
    pub invert: bool,
    /// Keep the payloads of matches.
    pub payloads: bool,
    /// Find one match per shard.
    pub first: bool,
    /// Before the first match, refuse a feature of the condition whose name is similar to one of the first
    /// records, which lack it.
    pub check_names: bool,
    /// Treatment of damaged records and of records that do not decode.
    pub damage: Damage,
    /// Number of [`threads`](tfseek::threads). Default: one per processor. 0: the calling thread.
    pub threads: Option<usize>,
}

/// The matches of a unit.
#[derive(Debug)]
#[non_exhaustive]
pub struct GrepUnit {
    /// The matches, in order.
    pub matches: Vec<GrepMatch>,
    shard: usize,
    payloads: Vec<u8>,
    records: Option<RecordFilter>,
}

/// A match, and its payload if payloads are kept.
#[derive(Clone, Copy, Debug)]
pub struct GrepMatch {
    /// Ordinal of the record in its shard.
    pub record: u64,
    /// Byte offset of the record in the record stream.
    pub offset: u64,
    /// Record number over all shards, if it is known.
    pub number: Option<u64>,
    /// Kind of the record.
    pub kind: MessageKind,
    payload: (usize, usize),
}

/// The totals of a search.
#[derive(Debug, Default)]
pub struct GrepTotals {
    /// Number of records that were searched.
    pub records: u64,
    /// Features of the condition that no record had.
    pub unseen: Vec<String>,
}

impl GrepUnit {
    /// Returns a match as a record of the shard with this name. Without kept payloads its payload is empty.
    pub fn record<'a>(&'a self, found: &GrepMatch, name: &'a std::path::Path) -> Record<'a> {
        let (from, to) = found.payload;
        let payload = self.payloads.get(from..to).unwrap_or_default();
        Record::new(payload, At::new(name, found.record, found.offset))
    }
}

impl Grep {
    /// Searches for records that meet a condition.
    pub fn filter(filter: &Filter, options: GrepOptions) -> Grep {
        Grep { pattern: GrepPattern::Filter(Box::new(filter.clone())), options }
    }

    /// Searches for records with a byte string that contains `text`: a value of a bytes feature, also in a
    /// feature list. For records that are neither Examples nor SequenceExamples it is the payload.
    pub fn text(text: &[u8], options: GrepOptions) -> Grep {
        Grep { pattern: GrepPattern::Text(Box::new(Finder::new(text).into_owned())), options }
    }

    /// Searches `shards` shards, and calls `found` with the matches in order. The result does not depend on
    /// the number of threads. `open(s, total)` opens shard `s`; `total` is the number of records of the shard
    /// before it, if that was read to its end.
    ///
    /// # Errors
    /// The first error of `found`, which ends the search.
    pub fn run<S: UnitSource, E: Send + From<Error>>(
        &self,
        shards: usize,
        open: impl FnMut(usize, Option<u64>) -> Result<S> + Send,
        mut found: impl FnMut(MergedUnit<GrepUnit>) -> Result<(), E>,
    ) -> Result<GrepTotals, E> {
        let GrepOptions { threads, damage, .. } = self.options;
        let options = UnitOptions { threads, damage, bytes: UNIT_BYTES, ..UnitOptions::default() };
        let filter = match &self.pattern {
            GrepPattern::Filter(filter) => Some(filter.for_records()),
            GrepPattern::Text(_) => None,
        };
        let work = GrepWork {
            grep: self,
            // A record number is not known unless all shards before it are read to their ends.
            done: (self.options.first
                && filter.as_ref().is_none_or(|filter| !filter.filter().uses_numbers()))
            .then(|| (0..shards).map(|_| AtomicBool::new(false)).collect()),
            idle: Mutex::new(filter.clone().into_iter().collect()),
        };
        let mut totals = GrepTotals::default();
        let mut all = filter;
        let mut first = None;
        let mut checked = !self.options.check_names;
        for_each_unit(shards, options, open, &work, |mut unit: MergedUnit<GrepUnit>| {
            totals.records += unit.records;
            if let (Some(all), Some(records)) = (&mut all, unit.result.records.take()) {
                all.merge(&records);
                if !checked && (!unit.result.matches.is_empty() || all.knows_names()) {
                    checked = true;
                    all.check_names(false)?;
                }
                work.idle.lock().unwrap_or_else(PoisonError::into_inner).push(records);
            }
            if self.options.first {
                if first == Some(unit.shard) {
                    unit.result.matches.clear();
                }
                unit.result.matches.truncate(1);
                if !unit.result.matches.is_empty() {
                    first = Some(unit.shard);
                }
            }
            found(unit)
        })?;
        if let (Some(all), false) = (&all, checked) {
            all.check_names(false)?;
        }
        if totals.records > 0 {
            totals.unseen = all.iter().flat_map(|all| all.unseen().map(str::to_owned)).collect();
        }
        Ok(totals)
    }

    /// Searches a dataset by record numbers. `kind_of` returns the kind of the records of a shard. `found`
    /// can end the search; its result is then the totals so far, without the features that no record had.
    ///
    /// # Errors
    /// The first error of a shard that does not concern a record that is to be skipped.
    pub fn run_dataset(
        &self,
        dataset: &Dataset,
        kind_of: &(dyn Fn(usize) -> MessageKind + Sync),
        found: &mut dyn FnMut(&MergedUnit<GrepUnit>) -> ControlFlow<()>,
    ) -> Result<GrepTotals> {
        let open = |s: usize, _: Option<u64>| Ok(NumberedRecords::shard(dataset, s, Some(kind_of(s))));
        let mut records = 0;
        let searched = self.run(dataset.shards().len(), open, |unit| {
            records += unit.records;
            let flow = found(&unit);
            match unit.error {
                Some(e) => Err(DatasetEnd::Failed(e)),
                None if flow.is_break() => Err(DatasetEnd::Stopped),
                None => Ok(()),
            }
        });
        match searched {
            Ok(totals) => Ok(totals),
            Err(DatasetEnd::Stopped) => Ok(GrepTotals { records, unseen: Vec::new() }),
            Err(DatasetEnd::Failed(e)) => Err(e),
        }
    }
}

/// The end of a search of a dataset before its last record.
enum DatasetEnd {
    Stopped,
    Failed(Error),
}

impl From<Error> for DatasetEnd {
    fn from(e: Error) -> DatasetEnd {
        DatasetEnd::Failed(e)
    }
}

/// The work of a search on units.
struct GrepWork<'g> {
    grep: &'g Grep,
    /// With one match per shard: true for a shard that has its match. Shards are searched at the same time.
    done: Option<Box<[AtomicBool]>>,
    /// Evaluations that no unit uses.
    idle: Mutex<Vec<RecordFilter>>,
}

impl UnitWork for GrepWork<'_> {
    type Result = GrepUnit;

    fn begin(&self, shard: usize) -> GrepUnit {
        let records = match &self.grep.pattern {
            GrepPattern::Filter(filter) => {
                let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                Some(idle.unwrap_or_else(|| filter.for_records()))
            }
            GrepPattern::Text(_) => None,
        };
        GrepUnit { shard, matches: Vec::new(), payloads: Vec::new(), records }
    }

    fn record(&self, unit: &mut GrepUnit, item: UnitRecord<'_>) -> Result<()> {
        let UnitRecord { record, number, kind } = item;
        if self.is_done(unit.shard) {
            return Ok(());
        }
        let at = record.at();
        let payload = record.payload();
        let found = match (&self.grep.pattern, &mut unit.records) {
            (GrepPattern::Filter(filter), Some(records)) => {
                let number = match number {
                    Some(number) => number,
                    None if filter.uses_numbers() => return Err(unknown_number(at)),
                    None => 0,
                };
                records.accepts(number, payload, kind).map_err(|e| e.at(at))?
            }
            (GrepPattern::Text(text), _) => contains(text, payload, kind).map_err(|e| e.at(at))?,
            (GrepPattern::Filter(_), None) => false,
        };
        if found == self.grep.options.invert {
            return Ok(());
        }
        let from = unit.payloads.len();
        if self.grep.options.payloads {
            append(&mut unit.payloads, payload).map_err(|e| Error::from(e).at(at))?;
        }
        unit.matches.push(GrepMatch {
            record: at.record.unwrap_or(0),
            offset: at.offset.unwrap_or(0),
            number,
            kind,
            payload: (from, unit.payloads.len()),
        });
        if let Some(done) = self.done.as_ref().and_then(|done| done.get(unit.shard)) {
            done.store(true, Relaxed);
        }
        Ok(())
    }

    fn is_done(&self, shard: usize) -> bool {
        self.done.as_ref().and_then(|done| done.get(shard)).is_some_and(|done| done.load(Relaxed))
    }
}

/// Returns true if a byte string of a record contains a text.
fn contains(text: &Finder<'_>, payload: &[u8], kind: MessageKind) -> Result<bool> {
    // Values are parts of the payload, so a payload without the text has no value with it.
    if text.find(payload).is_none() {
        return Ok(false);
    }
    let record = SequenceExample::new(payload);
    let has = |feature: Feature<'_>| match feature {
        Feature::Bytes(list) => list.iter().any(|value| text.find(value).is_some()),
        _ => false,
    };
    if kind == MessageKind::Other {
        return Ok(true);
    }
    // The text may be in what a message of this kind does not show.
    kind.check(payload)?;
    for entry in record.context().entries() {
        if has(entry?.1) {
            return Ok(true);
        }
    }
    if kind == MessageKind::SequenceExample {
        for entry in record.feature_lists() {
            if entry?.1.iter().any(has) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
