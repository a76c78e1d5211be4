//! The examples of the man pages: each command runs, and each verb has one.

#![cfg(unix)]

use crate::common::Folder;
use crate::common::robot::episodes;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const EXAMPLES: &str = include_str!("../man/examples.txt");

/// Returns the verbs of the command, as its help lists them.
fn verbs(dir: &Folder) -> BTreeSet<String> {
    let help = dir.run(&["--help"]).out;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    lines
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|verb| verb != "help")
        .collect()
}

#[test]
fn every_verb_has_an_example_that_runs() {
    let dir = Folder::new();
    dir.robot(&[&episodes(0, &[3, 2])]);
    let bin = Path::new(env!("CARGO_BIN_EXE_tfseek")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let (mut seen, verbs) = (BTreeSet::new(), verbs(&dir));
    let mut verb = "";
    for line in EXAMPLES.lines().skip_while(|line| !line.is_empty()) {
        let Some(line) = line.strip_prefix("$ ") else {
            if !line.is_empty() && !line.contains(' ') {
                verb = line;
            }
            continue;
        };
        assert!(line.contains(&format!("tfseek {verb} ")), "an example of {verb}: {line}");
        if verb == "fetch" && !verbs.contains(verb) {
            continue;
        }
        let mut command = Command::new("sh");
        command.args(["-c", line]).env("PATH", &path).current_dir(dir.path(""));
        // Its bucket is out of reach, and this is no usage error.
        command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1").env("AWS_ALLOW_HTTP", "true");
        let ran = command.output().unwrap();
        let expected = if verb == "fetch" { 3 } else { 0 };
        assert_eq!(ran.status.code(), Some(expected), "{line}: {ran:?}");
        seen.insert(verb.to_owned());
    }
    assert_eq!(seen, verbs);
}
