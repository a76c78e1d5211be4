//! `tfseek.unpack`: decompresses files to plain ones, with the rules of the command `tfseek unpack`.

use crate::error::Result;
use crate::reading::{self, bytes_of};
use crate::remote::StorageOptions;
use crate::wait::{self, CallState, Progress, Unit};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use tfseek::io::{Existing, Store};
use tfseek::stream::StreamOptions;
use tfseek::{Compression, Error, ErrorKind, Stream};
use tfseek_tools::unpack::{self as tools, Destination, UnpackInput};
use tfseek_tools::{ToolsError, outputs};

/// Decompresses files and returns the paths of the plain ones. `tfseek.unpack` calls it.
#[pyfunction]
pub(crate) fn unpack(
    py: Python<'_>,
    paths: Vec<OsString>,
    out: PathBuf,
    force: bool,
    storage: StorageOptions,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Vec<OsString>> {
    let progress = Progress::new(py, progress, "unpacking", Unit::Bytes)?;
    let (paths, store) = reading::resolve(py, paths, false, storage)?;
    wait::run(py, progress, false, move |call| Ok(unpack_all((&paths, store), &out, force, call)?))
}

/// Unpacks all files, and returns the error of the first one that failed.
fn unpack_all(
    (paths, store): (&[PathBuf], Option<Arc<dyn Store>>),
    out: &Path,
    force: bool,
    call: &Arc<CallState>,
) -> Result<Vec<OsString>, ToolsError> {
    let destination = Destination::Folder(out);
    let read = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&read);
    let advance = call.callback();
    let report = move |bytes| {
        counted.fetch_add(bytes, Relaxed);
        advance(bytes)
    };
    outputs::check_local(out)?;
    let streams = StreamOptions { store, ..StreamOptions::default() };
    let open = |path: &Path| streams.open_with(path, report.clone());
    let inputs = UnpackInput::open_all(paths, open);
    let compressed = inputs.iter().filter(|input| input.is_compressed()).map(|input| input.path);
    let compressed: Vec<PathBuf> = compressed.map(Path::to_path_buf).collect();
    let targets: Vec<_> =
        compressed.iter().filter_map(|path| Some((destination.target(path)?, path.as_path()))).collect();
    let outputs = targets.iter().map(|(target, path)| (target.as_path(), *path));
    outputs::check_distinct(outputs, paths.iter().map(PathBuf::as_path))?;
    std::fs::create_dir_all(out).map_err(|e| Error::from(e).in_file(out))?;
    // What was read of the open files is reported.
    call.expect(bytes_of(&compressed).map(|bytes| bytes.saturating_sub(read.load(Relaxed))));
    let mut written = Vec::new();
    let mut failed = None;
    for input in inputs {
        if report(0).is_break() {
            return Err(Error::from(ErrorKind::Cancelled).into());
        }
        let path = input.path;
        match input
            .stream(open)
            .map_err(ToolsError::from)
            .and_then(|stream| unpack_file(path, stream, destination, force))
        {
            Ok(target) => written.extend(target.map(OsString::from)),
            // The other files are unpacked.
            Err(refused) => {
                failed.get_or_insert(refused);
            }
        }
    }
    failed.map_or(Ok(written), Err)
}

/// Unpacks a file and returns the path of the plain file, or `None` if the file is not compressed.
fn unpack_file(
    path: &Path,
    mut stream: Stream,
    destination: Destination<'_>,
    force: bool,
) -> Result<Option<PathBuf>, ToolsError> {
    if stream.compression() == Compression::None {
        // A file of another format is an error.
        stream.next()?;
        return Ok(None);
    }
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "expected a file name in UTF-8");
    let target = destination.target(path).ok_or_else(|| Error::from(unnamed()).in_file(path))?;
    if !force {
        outputs::check_new(&target)?;
    }
    tools::unpack(&mut stream, &target, Existing::replace_if(force), |_| {})?;
    Ok(Some(target))
}
