//! Work on the records of shards, in units that depend on the data alone.
//!
//! A unit is 65,536 records or 64 MiB of payload of one shard, whichever comes first. Units run on any
//! thread. Their results are merged in the order of the units of a shard, then in the order of the shards, so
//! the number of threads does not change the result.

use super::units::{UnitCopies, UnitOptions, UnitRecord, UnitSource};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tfseek::Warning;

/// Work where the results of two neighbouring units can be merged as soon as both are known, so that shards
/// are read at the same time.
pub(crate) trait FoldWork: Sync {
    /// The records of a shard.
    type Source: UnitSource;
    /// The result of a unit.
    type Unit: Send;
    /// An error that ends the work.
    type Error: Send + From<tfseek::Error>;

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
    fn add(&self, unit: &mut Self::Unit, record: UnitRecord<'_>) -> Result<(), Self::Error>;

    /// Counts a damaged record that is to be skipped.
    ///
    /// # Errors
    /// The record is not to be skipped. The work ends.
    fn skip(&self, unit: &mut Self::Unit, e: tfseek::Error) -> Result<(), Self::Error>;

    /// Adds the warnings about a shard, at its end.
    fn warn(&self, unit: &mut Self::Unit, warnings: Vec<Warning>);

    /// Ends a unit.
    fn end(&self, unit: &mut Self::Unit);

    /// Adds a result to the result of the units before it.
    ///
    /// # Errors
    /// The work ends.
    fn merge(&self, unit: &mut Self::Unit, next: Self::Unit) -> Result<(), Self::Error>;

    /// Receives the results so far, each time they grow: the result of the complete shards, and the result of
    /// the first units of the shard after them.
    fn partial(&self, _complete: Option<&Self::Unit>, _begun: Option<&Self::Unit>) {}
}

/// Runs the work on all units, on a number of threads. Returns the merged result, or the first error in the
/// order of the shards.
///
/// If there are fewer shards than threads, each thread copies the records of a unit, up to 64 MiB and a
/// record, so that another thread can read the next unit meanwhile.
///
/// # Errors
/// The work's errors.
pub(crate) fn fold<W: FoldWork>(work: &W, shards: usize, threads: usize) -> Result<W::Unit, W::Error> {
    let states = (0..shards).map(|_| ShardState::default()).collect();
    let state = RunState { shards: states, first: 0, stop: shards, total: None, merging: false, error: None };
    let run = FoldRun { work, threads, state: Mutex::new(state), changed: Condvar::new() };
    std::thread::scope(|scope| {
        let run = &run;
        for k in 1..threads {
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

struct ShardState<W: FoldWork> {
    source: Option<W::Source>,
    /// A thread has the source.
    is_busy: bool,
    /// The source has no further unit.
    is_ended: bool,
    /// The number of units that threads took, and of those that were merged.
    taken: u64,
    merged: u64,
    /// Results that arrived before an earlier unit's result.
    early: BTreeMap<u64, Result<W::Unit, W::Error>>,
    is_merging: bool,
    total: Option<W::Unit>,
    error: Option<W::Error>,
}

impl<W: FoldWork> Default for ShardState<W> {
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

struct RunState<W: FoldWork> {
    shards: Vec<ShardState<W>>,
    /// The first shard that is not part of the total.
    first: usize,
    /// No shard from here on is read, because one before it failed.
    stop: usize,
    total: Option<W::Unit>,
    merging: bool,
    error: Option<W::Error>,
}

struct FoldRun<'a, W: FoldWork> {
    work: &'a W,
    threads: usize,
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

impl<W: FoldWork> FoldRun<'_, W> {
    fn lock(&self) -> MutexGuard<'_, RunState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut copies = UnitCopies::default();
        while let Some(taken) = self.take() {
            let shard = taken.shard;
            let number = taken.number;
            let result = self.unit(taken, &mut copies);
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
            let from = *first;
            let to = (*stop).min(from + 2 * self.threads);
            let left = shards.iter().skip(from).filter(|shard| !shard.is_ended).count();
            if from >= *stop {
                return None;
            }
            let mut open = shards.iter_mut().enumerate().take(to).skip(from);
            let ahead = 2 * self.threads as u64;
            let found = open
                .find(|(_, shard)| !shard.is_busy && !shard.is_ended && shard.taken - shard.merged < ahead);
            if let Some((k, shard)) = found {
                shard.is_busy = true;
                shard.taken += 1;
                let is_direct = left >= self.threads;
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

    fn unit(&self, taken: TakenUnit<W::Source>, copies: &mut UnitCopies) -> Result<W::Unit, W::Error> {
        let TakenUnit { shard, source, is_direct, .. } = taken;
        let mut unit = self.work.begin();
        let opened = source.map_or_else(|| self.work.open(shard), Ok);
        let mut source = opened.inspect_err(|_| self.put(shard, None))?;
        let name = source.name();
        copies.clear();
        let read = if is_direct {
            self.read(&mut source, &mut unit, |unit, record| self.work.add(unit, record))
        } else {
            self.read(&mut source, &mut unit, |_, record| Ok(copies.add(record)?))
        };
        let goes_on = matches!(read, Ok(true));
        self.put(shard, goes_on.then_some(source));
        copies.iter(&name).try_for_each(|record| self.work.add(&mut unit, record))?;
        read?;
        self.work.end(&mut unit);
        Ok(unit)
    }

    /// Reads the records of a unit. Returns false at the end of the shard.
    fn read(
        &self,
        source: &mut W::Source,
        unit: &mut W::Unit,
        mut add: impl FnMut(&mut W::Unit, UnitRecord<'_>) -> Result<(), W::Error>,
    ) -> Result<bool, W::Error> {
        let size = UnitOptions::default();
        let mut records = 0;
        let mut bytes = 0usize;
        while records < size.records && bytes < size.bytes {
            let kind = source.kind();
            match source.next() {
                Ok(Some((record, number))) => {
                    records += 1;
                    bytes += record.payload().len();
                    add(unit, UnitRecord { record, number, kind })?;
                }
                Ok(None) => {
                    self.work.warn(unit, source.warnings());
                    return Ok(false);
                }
                Err(e) => {
                    if !source.skip_damaged() {
                        return Err(e.into());
                    }
                    self.work.skip(unit, e)?;
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
                Ok(total) => {
                    shard.total = Some(total);
                    if k == state.first && !state.merging {
                        let begun = state.shards.get(k).and_then(|shard| shard.total.as_ref());
                        self.work.partial(state.total.as_ref(), begun);
                    }
                }
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
                Ok(total) => {
                    state.total = Some(total);
                    self.work.partial(state.total.as_ref(), None);
                }
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
    use std::path::{Path, PathBuf};
    use tfseek::example::MessageKind;
    use tfseek::{At, Error, Record};

    /// Shards of numbered records. Damage is after the records of a shard.
    struct Numbered {
        shards: Vec<(u64, bool)>,
        partial: Mutex<Vec<Vec<u64>>>,
    }

    impl Numbered {
        fn new(shards: &[(u64, bool)]) -> Numbered {
            Numbered { shards: shards.to_vec(), partial: Mutex::default() }
        }
    }

    struct NumberedSource {
        next: u64,
        end: (u64, bool),
        payload: Vec<u8>,
    }

    impl UnitSource for NumberedSource {
        fn next(&mut self) -> tfseek::Result<Option<(Record<'_>, Option<u64>)>> {
            if self.next == self.end.0 {
                let damage = Error::from(std::io::Error::other("damage"));
                let at = At::new(Path::new("x"), self.next, 0);
                return if self.end.1 { Err(damage.at(at)) } else { Ok(None) };
            }
            self.payload = self.next.to_le_bytes().to_vec();
            self.next += 1;
            Ok(Some((Record::new(&self.payload, At::new(Path::new("x"), self.next - 1, 0)), None)))
        }

        fn kind(&self) -> MessageKind {
            MessageKind::Other
        }

        fn name(&self) -> PathBuf {
            "x".into()
        }

        fn total(&self) -> Option<u64> {
            None
        }
    }

    /// The record of an error.
    #[derive(Debug, PartialEq)]
    struct FailedAt(u64);

    impl From<Error> for FailedAt {
        fn from(e: Error) -> FailedAt {
            FailedAt(e.location().record.unwrap())
        }
    }

    impl FoldWork for Numbered {
        type Source = NumberedSource;
        /// The numbers of records of the units, and the sum of the payloads.
        type Unit = (Vec<u64>, u64);
        type Error = FailedAt;

        fn open(&self, k: usize) -> Result<NumberedSource, FailedAt> {
            Ok(NumberedSource { next: 0, end: self.shards[k], payload: Vec::new() })
        }

        fn begin(&self) -> (Vec<u64>, u64) {
            (vec![0], 0)
        }

        fn add(&self, unit: &mut (Vec<u64>, u64), record: UnitRecord<'_>) -> Result<(), FailedAt> {
            let record = record.record;
            unit.0[0] += 1;
            unit.1 += u64::from_le_bytes(record.payload().try_into().unwrap());
            assert_eq!(record.payload(), record.at().record.unwrap().to_le_bytes());
            Ok(())
        }

        fn skip(&self, _: &mut (Vec<u64>, u64), e: Error) -> Result<(), FailedAt> {
            Err(e.into())
        }

        fn warn(&self, _: &mut (Vec<u64>, u64), _: Vec<Warning>) {}

        fn end(&self, _: &mut (Vec<u64>, u64)) {}

        fn merge(&self, unit: &mut (Vec<u64>, u64), next: (Vec<u64>, u64)) -> Result<(), FailedAt> {
            unit.0.extend(next.0);
            unit.1 += next.1;
            Ok(())
        }

        fn partial(&self, complete: Option<&(Vec<u64>, u64)>, begun: Option<&(Vec<u64>, u64)>) {
            let units = complete.into_iter().chain(begun).flat_map(|unit| unit.0.clone());
            self.partial.lock().unwrap().push(units.collect());
        }
    }

    #[test]
    fn units_are_merged_in_order_on_any_number_of_threads() {
        let work =
            Numbered::new(&[(200_000, false), (0, false), (7, false), (65_536, false), (65_537, false)]);
        let expected = fold(&work, 5, 1).unwrap();
        assert_eq!(expected.0, [65_536, 65_536, 65_536, 3_392, 0, 7, 65_536, 0, 65_536, 1]);
        for threads in [2, 3, 8, 20] {
            assert_eq!(fold(&work, 5, threads).unwrap(), expected);
        }
        // Results on the way have the first units, and the last one has all.
        let mut partial = work.partial.lock().unwrap();
        assert!(partial.iter().all(|units| expected.0.starts_with(units)));
        assert_eq!(partial.pop(), Some(expected.0));
        assert!(partial.iter().any(|units| units.len() == 2), "in the first shard");
        drop(partial);
        assert_eq!(fold(&work, 0, 4).unwrap(), (vec![0], 0));
    }

    #[test]
    fn the_first_error_in_order_is_returned() {
        let work = Numbered::new(&[(100_000, false), (200_000, true), (5, true), (9, false)]);
        for threads in [1, 2, 8] {
            assert_eq!(fold(&work, 4, threads), Err(FailedAt(200_000)));
        }
    }
}
