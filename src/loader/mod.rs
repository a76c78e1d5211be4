//! From a dataset to batches: an order, threads that read ahead, and batches in that order.
//!
//! ```text
//! order (arithmetic) -> tickets -> threads: plan, read, verify, parse a batch -> batches in order -> caller
//! ```
//!
//! The unit of work is a batch. A thread draws the next ticket, which is the number of a batch, plans the
//! batch, reads, verifies and parses its records into its own buffers, and puts the batch into the queue.
//! Batches leave the queue in the order of their tickets, whichever thread finishes first. The number of
//! batches in flight and their payload bytes are bounded.
//!
//! Records that are not in memory have to be requested long before they are read. Then a planner draws the
//! tickets ahead of the threads. Only one thread can request in order. Otherwise workers plan for themselves,
//! because a planner costs a wake-up for each batch.
//!
//! Files in the order of the work: `plan` (positions to plans), `queue` (the bounded queue between threads),
//! `worker` (makes one batch), `times`, `pace` (the number of threads), `step` (the result), `loader` (the
//! threads and the iterator), `options`. Prefetching is in `dataset/prefetch.rs`, and `blocks_ahead` requests
//! whole blocks of objects.

mod blocks_ahead;
mod left_out;
#[expect(clippy::module_inception, reason = "the file of the type `Loader`")]
mod loader;
#[cfg(all(test, target_os = "linux"))]
mod memory_tests;
mod mix;
mod options;
mod pace;
mod plan;
mod queue;
mod sources;
mod step;
#[cfg(test)]
mod tests;
mod times;
mod worker;

pub use loader::{Loader, NextStep};
pub use mix::Mix;
pub use options::{LoaderOptions, Shuffle};
pub use step::{RowLengths, Step};
pub use times::LoaderTimes;
