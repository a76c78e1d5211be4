//! The bodies of the fuzz targets. They are in `tfseek-testkit`, and in the tests of `tfseek-image`,
//! `tfseek-tfds`, `tfseek-tools` and `tfseek-view`, since tests run them over the corpora.

#[path = "../../crates/image/tests/image/target.rs"]
mod image;

#[path = "../../crates/tfds/tests/directory/target.rs"]
mod directory;

#[path = "../../crates/tfds/tests/target/target.rs"]
mod features;

#[path = "../../crates/tools/tests/tfx/target.rs"]
mod tfx;

#[path = "../../crates/view/tests/request/target.rs"]
mod request;

pub use directory::dataset_info;
pub use features::{features_json, features_record};
pub use image::image;
pub use request::request;
pub use tfx::tfx;

pub use tfseek_testkit::agree::{example, sequence};
pub use tfseek_testkit::agree_parse::parse;
pub use tfseek_testkit::roundtrip::roundtrip;
pub use tfseek_testkit::targets::{
    checkpoints, column, compressed, filter, frames, index, paths, predicted, salvage, schema, state, steps, tensor,
};
