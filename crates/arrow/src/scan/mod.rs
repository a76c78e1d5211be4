//! Scans: the records of a dataset, or of parts of one, as record batches in their order.

mod columns;
mod options;
mod pandas;
mod part_rows;
mod reader;
mod rows;
mod selection;

pub use options::Scan;
pub use reader::ScanReader;
