//! `tfseek.verify`: verifies all records of files, with the rules of the command `tfseek verify`.

use crate::error::{BindingError, Result};
use crate::options::{self, Choice, KindOption};
use crate::reading::{self, bytes_of};
use crate::wait::{self, Progress, Unit};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use tfseek::Error;
use tfseek::example::MessageKind;
use tfseek::stream::StreamOptions;
use tfseek_tools::damage::MAX_RECORD;
use tfseek_tools::{KindedStream, Verification};

/// Numbers of files, of sound files, of records, of payload bytes and of malformed records, and the errors in the order of the files.
type Found<'py> = (usize, usize, u64, u64, u64, Vec<Bound<'py, PyAny>>);

/// Verifies all records of all files. `tfseek.verify` calls it.
#[pyfunction]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    paths: Vec<OsString>,
    decode: bool,
    kind: Choice<KindOption>,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Found<'py>> {
    // Without decoding the kind does not matter, and no record is read for a guess.
    let kind = if decode { kind.0.given() } else { Some(MessageKind::Other) };
    let progress = Progress::new(py, progress, "verifying", Unit::Bytes)?;
    let paths = reading::resolve(py, paths, false)?;
    let found = wait::run(py, progress, move |call| {
        call.expect(bytes_of(&paths));
        verify_all(&paths, kind, options::threads(threads)?, call.callback())
    })?;
    let (mut sound, mut records, mut payload_bytes, mut malformed) = (0, 0, 0, 0);
    let (files, mut errors) = (found.len(), Vec::new());
    for file in found {
        sound += usize::from(file.is_sound());
        records += file.records;
        payload_bytes += file.payload_bytes;
        malformed += file.malformed;
        for e in [file.first_malformed, file.damage].into_iter().flatten() {
            errors.push(PyErr::from(BindingError::from(e)).into_value(py).into_bound(py).into_any());
        }
    }
    Ok((files, sound, records, payload_bytes, malformed, errors))
}

/// Verifies files on several threads, and returns the results in the order of the files.
fn verify_all<F: Fn(u64) -> ControlFlow<()> + Clone + Send + Sync + 'static>(
    paths: &[PathBuf],
    kind: Option<MessageKind>,
    jobs: usize,
    report: F,
) -> Result<Vec<Verification>> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let k = next.fetch_add(1, Relaxed);
            let Some(path) = paths.get(k) else { return };
            if report(0).is_break() {
                return;
            }
            let file = verify_file(path, kind, report.clone()).unwrap_or_else(Verification::from);
            found.lock().unwrap_or_else(PoisonError::into_inner).push((k, file));
        }
    };
    thread::scope(|scope| -> Result<()> {
        for _ in 1..jobs.min(paths.len()) {
            let started = thread::Builder::new().name("tfseek-verify".into()).spawn_scoped(scope, work);
            started.map_err(|e| {
                next.store(paths.len(), Relaxed);
                PyRuntimeError::new_err(format!("cannot start a thread: {e}"))
            })?;
        }
        work();
        Ok(())
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(k, _)| *k);
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

fn verify_file(
    path: &Path,
    kind: Option<MessageKind>,
    report: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static,
) -> tfseek::Result<Verification> {
    let file = File::open(path).map_err(|e| Error::from(e).in_file(path))?;
    let again = file.try_clone().map_err(|e| Error::from(e).in_file(path))?;
    let stream = StreamOptions::new().read_file(file, path, report)?;
    let stream = match kind {
        Some(kind) => KindedStream::new(stream, kind),
        None => KindedStream::guess(stream),
    };
    let mut found = tfseek_tools::verify(stream, |_| ());
    found.count_behind_damage(&again, path, MAX_RECORD);
    Ok(found)
}
