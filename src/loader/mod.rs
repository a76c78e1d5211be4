//! From a dataset to batches: an order, threads that read ahead, and batches in that order.
//!
//! ```text
//! order (arithmetic) -> plan -> announce -> threads: read, verify, parse a batch -> batches in order -> you
//! ```
//!
//! The unit of work is a batch. A thread takes the next one, turns its positions into records, reads, checks and parses them
//! into memory of its own, and hands it over; batches leave in the order of their plans, whoever was faster. How far it runs
//! ahead is bounded in batches and in bytes.

#[expect(clippy::module_inception, reason = "the file of the type `Loader`")]
mod loader;
mod options;
mod pipe;
mod plan;
mod queue;
mod step;
mod worker;

pub use loader::Loader;
pub use options::{LoaderOptions, LoaderVerify, Shuffle};
pub use step::{Records, Skipped, Step};
pub use worker::ErrorPolicy;
