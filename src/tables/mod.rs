//! Tables of records: what a layer above knows of each stored record, in a file beside the index.
//!
//! A [`TableFormat`] makes the table of a record and its number, for example of the items in it.
//! [`RecordTables`] are the tables of a dataset. Their files are found, extended and built like columns
//! (`docs/index.md`).

mod file;
mod format;
mod layout;
mod obtain;
mod records;

pub use format::{TableFormat, TableOptions};
pub use records::RecordTables;
