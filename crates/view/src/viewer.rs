//! The viewer: a server with the sets that it shows.

use crate::api::Api;
use crate::fed::FedPictures;
use crate::http::Answers;
use crate::options::ViewOptions;
use crate::server::{Server, ViewerHandle};
use crate::set::ViewSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Most threads of a search or of statistics, unless the caller sets another number.
const MAX_THREADS: usize = 8;

impl ViewOptions {
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

    pub(crate) fn thread_count(&self) -> usize {
        let most = || std::thread::available_parallelism().map_or(1, |n| n.get().min(MAX_THREADS));
        self.threads.unwrap_or_else(most)
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

impl ViewError {
    /// Returns the error of a role that does not exist.
    pub(crate) fn role(e: String) -> ViewError {
        ViewError::Options(format!("roles: {e}"))
    }
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
/// let viewer = Viewer::bind(vec![set], &ViewOptions::default())?;
/// println!("{}", viewer.url());
/// viewer.serve();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Viewer {
    server: Server,
    api: Arc<Api>,
    end_times: Option<[Duration; 2]>,
}

impl Viewer {
    /// Creates a viewer and listens.
    ///
    /// # Errors
    /// The address cannot be listened on; there are no sets, or more than two; a role that does not exist; a
    /// schema without pictures.
    pub fn bind(sets: Vec<ViewSet>, options: &ViewOptions) -> Result<Viewer, ViewError> {
        if !(1..=2).contains(&sets.len()) {
            return Err(ViewError::Options(format!("expected one or two sets, found {}", sets.len())));
        }
        let condition = options.condition.as_ref().map(ToString::to_string);
        let fed = options.fed.as_ref().map(|(schema, decoder)| FedPictures::new(schema, Arc::clone(decoder)));
        let fed = fed.transpose().map_err(|e| ViewError::Options(e.to_string()))?;
        let api = Api::new(sets, &options.roles, condition, options.thread_count());
        let api = Arc::new(api.map_err(ViewError::role)?.fed(fed));
        let server = Server::bind(options).map_err(ViewError::Io)?;
        Ok(Viewer { server, api, end_times: options.end_times })
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
        self.server.handle()
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
        let watcher = self.end_times.and_then(watch);
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
