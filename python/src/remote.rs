//! URLs, and the store of their objects.

use crate::error::{BindingError, Result};
use crate::options::argument;
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::io::{Store, bare_url};
use tfseek_tools::outputs;

/// The argument `storage_options`: names and values. The values may be secret, so they are kept only by the store.
#[derive(Default)]
pub(crate) struct StorageOptions(Vec<(String, String)>);

impl StorageOptions {
    /// Takes the options out of the arguments of a function.
    pub(crate) fn take(arguments: &Bound<'_, PyDict>) -> Result<StorageOptions> {
        const NAME: &str = "storage_options";
        if !arguments.contains(NAME)? {
            return Ok(StorageOptions::default());
        }
        let given = argument(arguments, NAME)?;
        arguments.del_item(NAME)?;
        Ok(given)
    }

    /// Returns the names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the store of these paths. `None` if none of them is a URL.
    ///
    /// # Errors
    /// Options without a URL.
    pub(crate) fn store(self, paths: &[PathBuf]) -> Result<Option<Arc<dyn Store>>> {
        if has_url(paths) {
            return Ok(remote(self.0));
        }
        if self.0.is_empty() {
            return Ok(None);
        }
        let message =
            "storage_options: expected a URL such as s3://bucket/key among the paths, found local paths";
        Err(BindingError::Python(PyValueError::new_err(message)))
    }
}

#[cfg(feature = "remote")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature there is no store")]
fn remote(storage_options: Vec<(String, String)>) -> Option<Arc<dyn Store>> {
    let mut options = tfseek_remote::RemoteOptions::default();
    options.storage_options = storage_options;
    Some(Arc::new(tfseek_remote::RemoteStore::new(options)))
}

#[cfg(not(feature = "remote"))]
fn remote(_: Vec<(String, String)>) -> Option<Arc<dyn Store>> {
    None
}

impl<'a, 'py> FromPyObject<'a, 'py> for StorageOptions {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<StorageOptions> {
        let given: Option<Bound<'py, PyDict>> = given.extract()?;
        let given = given.iter().flatten().map(|(name, value)| Ok((name.extract()?, value.extract()?)));
        Ok(StorageOptions(given.collect::<PyResult<_>>()?))
    }
}

/// Returns a path as it is shown: a URL without its query and user, which may be secret.
#[pyfunction]
pub(crate) fn shown_path(path: PathBuf) -> String {
    shown(&path)
}

/// Refuses a URL as the path of an output.
#[pyfunction]
pub(crate) fn check_output(py: Python<'_>, path: PathBuf) -> Result<()> {
    outputs::check_local(&path).map_err(|e| BindingError::error(py, e.to_string()))
}

/// Returns the URL of an object. `None` for a path.
fn url_of(path: &Path) -> Option<&str> {
    let url = path.to_str()?;
    let (scheme, _) = url.split_once("://")?;
    let is_scheme = scheme.bytes().all(|c| c.is_ascii_alphanumeric() || b"+-.".contains(&c));
    (scheme.len() > 1 && is_scheme).then_some(url)
}

/// Returns true if one of the paths is a URL.
pub(crate) fn has_url<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> bool {
    paths.into_iter().any(|path| url_of(path.as_ref()).is_some())
}

/// Returns a path as it is shown: a URL without its query and user, which may be secret.
pub(crate) fn shown(path: &Path) -> String {
    url_of(path).map_or_else(|| path.display().to_string(), bare_url)
}

/// Returns the first URL, as it is shown, that has a query or a user.
pub(crate) fn with_secret(paths: &[PathBuf]) -> Option<String> {
    let mut urls = paths.iter().filter_map(|path| url_of(path));
    urls.find(|url| bare_url(url) != **url).map(bare_url)
}
