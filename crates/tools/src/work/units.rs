//! Work on all records in units, on several threads, with results in order.
//!
//! A unit is a run of records of one shard. Its borders depend on the records alone: it ends after a number
//! of records or of payload bytes, whichever is first, and at the end of its shard. Results are merged in the
//! order of the units, so a result does not depend on the number of threads.
//!
//! Shards are read in order by whichever thread needs the next unit. On one thread records are not copied; on
//! several, the records of a unit are copied together before they are worked on.

use super::stream::KindedStream;
use super::threads::in_order;
use crate::memory::{append, push};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tfseek::example::MessageKind;
use tfseek::{At, Damage, Error, Record, Result, Warning};

/// The records of one shard, in file order.
pub trait UnitSource: Send {
    /// Returns the next record, and its number over all shards if it is known.
    ///
    /// # Errors
    /// Damage, after the records that precede it.
    #[allow(clippy::type_complexity, reason = "a record and its number")]
    fn next(&mut self) -> Result<Option<(Record<'_>, Option<u64>)>>;

    /// Returns the kind of the records.
    fn kind(&self) -> MessageKind;

    /// Returns the name of the shard in errors.
    fn name(&self) -> PathBuf;

    /// Returns the number of records, if the shard was read to its end.
    fn total(&self) -> Option<u64>;

    /// Continues after the damaged record of the last error. Returns false if that is not possible: a stream
    /// leaves damage out itself.
    fn skip_damaged(&mut self) -> bool {
        false
    }

    /// Returns the warnings about what was left out of the shard. Streams know it at their end.
    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }
}

/// The records of a stream, and the number of records before it, if that is known.
pub struct NumberedStream {
    /// The records.
    pub stream: KindedStream,
    /// Number of records in the shards before.
    pub before: Option<u64>,
}

impl UnitSource for NumberedStream {
    fn next(&mut self) -> Result<Option<(Record<'_>, Option<u64>)>> {
        let Some(record) = self.stream.next()? else { return Ok(None) };
        let number = self.before.zip(record.at().record).and_then(|(before, i)| before.checked_add(i));
        Ok(Some((record, number)))
    }

    fn kind(&self) -> MessageKind {
        self.stream.kind()
    }

    fn name(&self) -> PathBuf {
        self.stream.stream().name().to_path_buf()
    }

    fn total(&self) -> Option<u64> {
        self.stream.total()
    }

    fn warnings(&self) -> Vec<Warning> {
        self.stream.stream().warnings().to_vec()
    }
}

/// The work on the records of a unit.
pub(crate) trait UnitWork: Sync {
    /// The result of a unit.
    type Result: Send;

    /// Begins a unit of shard `shard`.
    fn begin(&self, shard: usize) -> Self::Result;

    /// Adds the next record of the unit.
    ///
    /// # Errors
    /// An error of this record, with its location. If errors are skipped and it concerns the data, the next
    /// record follows. Otherwise it ends the shard.
    fn record(&self, unit: &mut Self::Result, record: UnitRecord<'_>) -> Result<()>;

    /// Returns true if no further records of this shard are needed. It may then be read further or not.
    fn is_done(&self, _shard: usize) -> bool {
        false
    }
}

/// A record of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitRecord<'a> {
    /// The payload and its location.
    pub(crate) record: Record<'a>,
    /// The number over all shards, if it is known.
    pub(crate) number: Option<u64>,
    /// Kind of the records of the shard.
    pub(crate) kind: MessageKind,
}

/// The size of units and the treatment of errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitOptions {
    /// Number of [`threads`](tfseek::threads).
    pub(crate) threads: Option<usize>,
    /// Number of records after which a unit ends.
    pub(crate) records: usize,
    /// Number of payload bytes from which a unit ends.
    pub(crate) bytes: usize,
    /// Treatment of damaged records and of records with an error.
    pub(crate) damage: Damage,
}

impl Default for UnitOptions {
    /// One thread per processor, units of 65,536 records or 64 MiB, and errors that end a shard.
    fn default() -> UnitOptions {
        UnitOptions { threads: None, records: 1 << 16, bytes: 64 << 20, damage: Damage::Raise }
    }
}

/// A unit whose records were worked on.
#[derive(Debug)]
pub struct MergedUnit<T> {
    /// Number of the shard.
    pub shard: usize,
    /// Result of the unit.
    pub result: T,
    /// Number of records, without skipped ones.
    pub records: u64,
    /// Bytes of these records' payloads.
    pub bytes: u64,
    /// Errors that were skipped, in order.
    pub skipped: Vec<Error>,
    /// Error that ended the shard. This is then its last unit.
    pub error: Option<Error>,
    /// This is the last unit of the shard. A shard of which no further records are needed may have none.
    pub is_last: bool,
}

/// Works on the records of `shards` shards. `open(s, total)` opens shard `s`; `total` is the number of
/// records of the shard before it, if that was read to its end. `merge` is called with each unit in order, on
/// the calling thread; each shard has at least one unit. After an error of a shard the next shard follows.
///
/// # Errors
/// The first error of `merge`, which ends the work, or of starting a thread.
pub(crate) fn for_each_unit<S, W, E>(
    shards: usize,
    options: UnitOptions,
    open: impl FnMut(usize, Option<u64>) -> Result<S> + Send,
    work: &W,
    mut merge: impl FnMut(MergedUnit<W::Result>) -> Result<(), E>,
) -> Result<(), E>
where
    S: UnitSource,
    W: UnitWork,
    E: Send + From<Error>,
{
    let threads = tfseek::threads(options.threads)?;
    let cutter = UnitCutter { shards, options, open, next: 0, source: None, total: None, first: true };
    // A shard whose unit had an error is over, but later units of it may have been cut already.
    let mut failed = None;
    let merge = |unit: MergedUnit<W::Result>| {
        if failed == Some(unit.shard) {
            return Ok(());
        }
        if unit.error.is_some() {
            failed = Some(unit.shard);
        }
        merge(unit)
    };
    if threads == 1 { on_this_thread(cutter, work, merge) } else { on_threads(threads, cutter, work, merge) }
}

fn on_this_thread<S: UnitSource, W: UnitWork, E>(
    mut cutter: UnitCutter<S, impl FnMut(usize, Option<u64>) -> Result<S>>,
    work: &W,
    mut merge: impl FnMut(MergedUnit<W::Result>) -> Result<(), E>,
) -> Result<(), E> {
    let skips = cutter.options.damage == Damage::Skip;
    while let Some(shard) = cutter.begin(work) {
        let mut unit = MergedUnit::begin(shard, work);
        let end = cutter.cut(|record| {
            unit.add(work, record, skips);
            Ok(())
        });
        merge(unit.end(end))?;
    }
    Ok(())
}

fn on_threads<S: UnitSource, W: UnitWork, E: Send + From<Error>>(
    threads: usize,
    mut cutter: UnitCutter<S, impl FnMut(usize, Option<u64>) -> Result<S> + Send>,
    work: &W,
    merge: impl FnMut(MergedUnit<W::Result>) -> Result<(), E>,
) -> Result<(), E> {
    let skips = cutter.options.damage == Damage::Skip;
    // Memory for the records of units, at most one for each thread.
    let idle: Mutex<Vec<UnitCopies>> = Mutex::default();
    let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
    let units = iter::from_fn(|| {
        let shard = cutter.begin(work)?;
        let mut copies = lock().pop().unwrap_or_default();
        let end = cutter.cut(|record| copies.add(record));
        Some((shard, copies, end))
    });
    let add = |(shard, mut copies, end): (usize, UnitCopies, UnitEnd)| {
        let mut unit = MergedUnit::begin(shard, work);
        copies.iter(&end.name).for_each(|record| unit.add(work, record, skips));
        copies.clear();
        lock().push(copies);
        Ok(unit.end(end))
    };
    in_order(threads, 2 * threads, units, add, merge)
}

impl<T> MergedUnit<T> {
    fn begin<W: UnitWork<Result = T>>(shard: usize, work: &W) -> MergedUnit<T> {
        let result = work.begin(shard);
        MergedUnit { shard, result, records: 0, bytes: 0, skipped: Vec::new(), error: None, is_last: false }
    }

    fn add<W: UnitWork<Result = T>>(&mut self, work: &W, record: UnitRecord<'_>, skips: bool) {
        // The rest of a failed shard is read only to count its records.
        if self.error.is_some() {
            return;
        }
        match work.record(&mut self.result, record) {
            Ok(()) => {
                self.records += 1;
                self.bytes += record.record.payload().len() as u64;
            }
            Err(e) if skips && e.is_data() => self.skipped.push(e),
            Err(e) => self.error = Some(e),
        }
    }

    fn end(mut self, end: UnitEnd) -> MergedUnit<T> {
        self.skipped.extend(end.skipped);
        self.skipped.sort_by_key(|e| e.location().record.unwrap_or(u64::MAX));
        self.error = self.error.or(end.error);
        self.is_last = end.is_last || self.error.is_some();
        self
    }
}

/// The end of a unit, as far as reading determines it.
struct UnitEnd {
    name: Arc<Path>,
    skipped: Vec<Error>,
    error: Option<Error>,
    is_last: bool,
}

/// Cuts the records of all shards into units.
struct UnitCutter<S, O> {
    shards: usize,
    options: UnitOptions,
    open: O,
    /// Number of the shard after the current one.
    next: usize,
    /// The current shard, or the error of opening it.
    source: Option<Result<(S, Arc<Path>)>>,
    /// Number of records of the last shard, if it was read to its end.
    total: Option<u64>,
    /// No unit of the current shard was cut.
    first: bool,
}

impl<S: UnitSource, O: FnMut(usize, Option<u64>) -> Result<S>> UnitCutter<S, O> {
    /// Opens the next shard if none is open. Returns the number of the current shard, or `None` after the
    /// last one.
    fn begin<W: UnitWork>(&mut self, work: &W) -> Option<usize> {
        if let (Some(shard), Some(Ok((source, _))), false) =
            (self.next.checked_sub(1), &self.source, self.first)
            && work.is_done(shard)
        {
            self.total = source.total();
            self.source = None;
        }
        if self.source.is_none() {
            let shard = self.next;
            if shard >= self.shards {
                return None;
            }
            self.next += 1;
            self.first = true;
            let total = self.total.take();
            self.source = Some((self.open)(shard, total).map(|source| {
                let name = source.name().into();
                (source, name)
            }));
        }
        self.next.checked_sub(1)
    }

    /// Calls `each` with the records of the next unit, until it fails.
    fn cut(&mut self, mut each: impl FnMut(UnitRecord<'_>) -> Result<()>) -> UnitEnd {
        self.first = false;
        let mut records = 0usize;
        let mut bytes = 0usize;
        let mut end =
            UnitEnd { name: Path::new("").into(), skipped: Vec::new(), error: None, is_last: false };
        match &mut self.source {
            Some(Ok((source, name))) => {
                end.name = Arc::clone(name);
                while records < self.options.records && bytes < self.options.bytes {
                    // A skipped payload may change the guess of the kind.
                    let kind = source.kind();
                    match source.next() {
                        Ok(Some((record, number))) => {
                            records += 1;
                            bytes += record.payload().len();
                            if let Err(e) = each(UnitRecord { record, number, kind }) {
                                end.error = Some(e);
                                break;
                            }
                        }
                        Ok(None) => {
                            (end.is_last, self.total) = (true, source.total());
                            break;
                        }
                        Err(e) => {
                            if !(self.options.damage == Damage::Skip && source.skip_damaged()) {
                                end.error = Some(e);
                                break;
                            }
                            end.skipped.push(e);
                        }
                    }
                }
            }
            Some(Err(_)) | None => end.is_last = true,
        }
        if let Some(Err(e)) = self.source.take_if(|source| source.is_err()) {
            end.error = Some(e);
        }
        if end.is_last || end.error.is_some() {
            self.source = None;
        }
        end
    }
}

/// The records of a unit, copied together.
#[derive(Default)]
pub(crate) struct UnitCopies {
    bytes: Vec<u8>,
    records: Vec<CopiedRecord>,
}

struct CopiedRecord {
    /// End of the payload in `bytes`.
    end: usize,
    record: u64,
    offset: u64,
    number: Option<u64>,
    kind: MessageKind,
}

impl UnitCopies {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    /// Copies a record.
    ///
    /// # Errors
    /// There is not enough memory. The error has the location of the record.
    pub(crate) fn add(&mut self, UnitRecord { record, number, kind }: UnitRecord<'_>) -> Result<()> {
        let at = record.at();
        append(&mut self.bytes, record.payload()).map_err(|e| Error::from(e).at(at))?;
        let record = at.record.unwrap_or(0);
        let offset = at.offset.unwrap_or(0);
        let end = self.bytes.len();
        Ok(push(&mut self.records, CopiedRecord { end, record, offset, number, kind })?)
    }

    /// Returns the records. `name` is the shard's.
    pub(crate) fn iter<'c>(&'c self, name: &'c Path) -> impl Iterator<Item = UnitRecord<'c>> {
        let mut start = 0;
        self.records.iter().filter_map(move |copied| {
            let payload = self.bytes.get(start..copied.end)?;
            start = copied.end;
            let record = Record::new(payload, At::new(name, copied.record, copied.offset));
            Some(UnitRecord { record, number: copied.number, kind: copied.kind })
        })
    }
}

/// The error of a condition that tests record numbers, at a record whose number is not known.
pub(crate) fn unknown_number(at: At<'_>) -> Error {
    let reason =
        "the record number is not known, because a shard before it was not read to its end and has no index";
    Error::from(std::io::Error::other(reason)).at(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use tfseek::ErrorKind;
    use tfseek_testkit::rng::Rng;

    /// The records of a shard. `None` is damage.
    #[derive(Clone)]
    struct Shard {
        items: VecDeque<Option<Vec<u8>>>,
        /// Damage can be skipped.
        skippable: bool,
        before: Option<u64>,
        read: u64,
        current: Vec<u8>,
        ended: bool,
    }

    fn damage(record: u64) -> Error {
        let e = Error::from(ErrorKind::CorruptData { computed: 0, stored: 1 });
        e.at(At::new(Path::new("shard"), record, 0))
    }

    impl UnitSource for Shard {
        fn next(&mut self) -> Result<Option<(Record<'_>, Option<u64>)>> {
            let i = self.read;
            match self.items.pop_front() {
                None => {
                    self.ended = true;
                    Ok(None)
                }
                Some(None) => Err(damage(i)),
                Some(Some(payload)) => {
                    self.read += 1;
                    self.current = payload;
                    let number = self.before.map(|before| before + i);
                    Ok(Some((Record::new(&self.current, At::new(Path::new("shard"), i, 7 * i)), number)))
                }
            }
        }

        fn kind(&self) -> MessageKind {
            MessageKind::Other
        }

        fn name(&self) -> PathBuf {
            "shard".into()
        }

        fn total(&self) -> Option<u64> {
            self.ended.then_some(self.read)
        }

        fn skip_damaged(&mut self) -> bool {
            self.read += u64::from(self.skippable);
            self.skippable
        }
    }

    /// Lists the records. A payload `[0]` is an error of the data, and `[1]` another one.
    struct Listing;

    impl UnitWork for Listing {
        type Result = Vec<String>;

        fn begin(&self, shard: usize) -> Vec<String> {
            vec![format!("begin {shard}")]
        }

        fn record(
            &self,
            unit: &mut Vec<String>,
            UnitRecord { record, number, .. }: UnitRecord<'_>,
        ) -> Result<()> {
            match record.payload() {
                [0] => Err(Error::from(ErrorKind::TooLarge { len: 0, limit: 0 }).at(record.at())),
                [1] => Err(Error::from(ErrorKind::Cancelled).at(record.at())),
                payload => {
                    unit.push(format!("{number:?} {:?} {}", record.at().record, payload.len()));
                    Ok(())
                }
            }
        }
    }

    fn shards(rng: &mut Rng) -> Vec<Shard> {
        (0..rng.below(5))
            .map(|_| {
                let items = (0..rng.below(40))
                    .map(|_| match rng.below(60) {
                        0 => None,
                        1 => Some(vec![0]),
                        2 => Some(vec![1]),
                        _ => Some(vec![9; 2 + rng.below(30)]),
                    })
                    .collect();
                let skippable = rng.chance(2);
                Shard { items, skippable, before: None, read: 0, current: Vec::new(), ended: false }
            })
            .collect()
    }

    fn listed(shards: &[Shard], options: UnitOptions, stop: usize) -> Vec<String> {
        let mut all = Vec::new();
        let mut before = Some(0);
        let open = |s: usize, total: Option<u64>| {
            if s > 0 {
                before = before.zip(total).map(|(before, total)| before + total);
            }
            Ok(Shard { before, ..shards[s].clone() })
        };
        let ended: Result<()> = for_each_unit(shards.len(), options, open, &Listing, |unit| {
            all.push(format!("{unit:?}"));
            if all.len() == stop { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
        });
        assert_eq!(ended.is_err(), all.len() == stop);
        all
    }

    #[test]
    fn units_do_not_depend_on_the_number_of_threads() {
        let mut units = 0;
        let mut errors = 0;
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let shards = shards(&mut rng);
            let records = 1 + rng.below(9);
            let bytes = 1 + rng.below(200);
            let damage = if rng.chance(2) { Damage::Skip } else { Damage::Raise };
            let stop = if rng.chance(3) { 1 + rng.below(9) } else { usize::MAX };
            let options = UnitOptions { threads: Some(1), records, bytes, damage };
            let one = listed(&shards, options, stop);
            for threads in [Some(2), Some(5)] {
                assert_eq!(listed(&shards, UnitOptions { threads, ..options }, stop), one, "{seed}");
            }
            // Each shard has a unit, and an error is the end of its shard.
            if stop == usize::MAX {
                let last = one.iter().filter(|unit| unit.contains("is_last: true")).count();
                assert_eq!(last, shards.len(), "{seed}: {one:?}");
            }
            units += one.len();
            errors += one.iter().filter(|unit| unit.contains("error: Some")).count();
        }
        assert!(units > 2000 && errors > 100, "{units} {errors}");
    }

    #[test]
    fn borders_are_those_of_records_and_bytes() {
        let items = [4, 4, 4, 50, 1, 4, 4].map(|len| Some(vec![9; len + 1])).into();
        let shard =
            Shard { items, skippable: false, before: None, read: 0, current: Vec::new(), ended: false };
        let mut sizes = Vec::new();
        let options = UnitOptions { threads: Some(1), records: 3, bytes: 40, damage: Damage::Raise };
        let done: Result<()> = for_each_unit(
            1,
            options,
            |_, _| Ok(shard.clone()),
            &Listing,
            |unit| {
                sizes.push((unit.records, unit.bytes, unit.is_last));
                Ok(())
            },
        );
        done.unwrap();
        assert_eq!(sizes, [(3, 15, false), (1, 51, false), (3, 12, false), (0, 0, true)]);
    }

    #[test]
    fn a_panic_of_the_work_ends_it() {
        struct Panics;
        impl UnitWork for Panics {
            type Result = ();
            fn begin(&self, _: usize) {}
            fn record(&self, (): &mut (), _: UnitRecord<'_>) -> Result<()> {
                panic!("the work fails")
            }
        }
        let items = vec![Some(vec![9; 3]); 1000].into();
        let shard =
            Shard { items, skippable: false, before: None, read: 0, current: Vec::new(), ended: false };
        let options = UnitOptions { threads: Some(3), records: 1, ..UnitOptions::default() };
        let ended = std::panic::catch_unwind(|| {
            for_each_unit::<_, _, Error>(1, options, |_, _| Ok(shard.clone()), &Panics, |_| Ok(()))
        });
        assert!(ended.is_err());
    }
}
