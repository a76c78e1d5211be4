//! Datasets: opening, reading, replaced shards, and cancelled calls.

mod cancel;
mod compressed;
mod dataset;
mod replaced;
