//! Random access to the TFRecord files you already have.
//!
//! A TFRecord file is records one after the other, and where the millionth starts nobody knows who has not read those
//! before it. tfseek scans a shard once, keeps an index of about four bytes a record, and from then on a set of shards
//! is an array: records are found by number, lent out of a memory map, and looked into as `tf.train.Example` without a
//! copy or an allocation.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! use tfseek::{ExampleBuilder, Mapped, DatasetOptions};
//!
//! // Shards that somebody has written: train-00000-of-00002.tfrecord, ..
//! let mut writer = tfseek::writer::WriterOptions::new().create_shards(dir.path().join("train"), ".tfrecord", 2)?;
//! for i in 0..1000 {
//!     writer.write(&ExampleBuilder::new().int64("label", [i % 10]).float("emb", [i as f32; 8]).encode()?)?;
//! }
//! writer.close()?;
//!
//! // As an array of records.
//! # let options = DatasetOptions::new().index(tfseek::index::IndexOptions::new().index_dir(dir.path().join("index")));
//! # let path = |name: &str| dir.path().join(name);
//! // SAFETY: these shards are written once.
//! let ds: Mapped = unsafe { options.open_mapped(path("train-*.tfrecord")) }?;
//! let example = ds.get(640)?.example();
//! assert_eq!(example.float("emb")?.len(), 8);
//! assert_eq!(example.get("no such feature")?.map(|f| f.len()), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which type do I want?
//!
//! | | |
//! | --- | --- |
//! | records by number, from files that are written once | [`Mapped`]: lends them, copies nothing |
//! | records by number, and no promise about the files | [`Dataset`]: reads them into your buffer |
//! | records in file order; gzip and zlib; standard input | [`Stream`]: needs no index |
//! | the features of a record | [`Example`], [`SequenceExample`]: views that borrow |
//! | records as arrays, for training | [`Schema`] and [`BatchParser`]: the meaning of `tf.io.parse_example` |
//! | the order of an epoch: shuffles, mixtures, shares of ranks, saved states | [`order`]: arithmetic, for any number of records |
//! | shuffled epochs in batches, for training: threads, ranks, exact resume | [`Dataset::loader`], [`Loader`] (`docs/shuffling.md`) |
//! | to make records | [`ExampleBuilder`], [`SequenceExampleBuilder`] |
//! | tensors in a bytes feature, as `tf.io.serialize_tensor` writes them | [`parse_tensor`], [`serialize_tensor`], [`tensor`] |
//! | to write them | [`Writer`], [`ShardedWriter`] |
//! | to name shards | [`paths`]: patterns, sets, what is missing |
//! | one feature of all records: classes, filters | [`Dataset::column`], [`Dataset::select`] |
//! | to build and keep indexes yourself | [`index`] |
//! | framing and checksums of bytes in memory | [`frame`], [`crc`] |
//!
//! What the bytes mean is TensorFlow's meaning, bit for bit, but for departures that lose no data: `docs/format.md`. Every error
//! says where: path, record, byte offset, feature ([`Error`]). Damage never passes in silence, and no bytes, however wrong,
//! cause a panic, a read out of bounds or an allocation that they did not pay for.
//!
//! # Features
//!
//! | | |
//! | --- | --- |
//! | `dataset` (default) | the whole crate; it includes `json` |
//! | `json` | [`order::State`]: checkpoints, which are JSON |
//!
//! Without default features the crate is what needs neither files nor threads, and next to no dependencies: [`crc`], [`frame`],
//! [`example`], [`tensor`], [`order`], [`error`](mod@error) and [`policy`].
//!
//! Opening a dataset may write an index: to a folder you name, to `TFSEEK_INDEX_DIR`, or to the user's cache folder, and never
//! beside the data unless you ask ([`index`]).

// Some functions of the lower storeys have their only callers in the upper ones.
#![cfg_attr(not(feature = "dataset"), allow(dead_code, unused_imports))]
// Nothing that a user gives ends in a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

#[cfg(feature = "dataset")]
pub mod batch;
#[cfg(feature = "dataset")]
pub mod column;
#[cfg(all(doctest, feature = "dataset"))]
mod compile_fail;
pub mod crc;
#[cfg(feature = "dataset")]
pub mod dataset;
pub mod error;
pub mod example;
#[cfg(feature = "dataset")]
pub mod filter;
pub mod frame;
#[cfg(feature = "dataset")]
pub mod index;
#[cfg(feature = "dataset")]
pub mod io;
#[cfg(feature = "dataset")]
pub mod loader;
pub mod order;
#[cfg(feature = "dataset")]
pub mod paths;
pub mod policy;
#[cfg(feature = "dataset")]
mod record;
#[cfg(feature = "dataset")]
pub mod schema;
#[cfg(feature = "dataset")]
pub mod stream;
pub mod tensor;
#[cfg(feature = "dataset")]
mod warning;
mod wire;
#[cfg(feature = "dataset")]
pub mod writer;

#[cfg(feature = "dataset")]
pub use batch::{Batch, BatchParser, Column};
#[cfg(feature = "dataset")]
pub use column::Selection;
#[cfg(feature = "dataset")]
pub use dataset::{Dataset, DatasetOptions, Mapped};
pub use error::{At, Error, ErrorKind, Location, Result};
pub use example::{
    BytesList, Example, ExampleBuf, ExampleBuilder, Feature, FeatureBuf, FeatureKind, FeatureList, FloatList,
    Int64List, KeyOrder, SequenceExample, SequenceExampleBuf, SequenceExampleBuilder,
};
#[cfg(feature = "dataset")]
pub use filter::Filter;
#[cfg(feature = "dataset")]
pub use index::Index;
#[cfg(feature = "dataset")]
pub use io::inflate::Compression;
#[cfg(feature = "dataset")]
pub use io::threads::{MAX_THREADS, threads};
#[cfg(feature = "dataset")]
pub use loader::{Loader, LoaderOptions, Shuffle};
pub use order::Order;
pub use policy::{IndexMode, Tail, Verify};
#[cfg(feature = "dataset")]
pub use record::Record;
#[cfg(feature = "dataset")]
pub use schema::{DType, FeatureSpec, Schema};
#[cfg(feature = "dataset")]
pub use stream::Stream;
pub use tensor::{Tensor, TensorDType, parse_tensor, serialize_tensor};
#[cfg(feature = "dataset")]
pub use warning::Warning;
#[cfg(feature = "dataset")]
pub use writer::{ShardedWriter, Writer};
