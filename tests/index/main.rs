//! Index files and column files: what they hold, when they are used, and what damage does to them.

mod columns;
mod concurrency;
mod packs;
mod sidecar;
mod staleness;

#[global_allocator]
static ALLOCATOR: tfseek_testkit::alloc::Counting = tfseek_testkit::alloc::Counting;
