//! Assembly of the values of all rows to arrays.

use super::super::arrays::{Array, Data, Neutral};
use super::extract::{CellValues, default_data, no_arrays};
use super::{Form, dtype, partition_key};
use tfseek::schema::{DType, FeatureSpec, Partition, SplitsDType};

pub(super) fn assemble_features(spec: &FeatureSpec, rows: &[CellValues], form: Form) -> Neutral {
    let mut values = no_arrays(spec);
    rows.iter().for_each(|row| values.append(&row.values));
    let n = rows.len() as u64;
    let batch = if form.single { None } else { Some(n) };
    match spec {
        FeatureSpec::FixedLen { shape, .. } => {
            Neutral::Dense(Array::new(batch.into_iter().chain(dims(shape)), values))
        }
        FeatureSpec::Optional { default, dtype } => {
            let fill = default.as_ref().map_or_else(|| zero(*dtype), default_data);
            let mut filled = Data::empty(*dtype);
            rows.iter()
                .for_each(|row| filled.append(if row.values.len() == 0 { &fill } else { &row.values }));
            let values = Array::new(batch, filled);
            let present = rows.iter().map(|row| row.values.len() > 0).collect();
            if default.is_some() { Neutral::Dense(values) } else { Neutral::Optional { values, present } }
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
            for (row, cell) in rows.iter().enumerate() {
                for k in 0..cell.values.len() {
                    indices.extend(batch.map(|_| row as i64));
                    indices.push(k as i64);
                }
            }
            let longest = rows.iter().map(|row| row.values.len() as u64).max().unwrap_or(0);
            sparse(indices, values, batch.into_iter().chain([longest]).collect())
        }
        FeatureSpec::Image(_) => panic!("parsers refuse pictures"),
        FeatureSpec::Stack { keys, .. } => {
            Neutral::Dense(Array::new(batch.into_iter().chain([keys.len() as u64]), values))
        }
        FeatureSpec::Label { .. } => Neutral::Dense(Array::new(batch, values)),
        FeatureSpec::Several(of) => items(of, values, rows.iter().map(|row| row.top), form),
        FeatureSpec::Raw { shape, .. } | FeatureSpec::Tensor { shape, .. } => {
            if shape.first() == Some(&None) {
                return items(spec, values, rows.iter().map(|row| row.top), form);
            }
            let sizes = shape.iter().flatten().map(|&dim| dim as u64);
            Neutral::Dense(Array::new(batch.into_iter().chain(sizes), values))
        }
        FeatureSpec::Sparse { size, .. } => {
            let mut indices = Vec::new();
            for (row, cell) in rows.iter().enumerate() {
                for value_indices in &cell.indices {
                    indices.extend(batch.map(|_| row as i64));
                    indices.extend(value_indices);
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

/// Returns a ragged column of arrays, of which each row has as many as `rows` says.
fn items(spec: &FeatureSpec, values: Data, rows: impl Iterator<Item = usize> + Clone, form: Form) -> Neutral {
    let sizes = match spec {
        FeatureSpec::Raw { shape, .. } | FeatureSpec::Tensor { shape, .. } => &**shape,
        _ => &[],
    };
    let sizes = sizes.iter().flatten().map(|&dim| dim as u64);
    let values = Array::new([rows.clone().sum::<usize>() as u64].into_iter().chain(sizes), values);
    if form.single {
        return Neutral::Dense(values);
    }
    let lengths: Vec<usize> = rows.collect();
    Neutral::Ragged { values, row_splits: vec![splits(&lengths, SplitsDType::Int64)] }
}

pub(super) fn assemble_lists(spec: &FeatureSpec, rows: &[Vec<CellValues>], form: Form) -> Neutral {
    let mut values = no_arrays(spec);
    rows.iter().flatten().for_each(|step| values.append(&step.values));
    let batch = if form.single { None } else { Some(rows.len() as u64) };
    match spec {
        FeatureSpec::FixedLenSequence { shape, .. } => {
            let row_values: Vec<Data> = rows
                .iter()
                .map(|steps| {
                    let mut values = Data::empty(dtype(spec));
                    steps.iter().for_each(|step| values.append(&step.values));
                    values
                })
                .collect();
            padded(row_values.iter(), shape, batch, &zero(dtype(spec)))
        }
        FeatureSpec::VarLen { .. } => {
            let mut indices = Vec::new();
            for (row, steps) in rows.iter().enumerate() {
                for (step, cell) in steps.iter().enumerate() {
                    for k in 0..cell.values.len() {
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
        FeatureSpec::Raw { .. } | FeatureSpec::Tensor { .. } | FeatureSpec::Label { .. } => {
            items(spec, values, rows.iter().map(Vec::len), form)
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

/// Returns a dense array of rows of blocks, padded to the length of the longest row.
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
        Data::Bytes(v) | Data::Array(_, v) => v.clear(),
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

/// Returns a ragged array. `outer` are the row lengths of the dimensions for rows and steps. The dimensions
/// of the partitions follow.
fn ragged<'a>(
    values: Data,
    partitions: &[Partition],
    dtype: SplitsDType,
    mut outer: Vec<Vec<usize>>,
    cells: impl IntoIterator<Item = &'a CellValues>,
) -> Neutral {
    let uniform = |partition: &&Partition| partition_key(partition).is_none();
    let innermost = partitions.iter().rev().take_while(uniform).count();
    let mut levels = vec![Vec::new(); partitions.len() - innermost];
    for cell in cells {
        for (all, level) in levels.iter_mut().zip(&cell.levels) {
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
