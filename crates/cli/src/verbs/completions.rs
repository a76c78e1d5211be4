//! `tfseek completions`: prints a completion script for a shell.

use crate::console::Console;
use crate::exit::{Failure, Outcome};
use clap::Args;
use clap_complete::Shell;
use std::io::Write;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that runs the script
    pub(crate) shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, mut command: clap::Command, console: &mut Console) -> Outcome {
    // The script goes to memory first, because the generator panics if a write fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tfseek", &mut script);
    console.out().write_all(&script).map_err(Failure::Stdout)
}
