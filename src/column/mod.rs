//! Columns: one feature's value for each record, stored in files next to the indexes.
//!
//! A [`DatasetColumn`] has the values of all shards. It serves filters ([`Filter`](crate::Filter)) and orders
//! that balance classes ([`DatasetColumn::classes`]). A [`FeatureColumn`] has the values of one shard and is
//! stored in a column file (`docs/index.md`).
//!
//! Column files are read like indexes. Opening one takes O(1), and each section's crc is checked at its first
//! use. A file is used only if it matches the shard exactly.

mod build;
mod classes;
mod data;
mod dataset;
mod feature;
mod known;
mod layout;
mod left_out;
mod obtain;
mod scan;
mod select;
mod selection;
mod store;
mod undecided;

pub use crate::filter::value::Value;
pub use dataset::DatasetColumn;
pub use feature::FeatureColumn;
pub use obtain::ColumnOptions;
