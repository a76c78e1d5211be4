//! Records to arrays, with the meaning of `tf.io.parse_example` and without its losses.
//!
//! A [`BatchParser`] takes rows (anything that is a [`Row`]: slices, vectors, records) and gives a [`Batch`] of columns as a
//! [`Schema`](crate::Schema) describes them. Each record is walked once; features that nobody asked for are skipped unread;
//! then each column is filled in a run. Whatever a batch holds is `'static`: memory out of the parser's pool, or the
//! memory that the rows lie in.
//!
//! The result for a payload is what TensorFlow makes of the same message written by protobuf: the last entry of a key counts,
//! chunks and members are merged, nothing is lost that is legal. `docs/parsing.md` has the table of departures.

mod assemble;
mod bytes;
mod column;
mod compile;
mod decode;
mod keys;
mod locate;
mod output;
mod parser;
mod pool;
mod ragged;
mod row;
mod slots;
mod sparse;

pub use column::{BytesColumn, Column, Dense, Ragged, RowSplits, Sparse, Values};
pub use output::Batch;
pub use parser::BatchParser;
pub use pool::Buf;
pub(crate) use pool::BytePool;
pub use row::Row;
