//! Datasets: opening, reading, shards that are replaced, and calls that are cancelled.

mod cancel;
mod dataset;
mod replaced;
