//! `tfseek.verify`: verifies all records of files, with the rules of the command `tfseek verify`.

use crate::error::{BindingError, Result};
use crate::options::{Choice, KindOption};
use crate::reading::{self, bytes_of};
use crate::remote::StorageOptions;
use crate::wait::{self, Progress, Unit};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use tfseek::Error;
use tfseek::example::MessageKind;
use tfseek_tfds::FoundFeatures;
use tfseek_tools::{RecordChecks, VerifyOptions};

/// Numbers of files, of sound files, of records, of payload bytes and of malformed records, the errors in the
/// order of the files, and the number of records of files with other checksums.
type Found<'py> = (usize, usize, u64, u64, u64, Vec<Bound<'py, PyAny>>, u64);

/// Verifies all records of all files. `tfseek.verify` calls it.
#[pyfunction]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    paths: Vec<OsString>,
    decode: bool,
    kind: Choice<KindOption>,
    threads: Option<usize>,
    storage: StorageOptions,
    progress: Option<&Bound<'py, PyAny>>,
) -> Result<Found<'py>> {
    // Without decoding the kind does not matter, and no record is read for a guess.
    let kind = if decode { kind.0 } else { Some(MessageKind::Other) };
    let progress = Progress::new(py, progress, "verifying", Unit::Bytes)?;
    let (paths, store) = reading::resolve(py, paths, false, storage)?;
    let checks = || {
        let files = paths.iter().map(PathBuf::as_path);
        let found = decode.then(|| FoundFeatures::of_files(files, store.as_ref()));
        RecordChecks::new(found.and_then(|found| found.features).as_deref(), decode)
    };
    let checks = py.detach(checks)?;
    let found = wait::run(py, progress, store.is_some(), move |call| {
        call.expect(bytes_of(&paths));
        let mut options = VerifyOptions::default();
        options.threads = threads;
        options.kind = kind;
        options.stream.store = store;
        options.checks = checks.map(Arc::new);
        let mut found = Vec::new();
        options.run(&paths, call.callback(), |_, file| {
            found.push(file);
            Ok::<_, Error>(())
        })?;
        Ok(found)
    })?;
    let files = found.len();
    let sound = found.iter().filter(|file| file.is_sound()).count();
    let records = found.iter().map(|file| file.records).sum();
    let payload_bytes = found.iter().map(|file| file.payload_bytes).sum();
    let malformed = found.iter().map(|file| file.malformed).sum();
    let unverified = found.iter().filter_map(|file| file.unverified).sum();
    let mut errors = Vec::new();
    for file in found {
        let faults = file.faults.into_iter().flat_map(|found| found.faults);
        let faults = faults.filter(|fault| !fault.kind.is_note()).map(|fault| fault.error);
        for e in file.first_malformed.into_iter().chain(faults).chain(file.damage) {
            errors.push(PyErr::from(BindingError::from(e)).into_value(py).into_bound(py).into_any());
        }
    }
    Ok((files, sound, records, payload_bytes, malformed, errors, unverified))
}
