//! `docs/public-api.txt` names the public items of the promised crates. All other published crates say that
//! they are internal.

use crate::source::{code, files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The promised crates, and the folders of their source.
const PROMISED: [(&str, &str); 3] =
    [("tfseek", "src"), ("tfseek-arrow", "crates/arrow/src"), ("tfseek-remote", "crates/remote/src")];

/// Returns the identifier at the start of a text.
fn ident(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Returns the item of a declaration after `pub`: its keyword, and the text after that.
fn item(declaration: &str) -> Option<(&str, &str)> {
    let declaration = declaration.trim_start_matches("const ").trim_start_matches("unsafe ");
    let (keyword, rest) = declaration.split_once(' ')?;
    ["fn", "struct", "enum", "trait", "type", "union"].contains(&keyword).then_some((keyword, rest))
}

/// Returns the public items that a file declares. The functions of a public trait are among them.
fn declared(source: &str) -> BTreeSet<(String, String)> {
    let code = code(source);
    let mut found = BTreeSet::new();
    let mut in_trait = false;
    for line in code.lines() {
        if line.starts_with("pub trait ") {
            in_trait = !line.ends_with('}');
        } else if line == "}" {
            in_trait = false;
        }
        let declaration = match line.strip_prefix("    fn ") {
            Some(_) if in_trait => Some(line.trim_start()),
            _ => line.trim_start().strip_prefix("pub "),
        };
        if let Some((keyword, rest)) = declaration.and_then(item) {
            found.insert((keyword.to_owned(), ident(rest).to_owned()));
        }
    }
    // Macros declare items whose names are parameters.
    found.retain(|(_, name)| !name.is_empty());
    found
}

/// Returns the item of a line of `docs/public-api.txt`: its keyword and its name.
fn listed(line: &str) -> Option<(String, String)> {
    let line = line.strip_prefix("#[non_exhaustive] ").unwrap_or(line);
    let (keyword, rest) = item(line.strip_prefix("pub ")?)?;
    let mut path = String::new();
    let mut nested = 0;
    let mut last = ' ';
    for c in rest.chars() {
        match c {
            '<' => nested += 1,
            '>' if last != '-' => nested -= 1,
            '(' if nested == 0 => break,
            ' ' if nested == 0 && keyword != "fn" => break,
            c if nested == 0 => path.push(c),
            _ => {}
        }
        last = c;
    }
    let name = path.trim_end_matches(':').rsplit("::").next()?;
    Some((keyword.to_owned(), name.to_owned()))
}

#[test]
fn the_list_has_the_public_items_of_the_promised_crates() {
    let list = fs::read_to_string(root().join("docs/public-api.txt")).unwrap();
    let mut by_crate: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    let mut name = String::new();
    // `WireError` is re-exported from an internal crate.
    for line in list.lines().filter(|line| !line.contains("tfseek_wire::WireError")) {
        if let Some(module) = line.strip_prefix("pub mod ").filter(|module| !module.contains("::")) {
            name = module.replace('_', "-");
        }
        by_crate.entry(name.clone()).or_default().extend(listed(line));
    }
    let mut wrong = Vec::new();
    for (name, folder) in PROMISED {
        if !root().join(folder).exists() {
            tfseek_testkit::skipped(folder);
            continue;
        }
        let sources = files(&root().join(folder), ".rs");
        let public: BTreeSet<_> = sources.iter().flat_map(|(_, source)| declared(source)).collect();
        let listed = by_crate.get(name).unwrap_or_else(|| panic!("no {name}"));
        let missing = public.difference(listed);
        wrong.extend(missing.map(|(keyword, item)| format!("{name}: {keyword} {item} is not listed")));
        // Implementations of traits of others have functions and types, too.
        let text: String = sources.iter().map(|(_, source)| code(source)).collect();
        let gone = listed.difference(&public).filter(|(keyword, item)| match keyword.as_str() {
            "fn" => !text.split(" fn ").skip(1).any(|rest| ident(rest) == item),
            keyword => keyword != "type",
        });
        wrong.extend(gone.map(|(keyword, item)| format!("{name}: {keyword} {item} is not declared")));
        assert!(public.len() >= if folder == "src" { 300 } else { 8 }, "{name}: {}", public.len());
    }
    assert!(wrong.is_empty(), "`make public-api WRITE=1` writes the list: {wrong:#?}");
    let one = |keyword: &str, item: &str| Some((keyword.to_owned(), item.to_owned()));
    assert_eq!(listed("pub unsafe fn &'s a::B<'s, [u8; 2]>::c<T: Fn(T) -> d::E>(&self)"), one("fn", "c"));
    assert_eq!(listed("#[non_exhaustive] pub enum a::B"), one("enum", "B"));
    assert_eq!(listed("pub trait a::B: core::marker::Copy"), one("trait", "B"));
    assert_eq!(listed("pub type a::Result<T, E> = core::result::Result<T, E>"), one("type", "Result"));
    assert_eq!(listed("pub const a::B: usize"), None);
}

/// An internal crate may change in any version, so whatever depends on it names one version.
#[test]
fn internal_crates_say_so_and_fit_one_version() {
    if !root().join("crates").exists() {
        tfseek_testkit::skipped("crates");
        return;
    }
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let is_promised = |name: &str| PROMISED.iter().any(|(promised, _)| *promised == name);
    assert!(
        read("Makefile").contains(&format!("\nPROMISED := {}\n", PROMISED.map(|(name, _)| name).join(" ")))
    );
    let promises = read("docs/promises.md");
    let published = read("dist/build.py");
    let mut wrong = Vec::new();
    let mut folders = vec![".".to_owned()];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        folders.push(format!("crates/{}", entry.unwrap().file_name().into_string().unwrap()));
    }
    for folder in folders {
        let manifest = read(&format!("{folder}/Cargo.toml"));
        if manifest.contains("publish = false") {
            continue;
        }
        let name = manifest.split_once("\nname = \"").and_then(|(_, rest)| rest.split('"').next()).unwrap();
        // `make dist` and `make publish-crates` take the crates from there.
        if !published.contains(&format!("\"{name}\"")) {
            wrong.push(format!("{name}: dist/build.py does not publish it"));
        }
        for line in manifest.lines().filter(|line| line.starts_with("tfseek") && line.contains("version = "))
        {
            let dependency = line.split([' ', '.']).next().unwrap_or_default();
            let is_exact = line.contains("version = \"=");
            if !(is_exact || is_promised(name) && is_promised(dependency)) {
                wrong.push(format!("{name}: expected one version: {line}"));
            }
        }
        if is_promised(name) {
            continue;
        }
        if !read(&format!("{folder}/src/lib.rs")).starts_with("//! Internal crate of tfseek: ") {
            wrong.push(format!("{name}: the first line of lib.rs does not say that the crate is internal"));
        }
        // The command's page is the repository's.
        let says_so = |page: &str| read(page).contains("An internal crate of [tfseek]");
        if name != "tfseek-cli" && !says_so(&format!("{folder}/README.md")) {
            wrong.push(format!("{name}: README.md does not say that the crate is internal"));
        }
        if !promises.contains(&format!("`{name}`")) {
            wrong.push(format!("{name}: docs/promises.md does not name it"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
