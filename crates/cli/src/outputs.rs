//! Checks on output paths, made before anything is written.

use crate::exit::{Failure, Outcome};
use crate::records::STDIN;
use std::io::Write;
use std::path::Path;
use tfseek::io::{Existing, Output};
use tfseek_tools::outputs;

/// Refuses `-`, which is no file: an output gets its name when it is complete. Refuses URLs, which are read
/// only.
pub(crate) fn check_name(path: &Path) -> Outcome {
    outputs::check_local(path).map_err(|e| Failure::usage(e.to_string()))?;
    if path == Path::new(STDIN) {
        return Err(Failure::usage("expected a file for the output, found `-` (standard output)"));
    }
    Ok(())
}

/// Refuses to replace an existing file, unless `force` is set. Devices and FIFOs are written to and not
/// replaced.
pub(crate) fn check_replace(path: &Path, force: bool) -> Outcome {
    check_name(path)?;
    if force {
        return Ok(());
    }
    outputs::check_new(path).map_err(|e| Failure::usage(format!("{e} (--force replaces it)")))
}

/// Refuses outputs that are the same file, and outputs that are inputs, under any names and links. `outputs`
/// are pairs of an output and the input that it is made from.
pub(crate) fn check_distinct<'a>(
    outputs: impl IntoIterator<Item = (&'a Path, &'a Path)>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Outcome {
    outputs::check_distinct(outputs, inputs).map_err(|e| Failure::usage(e.to_string()))
}

/// Creates a file, which gets its name when it is complete.
pub(crate) fn create(path: &Path, existing: Existing) -> Outcome<Output> {
    Output::open(path, existing).map_err(|e| Failure::io(path, e))
}

/// Writes a created file and gives it its name.
pub(crate) fn write(path: &Path, mut output: Output, bytes: &[u8]) -> Outcome {
    output.write_all(bytes).and_then(|()| output.commit()).map_err(|e| Failure::io(path, e))
}
