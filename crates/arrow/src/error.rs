//! `Error`: a column that cannot be converted, and the reason.

use arrow_schema::ArrowError;
use std::collections::TryReserveError;
use std::fmt;
use tfseek::error::Category;

/// Error of a conversion. It names the column, and the row if one row is the cause.
#[non_exhaustive]
#[derive(Debug)]
pub struct Error {
    /// Name of the column.
    pub column: Option<Box<str>>,
    /// Row of the batch, from 0.
    pub row: Option<usize>,
    /// Number in the dataset of the record of the row, if it was read by a [`Scan`](crate::Scan).
    pub record: Option<u64>,
    /// The reason.
    pub kind: ErrorKind,
}

/// Result of a conversion.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason of an [`Error`].
#[non_exhaustive]
#[derive(Debug)]
pub enum ErrorKind {
    /// The schema or the options have no Arrow schema.
    Schema(Box<str>),
    /// The batch was not parsed with the converter's schema.
    Batch(Box<str>),
    /// A byte string of a text column is not UTF-8.
    Text {
        /// Number of its bytes that are UTF-8.
        valid: usize,
        /// Number of all its bytes.
        len: usize,
    },
    /// There are more values than 32-bit offsets can count.
    TooLarge {
        /// Number of values, or of bytes of strings.
        len: usize,
    },
    /// A value of a record batch cannot be a value of a feature, or a label has no name.
    Value(Box<str>),
    /// A Float64 of a record batch that the type of the feature does not have exactly, so it is stored only
    /// if [`EncoderOptions::round_float64`](crate::EncoderOptions::round_float64) is set.
    Inexact(Box<str>),
    /// A record was not read, parsed, encoded or written, or there is not enough memory for its values.
    Record(tfseek::Error),
    /// Arrow refused an array.
    Arrow(ArrowError),
}

impl Error {
    pub(crate) fn schema(column: &str, reason: impl Into<Box<str>>) -> Error {
        Error::from(ErrorKind::Schema(reason.into())).column_named(column)
    }

    /// Returns the error of a schema without the name of a column.
    pub(crate) fn no_schema(reason: impl fmt::Display) -> Error {
        ErrorKind::Schema(reason.to_string().into()).into()
    }

    pub(crate) fn batch(reason: impl Into<Box<str>>) -> Error {
        Error::from(ErrorKind::Batch(reason.into()))
    }

    pub(crate) fn value(row: usize, reason: impl Into<Box<str>>) -> Error {
        Error::from(ErrorKind::Value(reason.into())).in_row(row)
    }

    /// Adds the column, if the error has none.
    pub(crate) fn column_named(mut self, column: &str) -> Error {
        self.column.get_or_insert_with(|| column.into());
        self
    }

    pub(crate) fn in_row(mut self, row: usize) -> Error {
        self.row = Some(row);
        self
    }

    /// Adds the number of the record of the row.
    pub(crate) fn in_record(mut self, record: Option<u64>) -> Error {
        self.record = record;
        self
    }

    /// Returns true if the batch has too many values.
    pub(crate) fn is_too_large(&self) -> bool {
        match &self.kind {
            ErrorKind::TooLarge { .. } => true,
            ErrorKind::Record(error) => error.category() == Some(Category::TooLarge),
            _ => false,
        }
    }

    /// Returns the error of the library, if a record could not be read, parsed or written, or else this
    /// error.
    pub fn into_record_error(self) -> Result<tfseek::Error, Error> {
        match self.kind {
            ErrorKind::Record(error) => Ok(error),
            _ => Err(self),
        }
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Error {
        Error { column: None, row: None, record: None, kind }
    }
}

impl From<tfseek::Error> for Error {
    fn from(error: tfseek::Error) -> Error {
        ErrorKind::Record(error).into()
    }
}

impl From<TryReserveError> for Error {
    #[cold]
    fn from(error: TryReserveError) -> Error {
        tfseek::Error::from(error).into()
    }
}

impl From<Error> for ArrowError {
    fn from(error: Error) -> ArrowError {
        match error.into_record_error() {
            Ok(error) => ArrowError::ExternalError(error.into()),
            Err(error) => ArrowError::ExternalError(error.into()),
        }
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Error {
        ErrorKind::Arrow(error).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(record) = self.record {
            write!(f, "record {record} of the dataset: ")?;
        } else if let Some(row) = self.row {
            write!(f, "row {row} of the batch: ")?;
        }
        if let Some(column) = &self.column {
            write!(f, "column {column:?}: ")?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Schema(reason)
            | ErrorKind::Batch(reason)
            | ErrorKind::Value(reason)
            | ErrorKind::Inexact(reason) => f.write_str(reason),
            ErrorKind::Text { valid, len } => {
                write!(f, "expected text in UTF-8, found {len} bytes that are not UTF-8 at byte {valid}")
            }
            ErrorKind::TooLarge { len } => {
                write!(
                    f,
                    "expected at most 2147483647 values or bytes in a batch, found {len}: use smaller batches"
                )
            }
            ErrorKind::Record(error) => write!(f, "{error}"),
            ErrorKind::Arrow(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Arrow(error) => Some(error),
            ErrorKind::Record(error) => Some(error),
            _ => None,
        }
    }
}
