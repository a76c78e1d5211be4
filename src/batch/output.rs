//! The columns of a batch, by name.

use super::column::{BytesColumn, Column, Values};
use super::compile::{BatchPlan, MapPlan};
use super::pool::{Buf, BufPool};
use crate::error::{Error, Result};
use crate::io::Region;
use crate::schema::DType;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The columns of a batch of records. It is `'static` and `Send`.
///
/// Its memory returns to the parser once the batch and everything cloned from it are dropped.
///
/// ```
/// use tfseek::{BatchParser, DType, ExampleBuilder, FeatureSpec, Schema};
/// let schema = Schema::example()
///     .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
///     .feature("weight", FeatureSpec::optional(DType::Float32).with_default([1.0f32]))
///     .build()?;
/// let rows = [
///     ExampleBuilder::new().int64("label", [3]).encode()?,
///     ExampleBuilder::new().int64("label", [4]).float("weight", [0.5f32]).encode()?,
/// ];
/// let batch = BatchParser::new(&schema).parse(&rows)?;
/// assert_eq!((batch.int64("label")?, batch.float32("weight")?), (&[3, 4][..], &[1.0, 0.5][..]));
///
/// let e = batch.bytes("label").unwrap_err();
/// assert_eq!(e.to_string(), "feature \"label\": invalid schema: expected a column of string, found one of int64");
/// # Ok::<(), tfseek::Error>(())
/// ```
pub struct Batch {
    data: BatchData,
    pub(super) plan: Arc<BatchPlan>,
    pool: Arc<BatchDataPool>,
}

/// The reusable vectors of a batch.
#[derive(Default)]
pub(super) struct BatchData {
    pub(super) rows: usize,
    pub(super) features: Vec<Column>,
    pub(super) lists: Vec<Column>,
    pub(super) lengths: Vec<Option<Buf<i64>>>,
    /// Presence by column; empty if it is not recorded.
    pub(super) presence: Vec<Buf<u8>>,
    pub(super) list_presence: Vec<Buf<u8>>,
    /// Memory that borrowed byte strings refer to.
    pub(super) regions: BufPool<Region>,
    pub(super) list_regions: BufPool<Region>,
}

/// [`BatchData`] of dropped batches, kept for the next ones.
#[derive(Default)]
pub(super) struct BatchDataPool(Mutex<Vec<BatchData>>);

impl BatchDataPool {
    /// Maximum number of entries; beyond it, the data of a dropped batch is freed.
    const MAX_ENTRIES: usize = 64;

    pub(super) fn take(&self) -> BatchData {
        self.0.lock().ok().and_then(|mut free| free.pop()).unwrap_or_default()
    }
}

impl Batch {
    pub(super) fn new(data: BatchData, plan: &Arc<BatchPlan>, pool: &Arc<BatchDataPool>) -> Batch {
        Batch { data, plan: Arc::clone(plan), pool: Arc::clone(pool) }
    }

    /// Returns the number of records; 1 after [`parse_single`](super::BatchParser::parse_single).
    pub fn rows(&self) -> usize {
        self.data.rows
    }

    /// Returns the column `name` of the features of an Example or of a context.
    pub fn get(&self, name: &str) -> Option<&Column> {
        self.data.features.get(self.plan.features.column(name)?)
    }

    /// Returns the values of the column `name` of integers. The column is one of [`get`](Batch::get), dense
    /// or not.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`](crate::ErrorKind::Spec) if the schema has no such feature, or one of another type.
    pub fn int64(&self, name: &str) -> Result<&[i64]> {
        self.values(name, DType::Int64, Values::int64)
    }

    /// Returns the values of the column `name` of floats, as [`int64`](Batch::int64) does for integers.
    ///
    /// # Errors
    /// Same as [`int64`](Batch::int64).
    pub fn float32(&self, name: &str) -> Result<&[f32]> {
        self.values(name, DType::Float32, Values::float32)
    }

    /// Returns the values of the column `name` of byte strings, as [`int64`](Batch::int64) does for integers.
    ///
    /// # Errors
    /// Same as [`int64`](Batch::int64).
    pub fn bytes(&self, name: &str) -> Result<&BytesColumn> {
        self.values(name, DType::Bytes, Values::bytes)
    }

    fn values<'a, T: ?Sized>(
        &'a self,
        name: &str,
        dtype: DType,
        typed: fn(&'a Values) -> Option<&'a T>,
    ) -> Result<&'a T> {
        let found = self.get(name).map(Column::values);
        found.and_then(typed).ok_or_else(|| self.no_column(name, dtype, found))
    }

    #[cold]
    fn no_column(&self, name: &str, dtype: DType, found: Option<&Values>) -> Error {
        let found = match found {
            Some(other) => format!("one of {}", other.type_name()),
            None if self.feature_list(name).is_some() => "a feature list".to_owned(),
            None => "no such column".to_owned(),
        };
        Error::spec(format!("expected a column of {dtype}, found {found}")).feature(name.as_bytes())
    }

    /// Changes the column `name` of the features, or the one of the feature lists if there is no such feature.
    /// Has no effect without either.
    pub fn set(&mut self, name: &str, column: impl Into<Column>) {
        let old = match self.plan.features.column(name) {
            Some(number) => self.data.features.get_mut(number),
            None => self.plan.lists.column(name).and_then(|number| self.data.lists.get_mut(number)),
        };
        if let Some(old) = old {
            *old = column.into();
        }
    }

    /// Returns the columns of the features and their names, sorted by name.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&str, &Column)> {
        named(&self.plan.features, &self.data.features)
    }

    /// Returns the column `name` of the feature lists.
    pub fn feature_list(&self, name: &str) -> Option<&Column> {
        self.data.lists.get(self.plan.lists.column(name)?)
    }

    /// Returns the columns of the feature lists and their names, sorted by name.
    pub fn feature_lists(&self) -> impl ExactSizeIterator<Item = (&str, &Column)> {
        named(&self.plan.lists, &self.data.lists)
    }

    /// Returns the number of steps of each record in the dense feature list `name`.
    ///
    /// Returns `None` for other columns, and after [`parse_single`](super::BatchParser::parse_single): the
    /// shape then contains the number of steps.
    pub fn lengths(&self, name: &str) -> Option<&Buf<i64>> {
        self.data.lengths.get(self.plan.lists.column(name)?)?.as_ref()
    }

    /// Returns the records that have the feature of the column `name`: 1 for each with a list of values,
    /// which may be empty, and 0 for each without the feature or with one that has no kind.
    ///
    /// The feature of a ragged or a sparse column is the one of its values. Returns `None` for unknown
    /// columns, and unless [`BatchParser::presence`](super::BatchParser::presence) is set.
    pub fn presence(&self, name: &str) -> Option<&Buf<u8>> {
        self.data.presence.get(self.plan.features.column(name)?)
    }

    /// Returns the records that have the feature list of the column `name`: 1 for each that has it, with or
    /// without steps, and 0 for the others.
    ///
    /// Returns `None` as [`presence`](Batch::presence) does.
    pub fn feature_list_presence(&self, name: &str) -> Option<&Buf<u8>> {
        self.data.list_presence.get(self.plan.lists.column(name)?)
    }
}

fn named<'a>(
    part: &'a MapPlan,
    columns: &'a [Column],
) -> impl ExactSizeIterator<Item = (&'a str, &'a Column)> {
    part.columns.iter().zip(columns).map(|(planned, column)| (&*planned.name, column))
}

impl Drop for Batch {
    fn drop(&mut self) {
        let mut data = std::mem::take(&mut self.data);
        data.features.iter_mut().chain(&mut data.lists).for_each(Column::release);
        data.lengths.clear();
        data.presence.clear();
        data.list_presence.clear();
        // Releases maps and buffers now, and not only at the next batch.
        data.regions.release_unused();
        data.list_regions.release_unused();
        if let Ok(mut free) = self.pool.0.lock()
            && free.len() < BatchDataPool::MAX_ENTRIES
        {
            free.push(data);
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.columns()).entries(self.feature_lists()).finish()
    }
}
