//! What the targets run. It lives with the tests, which run it over the corpora.

#[path = "../../tests/common/mod.rs"]
mod common;

pub use common::agree::{example, sequence};
pub use common::agree_parse::parse;
pub use common::roundtrip::roundtrip;
pub use common::targets::{column, frames, index, tensor};
