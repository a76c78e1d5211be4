//! Columns: one feature's value for each record, in files beside the indexes.
//!
//! A [`DatasetColumn`] has the values of all shards: for filters ([`Filter`](crate::Filter), [`Selection`]) and for orders that balance classes
//! ([`Classes`]). A [`FeatureColumn`] is one shard's part of it, kept in a column file (`docs/index.md`). A column file is read
//! as an index is: O(1) to open, each section checked by its crc at its first use, and taken only if it is of this very file.

mod build;
mod classes;
mod data;
mod dataset;
mod feature;
mod known;
mod layout;
mod obtain;
mod scan;
mod select;
mod store;

pub use crate::filter::value::Value;
pub use dataset::{Classes, DatasetColumn};
pub use feature::FeatureColumn;
pub use obtain::ColumnOptions;
pub use select::Selection;
