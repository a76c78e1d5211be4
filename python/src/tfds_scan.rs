//! The features of a data set of TensorFlow Datasets as the spec of a scan.

use crate::error::{BindingError, Result};
use crate::options::{Choice, is_within};
use crate::remote::StorageOptions;
use crate::wait;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::Filter;
use tfseek_arrow::{ClassLabels, Converter, Options};
use tfseek_tfds::{DecodeOptions, Features};

/// The features of a folder that TensorFlow Datasets prepared, as nested columns of Arrow.
///
/// It is the ``spec`` of :meth:`tfseek.Dataset.scan`, :func:`tfseek.scan`, ``tfseek.polars.scan``,
/// ``tfseek.arrow.dataset`` and ``tfseek.ray.read``. Pictures are the bytes of their files, missing values
/// are null, and steps are lists. ``docs/engines.md`` has the types. It can be pickled, and then reads the
/// folder again.
///
/// folder: the folder with ``features.json``.
/// select: paths of features, such as ``"objects/bbox"``; by default all of them.
/// labels: ``"names"``: class labels are dictionaries of their names; ``"numbers"``: they are integers.
/// text: ``Text`` features are strings. If false they are bytes.
///
/// Raises :class:`tfseek.SpecError` for a feature that has no Arrow type, with ``.feature``.
#[pyclass(frozen, module = "tfseek")]
#[derive(Clone)]
pub(crate) struct NestedSpec {
    pub(crate) folder: PathBuf,
    /// The protocol of the filesystem that the folder is read through.
    pub(crate) protocol: Option<String>,
    pub(crate) features: Arc<Features>,
    pub(crate) select: Option<Vec<String>>,
    pub(crate) labels: ClassLabels,
    pub(crate) text: bool,
    /// Names of the columns. [`compiled`](NestedSpec::compiled) finds them.
    pub(crate) columns: Vec<String>,
}

/// Returns a number that is another one for other features.
pub(crate) fn digest(features: &Features) -> u32 {
    tfseek::crc::crc32c(format!("{features:?}").as_bytes())
}

/// Checks that features that were read again are the features of a pickled object.
pub(crate) fn check_digest(folder: &Path, features: &Features, expected: u32) -> Result<()> {
    if digest(features) == expected {
        return Ok(());
    }
    let message = format!("{}: the features have changed since they were pickled", folder.display());
    Err(BindingError::Text(message))
}

/// Reads the features of a folder, or a URL's features with the login of the environment, or through a
/// filesystem with this protocol.
pub(crate) fn read_features(
    py: Python<'_>,
    folder: PathBuf,
    protocol: Option<&str>,
) -> Result<(Features, Vec<String>)> {
    let storage = match protocol {
        Some(protocol) => StorageOptions::through(&PyString::new(py, protocol))?,
        None => StorageOptions::default(),
    };
    let store = storage.store(std::slice::from_ref(&folder))?;
    wait::run(py, None, store.is_some(), move |_| Ok(Features::read(&folder, store.as_ref())?))
}

impl NestedSpec {
    /// Finds the names of the columns.
    pub(crate) fn compiled(mut self) -> Result<NestedSpec> {
        let converter = self.converter(Options::new())?;
        self.columns = converter.schema().fields().iter().map(|field| field.name().clone()).collect();
        Ok(self)
    }

    fn read(
        py: Python<'_>,
        folder: PathBuf,
        protocol: Option<String>,
        select: Option<Vec<String>>,
        labels: ClassLabels,
        text: bool,
    ) -> Result<NestedSpec> {
        let read = read_features(py, folder.clone(), protocol.as_deref());
        let (features, _) = read.map_err(|e| match e {
            BindingError::Tfds(e) => BindingError::Text(e.to_string()),
            e => e,
        })?;
        let features = Arc::new(features);
        NestedSpec { folder, protocol, features, select, labels, text, columns: Vec::new() }.compiled()
    }

    /// Returns a converter. Pictures are files, missing values are null, and steps are lists.
    pub(crate) fn converter(&self, mut options: Options) -> Result<Converter, tfseek_arrow::Error> {
        (options.labels, options.text_features) = (self.labels, self.text);
        let decode = DecodeOptions {
            select: self.select.clone(),
            encoded: true,
            missing_none: true,
            batch_steps: true,
            ..DecodeOptions::default()
        };
        Converter::of_features(&self.features, &decode, &options)
    }

    /// Returns a condition that knows the names of labels.
    pub(crate) fn named(&self, condition: &Filter) -> tfseek::Result<Filter> {
        self.features.filter(condition)
    }

    /// Returns the paths that a name selects among the selected ones: a column, a feature, or a feature below
    /// a selected one.
    fn narrowed(&self, name: &str) -> Vec<String> {
        let Some(select) = &self.select else { return vec![name.to_owned()] };
        let below: Vec<String> = select.iter().filter(|path| is_within(path, name)).cloned().collect();
        if below.is_empty() && select.iter().any(|path| is_within(name, path)) {
            return vec![name.to_owned()];
        }
        below
    }
}

#[pymethods]
impl NestedSpec {
    #[new]
    #[pyo3(signature = (folder, select=None, labels=Choice(ClassLabels::Names), text=true))]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        select: Option<Vec<String>>,
        labels: Choice<ClassLabels>,
        text: bool,
    ) -> Result<NestedSpec> {
        NestedSpec::read(py, folder, None, select, labels.0, text)
    }

    /// Names of the columns: of the outermost features.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.columns.clone()
    }

    /// There are no feature lists.
    #[getter]
    fn feature_lists(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the spec of these columns, or of features by their paths.
    fn _of_columns(&self, names: Vec<String>) -> Result<NestedSpec> {
        let mut select = Vec::new();
        for name in &names {
            let paths = self.narrowed(name);
            if paths.is_empty() {
                let reason = "expected a feature of the spec, found another name";
                let mut e = tfseek_arrow::Error::from(tfseek_arrow::ErrorKind::Schema(reason.into()));
                e.column = Some(name.as_str().into());
                return Err(e.into());
            }
            select.extend(paths);
        }
        NestedSpec { select: Some(select), ..self.clone() }.compiled()
    }

    /// Returns the same spec, whose `Text` features are bytes.
    fn _without_text(&self) -> Result<NestedSpec> {
        NestedSpec { text: false, ..self.clone() }.compiled()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let this = slf.get();
        let read = slf.get_type().getattr(intern!(py, "_read"))?;
        let labels = match this.labels {
            ClassLabels::Names => "names",
            ClassLabels::Numbers => "numbers",
        };
        let digest = digest(&this.features);
        let arguments = (this.folder.as_os_str(), digest, &this.select, labels, this.text, &this.protocol);
        (read, arguments.into_pyobject(py)?).into_pyobject(py)
    }

    /// Reads pickled features again.
    #[staticmethod]
    #[pyo3(signature = (folder, digest, select, labels, text, protocol=None))]
    fn _read(
        py: Python<'_>,
        folder: PathBuf,
        digest: u32,
        select: Option<Vec<String>>,
        labels: Choice<ClassLabels>,
        text: bool,
        protocol: Option<String>,
    ) -> Result<NestedSpec> {
        let found = NestedSpec::read(py, folder, protocol, select, labels.0, text)?;
        check_digest(&found.folder, &found.features, digest)?;
        Ok(found)
    }

    fn __repr__(&self) -> String {
        format!("NestedSpec({:?}, features={:?})", self.folder, self.columns)
    }
}
