//! Files of shards, found or built: one account of what was searched for, scanned, and not saved, for indexes and columns alike.

use super::options::IndexOptions;
use super::progress::Work;
use super::store::{NamedShard, Save, check_names};
use crate::error::{Build, IndexError, Result};
use crate::io::threads;
use crate::policy::IndexMode;
use crate::warning::Warning;
use std::io;
use std::path::Path;
use std::sync::Mutex;

/// A kind of file that a shard has one of, or several: its search and its making.
pub(crate) trait ShardFiles: Sync {
    /// The outcome of the search for one shard.
    type Found: Send + Sync;
    /// The shard's files, found or built.
    type Made: Send;

    /// Searches for the files of shard `s`.
    fn search(&self, s: usize) -> Result<Searched<Self::Found>>;

    /// Refuses to go on where files are missing and nothing may be scanned.
    fn require(&self, _searched: &[Searched<Self::Found>]) -> Result<()> {
        Ok(())
    }

    /// The features that an error tells the user to build columns of.
    fn features(&self) -> Vec<String> {
        Vec::new()
    }

    /// Called once before shards are scanned.
    fn begin(&self) {}

    /// Scans what is missing of shard `s`, and saves what is new.
    fn make(&self, s: usize, found: Self::Found) -> Result<Made<Self::Made>>;

    /// Called once for the shards that were made, with their numbers; `all` is false if another one failed, whose error comes after
    /// that of this call.
    fn finish(&self, _made: &mut [(usize, Made<Self::Made>)], _all: bool) -> Result<()> {
        Ok(())
    }
}

/// The outcome of a search.
pub(crate) struct Searched<F> {
    pub(crate) found: F,
    /// Bytes to scan, if something is missing.
    pub(crate) scan: Option<u64>,
    pub(crate) warnings: Vec<Warning>,
}

/// The files of one shard, and what kept them from being saved.
pub(crate) struct Made<T> {
    pub(crate) files: T,
    /// The shard changed while it was scanned.
    pub(crate) changed: bool,
    /// The error of the last folder that was tried.
    pub(crate) not_saved: Option<io::Error>,
}

/// Finds the files of all shards, or builds what is missing as the mode of `options` allows; with all warnings. Several shards at
/// once; of several errors, that of the first shard.
pub(crate) fn obtain<K: ShardFiles>(
    kind: &K,
    shards: &[NamedShard<'_>],
    options: &IndexOptions,
    save: Save,
    work: &Work,
) -> Result<(Vec<K::Made>, Vec<Warning>)> {
    check_names(shards, options)?;
    threads::threads(options.jobs)?;
    // A search takes some 20 us, a pool of threads a hundred.
    let search_jobs = if shards.len() < 64 { 1 } else { options.jobs };
    let mut searched = threads::each(search_jobs, shards.len(), true, |s| {
        work.report(0)?;
        kind.search(s)
    })?;
    let (mut missing, mut bytes) = (0, 0u64);
    for scan in searched.iter().filter_map(|searched| searched.scan) {
        missing += 1;
        bytes = bytes.saturating_add(scan);
    }
    if missing > 0 && options.mode == IndexMode::Require && save == Save::Unasked {
        kind.require(&searched)?;
    }
    if options.mode == IndexMode::Auto && save == Save::Unasked && bytes > options.auto_limit {
        let build = Box::new(Build { features: kind.features(), ..build_of(shards) });
        let limit = IndexError::BuildLimit { shards: missing, bytes, limit: options.auto_limit, build };
        return Err(limit.into());
    }
    if missing > 0 {
        kind.begin();
    }
    let mut warnings: Vec<Vec<Warning>> =
        searched.iter_mut().map(|searched| std::mem::take(&mut searched.warnings)).collect();
    // Each is taken once, by the thread that comes to its shard.
    let found: Vec<_> = searched.into_iter().map(|searched| Mutex::new(Some(searched.found))).collect();
    let made: Vec<_> = shards.iter().map(|_| Mutex::new(None)).collect();
    // A scan of a MiB takes less than a pool, too.
    let jobs = if bytes < 1 << 20 { 1 } else { options.jobs };
    let done = threads::each(jobs, shards.len(), true, |s| {
        let found = take(&found[s]).ok_or(IndexError::Missing)?;
        let files = kind.make(s, found)?;
        *made[s].lock().unwrap_or_else(|e| e.into_inner()) = Some(files);
        Ok(())
    });
    // Where a shard failed, the scans of the others are not lost.
    let mut made: Vec<(usize, Made<K::Made>)> =
        made.iter().enumerate().filter_map(|(s, made)| Some((s, take(made)?))).collect();
    kind.finish(&mut made, done.is_ok())?;
    done?;
    let mut not_saved: Option<(&Path, usize, io::Error)> = None;
    let mut all = Vec::with_capacity(made.len());
    for (s, Made { files, changed, not_saved: unsaved }) in made {
        let path = shards[s].path;
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

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(|e| e.into_inner()).take()
}

/// The advice to build the indexes of these shards: their paths, or the pattern that they have in common.
pub(crate) fn build_of(shards: &[NamedShard<'_>]) -> Build {
    let names: Vec<String> = shards.iter().map(|s| s.path.display().to_string()).collect();
    let (Some(first), true) = (names.first(), names.len() > 3) else {
        return Build { paths: names, ..Build::default() };
    };
    let (mut start, mut end) = (first.len(), first.len());
    for name in &names {
        start = start.min(first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count());
        end = end.min(first.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count());
    }
    let tail = first.len() - end.min(first.len() - start);
    match (first.get(..start), first.get(tail..)) {
        (Some(head), Some(tail))
            if names.iter().all(|n| n.get(start..).is_some_and(|n| !n.contains('/'))) =>
        {
            Build { paths: vec![format!("{head}*{tail}")], ..Build::default() }
        }
        _ => Build { paths: vec![first.clone()], more: names.len() - 1, ..Build::default() },
    }
}

/// The warning of an index or column file that is refused.
pub(crate) fn refused_file(path: &Path, reason: &str) -> Warning {
    Warning::FileRefused { path: path.into(), reason: reason.into() }
}
