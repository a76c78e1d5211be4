//! Records as the rows of a table.

use super::progress::PassProgress;
use super::{data_set, exact};
use crate::error::ConvertError;
use crate::options::{ExportOptions, TableNotes};
use crate::records::SelectedRecords;
use arrow_array::RecordBatch;
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use std::collections::HashMap;
use std::sync::Arc;
use tfseek::Warning;
use tfseek_arrow::{ByteStrings, Converter, Options, Scan};
use tfseek_tools::wildcards::matches;

/// Key of the metadata of a table: the names of the columns that are feature lists, as a list in JSON. A list
/// of lists may be a column of any writer, and an Example cannot have it.
pub(super) const FEATURE_LISTS: &str = "tfseek.feature_lists";

/// Records as the rows of a table.
pub(super) struct Table<'a> {
    scan: Scan,
    pub(super) schema: SchemaRef,
    /// True if its schema was given, so that it may have names that no record has.
    is_given: bool,
    /// The warnings of the table, which are complete once its rows were read, and what else users see of it.
    pub(super) notes: TableNotes,
    progress: PassProgress<'a>,
}

impl<'a> Table<'a> {
    /// Returns the table of records. Those that are converted are read once for its schema, unless the
    /// options have one.
    pub(super) fn new(
        records: SelectedRecords<'_>,
        options: &ExportOptions,
        progress: &'a dyn Fn(u64),
    ) -> Result<Table<'a>, ConvertError> {
        let reads_twice = options.schema.is_none() && options.data_set.is_none();
        let share = if reads_twice { PassProgress::FIRST } else { 0 };
        let [first, progress] = PassProgress::two(progress, records.len(), share);
        let mut notes = TableNotes::default();
        let mut metadata = HashMap::new();
        let scan = if let (None, Some(features)) = (&options.schema, &options.data_set) {
            Scan::with_converter(records.ds, &data_set::converter(features, options)?)
        } else {
            let schema = match &options.schema {
                Some(schema) => schema.clone(),
                None => exact::observed(records, options, &first, &mut notes)?,
            };
            let schema = exact::selected(&schema, options)?;
            if schema.features().is_empty() && schema.feature_lists().is_empty() {
                let reason = "expected a feature with a kind, because a table needs a column, found none";
                return Err(ConvertError::Records(reason.into()));
            }
            if schema.is_sequence() {
                let lists: Vec<_> = schema.feature_lists().keys().collect();
                let lists =
                    serde_json::to_string(&lists).map_err(|e| ConvertError::Options(e.to_string()))?;
                metadata.insert(FEATURE_LISTS.to_owned(), lists);
            }
            let converter = Converter::new(&schema, &Options::new().bytes(ByteStrings::Copy))?;
            let arrow = data_set::with_text(options, &converter.byte_strings(), matches)?;
            Scan::new(records.ds, &schema, &arrow)?
        };
        let mut scan = scan.threads(options.threads);
        if let Some(only) = records.only {
            scan = scan.subset(only.clone());
        }
        let mut schema = ArrowSchema::clone(scan.schema());
        schema.metadata.extend(metadata);
        Ok(Table { scan, schema: Arc::new(schema), is_given: options.schema.is_some(), notes, progress })
    }

    /// Calls a function with the rows, and returns their number.
    pub(super) fn for_each(
        &mut self,
        mut f: impl FnMut(&RecordBatch) -> Result<(), ConvertError>,
    ) -> Result<u64, ConvertError> {
        let mut rows = 0u64;
        let mut reader = self.scan.reader()?;
        for batch in reader.by_ref() {
            let batch = batch.and_then(|batch| batch.with_schema(Arc::clone(&self.schema)))?;
            f(&batch)?;
            self.progress.add(batch.num_rows() as u64);
            rows += batch.num_rows() as u64;
        }
        let is_told = |found: &&Warning| self.is_given || found.kind() != "unknown_feature";
        self.notes.warnings = reader.warnings().iter().filter(is_told).cloned().collect();
        Ok(rows)
    }
}
