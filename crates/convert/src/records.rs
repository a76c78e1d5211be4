//! The records of a dataset that are converted.

use tfseek::example::MessageKind;
use tfseek::order::Subset;
use tfseek::{Dataset, Record, Result};
use tfseek_tools::guess_kind;

/// Number of records that are read together.
const CHUNK: u64 = 1024;

/// The records of a dataset, all or some of them.
#[derive(Clone, Copy)]
pub(crate) struct SelectedRecords<'a> {
    pub(crate) ds: &'a Dataset,
    pub(crate) only: Option<&'a Subset>,
    /// The kind that was given. Otherwise that of each shard is guessed.
    pub(crate) kind: Option<MessageKind>,
}

impl SelectedRecords<'_> {
    /// Calls a function with each record, its number and its kind, in ascending order.
    pub(crate) fn for_each(
        &self,
        mut f: impl FnMut(u64, Record<'_>, MessageKind) -> Result<()>,
    ) -> Result<()> {
        match self.only {
            Some(only) => self.chunks(only.iter(), &mut f),
            None => self.chunks(0..self.ds.len(), &mut f),
        }
    }

    fn chunks(
        &self,
        mut ids: impl Iterator<Item = u64>,
        f: &mut impl FnMut(u64, Record<'_>, MessageKind) -> Result<()>,
    ) -> Result<()> {
        let mut kinds = ShardKinds { records: *self, shard: 0..0, kind: MessageKind::Other };
        loop {
            let chunk: Vec<u64> = ids.by_ref().take(CHUNK as usize).collect();
            if chunk.is_empty() {
                return Ok(());
            }
            let mut numbers = chunk.iter();
            self.ds.read_many(&chunk, |record| {
                let i = numbers.next().copied().unwrap_or_default();
                f(i, record, kinds.of(i)?)
            })?;
        }
    }
}

/// The kinds of the records of each shard.
struct ShardKinds<'a> {
    records: SelectedRecords<'a>,
    /// Record numbers of the current shard.
    shard: std::ops::Range<u64>,
    kind: MessageKind,
}

impl ShardKinds<'_> {
    fn of(&mut self, i: u64) -> Result<MessageKind> {
        if let Some(kind) = self.records.kind {
            return Ok(kind);
        }
        if !self.shard.contains(&i) {
            let ds = self.records.ds;
            let (s, _) = ds.shard_of(i)?;
            let shard = ds.shards().nth(s);
            self.shard = shard.map_or(0..0, |shard| shard.start..shard.start.saturating_add(shard.len));
            self.kind = guess_kind(ds, self.shard.clone());
        }
        Ok(self.kind)
    }
}
