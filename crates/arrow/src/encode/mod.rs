//! From record batches back to records.

mod encoder;
mod levels;
mod nested;
mod options;
mod plan;
mod values;

pub use encoder::Encoder;
pub use options::EncoderOptions;
