//! The protobuf wire format: a cursor over one message.
//!
//! A [`WireReader`] is confined to the slice of one message, so it cannot read beyond that message: a length
//! is compared with the bytes that are left before a slice is taken. The rules come from protobuf's own
//! decoder, as `docs/format.md` lists them (W1 to W13). A [`Fault`] contains the violated rule and the offset
//! in the payload.
//!
//! Naming: a function `x` first tries the form that every encoder writes, inlined and without error values
//! (`x_fast`, if that is a separate function). It then calls `x_slow`, which accepts everything that protobuf
//! allows and reports errors.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod fault;
mod reader;
pub(crate) mod varint;

pub(crate) use fault::Fault;
pub(crate) use reader::{MAX_LEN, WireReader, WireValue, count_doubles, count_floats, keys_equal};
