//! Extraction of the values of a column from one row.

use super::super::arrays::Data;
use super::super::tensor_twin;
use super::super::twin::{Feature, Key};
use super::{CellResult, MOST_ROWS, partition_key};
use std::collections::BTreeMap;
use tfseek::error::Category;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema};
use tfseek::tensor::TensorDType;

/// The values of a column in one row, or in one step of a row's feature list.
pub(super) struct CellValues {
    pub(super) values: Data,
    /// Indices of each value of a sparse feature.
    pub(super) indices: Vec<Vec<i64>>,
    /// Row lengths of each partition of a ragged feature, except innermost uniform partitions.
    pub(super) levels: Vec<Vec<usize>>,
    /// Number of outermost rows of a ragged feature; without partitions, the number of values.
    pub(super) top: usize,
}

impl CellValues {
    fn plain(values: Data) -> CellValues {
        CellValues { top: values.len(), values, indices: Vec::new(), levels: Vec::new() }
    }
}

/// Returns the values of a feature of this type, or `None` for a feature without a kind.
fn typed(feature: &Feature, dtype: DType) -> CellResult<Option<Data>> {
    match (feature, dtype) {
        (Feature::None, _) => Ok(None),
        (Feature::Int64(v), DType::Int64) => Ok(Some(Data::Int64(v.clone()))),
        (Feature::Float(v), DType::Float32) => Ok(Some(Data::Float32(v.clone()))),
        (Feature::Bytes(v), DType::Bytes) => Ok(Some(Data::Bytes(v.clone()))),
        _ => Err(vec![Category::KindMismatch]),
    }
}

fn values_of(features: &BTreeMap<Key, Feature>, key: &str, dtype: DType) -> CellResult<Option<Data>> {
    match features.get(key.as_bytes()) {
        Some(feature) => typed(feature, dtype),
        None => Ok(None),
    }
}

/// Returns the values of a feature. An absent feature and a feature without a kind have no values.
fn any_values(features: &BTreeMap<Key, Feature>, key: &str, dtype: DType) -> CellResult<Data> {
    Ok(values_of(features, key, dtype)?.unwrap_or(Data::empty(dtype)))
}

fn int64s(features: &BTreeMap<Key, Feature>, key: &str) -> CellResult<Vec<i64>> {
    match any_values(features, key, DType::Int64)? {
        Data::Int64(values) => Ok(values),
        other => panic!("{other:?}"),
    }
}

pub(super) fn default_data(default: &tfseek::example::FeatureBuf) -> Data {
    use tfseek::example::FeatureBuf;
    match default {
        FeatureBuf::Int64(v) => Data::Int64(v.clone()),
        FeatureBuf::Float(v) => Data::Float32(v.iter().map(|v| v.to_bits()).collect()),
        FeatureBuf::Bytes(v) => Data::Bytes(v.clone()),
        FeatureBuf::None => panic!("a default without a kind"),
    }
}

pub(super) fn extract_feature(
    schema: &Schema,
    name: &str,
    spec: &FeatureSpec,
    features: &BTreeMap<Key, Feature>,
) -> CellResult<CellValues> {
    match spec {
        FeatureSpec::FixedLen { shape, dtype, default } => {
            let count: usize = shape.iter().product();
            let values = match values_of(features, name, *dtype)? {
                Some(values) => values,
                // In a context a feature without a kind is not absent: it has no values.
                None if schema.is_sequence() && features.contains_key(name.as_bytes()) => Data::empty(*dtype),
                None => match default {
                    Some(default) => default_data(default),
                    None => return Err(vec![Category::MissingFeature]),
                },
            };
            if values.len() != count {
                return Err(vec![Category::CountMismatch]);
            }
            Ok(CellValues::plain(values))
        }
        FeatureSpec::Optional { dtype, .. } => {
            let values = any_values(features, name, *dtype)?;
            if values.len() > 1 {
                return Err(vec![Category::CountMismatch]);
            }
            Ok(CellValues::plain(values))
        }
        FeatureSpec::FixedLenSequence { shape, dtype, .. } => {
            let values = any_values(features, name, *dtype)?;
            if !values.len().is_multiple_of(shape.iter().product()) {
                return Err(vec![Category::CountMismatch]);
            }
            Ok(CellValues::plain(values))
        }
        FeatureSpec::VarLen { dtype } => Ok(CellValues::plain(any_values(features, name, *dtype)?)),
        FeatureSpec::Image(_) => panic!("parsers refuse pictures"),
        FeatureSpec::Stack { keys, dtype, default } => {
            let one = FeatureSpec::FixedLen { shape: Vec::new(), dtype: *dtype, default: default.clone() };
            let mut all = CellValues::plain(Data::empty(*dtype));
            let mut faults = Vec::new();
            for key in keys {
                match extract_feature(schema, key, &one, features) {
                    Ok(cell) => all.values.append(&cell.values),
                    Err(e) => faults.extend(e),
                }
            }
            if faults.is_empty() { Ok(all) } else { Err(faults) }
        }
        FeatureSpec::Several(of) => match any_values(features, name, DType::Bytes)? {
            Data::Bytes(strings) => strings_of(of, &strings),
            other => panic!("{other:?}"),
        },
        FeatureSpec::Raw { .. } | FeatureSpec::Tensor { .. } | FeatureSpec::Label { .. } => {
            let values = match values_of(features, name, DType::Bytes)? {
                Some(values) => values,
                None if schema.is_sequence() && features.contains_key(name.as_bytes()) => {
                    Data::empty(DType::Bytes)
                }
                None => return Err(vec![Category::MissingFeature]),
            };
            match &values {
                Data::Bytes(strings) if strings.len() == 1 => array(spec, &strings[0]),
                _ => Err(vec![Category::CountMismatch]),
            }
        }
        FeatureSpec::Sparse { index_keys, value_key, dtype, size, already_sorted } => {
            let mut faults = Vec::new();
            let values = any_values(features, value_key, *dtype);
            let mut columns = Vec::new();
            for key in index_keys {
                match int64s(features, key) {
                    Ok(indices) => columns.push(indices),
                    Err(e) => faults.extend(e),
                }
            }
            let values = match values {
                Ok(values) => values,
                Err(e) => {
                    faults.extend(e);
                    return Err(faults);
                }
            };
            let counts_differ = columns.iter().any(|indices| indices.len() != values.len());
            let outside = columns
                .iter()
                .zip(size)
                .any(|(indices, &size)| indices.iter().any(|&i| i < 0 || i as u64 >= size));
            if counts_differ || outside {
                faults.push(Category::BadSparseIndex);
            }
            if !faults.is_empty() {
                return Err(faults);
            }
            let mut entries: Vec<(Vec<i64>, Data)> = (0..values.len())
                .map(|k| (columns.iter().map(|indices| indices[k]).collect(), values.one(k)))
                .collect();
            if !already_sorted {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
            }
            let mut sorted = Data::empty(*dtype);
            entries.iter().for_each(|(_, value)| sorted.append(value));
            let indices = entries.into_iter().map(|(indices, _)| indices).collect();
            Ok(CellValues { indices, ..CellValues::plain(sorted) })
        }
        FeatureSpec::Ragged { dtype, value_key, partitions, .. } => {
            let value_key = value_key.as_deref().unwrap_or(name);
            extract_ragged(features, value_key, *dtype, partitions)
        }
    }
}

/// Extracts the arrays of byte strings, one after the other.
fn strings_of(spec: &FeatureSpec, strings: &[Vec<u8>]) -> CellResult<CellValues> {
    let mut all = CellValues { top: strings.len(), ..CellValues::plain(no_arrays(spec)) };
    for string in strings {
        all.values.append(&array(spec, string)?.values);
    }
    Ok(all)
}

/// Returns no arrays of a spec.
pub(super) fn no_arrays(spec: &FeatureSpec) -> Data {
    match spec.of_string() {
        FeatureSpec::Raw { dtype, .. } | FeatureSpec::Tensor { dtype, .. } => Data::Array(*dtype, Vec::new()),
        FeatureSpec::Label { .. } => Data::empty(DType::Int64),
        other => Data::empty(super::dtype(other)),
    }
}

/// Extracts the array of a byte string, element by element.
fn array(spec: &FeatureSpec, string: &[u8]) -> CellResult<CellValues> {
    let (dtype, shape, dims, elements) = match spec {
        FeatureSpec::Label { vocabulary, unknown } => {
            let place = vocabulary.iter().position(|word| **word == *string);
            let number = place.map_or_else(|| unknown.unwrap(), |place| place as i64);
            return Ok(CellValues::plain(Data::Int64(vec![number])));
        }
        FeatureSpec::Raw { dtype, shape, little_endian, fixed_length } => {
            let size = dtype.size().unwrap();
            let len = shape.iter().flatten().product::<usize>() * size;
            let zeros = std::iter::repeat(&0);
            let fixed: Vec<u8> = string.iter().chain(zeros).take(len).copied().collect();
            let string = if *fixed_length { &fixed } else { string };
            let item: usize = shape.iter().flatten().product();
            let mut dims: Vec<u64> = shape.iter().flatten().map(|&dim| dim as u64).collect();
            if shape.first() == Some(&None) {
                dims.insert(0, (string.len() / (item * size)) as u64);
            }
            if dims.iter().product::<u64>() * size as u64 != string.len() as u64 {
                return Err(vec![Category::CountMismatch]);
            }
            let complex = matches!(dtype, TensorDType::Complex64 | TensorDType::Complex128);
            let number = if complex { size / 2 } else { size };
            let element = |bytes: &[u8]| -> Vec<u8> {
                if *dtype == TensorDType::Bool {
                    vec![u8::from(bytes[0] != 0)]
                } else if *little_endian {
                    bytes.to_vec()
                } else {
                    bytes.chunks(number).flat_map(|number| number.iter().rev().copied()).collect()
                }
            };
            (*dtype, shape, dims, Some(string.chunks(size).map(element).collect()))
        }
        FeatureSpec::Tensor { dtype, shape } => match tensor_twin::array(string, *dtype) {
            Ok((dims, elements)) => (*dtype, shape, dims, elements),
            Err(_) => {
                return Err(vec![Category::KindMismatch, Category::CountMismatch, Category::MalformedProto]);
            }
        },
        other => panic!("{other:?} is no array"),
    };
    let agrees = |(&dim, size): (&u64, &Option<usize>)| size.is_none_or(|size| size as u64 == dim);
    if dims.len() != shape.len() || !dims.iter().zip(shape).all(agrees) {
        return Err(vec![Category::CountMismatch]);
    }
    let Some(elements) = elements else { return Err(vec![Category::TooLarge]) };
    let top = dims.first().map_or(1, |&items| items as usize);
    Ok(CellValues { top, ..CellValues::plain(Data::Array(dtype, elements)) })
}

fn extract_ragged(
    features: &BTreeMap<Key, Feature>,
    value_key: &str,
    dtype: DType,
    partitions: &[Partition],
) -> CellResult<CellValues> {
    let mut faults = Vec::new();
    let values = any_values(features, value_key, dtype).unwrap_or_else(|e| {
        faults.extend(e);
        Data::empty(dtype)
    });
    let numbers: Vec<Vec<i64>> = partitions
        .iter()
        .map(|partition| match partition_key(partition) {
            Some(key) => int64s(features, key).unwrap_or_else(|e| {
                faults.extend(e);
                Vec::new()
            }),
            None => Vec::new(),
        })
        .collect();
    let mut levels: Vec<Vec<usize>> = Vec::new();
    let mut below = values.len();
    // Partitions from innermost to outermost. Each divides the elements of the next inner level into rows.
    for (partition, numbers) in partitions.iter().zip(numbers).rev() {
        let lengths = match partition {
            Partition::UniformRowLength(n) if below.is_multiple_of(*n) => Ok(vec![*n; below / n]),
            Partition::UniformRowLength(_) => Err(vec![Category::BadPartition]),
            other => row_lengths(other, &numbers, below as i64),
        };
        match lengths {
            Ok(lengths) => {
                below = lengths.len();
                // Innermost uniform rows are a dimension of the values, not a level.
                if !levels.is_empty() || partition_key(partition).is_some() {
                    levels.insert(0, lengths);
                }
            }
            Err(e) => {
                // The outer partitions cannot be checked, because the number of their elements is unknown.
                faults.extend(e);
                return Err(faults);
            }
        }
    }
    if faults.is_empty() {
        Ok(CellValues { levels, top: below, ..CellValues::plain(values) })
    } else {
        Err(faults)
    }
}

/// Returns the lengths of the rows into which a partition divides `below` elements.
fn row_lengths(partition: &Partition, numbers: &[i64], below: i64) -> CellResult<Vec<usize>> {
    let bad = || vec![Category::BadPartition];
    let ends: Vec<i64> = match partition {
        Partition::RowLengths(_) => {
            if numbers.iter().any(|&n| n < 0 || n > below) {
                return Err(bad());
            }
            numbers.iter().scan(0, |end, &n| (*end += n, Some(*end)).1).collect()
        }
        Partition::RowLimits(_) => numbers.to_vec(),
        Partition::RowSplits(_) => {
            if numbers.first().is_some_and(|&first| first != 0) {
                return Err(bad());
            }
            numbers.iter().skip(1).copied().collect()
        }
        Partition::RowStarts(_) => {
            if numbers.first().is_some_and(|&first| first != 0) {
                return Err(bad());
            }
            let ends = numbers.iter().skip(1).copied();
            if numbers.is_empty() { Vec::new() } else { ends.chain([below]).collect() }
        }
        Partition::ValueRowIds(_) => {
            if numbers.len() as i64 != below {
                return Err(bad());
            }
            if !numbers.is_sorted() || numbers.iter().any(|&id| id < 0) {
                let is_large = numbers.iter().any(|&id| id >= MOST_ROWS);
                return Err(bad().into_iter().chain(is_large.then_some(Category::TooLarge)).collect());
            }
            let rows = numbers.last().map_or(0, |&last| last.saturating_add(1));
            if rows > MOST_ROWS {
                return Err(vec![Category::TooLarge]);
            }
            (0..rows).map(|row| numbers.iter().filter(|&&id| id <= row).count() as i64).collect()
        }
        Partition::UniformRowLength(_) => panic!("needs no numbers"),
    };
    // The first row starts at 0, each other row starts at the end of its predecessor, and the last row ends
    // at `below`.
    let starts_and_ends: Vec<i64> = [0].into_iter().chain(ends).collect();
    if !starts_and_ends.is_sorted() || starts_and_ends.last() != Some(&below) {
        return Err(bad());
    }
    Ok(starts_and_ends.windows(2).map(|row| (row[1] - row[0]) as usize).collect())
}

/// Extracts the values of a column from a feature list, step by step.
pub(super) fn extract_list(
    name: &str,
    spec: &FeatureSpec,
    lists: &BTreeMap<Key, Vec<Feature>>,
) -> CellResult<Vec<CellValues>> {
    let no_steps = Vec::new();
    let steps_of = |key: &str| lists.get(key.as_bytes()).unwrap_or(&no_steps);
    let steps: Vec<CellResult<CellValues>> = match spec {
        FeatureSpec::FixedLenSequence { shape, dtype, allow_missing, .. } => {
            if !lists.contains_key(name.as_bytes()) && !allow_missing {
                return Err(vec![Category::MissingFeature]);
            }
            let count: usize = shape.iter().product();
            let extract = |step: &Feature| match typed(step, *dtype)? {
                Some(values) if values.len() == count => Ok(CellValues::plain(values)),
                Some(_) => Err(vec![Category::CountMismatch]),
                None => Err(vec![Category::CountMismatch, Category::KindMismatch]),
            };
            steps_of(name).iter().map(extract).collect()
        }
        FeatureSpec::VarLen { dtype } => {
            let extract =
                |step: &Feature| Ok(CellValues::plain(typed(step, *dtype)?.unwrap_or(Data::empty(*dtype))));
            steps_of(name).iter().map(extract).collect()
        }
        FeatureSpec::Ragged { dtype, value_key, partitions, .. } => {
            let value_key = value_key.as_deref().unwrap_or(name);
            let keys: Vec<&str> = partitions.iter().filter_map(partition_key).collect();
            let steps = steps_of(value_key).len();
            if keys.iter().any(|key| steps_of(key).len() != steps) {
                let mut faults = vec![Category::BadPartition];
                let partitions = keys.iter().map(|&key| (key, DType::Int64));
                for (key, dtype) in partitions.chain([(value_key, *dtype)]) {
                    if steps_of(key).iter().any(|step| typed(step, dtype).is_err()) {
                        faults.push(Category::KindMismatch);
                    }
                }
                return Err(faults);
            }
            // A step of a list is parsed like a row of a batch.
            let extract_step = |step: usize| {
                let all = keys.iter().chain([&value_key]);
                let features =
                    all.map(|&key| (key.as_bytes().to_vec(), steps_of(key)[step].clone())).collect();
                extract_ragged(&features, value_key, *dtype, partitions)
            };
            (0..steps).map(extract_step).collect()
        }
        FeatureSpec::Raw { .. } | FeatureSpec::Tensor { .. } | FeatureSpec::Label { .. } => {
            let extract = |step: &Feature| match typed(step, DType::Bytes)? {
                Some(Data::Bytes(strings)) if strings.len() == 1 => array(spec, &strings[0]),
                Some(_) => Err(vec![Category::CountMismatch]),
                None => Err(vec![Category::CountMismatch, Category::KindMismatch]),
            };
            steps_of(name).iter().map(extract).collect()
        }
        other => panic!("{other:?} in feature lists"),
    };
    let faults: Vec<Category> =
        steps.iter().filter_map(|step| step.as_ref().err()).flatten().copied().collect();
    if faults.is_empty() {
        Ok(steps.into_iter().map(|step| step.ok().unwrap()).collect())
    } else {
        Err(faults)
    }
}
