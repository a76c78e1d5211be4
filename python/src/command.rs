//! The command `tfseek`, which the wheel contains.
//!
//! The package `_tfseek_command` runs it, and loads the same native file under another name: `tfseek` imports
//! NumPy, which takes ten times as long as the command. A binary of its own would start in 4 ms, and double
//! the size of the wheel.

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
