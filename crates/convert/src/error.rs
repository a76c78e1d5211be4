//! `ConvertError`: the reason why files were not converted.

#[cfg(feature = "tables")]
use arrow_schema::ArrowError;
#[cfg(feature = "tables")]
use parquet::errors::ParquetError;
use std::collections::TryReserveError;
#[cfg(feature = "tables")]
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tfseek::filter::nearest;
#[cfg(feature = "tables")]
use tfseek_arrow::ErrorKind;
#[cfg(feature = "tables")]
use tfseek_tfds::TfdsError;
use tfseek_tools::{OutputConflict, ToolsError};

/// The reason why files were not converted. No output has its name then.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConvertError {
    /// Records could not be read, or written as TFRecords.
    Error(tfseek::Error),
    /// The request cannot be carried out.
    Options(String),
    /// An output must not be written.
    Conflict(OutputConflict),
    /// A data set of TensorFlow Datasets cannot be written.
    #[cfg(feature = "tables")]
    DataSet(TfdsError),
    /// The records do not fit into a table.
    Records(String),
    /// A file has other data than expected.
    Data {
        /// Path of the file.
        path: PathBuf,
        /// The expected data, and those that were found.
        reason: String,
    },
    /// A float64 that would change, which
    /// [`ImportOptions::round_float64`](crate::ImportOptions::round_float64) allows.
    Inexact {
        /// Path of the file.
        path: PathBuf,
        /// The place, and the number.
        reason: String,
    },
    /// A writer of the caller failed.
    Sink(io::Error),
    /// A record could not be read from JSON.
    Json {
        /// Path of the file.
        path: PathBuf,
        /// The place, and the reason.
        error: ToolsError,
    },
}

impl ConvertError {
    pub(crate) fn io(path: &Path, e: io::Error) -> ConvertError {
        ConvertError::Error(tfseek::Error::from(e).in_file(path))
    }

    /// Returns the error of a request that a file does not fit.
    pub(crate) fn refused(path: &Path, reason: impl fmt::Display) -> ConvertError {
        ConvertError::Options(format!("{}: {reason}", path.display()))
    }

    /// Returns the error of a pattern that matches none of the features.
    pub(crate) fn no_feature<'n>(pattern: &str, names: impl IntoIterator<Item = &'n str>) -> ConvertError {
        let near = nearest(pattern, names)
            .map_or_else(String::new, |name| format!("; the nearest name is {}", name.escape_debug()));
        ConvertError::Options(format!("expected a feature that matches {pattern}, found none{near}"))
    }

    pub(crate) fn data(path: &Path, reason: impl Into<String>) -> ConvertError {
        ConvertError::Data { path: path.into(), reason: reason.into() }
    }

    pub(crate) fn json(path: &Path, error: ToolsError) -> ConvertError {
        match error {
            ToolsError::Io(e) => ConvertError::io(path, e),
            error => ConvertError::Json { path: path.into(), error },
        }
    }
}

/// Errors of tables.
#[cfg(feature = "tables")]
impl ConvertError {
    /// Returns the error of a reader or writer of tables.
    fn of_table(path: &Path, e: &dyn StdError) -> ConvertError {
        let mut reason = e.to_string();
        if ["Disabled feature", "zstd IPC"].iter().any(|words| reason.contains(words)) {
            reason += if cfg!(feature = "zstd") {
                " (tfseek reads no Brotli: write the file with zstd, snappy, gzip or lz4)"
            } else {
                " (this build reads no zstd and no Brotli: write the file with snappy, gzip or lz4)"
            };
        }
        ConvertError::data(path, reason)
    }

    /// Returns the error of a Parquet file.
    pub(crate) fn parquet(path: &Path, e: ParquetError) -> ConvertError {
        match e {
            ParquetError::External(e) => ConvertError::external(path, e),
            e => ConvertError::of_table(path, &e),
        }
    }

    /// Returns the error of an Arrow file.
    pub(crate) fn arrow(path: &Path, e: ArrowError) -> ConvertError {
        match e {
            ArrowError::IoError(_, e) => ConvertError::io(path, e),
            ArrowError::ExternalError(e) => ConvertError::external(path, e),
            e => ConvertError::of_table(path, &e),
        }
    }

    fn external(path: &Path, e: Box<dyn StdError + Send + Sync>) -> ConvertError {
        match e.downcast::<io::Error>() {
            Ok(e) => ConvertError::io(path, *e),
            Err(e) => ConvertError::data(path, e.to_string()),
        }
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConvertError::Error(e) => e.fmt(f),
            ConvertError::Options(reason) => f.write_str(reason),
            ConvertError::Conflict(conflict) => conflict.fmt(f),
            #[cfg(feature = "tables")]
            ConvertError::DataSet(e) => e.fmt(f),
            ConvertError::Records(reason) => f.write_str(reason),
            ConvertError::Data { path, reason } | ConvertError::Inexact { path, reason } => {
                write!(f, "{}: {reason}", path.display())
            }
            ConvertError::Sink(e) => e.fmt(f),
            ConvertError::Json { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for ConvertError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConvertError::Error(e) => Some(e),
            ConvertError::Conflict(conflict) => Some(conflict),
            #[cfg(feature = "tables")]
            ConvertError::DataSet(e) => Some(e),
            ConvertError::Json { error, .. } => Some(error),
            ConvertError::Sink(e) => Some(e),
            ConvertError::Options(_)
            | ConvertError::Records(_)
            | ConvertError::Data { .. }
            | ConvertError::Inexact { .. } => None,
        }
    }
}

impl From<TryReserveError> for ConvertError {
    fn from(e: TryReserveError) -> ConvertError {
        ConvertError::Error(e.into())
    }
}

impl From<tfseek::Error> for ConvertError {
    fn from(e: tfseek::Error) -> ConvertError {
        ConvertError::Error(e)
    }
}

/// The error of a scan, without a path: it names the record.
#[cfg(feature = "tables")]
impl From<tfseek_arrow::Error> for ConvertError {
    fn from(e: tfseek_arrow::Error) -> ConvertError {
        match e.into_record_error() {
            Ok(e) => ConvertError::Error(e),
            Err(e) if matches!(e.kind, ErrorKind::Schema(_)) => ConvertError::Options(e.to_string()),
            Err(e) => ConvertError::Records(e.to_string()),
        }
    }
}

#[cfg(feature = "tables")]
impl From<ArrowError> for ConvertError {
    fn from(e: ArrowError) -> ConvertError {
        let e = match e {
            ArrowError::ExternalError(e) => e,
            e => return ConvertError::Records(e.to_string()),
        };
        match e.downcast::<tfseek::Error>() {
            Ok(e) => ConvertError::Error(*e),
            Err(e) => ConvertError::Records(e.to_string()),
        }
    }
}

impl From<ToolsError> for ConvertError {
    fn from(e: ToolsError) -> ConvertError {
        match e {
            ToolsError::Error(e) => ConvertError::Error(e),
            ToolsError::Conflict(conflict) => ConvertError::Conflict(conflict),
            #[cfg(feature = "tables")]
            ToolsError::Tfds(e) => ConvertError::DataSet(e),
            e => ConvertError::Options(e.to_string()),
        }
    }
}

impl From<OutputConflict> for ConvertError {
    fn from(conflict: OutputConflict) -> ConvertError {
        ConvertError::Conflict(conflict)
    }
}
