//! The values of column files as arrays, without the records.

use crate::error::{Error, ErrorKind, Result};
use crate::plan::PlannedColumn;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int64Type};
use arrow_array::{ArrayRef, BinaryArray, BinaryViewArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, FieldRef};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tfseek::column::{DatasetColumn, Value};
use tfseek::schema::FeatureSpec;
use tfseek::{Dataset, FeatureBuf};

/// The columns of a scan that are read from column files.
pub(super) struct SavedColumns {
    columns: Vec<SavedColumn>,
    /// For each shard the number after its last record, and the ordinal of its first record in the file.
    shards: Vec<(u64, u64)>,
}

/// A column of a scan, and its values.
pub(super) struct SavedColumn {
    values: DatasetColumn,
    /// The value of records without one. Without it they are null.
    default: Option<FeatureBuf>,
    field: FieldRef,
}

/// Columns of a dataset that were found, by feature.
pub(super) type FoundColumns = Arc<Mutex<BTreeMap<Box<str>, DatasetColumn>>>;

impl SavedColumn {
    /// Returns the saved column of a column, if it has the values of its spec. The columns that are found are
    /// added to `found`.
    pub(super) fn find(
        dataset: &Dataset,
        column: &PlannedColumn,
        spec: Option<&FeatureSpec>,
        found: &FoundColumns,
    ) -> Result<Option<SavedColumn>> {
        let feature = column.from.as_str();
        let (dtype, default, is_required) = match spec {
            Some(FeatureSpec::FixedLen { shape, dtype, default }) if shape.is_empty() => {
                (*dtype, default.clone(), default.is_none())
            }
            Some(FeatureSpec::Optional { dtype, default }) => (*dtype, default.clone(), false),
            _ => return Ok(None),
        };
        let known = found.lock().ok().and_then(|found| found.get(feature).cloned());
        let values = match known {
            Some(values) => values,
            None => {
                let Some(values) = dataset.find_columns(&[feature])?.pop().flatten() else { return Ok(None) };
                if let Ok(mut found) = found.lock() {
                    found.insert(feature.into(), values.clone());
                }
                values
            }
        };
        let fits =
            values.kind.is_none_or(|kind| kind == dtype) && !(is_required && values.count() < values.len());
        Ok(fits.then(|| SavedColumn { values, default, field: Arc::clone(&column.field) }))
    }
}

impl SavedColumns {
    pub(super) fn new(dataset: &Dataset, columns: Vec<SavedColumn>) -> SavedColumns {
        let shards = dataset.shards().map(|shard| (shard.start + shard.len, shard.first));
        SavedColumns { columns, shards: shards.collect() }
    }

    /// Returns the values of these records, one array for each column.
    pub(super) fn arrays(&self, numbers: &[u64]) -> Result<Vec<ArrayRef>> {
        let arrays = self.columns.iter().map(|column| {
            self.array(column, numbers).map_err(|error| error.column_named(column.field.name()))
        });
        arrays.collect()
    }

    fn array(&self, column: &SavedColumn, numbers: &[u64]) -> Result<ArrayRef> {
        match column.field.data_type() {
            DataType::Int64 => self.numbers::<Int64Type>(column, numbers, |value| match value {
                Value::Int(value) => Some(value),
                _ => None,
            }),
            DataType::Float32 => self.numbers::<Float32Type>(column, numbers, |value| match value {
                Value::Float(value) => Some(value),
                _ => None,
            }),
            data_type => self.strings(column, numbers, data_type),
        }
    }

    fn numbers<T: ArrowPrimitiveType>(
        &self,
        column: &SavedColumn,
        numbers: &[u64],
        typed: impl Fn(Value<'_>) -> Option<T::Native>,
    ) -> Result<ArrayRef> {
        let mut values = Vec::with_capacity(numbers.len());
        let mut present = BooleanBufferBuilder::new(numbers.len());
        self.values(column, numbers, |_, value| {
            let value = value.and_then(&typed);
            values.push(value.unwrap_or_default());
            present.append(value.is_some());
            Ok(())
        })?;
        let nulls = Some(NullBuffer::new(present.finish())).filter(|nulls| nulls.null_count() > 0);
        Ok(Arc::new(PrimitiveArray::<T>::try_new(values.into(), nulls)?))
    }

    fn strings(&self, column: &SavedColumn, numbers: &[u64], data_type: &DataType) -> Result<ArrayRef> {
        let is_text = data_type.is_string();
        let mut strings = Vec::with_capacity(numbers.len());
        let mut len = 0usize;
        self.values(column, numbers, |number, value| {
            let value = match value {
                Some(Value::Bytes(value)) => Some(value),
                _ => None,
            };
            if is_text
                && let Some(value) = value
                && let Err(error) = std::str::from_utf8(value)
            {
                let kind = ErrorKind::Text { valid: error.valid_up_to(), len: value.len() };
                return Err(Error::from(kind).in_record(Some(number)));
            }
            len = len.saturating_add(value.map_or(0, <[u8]>::len));
            strings.push(value);
            Ok(())
        })?;
        if matches!(data_type, DataType::BinaryView | DataType::Utf8View) {
            let strings = BinaryViewArray::from_iter(strings);
            return Ok(if is_text { Arc::new(strings.to_string_view()?) } else { Arc::new(strings) });
        }
        if i32::try_from(len).is_err() {
            return Err(ErrorKind::TooLarge { len }.into());
        }
        let strings = BinaryArray::from_iter(strings);
        Ok(if is_text { Arc::new(StringArray::try_from_binary(strings)?) } else { Arc::new(strings) })
    }

    /// Calls `f` with the number and the value of each of these records, or the default.
    fn values<'c>(
        &self,
        column: &'c SavedColumn,
        numbers: &[u64],
        mut f: impl FnMut(u64, Option<Value<'c>>) -> Result<()>,
    ) -> Result<()> {
        let default = column.default.as_ref().and_then(|default| match default {
            FeatureBuf::Int64(values) => values.first().map(|&value| Value::Int(value)),
            FeatureBuf::Float(values) => values.first().map(|&value| Value::Float(value)),
            FeatureBuf::Bytes(values) => values.first().map(|value| Value::Bytes(value)),
            FeatureBuf::None => None,
        });
        let shards = column.values.shards();
        // Records are mostly of the shard of the record before.
        let mut shard = None;
        let mut start = 1;
        let mut end = 0;
        let mut first = 0;
        for &number in numbers {
            if !(start..end).contains(&number) {
                let s = self.shards.partition_point(|&(end, _)| end <= number);
                shard = shards.get(s);
                start =
                    s.checked_sub(1).and_then(|before| self.shards.get(before)).map_or(0, |&(end, _)| end);
                (end, first) = self.shards.get(s).copied().unwrap_or((0, 0));
            }
            let value = match shard {
                Some(shard) => shard.get(number - start + first)?,
                None => None,
            };
            f(number, value.or(default))?;
        }
        Ok(())
    }
}
