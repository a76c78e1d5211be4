//! A schema as JSON: one feature a line, all names sorted.

use super::super::{FeatureSpec, Partition, Schema};
use crate::example::FeatureBuf;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};

pub(super) fn schema(schema: &Schema) -> String {
    let mut out = String::from("{\n");
    let parts: &[(&str, _)] = match schema.is_sequence() {
        false => &[("features", schema.features())],
        true => &[("context", schema.features()), ("sequence", schema.feature_lists())],
    };
    for (k, (name, specs)) in parts.iter().enumerate() {
        let comma = if k + 1 < parts.len() { "," } else { "" };
        // A String takes all that is written to it.
        let _ = writeln!(out, "  {}: {}{comma}", Text(name), Part(specs));
    }
    out.push_str("}\n");
    out
}

struct Part<'a>(&'a BTreeMap<String, FeatureSpec>);

impl Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("{}");
        }
        f.write_char('{')?;
        for (k, (name, spec)) in self.0.iter().enumerate() {
            let comma = if k == 0 { "" } else { "," };
            write!(f, "{comma}\n    {}: {}", Text(name), Spec(spec))?;
        }
        f.write_str("\n  }")
    }
}

struct Spec<'a>(&'a FeatureSpec);

impl Display for Spec<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, dtype) = (self.0.name(), self.0.dtype());
        match self.0 {
            FeatureSpec::FixedLen { shape, default, .. } => write!(
                f,
                "{{{}\"dtype\": \"{dtype}\", \"shape\": {}, \"type\": \"{kind}\"}}",
                Default(default.as_ref(), shape),
                List(shape)
            ),
            FeatureSpec::VarLen { .. } => write!(f, "{{\"dtype\": \"{dtype}\", \"type\": \"{kind}\"}}"),
            FeatureSpec::FixedLenSequence { shape, allow_missing, default, .. } => write!(
                f,
                "{{\"allow_missing\": {allow_missing}, {}\"dtype\": \"{dtype}\", \"shape\": {}, \"type\": \"{kind}\"}}",
                Default(default.as_ref(), &[]),
                List(shape)
            ),
            FeatureSpec::Ragged { value_key, partitions, row_splits_dtype, validate, .. } => {
                let value_key = value_key.as_ref().map_or("null".to_owned(), |key| Text(key).to_string());
                let partitions: Vec<_> = partitions.iter().map(Divided).collect();
                write!(
                    f,
                    "{{\"dtype\": \"{dtype}\", \"partitions\": {}, \"row_splits_dtype\": \"{}\", \
                     \"type\": \"{kind}\", \"validate\": {validate}, \"value_key\": {value_key}}}",
                    List(&partitions),
                    row_splits_dtype.name()
                )
            }
            FeatureSpec::Sparse { index_keys, value_key, size, already_sorted, .. } => {
                let keys: Vec<_> = index_keys.iter().map(|key| Text(key)).collect();
                write!(
                    f,
                    "{{\"already_sorted\": {already_sorted}, \"dtype\": \"{dtype}\", \"index_key\": {}, \
                     \"size\": {}, \"type\": \"{kind}\", \"value_key\": {}}}",
                    OneOrList(&keys),
                    OneOrList(size),
                    Text(value_key)
                )
            }
        }
    }
}

struct Divided<'a>(&'a Partition);

impl Display for Divided<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.0.name();
        match self.0 {
            Partition::UniformRowLength(length) => {
                write!(f, "{{\"kind\": \"{kind}\", \"length\": {length}}}")
            }
            keyed => {
                let key = Text(keyed.key().unwrap_or_default());
                write!(f, "{{\"key\": {key}, \"kind\": \"{kind}\"}}")
            }
        }
    }
}

/// `"default": X, ` with X nested as the shape is, or nothing.
struct Default<'a>(Option<&'a FeatureBuf>, &'a [usize]);

impl Display for Default<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Default(Some(values), shape) = *self else { return Ok(()) };
        f.write_str("\"default\": ")?;
        match values {
            FeatureBuf::None => f.write_str("[]")?,
            FeatureBuf::Int64(values) => nested(f, values, shape, |v, f| v.fmt(f))?,
            FeatureBuf::Float(values) => nested(f, values, shape, |v, f| float(*v, f))?,
            FeatureBuf::Bytes(values) => nested(f, values, shape, |v, f| bytes(v, f))?,
        }
        f.write_str(", ")
    }
}

/// The values of one dimension after the other; a schema was built, so there are as many as the shape has.
fn nested<T>(
    f: &mut fmt::Formatter<'_>,
    values: &[T],
    shape: &[usize],
    one: fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let Some((&dim, inner)) = shape.split_first() else {
        return values.first().map_or(Ok(()), |value| one(value, f));
    };
    f.write_char('[')?;
    for (k, part) in values.chunks((values.len() / dim.max(1)).max(1)).enumerate() {
        if k > 0 {
            f.write_str(", ")?;
        }
        nested(f, part, inner, one)?;
    }
    f.write_char(']')
}

/// A float in its shortest decimals, if those read as a double are it again; its bits otherwise.
fn float(value: f32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let short = format!("{value:?}");
    match short.parse::<f64>() {
        Ok(double) if double.is_finite() && (double as f32).to_bits() == value.to_bits() => {
            f.write_str(&short)
        }
        _ => write!(f, "{{\"f32\": \"{:08x}\"}}", value.to_bits()),
    }
}

fn bytes(value: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match std::str::from_utf8(value) {
        Ok(text) => Text(text).fmt(f),
        Err(_) => {
            f.write_str("{\"hex\": \"")?;
            value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("\"}")
        }
    }
}

/// A JSON string.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::Value::from(self.0).to_string())
    }
}

struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (k, value) in self.0.iter().enumerate() {
            let comma = if k == 0 { "" } else { ", " };
            write!(f, "{comma}{value}")?;
        }
        f.write_char(']')
    }
}

/// The one there is, or a list of another number of them.
struct OneOrList<'a, T>(&'a [T]);

impl<T: Display> Display for OneOrList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => one.fmt(f),
            several => List(several).fmt(f),
        }
    }
}
