//! A gallery of 24 pictures of real sets, to be looked at: `make gallery`.

use crate::shown::Shown;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the sets, by the variables that name them.
const REAL: &str = "TFSEEK_REAL_DATA";
const TFDS: &str = "TFSEEK_TFDS_CASES";
const DEMO: &str = "TFSEEK_DEMO_DATA";

/// The pictures: folder, a part of the path of the shards, state of the page, width, colour scheme.
const PICTURES: [(&str, &str, &str, u32, &str); 24] = [
    (REAL, "sushi_val", "", 1280, "light"),
    (REAL, "sushi_val", "view=record&at=1", 1280, "light"),
    (REAL, "sushi_val", "view=record&at=2", 1280, "dark"),
    (REAL, "sushi_val", "view=record&at=1", 360, "light"),
    (REAL, "cifar10", "", 1280, "dark"),
    (REAL, "cifar10", "view=data", 1280, "light"),
    (REAL, "roboflow__train", "", 360, "dark"),
    (REAL, "csv-split-eval", "", 1280, "light"),
    (REAL, "csv-split-eval", "view=data", 1280, "dark"),
    (REAL, "csv-split-eval", "view=record&at=7", 360, "light"),
    (REAL, "penguin", "view=record&at=7", 1280, "light"),
    (REAL, "__sequence_example", "", 1280, "light"),
    (REAL, "__sequence_example", "view=record&at=2", 1280, "dark"),
    (REAL, "tetrominoes", "", 1280, "light"),
    (REAL, "human_1m", "view=record&at=0", 1280, "light"),
    (REAL, "eval__events", "", 1280, "light"),
    (REAL, "eval__events", "view=record&at=1", 1280, "dark"),
    (REAL, "wiki40b", "", 1280, "light"),
    (REAL, "wiki40b", "view=record&at=0", 360, "dark"),
    (TFDS, "sets/boxes", "", 1280, "light"),
    (TFDS, "sets/labels", "", 360, "dark"),
    (TFDS, "real_bridge", "view=episode&id=3&step=4", 1280, "light"),
    (DEMO, "", "", 1280, "light"),
    (DEMO, "", "view=data", 360, "light"),
];

fn shards(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "golden" && !name.starts_with('.') {
            shards(&path, found);
        } else if name.contains("record") || name.contains("events") || name.contains("-of-") {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "makes pictures to be looked at"]
fn gallery() {
    for (k, (folder, part, state, width, scheme)) in PICTURES.into_iter().enumerate() {
        let Some(root) = env::var_os(folder) else {
            tfseek_testkit::skipped(folder);
            continue;
        };
        let mut paths = Vec::new();
        shards(Path::new(&root), &mut paths);
        paths.retain(|path| path.to_string_lossy().contains(part));
        assert!(!paths.is_empty(), "{folder} has no {part}");
        let shown = Shown::of(paths);
        let name = format!("gallery {k:02} {} {state} {width} {scheme}", part.trim_matches('_'));
        let Some(page) = shown.page_after(&name, "", "view=step") else { return };
        page.viewport(width, if width == 360 { 740 } else { 800 });
        page.scheme(scheme);
        page.navigate(&shown.at(state));
        page.wait("t.view() && t.view() != 'step'", "the view");
        page.wait("[...document.querySelectorAll('main img, main canvas.pixels')].every((e) => !e.checkVisibility() || t.painted(e))", "the pictures");
        page.wait(
            "!document.querySelector('main progress') && !document.body.innerText.includes('Reading …')",
            "the values",
        );
        page.screenshot(&name);
        page.finish();
    }
}
