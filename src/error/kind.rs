//! What went wrong.

use super::files::{CompressionError, IndexError, PathsError};
use super::io::Words;
use super::options::OptionsError;
use super::order::OrderError;
use super::payload::{EncodeError, FeatureError, TensorError, WireError};
use super::remedy::Remedy;
use std::fmt;
use std::io;

/// The kind of an [`Error`](super::Error), with the facts that its message states.
#[non_exhaustive]
#[derive(Debug)]
pub enum ErrorKind {
    /// A call to the operating system failed.
    Io(io::Error),
    /// The bytes end before the record does: `need` bytes from the record's start, `have` are there.
    Truncated {
        /// Bytes the record needs, header and footer counted (saturating at `u64::MAX`).
        need: u64,
        /// Bytes there are.
        have: u64,
    },
    /// The header's crc does not belong to the header's length. Both masked, as stored.
    CorruptLength {
        /// Masked CRC32C of the eight length bytes.
        computed: u32,
        /// What the header says.
        stored: u32,
    },
    /// The footer does not belong to the payload. Both masked, as stored.
    CorruptData {
        /// Masked CRC32C of the payload.
        computed: u32,
        /// What the footer says.
        stored: u32,
    },
    /// The payload is not a well-formed message.
    Wire(WireError),
    /// A feature is not what the caller asked for.
    Feature(FeatureError),
    /// No record has a feature of this name.
    UnknownFeature {
        /// The feature that was probably meant, if one has a similar name.
        nearest: Option<Box<str>>,
        /// True for the name of a feature list, which is no feature of the context.
        list: bool,
        /// Some of the features that the first records have, ascending.
        keys: Box<[Box<str>]>,
    },
    /// A message is no tensor, or not the one that was asked for; or a tensor cannot be written as asked.
    Tensor(TensorError),
    /// A buffer does not have the length of the list that is to be copied into it.
    WrongLen {
        /// Values in the list.
        expected: usize,
        /// Elements of the caller's buffer.
        found: usize,
    },
    /// Larger than a message can be, or than a limit the caller set.
    TooLarge {
        /// Bytes there are, or were asked for.
        len: u128,
        /// The limit.
        limit: u64,
    },
    /// More things than can be counted or are taken.
    TooMany {
        /// The things: `records`, `different keys`.
        what: &'static str,
        /// Their number.
        found: u128,
        /// The limit.
        limit: u64,
    },
    /// A record is longer than the option `max_record` allows.
    RecordTooLarge {
        /// Bytes of its payload, by its header or its index.
        len: u64,
        /// The limit.
        max_record: u64,
    },
    /// An ordinal that is not below the number of things that there are.
    OutOfRange {
        /// The thing that is counted: `record`, `shard`.
        what: &'static str,
        /// The ordinal that was asked for, as it was given: below 0 if it counts from the end.
        i: i128,
        /// How many there are.
        len: u64,
    },
    /// The file is something else than a TFRecord file.
    NotTfRecord {
        /// What it looks like: `a git-LFS pointer`.
        looks_like: &'static str,
        /// What can be done about it.
        remedy: Remedy<'static>,
    },
    /// The compressed stream around the records is damaged.
    Compression(CompressionError),
    /// The shard is compressed, so its records cannot be reached at random.
    Compressed {
        /// `gzip` or `zlib`.
        format: &'static str,
    },
    /// A sidecar, a pack or an index in text form cannot be used.
    Index(IndexError),
    /// The paths do not name a dataset.
    Paths(PathsError),
    /// A message or a file cannot be written as asked.
    Encode(EncodeError),
    /// A schema that is refused, in words.
    Spec(Box<str>),
    /// An order, a share of it, or a saved state is refused.
    Order(OrderError),
    /// A filter that cannot be read, or compares what cannot be compared, in words.
    Filter(Box<str>),
    /// An option is missing, or options cannot be met as given.
    Options(OptionsError),
    /// A thread of the library panicked.
    Panicked {
        /// The message of the panic.
        message: Box<str>,
    },
    /// The caller's progress callback ended the call.
    Cancelled,
}

impl ErrorKind {
    /// Returns the remedy, if there is one that helps for sure.
    pub fn remedy(&self) -> Option<Remedy<'_>> {
        Some(match self {
            ErrorKind::Paths(PathsError::MissingShards { .. }) => Remedy::AllowMissing,
            ErrorKind::Paths(PathsError::TooManyMaps { .. }) => Remedy::ReadWithoutMaps,
            ErrorKind::Index(IndexError::Missing) => Remedy::BuildIndex,
            ErrorKind::Index(IndexError::NoColumn { build, .. } | IndexError::BuildLimit { build, .. }) => {
                Remedy::Build(build)
            }
            ErrorKind::Index(IndexError::LengthMismatch { .. }) => Remedy::Rebuild,
            ErrorKind::Index(IndexError::StalePack { pack, .. }) => Remedy::WritePack(pack),
            ErrorKind::Index(IndexError::CorruptSection { file, .. }) => Remedy::Delete(file),
            ErrorKind::Compressed { .. } => Remedy::Unpack,
            ErrorKind::RecordTooLarge { len, .. } => Remedy::MaxRecord(*len),
            ErrorKind::TooMany { what: DIFFERENT_KEYS | BYTES_OF_KEYS, .. } => Remedy::FewerRecords,
            ErrorKind::NotTfRecord { remedy, .. } => *remedy,
            _ => return None,
        })
    }

    /// Returns the kind of the [`io::Error`] that an error of this kind becomes.
    pub(super) fn io_kind(&self) -> io::ErrorKind {
        match self {
            ErrorKind::Io(e) => e.kind(),
            ErrorKind::Truncated { .. }
            | ErrorKind::Compression(CompressionError::Cut { .. })
            | ErrorKind::Index(IndexError::TornTail) => io::ErrorKind::UnexpectedEof,
            ErrorKind::Paths(PathsError::NoMatch { .. } | PathsError::MissingShards { .. })
            | ErrorKind::Index(IndexError::Missing | IndexError::NoColumn { .. }) => io::ErrorKind::NotFound,
            ErrorKind::Compressed { .. }
            | ErrorKind::Paths(PathsError::NotLocal { .. })
            | ErrorKind::Index(IndexError::NotRegular { .. }) => io::ErrorKind::Unsupported,
            ErrorKind::Index(IndexError::BuildLimit { .. } | IndexError::NameClash { .. })
            | ErrorKind::UnknownFeature { .. }
            | ErrorKind::WrongLen { .. }
            | ErrorKind::OutOfRange { .. }
            | ErrorKind::Paths(_)
            | ErrorKind::Encode(EncodeError::DuplicateKey | EncodeError::Int64Range { .. })
            | ErrorKind::Spec(_)
            | ErrorKind::Order(_)
            | ErrorKind::Filter(_)
            | ErrorKind::Options(_)
            | ErrorKind::TooMany { .. } => io::ErrorKind::InvalidInput,
            // Not `Interrupted`, after which a call is made again.
            ErrorKind::Encode(_) | ErrorKind::Panicked { .. } | ErrorKind::Cancelled => io::ErrorKind::Other,
            ErrorKind::CorruptLength { .. }
            | ErrorKind::CorruptData { .. }
            | ErrorKind::Wire(_)
            | ErrorKind::Feature(_)
            | ErrorKind::Tensor(_)
            | ErrorKind::TooLarge { .. }
            | ErrorKind::RecordTooLarge { .. }
            | ErrorKind::NotTfRecord { .. }
            | ErrorKind::Compression(_)
            | ErrorKind::Index(_) => io::ErrorKind::InvalidData,
        }
    }
}

/// The things of [`ErrorKind::TooMany`] where an inference meets more keys than it takes.
pub(crate) const DIFFERENT_KEYS: &str = "different keys";
pub(crate) const BYTES_OF_KEYS: &str = "bytes of different keys";

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Io(e) => Words(e).fmt(f),
            ErrorKind::Truncated { need, have } => {
                write!(f, "truncated: the record needs {need} bytes, the file has {have} more")
            }
            ErrorKind::CorruptLength { computed, stored } => {
                write!(f, "length crc32c is {computed:#010x}, header says {stored:#010x}")
            }
            ErrorKind::CorruptData { computed, stored } => {
                write!(f, "payload crc32c is {computed:#010x}, footer says {stored:#010x}")
            }
            ErrorKind::Wire(e) => e.fmt(f),
            ErrorKind::Feature(e) => e.fmt(f),
            ErrorKind::UnknownFeature { list: true, .. } => f.write_str(
                "no record has this feature in its context: it is a feature list, of which there are no columns",
            ),
            ErrorKind::UnknownFeature { nearest: Some(nearest), .. } => {
                write!(f, "no record has a value of this feature; the nearest is \"{}\"", nearest.escape_debug())
            }
            ErrorKind::UnknownFeature { keys, .. } if keys.is_empty() => {
                f.write_str("no record has a value of this feature, nor have the first ones any other")
            }
            ErrorKind::UnknownFeature { keys, .. } => {
                f.write_str("no record has a value of this feature; the first ones have")?;
                keys.iter().enumerate().try_for_each(|(k, key)| {
                    write!(f, "{} \"{}\"", if k > 0 { "," } else { "" }, key.escape_debug())
                })
            }
            ErrorKind::Tensor(e) => e.fmt(f),
            ErrorKind::WrongLen { expected, found } => {
                write!(f, "the list has {expected} values, the buffer has room for {found}")
            }
            ErrorKind::TooLarge { len, limit } => write!(f, "{len} bytes, the limit is {limit}"),
            ErrorKind::TooMany { what, found, limit } => write!(f, "{found} {what}, the limit is {limit}"),
            ErrorKind::RecordTooLarge { len, max_record } => {
                write!(f, "the record has {len} bytes of payload, more than max_record, {max_record}")
            }
            ErrorKind::OutOfRange { what, i, len } => write!(f, "no {what} {i}: there are {len}"),
            ErrorKind::NotTfRecord { looks_like, .. } => {
                write!(f, "not a TFRecord file, it looks like {looks_like}")
            }
            ErrorKind::Compression(e) => e.fmt(f),
            ErrorKind::Compressed { format } => {
                write!(f, "the shard is {format}-compressed, so its records can only be read in order")
            }
            ErrorKind::Index(e) => e.fmt(f),
            ErrorKind::Paths(e) => e.fmt(f),
            ErrorKind::Encode(e) => e.fmt(f),
            ErrorKind::Spec(reason) => write!(f, "schema refused: {reason}"),
            ErrorKind::Order(e) => e.fmt(f),
            ErrorKind::Filter(reason) => write!(f, "filter refused: {reason}"),
            ErrorKind::Options(e) => e.fmt(f),
            ErrorKind::Panicked { message } => write!(f, "a thread panicked: {message}"),
            ErrorKind::Cancelled => f.write_str("cancelled by the caller"),
        }
    }
}
