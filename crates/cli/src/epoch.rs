//! A training loop without the training.
//!
//! A batch is asked for, every value in it is looked at, and then the next one is asked for. A *step* lasts from asking for a
//! batch to being done with it. The first one, in which threads start and nothing was read ahead, is told apart.

use crate::console::Console;
use crate::exit::Outcome;
use crate::process::{self, Watch};
use crate::times::Times;
use crate::touch;
use indicatif::ProgressBar;
use std::time::{Duration, Instant};
use tfseek::loader::{Loader, Step};

/// A batch that was waited for so long was not there in time.
const STALL: Duration = Duration::from_millis(1);
/// Skipped records that are named.
const NAMED: u64 = 10;

/// What a run came to.
pub(crate) struct Ran {
    pub(crate) steps: u64,
    pub(crate) examples: u64,
    /// Those that only filled up the last batch.
    pub(crate) padding: u64,
    /// Payload bytes of all of them.
    pub(crate) payload: u64,
    /// The sum of all values.
    pub(crate) sum: u64,
    pub(crate) time: Duration,
    pub(crate) cpu: Option<Duration>,
    /// From the start to the first batch.
    pub(crate) first: Option<Duration>,
    /// The steps behind the first.
    pub(crate) step_times: Times,
    /// Of those the ones that were waited for, and how long.
    pub(crate) stalls: u64,
    pub(crate) stalled: Duration,
    pub(crate) watch: Watch,
    pub(crate) skipped: SkippedRecords,
}

impl Ran {
    pub(crate) fn new() -> Ran {
        Ran {
            steps: 0,
            examples: 0,
            padding: 0,
            payload: 0,
            sum: 0,
            time: Duration::ZERO,
            cpu: None,
            first: None,
            step_times: Times::new(),
            stalls: 0,
            stalled: Duration::ZERO,
            watch: Watch::new(),
            skipped: SkippedRecords::default(),
        }
    }

    /// The loop: so many steps, or until the loader says that the epoch is over, and goes to the next one.
    pub(crate) fn through(&mut self, loader: &mut Loader, most: Option<u64>, bar: &ProgressBar) -> Outcome {
        let (start, cpu) = (Instant::now(), process::cpu());
        let mut asked = start;
        while most.is_none_or(|most| self.steps < most) {
            let Some(made) = loader.next_within(Watch::EVERY) else {
                self.watch.look();
                continue;
            };
            let waited = asked.elapsed();
            let Some(made) = made else { break };
            self.take(made?)?;
            let now = Instant::now();
            match self.first {
                None => self.first = Some(waited),
                Some(_) => {
                    self.step_times.add(now - asked);
                    if waited > STALL {
                        self.stalls += 1;
                        self.stalled += waited;
                    }
                }
            }
            self.watch.at(now);
            bar.inc(1);
            asked = now;
        }
        self.time = start.elapsed();
        self.cpu = cpu.and_then(|before| process::cpu()?.checked_sub(before));
        self.watch.look();
        Ok(())
    }

    fn take(&mut self, step: Step) -> Outcome {
        self.steps += 1;
        self.examples += step.ids().len() as u64;
        self.padding += step.samples().filter(|sample| sample.padding).count() as u64;
        self.payload += step.payload_bytes();
        let sum = match (step.batch(), step.records()) {
            (Some(batch), _) => touch::batch(batch),
            (None, Some(mut records)) => records.try_fold(0u64, |sum, record| {
                Ok::<_, tfseek::Error>(sum.wrapping_add(touch::bytes(record?.payload())))
            })?,
            (None, None) => 0,
        };
        self.sum = self.sum.wrapping_add(sum);
        for skipped in step.skipped() {
            self.skipped.add(format!("record {}: {}", skipped.record, skipped.error));
        }
        Ok(())
    }
}

/// Records that were left out.
#[derive(Default)]
pub(crate) struct SkippedRecords {
    pub(crate) count: u64,
    first: Vec<String>,
}

impl SkippedRecords {
    fn add(&mut self, what: String) {
        if self.count < NAMED {
            self.first.push(what);
        }
        self.count += 1;
    }

    /// Says which.
    pub(crate) fn tell(&self, console: &mut Console) {
        for what in &self.first {
            console.note(format_args!("tfseek: skipped {what}"));
        }
        match self.count - self.first.len() as u64 {
            0 => {}
            1 => console.note("tfseek: and 1 more record was skipped"),
            more => console.note(format_args!("tfseek: and {more} more records were skipped")),
        }
    }
}
