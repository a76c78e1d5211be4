//! URLs, and the store of their objects.

use crate::error::{BindingError, Result};
use crate::fsspec::FilesystemStore;
use crate::hooks;
use crate::options::argument;
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::io::{Store, bare_url};
use tfseek_tools::outputs;

/// The arguments `storage_options`, names and values, and `filesystem`. The values may be secret, so they are
/// kept only by the store.
#[derive(Default)]
pub(crate) struct StorageOptions {
    options: Vec<(String, String)>,
    /// The folder and the bytes of the cache on disk. A pickle keeps them.
    cache_dir: Option<PathBuf>,
    cache_bytes: Option<u64>,
    /// A `tfseek._fsspec.Filesystem`.
    filesystem: Option<Py<PyAny>>,
    pub(crate) protocol: Option<String>,
}

impl StorageOptions {
    /// Takes the options out of the arguments of a function. In place of a filesystem they keep its protocol,
    /// from which a pickle makes another one.
    pub(crate) fn take(arguments: &Bound<'_, PyDict>) -> Result<StorageOptions> {
        const OPTIONS: &str = "storage_options";
        const FILESYSTEM: &str = "filesystem";
        let mut found = StorageOptions::default();
        if arguments.contains(OPTIONS)? {
            found = argument(arguments, OPTIONS)?;
            arguments.del_item(OPTIONS)?;
        }
        // Not all functions have a cache.
        if let Some(dir) = arguments.get_item("cache_dir")? {
            found.cache_dir = dir.extract()?;
        }
        if let Some(bytes) = arguments.get_item("cache_bytes")? {
            found.cache_bytes = bytes.extract().map_err(|_| {
                BindingError::value_error(format!("cache_bytes: expected a number of bytes, found {bytes}"))
            })?;
        }
        if let Some(given) = arguments.get_item(FILESYSTEM)?.filter(|given| !given.is_none()) {
            found = StorageOptions { options: found.options, ..StorageOptions::through(&given)? };
            arguments.set_item(FILESYSTEM, &found.protocol)?;
        }
        Ok(found)
    }

    /// Returns the options of a filesystem: a `tfseek._fsspec.Filesystem`, or the protocol of one.
    pub(crate) fn through(given: &Bound<'_, PyAny>) -> Result<StorageOptions> {
        let filesystem = hooks::filesystem(given.py())?.call1((given,))?;
        let protocol = filesystem.getattr("protocol")?.extract()?;
        Ok(StorageOptions { filesystem: Some(filesystem.unbind()), protocol, ..StorageOptions::default() })
    }

    /// Returns the names of the options.
    pub(crate) fn names(&self) -> Vec<String> {
        self.options.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the store of these paths. `None` if none of them is a URL.
    ///
    /// # Errors
    /// Options without a URL.
    pub(crate) fn store(self, paths: &[PathBuf]) -> Result<Option<Arc<dyn Store>>> {
        if let Some(filesystem) = self.filesystem {
            let parts = Python::attach(|py| filesystem.bind(py).getattr("parts")?.extract())?;
            let place = Python::attach(|py| filesystem.bind(py).getattr("place")?.extract())?;
            return Ok(Some(Arc::new(FilesystemStore::new(filesystem, place, parts))));
        }
        if has_url(paths) {
            return remote(self);
        }
        let name = match &self {
            StorageOptions { options, .. } if !options.is_empty() => "storage_options",
            StorageOptions { cache_dir: Some(_), .. } => "cache_dir",
            StorageOptions { cache_bytes: Some(_), .. } => "cache_bytes",
            _ => return Ok(None),
        };
        Err(BindingError::value_error(format!(
            "{name}: expected a URL such as s3://bucket/key among the paths, found local paths"
        )))
    }
}

#[cfg(feature = "remote")]
fn remote(storage: StorageOptions) -> Result<Option<Arc<dyn Store>>> {
    let mut options = tfseek_remote::RemoteOptions::default();
    options.storage_options = storage.options;
    (options.cache_dir, options.cache_bytes) = (storage.cache_dir, storage.cache_bytes);
    let store = tfseek_remote::RemoteStore::new(options);
    // A folder without a limit is refused now, and not at the first request.
    store.check()?;
    Ok(Some(Arc::new(store)))
}

#[cfg(not(feature = "remote"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature there are errors")]
fn remote(_: StorageOptions) -> Result<Option<Arc<dyn Store>>> {
    Ok(None)
}

impl<'a, 'py> FromPyObject<'a, 'py> for StorageOptions {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<StorageOptions> {
        let given: Option<Bound<'py, PyDict>> = given.extract()?;
        let given = given.iter().flatten().map(|(name, value)| Ok((name.extract()?, value.extract()?)));
        Ok(StorageOptions { options: given.collect::<PyResult<_>>()?, ..StorageOptions::default() })
    }
}

/// Returns a path as it is shown: a URL without its query and user, which may be secret.
#[pyfunction]
pub(crate) fn shown_path(path: PathBuf) -> String {
    shown(&path)
}

/// Refuses a URL as the path of an output.
#[pyfunction]
pub(crate) fn check_output(path: PathBuf) -> Result<()> {
    outputs::check_local(&path).map_err(|e| BindingError::Text(e.to_string()))
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
