//! Parsing of records into arrays, with the semantics of `tf.io.parse_example` and without its data loss.
//!
//! A [`BatchParser`] parses rows (anything that implements [`Row`]: slices, vectors, records) into a
//! [`Batch`] of columns, as a [`Schema`](crate::Schema) describes them. Each record is scanned once, and
//! features that the schema does not name are skipped unread. Then the columns are filled one after the
//! other. A batch is `'static`: it holds memory from the parser's pool, or shared references to the memory of
//! the rows.
//!
//! The result for a payload is what TensorFlow returns for the same message written by protobuf: the last
//! entry of a key counts, and chunks and members are merged, so no legal data is lost. `docs/parsing.md` has
//! the table of differences.

mod array;
mod assemble;
mod bytes;
mod column;
mod compile;
mod decode;
mod decoder;
mod dense;
mod fit;
mod keys;
mod locate;
mod merge;
mod names;
mod output;
mod parser;
mod pool;
mod predict;
mod ragged;
mod row;
mod sample;
mod skeleton;
mod slots;
mod span;
mod sparse;
mod unpack;
mod value_type;

pub use array::{ArrayBits, ArrayValues};
pub use column::{BytesColumn, Column, Dense, Optional, Ragged, RowSplits, Sparse, Values};
pub use decoder::{ColumnDecoder, DecodeContext};
pub use dense::{dense_from_sparse, pad_rows};
pub(crate) use merge::MergedRow;
pub use output::Batch;
pub use parser::BatchParser;
pub(crate) use pool::BytePool;
pub use pool::{Buf, SharedPool};
pub use row::Row;
