//! Work on the records of shards, in units that depend on the data alone.
//!
//! A unit is 65,536 records or 64 MiB of payload of one shard, whichever comes first. Units run on any thread. Their results are merged in the
//! order of the units of a shard, then in the order of the shards, so the number of threads does not change the result.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tfseek::example::MessageKind;
use tfseek::{At, Record, Result};

/// The largest number of records of a unit.
pub(crate) const UNIT_RECORDS: u64 = 65_536;
/// A unit ends with the record that reaches this number of payload bytes.
pub(crate) const UNIT_BYTES: u64 = 64 << 20;

/// The records of a shard in order.
pub(crate) trait UnitSource: Send {
    /// Returns the next record with its kind, or `None` at the end.
    ///
    /// # Errors
    /// The record cannot be read.
    fn next(&mut self) -> Result<Option<(Record<'_>, MessageKind)>>;

    /// Returns the path in the locations of records.
    fn path(&self) -> &Path;
}

/// The work on each unit.
pub(crate) trait UnitWork: Sync {
    /// The records of a shard.
    type Source: UnitSource;
    /// The result of a unit.
    type Unit: Send;
    /// An error that ends the work.
    type Error: Send;

    /// Opens shard `k`.
    ///
    /// # Errors
    /// The shard cannot be opened.
    fn open(&self, k: usize) -> Result<Self::Source, Self::Error>;

    /// Returns the result of a unit without records.
    fn begin(&self) -> Self::Unit;

    /// Adds a record to a unit.
    ///
    /// # Errors
    /// The work ends.
    fn add(&self, unit: &mut Self::Unit, record: Record<'_>, kind: MessageKind) -> Result<(), Self::Error>;

    /// Decides on an error of a source: true to go on with its next record, false to end the shard.
    ///
    /// # Errors
    /// The work ends.
    fn failed(
        &self,
        unit: &mut Self::Unit,
        source: &mut Self::Source,
        e: tfseek::Error,
    ) -> Result<bool, Self::Error>;

    /// Ends a unit.
    fn end(&self, unit: &mut Self::Unit);

    /// Adds a result to that of the units before it.
    ///
    /// # Errors
    /// The work ends.
    fn merge(&self, unit: &mut Self::Unit, next: Self::Unit) -> Result<(), Self::Error>;
}

/// Runs the work on all units, on `jobs` threads. Returns the merged result, or the first error in the order of the shards.
///
/// If there are fewer shards than threads, each thread copies the records of a unit, up to 64 MiB and a record, so that another thread can
/// read the next unit meanwhile.
///
/// # Errors
/// Those of the work.
pub(crate) fn run<W: UnitWork>(work: &W, shards: usize, jobs: usize) -> Result<W::Unit, W::Error> {
    let states = (0..shards).map(|_| ShardState::default()).collect();
    let state = RunState { shards: states, first: 0, stop: shards, total: None, merging: false, error: None };
    let run = UnitRun { work, jobs, state: Mutex::new(state), changed: Condvar::new() };
    std::thread::scope(|scope| {
        let run = &run;
        for k in 1..jobs {
            // With fewer threads the result is the same.
            let _ = std::thread::Builder::new()
                .name(format!("tfseek-{k}"))
                .spawn_scoped(scope, move || run.work());
        }
        run.work();
    });
    let state = run.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match state.error {
        Some(e) => Err(e),
        None => Ok(state.total.unwrap_or_else(|| work.begin())),
    }
}

struct ShardState<W: UnitWork> {
    source: Option<W::Source>,
    /// A thread has the source.
    is_busy: bool,
    /// The source has no further unit.
    is_ended: bool,
    /// The number of units that threads took, and of those that were merged.
    taken: u64,
    merged: u64,
    /// Results that arrived before that of an earlier unit.
    early: BTreeMap<u64, Result<W::Unit, W::Error>>,
    is_merging: bool,
    total: Option<W::Unit>,
    error: Option<W::Error>,
}

impl<W: UnitWork> Default for ShardState<W> {
    fn default() -> ShardState<W> {
        ShardState {
            source: None,
            is_busy: false,
            is_ended: false,
            taken: 0,
            merged: 0,
            early: BTreeMap::new(),
            is_merging: false,
            total: None,
            error: None,
        }
    }
}

struct RunState<W: UnitWork> {
    shards: Vec<ShardState<W>>,
    /// The first shard that is not part of the total.
    first: usize,
    /// No shard from here on is read, because one before it failed.
    stop: usize,
    total: Option<W::Unit>,
    merging: bool,
    error: Option<W::Error>,
}

struct UnitRun<'a, W: UnitWork> {
    work: &'a W,
    jobs: usize,
    state: Mutex<RunState<W>>,
    changed: Condvar,
}

/// A unit that a thread has taken.
struct TakenUnit<S> {
    shard: usize,
    number: u64,
    source: Option<S>,
    /// Other threads have shards of their own, so the source is needed by this thread only.
    is_direct: bool,
}

/// Copies of the records of a unit.
#[derive(Default)]
struct UnitBuffer {
    bytes: Vec<u8>,
    /// Length, ordinal, offset and kind.
    records: Vec<(usize, u64, u64, MessageKind)>,
    path: PathBuf,
}

impl<W: UnitWork> UnitRun<'_, W> {
    fn lock(&self) -> MutexGuard<'_, RunState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut buffer = UnitBuffer::default();
        while let Some(taken) = self.take() {
            let (shard, number) = (taken.shard, taken.number);
            let result = self.unit(taken, &mut buffer);
            let mut state = self.lock();
            if let Some(of) = state.shards.get_mut(shard) {
                of.early.insert(number, result);
            }
            self.merge(state, shard);
            self.changed.notify_all();
        }
    }

    /// Waits for a unit. `None` if there is no further one.
    fn take(&self) -> Option<TakenUnit<W::Source>> {
        let mut state = self.lock();
        loop {
            let RunState { shards, first, stop, .. } = &mut *state;
            let (from, to) = (*first, (*stop).min(first.saturating_add(2 * self.jobs)));
            let left = shards.iter().skip(from).filter(|shard| !shard.is_ended).count();
            if from >= *stop {
                return None;
            }
            let mut open = shards.iter_mut().enumerate().take(to).skip(from);
            let ahead = 2 * self.jobs as u64;
            let found = open
                .find(|(_, shard)| !shard.is_busy && !shard.is_ended && shard.taken - shard.merged < ahead);
            if let Some((k, shard)) = found {
                shard.is_busy = true;
                shard.taken += 1;
                let is_direct = left >= self.jobs;
                return Some(TakenUnit {
                    shard: k,
                    number: shard.taken - 1,
                    source: shard.source.take(),
                    is_direct,
                });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives the source of a shard back.
    fn put(&self, shard: usize, source: Option<W::Source>) {
        let mut state = self.lock();
        if let Some(of) = state.shards.get_mut(shard) {
            of.is_busy = false;
            of.is_ended |= source.is_none();
            of.source = source;
        }
        drop(state);
        self.changed.notify_all();
    }

    fn unit(&self, taken: TakenUnit<W::Source>, buffer: &mut UnitBuffer) -> Result<W::Unit, W::Error> {
        let TakenUnit { shard, source, is_direct, .. } = taken;
        let mut unit = self.work.begin();
        let opened = source.map_or_else(|| self.work.open(shard), Ok);
        let mut source = match opened {
            Ok(source) => source,
            Err(e) => {
                self.put(shard, None);
                return Err(e);
            }
        };
        let read = if is_direct {
            self.read(&mut source, &mut unit, |unit, record, kind| self.work.add(unit, record, kind))
        } else {
            buffer.bytes.clear();
            buffer.records.clear();
            buffer.path = source.path().to_path_buf();
            self.read(&mut source, &mut unit, |_, record, kind| {
                let (payload, at) = (record.payload(), record.at());
                buffer.bytes.extend_from_slice(payload);
                let (i, offset) = (at.record.unwrap_or(0), at.offset.unwrap_or(0));
                buffer.records.push((payload.len(), i, offset, kind));
                Ok(())
            })
        };
        let goes_on = matches!(read, Ok(true));
        self.put(shard, goes_on.then_some(source));
        if !is_direct {
            let mut rest = buffer.bytes.as_slice();
            for &(len, i, offset, kind) in &buffer.records {
                let Some((payload, after)) = rest.split_at_checked(len) else { break };
                rest = after;
                self.work.add(&mut unit, Record::new(payload, At::new(&buffer.path, i, offset)), kind)?;
            }
        }
        read?;
        self.work.end(&mut unit);
        Ok(unit)
    }

    /// Reads the records of a unit. Returns false at the end of the shard.
    fn read(
        &self,
        source: &mut W::Source,
        unit: &mut W::Unit,
        mut add: impl FnMut(&mut W::Unit, Record<'_>, MessageKind) -> Result<(), W::Error>,
    ) -> Result<bool, W::Error> {
        let (mut records, mut bytes) = (0, 0);
        while records < UNIT_RECORDS && bytes < UNIT_BYTES {
            match source.next() {
                Ok(Some((record, kind))) => {
                    records += 1;
                    bytes += record.payload().len() as u64;
                    add(unit, record, kind)?;
                }
                Ok(None) => return Ok(false),
                Err(e) => {
                    if !self.work.failed(unit, source, e)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Merges the results that are next in order.
    fn merge<'s>(&'s self, mut state: MutexGuard<'s, RunState<W>>, k: usize) {
        loop {
            let Some(shard) = state.shards.get_mut(k) else { return };
            if shard.is_merging {
                return;
            }
            let Some(result) = shard.early.remove(&shard.merged) else { break };
            shard.is_merging = true;
            let total = shard.total.take();
            drop(state);
            let total = self.merged(total, result);
            state = self.lock();
            let Some(shard) = state.shards.get_mut(k) else { return };
            shard.is_merging = false;
            shard.merged += 1;
            match total {
                Ok(total) => shard.total = Some(total),
                Err(e) => {
                    // The units after it do not count.
                    shard.error.get_or_insert(e);
                    shard.is_ended = true;
                    state.stop = state.stop.min(k + 1);
                }
            }
            self.changed.notify_all();
        }
        self.merge_shards(state);
    }

    /// Merges the shards that are next in order and complete.
    fn merge_shards<'s>(&'s self, mut state: MutexGuard<'s, RunState<W>>) {
        while !state.merging && state.first < state.stop {
            let k = state.first;
            let Some(shard) = state.shards.get_mut(k) else { return };
            let is_complete =
                shard.is_ended && !shard.is_busy && !shard.is_merging && shard.merged == shard.taken;
            if !is_complete {
                return;
            }
            let result = match (shard.error.take(), shard.total.take()) {
                (Some(e), _) => Err(e),
                (None, total) => Ok(total.unwrap_or_else(|| self.work.begin())),
            };
            state.merging = true;
            let total = state.total.take();
            drop(state);
            let total = self.merged(total, result);
            state = self.lock();
            state.merging = false;
            state.first += 1;
            match total {
                Ok(total) => state.total = Some(total),
                Err(e) => {
                    state.error.get_or_insert(e);
                    state.stop = state.first;
                }
            }
            self.changed.notify_all();
        }
    }

    fn merged(&self, total: Option<W::Unit>, next: Result<W::Unit, W::Error>) -> Result<W::Unit, W::Error> {
        match (total, next?) {
            (None, next) => Ok(next),
            (Some(mut total), next) => self.work.merge(&mut total, next).map(|()| total),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::Error;

    /// Shards of numbered records. Damage is after the records of a shard.
    struct Numbered {
        shards: Vec<(u64, bool)>,
    }

    struct NumberedSource {
        next: u64,
        end: (u64, bool),
        payload: Vec<u8>,
    }

    impl UnitSource for NumberedSource {
        fn next(&mut self) -> Result<Option<(Record<'_>, MessageKind)>> {
            if self.next == self.end.0 {
                return if self.end.1 { Err(Error::from(std::io::Error::other("damage"))) } else { Ok(None) };
            }
            self.payload = self.next.to_le_bytes().to_vec();
            self.next += 1;
            Ok(Some((
                Record::new(&self.payload, At::new(Path::new("x"), self.next - 1, 0)),
                MessageKind::Other,
            )))
        }

        fn path(&self) -> &Path {
            Path::new("x")
        }
    }

    impl UnitWork for Numbered {
        type Source = NumberedSource;
        /// The numbers of records of the units, and the sum of the payloads.
        type Unit = (Vec<u64>, u64);
        type Error = usize;

        fn open(&self, k: usize) -> Result<NumberedSource, usize> {
            Ok(NumberedSource { next: 0, end: *self.shards.get(k).ok_or(k)?, payload: Vec::new() })
        }

        fn begin(&self) -> (Vec<u64>, u64) {
            (vec![0], 0)
        }

        fn add(&self, unit: &mut (Vec<u64>, u64), record: Record<'_>, _: MessageKind) -> Result<(), usize> {
            unit.0[0] += 1;
            unit.1 += u64::from_le_bytes(record.payload().try_into().unwrap());
            assert_eq!(record.payload(), record.at().record.unwrap().to_le_bytes());
            Ok(())
        }

        fn failed(
            &self,
            _: &mut (Vec<u64>, u64),
            source: &mut NumberedSource,
            _: Error,
        ) -> Result<bool, usize> {
            Err(source.end.0 as usize)
        }

        fn end(&self, _: &mut (Vec<u64>, u64)) {}

        fn merge(&self, unit: &mut (Vec<u64>, u64), next: (Vec<u64>, u64)) -> Result<(), usize> {
            unit.0.extend(next.0);
            unit.1 += next.1;
            Ok(())
        }
    }

    #[test]
    fn units_are_merged_in_order_on_any_number_of_threads() {
        let work = Numbered {
            shards: vec![(200_000, false), (0, false), (7, false), (65_536, false), (65_537, false)],
        };
        let expected = run(&work, 5, 1).unwrap();
        assert_eq!(expected.0, [65_536, 65_536, 65_536, 3_392, 0, 7, 65_536, 0, 65_536, 1]);
        for jobs in [2, 3, 8, 20] {
            assert_eq!(run(&work, 5, jobs).unwrap(), expected);
        }
        assert_eq!(run(&work, 0, 4).unwrap(), (vec![0], 0));
    }

    #[test]
    fn the_first_error_in_order_is_returned() {
        let work = Numbered { shards: vec![(100_000, false), (200_000, true), (5, true), (9, false)] };
        for jobs in [1, 2, 8] {
            assert_eq!(run(&work, 4, jobs), Err(200_000));
        }
    }
}
