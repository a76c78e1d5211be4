//! Work on all records of files and datasets: streams, units, threads with results in order, samples, and the
//! ranges that are damaged.

mod checks;
pub mod damage;
mod decodable;
mod episodes;
mod faults;
pub(crate) mod fold;
mod numbered;
mod pictures;
pub mod sample;
mod stream;
mod threads;
pub mod units;
mod verify;

pub use checks::RecordChecks;
pub use decodable::decodable;
pub use faults::{FaultKind, RecordFault, RecordFaults};
pub(crate) use numbered::NumberedRecords;
pub use numbered::guess_kind;
pub use stream::KindedStream;
pub use threads::in_order;
pub use verify::{Verification, VerifyOptions, verify};
