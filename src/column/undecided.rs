//! Selection by the records themselves, where columns do not decide.

use super::known::KnownFeatures;
use super::obtain::ColumnOptions;
use super::selection::Selection;
use crate::dataset::{Dataset, ShardEntry};
use crate::error::{ErrorKind, Result};
use crate::example::MessageKind;
use crate::filter::{Filter, RecordFilter};
use crate::frame::OVERHEAD;
use crate::index::{REPORT, Work};
use crate::io::threads;
use crate::policy::Verify;
use crate::record::Record;

/// Number of records from which several threads read them. Starting threads takes about 100 us.
const SEVERAL: u64 = 1024;

/// A search for the records among `undecided` that meet a filter.
pub(super) struct UndecidedScan<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) filter: &'a Filter,
    pub(super) undecided: &'a Selection,
    /// Names of features that are known to occur.
    pub(super) known: Vec<&'a str>,
    pub(super) work: &'a Work,
}

impl UndecidedScan<'_> {
    /// Reads the undecided records and adds those that meet the filter to `selected`. Verifies payloads, regardless of the dataset's options.
    pub(super) fn add_to(&self, selected: &mut Selection, options: &ColumnOptions) -> Result<()> {
        let shards: Vec<ShardEntry<'_>> = self.dataset.shards().collect();
        let count = self.undecided.count();
        let jobs = if count < SEVERAL { 1 } else { self.dataset.index_options().jobs };
        let scanned = threads::each(jobs, shards.len(), true, |s| {
            let (mut records, mut accepted) = (self.filter.for_records(), Vec::new());
            self.scan(s, &shards[s], true, |i, record| {
                let met = records.accepts(i, record.payload(), MessageKind::Example);
                if met.map_err(|e| e.at(record.at()))? {
                    accepted.push(i);
                }
                Ok(())
            })?;
            Ok((records, accepted))
        })?;
        let mut all = self.filter.for_records();
        for (records, accepted) in &scanned {
            all.merge(records);
            accepted.iter().for_each(|&i| selected.insert(i));
        }
        if options.accepts_unknown() {
            return Ok(());
        }
        self.check_known(&all, &shards, count)
    }

    /// Refuses a feature that no record has.
    fn check_known(&self, records: &RecordFilter, shards: &[ShardEntry<'_>], count: u64) -> Result<()> {
        let mut unseen: Vec<&str> = records.unseen().filter(|name| !self.known.contains(name)).collect();
        if unseen.is_empty() {
            return Ok(());
        }
        let checked = KnownFeatures::new(unseen.len(), false).check(self.dataset, &unseen);
        match &checked {
            Err(e) if matches!(e.kind(), ErrorKind::UnknownFeature { .. }) && count < self.dataset.len() => {}
            _ => return checked,
        }
        // The records that have the feature may be among those that were not read.
        for (s, shard) in shards.iter().enumerate().filter(|(_, shard)| shard.len > 0) {
            if unseen.is_empty() {
                break;
            }
            self.scan(s, shard, false, |_, record| {
                unseen.retain(|name| !matches!(record.example().get(name), Ok(Some(_))));
                Ok(())
            })?;
        }
        if unseen.is_empty() { Ok(()) } else { checked }
    }

    /// Calls `f` with the records of shard `s` that are undecided, or with the others.
    fn scan(
        &self,
        s: usize,
        shard: &ShardEntry<'_>,
        undecided: bool,
        mut f: impl FnMut(u64, Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let ids =
            (shard.start..shard.start + shard.len).filter(move |&i| self.undecided.contains(i) == undecided);
        let mut numbers = ids.clone();
        let mut seen = 0;
        let mut each = |record: Record<'_>| {
            seen += (record.payload().len() + OVERHEAD) as u64;
            if seen >= REPORT as u64 {
                self.work.report(std::mem::take(&mut seen))?;
            }
            numbers.next().map_or(Ok(()), |i| f(i, record))
        };
        let file = &self.dataset.files()[s];
        if file.lends() {
            for i in ids {
                let k = i - shard.start;
                each(file.lend(k, file.locate(k)?, Verify::Payload)?)?;
            }
        } else {
            self.dataset.set().read_runs(ids, Verify::Payload, &mut each)?;
        }
        self.work.report(seen)
    }
}
