//! A schema as JSON: one feature a line, all names sorted.

use super::super::literal::{Shown, decimal, list, nested};
use super::super::{FeatureSpec, Partition, Schema};
use crate::example::FeatureBuf;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

pub(super) fn schema(schema: &Schema) -> String {
    let features = Shown(|f: &mut Formatter<'_>| part(f, schema.features()));
    match schema.is_sequence() {
        false => format!("{{\n  \"features\": {features}\n}}\n"),
        true => {
            let lists = Shown(|f: &mut Formatter<'_>| part(f, schema.feature_lists()));
            format!("{{\n  \"context\": {features},\n  \"sequence\": {lists}\n}}\n")
        }
    }
}

fn part(f: &mut Formatter<'_>, specs: &BTreeMap<String, FeatureSpec>) -> fmt::Result {
    if specs.is_empty() {
        return f.write_str("{}");
    }
    f.write_str("{")?;
    for (k, (name, spec)) in specs.iter().enumerate() {
        let comma = if k == 0 { "" } else { "," };
        write!(f, "{comma}\n    {}: {{", Text(name))?;
        feature(f, spec)?;
        f.write_str("}")?;
    }
    f.write_str("\n  }")
}

fn feature(f: &mut Formatter<'_>, spec: &FeatureSpec) -> fmt::Result {
    let (kind, dtype) = (spec.name(), spec.dtype());
    match spec {
        FeatureSpec::FixedLen { shape, default: values, .. } => {
            default(f, values.as_ref(), shape)?;
            write!(f, "\"dtype\": \"{dtype}\", \"shape\": {shape:?}, \"type\": \"{kind}\"")
        }
        FeatureSpec::VarLen { .. } => write!(f, "\"dtype\": \"{dtype}\", \"type\": \"{kind}\""),
        FeatureSpec::FixedLenSequence { shape, allow_missing, default: values, .. } => {
            write!(f, "\"allow_missing\": {allow_missing}, ")?;
            // One value to pad with, whatever the shape of a block.
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
            match value_key {
                Some(key) => Text(key).fmt(f),
                None => f.write_str("null"),
            }
        }
        FeatureSpec::Sparse { index_keys, value_key, size, already_sorted, .. } => {
            write!(f, "\"already_sorted\": {already_sorted}, \"dtype\": \"{dtype}\", \"index_key\": ")?;
            match index_keys.as_slice() {
                [key] => Text(key).fmt(f)?,
                keys => list(f, keys, |key, f| Text(key).fmt(f))?,
            }
            f.write_str(", \"size\": ")?;
            match size.as_slice() {
                [size] => size.fmt(f)?,
                sizes => write!(f, "{sizes:?}")?,
            }
            write!(f, ", \"type\": \"{kind}\", \"value_key\": {}", Text(value_key))
        }
    }
}

fn partition(partition: &Partition, f: &mut Formatter<'_>) -> fmt::Result {
    let kind = partition.name();
    match partition {
        Partition::UniformRowLength(length) => write!(f, "{{\"kind\": \"{kind}\", \"length\": {length}}}"),
        keyed => {
            let key = Text(keyed.key().unwrap_or_default());
            write!(f, "{{\"key\": {key}, \"kind\": \"{kind}\"}}")
        }
    }
}

/// `"default": X, ` with X nested as the shape is, or nothing.
fn default(f: &mut Formatter<'_>, values: Option<&FeatureBuf>, shape: &[usize]) -> fmt::Result {
    let Some(values) = values else { return Ok(()) };
    f.write_str("\"default\": ")?;
    match values {
        // No schema has it.
        FeatureBuf::None => f.write_str("null")?,
        FeatureBuf::Int64(values) => nested(f, values, shape, |v, f| v.fmt(f))?,
        FeatureBuf::Float(values) => nested(f, values, shape, float)?,
        FeatureBuf::Bytes(values) => nested(f, values, shape, |v, f| bytes(v, f))?,
    }
    f.write_str(", ")
}

fn float(value: &f32, f: &mut Formatter<'_>) -> fmt::Result {
    match decimal(*value) {
        Some(decimal) => f.write_str(&decimal),
        None => write!(f, "{{\"f32\": \"{:08x}\"}}", value.to_bits()),
    }
}

fn bytes(value: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
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
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        serde_json::Value::from(self.0).fmt(f)
    }
}
