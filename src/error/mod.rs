//! One error type: what went wrong ([`ErrorKind`]) and where ([`Place`]).

mod files;
mod io;
mod order;
mod payload;
mod remedy;

pub use files::{Build, CompressionError, IndexError, PathsError};
pub use order::OrderError;
pub use payload::{EncodeError, FeatureError, TensorError, WireError, WireErrorKind};
pub use remedy::Remedy;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// `Result` with tfseek's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong and where: one word on the stack, the rest behind a box.
///
/// The message reads place first, then what was expected and what was found:
///
/// ```text
/// train-00002.tfrecord: record 17 at byte 90112: payload crc32c is 0x1b2f9a10, footer says 0x77c0e4d3
/// ```
///
/// It names no option and no function: [`ErrorKind::remedy`] says what can be done.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    place: Place,
}

/// Where an error happened; each part is there if the layer that met the error knew it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, as the caller named it.
    pub path: Option<Arc<Path>>,
    /// The record's ordinal in that file (its *shard*), counted from 0.
    pub record: Option<u64>,
    /// The byte offset of the record's header, in the record stream (inflated, if the file is compressed).
    pub offset: Option<u64>,
    /// The feature's key (or the column's name), escaped where it is not printable.
    pub feature: Option<Box<str>>,
    /// The row of a batch that was being parsed, counted from 0.
    pub row: Option<usize>,
    /// The step of a feature list, counted from 0.
    pub step: Option<usize>,
}

/// A place that borrows: what a [`Record`](crate::Record) and the views made from it carry along. `Copy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At<'a> {
    /// The file, as the caller named it.
    pub path: Option<&'a Path>,
    /// The record's ordinal in its shard.
    pub record: Option<u64>,
    /// The byte offset of the record's header in the record stream.
    pub offset: Option<u64>,
}

impl<'a> At<'a> {
    /// No place at all: a payload that came from a slice.
    pub const NOWHERE: At<'static> = At { path: None, record: None, offset: None };

    /// The place of record `record`, whose header is at byte `offset` of `path`.
    pub fn new(path: &'a Path, record: u64, offset: u64) -> At<'a> {
        At { path: Some(path), record: Some(record), offset: Some(offset) }
    }
}

impl From<At<'_>> for Place {
    fn from(at: At<'_>) -> Place {
        Place { path: at.path.map(Arc::from), record: at.record, offset: at.offset, ..Place::default() }
    }
}

/// What went wrong.
#[non_exhaustive]
#[derive(Debug)]
pub enum ErrorKind {
    /// The operating system said no.
    Io(std::io::Error),
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
        len: u64,
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
    /// There is no record `i`.
    OutOfRange {
        /// The ordinal that was asked for.
        i: u64,
        /// How many there are.
        len: u64,
    },
    /// The file is something else than a TFRecord file.
    NotTfRecord {
        /// What it looks like.
        looks_like: &'static str,
        /// What to do about it.
        advice: &'static str,
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
    /// A request that cannot be met, in words.
    Unsupported(Box<str>),
    /// The caller's progress callback ended the work.
    Cancelled,
}

/// The kinds of fault that a parse by a schema can meet, as TensorFlow's users know them.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// The payload is not a well-formed message.
    MalformedProto,
    /// A feature is of another kind.
    KindMismatch,
    /// A feature has another number of values.
    CountMismatch,
    /// A feature that is required is absent.
    MissingFeature,
    /// A partition does not divide its values.
    BadPartition,
    /// Sparse indices do not go with their values, or lie outside.
    BadSparseIndex,
    /// A schema is refused.
    BadSpec,
    /// Larger than a message, an index type or a limit.
    TooLarge,
}

impl Error {
    /// An error without a place.
    #[cold]
    pub fn new(kind: ErrorKind) -> Error {
        Error(Box::new(Inner { kind, place: Place::default() }))
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The kind alone, without the place.
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// Where it went wrong.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Whether the data are damaged, malformed or not what was asked for, as opposed to a failed call.
    pub fn is_data(&self) -> bool {
        use ErrorKind::*;
        matches!(
            self.kind(),
            Truncated { .. }
                | CorruptLength { .. }
                | CorruptData { .. }
                | Wire(_)
                | Feature(_)
                | Tensor(_)
                | NotTfRecord { .. }
                | Compression(_)
                | TooLarge { .. }
                | RecordTooLarge { .. }
        ) || matches!(
            self.kind(),
            Index(
                IndexError::LengthMismatch { .. }
                    | IndexError::CorruptBlock { .. }
                    | IndexError::CorruptSection { .. }
                    | IndexError::TornTail
            )
        )
    }

    /// What kind of fault it is, if it is one that a parse by a schema can meet.
    pub fn category(&self) -> Option<Category> {
        Some(match self.kind() {
            ErrorKind::Wire(_) => Category::MalformedProto,
            ErrorKind::Feature(e) => match e {
                FeatureError::Missing { .. } => Category::MissingFeature,
                FeatureError::NoKind { .. } | FeatureError::WrongKind { .. } => Category::KindMismatch,
                FeatureError::Count { .. } | FeatureError::Blocks { .. } => Category::CountMismatch,
                FeatureError::Partition { .. } => Category::BadPartition,
                FeatureError::SparseCount { .. } | FeatureError::SparseIndex { .. } => {
                    Category::BadSparseIndex
                }
                FeatureError::SplitsRange { .. } => Category::TooLarge,
            },
            ErrorKind::UnknownFeature { .. } => Category::MissingFeature,
            ErrorKind::Spec(_) => Category::BadSpec,
            ErrorKind::TooLarge { .. } | ErrorKind::RecordTooLarge { .. } => Category::TooLarge,
            _ => return None,
        })
    }

    /// Whether the operating system said no.
    pub fn is_io(&self) -> bool {
        matches!(self.kind(), ErrorKind::Io(_))
    }

    /// The same error with the parts of `at` that it did not have yet.
    #[cold]
    #[must_use]
    pub fn at(mut self, at: At<'_>) -> Error {
        let place = &mut self.0.place;
        if place.path.is_none() {
            place.path = at.path.map(Arc::from);
        }
        place.record = place.record.or(at.record);
        place.offset = place.offset.or(at.offset);
        self
    }

    /// The same error with the path of the file, unless it has one.
    #[cold]
    #[must_use]
    pub fn in_file(self, path: &Path) -> Error {
        self.at(At { path: Some(path), record: None, offset: None })
    }

    /// The same error with the feature's key, unless it has one.
    #[cold]
    #[must_use]
    pub fn feature(mut self, key: &[u8]) -> Error {
        self.0.place.feature.get_or_insert_with(|| key.escape_ascii().to_string().into_boxed_str());
        self
    }

    /// The same error with the row of the batch, unless it has one.
    #[cold]
    #[must_use]
    pub fn row(mut self, row: usize) -> Error {
        self.0.place.row.get_or_insert(row);
        self
    }

    /// The same error with the step of the feature list, unless it has one.
    #[cold]
    #[must_use]
    pub fn step(mut self, step: usize) -> Error {
        self.0.place.step.get_or_insert(step);
        self
    }
}

impl From<ErrorKind> for Error {
    #[cold]
    fn from(kind: ErrorKind) -> Error {
        Error::new(kind)
    }
}

impl From<std::io::Error> for Error {
    #[cold]
    fn from(e: std::io::Error) -> Error {
        // An error of ours that went through an `io::Read` or `io::Write` comes out as itself.
        match e.downcast::<Error>() {
            Ok(own) => own,
            Err(e) => Error::new(ErrorKind::Io(e)),
        }
    }
}

macro_rules! from_part {
    ($($part:ident => $variant:ident),*) => {$(
        impl From<$part> for Error {
            #[cold]
            fn from(e: $part) -> Error {
                Error::new(ErrorKind::$variant(e))
            }
        }
    )*};
}
from_part!(WireError => Wire, FeatureError => Feature, TensorError => Tensor,
    CompressionError => Compression, IndexError => Index, PathsError => Paths, EncodeError => Encode,
    OrderError => Order);

impl From<Error> for std::io::Error {
    fn from(e: Error) -> std::io::Error {
        match *e.0 {
            Inner { kind: ErrorKind::Io(io), place } if place == Place::default() => io,
            inner => std::io::Error::new(std::io::ErrorKind::InvalidData, Error(Box::new(inner))),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Io(e) => Some(e),
            _ => None,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error").field("kind", self.kind()).field("place", self.place()).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place();
        if let Some(path) = &place.path {
            write!(f, "{}: ", path.display())?;
        }
        match (place.record, place.offset) {
            (Some(i), Some(o)) => write!(f, "record {i} at byte {o}: ")?,
            (Some(i), None) => write!(f, "record {i}: ")?,
            (None, Some(o)) => write!(f, "byte {o}: ")?,
            (None, None) => {}
        }
        if let Some(row) = place.row {
            write!(f, "row {row} of the batch: ")?;
        }
        if let Some(key) = &place.feature {
            write!(f, "feature \"{key}\": ")?;
        }
        if let Some(step) = place.step {
            write!(f, "step {step}: ")?;
        }
        self.kind().fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Io(e) => io::Words(e).fmt(f),
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
            ErrorKind::RecordTooLarge { len, max_record } => {
                write!(f, "the record has {len} bytes of payload, more than max_record, {max_record}")
            }
            ErrorKind::OutOfRange { i, len } => write!(f, "no record {i}, there are {len}"),
            ErrorKind::NotTfRecord { looks_like, advice } => {
                write!(f, "not a TFRecord file, it looks like {looks_like}: {advice}")
            }
            ErrorKind::Compression(e) => e.fmt(f),
            ErrorKind::Compressed { format } => write!(
                f,
                "the shard is {format}-compressed, so its records can only be read in order; \
                 unpack it first for random access"
            ),
            ErrorKind::Index(e) => e.fmt(f),
            ErrorKind::Paths(e) => e.fmt(f),
            ErrorKind::Encode(e) => e.fmt(f),
            ErrorKind::Spec(reason) => write!(f, "schema refused: {reason}"),
            ErrorKind::Order(e) => e.fmt(f),
            ErrorKind::Filter(reason) => write!(f, "filter refused: {reason}"),
            ErrorKind::Unsupported(what) => f.write_str(what),
            ErrorKind::Cancelled => f.write_str("cancelled by the caller"),
        }
    }
}
