//! Limits on what grows: public items, and words of the pages. They are lowered, and never raised: what does
//! not fit makes room first.

use crate::source::{code, files, pages, root};

/// The published crates: the core first, then the other promised ones.
const PUBLISHED: [&str; 11] = [
    "src",
    "crates/arrow/src",
    "crates/cli/src",
    "crates/remote/src",
    "crates/convert/src",
    "crates/image/src",
    "crates/rlds/src",
    "crates/tfds/src",
    "crates/tools/src",
    "crates/view/src",
    "crates/wire/src",
];

/// Limits of public functions and types: of the core, of the promised crates, and of all published ones.
const CORE: [usize; 2] = [476, 140];
const PROMISED: [usize; 2] = [526, 154];
const ALL: [usize; 2] = [849, 316];

/// Limits of words: of the README, of a page, and of all pages.
const README_WORDS: usize = 650;
const PAGE_WORDS: usize = 5_000;
const ALL_WORDS: usize = 80_000;
/// Pages that define a format or an order.
const LONG_PAGES: [&str; 3] = ["docs/format.md", "docs/index.md", "docs/order.md"];

/// Returns the numbers of functions and of types that a file declares as `pub`.
fn public_items(source: &str) -> [usize; 2] {
    let mut found = [0; 2];
    for line in code(source).lines() {
        let Some(item) = line.trim_start().strip_prefix("pub ") else { continue };
        let item = item.trim_start_matches("const ").trim_start_matches("unsafe ");
        let word = item.split(' ').next().unwrap_or_default();
        match word {
            "fn" => found[0] += 1,
            "struct" | "enum" | "trait" | "type" | "union" => found[1] += 1,
            _ => {}
        }
    }
    found
}

#[test]
fn items_are_counted() {
    let source = "pub fn a() {}\n    pub const unsafe fn b() {}\npub(crate) fn c() {}\npub struct D;\nfn e() {}\n// pub fn f()\n";
    assert_eq!(public_items(source), [2, 1]);
}

#[test]
fn public_items_stay_within_their_limits() {
    let count = |folder: &&str| {
        let counts = files(&root().join(folder), ".rs").into_iter().map(|(_, text)| public_items(&text));
        counts.fold([0; 2], |[a, b], [c, d]| [a + c, b + d])
    };
    let counts: Vec<[usize; 2]> = PUBLISHED.iter().map(count).collect();
    let sum = |counts: &[[usize; 2]]| counts.iter().fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
    let limits = [("the core", 1, CORE), ("the promised crates", 4, PROMISED), ("all crates", 11, ALL)];
    for (what, crates, limit) in limits {
        let found = sum(&counts[..crates]);
        assert!(
            found[0] <= limit[0] && found[1] <= limit[1],
            "{what}: {found:?} functions and types, limits {limit:?}"
        );
    }
}

#[test]
fn pages_stay_within_their_words() {
    let counted = |text: &str| text.split_whitespace().count();
    let pages = pages();
    let pages = pages.iter().filter(|(page, _)| page != "CHANGELOG.md");
    let pages: Vec<(&str, usize)> = pages.map(|(page, text)| (page.as_str(), counted(text))).collect();
    let too_long = pages.iter().filter(|(page, words)| match *page {
        "README.md" => *words > README_WORDS,
        page => *words > PAGE_WORDS && !LONG_PAGES.contains(&page),
    });
    let too_long: Vec<_> = too_long.collect();
    assert!(too_long.is_empty(), "{too_long:?}");
    let all: usize = pages.iter().map(|(_, words)| words).sum();
    assert!(all <= ALL_WORDS, "all pages have {all} words, limit {ALL_WORDS}");
}
