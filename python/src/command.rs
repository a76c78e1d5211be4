//! The command `tfseek`, which the wheel carries.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command with these arguments, the program's name first, and gives its exit status.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| tfseek_cli::run(arguments));
    // An `ExitCode` cannot be asked for its number; there are 256 of them.
    (0..=u8::MAX).find(|&status| ExitCode::from(status) == code).unwrap_or(1)
}
