//! From a dataset to batches: an order, threads that read ahead, and batches in that order.
//!
//! ```text
//! order (arithmetic) -> plan -> announce -> threads: read, verify, parse a batch -> batches in order -> you
//! ```
//!
//! The unit of work is a batch. A thread takes the next plan, reads, verifies and parses its records into memory of its own, and
//! hands the batch over. Batches leave in the order of their plans, whichever thread was faster. Batches and bytes under way are
//! bounded.
//!
//! Files in the order of the work: `plan` (positions to plans), `advise` (when the system is asked for bytes ahead), `queue` (the
//! bounded queue between threads), `worker` (one batch), `step` (the result), `loader` (threads, and the iterator), `options`.

#[expect(clippy::module_inception, reason = "the file of the type `Loader`")]
mod loader;
#[cfg(all(test, target_os = "linux"))]
mod memory_tests;
mod options;
mod plan;
mod queue;
mod step;
#[cfg(test)]
mod tests;
mod worker;

pub use loader::Loader;
pub use options::{LoaderOptions, LoaderVerify, Shuffle};
pub use step::{Skipped, Step};
pub use worker::ErrorPolicy;
