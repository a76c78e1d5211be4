//! Writes the man page of each verb and the completions of each shell:
//! `cargo run -p tfseek-cli --example pages -- DIR`. `make dist` puts them into the archives of the command.
//! Only packages need them, so this is no verb. A test runs the examples on the pages.

use clap::{Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

const EXAMPLES: &str = include_str!("../man/examples.txt");

/// Returns the lines of each verb's examples.
fn examples() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut all = BTreeMap::new();
    for paragraph in EXAMPLES.split("\n\n").skip(1) {
        let mut lines = paragraph.lines();
        all.insert(lines.next().unwrap_or_default(), lines.collect());
    }
    all
}

/// Writes the page of a command; that of a verb with its examples.
fn page(command: &Command, name: &str, lines: &[&str], to: &Path) -> io::Result<()> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    if !lines.is_empty() {
        let mut roff = Roff::new();
        roff.control("SH", ["EXAMPLES"]);
        for line in lines {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    roff.control("RS", ["4"]).control("nf", []);
                    roff.text([roman(command)]).control("fi", []).control("RE", []);
                }
                None => drop(roff.control("PP", []).text([roman(*line)])),
            }
        }
        roff.to_writer(&mut page)?;
    }
    fs::write(to.join(format!("{name}.1")), page)
}

fn main() -> io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        return Err(io::Error::other("expected a folder"));
    };
    let folder = Path::new(&folder);
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    let mut command = tfseek_cli::command();
    for shell in Shell::value_variants() {
        clap_complete::generate_to(*shell, &mut command, "tfseek", &completions)?;
    }
    command.build();
    page(&command, "tfseek", &[], &man)?;
    let mut examples = examples();
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let lines = examples.remove(verb.get_name()).unwrap_or_default();
        page(verb, &format!("tfseek-{}", verb.get_name()), &lines, &man)?;
    }
    Ok(())
}
