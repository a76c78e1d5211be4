//! The server: a listener, a thread per connection, and the way from a request to its response.

use crate::assets;
use crate::connections::Connections;
use crate::conversation::{Limits, hold};
use crate::guard::{Admission, Guard};
use crate::http::{Answers, Parsed, Response};
use crate::options::ViewOptions;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Ports that are tried in turn, unless the user chose one.
const PORTS: RangeInclusive<u16> = 7717..=7727;

/// Pause after a connection could not be accepted, for example without a free descriptor.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that listens, and answers as soon as [`serve`](Server::serve) is called.
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    /// The host in links.
    name: String,
    guard: Arc<Guard>,
    connections: Arc<Connections>,
    limits: Limits,
}

impl Server {
    /// Listens on an address.
    pub(crate) fn bind(options: &ViewOptions) -> io::Result<Server> {
        let host = options.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        if !host.is_loopback() && options.allow_host.is_empty() {
            let message = format!(
                "host {host} can be reached from other machines: allow_host must have the name under which they reach it"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let listener = match options.port {
            Some(port) => listen(host, port)?,
            None => {
                let mut ports = PORTS.filter_map(|port| listen(host, port).ok());
                ports.next().map_or_else(|| listen(host, 0), Ok)?
            }
        };
        let address = listener.local_addr()?;
        let name = match options.allow_host.first().filter(|_| !host.is_loopback()) {
            Some(name) if name.contains(':') && !name.starts_with('[') => format!("[{name}]"),
            Some(name) => name.clone(),
            None if host.is_ipv6() => format!("[{host}]"),
            None => host.to_string(),
        };
        Ok(Server {
            listener,
            address,
            name,
            guard: Arc::new(Guard::new(address.port(), &options.allow_host, options.limits.ticket)?),
            connections: Arc::new(Connections::new(options.limits.connections)),
            limits: options.limits,
        })
    }

    /// Returns the address that the server listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the link with the token, for the user.
    pub(crate) fn url(&self) -> String {
        self.link(self.guard.token())
    }

    /// Returns a link that is valid once and for a minute, for the arguments of a browser.
    pub(crate) fn ticket_url(&self) -> io::Result<String> {
        Ok(self.link(&self.guard.ticket()?))
    }

    fn link(&self, secret: &str) -> String {
        format!("http://{}:{}/?t={secret}", self.name, self.address.port())
    }

    /// Returns a handle, with which another thread can stop the server.
    pub(crate) fn handle(&self) -> ViewerHandle {
        // An address of all interfaces is reached through the loopback interface.
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        let address = SocketAddr::new(ip, self.address.port());
        ViewerHandle { connections: Arc::clone(&self.connections), address }
    }

    /// Answers requests until the server is stopped. On return, all its connections are closed and all its
    /// threads have ended.
    pub(crate) fn serve(&self, answers: &Arc<dyn Answers>) {
        if !self.connections.set_accepting(true) {
            return;
        }
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        while !self.connections.is_stopped() {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    join(&mut threads, JoinHandle::is_finished);
                    // Closed connections may still end their last answer. Not too many of them wait at a
                    // time.
                    if threads.len() < 2 * self.limits.connections {
                        match self.start(stream, answers) {
                            Ok(thread) => threads.extend(thread),
                            Err(_) => self.connections.wait_for_stop(PAUSE),
                        }
                    }
                }
                Err(e) if is_about_one_connection(&e) => {}
                Err(_) => {
                    self.connections.close_an_idle_one();
                    self.connections.wait_for_stop(PAUSE);
                }
            }
        }
        self.connections.set_accepting(false);
        join(&mut threads, |_| true);
    }

    /// Starts the thread of a connection. Returns `None` after a stop.
    fn start(&self, stream: TcpStream, answers: &Arc<dyn Answers>) -> io::Result<Option<JoinHandle<()>>> {
        let Some(connection) = self.connections.add(stream) else { return Ok(None) };
        let guard = Arc::clone(&self.guard);
        let answers = Arc::clone(answers);
        let limits = self.limits;
        // Linux shows 15 bytes of the name.
        let name = format!("tfseek-{}", self.address.port());
        let thread = thread::Builder::new().name(name).spawn(move || {
            // The client has gone, or it is too slow. There is no one to report to.
            let _ = hold(&connection, &limits, &|parsed| respond(&guard, &*answers, parsed));
        })?;
        Ok(Some(thread))
    }
}

/// Returns the response to a request that was parsed.
fn respond(guard: &Guard, answers: &dyn Answers, parsed: &Parsed) -> Response {
    match guard.admit(parsed) {
        Admission::Answer(response) => response,
        Admission::Page => assets::answer(&parsed.request),
        Admission::Api => answers.answer(&parsed.request).restricted(),
    }
}

/// Joins the threads of which `which` is true.
fn join(threads: &mut Vec<JoinHandle<()>>, which: impl Fn(&JoinHandle<()>) -> bool) {
    for thread in threads.extract_if(.., |thread| which(thread)) {
        // A panic was reported by its thread, and its connection is closed.
        let _ = thread.join();
    }
}

fn listen(host: IpAddr, port: u16) -> io::Result<TcpListener> {
    let address = SocketAddr::new(host, port);
    TcpListener::bind(address)
        .map_err(|e| io::Error::new(e.kind(), format!("cannot listen on {address}: {e}")))
}

/// Returns whether `accept` can be called again at once.
fn is_about_one_connection(e: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(e.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// A handle that stops a [`Viewer`](crate::Viewer) from another thread.
#[derive(Clone)]
pub struct ViewerHandle {
    connections: Arc<Connections>,
    address: SocketAddr,
}

impl fmt::Debug for ViewerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ViewerHandle")
    }
}

impl ViewerHandle {
    /// Stops the viewer: [`Viewer::serve`](crate::Viewer::serve) returns, and all connections end. Answers
    /// that are being made end first.
    pub fn stop(&self) {
        self.connections.stop();
        // A connection of our own wakes the thread that waits for one. It may fail while descriptors are
        // missing, so it is repeated.
        for _ in 0..100 {
            if self.connections.wait_for_end(Duration::ZERO) {
                return;
            }
            let _ = TcpStream::connect_timeout(&self.address, PAUSE);
            self.connections.wait_for_end(PAUSE);
        }
    }
}
