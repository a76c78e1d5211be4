//! The error type of the crate: [`Error`] has an [`ErrorKind`] and a [`Location`].

mod files;
mod filter;
mod io;
mod kind;
mod location;
mod options;
mod order;
mod panic;
mod part;
mod payload;
mod remedy;
mod text;

pub(crate) use files::ScanCost;
pub use files::{Build, CompressionError, IndexError, PathsError};
pub use filter::FilterError;
pub use kind::ErrorKind;
pub use location::{At, Location};
pub use options::OptionsError;
pub use order::OrderError;
pub use panic::catch_panic;
pub use part::PartError;
pub use payload::{EncodeError, FeatureError, TensorError};
pub use remedy::Remedy;
pub use text::printable;
pub(crate) use text::{Count, FileNames};
#[doc(inline)]
pub use tfseek_wire::WireError;

use std::collections::TryReserveError;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tfseek_wire::Fault;

/// `Result` with tfseek's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with its [`kind`](Error::kind) and its [`location`](Error::location). The size of one pointer.
///
/// The message contains the location first, then the expected and the found value:
///
/// ```text
/// train-00002.tfrecord: record 17 at byte 90112: payload crc32c: expected 0x77c0e4d3, found 0x1b2f9a10
/// ```
///
/// It names no option, function or command. [`ErrorKind::remedy`] returns what the user can do.
///
/// The conversion into [`io::Error`](std::io::Error) chooses the matching
/// [`io::ErrorKind`](std::io::ErrorKind): `NotFound` for a missing file, `UnexpectedEof` for a truncated one,
/// `InvalidData` for damage. `Error::from` returns the original error.
pub struct Error(Box<ErrorInner>);

struct ErrorInner {
    kind: ErrorKind,
    location: Location,
}

/// The category of an error that reading or parsing records can return.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// The payload is not a well-formed message.
    MalformedProto,
    /// A feature has another kind.
    KindMismatch,
    /// A feature has another number of values.
    CountMismatch,
    /// A required feature is missing.
    MissingFeature,
    /// A partition of a ragged feature does not match its values.
    BadPartition,
    /// Sparse indices do not match the number of values, or are out of range.
    BadSparseIndex,
    /// A schema is invalid.
    BadSpec,
    /// A size exceeds the maximum of a message, the range of an index type, or a limit.
    TooLarge,
    /// A checksum of a record does not match its header or its payload.
    ChecksumMismatch,
    /// The file ends inside a record.
    Truncated,
}

impl Error {
    /// Returns an error without a location.
    #[cold]
    pub(crate) fn new(kind: ErrorKind) -> Error {
        Error(Box::new(ErrorInner { kind, location: Location::default() }))
    }

    /// Returns an error about a schema, or about a column that it does not have.
    #[cold]
    pub(crate) fn spec(reason: impl Into<Box<str>>) -> Error {
        Error::new(ErrorKind::Spec(reason.into()))
    }

    /// Returns an error about an order.
    #[cold]
    pub(crate) fn order(reason: impl Into<Box<str>>) -> Error {
        OrderError::Refused { reason: reason.into() }.into()
    }

    /// Returns an error about a field of a saved state.
    #[cold]
    pub(crate) fn state(field: &str, expected: impl ToString, found: impl ToString) -> Error {
        let expected = expected.to_string().into();
        let found = found.to_string().into();
        OrderError::State { field: field.into(), expected, found }.into()
    }

    /// Returns the kind.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns the kind and drops the location.
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the location.
    pub fn location(&self) -> &Location {
        &self.0.location
    }

    /// Returns true if the data are damaged, malformed or do not match the request. Returns false for I/O
    /// errors, invalid arguments, and an index that is damaged or belongs to other bytes: the records may be
    /// sound.
    pub fn is_data(&self) -> bool {
        use ErrorKind::*;
        matches!(
            self.kind(),
            Truncated { .. }
                | CorruptLength { .. }
                | CorruptData { .. }
                | Wire { .. }
                | Feature(_)
                | Tensor(_)
                | Picture { .. }
                | Value { .. }
                | NotTfRecord { .. }
                | Compression(_)
                | TooLarge { .. }
                | RecordTooLarge { .. }
                | NoSoundRow { .. }
                | Part(PartError::Records { .. } | PartError::End { .. })
                | Index(IndexError::TornTail)
        )
    }

    /// Returns the category, if reading or parsing records can return this error.
    pub fn category(&self) -> Option<Category> {
        Some(match self.kind() {
            ErrorKind::Wire { .. } => Category::MalformedProto,
            ErrorKind::Feature(e) => match e {
                FeatureError::Missing { .. } => Category::MissingFeature,
                FeatureError::NoKind { .. } | FeatureError::WrongKind { .. } => Category::KindMismatch,
                FeatureError::Count { .. }
                | FeatureError::Several { .. }
                | FeatureError::Blocks { .. }
                | FeatureError::ArrayLen { .. }
                | FeatureError::ArrayItems { .. } => Category::CountMismatch,
                FeatureError::Partition { .. } => Category::BadPartition,
                FeatureError::SparseCount { .. } | FeatureError::SparseIndex { .. } => {
                    Category::BadSparseIndex
                }
                FeatureError::SplitsRange { .. } => Category::TooLarge,
            },
            ErrorKind::Tensor(e) => match e {
                TensorError::DType { .. } | TensorError::UnsupportedDType { .. } => Category::KindMismatch,
                TensorError::ContentLen { .. }
                | TensorError::Count { .. }
                | TensorError::Rank { .. }
                | TensorError::DimSize { .. } => Category::CountMismatch,
                _ => Category::MalformedProto,
            },
            ErrorKind::UnknownFeature { .. } => Category::MissingFeature,
            ErrorKind::Spec(_) => Category::BadSpec,
            ErrorKind::TooLarge { .. } | ErrorKind::RecordTooLarge { .. } => Category::TooLarge,
            ErrorKind::CorruptLength { .. } | ErrorKind::CorruptData { .. } => Category::ChecksumMismatch,
            ErrorKind::Truncated { .. } | ErrorKind::Index(IndexError::TornTail) => Category::Truncated,
            _ => return None,
        })
    }

    /// Adds the parts of `at` that are not known yet.
    #[cold]
    #[must_use]
    pub fn at(mut self, at: At<'_>) -> Error {
        let location = &mut self.0.location;
        if location.path.is_none() {
            location.path = at.path.map(Arc::from);
        }
        location.record = location.record.or(at.record);
        location.offset = location.offset.or(at.offset);
        self
    }

    /// Adds the path of the file, unless one is known.
    #[cold]
    #[must_use]
    pub fn in_file(self, path: &Path) -> Error {
        self.at(At { path: Some(path), ..At::NOWHERE })
    }

    /// Adds the feature's key, unless one is known.
    #[cold]
    #[must_use]
    pub fn feature(mut self, key: &[u8]) -> Error {
        self.0.location.feature.get_or_insert_with(|| escaped(key).into_boxed_str());
        self
    }

    /// Adds the key of the record that is nearest to the missing feature.
    #[cold]
    #[must_use]
    pub(crate) fn nearest(mut self, key: Option<&str>) -> Error {
        self.0.location.nearest = key.map(|key| escaped(key.as_bytes()).into_boxed_str());
        self
    }

    /// Adds what else is known of a missing feature.
    #[cold]
    #[must_use]
    pub(crate) fn hint(mut self, hint: &'static str) -> Error {
        self.0.location.hint = Some(hint);
        self
    }

    /// Adds the row of the batch, unless one is known.
    #[cold]
    #[must_use]
    pub(crate) fn row(mut self, row: usize) -> Error {
        self.0.location.row.get_or_insert(row);
        self
    }

    /// Replaces the row by its number in a larger batch, which has the rows `rows`.
    #[cold]
    #[must_use]
    pub(crate) fn row_of(mut self, rows: &[u32]) -> Error {
        let row = &mut self.0.location.row;
        *row = row.and_then(|row| rows.get(row)).map(|row| *row as usize).or(*row);
        self
    }

    /// Adds the step of the feature list, or the number of the byte string in its feature, unless one is known.
    #[cold]
    #[must_use]
    pub fn step(mut self, step: usize) -> Error {
        self.0.location.step.get_or_insert(step);
        self
    }
}

/// Escapes the characters of a key that are not printable, or all bytes outside ASCII if the key is not
/// UTF-8.
pub(crate) fn escaped(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(key) => key.escape_debug().to_string(),
        Err(_) => key.escape_ascii().to_string(),
    }
}

impl From<ErrorKind> for Error {
    #[cold]
    fn from(kind: ErrorKind) -> Error {
        Error::new(kind)
    }
}

// Faults are internal, and so is this.
#[doc(hidden)]
impl From<Fault> for Error {
    #[cold]
    fn from(fault: Fault) -> Error {
        ErrorKind::Wire { reason: fault.kind, offset: fault.offset as usize }.into()
    }
}

impl From<std::io::Error> for Error {
    #[cold]
    fn from(e: std::io::Error) -> Error {
        // A tfseek error that was passed through `io::Read` or `io::Write` is unwrapped.
        match e.downcast::<Error>() {
            Ok(own) => own,
            Err(e) => Error::new(ErrorKind::Io(e)),
        }
    }
}

impl From<TryReserveError> for Error {
    /// Returns an I/O error of the kind `OutOfMemory`.
    #[cold]
    fn from(e: TryReserveError) -> Error {
        Error::new(ErrorKind::Io(e.into()))
    }
}

/// Returns the error for an allocation that there is not enough memory for.
#[cold]
pub(crate) fn no_memory() -> Error {
    Error::new(ErrorKind::Io(std::io::ErrorKind::OutOfMemory.into()))
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
from_part!(FeatureError => Feature, TensorError => Tensor,
    CompressionError => Compression, IndexError => Index, PathsError => Paths, EncodeError => Encode,
    OrderError => Order, PartError => Part, OptionsError => Options, FilterError => Filter);

impl From<Error> for std::io::Error {
    #[cold]
    fn from(e: Error) -> std::io::Error {
        match *e.0 {
            ErrorInner { kind: ErrorKind::Io(io), location } if location == Location::default() => io,
            inner => std::io::Error::new(inner.kind.io_kind(), Error(Box::new(inner))),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            // The message of `e` is part of ours already.
            ErrorKind::Io(e) => e.source(),
            _ => None,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error").field("kind", self.kind()).field("location", self.location()).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = self.location();
        if let Some(path) = &location.path {
            write!(f, "{}: ", printable(&**path))?;
        }
        match (location.record, location.offset) {
            (Some(i), Some(o)) => write!(f, "record {i} at byte {o}: ")?,
            (Some(i), None) => write!(f, "record {i}: ")?,
            (None, Some(o)) => write!(f, "byte {o}: ")?,
            (None, None) => {}
        }
        if let Some(row) = location.row {
            write!(f, "row {row} of the batch: ")?;
        }
        if let Some(key) = &location.feature {
            write!(f, "feature \"{key}\": ")?;
        }
        if let Some(step) = location.step {
            write!(f, "step {step}: ")?;
        }
        self.kind().fmt(f)?;
        match (&location.nearest, location.hint) {
            (Some(key), _) => write!(f, "; the nearest name is \"{key}\""),
            (None, Some(hint)) => write!(f, "; {hint}"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;
    use std::io;

    fn kind_as_io(kind: impl Into<Error>) -> io::ErrorKind {
        io::Error::from(kind.into().in_file(Path::new("a/b"))).kind()
    }

    #[test]
    fn conversion_to_io_error_keeps_the_kind_and_the_error() {
        assert_eq!(kind_as_io(io::Error::from(io::ErrorKind::NotFound)), io::ErrorKind::NotFound);
        assert_eq!(
            kind_as_io(io::Error::from(io::ErrorKind::PermissionDenied)),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(kind_as_io(PathsError::NoMatch { pattern: "x*".into() }), io::ErrorKind::NotFound);
        assert_eq!(kind_as_io(ErrorKind::Truncated { need: 20, have: 3 }), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind_as_io(CompressionError::Cut { format: "gzip" }), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind_as_io(ErrorKind::CorruptData { computed: 1, stored: 2 }), io::ErrorKind::InvalidData);
        assert_eq!(kind_as_io(OptionsError::NoBatchSize), io::ErrorKind::InvalidInput);
        // Callers of `read` and `write` retry after `Interrupted`.
        assert_eq!(kind_as_io(ErrorKind::Cancelled), io::ErrorKind::Other);

        let io = io::Error::from(Error::new(ErrorKind::Truncated { need: 20, have: 3 }).at(At::new(
            Path::new("a/b"),
            7,
            90,
        )));
        assert_eq!(
            io.to_string(),
            "a/b: record 7 at byte 90: truncated: expected a record of 20 bytes, found 3"
        );
        let own = io.downcast::<Error>().unwrap();
        assert_eq!((own.location().record, own.location().offset), (Some(7), Some(90)));
        let again = Error::from(io::Error::from(own));
        assert!(matches!(again.kind(), ErrorKind::Truncated { need: 20, have: 3 }));
    }

    #[test]
    fn sources_do_not_repeat_the_message() {
        let missing = || std::fs::File::open("/no/such/folder/at all").unwrap_err();
        let e = Error::from(missing()).in_file(Path::new("a/b"));
        assert_eq!(messages(&e), [format!("a/b: {}", missing())]);
        assert_eq!(messages(&io::Error::from(e)), [format!("a/b: {}", missing())]);
        // The source of a foreign error is not part of its message.
        let wrapped = io::Error::other(Wrapped(missing()));
        assert_eq!(
            messages(&Error::from(wrapped).in_file(Path::new("c"))),
            ["c: outer".to_owned(), missing().to_string()]
        );
        assert!(Error::from(CompressionError::Cut { format: "gzip" }).source().is_none());
    }

    fn messages(e: &dyn std::error::Error) -> Vec<String> {
        let mut messages = Vec::new();
        let mut next = Some(e);
        while let Some(e) = next {
            messages.push(e.to_string());
            next = e.source();
        }
        messages
    }

    #[derive(Debug)]
    struct Wrapped(io::Error);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("outer")
        }
    }

    impl std::error::Error for Wrapped {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn keys_are_escaped_where_they_are_not_printable() {
        let message =
            |key: &[u8]| Error::from(FeatureError::Missing { expected: "int64" }).feature(key).to_string();
        assert_eq!(
            message("grün\n\"\0".as_bytes()),
            "feature \"grün\\n\\\"\\0\": expected int64, found no such feature"
        );
        assert_eq!(message(b"\xfc\n"), r#"feature "\xfc\n": expected int64, found no such feature"#);
    }

    #[test]
    fn messages_of_ranges_and_limits() {
        let text = |kind: ErrorKind| kind.to_string();
        assert_eq!(text(ErrorKind::OutOfRange { what: "shard", i: 7, len: 3 }), "no shard 7: there are 3");
        assert_eq!(
            text(ErrorKind::OutOfRange { what: "record", i: -11, len: 10 }),
            "no record -11: there are 10"
        );
        let len = u128::from(u64::MAX) + 16;
        assert_eq!(
            text(ErrorKind::TooLarge { len, limit: u64::MAX }),
            "expected at most 18446744073709551615 bytes, found 18446744073709551631"
        );
    }
}
