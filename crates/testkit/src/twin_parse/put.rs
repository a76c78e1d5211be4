//! What was taken of the rows, side by side.

use super::super::arrays::{Array, Data, Neutral};
use super::take::{Taken, default_data};
use super::{Form, dtype, partition_key};
use tfseek::schema::{DType, FeatureSpec, Partition, SplitsDType};

pub(super) fn put_features(spec: &FeatureSpec, rows: &[Taken], form: Form) -> Neutral {
    let mut values = Data::empty(dtype(spec));
    rows.iter().for_each(|row| values.append(&row.values));
    let n = rows.len() as u64;
    let batch = if form.single { None } else { Some(n) };
    match spec {
        FeatureSpec::FixedLen { shape, .. } => {
            Neutral::Dense(Array::new(batch.into_iter().chain(dims(shape)), values))
        }
        FeatureSpec::FixedLenSequence { shape, default, .. } => {
            let padding = match default {
                Some(default) => default_data(default),
                None => zero(dtype(spec)),
            };
            padded(rows.iter().map(|row| &row.values), shape, batch, &padding)
        }
        FeatureSpec::VarLen { .. } => {
            let mut indices = Vec::new();
            for (row, taken) in rows.iter().enumerate() {
                for k in 0..taken.values.len() {
                    indices.extend(batch.map(|_| row as i64));
                    indices.push(k as i64);
                }
            }
            let longest = rows.iter().map(|row| row.values.len() as u64).max().unwrap_or(0);
            sparse(indices, values, batch.into_iter().chain([longest]).collect())
        }
        FeatureSpec::Sparse { size, .. } => {
            let mut indices = Vec::new();
            for (row, taken) in rows.iter().enumerate() {
                for of_value in &taken.indices {
                    indices.extend(batch.map(|_| row as i64));
                    indices.extend(of_value);
                }
            }
            sparse(indices, values, batch.into_iter().chain(size.iter().copied()).collect())
        }
        FeatureSpec::Ragged { partitions, row_splits_dtype, .. } => {
            let outer = batch.map(|_| rows.iter().map(|row| row.top).collect());
            ragged(values, partitions, *row_splits_dtype, outer.into_iter().collect(), rows)
        }
    }
}

pub(super) fn put_lists(spec: &FeatureSpec, rows: &[Vec<Taken>], form: Form) -> Neutral {
    let mut values = Data::empty(dtype(spec));
    rows.iter().flatten().for_each(|step| values.append(&step.values));
    let batch = if form.single { None } else { Some(rows.len() as u64) };
    match spec {
        FeatureSpec::FixedLenSequence { shape, .. } => {
            let of_rows: Vec<Data> = rows
                .iter()
                .map(|steps| {
                    let mut of_row = Data::empty(dtype(spec));
                    steps.iter().for_each(|step| of_row.append(&step.values));
                    of_row
                })
                .collect();
            padded(of_rows.iter(), shape, batch, &zero(dtype(spec)))
        }
        FeatureSpec::VarLen { .. } => {
            let mut indices = Vec::new();
            for (row, steps) in rows.iter().enumerate() {
                for (step, taken) in steps.iter().enumerate() {
                    for k in 0..taken.values.len() {
                        indices.extend(batch.map(|_| row as i64));
                        indices.extend([step as i64, k as i64]);
                    }
                }
            }
            let most_steps = rows.iter().map(|steps| steps.len() as u64).max().unwrap_or(0);
            let longest = rows.iter().flatten().map(|step| step.values.len() as u64).max().unwrap_or(0);
            sparse(indices, values, batch.into_iter().chain([most_steps, longest]).collect())
        }
        FeatureSpec::Ragged { partitions, row_splits_dtype, .. } => {
            let mut outer = Vec::new();
            if batch.is_some() {
                outer.push(rows.iter().map(Vec::len).collect());
            }
            outer.push(rows.iter().flatten().map(|step| step.top).collect());
            ragged(values, partitions, *row_splits_dtype, outer, rows.iter().flatten())
        }
        other => panic!("{other:?} in feature lists"),
    }
}

fn dims(shape: &[usize]) -> impl Iterator<Item = u64> {
    shape.iter().map(|&dim| dim as u64)
}

fn zero(dtype: DType) -> Data {
    match dtype {
        DType::Int64 => Data::Int64(vec![0]),
        DType::Float32 => Data::Float32(vec![0]),
        DType::Bytes => Data::Bytes(vec![Vec::new()]),
    }
}

/// Rows of blocks, each made as long as the longest.
fn padded<'a>(
    rows: impl Iterator<Item = &'a Data> + Clone,
    shape: &[usize],
    batch: Option<u64>,
    padding: &Data,
) -> Neutral {
    let longest = rows.clone().map(Data::len).max().unwrap_or(0);
    let mut values = padding.clone();
    clear(&mut values);
    for row in rows {
        values.append(row);
        (row.len()..longest).for_each(|_| values.append(padding));
    }
    let blocks = longest / shape.iter().product::<usize>();
    Neutral::Dense(Array::new(batch.into_iter().chain([blocks as u64]).chain(dims(shape)), values))
}

fn clear(values: &mut Data) {
    match values {
        Data::Int64(v) => v.clear(),
        Data::Int32(v) => v.clear(),
        Data::Float32(v) => v.clear(),
        Data::Bytes(v) => v.clear(),
    }
}

fn sparse(indices: Vec<i64>, values: Data, dense_shape: Vec<u64>) -> Neutral {
    let n = values.len() as u64;
    Neutral::Sparse {
        indices: Array::new([n, dense_shape.len() as u64], Data::Int64(indices)),
        values: Array::new([n], values),
        dense_shape: Array::int64(dense_shape.into_iter().map(|dim| dim as i64).collect()),
    }
}

/// `outer` are the row lengths of the dimensions that rows and steps make; behind them come those of the partitions.
fn ragged<'a>(
    values: Data,
    partitions: &[Partition],
    dtype: SplitsDType,
    mut outer: Vec<Vec<usize>>,
    taken: impl IntoIterator<Item = &'a Taken>,
) -> Neutral {
    let uniform = |partition: &&Partition| partition_key(partition).is_none();
    let innermost = partitions.iter().rev().take_while(uniform).count();
    let mut levels = vec![Vec::new(); partitions.len() - innermost];
    for of in taken {
        for (all, level) in levels.iter_mut().zip(&of.levels) {
            all.extend(level);
        }
    }
    outer.extend(levels);
    let lengths: Vec<u64> = partitions[partitions.len() - innermost..]
        .iter()
        .map(|partition| match partition {
            Partition::UniformRowLength(n) => *n as u64,
            other => panic!("{other:?}"),
        })
        .collect();
    let n = values.len() as u64 / lengths.iter().product::<u64>();
    let values = Array::new([n].into_iter().chain(lengths), values);
    if outer.is_empty() {
        return Neutral::Dense(values);
    }
    let row_splits = outer.into_iter().map(|lengths| splits(&lengths, dtype)).collect();
    Neutral::Ragged { values, row_splits }
}

fn splits(lengths: &[usize], dtype: SplitsDType) -> Array {
    let mut splits = vec![0];
    for &len in lengths {
        splits.push(splits[splits.len() - 1] + len as i64);
    }
    match dtype {
        SplitsDType::Int64 => Array::int64(splits),
        SplitsDType::Int32 => {
            let splits: Vec<i32> = splits.into_iter().map(|split| split.try_into().unwrap()).collect();
            Array::new([splits.len() as u64], Data::Int32(splits))
        }
    }
}
