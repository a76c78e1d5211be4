//! Search for records that meet a condition. Columns would be written, and the viewer only reads.

use super::refusal::{Outcome, Refusal, condition, number};
use crate::http::{Request, Response};
use crate::jobs::{Job, Jobs};
use crate::roles::RECORDS;
use crate::set::ViewSet;
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tfseek::{Damage, ErrorKind, Filter};
use tfseek_tools::grep::{Grep, GrepOptions};

/// Number of matches that a search keeps. It ends there.
const MAX_MATCHES: usize = 1_000_000;
/// Number of matches in an answer.
const MAX_ANSWER: usize = 10_000;
/// Number of errors of records that are kept.
const MAX_ERRORS: usize = 5;
/// Longest wait for a change.
const WAIT: Duration = Duration::from_millis(300);

/// The state of a search.
#[derive(Debug, Default)]
pub(super) struct FindState {
    matches: Vec<u64>,
    searched: u64,
    is_done: bool,
    is_limited: bool,
    unseen: Vec<String>,
    /// The error of a name that is probably misspelt.
    nearest: Option<String>,
    errors: Vec<String>,
    /// The condition does not fit the records.
    refused: Option<String>,
}

/// Returns the matches after the first `after`, and starts the search if it does not run.
pub(super) fn find(set: &Arc<ViewSet>, jobs: &Jobs<FindState>, request: &Request, threads: usize) -> Outcome {
    let after: usize = number(request, "after")?.unwrap_or(0);
    let Some(filter) = condition(set, request)? else {
        return Err(Refusal::bad("where: expected a condition, found none"));
    };
    let searched = Arc::clone(set);
    let key = filter.to_string();
    let run = move |job: &Arc<Job<FindState>>| search(&searched, &filter, threads, job);
    let job = jobs.ask(&key, run, |state, error| {
        state.errors.extend(error);
        state.is_done = true;
    });
    let found = job.shared.wait(WAIT, |state| state.is_done || state.matches.len() > after);
    if let Some(message) = &found.refused {
        return Err(Refusal::bad(message.clone()));
    }
    let matches: Vec<_> = found.matches.iter().skip(after).take(MAX_ANSWER).collect();
    Ok(Response::json(&json!({
        "matches": matches,
        "found": found.matches.len(),
        "searched": found.searched,
        "records": set.dataset.len(),
        "done": found.is_done,
        "limited": found.is_limited,
        "unseen": found.unseen,
        "nearest": found.nearest,
        "errors": found.errors,
    })))
}

/// Returns the error of a name that is near to one of the first records.
fn nearest(set: &ViewSet, filter: &Filter) -> Option<String> {
    let mut names = filter.for_records();
    for i in set.spread(RECORDS) {
        // A record that cannot be tested has no names.
        let _ = set.with_record(i, |record, kind| names.accepts(i, record.payload(), kind).map(drop));
    }
    names.check_names(false).err().map(|e| e.to_string())
}

fn search(set: &ViewSet, filter: &Filter, threads: usize, job: &Job<FindState>) -> Result<(), String> {
    let options = GrepOptions { damage: Damage::Skip, threads: Some(threads), ..GrepOptions::default() };
    let mut is_limited = false;
    let searched =
        Grep::filter(filter, options).run_dataset(&set.dataset, &|s| set.kind_of(s), &mut |unit| {
            job.shared.change(|state| {
                state.searched += unit.records;
                let left = MAX_MATCHES - state.matches.len();
                let numbers = unit.result.matches.iter().filter_map(|found| found.number);
                state.matches.extend(numbers.take(left));
                let errors = unit.skipped.iter().map(ToString::to_string);
                let room = MAX_ERRORS - state.errors.len();
                state.errors.extend(errors.take(room));
                is_limited = state.matches.len() >= MAX_MATCHES;
            });
            // After a stop, the next request starts the search again.
            if is_limited || job.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    let unseen = match searched {
        Ok(totals) => totals.unseen,
        Err(e) if matches!(e.kind(), ErrorKind::Filter(_)) => {
            job.shared.change(|state| state.refused = Some(e.to_string()));
            return Ok(());
        }
        Err(e) => return Err(e.to_string()),
    };
    // A name that no record has is probably misspelt if it is near to one that records have.
    let misspelt = if unseen.is_empty() { None } else { nearest(set, filter) };
    job.shared.change(|state| {
        state.is_limited = is_limited;
        state.unseen = unseen;
        state.nearest = misspelt;
    });
    Ok(())
}
