//! One pass over files or a dataset.

use super::group::{Selection, UnitStats};
use super::statistics::Statistics;
use crate::error::ToolsError;
use crate::work::damage::left_out;
use crate::work::fold::{FoldWork, fold};
use crate::work::units::{NumberedStream, UnitRecord, UnitSource, unknown_number};
use crate::work::{KindedStream, NumberedRecords, sample};
use std::collections::BTreeMap;
use tfseek::example::MessageKind;
use tfseek::filter::RecordFilter;
use tfseek::stream::Stream;
use tfseek::{Damage, Dataset, Error, Filter, Warning};

/// The default limit on the memory of the sketches in bytes.
const MEMORY: u64 = 2 << 30;
/// The limit of a unit is this part of the limit of the result. One limit for all threads together would make
/// the result depend on their number.
const UNIT_PART: u64 = 4;

/// Options of [`Statistics`].
#[derive(Clone, Debug)]
pub struct StatsOptions {
    /// Patterns of the names of features. Empty: all features.
    pub features: Vec<String>,
    /// A feature. The records of each of its values get statistics of their own.
    pub by: Option<String>,
    /// A condition. Only the records that meet it are counted. In files after the first, record numbers are
    /// known only to [`run_dataset`](StatsOptions::run_dataset).
    pub filter: Option<Filter>,
    /// Kind of the records. By default it is guessed for each file.
    pub kind: Option<MessageKind>,
    /// Number of [`threads`](tfseek::threads). Default: one per processor. 0: the calling thread. The result
    /// does not depend on it.
    pub threads: Option<usize>,
    /// Limit on the memory of the result in bytes; each thread may need a quarter of it more. Default: 2 GiB.
    /// Exact counting of the features that need most memory is ended first. If that is not enough, no further
    /// feature is counted.
    pub memory: u64,
    /// Treatment of malformed records, and of damaged records of a dataset. Default: they are errors. A
    /// stream that leaves damage out has this option itself.
    pub damage: Damage,
}

impl Default for StatsOptions {
    fn default() -> StatsOptions {
        StatsOptions {
            features: Vec::new(),
            by: None,
            filter: None,
            kind: None,
            threads: None,
            memory: MEMORY,
            damage: Damage::Raise,
        }
    }
}

impl StatsOptions {
    /// Computes the statistics of files, each of which is opened once by `open` and read in order.
    ///
    /// # Errors
    /// The first error in the order of the files: of opening or reading one, of a malformed record, or of the
    /// slices.
    pub fn run<P: Sync>(
        &self,
        files: &[P],
        open: &(dyn Fn(&P) -> tfseek::Result<Stream> + Sync),
    ) -> Result<Statistics, ToolsError> {
        let open = |k: usize| -> tfseek::Result<NumberedStream> {
            let stream = open(files.get(k).ok_or(tfseek::ErrorKind::Cancelled)?)?;
            let stream = KindedStream::new(stream, self.kind);
            Ok(NumberedStream { stream, before: (k == 0).then_some(0) })
        };
        self.fold(&open, &|_| Ok(()), files.len(), None)
    }

    /// Computes the statistics of the records of a dataset, of the records `ids`, or of a sample of
    /// `sample.0` of these with the seed `sample.1`. Records are read by number, in ascending order. `report`
    /// is usually a function that is called with the number of records that were read since the last call; an
    /// error ends the run.
    ///
    /// # Errors
    /// As [`run`](StatsOptions::run).
    pub fn run_dataset(
        &self,
        dataset: &Dataset,
        ids: Option<&[u64]>,
        sample: Option<(u64, u64)>,
        report: &dyn StatsProgress,
    ) -> Result<Statistics, ToolsError> {
        let all = ids.map_or(dataset.len(), |ids| ids.len() as u64);
        let mut drawn = match sample {
            None => ids.map(<[u64]>::to_vec),
            Some((n, seed)) => {
                let mut random = sample::Random::new(seed);
                let drawn = random.draw(n, all);
                let record = |k: u64| ids.map_or(Some(k), |ids| ids.get(usize::try_from(k).ok()?).copied());
                Some(drawn.filter_map(record).collect())
            }
        };
        drawn.iter_mut().for_each(|drawn| drawn.sort_unstable());
        let open = |k: usize| -> tfseek::Result<NumberedRecords> {
            report.read(0)?;
            Ok(NumberedRecords::shard(dataset, k, self.kind).only(drawn.as_deref()))
        };
        self.fold(&open, report, dataset.shards().len(), sample.map(|_| all))
    }

    /// Computes the statistics of shards, which `open` opens.
    fn fold<S: UnitSource>(
        &self,
        open: &(dyn Fn(usize) -> tfseek::Result<S> + Sync),
        report: &dyn StatsProgress,
        shards: usize,
        sampled_from: Option<u64>,
    ) -> Result<Statistics, ToolsError> {
        let selection = Selection {
            patterns: self.features.clone(),
            by: self.by.clone(),
            condition: self.filter.as_ref().map(Filter::to_string),
        };
        let run = StatsRun { options: self, selection, open, report, shards, sampled_from };
        let total = fold(&run, shards, tfseek::threads(self.threads)?)?;
        // The answer begins here, after all records.
        total.filter.iter().try_for_each(|filter| filter.check_names(false))?;
        Ok(run.statistics(total))
    }
}

/// Progress of [`StatsOptions::run_dataset`]. A function that receives the number of records since its last
/// call is one.
pub trait StatsProgress: Sync {
    /// Receives the number of records that were read since the last call.
    ///
    /// # Errors
    /// The run ends with the error.
    fn read(&self, records: u64) -> tfseek::Result<()>;

    /// Returns true if [`partial`](StatsProgress::partial) is to be called now. Default: false.
    fn wants_partial(&self) -> bool {
        false
    }

    /// Receives the statistics of the records up to here: of the first shards, and of the first units of the
    /// shard after them. Other threads wait meanwhile.
    fn partial(&self, _: Statistics) {}
}

impl<F: Fn(u64) -> tfseek::Result<()> + Sync> StatsProgress for F {
    fn read(&self, records: u64) -> tfseek::Result<()> {
        self(records)
    }
}

#[derive(Clone, Default)]
struct StatsUnit {
    stats: UnitStats,
    filter: Option<RecordFilter>,
    /// The condition was evaluated.
    tested: bool,
    /// Records since the last report.
    unreported: u64,
    skipped: u64,
    first_skipped: Option<String>,
    warnings: Vec<Warning>,
}

struct StatsRun<'a, S> {
    options: &'a StatsOptions,
    selection: Selection,
    open: &'a (dyn Fn(usize) -> tfseek::Result<S> + Sync),
    report: &'a dyn StatsProgress,
    shards: usize,
    sampled_from: Option<u64>,
}

impl<S> StatsRun<'_, S> {
    fn statistics(&self, total: StatsUnit) -> Statistics {
        let filter = total.filter.iter().filter(|_| total.tested);
        let unseen = filter.flat_map(RecordFilter::unseen).map(str::to_owned).collect();
        Statistics {
            unit: total.stats,
            selection: self.selection.clone(),
            memory: self.options.memory,
            shards: self.shards as u64,
            sampled_from: self.sampled_from,
            skipped: total.skipped,
            first_skipped: total.first_skipped,
            left_out: left_out(&total.warnings),
            warnings: total.warnings,
            unseen,
            value_names: BTreeMap::new(),
            saved: 0,
        }
    }

    fn unit_memory(&self) -> u64 {
        self.options.memory / UNIT_PART
    }

    /// Adds a record that meets the condition.
    fn add_selected(&self, unit: &mut StatsUnit, item: UnitRecord<'_>) -> Result<(), ToolsError> {
        let UnitRecord { record, number, kind } = item;
        if let Some(filter) = &mut unit.filter {
            unit.tested = true;
            let number = match number {
                None if filter.filter().uses_numbers() => return Err(unknown_number(record.at()).into()),
                number => number.unwrap_or(0),
            };
            if !filter.accepts(number, record.payload(), kind).map_err(|e| e.at(record.at()))? {
                return Ok(());
            }
        }
        unit.stats.add(record, kind, &self.selection, self.unit_memory())
    }
}

impl<S: UnitSource> FoldWork for StatsRun<'_, S> {
    type Source = S;
    type Unit = StatsUnit;
    type Error = ToolsError;

    fn open(&self, k: usize) -> Result<S, ToolsError> {
        Ok((self.open)(k)?)
    }

    fn begin(&self) -> StatsUnit {
        let filter = self.options.filter.as_ref().map(Filter::for_records);
        StatsUnit { filter, ..StatsUnit::default() }
    }

    fn add(&self, unit: &mut StatsUnit, record: UnitRecord<'_>) -> Result<(), ToolsError> {
        unit.unreported += 1;
        if unit.unreported == 1024 {
            self.report.read(std::mem::take(&mut unit.unreported))?;
        }
        match self.add_selected(unit, record) {
            Err(ToolsError::Error(e)) => self.skip(unit, e),
            added => added,
        }
    }

    fn skip(&self, unit: &mut StatsUnit, e: Error) -> Result<(), ToolsError> {
        if self.options.damage == Damage::Raise || !e.is_data() {
            return Err(e.into());
        }
        unit.skipped += 1;
        unit.first_skipped.get_or_insert_with(|| e.to_string());
        Ok(())
    }

    fn warn(&self, unit: &mut StatsUnit, warnings: Vec<Warning>) {
        unit.warnings.extend(warnings);
    }

    fn end(&self, unit: &mut StatsUnit) {
        unit.stats.flush(self.unit_memory());
        // The rest of the records. A run that this would end is at its end, or hears it with the next ones.
        let _ = self.report.read(std::mem::take(&mut unit.unreported));
    }

    fn merge(&self, unit: &mut StatsUnit, next: StatsUnit) -> Result<(), ToolsError> {
        unit.skipped += next.skipped;
        unit.warnings.extend(next.warnings);
        if unit.first_skipped.is_none() {
            unit.first_skipped = next.first_skipped;
        }
        if let (Some(filter), Some(next)) = (&mut unit.filter, &next.filter) {
            filter.merge(next);
        }
        unit.tested |= next.tested;
        unit.stats.merge(&next.stats, &self.selection, self.options.memory)
    }

    fn partial(&self, complete: Option<&StatsUnit>, begun: Option<&StatsUnit>) {
        if !self.report.wants_partial() {
            return;
        }
        let mut total = complete.cloned().unwrap_or_else(|| self.begin());
        if let Some(begun) = begun
            && self.merge(&mut total, begun.clone()).is_err()
        {
            // The run ends with this error.
            return;
        }
        self.report.partial(self.statistics(total));
    }
}
