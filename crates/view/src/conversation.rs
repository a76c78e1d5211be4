//! The requests and responses of one connection.

use crate::connections::{Connection, Phase, is_timeout};
use crate::http::{BadRequest, Parsed, Request, Response};
use std::io::{self, Read};
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Bytes of a refused request that are read and dropped.
const MAX_DROPPED: usize = 256 << 10;

/// Limits of a server. Tests use smaller ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Number of connections.
    pub(crate) connections: usize,
    /// From the first byte of a head to its last one, and from the start of a connection to its first byte.
    pub(crate) head: Duration,
    /// Between a response and the next head.
    pub(crate) idle: Duration,
    /// Longest write without progress.
    pub(crate) write: Duration,
    /// From a refused request to the end of its connection.
    pub(crate) linger: Duration,
    /// Validity of a ticket.
    pub(crate) ticket: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 64,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            write: Duration::from_secs(10),
            linger: Duration::from_secs(1),
            ticket: Duration::from_secs(60),
        }
    }
}

/// Answers the requests of a connection until one side ends it. A panic becomes a response with status 500.
pub(crate) fn hold(
    connection: &Connection,
    limits: &Limits,
    respond: &dyn Fn(&Parsed) -> Response,
) -> io::Result<()> {
    let mut stream = connection.stream();
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(limits.write))?;
    let mut input = Input::default();
    loop {
        let parsed = match input.head(connection, limits) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return Ok(()),
            Err(Failure::Refused(bad)) => {
                connection.begin(Phase::Answer);
                Response::from(bad).write(&mut stream, false, false)?;
                return linger(connection, limits);
            }
            Err(Failure::Io(e)) => return Err(e),
        };
        connection.begin(Phase::Answer);
        let response = catch_unwind(AssertUnwindSafe(|| respond(&parsed)))
            .unwrap_or_else(|_| Response::error(500, "this answer failed: the reason is in the terminal"));
        let keep_alive = parsed.keep_alive && response.held.is_none();
        response.write(&mut stream, parsed.request.is_head, keep_alive)?;
        if response.held.is_some() && !parsed.request.is_head {
            return wait_for_client(connection);
        }
        if !keep_alive {
            return Ok(());
        }
    }
}

/// Waits until the client ends the connection, for any time: a machine that sleeps sends nothing.
fn wait_for_client(connection: &Connection) -> io::Result<()> {
    connection.begin(Phase::Held);
    let mut stream = connection.stream();
    stream.set_read_timeout(None)?;
    let mut dropped = [0; 64];
    loop {
        match stream.read(&mut dropped) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Ends the output, and reads what still arrives. Closing a connection with unread bytes would delete the
/// response on its way.
fn linger(connection: &Connection, limits: &Limits) -> io::Result<()> {
    connection.begin(Phase::Idle);
    let mut stream = connection.stream();
    stream.shutdown(Shutdown::Write)?;
    let end = Instant::now() + limits.linger;
    let mut dropped = 0;
    let mut chunk = [0; 4096];
    while dropped < MAX_DROPPED {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk)? {
            0 => break,
            n => dropped += n,
        }
    }
    Ok(())
}

/// The reason why there is no next request.
enum Failure {
    Refused(BadRequest),
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        Failure::Io(e)
    }
}

/// Bytes that have arrived and were not parsed. They are the start of a head, or several requests.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    /// The end of the last head in `bytes`.
    start: usize,
    /// The connection has had a request.
    used: bool,
}

impl Input {
    /// Reads the next head. Returns `None` if the connection ends before its first byte, or if it is idle for
    /// too long.
    fn head(&mut self, connection: &Connection, limits: &Limits) -> Result<Option<Parsed>, Failure> {
        let mut begun = Instant::now();
        if let Some(parsed) = self.parse()? {
            return Ok(Some(parsed));
        }
        self.bytes.drain(..self.start);
        self.start = 0;
        let is_idle = self.bytes.is_empty() && self.used;
        connection.begin(if is_idle { Phase::Idle } else { Phase::Head });
        let mut limit = if is_idle { limits.idle } else { limits.head };
        let mut stream = connection.stream();
        let mut chunk = [0; 4096];
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return if self.bytes.is_empty() {
                    Ok(None)
                } else {
                    Err(Failure::Refused(BadRequest {
                        status: 408,
                        message: "the head of the request took too long".to_owned(),
                    }))
                };
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut chunk) {
                // A head that is cut off has no response, because its sender has gone.
                Ok(0) => return Ok(None),
                Ok(n) => {
                    if self.bytes.is_empty() {
                        begun = Instant::now();
                        limit = limits.head;
                        connection.begin(Phase::Head);
                    }
                    let (arrived, _) = chunk.split_at(n);
                    self.bytes.extend_from_slice(arrived);
                    if let Some(parsed) = self.parse()? {
                        return Ok(Some(parsed));
                    }
                }
                Err(e) if is_timeout(&e) || e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn parse(&mut self) -> Result<Option<Parsed>, Failure> {
        let (_, rest) = self.bytes.split_at(self.start);
        let parsed = Request::parse(rest).map_err(Failure::Refused)?;
        if let Some(parsed) = &parsed {
            self.start += parsed.len;
            self.used = true;
        }
        Ok(parsed)
    }
}
