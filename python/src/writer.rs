//! `tfseek.Writer`: records out.

use crate::failure::Result;
use crate::rows::Payload;
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
/// block, an exception leaves nothing behind. ``atomic=False`` writes in place. A link is followed and stays; a FIFO or a device is
/// written into. The files belong to the process that created the writer: in a forked child every method is an error, and nothing
/// is written or removed.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct Writer {
    sink: Mutex<Option<Sink>>,
    path: PathBuf,
    /// The process that the files belong to.
    pid: u32,
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
    /// Calls `f` with the writer. In a forked child that is an error before the lock is looked at: a thread that held it at the fork
    /// is not there to let go of it.
    fn with<T>(&self, f: impl FnOnce(&mut Option<Sink>) -> tfseek::Result<T>) -> tfseek::Result<T> {
        if self.is_forked() {
            return Err(tfseek::error::EncodeError::Forked.into());
        }
        f(&mut self.sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn is_forked(&self) -> bool {
        self.pid != std::process::id()
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
        py: Python<'_>,
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
        // A FIFO is open when its reader is.
        let sink = py.detach(|| match shards {
            None => options.create(&path).map(|writer| Sink::One(Box::new(writer))),
            Some(shards) => options.create_shards(&path, suffix, shards).map(Sink::Set),
        })?;
        Ok(Writer { sink: Mutex::new(Some(sink)), path, pid: std::process::id() })
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
    fn records_written(&self, py: Python<'_>) -> Result<u64> {
        Ok(py.detach(|| self.with(|sink| Ok(sink.as_ref().map_or(0, Sink::records))))?)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Closes; after an exception the files are given up, or in a forked child left to the parent.
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
