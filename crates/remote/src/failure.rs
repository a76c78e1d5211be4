//! Failures of requests, in words without secrets.

use http::header::ETAG;
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
    /// The thread that waited, or all that did, gave its work up.
    Cancelled,
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

    pub(crate) fn cancelled() -> RequestFailure {
        RequestFailure::new(Cause::Cancelled, "the request was given up")
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
            Cause::Cancelled => return ErrorKind::Cancelled.into(),
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
    /// Number of requests that have a connection, or wait for one.
    under_way: AtomicU64,
}

/// Counts a request that has a connection, or waits for one.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Answers>);

impl UnderWay {
    pub(crate) fn new(answers: &Arc<Answers>) -> UnderWay {
        answers.under_way.fetch_add(1, Relaxed);
        UnderWay(answers.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
    }
}

impl Answers {
    pub(crate) fn note(&self, status: StatusCode) {
        self.any.store(true, Relaxed);
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            self.refusals.fetch_add(1, Relaxed);
        }
    }

    /// Returns true if a request that failed would fail again. A request without a descriptor
    /// [waits](Answers::waits) for one first.
    pub(crate) fn is_final(&self, e: &reqwest::Error) -> bool {
        has_no_descriptor(e) || e.is_redirect() || e.is_builder() || is_invalid(e)
    }

    /// Returns true if a request that failed gets a descriptor once another one is answered. From then on
    /// fewer are made, as after refusals.
    pub(crate) fn waits(&self, e: &reqwest::Error) -> bool {
        let waits = has_no_descriptor(e) && self.under_way.load(Relaxed) > 0;
        self.refusals.fetch_add(u64::from(waits), Relaxed);
        waits
    }

    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Relaxed)
    }
}

/// The attempts of one request, which failures are described by.
#[derive(Debug)]
pub(crate) struct Trace {
    seen: Mutex<Seen>,
    /// The most bytes of an answer.
    pub(crate) limit: u64,
}

/// A login has small answers.
impl Default for Trace {
    fn default() -> Trace {
        Trace::new(1 << 20)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) attempts: u32,
    /// The status of the last answer.
    pub(crate) status: Option<StatusCode>,
    /// The last answer in words.
    pub(crate) answer: String,
    /// The last answer has a version.
    has_version: bool,
    /// It broke in its body, and has no version. object_store asks again only for others.
    pub(crate) is_cut: bool,
    /// The region of a bucket that is elsewhere.
    pub(crate) region: Option<String>,
}

impl Trace {
    pub(crate) fn new(limit: u64) -> Trace {
        Trace { seen: Mutex::default(), limit }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(|e| e.into_inner())
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
        seen.has_version = headers.contains_key(ETAG);
        seen.is_cut = false;
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

    /// Notes that there was no answer, or that its body broke. Returns the text.
    pub(crate) fn broke(&self, text: String, in_body: bool) -> String {
        let mut seen = self.lock();
        if !in_body {
            seen.attempts += 1;
        }
        seen.status = None;
        seen.answer.clone_from(&text);
        text
    }
}

impl Trace {
    /// Notes that the body of an answer broke, and would not if it came again. Returns the text.
    pub(crate) fn cut(&self, text: String) -> String {
        let text = self.broke(text, true);
        let mut seen = self.lock();
        seen.is_cut = !seen.has_version;
        text
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
        return NO_ANSWER.to_owned();
    }
    let mut last: Option<&dyn std::error::Error> = e.source();
    while let Some(deeper) = last.and_then(|e| e.source()) {
        last = Some(deeper);
    }
    let text = last.map_or_else(|| "the request failed".to_owned(), ToString::to_string);
    if has_no_descriptor(e) {
        return format!("no connection: {NO_DESCRIPTOR}");
    }
    let what = if e.is_connect() {
        "no connection"
    } else if e.is_redirect() || e.is_builder() {
        "a redirect leads nowhere"
    } else if is_invalid(e) {
        "the answer is invalid"
    } else {
        "the connection broke"
    };
    format!("{what}: {text}")
}

/// The texts of an answer that does not come, and of one that comes too slowly.
pub(crate) const NO_ANSWER: &str = "no answer in time";
pub(crate) const SLOW_ANSWER: &str = "the answer is too slow";

/// The text about a process that has too many files open.
pub(crate) const NO_DESCRIPTOR: &str =
    "too many open files: close some, or raise the limit with `ulimit -n 4096` before the program starts";

/// Returns the first error of a type among an error's causes.
fn cause<E: std::error::Error + 'static>(e: &reqwest::Error) -> Option<&E> {
    let mut source = e.source();
    while let Some(e) = source {
        if let Some(found) = e.downcast_ref() {
            return Some(found);
        }
        source = e.source();
    }
    None
}

/// Returns true if the process, or the system, has too many files open.
pub(crate) fn is_no_descriptor(e: &io::Error) -> bool {
    // ENFILE and EMFILE, and WSAEMFILE.
    let codes = if cfg!(windows) { 10024..=10024 } else { 23..=24 };
    e.raw_os_error().is_some_and(|code| codes.contains(&code))
}

fn has_no_descriptor(e: &reqwest::Error) -> bool {
    cause(e).is_some_and(is_no_descriptor)
}

/// Returns true if what the server sent is no answer of HTTP. It would send it again.
fn is_invalid(e: &reqwest::Error) -> bool {
    let in_body = |e: &io::Error| {
        // Bytes that TLS refuses were changed on their way.
        let of_tls = e.get_ref().is_some_and(|e| e.is::<rustls::Error>());
        matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) && !of_tls
    };
    cause::<hyper::Error>(e).is_some_and(hyper::Error::is_parse)
        || !e.is_connect() && cause(e).is_some_and(in_body)
}

/// Returns the code in an error message of S3, Google or Azure. The message itself may repeat parts of the
/// login.
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
