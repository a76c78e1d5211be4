//! Source files as text: their code, and the paths in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders of Rust source in the workspace. A packaged crate contains only the first.
pub(crate) const CRATES: [&str; 13] = [
    "src",
    "crates/arrow/src",
    "crates/cli/src",
    "crates/convert/src",
    "crates/image/src",
    "crates/remote/src",
    "crates/rlds/src",
    "crates/tfds/src",
    "crates/tools/src",
    "crates/view/src",
    "crates/wire/src",
    "crates/testkit/src",
    "python/src",
];

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the source files below `dir` with this ending, with their relative paths. Files of tests are left
/// out.
pub(crate) fn files(dir: &Path, ending: &str) -> Vec<(String, String)> {
    fn walk(dir: &Path, below: &str, ending: &str, files: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{below}{}", path.file_name().unwrap().to_str().unwrap());
            if path.ends_with("src/tests") {
                // As files of these names.
            } else if path.is_dir() {
                walk(&path, &format!("{name}/"), ending, files);
            } else if name.ends_with(ending) && name != "compile_fail.rs" && !name.ends_with("tests.rs") {
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut all = Vec::new();
    walk(dir, "", ending, &mut all);
    all.sort();
    all
}

/// Returns the Markdown pages of the repository with their paths: those of the root and of `docs/`, and the
/// Python package's.
pub(crate) fn pages() -> Vec<(String, String)> {
    let mut names: Vec<String> = vec!["README.md".into(), "CHANGELOG.md".into(), "python/PACKAGE.md".into()];
    names.extend(files(&root().join("docs"), ".md").into_iter().map(|(name, _)| format!("docs/{name}")));
    let read = |name: String| fs::read_to_string(root().join(&name)).ok().map(|text| (name, text));
    names.into_iter().filter_map(read).collect()
}

/// Returns the code of a Rust file, without comments and unit tests.
pub(crate) fn code(source: &str) -> String {
    let tests = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\n#[allow(unsafe_code)]\nmod tests {"];
    let source = match tests.iter().find_map(|tests| source.find(tests)) {
        Some(tests) => &source[..tests],
        None => source,
    };
    let mut out = String::new();
    for line in source.lines() {
        // No string in the workspace contains "//" followed by a path.
        out.push_str(line.split("//").next().unwrap_or_default());
        out.push('\n');
    }
    out
}

/// Returns the paths that begin with `head::`, without it. Groups such as `{a::x, b}` are expanded.
pub(crate) fn paths(code: &str, head: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = code;
    let start = format!("{head}::");
    while let Some(at) = rest.find(&start) {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let alone = !rest[..at].ends_with(is_word);
        rest = &rest[at + start.len()..];
        if alone {
            tree(rest, &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Reads one path or group at the start of `text` and returns the rest of the text.
fn tree<'t>(text: &'t str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut group) = text.strip_prefix('{') {
        loop {
            group = group.trim_start();
            if let Some(rest) = group.strip_prefix('}') {
                return rest;
            }
            let rest = tree(group, &mut before.clone(), found).trim_start();
            let rest = match rest.strip_prefix("as ") {
                Some(renamed) => {
                    renamed.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').trim_start()
                }
                None => rest,
            };
            match rest.strip_prefix(',') {
                Some(next) => group = next,
                None => return rest.strip_prefix('}').unwrap_or(""),
            }
        }
    }
    let len = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*')).unwrap_or(text.len());
    before.push(text[..len].to_owned());
    match text[len..].strip_prefix("::") {
        Some(rest) if !rest.starts_with('<') => tree(rest, before, found),
        _ => {
            found.push(before.clone());
            &text[len..]
        }
    }
}

/// Returns the cycles of a graph: groups of nodes of which each reaches the others.
pub(crate) fn cycles(names: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reach = |from: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(node) = next.pop() {
            for other in names.get(node).into_iter().flatten() {
                if seen.insert(other.clone()) {
                    next.push(other);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = names.keys().map(|node| (node, reach(node))).collect();
    let mut groups = BTreeSet::new();
    for (node, to) in &reached {
        let group: Vec<String> = reached
            .iter()
            .filter(|(other, back)| to.contains(**other) && back.contains(*node) && other != &node)
            .map(|(other, _)| (*other).clone())
            .chain([(*node).clone()])
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups
}
