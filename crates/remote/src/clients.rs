//! HTTP clients: of object_store, and of servers and the hub.

use crate::failure::{
    Answers, NO_ANSWER, NO_DESCRIPTOR, SLOW_ANSWER, Trace, UnderWay, is_no_descriptor, transport_text,
};
use crate::pace::{Pace, Repeats, TooSlow};
use crate::settings::{CONNECT, PATIENCE, Settings};
#[cfg(test)]
use crate::simulated;
use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use object_store::client::{
    ClientConfigKey, ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpResponseBody, HttpService,
};
use std::error::Error as _;
use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The header that names the project which pays for requests.
const USER_PROJECT: HeaderName = HeaderName::from_static("x-goog-user-project");

/// The time after which a request without a descriptor is made again.
const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(100);

/// The most bytes of an error message that are read.
const MESSAGE: usize = 16 << 10;

/// A text without details of the client, which may have a URL.
#[derive(Debug)]
pub(crate) struct Told(pub(crate) String);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Told {}

/// Returns a client. No answer is unpacked on the way, because servers that pack answers ignore ranges.
///
/// # Errors
/// The certificates of the system cannot be read.
pub(crate) fn client(settings: &Settings, redirects: usize) -> Result<reqwest::Client, Told> {
    #[cfg(test)]
    if let Some(here) = simulated::here() {
        return Ok(here.client());
    }
    // An error means that the program chose one before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let redirects = match redirects {
        0 => reqwest::redirect::Policy::none(),
        n => reqwest::redirect::Policy::limited(n),
    };
    let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    let builder = reqwest::Client::builder()
        .user_agent(concat!("tfseek/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(redirects)
        .referer(false)
        .http1_only()
        .connect_timeout(CONNECT)
        .read_timeout(settings.read_timeout)
        .no_gzip()
        .no_deflate();
    builder.build().map_err(|e| {
        // Without a descriptor no certificate can be read, and the error does not tell.
        let no_descriptor = UdpSocket::bind(("127.0.0.1", 0)).is_err_and(|e| is_no_descriptor(&e));
        let text = if no_descriptor { NO_DESCRIPTOR.to_owned() } else { transport_text(&e) };
        Told(format!("no HTTP client: {text}"))
    })
}

impl Trace {
    /// Returns true, after a pause, if the body of the last answer broke and is to be asked for again.
    /// object_store does so only for objects with a version.
    pub(crate) async fn asks_again(&self, repeats: &mut Repeats) -> bool {
        self.seen().is_cut && repeats.again(None).await
    }
}

/// Sends a request.
pub(crate) async fn execute(
    client: &reqwest::Client,
    request: reqwest::Request,
) -> reqwest::Result<reqwest::Response> {
    #[cfg(test)]
    if let Some(here) = simulated::here() {
        return here.answer(client.clone(), request).await;
    }
    client.execute(request).await
}

/// Gives object_store the client of this crate.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) client: reqwest::Client,
    /// The project that pays for requests to this host.
    pub(crate) payer: Option<(String, HeaderValue)>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) settings: Arc<Settings>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        Ok(HttpClient::new(Service { connector: self.clone(), allow_http }))
    }
}

/// A client of one store. It notes answers in the [`Trace`] of a request.
#[derive(Debug)]
struct Service {
    connector: Connector,
    allow_http: bool,
}

impl Service {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (mut parts, body) = request.into_parts();
        let trace = parts.extensions.get::<Arc<Trace>>().cloned().unwrap_or_default();
        if !self.allow_http && parts.uri.scheme_str() == Some("http") {
            let told = Told("the address begins with http://, and this is not allowed".into());
            return Err(HttpError::new(HttpErrorKind::Unknown, told));
        }
        // An anonymous request to Google has an empty token.
        if parts.headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().trim_ascii() == b"Bearer") {
            parts.headers.remove(AUTHORIZATION);
        }
        if let Some((host, project)) = &self.connector.payer
            && parts.uri.host() == Some(host)
        {
            parts.headers.insert(USER_PROJECT, project.clone());
        }
        let invalid = |_| HttpError::new(HttpErrorKind::Unknown, Told("the address is invalid".into()));
        let url = reqwest::Url::parse(&parts.uri.to_string()).map_err(invalid)?;
        let mut sent = reqwest::Request::new(parts.method, url);
        *sent.headers_mut() = parts.headers;
        let body = body.collect().await?.to_bytes();
        let sent_bytes = body.len() as u64;
        *sent.body_mut() = Some(body.into());
        let answers = &self.connector.answers;
        let (answer, mut pace, under_way) = self.execute(sent, sent_bytes, &trace).await?;
        pace.head();
        answers.note(answer.status());
        let answer: http::Response<reqwest::Body> = answer.into();
        let (mut parts, mut body) = answer.into_parts();
        trace.answered(parts.status, &parts.headers);
        if parts.status.is_client_error() || parts.status.is_server_error() {
            let mut message = Vec::new();
            while message.len() < MESSAGE
                && let Ok(Some(Ok(frame))) = pace.wait(body.frame()).await
            {
                message.extend_from_slice(&frame.into_data().unwrap_or_default());
            }
            trace.code(&message);
            // object_store would repeat the request. The trace has the status.
            if parts.status == StatusCode::NOT_IMPLEMENTED {
                parts.status = StatusCode::METHOD_NOT_ALLOWED;
            }
            return Ok(HttpResponse::from_parts(parts, Vec::new().into()));
        }
        let left = trace.limit;
        let body = TracedBody { body, pace, trace, answers: answers.clone(), left, _under_way: under_way };
        let parts_of_body = stream::try_unfold(body, TracedBody::next);
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(StreamBody::new(parts_of_body))))
    }
}

impl Service {
    /// Sends a request, also while others have all descriptors.
    async fn execute(
        &self,
        sent: reqwest::Request,
        sent_bytes: u64,
        trace: &Trace,
    ) -> Result<(reqwest::Response, Pace, UnderWay), HttpError> {
        let Connector { client, answers, settings, .. } = &self.connector;
        let since = Instant::now();
        loop {
            let pace = Pace::new(settings, sent_bytes);
            let under_way = UnderWay::new(answers);
            // Bodies are in memory.
            let again = sent.try_clone().ok_or_else(|| {
                HttpError::new(HttpErrorKind::Unknown, Told("the request cannot be made again".into()))
            })?;
            let e = match pace.wait(execute(client, again)).await {
                Ok(Ok(answer)) => return Ok((answer, pace, under_way)),
                Ok(Err(e)) => e,
                Err(TooSlow) => {
                    let told = Told(trace.broke(NO_ANSWER.into(), false));
                    return Err(HttpError::new(HttpErrorKind::Timeout, told));
                }
            };
            drop(under_way);
            if answers.waits(&e) && since.elapsed() < PATIENCE {
                tokio::time::sleep(DESCRIPTOR_PAUSE).await;
                continue;
            }
            let kind = error_kind(&e);
            let told = Told(trace.broke(transport_text(&e), false));
            // Without a network the user waits for the message.
            let no_network = kind == HttpErrorKind::Connect && trace.never_connects(answers);
            let give_up = no_network || answers.is_final(&e);
            return Err(HttpError::new(if give_up { HttpErrorKind::Unknown } else { kind }, told));
        }
    }
}

impl HttpService for Service {
    fn call<'s, 'a>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>
    where
        's: 'a,
        Self: 'a,
    {
        Box::pin(self.send(request))
    }
}

/// The body of an answer, whose errors are noted. The kind of an error decides if object_store repeats the
/// request.
struct TracedBody {
    body: reqwest::Body,
    pace: Pace,
    trace: Arc<Trace>,
    answers: Arc<Answers>,
    /// The most bytes that may follow.
    left: u64,
    _under_way: UnderWay,
}

impl TracedBody {
    async fn next(mut self) -> Result<Option<(Frame<Bytes>, TracedBody)>, HttpError> {
        let failed = |kind, text: String| {
            let text = match kind {
                HttpErrorKind::Unknown => self.trace.broke(text, true),
                _ => self.trace.cut(text),
            };
            Err(HttpError::new(kind, Told(text)))
        };
        let frame = match self.pace.wait(self.body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(e))) => {
                let kind = if self.answers.is_final(&e) { HttpErrorKind::Unknown } else { error_kind(&e) };
                return failed(kind, transport_text(&e));
            }
            Err(_) => return failed(HttpErrorKind::Timeout, SLOW_ANSWER.into()),
        };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        let Some(left) = self.left.checked_sub(bytes) else {
            let text = format!("the answer has more than {} bytes", self.trace.limit);
            return failed(HttpErrorKind::Unknown, text);
        };
        self.left = left;
        self.pace.arrived(bytes);
        Ok(Some((frame, self)))
    }
}

fn error_kind(e: &reqwest::Error) -> HttpErrorKind {
    if e.is_timeout() {
        return HttpErrorKind::Timeout;
    }
    if e.is_connect() {
        return HttpErrorKind::Connect;
    }
    let mut source = e.source();
    while let Some(e) = source {
        if let Some(e) = e.downcast_ref::<io::Error>() {
            return match e.kind() {
                io::ErrorKind::TimedOut => HttpErrorKind::Timeout,
                _ => HttpErrorKind::Interrupted,
            };
        }
        source = e.source();
    }
    // Connections that were closed before or in an answer: requests of this crate may all be repeated.
    if e.is_request() || e.is_body() || e.is_decode() {
        HttpErrorKind::Interrupted
    } else {
        HttpErrorKind::Unknown
    }
}
