//! The looks of the page: the first view, the space of pictures and values, curves, banners, and words with
//! names of the set.

use crate::data;
use crate::shown::Shown;
use std::path::{Path, PathBuf};
use tfseek::example::{ExampleBuilder, FeatureBuf, SequenceExampleBuilder};

fn tabular(folder: &Path) -> Vec<PathBuf> {
    let record = |i: i64| {
        ExampleBuilder::new()
            .int64("age", [30 + i])
            .float("a/rather/long/name/of/a/feature/of/floats", [0.5])
            .bytes("city", [["Oslo", "Lima"][i as usize % 2]])
            .int64("created_at", [1_476_472_058_000 + i])
            .encode()
            .unwrap()
    };
    data::several(folder, (0..20).map(record))
}

#[test]
fn the_first_view_fits_the_records() {
    let event = |i: u8| {
        let mut event = vec![0x09];
        event.extend((1_476_472_058.5_f64 + f64::from(i)).to_le_bytes());
        event.extend(b"\x1a\x0dbrain.Event:2");
        event
    };
    let words = |i: u8| ExampleBuilder::new().bytes("text", [format!("text {i}")]).encode().unwrap();
    type Make = Box<dyn Fn(&Path) -> Vec<PathBuf>>;
    let cases: [(&str, &str, Make); 7] = [
        ("pictures", "grid", Box::new(|folder| data::detection(folder, 9))),
        ("sounds", "grid", Box::new(|folder| vec![data::audio(folder).remove(0)])),
        ("sequences", "grid", Box::new(data::sequences)),
        ("numbers", "table", Box::new(tabular)),
        ("texts", "table", Box::new(move |folder| data::several(folder, (0..9).map(words)))),
        ("events", "table", Box::new(move |folder| data::several(folder, (0..9).map(event)))),
        ("prepared", "data", Box::new(data::split)),
    ];
    for (name, view, make) in cases {
        let shown = Shown::new(|folder| make(folder));
        let Some(page) = shown.page(&format!("first {name}")) else { return };
        page.wait(&format!("t.view() == '{view}'"), name);
        match name {
            "events" => page.wait(
                "t.cards()[0].innerText.includes('wall_time: 2016-10-14 19:07:38.5 UTC') && t.cards()[0].innerText.includes('file_version: brain.Event:2')",
                "the fields of an event by name",
            ),
            "prepared" => page.wait(
                "/train\\s+20\\s+1/.test(t.text('prepared')) && t.text('prepared').includes('4: salmon roll, tuna, unagi, tamago')",
                "splits and labels",
            ),
            _ => page.wait("t.ids().includes(0)", "record 0"),
        }
        page.screenshot(&format!("first-{name}"));
        page.all_manners(&format!("first-{name}"));
        page.finish();
    }
}

#[test]
fn cards_have_whole_values_and_curves() {
    let shown = Shown::new(|folder| {
        let record = |i: i64| {
            let step = |k: i64| FeatureBuf::from(vec![(k as f32 / 3.0).sin(), i as f32 / 10.0]);
            SequenceExampleBuilder::new()
                .bytes("a_rather_long_name_of_the_context", ["whole value"])
                .int64("n", [1_234_567])
                .feature_list("force", (0..40).map(step))
                .encode()
                .unwrap()
        };
        data::several(folder, (0..9).map(record))
    });
    let Some(page) = shown.page("cards") else { return };
    page.wait(
        "t.all('sketch').length == 9 && t.all('sketch').every((s) => s.querySelectorAll('path').length == 2)",
        "a curve of each dimension",
    );
    page.check("new Set([...t.one('sketch').querySelectorAll('path')].map((p) => getComputedStyle(p).stroke)).size == 2", "two colours");
    page.check("t.one('sketch').querySelector('path').getBBox().width > 900", "a curve over the whole width");
    page.check(
        "m.facts().every((f) => f.scrollWidth <= f.clientWidth && f.scrollHeight <= f.clientHeight && m.rect(f).bottom <= m.rect(f.closest('.card-picture')).bottom)",
        "values that are not cut",
    );
    page.check(
        "t.card(0).innerText.includes('whole value') && t.card(0).innerText.includes('1234567')",
        "the context",
    );
    page.screenshot("looks-cards");
    page.finish();
}

/// A value that is wider than the card is on several lines, of several values as many as have room are shown,
/// and only a text longer than the card is cut, at its end.
#[test]
fn long_values_are_whole_on_cards() {
    let shown = Shown::new(|folder| {
        let record = |i: u64| {
            ExampleBuilder::new()
                .bytes("checksum", [format!("{:064x}", 7919 * (i + 1))])
                .float("mean/of/the/left/and/right/channels", [1234.5 + i as f32])
                .int64("tokens", (0..40).map(|k| 1000 + k).collect::<Vec<_>>())
                .encode()
                .unwrap()
        };
        data::several(folder, (0..9).map(record))
    });
    let Some(page) = shown.page_at("long values", "view=grid") else { return };
    for size in ["medium", "large"] {
        page.navigate(&shown.at(&format!("view=grid&size={size}")));
        page.wait("t.ids().length == 9 && m.facts().length > 9", "cards");
        page.check(
            "m.facts().every((f) => f.scrollWidth <= f.clientWidth && f.scrollHeight <= f.clientHeight && m.rect(f).bottom <= m.rect(f.closest('.card-picture')).bottom)",
            "values that are not cut",
        );
        page.check(
            "t.cards().every((card, i) => m.facts(card).some((f) => f.innerText == 'checksum ' + (7919 * (i + 1)).toString(16).padStart(64, '0') && m.rect(f).height > 30))",
            "a long value on several lines",
        );
        page.check(
            "m.facts(t.card(0)).some((f) => /^tokens 1000.* … of 40$/.test(f.innerText))",
            "some of the values, and their number",
        );
        page.screenshot(&format!("looks-long-values-{size}"));
    }
    page.finish();

    let words =
        |i: u8| ExampleBuilder::new().int64("id", [i]).bytes("text", [format!("text {i} ").repeat(90)]);
    let shown = Shown::new(|folder| data::several(folder, (0..9).map(|i| words(i).encode().unwrap())));
    let Some(page) = shown.page_at("long texts", "view=grid") else { return };
    page.wait("t.ids().length == 9 && m.facts().length == 18", "cards");
    page.check(
        "m.facts().filter((f) => f.innerText.startsWith('text')).every((f) => { const [r, c] = [m.rect(f), m.rect(f.parentElement)]; return r.height % 16 == 0 && r.bottom <= c.bottom && c.bottom - r.bottom < 24; })",
        "whole lines of a text down to the end of the card",
    );
    page.screenshot("looks-long-texts");
    page.finish();
}

/// On a narrow page the picture is beside the first features. It is made larger, and smaller again.
#[test]
fn features_are_near_the_top_of_a_narrow_page() {
    type Make = fn(&Path) -> Vec<PathBuf>;
    let cases: [(&str, Make); 5] = [
        ("boxes", |folder| data::detection(folder, 3)),
        ("pixels", |folder| vec![data::pixels(folder).remove(0)]),
        ("frames", data::sequences),
        ("sound", |folder| vec![data::audio(folder).remove(0)]),
        ("portrait", |folder| {
            let record = ExampleBuilder::new().bytes("image", [data::image(3, 300, 900)]);
            data::one(folder, record.int64("label", [3]).encode().unwrap())
        }),
    ];
    for (name, make) in cases {
        let shown = Shown::new(make);
        let Some(page) = shown.page_at(&format!("narrow {name}"), "view=record&id=0") else { return };
        page.viewport(360, 740);
        page.wait("t.record() == 0 && document.querySelector('[data-feature]')", "record 0");
        page.wait(
            "[...document.querySelectorAll('main img, main canvas.pixels')].every((e) => t.painted(e))",
            "the pictures",
        );
        page.wait(
            "m.rect(document.querySelector('[data-feature]')).top < 296",
            "the first feature near the top",
        );
        page.screenshot(&format!("looks-narrow-{name}"));
        if ["boxes", "pixels", "portrait"].contains(&name) {
            page.check(
                "(() => { const [p, f] = [m.rect(t.one('stage')), m.rect(document.querySelector('[data-feature]'))]; return Math.max(p.width, p.height) >= 120 && p.height <= 200 && p.bottom <= m.rect(document.querySelector('#detail')).bottom && p.left >= f.right && p.top < 296 && p.right <= innerWidth; })()",
                "the picture beside the first feature",
            );
            page.click("zoom-in");
            page.wait(
                "m.rect(t.one('stage')).width > 280 || m.rect(t.one('stage')).height > 280",
                "a large picture",
            );
            page.check(
                "m.rect(document.querySelector('[data-feature]')).top >= m.rect(t.one('stage')).bottom",
                "features below it",
            );
            page.screenshot(&format!("looks-narrow-{name}-large"));
            page.click("zoom-out");
            page.wait("m.rect(document.querySelector('[data-feature]')).top < 296", "the small picture");
        }
        page.check("document.querySelector('main').scrollWidth <= innerWidth", "the width of the window");
        page.click("tab-hex");
        page.wait("document.querySelector('pre.code')?.innerText.length > 20", "the bytes");
        page.check(
            "!t.one('stage') || m.rect(t.one('stage')).top >= m.rect(document.querySelector('pre.code')).bottom",
            "the picture below the bytes",
        );
        page.click("tab-tree");
        page.viewport(1280, 800);
        page.wait("!document.querySelector('.beside')", "the picture in its column");
        page.finish();
    }
}

#[test]
fn pictures_use_the_window_and_are_enlarged() {
    for (name, width, height) in [("wide", 1600, 1000), ("portrait", 900, 1400), ("panorama", 2400, 700)] {
        let record = ExampleBuilder::new()
            .bytes("image", [data::image(3, width, height)])
            .int64("label", [3])
            .encode()
            .unwrap();
        let shown = Shown::new(|folder| data::one(folder, record));
        let Some(page) = shown.page_at(&format!("picture {name}"), "view=record&id=0") else { return };
        page.wait("t.painted(t.one('record-image'))", "the picture");
        page.check(
            "m.rect(t.one('stage')).width >= 900 || m.rect(t.one('stage')).height >= 450",
            "a large picture",
        );
        page.check("m.rect(t.one('stage')).bottom <= innerHeight", "a picture that fits");
        let ratio = page.number("m.rect(t.one('stage')).width / m.rect(t.one('stage')).height");
        assert!((ratio / (f64::from(width) / f64::from(height)) - 1.0).abs() < 0.02, "{name}: {ratio}");
        page.check("m.gap('label') <= 240", "the value beside its name");
        page.screenshot(&format!("looks-{name}"));
        let before = page.number("m.rect(t.one('record-image')).width");
        page.key("+");
        page.wait(
            &format!("Math.abs(m.rect(t.one('record-image')).width - {before} * 2) < 2"),
            "a picture twice as large",
        );
        let edge = page.eval(
            "(() => { const r = m.rect(t.one('stage')); return [r.x + r.width / 2, r.y + r.height / 2]; })()",
        );
        let (x, y) = (edge[0].as_f64().unwrap(), edge[1].as_f64().unwrap());
        let left = page.number("t.one('stage').scrollLeft");
        page.drag((x, y), (x - 60.0, y));
        page.wait(&format!("t.one('stage').scrollLeft > {left} + 30"), "the picture to move");
        page.click("zoom-out");
        page.wait(
            &format!("Math.abs(m.rect(t.one('record-image')).width - {before}) < 2"),
            "the picture as before",
        );
        page.finish();
    }
}

#[test]
fn values_are_near_their_names_and_long_lists_are_complete() {
    let shown = Shown::new(tabular);
    let Some(page) = shown.page_at("values", "view=record&at=7") else { return };
    page.wait("t.record() == 7", "record 7 by its position");
    for name in ["age", "city", "created_at", "a/rather/long/name/of/a/feature/of/floats"] {
        page.check(&format!("m.gap('{name}') <= 240"), name);
    }
    page.wait("t.text('time') == '2016-10-14 19:07:38.007 UTC'", "a time");
    page.viewport(360, 740);
    page.wait(
        "m.rect(document.querySelector('[data-feature]')).top < 296",
        "the first feature near the top of a narrow page",
    );
    page.screenshot("looks-narrow");
    page.finish();

    let steps = (0..3000).map(|k| FeatureBuf::from([i64::from(k)]));
    let record = SequenceExampleBuilder::new()
        .int64("numbers", (0..5000).collect::<Vec<_>>())
        .bytes("words", (0..5000).map(|k| format!("w{k}")).collect::<Vec<_>>())
        .feature_list("steps", steps)
        .encode()
        .unwrap();
    let shown = Shown::new(|folder| data::one(folder, record));
    let Some(page) = shown.page_at("long", "view=record&id=0") else { return };
    for (name, more, last) in [
        ("numbers", "4,976 more", "4999"),
        ("words", "4,976 more", "w4999"),
        ("steps", "2,992 more steps", "2999"),
    ] {
        let button = format!("m.feature('{name}')?.querySelector('[data-test=more]')");
        page.wait(&format!("{button}?.textContent == '{more}'"), "the number of all others");
        page.wait(
            &format!("(() => {{ {button}?.click(); return !{button} && [...m.feature('{name}').querySelectorAll('.value')].at(-1).textContent == '{last}'; }})()"),
            "the last value",
        );
    }
    page.finish();
}

#[test]
fn arrays_in_bytes_are_drawn() {
    let floats = |n: usize| (0..n).flat_map(|k| (k as f32).to_le_bytes()).collect::<Vec<u8>>();
    let records = [
        (
            "shape",
            ExampleBuilder::new().bytes("x/encoded", [floats(85 * 100)]).int64("x/shape", [85, 100, 1]),
            "pixels",
            100,
        ),
        (
            "letters",
            ExampleBuilder::new().bytes("image", (0..35 * 35 * 3).map(|k| [(k % 251) as u8])),
            "pixels",
            35,
        ),
        (
            "base64",
            ExampleBuilder::new().bytes("photo", [data::base64(&data::image(2, 50, 40))]),
            "record-image",
            50,
        ),
    ];
    for (name, record, hook, width) in records {
        let record = record.encode().unwrap();
        let shown = Shown::new(|folder| data::one(folder, record));
        let Some(page) = shown.page(&format!("array {name}")) else { return };
        page.wait("t.view() == 'grid' && t.all('card').every(t.painted)", "a card with the picture");
        page.navigate(&shown.at("view=record&id=0"));
        page.wait(&format!("t.record() == 0 && t.painted(t.one('{hook}'))"), "the picture");
        page.check(
            &format!("(t.one('{hook}').naturalWidth ?? t.one('{hook}').width) == {width}"),
            "its width",
        );
        page.screenshot(&format!("looks-array-{name}"));
        page.finish();
    }
}

#[test]
fn known_damage_is_a_banner_that_leads_to_its_ranges() {
    let shown = Shown::new(data::damaged);
    let Some(page) = shown.page("banner") else { return };
    page.wait("/^3 damaged ranges of \\d+ B are left out\\./.test(t.text('banner'))", "the banner");
    page.check("document.body.innerText.match(/damaged range/g).length == 1", "damage said once");
    page.check(
        "m.rect(t.one('banner')).height < 40 && m.rect(t.one('banner')).width > 1000",
        "a line over the page",
    );
    page.screenshot("looks-banner");
    page.click("ranges");
    page.wait("t.view() == 'data' && /3 ranges: bytes 1,?\\d+ to/.test(t.text('damage'))", "the ranges");
    page.wait("m.rect(t.one('damage')).top < innerHeight / 2", "the ranges in view");
    page.check("!/true/.test(document.body.innerText)", "numbers of ranges");
    page.check("!/damaged range/.test(t.text('stats')) && !!t.one('check')", "an offer to verify");
    page.wait("/3 damaged ranges/.test(t.text('shards'))", "the ranges of a shard");
    page.click("check");
    page.wait(
        "/checked: 1 shard with damage/.test(t.text('damage')) && /3 ranges/.test(t.text('damage'))",
        "what only verification finds",
    );
    page.screenshot("looks-damage");
    page.finish();
}

#[test]
fn words_have_the_names_of_the_set() {
    let shown = Shown::new(tabular);
    let Some(page) = shown.page("words") else { return };
    page.wait("t.one('where').placeholder == 'Condition, such as age == 30'", "a placeholder of this set");
    page.key("?");
    page.wait(
        "t.text('help').includes('age == 30') && t.text('help').includes('city == \"Oslo\"')",
        "the grammar with names of this set",
    );
    page.key("Escape");
    page.expect("status of 400");
    for (wrong, right) in
        [("age = 35", "age == 35"), ("agee == 35", "age == 35"), ("city=\"a=b\"", "city==\"a=b\"")]
    {
        page.fill("where", wrong);
        page.key("Enter");
        page.wait(&format!("t.text('better') == '{right}'"), "a better condition");
        page.click("better");
        page.wait(
            &format!("t.one('where').value == '{right}' && /^\\d+ match/.test(t.text('hits'))"),
            "its search",
        );
    }
    page.screenshot("looks-words");
    page.navigate(&shown.at("view=data"));
    page.wait(
        "t.view() == 'data' && document.querySelector('main h1').textContent == '20 Examples in 1 shard'",
        "a heading that says something",
    );
    page.check("!t.one('hits') && m.rect(document.querySelector('#bar')).bottom - m.rect(document.querySelector('.tool-row')).bottom < 12", "no strip below the search");
    page.key("j");
    page.check("getComputedStyle(document.querySelector('main')).outlineStyle == 'none' || document.activeElement.tagName != 'MAIN'", "no line around the page");
    page.finish();
}

/// Runs the checks of names, contrast, focus and the keyboard on each view.
#[test]
fn every_view_is_accessible() {
    let shown = Shown::new(|folder| data::detection(folder, 30));
    let Some(page) = shown.page("accessible") else { return };
    for view in ["grid", "table", "record&id=3", "data", "step"] {
        page.navigate(&shown.at(&format!("view={view}")));
        page.wait(&format!("t.view() == '{}'", view.split('&').next().unwrap()), view);
        let stays = "(() => { const now = document.querySelector('main progress') ? '' : document.body.innerHTML; \
            window.same = now && window.last === now ? window.same + 1 : 0; window.last = now; return window.same > 30; })()";
        page.wait(stays, "a page that stays as it is");
        page.all_named();
        page.all_readable();
        page.no_trap();
    }
    page.finish();
}
