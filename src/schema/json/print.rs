//! Writing schemas as JSON, with one feature per line and all names sorted.

use super::super::image::layout_name;
use super::super::spec::byte_order_name;
use super::super::{Crop, FeatureSpec, ImageSpec, Partition, Resize, Schema};
use crate::example::FeatureBuf;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

pub(super) fn schema(schema: &Schema) -> String {
    let features = FormatFn(|f: &mut Formatter<'_>| part(f, schema.features()));
    if schema.is_sequence() {
        let lists = FormatFn(|f: &mut Formatter<'_>| part(f, schema.feature_lists()));
        format!("{{\n  \"context\": {features},\n  \"sequence\": {lists}\n}}\n")
    } else {
        format!("{{\n  \"features\": {features}\n}}\n")
    }
}

fn part(f: &mut Formatter<'_>, specs: &BTreeMap<String, FeatureSpec>) -> fmt::Result {
    if specs.is_empty() {
        return f.write_str("{}");
    }
    f.write_str("{")?;
    for (k, (name, spec)) in specs.iter().enumerate() {
        let comma = if k == 0 { "" } else { "," };
        write!(f, "{comma}\n    {}: {{", JsonStr(name))?;
        feature(f, spec)?;
        f.write_str("}")?;
    }
    f.write_str("\n  }")
}

fn feature(f: &mut Formatter<'_>, spec: &FeatureSpec) -> fmt::Result {
    let kind = spec.name();
    let dtype = spec.dtype();
    match spec {
        FeatureSpec::FixedLen { shape, default: values, .. } => {
            default(f, values.as_ref(), shape)?;
            write!(f, "\"dtype\": \"{dtype}\", \"shape\": {shape:?}, \"type\": \"{kind}\"")
        }
        FeatureSpec::Optional { default: values, .. } => {
            default(f, values.as_ref(), &[])?;
            write!(f, "\"dtype\": \"{dtype}\", \"type\": \"{kind}\"")
        }
        FeatureSpec::VarLen { .. } => write!(f, "\"dtype\": \"{dtype}\", \"type\": \"{kind}\""),
        FeatureSpec::FixedLenSequence { shape, allow_missing, default: values, .. } => {
            write!(f, "\"allow_missing\": {allow_missing}, ")?;
            // The padding is a single value for every block shape.
            default(f, values.as_ref(), &[])?;
            write!(f, "\"dtype\": \"{dtype}\", \"shape\": {shape:?}, \"type\": \"{kind}\"")
        }
        FeatureSpec::Ragged { value_key, partitions, row_splits_dtype, validate, .. } => {
            write!(f, "\"dtype\": \"{dtype}\", \"partitions\": ")?;
            list(f, partitions, partition)?;
            write!(
                f,
                ", \"row_splits_dtype\": \"{}\", \"type\": \"{kind}\", \"validate\": {validate}, \"value_key\": ",
                row_splits_dtype.name()
            )?;
            text_or_null(f, value_key.as_deref())
        }
        FeatureSpec::Sparse { index_keys, value_key, size, already_sorted, .. } => {
            write!(f, "\"already_sorted\": {already_sorted}, \"dtype\": \"{dtype}\", \"index_key\": ")?;
            match index_keys.as_slice() {
                [key] => JsonStr(key).fmt(f)?,
                keys => list(f, keys, |key, f| JsonStr(key).fmt(f))?,
            }
            f.write_str(", \"size\": ")?;
            match size.as_slice() {
                [size] => size.fmt(f)?,
                sizes => write!(f, "{sizes:?}")?,
            }
            write!(f, ", \"type\": \"{kind}\", \"value_key\": {}", JsonStr(value_key))
        }
        FeatureSpec::Raw { dtype, shape, little_endian, fixed_length } => {
            let byte_order = byte_order_name(*little_endian);
            write!(f, "\"byte_order\": \"{byte_order}\", \"dtype\": \"{dtype}\", ")?;
            if *fixed_length {
                f.write_str("\"fixed_length\": true, ")?;
            }
            f.write_str("\"shape\": ")?;
            list(f, shape, size)?;
            write!(f, ", \"type\": \"{kind}\"")
        }
        FeatureSpec::Image(image) => {
            write_image(f, image)?;
            write!(f, ", \"type\": \"{kind}\"")
        }
        FeatureSpec::Tensor { dtype, shape } => {
            write!(f, "\"dtype\": \"{dtype}\", \"shape\": ")?;
            list(f, shape, size)?;
            write!(f, ", \"type\": \"{kind}\"")
        }
        FeatureSpec::Label { vocabulary, unknown } => {
            write!(f, "\"type\": \"{kind}\", ")?;
            if let Some(unknown) = unknown {
                write!(f, "\"unknown\": {unknown}, ")?;
            }
            f.write_str("\"vocabulary\": ")?;
            list(f, vocabulary.iter(), |word, f| bytes(word, f))
        }
        FeatureSpec::Stack { keys, default: values, .. } => {
            default(f, values.as_ref(), &[])?;
            write!(f, "\"dtype\": \"{dtype}\", \"keys\": ")?;
            list(f, keys, |key, f| JsonStr(key).fmt(f))?;
            write!(f, ", \"type\": \"{kind}\"")
        }
        FeatureSpec::Several(of) => {
            write!(f, "\"of\": {{")?;
            feature(f, of)?;
            write!(f, "}}, \"type\": \"{kind}\"")
        }
    }
}

/// Writes the fields of an image. Those about crops and colours are left out if they have their defaults.
fn write_image(f: &mut Formatter<'_>, image: &ImageSpec) -> fmt::Result {
    let ImageSpec { fraction, flip, scale, ratio, .. } = image;
    let default = ImageSpec::default();
    write!(f, "\"channels\": {}, \"crop\": ", image.channels)?;
    text_or_null(f, image.crop.map(Crop::name))?;
    f.write_str(", \"crop_with\": ")?;
    text_or_null(f, image.crop_with.as_deref())?;
    write!(f, ", \"dtype\": \"{}\"", image.dtype)?;
    if image.exif {
        f.write_str(", \"exif\": true")?;
    }
    if *flip != default.flip {
        write!(f, ", \"flip\": {flip:?}")?;
    }
    if *fraction != default.fraction {
        write!(f, ", \"fraction\": {fraction:?}")?;
    }
    if let Some(name) = &image.geometry {
        write!(f, ", \"geometry\": {}", JsonStr(name))?;
    }
    if !image.jitter.is_empty() {
        f.write_str(", \"jitter\": ")?;
        list(f, &image.jitter, |(name, factors), f| write!(f, "[{}, {factors:?}]", JsonStr(name)))?;
    }
    if image.channels_first {
        write!(f, ", \"layout\": \"{}\"", layout_name(true))?;
    }
    if let Some([mean, _]) = &image.normalize {
        write!(f, ", \"mean\": {mean:?}")?;
    }
    if let Some(value) = image.missing {
        write!(f, ", \"missing\": {value}")?;
    }
    if *ratio != default.ratio {
        write!(f, ", \"ratio\": {ratio:?}")?;
    }
    f.write_str(", \"resize\": ")?;
    text_or_null(f, image.resize.map(Resize::name))?;
    if *scale != default.scale {
        write!(f, ", \"scale\": {scale:?}")?;
    }
    if image.scaled {
        f.write_str(", \"scaled\": true")?;
    }
    match image.size {
        Some(size) => write!(f, ", \"size\": {size:?}")?,
        None => f.write_str(", \"size\": null")?,
    }
    match &image.normalize {
        Some([_, std]) => write!(f, ", \"std\": {std:?}"),
        None => Ok(()),
    }
}

fn text_or_null(f: &mut Formatter<'_>, text: Option<&str>) -> fmt::Result {
    match text {
        Some(text) => JsonStr(text).fmt(f),
        None => f.write_str("null"),
    }
}

fn size(size: &Option<usize>, f: &mut Formatter<'_>) -> fmt::Result {
    match size {
        Some(size) => size.fmt(f),
        None => f.write_str("null"),
    }
}

fn partition(partition: &Partition, f: &mut Formatter<'_>) -> fmt::Result {
    let kind = partition.name();
    match partition {
        Partition::UniformRowLength(length) => write!(f, "{{\"kind\": \"{kind}\", \"length\": {length}}}"),
        keyed => {
            let key = JsonStr(keyed.key().unwrap_or_default());
            write!(f, "{{\"key\": {key}, \"kind\": \"{kind}\"}}")
        }
    }
}

/// Writes `"default": X, `, with X nested like `shape`; nothing without a default.
fn default(f: &mut Formatter<'_>, values: Option<&FeatureBuf>, shape: &[usize]) -> fmt::Result {
    let Some(values) = values else { return Ok(()) };
    f.write_str("\"default\": ")?;
    match values {
        // A valid schema has no such default.
        FeatureBuf::None => f.write_str("null")?,
        FeatureBuf::Int64(values) => nested(f, values, shape, |v, f| v.fmt(f))?,
        FeatureBuf::Float(values) => nested(f, values, shape, float)?,
        FeatureBuf::Bytes(values) => nested(f, values, shape, |v, f| bytes(v, f))?,
    }
    f.write_str(", ")
}

/// Writes a float as the shortest decimal that parses to it, also when it is parsed as a double and then
/// rounded.
fn float(value: &f32, f: &mut Formatter<'_>) -> fmt::Result {
    if !value.is_finite() {
        return write!(f, "{{\"f32\": \"{:08x}\"}}", value.to_bits());
    }
    let short = format!("{value:?}");
    match short.parse::<f64>() {
        Ok(double) if (double as f32).to_bits() == value.to_bits() => f.write_str(&short),
        _ => write!(f, "{:?}", f64::from(*value)),
    }
}

fn bytes(value: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    match std::str::from_utf8(value) {
        Ok(text) => JsonStr(text).fmt(f),
        Err(_) => {
            f.write_str("{\"hex\": \"")?;
            value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("\"}")
        }
    }
}

/// A JSON string.
struct JsonStr<'a>(&'a str);

impl Display for JsonStr<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        serde_json::Value::from(self.0).fmt(f)
    }
}

/// Writes a list, `[a, b]`.
fn list<T>(
    f: &mut Formatter<'_>,
    values: impl IntoIterator<Item = T>,
    mut one: impl FnMut(T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_str("[")?;
    for (k, value) in values.into_iter().enumerate() {
        if k > 0 {
            f.write_str(", ")?;
        }
        one(value, f)?;
    }
    f.write_str("]")
}

/// Writes values as lists nested like `shape`. A scalar is written without a list.
///
/// The schema is valid, so the number of values matches the shape.
fn nested<T>(
    f: &mut Formatter<'_>,
    values: &[T],
    shape: &[usize],
    one: fn(&T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let Some((&dim, inner)) = shape.split_first() else {
        return values.first().map_or(Ok(()), |value| one(value, f));
    };
    let chunk_len = values.len().checked_div(dim).unwrap_or(0).max(1);
    list(f, values.chunks(chunk_len), |chunk, f| nested(f, chunk, inner, one))
}

/// A value whose `Display` implementation is a function.
struct FormatFn<F>(F);

impl<F: Fn(&mut Formatter<'_>) -> fmt::Result> Display for FormatFn<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0(f)
    }
}
