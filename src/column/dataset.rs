//! One feature's values over all shards.

use super::data::ColumnData;
use super::feature::FeatureColumn;
use super::selection::Selection;
use crate::dataset::Dataset;
use crate::dataset::shard::ShardFile;
use crate::error::{Error, FeatureError, OptionsError, Result};
use crate::example::DType;
use crate::filter::value::Value;
use crate::order::{Subset, Weights};
use crate::warning::Warning;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One feature's value for each record of a [`Dataset`]. Made by [`Dataset::column`].
///
/// The values are in memory, or in maps that several processes share. Access to a value cannot fail. Each
/// shard stores strings as codes into its own dictionary. This type joins them by value. A clone shares the
/// values.
#[derive(Clone)]
#[non_exhaustive]
pub struct DatasetColumn {
    /// The name of the feature.
    pub feature: Box<str>,
    /// The kind of the values. `None` if no record has a value.
    pub kind: Option<DType>,
    /// The warnings from finding and building the column. Columns that were requested together share them.
    pub warnings: Vec<Warning>,
    /// Also holds the token of the contract under which the files were mapped.
    dataset: Dataset,
    /// The columns of the shards, loaded.
    shards: Vec<FeatureColumn>,
    /// The records that have no value because they do not decode, if there are any.
    undecoded: Option<Arc<Selection>>,
}

impl DatasetColumn {
    /// Joins the columns of all shards, which must be loaded. All values must have the same kind.
    pub(super) fn new(
        dataset: &Dataset,
        feature: &str,
        shards: Vec<FeatureColumn>,
        warnings: Vec<Warning>,
        undecoded: Option<Arc<Selection>>,
    ) -> Result<DatasetColumn> {
        let mut kind = None;
        for (column, shard) in shards.iter().zip(dataset.shards()) {
            // A column without any value is stored as int64, which implies no kind.
            let has_kind =
                column.kind() != DType::Int64 || column.loaded().is_some_and(|data| data.count() > 0);
            match (kind, column.kind()) {
                _ if !has_kind => {}
                (None, found) => kind = Some(found),
                (Some(expected), found) if expected != found => {
                    let expected = expected.list_name();
                    let found = found.list_name();
                    let error = Error::from(FeatureError::WrongKind { expected, found });
                    return Err(error.in_file(shard.path).feature(feature.as_bytes()));
                }
                _ => {}
            }
        }
        let dataset = dataset.clone();
        let feature = feature.into();
        Ok(DatasetColumn { dataset, feature, kind, shards, warnings, undecoded })
    }

    /// Returns the values of the records of `some`. `some` has the shards of this column's dataset, `whole`,
    /// with some of their records.
    pub(super) fn for_some(mut self, some: &Dataset, whole: &Dataset) -> Result<DatasetColumn> {
        if let Some(all) = self.undecoded.take() {
            let mut undecoded = Selection::none(some.len())?;
            for (shard, file) in some.shards().zip(whole.shards()) {
                let numbers = (shard.start..).zip(file.start + shard.first..).take(shard.len as usize);
                numbers
                    .filter(|(_, of_whole)| all.contains(*of_whole))
                    .for_each(|(i, _)| undecoded.insert(i));
            }
            self.undecoded = Some(Arc::new(undecoded));
        }
        DatasetColumn::new(some, &self.feature, self.shards, self.warnings, self.undecoded)
    }

    /// Returns the number of records, with or without a value.
    #[allow(clippy::len_without_is_empty, reason = "the dataset tells")]
    pub fn len(&self) -> u64 {
        self.dataset.len()
    }

    /// Returns the number of records with a value. Each call counts them again.
    pub fn count(&self) -> u64 {
        self.loaded().map(|(_, records, data)| data.count_in(records)).sum()
    }

    /// Returns the value of record `i`. `None` if the record has no value or does not exist. Takes two or
    /// three memory accesses.
    #[inline]
    pub fn get(&self, i: u64) -> Option<Value<'_>> {
        let (s, k) = match self.shards.as_slice() {
            [_] if self.dataset.files().first().is_some_and(ShardFile::is_whole) => (0, i),
            _ => self.dataset.shard_of(i).ok()?,
        };
        self.shards.get(s)?.loaded()?.get(k)
    }

    /// Returns the values of all records, in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<Value<'_>>> {
        self.loaded().flat_map(|(_, records, data)| records.map(|i| data.get(i)))
    }

    /// Returns the columns of the shards, in order. Each has its own file, its own codes, and the values of
    /// all records of its file.
    pub fn shards(&self) -> &[FeatureColumn] {
        &self.shards
    }

    /// Returns the distinct values, ascending (strings as bytes), and the records of each value, also
    /// ascending. Records without a value are in no class. For a column file without these lists, they are
    /// collected from the values, which takes a sort.
    ///
    /// # Errors
    /// [`OptionsError::FloatClasses`] for a feature of floats.
    /// [`IndexError::CorruptSection`](crate::error::IndexError::CorruptSection) if the lists are damaged.
    pub fn classes(&self) -> Result<Vec<(Value<'_>, Vec<u64>)>> {
        if self.kind == Some(DType::Float32) {
            return Err(Error::from(OptionsError::FloatClasses).feature(self.feature.as_bytes()));
        }
        let shards = self.shards.iter().map(FeatureColumn::classes).collect::<Result<Vec<_>>>()?;
        let mut parts = Vec::new();
        let files = self.dataset.files().iter().zip(self.dataset.set().starts());
        for ((classes, column), (file, start)) in shards.iter().zip(&self.shards).zip(files) {
            let part = |(class, list)| Some((column.value_of(class)?, (*start, file.records()), list));
            parts.extend(classes.raw().filter_map(part));
        }
        // The sort is stable: records with equal values keep shard order, so record numbers ascend.
        parts.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let mut all = Vec::<(Value<'_>, Vec<u64>)>::new();
        for (value, (start, records), list) in parts {
            let of_dataset = list.iter().filter(|i| records.contains(i));
            let mut records = of_dataset.map(|i| start + (i - records.start)).peekable();
            if records.peek().is_none() {
                continue;
            }
            match all.last_mut().filter(|(last, _)| *last == value) {
                Some((_, known)) => known.extend(records),
                None => all.push((value, records.collect())),
            }
        }
        Ok(all)
    }

    /// Returns the values as weights of [draws](crate::order::Spec::Weighted), of all records or of those in
    /// `records`. A record that does not decode is never drawn. Takes 20 bytes per record.
    ///
    /// # Errors
    /// [`OrderError`](crate::error::OrderError) for a record without a value, a feature of strings, and those
    /// of the [weights](Weights).
    pub fn weights(&self, records: Option<&Subset>) -> Result<Weights> {
        let is_left_out = |i| self.undecoded().is_some_and(|left_out| left_out.contains(i));
        let weight = |(i, value)| match value {
            Some(Value::Int(value)) => Ok(value as f64),
            Some(Value::Float(value)) => Ok(f64::from(value)),
            None if is_left_out(i) => Ok(0.0),
            Some(Value::Bytes(_)) => {
                Err(Error::order(format!("expected a number as weight of record {i}, found a string")))
            }
            None => Err(Error::order(format!("expected a weight of record {i}, found no value"))),
        };
        let weights: Result<Vec<f64>> = match records {
            Some(records) => records.iter().map(|i| weight((i, self.get(i)))).collect(),
            None => (0..).zip(self.iter()).map(weight).collect(),
        };
        weights
            .and_then(|weights| Weights::try_from(&*weights))
            .map_err(|e| e.feature(self.feature.as_bytes()))
    }

    /// Returns the records that have no value because they do not decode, if there are any.
    pub(super) fn undecoded(&self) -> Option<&Selection> {
        self.undecoded.as_deref()
    }

    /// Returns for each shard the number of its first record, the ordinals of its records that belong to the
    /// dataset, and the values of all records of the file.
    pub(super) fn loaded(&self) -> impl Iterator<Item = (u64, Range<u64>, &ColumnData)> {
        let files = self.dataset.files().iter().zip(self.dataset.set().starts());
        let shards = self.shards.iter().zip(files);
        shards.filter_map(|(column, (file, start))| Some((*start, file.records(), column.loaded()?)))
    }
}

impl fmt::Debug for DatasetColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.map_or("no", DType::list_name);
        write!(f, "DatasetColumn({:?}, {kind} values, {} records)", self.feature, self.len())
    }
}
