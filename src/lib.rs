//! Random access to TFRecord files of `tf.train.Example`.
//!
//! A TFRecord file is a sequence of framed records, and the offset of a record is not known until all records
//! before it are read. tfseek scans each file (*shard*) once and saves an index of about four bytes per
//! record. After that a set of shards is an array: records are accessed by number, borrowed from a memory
//! map, and read as `tf.train.Example` without copies or allocations.
//!
//! ```
//! use tfseek::writer::WriterOptions;
//! use tfseek::{Dataset, DType, ExampleBuilder, Schema, Shuffle, schema::FeatureSpec};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Two shards with their indexes: train-00000-of-00002.tfrecord and train-00001-of-00002.tfrecord.
//!     let dir = tempfile::tempdir()?;
//!     let options = WriterOptions { index: Some(Default::default()), ..Default::default() };
//!     let mut writer = options.create_shards(dir.path().join("train"), ".tfrecord", 2)?;
//!     for i in 0..1000 {
//!         writer.write(&ExampleBuilder::new().int64("label", [i % 10]).float("emb", [i as f32; 8]).encode()?)?;
//!     }
//!     writer.close()?;
//!
//!     // An array of records.
//!     let ds = Dataset::open(dir.path().join("train-*.tfrecord"))?;
//!     let mut buf = Vec::new();
//!     let example = ds.read(640, &mut buf)?.example();
//!     assert_eq!(example.float("emb")?.len(), 8);
//!     assert!(example.get("no such feature")?.is_none());
//!
//!     // A shuffled epoch in batches.
//!     let schema = Schema::example().feature("label", FeatureSpec::fixed_len(&[], DType::Int64)).build()?;
//!     for step in ds.loader(&schema).batch_size(100).shuffle(Shuffle::Global).seed(42).build()? {
//!         assert_eq!(step?.batch().unwrap().int64("label")?.len(), 100);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Types by task
//!
//! | task | type |
//! | --- | --- |
//! | access records by number, in files that do not change while they are mapped | [`Mapped`]: borrows records, copies nothing |
//! | access records by number, in any files | [`Dataset`]: reads records into your buffer |
//! | read records in file order; gzip and zlib; standard input | [`Stream`]: needs no index |
//! | read a file that is still being written | [`follow`] |
//! | divide a dataset among processes or machines | [`Dataset::shares`], [`Part`] |
//! | read the features of a record | [`Example`], [`SequenceExample`]: views that borrow the payload |
//! | parse records into arrays | [`Schema`], [`BatchParser`]: the semantics of `tf.io.parse_example` ([parsing.md]) |
//! | train on shuffled epochs in batches | [`Dataset::loader`], [`Loader`]: threads, ranks, exact resume ([shuffling.md]) |
//! | compute the order of an epoch | [`order`]: shuffles, mixtures, ranks' shares, saved states ([order.md]) |
//! | find records by a feature | [`Dataset::column`], [`Dataset::select`]: classes and filters |
//! | build records | [`ExampleBuilder`], [`SequenceExampleBuilder`] |
//! | write records to files | [`Writer`], [`ShardedWriter`] |
//! | store tensors in a bytes feature, as `tf.io.serialize_tensor` does | [`parse_tensor`], [`serialize_tensor`], [`tensor`] |
//! | select shards | [`paths`]: patterns, sets, missing shards ([paths.md]) |
//! | build and store indexes | [`index`] ([index.md]) |
//! | frame and verify records in memory | [`frame`], [`crc`] ([format.md]) |
//!
//! # Guarantees
//!
//! * Results are the same as TensorFlow's, bit for bit. [format.md] and [parsing.md] list the exceptions,
//!   none of which loses data.
//! * An [`Error`] contains its location as far as it is known: path, record, byte offset, feature.
//! * Checksums are verified on each access by default, and damage is an error. No input causes a panic, an
//!   out-of-bounds read, or an allocation out of proportion to its size.
//! * Data files are never changed. Opening a dataset may write an index: to a specified folder, to the folder
//!   in `TFSEEK_INDEX_DIR`, or to the user's cache folder. It is written next to the data only on request
//!   ([`index`]).
//!
//! # Crate features
//!
//! | feature | contents |
//! | --- | --- |
//! | `dataset` (default) | the whole crate; includes `json` |
//! | `json` | [`order::State`]: saved states as JSON |
//!
//! Without default features the crate needs no files and no threads and has few dependencies. It consists of
//! [`crc`], [`frame`], [`example`], [`tensor`], [`order`], [`error`](mod@error) and [`policy`].
//!
//! # Further documentation
//!
//! * [format.md], TFRecord files of examples
//! * [paths.md], paths and patterns of a dataset
//! * [index.md], use and format of index files
//! * [parsing.md], schemas and batches
//! * [shuffling.md], shuffling, batches and resume
//! * [order.md], the definition of all orders
//! * [performance.md], measurements
//! * [tutorial.md], [cookbook.md] and [all other pages][docs]
//!
//! [format.md]: https://github.com/tfseek/tfseek/blob/main/docs/format.md
//! [paths.md]: https://github.com/tfseek/tfseek/blob/main/docs/paths.md
//! [index.md]: https://github.com/tfseek/tfseek/blob/main/docs/index.md
//! [parsing.md]: https://github.com/tfseek/tfseek/blob/main/docs/parsing.md
//! [shuffling.md]: https://github.com/tfseek/tfseek/blob/main/docs/shuffling.md
//! [order.md]: https://github.com/tfseek/tfseek/blob/main/docs/order.md
//! [performance.md]: https://github.com/tfseek/tfseek/blob/main/docs/performance.md
//! [tutorial.md]: https://github.com/tfseek/tfseek/blob/main/docs/tutorial.md
//! [cookbook.md]: https://github.com/tfseek/tfseek/blob/main/docs/cookbook.md
//! [docs]: https://github.com/tfseek/tfseek/blob/main/docs/README.md

// On docs.rs, items name the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Without `dataset`, some functions of the lower layers have no callers.
#![cfg_attr(not(feature = "dataset"), allow(dead_code, unused_imports))]
// No input of a user may cause a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

#[cfg(feature = "dataset")]
pub mod batch;
mod cache;
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
#[cfg(feature = "dataset")]
pub mod follow;
pub mod frame;
#[cfg(feature = "dataset")]
mod image;
#[cfg(feature = "dataset")]
pub mod index;
#[cfg(feature = "dataset")]
pub mod io;
#[cfg(feature = "dataset")]
pub mod loader;
mod memory;
pub mod order;
#[cfg(feature = "dataset")]
mod part;
#[cfg(feature = "dataset")]
pub mod paths;
pub mod policy;
#[cfg(feature = "dataset")]
mod record;
#[cfg(feature = "dataset")]
pub mod schema;
#[cfg(feature = "dataset")]
mod sound;
#[cfg(feature = "dataset")]
pub mod stream;
#[cfg(feature = "dataset")]
pub mod tables;
pub mod tensor;
#[cfg(feature = "dataset")]
mod warning;
#[cfg(feature = "dataset")]
pub mod writer;

#[cfg(feature = "dataset")]
pub use batch::{Batch, BatchParser, Column};
#[cfg(feature = "dataset")]
pub use dataset::{Dataset, DatasetOptions, Mapped};
pub use error::{At, Error, ErrorKind, Location, Result};
pub use example::{
    DType, Example, ExampleBuf, ExampleBuilder, Feature, FeatureBuf, FeatureList, List, SequenceExample,
    SequenceExampleBuf, SequenceExampleBuilder,
};
#[cfg(feature = "dataset")]
pub use filter::Filter;
#[cfg(feature = "dataset")]
pub use index::Index;
#[cfg(feature = "dataset")]
pub use io::compression::Compression;
#[cfg(feature = "dataset")]
pub use io::threads::{MAX_THREADS, threads};
#[cfg(feature = "dataset")]
pub use loader::{Loader, LoaderOptions, Shuffle};
pub use order::Order;
#[cfg(feature = "dataset")]
pub use part::Part;
pub use policy::{Damage, IndexMode, Tail, Verify};
#[cfg(feature = "dataset")]
pub use record::Record;
#[cfg(feature = "dataset")]
pub use schema::{FeatureSpec, Schema};
#[cfg(feature = "dataset")]
pub use stream::Stream;
pub use tensor::{Tensor, TensorDType, parse_tensor, serialize_tensor};
#[cfg(feature = "dataset")]
pub use warning::{Gap, Warning};
#[cfg(feature = "dataset")]
pub use writer::{ShardedWriter, Writer};
