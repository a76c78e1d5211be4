//! The command `tfseek`, which the wheel contains.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command with these arguments, the program's name first, and returns its exit status.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| tfseek_cli::run(arguments));
    // `ExitCode` does not expose its number. There are 256 values to compare with.
    (0..=u8::MAX).find(|&status| ExitCode::from(status) == code).unwrap_or(1)
}
