//! Failed requests, and the parameters of requests.

use crate::http::{Request, Response};
use crate::set::ViewSet;
use std::str::FromStr;
use tfseek::{Error, ErrorKind, Filter};
use tfseek_tools::thousands;

/// A failed request: a status and a message.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) u16, pub(super) String);

/// The answer to a request, or its failure.
pub(super) type Outcome = Result<Response, Refusal>;

impl Refusal {
    /// Returns a mistake in the request.
    pub(super) fn bad(message: impl Into<String>) -> Refusal {
        Refusal(400, message.into())
    }

    pub(super) fn not_found(message: impl Into<String>) -> Refusal {
        Refusal(404, message.into())
    }
}

impl From<Error> for Refusal {
    fn from(e: Error) -> Refusal {
        let status = match e.kind() {
            ErrorKind::OutOfRange { .. } => 404,
            ErrorKind::Io(_) => 500,
            // The request is right, and the data are not.
            _ if e.is_data() => 422,
            _ => 400,
        };
        Refusal(status, e.to_string())
    }
}

/// Returns a parameter that is a number.
pub(super) fn number<T: FromStr>(request: &Request, name: &str) -> Result<Option<T>, Refusal> {
    let Some(text) = request.query(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let parsed = text.parse().map(Some);
    parsed.map_err(|_| Refusal::bad(format!("{name}: expected a number, found {text:?}")))
}

/// Returns a record number of a set.
pub(super) fn record_number(set: &ViewSet, text: &str) -> Result<u64, Refusal> {
    let i = text.parse().map_err(|_| Refusal::bad(format!("expected a record number, found {text:?}")))?;
    let len = set.dataset.len();
    if i >= len {
        return Err(Refusal::not_found(format!(
            "there is no record {}: there are {}",
            thousands(i),
            thousands(len)
        )));
    }
    Ok(i)
}

/// Returns the condition of a request, which knows the names of the set's labels.
pub(super) fn condition(set: &ViewSet, request: &Request) -> Result<Option<Filter>, Refusal> {
    let Some(text) = request.query("where").filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let parsed = text.parse().and_then(|filter| set.features.filter(&filter));
    parsed.map(Some).map_err(|e: Error| Refusal::bad(e.to_string()))
}
