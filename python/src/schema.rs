//! `tfseek.Schema`: validated specs and their parsers.

use crate::columns;
use crate::error::{self, BindingError, Result};
use crate::forms::SharedForms;
use crate::hooks;
use crate::options::{Choice, Seed};
use crate::rows::{self, PyPayload, PySeeds, SeededRow, type_name};
use crate::strings::BytesAs;
use crate::wait::{self, Progress, TimeSlice, Unit};
use crate::warning;
use pyo3::intern;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tfseek::batch::{Batch, Row};
use tfseek::example::{KindGuess, MessageKind};
use tfseek::{BatchParser, Error, FeatureSpec, Warning};
use tfseek_image::DecoderPool;
use tfseek_tools::{Inference, ToolsError, tfx};

/// The features to parse and the columns to return, validated once and used for all batches.
///
/// ``Schema(features)`` describes Examples, ``Schema(context_features=..., sequence_features=...)``
/// SequenceExamples. The arguments are dicts of feature specs. Every ``features`` argument of this package
/// accepts a dict or a ``Schema``. A ``Schema`` that is used several times is faster, because it keeps its
/// parser and reuses the memory of released batches.
///
/// Raises :class:`tfseek.SpecError` for an invalid spec, with ``.feature``.
#[pyclass(frozen, module = "tfseek", name = "Schema", eq)]
pub(crate) struct PySchema {
    schema: tfseek::Schema,
    /// Parsers for byte strings as objects and as offsets. Each is created at first use.
    parsers: (OnceLock<BatchParser>, OnceLock<BatchParser>),
    forms: SharedForms,
}

impl PartialEq for PySchema {
    fn eq(&self, other: &PySchema) -> bool {
        self.schema == other.schema
    }
}

/// Payload bytes below which a record without pictures is parsed while the GIL is held.
const SHORT: usize = 4 << 10;

/// Returns a parser that decodes the pictures of a schema that has some.
pub(crate) fn decoding(schema: &tfseek::Schema) -> BatchParser {
    let parser = BatchParser::new(schema);
    if has_pictures(schema) { parser.decoder(Arc::new(DecoderPool::default())) } else { parser }
}

fn has_pictures(schema: &tfseek::Schema) -> bool {
    let mut specs = schema.features().values().chain(schema.feature_lists().values());
    specs.any(|spec| matches!(spec.of_string(), FeatureSpec::Image(_)))
}

/// Returns the names of the features that are pictures without a common size.
pub(crate) fn open_pictures(schema: &tfseek::Schema) -> impl Iterator<Item = &String> {
    let specs = schema.features().iter();
    let open = specs.filter(|(_, spec)| matches!(spec, FeatureSpec::Image(image) if image.size.is_none()));
    open.map(|(name, _)| name)
}

impl PySchema {
    pub(crate) fn of(schema: tfseek::Schema) -> PySchema {
        PySchema { schema, parsers: Default::default(), forms: SharedForms::default() }
    }

    pub(crate) fn schema(&self) -> &tfseek::Schema {
        &self.schema
    }

    /// Returns the parser. For [contiguous](BytesAs::is_contiguous) strings, the thread that parses a record
    /// copies them together.
    pub(crate) fn parser(&self, bytes_as: BytesAs) -> &BatchParser {
        let contiguous = bytes_as.is_contiguous();
        let parser = if contiguous { &self.parsers.1 } else { &self.parsers.0 };
        parser.get_or_init(|| decoding(&self.schema).contiguous_bytes(contiguous))
    }

    /// Parses one record. That of a dataset has a number.
    pub(crate) fn single<'py>(
        &self,
        py: Python<'py>,
        row: PyPayload,
        bytes_as: BytesAs,
        number: Option<u64>,
        seeds: PySeeds,
    ) -> Result<Bound<'py, PyAny>> {
        let parser = self.parser(bytes_as);
        let row = SeededRow { row, seeds, number: number.unwrap_or_default() };
        if number.is_some() {
            // The names of one record say nothing about the others.
            parser.unknown_names(std::slice::from_ref(&row))?;
        }
        // Equal specs share a parser, so what it has parsed may be of other data sets, and is no hint in an
        // error.
        let anew = |e| if number.is_some() { Err(e) } else { parser.clone().parse_single(&row) };
        let parse = || parser.parse_single(&row).or_else(anew);
        // Other threads would wait longer for the GIL than this one needs it.
        let is_short = row.payload().len() < SHORT && !has_pictures(&self.schema);
        let batch = if is_short { parse() } else { py.detach(parse) }?;
        Ok(self.batch(py, &batch, true, bytes_as)?)
    }

    /// Converts a batch of one of the parsers.
    pub(crate) fn batch<'py>(
        &self,
        py: Python<'py>,
        batch: &Batch,
        single: bool,
        bytes_as: BytesAs,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_sequence = self.schema.is_sequence();
        let found = columns::batch(py, batch, is_sequence, single, bytes_as, Some(&self.forms))?;
        if !single {
            columns::list_pictures(&found, is_sequence, open_pictures(&self.schema))?;
        }
        Ok(found)
    }
}

#[pymethods]
impl PySchema {
    #[new]
    #[pyo3(signature = (features=None, *, context_features=None, sequence_features=None))]
    fn new(
        py: Python<'_>,
        features: Option<Bound<'_, PyAny>>,
        context_features: Option<Bound<'_, PyAny>>,
        sequence_features: Option<Bound<'_, PyAny>>,
    ) -> Result<PySchema> {
        let json = hooks::to_json(py)?
            .call1((features, context_features, sequence_features))?
            .extract::<String>()?;
        PySchema::from_json(&json)
    }

    /// Reads the JSON form. ``tfseek schema --json`` prints it, and ``docs/parsing.md`` describes it.
    #[staticmethod]
    fn from_json(text: &str) -> Result<PySchema> {
        Ok(PySchema::of(tfseek::Schema::from_json(text)?))
    }

    /// Reads the schema in a file: the JSON form, or TFX's text format (``schema.pbtxt``) with the columns that
    /// TensorFlow Transform makes of it. ``docs/parsing.md`` has the rules.
    ///
    /// ``path`` is the path of a local file, or a file that is open, for example one of fsspec.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: &Bound<'_, PyAny>) -> Result<PySchema> {
        let (path, bytes) = content(py, path)?;
        let reason = match String::from_utf8(bytes).map(|text| tfx::read_columns(&text)) {
            Ok(Ok(schema)) => return Ok(PySchema::of(schema)),
            Ok(Err(ToolsError::Error(e))) => {
                return Err(if let Some(path) = path { e.in_file(&path) } else { e }.into());
            }
            Ok(Err(e)) => format!("expected a schema as JSON or in text format: {e}"),
            Err(_) => "expected a schema, found bytes that are not UTF-8".to_owned(),
        };
        Err(error::of_schema_file(py, path.as_deref(), &reason).into())
    }

    /// Returns the JSON form, sorted. Equal schemas have equal JSON.
    fn to_json(&self) -> String {
        self.schema.to_json()
    }

    /// Returns Python code that creates the same specs for TensorFlow.
    fn to_tensorflow(&self) -> String {
        tfseek_tools::schema_code::python(&self.schema)
    }

    /// True if the schema describes SequenceExamples.
    #[getter]
    fn is_sequence(&self) -> bool {
        self.schema.is_sequence()
    }

    /// Names of the columns of an Example or a context, sorted, without the geometries of pictures.
    #[getter]
    fn features(&self) -> Vec<&str> {
        self.schema.features().keys().map(String::as_str).collect()
    }

    /// Names of the columns of feature lists, sorted.
    #[getter]
    fn feature_lists(&self) -> Vec<&str> {
        self.schema.feature_lists().keys().map(String::as_str).collect()
    }

    #[getter]
    fn _is_empty(&self) -> bool {
        self.schema.features().is_empty() && self.schema.feature_lists().is_empty()
    }

    /// Returns a schema of the columns with these names. A name may be that of a feature and of a feature
    /// list.
    fn _of_columns(&self, columns: Vec<String>) -> Result<PySchema> {
        let is_kept = |name: &&String| columns.iter().any(|column| column == *name);
        let schema = &self.schema;
        let mut builder =
            if schema.is_sequence() { tfseek::Schema::sequence_example() } else { tfseek::Schema::example() };
        for (name, spec) in schema.features().iter().filter(|(name, _)| is_kept(name)) {
            builder = builder.feature(name, spec.clone());
        }
        for (name, spec) in schema.feature_lists().iter().filter(|(name, _)| is_kept(name)) {
            builder = builder.feature_list(name, spec.clone());
        }
        Ok(PySchema::of(builder.build()?))
    }

    /// Parses payloads. The functions ``parse_...`` call it, and the readers of data sets, which refuse other
    /// messages.
    #[pyo3(signature = (payloads, sequence, single, bytes_as, numbers=None, seeds=(Seed(0), 0)))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of all functions that parse")]
    fn _parse<'py>(
        &self,
        py: Python<'py>,
        payloads: &Bound<'py, PyAny>,
        sequence: bool,
        single: bool,
        bytes_as: Choice<BytesAs>,
        numbers: Option<Vec<u64>>,
        seeds: PySeeds,
    ) -> Result<Bound<'py, PyAny>> {
        let of_dataset = numbers.is_some();
        if sequence != self.schema.is_sequence() {
            return Err(BindingError::type_error(if sequence {
                "the schema describes Examples: use parse_example or parse_single_example"
            } else {
                "the schema describes SequenceExamples: use parse_sequence_example or parse_single_sequence_example"
            }));
        }
        let parser = self.parser(bytes_as.0);
        let (one, many) = if sequence {
            ("parse_single_sequence_example", "parse_sequence_example")
        } else {
            ("parse_single_example", "parse_example")
        };
        if single {
            let payload = PyPayload::from_python(payloads).map_err(|_| {
                BindingError::type_error(format!(
                    "payload: expected one record (bytes, Example or SequenceExample), found {}; {many} parses several",
                    type_name(payloads)
                ))
            })?;
            let number = rows::only_number(numbers.as_deref())?;
            return self.single(py, payload, bytes_as.0, number, seeds);
        }
        if let Some(found) = PyPayload::single_name(payloads) {
            return Err(BindingError::type_error(format!(
                "payloads: expected an iterable of records, found one record ({found}); use {one}"
            )));
        }
        let payloads = SeededRow::all(PyPayload::all(payloads)?, seeds, numbers);
        let parsed = || {
            let names = parser.unknown_names(&payloads);
            let anew = |e| if of_dataset { Err(e) } else { parser.clone().parse(&payloads) };
            let batch = parser.parse(&payloads).or_else(anew);
            // As TensorFlow, the functions parse any message. A few records may all lack a feature.
            let mut warnings = if of_dataset { names? } else { names.unwrap_or_else(|_| Vec::new()) };
            warnings.retain(|found| !matches!(found, Warning::AbsentFeature { place: None, .. }));
            Ok::<_, tfseek::Error>((batch?, warnings))
        };
        let (batch, warnings) = py.detach(parsed)?;
        warning::raise(py, &warnings)?;
        Ok(self.batch(py, &batch, false, bytes_as.0)?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let from_json = py.get_type::<PySchema>().getattr(intern!(py, "from_json"))?;
        Ok((from_json, (self.to_json(),)))
    }

    fn __repr__(&self) -> String {
        let json = self.to_json();
        let lines: Vec<&str> = json.lines().map(str::trim).collect();
        format!("tfseek.Schema.from_json('{}')", lines.join(" "))
    }
}

/// Returns the path and the bytes of a file, which is given by its path or open.
fn content(py: Python<'_>, file: &Bound<'_, PyAny>) -> Result<(Option<PathBuf>, Vec<u8>)> {
    if !file.hasattr(intern!(py, "read"))? {
        let path = file.extract::<PathBuf>()?;
        let bytes = py.detach(|| std::fs::read(&path)).map_err(|e| Error::from(e).in_file(&path))?;
        return Ok((Some(path), bytes));
    }
    let found = file.call_method0(intern!(py, "read"))?;
    let bytes = match found.extract::<String>() {
        Ok(text) => text.into_bytes(),
        Err(_) => found.extract()?,
    };
    Ok((file.getattr(intern!(py, "name")).ok().and_then(|name| name.extract().ok()), bytes))
}

/// Infers the strictest schema that accepts all payloads. ``docs/parsing.md`` has the rules.
///
/// ``payloads`` is an iterable of ``bytes`` or of records of a dataset, for example ``ds[:1000]``.
/// ``progress`` counts records; :func:`tfseek.open` describes it.
///
/// Raises :class:`tfseek.SpecError` if a feature has several kinds, or if the payloads are not Examples.
/// Features that no payload has with a kind are left out, with a :class:`tfseek.Warning` that names them.
#[pyfunction]
#[pyo3(signature = (payloads, *, progress=None))]
pub(crate) fn infer_schema(
    py: Python<'_>,
    payloads: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<PySchema> {
    if let Some(found) = PyPayload::single_name(payloads) {
        return Err(BindingError::type_error(format!(
            "payloads: expected an iterable of records, found one record ({found}); pass a list of it"
        )));
    }
    let progress = Progress::new(py, progress, "schema", Unit::Records)?;
    let inference = infer(py, payloads, progress)?;
    let schema = inference.schema()?;
    warning::raise_kindless(py, &inference)?;
    Ok(PySchema::of(schema))
}

/// Returns the features of these columns of payloads. That another feature has several kinds does not matter.
pub(crate) fn infer_columns(
    py: Python<'_>,
    payloads: &Bound<'_, PyAny>,
    columns: &[String],
) -> Result<PySchema> {
    let inference = infer(py, payloads, None)?;
    let asked = |name: &str| columns.iter().any(|column| column == name);
    if let Some(conflict) =
        inference.findings().filter(|found| asked(found.name)).find_map(|found| found.conflict())
    {
        return Err(conflict.into());
    }
    Ok(PySchema::of(inference.schema_without_conflicts()?))
}

fn infer<'py>(
    py: Python<'py>,
    payloads: &Bound<'_, PyAny>,
    progress: Option<Progress<'py>>,
) -> Result<Inference> {
    wait::shown(progress, |progress| {
        // Three phases of equal length: collect the payloads, guess their message type, infer their features.
        let total = payloads.len().ok().map(|len| len as u64);
        let collected = |count: u64| Progress::report(progress, count / 3, total);
        collected(0)?;
        let payloads = PyPayload::all_reported(payloads, collected)?;
        let total = payloads.len() as u64;
        let mut to_guess = payloads.iter();
        let mut to_infer = payloads.iter();
        let mut guess = KindGuess::default();
        let mut inference = None;
        wait::in_slices(py, progress, total / 3, total, |slice| {
            let done = |to_guess: usize, to_infer: usize| total - ((to_guess + to_infer) as u64).div_ceil(3);
            while let Some(payload) = to_guess.next() {
                guess.add(payload.as_ref());
                if slice.is_over(TimeSlice::VALUE + payload.as_ref().len() as u64) {
                    return Ok(done(to_guess.len(), to_infer.len()));
                }
            }
            let inference = match &mut inference {
                Some(inference) => inference,
                None => inference.insert(Inference::new(guess.kind())?),
            };
            for payload in to_infer.by_ref() {
                inference.add(payload.as_ref())?;
                if slice.is_over(TimeSlice::VALUE + payload.as_ref().len() as u64) {
                    break;
                }
            }
            Ok(done(to_guess.len(), to_infer.len()))
        })?;
        Ok(inference.map_or_else(|| Inference::new(MessageKind::Example), Ok)?)
    })
}
