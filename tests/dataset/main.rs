//! Datasets: opening, reading, growing and replaced shards, and cancelled calls.

mod cancel;
mod compressed;
mod damaged;
mod dataset;
mod parts;
mod ranges;
mod refresh;
mod replaced;
mod tables;
mod torn_compressed;
mod warnings;
