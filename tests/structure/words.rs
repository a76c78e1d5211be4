//! The wording rules that a program can check: how summaries begin, names used once, long sentences, words to
//! avoid.

use crate::source::{CRATES, files, pages, root};
use std::collections::BTreeMap;

/// Words that a doc line should not begin with: they start a clause where a noun or a verb should stand.
const CLAUSES: [&str; 8] = ["What", "Where", "Whether", "How", "Which", "When", "Who", "Of"];

/// Number of doc lines that may begin with one of them.
const MAX_CLAUSES: usize = 60;

/// Words with a plainer equivalent.
const AVOIDED: [&str; 12] = [
    "handed out",
    "hands out",
    "look-up",
    "looks at",
    "misfit",
    "moods",
    "nobody",
    "scrutiny",
    "so many",
    "storey",
    "told",
    "vouch",
];

/// Longest sentence of a page, in words.
const MAX_SENTENCE: usize = 35;

/// Returns the text after the comment marker, for a line that is a comment.
fn comment<'l>(line: &'l str, markers: &[&str]) -> Option<&'l str> {
    let line = line.trim_start();
    markers.iter().find_map(|marker| line.strip_prefix(marker)).map(str::trim)
}

/// Returns the lines inside docstrings of a Python file.
fn docstrings(source: &str) -> Vec<&str> {
    let parts = source.split("\"\"\"").skip(1).step_by(2);
    parts.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// Returns `file: line` for each documentation line of the published crates and of the Python package.
fn documentation() -> Vec<String> {
    let mut found = Vec::new();
    for folder in CRATES.into_iter().filter(|folder| !folder.starts_with("crates/testkit")) {
        if root().join(folder).exists() {
            for (file, source) in files(&root().join(folder), ".rs") {
                let lines = source.lines().filter_map(|line| comment(line, &["///", "//!"]));
                found.extend(lines.map(|line| format!("{folder}/{file}: {line}")));
            }
        }
    }
    if root().join("python/tfseek").exists() {
        for (file, source) in files(&root().join("python/tfseek"), ".py") {
            found.extend(docstrings(&source).iter().map(|line| format!("python/tfseek/{file}: {line}")));
        }
    }
    found
}

/// Returns the sentences of a page: its prose and its table cells, without code blocks.
fn sentences(page: &str) -> Vec<String> {
    let mut prose = String::new();
    for (n, part) in page.split("```").enumerate() {
        if n % 2 == 0 {
            prose.push_str(part);
        }
        prose.push_str("\n\n");
    }
    let mut units = vec![String::new()];
    for line in prose.lines() {
        let text = line.trim_start();
        let item = text.starts_with("* ")
            || text.starts_with("- ")
            || text.starts_with(|c: char| c.is_ascii_digit());
        if text.is_empty() || text.starts_with('#') || item {
            units.push(String::new());
        }
        for (n, cell) in text.split('|').enumerate() {
            if n > 0 {
                units.push(String::new());
            }
            let unit = units.last_mut().unwrap();
            unit.push_str(cell);
            unit.push(' ');
        }
    }
    let ends = |text: &str| text.trim_end_matches(['*', ')', '"', '_']).ends_with(['.', '!', '?']);
    let mut found = Vec::new();
    for unit in units {
        let mut sentence = String::new();
        for word in unit.split_whitespace() {
            sentence.push_str(word);
            sentence.push(' ');
            if ends(word) {
                found.push(std::mem::take(&mut sentence));
            }
        }
        found.push(sentence);
    }
    found.into_iter().filter(|sentence| !sentence.trim().is_empty()).collect()
}

#[test]
fn few_doc_lines_begin_with_a_clause() {
    let lines = documentation();
    let begins = |line: &&String| {
        let text = line.split_once(": ").map_or("", |(_, text)| text);
        CLAUSES.contains(&text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default())
    };
    let found: Vec<_> = lines.iter().filter(begins).collect();
    assert!(lines.len() > 3_000, "{}", lines.len());
    assert!(
        found.len() <= MAX_CLAUSES,
        "{} lines, at most {MAX_CLAUSES} are allowed: {found:#?}",
        found.len()
    );
}

#[test]
fn no_type_name_is_used_three_times() {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in CRATES.into_iter().filter(|folder| root().join(folder).exists()) {
        for (file, source) in files(&root().join(folder), ".rs") {
            for line in source.lines() {
                let mut words = line
                    .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .skip_while(|word| ["", "pub", "crate", "super", "in", "unsafe"].contains(word));
                let keyword = words.next().unwrap_or_default();
                let name = words.next().filter(|name| name.starts_with(char::is_uppercase));
                if let (true, Some(name)) = (["struct", "enum", "trait", "union"].contains(&keyword), name) {
                    types.entry(name.to_owned()).or_default().push(format!("{folder}/{file}"));
                }
            }
        }
    }
    assert!(types.contains_key("Dataset") && types.len() > 200, "{}", types.len());
    types.retain(|_, places| places.len() > 2);
    assert!(types.is_empty(), "{types:#?}");
}

#[test]
fn words_to_avoid_are_not_used() {
    let mut found = Vec::new();
    let pages = pages().into_iter().filter(|(page, _)| page != "CHANGELOG.md");
    let lines =
        pages.flat_map(|(page, text)| text.lines().map(|line| format!("{page}: {line}")).collect::<Vec<_>>());
    for line in documentation().into_iter().chain(lines) {
        let text = line.split_once(": ").map_or("", |(_, text)| text).to_lowercase();
        let whole = |word: &str| {
            text.match_indices(word).any(|(at, _)| {
                !text[..at].ends_with(char::is_alphanumeric)
                    && !text[at + word.len()..].starts_with(char::is_alphanumeric)
            })
        };
        if let Some(word) = AVOIDED.into_iter().find(|word| whole(word)) {
            found.push(format!("{word:?} in {line}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_sentence_of_a_page_is_longer_than_it_may_be() {
    let mut found = Vec::new();
    for (page, text) in pages() {
        let long = |s: &String| {
            s.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count() > MAX_SENTENCE
        };
        found.extend(sentences(&text).into_iter().filter(long).map(|s| format!("{page}: {s}")));
    }
    assert!(found.is_empty(), "{} sentences: {found:#?}", found.len());
    let split = sentences("One. Two three\nfour? `a.b` five | six. | seven\n\n* eight\n```\nnine.\n```\nten");
    assert_eq!(
        split.iter().map(|s| s.trim()).collect::<Vec<_>>(),
        ["One.", "Two three four?", "`a.b` five", "six.", "seven", "* eight", "ten"]
    );
}
