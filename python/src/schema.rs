//! `tfseek.Schema`: specs that were checked, and the parsers made of them.

use crate::columns::{self, BytesAs};
use crate::failure::{Failure, Result};
use crate::hooks;
use crate::rows::Payload;
use crate::wait::{self, Progress, Turn, Unit};
use crate::words::Word;
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::OnceLock;
use tfseek::BatchParser;
use tfseek::example::{KindGuess, MessageKind};
use tfseek::schema::Inference;

/// What columns to make of a record's features: checked once, used for all batches.
///
/// ``Schema(features)`` describes Examples, ``Schema(context_features=..., sequence_features=...)`` SequenceExamples; the
/// arguments are dicts of feature specs. Every ``features`` argument of this package takes a dict or a ``Schema``; the latter
/// is faster where it is used again, as it keeps what it learned and the memory of batches that are gone.
///
/// Raises :class:`tfseek.SpecError` for what is refused, with ``.feature``.
#[pyclass(frozen, module = "tfseek", eq)]
pub(crate) struct Schema {
    schema: tfseek::Schema,
    /// One for each way in which byte strings may leave, as objects and as offsets, made when it is first used.
    parsers: (OnceLock<BatchParser>, OnceLock<BatchParser>),
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.schema == other.schema
    }
}

impl Schema {
    pub(crate) fn of(schema: tfseek::Schema) -> Schema {
        Schema { schema, parsers: Default::default() }
    }

    pub(crate) fn schema(&self) -> &tfseek::Schema {
        &self.schema
    }

    /// Byte strings that leave as offsets are copied where they are parsed: by the thread that does it.
    fn parser(&self, bytes_as: BytesAs) -> &BatchParser {
        let contiguous = bytes_as == BytesAs::Offsets;
        let place = if contiguous { &self.parsers.1 } else { &self.parsers.0 };
        place.get_or_init(|| BatchParser::new(&self.schema).contiguous_bytes(contiguous))
    }
}

#[pymethods]
impl Schema {
    #[new]
    #[pyo3(signature = (features=None, *, context_features=None, sequence_features=None))]
    fn new(
        py: Python<'_>,
        features: Option<Bound<'_, PyAny>>,
        context_features: Option<Bound<'_, PyAny>>,
        sequence_features: Option<Bound<'_, PyAny>>,
    ) -> Result<Schema> {
        let json = hooks::to_json(py)?
            .call1((features, context_features, sequence_features))?
            .extract::<String>()?;
        Schema::from_json(&json)
    }

    /// Reads the JSON form, which ``tfseek schema --json`` prints and ``docs/parsing.md`` describes.
    #[staticmethod]
    fn from_json(text: &str) -> Result<Schema> {
        Ok(Schema::of(tfseek::Schema::from_json(text)?))
    }

    /// The JSON form, sorted: equal schemas give equal text.
    fn to_json(&self) -> String {
        self.schema.to_json()
    }

    /// Python code that makes the same specs for TensorFlow.
    fn to_tensorflow(&self) -> String {
        tfseek::schema::code::python(&self.schema)
    }

    /// Whether it describes SequenceExamples.
    #[getter]
    fn is_sequence(&self) -> bool {
        self.schema.is_sequence()
    }

    /// The names of the columns of an Example or a context, sorted.
    #[getter]
    fn features(&self) -> Vec<&str> {
        self.schema.features().keys().map(String::as_str).collect()
    }

    /// The names of the columns of feature lists, sorted.
    #[getter]
    fn feature_lists(&self) -> Vec<&str> {
        self.schema.feature_lists().keys().map(String::as_str).collect()
    }

    #[getter]
    fn _is_empty(&self) -> bool {
        self.schema.features().is_empty() && self.schema.feature_lists().is_empty()
    }

    /// What the functions ``parse_...`` call.
    fn _parse<'py>(
        &self,
        py: Python<'py>,
        payloads: &Bound<'py, PyAny>,
        sequence: bool,
        single: bool,
        bytes_as: Word<BytesAs>,
    ) -> Result<Bound<'py, PyAny>> {
        if sequence != self.schema.is_sequence() {
            return Err(Failure::type_error(match sequence {
                true => "the schema is one of Examples: use parse_example or parse_single_example",
                false => {
                    "the schema is one of SequenceExamples: use parse_sequence_example or \
                          parse_single_sequence_example"
                }
            }));
        }
        let parser = self.parser(bytes_as.0);
        let batch = match single {
            true => {
                let payload = Payload::from_python(payloads)?;
                py.detach(|| parser.parse_single(&payload))?
            }
            false => {
                let payloads = Payload::all(payloads)?;
                py.detach(|| parser.parse(&payloads))?
            }
        };
        Ok(columns::batch(py, &batch, sequence, single, bytes_as.0)?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let from_json = py.get_type::<Schema>().getattr(intern!(py, "from_json"))?;
        Ok((from_json, (self.to_json(),)))
    }

    fn __repr__(&self) -> String {
        format!("tfseek.Schema.from_json('{}')", self.to_json().replace('\n', " ").trim())
    }
}

/// The schema that takes all these payloads and is as strict as that allows, as ``docs/parsing.md`` says.
///
/// ``payloads`` is an iterable of ``bytes`` or of records of a dataset, such as ``ds[:1000]``. Raises
/// :class:`tfseek.SpecError` where features were found with several kinds, or where the payloads are no Examples. ``progress`` is
/// shown in records, as :func:`tfseek.open` says.
#[pyfunction]
#[pyo3(signature = (payloads, *, progress=None))]
pub(crate) fn infer_schema(
    py: Python<'_>,
    payloads: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Schema> {
    let progress = Progress::new(py, progress, "schema", Unit::Records)?;
    wait::shown(progress, |progress| {
        // Records are collected, then their kind is told, then their features: a third of the way each.
        let total = payloads.len().ok().map(|len| len as u64);
        let collected = |count: u64| progress.map_or(Ok(()), |progress| progress.tell(count / 3, total));
        collected(0)?;
        let payloads = Payload::all_told(payloads, collected)?;
        let total = payloads.len() as u64;
        let (mut guessed, mut noted) = (payloads.iter(), payloads.iter());
        let (mut guess, mut seen) = (KindGuess::default(), None);
        wait::in_turns(py, progress, total / 3, total, |turn| {
            let done = |guessed: usize, noted: usize| total - ((guessed + noted) as u64).div_ceil(3);
            while let Some(payload) = guessed.next() {
                guess.add(payload.as_ref());
                if turn.is_over(Turn::VALUE + payload.as_ref().len() as u64) {
                    return Ok(done(guessed.len(), noted.len()));
                }
            }
            let seen = match &mut seen {
                Some(seen) => seen,
                None => seen.insert(Inference::new(guess.kind())?),
            };
            for payload in noted.by_ref() {
                seen.add(payload.as_ref())?;
                if turn.is_over(Turn::VALUE + payload.as_ref().len() as u64) {
                    break;
                }
            }
            Ok(done(guessed.len(), noted.len()))
        })?;
        let seen = seen.map_or_else(|| Inference::new(MessageKind::Example), Ok)?;
        Ok(Schema::of(seen.schema()?))
    })
}
