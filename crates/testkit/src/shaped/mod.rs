//! Seeded schemas, and payloads that mostly match a schema.
//!
//! A message is planned to match the schema. It may then be changed to violate the schema, and is encoded in
//! any form that protobuf allows.

mod encode;
mod plan;

use super::rng::Rng;
use super::twin::Feature;
use tfseek::example::FeatureBuf;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SchemaBuilder, SplitsDType};
use tfseek::tensor::TensorDType;

/// Options of generated payloads. Probabilities are in 256ths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Probability of an unusual encoding at each point where protobuf allows one.
    pub odd: u8,
    /// Probability of a message that violates the schema: another kind, count or index.
    pub spoilt: u8,
    /// Probability of a payload with damaged bytes.
    pub damaged: u8,
    /// Shuffle the keys of each message.
    pub own_order: bool,
}

pub const DTYPES: [DType; 3] = [DType::Float32, DType::Int64, DType::Bytes];

/// Returns a schema with columns of all types. Some keys have common prefixes.
pub fn schema(rng: &mut Rng, sequence: bool) -> Schema {
    loop {
        let mut builder = if sequence { Schema::sequence_example() } else { Schema::example() };
        let mut used = Vec::new();
        for _ in 0..rng.below(6) + usize::from(!sequence) {
            let name = key(rng, &mut used);
            builder = builder.feature(name.clone(), spec(rng, &name, &mut used, !sequence, false));
        }
        if sequence {
            used.clear();
            for _ in 0..rng.below(4) {
                let name = key(rng, &mut used);
                builder = builder.feature_list(name.clone(), spec(rng, &name, &mut used, false, true));
            }
        }
        builder = shared(rng, builder, sequence);
        // The schema is refused if a key has two roles. Then another one is generated.
        if let Ok(schema) = builder.build() {
            return schema;
        }
    }
}

/// Returns a schema with columns of arrays and labels in byte strings, besides others.
pub fn schema_of_arrays(rng: &mut Rng) -> Schema {
    let sequence = rng.chance(64);
    let mut builder = if sequence { Schema::sequence_example() } else { Schema::example() };
    builder = builder.feature("label", FeatureSpec::fixed_len(&[], DType::Int64));
    for k in 0..1 + rng.below(3) {
        let list = sequence && rng.chance(192);
        let several = !list && rng.chance(96);
        let spec = of_string(rng, list || several);
        builder = match (list, several) {
            (true, _) => builder.feature_list(format!("array {k}"), spec),
            (_, true) => builder.feature(format!("array {k}"), FeatureSpec::Several(Box::new(spec))),
            _ => builder.feature(format!("array {k}"), spec),
        };
    }
    if rng.chance(64) {
        let dtype = rng.pick(&DTYPES[..2]);
        let default = rng.chance(128).then(|| buf(&values(rng, dtype, 1)));
        let keys = (0..1 + rng.below(4)).rev().map(|k| format!("one of {k}")).collect();
        builder = builder.feature("stack", FeatureSpec::Stack { keys, dtype, default });
    }
    if rng.chance(128) {
        builder = builder.feature("strings", FeatureSpec::var_len(DType::Bytes));
    }
    builder.build().unwrap()
}

/// Returns the spec of a byte string that is an array or a label. One of `several` has no open dimension.
fn of_string(rng: &mut Rng, several: bool) -> FeatureSpec {
    if rng.chance(48) {
        let vocabulary = WORDS.map(|word| word.as_bytes().into()).into();
        return FeatureSpec::Label { vocabulary, unknown: Some(rng.below(3) as i64 - 1) };
    }
    let dtype = loop {
        let dtype = rng.pick(TensorDType::ALL);
        if dtype != TensorDType::String {
            break dtype;
        }
    };
    let open = !several && rng.chance(96);
    let least = usize::from(open || !rng.chance(16));
    let mut shape: Vec<_> = shape(rng, least).into_iter().map(Some).collect();
    if open {
        shape.insert(0, None);
    }
    if rng.chance(128) {
        let fixed_length = !open && rng.chance(64);
        FeatureSpec::Raw { dtype, shape, little_endian: rng.pick(&[true, false]), fixed_length }
    } else {
        FeatureSpec::Tensor { dtype, shape }
    }
}

/// The vocabulary of generated labels.
const WORDS: [&str; 4] = ["cat", "dog", "", "caf\u{e9}"];

/// Returns a payload for the schema.
pub fn payload(rng: &mut Rng, schema: &Schema, style: Style) -> Vec<u8> {
    plan::payload(rng, schema, style)
}

/// Returns a key, which is rarely one that is already used.
fn key(rng: &mut Rng, used: &mut Vec<String>) -> String {
    const KEYS: &[&str] =
        &["", "a", "b", "ab", "aba", "image/encoded", "image/format", "\u{e9}t\u{e9}", "nul\0key"];
    loop {
        let key = match rng.below(3) {
            0 => rng.pick(KEYS).to_owned(),
            _ => format!("column {}", rng.below(30)),
        };
        if !used.contains(&key) || rng.chance(2) {
            used.push(key.clone());
            return key;
        }
    }
}

/// Returns a key that is not empty.
fn other_key(rng: &mut Rng, used: &mut Vec<String>) -> String {
    loop {
        let key = key(rng, used);
        if !key.is_empty() {
            return key;
        }
    }
}

fn shape(rng: &mut Rng, least: usize) -> Vec<usize> {
    (0..rng.pick(&[0, 0, 1, 1, 2, 3])).map(|_| least + rng.below(4 - least)).collect()
}

fn spec(rng: &mut Rng, name: &str, used: &mut Vec<String>, example: bool, list: bool) -> FeatureSpec {
    let dtype = rng.pick(&DTYPES);
    let row_splits_dtype = rng.pick(&[SplitsDType::Int32, SplitsDType::Int64]);
    match rng.below(6) {
        0 if !list => {
            let least = usize::from(!rng.chance(16));
            let shape = shape(rng, least);
            let count: usize = shape.iter().product();
            let default = (rng.chance(128) && count > 0).then(|| buf(&values(rng, dtype, count)));
            FeatureSpec::FixedLen { shape, dtype, default }
        }
        1 if example || list => {
            let default = (example && rng.chance(128)).then(|| buf(&values(rng, dtype, 1)));
            let allow_missing = example || rng.chance(128);
            FeatureSpec::FixedLenSequence { shape: shape(rng, 1), dtype, allow_missing, default }
        }
        2 if example => {
            let rank = 1 + rng.below(3);
            FeatureSpec::Sparse {
                index_keys: (0..rank).map(|_| other_key(rng, used)).collect(),
                value_key: if rng.chance(64) && !name.is_empty() {
                    name.to_owned()
                } else {
                    other_key(rng, used)
                },
                dtype,
                size: (0..rank).map(|_| rng.pick(&[0, 1, 3, 1000, i64::MAX as u64, 5, 7])).collect(),
                already_sorted: rng.chance(64),
            }
        }
        3 => FeatureSpec::Ragged {
            dtype,
            value_key: rng.chance(128).then(|| other_key(rng, used)),
            partitions: (0..rng.pick(&[0, 1, 1, 2, 3])).map(|_| partition(rng, used)).collect(),
            row_splits_dtype,
            validate: rng.chance(128),
        },
        4 if !list => {
            FeatureSpec::Optional { dtype, default: rng.chance(96).then(|| buf(&values(rng, dtype, 1))) }
        }
        _ => FeatureSpec::VarLen { dtype },
    }
}

fn partition(rng: &mut Rng, used: &mut Vec<String>) -> Partition {
    let kind = rng.below(7);
    if kind >= 5 {
        return Partition::UniformRowLength(1 + rng.below(3));
    }
    let key = other_key(rng, used);
    match kind {
        0 => Partition::RowSplits(key),
        1 => Partition::RowLengths(key),
        2 => Partition::RowStarts(key),
        3 => Partition::RowLimits(key),
        _ => Partition::ValueRowIds(key),
    }
}

/// Adds a column that uses the same features as another column, if the other column allows it.
fn shared(rng: &mut Rng, builder: SchemaBuilder, sequence: bool) -> SchemaBuilder {
    let Ok(so_far) = builder.clone().build() else { return builder };
    let part = if sequence && rng.chance(128) { so_far.feature_lists() } else { so_far.features() };
    let lists = std::ptr::eq(part, so_far.feature_lists());
    let Some((name, spec)) = part.iter().nth(rng.below(6)) else { return builder };
    let mut spec = spec.clone();
    match &mut spec {
        FeatureSpec::Ragged { value_key, partitions, .. } => {
            // The new column has the same values and only some of the inner partitions, so it has fewer
            // dimensions.
            value_key.get_or_insert_with(|| name.clone());
            let keep = rng.below(partitions.len() + 1);
            partitions.drain(..partitions.len() - keep);
        }
        FeatureSpec::Sparse { already_sorted, .. } => *already_sorted = !*already_sorted,
        _ => return builder,
    }
    if lists { builder.feature_list("shared", spec) } else { builder.feature("shared", spec) }
}

fn buf(feature: &Feature) -> FeatureBuf {
    match feature {
        Feature::None => FeatureBuf::None,
        Feature::Bytes(v) => FeatureBuf::Bytes(v.clone()),
        Feature::Float(v) => FeatureBuf::Float(v.iter().map(|&bits| f32::from_bits(bits)).collect()),
        Feature::Int64(v) => FeatureBuf::Int64(v.clone()),
    }
}

fn values(rng: &mut Rng, dtype: DType, count: usize) -> Feature {
    match dtype {
        DType::Int64 => Feature::Int64(
            (0..count).map(|_| (rng.u64() >> rng.pick(&[0, 1, 20, 50, 57, 60, 63])) as i64).collect(),
        ),
        DType::Float32 => Feature::Float(
            (0..count).map(|_| rng.u64() as u32 | if rng.chance(32) { 0x7f80_0000 } else { 0 }).collect(),
        ),
        DType::Bytes => Feature::Bytes(
            (0..count)
                .map(|_| {
                    let len = if rng.chance(8) { 120 + rng.below(300) } else { rng.below(12) };
                    rng.bytes(len)
                })
                .collect(),
        ),
    }
}
