//! Planning of messages that match a schema, or violate it in one point.

use super::super::payloads::{Generator, mutate};
use super::super::rng::Rng;
use super::super::tensors;
use super::super::twin::Feature;
use super::super::twin_parse::partition_key;
use super::{DTYPES, Style, values};
use tfseek::schema::{FeatureSpec, Partition, Schema};

/// A message before it is encoded.
#[derive(Default)]
struct Plan {
    features: Vec<(String, Feature)>,
    lists: Vec<(String, Vec<Feature>)>,
}

/// Plans and encodes a message for the schema.
pub(super) fn payload(rng: &mut Rng, schema: &Schema, style: Style) -> Vec<u8> {
    let mut plan = Plan::default();
    for (name, spec) in schema.features() {
        add(rng, name, spec, &mut plan.features);
    }
    for (name, spec) in schema.feature_lists() {
        add_list(rng, name, spec, &mut plan.lists);
    }
    if rng.chance(style.spoilt) {
        spoil(rng, &mut plan);
    }
    if style.own_order {
        shuffle(rng, &mut plan.features);
        shuffle(rng, &mut plan.lists);
    }
    let bad = if rng.chance(style.damaged) { 4 } else { 0 };
    let mut generator = Generator { rng, odd: style.odd, bad };
    let mut out = Vec::new();
    generator.planned_map(&mut out, 1, &plan.features, &mut |generator, feature| generator.parts(feature));
    if schema.is_sequence() {
        generator.planned_map(&mut out, 2, &plan.lists, &mut |generator, steps| {
            let mut parts = vec![Vec::new()];
            for step in steps {
                if generator.odd() {
                    parts.push(Vec::new());
                }
                let part = parts.last_mut().unwrap();
                generator.unknown(part, &[1]);
                let step = generator.parts(step).concat();
                generator.len_field(part, 1, &step);
            }
            parts
        });
    }
    if rng.chance(style.damaged) {
        for _ in 0..1 + rng.below(3) {
            mutate(rng, &mut out);
        }
    }
    out
}

fn shuffle<T>(rng: &mut Rng, all: &mut [T]) {
    for k in (1..all.len()).rev() {
        all.swap(k, rng.below(k + 1));
    }
}

/// Adds the features that a column requires, unless another column has added them.
fn add(rng: &mut Rng, name: &str, spec: &FeatureSpec, all: &mut Vec<(String, Feature)>) {
    let mut put = |key: &str, feature: Feature| {
        if !all.iter().any(|(other, _)| other == key) {
            all.push((key.to_owned(), feature));
        }
    };
    let absent = rng.chance(32);
    match spec {
        FeatureSpec::FixedLen { default: Some(_), .. } if absent => {}
        FeatureSpec::Stack { keys, dtype, default } => {
            for key in keys {
                if default.is_none() || !rng.chance(64) {
                    put(key, values(rng, *dtype, 1));
                }
            }
        }
        FeatureSpec::FixedLen { shape, dtype, .. } => put(name, values(rng, *dtype, shape.iter().product())),
        FeatureSpec::Raw { .. } | FeatureSpec::Tensor { .. } | FeatureSpec::Label { .. } => {
            put(name, Feature::Bytes(vec![array(rng, spec)]));
        }
        _ if absent => {}
        FeatureSpec::Several(of) => {
            let count = rng.below(4);
            put(name, Feature::Bytes((0..count).map(|_| array(rng, of)).collect()));
        }
        FeatureSpec::Image(_) => panic!("the generators make no pictures"),
        FeatureSpec::Optional { dtype, .. } => {
            let count = rng.below(2);
            put(name, values(rng, *dtype, count));
        }
        FeatureSpec::FixedLenSequence { shape, dtype, .. } => {
            let blocks = rng.below(5);
            put(name, values(rng, *dtype, blocks * shape.iter().product::<usize>()));
        }
        FeatureSpec::VarLen { dtype } => {
            let count = count(rng);
            put(name, values(rng, *dtype, count));
        }
        FeatureSpec::Sparse { index_keys, value_key, dtype, size, .. } => {
            let n = if size.contains(&0) { 0 } else { rng.below(5) };
            for (key, &size) in index_keys.iter().zip(size) {
                let index = |rng: &mut Rng| (rng.u64() % size.max(1)) as i64;
                put(key, Feature::Int64((0..n).map(|_| index(rng)).collect()));
            }
            put(value_key, values(rng, *dtype, n));
        }
        FeatureSpec::Ragged { dtype, value_key, partitions, .. } => {
            let mut rows = rng.below(4);
            for partition in partitions {
                let mut lengths: Vec<i64> = match partition {
                    Partition::UniformRowLength(n) => vec![*n as i64; rows],
                    _ => (0..rows).map(|_| rng.below(4) as i64).collect(),
                };
                if let (Partition::ValueRowIds(_), Some(last)) = (partition, lengths.last_mut()) {
                    // Row ids cannot express empty rows after the last value.
                    *last = (*last).max(1);
                }
                let ends = lengths.iter().scan(0, |end, len| (*end += len, Some(*end)).1);
                let splits: Vec<i64> = [0].into_iter().chain(ends).collect();
                let numbers = match partition {
                    Partition::RowSplits(_) => splits.clone(),
                    Partition::RowLengths(_) => lengths.clone(),
                    Partition::RowStarts(_) => splits[..rows].to_vec(),
                    Partition::RowLimits(_) => splits[1..].to_vec(),
                    _ => (0..rows).flat_map(|row| vec![row as i64; lengths[row] as usize]).collect(),
                };
                if let Some(key) = partition_key(partition) {
                    put(key, Feature::Int64(numbers));
                }
                rows = splits[splits.len() - 1] as usize;
            }
            put(value_key.as_deref().unwrap_or(name), values(rng, *dtype, rows));
        }
    }
}

/// Returns the byte string of an array, which is rarely another than the planned one, or of a label.
fn array(rng: &mut Rng, spec: &FeatureSpec) -> Vec<u8> {
    if let FeatureSpec::Label { vocabulary, .. } = spec {
        return if rng.chance(32) {
            b"cats".to_vec()
        } else {
            vocabulary[rng.below(vocabulary.len())].to_vec()
        };
    }
    let (FeatureSpec::Raw { dtype, shape, .. } | FeatureSpec::Tensor { dtype, shape }) = spec else {
        panic!("{spec:?} is no array")
    };
    let mut dims: Vec<i64> = shape.iter().map(|size| size.unwrap_or_else(|| rng.below(4)) as i64).collect();
    let fault = if rng.chance(1) { rng.below(3) } else { 3 };
    match (fault, dims.last_mut()) {
        (0, Some(dim)) => *dim += 1,
        (1, _) => dims.push(1),
        _ => {}
    }
    let mut string = match spec {
        FeatureSpec::Raw { .. } => {
            let len = dims.iter().product::<i64>() as usize * dtype.size().unwrap();
            rng.bytes(len)
        }
        _ => tensors::shaped(rng, *dtype, &dims),
    };
    if fault == 2 {
        mutate(rng, &mut string);
    }
    string
}

fn count(rng: &mut Rng) -> usize {
    match rng.below(16) {
        0 => 10 + rng.below(60),
        1..6 => 1,
        _ => rng.below(6),
    }
}

fn add_list(rng: &mut Rng, name: &str, spec: &FeatureSpec, all: &mut Vec<(String, Vec<Feature>)>) {
    let required = matches!(spec, FeatureSpec::FixedLenSequence { allow_missing: false, .. });
    if !required && rng.chance(32) {
        return;
    }
    let steps = rng.below(5);
    let mut lists: Vec<(String, Vec<Feature>)> = Vec::new();
    for step in 0..steps.max(1) {
        let mut step_features = Vec::new();
        match spec {
            FeatureSpec::FixedLenSequence { shape, dtype, .. } => {
                step_features.push((name.to_owned(), values(rng, *dtype, shape.iter().product())));
            }
            FeatureSpec::VarLen { dtype } => {
                let count = count(rng);
                step_features.push((name.to_owned(), values(rng, *dtype, count)));
            }
            spec => {
                // `add` leaves out the features of some rows. Each step must have all of them.
                while step_features.is_empty() {
                    add(rng, name, spec, &mut step_features);
                }
            }
        }
        let optional = !required && !matches!(spec, FeatureSpec::FixedLenSequence { .. });
        let kindless = optional && rng.chance(16);
        for (k, (key, feature)) in step_features.into_iter().enumerate() {
            if step == 0 {
                lists.push((key, Vec::new()));
            }
            if steps > 0 {
                lists[k].1.push(if kindless { Feature::None } else { feature });
            }
        }
    }
    lists.retain(|(key, _)| !all.iter().any(|(other, _)| other == key));
    all.extend(lists);
}

/// Makes one change that the schema may not allow.
fn spoil(rng: &mut Rng, plan: &mut Plan) {
    let lists = !plan.lists.is_empty() && (plan.features.is_empty() || rng.chance(128));
    if lists {
        let at = rng.below(plan.lists.len());
        match rng.below(4) {
            0 => drop(plan.lists.remove(at)),
            1 => drop(plan.lists[at].1.pop()),
            _ => {
                let steps = &mut plan.lists[at].1;
                if !steps.is_empty() {
                    let step = rng.below(steps.len());
                    spoil_feature(rng, &mut steps[step]);
                }
            }
        }
    } else if !plan.features.is_empty() {
        let at = rng.below(plan.features.len());
        match rng.below(4) {
            0 => drop(plan.features.remove(at)),
            _ => spoil_feature(rng, &mut plan.features[at].1),
        }
    }
}

fn spoil_feature(rng: &mut Rng, feature: &mut Feature) {
    match (rng.below(5), &mut *feature) {
        (0, _) => *feature = Feature::None,
        (1, _) => {
            let (dtype, count) = (rng.pick(&DTYPES), rng.below(4));
            *feature = values(rng, dtype, count);
        }
        (2, Feature::Int64(v)) => drop(v.pop()),
        (2, Feature::Float(v)) => drop(v.pop()),
        (2, Feature::Bytes(v)) => drop(v.pop()),
        (3, Feature::Int64(v)) => v.push(1),
        (3, Feature::Float(v)) => v.push(1),
        (3, Feature::Bytes(v)) => v.push(vec![1]),
        (4, Feature::Int64(v)) if !v.is_empty() => {
            let at = rng.below(v.len());
            v[at] = match rng.below(4) {
                0 => rng.pick(&[-1, i64::MIN, i64::MAX, 1 << 40]),
                1 => v[at].wrapping_sub(1),
                _ => v[at].wrapping_add(1),
            };
        }
        _ => {}
    }
}
