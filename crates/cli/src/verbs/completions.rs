//! `tfseek completions`: prints a completion script for a shell.

use crate::args::{Cli, CompletionsArgs};
use crate::console::Console;
use crate::exit::{Failure, Outcome};
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn run(args: &CompletionsArgs, console: &mut Console) -> Outcome {
    // The script goes to memory first, because the generator panics if a write fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tfseek", &mut script);
    console.out().write_all(&script).map_err(Failure::Stdout)
}
