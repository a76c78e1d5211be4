//! Options that are words in Python: `verify="header"`.

use crate::columns::BytesAs;
use crate::failure::Failure;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict};
use pyo3::{Borrowed, FromPyObject};
use std::ops::Deref;
use tfseek::error::OrderError;
use tfseek::loader::{ErrorPolicy, LoaderVerify, Shuffle};
use tfseek::order::{LastBatch, seed_of};
use tfseek::{Compression, Error, IndexMode, Tail, Verify};

/// A value that Python spells as one of some words.
pub(crate) struct Word<T>(pub(crate) T);

macro_rules! words {
    ($($type:ty: $what:literal { $($word:literal => $value:expr),+ $(,)? })*) => {$(
        impl<'a, 'py> FromPyObject<'a, 'py> for Word<$type> {
            type Error = PyErr;

            fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<Word<$type>> {
                let word = from.extract::<String>()?;
                match word.as_str() {
                    $($word => Ok(Word($value)),)+
                    other => Err(PyValueError::new_err(format!(
                        concat!($what, ": expected one of {:?}, found {:?}"), [$($word),+], other
                    ))),
                }
            }
        }
    )*};
}

/// The name of a feature: `str`, or `bytes` in UTF-8, which TensorFlow takes as well.
pub(crate) struct Name(Spelling);

enum Spelling {
    Str(PyBackedStr),
    Bytes(String),
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Spelling::Str(name) => name,
            Spelling::Bytes(name) => name,
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Name {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<Name> {
        if let Ok(bytes) = from.cast::<PyBytes>() {
            let name = std::str::from_utf8(bytes.as_bytes()).map_err(|_| {
                let found = bytes.as_bytes().escape_ascii();
                PyValueError::new_err(format!("features are named in UTF-8, found b\"{found}\""))
            })?;
            return Ok(Name(Spelling::Bytes(name.to_owned())));
        }
        Ok(Name(Spelling::Str(from.extract::<PyBackedStr>()?)))
    }
}

/// A seed: any integer of 64 bits, signed or not, Python's or NumPy's.
#[derive(Clone, Copy)]
pub(crate) struct Seed(pub(crate) u64);

impl<'a, 'py> FromPyObject<'a, 'py> for Seed {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<Seed> {
        if let Ok(seed) = from.extract::<u64>() {
            return Ok(Seed(seed));
        }
        match from.extract::<i64>() {
            Ok(seed) => Ok(Seed(seed_of(seed.into()).map_err(Failure::from)?)),
            Err(e) if e.is_instance_of::<PyOverflowError>(from.py()) => {
                let reason = format!("a seed is a number from -2^63 to 2^64 - 1, found {}", from.str()?);
                Err(Failure::from(Error::from(OrderError::Refused { reason: reason.into() })).into())
            }
            Err(e) => Err(e),
        }
    }
}

/// What was asked for under this name: of a dict that has all of a function's arguments.
pub(crate) fn asked<'py, T>(arguments: &Bound<'py, PyDict>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    let value =
        arguments.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("{name} is not there")))?;
    value.extract::<T>().map_err(Into::into)
}

/// How files are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// Maps, if the process may have so many.
    Auto,
    Map,
    Pread,
}

/// What `ds[i]` is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KindChoice {
    Auto,
    Example,
    SequenceExample,
    Bytes,
}

words! {
    BytesAs: "bytes_as" { "objects" => BytesAs::Objects, "offsets" => BytesAs::Offsets }
    Door: "io" { "auto" => Door::Auto, "map" => Door::Map, "pread" => Door::Pread }
    KindChoice: "kind" {
        "auto" => KindChoice::Auto, "example" => KindChoice::Example,
        "sequence_example" => KindChoice::SequenceExample, "bytes" => KindChoice::Bytes,
    }
    IndexMode: "index" {
        "auto" => IndexMode::Auto, "require" => IndexMode::Require,
        "memory" => IndexMode::Memory, "rebuild" => IndexMode::Rebuild,
    }
    Verify: "verify" { "payload" => Verify::Payload, "header" => Verify::Header }
    Tail: "tail" { "strict" => Tail::Strict, "tolerate" => Tail::Tolerate }
    LastBatch: "tail" {
        "drop" => LastBatch::Drop, "pad" => LastBatch::Pad,
        "short" => LastBatch::Short, "continuous" => LastBatch::Continuous,
    }
    Shuffle: "shuffle" { "global" => Shuffle::Global, "block" => Shuffle::Block }
    LoaderVerify: "verify" {
        "payload" => LoaderVerify::Always(Verify::Payload),
        "header" => LoaderVerify::Always(Verify::Header),
        "first_epoch" => LoaderVerify::FirstEpoch,
    }
    ErrorPolicy: "errors" { "raise" => ErrorPolicy::Raise, "skip" => ErrorPolicy::Skip }
    Compression: "compression" {
        "none" => Compression::None, "gzip" => Compression::Gzip, "zlib" => Compression::Zlib,
    }
}
