//! The record framing: pure checks of a header and a footer, and the records of a slice.
//!
//! A TFRecord file is a sequence of records and nothing else. The layout of one record, all little-endian:
//!
//! ```text
//! | 0..8          | length of the payload, u64         | \ header, 12 bytes
//! | 8..12         | masked CRC32C of bytes 0..8        | /
//! | 12..12+length | payload                            |
//! | ..16+length   | masked CRC32C of the payload       |   footer, 4 bytes
//! ```
//!
//! Nothing here allocates. A length is compared with the bytes that are present before it is used.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod checks;
mod parser;
mod salvage;
#[cfg(test)]
mod salvage_tests;
mod search;

#[cfg(test)]
pub(crate) use checks::put_header;
pub use checks::{FOOTER_LEN, HEADER_LEN, OVERHEAD, frames, put_record};
pub(crate) use checks::{
    RecordHeader, check_header, payload_at, payload_fault, payload_is_sound, split_header,
    starts_with_record, truncated, unverified_payload, whole_len,
};
pub(crate) use parser::{Event, Parser, Torn};
pub(crate) use salvage::{Salvage, SalvageStep};
pub(crate) use search::find_chain;
