//! The goals of the viewer, measured:
//! `cargo test --release -p tfseek-view --test browser -- --ignored --nocapture goals`.

use crate::data;
use crate::shown::Shown;
use std::time::Instant;

/// Milliseconds in the page until a condition is true from an action, which is a script.
fn page_time(page: &crate::page::Page, act: &str, condition: &str) -> f64 {
    page.number(&format!(
        "new Promise((done, late) => {{ const start = performance.now(); {act}; const tick = () => {{ \
         let met = false; try {{ met = {condition}; }} catch {{}} \
         if (met) requestAnimationFrame(() => done(performance.now() - start)); \
         else if (performance.now() - start > 15000) late(new Error('not after 15 s')); else setTimeout(tick, 1); }}; tick(); }})"
    ))
}

fn report(what: &str, goal: &str, value: f64, unit: &str) {
    println!("{what:<60} {value:>9.1} {unit:<3} goal: {goal}");
}

#[test]
#[ignore = "measures"]
fn goals() {
    let shown = Shown::new(|folder| data::thumbnails(folder, 600));
    let Some(page) = shown.page("thumbnails") else { return };
    page.viewport(1900, 1300);
    page.wait("t.all('card-image').length >= 60 && t.all('card-image').every(t.painted)", "60 images");
    for at in [120, 240, 360] {
        let time = page_time(
            &page,
            &format!("location.hash = 'view=grid&at={at}'"),
            &format!(
                "t.ids().includes({at}) && t.all('card-image').length >= 60 && t.all('card-image').every(t.painted)"
            ),
        );
        let images = page.number("t.all('card-image').length");
        report(&format!("{images} images of 50 kB from record {at}"), "1000 ms for 60", time, "ms");
    }
    page.screenshot("goals-thumbnails");
    page.finish();
    drop(shown);

    let million = |folder: &std::path::Path| data::many(folder, 1_000_000).remove(0);
    let shown = Shown::new(|folder| data::repeated(&million(folder), 10));
    let Some(page) = shown.page("ten million") else { return };
    page.wait("t.ids().includes(0)", "record 0");
    for id in [9_999_999, 5_000_001, 7_777_777] {
        let time = page_time(
            &page,
            &format!("location.hash = 'view=record&id={id}'"),
            &format!("t.record() == {id} && t.one('record-tree')"),
        );
        report(&format!("record {id} of 10^7 shown"), "200 ms", time, "ms");
    }
    let mut times: Vec<f64> = (0..50)
        .map(|i| page.number(&format!("(async () => {{ const s = performance.now(); await (await fetch('/api/record/{}')).text(); return performance.now() - s; }})()", 9_999_999 - i * 199_999)))
        .collect();
    times.sort_by(f64::total_cmp);
    report("its answer, as the page sees it, median of 50", "5 ms", times[25], "ms");
    let time = page_time(
        &page,
        "location.hash = 'view=grid&where=number%3D%3D999999'",
        "/^[1-9][0-9,]* match/.test(t.text('hits'))",
    );
    report("first of 10 hits at the end of shards", "-", time, "ms");
    let time = page_time(
        &page,
        "location.hash = 'view=grid&where=label==7'",
        "t.ids().length > 8 && t.ids().every(id => id % 10 == 7)",
    );
    report("first hits of a filter", "300 ms", time, "ms");
    let time = page.number(
        "(async () => { const s = performance.now(); await (await fetch('/api/find?where=label==8&after=0')).text(); return performance.now() - s; })()",
    );
    report("its first answer, as the page sees it", "-", time, "ms");
    page.wait("/1,000,000/.test(t.text('hits'))", "a million hits");
    page.navigate(&shown.at("view=data"));
    page.wait("/distinct/i.test(t.text('stats'))", "statistics");
    page.finish();
    drop(shown);

    let shown = Shown::new(|folder| data::repeated(&data::many(folder, 1000).remove(0), 1024));
    report(
        "1,024 indexed shards until the server listens",
        "200 ms",
        shown.listening.as_secs_f64() * 1e3,
        "ms",
    );
    let Some(page) = shown.page("shards") else { return };
    page.wait("t.ids().includes(0)", "record 0");
    page.navigate(&shown.at("view=data"));
    page.wait("/1,024/.test(document.body.innerText)", "1,024 shards");
    page.screenshot("goals-shards");
    page.finish();
    drop(shown);

    let start = Instant::now();
    let shown = Shown::new(|folder| data::repeated(&million(folder), 1000));
    println!(
        "a billion records made and opened in {:.1?}, listening after {:.1?}",
        start.elapsed(),
        shown.listening
    );
    let Some(page) = shown.page("billion") else { return };
    page.wait("t.ids().includes(0)", "record 0");
    page.eval("t.one('scrollbar').focus()");
    let time = page_time(
        &page,
        "t.one('scrollbar').dispatchEvent(new KeyboardEvent('keydown', {key: 'End', bubbles: true}))",
        "t.ids().includes(999999999) && t.card(999999999).innerText.includes('999999')",
    );
    report("10^9 records scrolled to their end", "-", time, "ms");
    page.screenshot("goals-billion");
    page.finish();
}
