//! Copies of shards from a store: whole, or the records that are selected.
//!
//! Objects arrive in pieces of 8 MiB, which a journal names. A run after a kill requests none of them again.
//! The records of a shard are checked as its pieces arrive; damaged ones are requested once more. Files that
//! are not complete are in the hidden folder `.tfseek-fetch` of the target. At the end the list of the files
//! is written to `.tfseek/fetch.json`, and the hidden folder is removed.
//!
//! ```no_run
//! # fn store() -> std::sync::Arc<dyn tfseek::io::Store> { unimplemented!() }
//! use tfseek_tools::WriteProgress;
//! use tfseek_tools::fetch::{FetchOptions, FetchPlan};
//!
//! let options = FetchOptions::new(store(), "s3://bucket/data/train-*", "data");
//! let report = FetchPlan::new(&options)?.run(&WriteProgress::default())?;
//! assert!(report.damaged.is_empty());
//! # Ok::<(), tfseek_tools::ToolsError>(())
//! ```

mod check;
mod data_set;
#[cfg(test)]
mod data_set_tests;
mod journal;
mod options;
mod place;
mod plan;
#[cfg(test)]
mod tests;
mod wanted;
mod worker;

use crate::error::ToolsError;
use crate::write::reshard::new_folder::create_folder;
use crate::write::sync::sync_folder;
use crate::write::{WriteProgress, outputs};
use check::{CheckOptions, Ended, fetch_file, merged};
use journal::{Earlier, HIDDEN, Journal, Left, write_list};
pub use options::{FetchEstimate, FetchOptions, FetchReport};
use place::{check_folder, check_space, lock_folder, place_all};
use plan::Wanted;
use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tfseek::io::Stamp;
use tfseek::{Error, ErrorKind};
use wanted::{WantedFile, WantedPart};
use worker::{FetchRun, FileJob, PIECE, SharedWorker, Worker, hidden};

/// Number of files that are read at a time.
const THREADS: usize = 8;

/// Interval at which a caller that waits is asked whether the work goes on.
const POLL: Duration = Duration::from_millis(50);

/// The objects of a fetch, as they were listed.
#[derive(Debug)]
pub struct FetchPlan {
    options: FetchOptions,
    wanted: Wanted,
}

impl FetchPlan {
    /// Lists the objects. None is read.
    ///
    /// # Errors
    /// URLs that match nothing; names that are no paths; errors of the store.
    pub fn new(options: &FetchOptions) -> Result<FetchPlan, ToolsError> {
        Ok(FetchPlan { wanted: Wanted::list(options)?, options: options.clone() })
    }

    /// Returns what a run would do. Reads the journal of the folder and nothing else.
    ///
    /// # Errors
    /// I/O errors; a folder that has other files.
    pub fn estimate(&self) -> Result<FetchEstimate, ToolsError> {
        let (files, _) = self.earlier(self.left()?);
        let todo = self.jobs(&files);
        let files = self.wanted.files.iter().filter(|file| file.part != WantedPart::Description);
        let bytes_left = todo.iter().map(FileJob::bytes_left);
        Ok(FetchEstimate {
            files: files.clone().count() as u64,
            files_left: todo.len() as u64,
            bytes: total(files.map(WantedFile::bytes)),
            bytes_left: total(bytes_left.clone()),
            requests: bytes_left.map(|bytes| bytes.div_ceil(PIECE)).sum(),
        })
    }

    /// Returns what earlier runs left.
    fn left(&self) -> Result<Left, ToolsError> {
        let left = Left::read(&self.options.folder)?;
        check_folder(&self.options.folder, &self.wanted.request, &left)?;
        Ok(left)
    }

    /// Returns the states of the files, and a report of what earlier runs left.
    fn earlier(&self, mut left: Left) -> (Vec<Earlier>, FetchReport) {
        let mut report = FetchReport::default();
        let mut files = Vec::new();
        for file in &self.wanted.files {
            let stamp = &file.object.stamp;
            let mut earlier = left.files.remove(&file.name).unwrap_or_else(|| Earlier::new(stamp.clone()));
            if !is_same(&earlier.stamp, stamp) {
                let was_here = earlier.done.is_some() || !earlier.pieces.is_empty();
                earlier.begin_again(stamp.clone());
                if was_here && file.part != WantedPart::Description {
                    report.begun_again.push(file.name.clone());
                }
            }
            files.push(earlier);
        }
        report.left = left.files.into_values().filter_map(|earlier| earlier.placed).collect();
        report.left.sort();
        (files, report)
    }

    /// Returns the names of the files with their states.
    fn named<'f>(&'f self, files: &'f [Earlier]) -> impl Iterator<Item = (&'f str, &'f Earlier)> {
        self.wanted.files.iter().map(|file| &*file.name).zip(files)
    }

    /// Returns the files that are not complete.
    fn jobs(&self, files: &[Earlier]) -> VecDeque<FileJob> {
        let mut jobs = VecDeque::new();
        for (index, (file, earlier)) in self.wanted.files.iter().zip(files).enumerate() {
            if file.part != WantedPart::Description && !self.is_complete(file, earlier) {
                let earlier = Earlier { done: None, ..earlier.clone() };
                jobs.push_back(FileJob::new(index, file.clone(), earlier));
            }
        }
        jobs
    }

    /// Removes the description of a data set: the folder is none until all is there.
    fn remove_description(&self) -> Result<(), Error> {
        let mut files = self.wanted.files.iter();
        let Some(file) = files.find(|file| file.part == WantedPart::Description) else { return Ok(()) };
        let path = self.options.folder.join(&file.name);
        let removed = match fs::remove_file(&path) {
            Ok(()) => sync_folder(&self.options.folder),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        };
        removed.map_err(|e| Error::from(e).in_file(&path))
    }

    /// Returns true if a file is complete: it has its name in the folder, or waits for it in the hidden one.
    fn is_complete(&self, file: &WantedFile, earlier: &Earlier) -> bool {
        let Some(done) = earlier.done else { return false };
        let folder = &self.options.folder;
        // A link leads to a file that the fetch did not write.
        let is_whole = |found: fs::Metadata| found.is_file() && found.len() == done.bytes;
        let has = |path: PathBuf| fs::symlink_metadata(path).is_ok_and(is_whole);
        let is_nothing = done.selected == 0 && matches!(file.part, WantedPart::Records(_));
        is_nothing
            || earlier.placed.as_ref().is_some_and(|placed| has(folder.join(placed)))
            || has(folder.join(HIDDEN).join(hidden(&file.name, "ready")))
    }

    /// Returns true if records are selected, so that files get other names at the end.
    fn is_new_set(&self) -> bool {
        match &self.wanted.data_set {
            Some(data_set) => data_set.is_new_set,
            None => self.wanted.files.iter().any(|file| matches!(file.part, WantedPart::Records(_))),
        }
    }

    /// Fetches what is not here. A shard that is damaged stays incomplete, and the others go on. Damage is
    /// the same after any number of attempts. An error of the network ends the run, after the attempts of the
    /// store.
    ///
    /// # Errors
    /// A folder with other files, or of another fetch; another process that fetches into it; no space; errors
    /// of the store that do not go away; a second replacement of an object; I/O errors. What arrived before
    /// stays for the next run.
    pub fn run(&self, progress: &WriteProgress) -> Result<FetchReport, ToolsError> {
        let folder = &self.options.folder;
        // A fetch that is refused changes nothing.
        outputs::check_local(folder)?;
        self.left()?;
        create_folder(folder)?;
        let (lock, hidden) = lock_folder(folder)?;
        let (mut files, mut report) = self.earlier(self.left()?);
        let journal = Journal::begin(folder, &hidden, &self.wanted.request, self.named(&files))?;
        let todo = self.jobs(&files);
        check_space(folder, total(todo.iter().map(FileJob::bytes_left)))?;
        if !todo.is_empty() {
            self.remove_description()?;
        }
        (progress.expect)(total(todo.iter().map(|job| job.wanted.bytes())));
        let run = Arc::new(FetchRun {
            folder: folder.clone(),
            hidden,
            store: self.options.store.clone(),
            journal,
            active: AtomicUsize::new(todo.len().min(THREADS)),
            todo: Mutex::new(todo),
            cancelled: AtomicBool::new(false),
            fetched: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            found: AtomicU64::new(0),
            advance: progress.advance.clone(),
        });
        let all = self.work(&run, progress).inspect_err(|_| {
            run.cancelled.store(true, Relaxed);
            run.journal.close();
        })?;
        let mut seen = None;
        for mut ended in all {
            seen = merged(seen, ended.filter.take());
            let wanted = self.wanted.files.get(ended.index);
            if let (Some(file), Some(wanted)) = (files.get_mut(ended.index), wanted) {
                *file = report.add(&wanted.name, ended);
            }
        }
        if let Some(seen) = &seen {
            seen.check_names(true)?;
            report.unseen = seen.unseen().map(str::to_owned).collect();
        }
        if report.damaged.is_empty() {
            place_all(&run, &self.wanted, &mut files, self.is_new_set())?;
            write_list(folder, &self.wanted.request, self.named(&files))?;
            run.journal.close();
            fs::remove_dir_all(folder.join(HIDDEN)).map_err(|e| Error::from(e).in_file(folder))?;
        }
        drop(lock);
        let placed = files.iter().filter(|file| file.placed.is_some()).filter_map(|file| file.done);
        report.files = placed.clone().count() as u64;
        report.records = total(placed.clone().map(|done| done.selected));
        report.bytes = total(placed.map(|done| done.bytes));
        report.fetched = run.fetched.load(Relaxed);
        report.requests = run.requests.load(Relaxed);
        report.found = run.found.load(Relaxed);
        Ok(report)
    }

    /// Fetches all files on some threads. Threads that wait for the store are left behind after an error.
    fn work(&self, run: &Arc<FetchRun>, progress: &WriteProgress) -> Result<Vec<Ended>, ToolsError> {
        let options = CheckOptions {
            filter: self.wanted.filter.clone(),
            keep_damaged: self.options.keep_damaged,
            max_record: self.options.max_record,
            new_set: self.is_new_set(),
        };
        let (sender, receiver) = channel();
        let threads = run.active.load(Relaxed);
        for k in 0..threads {
            let run = run.clone();
            let options = options.clone();
            let sender = sender.clone();
            let body = move || {
                let worker = SharedWorker::new(Worker::new(run.clone()));
                loop {
                    let ended = fetch_file(&worker, &options).transpose();
                    let is_last = !matches!(ended, Some(Ok(_)));
                    if ended.is_some_and(|ended| sender.send(ended).is_err()) || is_last {
                        break;
                    }
                }
                run.active.fetch_sub(1, Relaxed);
            };
            let spawned = thread::Builder::new().name(format!("tfseek-fetch-{k}")).spawn(body);
            spawned.map_err(Error::from)?;
        }
        drop(sender);
        let mut all = Vec::new();
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(ended) => all.push(ended?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if (progress.advance)(0).is_break() {
                return Err(Error::from(ErrorKind::Cancelled).into());
            }
        }
        let todo = run.todo.lock().unwrap_or_else(|e| e.into_inner());
        if !todo.is_empty() || run.active.load(Relaxed) > 0 {
            let message = "a thread of the fetch ended early".into();
            return Err(Error::from(ErrorKind::Panicked { message }).into());
        }
        Ok(all)
    }
}

impl FetchReport {
    /// Adds the end of a file, and returns its state.
    fn add(&mut self, name: &str, ended: Ended) -> Earlier {
        self.begun_again.extend(ended.begun_again.then(|| name.to_owned()));
        match ended.damage {
            Some(damage) if ended.earlier.done.is_some() => self.kept.push(damage),
            Some(damage) => self.damaged.push(damage),
            None => {}
        }
        ended.earlier
    }
}

/// Returns true if two stamps are of the same content. Those without a time and a version do not tell, so
/// their files are fetched again.
fn is_same(a: &Stamp, b: &Stamp) -> bool {
    a == b && (a.modified_ns.is_some() || a.version.is_some())
}

/// Returns the sum of numbers that a server, or the list in the folder, states.
fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, |sum, n| sum.saturating_add(n))
}
