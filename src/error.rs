//! One error type: what went wrong ([`ErrorKind`]) and where ([`Place`]).

mod order;

pub use order::OrderError;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
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
}

/// Why bytes are not a well-formed message, and where in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError {
    /// What is wrong.
    pub kind: WireErrorKind,
    /// Byte offset in the payload at which the reader stood.
    pub offset: usize,
}

/// The ways in which a payload can be malformed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireErrorKind {
    /// A varint runs past the end of its message or chunk.
    CutVarint,
    /// A varint of more than ten bytes.
    LongVarint,
    /// A tag of more than five bytes or beyond 32 bits.
    BadTag,
    /// Field number 0.
    FieldZero,
    /// Wire type 6 or 7.
    WireType,
    /// A length of more than five bytes or beyond 2^31 - 1.
    BadLength,
    /// A length that goes beyond the enclosing message.
    LengthBeyondMessage,
    /// A fixed field that is cut off.
    CutFixed,
    /// Packed floats whose length is no multiple of 4.
    PackedFloatLength,
    /// Packed doubles whose length is no multiple of 8.
    PackedDoubleLength,
    /// An end of group without its start, or with another number.
    GroupEnd,
    /// A group that is never closed.
    GroupOpen,
    /// More than 100 levels of messages and groups.
    TooDeep,
    /// A key, or the name of a dimension, that is not UTF-8.
    Utf8,
    /// A map entry that holds an unknown field: decoders disagree on what it means.
    MapEntryUnknownField,
}

/// Why a feature is not what the caller asked for.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureError {
    /// The record has no such feature.
    Missing {
        /// The kind that was asked for.
        expected: &'static str,
    },
    /// The feature is there, without a kind.
    NoKind {
        /// The kind that was asked for.
        expected: &'static str,
    },
    /// The feature is of another kind.
    WrongKind {
        /// The kind that was asked for.
        expected: &'static str,
        /// The kind that it has.
        found: &'static str,
    },
    /// A fixed number of values was asked for.
    Count {
        /// The number that was asked for.
        expected: usize,
        /// The number that there is.
        found: usize,
    },
    /// Blocks of a fixed number of values were asked for.
    Blocks {
        /// Values of a block.
        of: usize,
        /// Values that there are.
        found: usize,
    },
    /// A partition does not divide the values of its record.
    Partition {
        /// TensorFlow's name of the partition, and what it has to do.
        rule: &'static str,
        /// The number that the rule gives.
        expected: i64,
        /// The number that is there.
        found: i64,
    },
    /// A record has other numbers of indices and values.
    SparseCount {
        /// Values that there are.
        values: usize,
        /// Indices that there are.
        indices: usize,
    },
    /// More values than row splits of 32 bits can count.
    SplitsRange {
        /// Values that there are.
        found: usize,
    },
    /// An index that lies outside of its dimension.
    SparseIndex {
        /// Size of the dimension.
        size: u64,
        /// The index.
        found: i64,
    },
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

/// Why a message is no tensor, or bytes and a shape make none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorError {
    /// The tensor is of another dtype.
    DType {
        /// The dtype that was asked for.
        expected: &'static str,
        /// The dtype that it has.
        found: &'static str,
    },
    /// A dtype number that stands for nothing, for a reference, or for something that has no plain form.
    UnsupportedDType {
        /// The number; 0 where the message has none.
        number: i32,
    },
    /// The shape says that it does not know how many dimensions it has.
    UnknownRank,
    /// A dimension below 0 or above 2^63 - 1.
    Dim {
        /// The dimension.
        found: i128,
    },
    /// More dimensions than TensorFlow's shapes have.
    TooManyDims {
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The product of the dimensions, taken in their order, goes beyond 2^63 - 1.
    TooManyElements,
    /// The bytes of the values are not as many as the elements take.
    ContentLen {
        /// Bytes that the elements take (saturating at `u64::MAX`).
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// The bytes are not this many lengths and then strings of these lengths.
    StringContent {
        /// Strings that the shape asks for.
        elements: u64,
        /// Bytes there are.
        found: u64,
    },
    /// A byte that is neither 0 nor 1 where a bool stands.
    Bool {
        /// Which element, in row-major order.
        element: u64,
        /// The byte.
        found: u8,
    },
    /// To write: the values are not as many as the shape has elements.
    Count {
        /// Elements of the shape.
        expected: u64,
        /// Values there are.
        found: u64,
    },
}

/// What is wrong with a compressed record stream.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompressionError {
    /// The compressed bytes are not a stream of this format (or its checksum does not hold).
    Corrupt {
        /// `gzip` or `zlib`.
        format: &'static str,
        /// The decoder's words.
        reason: Box<str>,
    },
    /// The compressed file ends inside the stream.
    Cut {
        /// `gzip` or `zlib`.
        format: &'static str,
    },
    /// Bytes follow the end of the stream.
    TrailingData {
        /// `gzip` or `zlib`.
        format: &'static str,
        /// Where in the compressed file they begin.
        at: u64,
    },
    /// The caller named a format, the bytes look like another.
    Mismatch {
        /// What the caller said.
        expected: &'static str,
        /// What the bytes look like.
        found: &'static str,
    },
}

/// Why an index cannot be used.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexError {
    /// There is none, and none may be built.
    Missing,
    /// There is one, of an earlier state of the shard.
    Stale {
        /// What differs: expected and found.
        reason: Box<str>,
    },
    /// The file is damaged, of a later version, or not an index.
    Refused {
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// A block's crc or an entry's bounds do not hold.
    CorruptBlock {
        /// The index file.
        file: Box<Path>,
        /// The block, counted from 0.
        block: u64,
        /// What does not hold.
        reason: &'static str,
    },
    /// A section of a column file does not hold.
    CorruptSection {
        /// The column file.
        file: Box<Path>,
        /// The section's name on the format page.
        section: &'static str,
        /// What does not hold.
        reason: &'static str,
    },
    /// There is no column file of a feature, and none may be built.
    NoColumn {
        /// Why the one that there is was not taken.
        found: Option<&'static str>,
        /// The command that builds it.
        command: Box<str>,
    },
    /// The record's header has another length than the index: the shard was changed in place.
    LengthMismatch {
        /// The payload length by the index.
        indexed: u64,
        /// The payload length by the header.
        stored: u64,
    },
    /// More bytes would have to be scanned than a build nobody asked for may read.
    BuildLimit {
        /// Shards without a usable index.
        shards: usize,
        /// Bytes to scan.
        bytes: u64,
        /// The limit.
        limit: u64,
        /// The command that builds it.
        command: Box<str>,
    },
    /// An index in text form: a line that is wrong.
    Text {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// Bytes are left after the last whole record of a compressed shard: its index does not say how many.
    TornTail,
    /// Two shards would have the same index file.
    NameClash {
        /// The other shard.
        other: Box<Path>,
    },
}

/// Why paths do not name a dataset.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathsError {
    /// Nothing matches.
    NoMatch {
        /// The pattern, as given.
        pattern: Box<str>,
    },
    /// Not a pattern that can be understood.
    BadPattern {
        /// The pattern, as given.
        pattern: Box<str>,
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// Shards of a set `-NNNNN-of-NNNNN` are missing.
    MissingShards {
        /// The set, as `stem-?-of-NNNNN`.
        set: Box<str>,
        /// How many the set has.
        total: u64,
        /// The missing ones, in order (the first thousand of them).
        missing: Vec<PathBuf>,
        /// How many are missing in all.
        missing_count: u64,
    },
    /// More shards than a process may map.
    TooManyMaps {
        /// Shards in the dataset.
        shards: usize,
        /// Maps this process may hold.
        budget: usize,
    },
}

/// Why something cannot be written.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// A key was given twice.
    DuplicateKey,
    /// An integer above 2^63 - 1 does not fit into an int64 list.
    Int64Range {
        /// The integer.
        value: u128,
    },
    /// The writer was closed.
    Closed,
    /// An earlier write failed, so what follows cannot be trusted.
    Failed,
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
            ErrorKind::Spec(_) => Category::BadSpec,
            ErrorKind::TooLarge { .. } => Category::TooLarge,
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

impl From<io::Error> for Error {
    #[cold]
    fn from(e: io::Error) -> Error {
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

impl From<Error> for io::Error {
    fn from(e: Error) -> io::Error {
        match *e.0 {
            Inner { kind: ErrorKind::Io(io), place } if place == Place::default() => io,
            inner => io::Error::new(io::ErrorKind::InvalidData, Error(Box::new(inner))),
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
            ErrorKind::Io(e) => e.fmt(f),
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
            ErrorKind::Tensor(e) => e.fmt(f),
            ErrorKind::WrongLen { expected, found } => {
                write!(f, "the list has {expected} values, the buffer has room for {found}")
            }
            ErrorKind::TooLarge { len, limit } => write!(f, "{len} bytes, the limit is {limit}"),
            ErrorKind::OutOfRange { i, len } => write!(f, "no record {i}, there are {len}"),
            ErrorKind::NotTfRecord { looks_like, advice } => {
                write!(f, "not a TFRecord file, it looks like {looks_like}: {advice}")
            }
            ErrorKind::Compression(e) => e.fmt(f),
            ErrorKind::Compressed { format } => write!(
                f,
                "the shard is {format}-compressed, so its records can only be read in order; \
                 unpack it first (`tfseek unpack`) for random access"
            ),
            ErrorKind::Index(e) => e.fmt(f),
            ErrorKind::Paths(e) => e.fmt(f),
            ErrorKind::Encode(e) => e.fmt(f),
            ErrorKind::Spec(reason) => write!(f, "schema refused: {reason}"),
            ErrorKind::Order(e) => e.fmt(f),
            ErrorKind::Filter(reason) => write!(f, "filter refused: {reason}"),
            ErrorKind::Unsupported(what) => f.write_str(what),
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed message at payload byte {}: {}", self.offset, self.kind)
    }
}

impl fmt::Display for WireErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WireErrorKind::CutVarint => "varint runs past the end of its message",
            WireErrorKind::LongVarint => "varint of more than 10 bytes",
            WireErrorKind::BadTag => "tag of more than 5 bytes or 32 bits",
            WireErrorKind::FieldZero => "field number 0",
            WireErrorKind::WireType => "wire type 6 or 7",
            WireErrorKind::BadLength => "length of more than 5 bytes or 31 bits",
            WireErrorKind::LengthBeyondMessage => "length goes beyond the enclosing message",
            WireErrorKind::CutFixed => "fixed-width value is cut off",
            WireErrorKind::PackedFloatLength => "packed floats whose length is no multiple of 4",
            WireErrorKind::PackedDoubleLength => "packed doubles whose length is no multiple of 8",
            WireErrorKind::GroupEnd => "end of a group that was not started",
            WireErrorKind::GroupOpen => "group is never closed",
            WireErrorKind::TooDeep => "more than 100 levels of messages and groups",
            WireErrorKind::Utf8 => "key or name is not UTF-8",
            WireErrorKind::MapEntryUnknownField => {
                "map entry holds an unknown field, on whose meaning decoders disagree"
            }
        })
    }
}

impl fmt::Display for FeatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeatureError::Missing { expected } => {
                write!(f, "expected {expected}, the record has no such feature")
            }
            FeatureError::NoKind { expected } => {
                write!(f, "expected {expected}, found a feature without a kind")
            }
            FeatureError::WrongKind { expected, found } => write!(f, "expected {expected}, found {found}"),
            FeatureError::Count { expected, found } => write!(f, "expected {expected} values, found {found}"),
            FeatureError::Blocks { of, found } => {
                write!(f, "expected blocks of {of} values, found {found} values")
            }
            FeatureError::Partition { rule, expected, found } => {
                write!(f, "{rule}: expected {expected}, found {found}")
            }
            FeatureError::SparseCount { values, indices } => {
                write!(f, "expected an index for each of {values} values, found {indices}")
            }
            FeatureError::SplitsRange { found } => {
                write!(f, "row splits of 32 bits cannot count {found} values: ask for int64 ones")
            }
            FeatureError::SparseIndex { size, found } => {
                write!(f, "expected indices from 0 to below {size}, found {found}")
            }
        }
    }
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorError::DType { expected, found } => {
                write!(f, "expected a tensor of {expected}, found {found}")
            }
            TensorError::UnsupportedDType { number } => {
                write!(f, "dtype number {number} is not that of a dtype that can be read")
            }
            TensorError::UnknownRank => {
                f.write_str("expected a shape, found one that says its rank is unknown")
            }
            TensorError::Dim { found } => {
                write!(f, "expected a dimension of 0 to 2^63 - 1, found {found}")
            }
            TensorError::TooManyDims { found, limit } => {
                write!(f, "expected at most {limit} dimensions, found {found}")
            }
            TensorError::TooManyElements => f.write_str("the shape has more than 2^63 - 1 elements"),
            TensorError::ContentLen { expected, found } => {
                write!(f, "expected {expected} bytes for the shape's elements, found {found}")
            }
            TensorError::StringContent { elements, found } => {
                write!(f, "expected the lengths and bytes of {elements} strings, found {found} other bytes")
            }
            TensorError::Bool { element, found } => {
                write!(f, "expected 0 or 1 for bool {element}, found {found}")
            }
            TensorError::Count { expected, found } => {
                write!(f, "expected {expected} values for the shape's elements, found {found}")
            }
        }
    }
}

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompressionError::Corrupt { format, reason } => write!(f, "damaged {format} stream: {reason}"),
            CompressionError::Cut { format } => write!(f, "the file ends inside its {format} stream"),
            CompressionError::TrailingData { format, at } => {
                write!(f, "the {format} stream ends at byte {at} of the file, but more bytes follow")
            }
            CompressionError::Mismatch { expected, found } => {
                write!(f, "expected {expected}, the bytes look like {found}")
            }
        }
    }
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexError::Missing => {
                f.write_str("no usable index, and none may be built (`tfseek index` builds one)")
            }
            IndexError::Stale { reason } => write!(f, "stale index: {reason}"),
            IndexError::Refused { reason } => write!(f, "index refused: {reason}"),
            IndexError::CorruptBlock { file, block, reason } => {
                write!(f, "index {}, block {block}: {reason}", file.display())
            }
            IndexError::CorruptSection { file, section, reason } => {
                write!(
                    f,
                    "column {}, section {section}: {reason}; delete the file, and it is built again",
                    file.display()
                )
            }
            IndexError::NoColumn { found, command } => {
                f.write_str("no usable column file, and none may be built")?;
                found.map_or(Ok(()), |why| write!(f, " ({why})"))?;
                write!(f, ": run `{command}`")
            }
            IndexError::LengthMismatch { indexed, stored } => write!(
                f,
                "the index says {indexed} bytes of payload, the header {stored}: the shard was changed \
                 after it was indexed (`tfseek index --rebuild` reads it anew)"
            ),
            IndexError::BuildLimit { shards, bytes, limit, command } => write!(
                f,
                "{bytes} bytes of {shards} shards would be scanned, more than the {limit} that are scanned unasked: \
                 run `{command}`"
            ),
            IndexError::Text { line, reason } => write!(f, "index line {line}: {reason}"),
            IndexError::TornTail => {
                f.write_str("truncated: the stream ends inside this record, by its index")
            }
            IndexError::NameClash { other } => {
                write!(f, "{} would have the same index file", other.display())
            }
        }
    }
}

impl fmt::Display for PathsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathsError::NoMatch { pattern } => write!(f, "no file matches {pattern}"),
            PathsError::BadPattern { pattern, reason } => write!(f, "{pattern}: {reason}"),
            PathsError::MissingShards { set, total, missing, missing_count } => {
                write!(f, "{set}: {missing_count} of {total} shards are missing:")?;
                for path in missing.iter().take(8) {
                    write!(f, " {}", path.display())?;
                }
                if *missing_count > missing.len().min(8) as u64 {
                    write!(f, " ..")?;
                }
                f.write_str(" (`--allow-missing` goes on without them)")
            }
            PathsError::TooManyMaps { shards, budget } => write!(
                f,
                "{shards} shards, but this process may map {budget} files: \
                 `Dataset::open` reads without maps"
            ),
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::DuplicateKey => f.write_str("the key was given twice"),
            EncodeError::Int64Range { value } => write!(f, "{value} does not fit into an int64"),
            EncodeError::Closed => f.write_str("the writer is closed"),
            EncodeError::Failed => f.write_str("an earlier write failed, the file is given up"),
        }
    }
}
