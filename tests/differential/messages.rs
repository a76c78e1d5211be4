//! Random messages that fit a schema, most of them without faults.

use std::collections::BTreeMap;
use tfseek::example::FeatureBuf;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema};
use tfseek::{ExampleBuf, SequenceExampleBuf};
use tfseek_testkit::rng::Rng;

type Features = BTreeMap<String, FeatureBuf>;

pub(crate) fn example(rng: &mut Rng, schema: &Schema) -> ExampleBuf {
    ExampleBuf { features: features(rng, schema), has_features: true }
}

pub(crate) fn sequence(rng: &mut Rng, schema: &Schema) -> SequenceExampleBuf {
    let mut lists: BTreeMap<String, Vec<FeatureBuf>> = BTreeMap::new();
    for (name, spec) in schema.feature_lists() {
        let steps = if rng.chance(32) { 0 } else { rng.below(5) };
        let mut column: BTreeMap<String, Vec<FeatureBuf>> = BTreeMap::new();
        for _ in 0..steps {
            let mut step = Features::new();
            match spec {
                FeatureSpec::FixedLenSequence { shape, dtype, .. } => {
                    step.insert(name.clone(), values(rng, *dtype, shape.iter().product()));
                }
                _ => fill(rng, name, spec, &mut step),
            }
            if rng.chance(8) {
                spoil(rng, &mut step);
            }
            for (key, feature) in step {
                column.entry(key).or_default().push(feature);
            }
        }
        if rng.chance(4) {
            // Lists of different lengths.
            column.values_mut().next().map(Vec::pop);
        }
        if steps > 0 || rng.chance(128) {
            column.entry(name.clone()).or_default();
        }
        if rng.chance(250) {
            lists.extend(column);
        }
    }
    SequenceExampleBuf {
        context: features(rng, schema),
        feature_lists: lists,
        has_context: true,
        has_feature_lists: true,
    }
}

fn features(rng: &mut Rng, schema: &Schema) -> Features {
    let mut all = Features::new();
    for (name, spec) in schema.features() {
        let mut column = Features::new();
        fill(rng, name, spec, &mut column);
        // Reuses an index of another column, with the same number of values.
        if let FeatureSpec::Sparse { index_keys, value_key, dtype, .. } = spec
            && let Some(index) = index_keys.iter().find_map(|key| all.get(key))
        {
            let len = tfseek_testkit::spelled::count(index);
            for key in index_keys {
                column
                    .insert(key.clone(), FeatureBuf::Int64((0..len).map(|_| rng.below(2) as i64).collect()));
            }
            column.insert(value_key.clone(), values(rng, *dtype, len));
        }
        if rng.chance(16) {
            spoil(rng, &mut column);
        }
        for (key, feature) in column {
            all.entry(key).or_insert(feature);
        }
    }
    if rng.chance(64) {
        let dtype = rng.pick(&[DType::Int64, DType::Float32, DType::Bytes]);
        let len = rng.below(4);
        let other = values(rng, dtype, len);
        all.entry("unused feature".to_owned()).or_insert(other);
    }
    all
}

fn values(rng: &mut Rng, dtype: DType, len: usize) -> FeatureBuf {
    match dtype {
        DType::Int64 => {
            FeatureBuf::Int64((0..len).map(|_| (rng.u64() >> rng.pick(&[0, 32, 57])) as i64).collect())
        }
        DType::Float32 => FeatureBuf::Float(
            (0..len)
                .map(|_| f32::from_bits(rng.u64() as u32 | if rng.chance(16) { 0x7f80_0000 } else { 0 }))
                .collect(),
        ),
        DType::Bytes => FeatureBuf::Bytes(
            (0..len)
                .map(|_| {
                    let len = rng.below(6);
                    rng.bytes(len)
                })
                .collect(),
        ),
    }
}

/// Generates the features of one record, or of one step, for a column.
fn fill(rng: &mut Rng, name: &str, spec: &FeatureSpec, into: &mut Features) {
    let may_be_absent = match spec {
        FeatureSpec::FixedLen { default, .. } => default.is_some(),
        _ => true,
    };
    let absent = may_be_absent && rng.chance(24);
    match spec {
        FeatureSpec::FixedLen { shape, dtype, .. } => {
            into.insert(name.to_owned(), values(rng, *dtype, shape.iter().product()));
        }
        FeatureSpec::FixedLenSequence { shape, dtype, .. } => {
            let blocks = rng.below(4);
            into.insert(name.to_owned(), values(rng, *dtype, blocks * shape.iter().product::<usize>()));
        }
        FeatureSpec::Optional { dtype, .. } => {
            let len = rng.below(2);
            into.insert(name.to_owned(), values(rng, *dtype, len));
        }
        FeatureSpec::VarLen { dtype } => {
            let len = rng.below(6);
            into.insert(name.to_owned(), values(rng, *dtype, len));
        }
        FeatureSpec::Ragged { dtype, value_key, partitions, .. } => {
            let mut rows = rng.below(if partitions.is_empty() { 6 } else { 4 });
            for partition in partitions {
                rows = divide(rng, partition, rows, into);
            }
            into.insert(value_key.as_deref().unwrap_or(name).to_owned(), values(rng, *dtype, rows));
        }
        FeatureSpec::Sparse { index_keys, value_key, dtype, size, .. } => {
            let len = if rng.chance(16) { 20 + rng.below(20) } else { rng.below(6) };
            for (key, &size) in index_keys.iter().zip(size) {
                let index = (0..len).map(|_| (rng.u64() % size) as i64).collect();
                into.insert(key.clone(), FeatureBuf::Int64(index));
            }
            into.insert(value_key.clone(), values(rng, *dtype, len));
        }
        _ => panic!("tf.io.parse_example has no {}", spec.name()),
    }
    if absent {
        if rng.chance(128) {
            into.clear();
        } else {
            into.values_mut().for_each(|feature| *feature = FeatureBuf::None);
        }
    }
}

/// Partitions the values into `rows` rows. Returns the number of elements that the rows hold.
fn divide(rng: &mut Rng, partition: &Partition, rows: usize, into: &mut Features) -> usize {
    if let Partition::UniformRowLength(length) = partition {
        return rows * length;
    }
    let mut lengths: Vec<i64> = (0..rows).map(|_| rng.below(4) as i64).collect();
    if let (Partition::ValueRowIds(_), Some(last)) = (partition, lengths.last_mut()) {
        // The number of rows follows from the row number of the last value only.
        *last += 1;
    }
    let ends: Vec<i64> = lengths
        .iter()
        .scan(0, |end, length| {
            *end += length;
            Some(*end)
        })
        .collect();
    let total = ends.last().copied().unwrap_or(0);
    let starts = [0].into_iter().chain(ends.iter().copied());
    let numbers: Vec<i64> = match partition {
        Partition::RowSplits(_) => starts.collect(),
        Partition::RowLengths(_) => lengths,
        Partition::RowStarts(_) => starts.take(rows).collect(),
        Partition::RowLimits(_) => ends,
        _ => (0i64..).zip(&lengths).flat_map(|(row, &length)| (0..length).map(move |_| row)).collect(),
    };
    into.insert(
        tfseek_testkit::twin_parse::partition_key(partition).unwrap().to_owned(),
        FeatureBuf::Int64(numbers),
    );
    total as usize
}

/// Introduces one fault into one of the features.
fn spoil(rng: &mut Rng, column: &mut Features) {
    if column.is_empty() {
        return;
    }
    let at = rng.below(column.len());
    let key = column.keys().nth(at).unwrap().clone();
    let feature = column.get_mut(&key).unwrap();
    match (rng.below(6), feature) {
        (0, _) => drop(column.remove(&key)),
        (1, feature) => *feature = FeatureBuf::None,
        (2, feature) => {
            let dtype = rng.pick(&[DType::Int64, DType::Float32, DType::Bytes]);
            let len = rng.below(3);
            *feature = values(rng, dtype, len);
        }
        (3, FeatureBuf::Int64(values)) => drop(values.pop()),
        (3, FeatureBuf::Float(values)) => drop(values.pop()),
        (3, FeatureBuf::Bytes(values)) => drop(values.pop()),
        (4, FeatureBuf::Int64(values)) if !values.is_empty() => {
            let k = rng.below(values.len());
            values[k] = rng.pick(&[-1, 0, 1, 2, 3, 5, 100, 1 << 32, (1 << 32) + 1]);
        }
        (_, FeatureBuf::Int64(values)) => values.push(rng.pick(&[0, 1, 2, 3])),
        (_, FeatureBuf::Float(values)) => values.push(1.0),
        (_, FeatureBuf::Bytes(values)) => values.push(b"more".to_vec()),
        _ => {}
    }
}
