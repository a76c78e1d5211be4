//! Each verb on one file.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use crate::common::*;
use std::ffi::{OsStr, OsString};
use std::fs;

#[track_caller]
pub(crate) fn run(dir: &Folder, args: &[&OsStr]) -> Ran {
    let mut command = dir.command(&[]);
    command.args(args);
    Ran::limited(command, dir)
}

pub(crate) fn words(text: &str, file: &OsStr) -> Vec<OsString> {
    text.split(' ').map(|word| if word == "FILE" { file.to_owned() } else { word.into() }).collect()
}

/// Verbs that read in file order.
pub(crate) const IN_ORDER: &[&str] = &[
    "head FILE",
    "head -f json FILE",
    "tail FILE",
    "cat FILE",
    "cat -f json FILE",
    "cat -f proto-json FILE",
    "info FILE",
    "info --json FILE",
    "digest FILE",
    "verify FILE",
    "verify --json FILE",
    "parse -s s.json FILE",
    "schema FILE",
    "schema --tfdv FILE",
    "grep label>=0 FILE",
    "grep -v --ids label<0 FILE",
    "grep -c --json label>=0 FILE",
    "grep -l -v -F x FILE",
    "stats FILE",
    "stats --json -j 2 FILE",
    "stats --json --save unpacked FILE",
    "stats --tfdv unpacked FILE",
    "validate FILE -s s.json",
    "validate --json FILE -s s.json",
    "validate FILE -s s.pbtxt",
    "unpack -o unpacked FILE",
    // By number, if the file allows it.
    "sample FILE",
];
/// Verbs that access records by number.
pub(crate) const BY_NUMBER: &[&str] = &[
    "get FILE 0",
    "get --io pread FILE 0",
    "index -q FILE",
    "index -q --pack p FILE",
    "index --format dali FILE",
    "index -q --column label FILE",
    "order -b 2 --describe FILE",
    "epoch -b 2 FILE",
    "reshard FILE --out unpacked/x",
    "reshard --shuffle --memory 1kB --json FILE --out unpacked/x@2",
    "reshard --sort-by label FILE --out unpacked/x.gz",
    "reshard --split t=0.5,v=0.5 FILE --out unpacked/{split}",
    "stats --sample 9 FILE",
];

/// Runs all verbs. `expected` contains the exit status of the verbs that read in file order, that of the
/// verbs that access by number, and the exceptions.
#[track_caller]
pub(crate) fn all_verbs(dir: &Folder, file: impl AsRef<OsStr>, expected: (i32, i32, &[(&str, i32)])) {
    for (verbs, code) in [(IN_ORDER, expected.0), (BY_NUMBER, expected.1)] {
        for verb in verbs {
            check_verb(dir, verb, file.as_ref(), expected.2, code);
        }
    }
}

#[track_caller]
pub(crate) fn check_verb(dir: &Folder, verb: &str, file: &OsStr, exceptions: &[(&str, i32)], code: i32) {
    let code = exceptions.iter().find(|(other, _)| verb.starts_with(other)).map_or(code, |&(_, code)| code);
    let args = words(verb, file);
    let ran = run(dir, &args.iter().map(OsString::as_os_str).collect::<Vec<_>>());
    let context = format!("{verb} of {}: {ran:?}", file.display());
    assert_eq!(ran.code, code, "{context}");
    assert!(!ran.err.contains("panicked"), "{context}");
    // No match is no message, as of `grep`. Anomalies are data.
    let is_silent = code == 0 || verb.starts_with("grep") && ran.err.is_empty() || ran.out.contains("anomal");
    assert!(is_silent || ran.err.contains("tfseek: "), "no message: {context}");
    assert!(ran.out.is_empty() || ran.out.ends_with('\n'), "an incomplete line: {context}");
    if verb.contains("json FILE") && !verb.contains("proto-json") || verb.starts_with("digest") {
        for line in ran.out.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {context}"));
        }
    }
    for left in ["unpacked", ".tfseek"] {
        let path = dir.path(left);
        _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
}

/// Returns a folder with the schemas of the verbs.
pub(crate) fn folder() -> Folder {
    let dir = Folder::new();
    let schema = r#"{"features":{"label":{"type":"fixed","dtype":"int64","shape":[]}}}"#;
    fs::write(dir.path("s.json"), schema).unwrap();
    fs::write(dir.path("s.pbtxt"), "feature { name: \"label\" type: INT }").unwrap();
    dir
}
