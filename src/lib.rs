//! Random access to the TFRecord files you already have.

pub mod crc;
pub mod error;
pub mod example;
pub mod frame;
pub mod io;
pub mod paths;

pub use error::{At, Error, ErrorKind, Place, Result};
