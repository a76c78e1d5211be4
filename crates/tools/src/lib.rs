//! Work on TFRecord files beyond reading them, for programs that want what the `tfseek` command does.
//!
//! * [`verify`] checks all checksums of a stream, and decodes its records.
//! * [`Content`] is a decoded record with sorted keys; [`digest`] is equal for equal content, whatever the encoding.
//! * [`NpzWriter`] writes batches as a NumPy archive.
//! * [`KindedStream`] is a stream of records whose kind is known, or guessed from the first of them.
//!
//! The crate uses the public interface of `tfseek` only, prints nothing and knows no command line.
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

// Nothing that a file holds ends in a panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

mod content;
pub mod digest;
mod npz;
mod stream;
mod verify;

pub use content::{Content, Map};
pub use npz::NpzWriter;
pub use stream::KindedStream;
pub use verify::{Verification, verify};
