//! The shell commands and the Rust of the README, the tutorial, the cookbook and the page of the command, and
//! the commands of the table of questions: each block runs, and prints what the page shows.
//!
//! The Rust blocks are the lines of `readme.rs`, `tutorial.rs` and `recipes.rs`; a test compares them with
//! the pages. They open files by relative paths, so they run in a process whose working folder holds the
//! dataset of `tfseek demo`.

#![cfg(unix)]

#[path = "../common/mod.rs"]
mod common;
mod readme;
mod recipes;
mod tutorial;

use common::{Folder, Ran};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");
const README: &str = include_str!("../../../../README.md");
const QUESTIONS: &str = include_str!("../../../../docs/README.md");
const COMMAND: &str = include_str!("../../../../docs/command.md");
const STATISTICS: &str = include_str!("../../../../docs/statistics.md");
const COOKBOOK: &str = include_str!("../../../../docs/cookbook.md");

/// The variable that is set in the process that runs the Rust blocks.
const IN_FOLDER: &str = "TFSEEK_TEST_COOKBOOK";

/// Returns the blocks of a page in this language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Compares a line with an expected one, in which `..` stands for any text.
fn line_matches(expected: &str, line: &str) -> bool {
    match expected.split_once("..") {
        Some((start, end)) => line.strip_prefix(start).is_some_and(|rest| {
            rest.char_indices().any(|(at, _)| line_matches(end, &rest[at..])) || end.is_empty()
        }),
        None => line == expected,
    }
}

/// Compares lines with expected ones, among which `...` stands for any number of lines.
fn matches(expected: &[&str], lines: &[&str]) -> bool {
    match (expected, lines) {
        ([], []) => true,
        (["..."], _) => true,
        (["...", expected @ ..], lines) => (0..=lines.len()).any(|n| matches(expected, &lines[n..])),
        ([first, expected @ ..], [line, lines @ ..]) => line_matches(first, line) && matches(expected, lines),
        _ => false,
    }
}

/// Returns a command that runs in a folder, keeps its cache there, and finds `tfseek`.
fn in_folder(dir: &Folder, program: impl AsRef<OsStr>, args: &[&str]) -> Command {
    let tfseek = Path::new(env!("CARGO_BIN_EXE_tfseek")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([tfseek].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new(program);
    command.args(args).current_dir(dir.path("")).env("PATH", path).env("TFSEEK_INDEX_DIR", dir.path("index"));
    command
}

/// Runs the commands of a page in order, in one folder, without those that install something. A command must
/// succeed, and print the lines below it if there are any.
fn run_commands(page: &str) {
    let dir = Folder::new();
    for block in blocks(page, "console") {
        for command in format!("\n{block}").split("\n$ ").skip(1) {
            let (command, expected) = command.split_once('\n').unwrap_or((command, ""));
            if command.starts_with("cargo ") || command.starts_with("pip ") {
                continue;
            }
            let ran =
                Ran::of(in_folder(&dir, "sh", &["-c", &format!("{{ {command}\n}} 2>&1")]).output().unwrap());
            assert_eq!(ran.code, 0, "$ {command}\n{}", ran.out);
            let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), ran.out.lines().collect());
            assert!(expected.is_empty() || matches(&expected, &found), "$ {command}\n{}", ran.out);
        }
    }
}

#[test]
fn commands_of_the_command_page() {
    run_commands(COMMAND);
}

#[test]
fn commands_of_the_page_of_statistics() {
    run_commands(STATISTICS);
}

#[test]
fn commands_of_the_tutorial() {
    run_commands(TUTORIAL);
}

#[test]
fn commands_of_the_cookbook() {
    run_commands(COOKBOOK);
}

#[test]
fn commands_of_the_readme() {
    run_commands(README);
}

/// The table of questions in docs/README.md names each verb that reads or writes a dataset, with arguments
/// that work.
#[test]
fn commands_of_the_table_of_questions() {
    let dir = Folder::new();
    assert_eq!(dir.run(&["demo", "--out", "data"]).code, 0);
    fs::write(dir.path("schema.json"), dir.run(&["schema", "--json", "data"]).out).unwrap();
    fs::copy(dir.path("data/observations-00000-of-00004.tfrecord"), dir.path("old.tfrecord")).unwrap();
    fs::write(dir.path("lines.jsonl"), dir.run(&["head", "-f", "json", "data"]).out).unwrap();
    let table = QUESTIONS.split_once("## Questions").unwrap().1.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let mut commands: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    commands.retain(|code| code.starts_with("tfseek "));
    for command in &commands {
        // A viewer that does not end by itself is ended as Ctrl-C ends it, after its link.
        let serves = command.starts_with("tfseek view ") && !command.contains("--html");
        // The shell would inherit an ignored SIGINT, so a second signal follows.
        let line =
            if serves { &format!("timeout --preserve-status -s INT -k 5 2 {command}") } else { *command };
        let ran = Ran::of(in_folder(&dir, "sh", &["-c", line]).output().unwrap());
        if serves {
            assert!(ran.out.contains(": open http://127.0.0.1:"), "$ {command}\n{}{}", ran.out, ran.err);
            continue;
        }
        assert_eq!(ran.code, 0, "$ {command}\n{}", ran.err);
    }
    let verbs = [
        "info", "get", "convert", "schema", "stats", "grep", "validate", "verify", "salvage", "order",
        "epoch", "reshard", "view",
    ];
    for verb in verbs {
        assert!(commands.iter().any(|command| command.split(' ').nth(1) == Some(verb)), "{verb}");
    }
}

#[test]
fn rust_blocks_are_these() {
    let lines = |text: &'static str| text.lines().map(str::trim).collect::<Vec<_>>();
    let pages = [
        (README, include_str!("readme.rs")),
        (TUTORIAL, include_str!("tutorial.rs")),
        (COOKBOOK, include_str!("recipes.rs")),
    ];
    for (page, source) in pages {
        let source = lines(source);
        let blocks = blocks(page, "rust");
        assert!(!blocks.is_empty());
        for block in blocks {
            let block_lines = lines(block);
            assert!(source.windows(block_lines.len()).any(|some| some == block_lines), "not run:\n{block}");
        }
    }
}

/// Runs a test of this file in a folder with the dataset of `tfseek demo`. Returns its output.
fn run_in_folder(test: &str) -> String {
    let dir = Folder::new();
    assert_eq!(dir.run(&["demo", "--out", "data"]).code, 0);
    assert_eq!(dir.run(&["index", "--pack", "all", "data"]).code, 0);
    fs::write(dir.path("schema.json"), dir.run(&["schema", "--json", "data"]).out).unwrap();
    let program = std::env::current_exe().unwrap();
    let mut command = in_folder(&dir, program, &["--exact", test, "--nocapture"]);
    let ran = Ran::of(command.env(IN_FOLDER, "1").output().unwrap());
    assert!(ran.code == 0 && ran.out.contains("1 passed"), "{}{}", ran.out, ran.err);
    ran.out
}

#[test]
fn rust_of_the_readme() -> Result {
    if std::env::var_os(IN_FOLDER).is_some() {
        return readme::run();
    }
    run_in_folder("rust_of_the_readme");
    Ok(())
}

#[test]
fn rust_of_the_cookbook() -> Result {
    if std::env::var_os(IN_FOLDER).is_some() {
        return recipes::run();
    }
    run_in_folder("rust_of_the_cookbook");
    Ok(())
}

#[test]
fn rust_of_the_tutorial() -> Result {
    if std::env::var_os(IN_FOLDER).is_some() {
        return tutorial::run();
    }
    // The losses are those that the page shows below the loop in Python.
    let printed = run_in_folder("rust_of_the_tutorial");
    let losses: Vec<_> = printed.lines().filter(|line| line.starts_with("epoch ")).collect();
    assert_eq!(losses.len(), 3);
    assert!(TUTORIAL.contains(&losses.join("\n")), "{printed}");
    Ok(())
}
