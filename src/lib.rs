//! Random access to the TFRecord files you already have.

#[cfg(doctest)]
mod compile_fail;
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
pub mod stream;
mod wire;
pub mod writer;

pub use dataset::{Dataset, Mapped, Options};
pub use error::{At, Error, ErrorKind, Place, Result};
pub use example::{
    BytesList, Example, ExampleBuf, ExampleBuilder, Feature, FeatureBuf, FeatureList, FloatList, Int64List,
    KeyOrder, Kind, SequenceExample, SequenceExampleBuf, SequenceExampleBuilder,
};
pub use index::{Index, IndexMode, Tail};
pub use io::Compression;
pub use record::Record;
pub use shard::Verify;
pub use stream::Stream;
pub use writer::{ShardedWriter, Writer};
