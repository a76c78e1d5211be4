//! Failures of requests, in words without secrets.

use http::{HeaderMap, StatusCode};
use std::error::Error as _;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use tfseek::error::{Error, ErrorKind, IndexError};

/// How often a first connection is tried.
const FIRST_CONNECTIONS: u32 = 3;

/// The reason of a failure, as far as callers tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// There is no such object or bucket.
    Missing,
    /// The server wants another login, or one at all.
    Denied,
    /// The object was replaced.
    Stale,
    /// The object has more bytes than may be read at once.
    TooLarge {
        len: u64,
        limit: u64,
    },
    /// The store cannot do this.
    Unsupported,
    /// The server does not send the requested range.
    NoRanges,
    /// A setting or URL is wrong.
    Invalid,
    Other,
}

/// A failed request. The text has no URL and no value of a variable.
#[derive(Clone, Debug)]
pub(crate) struct RequestFailure {
    pub(crate) cause: Cause,
    pub(crate) text: Arc<str>,
}

impl RequestFailure {
    pub(crate) fn new(cause: Cause, text: impl Into<Arc<str>>) -> RequestFailure {
        RequestFailure { cause, text: text.into() }
    }

    /// Returns the failure of a server that does not send the requested range.
    pub(crate) fn no_ranges(detail: &str) -> RequestFailure {
        RequestFailure::new(Cause::NoRanges, format!("the server ignores ranges: {detail}"))
    }

    /// Returns the failure of an object of `len` bytes that may have at most `limit`.
    pub(crate) fn too_large(len: u64, limit: u64) -> RequestFailure {
        RequestFailure::new(Cause::TooLarge { len, limit }, "the object is too large")
    }

    pub(crate) fn stale(reason: &str) -> RequestFailure {
        RequestFailure::new(Cause::Stale, format!("the object was replaced: {reason}"))
    }

    /// Returns the same failure with a note at the end.
    pub(crate) fn noted(&self, note: &str) -> RequestFailure {
        RequestFailure::new(self.cause, format!("{} ({note})", self.text))
    }

    /// Returns the error, which has no path.
    pub(crate) fn error(&self) -> Error {
        let kind = match self.cause {
            Cause::Stale => return IndexError::Stale { reason: (&*self.text).into() }.into(),
            Cause::TooLarge { len, limit } => return ErrorKind::TooLarge { len: len.into(), limit }.into(),
            Cause::Missing => io::ErrorKind::NotFound,
            Cause::Denied => io::ErrorKind::PermissionDenied,
            Cause::Unsupported => io::ErrorKind::Unsupported,
            Cause::Invalid => io::ErrorKind::InvalidInput,
            Cause::NoRanges | Cause::Other => io::ErrorKind::Other,
        };
        io::Error::new(kind, &*self.text).into()
    }
}

/// The answers of a server so far.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Set once it has answered.
    any: AtomicBool,
    /// Number of answers 429 and 503, which ask for fewer requests.
    refusals: AtomicU64,
}

impl Answers {
    pub(crate) fn note(&self, status: StatusCode) {
        self.any.store(true, Relaxed);
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            self.refusals.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Relaxed)
    }
}

/// The attempts of one request, which failures are described by.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Seen>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) attempts: u32,
    /// The status of the last answer.
    pub(crate) status: Option<StatusCode>,
    /// The last answer in words.
    pub(crate) answer: String,
    /// The region of a bucket that is elsewhere.
    pub(crate) region: Option<String>,
}

impl Trace {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn seen(&self) -> Seen {
        self.lock().clone()
    }

    /// Notes the head of an answer.
    pub(crate) fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        let mut seen = self.lock();
        seen.attempts += 1;
        seen.status = Some(status);
        seen.answer = status_text(status);
        let region = headers.get("x-amz-bucket-region").and_then(|region| region.to_str().ok());
        if let Some(region) = region.filter(|_| !status.is_success()) {
            seen.region = Some(region.to_owned());
        }
    }

    /// Returns true if no server has ever answered, and several attempts failed.
    pub(crate) fn never_connects(&self, answers: &Answers) -> bool {
        !answers.any.load(Relaxed) && self.lock().attempts >= FIRST_CONNECTIONS
    }

    /// Notes the code in the body of an answer.
    pub(crate) fn code(&self, body: &[u8]) {
        if let Some(code) = error_code(body) {
            let mut seen = self.lock();
            seen.answer = format!("{}: {code}", seen.answer);
        }
    }

    /// Notes that there was no answer, or that its body broke.
    pub(crate) fn broke(&self, e: &reqwest::Error, in_body: bool) {
        let mut seen = self.lock();
        if !in_body {
            seen.attempts += 1;
        }
        seen.status = None;
        seen.answer = transport_text(e);
    }
}

impl Seen {
    /// Returns the last answer and the number of attempts.
    pub(crate) fn text(&self) -> String {
        match self.attempts {
            0 | 1 => self.answer.clone(),
            n => format!("{}, after {n} attempts", self.answer),
        }
    }
}

/// Returns e.g. `404 Not Found`.
pub(crate) fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_str()),
        None => status.as_str().to_owned(),
    }
}

/// Returns the text of the innermost error, which has no URL.
pub(crate) fn transport_text(e: &reqwest::Error) -> String {
    if e.is_connect() && e.is_timeout() {
        return "no connection in time".to_owned();
    }
    if e.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut last: Option<&dyn std::error::Error> = e.source();
    while let Some(deeper) = last.and_then(|e| e.source()) {
        last = Some(deeper);
    }
    let text = last.map_or_else(|| "the request failed".to_owned(), ToString::to_string);
    match e.is_connect() {
        true => format!("no connection: {text}"),
        false => format!("the connection broke: {text}"),
    }
}

/// Returns the code in an error message of S3, Google or Azure. The message itself may repeat parts of the login.
fn error_code(body: &[u8]) -> Option<&str> {
    let body = std::str::from_utf8(body).ok()?;
    let (code, _) = body.split_once("<Code>")?.1.split_once("</Code>")?;
    let is_code = |code: &str| code.len() <= 64 && code.chars().all(|c| c.is_ascii_alphanumeric());
    is_code(code).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_no_messages_are_kept() {
        let body = b"<Error><Code>NoSuchKey</Code><Message>secret</Message></Error>";
        assert_eq!(error_code(body), Some("NoSuchKey"));
        for body in ["", "<Code>", "<Code>a b</Code>", "{\"Code\":1}", "<Code>\u{e9}</Code>"] {
            assert_eq!(error_code(body.as_bytes()), None);
        }
        let trace = Trace::default();
        trace.answered(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new());
        assert_eq!(trace.seen().text(), "503 Service Unavailable");
        trace.answered(StatusCode::NOT_FOUND, &HeaderMap::new());
        trace.code(body);
        assert_eq!(trace.seen().text(), "404 Not Found: NoSuchKey, after 2 attempts");
    }
}
