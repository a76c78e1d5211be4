//! Work on all records of files and datasets: streams, units, threads with results in order, samples, and the ranges that are damaged.

pub mod damage;
mod decodable;
mod numbered;
pub mod sample;
mod stream;
pub mod units;
mod verify;

pub use decodable::decodable;
pub use numbered::{NumberedRecords, guess_kind};
pub use stream::KindedStream;
pub use verify::{Verification, verify};
