//! `tfseek.Part`: a range of the records of a shard.

use crate::error::Result;
use crate::remote::{StorageOptions, shown};
use crate::wait;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::io::Store;
use tfseek::{Part, Tail};

/// A range of whole records in one shard of a dataset, made by :meth:`Dataset.shares`.
///
/// ``tfseek.stream(part=part)`` reads its records in another process or on another machine, without an index.
/// ``Part(text)`` parses JSON, as :meth:`from_json` does. Parts can be compared, hashed and pickled.
#[pyclass(frozen, eq, hash, module = "tfseek", name = "Part")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyPart(pub(crate) Part);

#[pymethods]
impl PyPart {
    #[new]
    fn new(text: &str) -> Result<PyPart> {
        Ok(PyPart(Part::from_json(text)?))
    }

    /// Parses a part from JSON. Raises :class:`tfseek.Error` if the text is not a part.
    #[staticmethod]
    fn from_json(text: &str) -> Result<PyPart> {
        PyPart::new(text)
    }

    /// Returns a whole shard as one part, without an index. The number of its records is unknown. ``first``
    /// is the number of its first record in the dataset.
    ///
    /// ``storage_options`` are as of :func:`tfseek.open`. They are not in the part.
    #[staticmethod]
    #[pyo3(signature = (path, first=0, *, storage_options=None))]
    fn of_shard(
        py: Python<'_>,
        path: PathBuf,
        first: u64,
        storage_options: Option<StorageOptions>,
    ) -> Result<PyPart> {
        let store = storage_options.unwrap_or_default().store(std::slice::from_ref(&path))?;
        let requests = store.is_some();
        Ok(PyPart(wait::detached(py, requests, move || Part::of_shard(path, first, store))?))
    }

    /// Returns the part as JSON, one line.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// Absolute path of the shard, or its URL without user and signature.
    #[getter]
    fn shard(&self) -> &str {
        &self.0.shard
    }

    /// Size of the shard in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    /// Modification time of the shard, in nanoseconds since 1970.
    #[getter]
    fn mtime_ns(&self) -> i64 {
        self.0.mtime_ns
    }

    /// Hashes of the first and of the last 64 KiB of the indexed bytes of the shard.
    #[getter]
    fn fingerprints(&self) -> (u64, u64) {
        let [head, tail] = self.0.fingerprints;
        (head, tail)
    }

    /// Compression of the shard: ``"none"``, ``"gzip"`` or ``"zlib"``.
    #[getter]
    fn compression(&self) -> &'static str {
        self.0.compression.name()
    }

    /// First byte in the file, and the byte after the last one.
    #[getter]
    fn bytes(&self) -> (u64, u64) {
        let bytes = &self.0.bytes;
        (bytes.start, bytes.end)
    }

    /// Ordinal of the first record in its shard.
    #[getter]
    fn ordinal(&self) -> u64 {
        self.0.ordinal
    }

    /// Number of the first record in the dataset.
    #[getter]
    fn first(&self) -> u64 {
        self.0.first
    }

    /// Number of records, or ``None`` for a shard without an index.
    #[getter]
    fn records(&self) -> Option<u64> {
        self.0.records
    }

    /// Treatment of a torn tail of the shard, as the dataset was opened: ``"strict"`` or ``"tolerate"``. A
    /// reader of the part applies it.
    #[getter]
    fn tail(&self) -> &'static str {
        match self.0.tail {
            Tail::Tolerate => "tolerate",
            _ => "strict",
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, PyPart>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().to_json(),))
    }

    fn __repr__(&self) -> String {
        let part = &self.0;
        let records = part.records.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let bytes = &part.bytes;
        let first = part.first;
        format!(
            "tfseek.Part({:?}, bytes={}..{}, first={first}, records={records})",
            shown(Path::new(&*part.shard)),
            bytes.start,
            bytes.end
        )
    }
}

/// Parts, and the store of their shards.
pub(crate) type StoredParts = (Vec<Part>, Option<Arc<dyn Store>>);

/// Makes the store of the shards of parts. An empty share needs none.
pub(crate) fn with_store(parts: &[Py<PyPart>], storage: StorageOptions) -> Result<StoredParts> {
    let parts: Vec<Part> = parts.iter().map(|part| part.get().0.clone()).collect();
    let shards: Vec<PathBuf> = parts.iter().map(|part| PathBuf::from(&*part.shard)).collect();
    // An empty share needs no login.
    let store = if shards.is_empty() { None } else { storage.store(&shards)? };
    Ok((parts, store))
}
