//! Framing, messages, tensors, streams and the writer: bytes and their meaning, without an index.

mod example_twin;
mod follow;
mod framing;
mod fuzz_corpus;
mod stream;
mod stream_damage;
mod tensor;
mod views;
mod wire_cases;
mod writer;

#[global_allocator]
static ALLOCATOR: tfseek_testkit::alloc::Counting = tfseek_testkit::alloc::Counting;
