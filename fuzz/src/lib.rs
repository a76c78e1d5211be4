//! The bodies of the fuzz targets. They are in `tfseek-testkit`, since a test runs them over the corpora.

pub use tfseek_testkit::agree::{example, sequence};
pub use tfseek_testkit::agree_parse::parse;
pub use tfseek_testkit::roundtrip::roundtrip;
pub use tfseek_testkit::targets::{
    checkpoints, column, compressed, filter, frames, index, paths, salvage, schema, state, tensor, text_index,
};
