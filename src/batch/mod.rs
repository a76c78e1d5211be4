//! Records to arrays.
mod buf;
mod column;
mod row;
pub use buf::Buf;
pub use column::{BytesColumn, Column, Dense, Ragged, RowSplits, Sparse, Values};
pub use row::Row;
