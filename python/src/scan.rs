//! `tfseek.Scan`: records as a stream of Arrow's C interface.
//!
//! A stream belongs to no interpreter: its functions are called by any thread, without the GIL, also while
//! the interpreter ends. It holds Rust objects only.

use crate::dataset::PyDataset;
use crate::error::{BindingError, Result, message};
use crate::foreign;
use crate::ids::{self, Ids};
use crate::options::{Choice, argument, is_within};
use crate::part::{self, PyPart};
use crate::remote::StorageOptions;
use crate::schema::PySchema;
use crate::tfds_scan::NestedSpec;
use crate::wait;
use crate::warning;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyDict};
use tfseek::error::Category;
use tfseek::{Filter, Verify};
use tfseek_arrow::{ByteStrings, Converter, Options, Scan, ScanReader, Tensors, c_stream, spec_of};
use tfseek_tools::wildcards::matches;

/// Returns the schema that reads the columns of an Arrow schema, the columns of text, the form of byte
/// strings, and true if arrays are tensors.
#[pyfunction]
pub(crate) fn arrow_spec(schema: &Bound<'_, PyAny>) -> Result<(PySchema, Vec<String>, &'static str, bool)> {
    let (schema, options) = spec_of(&foreign::arrow_schema(schema)?)?;
    let bytes = match options.bytes {
        ByteStrings::View => "view",
        ByteStrings::Auto => "auto",
        ByteStrings::Copy => "copy",
    };
    Ok((PySchema::of(schema), options.text.clone(), bytes, options.tensors == Tensors::Extension))
}

/// Returns an item that is no exception, and raises one. It then has no traceback, as no Python code raised
/// it.
#[pyfunction]
pub(crate) fn raise_if_error(item: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if item.is_instance_of::<PyException>() { Err(PyErr::from_value(item)) } else { Ok(item) }
}

/// What a scan reads.
#[derive(FromPyObject)]
enum ScanSpec<'py> {
    Schema(Bound<'py, PySchema>),
    Nested(Bound<'py, NestedSpec>),
}

impl ScanSpec<'_> {
    /// Returns true for the name of a feature list that no feature has.
    fn is_list(&self, name: &str) -> bool {
        match self {
            ScanSpec::Schema(schema) => {
                let schema = schema.get().schema();
                schema.feature_lists().contains_key(name) && !schema.features().contains_key(name)
            }
            ScanSpec::Nested(_) => false,
        }
    }

    /// Returns a condition that knows the names of labels.
    fn named(&self, condition: Filter) -> Result<Filter> {
        match self {
            ScanSpec::Schema(_) => Ok(condition),
            ScanSpec::Nested(spec) => Ok(spec.get().named(&condition)?),
        }
    }

    fn converter(&self, options: Options) -> Result<Converter, tfseek_arrow::Error> {
        match self {
            ScanSpec::Schema(schema) => Converter::new(schema.get().schema(), &options),
            ScanSpec::Nested(spec) => spec.get().converter(options),
        }
    }
}

/// Columns of text: all columns of byte strings or none, or names and patterns.
#[derive(FromPyObject)]
enum TextColumns {
    All(bool),
    Named(Vec<String>),
}

impl TextColumns {
    /// Returns the names of the columns, some of `strings`.
    fn named(self, strings: &[&str]) -> Result<Vec<String>> {
        let TextColumns::Named(patterns) = self else {
            let all = matches!(self, TextColumns::All(true));
            return Ok(strings.iter().filter(|_| all).map(|&name| name.to_owned()).collect());
        };
        let mut found = Vec::new();
        for pattern in patterns {
            if !pattern.contains(['*', '?']) || strings.contains(&pattern.as_str()) {
                found.push(pattern);
                continue;
            }
            let before = found.len();
            found.extend(strings.iter().filter(|name| matches(&pattern, name)).map(|&name| name.to_owned()));
            if found.len() == before {
                let reason =
                    format!("text: expected a column of byte strings that matches {pattern}, found none");
                return Err(tfseek_arrow::Error::from(tfseek_arrow::ErrorKind::Schema(reason.into())).into());
            }
        }
        Ok(found)
    }
}

/// Returns the columns of a scan in the order in which their features were asked for: by name, or by the path
/// of a nested one.
fn in_order(scan: &Scan, names: &[String], renamed: &[(String, String)]) -> Vec<String> {
    let fields = scan.schema().fields().iter();
    let mut columns: Vec<String> = fields.map(|field| field.name().clone()).collect();
    columns.sort_by_key(|column| {
        let from = renamed.iter().find(|(_, to)| to == column).map_or(column.as_str(), |(from, _)| from);
        names.iter().position(|name| is_within(name, from))
    });
    columns
}

/// Returns the scan of parts of shards, and true if they are objects.
fn of_parts(parts: &[Py<PyPart>], storage: StorageOptions, converter: &Converter) -> Result<(Scan, bool)> {
    let (parts, store) = part::with_store(parts, storage)?;
    let scan = Scan::of_parts(parts, converter);
    Ok(match store {
        Some(store) => (scan.store(store), true),
        None => (scan, false),
    })
}

/// Returns the scan of the records of a view, or of the given ones.
fn of_dataset(
    py: Python<'_>,
    dataset: &PyDataset,
    records: Option<&Bound<'_, PyAny>>,
    converter: &Converter,
) -> Result<Scan> {
    let whole = &dataset.shared.dataset;
    let records = match records {
        Some(records) => Some(ids::numbers(py, &Ids::all(whole.len()), records)?),
        None => dataset.view_ids().map(|ids| ids.iter().collect()),
    };
    let scan = Scan::with_converter(whole, converter).loaded_columns(&dataset.shared.columns);
    Ok(match records {
        Some(records) => scan.records(records),
        None => scan,
    })
}

/// The batches of a scan, with errors as the package words them.
struct WordedReader {
    reader: ScanReader,
    /// True if the spec was inferred from the first records.
    inferred: bool,
}

impl WordedReader {
    fn worded(&self, e: ArrowError) -> ArrowError {
        let ArrowError::ExternalError(e) = e else { return e };
        match e.downcast::<tfseek::Error>() {
            Ok(e) => {
                let mismatch = match e.category() {
                    Some(Category::MissingFeature | Category::CountMismatch | Category::KindMismatch) => true,
                    // The record has a feature without a spec.
                    Some(Category::BadSpec) => e.location().record.is_some(),
                    _ => false,
                };
                let hint = if self.inferred && mismatch {
                    "; the spec was inferred from the first records, and spec=tfseek.infer_schema(ds) infers it from all"
                } else {
                    ""
                };
                ArrowError::ExternalError(format!("{}{hint}", message(&e)).into())
            }
            Err(e) => ArrowError::ExternalError(e),
        }
    }
}

impl Iterator for WordedReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.reader.next()?;
        Some(next.map_err(|e| self.worded(e)))
    }
}

impl RecordBatchReader for WordedReader {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

/// The native part of `tfseek.Scan`.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct ScanCore {
    scan: Scan,
    /// Names of the columns of text.
    text: Vec<String>,
    /// True if the spec was inferred from the first records.
    inferred: bool,
    /// Mean bytes of a record, if the sizes of the shards are known.
    record_bytes: Option<u64>,
    /// True if records may have to be requested from a store.
    requests: bool,
}

impl ScanCore {
    /// Returns a scan with the same records or fewer columns.
    fn with(&self, scan: Scan) -> ScanCore {
        ScanCore { scan, text: self.text.clone(), ..*self }
    }
}

#[pymethods]
impl ScanCore {
    /// `arguments` contains all arguments of `Dataset.scan` or of `tfseek.scan`.
    #[new]
    fn new(py: Python<'_>, arguments: &Bound<'_, PyDict>) -> Result<ScanCore> {
        let spec: ScanSpec<'_> = argument(arguments, "schema")?;
        let Choice::<ByteStrings>(bytes) = argument(arguments, "bytes")?;
        let Choice::<Tensors>(tensors) = argument(arguments, "tensors")?;
        let mut options = Options::new().bytes(bytes).tensors(tensors);
        options.deny_unknown = argument(arguments, "complete")?;
        for (from, to) in argument::<Vec<(String, String)>>(arguments, "rename")? {
            let is_list = spec.is_list(&from);
            options = if is_list { options.rename_list(from, to) } else { options.rename(from, to) };
        }
        let strings = spec.converter(options.clone())?;
        let text = argument::<TextColumns>(arguments, "text")?.named(&strings.byte_strings())?;
        let options = text.iter().fold(options, |options, column| options.text(column));
        let converter = spec.converter(options)?;
        let inferred = argument(arguments, "inferred")?;
        let mut record_bytes = None;
        let parts: Option<Vec<Py<PyPart>>> = argument(arguments, "parts")?;
        let storage = StorageOptions::take(arguments)?;
        let (mut scan, requests) = match parts {
            Some(parts) => of_parts(&parts, storage, &converter)?,
            None => {
                let dataset: Py<PyDataset> = argument(arguments, "dataset")?;
                let dataset = dataset.get();
                let whole = &dataset.shared.dataset;
                record_bytes = whole.known_bytes().and_then(|bytes| bytes.checked_div(whole.len()));
                let records = argument::<Option<Bound<'_, PyAny>>>(arguments, "records")?;
                (of_dataset(py, dataset, records.as_ref(), &converter)?, dataset.shared.is_remote)
            }
        };
        if let Some(names) = argument::<Option<Vec<String>>>(arguments, "columns")? {
            let renamed = argument::<Vec<(String, String)>>(arguments, "rename")?;
            let columns = in_order(&scan, &names, &renamed);
            scan = scan.project(&columns)?;
        }
        if let Some(condition) = argument::<Option<String>>(arguments, "where")? {
            scan = scan.filter(spec.named(condition.parse()?)?);
        }
        if let Some(column) = argument::<Option<String>>(arguments, "record")? {
            scan = scan.record(&column)?;
        }
        if let Some(rows) = argument::<Option<usize>>(arguments, "batch_rows")? {
            scan = scan.batch_rows(rows);
        }
        scan = scan.threads(argument::<Option<usize>>(arguments, "threads")?);
        if let Some(Choice(verify)) = argument::<Option<Choice<Verify>>>(arguments, "verify")? {
            scan = scan.verify(verify);
        }
        Ok(ScanCore { scan, text, inferred, record_bytes, requests })
    }

    /// Number of records, before a condition is evaluated.
    #[getter]
    fn rows(&self) -> Option<u64> {
        self.scan.rows()
    }

    /// Mean bytes of a record, if the sizes of the shards are known.
    #[getter]
    fn record_bytes(&self) -> Option<u64> {
        self.record_bytes
    }

    /// Returns the scan of these columns, and of the record numbers.
    fn project(&self, columns: Vec<String>) -> Result<ScanCore> {
        Ok(self.with(self.scan.project(&columns)?))
    }

    /// Returns the scan of the records at positions `start..stop`.
    fn slice(&self, start: u64, stop: u64) -> Result<ScanCore> {
        Ok(self.with(self.scan.slice(start..stop)?))
    }

    /// Returns the scan of the records with these numbers: little-endian integers of 64 bits.
    fn numbered(&self, numbers: PyBackedBytes) -> ScanCore {
        let (numbers, _) = numbers.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        self.with(self.scan.clone().records(numbers))
    }

    /// Returns the scan of column files in place of records, if each column has one.
    fn over_columns(&self, py: Python<'_>) -> Result<Option<ScanCore>> {
        let scan = self.scan.clone();
        let found = wait::run(py, None, self.requests, move |_| Ok(scan.over_columns()?))?;
        Ok(found.map(|scan| self.with(scan)))
    }

    /// Names of the columns, in their order.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.scan.schema().fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Names of the columns of text.
    #[getter]
    fn text(&self) -> &[String] {
        &self.text
    }

    /// Returns the schema as a capsule of Arrow's C interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&**self.scan.schema());
        let schema = schema.map_err(|e| BindingError::Text(e.to_string()))?;
        Ok(PyCapsule::new_with_value(py, schema, c"arrow_schema")?)
    }

    /// Returns a new stream as a capsule of Arrow's C interface. Finds the records that meet the condition.
    ///
    /// Consumers request no other schema. The interface allows to ignore it.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let scan = self.scan.clone();
        let reader = wait::run(py, None, self.requests, move |_| {
            let mut reader = scan.reader()?;
            // Warnings about names are the first batch's.
            reader.peek();
            Ok(reader)
        })?;
        warning::raise(py, reader.warnings())?;
        let reader = WordedReader { reader, inferred: self.inferred };
        Ok(PyCapsule::new_with_value(py, c_stream(reader), c"arrow_array_stream")?)
    }
}
