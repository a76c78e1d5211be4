//! Internal crate of tfseek: data sets that TensorFlow Datasets (TFDS) prepared as TFRecord files, without
//! TensorFlow and without protobuf. `docs/tfds.md` has the meaning of all files.
//!
//! * A [`Builder`] opens the folder of a data set, and selects records with specifications such as
//!   `train[:80%]`.
//! * [`Features`] are the features in `features.json`, with the names of labels.
//! * A [`Decoder`] is compiled from features once. It makes nested values of a record, decoded when they are
//!   asked for, and columns of batches.
//! * An [`Encoder`] makes records of nested values.
//! * [`Episodes`] are the steps of a data set of episodes, and [`EpisodeWindows`] records of several steps.
//!
//! ```no_run
//! use tfseek_tfds::{Builder, DecodeOptions, Decoder, RecordValue};
//!
//! let coco = Builder::open("tensorflow_datasets/coco/2017/1.1.0", &Default::default())?;
//! let train = coco.select("train[:80%]")?;
//! let decoder = Decoder::new(coco.features().unwrap(), &DecodeOptions::default())?;
//!
//! let mut buf = Vec::new();
//! let record = decoder.record(&train.dataset.read(7, &mut buf)?)?;
//! let Some(RecordValue::Array(boxes)) = record.get("objects/bbox")? else { panic!("no boxes") };
//! assert_eq!(boxes.shape()[1], 4);
//!
//! let mut loader = train.dataset.record_loader().parser(decoder.parser()?).batch_size(64).build()?;
//! let step = loader.next().unwrap()?;
//! let labels = step.batch().unwrap().int64("objects/label")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
// No file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod array;
mod blank;
mod builder;
mod check;
#[cfg(test)]
mod check_tests;
mod columns;
mod compile;
mod copy;
mod decoder;
mod encoder;
mod episodes;
mod error;
mod feature;
mod folder;
mod found;
mod grammar;
mod info;
mod item;
mod json;
mod labels;
mod metadata;
mod parts;
mod pixels;
mod record;
mod set_folder;
mod splits;
mod statistics;
mod template;
mod windows;

pub use array::Array;
pub use builder::{Builder, BuilderOptions, Opener, Split, SplitSelection};
pub use check::{CheckedInfo, CheckedSplit, FileSplit, SplitCheck};
pub use compile::{DecodeOptions, LeafColumn, Node};
pub use copy::CopySource;
pub use decoder::Decoder;
pub use encoder::{Encoder, Scalars};
pub use episodes::Episodes;
pub use error::{TfdsError, TfdsErrorKind};
pub use feature::{Encoding, FeatureTree, Features, Labels, LeafClass, LeafFeature, SequenceFeature};
pub use folder::is_prepared;
pub use found::{FoundFeatures, StoredFeature};
pub use info::{DatasetInfo, SplitInfo};
pub use metadata::{SetMetadata, WrittenSplit};
pub use record::{Record, RecordValue, Steps};
pub use splits::Rounding;
pub use statistics::{KeyStatistics, StatisticsOptions, StatisticsStyle, StepStatistics};
pub use windows::{EpisodeWindows, Offsets, WindowOptions};
