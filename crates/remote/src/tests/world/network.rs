//! Servers of buckets and the way to them: latencies, a link that all share, and faults.

use super::plan::{Fault, Host, WorldPlan};
use super::server::{Request, Shared, Stored};
use super::{Here, World, lock};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Body, Client, Response};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tfseek_testkit::rng::Rng;
use tokio::time::{Instant, sleep, sleep_until};

/// Bytes of a body that arrive together.
const CHUNK: usize = 4 << 10;
/// Longer than any deadline.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);
/// The longest time of an exchange: a connection, the head and a body of a few 64 KiB at the least pace.
const LONGEST: Duration = Duration::from_secs(300);

pub(super) struct Network {
    servers: [Shared; 2],
    rng: Mutex<Rng>,
    /// Number of requests so far.
    requests: AtomicUsize,
    /// When the link is free again.
    free: Mutex<Option<Instant>>,
    faults: HashMap<usize, Fault>,
    /// Numbers of flipped bits, of wrong answers, and of connections that were refused.
    flips: AtomicUsize,
    wrong_answers: AtomicUsize,
    refusals: AtomicUsize,
    /// The first thing that no client may do.
    wrong: Mutex<Option<String>>,
}

impl Network {
    pub(super) fn new(plan: &WorldPlan) -> Network {
        Network {
            servers: [(); 2].map(|()| Shared::new()),
            rng: Mutex::new(Rng::new(plan.seed ^ 3)),
            requests: AtomicUsize::new(0),
            free: Mutex::default(),
            faults: plan.faults.iter().copied().collect(),
            flips: AtomicUsize::new(0),
            wrong_answers: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
            wrong: Mutex::default(),
        }
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.load(Relaxed)
    }

    pub(super) fn flips(&self) -> usize {
        self.flips.load(Relaxed)
    }

    pub(super) fn was_wrong(&self) -> bool {
        self.wrong_answers.load(Relaxed) > 0
    }

    pub(super) fn refusals(&self) -> usize {
        self.refusals.load(Relaxed)
    }

    pub(super) fn wrong(&self) -> Option<String> {
        lock(&self.wrong).clone()
    }

    /// Changes the bytes of a range as a fault does.
    fn change(&self, fault: Option<Fault>, body: &mut Vec<u8>) {
        match fault {
            Some(Fault::Short(less)) if less < body.len() => body.truncate(body.len() - less),
            Some(Fault::Flip(at)) if !body.is_empty() => {
                let at = at % body.len();
                body[at] ^= 1;
                self.flips.fetch_add(1, Relaxed);
            }
            _ => {}
        }
    }

    /// Writes an object of a server, or removes it.
    pub(super) fn set(&self, host: Host, name: &str, stored: Option<Stored>) {
        let mut state = self.servers[host].state();
        match stored {
            Some(stored) => _ = state.objects.insert(name.to_owned(), stored),
            None => _ = state.objects.remove(name),
        }
    }
}

/// A request that is under way. At its end, its time is looked at.
struct Exchange {
    here: Here,
    number: usize,
    since: Instant,
}

impl Exchange {
    fn new(here: &Here, number: usize) -> Exchange {
        let under_way = here.process.under_way.fetch_add(1, Relaxed) + 1;
        // Those that a thread waits for are made beside as many others. Each of two threads may list.
        let most = here.world.plan.most_requests() * 2 + 4;
        if under_way > most {
            let text = format!("{under_way} requests are under way, and not {most}");
            lock(&here.world.network.wrong).get_or_insert(text);
        }
        Exchange { here: here.clone(), number, since: Instant::now() }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.here.process.under_way.fetch_sub(1, Relaxed);
        let time = self.since.elapsed();
        // Requests of a killed process are dropped when the world ends.
        let is_killed = self.here.process.is_killed.load(Relaxed);
        if time > LONGEST && !is_killed && !self.here.world.turns.is_over() {
            let text = format!("request {} had {time:?}, and no deadline", self.number);
            lock(&self.here.world.network.wrong).get_or_insert(text);
        }
    }
}

/// Answers a request as the plan of the world says.
pub(super) async fn answer(
    here: &Here,
    client: &Client,
    request: reqwest::Request,
) -> reqwest::Result<Response> {
    let world = &here.world;
    let network = &world.network;
    let number = network.requests.fetch_add(1, Relaxed);
    let exchange = Exchange::new(here, number);
    let fault = network.faults.get(&number).copied();
    let host: Host = usize::from(request.url().host_str() == Some("two.test"));
    let mut asked = asked(&request);
    let range = asked.header("range").unwrap_or_default().to_owned();
    world.log(|| format!("request {number} {} {range} to server {host}, {fault:?}", asked.line()));
    let micros = 1000 + lock(&network.rng).below_u64(80_000);
    sleep(Duration::from_micros(micros)).await;
    if !world.plan.has_if_match {
        asked = asked.without("if-match");
    }
    let server = &network.servers[host];
    network.wrong_answers.fetch_add(usize::from(fault.is_some_and(Fault::is_of_server)), Relaxed);
    let answer = match fault {
        Some(Fault::Refused) => {
            network.refusals.fetch_add(1, Relaxed);
            return client.execute(request).await;
        }
        Some(Fault::Silent) => {
            sleep(FOR_EVER).await;
            server.answer(&asked)
        }
        Some(Fault::Busy(status, pause)) => {
            super::server::error(status, "Busy").with("retry-after", pause.to_string())
        }
        Some(Fault::OtherRange) => server.answer(&asked.with("range", "bytes=1-2")),
        Some(Fault::Whole) => server.answer(&asked.without("range")),
        Some(Fault::Part(bytes)) => server.answer(&asked.shorter(bytes)),
        _ => server.answer(&asked),
    };
    let is_head = asked.method == "HEAD";
    let mut answer = answer;
    if answer.status == 206 {
        network.change(fault, &mut answer.body);
    }
    let mut head = http::Response::builder().status(answer.status);
    let len = answer.head_len.filter(|_| is_head).unwrap_or(answer.body.len());
    head = head.header("content-length", len);
    for (name, value) in answer.headers.iter().filter(|(_, value)| !value.is_empty()) {
        head = head.header(*name, value);
    }
    let body = if is_head { Vec::new() } else { answer.body };
    let sent = Sent { world: world.clone(), _exchange: exchange, body, at: 0, fault };
    let body = Body::wrap(StreamBody::new(stream::unfold(sent, Sent::next)));
    Ok(head.body(body).unwrap().into())
}

/// Returns a request as servers see it.
fn asked(request: &reqwest::Request) -> Request {
    let headers = request.headers().iter();
    let headers: BTreeMap<String, String> =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    let url = request.url();
    let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
    Request::new(request.method().as_str(), &target, headers, body.to_vec())
}

/// A body on its way.
struct Sent {
    world: Arc<World>,
    _exchange: Exchange,
    body: Vec<u8>,
    at: usize,
    fault: Option<Fault>,
}

impl Sent {
    /// Sends the next bytes.
    async fn next(mut self) -> Option<(io::Result<Frame<Bytes>>, Sent)> {
        let mut len = CHUNK.min(self.body.len() - self.at);
        match self.fault {
            // A body whose bytes have all come is at its end.
            Some(Fault::Reset(after)) if self.at >= after && len > 0 => {
                self.fault = None;
                self.at = self.body.len();
                return Some((Err(io::ErrorKind::ConnectionReset.into()), self));
            }
            Some(Fault::Stall(after)) if self.at >= after && len > 0 => sleep(FOR_EVER).await,
            Some(Fault::Drip) => {
                sleep(Duration::from_secs(1)).await;
                len = len.min(1);
            }
            _ => {}
        }
        if len == 0 {
            return None;
        }
        let passed = {
            let mut free = lock(&self.world.network.free);
            let now = Instant::now();
            let time = Duration::from_nanos(len as u64 * 1_000_000_000 / self.world.plan.rate);
            let passed = free.unwrap_or(now).max(now) + time;
            *free = Some(passed);
            passed
        };
        sleep_until(passed).await;
        let bytes = Bytes::copy_from_slice(&self.body[self.at..self.at + len]);
        self.at += len;
        Some((Ok(Frame::data(bytes)), self))
    }
}

/// Finds no server.
struct NoNames;

impl Resolve for NoNames {
    fn resolve(&self, _: Name) -> Resolving {
        let none: Result<Addrs, Box<dyn std::error::Error + Send + Sync>> =
            Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        Box::pin(async { none })
    }
}

/// Returns a client that fails to connect.
pub(super) fn unconnected() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().dns_resolver(Arc::new(NoNames)).no_proxy().build().unwrap()
}
