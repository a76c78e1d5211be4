//! Datasets: opening, reading, replaced shards, and cancelled calls.

mod cancel;
mod dataset;
mod replaced;
