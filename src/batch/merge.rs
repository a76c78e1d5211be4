//! Batches of several parsers as one batch, row by row: for rows of data sets whose schemas differ only in
//! names of features and in defaults.

#![expect(
    clippy::indexing_slicing,
    reason = "rows and values are those of the parts, whose row splits and shapes a parser has made"
)]

use super::array::{ArrayBits, ArrayValues, numbers_of};
use super::column::{
    BytesColumn, BytesRepr, Column, Dense, Optional, Ragged, RegionSpan, RowSplits, Sparse, Values,
};
use super::compile::ColumnForm;
use super::output::{Batch, BatchData};
use super::parser::BatchParser;
use super::pool::Buf;
use crate::error::{Error, ErrorKind, Result};
use crate::example::FeatureBuf;
use crate::memory::room;
use crate::schema::{FeatureSpec, ImageSpec, Partition};
use crate::tensor::TensorDType;

/// A row of a merged batch: a part, and a row of it.
pub(crate) type MergedRow = (u32, u32);

/// Consecutive values of a part, or padding.
#[derive(Clone, Copy)]
struct ValueRun {
    part: Option<usize>,
    start: usize,
    len: usize,
}

impl BatchParser {
    /// Checks that batches of both parsers can be [merged](BatchParser::merge).
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] with the first column that only one of them has, or that has another shape or
    /// type.
    pub(crate) fn check_columns(&self, other: &BatchParser) -> Result<()> {
        let a = &self.plan;
        let b = &other.plan;
        if self.is_sequence() || other.is_sequence() {
            let reason = "expected equal specs of SequenceExamples in all sources, found different ones";
            return Err(Error::spec(reason));
        }
        if self.signature() != other.signature() {
            let reason = "expected features that are decoded alike in all sources, found different ones";
            return Err(Error::spec(reason));
        }
        let refused = |name: &str, reason: &str| Err(Error::spec(reason).feature(name.as_bytes()));
        let ours = &a.features.columns;
        let others = &b.features.columns;
        for (one, two) in ours.iter().zip(others) {
            if one.name != two.name {
                return refused((&one.name).min(&two.name), MISSING);
            }
            let specs = [(a, one), (b, two)].map(|(plan, column)| plan.spec(column));
            match specs {
                [Some(x), Some(y)] if !is_alike(&x, &y) => return refused(&one.name, &difference(&x, &y)),
                // A geometry has no spec. Its picture's is compared.
                [Some(_), Some(_)] | [None, None] => {}
                _ => return refused(&one.name, "is the geometry of a picture in one source only"),
            }
        }
        let both = ours.len().min(others.len());
        match ours.get(both).or(others.get(both)) {
            Some(only) => refused(&only.name, MISSING),
            None => Ok(()),
        }
    }

    /// Returns one batch of the rows of several, in this order. The parts are batches of parsers that
    /// [agree](BatchParser::check_columns) with this one, and have more than 0 rows.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] for a padded column above the limit, and [`ErrorKind::Io`] if there is not
    /// enough memory.
    pub(crate) fn merge(&self, parts: &[Batch], rows: &[MergedRow]) -> Result<Batch> {
        let mut data = BatchData { rows: rows.len(), ..BatchData::default() };
        for planned in &self.plan.features.columns {
            let columns: Option<Vec<&Column>> = parts.iter().map(|part| part.get(&planned.name)).collect();
            let padding = match &planned.form {
                ColumnForm::Padded { fill, .. } => Some(fill),
                _ => None,
            };
            let merged = columns
                .ok_or_else(different)
                .and_then(|columns| merged_column(&columns, rows, padding, self.limit));
            data.features.push(merged.map_err(|e| e.feature(planned.name.as_bytes()))?);
            let presence: Option<Vec<&Buf<u8>>> =
                parts.iter().map(|part| part.presence(&planned.name)).collect();
            if let Some(presence) = presence {
                let mut merged = room(rows.len())?;
                merged.extend(rows.iter().map(|&(part, row)| presence[part as usize][row as usize]));
                data.presence.push(merged.into());
            }
        }
        Ok(Batch::new(data, &self.plan, &self.batch_data))
    }
}

const MISSING: &str = "is not in all sources of the mix";

/// Returns true if both specs make columns of one shape and type.
fn is_alike(a: &FeatureSpec, b: &FeatureSpec) -> bool {
    use FeatureSpec as F;
    match (a, b) {
        (F::FixedLen { shape, dtype, .. }, F::FixedLen { shape: shape2, dtype: dtype2, .. }) => {
            (shape, dtype) == (shape2, dtype2)
        }
        (F::FixedLen { shape, dtype, .. }, F::Optional { dtype: dtype2, default: Some(_) })
        | (F::Optional { dtype: dtype2, default: Some(_) }, F::FixedLen { shape, dtype, .. }) => {
            shape.is_empty() && dtype == dtype2
        }
        (F::Optional { dtype, default }, F::Optional { dtype: dtype2, default: default2 }) => {
            (dtype, default.is_some()) == (dtype2, default2.is_some())
        }
        (
            F::Ragged { dtype, partitions, row_splits_dtype, .. },
            F::Ragged { dtype: dtype2, partitions: partitions2, row_splits_dtype: splits2, .. },
        ) => {
            let lengths = |partitions: &[Partition]| -> Vec<Option<usize>> {
                let length = |partition: &Partition| match partition {
                    Partition::UniformRowLength(len) => Some(*len),
                    _ => None,
                };
                partitions.iter().map(length).collect()
            };
            (dtype, row_splits_dtype) == (dtype2, splits2) && lengths(partitions) == lengths(partitions2)
        }
        (
            F::Raw { dtype, shape, .. } | F::Tensor { dtype, shape },
            F::Raw { dtype: dtype2, shape: shape2, .. } | F::Tensor { dtype: dtype2, shape: shape2 },
        ) => (dtype, shape) == (dtype2, shape2),
        (F::Sparse { dtype, size, .. }, F::Sparse { dtype: dtype2, size: size2, .. }) => {
            (dtype, size) == (dtype2, size2)
        }
        (a, b) => a == b,
    }
}

/// Tells in what two specs differ.
fn difference(first: &FeatureSpec, other: &FeatureSpec) -> String {
    use FeatureSpec as F;
    match (first, other) {
        (F::Image(one), F::Image(two)) => return image_difference(one, two),
        (F::Several(one), F::Several(two)) => return difference(one, two),
        (F::Label { .. }, F::Label { .. }) => {
            return "has another vocabulary, or another number of unknown strings, than in the first source"
                .into();
        }
        _ => {}
    }
    let form = |spec: &FeatureSpec| spec.name().to_owned();
    let dtype = |spec: &FeatureSpec| match spec {
        F::Raw { dtype, .. } | F::Tensor { dtype, .. } => dtype.to_string(),
        spec => spec.dtype().to_string(),
    };
    let shape = |spec: &FeatureSpec| match spec {
        F::FixedLen { shape, .. } | F::FixedLenSequence { shape, .. } => format!("{shape:?}"),
        F::Raw { shape, .. } | F::Tensor { shape, .. } => format!("{shape:?}"),
        F::Sparse { size, .. } => format!("{size:?}"),
        _ => String::new(),
    };
    let facts = [
        ("type", [first, other].map(dtype)),
        ("form", [first, other].map(form)),
        ("shape", [first, other].map(shape)),
    ];
    match facts.into_iter().find(|(_, [one, two])| one != two) {
        Some((what, [one, two])) => format!("has the {what} {two}, and {one} in the first source"),
        None => "has another default or partition than in the first source".into(),
    }
}

/// Tells in what two specs of pictures differ.
fn image_difference(first: &ImageSpec, other: &ImageSpec) -> String {
    let differences = [
        ("dtype", first.dtype != other.dtype),
        ("size", first.size != other.size),
        ("channels", first.channels != other.channels),
        ("layout", first.channels_first != other.channels_first),
        ("resize", first.resize != other.resize),
        ("crop", first.crop != other.crop),
        ("fraction", first.fraction != other.fraction),
        ("scale", first.scale != other.scale),
        ("ratio", first.ratio != other.ratio),
        ("flip", first.flip != other.flip),
        ("jitter", first.jitter != other.jitter),
        ("mean or std", first.normalize != other.normalize),
        ("exif", first.exif != other.exif),
        ("missing", first.missing != other.missing),
        ("geometry", first.geometry != other.geometry),
        ("scaled", first.scaled != other.scaled),
    ];
    let found = differences.into_iter().find(|(_, differs)| *differs);
    format!("has another {} than in the first source", found.map_or("crop_with", |(name, _)| name))
}

/// Returns all parts as parts of one kind.
macro_rules! all {
    ($parts:expr, $kind:path) => {
        $parts
            .iter()
            .map(|part| if let $kind(part) = part { Ok(part) } else { Err(different()) })
            .collect::<Result<Vec<_>>>()?
    };
}

fn merged_column(
    columns: &[&Column],
    rows: &[MergedRow],
    padding: Option<&FeatureBuf>,
    limit: u64,
) -> Result<Column> {
    use Column::{Dense, Optional, Ragged, Sparse};
    match columns.first() {
        // The decoder of a merged batch makes the geometry of its pictures.
        Some(Dense(first)) if first.shape.is_empty() => Ok(Column::empty()),
        Some(Dense(_)) => merged_dense(&all!(columns, Dense), rows, padding, limit).map(Dense),
        Some(Optional(_)) => merged_optional(&all!(columns, Optional), rows).map(Optional),
        Some(Sparse(_)) => merged_sparse(&all!(columns, Sparse), rows).map(Sparse),
        Some(Ragged(_)) => merged_ragged(&all!(columns, Ragged), rows).map(Ragged),
        None => Ok(Column::empty()),
    }
}

#[cold]
fn different() -> Error {
    Error::spec("has another form in another source of the mix")
}

fn product(shape: &[usize]) -> usize {
    shape.iter().fold(1, |product, len| product.saturating_mul(*len))
}

fn merged_dense(
    columns: &[&Dense],
    rows: &[MergedRow],
    padding: Option<&FeatureBuf>,
    limit: u64,
) -> Result<Dense> {
    let values: Vec<&Values> = columns.iter().map(|column| &column.values).collect();
    let mut shape = columns[0].shape.clone();
    shape[0] = rows.len();
    if let Some(longest) = shape.get_mut(1).filter(|_| padding.is_some()) {
        for column in columns {
            *longest = (*longest).max(column.shape[1]);
        }
        let bytes = product(&shape) as u128 * 4;
        if bytes > u128::from(limit) {
            return Err(ErrorKind::TooLarge { len: bytes, limit }.into());
        }
    }
    let len = product(&shape[1..]);
    let mut runs = room(rows.len() * 2)?;
    for &(part, row) in rows {
        let here = product(&columns[part as usize].shape[1..]);
        runs.push(ValueRun { part: Some(part as usize), start: row as usize * here, len: here });
        if here < len {
            runs.push(ValueRun { part: None, start: 0, len: len - here });
        }
    }
    Ok(Dense { values: gathered(&values, &runs, padding)?, shape })
}

fn merged_optional(columns: &[&Optional], rows: &[MergedRow]) -> Result<Optional> {
    let values: Vec<&Values> = columns.iter().map(|column| &column.values).collect();
    let mut present = room(rows.len())?;
    present.extend(rows.iter().map(|&(part, row)| columns[part as usize].present[row as usize]));
    let runs: Vec<ValueRun> = rows.iter().map(|row| one(*row)).collect();
    Ok(Optional { values: gathered(&values, &runs, None)?, present: present.into(), shape: vec![rows.len()] })
}

fn merged_sparse(columns: &[&Sparse], rows: &[MergedRow]) -> Result<Sparse> {
    let values: Vec<&Values> = columns.iter().map(|column| &column.values).collect();
    let mut dense_shape = columns[0].dense_shape.clone();
    for column in columns {
        dense_shape.iter_mut().zip(&column.dense_shape).for_each(|(size, other)| *size = (*size).max(*other));
    }
    let rank = dense_shape.len().max(1);
    dense_shape[0] = rows.len() as u64;
    // The entries of a row are adjacent, and rows ascend.
    let start = |column: &Sparse, row: usize| {
        let mut below = 0..column.values.len();
        while below.start < below.end {
            let middle = below.start.midpoint(below.end);
            if column.indices[middle * rank] < row as i64 {
                below.start = middle + 1
            } else {
                below.end = middle
            }
        }
        below.start
    };
    let mut runs = room(rows.len())?;
    let mut total = 0;
    for &(part, row) in rows {
        let column = columns[part as usize];
        let from = start(column, row as usize);
        let len = start(column, row as usize + 1) - from;
        total += len;
        runs.push(ValueRun { part: Some(part as usize), start: from, len });
    }
    let mut indices = room(total * rank)?;
    for (row, run) in runs.iter().enumerate() {
        let Some(part) = run.part else { continue };
        for entry in columns[part].indices.chunks_exact(rank).skip(run.start).take(run.len) {
            indices.push(row as i64);
            indices.extend_from_slice(&entry[1..]);
        }
    }
    Ok(Sparse { indices: indices.into(), values: gathered(&values, &runs, None)?, dense_shape })
}

fn merged_ragged(columns: &[&Ragged], rows: &[MergedRow]) -> Result<Ragged> {
    let values: Vec<&Values> = columns.iter().map(|column| &column.values).collect();
    let first = columns.first().ok_or_else(different)?;
    let mut runs: Vec<ValueRun> = rows.iter().map(|row| one(*row)).collect();
    let mut row_splits = Vec::with_capacity(first.row_splits.len());
    for level in 0..first.row_splits.len() {
        // A decoder of columns may have set fewer splits than rows.
        let of =
            |part: usize, k: usize| columns[part].row_splits[level].as_slices().get(k).ok_or_else(different);
        let mut splits = room(runs.iter().map(|run| run.len).sum::<usize>() + 1)?;
        let mut end = 0i64;
        splits.push(end);
        for run in &mut runs {
            let Some(part) = run.part else { continue };
            let start = run.start;
            let stop = start + run.len;
            for k in start..stop {
                end += (of(part, k + 1)? - of(part, k)?) as i64;
                splits.push(end);
            }
            run.start = of(part, start)?;
            run.len = of(part, stop)? - run.start;
        }
        row_splits.push(match first.row_splits[level] {
            RowSplits::Int64(_) => RowSplits::Int64(splits.into()),
            RowSplits::Int32(_) => {
                if end > i64::from(i32::MAX) {
                    return Err(ErrorKind::TooLarge { len: end as u128, limit: i32::MAX as u64 }.into());
                }
                RowSplits::Int32(splits.into_iter().map(|split| split as i32).collect::<Vec<_>>().into())
            }
        });
    }
    let mut shape = first.shape.clone();
    let inner = product(&shape[1..]);
    shape[0] = runs.iter().map(|run| run.len).sum();
    for run in &mut runs {
        run.start *= inner;
        run.len *= inner;
    }
    Ok(Ragged { values: gathered(&values, &runs, None)?, shape, row_splits })
}

fn one((part, row): MergedRow) -> ValueRun {
    ValueRun { part: Some(part as usize), start: row as usize, len: 1 }
}

/// Returns the values of the runs, one after the other. `padding` has one value.
fn gathered(parts: &[&Values], runs: &[ValueRun], padding: Option<&FeatureBuf>) -> Result<Values> {
    let len = runs.iter().map(|run| run.len).sum();
    match parts.first() {
        Some(Values::Int64(_)) => {
            let fill = if let Some(FeatureBuf::Int64(values)) = padding { values[0] } else { 0 };
            copied(&all!(parts, Values::Int64), runs, len, fill).map(Values::Int64)
        }
        Some(Values::Float32(_)) => {
            let fill = if let Some(FeatureBuf::Float(values)) = padding { values[0] } else { 0.0 };
            copied(&all!(parts, Values::Float32), runs, len, fill).map(Values::Float32)
        }
        Some(Values::Bytes(_)) => {
            let parts = all!(parts, Values::Bytes);
            if let Some(borrowed) = spans(&parts, runs, len)? {
                return Ok(Values::Bytes(borrowed));
            }
            let fill: &[u8] = if let Some(FeatureBuf::Bytes(values)) = padding { &values[0] } else { b"" };
            strings(&parts, runs, len, fill).map(Values::Bytes)
        }
        Some(Values::Array(first)) => {
            arrays(first.dtype(), &all!(parts, Values::Array), runs, len).map(Values::Array)
        }
        None => Err(different()),
    }
}

/// Returns the values of arrays, which have no padding.
fn arrays(dtype: TensorDType, parts: &[&ArrayValues], runs: &[ValueRun], len: usize) -> Result<ArrayValues> {
    use ArrayBits::*;
    let numbers = numbers_of(dtype);
    let scaled = |run: &ValueRun| ValueRun { start: run.start * numbers, len: run.len * numbers, ..*run };
    let runs: Vec<ValueRun> = runs.iter().map(scaled).collect();
    let len = len * numbers;
    let bits: Vec<&ArrayBits> = parts.iter().map(|part| part.bits()).collect();
    let bits = match bits.first() {
        Some(Bits8(_)) => copied(&all!(bits, Bits8), &runs, len, 0).map(Bits8),
        Some(Bits16(_)) => copied(&all!(bits, Bits16), &runs, len, 0).map(Bits16),
        Some(Bits32(_)) => copied(&all!(bits, Bits32), &runs, len, 0).map(Bits32),
        Some(Bits64(_)) => copied(&all!(bits, Bits64), &runs, len, 0).map(Bits64),
        None => Err(different()),
    };
    Ok(ArrayValues::new(dtype, bits?))
}

fn copied<T: Copy>(parts: &[&Buf<T>], runs: &[ValueRun], len: usize, fill: T) -> Result<Buf<T>> {
    let parts: Vec<&[T]> = parts.iter().map(|part| &***part).collect();
    let mut values = room(len)?;
    for run in runs {
        match run.part {
            Some(part) => values.extend_from_slice(&parts[part][run.start..][..run.len]),
            None => values.resize(values.len() + run.len, fill),
        }
    }
    Ok(values.into())
}

/// Returns strings that are spans of the records' memory, if the strings of all parts are, without padding.
fn spans(parts: &[&BytesColumn], runs: &[ValueRun], len: usize) -> Result<Option<BytesColumn>> {
    if runs.iter().any(|run| run.part.is_none()) {
        return Ok(None);
    }
    let mut regions = Vec::new();
    let mut sources = Vec::with_capacity(parts.len());
    for part in parts {
        let BytesRepr::Spans { spans, regions: own } = &part.repr else { return Ok(None) };
        sources.push((spans, regions.len() as u32));
        regions.extend(own.iter().cloned());
    }
    let mut merged = room(len)?;
    for run in runs {
        let Some(part) = run.part else { return Ok(None) };
        let (spans, offset) = sources[part];
        let moved = |span: &RegionSpan| RegionSpan { region: span.region + offset, ..*span };
        merged.extend(spans[run.start..][..run.len].iter().map(moved));
    }
    Ok(Some(BytesColumn { repr: BytesRepr::Spans { spans: merged.into(), regions: regions.into() } }))
}

/// Returns copies of strings.
fn strings(parts: &[&BytesColumn], runs: &[ValueRun], len: usize, fill: &[u8]) -> Result<BytesColumn> {
    let string = |run: &ValueRun, k: usize| match run.part {
        Some(part) => parts[part].get(run.start + k).unwrap_or_default(),
        None => fill,
    };
    let each = || runs.iter().flat_map(|run| (0..run.len).map(move |k| (run, k)));
    let total = each().fold(0usize, |total, (run, k)| total.saturating_add(string(run, k).len()));
    let mut data: Vec<u8> = room(total)?;
    let mut offsets: Vec<i64> = room(len + 1)?;
    offsets.push(0);
    for (run, k) in each() {
        data.extend_from_slice(string(run, k));
        offsets.push(data.len() as i64);
    }
    Ok(BytesColumn::contiguous(data.into(), offsets.into()))
}
