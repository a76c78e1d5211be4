//! The protobuf wire format: a cursor over one message.
//!
//! A [`Reader`] owns its sub-slice, so nothing it does can read beyond the enclosing message: a length is
//! compared with what is left before it becomes a slice. The rules are those of protobuf's own decoder, as
//! `docs/format.md` lists them (W1 to W13); a [`Fault`] names the broken rule and the offset in the payload.
//!
//! Names: a function `x` first tries the form that every encoder writes, inlined and without error values (`x_fast`, where
//! that is a function of its own), and then calls `x_slow`, which takes all that protobuf allows and reports errors.

mod fault;
mod reader;
pub(crate) mod varint;

pub(crate) use fault::Fault;
pub(crate) use reader::{MAX_LEN, Reader, Value, count_doubles, count_floats, same};
