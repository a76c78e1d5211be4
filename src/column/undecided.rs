//! Selection by the records themselves, where columns do not decide.

use super::known::{KnownFeatures, read_names};
use super::obtain::ColumnOptions;
use super::selection::Selection;
use crate::dataset::{Dataset, LeftOut, ShardEntry, for_each_record};
use crate::error::{Error, ErrorKind, Result, escaped};
use crate::example::{MessageKind, SequenceExample};
use crate::filter::{Filter, FirstNames, RecordFilter, list_key};
use crate::index::Work;
use crate::io::threads;
use crate::policy::Damage;
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
    /// Reads the undecided records and adds those that meet the filter to `selected`. Verifies payloads,
    /// regardless of the dataset's options. Returns the records that the dataset leaves out, because they
    /// cannot be read or do not decode.
    #[expect(clippy::indexing_slicing, reason = "shards are numbered from 0 to their count")]
    pub(super) fn add_to(&self, selected: &mut Selection, options: &ColumnOptions) -> Result<LeftOut> {
        let shards: Vec<ShardEntry<'_>> = self.dataset.shards().collect();
        let count = self.undecided.count();
        let threads = if count < SEVERAL { Some(1) } else { self.dataset.index_options().threads };
        let scanned = threads::each(threads, shards.len(), true, |s| {
            let mut records = self.filter.for_records();
            let mut accepted = Vec::new();
            let mut left_out = LeftOut::default();
            self.scan(s, &shards[s], true, |i, record| {
                let met = record.and_then(|record| {
                    let met = records.accepts(i, record.payload(), MessageKind::Example);
                    met.map_err(|e| e.at(record.at()))
                });
                match met {
                    Ok(true) => accepted.push(i),
                    Ok(false) => {}
                    Err(e) if self.leaves_out() && e.is_data() => left_out.add(e),
                    Err(e) => return Err(e),
                }
                Ok(())
            })?;
            Ok((records, accepted, left_out))
        })?;
        let mut all = self.filter.for_records();
        let mut left_out = LeftOut::default();
        for (records, accepted, of_shard) in scanned {
            all.merge(&records);
            accepted.iter().for_each(|&i| selected.insert(i));
            left_out.append(of_shard);
        }
        // Where all records are left out, none tells which features there are.
        if !options.unknown && left_out.count() < self.dataset.len() {
            self.check_known(&all, &shards, count).map_err(|e| self.unquoted(e))?;
        }
        Ok(left_out)
    }

    fn leaves_out(&self) -> bool {
        self.dataset.damage() == Damage::Skip
    }

    /// Returns the error of an unknown feature. On the right of a comparison it is probably a string without
    /// quotes.
    fn unquoted(&self, e: Error) -> Error {
        let is_near = !matches!(e.kind(), ErrorKind::UnknownFeature { nearest: None, .. });
        let names = self.filter.features().into_iter().filter(|_| !is_near);
        let mut of_error =
            names.filter(|name| e.location().feature.as_deref() == Some(&*escaped(name.as_bytes())));
        of_error.find_map(|name| self.filter.unknown_other(name, "no record")).unwrap_or(e)
    }

    /// Refuses a feature that no record has.
    fn check_known(&self, records: &RecordFilter, shards: &[ShardEntry<'_>], count: u64) -> Result<()> {
        let unseen = records.unseen_of(false).filter(|name| !self.known.contains(name));
        let mut unseen: Vec<&str> = unseen.collect();
        let mut lists: Vec<&str> = records.unseen_of(true).collect();
        let checked = match unseen.as_slice() {
            [] => Ok(()),
            some => KnownFeatures::new(some.len(), false).check(self.dataset, some),
        };
        let names = if lists.is_empty() { FirstNames::default() } else { read_names(self.dataset)? };
        lists.retain(|name| !self.dataset.is_empty() && !names.has_list(list_key(name)));
        match &checked {
            Ok(()) => unseen.clear(),
            Err(e) if matches!(e.kind(), ErrorKind::UnknownFeature { .. }) => {}
            Err(_) => return checked,
        }
        if count < self.dataset.len() {
            self.search_others(shards, &mut unseen, &mut lists)?;
        }
        match lists.first() {
            _ if !unseen.is_empty() => checked,
            Some(list) => Err(self.filter.unknown_list(list, "no record", &names)),
            None => Ok(()),
        }
    }

    /// Removes the features and feature lists that records have which were not read.
    fn search_others<'n>(
        &self,
        shards: &[ShardEntry<'_>],
        unseen: &mut Vec<&'n str>,
        lists: &mut Vec<&'n str>,
    ) -> Result<()> {
        for (s, shard) in shards.iter().enumerate().filter(|(_, shard)| shard.len > 0) {
            if unseen.is_empty() && lists.is_empty() {
                break;
            }
            self.scan(s, shard, false, |_, record| {
                match record {
                    Ok(record) => {
                        unseen.retain(|name| !matches!(record.example().get(name), Ok(Some(_))));
                        let sequence = SequenceExample::new(record.payload());
                        lists.retain(|name| !matches!(sequence.feature_list(list_key(name)), Ok(Some(_))));
                    }
                    Err(e) if self.leaves_out() && e.is_data() => {}
                    Err(e) => return Err(e),
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Calls `f` with the records of shard `s` that are undecided, or with the others.
    fn scan(
        &self,
        s: usize,
        shard: &ShardEntry<'_>,
        undecided: bool,
        f: impl FnMut(u64, Result<Record<'_>>) -> Result<()>,
    ) -> Result<()> {
        let ids =
            (shard.start..shard.start + shard.len).filter(move |&i| self.undecided.contains(i) == undecided);
        for_each_record(self.dataset, s, ids, self.work, f)
    }
}
