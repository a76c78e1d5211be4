//! Facts on the pages: each file that a page names exists, each link leads to a page and a heading, and the
//! first examples are safe.

use crate::source::{pages, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Top-level names at which a path in the text begins.
const FOLDERS: [&str; 9] =
    ["src/", "tests/", "crates/", "python/", "benches/", "fuzz/", "docs/", "examples/", ".ci/"];

/// Returns the paths in backticks that begin with a folder of the repository, e.g. `src/io/map.rs`. Patterns
/// are left out.
fn named_files(text: &str) -> BTreeSet<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| !word.contains(['*', '<', '{', ' ', '\n']) && !word.contains("AREA"))
        .map(|word| word.trim_end_matches('/').to_owned())
        .collect()
}

/// Returns the targets of links `[text](target)`.
fn links(text: &str) -> Vec<String> {
    text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// Returns the anchors of a page's headings, as GitHub spells them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-')
                .collect::<String>();
            kept.replace(' ', "-")
        })
        .collect()
}

#[test]
fn files_named_on_the_pages_exist() {
    let (mut missing, mut seen) = (Vec::new(), 0);
    for (page, text) in pages().into_iter().filter(|(page, _)| page != "CHANGELOG.md") {
        for file in named_files(&text) {
            seen += 1;
            if !root().join(&file).exists() {
                missing.push(format!("{page}: {file}"));
            }
        }
    }
    assert!(seen > 50, "{seen}");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn links_on_the_pages_lead_somewhere() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (page, text) in pages() {
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            seen += 1;
            let (target, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(&page).parent().unwrap();
            let path = if target.is_empty() { root().join(&page) } else { root().join(folder).join(target) };
            let Ok(linked) = std::fs::read_to_string(&path) else {
                if !path.exists() {
                    wrong.push(format!("{page}: {link} is not there"));
                }
                continue;
            };
            if !anchor.is_empty() && !anchors(&linked).contains(anchor) {
                wrong.push(format!("{page}: {link} names a heading that is not there"));
            }
        }
    }
    assert!(seen > 30, "{seen}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(anchors("# A b-c\ntext\n## `x` & Y"), BTreeSet::from(["a-b-c".to_owned(), "x--y".to_owned()]));
}

#[test]
fn the_first_examples_are_complete_and_safe() {
    let first = |text: &str, fence: &str| {
        let code = text.split(fence).nth(1).unwrap_or_else(|| panic!("no {fence:?}")).lines().skip(1);
        code.take_while(|line| !line.contains("```")).map(str::to_owned).collect::<Vec<_>>()
    };
    let text = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let example = first(&text, "//! ```\n//! use");
    assert!(example.len() > 10, "the example of src/lib.rs: {example:?}");
    for line in &example {
        assert!(!line.starts_with("//! #"), "a hidden line, which readers do not see: {line}");
        assert!(!line.contains("unsafe"), "{line}");
    }
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let place = |text: &str| readme.find(text).unwrap_or_else(|| panic!("README.md: no {text:?}"));
    assert!(place("```python") < place("```rust") && place("Dataset::open(") < place("unsafe"));
}

/// A page that is in no menu ends the build of the site. The menus are in `mkdocs.yml` and
/// `docs/site/hooks.py`.
#[test]
fn every_page_has_a_place_in_the_site() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let (menus, more) = (read("mkdocs.yml"), read("docs/site/hooks.py"));
    let has_place = |page: &str| {
        let folder = page.split_once('/').map(|(folder, _)| format!("\"{folder}/*.md\""));
        menus.contains(&format!(": {page}\n"))
            || more.contains(&format!("\"{page}\""))
            || folder.is_some_and(|folder| more.contains(&folder))
    };
    let pages = pages().into_iter().filter_map(|(page, _)| page.strip_prefix("docs/").map(str::to_owned));
    let without: Vec<_> = pages.filter(|page| !has_place(page)).collect();
    assert!(without.is_empty(), "{without:?}");
}

/// Packages have no files of the folders above them, but those that links lead to.
#[test]
fn each_published_crate_has_its_licences() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        if fs::read_to_string(folder.join("Cargo.toml")).unwrap().contains("publish = false") {
            continue;
        }
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = fs::read_to_string(folder.join(name))
                .unwrap_or_else(|e| panic!("{}: {name}: {e}", folder.display()));
            assert!(text == fs::read_to_string(root().join(name)).unwrap(), "{}: {name}", folder.display());
        }
    }
}
