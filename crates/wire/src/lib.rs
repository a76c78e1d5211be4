//! Internal crate of tfseek: protobuf's wire format, a cursor over one message, varints, and the encoding of
//! fields. A version of it fits one version of the library.
//!
//! A [`WireReader`] is confined to the slice of one message, so it cannot read beyond that message: a length
//! is compared with the bytes that are left before a slice is taken. The rules come from protobuf's own
//! decoder, as tfseek's `docs/format.md` lists them (W1 to W13). A [`Fault`] contains the violated rule and
//! the offset in the payload.
//!
//! [`VectorWork`] is compiled for the vector instructions that the processor has, also in other crates.
//!
//! Naming: a function `x` first tries the form that every encoder writes, inlined and without error values
//! (`x_fast`, if that is a separate function). It then calls `x_slow`, which accepts everything that protobuf
//! allows and reports errors.

#![cfg_attr(docsrs, feature(doc_cfg))]
// No bytes cause a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod cpu;
mod error;
mod fault;
mod reader;
pub mod varint;
mod write;

pub use cpu::VectorWork;
pub use error::WireError;
pub use fault::Fault;
pub use reader::{MAX_LEN, WireReader, WireValue, count_doubles, count_floats, keys_equal};
pub use write::{field_len, put_field, put_head, put_varint};
