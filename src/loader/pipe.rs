//! A [`Gate`] with a lock, and threads that wait for it.

use super::queue::{Answer, Cost, Gate, Limits};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The gate, and one bell for each of the three who wait at it.
pub(super) struct Pipe<P, T> {
    gate: Mutex<Gate<P, T>>,
    planner: Condvar,
    workers: Condvar,
    consumer: Condvar,
}

impl<P, T> Pipe<P, T> {
    pub(super) fn new(limits: Limits) -> Pipe<P, T> {
        Pipe {
            gate: Mutex::new(Gate::new(limits)),
            planner: Condvar::new(),
            workers: Condvar::new(),
            consumer: Condvar::new(),
        }
    }

    /// No call of the gate panics halfway, so what a poisoned lock holds is sound.
    fn gate(&self) -> MutexGuard<'_, Gate<P, T>> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another batch may be planned; false if there is no use in it any more.
    pub(super) fn wait_to_plan(&self) -> bool {
        let mut gate = self.gate();
        loop {
            match gate.may_plan() {
                Answer::Here(()) => return true,
                Answer::Over => return false,
                Answer::Wait => gate = self.planner.wait(gate).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub(super) fn plan(&self, plan: P, cost: Cost) {
        self.gate().plan(plan, cost);
        self.workers.notify_one();
    }

    pub(super) fn end_plan(&self) {
        self.gate().end_plan();
        self.workers.notify_all();
        self.consumer.notify_all();
    }

    /// Waits for a batch to make.
    pub(super) fn take(&self) -> Option<(u64, P)> {
        let mut gate = self.gate();
        loop {
            match gate.take() {
                Answer::Here(taken) => {
                    drop(gate);
                    self.planner.notify_one();
                    return Some(taken);
                }
                Answer::Over => return None,
                Answer::Wait => gate = self.workers.wait(gate).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub(super) fn put(&self, ticket: u64, batch: T) {
        self.gate().put(ticket, batch);
        self.consumer.notify_one();
    }

    /// Waits for the next batch, at most so long if that is said. `Wait`: the time is over.
    pub(super) fn next(&self, patience: Option<Duration>) -> Answer<T> {
        let mut gate = self.gate();
        loop {
            match gate.next() {
                Answer::Wait => {}
                answer => {
                    drop(gate);
                    // Room for one more: for a worker that waits with a plan, and thereby for the planner.
                    self.workers.notify_all();
                    return answer;
                }
            }
            gate = match patience {
                None => self.consumer.wait(gate).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let (gate, late) =
                        self.consumer.wait_timeout(gate, patience).unwrap_or_else(PoisonError::into_inner);
                    if late.timed_out() {
                        return Answer::Wait;
                    }
                    gate
                }
            };
        }
    }

    /// Bytes of the batches that are being made, or are made and wait.
    pub(super) fn bytes(&self) -> u64 {
        self.gate().bytes()
    }

    /// Ends everything. Returns the plans that were not taken.
    pub(super) fn stop(&self) -> Vec<P> {
        let left = self.gate().stop();
        self.planner.notify_all();
        self.workers.notify_all();
        self.consumer.notify_all();
        left
    }
}
