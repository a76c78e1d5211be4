//! The turns of threads: one runs at a time, and the seed draws which. Where none of them can go on, time
//! passes.

use super::{Process, World, lock};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tfseek_testkit::rng::Rng;
use tokio::runtime::Runtime;

/// The longest time that a world may take. One that takes longer makes no progress.
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// The longest time that threads wait more than they asked for, and by how much it grows where none of them does
/// anything.
const LEAP: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_millis(5);

/// Whose turn it is, and the threads that take turns.
pub(super) struct Turns {
    state: Mutex<State>,
    given_back: Condvar,
    rng: Mutex<Rng>,
    /// Number of things that threads have done.
    steps: AtomicU64,
}

#[derive(Default)]
struct State {
    /// `None` while requests run.
    holder: Option<usize>,
    actors: Vec<Actor>,
    is_over: bool,
}

struct Actor {
    process: Arc<Process>,
    /// Wakes it.
    given: Arc<Condvar>,
    thread: Option<JoinHandle<()>>,
    /// The time at which it looks again at the latest, and the changes in its process that it has seen.
    until: Duration,
    seen: usize,
    /// What it ended with.
    end: Option<Result<(), String>>,
}

/// The threads that may go on, and the time at which the next of the others may.
type ReadyThreads = (Vec<usize>, Option<Duration>);

/// Ends a thread whose world is over.
struct Over;

impl Turns {
    pub(super) fn new(seed: u64) -> Turns {
        Turns {
            state: Mutex::default(),
            given_back: Condvar::new(),
            rng: Mutex::new(Rng::new(seed ^ 2)),
            steps: AtomicU64::new(0),
        }
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Relaxed)
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).is_over
    }

    /// Notes that a thread has done something.
    pub(super) fn step(&self) {
        self.steps.fetch_add(1, Relaxed);
    }

    /// Ends the turn of a thread, and returns when it has the next one.
    pub(super) fn pause(&self, actor: usize, until: Duration) {
        let mut state = lock(&self.state);
        let waiting = &mut state.actors[actor];
        waiting.until = until;
        waiting.seen = waiting.process.changes.load(Relaxed);
        state.holder = None;
        self.given_back.notify_one();
        self.wait(state, actor);
    }

    /// Waits for a thread's turn.
    fn wait(&self, state: std::sync::MutexGuard<'_, State>, actor: usize) {
        let given = state.actors[actor].given.clone();
        let state = given.wait_while(state, |state| state.holder != Some(actor)).unwrap();
        let is_over = state.is_over;
        drop(state);
        if is_over && !std::thread::panicking() {
            resume_unwind(Box::new(Over));
        }
    }

    /// Adds a thread of a process. It waits for its turn.
    pub(super) fn add(
        world: &Arc<World>,
        process: &Arc<Process>,
        work: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) {
        let mut state = lock(&world.turns.state);
        let actor = state.actors.len();
        let here = super::Here { world: world.clone(), process: process.clone(), actor: Some(actor) };
        let thread = std::thread::spawn(move || {
            let world = here.world.clone();
            let _entered = world.handle.enter();
            crate::simulated::enter(Some(Arc::new(here)));
            let run = AssertUnwindSafe(|| {
                world.turns.wait(lock(&world.turns.state), actor);
                work()
            });
            let end =
                catch_unwind(run).unwrap_or_else(|e| if e.is::<Over>() { Ok(()) } else { Err(text(&*e)) });
            crate::simulated::enter(None);
            let mut state = lock(&world.turns.state);
            state.actors[actor].end = Some(end);
            state.holder = None;
            world.turns.given_back.notify_one();
        });
        let (process, thread) = (process.clone(), Some(thread));
        let given = Arc::default();
        state.actors.push(Actor { process, given, thread, until: Duration::ZERO, seen: 0, end: None });
    }

    /// Gives a thread its turn, and waits for the end of it.
    fn give(&self, actor: usize) {
        let mut state = lock(&self.state);
        state.holder = Some(actor);
        state.actors[actor].given.notify_one();
        drop(self.given_back.wait_while(state, |state| state.holder.is_some()).unwrap());
    }

    /// Runs all threads to their ends. `next` does what is due, and returns the time of what comes then.
    ///
    /// # Errors
    /// What a thread panicked with; a world without progress.
    pub(super) fn run(
        &self,
        world: &World,
        runtime: &Runtime,
        mut next: impl FnMut(Duration) -> Option<Duration>,
    ) -> Result<(), String> {
        // Where nothing goes on, threads look more and more seldom.
        let mut patience = Duration::ZERO;
        loop {
            let now = {
                let _entered = runtime.enter();
                world.now()
            };
            let event = next(now);
            let Some((ready, until)) = self.ready(now, patience)? else { return Ok(()) };
            if now > LONGEST {
                return Err(format!("no end after {} hours", now.as_secs() / 3600));
            }
            let mut rng = lock(&self.rng);
            if !ready.is_empty() && rng.chance(220) {
                let actor = rng.pick(&ready);
                drop(rng);
                let before = self.steps();
                self.give(actor);
                let is_idle = self.steps() == before;
                patience = if is_idle { LEAP.min(patience + IDLE) } else { Duration::ZERO };
                continue;
            }
            let mut time = Duration::from_micros(500 << rng.below(7));
            drop(rng);
            for other in event.into_iter().chain(until) {
                if other > now {
                    time = time.min(other - now);
                }
            }
            runtime.block_on(async { tokio::time::sleep(time).await });
        }
    }

    /// Returns the threads that may go on, and the time at which the next of the others may. `None` if all
    /// have ended.
    ///
    /// # Errors
    /// What a thread panicked with.
    fn ready(&self, now: Duration, patience: Duration) -> Result<Option<ReadyThreads>, String> {
        let state = lock(&self.state);
        let mut ready = Vec::new();
        let mut next: Option<Duration> = None;
        let mut is_over = true;
        for (k, actor) in state.actors.iter().enumerate() {
            match &actor.end {
                Some(Err(failure)) => return Err(failure.clone()),
                None if !actor.process.is_killed.load(Relaxed) => is_over = false,
                _ => continue,
            }
            let until = actor.until + patience;
            if actor.seen != actor.process.changes.load(Relaxed) || until <= now {
                ready.push(k);
            } else {
                next = Some(next.map_or(until, |next| next.min(until)));
            }
        }
        Ok((!is_over).then_some((ready, next)))
    }

    /// Ends all threads.
    pub(super) fn end(&self, world: &World, runtime: &Runtime) {
        lock(&self.state).is_over = true;
        // Also those of killed processes, whose threads end here.
        lock(&world.processes).iter().for_each(|process| process.end());
        let actors = lock(&self.state).actors.len();
        for actor in 0..actors {
            let thread = {
                let mut state = lock(&self.state);
                state.actors[actor].thread.take()
            };
            while lock(&self.state).actors[actor].end.is_none() {
                self.give(actor);
                // What it drops may wait for requests.
                runtime.block_on(async { tokio::time::sleep(IDLE).await });
            }
            thread.map(JoinHandle::join);
        }
    }
}

/// Returns the text of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
