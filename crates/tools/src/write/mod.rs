//! Files that are written: fetched shards, sets of shards, datasets written again, salvaged and decompressed
//! files, and the paths of outputs.

pub mod fetch;
pub mod outputs;
mod progress;
pub mod reshard;
pub mod salvage;
pub mod set;
mod sync;
pub mod unpack;

pub(crate) use progress::Tally;
pub use progress::WriteProgress;
