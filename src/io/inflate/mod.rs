//! Decompression of gzip and zlib files: in order, from a checkpoint on, and after damage.

mod from;
mod header;
mod input;
mod resume;
mod scan;
#[cfg(test)]
mod scan_tests;
mod stream;

pub(crate) use from::{InflateFrom, PausableInflate};
pub(super) use resume::{DamagedInflate, FileBytes, NotInflated, SalvageFile};
pub(crate) use scan::{Checkpoint, CheckpointScan, Checkpoints, PausedInflate, SPACING, WINDOW};
pub(crate) use stream::Inflate;
pub(super) use stream::{first_inflated, first_record, inflates_to_records};
