//! Internal crate of tfseek: the work of the command, also for the Python package and the viewer.
//!
//! * [`verify`] verifies all checksums of a stream and decodes its records, [`VerifyOptions::run`] does so
//!   for many files.
//! * [`RecordChecks`] finds faults in pictures and in the steps of episodes that checksums do not tell.
//! * [`Content`] is a decoded record with sorted keys, [`FeatureSelection`] keeps some of its features. The
//!   module [`digest`] computes digests of it.
//! * The module [`unpack`] decompresses files to plain ones. [`outputs`] checks the paths of files before
//!   they are written.
//! * The module [`grep`] searches for records in [`units`] of work. [`in_order`] divides work among threads.
//! * The module [`sizes`] parses sizes such as `200MB`, [`times`] finds numbers that are times, [`wildcards`]
//!   matches names with patterns.
//! * The module [`sample`] draws records at random in one pass.
//! * The module [`reshard`](mod@reshard) writes a dataset again: in other shards, shuffled, sorted, split, or
//!   with fewer features.
//! * The module [`set`] writes records that arrive one after the other as a set of shards, also in several
//!   processes.
//! * The module [`fetch`] copies shards from a store.
//! * The module [`damage`] finds the damaged ranges of a file, and [`salvage`] copies the sound records.
//! * The module [`record_json`] writes records as JSON, [`proto_json`] in protobuf's form, and [`encode`]
//!   makes records from JSON. [`bare`] reads and writes payloads without TFRecord's framing.
//! * The module [`fields`] shows the fields of protobuf messages of unknown types.
//! * The module [`validate`] compares records with a schema, of tfseek or of TensorFlow Metadata ([`tfx`]).
//! * [`Inference`] infers a schema from records. The module [`schema_code`] writes a schema as Python code for
//!   TensorFlow.
//! * The module [`stats`] computes statistics of records and features. [`ReportValue`] is a value of theirs.
//! * [`thousands`], [`percent`] and [`brief`] write numbers as text, the module [`words`] names and numbers of
//!   things in messages.
//! * The module [`hints`] has the hints after the messages of errors, [`warnings`] the fields of warnings.
//! * [`decodable`] finds the records of a dataset that decode and meet a condition.
//! * [`KindedStream`] is a stream of records of one kind, which is given, or guessed from the first records.
//! * [`ToolsError`] is the error of this work, with kinds.
//!
//! The crate uses only the public interface of `tfseek`. It prints nothing and is independent of the command
//! line.
//!
//! ```
//! use tfseek::ExampleBuilder;
//! use tfseek::example::MessageKind;
//! use tfseek_tools::{Content, digest};
//!
//! let one = ExampleBuilder::new().int64("label", [3]).encode()?;
//! let content = Content::decode(&one, MessageKind::Example)?;
//! assert_eq!(digest::content(&content).unwrap().len(), 64);
//! # Ok::<(), tfseek::Error>(())
//! ```

// No file content causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod describe;
mod digits;
mod error;
mod forms;
pub mod hints;
mod infer;
pub mod memory;
pub mod sizes;
pub mod times;
mod value;
pub mod warnings;
pub mod wildcards;
pub mod words;
mod work;
mod write;

pub use describe::{grep, stats, tfx, validate};
pub use digits::{brief, percent, thousands};
pub use error::{
    FetchReason, OptionsReason, OutputConflict, PathReason, SavedReason, SplitReason, TextPosition,
    ToolsError,
};
pub use forms::{
    Content, FeatureSelection, bare, digest, encode, fields, proto_json, record_json, schema_code,
};
pub use infer::{Finding, Inference};
pub use value::ReportValue;
pub use work::{
    FaultKind, KindedStream, RecordChecks, RecordFault, RecordFaults, Verification, VerifyOptions, damage,
    decodable, guess_kind, in_order, sample, units, verify,
};
pub use write::{WriteProgress, fetch, outputs, reshard, salvage, set, unpack};
