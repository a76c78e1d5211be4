//! `Converter`: batches of a schema as record batches.

use crate::arrays::array;
use crate::error::{Error, ErrorKind, Result};
use crate::features::FeatureColumns;
use crate::options::{ByteStrings, Options};
use crate::plan::{PlannedColumn, columns, has_byte_strings, parser_schema};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema as ArrowSchema, SchemaRef};
use std::collections::BTreeSet;
use std::sync::Arc;
use tfseek::batch::{Batch, BatchParser};
use tfseek::schema::{DType, Schema};
use tfseek_tfds::{DecodeOptions, Features};

/// Returns the Arrow schema of the record batches of a schema.
///
/// # Errors
/// Errors of [`Converter::new`].
pub fn schema_of(schema: &Schema, options: &Options) -> Result<ArrowSchema> {
    Ok(arrow_schema(&columns(schema, options)?))
}

fn arrow_schema(columns: &[PlannedColumn]) -> ArrowSchema {
    ArrowSchema::new(columns.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>())
}

/// A converter of batches of one schema to Arrow record batches. The [crate](crate) has an example.
#[derive(Clone, Debug)]
pub struct Converter {
    columns: ConvertedColumns,
    schema: SchemaRef,
    bytes: ByteStrings,
    /// Records have no other features than the columns.
    deny_unknown: bool,
}

/// The columns of a converter, in the order of the schema.
#[derive(Clone, Debug)]
enum ConvertedColumns {
    Specs { columns: Vec<PlannedColumn>, parser_schema: Schema },
    Features(Arc<FeatureColumns>),
}

impl Converter {
    /// Creates a converter for a schema.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`]: two columns have one name, an option names no column or one of another type, or a dimension has more
    /// than 2^31 - 1 values.
    pub fn new(schema: &Schema, options: &Options) -> Result<Converter> {
        let columns = columns(schema, options)?;
        let parser_schema = parser_schema(schema).map_err(|e| ErrorKind::Schema(e.to_string().into()))?;
        let schema = Arc::new(arrow_schema(&columns));
        let columns = ConvertedColumns::Specs { columns, parser_schema };
        Ok(Converter { columns, schema, bytes: options.bytes, deny_unknown: options.deny_unknown })
    }

    /// Creates a converter for the features of a data set of TensorFlow Datasets. Its columns have decoded
    /// values.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`]: a selected feature has no Arrow type, or the options name a feature that the
    /// data set does not have.
    pub fn of_features(
        features: &Arc<Features>,
        decode: &DecodeOptions,
        options: &Options,
    ) -> Result<Converter> {
        Ok(Converter::with(FeatureColumns::new(features, decode, options)?, options.bytes))
    }

    fn with(columns: FeatureColumns, bytes: ByteStrings) -> Converter {
        let schema = Arc::new(ArrowSchema::new(columns.fields()));
        Converter {
            columns: ConvertedColumns::Features(Arc::new(columns)),
            schema,
            bytes,
            deny_unknown: false,
        }
    }

    /// Returns the schema of the record batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the names of the columns of byte strings that are not text: those that [`Options::text`]
    /// accepts. Of a data set they are paths of features, without the paths of files.
    pub fn byte_strings(&self) -> Vec<&str> {
        match &self.columns {
            ConvertedColumns::Specs { .. } => {
                let strings = |field: &&FieldRef| has_byte_strings(field.data_type());
                self.schema.fields().iter().filter(strings).map(|field| field.name().as_str()).collect()
            }
            ConvertedColumns::Features(columns) => columns.byte_strings(),
        }
    }

    /// Returns the schema that batches are parsed with, for a loader with [`parser`](Converter::parser). It
    /// differs from the given one in its lists: they are ragged, so that neither sparse indices nor padding
    /// are made. Of a data set it is the schema of the stored features.
    pub fn parser_schema(&self) -> &Schema {
        match &self.columns {
            ConvertedColumns::Specs { parser_schema, .. } => parser_schema,
            ConvertedColumns::Features(columns) => columns.schema(),
        }
    }

    /// Returns a parser of batches for this converter. It records presence, so that absent lists are null.
    /// Keep it: it reuses the memory of record batches that were dropped.
    pub fn parser(&self) -> BatchParser {
        let contiguous = self.bytes == ByteStrings::Copy;
        match &self.columns {
            ConvertedColumns::Specs { parser_schema, .. } => {
                let parser = BatchParser::new(parser_schema).contiguous_bytes(contiguous).presence(true);
                parser.deny_unknown(self.deny_unknown)
            }
            ConvertedColumns::Features(columns) => columns.parser(),
        }
    }

    /// Converts a batch that was parsed with [`parser_schema`](Converter::parser_schema). The record batch
    /// shares its memory. If the parser does not record [presence](BatchParser::presence), absent lists are
    /// `[]`.
    ///
    /// # Errors
    /// [`ErrorKind::Text`] for a string of a text column that is not UTF-8, [`ErrorKind::TooLarge`] for more
    /// than 2^31 - 1 values or bytes, and [`ErrorKind::Batch`] for a batch of another schema or of a single
    /// record.
    pub fn record_batch(&self, batch: &Batch) -> Result<RecordBatch> {
        let arrays = self.arrays(batch)?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }

    /// Returns the converter of the columns with these names, in their order.
    pub(crate) fn project(&self, names: &[impl AsRef<str>]) -> Result<Converter> {
        let mut seen = BTreeSet::new();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).filter(|name| seen.insert(*name)).collect();
        let unknown = |name: &&&str| self.schema.fields().iter().all(|field| field.name() != **name);
        if let Some(unknown) = names.iter().find(unknown) {
            return Err(Error::schema(unknown, "expected the name of a column, found no such column"));
        }
        let (columns, schema) = match &self.columns {
            ConvertedColumns::Features(columns) => {
                return Ok(Converter::with(columns.project(&names)?, self.bytes));
            }
            ConvertedColumns::Specs { columns, parser_schema } => (columns, parser_schema),
        };
        let find = |name: &&str| columns.iter().find(|column| column.field.name() == *name);
        let columns: Vec<PlannedColumn> = names.iter().filter_map(find).cloned().collect();
        let reads = |name: &str, is_list| {
            columns.iter().any(|column| column.is_list == is_list && column.from == *name)
        };
        let mut parser = if schema.is_sequence() { Schema::sequence_example() } else { Schema::example() };
        for (name, spec) in schema.features().iter().filter(|(name, _)| reads(name, false)) {
            parser = parser.feature(name, spec.clone());
        }
        for (name, spec) in schema.feature_lists().iter().filter(|(name, _)| reads(name, true)) {
            parser = parser.feature_list(name, spec.clone());
        }
        let deny_unknown = self.deny_unknown && columns.len() == self.schema.fields().len();
        let schema = Arc::new(arrow_schema(&columns));
        let columns = ConvertedColumns::Specs { columns, parser_schema: parser.build()? };
        Ok(Converter { columns, schema, bytes: self.bytes, deny_unknown })
    }

    /// Returns the columns of specs, in the order of the schema. `None` for the columns of a data set, and if
    /// all features of a record must be columns, which only the record tells.
    pub(crate) fn columns(&self) -> Option<&[PlannedColumn]> {
        match &self.columns {
            ConvertedColumns::Specs { columns, .. } if !self.deny_unknown => Some(columns),
            _ => None,
        }
    }

    /// Returns the columns of a batch, in the order of the schema.
    pub(crate) fn arrays(&self, batch: &Batch) -> Result<Vec<ArrayRef>> {
        let columns = match &self.columns {
            ConvertedColumns::Specs { columns, .. } => columns,
            ConvertedColumns::Features(columns) => return columns.arrays(batch),
        };
        let arrays = columns
            .iter()
            .map(|column| array(batch, column).map_err(|error| error.column_named(column.field.name())));
        arrays.collect()
    }

    /// Returns true if record batches may share byte strings with rows.
    pub(crate) fn shares_strings(&self) -> bool {
        let schema = self.parser_schema();
        let mut specs = schema.features().values().chain(schema.feature_lists().values());
        self.bytes != ByteStrings::Copy && specs.any(|spec| spec.dtype() == DType::Bytes)
    }
}
