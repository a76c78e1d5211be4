//! The bounded queue between planner, workers and consumer. Batches leave in the order of their tickets.
//!
//! A [`QueueState`] is a state machine without threads or a clock, so that a test can try every possible
//! order of its calls. [`BoundedQueue`] puts a lock around it.
//!
//! ```text
//! workers:  draw a ticket -> plan -> take the next plan -> make -> next -> consumer
//! planner:  draw a ticket -> plan, and request ahead
//! ```
//!
//! A ticket is the number of a batch. Whoever draws it plans the batch without the lock: the workers, each
//! for itself, or with a look-ahead the planner alone. The bytes of a batch are known once it is planned, so
//! plans are taken in the order of their tickets, and only while their bytes have room. The bytes in flight
//! then have the same limit as with one planner.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of records and payload bytes of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchCost {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// The limits of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLimits {
    /// Largest number of batches in flight: being planned by a worker, being made, or made and waiting for
    /// the consumer. `None`: twice the number of working threads, at least [`MIN_BATCHES`].
    pub(super) batches: Option<usize>,
    /// Limit of their payload bytes. One batch may always be made, even if it is larger.
    pub(super) memory: u64,
    /// Limits of the plans that no worker has taken yet: records and payload bytes.
    pub(super) ahead_records: u64,
    pub(super) ahead_bytes: u64,
    /// Number of records that may always be planned.
    pub(super) min_ahead_records: u64,
}

/// Default of the largest number of batches in flight for one or two threads.
const MIN_BATCHES: usize = 4;

/// The result of a call to the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Polled<T> {
    Ready(T),
    /// Not ready: poll again after the state has changed.
    Pending,
    /// The queue is closed and returns nothing more.
    Closed,
}

/// The next work of a worker: a ticket `S` to plan, or a plan `P` to make a batch of.
pub(super) enum Job<S, P> {
    Plan(u64, S),
    Make(u64, P),
}

/// Work that was done: a plan or a batch `T`, with its ticket.
pub(super) enum Done<P, T> {
    Planned(u64, Planned<P>),
    Made(u64, T),
}

/// The result of planning.
#[derive(Clone)]
pub(super) enum Planned<P> {
    Batch(P, BatchCost),
    /// An error, after which there are no batches.
    Last(P),
    /// There is no batch with this ticket, and none after it.
    End,
}

/// The next work of a worker, before its ticket is drawn.
#[derive(Debug, PartialEq, Eq)]
enum Task<P> {
    Draw,
    Make(u64, P),
}

/// A ticket that was drawn.
#[derive(Clone, Debug)]
enum Entry<P, T> {
    Drawn,
    Planned(P, BatchCost),
    /// The batch is being made. It has this number of payload bytes.
    Making(u64),
    Made(T, u64),
}

/// The threads to wake after a call.
struct Wakes {
    workers: usize,
    /// All workers that are parked.
    parked: bool,
    planner: bool,
    consumer: bool,
}

impl Wakes {
    fn any(&self) -> bool {
        self.workers > 0 || self.parked || self.planner || self.consumer
    }
}

/// The state of a queue of plans `P` and batches `T`.
#[derive(Clone)]
struct QueueState<P, T> {
    limits: QueueLimits,
    /// All tickets that were drawn and whose batches the consumer does not have, in order. The first ones are
    /// in flight.
    entries: VecDeque<Entry<P, T>>,
    /// The ticket of the first entry.
    first: u64,
    /// Number of entries that are being made or were made.
    in_flight: usize,
    /// Payload bytes of these.
    bytes: u64,
    /// Number of plans that no worker has taken, and their cost.
    planned: usize,
    ahead: BatchCost,
    /// Tickets are drawn by the planner, not by workers.
    looks_ahead: bool,
    /// There are no further tickets.
    ended: bool,
    stopped: bool,
    /// Plans of tickets that do not count, because an earlier one was the last.
    left: Vec<P>,
    /// Number of workers that may work. The others are parked.
    working: usize,
    /// Workers are parked, and their number was not raised since.
    parked: bool,
    /// Number of working ones that wait, and of those among them that were woken.
    sleeping: usize,
    woken: usize,
    planner_sleeps: bool,
    consumer_sleeps: bool,
}

impl<P, T> QueueState<P, T> {
    fn new(limits: QueueLimits, working: usize) -> QueueState<P, T> {
        QueueState {
            limits,
            entries: VecDeque::new(),
            first: 0,
            in_flight: 0,
            bytes: 0,
            planned: 0,
            ahead: BatchCost::default(),
            looks_ahead: false,
            ended: false,
            stopped: false,
            left: Vec::new(),
            working,
            parked: false,
            sleeping: 0,
            woken: 0,
            planner_sleeps: false,
            consumer_sleeps: false,
        }
    }

    /// Returns the largest number of batches in flight.
    fn batches(&self) -> usize {
        self.limits.batches.unwrap_or((self.working * 2).max(MIN_BATCHES))
    }

    /// Returns true if workers have nothing more to do.
    fn is_closed(&self) -> bool {
        self.stopped || (self.ended && self.in_flight == self.entries.len())
    }

    /// Returns true if the look-ahead has room for another plan.
    fn has_room_ahead(&self) -> bool {
        let QueueLimits { ahead_records, ahead_bytes, min_ahead_records, .. } = self.limits;
        self.planned == 0
            || self.ahead.records < min_ahead_records
            || (self.ahead.records < ahead_records && self.ahead.bytes < ahead_bytes)
    }

    /// Returns `Ready` if the planner may draw a ticket.
    fn may_draw(&self) -> Polled<()> {
        if self.stopped || self.ended {
            Polled::Closed
        } else if self.looks_ahead && self.has_room_ahead() {
            Polled::Ready(())
        } else {
            Polled::Pending
        }
    }

    /// Draws the next ticket.
    fn draw(&mut self) -> u64 {
        self.entries.push_back(Entry::Drawn);
        self.first + (self.entries.len() - 1) as u64
    }

    /// Returns the entry of a ticket. `None` if the ticket does not count.
    fn entry(&mut self, ticket: u64) -> Option<&mut Entry<P, T>> {
        self.entries.get_mut(usize::try_from(ticket.checked_sub(self.first)?).ok()?)
    }

    /// Stores the plan of a ticket.
    fn plan(&mut self, ticket: u64, planned: Planned<P>) {
        let (plan, cost, kept) = match planned {
            Planned::Batch(plan, cost) => (Some(plan), cost, None),
            Planned::Last(plan) => (Some(plan), BatchCost::default(), Some(ticket + 1)),
            Planned::End => (None, BatchCost::default(), Some(ticket)),
        };
        match (self.entry(ticket), plan) {
            (Some(entry), Some(plan)) => {
                *entry = Entry::Planned(plan, cost);
                self.planned += 1;
                self.ahead.records += cost.records;
                self.ahead.bytes = self.ahead.bytes.saturating_add(cost.bytes);
            }
            (None, plan) => return self.left.extend(plan),
            (Some(_), None) => {}
        }
        if let Some(end) = kept {
            self.ended = true;
            self.keep((end - self.first) as usize);
        }
    }

    /// Drops the entries after the first `n` and those in flight. Their plans remain in `left`.
    fn keep(&mut self, n: usize) {
        for entry in self.entries.drain(n.max(self.in_flight)..).collect::<Vec<_>>() {
            if let Entry::Planned(plan, cost) = entry {
                self.take_ahead(cost);
                self.left.push(plan);
            }
        }
    }

    /// Subtracts the cost of a plan from the look-ahead.
    fn take_ahead(&mut self, cost: BatchCost) {
        self.planned -= 1;
        self.ahead.records -= cost.records;
        // The sum may have saturated, so an empty list resets it.
        self.ahead.bytes = if self.planned == 0 { 0 } else { self.ahead.bytes.saturating_sub(cost.bytes) };
    }

    /// Returns the cost of the next plan, if its batch may be made.
    fn next_cost(&self) -> Option<BatchCost> {
        let Some(Entry::Planned(_, cost)) = self.entries.get(self.in_flight) else { return None };
        let fits = self.in_flight < self.batches()
            && self.bytes.checked_add(cost.bytes).is_some_and(|bytes| bytes <= self.limits.memory);
        // The batch that the consumer waits for is always made, to avoid a deadlock.
        (fits || self.in_flight == 0).then_some(*cost)
    }

    /// Returns true if a worker may draw a ticket.
    fn worker_may_draw(&self) -> bool {
        !self.looks_ahead && !self.ended && self.entries.len() < self.batches() && self.has_room_ahead()
    }

    /// Returns the next work of a worker.
    fn take(&mut self) -> Polled<Task<P>> {
        if self.is_closed() {
            return Polled::Closed;
        }
        if let Some(cost) = self.next_cost()
            && let Some(entry) = self.entries.get_mut(self.in_flight)
            && let Entry::Planned(plan, _) = std::mem::replace(entry, Entry::Making(cost.bytes))
        {
            let ticket = self.first + self.in_flight as u64;
            self.take_ahead(cost);
            self.in_flight += 1;
            self.bytes += cost.bytes;
            return Polled::Ready(Task::Make(ticket, plan));
        }
        if self.worker_may_draw() { Polled::Ready(Task::Draw) } else { Polled::Pending }
    }

    /// Stores a batch that was made.
    fn put(&mut self, ticket: u64, batch: T) {
        if let Some(entry) = self.entry(ticket)
            && let Entry::Making(bytes) = *entry
        {
            *entry = Entry::Made(batch, bytes);
        }
    }

    /// Returns the consumer's next batch.
    fn next(&mut self) -> Polled<T> {
        if matches!(self.entries.front(), Some(Entry::Made(..)))
            && let Some(Entry::Made(batch, bytes)) = self.entries.pop_front()
        {
            self.bytes -= bytes;
            self.in_flight -= 1;
            self.first += 1;
            return Polled::Ready(batch);
        }
        if self.stopped || (self.ended && self.entries.is_empty()) { Polled::Closed } else { Polled::Pending }
    }

    /// Closes the queue for planner, workers and consumer. Returns the plans that no worker has taken.
    fn stop(&mut self) -> Vec<P> {
        self.stopped = true;
        self.keep(0);
        std::mem::take(&mut self.left)
    }

    /// Returns who has to be woken after a call, and counts them as woken.
    ///
    /// A worker is woken once half of the batches may be made, so that it makes several in one go. One is
    /// woken at a time: it calls this after it has taken its work.
    fn wakes(&mut self) -> Wakes {
        let asleep = self.sleeping - self.woken;
        let most = self.batches();
        let is_free = |batches: usize| most.saturating_sub(batches) >= (most / 2).max(1);
        let has_work = || {
            (self.next_cost().is_some() && is_free(self.in_flight))
                || (self.worker_may_draw() && is_free(self.entries.len()))
        };
        let workers = match asleep {
            0 => 0,
            all if self.is_closed() => all,
            _ => usize::from(self.woken == 0 && has_work()),
        };
        self.woken += workers;
        let parked = self.parked && self.is_closed();
        self.parked &= !parked;
        let planner = self.planner_sleeps && self.may_draw() != Polled::Pending;
        self.planner_sleeps &= !planner;
        let is_ready = match self.entries.front() {
            Some(Entry::Made(..)) => true,
            Some(_) => self.stopped,
            None => self.stopped || self.ended,
        };
        let consumer = self.consumer_sleeps && is_ready;
        self.consumer_sleeps &= !consumer;
        Wakes { workers, parked, planner, consumer }
    }

    /// Sets the number of workers that may work, at least 1. Returns true if parked ones have to be woken.
    fn set_working(&mut self, working: usize) -> bool {
        let wakes = self.parked && working > self.working;
        self.working = working;
        self.parked &= !wakes;
        wakes
    }

    /// Parks a worker if it is one too many. Returns false otherwise.
    fn park(&mut self, worker: usize) -> bool {
        let parks = worker >= self.working && !self.is_closed();
        self.parked |= parks;
        parks
    }

    /// Counts a worker that has woken up, whether it was woken or not.
    fn wake(&mut self) {
        self.sleeping -= 1;
        self.woken = self.woken.saturating_sub(1);
    }

    /// Returns the payload bytes of the batches in flight.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A [`QueueState`] with a lock, and the tickets. Planner, workers and consumer each wait on their own
/// condition variable.
pub(super) struct BoundedQueue<S, P, T> {
    locked: Mutex<(QueueState<P, T>, S)>,
    /// A copy of the state's, to read without the lock.
    looks_ahead: AtomicBool,
    planner: Condvar,
    workers: Condvar,
    parked: Condvar,
    consumer: Condvar,
}

type Locked<'a, S, P, T> = MutexGuard<'a, (QueueState<P, T>, S)>;

impl<S: Iterator, P, T> BoundedQueue<S, P, T> {
    /// Creates a queue for this number of working threads.
    pub(super) fn new(limits: QueueLimits, tickets: S, working: usize) -> BoundedQueue<S, P, T> {
        BoundedQueue {
            locked: Mutex::new((QueueState::new(limits, working), tickets)),
            looks_ahead: AtomicBool::new(false),
            planner: Condvar::new(),
            workers: Condvar::new(),
            parked: Condvar::new(),
            consumer: Condvar::new(),
        }
    }

    /// Locks the state. None of its methods panics halfway, so the state of a poisoned lock is consistent.
    fn lock(&self) -> Locked<'_, S, P, T> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the lock and wakes those that wait for the change.
    fn release(&self, mut locked: Locked<'_, S, P, T>) {
        let wakes = locked.0.wakes();
        drop(locked);
        self.notify(&wakes);
    }

    /// Wakes threads, which need the lock: the caller does not hold it.
    fn notify(&self, wakes: &Wakes) {
        if wakes.consumer {
            self.consumer.notify_one();
        }
        if wakes.planner {
            self.planner.notify_one();
        }
        if wakes.parked {
            self.parked.notify_all();
        }
        (0..wakes.workers).for_each(|_| self.workers.notify_one());
    }

    /// Stores the plan that the planner has made, and waits until it may draw the next ticket. Returns `None`
    /// if the queue is closed.
    pub(super) fn draw(&self, planned: Option<(u64, Planned<P>)>) -> Option<(u64, S::Item)> {
        let mut locked = self.lock();
        if let Some((ticket, planned)) = planned {
            locked.0.plan(ticket, planned);
            self.release(locked);
            locked = self.lock();
        }
        loop {
            let (state, tickets) = &mut *locked;
            match state.may_draw() {
                Polled::Ready(()) => match tickets.next() {
                    Some(drawn) => return Some((state.draw(), drawn)),
                    None => state.ended = true,
                },
                Polled::Closed => {
                    self.release(locked);
                    return None;
                }
                Polled::Pending => {
                    state.planner_sleeps = true;
                    locked = self.planner.wait(locked).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Stores the work that a worker has done, and waits for its next work. Returns `None` if the queue is
    /// closed. Workers are numbered from 0.
    pub(super) fn work(&self, worker: usize, done: Option<Done<P, T>>) -> Option<Job<S::Item, P>> {
        let mut locked = self.lock();
        match done {
            Some(Done::Planned(ticket, planned)) => locked.0.plan(ticket, planned),
            Some(Done::Made(ticket, batch)) => locked.0.put(ticket, batch),
            None => {}
        }
        loop {
            let (state, tickets) = &mut *locked;
            let parks = state.park(worker);
            let job = match if parks { Polled::Pending } else { state.take() } {
                Polled::Ready(Task::Make(ticket, plan)) => Some(Job::Make(ticket, plan)),
                Polled::Ready(Task::Draw) => match tickets.next() {
                    Some(drawn) => Some(Job::Plan(state.draw(), drawn)),
                    None => {
                        state.ended = true;
                        continue;
                    }
                },
                Polled::Closed => None,
                Polled::Pending => {
                    let wakes = state.wakes();
                    if wakes.any() {
                        drop(locked);
                        self.notify(&wakes);
                        locked = self.lock();
                    } else if parks {
                        locked = self.parked.wait(locked).unwrap_or_else(PoisonError::into_inner);
                    } else {
                        state.sleeping += 1;
                        locked = self.workers.wait(locked).unwrap_or_else(PoisonError::into_inner);
                        locked.0.wake();
                    }
                    continue;
                }
            };
            self.release(locked);
            return job;
        }
    }

    /// Waits for the next batch. With a `timeout`, returns `Pending` if no batch is ready by then.
    pub(super) fn next(&self, timeout: Option<Duration>) -> Polled<T> {
        let mut locked = self.lock();
        loop {
            match locked.0.next() {
                Polled::Pending => locked.0.consumer_sleeps = true,
                result => {
                    self.release(locked);
                    return result;
                }
            }
            locked = match timeout {
                None => self.consumer.wait(locked).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let (mut locked, waited) =
                        self.consumer.wait_timeout(locked, timeout).unwrap_or_else(PoisonError::into_inner);
                    if waited.timed_out() {
                        locked.0.consumer_sleeps = false;
                        return Polled::Pending;
                    }
                    locked
                }
            };
        }
    }

    /// Sets who draws tickets: the planner, or the workers.
    pub(super) fn look_ahead(&self, looks_ahead: bool) {
        if self.looks_ahead.load(Relaxed) != looks_ahead {
            let mut locked = self.lock();
            locked.0.looks_ahead = looks_ahead;
            self.looks_ahead.store(looks_ahead, Relaxed);
            self.release(locked);
        }
    }

    /// Sets the number of workers that may work, at least 1. Others are parked.
    pub(super) fn set_working(&self, working: usize) {
        let mut locked = self.lock();
        let unparks = locked.0.set_working(working);
        self.release(locked);
        if unparks {
            self.parked.notify_all();
        }
    }

    /// Returns the payload bytes of the batches in flight.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.lock().0.bytes()
    }

    /// Closes the queue for planner, workers and consumer. Returns the plans that no worker has taken.
    pub(super) fn stop(&self) -> Vec<P> {
        let mut locked = self.lock();
        let left = locked.0.stop();
        self.release(locked);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const LIMITS: QueueLimits =
        QueueLimits { batches: Some(4), memory: 10, ahead_records: 3, ahead_bytes: 12, min_ahead_records: 1 };
    /// One cost is above the memory limit, and one is above the look-ahead limit.
    const COSTS: [u64; 8] = [4, 1, 11, 3, 2, 20, 1, 5];
    const WORKERS: usize = 3;

    type Plan = fn(u64) -> Planned<u64>;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Worker {
        Ready,
        Plans(u64),
        Makes(u64, u64),
        Sleeps,
        /// Woken up, but without the lock yet.
        Woken,
        Parked,
        Exited,
    }

    /// One state of a planner, three workers, a consumer and their queue, who wait until the queue wakes
    /// them. The test visits every state that can be reached. All calls are made under one lock, so this
    /// covers all interleavings.
    #[derive(Clone)]
    struct Simulation {
        state: QueueState<u64, u64>,
        /// Number of tickets that were drawn.
        drawn: u64,
        /// The last ticket, and what planning it results in: a batch, an error or nothing.
        last: u64,
        planned: Plan,
        planner: Worker,
        workers: [Worker; WORKERS],
        consumer: Worker,
        received: u64,
        /// Numbers of changes that are left: between look-ahead and tickets of the workers, and between all
        /// workers and one.
        changes: [usize; 2],
    }

    impl Simulation {
        /// Returns the state before the first call.
        fn start(looks_ahead: bool, changes: [usize; 2], planned: Plan) -> Simulation {
            let mut state = QueueState::new(LIMITS, WORKERS);
            state.looks_ahead = looks_ahead;
            Simulation {
                state,
                drawn: 0,
                last: COSTS.len() as u64 - 1,
                planned,
                planner: Worker::Ready,
                workers: [Worker::Ready; WORKERS],
                consumer: Worker::Ready,
                received: 0,
                changes,
            }
        }

        fn key(&self) -> String {
            let Simulation { state, drawn, planner, workers, consumer, received, changes, .. } = self;
            let QueueState { entries, first, in_flight, left, sleeping, woken, .. } = state;
            let flags = [
                state.parked,
                state.looks_ahead,
                state.ended,
                state.stopped,
                state.planner_sleeps,
                state.consumer_sleeps,
            ];
            let queue = format!(
                "{entries:?} {first} {in_flight} {left:?} {sleeping} {woken} {} {flags:?}",
                state.working
            );
            format!("{queue} {drawn} {planner:?} {workers:?} {consumer:?} {received} {changes:?}")
        }

        /// Draws a ticket, as an iterator of tickets does. `None` after the last one.
        fn draw(&mut self) -> Option<u64> {
            if self.drawn == COSTS.len() as u64 {
                self.state.ended = true;
                return None;
            }
            self.drawn += 1;
            Some(self.state.draw())
        }

        fn planned(&self, ticket: u64) -> Planned<u64> {
            if ticket == self.last {
                return (self.planned)(ticket);
            }
            Planned::Batch(ticket, BatchCost { records: 1, bytes: COSTS[ticket as usize] })
        }

        /// Makes the next call of `actor`: 0 is the planner, then come the workers, the consumer, and the
        /// changes. Returns false if it waits or has exited.
        fn step(&mut self, actor: usize) -> bool {
            let moved = match actor {
                0 => self.step_planner(),
                1..=WORKERS => self.step_worker(actor - 1),
                5 => {
                    self.changes[0] > 0 && {
                        self.changes[0] -= 1;
                        self.state.looks_ahead = !self.state.looks_ahead;
                        true
                    }
                }
                6 => {
                    self.changes[1] > 0 && {
                        self.changes[1] -= 1;
                        let working = if self.state.working == 1 { WORKERS } else { 1 };
                        if self.state.set_working(working) {
                            self.unpark();
                        }
                        true
                    }
                }
                _ => self.step_consumer(),
            };
            if moved {
                self.wake();
            }
            moved
        }

        fn unpark(&mut self) {
            let parked = self.workers.iter_mut().filter(|worker| **worker == Worker::Parked);
            parked.for_each(|worker| *worker = Worker::Ready);
        }

        /// Wakes those whom the queue names. Which worker is woken does not matter, because all are alike.
        fn wake(&mut self) {
            let Wakes { workers, parked, planner, consumer } = self.state.wakes();
            if parked {
                self.unpark();
            }
            for _ in 0..workers {
                // One that has woken up by itself does not wait any more.
                match self.workers.iter_mut().find(|worker| **worker == Worker::Sleeps) {
                    Some(worker) => *worker = Worker::Woken,
                    None => assert!(self.workers.contains(&Worker::Woken)),
                }
            }
            for (is_woken, who) in [(planner, &mut self.planner), (consumer, &mut self.consumer)] {
                if is_woken {
                    assert_eq!(*who, Worker::Sleeps);
                    *who = Worker::Ready;
                }
            }
        }

        fn step_planner(&mut self) -> bool {
            match self.planner {
                Worker::Ready => match self.state.may_draw() {
                    Polled::Ready(()) => {
                        self.planner = self.draw().map_or(Worker::Exited, Worker::Plans);
                    }
                    Polled::Closed => self.planner = Worker::Exited,
                    Polled::Pending => {
                        self.planner = Worker::Sleeps;
                        self.state.planner_sleeps = true;
                    }
                },
                Worker::Plans(ticket) => {
                    self.state.plan(ticket, self.planned(ticket));
                    self.planner = Worker::Ready;
                }
                _ => return false,
            }
            true
        }

        fn step_worker(&mut self, k: usize) -> bool {
            match self.workers[k] {
                Worker::Sleeps | Worker::Parked | Worker::Exited => return false,
                Worker::Woken => self.state.wake(),
                Worker::Plans(ticket) => self.state.plan(ticket, self.planned(ticket)),
                Worker::Makes(ticket, plan) => self.state.put(ticket, plan),
                Worker::Ready => {}
            }
            self.workers[k] = loop {
                if self.state.park(k) {
                    break Worker::Parked;
                }
                break match self.state.take() {
                    Polled::Ready(Task::Make(ticket, plan)) => Worker::Makes(ticket, plan),
                    Polled::Ready(Task::Draw) => match self.draw() {
                        Some(ticket) => Worker::Plans(ticket),
                        None => continue,
                    },
                    Polled::Closed => Worker::Exited,
                    Polled::Pending => {
                        self.state.sleeping += 1;
                        Worker::Sleeps
                    }
                };
            };
            true
        }

        fn step_consumer(&mut self) -> bool {
            if self.consumer != Worker::Ready {
                return false;
            }
            match self.state.next() {
                Polled::Ready(plan) => {
                    assert_eq!(plan, self.received, "batches leave in the order of their tickets");
                    self.received += 1;
                }
                Polled::Pending => {
                    self.state.consumer_sleeps = true;
                    self.consumer = Worker::Sleeps;
                }
                Polled::Closed => self.consumer = Worker::Exited,
            }
            true
        }

        fn check(&self) {
            let state = &self.state;
            let costs = |entry: &Entry<u64, u64>| match *entry {
                Entry::Drawn => [0, 0],
                Entry::Planned(_, cost) => [0, cost.bytes],
                Entry::Making(bytes) | Entry::Made(_, bytes) => [bytes, 0],
            };
            let sum = |k: usize| state.entries.iter().map(|entry| costs(entry)[k]).sum::<u64>();
            assert_eq!([sum(0), sum(1)], [state.bytes(), state.ahead.bytes]);
            let plans = state.entries.iter().filter(|entry| matches!(entry, Entry::Planned(..))).count();
            assert_eq!(plans, state.planned);
            assert!(state.entries.range(..state.in_flight).all(|entry| !matches!(entry, Entry::Drawn)));
            assert!(state.bytes() <= LIMITS.memory || state.in_flight == 1, "memory");
            assert!(state.in_flight <= state.batches(), "batches");
            let sleeping = [Worker::Sleeps, Worker::Woken];
            assert_eq!(
                self.workers.iter().filter(|worker| sleeping.contains(worker)).count(),
                state.sleeping
            );
            if self.changes[0] == 0 && !state.looks_ahead {
                return;
            }
            // Each worker may have drawn a ticket before the planner drew one.
            let ahead = state.entries.len() - state.in_flight;
            assert!(ahead <= LIMITS.ahead_records as usize + WORKERS + 1, "look-ahead");
        }

        /// Lets the consumer leave: the queue is stopped, and wakes all others, which exit.
        fn check_stop(&self) {
            let mut left = self.clone();
            left.consumer = Worker::Ready;
            left.state.consumer_sleeps = false;
            left.state.stop();
            left.wake();
            while (0..=WORKERS).any(|actor| left.step(actor)) {}
            let all = [&[left.planner], left.workers.as_slice()].concat();
            assert!(all.iter().all(|who| *who == Worker::Exited), "left behind: {}", left.key());
        }

        /// Visits all states that can be reached. Returns their number.
        fn visit_all(self, batches: u64) -> usize {
            let mut seen = HashSet::new();
            let mut ends = 0;
            let mut open = vec![self];
            while let Some(simulation) = open.pop() {
                if !seen.insert(simulation.key()) {
                    continue;
                }
                simulation.check();
                simulation.check_stop();
                let mut moved = false;
                for actor in 0..WORKERS + 4 {
                    let mut next = simulation.clone();
                    if next.step(actor) {
                        moved = true;
                        open.push(next);
                    }
                }
                for k in (0..WORKERS).filter(|&k| simulation.workers[k] == Worker::Sleeps) {
                    // A thread may wake up without a notification.
                    let mut next = simulation.clone();
                    next.workers[k] = Worker::Woken;
                    open.push(next);
                }
                if !moved {
                    // Nobody can make a call, so all of them must have exited with all batches delivered.
                    let all =
                        [[simulation.planner, simulation.consumer].as_slice(), &simulation.workers].concat();
                    assert!(all.iter().all(|who| *who == Worker::Exited), "a deadlock: {}", simulation.key());
                    assert_eq!(simulation.received, batches);
                    ends += 1;
                }
            }
            assert!(ends > 0);
            seen.len()
        }
    }

    #[test]
    fn every_interleaving_ends_with_all_batches_in_order() {
        let batch = |ticket| Planned::Batch(ticket, BatchCost { records: 1, bytes: COSTS[ticket as usize] });
        for (looks_ahead, changes) in [
            (false, [0, 0]),
            (true, [0, 0]),
            (false, [1, 0]),
            (true, [1, 0]),
            (false, [0, 2]),
            (true, [0, 2]),
        ] {
            let states = Simulation::start(looks_ahead, changes, batch).visit_all(COSTS.len() as u64);
            assert!(states > 4000, "{states} states");
        }
    }

    #[test]
    fn nothing_follows_the_last_batch_in_any_interleaving() {
        let last = COSTS.len() as u64 - 3;
        let ends: [(Plan, u64); 2] = [(Planned::Last, last + 1), (|_| Planned::End, last)];
        for (planned, batches) in ends {
            for (looks_ahead, changes) in [(false, [0, 0]), (true, [0, 0]), (false, [1, 1])] {
                let simulation = Simulation { last, ..Simulation::start(looks_ahead, changes, planned) };
                let states = simulation.visit_all(batches);
                assert!(states > 4000, "{states} states");
            }
        }
    }

    #[test]
    fn a_stop_closes_the_queue_in_every_state() {
        for steps in 0..60u32 {
            let batch = |ticket| Planned::Batch(ticket, BatchCost { records: 1, bytes: 1 });
            let mut simulation = Simulation::start(steps % 2 == 0, [2, 2], batch);
            for k in 0..steps {
                simulation.step((k.wrapping_mul(2_654_435_761) >> 13) as usize % (WORKERS + 4));
            }
            let mut plans: Vec<u64> = simulation.state.stop();
            let of_entries = simulation.state.entries.len();
            assert_eq!(of_entries, simulation.state.in_flight);
            assert_eq!(simulation.state.may_draw(), Polled::Closed);
            assert!(matches!(simulation.state.take(), Polled::Closed));
            // A plan that was being made is returned by the next stop.
            for worker in simulation.workers.into_iter().chain([simulation.planner]) {
                if let Worker::Plans(ticket) = worker {
                    simulation.state.plan(ticket, batch(ticket));
                }
            }
            plans.append(&mut simulation.state.stop());
            plans.sort_unstable();
            let taken = simulation.state.first + of_entries as u64;
            assert!(plans.iter().copied().eq(taken..simulation.drawn), "{plans:?}");
            // Finished batches may still be taken. Then the queue is closed.
            while let Polled::Ready(_) = simulation.state.next() {}
            assert_eq!(simulation.state.next(), Polled::Closed);
        }
    }
}
