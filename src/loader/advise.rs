//! When the system is asked for bytes before their turn.
//!
//! Advice costs more than a warm record takes, and saves a factor of five or more on a cold one. So it is given only while
//! records turn out to be cold: a batch whose first records were slow to touch starts it, and probes that are warm end it.
//!
//! The touch of a record that nobody asked for is dear where the system reads ahead: it waits for all of that, megabytes on some
//! machines. Hence one slow touch is enough of a reason to look closer, and a probe asks for its own page before it touches it.

use super::plan::Plan;
use crate::dataset::{COLD, Dataset, Located};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Instant;

/// Records that are touched before it is decided.
const WINDOW: usize = 16;
/// Records that are looked at closer.
const CLOSER: usize = 4;
/// Probes in a row that must be warm before advice ends.
const WARM: u32 = 8;

/// What the workers have seen.
#[derive(Default)]
pub(super) struct Advice {
    cold: AtomicBool,
    warm: AtomicU32,
}

impl Advice {
    /// Asks for all records of a batch, if records are cold.
    pub(super) fn ahead(&self, dataset: &Dataset, plan: &mut Plan) {
        if self.cold.load(Relaxed) {
            plan.advised = true;
            // The last one is left alone: it is the probe.
            let probe = plan.located.len().saturating_sub(1);
            plan.located.iter().take(probe).flatten().for_each(|at| dataset.will_need(at));
        }
    }

    /// Makes the records of a batch be there. Of cold ones all bytes are mapped at once, which also turns a failing disk into an
    /// error instead of a signal.
    pub(super) fn at_hand(&self, dataset: &Dataset, plan: &Plan) -> std::io::Result<()> {
        let records = || plan.located.iter().flatten();
        if plan.advised {
            if let Some(Some(probe)) = plan.located.last() {
                match is_cold(dataset, probe) {
                    true => self.warm.store(0, Relaxed),
                    false if self.warm.fetch_add(1, Relaxed) + 1 >= WARM => self.cold.store(false, Relaxed),
                    false => {}
                }
                dataset.will_need(probe);
            }
        } else if self.cold.load(Relaxed) || touch_all(dataset, records()) {
            if !self.cold.swap(true, Relaxed) {
                self.warm.store(0, Relaxed);
            }
            // Late for this batch, and still better than one record after the other.
            records().for_each(|at| dataset.will_need(at));
        } else {
            return Ok(());
        }
        records().try_for_each(|at| dataset.populate(at))
    }
}

/// Loads a byte of each record, so that the processor overlaps their cache misses; stops early, and says so, if they are cold.
fn touch_all<'a>(dataset: &Dataset, mut records: impl Iterator<Item = &'a Located>) -> bool {
    let mut slow = |most: usize| {
        let start = Instant::now();
        let touched = records.by_ref().take(most).map(|at| dataset.touch(at)).count();
        start.elapsed() > COLD * touched as u32
    };
    if slow(1) || slow(WINDOW - 1) {
        // The thread may have lost its processor for a while: then the next ones are not slow.
        let mut next = records.by_ref().take(CLOSER).peekable();
        if next.peek().is_none() || next.any(|at| is_cold(dataset, at)) {
            return true;
        }
    }
    dataset.touch_all(records);
    false
}

/// Whether a record has to be waited for. No other bytes are asked for than those of its header.
fn is_cold(dataset: &Dataset, at: &Located) -> bool {
    let start = Instant::now();
    dataset.will_need(&at.header());
    dataset.touch(at);
    start.elapsed() > COLD
}

#[cfg(test)]
mod tests {
    use super::super::plan::Cursor;
    use super::super::queue::Cost;
    use super::*;
    use crate::Mapped;
    use crate::frame::put_record;

    #[test]
    fn advice_ends_when_probes_are_warm_and_is_not_given_for_what_memory_holds() {
        let mut bytes = Vec::new();
        (0..64).for_each(|_| put_record(&mut bytes, &[7; 100]).unwrap());
        let dataset = Mapped::from_bytes(bytes).unwrap();
        let plan = || Plan {
            runs: Vec::new(),
            ids: (0..64).collect(),
            located: (0..64).map(|i| dataset.locate(i).ok()).collect(),
            faults: Vec::new(),
            after: Cursor { epoch: 0, position: 64 },
            cost: Cost::default(),
            advised: false,
        };
        // Somebody had to wait.
        let advice = Advice { cold: AtomicBool::new(true), warm: AtomicU32::new(0) };
        let mut batches = 0;
        loop {
            let mut plan = plan();
            advice.ahead(&dataset, &mut plan);
            advice.at_hand(&dataset, &plan).unwrap();
            if !plan.advised {
                break;
            }
            batches += 1;
            // A thread that loses its processor takes a probe for cold; not for ever.
            assert!(batches < 10_000);
        }
        assert!(batches >= WARM);
        let touched = (0..100).filter(|_| touch_all(&dataset, plan().located.iter().flatten())).count();
        assert!(touched < 100, "all batches in memory were taken for cold");
    }
}
