//! Scans: the records of a dataset, or of parts of one, as record batches in their order.

mod options;
mod part_rows;
mod reader;
mod rows;

pub use options::Scan;
pub use reader::ScanReader;
