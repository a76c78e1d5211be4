//! `tfseek.Writer`: records out.

use crate::failure::Result;
use crate::payload::Payload;
use crate::words::Word;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Mutex;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, ShardedWriter};

/// Writes records, byte for byte as TensorFlow does.
///
/// ``Writer("out.tfrecord")`` writes one file; ``Writer("out/train", shards=10)`` writes ``out/train-00000-of-00010.tfrecord`` and
/// so on, records in turn. ``compression`` is ``None``, ``"gzip"`` or ``"zlib"``; ``index=True`` writes the index on the way, to
/// ``.tfseek/`` beside the files. Files are written under temporary names and get their own at :meth:`close`: used in a ``with``
/// block, an exception leaves nothing behind. ``atomic=False`` writes in place.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct Writer {
    sink: Mutex<Option<Sink>>,
    path: PathBuf,
}

enum Sink {
    One(Box<tfseek::Writer>),
    Set(ShardedWriter),
}

impl Sink {
    fn records(&self) -> u64 {
        match self {
            Sink::One(writer) => writer.records_written(),
            Sink::Set(writer) => writer.records_written(),
        }
    }
}

impl Writer {
    fn with<T>(&self, f: impl FnOnce(&mut Option<Sink>) -> tfseek::Result<T>) -> tfseek::Result<T> {
        f(&mut self.sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

fn closed() -> tfseek::Error {
    tfseek::error::EncodeError::Closed.into()
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (path, *, compression=None, level=None, shards=None, suffix=".tfrecord", index=false, index_dir=None, atomic=true))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        path: PathBuf,
        compression: Option<Word<Compression>>,
        level: Option<u32>,
        shards: Option<usize>,
        suffix: &str,
        index: bool,
        index_dir: Option<PathBuf>,
        atomic: bool,
    ) -> Result<Writer> {
        let mut options = WriterOptions::new().atomic(atomic).index(index);
        if let Some(Word(compression)) = compression {
            options = options.compression(compression);
        }
        if let Some(level) = level {
            options = options.level(level);
        }
        if let Some(dir) = index_dir {
            options = options.index_dir(dir);
        }
        let sink = match shards {
            None => Sink::One(Box::new(options.create(&path)?)),
            Some(shards) => Sink::Set(options.create_shards(&path, suffix, shards)?),
        };
        Ok(Writer { sink: Mutex::new(Some(sink)), path })
    }

    /// Writes a record: ``bytes``, or an :class:`Example` or :class:`SequenceExample`.
    fn write(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> Result<()> {
        let payload = Payload::from_python(record)?;
        Ok(py.detach(|| {
            self.with(|sink| match sink {
                Some(Sink::One(writer)) => writer.write(payload.as_ref()),
                Some(Sink::Set(writer)) => writer.write(payload.as_ref()),
                None => Err(closed()),
            })
        })?)
    }

    /// Ends the files and gives them their names. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> Result<()> {
        Ok(py.detach(|| {
            self.with(|sink| match sink {
                Some(Sink::One(writer)) => writer.close(),
                Some(Sink::Set(writer)) => writer.close(),
                None => Ok(()),
            })
        })?)
    }

    /// Records written so far.
    #[getter]
    fn records_written(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.with(|sink| Ok(sink.as_ref().map_or(0, Sink::records)))).unwrap_or(0)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Closes; after an exception the files are given up.
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
            Some(_) => Ok(py.detach(|| {
                self.with(|sink| {
                    *sink = None;
                    Ok(())
                })
            })?),
        }
    }

    fn __repr__(&self) -> String {
        format!("tfseek.Writer({:?})", self.path.display().to_string())
    }
}
