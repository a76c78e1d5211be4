//! Verification of the files, and their damaged ranges.

use super::refusal::Outcome;
use crate::http::Response;
use crate::jobs::{Job, Jobs};
use crate::set::{ViewSet, bytes_of, file_name};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tfseek::{Dataset, Error, ErrorKind};
use tfseek_tools::{Verification, VerifyOptions};

/// Longest wait for a change.
const WAIT: Duration = Duration::from_millis(500);
/// Number of damaged shards that are listed, and of the ranges of one of them.
const MAX_LISTED: usize = 1000;

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
    let dataset = set.dataset.clone();
    let mut options = VerifyOptions::default();
    (options.threads, options.stream) = (Some(threads), set.streams());
    let run = move |job: &Arc<Job<DamageState>>| verify(&dataset, &options, job);
    let job = jobs.ask("", run, |state, error| {
        state.error = error;
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

/// Returns the damaged ranges that the indexes of the shards leave out. No data is read.
pub(super) fn known(set: &ViewSet) -> Outcome {
    let dataset = &set.dataset;
    let mut shards = Vec::new();
    for (s, shard) in dataset.shards().enumerate() {
        let gaps = dataset.index(s)?.gaps().take(MAX_LISTED).collect::<Result<Vec<_>, _>>()?;
        let ranges: Vec<[u64; 2]> = gaps.iter().map(|gap| [gap.start, gap.end]).collect();
        if !ranges.is_empty() && shards.len() < MAX_LISTED {
            let bytes = bytes_of(dataset, s, shard.path);
            shards.push(json!({ "name": file_name(shard.path), "path": shard.path.to_string_lossy(), "bytes": bytes, "ranges": ranges }));
        }
    }
    Ok(Response::json(&json!({ "shards": shards })))
}

fn verify(dataset: &Dataset, options: &VerifyOptions, job: &Arc<Job<DamageState>>) -> Result<(), String> {
    let paths: Vec<PathBuf> = dataset.shards().map(|shard| shard.path.to_path_buf()).collect();
    let sizes: Vec<u64> = paths.iter().enumerate().map(|(s, path)| bytes_of(dataset, s, path)).collect();
    job.shared.change(|state| state.bytes = sizes.iter().sum());
    let progress = {
        let job = Arc::clone(job);
        move |bytes| {
            if job.is_stopped() {
                return ControlFlow::Break(());
            }
            if bytes > 0 {
                job.shared.change(|state| state.checked += bytes);
            }
            ControlFlow::Continue(())
        }
    };
    let mut sizes = sizes.into_iter();
    let outcome =
        options.run(&paths, progress, |path, found| add((path, sizes.next().unwrap_or(0)), found, job));
    match outcome {
        Err(e) if !job.is_stopped() => Err(e.to_string()),
        // The end of a job that nobody asks for is no error.
        _ => Ok(()),
    }
}

/// Adds the damage of a shard.
fn add((path, size): (&Path, u64), found: Verification, job: &Job<DamageState>) -> Result<(), Error> {
    if job.is_stopped() {
        return Err(ErrorKind::Cancelled.into());
    }
    let Some(e) = found.damage else { return Ok(()) };
    let gaps = found.gaps.iter().take(MAX_LISTED);
    let ranges: Vec<[u64; 2]> = gaps.map(|gap| [gap.offset, gap.offset + gap.len]).collect();
    let entry = json!({ "name": file_name(path), "path": path.to_string_lossy(), "bytes": size, "error": e.to_string(), "ranges": ranges });
    job.shared.change(|state| {
        if state.shards.len() < MAX_LISTED {
            state.shards.push(entry);
        }
    });
    Ok(())
}
