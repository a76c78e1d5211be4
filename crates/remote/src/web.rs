//! Objects of HTTP servers, and requests that are repeated.

use crate::address::Address;
use crate::clients::execute;
use crate::failure::{
    Answers, Cause, NO_ANSWER, RequestFailure, SLOW_ANSWER, Trace, UnderWay, status_text, transport_text,
};
use crate::listing::{BucketListing, changed, stamp};
use crate::pace::{Pace, Repeats, STEP, TooSlow};
use crate::settings::{PAUSES, Settings};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_MATCH, LAST_MODIFIED, RANGE, RETRY_AFTER,
};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use reqwest::{Client, RequestBuilder, Response, Url};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tfseek::io::Stamp;

/// The attempts of one request.
pub(crate) struct Attempts {
    pub(crate) trace: Trace,
    answers: Arc<Answers>,
    settings: Arc<Settings>,
    repeats: Repeats,
    /// The pace of the last answer.
    pace: Pace,
    under_way: Option<UnderWay>,
}

/// Why the next bytes of an answer do not come.
enum Broken {
    Request(reqwest::Error),
    Slow,
    Short,
}

impl Attempts {
    pub(crate) fn new(settings: &Arc<Settings>, answers: &Arc<Answers>) -> Attempts {
        Attempts {
            trace: Trace::default(),
            answers: answers.clone(),
            settings: settings.clone(),
            repeats: Repeats::new(settings),
            pace: Pace::new(settings, 0),
            under_way: None,
        }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// There were too many.
    async fn again(&mut self, wait: Option<Duration>) -> Result<(), RequestFailure> {
        self.under_way = None;
        if self.repeats.again(wait).await {
            return Ok(());
        }
        Err(RequestFailure::new(Cause::Other, self.trace.seen().text()))
    }

    /// Sends a request until there is an answer that is not a failure for a while.
    ///
    /// # Errors
    /// There were too many attempts.
    pub(crate) async fn send(
        &mut self,
        build: impl Fn() -> RequestBuilder,
    ) -> Result<Response, RequestFailure> {
        loop {
            self.under_way = None;
            self.pace = Pace::new(&self.settings, 0);
            let under_way = UnderWay::new(&self.answers);
            let (client, request) = build().build_split();
            let answer = async { execute(&client, request?).await };
            match self.pace.wait(answer).await {
                Ok(Ok(answer)) => {
                    self.under_way = Some(under_way);
                    self.pace.head();
                    self.answers.note(answer.status());
                    self.trace.answered(answer.status(), answer.headers());
                    let status = answer.status();
                    let for_a_while = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
                        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
                    if !for_a_while {
                        return Ok(answer);
                    }
                    self.again(asked_pause(answer.headers())).await?;
                }
                Ok(Err(e)) => {
                    drop(under_way);
                    if self.answers.waits(&e) && self.repeats.has_time() {
                        tokio::time::sleep(PAUSES[0]).await;
                        continue;
                    }
                    self.trace.broke(transport_text(&e), false);
                    // Without a network the user waits for the message.
                    let no_network = e.is_connect() && self.trace.never_connects(&self.answers);
                    if no_network || self.answers.is_final(&e) {
                        return Err(RequestFailure::new(Cause::Other, self.trace.seen().text()));
                    }
                    self.again(None).await?;
                }
                Err(TooSlow) => {
                    drop(under_way);
                    self.trace.broke(NO_ANSWER.into(), false);
                    self.again(None).await?;
                }
            }
        }
    }

    /// Returns the next bytes of an answer. `None` at its end.
    async fn chunk(&mut self, answer: &mut Response) -> Result<Option<Bytes>, Broken> {
        match self.pace.wait(answer.chunk()).await {
            Ok(Ok(chunk)) => {
                self.pace.arrived(chunk.as_ref().map_or(0, |chunk| chunk.len() as u64));
                Ok(chunk)
            }
            Ok(Err(e)) => Err(Broken::Request(e)),
            Err(TooSlow) => Err(Broken::Slow),
        }
    }

    /// Waits before the rest of a body is asked for.
    ///
    /// # Errors
    /// There were too many attempts, or the next one would fail, too.
    async fn rest(&mut self, broken: &Broken, has: usize, of: usize) -> Result<(), RequestFailure> {
        let text = match broken {
            Broken::Request(e) => transport_text(e),
            Broken::Slow => SLOW_ANSWER.to_owned(),
            Broken::Short => format!("the answer ended early: asked for {of} bytes, got {has}"),
        };
        self.trace.broke(text, true);
        if matches!(broken, Broken::Request(e) if self.answers.is_final(e)) {
            return Err(RequestFailure::new(Cause::Other, self.trace.seen().text()));
        }
        self.again(None).await
    }

    /// Reads the rest of an answer, of at most `limit` bytes. `None` if it broke, and the request is to be
    /// sent again.
    ///
    /// # Errors
    /// More bytes; the connection broke too often.
    pub(crate) async fn whole(
        &mut self,
        mut answer: Response,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, RequestFailure> {
        let of = length(answer.headers()).and_then(|len| usize::try_from(len).ok());
        let mut bytes = Vec::new();
        loop {
            match self.chunk(&mut answer).await {
                Ok(Some(chunk)) if (bytes.len() + chunk.len()) as u64 > limit => {
                    let len = (bytes.len() + chunk.len()) as u64;
                    return Err(RequestFailure::too_large(len, limit));
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => return Ok(Some(bytes)),
                Err(broken) => {
                    self.rest(&broken, bytes.len(), of.unwrap_or_default()).await?;
                    return Ok(None);
                }
            }
        }
    }

    /// Reads a range. A body that breaks is continued where it broke.
    ///
    /// # Errors
    /// [`NoRange::Status`] for an answer that is no success; the others are final.
    pub(crate) async fn range(&mut self, wanted: &Wanted<'_>) -> Result<Vec<u8>, NoRange> {
        let Range { start, end } = wanted.range;
        let len = usize::try_from(end - start).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(len).is_err() {
            return Err(RequestFailure::new(Cause::Other, "there is not enough memory").into());
        }
        'attempts: loop {
            let rest = start + bytes.len() as u64..end;
            let header = format!("bytes={}-{}", rest.start, rest.end - 1);
            let mut answer = self.send(|| (wanted.request)().header(RANGE, &header)).await?;
            if answer.status().is_success() {
                check_encoding(answer.headers(), rest.end - rest.start)?;
            }
            // A server may send fewer bytes than were asked for.
            let mut sent_len = len;
            match answer.status() {
                StatusCode::PARTIAL_CONTENT => {
                    sent_len = (wanted.sent_end(answer.headers(), &rest)? - start) as usize;
                }
                StatusCode::OK => {
                    let size = length(answer.headers());
                    if let Some(size) = size {
                        (wanted.check)(answer.headers(), size)?;
                    }
                    if rest.start > 0 || size != Some(rest.end) {
                        return Err(RequestFailure::no_ranges("it sent the whole object").into());
                    }
                }
                StatusCode::PRECONDITION_FAILED => {
                    return Err(RequestFailure::stale("its version is another").into());
                }
                StatusCode::RANGE_NOT_SATISFIABLE => {
                    return Err(RequestFailure::stale("it is shorter").into());
                }
                _ => return Err(NoRange::Status(Box::new(answer))),
            }
            let before = bytes.len();
            loop {
                let broken = match self.chunk(&mut answer).await {
                    Ok(Some(chunk)) if bytes.len() + chunk.len() > sent_len => {
                        return Err(RequestFailure::no_ranges("the answer is too long").into());
                    }
                    Ok(Some(chunk)) => {
                        bytes.extend_from_slice(&chunk);
                        continue;
                    }
                    // All is here, also where the connection breaks before the answer's end.
                    Ok(None) | Err(_) if bytes.len() == len => return Ok(bytes),
                    // Parts of this size are no failure.
                    Ok(None) if (bytes.len() - before) as u64 >= STEP => continue 'attempts,
                    Ok(None) => Broken::Short,
                    Err(broken) => broken,
                };
                self.rest(&broken, bytes.len(), len).await?;
                continue 'attempts;
            }
        }
    }
}

/// A range that is asked for, and how.
pub(crate) struct Wanted<'a> {
    pub(crate) range: Range<u64>,
    pub(crate) request: &'a (dyn Fn() -> RequestBuilder + Sync),
    /// Checks that an answer is of the listed version. It has the headers and the size of the object.
    pub(crate) check: &'a (dyn Fn(&HeaderMap, u64) -> Result<(), RequestFailure> + Sync),
}

impl Wanted<'_> {
    /// Checks an answer that has a part of the object, which begins like `rest`. Returns where it ends.
    fn sent_end(&self, headers: &HeaderMap, rest: &Range<u64>) -> Result<u64, RequestFailure> {
        let found = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let (sent, size) = found
            .and_then(content_range)
            .ok_or_else(|| RequestFailure::no_ranges("its answer does not tell which bytes it has"))?;
        (self.check)(headers, size)?;
        let is_start = sent.start == rest.start && sent.end > sent.start && sent.end < rest.end;
        if !is_start && sent != *rest {
            let detail = format!("asked for bytes {rest:?}, got {sent:?}");
            return Err(RequestFailure::no_ranges(&detail));
        }
        Ok(sent.end)
    }
}

/// Why there is no range.
pub(crate) enum NoRange {
    /// An answer that is no success.
    Status(Box<Response>),
    Failed(RequestFailure),
}

impl From<RequestFailure> for NoRange {
    fn from(failure: RequestFailure) -> NoRange {
        NoRange::Failed(failure)
    }
}

/// Refuses a body of `len` bytes that is compressed on its way, although no request accepts that. A
/// compressed file may have the same header.
fn check_encoding(headers: &HeaderMap, len: u64) -> Result<(), RequestFailure> {
    let is_encoded = headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
    if is_encoded && length(headers) != Some(len) {
        return Err(RequestFailure::no_ranges("it compresses its answer"));
    }
    Ok(())
}

/// Returns the pause that a busy server asks for: `Retry-After`, or the `RateLimit` of the hub.
fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let limit = text(HeaderName::from_static("ratelimit"));
    let left = limit.and_then(|limit| limit.split(';').find_map(|part| part.trim().strip_prefix("t=")));
    let seconds =
        left.and_then(|seconds| seconds.parse::<u32>().ok()).map(|seconds| seconds.saturating_add(1));
    let seconds = seconds.or_else(|| text(RETRY_AFTER)?.trim().parse().ok());
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}

/// Returns the bytes and the size in `bytes 0-9/100`.
fn content_range(text: &str) -> Option<(Range<u64>, u64)> {
    let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?, size.parse().ok()?))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn time(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    let text = headers.get(LAST_MODIFIED)?.to_str().ok()?;
    DateTime::parse_from_rfc2822(text).ok().map(|time| time.with_timezone(&Utc))
}

/// Returns the stamp in headers. Weak tags are no versions: other bytes may have the same.
fn stamp_of(headers: &HeaderMap, size: u64) -> Stamp {
    let tag = headers.get(ETAG).and_then(|tag| tag.to_str().ok()).filter(|tag| tag.starts_with('"'));
    stamp(size, time(headers), tag.map(str::to_owned))
}

/// Returns the failure of an answer that is no success.
pub(crate) fn refused(status: StatusCode, note: &str) -> RequestFailure {
    let cause = match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Cause::Missing,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Cause::Denied,
        _ => Cause::Other,
    };
    let failure = RequestFailure::new(cause, status_text(status));
    if note.is_empty() { failure } else { failure.noted(note) }
}

/// A server of files. It has no listings.
pub(crate) struct Web {
    root: String,
    settings: Arc<Settings>,
    client: Client,
    pub(crate) answers: Arc<Answers>,
}

impl Web {
    pub(crate) fn new(address: Address<'_>, settings: Arc<Settings>, client: Client) -> Web {
        Web { root: address.root.to_owned(), settings, client, answers: Arc::default() }
    }

    fn url(&self, key: &str) -> Result<Url, RequestFailure> {
        let invalid = |_| RequestFailure::new(Cause::Invalid, "the URL is invalid");
        Url::parse(&format!("{}/{key}", self.root)).map_err(invalid)
    }

    /// Finds the one object of this name.
    pub(crate) async fn list(&self, key: &str) -> Result<BucketListing, RequestFailure> {
        let unsupported = |text: &str| Err(RequestFailure::new(Cause::Unsupported, text));
        if key.is_empty() || key.ends_with('/') {
            return unsupported("a web server has no listings");
        }
        let url = &self.url(key)?;
        let mut attempts = Attempts::new(&self.settings, &self.answers);
        let answer = attempts.send(|| self.client.request(Method::HEAD, url.clone())).await?;
        let found = match answer.status() {
            status if status.is_success() => {
                let size = length(answer.headers());
                size.map(|size| stamp_of(answer.headers(), size))
            }
            // Signed URLs are often for GET only.
            StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => None,
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                return unsupported(
                    "no such object, and a web server has no listings for patterns and folders",
                );
            }
            status => return Err(refused(status, "")),
        };
        let found = match found {
            Some(found) => found,
            None => {
                let mut attempts = Attempts::new(&self.settings, &self.answers);
                let answer =
                    attempts.send(|| self.client.get(url.clone()).header(RANGE, "bytes=0-0")).await?;
                let range = answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
                match (answer.status(), range.and_then(content_range)) {
                    (StatusCode::PARTIAL_CONTENT, Some((_, size))) => stamp_of(answer.headers(), size),
                    (status, _) if status.is_success() => {
                        return Err(RequestFailure::no_ranges("it does not tell the size of the object"));
                    }
                    (status, _) => return Err(refused(status, "")),
                }
            }
        };
        Ok(BucketListing { objects: vec![(key.to_owned(), found)], folders: Vec::new() })
    }

    pub(crate) async fn read(
        &self,
        key: &str,
        range: Range<u64>,
        expected: &Stamp,
    ) -> Result<Vec<u8>, RequestFailure> {
        let url = &self.url(key)?;
        let wanted = Wanted {
            range,
            request: &|| {
                let request = self.client.get(url.clone());
                match &expected.version {
                    Some(version) => request.header(IF_MATCH, &**version),
                    None => request,
                }
            },
            check: &|headers, size| {
                let now = stamp_of(headers, size);
                let differ =
                    now.version.is_some() && expected.version.is_some() && now.version != expected.version;
                match changed(expected, &now) {
                    Some(failure) => Err(failure),
                    None if differ => Err(RequestFailure::stale("its version is another")),
                    None => Ok(()),
                }
            },
        };
        match Attempts::new(&self.settings, &self.answers).range(&wanted).await {
            Ok(bytes) => Ok(bytes),
            Err(NoRange::Failed(failure)) => Err(failure),
            Err(NoRange::Status(answer)) => Err(refused(answer.status(), "")),
        }
    }

    pub(crate) async fn small(
        &self,
        key: &str,
        limit: u64,
    ) -> Result<Option<(Vec<u8>, Stamp)>, RequestFailure> {
        let url = &self.url(key)?;
        let mut attempts = Attempts::new(&self.settings, &self.answers);
        loop {
            let answer = attempts.send(|| self.client.get(url.clone())).await?;
            match answer.status() {
                StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
                status if !status.is_success() => return Err(refused(status, "")),
                _ => {}
            }
            let headers = answer.headers().clone();
            if let Some(len) = length(&headers).filter(|len| *len > limit) {
                return Err(RequestFailure::too_large(len, limit));
            }
            let Some(bytes) = attempts.whole(answer, limit).await? else { continue };
            let stamp = stamp_of(&headers, bytes.len() as u64);
            return Ok(Some((bytes, stamp)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn headers_are_read() {
        assert_eq!(content_range("bytes 0-9/100"), Some((0..10, 100)));
        for text in ["bytes 0-9/*", "0-9/100", "bytes 9/100", "bytes 0-18446744073709551615/100", ""] {
            assert_eq!(content_range(text), None);
        }
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
        };
        let seconds = |name, value| asked_pause(&headers(name, value)).map(|pause| pause.as_secs());
        assert_eq!(seconds("ratelimit", "\"resolvers\";r=0;t=55"), Some(56));
        assert_eq!(seconds("retry-after", "7"), Some(7));
        assert_eq!(seconds("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), None);
        assert_eq!(stamp_of(&headers("etag", "W/\"x\""), 1).version, None);
        let now = stamp_of(&headers("last-modified", "Thu, 01 Jan 1970 00:00:02 GMT"), 1);
        assert_eq!(now.modified_ns, Some(2_000_000_000));
        let listed = Stamp::new(1);
        assert!(changed(&listed, &now).is_none() && changed(&now, &Stamp::new(2)).is_some());
    }
}
