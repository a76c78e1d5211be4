//! The kinds of errors.

use super::files::{CompressionError, IndexError, PathsError};
use super::filter::FilterError;
use super::io::IoMessage;
use super::options::OptionsError;
use super::order::OrderError;
use super::part::PartError;
use super::payload::{EncodeError, FeatureError, TensorError};
use super::remedy::Remedy;
use super::text::Count;
use std::fmt;
use std::io;
use tfseek_wire::WireError;

/// The kind of an [`Error`](super::Error), with the facts that its message states.
#[non_exhaustive]
#[derive(Debug)]
pub enum ErrorKind {
    /// A call to the operating system failed.
    Io(io::Error),
    /// The bytes end inside a record.
    Truncated {
        /// Number of bytes of the record, header and footer included. Saturates at `u64::MAX`.
        need: u64,
        /// Number of bytes from the start of the record to the end.
        have: u64,
    },
    /// The crc in the header does not match the length. Both values are masked, as stored.
    CorruptLength {
        /// Masked CRC32C of the eight length bytes.
        computed: u32,
        /// Masked CRC32C in the header.
        stored: u32,
    },
    /// The crc in the footer does not match the payload. Both values are masked, as stored.
    CorruptData {
        /// Masked CRC32C of the payload.
        computed: u32,
        /// Masked CRC32C in the footer.
        stored: u32,
    },
    /// The payload is not a well-formed message.
    Wire {
        /// Kind of malformation.
        reason: WireError,
        /// Byte offset of the reader in the payload.
        offset: usize,
    },
    /// The record is a message of another kind than the one that is read, which shows only a part of it.
    OtherKind {
        /// Name of the kind that is read.
        expected: &'static str,
        /// Name of the record's kind.
        found: &'static str,
    },
    /// A feature does not match the request.
    Feature(FeatureError),
    /// No record has a feature of the requested name.
    UnknownFeature {
        /// Feature with the most similar name, if one is similar enough.
        nearest: Option<Box<str>>,
        /// True if the name is the name of a feature list, which is not part of the context.
        list: bool,
        /// Some of the features of the first records, in ascending order.
        keys: Box<[Box<str>]>,
    },
    /// A message is not a tensor or not the requested one, or a tensor cannot be serialized as requested.
    Tensor(TensorError),
    /// A picture cannot be decoded as its spec requires.
    Picture {
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// A value cannot be decoded as its feature requires.
    Value {
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// A buffer has another length than the list that is to be copied into it.
    WrongLen {
        /// Number of values in the list.
        expected: usize,
        /// Length of the caller's buffer.
        found: usize,
    },
    /// A size exceeds the maximum of a message, or a limit that the caller set.
    TooLarge {
        /// Number of bytes, present or requested.
        len: u128,
        /// Limit in bytes.
        limit: u64,
    },
    /// A number of things exceeds a limit.
    TooMany {
        /// Name of the things, e.g. `records` or `different keys`.
        what: &'static str,
        /// Number of the things.
        found: u128,
        /// Limit of the number.
        limit: u64,
    },
    /// A record exceeds the option `max_record`.
    RecordTooLarge {
        /// Payload length in bytes, according to the header or the index.
        len: u64,
        /// Limit in bytes.
        max_record: u64,
    },
    /// An ordinal is not below the number of things.
    OutOfRange {
        /// Name of the thing, e.g. `record` or `shard`.
        what: &'static str,
        /// Requested ordinal, as given. Negative if it counts from the end.
        i: i128,
        /// Number of the things.
        len: u64,
    },
    /// The file is not a TFRecord file.
    NotTfRecord {
        /// Format that the first bytes indicate, e.g. `a git-LFS pointer`.
        looks_like: &'static str,
        /// Remedy for a file of this format.
        remedy: Remedy<'static>,
    },
    /// The compressed stream is damaged, or does not have the specified format.
    Compression(CompressionError),
    /// The shard is compressed, which maps and text indexes do not support.
    Compressed {
        /// `gzip` or `zlib`.
        format: &'static str,
    },
    /// A file that is read while it is written became shorter, was replaced or was removed.
    Changed {
        /// Difference, with the expected and the found value.
        reason: Box<str>,
    },
    /// Records of an open dataset would get other numbers, because shards have changed other than at the end.
    Renumbered {
        /// Difference, with the expected and the found value.
        reason: Box<str>,
    },
    /// An epoch, or thousands of records in a row, has no record that can be read and parsed, so that leaving
    /// them out leaves nothing.
    NoSoundRow {
        /// Number of the records, the first one and its error.
        reason: Box<str>,
    },
    /// A sidecar, a pack or an index in text form cannot be used.
    Index(IndexError),
    /// The paths do not specify a dataset.
    Paths(PathsError),
    /// A message or a file cannot be written as requested.
    Encode(EncodeError),
    /// A schema is invalid. Contains the reason.
    Spec(Box<str>),
    /// An order, a rank's share, or a saved state is refused.
    Order(OrderError),
    /// A dataset cannot be divided into parts, or a part is refused.
    Part(PartError),
    /// A condition cannot be parsed, or does not fit the records.
    Filter(FilterError),
    /// An option is missing, or options are invalid in this combination.
    Options(OptionsError),
    /// A thread of the library panicked.
    Panicked {
        /// Message of the panic.
        message: Box<str>,
    },
    /// The caller's progress callback cancelled the call.
    Cancelled,
}

impl ErrorKind {
    /// Returns the remedy, if there is one that is certain to help.
    pub fn remedy(&self) -> Option<Remedy<'_>> {
        Some(match self {
            ErrorKind::Paths(PathsError::MissingShards { .. }) => Remedy::AllowMissing,
            ErrorKind::Paths(PathsError::Interrupted { folder, .. }) => Remedy::PutBack(folder),
            ErrorKind::Paths(PathsError::TooManyMaps { .. }) => Remedy::ReadWithoutMaps,
            ErrorKind::Index(IndexError::Missing) => Remedy::BuildIndex,
            ErrorKind::Index(IndexError::NoColumn { build, .. } | IndexError::BuildLimit { build, .. }) => {
                Remedy::Build(build)
            }
            ErrorKind::Index(IndexError::LengthMismatch { .. }) => Remedy::Rebuild,
            ErrorKind::Index(IndexError::StalePack { pack, .. }) => Remedy::WritePack(pack),
            ErrorKind::Index(IndexError::CorruptSection { file, .. }) => Remedy::Delete(file),
            ErrorKind::Compressed { .. } => Remedy::Unpack,
            ErrorKind::Compression(CompressionError::Twice { format, .. }) => Remedy::UnpackOnce(format),
            ErrorKind::RecordTooLarge { len, .. } => Remedy::MaxRecord(*len),
            // Limits of the inference of a schema.
            ErrorKind::TooMany { what: "different keys" | "bytes of different keys", .. } => {
                Remedy::FewerRecords
            }
            ErrorKind::NotTfRecord { remedy, .. } => *remedy,
            ErrorKind::OtherKind { .. } => Remedy::SequenceExamples,
            ErrorKind::CorruptLength { computed, stored } | ErrorKind::CorruptData { computed, stored }
                if other_checksum(*computed, *stored).is_some() =>
            {
                Remedy::Unverified
            }
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
            ErrorKind::Paths(
                PathsError::NoMatch { .. }
                | PathsError::OtherSets { .. }
                | PathsError::MissingShards { .. }
                | PathsError::Interrupted { .. },
            )
            | ErrorKind::Index(IndexError::Missing | IndexError::NoColumn { .. }) => io::ErrorKind::NotFound,
            ErrorKind::Compressed { .. }
            | ErrorKind::Paths(PathsError::NotLocal { .. })
            | ErrorKind::Part(PartError::InMemory | PartError::Gaps | PartError::NotUtf8)
            | ErrorKind::Index(IndexError::NotRegular { .. }) => io::ErrorKind::Unsupported,
            ErrorKind::Index(IndexError::BuildLimit { .. } | IndexError::NameClash { .. })
            | ErrorKind::UnknownFeature { .. }
            | ErrorKind::WrongLen { .. }
            | ErrorKind::OutOfRange { .. }
            | ErrorKind::Paths(_)
            | ErrorKind::Encode(
                EncodeError::DuplicateKey | EncodeError::Int64Range { .. } | EncodeError::FloatRange { .. },
            )
            | ErrorKind::Spec(_)
            | ErrorKind::Order(_)
            | ErrorKind::Part(PartError::Invalid { .. } | PartError::Zero { .. })
            | ErrorKind::Filter(_)
            | ErrorKind::Options(_)
            | ErrorKind::TooMany { .. } => io::ErrorKind::InvalidInput,
            // Not `Interrupted`: callers retry a call after it.
            ErrorKind::Encode(_) | ErrorKind::Panicked { .. } | ErrorKind::Cancelled => io::ErrorKind::Other,
            ErrorKind::CorruptLength { .. }
            | ErrorKind::CorruptData { .. }
            | ErrorKind::Wire { .. }
            | ErrorKind::OtherKind { .. }
            | ErrorKind::Feature(_)
            | ErrorKind::Tensor(_)
            | ErrorKind::Picture { .. }
            | ErrorKind::Value { .. }
            | ErrorKind::TooLarge { .. }
            | ErrorKind::RecordTooLarge { .. }
            | ErrorKind::NotTfRecord { .. }
            | ErrorKind::Compression(_)
            | ErrorKind::Changed { .. }
            | ErrorKind::Renumbered { .. }
            | ErrorKind::NoSoundRow { .. }
            | ErrorKind::Part(_)
            | ErrorKind::Index(_) => io::ErrorKind::InvalidData,
        }
    }
}

/// Tells how the writer computes checksums wrongly, if that explains the stored one. Both are masked.
fn other_checksum(computed: u32, stored: u32) -> Option<&'static str> {
    /// The mask is a rotation by 15 bits to the right, and this number.
    const DELTA: u32 = 0xa282_ead8;
    let crc = computed.wrapping_sub(DELTA).rotate_left(15);
    let signed = (crc.cast_signed() >> 15).cast_unsigned() | crc << 17;
    match stored {
        _ if stored == computed => None,
        _ if stored == crc => Some(", because the writer does not mask checksums"),
        _ if stored == signed.wrapping_add(DELTA) => {
            Some(", because the writer masks checksums with a signed shift")
        }
        _ => None,
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Io(e) => IoMessage(e).fmt(f),
            ErrorKind::Truncated { need, have } => {
                write!(f, "truncated: expected a record of {need} bytes, found {have}")
            }
            ErrorKind::CorruptLength { computed, stored } => write_checksums(f, "length", *computed, *stored),
            ErrorKind::CorruptData { computed, stored } => write_checksums(f, "payload", *computed, *stored),
            ErrorKind::Wire { reason, offset } => {
                write!(f, "malformed message at payload byte {offset}: {reason}")
            }
            ErrorKind::Feature(e) => e.fmt(f),
            ErrorKind::OtherKind { expected, found } => {
                write!(f, "expected an {expected}, found a {found} with feature lists")
            }
            ErrorKind::UnknownFeature { nearest, list, keys } => {
                write_unknown_feature(f, nearest.as_deref(), *list, keys)
            }
            ErrorKind::Tensor(e) => e.fmt(f),
            ErrorKind::Picture { reason } | ErrorKind::Value { reason } => f.write_str(reason),
            ErrorKind::WrongLen { expected, found } => {
                write!(f, "expected a buffer of {}, found {found}", Count(*expected as u64, "value"))
            }
            ErrorKind::TooLarge { len, limit } => write!(f, "expected at most {limit} bytes, found {len}"),
            ErrorKind::TooMany { what, found, limit } => {
                write!(f, "expected at most {limit} {what}, found {found}")
            }
            ErrorKind::RecordTooLarge { len, max_record } => {
                write!(f, "expected a payload of at most {max_record} bytes, found {len}")
            }
            ErrorKind::OutOfRange { what, i, len: 1 } => write!(f, "no {what} {i}: there is 1"),
            ErrorKind::OutOfRange { what, i, len } => write!(f, "no {what} {i}: there are {len}"),
            ErrorKind::NotTfRecord { looks_like, .. } => {
                write!(f, "expected a TFRecord file, found {looks_like}")
            }
            ErrorKind::Compression(e) => e.fmt(f),
            ErrorKind::Compressed { format } => {
                write!(f, "expected an uncompressed shard, found {format}")
            }
            ErrorKind::Changed { reason } => write!(f, "the file changed other than by appending: {reason}"),
            ErrorKind::Renumbered { reason } => {
                write!(f, "records of the open dataset would get other numbers: {reason}")
            }
            ErrorKind::NoSoundRow { reason } => write!(f, "no batch has a sound row: {reason}"),
            ErrorKind::Index(e) => e.fmt(f),
            ErrorKind::Paths(e) => e.fmt(f),
            ErrorKind::Encode(e) => e.fmt(f),
            ErrorKind::Spec(reason) => write!(f, "invalid schema: {reason}"),
            ErrorKind::Order(e) => e.fmt(f),
            ErrorKind::Part(e) => e.fmt(f),
            ErrorKind::Filter(e) => write!(f, "invalid filter: {e}"),
            ErrorKind::Options(e) => e.fmt(f),
            ErrorKind::Panicked { message } => write!(f, "a thread panicked: {message}"),
            ErrorKind::Cancelled => f.write_str("cancelled by the caller"),
        }
    }
}

/// Writes that the checksum of `what` is wrong.
fn write_checksums(f: &mut fmt::Formatter<'_>, what: &str, computed: u32, stored: u32) -> fmt::Result {
    write!(f, "{what} crc32c: expected {stored:#010x}, found {computed:#010x}")?;
    other_checksum(computed, stored).map_or(Ok(()), |how| f.write_str(how))
}

fn write_unknown_feature(
    f: &mut fmt::Formatter<'_>,
    nearest: Option<&str>,
    list: bool,
    keys: &[Box<str>],
) -> fmt::Result {
    if list {
        return f.write_str(
            "no record has this feature in its context: it is a feature list, and feature lists have no columns",
        );
    }
    f.write_str("no record has a value of this feature; the ")?;
    if let Some(nearest) = nearest {
        return write!(f, "nearest name is \"{}\"", nearest.escape_debug());
    }
    if keys.is_empty() {
        return f.write_str("first records have no features");
    }
    let keys: Vec<String> = keys.iter().map(|key| format!(" \"{}\"", key.escape_debug())).collect();
    write!(f, "first records have{}", keys.join(","))
}
