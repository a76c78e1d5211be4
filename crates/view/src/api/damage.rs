//! Verification of the files, and their damaged ranges.

use crate::http::Response;
use crate::jobs::{Job, Jobs};
use crate::set::{ViewSet, file_name};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tfseek::{Compression, Error, ErrorKind, Stream};
use tfseek_tools::damage;

/// Wait for news.
const WAIT: Duration = Duration::from_millis(500);
/// Number of damaged shards that are listed, and of the ranges of one of them.
const MAX_LISTED: usize = 1000;
/// Number of records between two reports.
const REPORT: u64 = 256;

/// The state of a verification.
#[derive(Debug, Default)]
pub(super) struct DamageState {
    checked: u64,
    bytes: u64,
    is_done: bool,
    error: Option<String>,
    shards: Vec<Value>,
}

/// Returns the damage that was found so far, and starts the verification if it does not run.
pub(super) fn damage(set: &ViewSet, jobs: &Jobs<DamageState>, threads: usize) -> Response {
    let paths: Vec<PathBuf> = set.dataset().shards().map(|shard| shard.path.to_path_buf()).collect();
    let run = move |job: &Job<DamageState>| verify(&paths, threads, job);
    let job = jobs.ask("", run, |state, message| {
        state.error = Some(message.to_owned());
        state.is_done = true;
    });
    let known = job.shared.lock().checked;
    let found = job.shared.wait(WAIT, |state| state.is_done || state.checked > known);
    Response::json(&json!({
        "checked": found.checked,
        "bytes": found.bytes,
        "done": found.is_done,
        "shards": found.shards,
        "error": found.error,
    }))
}

fn verify(paths: &[PathBuf], threads: usize, job: &Job<DamageState>) {
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |meta| meta.len());
    job.shared.change(|state| state.bytes = paths.iter().map(size).sum());
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(path) = paths.get(next.fetch_add(1, Relaxed)) {
            if job.is_stopped() {
                return;
            }
            shard(path, job);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(paths.len()) {
            // With fewer threads the result is the same.
            let _ = std::thread::Builder::new().name("tfseek-view-verify".into()).spawn_scoped(scope, work);
        }
        work();
    });
    job.shared.change(|state| state.is_done = true);
}

/// Verifies a shard and adds its damage.
fn shard(path: &Path, job: &Job<DamageState>) {
    let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let mut reported = 0;
    let outcome = read(path, job, size, &mut reported);
    let rest = size.saturating_sub(reported);
    let Err(e) = outcome else { return job.shared.change(|state| state.checked += rest) };
    if job.is_stopped() {
        return;
    }
    let mut ranges = Vec::new();
    if damage::is_damage(&e)
        && let Ok(report) = damage::scan(path, damage::MAX_RECORD, &mut |_| ())
    {
        ranges.extend(
            report.gaps.iter().take(MAX_LISTED).map(|gap| [gap.offset, gap.offset.saturating_add(gap.len)]),
        );
    }
    let entry = json!({ "name": file_name(path), "path": path.to_string_lossy(), "bytes": size, "error": e.to_string(), "ranges": ranges });
    job.shared.change(|state| {
        state.checked += rest;
        if state.shards.len() < MAX_LISTED {
            state.shards.push(entry);
        }
    });
}

/// Reads a shard to its end or its first damage.
fn read(path: &Path, job: &Job<DamageState>, size: u64, reported: &mut u64) -> Result<(), Error> {
    let mut stream = Stream::open(path)?;
    let is_plain = stream.compression() == Compression::None;
    let mut records = 0u64;
    while stream.next()?.is_some() {
        records += 1;
        if !records.is_multiple_of(REPORT) {
            continue;
        }
        if job.is_stopped() {
            return Err(ErrorKind::Cancelled.into());
        }
        if is_plain {
            let offset = stream.offset().min(size);
            let more = offset.saturating_sub(*reported);
            *reported = offset;
            job.shared.change(|state| state.checked += more);
        }
    }
    Ok(())
}
