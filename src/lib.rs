//! Random access to the TFRecord files you already have.

pub mod crc;
pub mod dataset;
pub mod error;
pub mod example;
pub mod frame;
pub mod index;
pub mod io;
pub mod paths;
mod pool;
mod record;
mod shard;
mod wire;

pub use dataset::{Dataset, Mapped, Options};
pub use error::{At, Error, ErrorKind, Place, Result};
pub use example::{
    BytesList, Example, ExampleBuf, ExampleBuilder, Feature, FeatureBuf, FeatureList, FloatList, Int64List,
    KeyOrder, Kind, SequenceExample, SequenceExampleBuf, SequenceExampleBuilder,
};
pub use index::{Index, IndexMode, Tail};
pub use record::Record;
pub use shard::Verify;
