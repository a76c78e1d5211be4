//! Record batches are equal to the bit to the arrays that TensorFlow, and a naive twin of the parser, have
//! for the same records.

mod cells;
mod columns;
mod encode;
mod errors;
mod feature_cases;
mod features;
mod memory;
mod nested;
mod same_values;
mod saved_columns;
mod scan;

/// Counts the allocations of each thread.
#[global_allocator]
static ALLOCATOR: tfseek_testkit::alloc::Counting = tfseek_testkit::alloc::Counting;
