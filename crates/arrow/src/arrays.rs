//! From a column of a batch to an Arrow array.

use crate::error::{Error, ErrorKind, Result};
use crate::memory::{collected, shared};
use crate::plan::{Form, PlannedColumn, array_type};
use crate::strings::{MAX_OFFSET, binary, kept_strings, views};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, GenericListArray, OffsetSizeTrait,
    PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef};
use bytemuck::NoUninit;
use std::ops::Range;
use std::sync::Arc;
use tfseek::batch::{ArrayBits, ArrayValues, Batch, Buf, Column, Ragged, RowSplits, Sparse, Values};

/// One dimension of a column: lists of a fixed length, or row splits.
enum Dimension {
    /// The number of lists.
    Fixed(usize),
    Ragged(RowSplits),
}

/// Values of a column that become the innermost array.
struct Leaf<'a> {
    values: &'a Values,
    /// The names of labels.
    names: Option<&'a ArrayRef>,
    /// Ascending ranges of the values that are kept: all but padding.
    kept: Vec<Range<usize>>,
    /// The row of a value.
    row_of: &'a dyn Fn(usize) -> usize,
}

/// Returns the array of one column of a batch.
pub(crate) fn array(batch: &Batch, planned: &PlannedColumn) -> Result<ArrayRef> {
    let array = values_array(batch, planned)?;
    let present = match batch.get(&planned.from) {
        _ if !planned.field.is_nullable() => None,
        _ if planned.is_list => batch.feature_list_presence(&planned.from),
        None => None,
        Some(Column::Optional(optional)) => Some(&optional.present),
        Some(_) => batch.presence(&planned.from),
    };
    let Some(present) = present.filter(|present| present.contains(&0)) else { return Ok(array) };
    // A list is not null if another feature divides the absent values into rows.
    with_nulls(&array, |row| present.get(row) == Some(&0) && is_empty(&array, row))
}

/// Returns false for a list with items.
fn is_empty(array: &ArrayRef, row: usize) -> bool {
    match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().value_length(row) == 0,
        DataType::LargeList(_) => array.as_list::<i64>().value_length(row) == 0,
        _ => true,
    }
}

/// Returns the array of one column of a batch, without nulls.
fn values_array(batch: &Batch, planned: &PlannedColumn) -> Result<ArrayRef> {
    let from = planned.from.as_str();
    let column = if planned.is_list { batch.feature_list(from) } else { batch.get(from) };
    let data_type = planned.field.data_type();
    let rows = batch.rows();
    match (planned.form, column) {
        (Form::Dense(dims), Some(Column::Dense(dense)))
            if dense.shape.len() == dims && dense.shape.first() == Some(&rows) =>
        {
            dense_array(data_type, &dense.values, &dense.shape, None)
        }
        (Form::Optional, Some(Column::Optional(optional))) if *optional.shape == [rows] => {
            nest(data_type, &[], Leaf::whole(&optional.values, &|value| value))
        }
        (Form::Ragged(depth), Some(Column::Ragged(ragged)))
            if ragged.row_splits.len() == depth && ragged.row_splits.first().map(lists) == Some(rows) =>
        {
            ragged_array(data_type, ragged, None)
        }
        (Form::VarLen, Some(Column::Sparse(sparse))) if sparse.dense_shape.len() == 2 => {
            nest_sparse(data_type, sparse, rows)
        }
        (Form::Sparse(rank), Some(Column::Sparse(sparse))) if sparse.dense_shape.len() == rank + 1 => {
            sparse_struct(data_type, sparse, rows)
        }
        (Form::Steps(dims), Some(Column::Dense(dense))) if dense.shape.len() == dims => {
            let lengths = batch.lengths(from).filter(|lengths| lengths.len() == rows);
            let lengths = lengths.ok_or_else(|| Error::batch("expected the lengths of a feature list"))?;
            steps(data_type, &dense.values, &dense.shape, lengths)
        }
        (_, Some(_)) => Err(Error::batch(
            "expected a batch of `Converter::parser`, found a column of another form or a single record",
        )),
        (_, None) => Err(Error::batch("expected a batch of `Converter::parser`, found no such column")),
    }
}

/// Returns the array of dense values. `names` are the names of labels.
pub(crate) fn dense_array(
    data_type: &DataType,
    values: &Values,
    shape: &[usize],
    names: Option<&ArrayRef>,
) -> Result<ArrayRef> {
    let per_row = shape.first().and_then(|&rows| values.len().checked_div(rows));
    let per_row = per_row.map_or(1, |count| count.max(1));
    let row_of = |value| value / per_row;
    // A tensor has one list of all dimensions.
    let depth = (shape.len() - 1).min(depth(data_type));
    nest(data_type, &fixed(shape, depth)?, Leaf { names, ..Leaf::whole(values, &row_of) })
}

/// Returns the array of a ragged column. `names` are the names of labels.
pub(crate) fn ragged_array(
    data_type: &DataType,
    ragged: &Ragged,
    names: Option<&ArrayRef>,
) -> Result<ArrayRef> {
    let inner = ragged.shape.iter().skip(1).fold(1, |product: usize, &len| product.saturating_mul(len));
    let row_of = |value: usize| {
        ragged.row_splits.iter().rev().fold(value / inner.max(1), |item, splits| list_of(splits, item))
    };
    let mut dims: Vec<Dimension> = ragged.row_splits.iter().cloned().map(Dimension::Ragged).collect();
    dims.extend(fixed(&ragged.shape, ragged.shape.len().saturating_sub(1))?);
    nest(data_type, &dims, Leaf { names, ..Leaf::whole(&ragged.values, &row_of) })
}

impl<'a> Leaf<'a> {
    fn whole(values: &'a Values, row_of: &'a dyn Fn(usize) -> usize) -> Leaf<'a> {
        Leaf { values, names: None, kept: std::iter::once(0..values.len()).collect(), row_of }
    }

    /// Returns the innermost array.
    fn array(self, data_type: &DataType) -> Result<ArrayRef> {
        let text = |error: ArrowError| self.text_error().unwrap_or_else(|| error.into());
        match (self.values, data_type) {
            (Values::Int64(values), DataType::Int64) => numbers::<Int64Type>(values, &self.kept),
            (Values::Float32(values), DataType::Float32) => numbers::<Float32Type>(values, &self.kept),
            (Values::Bytes(strings), DataType::BinaryView) => Ok(Arc::new(views(strings, &self.kept)?)),
            (Values::Bytes(strings), DataType::Binary) => Ok(Arc::new(binary(strings, &self.kept)?)),
            (Values::Bytes(strings), DataType::Utf8View) => {
                Ok(Arc::new(views(strings, &self.kept)?.to_string_view().map_err(text)?))
            }
            (Values::Bytes(strings), DataType::Utf8) => {
                Ok(Arc::new(StringArray::try_from_binary(binary(strings, &self.kept)?).map_err(text)?))
            }
            (Values::Int64(values), DataType::Dictionary(..)) if let Some(names) = self.names => {
                self.labels(values, names)
            }
            (Values::Array(values), _) if array_type(values.dtype()).as_ref() == Some(data_type) => {
                elements(values, data_type)
            }
            _ => Err(Error::batch("expected a batch of `Converter::parser`, found values of another type")),
        }
    }

    /// Returns the names of labels. -1 is no label.
    fn labels(&self, values: &Buf<i64>, names: &ArrayRef) -> Result<ArrayRef> {
        let classes = names.len() as i64;
        let keys: PrimitiveArray<Int64Type> = if values.iter().all(|label| (0..classes).contains(label)) {
            PrimitiveArray::new(shared(values).into(), None)
        } else {
            let keys = values.iter().enumerate().map(|(number, &label)| match label {
                -1 => Ok(None),
                _ if (0..classes).contains(&label) => Ok(Some(label)),
                _ => {
                    let reason = format!(
                        "expected a label below {classes}, or -1 for none, found {label}: read labels as numbers"
                    );
                    Err(Error::value((self.row_of)(number), reason))
                }
            });
            keys.collect::<Result<_>>()?
        };
        Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(names))?))
    }

    /// Returns the error of the first string that is not UTF-8.
    #[cold]
    fn text_error(&self) -> Option<Error> {
        let Values::Bytes(strings) = self.values else { return None };
        kept_strings(strings, &self.kept).find_map(|(number, value)| {
            let valid = std::str::from_utf8(value).err()?.valid_up_to();
            let kind = ErrorKind::Text { valid, len: value.len() };
            Some(Error::from(kind).in_row((self.row_of)(number)))
        })
    }
}

/// Returns the array of the kept numbers, without a copy if all are kept.
fn numbers<T: ArrowPrimitiveType>(values: &Buf<T::Native>, kept: &[Range<usize>]) -> Result<ArrayRef>
where
    T::Native: NoUninit + Send + Sync,
{
    let count: usize = kept.iter().map(Range::len).sum();
    let values: ScalarBuffer<T::Native> = if count == 0 {
        Vec::new().into()
    } else if count == values.len() {
        shared(values).into()
    } else {
        let mut all = collected(count, std::iter::empty())?;
        for values in kept.iter().filter_map(|range| values.get(range.clone())) {
            all.extend_from_slice(values);
        }
        all.into()
    };
    Ok(Arc::new(PrimitiveArray::<T>::new(values, None)))
}

/// Returns the array of all elements, without a copy unless they are bools.
fn elements(values: &ArrayValues, data_type: &DataType) -> Result<ArrayRef> {
    let none = arrow_array::new_empty_array(data_type);
    let buffer = match values.bits() {
        _ if values.is_empty() => return Ok(none),
        ArrayBits::Bits8(bits) if *data_type == DataType::Boolean => {
            let bools = bits.iter().map(|&bit| bit != 0).collect();
            return Ok(Arc::new(BooleanArray::new(bools, None)));
        }
        ArrayBits::Bits8(bits) => shared(bits),
        ArrayBits::Bits16(bits) => shared(bits),
        ArrayBits::Bits32(bits) => shared(bits),
        ArrayBits::Bits64(bits) => shared(bits),
    };
    let data = none.to_data().into_builder().len(values.len()).buffers(vec![buffer]).build()?;
    Ok(arrow_array::make_array(data))
}

/// Returns the array with nulls in some rows.
pub(crate) fn with_nulls(array: &ArrayRef, is_null: impl Fn(usize) -> bool) -> Result<ArrayRef> {
    fn list<T: OffsetSizeTrait>(array: &ArrayRef, nulls: NullBuffer) -> Result<ArrayRef> {
        let (item, offsets, values, _) = array.as_list::<T>().clone().into_parts();
        Ok(Arc::new(GenericListArray::try_new(item, offsets, values, Some(nulls))?))
    }
    let nulls = NullBuffer::new(BooleanBuffer::collect_bool(array.len(), |row| !is_null(row)));
    match array.data_type() {
        _ if nulls.null_count() == 0 => return Ok(ArrayRef::clone(array)),
        DataType::List(_) => return list::<i32>(array, nulls),
        DataType::LargeList(_) => return list::<i64>(array, nulls),
        _ => {}
    }
    let data = array.to_data().into_builder().nulls(Some(nulls)).build()?;
    Ok(arrow_array::make_array(data))
}

/// Returns the number of lists of row splits.
fn lists(splits: &RowSplits) -> usize {
    let len = match splits {
        RowSplits::Int32(splits) => splits.len(),
        RowSplits::Int64(splits) => splits.len(),
    };
    len.saturating_sub(1)
}

/// Returns the number of the list of an item.
fn list_of(splits: &RowSplits, item: usize) -> usize {
    let after = match splits {
        RowSplits::Int32(splits) => splits.partition_point(|&split| split as usize <= item),
        RowSplits::Int64(splits) => splits.partition_point(|&split| split as usize <= item),
    };
    after.saturating_sub(1)
}

/// Returns the number of nested lists of a type.
fn depth(data_type: &DataType) -> usize {
    let mut depth = 0;
    let mut inner = data_type;
    while let DataType::FixedSizeList(item, _) = inner {
        (depth, inner) = (depth + 1, item.data_type());
    }
    depth
}

/// Returns the outer `depth` dimensions of fixed lengths of a shape. The first number of the shape counts the
/// outermost lists.
fn fixed(shape: &[usize], depth: usize) -> Result<Vec<Dimension>> {
    let mut count = 1usize;
    let counts = shape.iter().take(depth).map(|&len| {
        count = count.checked_mul(len).ok_or(ErrorKind::TooLarge { len: usize::MAX })?;
        Ok(Dimension::Fixed(count))
    });
    counts.collect()
}

/// Returns the nested array of a type with these dimensions, the outermost first.
fn nest(data_type: &DataType, dims: &[Dimension], leaf: Leaf<'_>) -> Result<ArrayRef> {
    let Some((dim, inner)) = dims.split_first() else { return leaf.array(data_type) };
    match (data_type, dim) {
        (DataType::FixedSizeList(item, size), dim) => {
            let len = match dim {
                Dimension::Fixed(len) => *len,
                Dimension::Ragged(splits) => lists(splits),
            };
            let values = nest(item.data_type(), inner, leaf)?;
            if usize::try_from(*size).ok().and_then(|size| size.checked_mul(len)) != Some(values.len()) {
                return Err(Error::batch("expected a batch of `Converter::parser`, found another shape"));
            }
            let item = Arc::clone(item);
            Ok(Arc::new(FixedSizeListArray::try_new_with_length(item, *size, values, None, len)?))
        }
        (DataType::List(item), Dimension::Ragged(RowSplits::Int32(splits))) => {
            list(item, splits, nest(item.data_type(), inner, leaf)?)
        }
        (DataType::LargeList(item), Dimension::Ragged(RowSplits::Int64(splits))) => {
            list(item, splits, nest(item.data_type(), inner, leaf)?)
        }
        _ => Err(Error::batch("expected a batch of `Converter::parser`, found other row splits")),
    }
}

/// Returns an array of lists, with the row splits as they are.
fn list<T: OffsetSizeTrait + NoUninit>(
    item: &FieldRef,
    splits: &Buf<T>,
    values: ArrayRef,
) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::new(ScalarBuffer::<T>::from(shared(splits)));
    Ok(Arc::new(GenericListArray::try_new(Arc::clone(item), offsets, values, None)?))
}

/// Returns the row splits of lists of these lengths.
fn splits(lengths: impl ExactSizeIterator<Item = usize>) -> Result<RowSplits> {
    let mut splits = collected(lengths.len() + 1, std::iter::empty())?;
    splits.push(0);
    let mut end = 0usize;
    for len in lengths {
        end += len;
        splits.push(i32::try_from(end).map_err(|_| ErrorKind::TooLarge { len: end })?);
    }
    Ok(RowSplits::Int32(splits.into()))
}

/// Returns the row of each value of a sparse column.
fn sparse_rows(sparse: &Sparse) -> impl ExactSizeIterator<Item = usize> + '_ {
    let rank = sparse.dense_shape.len().max(1);
    sparse.indices.chunks_exact(rank).map(|index| index.first().map_or(0, |&row| row as usize))
}

/// Returns the row splits of the values of a sparse column.
fn sparse_splits(sparse: &Sparse, rows: usize) -> Result<RowSplits> {
    let mut counts = collected(rows, std::iter::repeat(0))?;
    for row in sparse_rows(sparse) {
        let count: &mut usize = counts
            .get_mut(row)
            .ok_or_else(|| Error::batch("expected a sparse index below the number of rows"))?;
        *count += 1;
    }
    splits(counts.into_iter())
}

/// Returns the values of a sparse column as lists.
fn nest_sparse(data_type: &DataType, sparse: &Sparse, rows: usize) -> Result<ArrayRef> {
    let row_of = |value| sparse_rows(sparse).nth(value).unwrap_or_default();
    let dims = [Dimension::Ragged(sparse_splits(sparse, rows)?)];
    nest(data_type, &dims, Leaf::whole(&sparse.values, &row_of))
}

/// Returns a sparse column as structs of indices, without the row, and values.
fn sparse_struct(data_type: &DataType, sparse: &Sparse, rows: usize) -> Result<ArrayRef> {
    let DataType::Struct(fields) = data_type else {
        return Err(Error::batch("expected the type of a sparse column"));
    };
    let [indices_field, values_field] = &**fields else {
        return Err(Error::batch("expected the type of a sparse column"));
    };
    let rank = sparse.dense_shape.len().max(1);
    let indices = sparse.indices.chunks_exact(rank).flat_map(|index| index.iter().skip(1).copied());
    let indices: Vec<i64> = collected(sparse.indices.len(), indices)?;
    let indices = Values::Int64(indices.into());
    let dims = [Dimension::Ragged(sparse_splits(sparse, rows)?), Dimension::Fixed(sparse.values.len())];
    let indices = nest(indices_field.data_type(), &dims, Leaf::whole(&indices, &|_| 0))?;
    let values = nest_sparse(values_field.data_type(), sparse, rows)?;
    let arrays = vec![indices, values];
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, None, rows)?))
}

/// Returns the padded steps of a feature list as lists, without the padding.
fn steps(data_type: &DataType, values: &Values, shape: &[usize], lengths: &[i64]) -> Result<ArrayRef> {
    let count_of =
        |shape: &[usize], outer| shape.iter().skip(outer).fold(1usize, |n, &len| n.saturating_mul(len));
    let row = count_of(shape, 1);
    let step = count_of(shape, 2);
    let mut kept: Vec<Range<usize>> = collected(lengths.len(), std::iter::empty())?;
    for (number, &len) in lengths.iter().enumerate() {
        let start = number * row;
        let range = start..start + len as usize * step;
        match kept.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => kept.push(range),
        }
    }
    let splits = splits(lengths.iter().map(|&len| len as usize))?;
    let count = lengths.iter().sum::<i64>() as usize;
    if count > MAX_OFFSET {
        return Err(ErrorKind::TooLarge { len: count }.into());
    }
    let mut dims = vec![Dimension::Ragged(splits)];
    let inner: Vec<usize> = std::iter::once(count).chain(shape.iter().skip(2).copied()).collect();
    dims.extend(fixed(&inner, inner.len() - 1)?);
    nest(data_type, &dims, Leaf { values, names: None, kept, row_of: &|value| value / row.max(1) })
}
