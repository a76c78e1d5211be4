//! Histograms, and two sets over each other.

use crate::data;
use crate::page::Page;
use crate::shown::Shown;
use std::path::Path;
use tfseek::ExampleBuilder;

/// Returns a script's chart of a feature, and waits for it.
fn chart(page: &Page, feature: &str) -> String {
    let chart = format!("document.querySelector('[aria-label=\"{feature}\"] .histogram')");
    page.wait(&format!("{chart}?.querySelector('.fill')"), "a chart");
    chart
}

#[test]
fn histograms_have_scales_and_true_bars() {
    let shown = Shown::new(|folder| data::numbers(folder, "numbers", 4000, 0));
    let Some(page) = shown.page_at("charts", "view=data") else { return };
    page.wait("!/so far/.test(document.body.innerText)", "complete statistics");

    // Integers have whole borders, and bars of one width.
    let flat = chart(&page, "flat");
    page.check(
        &format!("[...{flat}.querySelectorAll('g')].map(g => g.querySelector('title').textContent.split(':')[0]).slice(0, 3).join() == '0 to 1,2 to 3,4 to 5'"),
        "bars of two integers",
    );
    page.check(
        &format!("/^\\d+(\\.\\d)? %$/.test({flat}.querySelector('.scale span').textContent) && {flat}.querySelector('.scale').lastChild.textContent == '0'"),
        "a scale of shares",
    );
    // The scale stands beside the chart, from its top to its axis.
    page.check(
        &format!("(() => {{ const [s, c] = ['.scale', 'svg'].map(q => {flat}.querySelector(q).getBoundingClientRect()); return s.right <= c.left && Math.abs(s.top - c.top) < 3 && s.bottom <= c.bottom + 3; }})()"),
        "the scale beside the chart",
    );

    // A constant stands in the middle.
    let constant = chart(&page, "constant");
    page.check(
        &format!("(() => {{ const [b, c, t] = ['.fill', 'svg', '.axis span:not(.readout)'].map(q => {constant}.querySelector(q).getBoundingClientRect()); const middle = r => (r.left + r.right) / 2; return Math.abs(middle(b) - middle(c)) < 2 && Math.abs(middle(t) - middle(c)) < 2 && b.width < c.width / 4; }})()"),
        "a constant in the middle",
    );

    // One value in 4000 is a pixel high.
    let rare = chart(&page, "rare");
    let height = page.number(&format!("{rare}.querySelectorAll('.fill')[1].getBoundingClientRect().height"));
    assert!((0.9..1.3).contains(&height), "{height}");

    // Values over many powers of ten have a logarithmic axis, on which most bars are filled.
    let tail = chart(&page, "tail");
    page.check(
        &format!("{tail}.querySelector('.readout').textContent == 'log scale'"),
        "the name of the axis",
    );
    page.check(
        &format!("[...{tail}.querySelectorAll('.fill')].filter(b => b.getBoundingClientRect().height > 8).length > 12"),
        "bars that are seen",
    );

    // A bar says its number and its share.
    let over = format!(
        "{rare}.querySelectorAll('g')[1].dispatchEvent(new PointerEvent('pointerover', {{ bubbles: true }}))"
    );
    page.eval(&over);
    page.check(
        &format!("{rare}.querySelector('.readout').textContent == '1: 1 record, < 0.1 %'"),
        "number and share",
    );

    // Integers are exact beyond 2^53, also as conditions.
    let wide = chart(&page, "wide");
    page.check(
        &format!("{wide}.querySelector('.axis').textContent.startsWith('9,007,199,254,740,993')"),
        "an exact integer",
    );
    page.screenshot("charts");
    page.viewport(360, 740);
    page.screenshot("charts-narrow");
    page.viewport(1280, 800);
    page.scheme("dark");
    page.screenshot("charts-dark");
    page.eval(&format!(
        "{wide}.querySelector('g').dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))"
    ));
    page.wait("/^\\d+ matches/.test(t.text('hits'))", "the records of the bar");
    page.check("t.state('where').includes('9007199254740993')", "the exact condition");
    page.finish();
}

#[test]
fn compared_sets_keep_their_colours_and_noise_does_not_win() {
    let shown = Shown::against(
        |folder| data::numbers(folder, "january", 4000, 0),
        |folder| data::numbers(folder, "february", 3000, 1),
    );
    let Some(page) = shown.page_at("compare-charts", "view=compare") else { return };
    page.wait("t.all('drift').length == 8 && /4,000 Ex[^]*3,000 Ex/.test(document.body.innerText)", "drifts");
    page.wait("/\\b2,?700\\b|No record is in both/.test(document.body.innerText)", "records in both");

    // The feature that moved comes first, and is the only one that is above chance.
    page.check(
        "document.querySelector('.feature h3').textContent == 'moved'",
        "the feature that moved first",
    );
    page.check(
        "t.all('drift').filter(d => !/within chance/.test(d.textContent)).length == 1",
        "one feature above chance",
    );
    // The mark of chance is drawn on the bar of the drift.
    page.check(
        "t.all('drift').every(d => { const [g, m] = ['.gauge', 'i'].map(q => d.querySelector(q).getBoundingClientRect()); return m.width > 0 && m.left >= g.left - 1 && m.left <= g.right && m.height > g.height; })",
        "the mark of chance",
    );
    // As floats and as integers, 17 values have one distance.
    page.check(
        "new Set(['seventeen', 'seventeen/float'].map(n => document.querySelector(`[aria-label=\"${n}\"] [data-test=drift]`).textContent)).size == 1",
        "one distance",
    );

    // Both sets have their colours in the heads, the charts and the tables.
    page.check(
        "(() => { const style = (q, of, pseudo) => getComputedStyle(document.querySelector(q), pseudo)[of]; const [a, b] = [style('.side.first', 'borderTopColor'), style('.side.second', 'borderTopColor')];
          return a != b && style('.overlay .fill', 'fill') == a && style('.overlay .second', 'stroke') == b
            && style('.key.first', 'backgroundColor', '::before') == a && style('.key.second', 'backgroundColor', '::before') == b; })()",
        "the colours of the sets",
    );
    // Samples of each side, whose links lead to their set.
    page.wait(
        "['first', 'second'].every(side => t.one('samples-' + side)?.children.length == 3)",
        "samples of each side",
    );
    page.check(
        "t.one('samples-second').querySelector('a').href.includes('set=1')",
        "a link to the second set",
    );
    // The second set has some of the records of the first one.
    page.check(
        "/2,700 records of february\\.tfrecord have an equal payload in january\\.tfrecord/.test(t.text('common'))",
        "the sides of the records in both",
    );
    page.check("/Jensen-Shannon/.test(t.text('stats'))", "the formula");
    page.screenshot("compare-charts");
    page.viewport(360, 740);
    page.screenshot("compare-charts-narrow");
    page.finish();
}

#[test]
fn what_one_set_lacks_or_has_otherwise_comes_first_in_words() {
    let record = |i: i64, second: bool| {
        let record =
            ExampleBuilder::new().int64("same", [i % 4]).float("wide", vec![0.5; 4 << u32::from(second)]);
        let record = if i % 2 == 0 && second { record } else { record.int64("half", [1]) };
        let record = record.int64("empty", (0..i64::from(!second)).collect::<Vec<_>>());
        let one = |name| ExampleBuilder::int64(record, name, [i]);
        let record = if second { one("new").float("kind", [1.0]) } else { one("gone").int64("kind", [1]) };
        record.encode().unwrap()
    };
    let set = |second| move |folder: &Path| data::several(folder, (0..40).map(|i| record(i, second)));
    let shown = Shown::against(set(false), set(true));
    let Some(page) = shown.page_at("compare-words", "view=compare") else { return };
    let expected = [
        "gone: not in the second set",
        "new: not in the first set",
        "empty: no values in the second set",
        "half: in 100 % of the records of the first set, 50.0 % of the second",
        "kind: int64 in the first set, float in the second",
        "wide: 4 values a record in the first set, 8 values a record in the second",
        "same: ",
    ];
    let found = "[...document.querySelectorAll('.feature')].map(f => `${f.querySelector('h3').innerText}: ${f.querySelector('[data-test=differs]')?.innerText ?? ''}`)";
    page.wait(&format!("{found}.join() == '{}'", expected.join(",")), "what differs in words");
    let last = "t.all('drift').length == 3 && /0.000, within chance/.test(t.all('drift')[2].innerText)";
    page.wait(last, "drift where there are values");
    page.screenshot("compare-words");
    page.click_on("t.one('samples-second').querySelector('a')", "a record of the second set");
    page.wait("t.record() == 0 && t.state('set') == '1'", "the record");
    page.key("Escape");
    page.wait("t.view() == 'compare' && !t.state('set')", "the comparison after Escape");
    page.all_manners("compare-words");
    page.finish();
}

/// The page, the report and the terminal write numbers, shares and sizes alike.
#[test]
fn numbers_have_one_form() {
    let shown = Shown::new(|folder| data::many(folder, 20));
    let Some(page) = shown.page_at("numbers", "view=data") else { return };
    for x in
        [0.0, 1.0, 999.0, 1e6, 1234.56, 13.591, 2.0625, 1e-5, 4.4291e-4, 2.5e20, -1_234_567.8, 178_687.25]
    {
        let script = format!("import('/histogram.js').then(m => m.brief({x:e}))");
        assert_eq!(page.text(&script), tfseek_tools::brief(x), "{x}");
    }
    // 167 of 2,000 are 8.35 %: a half, and 8.3499999999999996 as a float.
    let parts: Vec<f64> = (0..=2000).map(f64::from).collect();
    let script = "import('/histogram.js').then(m => Array.from({ length: 2001 }, (_, n) => m.percent(n, 2000)).join())";
    let shares: Vec<_> = parts.iter().map(|n| tfseek_tools::percent(*n, 2000.0)).collect();
    assert_eq!(page.text(script), shares.join(","));
    assert_eq!(shares[167], "8.4 %");
    let sizes = [0, 7, 999, 1000, 1125, 1500, 9_950, 99_949, 123_456, 999_500, 1 << 40, 3 << 61];
    let script = format!("import('/dom.js').then(m => {sizes:?}.map(m.size).join())");
    assert_eq!(page.text(&script), sizes.map(tfseek_tools::sizes::text).join(","));
    page.finish();
}
