//! The records of a dataset that are converted.

#[cfg(feature = "tables")]
use tfseek::ErrorKind;
use tfseek::example::MessageKind;
use tfseek::order::Subset;
use tfseek::{Dataset, Record, Result};
use tfseek_tools::guess_kind;

/// Number of records that are read together.
const CHUNK: u64 = 1024;
/// Largest number of records that a thread reads at a time.
#[cfg(feature = "tables")]
const MOST: u64 = 16 * CHUNK;

/// The records of a dataset, all or some of them.
#[derive(Clone, Copy)]
pub(crate) struct SelectedRecords<'a> {
    pub(crate) ds: &'a Dataset,
    pub(crate) only: Option<&'a Subset>,
    /// The kind that was given. Otherwise each shard's kind is guessed.
    pub(crate) kind: Option<MessageKind>,
}

impl SelectedRecords<'_> {
    /// Calls a function with each record, its number and its kind, in ascending order.
    pub(crate) fn for_each(
        &self,
        mut f: impl FnMut(u64, Record<'_>, MessageKind) -> Result<()>,
    ) -> Result<()> {
        let mut kinds = ShardKinds { records: *self, shard: 0..0, kind: MessageKind::Other };
        for chunk in self.chunks(CHUNK) {
            let mut numbers = chunk.iter();
            self.ds.read_many(&chunk, |record| match numbers.next() {
                Some(&i) => f(i, record, kinds.of(i)?),
                None => Ok(()),
            })?;
        }
        Ok(())
    }

    /// Returns the number of the records.
    #[cfg(feature = "tables")]
    pub(crate) fn len(&self) -> u64 {
        self.only.map_or(self.ds.len(), Subset::len)
    }

    /// Returns the number of records that have about this number of bytes, at least 1.
    #[cfg(feature = "tables")]
    pub(crate) fn records_of(&self, bytes: u64) -> u64 {
        let Some(all) = self.ds.known_bytes() else { return CHUNK };
        let mean = all.checked_div(self.ds.len()).unwrap_or(0);
        bytes.checked_div(mean).unwrap_or(CHUNK).clamp(1, MOST)
    }

    /// Returns the record numbers, this number of them at a time.
    pub(crate) fn chunks(&self, records: u64) -> impl Iterator<Item = Vec<u64>> + Send + use<'_> {
        let mut ids: Box<dyn Iterator<Item = u64> + Send + '_> = match self.only {
            Some(only) => Box::new(only.iter()),
            None => Box::new(0..self.ds.len()),
        };
        std::iter::from_fn(move || {
            let chunk: Vec<u64> = ids.by_ref().take(records as usize).collect();
            (!chunk.is_empty()).then_some(chunk)
        })
    }

    /// Calls a function with these records.
    #[cfg(feature = "tables")]
    pub(crate) fn read<E: From<tfseek::Error>>(
        ds: &Dataset,
        ids: &[u64],
        mut f: impl FnMut(Record<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut failed = None;
        for some in ids.chunks(CHUNK as usize) {
            let read = ds.read_many(some, |record| {
                f(record).map_err(|e| {
                    failed = Some(e);
                    ErrorKind::Cancelled.into()
                })
            });
            match (failed.take(), read) {
                (Some(e), _) => return Err(e),
                (None, read) => read?,
            }
        }
        Ok(())
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
            self.shard = shard.map_or(0..0, |shard| shard.start..shard.start + shard.len);
            self.kind = guess_kind(ds, self.shard.clone());
        }
        Ok(self.kind)
    }
}
