//! Reports: pages that need no server.

use crate::data;
use crate::manners::SHIFTS;
use crate::page::Page;
use crate::shown::{WORDS, view_set};
use std::fs;
use std::path::{Path, PathBuf};
use tfseek::ExampleBuilder;
use tfseek_view::{ViewOptions, report};

/// Writes the report of a set, and opens it as a file.
fn opened(name: &str, folder: &Path, make: impl FnOnce(&Path) -> Vec<PathBuf>) -> Option<Page> {
    let (set, _) = view_set(make(folder));
    let html = report(set, None, &ViewOptions::default(), &|_| Ok(())).unwrap();
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

/// Each feature has a distribution, in the forms and the type of the page, and no card is empty.
#[test]
fn reports_show_all_features_as_the_page_does() {
    for (name, make) in [
        ("report-numbers", (|folder| data::numbers(folder, "numbers", 4000, 0)) as fn(&Path) -> Vec<PathBuf>),
        ("report-sequences", data::sequences),
        ("report-images", |folder| data::detection(folder, 60)),
        ("report-bytes", data::bytes),
        ("report-queries", data::queries),
        ("report-values", |folder| {
            let record = |i: u64| {
                ExampleBuilder::new()
                    .bytes("checksum", [format!("{:064x}", 7919 * (i + 1))])
                    .int64("tokens", (0..400).map(|k| 1_000_000 + k).collect::<Vec<_>>())
            };
            data::several(folder, (0..9).map(|i| record(i).encode().unwrap()))
        }),
        ("report-base64", |folder| {
            let photo = |i| ExampleBuilder::new().bytes("photo", [data::base64(&data::image(i, 50, 40))]);
            data::several(folder, (0..9).map(|i| photo(i).int64("label", [i64::from(i)]).encode().unwrap()))
        }),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let Some(page) = opened(name, folder.path(), make) else { return };
        page.viewport(1280, 800);
        page.check(
            "[...document.querySelectorAll('.feature .values')].every(v => [...v.querySelectorAll('.fill, .amount')].some(b => b.getBoundingClientRect().height >= 0.9))",
            "a distribution for every feature",
        );
        page.check(
            "[...document.querySelectorAll('figure')].every(f => f.querySelector('img') || f.querySelector('.facts').innerText.trim().length > 3)",
            "no empty card",
        );
        page.check(
            "getComputedStyle(document.body).fontFamily.startsWith('system-ui') && getComputedStyle(document.querySelector('h1')).fontSize == '22px'",
            "the type of the page",
        );
        page.check(
            "!document.querySelector('script') && document.body.scrollWidth <= innerWidth",
            "no scripts, and the width of the window",
        );
        if name == "report-base64" {
            page.check(
                "document.images.length == 9 && [...document.images].every(i => i.complete && i.naturalWidth == 50 && i.naturalHeight == 40 && i.getBoundingClientRect().height > 100)",
                "pictures in base64",
            );
            page.check(
                "(() => { const [a, b] = [...document.images].slice(0, 2).map(i => { const c = new OffscreenCanvas(1, 1).getContext('2d'); c.drawImage(i, 40, 30, 1, 1, 0, 0, 1, 1); return c.getImageData(0, 0, 1, 1).data; }); return a[0] > 180 && a[1] > 150 && a[2] != b[2]; })()",
                "their pixels",
            );
        }
        if name == "report-values" {
            page.check(
                "[...document.querySelectorAll('figure')].every((f) => { const [a, b] = f.querySelectorAll('.facts > div'); const [i] = f.innerText.match(/record (\\d)/).slice(1);
                  return a.innerText == 'checksum ' + (7919 * (Number(i) + 1)).toString(16).padStart(64, '0') && a.scrollHeight <= a.clientHeight && a.getBoundingClientRect().height > 30
                    && b.innerText == 'tokens 1000000, 1000001, 1000002, 1000003 .. of 400' && b.getBoundingClientRect().bottom <= f.querySelector('figcaption').getBoundingClientRect().top; })",
                "whole values, and the number of others",
            );
        }
        if name == "report-queries" {
            page.check(
                "/query query \\d/.test(document.querySelector('figure').innerText) && /title document \\d\\.0/.test(document.querySelector('figure').innerText)",
                "the features of the context and of the first Example",
            );
        }
        page.screenshot(name);
        page.scheme("dark");
        page.screenshot(&format!("{name}-dark"));
        page.eval("document.querySelector('figure')?.scrollIntoView()");
        page.screenshot(&format!("{name}-cards"));
        page.viewport(360, 740);
        page.eval("scrollTo(0, 0)");
        page.screenshot(&format!("{name}-narrow"));
        if name == "report-numbers" {
            // The same bars as on the page.
            page.check("[...document.querySelectorAll('.feature')].find(f => f.innerText.startsWith('flat')).querySelector('g title').textContent.startsWith('0 to 1: 2')", "whole borders");
            page.check(
                "document.querySelector('header p').innerText.startsWith('4,000 Examples · 1 shard · 7')",
                "the line of the page",
            );
        }
        page.finish();
    }
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
