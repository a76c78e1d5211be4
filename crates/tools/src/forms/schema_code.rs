//! Schemas as Python code for TensorFlow.

use std::collections::BTreeMap;
use tfseek::schema::{FeatureSpec, Partition, SplitsDType};
use tfseek::{FeatureBuf, Schema};

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
/// use tfseek::{DType, FeatureSpec, Schema};
/// use tfseek_tools::schema_code;
/// let label = FeatureSpec::fixed_len(&[], DType::Int64).with_default([-1]);
/// let code = schema_code::python(&Schema::example().feature("label", label).build()?);
/// assert!(code.contains("'label': tf.io.FixedLenFeature([], tf.int64, default_value=-1),"));
/// # Ok::<(), tfseek::Error>(())
/// ```
pub fn python(schema: &Schema) -> String {
    let dicts = if schema.is_sequence() {
        dict("context_features", schema.features()) + &dict("sequence_features", schema.feature_lists())
    } else {
        dict("feature_description", schema.features())
    };
    // NumPy is needed only for NaNs with other bits. If a key contains this text, the import is superfluous
    // but harmless.
    let numpy = if dicts.contains("np.uint32(") { "import numpy as np\n" } else { "" };
    format!("{numpy}import tensorflow as tf\n{dicts}")
}

fn dict(name: &str, specs: &BTreeMap<String, FeatureSpec>) -> String {
    let is_lists = name == "sequence_features";
    let line = |key: &str, spec: &FeatureSpec, comment: String| {
        let code = match spec {
            FeatureSpec::Raw { .. }
            | FeatureSpec::Tensor { .. }
            | FeatureSpec::Image(_)
            | FeatureSpec::Label { .. }
                if is_lists =>
            {
                "tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True)".into()
            }
            spec => feature(spec),
        };
        format!("    {}: {code},{comment}\n", text(key))
    };
    let lines = |(name, spec): (&String, &FeatureSpec)| match spec {
        FeatureSpec::Stack { keys, .. } => {
            let comment = format!("  # tf.stack(.., axis=-1) to {}", text(name));
            keys.iter().map(|key| line(key, spec, comment.clone())).collect()
        }
        _ => line(name, spec, comment(spec)),
    };
    format!("\n{name} = {{\n{}}}\n", specs.iter().map(lines).collect::<String>())
}

fn comment(spec: &FeatureSpec) -> String {
    match spec {
        FeatureSpec::Optional { default: None, .. } => "  # optional; tf.io accepts several values".into(),
        FeatureSpec::Optional { .. } => "  # optional; tf.io refuses an empty list".into(),
        FeatureSpec::Several(of) => format!("{}, of each string", comment(of)),
        FeatureSpec::Label { .. } => {
            "  # the position in a vocabulary, as of a tf.lookup.StaticHashTable".into()
        }
        FeatureSpec::Raw { dtype, shape, little_endian, fixed_length } => {
            let order = if *little_endian { "" } else { ", little_endian=False" };
            let elements = shape.iter().flatten().product::<usize>();
            let bytes = elements.saturating_mul(dtype.size().unwrap_or(1));
            let len = if *fixed_length { format!(", fixed_length={bytes}") } else { String::new() };
            let shape =
                list(shape.iter().map(|size| size.map_or(String::from("-1"), |size| size.to_string())));
            format!("  # tf.io.decode_raw(.., tf.{dtype}{order}{len}), then tf.reshape(.., {shape})")
        }
        FeatureSpec::Tensor { dtype, .. } => format!("  # tf.io.parse_tensor(.., tf.{dtype})"),
        FeatureSpec::Image(image) => {
            let missing = |value| format!(", or {value} for an empty string; tf.io refuses an empty list");
            format!("  # tf.io.decode_image(..){}", image.missing.map_or(String::new(), missing))
        }
        _ => String::new(),
    }
}

fn feature(spec: &FeatureSpec) -> String {
    let dtype = spec.dtype();
    match spec {
        FeatureSpec::FixedLen { shape, default, .. } => {
            format!("tf.io.FixedLenFeature({shape:?}, tf.{dtype}{})", default_value(default.as_ref(), shape))
        }
        FeatureSpec::Optional { default: None, .. } | FeatureSpec::VarLen { .. } => {
            format!("tf.io.VarLenFeature(tf.{dtype})")
        }
        FeatureSpec::Optional { default, .. } => {
            format!("tf.io.FixedLenFeature([], tf.{dtype}{})", default_value(default.as_ref(), &[]))
        }
        FeatureSpec::Image(image) if image.missing.is_some() => {
            format!("tf.io.FixedLenFeature([], tf.{dtype}, default_value=b'')")
        }
        FeatureSpec::Stack { default, .. } => {
            format!("tf.io.FixedLenFeature([], tf.{dtype}{})", default_value(default.as_ref(), &[]))
        }
        FeatureSpec::Several(_) => format!("tf.io.RaggedFeature(tf.{dtype})"),
        FeatureSpec::Raw { .. }
        | FeatureSpec::Tensor { .. }
        | FeatureSpec::Image(_)
        | FeatureSpec::Label { .. } => {
            format!("tf.io.FixedLenFeature([], tf.{dtype})")
        }
        FeatureSpec::FixedLenSequence { shape, allow_missing, default, .. } => {
            let missing = if *allow_missing { ", allow_missing=True" } else { "" };
            let default = default_value(default.as_ref(), &[]);
            format!("tf.io.FixedLenSequenceFeature({shape:?}, tf.{dtype}{missing}{default})")
        }
        FeatureSpec::Ragged { value_key, partitions, row_splits_dtype, validate, .. } => {
            let mut code = format!("tf.io.RaggedFeature(tf.{dtype}");
            if let Some(key) = value_key {
                code += &format!(", value_key={}", text(key));
            }
            if !partitions.is_empty() {
                code += &format!(", partitions={}", list(partitions.iter().map(partition)));
            }
            if *row_splits_dtype == SplitsDType::Int64 {
                code += ", row_splits_dtype=tf.int64";
            }
            if *validate {
                code += ", validate=True";
            }
            code + ")"
        }
        FeatureSpec::Sparse { index_keys, value_key, size, already_sorted, .. } => {
            let index = match index_keys.as_slice() {
                [key] => text(key),
                keys => list(keys.iter().map(|key| text(key))),
            };
            let size = match size.as_slice() {
                [size] => size.to_string(),
                sizes => format!("{sizes:?}"),
            };
            let key = text(value_key);
            let sorted = if *already_sorted { ", already_sorted=True" } else { "" };
            format!(
                "tf.io.SparseFeature(index_key={index}, value_key={key}, dtype=tf.{dtype}, size={size}{sorted})"
            )
        }
    }
}

/// Returns a partition as an object of its class.
fn partition(partition: &Partition) -> String {
    let (class, argument) = match partition {
        Partition::RowSplits(key) => ("RowSplits", text(key)),
        Partition::RowLengths(key) => ("RowLengths", text(key)),
        Partition::RowStarts(key) => ("RowStarts", text(key)),
        Partition::RowLimits(key) => ("RowLimits", text(key)),
        Partition::ValueRowIds(key) => ("ValueRowIds", text(key)),
        Partition::UniformRowLength(length) => ("UniformRowLength", length.to_string()),
    };
    format!("tf.io.RaggedFeature.{class}({argument})")
}

fn default_value(default: Option<&FeatureBuf>, shape: &[usize]) -> String {
    let values = match default {
        None => return String::new(),
        // A valid schema has no such default.
        Some(FeatureBuf::None) => String::from("None"),
        Some(FeatureBuf::Int64(values)) => nested(values, shape, |value| value.to_string()),
        Some(FeatureBuf::Float(values)) => nested(values, shape, |value| float(*value)),
        Some(FeatureBuf::Bytes(values)) => nested(values, shape, |value| bytes(value)),
    };
    format!(", default_value={values}")
}

/// Returns values as lists nested like `shape`. A scalar is no list.
///
/// The schema is valid, so the number of values matches the shape.
fn nested<T>(values: &[T], shape: &[usize], one: fn(&T) -> String) -> String {
    let Some((&dim, inner)) = shape.split_first() else {
        return values.first().map_or_else(String::new, one);
    };
    let chunk_len = values.len().checked_div(dim).unwrap_or(0).max(1);
    list(values.chunks(chunk_len).map(|chunk| nested(chunk, inner, one)))
}

fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

/// Returns the shortest decimal that TensorFlow parses to this float: as a double, which it rounds.
fn float(value: f32) -> String {
    /// The bits of Python's `nan`, converted to a float32.
    const NAN: u32 = 0x7fc0_0000;
    let bits = value.to_bits();
    if value.is_finite() {
        let short = format!("{value:?}");
        let is_same = short.parse::<f64>().is_ok_and(|double| (double as f32).to_bits() == bits);
        if is_same { short } else { format!("{:?}", f64::from(value)) }
    } else if value.is_infinite() {
        format!("float('{value}')")
    } else if bits == NAN {
        "float('nan')".into()
    } else {
        format!("np.uint32({bits:#x}).view(np.float32)")
    }
}

/// Returns a Python bytes literal, in the form of `repr(bytes)`.
fn bytes(value: &[u8]) -> String {
    format!("b{}", quoted(value.iter().copied().map(char::from), |_| false))
}

/// Returns a Python string literal. Non-ASCII letters and digits are readable. Combining marks, spaces and
/// direction marks are escaped.
fn text(value: &str) -> String {
    quoted(value.chars(), char::is_alphanumeric)
}

/// Returns a literal in ASCII, except for the `readable` characters.
fn quoted(chars: impl Iterator<Item = char> + Clone, readable: fn(char) -> bool) -> String {
    let has = |wanted: char| chars.clone().any(|c| c == wanted);
    // Double quotes are used if that avoids escapes.
    let quote = if has('\'') && !has('"') { '"' } else { '\'' };
    let mut literal = String::from(quote);
    for c in chars {
        match (c, u32::from(c)) {
            ('\t', _) => literal.push_str("\\t"),
            ('\n', _) => literal.push_str("\\n"),
            ('\r', _) => literal.push_str("\\r"),
            ('\\', _) => literal.push_str("\\\\"),
            _ if c == quote => literal.extend(['\\', c]),
            (_, 0x20..=0x7e) => literal.push(c),
            _ if !c.is_ascii() && readable(c) => literal.push(c),
            (_, code @ ..=0xff) => literal += &format!("\\x{code:02x}"),
            (_, code @ ..=0xffff) => literal += &format!("\\u{code:04x}"),
            (_, code) => literal += &format!("\\U{code:08x}"),
        }
    }
    literal.push(quote);
    literal
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::schema::ImageSpec;
    use tfseek::{DType, TensorDType};
    use tfseek_testkit::rng::Rng;

    /// Schemas that use every spec type and set every field to a value other than its default.
    fn everything() -> [Schema; 2] {
        let ragged = |value_key: Option<&str>, partitions: Vec<Partition>| FeatureSpec::Ragged {
            dtype: DType::Float32,
            value_key: value_key.map(Into::into),
            partitions,
            row_splits_dtype: SplitsDType::Int64,
            validate: true,
        };
        let all_partitions = vec![
            Partition::RowSplits("p/splits".into()),
            Partition::RowLengths("p/lengths".into()),
            Partition::RowStarts("p/starts".into()),
            Partition::RowLimits("p/limits".into()),
            Partition::ValueRowIds("p/'rowids'".into()),
            Partition::UniformRowLength(2),
        ];
        let floats = [0.1, -0.0, 1e-45, f32::INFINITY, f32::NAN, f32::from_bits(0xffc0_0001)];
        let bytes = vec![b"text".to_vec(), b"it's".to_vec(), b"'\"\\\n\x00\xff".to_vec(), "größe".into()];
        let sorted = FeatureSpec::Sparse {
            index_keys: vec!["s/row".into(), "s/column".into()],
            value_key: "s/value".into(),
            dtype: DType::Float32,
            size: vec![3, 1 << 40],
            already_sorted: true,
        };
        let example = Schema::example()
            .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
            .feature("ints", FeatureSpec::fixed_len(&[2, 1], DType::Int64).with_default([i64::MIN, i64::MAX]))
            .feature("floats", FeatureSpec::fixed_len(&[3, 2], DType::Float32).with_default(floats))
            .feature("bytes", FeatureSpec::fixed_len(&[4], DType::Bytes).with_default(bytes))
            .feature("words", FeatureSpec::var_len(DType::Bytes))
            .feature("blocks", FeatureSpec::fixed_len_sequence(&[2], DType::Int64).with_default([-1]))
            .feature("ragged", FeatureSpec::ragged(DType::Bytes))
            .feature("divided", ragged(Some("p/values"), all_partitions))
            .feature("flat", ragged(None, vec![]))
            .feature("sparse", FeatureSpec::sparse(&["i"], "v", DType::Int64, &[10]))
            .feature("sorted", sorted)
            .feature("it's \"größe\"\n\u{7f}\u{301}\u{1f40e}\\", FeatureSpec::var_len(DType::Int64))
            .feature("", FeatureSpec::var_len(DType::Float32));
        let steps = |shape: &[usize], allow_missing| FeatureSpec::FixedLenSequence {
            shape: shape.to_vec(),
            dtype: DType::Float32,
            allow_missing,
            default: None,
        };
        let sequence = Schema::sequence_example()
            .feature("id", FeatureSpec::fixed_len(&[], DType::Int64))
            .feature_list("frames", steps(&[2, 3], false))
            .feature_list("sometimes", steps(&[], true))
            .feature_list("words", FeatureSpec::var_len(DType::Bytes));
        [example.build().unwrap(), sequence.build().unwrap()]
    }

    /// The expected output. TensorFlow 2.21.0 ran this text. Its specs, and those of 3,000 random schemas, were
    /// equal to the specs made from the schema's JSON.
    #[test]
    fn generated_python_is_as_expected() {
        let [example, sequence] = everything();
        assert_eq!(python(&example), include_str!("../../tests/schema_example.py"));
        assert_eq!(python(&sequence), include_str!("../../tests/schema_sequence.py"));
    }

    /// TensorFlow reads the strings, and a comment has the function that decodes them.
    #[test]
    fn generated_python_of_arrays() {
        let raw = FeatureSpec::Raw {
            dtype: TensorDType::Int16,
            shape: vec![None, Some(3)],
            little_endian: false,
            fixed_length: false,
        };
        let picture = ImageSpec { size: Some([8, 8]), missing: Some(7), ..ImageSpec::default() };
        let schema = Schema::example()
            .feature("a", raw)
            .feature("b", FeatureSpec::raw(&[Some(28), Some(28)], TensorDType::UInt8))
            .feature("c", FeatureSpec::Tensor { dtype: TensorDType::BFloat16, shape: vec![] })
            .feature("d", FeatureSpec::Image(ImageSpec::default()))
            .feature("e", FeatureSpec::Image(picture))
            .build()
            .unwrap();
        let lines = [
            "    'a': tf.io.FixedLenFeature([], tf.string),  # tf.io.decode_raw(.., tf.int16, little_endian=False), then tf.reshape(.., [-1, 3])",
            "    'b': tf.io.FixedLenFeature([], tf.string),  # tf.io.decode_raw(.., tf.uint8), then tf.reshape(.., [28, 28])",
            "    'c': tf.io.FixedLenFeature([], tf.string),  # tf.io.parse_tensor(.., tf.bfloat16)",
            "    'd': tf.io.FixedLenFeature([], tf.string),  # tf.io.decode_image(..)",
            "    'e': tf.io.FixedLenFeature([], tf.string, default_value=b''),  # tf.io.decode_image(..), or 7 for an empty string; tf.io refuses an empty list",
        ];
        let found = python(&schema);
        assert_eq!(found.lines().skip(3).take(5).collect::<Vec<_>>(), lines, "{found}");
    }

    /// TensorFlow has no optional features, so the code has the closest spec and a comment.
    #[test]
    fn optional_features_in_generated_code() {
        let schema = Schema::example()
            .feature("a", FeatureSpec::optional(DType::Bytes))
            .feature("b", FeatureSpec::optional(DType::Int64).with_default([7]))
            .build()
            .unwrap();
        let expected = "import tensorflow as tf

feature_description = {
    'a': tf.io.VarLenFeature(tf.string),  # optional; tf.io accepts several values
    'b': tf.io.FixedLenFeature([], tf.int64, default_value=7),  # optional; tf.io refuses an empty list
}
";
        assert_eq!(python(&schema), expected);
    }

    #[test]
    fn any_schema_has_code() {
        for seed in 0..if cfg!(miri) { 4 } else { 500 } {
            let schema = tfseek_testkit::shaped::schema(&mut Rng::new(seed), seed % 2 == 0);
            assert!(python(&schema).contains("import tensorflow as tf\n"));
        }
    }
}
