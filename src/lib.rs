//! Random access to the TFRecord files you already have.

pub mod crc;
pub mod error;
pub mod example;
pub mod frame;
pub mod index;
pub mod io;
mod record;
mod wire;

pub use error::{At, Error, ErrorKind, Place, Result};
pub use example::{BytesList, Example, Feature, FeatureList, FloatList, Int64List, Kind, SequenceExample};
pub use record::Record;
