//! `tfseek.Writer`: writes records.

use crate::error::{BindingError, Result};
use crate::feature;
use crate::options::{Choice, extracted};
use crate::payload::RecordPayload;
use crate::rows::{PyPayload, type_name};
use crate::wait::locked;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tfseek::error::EncodeError;
use tfseek::index::IndexOptions;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, ErrorKind, ShardedWriter};

/// Writes records, byte for byte as TensorFlow does.
///
/// ``Writer("out.tfrecord")`` writes one file. ``Writer("out/train", shards=10)`` writes
/// ``out/train-00000-of-00010.tfrecord`` and so on, and distributes the records in rotation. ``compression``
/// is ``None``, ``"gzip"`` or ``"zlib"``; shards are then named ``.tfrecord.gz`` or ``.tfrecord.zz``, unless
/// ``suffix`` is given. ``index=True`` also writes the index, to ``.tfseek/`` in the folder of the files.
///
/// ``members=1 << 20`` writes gzip files in members: a new one begins at the first record border after that
/// many uncompressed bytes. Every reader of gzip reads them as one stream.
///
/// The folder must exist: a missing one raises :class:`tfseek.NotFoundError`, which names it.
///
/// Files are written under temporary names and renamed by :meth:`close`. If a ``with`` block ends with an
/// exception, no file is left. ``atomic=False`` writes in place. ``append=True`` writes in place after the
/// records of an uncompressed file, which must end with a whole record, or creates it. What was written so
/// stays after an exception, and no other writer should replace the file meanwhile. Symbolic links are followed
/// and kept. FIFOs and devices are written to directly, and not appended to. The files belong to the process
/// that created the writer: in a forked child every method raises an error and changes no file.
#[pyclass(frozen, module = "tfseek", name = "Writer")]
pub(crate) struct PyWriter {
    inner: Mutex<Option<InnerWriter>>,
    path: PathBuf,
    /// Process that owns the files.
    pid: u32,
}

enum InnerWriter {
    File(Box<tfseek::Writer>),
    Shards(ShardedWriter),
}

impl InnerWriter {
    fn records(&self) -> u64 {
        match self {
            InnerWriter::File(writer) => writer.records_written(),
            InnerWriter::Shards(writer) => writer.records_written(),
        }
    }
}

impl PyWriter {
    /// Calls `f` with the writer. In a forked child this is an error, and the lock is not tried: a thread
    /// that held it at the fork does not exist in the child and cannot release it.
    fn with<T>(&self, f: impl FnOnce(&mut Option<InnerWriter>) -> tfseek::Result<T>) -> tfseek::Result<T> {
        if self.is_forked() {
            return Err(EncodeError::Forked.into());
        }
        f(&mut locked(&self.inner))
    }

    fn is_forked(&self) -> bool {
        self.pid != std::process::id()
    }
}

/// Returns the payload of a record. A mapping of Python, such as a dict, becomes an Example.
pub(crate) fn payload_of(py: Python<'_>, record: &Bound<'_, PyAny>) -> Result<PyPayload> {
    let encoded = || -> Result<PyPayload> {
        let bytes = feature::encoded(py, record)?.into();
        Ok(PyPayload::Record(RecordPayload { bytes, record: None }))
    };
    if record.is_instance_of::<PyDict>() {
        return encoded();
    }
    PyPayload::from_python(record).or_else(|_| match record.cast::<PyMapping>() {
        Ok(_) => encoded(),
        Err(_) => Err(BindingError::type_error(format!(
            "record: expected bytes, an Example, a SequenceExample or a dict, found {}",
            type_name(record)
        ))),
    })
}

/// Returns an error that names the missing folder if a file could not be created for lack of it.
fn without_folder(e: tfseek::Error, path: &Path) -> tfseek::Error {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (e.kind(), folder) {
        (ErrorKind::Io(io), Some(folder)) if io.kind() == io::ErrorKind::NotFound && !folder.exists() => {
            let text = "the folder does not exist; os.makedirs creates it";
            tfseek::Error::from(io::Error::new(io::ErrorKind::NotFound, text)).in_file(folder)
        }
        _ => e,
    }
}

#[pymethods]
impl PyWriter {
    #[new]
    #[pyo3(signature = (path, *, compression=None, level=None, members=None, shards=None, suffix=None, index=false, index_dir=None, atomic=true, append=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        compression: Option<Choice<Compression>>,
        level: Option<u32>,
        members: Option<u64>,
        shards: Option<&Bound<'_, PyAny>>,
        suffix: Option<&str>,
        index: bool,
        index_dir: Option<PathBuf>,
        atomic: bool,
        append: bool,
    ) -> Result<PyWriter> {
        let shards = shards.map(|shards| extracted::<usize>(shards, "shards")).transpose()?;
        if shards == Some(0) {
            return Err(BindingError::value_error("shards: expected at least 1, found 0"));
        }
        if append && shards.is_some() {
            return Err(BindingError::value_error("append: expected one file, found shards"));
        }
        let default = WriterOptions::default();
        let index_dir = index_dir.map(|dir| IndexOptions::new().index_dir(dir));
        let options = WriterOptions {
            compression: compression.map_or(default.compression, |Choice(compression)| compression),
            level: level.unwrap_or(default.level),
            members,
            atomic,
            append,
            index: index_dir.or_else(|| index.then(IndexOptions::new)),
            ..default
        };
        // Opening a FIFO blocks until it has a reader.
        let inner = py.detach(|| match shards {
            None => options.create(&path).map(|writer| InnerWriter::File(Box::new(writer))),
            Some(shards) => {
                let ending = format!(".tfrecord{}", options.compression.suffix());
                options.create_shards(&path, suffix.unwrap_or(&ending), shards).map(InnerWriter::Shards)
            }
        });
        let inner = inner.map_err(|e| without_folder(e, &path))?;
        Ok(PyWriter { inner: Mutex::new(Some(inner)), path, pid: std::process::id() })
    }

    /// Writes a record: ``bytes``, an :class:`Example`, a :class:`SequenceExample`, or a dict, which becomes
    /// an Example.
    fn write(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> Result<()> {
        let payload = payload_of(py, record)?;
        Ok(py.detach(|| {
            self.with(|inner| match inner {
                Some(InnerWriter::File(writer)) => writer.write(payload.as_ref()),
                Some(InnerWriter::Shards(writer)) => writer.write(payload.as_ref()),
                None => Err(EncodeError::Closed.into()),
            })
        })?)
    }

    /// Completes the files and renames them. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> Result<()> {
        Ok(py.detach(|| {
            self.with(|inner| match inner {
                Some(InnerWriter::File(writer)) => writer.close(),
                Some(InnerWriter::Shards(writer)) => writer.close().map(drop),
                None => Ok(()),
            })
        })?)
    }

    /// Number of records written.
    #[getter]
    fn records_written(&self, py: Python<'_>) -> Result<u64> {
        Ok(py.detach(|| self.with(|inner| Ok(inner.as_ref().map_or(0, InnerWriter::records))))?)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Closes the writer. After an exception the files are discarded, except in a forked child, which does
    /// not own them.
    #[pyo3(signature = (kind=None, _value=None, _traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> Result<()> {
        match kind {
            None => self.close(py),
            Some(_) if self.is_forked() => Ok(()),
            Some(_) => Ok(py.detach(|| {
                self.with(|inner| {
                    *inner = None;
                    Ok(())
                })
            })?),
        }
    }

    fn __repr__(&self) -> String {
        format!("tfseek.Writer({:?})", self.path.display().to_string())
    }
}
