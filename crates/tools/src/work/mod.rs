//! Work on all records of files and datasets: streams, units, threads with results in order, samples, and the ranges that are damaged.

pub mod damage;
mod decodable;
mod episodes;
pub(crate) mod fold;
mod numbered;
pub mod sample;
mod stream;
mod threads;
pub mod units;
mod verify;

pub use decodable::decodable;
pub use episodes::{EpisodeChecker, EpisodeChecks, EpisodeFault, EpisodeFaultKind, EpisodeFaults};
pub(crate) use numbered::NumberedRecords;
pub use numbered::guess_kind;
pub use stream::KindedStream;
pub use threads::in_order;
pub use verify::{Verification, VerifyOptions, verify, verify_episodes};
