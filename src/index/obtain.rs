//! Finding or building the files of many shards: the steps that indexes and columns share.

use super::options::IndexOptions;
use super::progress::Work;
use super::store::{Save, check_names};
use crate::error::{Build, IndexError, Result, ScanCost};
use crate::io::{threads, url_of};
use crate::policy::IndexMode;
use crate::warning::Warning;
use std::io;
use std::path::Path;
use std::sync::Mutex;

/// A kind of file that belongs to a shard, with the steps of its search and its build.
pub(crate) trait ShardFiles: Sync {
    /// The result of the search for one shard.
    type Found: Send + Sync;
    /// The shard's files, found or built.
    type Files: Send;

    /// Searches for the files of shard `s`.
    fn search(&self, s: usize) -> Result<SearchResult<Self::Found>>;

    /// Returns an error if files are missing. Called if scans are not allowed.
    fn require(&self, _searched: &[SearchResult<Self::Found>]) -> Result<()> {
        Ok(())
    }

    /// Returns the features whose columns an error advises the user to build.
    fn features(&self) -> Vec<String> {
        Vec::new()
    }

    /// Prepares the scans. Called once, before any shard is scanned.
    fn begin(&self) {}

    /// Builds the missing files of shard `s` by a scan, which may use `threads` threads, and saves new ones.
    fn build(&self, s: usize, found: Self::Found, threads: usize) -> Result<Obtained<Self::Files>>;

    /// Completes the files. Called once with the shards that succeeded and their numbers. `all` is false if a
    /// shard failed; an error of this call takes precedence over the error of that shard.
    fn finish(&self, _obtained: &mut [(usize, Obtained<Self::Files>)], _all: bool) -> Result<()> {
        Ok(())
    }
}

/// The result of a search, with the work that is left.
pub(crate) struct SearchResult<F> {
    pub(crate) found: F,
    /// Number of bytes to scan, if files are missing.
    pub(crate) scan: Option<u64>,
    pub(crate) warnings: Vec<Warning>,
}

/// The files of one shard, found or built, and the outcome of saving them.
pub(crate) struct Obtained<T> {
    pub(crate) files: T,
    /// True if the shard changed while it was scanned.
    pub(crate) changed: bool,
    /// The error of the last folder that was tried.
    pub(crate) not_saved: Option<io::Error>,
}

/// Finds the files of all shards, and builds missing ones if the mode of `options` allows it. Processes
/// several shards at once. Returns the files and all warnings, or the error of the first shard that failed.
#[expect(clippy::indexing_slicing, reason = "shards are numbered from 0 to their count")]
pub(crate) fn obtain<K: ShardFiles>(
    kind: &K,
    shards: &[&Path],
    options: &IndexOptions,
    save: Save,
    work: &Work,
) -> Result<(Vec<K::Files>, Vec<Warning>)> {
    check_names(shards, options)?;
    let threads = threads::threads(options.threads)?;
    // Starting a thread pool takes about 100 us, a search about 20 us.
    let search_threads = if shards.len() < 64 { Some(1) } else { options.threads };
    let searched = threads::each(search_threads, shards.len(), true, |s| {
        work.report(0)?;
        kind.search(s)
    })?;
    let mut missing = 0;
    let mut bytes = 0u64;
    for scan in searched.iter().filter_map(|searched| searched.scan) {
        missing += 1;
        bytes = bytes.saturating_add(scan);
    }
    if missing > 0 && options.mode == IndexMode::Require && save == Save::BestEffort {
        kind.require(&searched)?;
    }
    let limit = options.scan_limit(shards.iter().any(|shard| url_of(shard).is_some()));
    let of_objects = searched.iter().zip(shards).filter(|(_, shard)| url_of(shard).is_some());
    let cost = cost(of_objects.filter_map(|(searched, _)| searched.scan), threads, options.request_limit());
    let above = bytes > limit || cost.is_some_and(|cost| cost.limit.is_some());
    if options.mode == IndexMode::Auto && save == Save::BestEffort && above {
        // The bytes are told first.
        let cost = cost.map(|cost| ScanCost { limit: cost.limit.filter(|_| bytes <= limit), ..cost });
        let build = Box::new(Build { features: kind.features(), cost, ..build_advice(shards) });
        return Err(IndexError::BuildLimit { shards: missing, bytes, limit, build }.into());
    }
    if missing > 0 {
        kind.begin();
    }
    // Each entry of `found` is taken once, by the thread that processes its shard.
    let parts = searched.into_iter().map(|searched| (Mutex::new(Some(searched.found)), searched.warnings));
    let (found, mut warnings): (Vec<_>, Vec<Vec<Warning>>) = parts.unzip();
    let obtained: Vec<_> = shards.iter().map(|_| Mutex::new(None)).collect();
    // Scanning a MiB also takes less time than starting a thread pool. Requests and many files do not.
    let waits = missing >= 64 || shards.iter().any(|shard| url_of(shard).is_some());
    let scan_threads = if bytes < 1 << 20 && !waits { Some(1) } else { options.threads };
    // With fewer shards than threads, a shard has several threads.
    let each = (threads / missing.max(1)).max(1);
    let done = threads::each(scan_threads, shards.len(), true, |s| {
        let found = take(&found[s]).ok_or(IndexError::Missing)?;
        let files = kind.build(s, found, each)?;
        *obtained[s].lock().unwrap_or_else(|e| e.into_inner()) = Some(files);
        Ok(())
    });
    // If a shard failed, the scans of the others are still finished and saved.
    let mut obtained: Vec<(usize, Obtained<K::Files>)> =
        obtained.iter().enumerate().filter_map(|(s, obtained)| Some((s, take(obtained)?))).collect();
    kind.finish(&mut obtained, done.is_ok())?;
    done?;
    let mut not_saved: Option<(&Path, usize, io::Error)> = None;
    let mut all = Vec::with_capacity(obtained.len());
    for (s, Obtained { files, changed, not_saved: unsaved }) in obtained {
        let path = shards[s];
        if changed {
            warnings[s].push(Warning::ShardChanged { path: path.into() });
        }
        if let Some(e) = unsaved {
            not_saved.get_or_insert((path, 0, e)).1 += 1;
        }
        all.push(files);
    }
    let not_saved = not_saved.map(|(path, shards, e)| Warning::NotSaved {
        path: path.into(),
        shards,
        reason: e.to_string().into(),
    });
    Ok((all, warnings.into_iter().flatten().chain(not_saved).collect()))
}

/// Returns the estimated cost of scans of objects with these numbers of bytes, by requests of 4 MiB and three
/// more for each object, at 50 ms a request and 100 MB/s. Scans that skip large records need less. `None`
/// without objects.
fn cost(bytes: impl Iterator<Item = u64>, threads: usize, limit: u64) -> Option<ScanCost> {
    let (objects, bytes) = bytes.fold((0u64, 0u64), |(n, all), bytes| (n + 1, all.saturating_add(bytes)));
    let requests = 3 * objects + bytes / (4 << 20);
    // The first three of an object wait for one another.
    let waits = (150 * objects).div_ceil(threads.max(1) as u64);
    let seconds = (bytes / 100_000 + waits).div_ceil(1000);
    let limit = (requests > limit).then_some(limit);
    (objects > 0).then_some(ScanCost { requests, seconds, limit })
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(|e| e.into_inner()).take()
}

/// Returns the advice to build the indexes of these shards: their paths, or a pattern that matches all of
/// them. Web servers have no listings, so no patterns.
pub(crate) fn build_advice(shards: &[&Path]) -> Build {
    let names: Vec<String> = shards.iter().map(|s| s.display().to_string()).collect();
    let (Some(first), true) = (names.first(), names.len() > 3) else {
        return Build { paths: names, ..Build::default() };
    };
    let listed = |name: &str| !name.starts_with("http://") && !name.starts_with("https://");
    let mut start = first.len();
    let mut end = first.len();
    for name in &names {
        start = start.min(first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count());
        end = end.min(first.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count());
    }
    let tail = first.len() - end.min(first.len() - start);
    match (first.get(..start), first.get(tail..)) {
        (Some(head), Some(tail))
            if listed(first) && names.iter().all(|n| n.get(start..).is_some_and(|n| !n.contains('/'))) =>
        {
            Build { paths: vec![format!("{head}*{tail}")], ..Build::default() }
        }
        _ => Build { paths: vec![first.clone()], more: names.len() - 1, ..Build::default() },
    }
}

/// Returns the warning for a refused index or column file.
pub(crate) fn refused_file(path: &Path, reason: &str) -> Warning {
    Warning::FileRefused { path: path.into(), reason: reason.into() }
}
