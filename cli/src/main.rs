//! The `tfseek` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    tfseek_cli::run(std::env::args_os())
}
