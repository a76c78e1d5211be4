//! The files of the page. They are part of the program, so nothing else can be requested.
//!
//! `app.js` is the shell: head, views, keys and dialogs. Each view is a module that exports
//! `mount(root, context) -> { update(state), unmount(), keys: { "j": () => .. }, title }`. `root` is an empty
//! element. `update` is called after `mount`, and after each change of the state (the address) while the view
//! stays the same; it may return a promise of its first content. The context has, for the life of a view:
//!
//! * `dataset`, `set`: the answer of `/api/dataset` for the set on show, and "0" or "1" (the set of
//!   `--baseline`);
//! * `state()`, `go(changes, { replace })`: the state; `roles()`: the roles in force (`roles.js`);
//! * `list`: the list of records on show; `listView()`: "grid" or "table", the view for the records of the
//!   set;
//! * `records`, `pixels`: `recordCache` (`api.js`), and the drawing of images of numbers (`media.js`);
//! * `tools`: an element of the head for the buttons of the view; `dialog(title, submit, ...content)`;
//! * `announce(text)` for screen readers, `copy(text, what)` to the clipboard; `command(verb, argument)`: a
//!   line for the shell.
//!
//! A list (`find.js`) is all records, or numbers of records: matches that grow while the scan continues, or a
//! sample. It has `length`, `at(i)` (a record number), `position(id)` (of the first entry that is not before
//! `id`), `more` (true while it grows), and `onGrow(f)`, which returns a function that ends it.
//!
//! Grid and table share `listView` (`scroll.js`): the elements on the screen of a list of any length, their
//! records, and one that is selected. `holder` gets the scroll bar, `blank` the words for an empty list, and
//! `list()` is the list now. Of the hooks, `make(position, id)` gives an item `{ element }`;
//! `fill(item, record)` and `fail(item, message)` come once; `place(item, row)` puts it `row` rows below the
//! top.

use crate::http::{Request, Response};
use flate2::{Compression, write::GzEncoder};
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::sync::OnceLock;

/// A file of the page: its name and its bytes.
type Asset = (&'static str, &'static [u8]);

macro_rules! assets {
    ($($name:literal),* $(,)?) => { &[$(($name, include_bytes!(concat!("../assets/", $name)))),*] };
}

/// All files of `assets/`.
const ASSETS: &[Asset] = assets![
    "index.html", //
    "api.js",
    "app.css",
    "app.js",
    "compare.js",
    "dataset.js",
    "dom.js",
    "episode.js",
    "find.js",
    "grid.js",
    "histogram.js",
    "media.js",
    "overlay.js",
    "record.js",
    "roles.js",
    "scroll.js",
    "sequence.js",
    "state.js",
    "step.js",
    "table.js",
];

/// The styles of the page.
const STYLE: &str = include_str!("../assets/app.css");
/// The line after the part that all pages share, and the lines around the rules for features.
const HEAD: &str = "/* Head */";
const FEATURES: [&str; 2] = ["/* Features, also of reports */", "/* End of features */"];

/// Returns the rules for colours, type, tables, features and histograms, for pages other than the viewer's.
pub(crate) fn shared_style() -> (&'static str, &'static str) {
    let [start, end] = FEATURES;
    let parts = STYLE.split_once(HEAD).map_or("", |(before, _)| before);
    let features = STYLE.split_once(start).and_then(|(_, rest)| rest.split_once(end));
    (parts, features.map_or("", |(rules, _)| rules))
}

/// Returns the value of a token of the styles, empty without one.
pub(crate) fn token(name: &str) -> &'static str {
    let rule = STYLE.split_once(&format!("--{name}: ")).and_then(|(_, rest)| rest.split_once(';'));
    rule.map_or("", |(value, _)| value)
}

/// Returns the file at a path. The page itself is at `/`.
pub(crate) fn answer(request: &Request) -> Response {
    let name = match request.path.strip_prefix('/') {
        Some("") => "index.html",
        Some(name) => name,
        None => "",
    };
    let Some(k) = ASSETS.iter().position(|(asset, _)| *asset == name) else {
        return Response::error(404, "there is no such page");
    };
    let plain = ASSETS.get(k).map_or(&[][..], |(_, bytes)| bytes);
    let compressed = if request.takes_gzip { compressed(k) } else { None };
    let bytes = compressed.unwrap_or(plain);
    // Browsers ask each time, because another version of the program may use the same port.
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let mut response = if request.has(&tag) {
        Response::new(304, content_type(name), "")
    } else {
        Response::new(200, content_type(name), bytes)
    };
    if compressed.is_some() {
        response = response.with("Content-Encoding", "gzip");
    }
    if name == "index.html" {
        // All modules at once, and not one after the other as they are found in each other.
        let modules = ASSETS.iter().filter(|(name, _)| name.ends_with(".js"));
        let links: Vec<_> = modules.map(|(name, _)| format!("</{name}>; rel=modulepreload")).collect();
        response = response.with("Link", links.join(", "));
    }
    response.with("ETag", tag).with("Cache-Control", "no-cache").with("Vary", "Accept-Encoding")
}

/// Returns a file of [`ASSETS`] as gzip. Each is compressed once. An ssh tunnel is the slow part of a remote
/// viewer, and the page is three times smaller then.
fn compressed(k: usize) -> Option<&'static [u8]> {
    static COMPRESSED: [OnceLock<Vec<u8>>; ASSETS.len()] = [const { OnceLock::new() }; ASSETS.len()];
    let (_, bytes) = ASSETS.get(k)?;
    let compress = || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to memory does not fail. An empty result is not used.
        encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
    };
    let compressed = COMPRESSED.get(k)?.get_or_init(compress);
    (!compressed.is_empty()).then_some(compressed)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::{fs, path::Path};

    fn get(path: &str) -> Response {
        answer(&Request { path: path.to_owned(), ..Request::default() })
    }

    #[test]
    fn all_files_are_listed() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let listed: BTreeSet<_> = ASSETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(files.collect::<BTreeSet<_>>(), listed);
        assert_eq!(listed.len(), ASSETS.len());
        for (name, _) in ASSETS {
            assert_ne!(content_type(name), "application/octet-stream", "{name}");
        }
    }

    #[test]
    fn the_page_is_small() {
        let total: usize = ASSETS.iter().map(|(_, bytes)| bytes.len()).sum();
        let sent: usize = (0..ASSETS.len()).map(|k| compressed(k).unwrap().len()).sum();
        assert!(total < 240_000 && sent < 90_000, "{total} bytes, {sent} as gzip");
    }

    #[test]
    fn files_are_compressed_for_clients_that_take_it() {
        use std::io::Read;
        let plain = get("/app.js");
        let gzip = answer(&Request { path: "/app.js".into(), takes_gzip: true, ..Request::default() });
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut text).unwrap();
        assert_eq!(text, plain.body);
        assert!(gzip.headers.contains(&("Content-Encoding", "gzip".to_owned())));
        assert!(!plain.headers.iter().any(|(name, _)| *name == "Content-Encoding"));
    }

    /// Text of a record is never parsed as HTML or as a script.
    #[test]
    fn scripts_make_no_html_and_no_code_of_text() {
        for (name, bytes) in ASSETS.iter().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(bytes).unwrap();
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "setHTMLUnsafe",
                "parseFromString",
                "createContextualFragment",
                "srcdoc",
                "javascript:",
            ] {
                assert!(!text.contains(word), "{name} contains {word}");
            }
        }
    }

    /// The content security policy forbids all of it. The page would be without its scripts or its looks.
    #[test]
    fn the_page_has_no_inline_code_and_names_no_other_host() {
        for (name, bytes) in ASSETS {
            let text = std::str::from_utf8(bytes).unwrap();
            let foreign = text
                .match_indices("//")
                .filter(|(at, _)| text[..*at].ends_with("http:") || text[..*at].ends_with("https:"));
            for (at, _) in foreign {
                assert!(
                    text[at..].starts_with("//www.w3.org/"),
                    "{name}: {}",
                    &text[at..].lines().next().unwrap()
                );
            }
            if name.ends_with(".html") {
                assert!(!text.contains(" style=") && !text.contains("<style"), "{name}");
                assert!(!text.contains(" on"), "{name}: no handlers in attributes");
                let scripts = text.split("<script").skip(1);
                assert!(scripts.into_iter().all(|tag| tag.contains("></script>")), "{name}");
            }
        }
    }

    #[test]
    fn paths_name_listed_files_only() {
        assert_eq!(get("/").body, get("/index.html").body);
        assert_eq!(get("/app.js").content_type, "text/javascript; charset=utf-8");
        for path in [
            "",
            "//",
            "/app",
            "/App.js",
            "/app.js/",
            "/./app.js",
            "/../Cargo.toml",
            "/assets/app.js",
            "app.js",
        ] {
            assert_eq!(get(path).status, 404, "{path}");
        }
    }

    #[test]
    fn an_unchanged_file_is_not_sent_again() {
        let first = get("/app.js");
        let tag = first.headers.iter().find(|(name, _)| *name == "ETag").unwrap().1.clone();
        let again =
            answer(&Request { path: "/app.js".into(), if_none_match: Some(tag), ..Request::default() });
        assert_eq!((first.status, again.status, again.body.len()), (200, 304, 0));
    }
}
