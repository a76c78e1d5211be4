//! When the system is asked for bytes before their turn.
//!
//! Advice costs more than a warm record takes, and saves a factor of five or more on a cold one. So it is given only while
//! records turn out to be cold: a batch whose first records were slow to touch starts it, and probes that are warm end it.

use super::source::Plan;
use crate::dataset::Dataset;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Records that are touched before it is decided.
const WINDOW: usize = 16;
/// A record that took longer to touch waited for a disk: a warm one takes 0.2 us, the slowest disk's cache 20.
const COLD: Duration = Duration::from_micros(10);
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
        if plan.advised {
            if let Some(Ok(probe)) = plan.located.last() {
                let start = Instant::now();
                dataset.touch(probe);
                match start.elapsed() > COLD {
                    true => self.warm.store(0, Relaxed),
                    false if self.warm.fetch_add(1, Relaxed) + 1 >= WARM => self.cold.store(false, Relaxed),
                    false => {}
                }
            }
            return plan.located.iter().flatten().try_for_each(|at| dataset.populate(at));
        }
        let start = Instant::now();
        let first = plan.located.iter().take(WINDOW).flatten();
        first.for_each(|at| dataset.touch(at));
        if start.elapsed() > COLD * WINDOW.min(plan.located.len()).max(1) as u32 {
            self.warm.store(0, Relaxed);
            self.cold.store(true, Relaxed);
            // Late for this batch, and still better than one record after the other.
            plan.located.iter().skip(WINDOW).flatten().for_each(|at| dataset.will_need(at));
            return plan.located.iter().flatten().try_for_each(|at| dataset.populate(at));
        }
        Ok(())
    }
}
