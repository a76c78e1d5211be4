//! Reports: pages that need no server.

use crate::data;
use crate::manners::SHIFTS;
use crate::page::Page;
use crate::shown::{WORDS, view_set};
use std::fs;
use std::path::{Path, PathBuf};
use tfseek_view::{ViewOptions, report};

/// Writes the report of a set, and opens it as a file.
fn opened(name: &str, folder: &Path, make: impl FnOnce(&Path) -> Vec<PathBuf>) -> Option<Page> {
    let (set, _) = view_set(make(folder));
    let html = report(set, None, &ViewOptions::new(), &|_| Ok(())).unwrap();
    let path = folder.join("report.html");
    fs::write(&path, html).unwrap();
    let page = Page::open(name)?;
    page.host("file://");
    page.before_documents(WORDS);
    page.before_documents(SHIFTS);
    page.navigate(&format!("file://{}", path.display()));
    Some(page)
}

#[test]
fn a_report_shows_statistics_and_samples_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(page) = opened("report", folder.path(), |folder| data::detection(folder, 60)) else { return };
    page.check(
        "document.images.length >= 50 && [...document.images].every(i => i.complete && i.naturalWidth > 0)",
        "painted images",
    );
    page.check("/image\\/class\\/label/.test(document.body.innerText) && /salmon roll/.test(document.body.innerText)", "statistics");
    assert_eq!(
        page.requests().iter().filter(|url| !url.starts_with("data:")).count(),
        1,
        "{:?}",
        page.requests()
    );
    page.all_manners("report");
    page.screenshot("report");
    page.finish();
}

#[test]
fn a_report_of_hostile_records_runs_nothing() {
    for which in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let Some(page) =
            opened("hostile report", folder.path(), |folder| vec![data::hostile(folder).remove(which)])
        else {
            return;
        };
        page.check("window.ran === undefined && !document.querySelector('script, [onerror], [onload], [onmouseover], svg script, a[href^=\"javascript:\"]')", "nothing to run");
        page.check("document.body.textContent.includes('onerror=')", "the text as it is");
        page.screenshot("report-hostile");
        page.finish();
    }
}

#[test]
fn reports_of_odd_files_are_pages_too() {
    for (name, make) in [
        ("empty report", data::empty as fn(&Path) -> Vec<PathBuf>),
        ("report of bytes", data::bytes),
        ("report of damage", data::damaged),
        ("report of sequences", data::sequences),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let Some(page) = opened(name, folder.path(), make) else { return };
        page.check("document.body.innerText.length > 50", "a page of words");
        page.all_manners(name);
        page.finish();
    }
}
