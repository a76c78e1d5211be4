//! The viewer: a server with the sets that it shows.

use crate::api::Api;
use crate::http::Answers;
use crate::server::{Server, ServerHandle, ServerOptions};
use crate::set::ViewSet;
use crate::tabs::EndTimes;
use serde_json::{Map, Value};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tfseek::Filter;

/// Most threads of a search or of statistics, unless the caller sets another number.
const MAX_THREADS: usize = 8;

/// Options of a [`Viewer`].
#[derive(Clone, Debug, Default)]
pub struct ViewOptions {
    server: ServerOptions,
    condition: Option<String>,
    roles: Map<String, Value>,
    threads: Option<usize>,
    ends: Option<EndTimes>,
}

impl ViewOptions {
    /// Returns the default options: a free port of 127.0.0.1 from 7717 on, guessed roles, all records.
    pub fn new() -> ViewOptions {
        ViewOptions::default()
    }

    /// Sets the address to listen on. One that other machines can reach requires
    /// [`allow_host`](ViewOptions::allow_host).
    #[must_use]
    pub fn host(mut self, host: IpAddr) -> ViewOptions {
        self.server.host = host;
        self
    }

    /// Sets the port; 0: any free one. Default: the first free one from 7717 to 7727, or any.
    #[must_use]
    pub fn port(mut self, port: u16) -> ViewOptions {
        self.server.port = Some(port);
        self
    }

    /// Allows requests to a name of this machine. `localhost` and loopback addresses are always allowed.
    #[must_use]
    pub fn allow_host(mut self, name: impl Into<String>) -> ViewOptions {
        self.server.allow_host.push(name.into());
        self
    }

    /// Sets the condition that the page begins with. Default: all records.
    #[must_use]
    pub fn condition(mut self, condition: Option<&Filter>) -> ViewOptions {
        self.condition = condition.map(Filter::to_string);
        self
    }

    /// Sets the roles of features as a JSON object, such as `{"image": "picture", "label": "y"}`. Other roles
    /// are guessed.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn roles(mut self, json: &str) -> Result<ViewOptions, ViewError> {
        let parsed = serde_json::from_str(json);
        self.roles =
            parsed.map_err(|e| ViewError::Options(format!("roles: expected a JSON object, found {e}")))?;
        Ok(self)
    }

    /// Sets the number of [`threads`](tfseek::threads) of a search, of statistics and of verification.
    /// Default: one per processor, at most 8. 0: the thread that asks.
    #[must_use]
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> ViewOptions {
        self.threads = threads.into();
        self
    }

    /// Sets whether [`Viewer::serve`] ends with the page: 5 seconds after the last tab was closed, or 60
    /// seconds after the connection that a browser with the page holds was closed otherwise, as by a crash.
    /// Default: false.
    #[must_use]
    pub fn end_with_page(mut self, end: bool) -> ViewOptions {
        self.ends = end.then(EndTimes::default);
        self
    }

    /// Sets the two times of [`end_with_page`](ViewOptions::end_with_page), for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn end_times(mut self, closed: Duration, lost: Duration) -> ViewOptions {
        self.ends = Some(EndTimes { closed, lost });
        self
    }

    pub(crate) fn thread_count(&self) -> usize {
        let most = || std::thread::available_parallelism().map_or(1, |n| n.get().min(MAX_THREADS));
        self.threads.unwrap_or_else(most)
    }

    pub(crate) fn api(&self, sets: Vec<ViewSet>) -> Result<Api, ViewError> {
        Api::new(sets, &self.roles, self.condition.clone(), self.thread_count())
            .map_err(|e| ViewError::Options(format!("roles: {e}")))
    }
}

/// A failure to start a [`Viewer`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ViewError {
    /// The address cannot be listened on, or the system has no random numbers.
    Io(io::Error),
    /// Options that do not fit.
    Options(String),
    /// Statistics that cannot be computed.
    Data(String),
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::Io(e) => e.fmt(f),
            ViewError::Options(message) | ViewError::Data(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ViewError {}

/// A viewer of one dataset, or of two that are compared.
///
/// It listens from its creation on, and answers in [`serve`](Viewer::serve). It only reads. Requests need the
/// token of [`url`](Viewer::url).
///
/// ```no_run
/// use tfseek::Dataset;
/// use tfseek_view::{ViewOptions, ViewSet, Viewer};
///
/// let set = ViewSet::new(Dataset::open("train-*.tfrecord")?, "train")?;
/// let viewer = Viewer::bind(vec![set], &ViewOptions::new())?;
/// println!("{}", viewer.url());
/// viewer.serve();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Viewer {
    server: Server,
    api: Arc<Api>,
    ends: Option<EndTimes>,
}

impl Viewer {
    /// Creates a viewer and listens.
    ///
    /// # Errors
    /// The address cannot be listened on; there are no sets, or more than two; a role that does not exist.
    pub fn bind(sets: Vec<ViewSet>, options: &ViewOptions) -> Result<Viewer, ViewError> {
        if !(1..=2).contains(&sets.len()) {
            return Err(ViewError::Options(format!("expected one or two sets, found {}", sets.len())));
        }
        let api = options.api(sets)?;
        let server = Server::bind(&options.server).map_err(ViewError::Io)?;
        Ok(Viewer { server, api: Arc::new(api), ends: options.ends })
    }

    /// Returns the link to the page, with the token.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns a link that is valid once and for a minute. It is meant for the arguments of a browser, which
    /// other users of the machine can see.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn one_time_url(&self) -> io::Result<String> {
        self.server.ticket_url()
    }

    /// Returns the address that the viewer listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns a handle that stops the viewer from another thread.
    pub fn handle(&self) -> ViewerHandle {
        ViewerHandle { server: self.server.handle() }
    }

    /// Answers requests until the viewer is stopped. On return all its connections are closed, and its
    /// threads have ended or end soon.
    pub fn serve(&self) {
        let answers: Arc<dyn Answers> = Arc::clone(&self.api) as Arc<dyn Answers>;
        let watch = |times| {
            let tabs = Arc::clone(self.api.tabs());
            let handle = self.server.handle();
            let watch = move || {
                if tabs.wait_for_end(times) {
                    handle.stop();
                }
            };
            // Without this thread the viewer only lasts longer.
            std::thread::Builder::new().name("tfseek-view-tabs".into()).spawn(watch).ok()
        };
        let watcher = self.ends.and_then(watch);
        self.server.serve(&answers);
        self.api.stop();
        self.api.tabs().stop();
        // Its panic was printed.
        let _ = watcher.map(std::thread::JoinHandle::join);
    }
}

impl fmt::Debug for Viewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token.
        write!(f, "Viewer({})", self.address())
    }
}

/// A handle that stops a [`Viewer`].
#[derive(Clone)]
pub struct ViewerHandle {
    server: ServerHandle,
}

impl ViewerHandle {
    /// Stops the viewer: [`Viewer::serve`] returns.
    pub fn stop(&self) {
        self.server.stop();
    }
}

impl fmt::Debug for ViewerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ViewerHandle")
    }
}
