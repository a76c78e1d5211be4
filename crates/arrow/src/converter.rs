//! `Converter`: batches of a schema as record batches.

use crate::arrays::array;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{ByteStrings, Options};
use crate::plan::{PlannedColumn, columns, parser_schema};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use std::collections::BTreeSet;
use std::sync::Arc;
use tfseek::batch::{Batch, BatchParser};
use tfseek::schema::{DType, Schema};

/// Returns the Arrow schema of the record batches of a schema.
///
/// # Errors
/// Those of [`Converter::new`].
pub fn schema_of(schema: &Schema, options: &Options) -> Result<ArrowSchema> {
    Ok(arrow_schema(&columns(schema, options)?))
}

fn arrow_schema(columns: &[PlannedColumn]) -> ArrowSchema {
    ArrowSchema::new(columns.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>())
}

/// A converter of batches of one schema to Arrow record batches. The [crate](crate) has an example.
#[derive(Clone, Debug)]
pub struct Converter {
    columns: Vec<PlannedColumn>,
    schema: SchemaRef,
    parser_schema: Schema,
    bytes: ByteStrings,
}

impl Converter {
    /// Creates a converter for a schema.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`]: two columns have one name, an option names no column or one of another type, or a dimension has more
    /// than 2^31 - 1 values.
    pub fn new(schema: &Schema, options: &Options) -> Result<Converter> {
        let columns = columns(schema, options)?;
        let parser_schema = parser_schema(schema)
            .map_err(|error| Error::from(ErrorKind::Schema(error.to_string().into())))?;
        let schema = Arc::new(arrow_schema(&columns));
        Ok(Converter { columns, schema, parser_schema, bytes: options.bytes })
    }

    /// Returns the schema of the record batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the schema that batches are parsed with, for a loader. It differs from the given one in its lists: they are ragged,
    /// so that neither sparse indices nor padding are made.
    pub fn parser_schema(&self) -> &Schema {
        &self.parser_schema
    }

    /// Returns a parser of batches for this converter. It records presence, so that absent lists are null. Keep it: it reuses the
    /// memory of record batches that were dropped.
    pub fn parser(&self) -> BatchParser {
        let contiguous = self.bytes == ByteStrings::Copy;
        BatchParser::new(&self.parser_schema).contiguous_bytes(contiguous).presence(true)
    }

    /// Converts a batch that was parsed with [`parser_schema`](Converter::parser_schema). The record batch shares its memory. If
    /// the parser does not record [presence](BatchParser::presence), absent lists are `[]`.
    ///
    /// # Errors
    /// [`ErrorKind::Text`] for a string of a text column that is not UTF-8, [`ErrorKind::TooLarge`] for more than 2^31 - 1 values or
    /// bytes, and [`ErrorKind::Batch`] for a batch of another schema or of a single record.
    pub fn record_batch(&self, batch: &Batch) -> Result<RecordBatch> {
        let arrays = self.arrays(batch)?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }

    /// Returns the converter of the columns with these names.
    pub(crate) fn project(&self, names: &[impl AsRef<str>]) -> Result<Converter> {
        let names: BTreeSet<&str> = names.iter().map(AsRef::as_ref).collect();
        let kept = |column: &&PlannedColumn| names.contains(column.field.name().as_str());
        let columns: Vec<PlannedColumn> = self.columns.iter().filter(kept).cloned().collect();
        let unknown = |name: &&&str| !columns.iter().any(|column| column.field.name() == **name);
        if let Some(unknown) = names.iter().find(unknown) {
            return Err(Error::schema(unknown, "expected the name of a column, found no such column"));
        }
        let reads = |name: &str, is_list| {
            columns.iter().any(|column| column.is_list == is_list && column.from == *name)
        };
        let schema = &self.parser_schema;
        let mut parser = if schema.is_sequence() { Schema::sequence_example() } else { Schema::example() };
        for (name, spec) in schema.features().iter().filter(|(name, _)| reads(name, false)) {
            parser = parser.feature(name, spec.clone());
        }
        for (name, spec) in schema.feature_lists().iter().filter(|(name, _)| reads(name, true)) {
            parser = parser.feature_list(name, spec.clone());
        }
        let schema = Arc::new(arrow_schema(&columns));
        Ok(Converter { columns, schema, parser_schema: parser.build()?, bytes: self.bytes })
    }

    /// Returns the columns, in the order of the schema.
    pub(crate) fn columns(&self) -> &[PlannedColumn] {
        &self.columns
    }

    /// Returns the columns of a batch, in the order of the schema.
    pub(crate) fn arrays(&self, batch: &Batch) -> Result<Vec<ArrayRef>> {
        let arrays = self
            .columns
            .iter()
            .map(|column| array(batch, column).map_err(|error| error.column_named(column.field.name())));
        arrays.collect()
    }

    /// Returns true if record batches may share byte strings with rows.
    pub(crate) fn shares_strings(&self) -> bool {
        let schema = &self.parser_schema;
        let mut specs = schema.features().values().chain(schema.feature_lists().values());
        self.bytes == ByteStrings::View && specs.any(|spec| spec.dtype() == DType::Bytes)
    }
}
