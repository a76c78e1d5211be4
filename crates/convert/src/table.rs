//! Records as the rows of a table.

use crate::data_set;
use crate::error::ConvertError;
use crate::exact;
use crate::options::{ExportOptions, TableNotes};
use crate::progress::PassProgress;
use crate::records::SelectedRecords;
use arrow_array::RecordBatch;
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tfseek::Warning;
use tfseek_arrow::{ByteStrings, Converter, Options, Scan};
use tfseek_tools::wildcards::matches;

/// Key of the metadata of a table: the names of the columns that are feature lists, as a list in JSON. A list
/// of lists may be a column of any writer, and an Example cannot have it.
pub(crate) const FEATURE_LISTS: &str = "tfseek.feature_lists";

/// Records as the rows of a table.
pub(crate) struct Table {
    scan: Scan,
    schema: SchemaRef,
    /// Number of features without a kind that the table does not have, and their names, if its schema is the
    /// records' schema.
    kindless: (u64, Vec<String>),
    /// True if its schema was given, so that it may have names that no record has.
    is_given: bool,
    /// Warnings about the names in its schema.
    warnings: RefCell<Vec<Warning>>,
}

impl Table {
    /// Returns true if the records are read once for the schema of their table.
    pub(crate) fn reads_twice(options: &ExportOptions) -> bool {
        options.schema.is_none() && options.data_set.is_none()
    }

    /// Returns the table of records. Those that are converted are read once for its schema, unless the
    /// options have one.
    pub(crate) fn new(
        records: SelectedRecords<'_>,
        options: &ExportOptions,
        progress: &PassProgress<'_>,
    ) -> Result<Table, ConvertError> {
        if let (None, Some(features)) = (&options.schema, &options.data_set) {
            let converter = data_set::converter(features, options)?;
            return Ok(Table::of(
                records,
                Scan::with_converter(records.ds, &converter),
                options,
                HashMap::new(),
            ));
        }
        let (schema, kindless) = match &options.schema {
            Some(schema) => (schema.clone(), Default::default()),
            None => exact::observed(records, options, progress)?,
        };
        let schema = exact::selected(&schema, options)?;
        if schema.features().is_empty() && schema.feature_lists().is_empty() {
            let reason = "expected a feature with a kind, because a table needs a column, found none";
            return Err(ConvertError::Records(reason.into()));
        }
        let mut arrow = Options::new().bytes(ByteStrings::Copy);
        let converter = Converter::new(&schema, &arrow)?;
        let strings = converter.byte_strings();
        for pattern in &options.text {
            let columns: Vec<&&str> = strings.iter().filter(|name| matches(pattern, name)).collect();
            if columns.is_empty() {
                let reason = "expected a feature of byte strings that matches";
                return Err(ConvertError::Options(format!("{reason} {pattern} for text, found none")));
            }
            arrow = columns.into_iter().fold(arrow, |arrow, name| arrow.text(*name));
        }
        let scan = Scan::new(records.ds, &schema, &arrow)?;
        let mut metadata = HashMap::new();
        if schema.is_sequence() {
            let lists: Vec<_> = schema.feature_lists().keys().collect();
            let lists = serde_json::to_string(&lists).map_err(|e| ConvertError::Options(e.to_string()))?;
            metadata.insert(FEATURE_LISTS.to_owned(), lists);
        }
        let is_given = options.schema.is_some();
        Ok(Table { kindless, is_given, ..Table::of(records, scan, options, metadata) })
    }

    /// Returns the table of the records of a scan.
    fn of(
        records: SelectedRecords<'_>,
        scan: Scan,
        options: &ExportOptions,
        metadata: HashMap<String, String>,
    ) -> Table {
        let mut scan = scan.threads(options.threads);
        if let Some(only) = records.only {
            scan = scan.subset(only.clone());
        }
        let mut schema = ArrowSchema::clone(scan.schema());
        schema.metadata.extend(metadata);
        let schema = Arc::new(schema);
        let kindless = Default::default();
        Table { schema, scan, kindless, is_given: false, warnings: RefCell::default() }
    }

    /// Returns the schema of the table.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Calls a function with the rows, and returns their number.
    pub(crate) fn for_each(
        &self,
        mut f: impl FnMut(&RecordBatch) -> Result<(), ConvertError>,
    ) -> Result<u64, ConvertError> {
        let mut rows = 0u64;
        let mut reader = self.scan.reader()?;
        for batch in reader.by_ref() {
            let batch = batch.and_then(|batch| batch.with_schema(Arc::clone(&self.schema)))?;
            f(&batch)?;
            rows += batch.num_rows() as u64;
        }
        let is_told = |found: &&Warning| self.is_given || found.kind() != "unknown_feature";
        self.warnings.replace(reader.warnings().iter().filter(is_told).cloned().collect());
        Ok(rows)
    }

    /// Returns what is to be said about the table, once its rows were read.
    pub(crate) fn into_notes(self) -> TableNotes {
        TableNotes { kindless: self.kindless, warnings: self.warnings.into_inner() }
    }
}
