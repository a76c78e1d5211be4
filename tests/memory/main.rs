//! Memory: which calls allocate nothing, and how much memory any input can make a call allocate.

mod caps;
mod checkpoints;
mod hostile_index;
mod many_hosts;
mod max_record;
mod no_alloc;
mod parse_bounds;

#[global_allocator]
static ALLOCATOR: tfseek_testkit::alloc::Counting = tfseek_testkit::alloc::Counting;
