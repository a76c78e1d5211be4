//! Copies of shards from a store: whole, or the records that are selected.
//!
//! Objects arrive in pieces of 8 MiB, which a journal names. A run after a kill requests none of them again. The records of a shard are checked as its pieces
//! arrive; damaged ones are requested once more. Files that are not complete are in the hidden folder `.tfseek-fetch` of the target. At the end the list of the files
//! is written to `.tfseek/fetch.json`, and the hidden folder is removed.
//!
//! ```no_run
//! # fn store() -> std::sync::Arc<dyn tfseek::io::Store> { unimplemented!() }
//! use tfseek_tools::fetch::{FetchOptions, FetchPlan, FetchProgress};
//!
//! let options = FetchOptions::new(store(), "s3://bucket/data/train-*", "data");
//! let report = FetchPlan::new(&options)?.run(&FetchProgress::default())?;
//! assert!(report.damaged.is_empty());
//! # Ok::<(), tfseek_tools::ToolsError>(())
//! ```

mod check;
mod journal;
mod place;
mod plan;
#[cfg(test)]
mod tests;
mod worker;

use crate::error::ToolsError;
use crate::work::damage::MAX_RECORD;
use check::{CheckOptions, Ended, fetch_file, merged};
use journal::{Done, Earlier, HIDDEN, Journal, Left, write_list};
use place::{FolderLock, check_folder, check_space, place_all};
use plan::{Wanted, WantedFile, WantedPart};
use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tfseek::io::Store;
use tfseek::{Error, ErrorKind, Filter};
use worker::{FileJob, PIECE, Run, SharedWorker, Worker, hidden};

/// Number of files that are read at a time.
const THREADS: usize = 8;

/// How often a caller that waits is asked whether the work goes on.
const POLL: Duration = Duration::from_millis(50);

/// Options of a fetch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchOptions {
    /// The store of the objects.
    pub store: Arc<dyn Store>,
    /// A URL, a pattern of URLs, or the URL of a folder.
    pub url: String,
    /// The folder to write to. It is new, empty, or that of an earlier run of the same fetch.
    pub folder: PathBuf,
    /// A split of a data set of TensorFlow Datasets, whose folder is the URL. All of it by default.
    pub split: Option<String>,
    /// The condition that the records meet. All records by default.
    pub filter: Option<Filter>,
    /// True to take shards as they are that are damaged in the store too.
    pub keep_damaged: bool,
    /// Maximum payload length in bytes.
    pub max_record: u64,
}

impl FetchOptions {
    /// Returns the options of a whole copy.
    pub fn new(store: Arc<dyn Store>, url: impl Into<String>, folder: impl Into<PathBuf>) -> FetchOptions {
        let (url, folder) = (url.into(), folder.into());
        let (split, filter, keep_damaged) = (None, None, false);
        FetchOptions { store, url, folder, split, filter, keep_damaged, max_record: MAX_RECORD }
    }
}

/// The progress of a fetch.
#[derive(Clone)]
pub struct FetchProgress {
    /// Called once, with the number of bytes of all files that are not complete.
    pub expect: Arc<dyn Fn(u64) + Send + Sync>,
    /// Called with each number of bytes that arrived or were here, and while none arrive with 0. It may cancel the fetch.
    pub advance: Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>,
}

impl Default for FetchProgress {
    fn default() -> FetchProgress {
        FetchProgress { expect: Arc::new(|_| {}), advance: Arc::new(|_| ControlFlow::Continue(())) }
    }
}

impl fmt::Debug for FetchProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchProgress").finish_non_exhaustive()
    }
}

/// The reason why a fetch is refused, or why a file of it stays incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchReason {
    /// The name of an object is no path below a folder.
    Name {
        /// The URL.
        url: String,
    },
    /// The condition tests record numbers.
    NumbersInCondition,
    /// The folder has a file that no earlier run wrote.
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The folder is that of another fetch.
    OtherFetch {
        /// The folder.
        folder: PathBuf,
        /// What it has.
        found: String,
    },
    /// Another process fetches into the folder.
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// A shard has another number of records than `dataset_info.json` states.
    Count {
        /// The URL.
        url: String,
        /// The stated number.
        expected: u64,
        /// The number of records.
        found: u64,
    },
}

impl fmt::Display for FetchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchReason::Name { url } => {
                write!(f, "{}: expected a name that is a path below a folder", url.escape_debug())
            }
            FetchReason::NumbersInCondition => f.write_str(
                "the condition tests record numbers, which are not known before all shards are fetched",
            ),
            FetchReason::Foreign { path } => write!(
                f,
                "{}: expected a new or an empty folder, or that of the same fetch, found a file of something else",
                path.display()
            ),
            FetchReason::OtherFetch { folder, found } => {
                write!(
                    f,
                    "{}: expected the folder of the same fetch, found that of {found}",
                    folder.display()
                )
            }
            FetchReason::Busy { folder } => {
                write!(f, "{}: another process is fetching into this folder", folder.display())
            }
            FetchReason::Count { url, expected, found } => {
                write!(f, "{url}: expected {expected} records, by dataset_info.json, found {found}")
            }
        }
    }
}

/// The objects of a fetch, as they were listed.
#[derive(Debug)]
pub struct FetchPlan {
    options: FetchOptions,
    wanted: Wanted,
}

/// What a fetch would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchEstimate {
    /// Number of files, and of those that are not complete.
    pub files: u64,
    /// Number of files that are not complete.
    pub files_left: u64,
    /// Bytes of all files. Of files of which the first records are wanted an estimate.
    pub bytes: u64,
    /// Bytes of the pieces that are not here.
    pub bytes_left: u64,
    /// Number of these pieces, each of which is one request.
    pub requests: u64,
}

/// The result of a fetch.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FetchReport {
    /// Number of files in the folder that belong to the fetch.
    pub files: u64,
    /// Number of records that were copied, in this run and earlier ones.
    pub records: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes that were requested in this run.
    pub fetched: u64,
    /// Number of requests for pieces in this run.
    pub requests: u64,
    /// Bytes of pieces that earlier runs had fetched.
    pub found: u64,
    /// The damage of files that are not complete because of it.
    pub damaged: Vec<ToolsError>,
    /// The damage of files that were taken as they are.
    pub kept: Vec<ToolsError>,
    /// The names of files that began again, because their objects were replaced.
    pub begun_again: Vec<String>,
    /// The files of an earlier run whose objects are no longer there. They were left as they are.
    pub left: Vec<String>,
    /// The features of the condition that no record has.
    pub unseen: Vec<String>,
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
        let left = self.left()?;
        let mut estimate = FetchEstimate::default();
        for file in &self.wanted.files {
            let bytes = file.bytes();
            estimate.files += 1;
            estimate.bytes = estimate.bytes.saturating_add(bytes);
            let earlier = left.files.get(&file.name).filter(|earlier| earlier.stamp == file.object.stamp);
            if earlier.is_some_and(|earlier| self.is_complete(file, earlier)) {
                continue;
            }
            estimate.files_left += 1;
            let here = earlier.map_or(0, |earlier| bytes_of(file, earlier));
            let rest = bytes.saturating_sub(here);
            estimate.bytes_left = estimate.bytes_left.saturating_add(rest);
            estimate.requests = estimate.requests.saturating_add(rest.div_ceil(PIECE));
        }
        Ok(estimate)
    }

    /// Returns what earlier runs left.
    fn left(&self) -> Result<Left, ToolsError> {
        let left = Left::read(&self.options.folder)?;
        check_folder(&self.options.folder, &self.wanted.request, &left)?;
        Ok(left)
    }

    /// Returns true if a file is complete: it has its name in the folder, or waits for it in the hidden one.
    fn is_complete(&self, file: &WantedFile, earlier: &Earlier) -> bool {
        let Some(done) = earlier.done else { return false };
        let folder = &self.options.folder;
        let has = |path: PathBuf| fs::metadata(path).is_ok_and(|found| found.len() == done.bytes);
        let is_nothing = done.selected == 0 && matches!(file.part, WantedPart::Records(_));
        is_nothing
            || earlier.placed.as_ref().is_some_and(|placed| has(folder.join(placed)))
            || has(hidden(folder, &file.name, "ready"))
    }

    /// Returns true if records are selected, so that files get other names at the end.
    fn is_new_set(&self) -> bool {
        self.wanted.files.iter().any(|file| matches!(file.part, WantedPart::Records(_)))
    }

    /// Fetches what is not here. A shard that is damaged stays incomplete, and the others go on.
    ///
    /// # Errors
    /// A folder with other files, or of another fetch; another process that fetches into it; no space; errors of the store that do not go away; a
    /// second replacement of an object; I/O errors. What arrived before stays for the next run.
    pub fn run(&self, progress: &FetchProgress) -> Result<FetchReport, ToolsError> {
        let folder = &self.options.folder;
        // What is refused changes nothing.
        self.left()?;
        fs::create_dir_all(folder).map_err(|e| Error::from(e).in_file(folder))?;
        let lock = FolderLock::take(folder)?;
        let mut left = self.left()?;
        let (mut report, mut files) = (FetchReport::default(), Vec::new());
        for file in &self.wanted.files {
            let earlier = left.files.remove(&file.name);
            let known = earlier.is_some();
            let earlier = earlier.filter(|earlier| earlier.stamp == file.object.stamp);
            if known && earlier.is_none() {
                report.begun_again.push(file.name.clone());
            }
            files.push(earlier.unwrap_or_else(|| Earlier::new(file.object.stamp.clone())));
        }
        report.left = left.files.into_values().filter_map(|earlier| earlier.placed).collect();
        report.left.sort();
        let names: Vec<&str> = self.wanted.files.iter().map(|file| &*file.name).collect();
        let journal = Journal::begin(folder, &self.wanted.request, names.iter().copied().zip(&files))?;
        let is_complete: Vec<bool> = self
            .wanted
            .files
            .iter()
            .zip(&files)
            .map(|(file, earlier)| self.is_complete(file, earlier))
            .collect();
        let mut todo = VecDeque::new();
        let (mut expected, mut needed) = (0u64, 0u64);
        for (index, ((file, earlier), complete)) in
            self.wanted.files.iter().zip(&files).zip(is_complete).enumerate()
        {
            if !complete {
                expected = expected.saturating_add(file.bytes());
                needed = needed.saturating_add(file.bytes().saturating_sub(bytes_of(file, earlier)));
                let earlier = Earlier { done: None, placed: None, ..earlier.clone() };
                todo.push_back(FileJob::new(index, file.clone(), earlier));
            }
        }
        check_space(folder, needed)?;
        (progress.expect)(expected);
        let run = Arc::new(Run {
            folder: folder.clone(),
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
        let ended = self.work(&run, progress);
        if ended.is_err() {
            run.cancelled.store(true, Relaxed);
            run.journal.close();
        }
        let (mut seen, mut has_damage) = (None, false);
        for ended in ended? {
            if let (Some(file), Some(wanted)) =
                (files.get_mut(ended.index), self.wanted.files.get(ended.index))
            {
                *file = ended.earlier;
                report.begun_again.extend(ended.begun_again.then(|| wanted.name.clone()));
                match ended.damage {
                    Some(damage) if file.done.is_some() => report.kept.push(damage),
                    Some(damage) => {
                        has_damage = true;
                        report.damaged.push(damage);
                    }
                    None => {}
                }
            }
            seen = merged(seen, ended.filter);
        }
        if let Some(seen) = &seen {
            seen.check_names(true)?;
            report.unseen = seen.unseen().map(str::to_owned).collect();
        }
        if !has_damage {
            place_all(&run, &self.wanted, &mut files, self.is_new_set())?;
            write_list(folder, &self.wanted.request, names.into_iter().zip(&files))?;
            run.journal.close();
            fs::remove_dir_all(folder.join(HIDDEN)).map_err(|e| Error::from(e).in_file(folder))?;
        }
        drop(lock);
        let placed = files.iter().filter(|file| file.placed.is_some()).filter_map(|file| file.done);
        for Done { selected, bytes, .. } in placed {
            report.files += 1;
            report.records = report.records.saturating_add(selected);
            report.bytes = report.bytes.saturating_add(bytes);
        }
        report.fetched = run.fetched.load(Relaxed);
        report.requests = run.requests.load(Relaxed);
        report.found = run.found.load(Relaxed);
        Ok(report)
    }

    /// Fetches all files on some threads. Threads that wait for the store are left behind after an error.
    fn work(&self, run: &Arc<Run>, progress: &FetchProgress) -> Result<Vec<Ended>, ToolsError> {
        let options = CheckOptions {
            filter: self.options.filter.clone(),
            keep_damaged: self.options.keep_damaged,
            max_record: self.options.max_record,
            new_set: self.is_new_set(),
        };
        let (sender, receiver) = channel();
        let threads = run.active.load(Relaxed);
        for k in 0..threads {
            let (run, options, sender) = (run.clone(), options.clone(), sender.clone());
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

/// Returns the bytes of the pieces of a file that are here.
fn bytes_of(file: &WantedFile, earlier: &Earlier) -> u64 {
    let size = file.object.stamp.size;
    let bytes = earlier.pieces.keys().map(|piece| {
        let start = piece.saturating_mul(PIECE).min(size);
        start.saturating_add(PIECE).min(size).saturating_sub(start)
    });
    bytes.fold(0, u64::saturating_add)
}

/// Returns the folder of a path that must exist.
fn existing_parent(path: &Path) -> &Path {
    path.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."))
}
