//! The sets of a viewer, and the way from a request to its answer.

use super::refusal::{Outcome, Refusal, number, record_number};
use super::{common, damage, episode, find, order, records, schema, sets, stats};
use crate::declared;
use crate::fed::FedPictures;
use crate::http::{Answers, Request, Response};
use crate::jobs::Jobs;
use crate::roles::{SeenFeatures, with_given};
use crate::set::ViewSet;
use crate::tabs::Tabs;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};

/// Length of the name of a tab.
const MAX_TAB: usize = 64;

/// The sets that are viewed, and the work on them.
#[derive(Debug)]
pub(crate) struct Api {
    pub(super) sets: Vec<SetState>,
    given_roles: Map<String, Value>,
    /// Number of threads of a job.
    threads: usize,
    /// The condition that the page begins with.
    condition: Option<String>,
    common: Jobs<common::CommonState>,
    tabs: Arc<Tabs>,
    fed: Option<FedPictures>,
}

/// A set with what is known of it.
#[derive(Debug)]
pub(super) struct SetState {
    pub(super) set: Arc<ViewSet>,
    seen: OnceLock<SeenFeatures>,
    pub(super) found: Jobs<find::FindState>,
    stats: Jobs<stats::StatsState>,
    damage: Jobs<damage::DamageState>,
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
        with_given(SeenFeatures::default().roles(), roles)?;
        let sets = sets.into_iter().map(|set| SetState {
            set: Arc::new(set),
            seen: OnceLock::new(),
            found: Jobs::default(),
            stats: Jobs::default(),
            damage: Jobs::default(),
        });
        let sets = sets.collect();
        let given_roles = roles.clone();
        Ok(Api {
            sets,
            given_roles,
            threads,
            condition,
            common: Jobs::default(),
            tabs: Arc::default(),
            fed: None,
        })
    }

    /// Adds the pictures that steps are fed with.
    pub(crate) fn fed(self, fed: Option<FedPictures>) -> Api {
        Api { fed, ..self }
    }

    /// Returns the open tabs of the page.
    pub(crate) fn tabs(&self) -> &Arc<Tabs> {
        &self.tabs
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

    fn state(&self, request: &Request) -> Result<&SetState, Refusal> {
        let s: usize = number(request, "set")?.unwrap_or(0);
        self.sets
            .get(s)
            .ok_or_else(|| Refusal::not_found(format!("expected a set below {}, found {s}", self.sets.len())))
    }

    fn route(&self, request: &Request) -> Outcome {
        let path = request.path.strip_prefix("/api/").unwrap_or_default();
        let (name, id) = path.split_once('/').map_or((path, None), |(name, id)| (name, Some(id)));
        let state = self.state(request)?;
        let set = &state.set;
        match (name, id) {
            ("dataset", None) => {
                let seen = state.seen.get_or_init(|| SeenFeatures::of(set));
                // The names of the roles were checked at the start.
                let roles = declared::roles(set, seen, &self.given_roles).unwrap_or_default();
                let other = self.sets.iter().find(|other| !std::ptr::eq(*other, state));
                let against = other.map(|other| other.set.name.as_str());
                let fed = self.fed.as_ref().map_or(&[][..], |fed| &fed.names);
                Ok(sets::dataset(set, seen, &roles, fed, [self.condition.as_deref(), against]))
            }
            ("shards", None) => sets::shards(set, request),
            ("schema", None) => schema::schema(set),
            ("records", None) => records::summaries(set, request),
            ("sample", None) => order::sample(set, request),
            ("step", None) => order::step(set, request),
            ("find", None) => find::find(set, &state.found, request, self.threads),
            ("stats", None) => stats::stats(set, &state.stats, request, self.threads),
            ("damage", None) if request.query("known").is_some() => damage::known(set),
            ("damage", None) => Ok(damage::damage(set, &state.damage, self.threads)),
            ("open" | "close" | "hold", None) => {
                let Some(tab) = request.query("tab").filter(|tab| tab.len() <= MAX_TAB) else {
                    return Err(Refusal::bad("expected the parameter `tab`"));
                };
                match name {
                    "open" => self.tabs.open(tab),
                    "close" => self.tabs.close(tab),
                    _ => return Ok(Response::endless(self.tabs.hold(tab))),
                }
                Ok(Response::json(&Value::Null))
            }
            ("common" | "compare", None) => match self.sets.as_slice() {
                [a, b] if name == "compare" => {
                    let sets = [a, b].map(|state| (&state.set, &state.stats));
                    stats::comparison(sets, request, self.threads)
                }
                [a, b] => common::common([&a.set, &b.set], &self.common),
                _ => Err(Refusal::not_found(
                    "there is one set only: `tfseek view A --baseline B` compares two",
                )),
            },
            ("record", Some(id)) => records::record(set, request, record_number(set, id)?),
            ("fed", Some(id)) => order::fed(set, self.fed.as_ref(), request, record_number(set, id)?),
            ("episode", Some(id)) => episode::episode(set, record_number(set, id)?),
            ("json", Some(id)) => records::json(set, record_number(set, id)?),
            ("bytes", Some(id)) => records::bytes(set, request, record_number(set, id)?),
            ("values", Some(id)) => records::values(set, request, record_number(set, id)?),
            _ => Err(Refusal::not_found(format!("there is no /api/{path}"))),
        }
    }
}

impl Answers for Api {
    fn answer(&self, request: &Request) -> Response {
        self.route(request).unwrap_or_else(|Refusal(status, message)| Response::error(status, &message))
    }
}
