//! `tfseek completions`: a script for a shell.

use crate::args::{Cli, Completions};
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn run(args: &Completions, console: &mut Console) -> Outcome {
    // Into memory first: the generator panics where a write fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tfseek", &mut script);
    console.out().write_all(&script).map_err(Failure::Stdout)
}
