//! Statistics as they come in.

use super::refusal::{Outcome, Refusal, condition, number};
use crate::http::{Request, Response};
use crate::jobs::{Job, Jobs};
use crate::set::ViewSet;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tfseek::{Damage, ErrorKind, Filter};
use tfseek_tfds::FoundFeatures;
use tfseek_tools::ReportValue;
use tfseek_tools::stats::{Statistics, StatsOptions, StatsProgress};

/// Time between two versions of the statistics.
const INTERVAL: Duration = Duration::from_millis(500);
/// Memory of the sketches in bytes. Values beyond it are counted approximately.
const MEMORY: u64 = 64 << 20;

/// The state of a run.
#[derive(Debug, Default)]
pub(super) struct StatsState {
    version: u64,
    /// Statistics of the records that were read so far.
    stats: Option<Arc<Statistics>>,
    read: u64,
    is_done: bool,
    error: Option<String>,
}

/// Returns the statistics of the records that a request's condition selects. They are computed if they are
/// not yet.
fn asked(
    set: &Arc<ViewSet>,
    jobs: &Jobs<StatsState>,
    request: &Request,
    threads: usize,
) -> Result<Arc<Job<StatsState>>, Refusal> {
    let filter = condition(set, request)?;
    let key = filter.as_ref().map_or_else(String::new, Filter::to_string);
    let counted = Arc::clone(set);
    let run = move |job: &Arc<Job<StatsState>>| compute(&counted, filter, threads, job);
    Ok(jobs.ask(&key, run, |state, error| {
        state.error = error;
        state.is_done = true;
        state.version += 1;
    }))
}

/// Compares the statistics of two sets that are known so far.
pub(super) fn comparison(
    sets: [(&Arc<ViewSet>, &Jobs<StatsState>); 2],
    request: &Request,
    threads: usize,
) -> Outcome {
    let mut found = Vec::new();
    for (set, jobs) in sets {
        let job = asked(set, jobs, request, threads)?;
        let stats = job.shared.lock().stats.clone();
        found.extend(stats);
    }
    Ok(match found.as_slice() {
        [a, b] => Response::json(&a.compare(b)),
        _ => Response::json(&json!({ "features": [] })),
    })
}

/// Returns statistics that are newer than version `after`, and starts the run if it does not run.
pub(super) fn stats(
    set: &Arc<ViewSet>,
    jobs: &Jobs<StatsState>,
    request: &Request,
    threads: usize,
) -> Outcome {
    let after: u64 = number(request, "after")?.unwrap_or(0);
    let job = asked(set, jobs, request, threads)?;
    let (version, stats, read, is_done, error) = {
        let found = job.shared.wait(INTERVAL, |state| state.version > after);
        (found.version, found.stats.clone(), found.read, found.is_done, found.error.clone())
    };
    let stats = stats.as_ref().filter(|_| version > after).map(|stats| stats.browser_report());
    let records = set.dataset.len();
    Ok(Response::json(&StatsAnswer { stats, done: is_done, error, read, records, version }))
}

/// Statistics, and how far they are.
#[derive(serde::Serialize)]
struct StatsAnswer<'s> {
    stats: Option<ReportValue<'s>>,
    done: bool,
    error: Option<String>,
    read: u64,
    records: u64,
    version: u64,
}

/// Progress of a run, which ends when its job ends.
struct JobProgress<'j> {
    job: &'j Job<StatsState>,
    features: &'j FoundFeatures,
    due: Mutex<Instant>,
}

impl StatsProgress for JobProgress<'_> {
    fn read(&self, records: u64) -> tfseek::Result<()> {
        if self.job.is_stopped() {
            return Err(ErrorKind::Cancelled.into());
        }
        self.job.shared.lock().read += records;
        Ok(())
    }

    fn wants_partial(&self) -> bool {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now < *due {
            return false;
        }
        *due = now + INTERVAL;
        true
    }

    fn partial(&self, mut stats: Statistics) {
        stats.value_names = self.features.label_names();
        self.job.shared.change(|state| {
            // Numbers of records are reported in steps, which may be larger than what was read.
            state.read = state.read.max(stats.records());
            state.stats = Some(Arc::new(stats));
            state.version += 1;
        });
    }
}

fn compute(
    set: &ViewSet,
    filter: Option<Filter>,
    threads: usize,
    job: &Job<StatsState>,
) -> Result<(), String> {
    let options = StatsOptions {
        filter,
        threads: Some(threads),
        damage: Damage::Skip,
        memory: MEMORY,
        kind: set.kind,
        ..StatsOptions::default()
    };
    let progress = JobProgress { job, features: &set.features, due: Mutex::new(Instant::now()) };
    let mut stats = options.run_dataset(&set.dataset, None, None, &progress).map_err(|e| e.to_string())?;
    stats.value_names = set.features.label_names();
    job.shared.change(|state| {
        state.read = set.dataset.len();
        state.stats = Some(Arc::new(stats));
    });
    Ok(())
}
