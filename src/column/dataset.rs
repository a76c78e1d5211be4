//! One feature's values over all shards.

use super::data::ColumnData;
use super::feature::FeatureColumn;
use crate::dataset::Dataset;
use crate::error::{Error, FeatureError, OptionsError, Result};
use crate::example::FeatureKind;
use crate::filter::value::Value;
use crate::warning::Warning;
use std::fmt;

/// One feature's value for each record of a [`Dataset`], made by [`Dataset::column`]. In memory, or in maps that processes
/// share; a look at a value cannot fail.
///
/// Strings are stored as codes into a dictionary of each shard; here they are joined by value.
pub struct DatasetColumn {
    /// Keeps the promise under which files were mapped.
    dataset: Dataset,
    feature: Box<str>,
    kind: Option<FeatureKind>,
    /// One a shard, loaded.
    shards: Vec<FeatureColumn>,
    warnings: Vec<Warning>,
}

impl DatasetColumn {
    /// Of columns that are loaded, one a shard; their values must be of one kind.
    pub(super) fn new(
        dataset: &Dataset,
        feature: &str,
        shards: Vec<FeatureColumn>,
        warnings: Vec<Warning>,
    ) -> Result<DatasetColumn> {
        let mut kind = None;
        for (column, shard) in shards.iter().zip(dataset.shards()) {
            // A column without any value says int64 and means nothing by it.
            let means =
                column.kind() != FeatureKind::Int64 || column.loaded().is_some_and(|data| data.count() > 0);
            match (kind, column.kind()) {
                _ if !means => {}
                (None, found) => kind = Some(found),
                (Some(expected), found) if expected != found => {
                    let (expected, found) = (expected.name(), found.name());
                    let error = Error::from(FeatureError::WrongKind { expected, found });
                    return Err(error.in_file(shard.path).feature(feature.as_bytes()));
                }
                _ => {}
            }
        }
        Ok(DatasetColumn { dataset: dataset.clone(), feature: feature.into(), kind, shards, warnings })
    }

    /// The feature.
    pub fn feature(&self) -> &str {
        &self.feature
    }

    /// The kind of its values; `None` if no record has one: where all of them have the feature without a value, or there are no records.
    pub fn kind(&self) -> Option<FeatureKind> {
        self.kind
    }

    /// Number of records, with a value or without.
    pub fn len(&self) -> u64 {
        self.dataset.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many records have a value. Counted anew.
    pub fn count(&self) -> u64 {
        self.loaded().map(|(_, data)| data.count()).sum()
    }

    /// The value of record `i`; `None` if it has none, or there is no such record. A look at two or three places.
    #[inline]
    pub fn get(&self, i: u64) -> Option<Value<'_>> {
        let (s, k) = match self.shards.as_slice() {
            [_] => (0, i),
            _ => self.dataset.shard_of(i).ok()?,
        };
        self.shards.get(s)?.loaded()?.get(k)
    }

    /// The values of all records, in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<Value<'_>>> {
        self.loaded().flat_map(|(_, data)| (0..data.len()).map(|i| data.get(i)))
    }

    /// The columns of the shards, in order: their files, their own codes.
    pub fn shards(&self) -> &[FeatureColumn] {
        &self.shards
    }

    /// Warnings from finding and building it. Columns that were asked for together share them.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The distinct values, ascending, and the records of each: for orders that balance classes. Counted from the values where
    /// the column files do not list them, which takes a sort of them.
    ///
    /// # Errors
    /// [`OptionsError::FloatClasses`]; [`IndexError::CorruptSection`](crate::error::IndexError::CorruptSection).
    pub fn classes(&self) -> Result<Classes<'_>> {
        if self.kind == Some(FeatureKind::Float) {
            return Err(Error::from(OptionsError::FloatClasses).feature(self.feature.as_bytes()));
        }
        let shards = self.shards.iter().map(FeatureColumn::classes).collect::<Result<Vec<_>>>()?;
        let mut parts = Vec::new();
        for ((classes, column), start) in shards.iter().zip(&self.shards).zip(self.dataset.set().starts()) {
            let part = |(class, list)| Some((column.value_of(class)?, *start, list));
            parts.extend(classes.raw().filter_map(part));
        }
        // The sort is stable: records with equal values keep shard order, so record numbers ascend.
        parts.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let mut all =
            Classes { feature: &self.feature, values: Vec::new(), ends: Vec::new(), records: Vec::new() };
        for (value, start, list) in parts {
            all.records.extend(list.iter().map(|i| start + i));
            match all.ends.last_mut().filter(|_| all.values.last() == Some(&value)) {
                Some(end) => *end = all.records.len(),
                None => {
                    all.values.push(value);
                    all.ends.push(all.records.len());
                }
            }
        }
        Ok(all)
    }

    /// Each shard's first record, and its values.
    pub(super) fn loaded(&self) -> impl Iterator<Item = (u64, &ColumnData)> {
        let starts = self.dataset.set().starts().iter().copied();
        self.shards.iter().zip(starts).filter_map(|(column, start)| Some((start, column.loaded()?)))
    }
}

/// The distinct values of a [`DatasetColumn`], ascending (strings as bytes), and the records of each, ascending too. Records
/// without a value are in none.
#[derive(Clone, PartialEq)]
pub struct Classes<'a> {
    feature: &'a str,
    values: Vec<Value<'a>>,
    ends: Vec<usize>,
    records: Vec<u64>,
}

impl<'a> Classes<'a> {
    pub(crate) fn feature(&self) -> &'a str {
        self.feature
    }

    /// Returns the `k`th value and its records.
    fn class(&self, k: usize) -> Option<(Value<'a>, &[u64])> {
        let start = k.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        Some((*self.values.get(k)?, self.records.get(start..*self.ends.get(k)?)?))
    }

    /// Returns the records with this value: none, if it does not occur. A binary search.
    pub fn of(&self, value: Value<'_>) -> &[u64] {
        let k = self.values.binary_search_by(|other| other.total_cmp(&value));
        k.ok().and_then(|k| self.class(k)).map_or(&[], |(_, records)| records)
    }

    /// Returns each value and the records that have it.
    pub fn iter(&self) -> impl Iterator<Item = (Value<'a>, &[u64])> {
        (0..self.values.len()).filter_map(|k| self.class(k))
    }
}

impl fmt::Debug for DatasetColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.map_or("no", FeatureKind::name);
        write!(f, "DatasetColumn({:?}, {kind} values, {} records)", self.feature, self.len())
    }
}

impl fmt::Debug for Classes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(value, records)| (value, records.len()))).finish()
    }
}
