//! The hand-over between planner, workers and consumer: who may go on, and in which order batches leave.
//!
//! A [`Gate`] is a plain state machine. It knows no threads and no clock, so that a test can try every order in which its
//! calls can come; [`Pipe`](super::pipe::Pipe) puts a lock around it.
//!
//! ```text
//! planner --plan--> | plans, in order | --take--> workers --put--> | done, by ticket | --next--> consumer
//!                    look-ahead bound             memory bound, batches ahead
//! ```

use std::collections::VecDeque;

/// What a batch will cost while it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// How far each of the three may run ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Batches that are being made, or are made and wait.
    pub(super) batches: usize,
    /// Bytes of their payloads. One batch may always be made, however large.
    pub(super) memory: u64,
    /// Records that are planned and not yet taken, and their bytes; so many records at least.
    pub(super) ahead_records: u64,
    pub(super) ahead_bytes: u64,
    pub(super) ahead_least: u64,
}

/// The answer to one who asks for something.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer<T> {
    Here(T),
    /// Not yet: ask again when something has changed.
    Wait,
    /// Nothing will come any more.
    Over,
}

pub(super) struct Gate<P, T> {
    limits: Limits,
    plans: VecDeque<(P, Cost)>,
    ahead: Cost,
    /// Nothing is planned any more.
    planned: bool,
    /// Batches that were taken and not yet handed out, in order: `None` while they are made.
    made: VecDeque<(Option<T>, u64)>,
    /// The ticket of the first of them.
    first: u64,
    /// Bytes of all of them.
    bytes: u64,
    stopped: bool,
}

impl<P, T> Gate<P, T> {
    pub(super) fn new(limits: Limits) -> Gate<P, T> {
        Gate {
            limits,
            plans: VecDeque::new(),
            ahead: Cost::default(),
            planned: false,
            made: VecDeque::new(),
            first: 0,
            bytes: 0,
            stopped: false,
        }
    }

    /// Whether the planner may plan another batch.
    pub(super) fn may_plan(&self) -> Answer<()> {
        let Limits { ahead_records, ahead_bytes, ahead_least, .. } = self.limits;
        if self.stopped || self.planned {
            Answer::Over
        } else if self.plans.is_empty()
            || self.ahead.records < ahead_least
            || (self.ahead.records < ahead_records && self.ahead.bytes < ahead_bytes)
        {
            Answer::Here(())
        } else {
            Answer::Wait
        }
    }

    /// The planner's next batch.
    pub(super) fn plan(&mut self, plan: P, cost: Cost) {
        self.ahead.records += cost.records;
        self.ahead.bytes = self.ahead.bytes.saturating_add(cost.bytes);
        self.plans.push_back((plan, cost));
    }

    /// The planner has no more.
    pub(super) fn end_plan(&mut self) {
        self.planned = true;
    }

    /// The next batch to be made, and its ticket.
    pub(super) fn take(&mut self) -> Answer<(u64, P)> {
        if self.stopped || (self.planned && self.plans.is_empty()) {
            return Answer::Over;
        }
        let Some((_, cost)) = self.plans.front() else { return Answer::Wait };
        let fits = self.made.len() < self.limits.batches
            && self.bytes.checked_add(cost.bytes).is_some_and(|bytes| bytes <= self.limits.memory);
        // The one that the consumer waits for is made in any case: else nobody would go on.
        if !fits && !self.made.is_empty() {
            return Answer::Wait;
        }
        let Some((plan, cost)) = self.plans.pop_front() else { return Answer::Wait };
        self.ahead.records -= cost.records;
        self.ahead.bytes = match self.plans.is_empty() {
            true => 0,
            false => self.ahead.bytes.saturating_sub(cost.bytes),
        };
        self.bytes = self.bytes.saturating_add(cost.bytes);
        let ticket = self.first + self.made.len() as u64;
        self.made.push_back((None, cost.bytes));
        Answer::Here((ticket, plan))
    }

    /// A batch that was made.
    pub(super) fn put(&mut self, ticket: u64, batch: T) {
        let place = ticket.checked_sub(self.first).and_then(|k| self.made.get_mut(k as usize));
        if let Some((slot, _)) = place {
            *slot = Some(batch);
        }
    }

    /// The consumer's next batch.
    pub(super) fn next(&mut self) -> Answer<T> {
        match self.made.front_mut() {
            Some((slot, bytes)) => match slot.take() {
                Some(batch) => {
                    self.bytes = self.bytes.saturating_sub(*bytes);
                    self.made.pop_front();
                    self.first += 1;
                    Answer::Here(batch)
                }
                None if self.stopped => Answer::Over,
                None => Answer::Wait,
            },
            None if self.stopped || (self.planned && self.plans.is_empty()) => Answer::Over,
            None => Answer::Wait,
        }
    }

    /// Ends everything. Returns the plans that were not taken.
    pub(super) fn stop(&mut self) -> Vec<P> {
        self.stopped = true;
        self.plans.drain(..).map(|(plan, _)| plan).collect()
    }

    /// Bytes of the batches that are being made, or are made and wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const LIMITS: Limits =
        Limits { batches: 4, memory: 10, ahead_records: 3, ahead_bytes: 12, ahead_least: 1 };
    /// One is larger than the memory, and one larger than the look-ahead.
    const COSTS: [u64; 9] = [4, 1, 11, 3, 2, 20, 1, 5, 2];
    const WORKERS: usize = 3;

    /// Every order in which a planner, three workers and a consumer can come to the gate, with what each of them is about to do.
    /// All calls are made under one lock, so these are all the interleavings there are.
    #[derive(Clone)]
    struct World {
        gate: Gate<usize, usize>,
        planned: usize,
        ended: bool,
        /// The ticket and the plan that a worker holds.
        holds: [Option<(u64, usize)>; WORKERS],
        gone: [bool; WORKERS],
        got: usize,
        over: bool,
    }

    impl Clone for Gate<usize, usize> {
        fn clone(&self) -> Self {
            Gate {
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

    impl World {
        /// Before anybody came.
        fn start() -> World {
            World {
                gate: Gate::new(LIMITS),
                planned: 0,
                ended: false,
                holds: [None; WORKERS],
                gone: [false; WORKERS],
                got: 0,
                over: false,
            }
        }

        fn key(&self) -> String {
            let gate = &self.gate;
            format!(
                "{:?} {:?} {} {:?} {:?} {} {} {}",
                gate.plans, gate.made, gate.first, self.holds, self.gone, self.planned, self.ended, self.over
            )
        }

        /// One step of actor `who`; false if it has to wait, or has gone.
        fn step(&mut self, who: usize) -> bool {
            match who {
                0 if self.ended => false,
                0 => match self.gate.may_plan() {
                    Answer::Here(()) if self.planned == COSTS.len() => {
                        self.gate.end_plan();
                        self.ended = true;
                        true
                    }
                    Answer::Here(()) => {
                        let cost = Cost { records: 1, bytes: COSTS[self.planned] };
                        self.gate.plan(self.planned, cost);
                        self.planned += 1;
                        true
                    }
                    Answer::Wait => false,
                    Answer::Over => panic!("nobody has stopped it"),
                },
                1..=WORKERS => {
                    let worker = who - 1;
                    if let Some((ticket, plan)) = self.holds[worker].take() {
                        self.gate.put(ticket, plan);
                        return true;
                    }
                    if self.gone[worker] {
                        return false;
                    }
                    match self.gate.take() {
                        Answer::Here(taken) => {
                            self.holds[worker] = Some(taken);
                            true
                        }
                        Answer::Wait => false,
                        Answer::Over => {
                            self.gone[worker] = true;
                            true
                        }
                    }
                }
                _ if self.over => false,
                _ => match self.gate.next() {
                    Answer::Here(plan) => {
                        assert_eq!(plan, self.got, "batches leave in the order of their plans");
                        self.got += 1;
                        true
                    }
                    Answer::Wait => false,
                    Answer::Over => {
                        self.over = true;
                        true
                    }
                },
            }
        }

        fn check(&self) {
            let gate = &self.gate;
            let bytes: u64 = gate.made.iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(bytes, gate.bytes());
            assert!(gate.bytes() <= LIMITS.memory || gate.made.len() == 1, "memory");
            assert!(gate.made.len() <= LIMITS.batches, "batches");
            let ahead: u64 = gate.plans.iter().map(|(_, cost)| cost.bytes).sum();
            assert_eq!((gate.plans.len() as u64, ahead), (gate.ahead.records, gate.ahead.bytes));
            // One plan may step over the bound.
            let before: u64 = gate.plans.iter().rev().skip(1).map(|(_, cost)| cost.bytes).sum();
            assert!(gate.plans.len() <= 3 && before < LIMITS.ahead_bytes, "look-ahead");
        }
    }

    #[test]
    fn every_interleaving_ends_with_all_batches_in_order() {
        let mut seen = HashSet::new();
        let mut ends = 0;
        let mut open = vec![World::start()];
        while let Some(world) = open.pop() {
            if !seen.insert(world.key()) {
                continue;
            }
            world.check();
            let mut moved = false;
            for who in 0..WORKERS + 2 {
                let mut next = world.clone();
                if next.step(who) {
                    moved = true;
                    open.push(next);
                }
            }
            if !moved {
                // Nobody can go on: then everybody has ended, and nothing is left.
                assert!(
                    world.over && world.ended && world.gone == [true; WORKERS],
                    "a standstill: {}",
                    world.key()
                );
                assert_eq!(world.got, COSTS.len());
                ends += 1;
            }
        }
        assert!(ends > 0 && seen.len() > 400, "{} states", seen.len());
    }

    #[test]
    fn from_any_state_a_stop_sends_everybody_home() {
        for steps in 0..60u32 {
            let mut world = World::start();
            for k in 0..steps {
                world.step((k.wrapping_mul(2_654_435_761) >> 13) as usize % (WORKERS + 2));
            }
            world.gate.stop();
            assert_eq!(world.gate.may_plan(), Answer::Over);
            assert!(matches!(world.gate.take(), Answer::Over));
            // What was made may still be had, then it is over.
            while let Answer::Here(_) = world.gate.next() {}
            assert_eq!(world.gate.next(), Answer::Over);
        }
    }
}
