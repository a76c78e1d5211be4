//! Answers to the requests of the page.

mod common;
mod damage;
mod find;
mod order;
mod records;
mod schema;
mod sets;
mod stats;
#[cfg(test)]
mod tests;

use crate::http::{Answers, Request, Response};
use crate::jobs::Jobs;
use crate::roles::{self, SeenFeatures};
use crate::set::{ViewSet, content};
use serde_json::{Map, Value};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use tfseek_tools::Content;

/// A failed request: a status and a message.
#[derive(Debug)]
pub(crate) struct Refusal(u16, String);

impl Refusal {
    /// Returns a mistake in the request.
    fn bad(message: impl Into<String>) -> Refusal {
        Refusal(400, message.into())
    }

    fn not_found(message: impl Into<String>) -> Refusal {
        Refusal(404, message.into())
    }
}

impl From<tfseek::Error> for Refusal {
    fn from(e: tfseek::Error) -> Refusal {
        let status = match e.kind() {
            tfseek::ErrorKind::OutOfRange { .. } => 404,
            tfseek::ErrorKind::Io(_) => 500,
            // The request is right, and the data are not.
            _ if e.is_data() => 422,
            _ => 400,
        };
        Refusal(status, e.to_string())
    }
}

type Outcome = Result<Response, Refusal>;

/// The sets that are viewed, and the work on them.
#[derive(Debug)]
pub(crate) struct Api {
    sets: Vec<SetState>,
    /// Number of threads of a job.
    threads: usize,
    /// The condition that the page begins with.
    condition: Option<String>,
    common: Jobs<common::CommonState>,
}

/// A set with what is known of it.
#[derive(Debug)]
struct SetState {
    set: Arc<ViewSet>,
    seen: OnceLock<SeenFeatures>,
    given_roles: Map<String, Value>,
    found: Jobs<find::FindState>,
    stats: Jobs<stats::StatsState>,
    damage: Jobs<damage::DamageState>,
}

impl SetState {
    fn seen(&self) -> &SeenFeatures {
        self.seen.get_or_init(|| SeenFeatures::of(&self.set))
    }

    fn roles(&self) -> Map<String, Value> {
        // The names of the roles were checked at the start.
        roles::with_given(self.seen().roles(), &self.given_roles).unwrap_or_default()
    }
}

impl Api {
    /// Creates the answers for one or two sets.
    ///
    /// # Errors
    /// The name of a role that does not exist.
    pub(crate) fn new(
        sets: Vec<ViewSet>,
        roles: &Map<String, Value>,
        condition: Option<String>,
        threads: usize,
    ) -> Result<Api, String> {
        roles::with_given(SeenFeatures::default().roles(), roles)?;
        let sets = sets.into_iter().map(|set| SetState {
            set: Arc::new(set),
            seen: OnceLock::new(),
            given_roles: roles.clone(),
            found: Jobs::default(),
            stats: Jobs::default(),
            damage: Jobs::default(),
        });
        Ok(Api { sets: sets.collect(), threads, condition, common: Jobs::default() })
    }

    /// Stops all work.
    pub(crate) fn stop(&self) {
        self.common.stop();
        for state in &self.sets {
            state.found.stop();
            state.stats.stop();
            state.damage.stop();
        }
    }

    /// Returns the roles of the first set.
    pub(crate) fn roles(&self) -> Map<String, Value> {
        self.sets.first().map(SetState::roles).unwrap_or_default()
    }

    /// Returns the schema of the first set, null without one.
    pub(crate) fn schema(&self) -> Value {
        self.sets.first().and_then(|state| schema::value(state).ok()).unwrap_or_default()
    }

    /// Calls `f` with the content of a record of the first set.
    pub(crate) fn with_content<T>(&self, i: u64, f: impl FnOnce(&Content<'_>) -> T) -> tfseek::Result<T> {
        let out_of_range = || tfseek::ErrorKind::OutOfRange { what: "set", i: 0, len: 0 };
        let set = &self.sets.first().ok_or_else(out_of_range)?.set;
        let strict = set.specified_kind().is_some();
        set.with_record(i, |record, kind| content(record, kind, strict).map(|content| f(&content)))?
    }

    fn state(&self, request: &Request) -> Result<&SetState, Refusal> {
        let s: usize = number(request, "set")?.unwrap_or(0);
        self.sets
            .get(s)
            .ok_or_else(|| Refusal::not_found(format!("expected a set below {}, found {s}", self.sets.len())))
    }

    fn route(&self, request: &Request) -> Outcome {
        let path = request.path.strip_prefix("/api/").unwrap_or_default();
        let (name, id) = match path.split_once('/') {
            Some((name, id)) => (name, Some(id)),
            None => (path, None),
        };
        let state = self.state(request)?;
        match (name, id) {
            ("dataset", None) => Ok(sets::dataset(self, state)),
            ("shards", None) => sets::shards(state, request),
            ("schema", None) => schema::schema(state),
            ("records", None) => records::summaries(state, request),
            ("sample", None) => order::sample(state, request),
            ("step", None) => order::step(state, request),
            ("find", None) => find::find(state, request, self.threads),
            ("stats", None) => stats::stats(state, request, self.threads),
            ("damage", None) => Ok(damage::damage(state, self.threads)),
            ("common", None) => common::common(self),
            ("record", Some(id)) => records::record(state, record_number(state, id)?),
            ("text", Some(id)) => records::text(state, record_number(state, id)?),
            ("json", Some(id)) => records::json(state, record_number(state, id)?),
            ("bytes", Some(id)) => records::bytes(state, request, record_number(state, id)?),
            ("values", Some(id)) => records::values(state, request, record_number(state, id)?),
            _ => Err(Refusal::not_found(format!("there is no /api/{path}"))),
        }
    }
}

impl Answers for Api {
    fn answer(&self, request: &Request) -> Response {
        self.route(request).unwrap_or_else(|Refusal(status, message)| Response::error(status, &message))
    }
}

/// Returns a parameter that is a number.
fn number<T: FromStr>(request: &Request, name: &str) -> Result<Option<T>, Refusal> {
    let Some(text) = request.query(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let parsed = text.parse().map(Some);
    parsed.map_err(|_| Refusal::bad(format!("{name}: expected a number, found {text:?}")))
}

fn record_number(state: &SetState, text: &str) -> Result<u64, Refusal> {
    let i = text.parse().map_err(|_| Refusal::bad(format!("expected a record number, found {text:?}")))?;
    let len = state.set.dataset().len();
    if i >= len {
        return Err(Refusal::not_found(format!("there is no record {i}: there are {len}")));
    }
    Ok(i)
}
