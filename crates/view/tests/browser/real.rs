//! Every real file of the folder `TFSEEK_REAL_DATA`, as its grid, its table, its records and its statistics.

use crate::page::Page;
use crate::shown::Shown;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Conditions of the grid of some files, by a part of the name.
const GRIDS: [(&str, &str); 7] = [
    (
        "sushi",
        "t.all('card-image').length > 0 && t.all('card-image').every(t.painted) && t.all('card').some(c => t.painted(t.boxes(c)))",
    ),
    ("roboflow__train", "t.all('card').some(c => t.painted(t.boxes(c)))"),
    ("cifar10", "t.all('card-image').length > 8 && t.all('card-image').every(t.painted)"),
    ("BigDL__mnist", "t.all('card-image').length > 8 && t.all('card-image').every(t.painted)"),
    ("tfx.mnist__mnist", "t.all('pixels').length > 8 && t.all('pixels').every(t.painted)"),
    ("cloudml-samples.mnist", "t.all('pixels').length > 8 && t.all('pixels').every(t.painted)"),
    ("tfrecord_lite__images", "t.all('card-image').length == 2 && t.all('card-image').every(t.painted)"),
];

/// Conditions of record 0 of some files.
const RECORDS: [(&str, &str); 5] = [
    (
        "pytorch-data__sequence_example",
        "t.one('slider') || t.one('lines') || /steps?/.test(t.text('record-tree'))",
    ),
    ("exoplanet", "t.one('lines') || t.one('record-tree')"),
    ("basenji", "t.one('record-tree')"),
    (
        "events.out.tfevents.1476472058",
        "/wall_time|double|field/.test(document.querySelector('main').innerText)",
    ),
    ("sushi", "t.painted(t.one('record-image')) && t.painted(t.one('boxes'))"),
];

fn files() -> Option<Vec<PathBuf>> {
    let Some(folder) = env::var_os("TFSEEK_REAL_DATA") else {
        tfseek_testkit::skipped("TFSEEK_REAL_DATA");
        return None;
    };
    let other =
        |name: &str| ["MANIFEST.tsv", "README.md", "check_real.py"].contains(&name) || name.starts_with('.');
    let entries = fs::read_dir(Path::new(&folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.is_file() && !other(path.file_name().unwrap().to_str().unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no files", folder.display());
    Some(files)
}

/// Waits for the condition of the first row whose word is in `name`.
fn meets(page: &Page, table: &[(&str, &str)], name: &str) {
    for (_, condition) in table.iter().filter(|(word, _)| name.contains(word)) {
        page.wait(condition, &format!("what {name} must show"));
    }
}

#[test]
fn every_real_file_is_shown_without_an_error() {
    let Some(files) = files() else { return };
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let shown = Shown::of(vec![path]);
        let Some(page) = shown.page(&format!("real {name}")) else { return };
        let records = shown.records();
        if records == 0 {
            page.wait("t.text('empty').length > 10", "words about no records");
        } else {
            page.wait("t.ids().includes(0) && t.cards().every(c => c.innerText.trim().length > 0)", "cards");
            // Damaged images are replaced by words.
            page.wait("t.all('card-image').every(t.painted)", "painted images");
            meets(&page, &GRIDS, &name);
            page.screenshot(&format!("real-{name}"));
            page.key("Enter");
            page.wait("t.record() == 0", "record 0 by Enter");
            meets(&page, &RECORDS, &name);
            page.screenshot(&format!("real-record-{name}"));
            for tab in
                ["tab-hex", "tab-tree"].iter().filter(|tab| page.eval(&format!("!!t.one('{tab}')")) == true)
            {
                page.click(tab);
                page.wait(&format!("t.one('{tab}').ariaSelected == 'true' && t.view() == 'record'"), tab);
            }
            let json = page.copied(|| page.click("copy-json"));
            if serde_json::from_str::<serde_json::Value>(&json).is_err() {
                page.fail(&format!("what is copied is not JSON: {json:.200}"));
            }
            for key in ["j", "k", "l", "h", "b", "b"] {
                page.key(key);
            }
            page.wait("t.record() == 0", "record 0 after `j` and `k`");
            page.key("g");
            page.insert(&(records - 1).to_string());
            page.key("Enter");
            page.wait(&format!("t.record() == {}", records - 1), "the last record by its number");
            page.reload();
            page.wait(&format!("t.record() == {}", records - 1), "the last record after a reload");
            page.key("Escape");
            page.wait("['grid', 'table'].includes(t.view())", "the list after Escape");
            page.fill("where", "record in 0..1");
            page.key("Enter");
            page.wait("t.ids().join() == '0' && /^1 match/.test(t.text('hits'))", "one match");
            page.back();
            page.wait(
                "t.state('where') == null && ['grid', 'table'].includes(t.view())",
                "all records after the way back",
            );
        }
        for view in ["table", "data"] {
            page.navigate(&shown.at(&format!("view={view}")));
            page.wait(&format!("t.view() == '{view}'"), view);
        }
        page.no_trouble();
        page.finish();
    }
}
