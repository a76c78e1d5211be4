//! Internal crate of tfseek: the command as a library. Its entry point is [`run`].

// No user input causes a panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

mod args;
mod bytes;
mod cli;
mod condition;
mod console;
mod damage;
mod dataset;
mod epoch;
mod exit;
mod features;
mod kept;
mod kind;
mod output;
mod outputs;
mod process;
mod progress;
mod records;
mod share;
mod split;
mod steps;
mod store;
mod text;
mod tfds;
mod times;
mod value_sum;
mod verbs;
#[cfg(test)]
mod vocabulary;
mod warnings;

use args::DamageChoice;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use cli::{Cli, Verb};
use console::Console;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Returns the description of the command and its verbs, of which man pages and completions are made.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command with `args`, starting with the program name. Data goes to standard output, all messages
/// to standard error.
///
/// Verbs that access records by number map the files, unless `args` contains `--io pread`. The user of the
/// command then keeps the contract of [`tfseek::Mapped::open`]: no process overwrites or truncates the files
/// while the command runs.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let program = args.first().cloned().unwrap_or_default();
    let parsed = command().try_get_matches_from(cli::prepare(args)).and_then(|matches| {
        let damage =
            matches.subcommand().and_then(|(_, verb)| verb.try_get_one::<DamageChoice>("damage").ok()?);
        Ok((Cli::from_arg_matches(&matches)?, damage.copied()))
    });
    let (Cli { global, verb }, damage) = match parsed {
        Ok(parsed) => parsed,
        Err(e) => {
            // If this fails, the failure cannot be reported either.
            let _ = e.print();
            let requested = matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return ExitCode::from(if requested { 0 } else { exit::USAGE });
        }
    };
    let mut console = Console::new(global, damage == Some(DamageChoice::Raise));
    let console_ref = &mut console;
    store::allow(verb.reads_objects());
    let outcome = match verb {
        Verb::Demo(args) => verbs::demo::run(&args, Path::new(&program), console_ref),
        Verb::Index(args) => verbs::index::run(&args, console_ref),
        Verb::Info(args) => verbs::info::run(&args, console_ref),
        Verb::Head(args) => verbs::head::run(&args, console_ref),
        Verb::Tail(args) => verbs::tail::run(&args, console_ref),
        Verb::Cat(args) => verbs::cat::run(&args, console_ref),
        Verb::Get(args) => verbs::get::run(&args, console_ref),
        Verb::Sample(args) => verbs::sample::run(&args, console_ref),
        Verb::Grep(args) => verbs::grep::run(&args, console_ref),
        Verb::Schema(args) => verbs::schema::run(&args, console_ref),
        Verb::Stats(args) => verbs::stats::run(&args, console_ref),
        Verb::Parse(args) => verbs::parse::run(&args, console_ref),
        Verb::Epoch(args) => verbs::epoch::run(&args, console_ref),
        Verb::Order(args) => verbs::order::run(&args, console_ref),
        Verb::Digest(args) => verbs::digest::run(&args, console_ref),
        Verb::Validate(args) => verbs::validate::run(&args, console_ref),
        Verb::Verify(args) => verbs::verify::run(&args, console_ref),
        Verb::Reshard(args) => verbs::reshard::run(&args, console_ref),
        Verb::Salvage(args) => verbs::salvage::run(&args, console_ref),
        Verb::Convert(args) => verbs::convert::run(&args, console_ref),
        Verb::Unpack(args) => verbs::unpack::run(&args, console_ref),
        #[cfg(feature = "remote")]
        Verb::Fetch(args) => verbs::fetch::run(&args, console_ref),
        #[cfg(feature = "view")]
        Verb::View(args) => verbs::view::run(&args, console_ref),
        Verb::Completions(args) => verbs::completions::run(&args, command(), console_ref),
    };
    warnings::print_kept(&mut console);
    ExitCode::from(console.finish(outcome))
}
