//! A world of stores, caches and processes in one thread at a time, with a clock of its own. Everything that
//! happens in it follows from a seed, so a failure can be had again.
//!
//! Processes are the product: data sets, loaders and [`RemoteStore`](crate::RemoteStore)s with a cache on
//! disk. What they wait for is this module's: answers of servers ([`network`]), and the turn of a thread
//! ([`turns`]). tokio's clock stands still while a thread runs, and leaps when all wait.
//!
//! `TFSEEK_WORLD=SEED cargo test -p tfseek-remote world` shows one world, and `TFSEEK_WORLDS=N` tries more.

mod network;
mod people;
mod plan;
mod shrink;
mod truth;
mod turns;

use super::server;
use crate::simulated::{self, Answered, Request, Simulated};
use network::Network;
use plan::WorldPlan;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tfseek_testkit::rng::Rng;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;
use turns::Turns;

/// The network, the processes and the turns of a world.
pub(crate) struct World {
    plan: WorldPlan,
    handle: Handle,
    network: Network,
    turns: Turns,
    processes: Mutex<Vec<Arc<Process>>>,
    /// Draws the times of the disk.
    disk: Mutex<Rng>,
    log: Mutex<Vec<String>>,
    start: Instant,
}

/// A process of the world. Nothing of a killed one runs again, also nothing that would tidy up.
#[derive(Default)]
struct Process {
    is_killed: AtomicBool,
    has_ended: AtomicBool,
    /// Number of times that its threads were woken.
    changes: AtomicUsize,
    /// Number of its requests that are under way.
    under_way: AtomicUsize,
    /// Wake its requests, which then end.
    wakers: Mutex<Vec<Waker>>,
}

impl Process {
    /// Ends its requests.
    fn end(&self) {
        self.has_ended.store(true, Relaxed);
        lock(&self.wakers).drain(..).for_each(Waker::wake);
    }
}

/// The world and the process that the thread is in.
#[derive(Clone)]
struct Here {
    world: Arc<World>,
    process: Arc<Process>,
    /// The number of the thread among those that take turns. `None` for the thread that runs requests.
    actor: Option<usize>,
}

impl Simulated for Here {
    fn pause(&self, time: Duration) {
        let actor = self.actor.expect("a thread that takes turns");
        self.world.turns.pause(actor, self.world.now() + time);
    }

    fn notify(&self) {
        self.process.changes.fetch_add(1, Relaxed);
    }

    fn disk_time(&self) -> Duration {
        Duration::from_micros(lock(&self.world.disk).below_u64(3000))
    }

    fn runtime(&self) -> (Handle, oneshot::Sender<()>) {
        let (ends, ended) = oneshot::channel();
        let process = self.process.clone();
        self.world.handle.spawn(async move {
            let _ = ended.await;
            process.end();
        });
        (self.world.handle.clone(), ends)
    }

    fn bind(&self, request: Request) -> Request {
        let here = Here { actor: None, ..self.clone() };
        Box::pin(OfProcess { here: Arc::new(here), is_known: false, request: Some(request) })
    }

    fn client(&self) -> reqwest::Client {
        static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
        CLIENT.get_or_init(network::unconnected).clone()
    }

    fn answer(&self, client: reqwest::Client, request: reqwest::Request) -> Answered {
        let here = self.clone();
        Box::pin(async move { network::answer(&here, &client, request).await })
    }
}

/// Lets others run, in a thread that takes turns.
fn pause(time: Duration) {
    simulated::here().expect("a thread of a world").pause(time);
}

/// A request of a process, which runs in its name while the process lives.
struct OfProcess {
    here: Arc<Here>,
    is_known: bool,
    /// `None` once the process has ended.
    request: Option<Request>,
}

impl Future for OfProcess {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let OfProcess { here, is_known, request } = &mut *self;
        let Some(running) = request else { return Poll::Ready(()) };
        let has_ended = here.process.has_ended.load(Relaxed);
        if here.process.is_killed.load(Relaxed) && !has_ended {
            return Poll::Pending;
        }
        let _restore = Restore::new(here.clone());
        if has_ended {
            *request = None;
            return Poll::Ready(());
        }
        if !*is_known {
            *is_known = true;
            lock(&here.process.wakers).push(context.waker().clone());
        }
        let polled = running.as_mut().poll(context);
        if polled.is_ready() {
            *request = None;
        }
        polled
    }
}

impl Drop for OfProcess {
    /// A request that is given up makes room for others, which are of the same process.
    fn drop(&mut self) {
        let _restore = Restore::new(self.here.clone());
        self.request = None;
    }
}

/// Gives the thread back where it was.
struct Restore(Option<Arc<dyn Simulated>>);

impl Restore {
    fn new(here: Arc<Here>) -> Restore {
        Restore(simulated::enter(Some(here)))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        simulated::enter(self.0.take());
    }
}

impl World {
    fn now(&self) -> Duration {
        Instant::now() - self.start
    }

    fn log(&self, line: impl FnOnce() -> String) {
        if self.plan.is_shown {
            let now = self.now().as_secs_f64();
            lock(&self.log).push(format!("{now:10.4} {}", line()));
        }
    }

    fn new_process(&self) -> Arc<Process> {
        let process = Arc::<Process>::default();
        lock(&self.processes).push(process.clone());
        process
    }
}

/// The result of a world.
#[derive(Debug)]
struct Outcome {
    log: Vec<String>,
    /// The first thing that was wrong.
    failure: Option<String>,
    /// Its time, and numbers of requests and of batches and records that were compared.
    time: Duration,
    requests: usize,
    compared: u64,
}

/// Runs a world to its end.
fn run(plan: &WorldPlan) -> Outcome {
    // Waits for the disk are no part of a world.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let entered = runtime.enter();
    let world = Arc::new(World {
        network: Network::new(plan),
        handle: runtime.handle().clone(),
        turns: Turns::new(plan.seed),
        processes: Mutex::default(),
        disk: Mutex::new(Rng::new(plan.seed ^ 1)),
        log: Mutex::default(),
        start: Instant::now(),
        plan: plan.clone(),
    });
    drop(entered);
    let mut failure = people::live(&world, &runtime, folder.path());
    let _entered = runtime.enter();
    if failure.is_none() {
        failure = checked_at_end(&world, folder.path());
    }
    let time = world.now();
    let log = std::mem::take(&mut *lock(&world.log));
    Outcome { log, failure, time, requests: world.network.requests(), compared: world.turns.steps() }
}

/// Returns what is wrong once all processes have ended.
fn checked_at_end(world: &World, folder: &Path) -> Option<String> {
    if let Some(wrong) = world.network.wrong() {
        return Some(wrong);
    }
    let (_, bytes) = crate::disk::content(&folder.join("cache"));
    let processes = lock(&world.processes).len() as u64;
    // Each process may add a sixteenth before it looks at the files of the others.
    let most = world.plan.cache_bytes + (world.plan.cache_bytes / 16 + (1 << 16)) * processes;
    (bytes > most).then(|| format!("the cache has {bytes} bytes of {}", world.plan.cache_bytes))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn batches_are_right_in_worlds_with_faults() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    if let Some(seed) = number("TFSEEK_WORLD") {
        return shrink::show(seed);
    }
    shrink::judge(0..number("TFSEEK_WORLDS").unwrap_or(200));
}

#[test]
#[ignore = "minutes: `make test-slow`"]
fn batches_are_right_in_many_worlds() {
    shrink::judge(1_000_000..1_100_000);
}

#[test]
fn a_seed_is_one_world() {
    for seed in 0..4 {
        let plan = WorldPlan { is_shown: true, ..WorldPlan::new(seed) };
        let [first, second] = [(); 2].map(|()| run(&plan));
        assert_eq!(first.log, second.log, "seed {seed}");
        assert!(first.compared > 0 && first.requests > 0, "seed {seed}: {first:?}");
    }
}
