//! The bounded queue between planner, workers and consumer. Batches leave in the order of their plans.
//!
//! A [`QueueState`] is a plain state machine without threads or a clock, so that a test can try every order in which its
//! calls can come. [`BoundedQueue`] puts a lock around it.
//!
//! ```text
//! planner --plan--> | plans, in order | --take--> workers --put--> | done, by ticket | --next--> consumer
//!                    look-ahead bound             memory bound, batches ahead
//! ```

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Records and payload bytes of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchCost {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// Bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLimits {
    /// Batches that are being made, or are made and wait.
    pub(super) batches: usize,
    /// Bytes of their payloads. One batch may always be made, however large.
    pub(super) memory: u64,
    /// Records that are planned and not yet taken, and their bytes; `ahead_least` records in any case.
    pub(super) ahead_records: u64,
    pub(super) ahead_bytes: u64,
    pub(super) ahead_least: u64,
}

/// The result of a request to the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Polled<T> {
    Ready(T),
    /// Not yet: poll again after a change.
    Pending,
    /// Nothing will come any more.
    Closed,
}

/// The state of a queue of plans `P` and batches `T`.
struct QueueState<P, T> {
    limits: QueueLimits,
    plans: VecDeque<(P, BatchCost)>,
    ahead: BatchCost,
    /// The planner has ended.
    planned: bool,
    /// Batches that were taken and not yet handed out, in order: `None` while they are made.
    made: VecDeque<(Option<T>, u64)>,
    /// The ticket of the first of them.
    first: u64,
    /// Bytes of all of them.
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

    /// Ready if the planner may plan another batch.
    fn may_plan(&self) -> Polled<()> {
        let QueueLimits { ahead_records, ahead_bytes, ahead_least, .. } = self.limits;
        if self.stopped || self.planned {
            Polled::Closed
        } else if self.plans.is_empty()
            || self.ahead.records < ahead_least
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

    /// Ends the planning.
    fn end_plan(&mut self) {
        self.planned = true;
    }

    /// The next batch to be made, and its ticket.
    fn take(&mut self) -> Polled<(u64, P)> {
        if self.stopped || (self.planned && self.plans.is_empty()) {
            return Polled::Closed;
        }
        let Some((_, cost)) = self.plans.front() else { return Polled::Pending };
        let fits = self.made.len() < self.limits.batches
            && self.bytes.checked_add(cost.bytes).is_some_and(|bytes| bytes <= self.limits.memory);
        // The one that the consumer waits for is made in any case, to avoid a deadlock.
        if !fits && !self.made.is_empty() {
            return Polled::Pending;
        }
        let Some((plan, cost)) = self.plans.pop_front() else { return Polled::Pending };
        self.ahead.records -= cost.records;
        self.ahead.bytes = match self.plans.is_empty() {
            true => 0,
            false => self.ahead.bytes.saturating_sub(cost.bytes),
        };
        self.bytes = self.bytes.saturating_add(cost.bytes);
        let ticket = self.first + self.made.len() as u64;
        self.made.push_back((None, cost.bytes));
        Polled::Ready((ticket, plan))
    }

    /// Stores a batch that was made.
    fn put(&mut self, ticket: u64, batch: T) {
        let place = ticket.checked_sub(self.first).and_then(|k| self.made.get_mut(k as usize));
        if let Some((slot, _)) = place {
            *slot = Some(batch);
        }
    }

    /// The consumer's next batch.
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

    /// Closes the queue for all. Returns the plans that were not taken.
    fn stop(&mut self) -> Vec<P> {
        self.stopped = true;
        self.plans.drain(..).map(|(plan, _)| plan).collect()
    }

    /// Bytes of the batches that are being made, or are made and wait.
    #[cfg(all(test, target_os = "linux"))]
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A queue with a lock. Planner, workers and consumer wait at a condition variable each.
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

    /// No method of the state panics halfway, so a poisoned lock holds a consistent state.
    fn state(&self) -> MutexGuard<'_, QueueState<P, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another batch may be planned; false if the queue is closed.
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

    /// Waits for a batch to make.
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

    /// Waits for the next batch, at most for `patience` if that is given: then `Pending`.
    pub(super) fn next(&self, patience: Option<Duration>) -> Polled<T> {
        let mut state = self.state();
        loop {
            match state.next() {
                Polled::Pending => {}
                answer => {
                    drop(state);
                    // Room for one more: for a worker that waits with a plan, and thereby for the planner.
                    self.workers.notify_all();
                    return answer;
                }
            }
            state = match patience {
                None => self.consumer.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let (state, late) =
                        self.consumer.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
                    if late.timed_out() {
                        return Polled::Pending;
                    }
                    state
                }
            };
        }
    }

    /// Bytes of the batches that are being made, or are made and wait.
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn bytes(&self) -> u64 {
        self.state().bytes()
    }

    /// Closes the queue for all. Returns the plans that were not taken.
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
        QueueLimits { batches: 4, memory: 10, ahead_records: 3, ahead_bytes: 12, ahead_least: 1 };
    /// One is larger than the memory, and one larger than the look-ahead.
    const COSTS: [u64; 9] = [4, 1, 11, 3, 2, 20, 1, 5, 2];
    const WORKERS: usize = 3;

    /// Every order in which a planner, three workers and a consumer can come to the queue, with the next action of each.
    /// All calls are made under one lock, so these are all the interleavings there are.
    #[derive(Clone)]
    struct Simulation {
        state: QueueState<usize, usize>,
        planned: usize,
        ended: bool,
        /// The ticket and the plan that a worker holds.
        holds: [Option<(u64, usize)>; WORKERS],
        gone: [bool; WORKERS],
        got: usize,
        over: bool,
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
        /// Before the first call.
        fn start() -> Simulation {
            Simulation {
                state: QueueState::new(LIMITS),
                planned: 0,
                ended: false,
                holds: [None; WORKERS],
                gone: [false; WORKERS],
                got: 0,
                over: false,
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
                self.gone,
                self.planned,
                self.ended,
                self.over
            )
        }

        /// One step of actor `who`; false if it has to wait, or has gone.
        fn step(&mut self, who: usize) -> bool {
            match who {
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
                    Polled::Closed => panic!("it was not stopped"),
                },
                1..=WORKERS => {
                    let worker = who - 1;
                    if let Some((ticket, plan)) = self.holds[worker].take() {
                        self.state.put(ticket, plan);
                        return true;
                    }
                    if self.gone[worker] {
                        return false;
                    }
                    match self.state.take() {
                        Polled::Ready(taken) => {
                            self.holds[worker] = Some(taken);
                            true
                        }
                        Polled::Pending => false,
                        Polled::Closed => {
                            self.gone[worker] = true;
                            true
                        }
                    }
                }
                _ if self.over => false,
                _ => match self.state.next() {
                    Polled::Ready(plan) => {
                        assert_eq!(plan, self.got, "batches leave in the order of their plans");
                        self.got += 1;
                        true
                    }
                    Polled::Pending => false,
                    Polled::Closed => {
                        self.over = true;
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
            // One plan may step over the bound.
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
            for who in 0..WORKERS + 2 {
                let mut next = simulation.clone();
                if next.step(who) {
                    moved = true;
                    open.push(next);
                }
            }
            if !moved {
                // None can go on: then all have ended, and nothing is left.
                assert!(
                    simulation.over && simulation.ended && simulation.gone == [true; WORKERS],
                    "a standstill: {}",
                    simulation.key()
                );
                assert_eq!(simulation.got, COSTS.len());
                ends += 1;
            }
        }
        assert!(ends > 0 && seen.len() > 400, "{} states", seen.len());
    }

    #[test]
    fn from_any_state_a_stop_closes_the_queue_for_all() {
        for steps in 0..60u32 {
            let mut simulation = Simulation::start();
            for k in 0..steps {
                simulation.step((k.wrapping_mul(2_654_435_761) >> 13) as usize % (WORKERS + 2));
            }
            simulation.state.stop();
            assert_eq!(simulation.state.may_plan(), Polled::Closed);
            assert!(matches!(simulation.state.take(), Polled::Closed));
            // What was made may still be had, then it is over.
            while let Polled::Ready(_) = simulation.state.next() {}
            assert_eq!(simulation.state.next(), Polled::Closed);
        }
    }
}
