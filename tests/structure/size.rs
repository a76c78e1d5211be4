//! Limits on what grows: public items, words of the pages. A change that needs more raises a limit here, with
//! its reason beside it.

use crate::source::{code, files, pages, root};

/// The published crates: the core first.
const PUBLISHED: [&str; 9] = [
    "src",
    "crates/arrow/src",
    "crates/cli/src",
    "crates/convert/src",
    "crates/image/src",
    "crates/remote/src",
    "crates/tfds/src",
    "crates/tools/src",
    "crates/view/src",
];

/// Limits of public functions and types: of the core, and of all published crates. `FeatureColumn`, `Salvage`
/// and the bytes of an `Index` are what the fuzz targets read. Man pages and completions are made of
/// `tfseek_cli::command`. Buckets of like length need their lengths, also those of a feature, sizes and
/// treatment, a share, and what a loader tells of them. Arrays in byte strings have two specs, a byte order
/// and values with their bits. Pictures have a spec and a decoder. Data sets of TensorFlow Datasets have an
/// error of their own, features, a decoder with nested values, an encoder, a folder and its splits, and a
/// writer. A decoder of columns is a trait, with what makes columns. Ranges of a dataset, and names of values
/// in filters, are for splits and labels. Stores have options and a type, URLs a form for messages and a hint
/// where they are refused, and places that are for reading only a question. Steps of episodes have keys,
/// tables and options, a step has values, and windows a builder, padding and locations. Mixes of several data
/// sets have options, `MixSpec`, `MixStop` and `Mix`, columns of other names, and a fingerprint of their own.
/// A selection of features is made, applied and asked for patterns without a match.
const CORE: [usize; 2] = [524, 155];
const ALL: [usize; 2] = [863, 318];

/// Limits of words: of the README, of a page, and of all pages.
const README_WORDS: usize = 600;
const PAGE_WORDS: usize = 4500;
/// Among them the lists of files of all crates in docs/layers.md, what stores are, what it costs to build and
/// to test, buckets, arrays in byte strings, pictures, object stores also in Python and through fsspec, how
/// data sets are mixed, the threads of a loader, Lance among the peers, the page on data sets of TensorFlow
/// Datasets, robot episodes over URLs, training over URLs, and the page for users of other readers.
const ALL_WORDS: usize = 87_000;
/// Pages that define a format, or list all of an interface.
const LONG_PAGES: [&str; 5] =
    ["docs/format.md", "docs/index.md", "docs/order.md", "docs/command.md", "docs/python.md"];

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
    let all = counts.iter().fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
    for (what, found, limit) in [("the core", counts[0], CORE), ("all crates", all, ALL)] {
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
