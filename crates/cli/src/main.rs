//! The `tfseek` command.

// No user input causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use std::process::ExitCode;

fn main() -> ExitCode {
    tfseek_cli::run(std::env::args_os())
}
