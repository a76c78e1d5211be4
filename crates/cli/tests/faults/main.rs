//! The command under faults: failing system calls, full disks, short reads, kills, limits, hostile files and
//! planted links.
//!
//! docs/reliability.md has the number of faults and their results. `make test-slow` runs the ignored tests.

#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod cases;
mod disk;
#[cfg(feature = "remote")]
mod fetches;
mod forgets;
mod hostile;
mod kills;
mod limits;
mod links;
mod memory;
mod power;
mod sets;
mod soak;
mod support;
mod transfers;
mod writer;
