//! Index files and column files: contents, rules for their use, and damage.

mod columns;
mod concurrency;
mod folders;
mod formats;
mod gaps;
mod gaps_gzip;
mod growing_gzip;
mod hostile;
mod packs;
mod sidecar;
mod staleness;

#[global_allocator]
static ALLOCATOR: tfseek_testkit::alloc::Counting = tfseek_testkit::alloc::Counting;
