//! The bounded queue between planner, workers and consumer. Batches leave in the order of their plans.
//!
//! A [`QueueState`] is a state machine without threads or a clock, so that a test can try every possible order of its calls.
//! [`BoundedQueue`] puts a lock around it.
//!
//! ```text
//! planner --plan--> | plans, in order | --take--> workers --put--> | done, by ticket | --next--> consumer
//!                    look-ahead limit             memory limit, batches in flight
//! ```

use std::collections::VecDeque;
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
    /// Largest number of batches in flight: being made, or made and waiting for the consumer.
    pub(super) batches: usize,
    /// Limit of their payload bytes. One batch may always be made, even if it is larger.
    pub(super) memory: u64,
    /// Limits of the plans that no worker has taken yet: records and payload bytes.
    pub(super) ahead_records: u64,
    pub(super) ahead_bytes: u64,
    /// Number of records that may always be planned.
    pub(super) min_ahead_records: u64,
}

/// The result of a call to the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Polled<T> {
    Ready(T),
    /// Not ready: poll again after the state has changed.
    Pending,
    /// The queue is closed and returns nothing more.
    Closed,
}

/// The state of a queue of plans `P` and batches `T`.
struct QueueState<P, T> {
    limits: QueueLimits,
    plans: VecDeque<(P, BatchCost)>,
    ahead: BatchCost,
    /// The planner has ended.
    planned: bool,
    /// Batches in flight, in order, with their payload bytes. `None` while a batch is being made.
    made: VecDeque<(Option<T>, u64)>,
    /// The ticket of the first batch in `made`.
    first: u64,
    /// Payload bytes of all batches in `made`.
    bytes: u64,
    stopped: bool,
}

impl<P, T> QueueState<P, T> {
    fn new(limits: QueueLimits) -> QueueState<P, T> {
        QueueState {
            limits,
            plans: VecDeque::new(),
            ahead: BatchCost::default(),
            planned: false,
            made: VecDeque::new(),
            first: 0,
            bytes: 0,
            stopped: false,
        }
    }

    /// Returns `Ready` if the planner may plan another batch.
    fn may_plan(&self) -> Polled<()> {
        let QueueLimits { ahead_records, ahead_bytes, min_ahead_records, .. } = self.limits;
        if self.stopped || self.planned {
            Polled::Closed
        } else if self.plans.is_empty()
            || self.ahead.records < min_ahead_records
            || (self.ahead.records < ahead_records && self.ahead.bytes < ahead_bytes)
        {
            Polled::Ready(())
        } else {
            Polled::Pending
        }
    }

    /// Adds the planner's next batch.
    fn plan(&mut self, plan: P, cost: BatchCost) {
        self.ahead.records += cost.records;
        self.ahead.bytes = self.ahead.bytes.saturating_add(cost.bytes);
        self.plans.push_back((plan, cost));
    }

    /// Marks the end of planning.
    fn end_plan(&mut self) {
        self.planned = true;
    }

    /// Returns the next plan, and the ticket of its batch.
    fn take(&mut self) -> Polled<(u64, P)> {
        if self.stopped || (self.planned && self.plans.is_empty()) {
            return Polled::Closed;
        }
        let Some((_, cost)) = self.plans.front() else { return Polled::Pending };
        let fits = self.made.len() < self.limits.batches
            && self.bytes.checked_add(cost.bytes).is_some_and(|bytes| bytes <= self.limits.memory);
        // The batch that the consumer waits for is always made, to avoid a deadlock.
        if !fits && !self.made.is_empty() {
            return Polled::Pending;
        }
        let Some((plan, cost)) = self.plans.pop_front() else { return Polled::Pending };
        self.ahead.records -= cost.records;
        // The sum may have saturated, so an empty list resets it.
        self.ahead.bytes =
            if self.plans.is_empty() { 0 } else { self.ahead.bytes.saturating_sub(cost.bytes) };
        self.bytes = self.bytes.saturating_add(cost.bytes);
        let ticket = self.first + self.made.len() as u64;
        self.made.push_back((None, cost.bytes));
        Polled::Ready((ticket, plan))
    }

    /// Stores a batch that was made.
    fn put(&mut self, ticket: u64, batch: T) {
        let entry = ticket.checked_sub(self.first).and_then(|k| self.made.get_mut(k as usize));
        if let Some((slot, _)) = entry {
            *slot = Some(batch);
        }
    }

    /// Returns the consumer's next batch.
    fn next(&mut self) -> Polled<T> {
        match self.made.front_mut() {
            Some((slot, bytes)) => match slot.take() {
                Some(batch) => {
                    self.bytes = self.bytes.saturating_sub(*bytes);
                    self.made.pop_front();
                    self.first += 1;
                    Polled::Ready(batch)
                }
                None if self.stopped => Polled::Closed,
                None => Polled::Pending,
            },
            None if self.stopped || (self.planned && self.plans.is_empty()) => Polled::Closed,
            None => Polled::Pending,
        }
    }

    /// Closes the queue for planner, workers and consumer. Returns the plans that no worker has taken.
    fn stop(&mut self) -> Vec<P> {
        self.stopped = true;
        self.plans.drain(..).map(|(plan, _)| plan).collect()
    }

    /// Returns the payload bytes of the batches in flight.
    #[cfg(all(test, target_os = "linux"))]
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A [`QueueState`] with a lock. Planner, workers and consumer each wait on their own condition variable.
pub(super) struct BoundedQueue<P, T> {
    state: Mutex<QueueState<P, T>>,
    planner: Condvar,
    workers: Condvar,
    consumer: Condvar,
}

impl<P, T> BoundedQueue<P, T> {
    pub(super) fn new(limits: QueueLimits) -> BoundedQueue<P, T> {
        BoundedQueue {
            state: Mutex::new(QueueState::new(limits)),
            planner: Condvar::new(),
            workers: Condvar::new(),
            consumer: Condvar::new(),
        }
    }

    /// Locks the state. None of its methods panics halfway, so the state of a poisoned lock is consistent.
    fn state(&self) -> MutexGuard<'_, QueueState<P, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another batch may be planned. Returns false if the queue is closed.
    pub(super) fn wait_to_plan(&self) -> bool {
        let mut state = self.state();
        loop {
            match state.may_plan() {
                Polled::Ready(()) => return true,
                Polled::Closed => return false,
                Polled::Pending => state = self.planner.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub(super) fn plan(&self, plan: P, cost: BatchCost) {
        self.state().plan(plan, cost);
        self.workers.notify_one();
    }

    pub(super) fn end_plan(&self) {
        self.state().end_plan();
        self.workers.notify_all();
        self.consumer.notify_all();
    }

    /// Waits for the next plan. Returns `None` if the queue is closed.
    pub(super) fn take(&self) -> Option<(u64, P)> {
        let mut state = self.state();
        loop {
            match state.take() {
                Polled::Ready(taken) => {
                    drop(state);
                    self.planner.notify_one();
                    return Some(taken);
                }
                Polled::Closed => return None,
                Polled::Pending => state = self.workers.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub(super) fn put(&self, ticket: u64, batch: T) {
        self.state().put(ticket, batch);
        self.consumer.notify_one();
    }

    /// Waits for the next batch. With a `timeout`, returns `Pending` if no batch is ready by then.
    pub(super) fn next(&self, timeout: Option<Duration>) -> Polled<T> {
        let mut state = self.state();
        loop {
            match state.next() {
                Polled::Pending => {}
                result => {
                    drop(state);
                    // There is room for one more batch, for which a worker may be waiting. Its next `take` wakes the planner.
                    self.workers.notify_all();
                    return result;
                }
            }
            state = match timeout {
                None => self.consumer.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let (state, waited) =
                        self.consumer.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner);
                    if waited.timed_out() {
                        return Polled::Pending;
                    }
                    state
                }
            };
        }
    }

    /// Returns the payload bytes of the batches in flight.
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn bytes(&self) -> u64 {
        self.state().bytes()
    }

    /// Closes the queue for planner, workers and consumer. Returns the plans that no worker has taken.
    pub(super) fn stop(&self) -> Vec<P> {
        let left = self.state().stop();
        self.planner.notify_all();
        self.workers.notify_all();
        self.consumer.notify_all();
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const LIMITS: QueueLimits =
        QueueLimits { batches: 4, memory: 10, ahead_records: 3, ahead_bytes: 12, min_ahead_records: 1 };
    /// One cost is above the memory limit, and one is above the look-ahead limit.
    const COSTS: [u64; 9] = [4, 1, 11, 3, 2, 20, 1, 5, 2];
    const WORKERS: usize = 3;

    /// One state of a planner, three workers, a consumer and their queue. The test visits every state that can be reached.
    /// All calls are made under one lock, so this covers all interleavings.
    #[derive(Clone)]
    struct Simulation {
        state: QueueState<usize, usize>,
        planned: usize,
        ended: bool,
        /// The ticket and the plan that each worker holds.
        holds: [Option<(u64, usize)>; WORKERS],
        exited: [bool; WORKERS],
        received: usize,
        consumer_done: bool,
    }

    impl Clone for QueueState<usize, usize> {
        fn clone(&self) -> Self {
            QueueState {
                limits: self.limits,
                plans: self.plans.clone(),
                ahead: self.ahead,
                planned: self.planned,
                made: self.made.clone(),
                first: self.first,
                bytes: self.bytes,
                stopped: self.stopped,
            }
        }
    }

    impl Simulation {
        /// Returns the state before the first call.
        fn start() -> Simulation {
            Simulation {
                state: QueueState::new(LIMITS),
                planned: 0,
                ended: false,
                holds: [None; WORKERS],
                exited: [false; WORKERS],
                received: 0,
                consumer_done: false,
            }
        }

        fn key(&self) -> String {
            let state = &self.state;
            format!(
                "{:?} {:?} {} {:?} {:?} {} {} {}",
                state.plans,
                state.made,
                state.first,
                self.holds,
                self.exited,
                self.planned,
                self.ended,
                self.consumer_done
            )
        }

        /// Makes the next call of `actor`: 0 is the planner, the last one is the consumer. Returns false if it must wait or has
        /// exited.
        fn step(&mut self, actor: usize) -> bool {
            match actor {
                0 if self.ended => false,
                0 => match self.state.may_plan() {
                    Polled::Ready(()) if self.planned == COSTS.len() => {
                        self.state.end_plan();
                        self.ended = true;
                        true
                    }
                    Polled::Ready(()) => {
                        let cost = BatchCost { records: 1, bytes: COSTS[self.planned] };
                        self.state.plan(self.planned, cost);
                        self.planned += 1;
                        true
                    }
                    Polled::Pending => false,
                    Polled::Closed => panic!("closed before a stop"),
                },
                1..=WORKERS => {
                    let worker = actor - 1;
                    if let Some((ticket, plan)) = self.holds[worker].take() {
                        self.state.put(ticket, plan);
                        return true;
                    }
                    if self.exited[worker] {
                        return false;
                    }
                    match self.state.take() {
                        Polled::Ready(taken) => {
                            self.holds[worker] = Some(taken);
                            true
                        }
                        Polled::Pending => false,
                        Polled::Closed => {
                            self.exited[worker] = true;
                            true
                        }
                    }
                }
                _ if self.consumer_done => false,
                _ => match self.state.next() {
                    Polled::Ready(plan) => {
                        assert_eq!(plan, self.received, "batches leave in the order of their plans");
                        self.received += 1;
                        true
                    }
                    Polled::Pending => false,
                    Polled::Closed => {
                        self.consumer_done = true;
                        true
                    }
                },
            }
        }

        fn check(&self) {
            let state = &self.state;
            let bytes: u64 = state.made.iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(bytes, state.bytes());
            assert!(state.bytes() <= LIMITS.memory || state.made.len() == 1, "memory");
            assert!(state.made.len() <= LIMITS.batches, "batches");
            let ahead: u64 = state.plans.iter().map(|(_, cost)| cost.bytes).sum();
            assert_eq!((state.plans.len() as u64, ahead), (state.ahead.records, state.ahead.bytes));
            // One plan may exceed the limit.
            let before: u64 = state.plans.iter().rev().skip(1).map(|(_, cost)| cost.bytes).sum();
            assert!(state.plans.len() <= 3 && before < LIMITS.ahead_bytes, "look-ahead");
        }
    }

    #[test]
    fn every_interleaving_ends_with_all_batches_in_order() {
        let mut seen = HashSet::new();
        let mut ends = 0;
        let mut open = vec![Simulation::start()];
        while let Some(simulation) = open.pop() {
            if !seen.insert(simulation.key()) {
                continue;
            }
            simulation.check();
            let mut moved = false;
            for actor in 0..WORKERS + 2 {
                let mut next = simulation.clone();
                if next.step(actor) {
                    moved = true;
                    open.push(next);
                }
            }
            if !moved {
                // No actor can make a call, so all of them must have exited with all batches delivered.
                assert!(
                    simulation.consumer_done && simulation.ended && simulation.exited == [true; WORKERS],
                    "a deadlock: {}",
                    simulation.key()
                );
                assert_eq!(simulation.received, COSTS.len());
                ends += 1;
            }
        }
        assert!(ends > 0 && seen.len() > 400, "{} states", seen.len());
    }

    #[test]
    fn a_stop_closes_the_queue_in_every_state() {
        for steps in 0..60u32 {
            let mut simulation = Simulation::start();
            for k in 0..steps {
                simulation.step((k.wrapping_mul(2_654_435_761) >> 13) as usize % (WORKERS + 2));
            }
            simulation.state.stop();
            assert_eq!(simulation.state.may_plan(), Polled::Closed);
            assert!(matches!(simulation.state.take(), Polled::Closed));
            // Finished batches may still be taken. Then the queue is closed.
            while let Polled::Ready(_) = simulation.state.next() {}
            assert_eq!(simulation.state.next(), Polled::Closed);
        }
    }
}
