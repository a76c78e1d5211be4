//! A training loop that only reads.
//!
//! The loop requests a batch, reads every value in it, and requests the next one. A *step* lasts from the
//! request for a batch until all its values have been read. The first batch is measured separately: during it
//! the threads start, and nothing is read ahead.

use crate::console::Console;
use crate::exit::{DATA, Failure, Outcome};
use crate::process::{self, MemoryMonitor};
use crate::times::TimeHistogram;
use crate::value_sum;
use indicatif::ProgressBar;
use std::time::{Duration, Instant};
use tfseek::loader::{Loader, NextStep, Step};

/// A batch that the loop waits for longer than this counts as a stall.
const STALL: Duration = Duration::from_millis(1);
/// Maximum number of skipped records that are listed.
const MAX_LISTED: u64 = 10;

/// Measurements of a run.
#[derive(Default)]
pub(crate) struct RunStats {
    pub(crate) steps: u64,
    pub(crate) examples: u64,
    /// Number of examples that are padding of the last batch.
    pub(crate) padding: u64,
    /// Payload bytes of all examples.
    pub(crate) payload: u64,
    /// Sum of all values.
    pub(crate) sum: u64,
    pub(crate) time: Duration,
    pub(crate) cpu: Option<Duration>,
    /// Time from the start to the first batch.
    pub(crate) first: Option<Duration>,
    /// Times of the steps after the first.
    pub(crate) step_times: TimeHistogram,
    /// Number of stalls among the steps after the first.
    pub(crate) stalls: u64,
    /// Total time of these stalls.
    pub(crate) stalled: Duration,
    pub(crate) memory: MemoryMonitor,
    pub(crate) skipped: SkippedRecords,
}

impl RunStats {
    /// Runs at most `max_steps` steps, or until the loader reports the end of the epoch, after which it is at
    /// the next epoch.
    pub(crate) fn run(&mut self, loader: &mut Loader, max_steps: Option<u64>, bar: &ProgressBar) -> Outcome {
        let start = Instant::now();
        let cpu = process::cpu();
        let mut requested = start;
        while max_steps.is_none_or(|max| self.steps < max) {
            let step = match loader.next_within(MemoryMonitor::INTERVAL) {
                NextStep::Ready(step) => step?,
                NextStep::EpochEnd(skipped) => {
                    self.skip(&skipped);
                    break;
                }
                NextStep::Timeout => {
                    self.memory.sample();
                    continue;
                }
            };
            let waited = requested.elapsed();
            self.add(step)?;
            let now = Instant::now();
            match self.first {
                None => self.first = Some(waited),
                Some(_) => {
                    self.step_times.add(now - requested);
                    if waited > STALL {
                        self.stalls += 1;
                        self.stalled += waited;
                    }
                }
            }
            self.memory.sample_if_due(now);
            bar.inc(1);
            requested = now;
        }
        self.time = start.elapsed();
        self.cpu = cpu.and_then(|before| process::cpu()?.checked_sub(before));
        self.memory.sample();
        Ok(())
    }

    fn add(&mut self, step: Step) -> Outcome {
        self.steps += 1;
        self.examples += step.ids.len() as u64;
        self.padding += step.samples().filter(|sample| sample.padding).count() as u64;
        self.payload += step.payload_bytes;
        let sum = match (step.batch(), step.records()) {
            (Some(batch), _) => value_sum::batch(batch),
            (None, Some(mut records)) => records.try_fold(0u64, |sum, record| {
                Ok::<_, tfseek::Error>(sum.wrapping_add(value_sum::bytes(record?.payload())))
            })?,
            (None, None) => 0,
        };
        self.sum = self.sum.wrapping_add(sum);
        self.skip(&step.skipped);
        Ok(())
    }

    fn skip(&mut self, skipped: &[(u64, tfseek::Error)]) {
        for (record, e) in skipped {
            self.skipped.add(format!("record {record}: {e}"));
        }
    }
}

/// Records that were skipped.
#[derive(Default)]
pub(crate) struct SkippedRecords {
    pub(crate) count: u64,
    /// The first records, each with its error.
    first: Vec<String>,
}

impl SkippedRecords {
    fn add(&mut self, record_and_error: String) {
        if self.count < MAX_LISTED {
            self.first.push(record_and_error);
        }
        self.count += 1;
    }

    /// Prints the first records, and reports their number if there are any.
    pub(crate) fn print(&self, console: &mut Console) {
        for skipped in &self.first {
            console.note(format_args!("tfseek: left out {skipped}"));
        }
        match self.count {
            0 => {}
            1 => console.report(&Failure::Message(DATA, "1 record was left out".into())),
            n => console.report(&Failure::Message(DATA, format!("{n} records were left out"))),
        }
    }
}
