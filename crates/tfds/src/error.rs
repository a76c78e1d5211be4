//! `TfdsError`: the reason why a data set cannot be opened or read.

use std::fmt;
use std::path::{Path, PathBuf};
use tfseek::{Error, ErrorKind};

/// The reason why a data set of TensorFlow Datasets cannot be opened or read.
#[derive(Debug)]
pub struct TfdsError {
    path: Option<PathBuf>,
    kind: TfdsErrorKind,
}

/// The kind of a [`TfdsError`].
#[derive(Debug)]
#[non_exhaustive]
pub enum TfdsErrorKind {
    /// A folder is no prepared data set, or several.
    Folder {
        /// The expected and the found content.
        reason: String,
    },
    /// A `dataset_info.json` has another content than expected.
    Info {
        /// The field with the fault, such as `splits[0].name`. Empty for the whole file.
        field: String,
        /// The expected and the found content.
        reason: String,
    },
    /// A `features.json` has another content than expected.
    Features {
        /// Path of the feature, such as `objects/bbox`. Empty for the whole file.
        feature: String,
        /// The expected and the found content.
        reason: String,
    },
    /// A split specification, such as `train[:80%]`.
    Split {
        /// The specification.
        spec: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An option or a selection of features.
    Options {
        /// What is wrong with it.
        reason: String,
    },
    /// Damage, a malformed record, or an I/O error, with its location.
    Error(Error),
    /// An I/O error of a file of the folder.
    Io(std::io::Error),
}

/// The result of a function that may fail with a [`TfdsError`].
pub(crate) type Result<T> = std::result::Result<T, TfdsError>;

impl TfdsError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> &TfdsErrorKind {
        &self.kind
    }

    /// Returns the kind of the error, without its path.
    pub fn into_kind(self) -> TfdsErrorKind {
        self.kind
    }

    /// Returns the file or the folder with the fault.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Adds the file or the folder with the fault, unless it is known.
    pub(crate) fn at(mut self, path: &Path) -> TfdsError {
        if !matches!(&self.kind, TfdsErrorKind::Error(e) if e.location().path.is_some()) {
            self.path.get_or_insert_with(|| path.to_path_buf());
        }
        self
    }
}

/// Returns the error of a folder, or of a file in it.
pub(crate) fn refused_folder(path: &Path, reason: impl Into<String>) -> TfdsError {
    TfdsError::from(TfdsErrorKind::Folder { reason: reason.into() }).at(path)
}

/// Returns the error of an option.
pub(crate) fn refused_option(reason: impl Into<String>) -> TfdsError {
    TfdsErrorKind::Options { reason: reason.into() }.into()
}

impl From<TfdsErrorKind> for TfdsError {
    fn from(kind: TfdsErrorKind) -> TfdsError {
        TfdsError { path: None, kind }
    }
}

impl From<Error> for TfdsError {
    fn from(e: Error) -> TfdsError {
        TfdsErrorKind::Error(e).into()
    }
}

impl fmt::Display for TfdsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", tfseek::error::printable(path))?;
        }
        match &self.kind {
            TfdsErrorKind::Folder { reason } | TfdsErrorKind::Options { reason } => f.write_str(reason),
            TfdsErrorKind::Info { field, reason } if field.is_empty() => f.write_str(reason),
            TfdsErrorKind::Info { field, reason } => write!(f, "{field}: {reason}"),
            TfdsErrorKind::Features { feature, reason } if feature.is_empty() => f.write_str(reason),
            TfdsErrorKind::Features { feature, reason } => write!(f, "feature {feature:?}: {reason}"),
            TfdsErrorKind::Split { spec, reason } => write!(f, "split {spec:?}: {reason}"),
            TfdsErrorKind::Error(e) => e.fmt(f),
            TfdsErrorKind::Io(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for TfdsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            TfdsErrorKind::Error(e) => Some(e),
            TfdsErrorKind::Io(e) => Some(e),
            _ => None,
        }
    }
}

/// Returns the error about a value that cannot be decoded.
#[cold]
pub(crate) fn wrong(reason: impl Into<Box<str>>) -> Error {
    ErrorKind::Value { reason: reason.into() }.into()
}
