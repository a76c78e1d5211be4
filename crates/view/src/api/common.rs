//! Records that both sets contain.

use super::refusal::Outcome;
use crate::http::Response;
use crate::jobs::{Job, Jobs};
use crate::set::ViewSet;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tfseek::Error;
use tfseek_tools::digest;

/// Number of records of the first set whose digests are kept.
const MAX_RECORDS: u64 = 1_000_000;
/// Number of pairs that are listed.
const MAX_PAIRS: usize = 1000;
/// Number of records between two reports.
const REPORT: u64 = 1024;
/// Longest wait for a change.
const WAIT: Duration = Duration::from_millis(500);

/// The state of a comparison.
#[derive(Debug, Default)]
pub(super) struct CommonState {
    read: u64,
    common: u64,
    pairs: Vec<[u64; 2]>,
    is_done: bool,
    /// The reason why the comparison ended early.
    error: Option<String>,
}

/// Returns the records of equal content that were found so far, and starts the comparison if it does not run.
pub(super) fn common([a, b]: [&Arc<ViewSet>; 2], jobs: &Jobs<CommonState>) -> Outcome {
    let records = a.dataset.len() + b.dataset.len();
    let first = Arc::clone(a);
    let second = Arc::clone(b);
    let run = move |job: &Arc<Job<CommonState>>| compare(&first, &second, job);
    let job = jobs.ask("", run, |state, error| {
        state.error = error;
        state.is_done = true;
    });
    let found = job.shared.wait(WAIT, |state| state.is_done);
    Ok(Response::json(&json!({
        "done": found.is_done,
        "read": found.read,
        "records": records,
        "common": found.common,
        "pairs": found.pairs,
        "error": found.error,
    })))
}

fn compare(a: &ViewSet, b: &ViewSet, job: &Job<CommonState>) -> Result<(), String> {
    let records = a.dataset.len();
    if records > MAX_RECORDS {
        return Err(format!(
            "{records} records: the page compares sets of up to {MAX_RECORDS}; `tfseek digest` prints the digests of any number"
        ));
    }
    let mut known = HashMap::new();
    each_digest(a, job, |i, digest| {
        known.entry(digest).or_insert(i);
    })?;
    each_digest(b, job, |i, digest| {
        if let Some(&first) = known.get(&digest) {
            job.shared.change(|state| {
                state.common += 1;
                if state.pairs.len() < MAX_PAIRS {
                    state.pairs.push([first, i]);
                }
            });
        }
    })
}

/// Calls `f` with a digest of the content of each record.
fn each_digest(
    set: &ViewSet,
    job: &Job<CommonState>,
    mut f: impl FnMut(u64, [u8; 16]),
) -> Result<(), String> {
    let failed = |e: Error| e.to_string();
    let mut buf = Vec::new();
    for (s, shard) in set.dataset.shards().enumerate() {
        let kind = set.kind_of(s);
        for i in shard.start..shard.start + shard.len {
            if i.is_multiple_of(REPORT) {
                if job.is_stopped() {
                    return Err("stopped".to_owned());
                }
                job.shared.change(|state| state.read += REPORT.min(set.dataset.len() - i));
            }
            let record = set.dataset.read(i, &mut buf).map_err(failed)?;
            let content = set.content(record, kind).map_err(failed)?;
            let digest = digest::content(&content).unwrap_or_else(|| digest::sha256(record.payload()));
            if let Some(digest) = start(&digest) {
                f(i, digest);
            }
        }
    }
    Ok(())
}

/// Returns the first 128 bits of a digest in hex.
fn start(hex: &str) -> Option<[u8; 16]> {
    u128::from_str_radix(hex.get(..32)?, 16).ok().map(u128::to_le_bytes)
}
