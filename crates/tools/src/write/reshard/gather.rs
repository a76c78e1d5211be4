//! Records read where they are, shard by shard.

use super::plan::{Plan, PlannedSet};
use super::rewrite::{self, Rewrite};
use super::splits::BATCH;
use crate::work::in_order;
use crate::write::WriteProgress;
use tfseek::writer::WriterOptions;
use tfseek::{Dataset, ErrorKind, Result, Writer};

/// The work of writing all files.
pub(super) struct Gather<'a> {
    pub(super) ds: &'a Dataset,
    pub(super) plan: &'a Plan<'a>,
    pub(super) rewrite: Option<&'a Rewrite>,
    pub(super) writer: &'a WriterOptions,
    pub(super) progress: &'a WriteProgress,
}

impl Gather<'_> {
    /// Writes all shards on several threads. Returns their finished writers.
    pub(super) fn direct(&self, threads: usize) -> Result<Vec<Writer>> {
        let mut writers = Vec::new();
        let write = |(s, k)| self.shard(s, k);
        let keep = |writer| {
            writers.push(writer);
            Ok(())
        };
        in_order(threads, usize::MAX, self.plan.shards(), write, keep)?;
        Ok(writers)
    }

    /// Returns a set and the positions of one of its shards.
    pub(super) fn range(&self, s: usize, k: usize) -> Result<(&PlannedSet, u64, u64)> {
        let set = self.plan.sets.get(s);
        let range = set.and_then(|set| Some((set, *set.starts.get(k)?, *set.starts.get(k + 1)?)));
        let len = self.plan.sets.len() as u64;
        range.ok_or_else(|| ErrorKind::OutOfRange { what: "shard", i: k as i128, len }.into())
    }

    /// Writes a shard and syncs it.
    fn shard(&self, s: usize, k: usize) -> Result<Writer> {
        let (set, start, end) = self.range(s, k)?;
        let mut writer = self.writer.create(set.names.path(k as u64))?;
        let mut ids = Vec::new();
        let mut tally = self.progress.tally();
        let mut start = start;
        while start < end {
            ids.resize(usize::try_from(BATCH.min(end - start)).unwrap_or(1), 0);
            set.sequence.fill(start, &mut ids)?;
            self.ds.read_many(&ids, |record| {
                writer.write(&rewrite::payload(self.rewrite, record)?)?;
                tally.record(record.payload().len())
            })?;
            start += ids.len() as u64;
        }
        tally.end()?;
        writer.finish()?;
        Ok(writer)
    }
}
