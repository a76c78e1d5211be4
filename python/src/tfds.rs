//! The features of a data set of `tfseek.tfds`, and the decoder of its records.

use crate::columns;
use crate::dataset::PyDataset;
use crate::error::{BindingError, Result, tfds_exception};
use crate::headroom;
use crate::hooks;
use crate::ids::{self, Ids};
use crate::iter::Windows;
use crate::options::{Choice, ConditionText, Seed, is_within};
use crate::rows::{self, PyPayload, PySeeds, SeededRow};
use crate::schema::PySchema;
use crate::shared::SharedDataset;
use crate::strings::BytesAs;
use crate::tfds_batch::Nesting;
use crate::tfds_scan::{NestedSpec, check_digest, digest, read_features};
use crate::tfds_value as values;
use crate::wait::{self, Progress, TimeSlice, Unit, locked};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use tfseek::schema::{FeatureSpec, ImageSpec};
use tfseek::{BatchParser, ErrorKind};
use tfseek_arrow::ClassLabels;
use tfseek_tfds::{
    DecodeOptions, Decoder, FeatureTree, Features, LeafClass, LeafFeature, RecordValue, TfdsErrorKind,
};

/// Payload bytes after which an iterator decodes no further record ahead, and the number of those records.
const WINDOW_BYTES: u64 = 1 << 20;
const WINDOW: u64 = 16;

/// The features of a folder.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct TfdsFeatures {
    pub(crate) folder: PathBuf,
    /// The protocol of the filesystem that the folder is read through.
    pub(crate) protocol: Option<String>,
    pub(crate) features: Arc<Features>,
    warnings: Vec<String>,
    /// A function and its arguments that make the features again, if they are not the folder's features.
    recipe: Option<Py<PyAny>>,
}

impl TfdsFeatures {
    pub(crate) fn of(folder: PathBuf, features: Features, warnings: Vec<String>) -> TfdsFeatures {
        TfdsFeatures { folder, protocol: None, features: Arc::new(features), warnings, recipe: None }
    }

    /// Returns features of windows over the steps of a folder.
    pub(crate) fn made_by(folder: PathBuf, features: Features, recipe: Py<PyAny>) -> TfdsFeatures {
        TfdsFeatures { recipe: Some(recipe), ..TfdsFeatures::of(folder, features, Vec::new()) }
    }

    fn read(py: Python<'_>, folder: PathBuf, protocol: Option<String>) -> Result<TfdsFeatures> {
        let (features, warnings) = read_features(py, folder.clone(), protocol.as_deref())?;
        Ok(TfdsFeatures { protocol, ..TfdsFeatures::of(folder, features, warnings) })
    }
}

#[pymethods]
impl TfdsFeatures {
    /// Reads the `features.json` of a folder, and the names of labels.
    #[new]
    fn new(py: Python<'_>, folder: PathBuf) -> Result<TfdsFeatures> {
        TfdsFeatures::read(py, folder, None)
    }

    /// Returns a spec of nested columns.
    fn _spec(&self, select: Option<Vec<String>>, labels: Choice<ClassLabels>) -> Result<NestedSpec> {
        let spec = NestedSpec {
            folder: self.folder.clone(),
            protocol: self.protocol.clone(),
            features: Arc::clone(&self.features),
            select,
            labels: labels.0,
            text: true,
            columns: Vec::new(),
        };
        spec.compiled()
    }

    /// Path of the folder.
    #[getter]
    fn folder(&self) -> &std::ffi::OsStr {
        self.folder.as_os_str()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// The tree as `("dict", [(name, tree)])`, `("sequence", tree, length, steps)` and `("leaf", fields)`.
    fn tree<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tree(py, &self.features.root)
    }

    /// Returns the records that satisfy a condition, which may have names of labels.
    #[pyo3(signature = (records, condition, progress=None))]
    fn filter(
        &self,
        py: Python<'_>,
        records: PyRef<'_, PyDataset>,
        condition: ConditionText,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyDataset> {
        records.filtered(py, self.features.filter(&condition.0.parse()?)?, progress)
    }

    /// Compiles features: the ones in `select`, by default all.
    fn decoder(
        slf: Bound<'_, Self>,
        select: Option<Vec<String>>,
        pictures: PyPictures,
        missing_none: bool,
    ) -> Result<TfdsDecoder> {
        let PyPictures { encoded, pictures } = pictures;
        let options = DecodeOptions { select, encoded, pictures, missing_none, ..DecodeOptions::default() };
        TfdsDecoder::compiled(slf, options)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let this = slf.get();
        if let Some(recipe) = &this.recipe {
            return (hooks::features_again(py)?, (recipe,)).into_pyobject(py);
        }
        let read = slf.get_type().getattr(intern!(py, "_read"))?;
        let args = (this.folder.as_os_str(), digest(&this.features), &this.protocol).into_pyobject(py)?;
        (read, args).into_pyobject(py)
    }

    /// Reads pickled features again.
    #[staticmethod]
    #[pyo3(signature = (folder, digest, protocol=None))]
    fn _read(py: Python<'_>, folder: PathBuf, digest: u32, protocol: Option<String>) -> Result<TfdsFeatures> {
        let found = TfdsFeatures::read(py, folder, protocol)?;
        check_digest(&found.folder, &found.features, digest)?;
        Ok(found)
    }
}

fn tree<'py>(py: Python<'py>, feature: &FeatureTree) -> PyResult<Bound<'py, PyTuple>> {
    match feature {
        FeatureTree::Dict(features) => {
            let features = features.iter().map(|(name, feature)| Ok((&**name, tree(py, feature)?)));
            let features = features.collect::<PyResult<Vec<_>>>()?;
            ("dict", PyList::new(py, features)?).into_pyobject(py)
        }
        FeatureTree::Sequence(sequence) => {
            let inner = tree(py, &sequence.feature)?;
            ("sequence", inner, sequence.length, sequence.steps).into_pyobject(py)
        }
        FeatureTree::Leaf(leaf) => ("leaf", fields(py, leaf)?).into_pyobject(py),
        _ => Err(PyValueError::new_err("expected a feature of a known form")),
    }
}

fn fields<'py>(py: Python<'py>, leaf: &LeafFeature) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let (labels, box_format, sample_rate, lazy) = match &leaf.class {
        LeafClass::Label(labels) | LeafClass::Image(Some(labels)) => (Some(labels), None, None, false),
        LeafClass::Box(format) => (None, Some(&**format), None, false),
        LeafClass::Audio { sample_rate, lazy } => (None, None, Some(*sample_rate), *lazy),
        _ => (None, None, None, false),
    };
    dict.set_item("text", leaf.to_string())?;
    dict.set_item("kind", leaf.class.name())?;
    dict.set_item("dtype", leaf.dtype.to_string())?;
    dict.set_item("shape", PyTuple::new(py, &leaf.shape)?)?;
    dict.set_item("encoding", leaf.encoding.to_string())?;
    dict.set_item("optional", leaf.optional)?;
    dict.set_item("description", &*leaf.description)?;
    dict.set_item("is_known", !matches!(leaf.class, LeafClass::Unknown(_)))?;
    dict.set_item("num_classes", labels.and_then(|labels| labels.classes))?;
    // Names that are numbers are made when they are asked for.
    let names = labels.and_then(|labels| labels.names.as_ref());
    dict.set_item("names", names.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>()))?;
    dict.set_item("box_format", box_format)?;
    dict.set_item("sample_rate", sample_rate)?;
    dict.set_item("lazy", lazy)?;
    Ok(dict)
}

/// The form of pictures, from whether all are left encoded, the paths of single ones that are, and a schema
/// that makes others.
pub(crate) struct PyPictures {
    pub(crate) encoded: bool,
    pub(crate) pictures: Vec<(String, Option<ImageSpec>)>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for PyPictures {
    type Error = PyErr;

    fn extract(from: Borrowed<'a, 'py, PyAny>) -> PyResult<PyPictures> {
        let (encoded, paths, schema) = from.extract::<(bool, Vec<String>, Option<Bound<'py, PySchema>>)>()?;
        let mut pictures: Vec<_> = paths.into_iter().map(|path| (path, None)).collect();
        for (path, spec) in schema.iter().flat_map(|schema| schema.get().schema().features()) {
            if let FeatureSpec::Image(image) = spec {
                pictures.push((path.clone(), Some(image.clone())));
            }
        }
        Ok(PyPictures { encoded, pictures })
    }
}

/// The seed, and the epoch, of what is random in pictures of single records.
const SEEDS: PySeeds = (Seed(0), 0);

/// A parser of batches, and the dicts around its columns.
type Parser = (BatchParser, Arc<Nesting>);

/// The native part of `tfseek.tfds.Dataset`: compiled features.
#[pyclass(frozen, module = "tfseek._tfseek")]
pub(crate) struct TfdsDecoder {
    features: Py<TfdsFeatures>,
    pub(crate) decoder: Decoder,
    options: DecodeOptions,
    /// For byte strings as objects and as offsets. Each is created at first use.
    parsers: [OnceLock<Parser>; 2],
}

impl TfdsDecoder {
    /// Compiles features.
    pub(crate) fn compiled(features: Bound<'_, TfdsFeatures>, options: DecodeOptions) -> Result<TfdsDecoder> {
        let py = features.py();
        let folder = &features.get().folder;
        let decoder = Decoder::new(&features.get().features, &options).map_err(|e| match e.kind() {
            TfdsErrorKind::Features { .. } => {
                let path = folder.join("features.json");
                let message = format!("{}: {e}", tfseek::error::printable(&path));
                BindingError::Python(tfds_exception(py, &e, Some(&path), &message))
            }
            _ => e.into(),
        })?;
        Ok(TfdsDecoder { features: features.unbind(), decoder, options, parsers: Default::default() })
    }

    /// Decodes one record.
    fn single<'py>(
        &self,
        py: Python<'py>,
        row: PyPayload,
        bytes_as: Choice<BytesAs>,
        number: Option<u64>,
        seeds: PySeeds,
    ) -> Result<Bound<'py, PyAny>> {
        if bytes_as.0 != BytesAs::Objects {
            let message = "bytes_as: expected \"objects\" for the records of a tfseek.tfds.Dataset";
            return Err(BindingError::value_error(message));
        }
        let row = SeededRow { row, seeds, number: number.unwrap_or_default() };
        let found = py.detach(|| self.decoder.record(&row)?.value())?;
        values::value(py, found)
    }

    fn parser(&self, bytes_as: BytesAs) -> Result<&Parser> {
        let contiguous = bytes_as.is_contiguous();
        let [objects, offsets] = &self.parsers;
        let known = if contiguous { offsets } else { objects };
        if let Some(parser) = known.get() {
            return Ok(parser);
        }
        let parser = self.decoder.parser()?.contiguous_bytes(contiguous);
        let mut nesting = Nesting::default();
        nesting.add(&self.decoder);
        Ok(known.get_or_init(|| (parser, Arc::new(nesting))))
    }
}

/// Adds the values of these records to `found`, until the time slice is over or they have many bytes. Adds at
/// least one.
///
/// # Errors
/// The error of the first record that fails. The records before it are in `found`.
fn decode_many(
    decoder: &Decoder,
    shared: &SharedDataset,
    ids: &[u64],
    seeds: PySeeds,
    found: &mut Vec<RecordValue>,
) -> tfseek::Result<()> {
    let mut slice = TimeSlice::new();
    let mut bytes = 0u64;
    let mut numbers = ids.iter();
    let mut add = |record: tfseek::Record<'_>| {
        let len = record.payload().len() as u64;
        let number = numbers.next().copied().unwrap_or_default();
        found.push(decoder.record(&SeededRow { row: record, seeds, number })?.value()?);
        bytes += len;
        // Decoding takes longer than reading.
        let over = slice.is_over(TimeSlice::RECORD + len * 16);
        // Ends the iteration. It is not an error of this function.
        if over || bytes > WINDOW_BYTES { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
    };
    let done = match &shared.mapped {
        Some(mapped) => mapped.get_many(ids).try_for_each(|record| add(record?)),
        None => shared.dataset.read_many(ids, add),
    };
    match done {
        Err(e) if matches!(e.kind(), ErrorKind::Cancelled) => Ok(()),
        done => done,
    }
}

#[pymethods]
impl TfdsDecoder {
    /// Warnings about features whose values are not decoded.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.decoder.warnings().to_vec()
    }

    /// The names of the columns of batches: at the top, and with all dicts.
    #[getter]
    fn features(&self) -> Vec<String> {
        let mut nesting = Nesting::default();
        nesting.add(&self.decoder);
        nesting.names()
    }

    /// False: records are Examples.
    #[getter]
    fn is_sequence(&self) -> bool {
        false
    }

    /// The JSON form of the specs of the stored features.
    fn to_json(&self) -> String {
        self.decoder.schema().to_json()
    }

    /// Returns the decoder of some features.
    fn _select(&self, py: Python<'_>, select: Vec<String>) -> Result<TfdsDecoder> {
        // Other pictures are not decoded, so their specs are left out.
        let is_selected = |path: &str| select.iter().any(|known| is_within(path, known));
        let pictures = self.options.pictures.iter();
        let pictures =
            pictures.filter(|(path, image)| image.is_none() || is_selected(path)).cloned().collect();
        let options = DecodeOptions { select: Some(select), pictures, ..self.options.clone() };
        TfdsDecoder::compiled(self.features.bind(py).clone(), options)
    }

    /// Returns the decoder of the same features that leaves all pictures encoded.
    fn _encoded(&self, py: Python<'_>) -> Result<TfdsDecoder> {
        let options = DecodeOptions { encoded: true, pictures: Vec::new(), ..self.options.clone() };
        TfdsDecoder::compiled(self.features.bind(py).clone(), options)
    }

    /// Returns the values of the record at a Python index.
    fn record<'py>(
        &self,
        py: Python<'py>,
        dataset: &Bound<'_, PyDataset>,
        k: i64,
        seeds: PySeeds,
    ) -> Result<Bound<'py, PyAny>> {
        let dataset = dataset.get();
        let i = dataset.ids.at_signed(k)?;
        let shared = &*dataset.shared;
        let found = py.detach(|| match &shared.mapped {
            Some(mapped) => {
                let row = mapped.get(i)?;
                self.decoder.record(&SeededRow { row, seeds, number: i })?.value()
            }
            None => {
                let mut buf = Vec::new();
                let row = shared.dataset.read(i, &mut buf)?;
                self.decoder.record(&SeededRow { row, seeds, number: i })?.value()
            }
        })?;
        values::value(py, found)
    }

    /// Returns the values of the record at a Python index, with the arguments of `Schema._record`.
    fn _record<'py>(
        &self,
        py: Python<'py>,
        dataset: &Bound<'_, PyDataset>,
        k: i64,
        bytes_as: Choice<BytesAs>,
        seeds: PySeeds,
    ) -> Result<Bound<'py, PyAny>> {
        let i = dataset.get().ids.at_signed(k)?;
        self.single(py, dataset.get().payload(py, i)?, bytes_as, Some(i), seeds)
    }

    /// Returns the values of records as a list.
    #[pyo3(signature = (dataset, ids, seeds, progress=None))]
    fn records<'py>(
        &self,
        py: Python<'py>,
        dataset: &Bound<'_, PyDataset>,
        ids: &Bound<'py, PyAny>,
        seeds: PySeeds,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let dataset = dataset.get();
        let ids = ids::numbers(py, &dataset.ids, ids)?;
        let mut items = headroom::room(ids.len())?;
        let progress = Progress::new(py, progress, "reading", Unit::Records)?;
        wait::shown(progress, |progress| {
            let total = Some(ids.len() as u64);
            let report = |done: usize| Progress::report(progress, done as u64, total);
            report(0)?;
            while items.len() < ids.len() {
                let (_, rest) = ids.split_at(items.len());
                let mut found = Vec::new();
                py.detach(|| decode_many(&self.decoder, &dataset.shared, rest, seeds, &mut found))?;
                for value in found {
                    items.push(values::value(py, value)?);
                }
                py.check_signals()?;
                report(items.len())?;
            }
            Ok(())
        })?;
        Ok(headroom::list(py, items)?.into_any())
    }

    /// Returns an iterator over the values of all records.
    fn iterate(slf: Bound<'_, Self>, dataset: &Bound<'_, PyDataset>, seeds: PySeeds) -> TfdsIterator {
        let dataset = dataset.get();
        TfdsIterator {
            decoder: slf.get().decoder.clone(),
            shared: Arc::clone(&dataset.shared),
            ids: dataset.ids.clone(),
            seeds,
            state: Mutex::default(),
        }
    }

    /// Decodes payloads to a batch, or one payload to the values of a record.
    #[pyo3(signature = (payloads, _sequence, single, bytes_as, numbers=None, seeds=SEEDS))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of `Schema._parse`")]
    fn _parse<'py>(
        &self,
        py: Python<'py>,
        payloads: &Bound<'py, PyAny>,
        _sequence: bool,
        single: bool,
        bytes_as: Choice<BytesAs>,
        numbers: Option<Vec<u64>>,
        seeds: PySeeds,
    ) -> Result<Bound<'py, PyAny>> {
        if single {
            let number = rows::only_number(numbers.as_deref())?;
            return self.single(py, PyPayload::from_python(payloads)?, bytes_as, number, seeds);
        }
        let (parser, nesting) = self.parser(bytes_as.0)?;
        let payloads = SeededRow::all(PyPayload::all(payloads)?, seeds, numbers);
        let batch = py.detach(|| parser.parse(&payloads))?;
        let flat = columns::batch(py, &batch, false, false, bytes_as.0, None)?;
        Ok(nesting.nested(py, flat.cast()?)?.into_any())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        let py = slf.py();
        let TfdsDecoder { features, options, .. } = slf.get();
        let decoder = features.bind(py).getattr(intern!(py, "decoder"))?;
        let encoded = options.pictures.iter().filter(|(_, image)| image.is_none());
        let encoded: Vec<&str> = encoded.map(|(path, _)| &**path).collect();
        let made = options.pictures.iter().filter_map(|(path, image)| Some((path, image.clone()?)));
        let made = made.fold(tfseek::Schema::example(), |schema, (path, image)| {
            schema.feature(path, FeatureSpec::Image(image))
        });
        let pictures = (options.encoded, encoded, Py::new(py, PySchema::of(made.build()?))?);
        Ok((decoder, (&options.select, pictures, options.missing_none)).into_pyobject(py)?)
    }
}

/// An iterator over the values of the records of a data set.
#[pyclass(frozen, module = "tfseek.tfds")]
pub(crate) struct TfdsIterator {
    decoder: Decoder,
    shared: Arc<SharedDataset>,
    ids: Ids,
    seeds: PySeeds,
    state: Mutex<Windows<RecordValue>>,
}

#[pymethods]
impl TfdsIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        py.check_signals()?;
        let found = py.detach(|| {
            let decode = |ids: &[u64], found: &mut Vec<_>| {
                decode_many(&self.decoder, &self.shared, ids, self.seeds, found)
            };
            locked(&self.state).step(&self.ids, WINDOW, decode)
        })?;
        found.map(|found| values::value(py, found)).transpose()
    }
}
