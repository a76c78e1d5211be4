//! A server on this machine that behaves as S3, Google Cloud Storage, Azure, a web server and the Hugging
//! Face hub do, with faults by script. It counts requests and bytes.
//!
//! Objects are at `/BUCKET/KEY` in all of them. Those of the bucket `hub` are also the files of the
//! repository `owner/name`.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

mod answers;
mod buckets;
mod hub;
mod link;
mod requests;

pub(crate) use answers::{error, http_time, time_ns};
pub(crate) use requests::Request;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A fault of a request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// This status, with the code `Scripted`.
    Status(u16),
    /// The connection ends after this number of bytes of the body.
    Reset(usize),
    /// Nothing is sent for so long, then the connection ends.
    Stall(Duration),
    /// Nothing is sent until the client ends the connection.
    Hold,
    /// This is sent again and again, with a pause, until the client ends the connection: first the head of an
    /// answer, then its parts.
    Endless(String, String, Duration),
    /// This is sent, and then the connection ends.
    Raw(&'static str),
    /// This answer, with a header.
    Answer(u16, Vec<u8>, (&'static str, String)),
    /// The whole object instead of a range.
    Whole,
    /// Another range than the requested one.
    OtherRange,
    /// Only this number of bytes of the range, and the answer says so.
    Part(usize),
    /// The connection ends after all bytes, and before the end of a body without a length.
    NoEnd,
    /// The body is shorter by this number of bytes, and its length says so.
    Short(usize),
    /// The lowest bit of a byte of the body is flipped.
    Flip(usize),
    /// The object is replaced before it is read.
    Replace(Vec<u8>),
    /// The same, and the server reads no `If-Match`.
    ReplaceUnseen(Vec<u8>),
}

/// A fault of requests.
struct Planned {
    /// Text that is in the first line of a request.
    of: String,
    fault: Fault,
    /// How often.
    left: usize,
}

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) tag: String,
    /// Seconds since 1970.
    pub(crate) time: u64,
}

/// Numbers of requests and bytes of bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) lists: u64,
    pub(crate) heads: u64,
    pub(crate) gets: u64,
    pub(crate) puts: u64,
    /// Requests that are signed or have a token.
    pub(crate) signed: u64,
    pub(crate) resolves: u64,
    pub(crate) bytes: u64,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<String, Stored>,
    /// Number of objects that were written.
    pub(crate) writes: u64,
    pub(crate) counts: Counts,
    faults: Vec<Planned>,
    /// Buckets that need a login.
    pub(crate) private: BTreeSet<String>,
    /// Number of objects in a page of a listing.
    pub(crate) page: usize,
    /// The first lines of all requests, and the logins in them.
    pub(crate) log: Vec<String>,
    /// Signed addresses of the hub with smaller numbers have expired.
    pub(crate) expired: u64,
    pub(crate) signatures: u64,
    /// True if servers answer ranges only, and no HEAD.
    pub(crate) no_head: bool,
    /// True if buckets may not be listed. What does not exist is then refused.
    pub(crate) no_lists: bool,
}

/// Answers that wait for one another, so that the number of requests at a time does not depend on the speed
/// of the machine.
#[derive(Default)]
struct Gathering {
    /// Number of requests that are answered at once, and then of those that have to be under way at a time
    /// before one is answered.
    left: Mutex<[u64; 2]>,
    changed: Condvar,
}

impl Gathering {
    /// Waits until there are enough requests. A client that makes fewer waits for a minute.
    fn wait(&self, running: impl Fn() -> u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left[1] == 0 {
            return;
        }
        if left[0] > 0 {
            left[0] -= 1;
            return;
        }
        if running() >= left[1] {
            left[1] = 0;
            self.changed.notify_all();
        }
        let minute = Duration::from_secs(60);
        let _ = self.changed.wait_timeout_while(left, minute, |left| left[1] > 0);
    }
}

pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    /// Milliseconds before each answer.
    latency: AtomicU64,
    gathering: Gathering,
    link: link::Link,
    /// Number of requests that are not answered yet, and the largest one so far.
    running: AtomicU64,
    /// Number of answers whose bytes are not counted yet.
    sending: AtomicU64,
    most: AtomicU64,
    ended: AtomicBool,
}

/// A running server. It ends when this value is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

/// The login that private buckets accept.
pub(crate) const KEY: &str = "AKIDTEST";
pub(crate) const SECRET: &str = "not-to-be-shown";
pub(crate) const TOKEN: &str = "hf_not-to-be-shown";

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::new());
        let accepting = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.ended.load(Relaxed) {
                    return;
                }
                let (Ok(stream), shared) = (stream, accepting.clone()) else { continue };
                thread::spawn(move || shared.serve(stream));
            }
        });
        Server { address, shared }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Writes an object, `BUCKET/KEY`, without a request.
    pub(crate) fn set(&self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.state().set(name, bytes.into());
    }

    /// Writes an object with the tag and the time of another one.
    pub(crate) fn set_alike(&self, name: &str, bytes: Vec<u8>, other: &Stored) {
        let stored = Stored { bytes: Arc::new(bytes), ..other.clone() };
        self.state().objects.insert(name.to_owned(), stored);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Stored> {
        self.state().objects.get(name).cloned()
    }

    pub(crate) fn remove(&self, name: &str) {
        self.state().objects.remove(name);
    }

    /// Makes this number of requests fail whose first line has this text.
    pub(crate) fn fail(&self, of: &str, fault: Fault, times: usize) {
        self.state().faults.push(Planned { of: of.to_owned(), fault, left: times });
    }

    /// Number of scripted faults that did not occur.
    pub(crate) fn faults_left(&self) -> usize {
        self.state().faults.iter().map(|planned| planned.left).filter(|left| *left < 1000).sum()
    }

    pub(crate) fn clear_faults(&self) {
        self.state().faults.clear();
    }

    pub(crate) fn private(&self, bucket: &str) {
        self.state().private.insert(bucket.to_owned());
    }

    pub(crate) fn page(&self, objects: usize) {
        self.state().page = objects;
    }

    pub(crate) fn latency(&self, latency: Duration) {
        self.shared.latency.store(latency.as_millis() as u64, Relaxed);
    }

    /// After this number of requests, holds all answers until so many requests are under way at a time.
    pub(crate) fn gather(&self, after: u64, requests: u64) {
        *self.shared.gathering.left.lock().unwrap() = [after, requests];
    }

    /// Waits until this number of requests is under way.
    pub(crate) fn wait_for_running(&self, requests: u64) {
        let since = Instant::now();
        while self.running() != requests {
            assert!(since.elapsed() < Duration::from_secs(600), "{} requests are under way", self.running());
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sets the bytes per second of all connections together, and of one. 0: without a limit.
    pub(crate) fn rates(&self, link: u64, connection: u64) {
        self.shared.link.set(link, connection);
    }

    /// Returns the number of requests that are not answered yet.
    pub(crate) fn running(&self) -> u64 {
        self.shared.running.load(Relaxed)
    }

    /// Returns the largest number of requests that were under way at a time since the last call.
    pub(crate) fn most_at_once(&self) -> u64 {
        self.shared.most.swap(0, Relaxed)
    }

    pub(crate) fn expire_signatures(&self) {
        let mut state = self.state();
        state.expired = state.signatures + 1;
    }

    pub(crate) fn refuse_lists(&self) {
        self.state().no_lists = true;
    }

    pub(crate) fn refuse_heads(&self) {
        self.state().no_head = true;
    }

    /// Returns the counts since the last call. A client may have an answer before its bytes are counted, so
    /// this waits for them, a while.
    pub(crate) fn counts(&self) -> Counts {
        for _ in 0..200 {
            if self.shared.sending.load(SeqCst) == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        std::mem::take(&mut self.state().counts)
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ended.store(true, Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    pub(crate) fn set(&mut self, name: &str, bytes: Vec<u8>) -> Stored {
        self.writes += 1;
        let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        // 2024-01-01 and a second for each object.
        let (tag, time) = (format!("\"{sum:016x}-{}\"", self.writes), 1_704_067_200 + self.writes);
        let stored = Stored { bytes: Arc::new(bytes), tag, time };
        self.objects.insert(name.to_owned(), stored.clone());
        stored
    }

    /// Returns the next fault of a request.
    fn fault(&mut self, request: &Request) -> Option<Fault> {
        let line = request.line();
        let planned =
            self.faults.iter_mut().find(|planned| planned.left > 0 && line.contains(&planned.of))?;
        planned.left -= 1;
        Some(planned.fault.clone())
    }
}

/// A request that is not answered yet.
struct Running<'s>(&'s Shared);

impl Running<'_> {
    fn new(shared: &Shared) -> Running<'_> {
        let now = shared.running.fetch_add(1, Relaxed) + 1;
        shared.most.fetch_max(now, Relaxed);
        Running(shared)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

impl Shared {
    /// Returns a server without a listener.
    pub(crate) fn new() -> Shared {
        let [latency, running, sending, most] = [0; 4].map(AtomicU64::new);
        Shared {
            state: Mutex::new(State { page: 1000, ..State::default() }),
            latency,
            gathering: Gathering::default(),
            link: link::Link::default(),
            running,
            sending,
            most,
            ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the requests of a connection.
    fn serve(&self, mut stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut rest = Vec::new();
        while let Some(request) = Request::read(&mut stream, &mut rest) {
            if self.ended.load(Relaxed) {
                return;
            }
            let running = Running::new(self);
            thread::sleep(Duration::from_millis(self.latency.load(Relaxed)));
            self.gathering.wait(|| self.running.load(Relaxed));
            let fault = {
                let mut state = self.state();
                state.counts.requests += 1;
                state.counts.signed += u64::from(request.header("authorization").is_some());
                let login = request.header("authorization").unwrap_or("anonymous");
                let payer = request.header("x-goog-user-project").map(|payer| format!(" payer={payer}"));
                state.log.push(format!("{} {login}{}", request.line(), payer.unwrap_or_default()));
                state.fault(&request)
            };
            if let Some(Fault::Replace(bytes) | Fault::ReplaceUnseen(bytes)) = &fault {
                self.state().set(&request.object(), bytes.clone());
            }
            if let Some(Fault::Stall(time)) = fault {
                thread::sleep(time);
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            match &fault {
                Some(Fault::Hold) => {
                    let _ = stream.read(&mut [0]);
                    return;
                }
                Some(Fault::Endless(head, part, pause)) => {
                    let mut sent = stream.write_all(head.as_bytes());
                    while sent.is_ok() {
                        sent = stream.write_all(part.as_bytes());
                        thread::sleep(*pause);
                    }
                    return;
                }
                Some(Fault::Raw(bytes)) => {
                    let _ = stream.write_all(bytes.as_bytes());
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
                _ => {}
            }
            let mut answer = match &fault {
                Some(Fault::Answer(status, body, (name, value))) => {
                    answers::answer(*status, body.clone()).with(name, value.clone())
                }
                Some(Fault::Status(status)) => answers::error(*status, "Scripted"),
                Some(Fault::Whole) => self.answer(&request.without("range")),
                Some(Fault::ReplaceUnseen(_)) => self.answer(&request.without("if-match")),
                Some(Fault::Part(bytes)) => self.answer(&request.shorter(*bytes)),
                Some(Fault::OtherRange) => self.answer(&request.with("range", "bytes=1-2")),
                _ => self.answer(&request),
            };
            let mut end = None;
            match &fault {
                Some(Fault::Short(less)) => {
                    answer.body.truncate(answer.body.len().saturating_sub(*less));
                }
                Some(Fault::Flip(at)) => {
                    if let Some(byte) = answer.body.get_mut(*at) {
                        *byte ^= 1;
                    }
                }
                Some(Fault::Reset(after)) => end = Some(*after),
                _ => {}
            }
            // A client that has an answer may make the next request before this thread goes on.
            let running = Some(running).filter(|_| self.link.is_limited());
            self.sending.fetch_add(1, SeqCst);
            let is_ended = !matches!(fault, Some(Fault::NoEnd));
            let sent = match is_ended {
                true => answer.send(&mut stream, &self.link, request.method == "HEAD", end),
                false => answer.send_without_end(&mut stream),
            };
            drop(running);
            self.state().counts.bytes += sent.unwrap_or(0);
            self.sending.fetch_sub(1, SeqCst);
            if sent.is_none() || end.is_some() || !is_ended {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    pub(crate) fn answer(&self, request: &Request) -> answers::Answer {
        let path = request.path.as_str();
        if path.starts_with("/api/") || path.starts_with("/datasets/") || path.starts_with("/signed/") {
            return self.hub(request);
        }
        if path.starts_with("/latest/") {
            return buckets::metadata(request);
        }
        self.bucket(request)
    }
}
