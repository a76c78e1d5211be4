//! What tests, benches and fuzz targets share: a seed's numbers, odd payloads, naive twins, and the properties that
//! hold views and twins together. Each of them uses a part.

#![allow(dead_code, unreachable_pub)]

pub mod agree;
pub mod agree_parse;
pub mod arrays;
pub mod hex;
pub mod order_twin;
pub mod payloads;
pub mod rng;
pub mod roundtrip;
pub mod shaped;
pub mod spelled;
pub mod targets;
pub mod tensor_twin;
pub mod tensors;
pub mod twin;
pub mod twin_parse;
