//! `Encoder`: record batches as payloads of records.

use super::levels::Located;
use super::nested::NestedRows;
use super::options::EncoderOptions;
use super::plan::{EncodedColumn, columns};
use super::values::{CastBuffer, LeafValues};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::collected;
use arrow_array::RecordBatch;
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use std::sync::Arc;
use tfseek::example::{FeatureSlice, put_example, put_sequence_example};
use tfseek_tfds::Features;

/// An encoder of record batches of one Arrow schema as payloads of records, the inverse of a
/// [`Converter`](crate::Converter).
///
/// Each row is an Example with a feature per column, sorted by name as Python's deterministic serialization
/// does: equal batches have equal bytes. A null is an absent feature, and an empty list is a feature without
/// values. The [crate](crate#from-record-batches-to-records) has the table of types.
///
/// An encoder keeps its buffers. A batch takes a few allocations per column, whatever its rows, and the row
/// itself none.
///
/// ```
/// use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
/// use std::sync::Arc;
/// use tfseek::Example;
/// use tfseek_arrow::{Encoder, EncoderOptions};
///
/// let batch = RecordBatch::try_from_iter([
///     ("label", Arc::new(Int32Array::from(vec![Some(3), None])) as ArrayRef),
///     ("name", Arc::new(StringArray::from(vec!["ant", "bee"]))),
/// ])?;
/// let mut encoder = Encoder::new(&batch.schema(), &EncoderOptions::new())?;
/// let mut payloads = Vec::new();
/// encoder.encode(&batch, |payload| {
///     payloads.push(payload.to_vec()); // or `writer.write(payload)`
///     Ok(())
/// })?;
/// assert_eq!(Example::new(&payloads[0]).int64("label")?.get(0), Some(3));
/// assert!(Example::new(&payloads[1]).get("label")?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    schema: SchemaRef,
    columns: Vec<EncodedColumn>,
    is_sequence: bool,
    buffers: Vec<CastBuffer>,
    payload: Vec<u8>,
    round_float64: bool,
    /// Set for the features of a data set.
    nested: Option<NestedRows>,
}

impl Encoder {
    /// Creates an encoder for record batches of a schema.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`]: a column has a type that no feature has, two columns have one name, or an option names no column.
    pub fn new(schema: &ArrowSchema, options: &EncoderOptions) -> Result<Encoder> {
        let columns = columns(schema, options)?;
        Ok(Encoder {
            schema: Arc::new(schema.clone()),
            is_sequence: !options.feature_lists.is_empty(),
            buffers: vec![CastBuffer::default(); columns.len()],
            columns,
            payload: Vec::new(),
            round_float64: options.round_float64,
            nested: None,
        })
    }

    /// Creates an encoder of records of a data set of TensorFlow Datasets, from columns as
    /// [`Converter::of_features`](crate::Converter::of_features) makes them: a struct for a dict, lists for
    /// sequences and shapes, bytes for pictures. A list of structs is a sequence too. Labels are numbers or
    /// names, and a label that is null is -1. A null elsewhere is an absent feature. Of the options only
    /// `round_float64` has a meaning here.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`]: a column is no feature, or has another form, or a feature is of an unknown class.
    pub fn of_features(
        features: &Features,
        schema: &ArrowSchema,
        options: &EncoderOptions,
    ) -> Result<Encoder> {
        Ok(Encoder {
            schema: Arc::new(schema.clone()),
            is_sequence: false,
            buffers: Vec::new(),
            columns: Vec::new(),
            payload: Vec::new(),
            round_float64: options.round_float64,
            nested: Some(NestedRows::new(features, schema)?),
        })
    }

    /// Calls `f` with the payload of each row, in order.
    ///
    /// # Errors
    /// All values are checked before the first call of `f`: [`ErrorKind::Value`] for a null inside a list, an
    /// integer above 2^63 - 1, and a Float64 beyond Float32; [`ErrorKind::Inexact`] for one that Float32 does
    /// not have exactly, unless it is rounded; [`ErrorKind::Batch`] for a batch of another schema.
    /// [`ErrorKind::Record`] for a payload of more than 2^31 - 1 bytes, and for the errors of `f`.
    pub fn encode(
        &mut self,
        batch: &RecordBatch,
        mut f: impl FnMut(&[u8]) -> tfseek::Result<()>,
    ) -> Result<()> {
        self.check(batch)?;
        if let Some(nested) = &mut self.nested {
            return nested.encode(batch, self.round_float64, f);
        }
        let schema = &self.schema;
        let named = |e: Error, column: &EncodedColumn| e.column_named(schema.field(column.number).name());
        let mut located = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let array = batch.columns().get(column.number).ok_or_else(other_schema)?;
            located.push(Located::new(array, column.is_list).map_err(|e| named(e, column))?);
        }
        let mut values = Vec::with_capacity(self.columns.len());
        for ((column, located), buffer) in self.columns.iter().zip(&located).zip(&mut self.buffers) {
            let found = LeafValues::new(located, buffer, self.round_float64);
            values.push(found.map_err(|e| named(e, column))?);
        }
        let mut steps = Vec::new();
        for (column, (located, values)) in self.columns.iter().zip(located.iter().zip(&values)) {
            let count = if column.is_list { located.features() } else { 0 };
            let mut of_column = collected(count, std::iter::empty())?;
            for step in 0..count {
                let leaves = located.feature(step);
                of_column.push(leaves.map_or(Ok(FeatureSlice::None), |leaves| values.feature(leaves))?);
            }
            steps.push(of_column);
        }
        let mut features = Vec::with_capacity(self.columns.len());
        let mut lists: Vec<(&str, &[FeatureSlice<'_>])> = Vec::with_capacity(self.columns.len());
        for row in 0..batch.num_rows() {
            features.clear();
            lists.clear();
            for ((column, steps), (located, values)) in
                self.columns.iter().zip(&steps).zip(located.iter().zip(&values))
            {
                let name = column.feature.as_str();
                if column.is_list {
                    lists.extend(located.steps(row).and_then(|range| Some((name, steps.get(range)?))));
                } else if let Some(leaves) = located.feature(row) {
                    features.push((name, values.feature(leaves)?));
                }
            }
            self.payload.clear();
            let put = if self.is_sequence {
                put_sequence_example(&features, &lists, &mut self.payload)
            } else {
                put_example(&features, &mut self.payload)
            };
            put.map_err(|error| Error::from(ErrorKind::Record(error)).in_row(row))?;
            f(&self.payload).map_err(ErrorKind::Record)?;
        }
        Ok(())
    }

    /// Checks that a batch has the types of the schema. Names and metadata come from the schema.
    fn check(&self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.schema.fields().len() {
            return Err(other_schema());
        }
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            if field.data_type() != column.data_type() {
                let expected = field.data_type();
                let found = column.data_type();
                let error =
                    Error::batch(format!("expected the type {expected} of the schema, found {found}"));
                return Err(error.column_named(field.name()));
            }
        }
        Ok(())
    }
}

fn other_schema() -> Error {
    Error::batch("expected a batch with the columns of the schema, found another number of columns")
}
