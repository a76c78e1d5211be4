//! Random access to the TFRecord files you already have.

pub mod crc;
pub mod error;
pub mod frame;
pub mod index;
pub mod io;

pub use error::{At, Error, ErrorKind, Place, Result};
