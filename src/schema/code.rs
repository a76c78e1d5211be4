//! Code generation: writes a schema as Python code for TensorFlow.

use super::literal::{FormatFn, decimal, list, nested};
use super::{FeatureSpec, Partition, Schema, SplitsDType};
use crate::example::FeatureBuf;
use std::collections::BTreeMap;
use std::fmt::{self, Formatter, Write};

/// Returns Python code with the equivalent feature specs of TensorFlow.
///
/// The code defines `feature_description` for `tf.io.parse_example`, or `context_features` and
/// `sequence_features` for `tf.io.parse_sequence_example`.
///
/// For an array in a byte string, the code has a string, and a comment with the function that decodes it.
///
/// TensorFlow has no [`Optional`](FeatureSpec::Optional). The code has a `VarLenFeature` instead, or with a
/// default a `FixedLenFeature`, and a comment with the difference.
///
/// ```
/// use tfseek::schema::code;
/// use tfseek::{DType, FeatureSpec, Schema};
/// let label = FeatureSpec::fixed_len(&[], DType::Int64).with_default([-1]);
/// let schema = Schema::example().feature("label", label).build()?;
/// assert!(code::python(&schema).contains("'label': tf.io.FixedLenFeature([], tf.int64, default_value=-1),"));
/// # Ok::<(), tfseek::Error>(())
/// ```
pub fn python(schema: &Schema) -> String {
    let mut body = String::new();
    let mut dict = |name: &str, specs: &BTreeMap<String, FeatureSpec>| {
        // Writing to a String cannot fail.
        let _ = writeln!(body, "\n{name} = {{");
        for (key, spec) in specs {
            let comment = FormatFn(|f: &mut Formatter<'_>| py_comment(f, spec));
            let spec = FormatFn(|f: &mut Formatter<'_>| py_spec(f, spec));
            let _ = writeln!(body, "    {}: {spec},{comment}", PyStr(key));
        }
        body.push_str("}\n");
    };
    if schema.is_sequence() {
        dict("context_features", schema.features());
        dict("sequence_features", schema.feature_lists());
    } else {
        dict("feature_description", schema.features());
    }
    // NumPy is needed only for NaNs with other bits. If a key contains this text, the import is superfluous
    // but harmless.
    let numpy = if body.contains("np.uint32(") { "import numpy as np\n" } else { "" };
    format!("{numpy}import tensorflow as tf\n{body}")
}

fn py_comment(f: &mut Formatter<'_>, spec: &FeatureSpec) -> fmt::Result {
    match spec {
        FeatureSpec::Optional { default: None, .. } => {
            f.write_str("  # optional; tf.io accepts several values")
        }
        FeatureSpec::Optional { .. } => f.write_str("  # optional; tf.io refuses an empty list"),
        FeatureSpec::Raw { dtype, shape, little_endian } => {
            write!(f, "  # tf.io.decode_raw(.., tf.{dtype}")?;
            if !little_endian {
                f.write_str(", little_endian=False")?;
            }
            f.write_str("), then tf.reshape(.., ")?;
            list(f, shape, |size, f| match size {
                Some(size) => write!(f, "{size}"),
                None => f.write_str("-1"),
            })?;
            f.write_str(")")
        }
        FeatureSpec::Tensor { dtype, .. } => write!(f, "  # tf.io.parse_tensor(.., tf.{dtype})"),
        FeatureSpec::Image(_) => f.write_str("  # tf.io.decode_image(..)"),
        _ => Ok(()),
    }
}

fn py_spec(f: &mut Formatter<'_>, spec: &FeatureSpec) -> fmt::Result {
    let dtype = spec.dtype();
    match spec {
        FeatureSpec::FixedLen { shape, default, .. } => {
            write!(f, "tf.io.FixedLenFeature({shape:?}, tf.{dtype}")?;
            py_default(f, default.as_ref(), shape)?;
        }
        FeatureSpec::Optional { default: default @ Some(_), .. } => {
            write!(f, "tf.io.FixedLenFeature([], tf.{dtype}")?;
            py_default(f, default.as_ref(), &[])?;
        }
        FeatureSpec::Raw { .. } | FeatureSpec::Tensor { .. } | FeatureSpec::Image(_) => {
            write!(f, "tf.io.FixedLenFeature([], tf.{dtype}")?;
        }
        FeatureSpec::Optional { .. } | FeatureSpec::VarLen { .. } => {
            write!(f, "tf.io.VarLenFeature(tf.{dtype}")?;
        }
        FeatureSpec::FixedLenSequence { shape, allow_missing, default, .. } => {
            write!(f, "tf.io.FixedLenSequenceFeature({shape:?}, tf.{dtype}")?;
            if *allow_missing {
                f.write_str(", allow_missing=True")?;
            }
            py_default(f, default.as_ref(), &[])?;
        }
        FeatureSpec::Ragged { value_key, partitions, row_splits_dtype, validate, .. } => {
            write!(f, "tf.io.RaggedFeature(tf.{dtype}")?;
            if let Some(key) = value_key {
                write!(f, ", value_key={}", PyStr(key))?;
            }
            if !partitions.is_empty() {
                f.write_str(", partitions=")?;
                list(f, partitions, py_partition)?;
            }
            if *row_splits_dtype != SplitsDType::default() {
                write!(f, ", row_splits_dtype=tf.{}", row_splits_dtype.name())?;
            }
            if *validate {
                f.write_str(", validate=True")?;
            }
        }
        FeatureSpec::Sparse { index_keys, value_key, size, already_sorted, .. } => {
            f.write_str("tf.io.SparseFeature(index_key=")?;
            match index_keys.as_slice() {
                [key] => write!(f, "{}", PyStr(key))?,
                keys => list(f, keys, |key, f| write!(f, "{}", PyStr(key)))?,
            }
            write!(f, ", value_key={}, dtype=tf.{dtype}, size=", PyStr(value_key))?;
            match size.as_slice() {
                [size] => write!(f, "{size}")?,
                sizes => write!(f, "{sizes:?}")?,
            }
            if *already_sorted {
                f.write_str(", already_sorted=True")?;
            }
        }
    }
    f.write_str(")")
}

fn py_default(f: &mut Formatter<'_>, default: Option<&FeatureBuf>, shape: &[usize]) -> fmt::Result {
    let Some(default) = default else { return Ok(()) };
    f.write_str(", default_value=")?;
    match default {
        // A valid schema has no such default.
        FeatureBuf::None => f.write_str("None"),
        FeatureBuf::Int64(values) => nested(f, values, shape, |v, f| write!(f, "{v}")),
        FeatureBuf::Float(values) => nested(f, values, shape, |v, f| py_float(*v, f)),
        FeatureBuf::Bytes(values) => nested(f, values, shape, |v, f| py_bytes(v, f)),
    }
}

fn py_float(value: f32, f: &mut Formatter<'_>) -> fmt::Result {
    /// The bits of Python's `nan`, converted to a float32.
    const NAN: u32 = 0x7fc0_0000;
    match decimal(value) {
        Some(decimal) => f.write_str(&decimal),
        None if value.is_infinite() => write!(f, "float('{value}')"),
        None if value.to_bits() == NAN => f.write_str("float('nan')"),
        None => write!(f, "np.uint32({:#x}).view(np.float32)", value.to_bits()),
    }
}

/// Writes a Python bytes literal, in the form of `repr(bytes)`.
fn py_bytes(value: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    // Uses double quotes if that avoids escapes.
    let quote = if value.contains(&b'\'') && !value.contains(&b'"') { '"' } else { '\'' };
    write!(f, "b{quote}")?;
    for &byte in value {
        py_char(char::from(byte), quote, f)?;
    }
    f.write_char(quote)
}

/// A Python string literal.
struct PyStr<'a>(&'a str);

impl fmt::Display for PyStr<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quote = if self.0.contains('\'') && !self.0.contains('"') { '"' } else { '\'' };
        f.write_char(quote)?;
        for c in self.0.chars() {
            // Non-ASCII letters and digits are readable. Combining marks, spaces and direction marks are
            // escaped.
            if !c.is_ascii() && c.is_alphanumeric() {
                f.write_char(c)?;
            } else {
                py_char(c, quote, f)?;
            }
        }
        f.write_char(quote)
    }
}

/// Writes one character or byte in ASCII.
fn py_char(c: char, quote: char, f: &mut Formatter<'_>) -> fmt::Result {
    match (c, u32::from(c)) {
        ('\t', _) => f.write_str("\\t"),
        ('\n', _) => f.write_str("\\n"),
        ('\r', _) => f.write_str("\\r"),
        ('\\', _) => f.write_str("\\\\"),
        _ if c == quote => write!(f, "\\{c}"),
        (_, 0x20..=0x7e) => f.write_char(c),
        (_, code @ ..=0xff) => write!(f, "\\x{code:02x}"),
        (_, code @ ..=0xffff) => write!(f, "\\u{code:04x}"),
        (_, code) => write!(f, "\\U{code:08x}"),
    }
}

/// Writes a partition as an object of its class.
fn py_partition(partition: &Partition, f: &mut Formatter<'_>) -> fmt::Result {
    let (class, key) = match partition {
        Partition::RowSplits(key) => ("RowSplits", key),
        Partition::RowLengths(key) => ("RowLengths", key),
        Partition::RowStarts(key) => ("RowStarts", key),
        Partition::RowLimits(key) => ("RowLimits", key),
        Partition::ValueRowIds(key) => ("ValueRowIds", key),
        Partition::UniformRowLength(length) => {
            return write!(f, "tf.io.RaggedFeature.UniformRowLength({length})");
        }
    };
    write!(f, "tf.io.RaggedFeature.{class}({})", PyStr(key))
}
