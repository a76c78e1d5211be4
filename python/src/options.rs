//! Conversion of Python arguments: named choices (`verify="header"`), feature names, seeds.

use crate::error::BindingError;
use crate::strings::BytesAs;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict};
use pyo3::{Borrowed, FromPyObject};
use std::ops::Deref;
use tfseek::error::OrderError;
use tfseek::example::MessageKind;
use tfseek::loader::Shuffle;
use tfseek::order::{LastBatch, MixStop, seed_of};
use tfseek::{Compression, Damage, Error, IndexMode, Tail, Verify};
use tfseek_arrow::{ByteStrings, ClassLabels, Tensors};
use tfseek_rlds::Pad;
use tfseek_tfds::{Rounding, StatisticsStyle};

/// An option whose values are strings in Python.
pub(crate) struct Choice<T>(pub(crate) T);

macro_rules! choices {
    ($($type:ty: $what:literal { $($name:literal => $value:expr),+ $(,)? })*) => {$(
        impl<'a, 'py> FromPyObject<'a, 'py> for Choice<$type> {
            type Error = PyErr;

            fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<Choice<$type>> {
                // Constants of Python code are interned.
                $(if from.is(intern!(from.py(), $name)) { return Ok(Choice($value)); })+
                let name = from.extract::<String>()?;
                match name.as_str() {
                    $($name => Ok(Choice($value)),)+
                    other => Err(PyValueError::new_err(format!(
                        concat!($what, ": expected one of {:?}, found {:?}"), [$($name),+], other
                    ))),
                }
            }
        }
    )*};
}

/// A condition as text. A function, as `tf.data` takes, is an error that says what selects records by one.
pub(crate) struct ConditionText(pub(crate) PyBackedStr);

impl<'a, 'py> FromPyObject<'a, 'py> for ConditionText {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<ConditionText> {
        let found = from.get_type().name()?;
        from.extract::<PyBackedStr>().map(ConditionText).map_err(|_| {
            PyTypeError::new_err(format!(
                "expected a condition such as \"label == 3\", found {found}; ds[mask] selects by an array of bool"
            ))
        })
    }
}

/// The name of a feature: `str`, or `bytes` in UTF-8, which TensorFlow accepts as well.
pub(crate) enum FeatureName {
    Str(PyBackedStr),
    Bytes(String),
}

impl Deref for FeatureName {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            FeatureName::Str(name) => name,
            FeatureName::Bytes(name) => name,
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for FeatureName {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<FeatureName> {
        if let Ok(bytes) = from.cast::<PyBytes>() {
            let name = std::str::from_utf8(bytes.as_bytes()).map_err(|_| {
                let found = bytes.as_bytes().escape_ascii();
                PyValueError::new_err(format!("expected the name of a feature in UTF-8, found b\"{found}\""))
            })?;
            return Ok(FeatureName::Bytes(name.to_owned()));
        }
        Ok(FeatureName::Str(from.extract::<PyBackedStr>()?))
    }
}

/// A seed: any signed or unsigned integer of 64 bits, from Python or NumPy.
#[derive(Clone, Copy)]
pub(crate) struct Seed(pub(crate) u64);

impl<'a, 'py> FromPyObject<'a, 'py> for Seed {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<Seed> {
        if let Ok(seed) = from.extract::<u64>() {
            return Ok(Seed(seed));
        }
        match from.extract::<i64>() {
            Ok(seed) => Ok(Seed(seed_of(seed.into()).map_err(BindingError::from)?)),
            Err(e) if e.is_instance_of::<PyOverflowError>(from.py()) => {
                let reason = format!("seed: expected a number from -2^63 to 2^64 - 1, found {}", from.str()?);
                Err(BindingError::from(Error::from(OrderError::Refused { reason: reason.into() })).into())
            }
            Err(e) => Err(e),
        }
    }
}

/// The names come from [`Compression`].
impl<'a, 'py> FromPyObject<'a, 'py> for Choice<Compression> {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<Choice<Compression>> {
        let found = from.extract::<PyBackedStr>()?.parse::<Compression>();
        Ok(Choice(found.map_err(|e| PyValueError::new_err(format!("compression: {e}")))?))
    }
}

/// `"auto"` is `None`: each file tells its compression.
impl<'a, 'py> FromPyObject<'a, 'py> for Choice<Option<Compression>> {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<Choice<Option<Compression>>> {
        if from.extract::<PyBackedStr>()? == "auto" {
            return Ok(Choice(None));
        }
        let Choice(named) = from.extract::<Choice<Compression>>()?;
        Ok(Choice(Some(named)))
    }
}

/// Returns true for the path of a feature, and of features in it.
pub(crate) fn is_within(path: &str, feature: &str) -> bool {
    path.strip_prefix(feature).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the argument with this name, from a dict that contains all arguments of a function.
pub(crate) fn argument<'py, T>(arguments: &Bound<'py, PyDict>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    let value = arguments
        .get_item(name)?
        .ok_or_else(|| PyValueError::new_err(format!("missing argument: {name}")))?;
    extracted(&value, name)
}

/// Returns the value of the argument with this name. An error has the name and the value.
pub(crate) fn extracted<'py, T>(value: &Bound<'py, PyAny>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    let e: PyErr = match value.extract::<T>() {
        Ok(found) => return Ok(found),
        Err(e) => e.into(),
    };
    let py = value.py();
    let text = e.value(value.py()).to_string();
    let (is_type, is_range) =
        (e.get_type(py).is(py.get_type::<PyTypeError>()), e.is_instance_of::<PyOverflowError>(py));
    // Errors of values name their argument.
    if !(is_type || is_range) || text.starts_with(name) {
        return Err(e);
    }
    let expected = if text.contains("as an integer") {
        "expected an integer".to_owned()
    } else if text.contains("negative") {
        "expected an integer of at least 0".to_owned()
    } else if is_range {
        "expected a smaller integer".to_owned()
    } else {
        text
    };
    let message = format!("{name}: {expected}, found {}", value.repr()?);
    Err(if is_type { PyTypeError::new_err(message) } else { PyOverflowError::new_err(message) })
}

/// Method of reading shards.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Maps; positional reads if the process cannot have enough maps.
    Auto,
    Map,
    Pread,
}

/// Checksums that a loader verifies: in epoch 0, and in later epochs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoaderVerify(pub(crate) Verify, pub(crate) Verify);

/// Treatment of numbers of float64 columns that float32 does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Float64 {
    Exact,
    Round,
}

/// The type of `ds[i]`. `None`: it is guessed.
pub(crate) type KindOption = Option<MessageKind>;

choices! {
    BytesAs: "bytes_as" {
        "objects" => BytesAs::Objects, "str" => BytesAs::Str, "offsets" => BytesAs::Offsets,
        "views" => BytesAs::Views, "S" => BytesAs::FixedWidth,
    }
    ReadMode: "io" { "auto" => ReadMode::Auto, "map" => ReadMode::Map, "pread" => ReadMode::Pread }
    KindOption: "kind" {
        "auto" => None, "example" => Some(MessageKind::Example),
        "sequence_example" => Some(MessageKind::SequenceExample), "bytes" => Some(MessageKind::Other),
    }
    IndexMode: "index" {
        "auto" => IndexMode::Auto, "require" => IndexMode::Require,
        "memory" => IndexMode::Memory, "rebuild" => IndexMode::Rebuild,
    }
    ByteStrings: "bytes" {
        "auto" => ByteStrings::Auto, "view" => ByteStrings::View, "copy" => ByteStrings::Copy,
    }
    ClassLabels: "labels" { "names" => ClassLabels::Names, "numbers" => ClassLabels::Numbers }
    Tensors: "tensors" { "lists" => Tensors::Lists, "extension" => Tensors::Extension }
    Verify: "verify" { "payload" => Verify::Payload, "header" => Verify::Header, "none" => Verify::None }
    Rounding: "rounding" { "closest" => Rounding::Closest, "pct1_dropremainder" => Rounding::Pct1DropRemainder }
    Float64: "float64" { "exact" => Float64::Exact, "round" => Float64::Round }
    Tail: "tail" { "strict" => Tail::Strict, "tolerate" => Tail::Tolerate }
    Damage: "damage" { "raise" => Damage::Raise, "skip" => Damage::Skip }
    Pad: "pad" { "repeat" => Pad::Repeat, "zero" => Pad::Zero, "none" => Pad::None }
    StatisticsStyle: "style" { "openvla" => StatisticsStyle::OpenVla, "octo" => StatisticsStyle::Octo }
    MixStop: "stop" { "never" => MixStop::Never, "first" => MixStop::First, "all" => MixStop::All }
    LastBatch: "last_batch" {
        "drop" => LastBatch::Drop, "pad" => LastBatch::Pad,
        "short" => LastBatch::Short, "continuous" => LastBatch::Continuous,
    }
    Shuffle: "shuffle" { "global" => Shuffle::Global, "block" => Shuffle::Block }
    LoaderVerify: "verify" {
        "payload" => LoaderVerify(Verify::Payload, Verify::Payload),
        "header" => LoaderVerify(Verify::Header, Verify::Header),
        "first_epoch" => LoaderVerify(Verify::Payload, Verify::Header),
        "none" => LoaderVerify(Verify::None, Verify::None),
    }
}
