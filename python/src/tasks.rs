//! Sets of shards that several processes write. `tfseek/_tasks.py` has the documentation.

use crate::arrow_write::{StreamRows, Written, of_set};
use crate::error::Result;
use crate::exit;
use crate::options::{Choice, argument};
use crate::wait::{self, locked};
use crate::writer::payload_of;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Mutex;
use tfseek::Compression;
use tfseek::error::EncodeError;
use tfseek_tools::ToolsError;
use tfseek_tools::set::{self, TaskAttempt, TaskFile, TaskOptions, TaskWriter};

/// A file of a task: name, numbers of records and bytes, digest.
type File = (String, u64, u64, String);

fn of_file(file: TaskFile) -> File {
    (file.name, file.records, file.bytes, file.digest)
}

/// Creates the file of an attempt of a task.
fn create(
    arguments: &Bound<'_, PyDict>,
) -> Result<impl FnOnce() -> Result<TaskWriter, ToolsError> + Send + 'static> {
    let folder: PathBuf = argument(arguments, "folder")?;
    let who = TaskAttempt {
        job: argument(arguments, "job")?,
        task: argument(arguments, "task")?,
        attempt: argument(arguments, "attempt")?,
    };
    let Choice::<Compression>(compression) = argument(arguments, "compression")?;
    let mut options = TaskOptions::default();
    options.compression = compression;
    Ok(move || TaskWriter::create(&folder, &who, &options))
}

/// The writer of one attempt of a task, record by record.
#[pyclass(frozen, module = "tfseek")]
pub(crate) struct TaskWriterCore {
    inner: Mutex<Option<TaskWriter>>,
}

impl TaskWriterCore {
    fn take(&self) -> Option<TaskWriter> {
        locked(&self.inner).take()
    }
}

#[pymethods]
impl TaskWriterCore {
    #[new]
    fn new(py: Python<'_>, arguments: &Bound<'_, PyDict>) -> Result<TaskWriterCore> {
        let create = create(arguments)?;
        Ok(TaskWriterCore { inner: Mutex::new(Some(py.detach(create)?)) })
    }

    fn write(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> Result<()> {
        let payload = payload_of(py, record)?;
        Ok(py.detach(|| match &mut *locked(&self.inner) {
            Some(writer) => writer.write(payload.as_ref()),
            None => Err(EncodeError::Closed.into()),
        })?)
    }

    fn close(&self, py: Python<'_>) -> Result<File> {
        let closed = py.detach(|| match self.take() {
            Some(writer) => writer.close(),
            None => Err(tfseek::Error::from(EncodeError::Closed).into()),
        });
        Ok(of_file(closed?))
    }

    fn abort(&self, py: Python<'_>) {
        py.detach(|| drop(self.take()));
    }
}

/// Writes the rows of a stream to the file of an attempt of a task.
#[pyfunction]
pub(crate) fn write_task(
    py: Python<'_>,
    stream: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyDict>,
) -> Result<File> {
    let create = create(arguments)?;
    let mut rows = StreamRows::new(py, stream, arguments)?;
    let written = wait::run(py, None, false, move |call| {
        let mut writer = create()?;
        rows.write(&call.callback(), |payload| writer.write(payload))?;
        Ok(writer.close()?)
    });
    exit::stop_at_exit(py);
    Ok(of_file(written?))
}

/// Checks that there is no set of a name.
#[pyfunction]
pub(crate) fn check_job(py: Python<'_>, out: PathBuf) -> Result<()> {
    Ok(py.detach(|| set::check_job(&out))?)
}

/// Returns the end of the names of files with this compression, such as `.tfrecord.gz`.
#[pyfunction]
pub(crate) fn file_ending(compression: Choice<Compression>) -> String {
    format!(".tfrecord{}", compression.0.suffix())
}

/// Makes the files of a job a set.
#[pyfunction]
pub(crate) fn commit_tasks(
    py: Python<'_>,
    out: PathBuf,
    job: &str,
    files: Vec<File>,
    compression: Choice<Compression>,
    force: bool,
) -> Result<Written> {
    let files: Vec<TaskFile> = files
        .into_iter()
        .map(|(name, records, bytes, digest)| TaskFile { name, records, bytes, digest })
        .collect();
    let mut options = TaskOptions::default();
    options.compression = compression.0;
    Ok(of_set(py.detach(|| set::commit(&out, job, &files, &options, force))?))
}

/// Removes all files of a job.
#[pyfunction]
pub(crate) fn abort_tasks(py: Python<'_>, folder: PathBuf, job: &str) -> Result<()> {
    Ok(py.detach(|| set::abort(&folder, job))?)
}
