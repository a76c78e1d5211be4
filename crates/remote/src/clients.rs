//! HTTP clients: of object_store, and of servers and the hub.

use crate::failure::{Answers, Trace, transport_text};
use crate::settings::{CONNECT, Settings};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use object_store::client::{
    ClientConfigKey, ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpResponseBody, HttpService,
};
use std::error::Error as _;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

/// The header that names the project which pays for requests.
const USER_PROJECT: HeaderName = HeaderName::from_static("x-goog-user-project");

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
    builder.build().map_err(|e| Told(format!("no HTTP client: {}", transport_text(&e))))
}

/// Gives object_store the client of this crate.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) client: reqwest::Client,
    /// The project that pays for requests to this host.
    pub(crate) payer: Option<(String, HeaderValue)>,
    pub(crate) answers: Arc<Answers>,
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
        *sent.body_mut() = Some(body.collect().await?.to_bytes().into());
        let answer = match self.connector.client.execute(sent).await {
            Ok(answer) => answer,
            Err(e) => {
                let kind = error_kind(&e);
                let e = noted(&trace, e, false);
                // Without a network the user waits for the message.
                let give_up = kind == HttpErrorKind::Connect && trace.never_connects(&self.connector.answers);
                return Err(if give_up { HttpError::new(HttpErrorKind::Unknown, e) } else { e });
            }
        };
        self.connector.answers.note(answer.status());
        let answer: http::Response<reqwest::Body> = answer.into();
        let (mut parts, mut body) = answer.into_parts();
        trace.answered(parts.status, &parts.headers);
        if parts.status.is_client_error() || parts.status.is_server_error() {
            let mut message = Vec::new();
            while message.len() < MESSAGE
                && let Some(Ok(frame)) = body.frame().await
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
        let body = HttpResponseBody::new(body.map_err(move |e| noted(&trace, e, true)));
        Ok(HttpResponse::from_parts(parts, body))
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

/// Notes an error in the trace, and returns it with its kind, which decides if the request is repeated.
fn noted(trace: &Trace, e: reqwest::Error, in_body: bool) -> HttpError {
    trace.broke(&e, in_body);
    HttpError::new(error_kind(&e), Told(transport_text(&e)))
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
