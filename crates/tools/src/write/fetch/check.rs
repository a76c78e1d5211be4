//! One file of a fetch: its records are checked as they arrive, and selected.

use super::journal::{Done, Earlier, HIDDEN};
use super::plan::{is_stale, listed_again};
use super::wanted::WantedPart;
use super::worker::{FetchRun, SharedWorker, Worker, hidden};
use crate::error::{FetchReason, ToolsError};
use crate::work::KindedStream;
use crate::write::sync::sync_folder;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};
use tfseek::example::MessageKind;
use tfseek::filter::RecordFilter;
use tfseek::io::bare_url;
use tfseek::stream::StreamOptions;
use tfseek::writer::WriterOptions;
use tfseek::{Damage, Error, Filter, Result, Writer};

/// Treatment of the records of a file.
#[derive(Clone)]
pub(super) struct CheckOptions {
    pub(super) filter: Option<Filter>,
    pub(super) keep_damaged: bool,
    pub(super) max_record: u64,
    /// True if files get their names at the end, all together.
    pub(super) new_set: bool,
}

/// The end of a file.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) index: usize,
    pub(super) earlier: Earlier,
    /// The first damage that was found twice, or another number of records than was stated.
    pub(super) damage: Option<ToolsError>,
    /// True if the object was replaced meanwhile.
    pub(super) begun_again: bool,
    /// The condition's view of the records.
    pub(super) filter: Option<RecordFilter>,
}

/// The result of reading a file.
enum Checked {
    Sound(Done),
    Damaged(Error),
    Failed(Error),
}

/// Fetches the first file of a thread. It ends in the hidden folder, or has its name.
///
/// # Errors
/// Errors that end the whole fetch.
pub(super) fn fetch_file(worker: &SharedWorker, options: &CheckOptions) -> Result<Option<Ended>> {
    if worker.lock().current().is_none() {
        return Ok(None);
    }
    let mut fetched_twice = false;
    let mut begun_again = false;
    let mut filter;
    let damage = loop {
        filter = options.filter.as_ref().map(Filter::for_records);
        let checked = check(worker, options, filter.as_mut(), false);
        let mut locked = worker.lock();
        locked.forget();
        match checked {
            Checked::Sound(done) => break complete(&mut locked, options, done)?,
            Checked::Failed(e) if is_stale(&e) && !begun_again => {
                begun_again = true;
                let run = locked.run.clone();
                if let Some(job) = locked.current() {
                    let object = listed_again(&*run.store, &job.object)?;
                    job.begin_again(&run, object)?;
                }
            }
            Checked::Failed(e) => return Err(e),
            Checked::Damaged(e) if !fetched_twice => {
                fetched_twice = true;
                if let Some(job) = locked.current() {
                    // In a compressed file the place of the damage is not known.
                    let from = e.location().offset.filter(|_| !job.wanted.is_compressed());
                    job.drop_pieces(from.unwrap_or(0));
                }
            }
            Checked::Damaged(e) if options.keep_damaged => {
                drop(locked);
                filter = options.filter.as_ref().map(Filter::for_records);
                let taken = check(worker, options, filter.as_mut(), true);
                let mut locked = worker.lock();
                locked.forget();
                match taken {
                    Checked::Sound(done) => {
                        complete(&mut locked, options, done)?;
                    }
                    Checked::Damaged(e) | Checked::Failed(e) => return Err(e),
                }
                break Some(e.into());
            }
            Checked::Damaged(e) => break Some(e.into()),
        }
    };
    let mut locked = worker.lock();
    let ended = locked.current().map(|job| {
        let earlier = std::mem::replace(&mut job.earlier, Earlier::new(job.object.stamp.clone()));
        Ended { index: job.index, earlier, damage, begun_again, filter }
    });
    locked.pop();
    Ok(ended)
}

/// Reads the first file of a thread: its pieces are fetched, and its records are checked and selected. With
/// `skip` damaged records do not count.
fn check(
    worker: &SharedWorker,
    options: &CheckOptions,
    filter: Option<&mut RecordFilter>,
    skip: bool,
) -> Checked {
    let Some((wanted, run)) = worker.lock().begin() else {
        return Checked::Failed(tfseek::ErrorKind::Cancelled.into());
    };
    let url = bare_url(&wanted.object.url);
    let result = match &wanted.part {
        WantedPart::File | WantedPart::Description => drain(worker),
        WantedPart::Shard => open(worker, options, &url, skip).and_then(|mut stream| {
            while stream.next()?.is_some() {}
            let records = stream.records_read();
            // The sound records may end before the bytes do.
            drain(worker)?;
            Ok(Done { records, selected: records, bytes: 0 })
        }),
        WantedPart::Records(ranges) => open(worker, options, &url, skip).and_then(|stream| {
            let ranges = ranges.as_deref();
            select(stream, ranges, filter, &run, &wanted.name)
        }),
    };
    // The reader's own error is the reason, if there is one.
    let failed = worker.lock().failed.take();
    match (failed, result) {
        (Some(e), _) => Checked::Failed(e),
        (None, Ok(done)) => Checked::Sound(done),
        (None, Err(e)) if e.is_data() => Checked::Damaged(e),
        (None, Err(e)) => Checked::Failed(e),
    }
}

fn open(worker: &SharedWorker, options: &CheckOptions, url: &str, skip: bool) -> Result<tfseek::Stream> {
    let damage = if skip { Damage::Skip } else { Damage::Raise };
    StreamOptions { damage, max_record: options.max_record, ..StreamOptions::default() }
        .read(worker.reader(), PathBuf::from(url))
}

/// Reads a file whose bytes are not checked.
fn drain(worker: &SharedWorker) -> Result<Done> {
    io::copy(&mut worker.reader(), &mut io::sink())?;
    Ok(Done { records: 0, selected: 0, bytes: 0 })
}

/// Writes the selected records to a file. There is none if no record is selected.
fn select(
    stream: tfseek::Stream,
    ranges: Option<&[std::ops::Range<u64>]>,
    mut filter: Option<&mut RecordFilter>,
    run: &FetchRun,
    name: &str,
) -> Result<Done> {
    let new = hidden(name, "new");
    let here = |e: io::Error| run.in_hidden(e, &new);
    let compression = stream.compression();
    let end = ranges.map(|ranges| ranges.last().map_or(0, |range| range.end));
    // Without a condition the kind does not matter.
    let mut records = KindedStream::new(stream, filter.is_none().then_some(MessageKind::Other));
    let kind = records.kind();
    let mut writer = None::<(Writer, File)>;
    let mut number = 0u64;
    let mut selected = 0u64;
    while end.is_none_or(|end| number < end)
        && let Some(record) = records.next()?
    {
        let is_in = ranges.is_none_or(|ranges| ranges.iter().any(|range| range.contains(&number)));
        let accepted = match &mut filter {
            Some(filter) if is_in => {
                filter.accepts(number, record.payload(), kind).map_err(|e| e.at(record.at()))?
            }
            _ => is_in,
        };
        number += 1;
        if !accepted {
            continue;
        }
        let (writer, _) = match &mut writer {
            Some(writer) => writer,
            None => {
                // One of an earlier run is not complete.
                let file = run.created(&new)?;
                file.set_len(0).map_err(here)?;
                let sink = file.try_clone().map_err(here)?;
                let options = WriterOptions { compression, ..WriterOptions::default() };
                writer.insert((Writer::new(sink, &options), file))
            }
        };
        writer.write(record.payload())?;
        selected += 1;
    }
    let mut bytes = 0;
    if let Some((mut writer, file)) = writer {
        writer.close()?;
        file.sync_all().map_err(here)?;
        bytes = file.metadata().map_err(here)?.len();
        run.hidden.rename(new.as_ref(), hidden(name, "ready").as_ref()).map_err(here)?;
    }
    Ok(Done { records: number, selected, bytes })
}

/// Ends a file whose bytes are all here. Returns what is wrong with its number of records: it then stays as
/// it is. It counts as damaged, because either of the two numbers may be right.
fn complete(worker: &mut Worker, options: &CheckOptions, mut done: Done) -> Result<Option<ToolsError>> {
    let run = worker.run.clone();
    let Some(job) = worker.current() else { return Ok(None) };
    let mut wrong = None;
    let is_wrong = |expected: u64| match &job.wanted.part {
        WantedPart::Shard | WantedPart::Records(None) => done.records != expected,
        // Records after the last selected one were not read.
        WantedPart::Records(Some(ranges)) => ranges.last().is_some_and(|range| done.records < range.end),
        WantedPart::File | WantedPart::Description => false,
    };
    if let Some(expected) = job.wanted.records.filter(|expected| is_wrong(*expected)) {
        let url = bare_url(&job.object.url);
        wrong = Some(FetchReason::Count { url, expected, found: done.records }.into());
        if !options.keep_damaged {
            return Ok(wrong);
        }
    }
    let name = job.wanted.name.clone();
    let part = hidden(&name, "part");
    let here = |e: io::Error| run.in_hidden(e, &part);
    if matches!(job.wanted.part, WantedPart::Records(_)) {
        // Other records may be selected from these bytes only by another fetch, in another folder.
        run.created(&part)?.set_len(0).map_err(here)?;
    } else {
        done.bytes = job.object.stamp.size;
        let modified = job.object.stamp.modified_ns.and_then(|ns| u64::try_from(ns).ok());
        let file = job.complete(&run)?;
        if let Some(ns) = modified {
            // An index of the object then fits to the file.
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(ns)).map_err(here)?;
        }
        file.sync_all().map_err(here)?;
        run.hidden.rename(part.as_ref(), hidden(&name, "ready").as_ref()).map_err(here)?;
    }
    // Under this name or the one in the folder may be another version, of the same size.
    sync_folder(&run.folder.join(HIDDEN)).map_err(here)?;
    run.journal.done(job.index, done)?;
    job.earlier.done = Some(done);
    if !options.new_set && done.selected == done.records {
        if job.earlier.placed.as_ref() != Some(&name) {
            run.journal.placed(job.index, &name)?;
            run.journal.sync()?;
            job.earlier.placed = Some(name.clone());
        }
        place(&run, &hidden(&name, "ready"), &name)?;
    }
    Ok(wrong)
}

/// Gives a complete file its name in the folder. The end of the run makes it durable. After a power failure
/// before that, the file has this name, or still waits for it.
///
/// # Errors
/// I/O errors.
pub(super) fn place(run: &FetchRun, ready: &str, name: &str) -> Result<()> {
    let path = run.folder.join(name);
    let parent = path.parent().unwrap_or(&run.folder);
    let rename = || {
        fs::create_dir_all(parent)?;
        run.hidden.rename(ready.as_ref(), &path)
    };
    rename().map_err(|e| Error::from(e).in_file(&path))
}

/// Merges what the conditions of two threads know of the records.
pub(super) fn merged(all: Option<RecordFilter>, one: Option<RecordFilter>) -> Option<RecordFilter> {
    match (all, one) {
        (Some(mut all), Some(one)) => {
            all.merge(&one);
            Some(all)
        }
        (all, one) => all.or(one),
    }
}
