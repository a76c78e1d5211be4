//! Datasets: opening, reading, replaced shards, and cancelled calls.

mod cancel;
mod compressed;
mod damaged;
mod dataset;
mod replaced;
