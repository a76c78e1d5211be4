//! `tf.train.Example` and `SequenceExample`: owned messages and their builders.

mod build;
mod owned;

pub use build::{ExampleBuilder, IntoBytes, KeyOrder, SequenceExampleBuilder, ToFloat, ToInt64};
pub use owned::{ExampleBuf, FeatureBuf, SequenceExampleBuf};
