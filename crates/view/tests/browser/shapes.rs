//! Values with a shape: Examples in lists, arrays in bytes, tensors, and bands of many values.

use crate::data;
use crate::shown::Shown;
use std::path::PathBuf;
use tfseek::example::ExampleBuilder;

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

#[test]
fn examples_in_lists_have_their_features_by_name() {
    let shown = Shown::new(data::queries);
    let Some(page) = shown.page("queries") else { return };
    page.wait("t.view() == 'table' && t.ids().length == 9", "a table");
    page.wait(
        "t.cards()[4].innerText.includes('query: query 4, user: 4, 3 Examples, the first: relevance: 0, title: document 4.0')",
        "the features in a row",
    );
    page.screenshot("shapes-queries-table");
    page.navigate(&shown.at("view=grid"));
    page.wait("t.card(4)?.innerText.includes('document 4.0 · 3 Examples')", "the features on a card");
    page.check(
        "m.facts(t.card(4)).slice(0, 3).map((f) => f.innerText).join() == 'query query 4,user 4,relevance 0 · 3 Examples'",
        "lines by name",
    );
    page.screenshot("shapes-queries-grid");
    page.navigate(&shown.at("view=record&id=4"));
    page.wait("t.record() == 4 && m.feature('query')?.innerText.includes('query 4')", "the context by name");
    // A column for each feature, and a row for each Example.
    page.check(
        "[...document.querySelectorAll('main thead th')].map((th) => th.innerText).join() == '3 Examples,relevance,title,tokens'",
        "the names of the features",
    );
    page.check(
        "(() => { const rows = [...document.querySelectorAll('main tbody tr')]; const tops = rows.map((r) => m.rect(r).top);
          return rows.length == 3 && tops[0] < tops[1] && tops[1] < tops[2] && rows.every((r, k) => r.children[2].innerText == `document 4.${k}` && Math.abs(m.rect(r.children[2]).left - m.rect(document.querySelectorAll('main thead th')[2]).left) < 1); })()",
        "the values below the names",
    );
    page.screenshot("shapes-queries-record");
    page.click("more");
    page.click("more");
    page.wait("document.querySelectorAll('main tbody tr')[1].innerText.includes('99')", "the last value");
    page.navigate(&shown.at("view=record&id=4"));
    page.wait("m.feature('query')", "the features");
    page.all_manners("queries");
    page.finish();
}

/// Gives the page of a set of records, and the name of one of them.
fn set(name: &str, records: impl Fn(u16) -> Vec<u8>) -> (Shown, String) {
    (Shown::new(|folder| -> Vec<PathBuf> { data::several(folder, (0..9).map(records)) }), name.to_owned())
}

#[test]
fn arrays_of_one_dimension_in_bytes_are_curves() {
    // A ramp, with a shape beside it; of integers, of which a float would make nearly nothing.
    for (name, is_float) in [("floats", true), ("integers", false)] {
        let (shown, name) = set(name, |i| {
            let ramp = (0..200_u16).map(|k| k + i);
            let bytes = if is_float {
                floats(ramp.map(f32::from))
            } else {
                ramp.flat_map(|x| (i32::from(x) - 50).to_le_bytes()).collect()
            };
            ExampleBuilder::new().bytes("wave", [bytes]).int64("wave_shape", [200]).encode().unwrap()
        });
        let Some(page) = shown.page(&format!("curve {name}")) else { return };
        page.wait(
            "t.view() == 'grid' && t.all('sketch').length == 9 && t.all('sketch').every((s) => s.querySelector('path'))",
            "curves on cards",
        );
        page.screenshot(&format!("shapes-curve-{name}-grid"));
        page.navigate(&shown.at("view=record&id=3"));
        page.wait("t.record() == 3 && t.one('lines')?.querySelector('.line')", "a curve");
        page.check(
            "(() => { const p = t.one('lines').querySelector('.line:not(.band)'); const [a, z] = [0, 1].map((s) => p.getPointAtLength(s * p.getTotalLength())); return a.x < 1 && a.y > 97 && z.x > 999 && z.y < 3 && p.getBBox().height > 90; })()",
            "a line from the lower left to the upper right",
        );
        let least = if is_float { "3" } else { "-47" };
        page.check(
            &format!("t.text('record-tree') && document.querySelector('.chart .scale').innerText.replace(/\\s+/, ' ').endsWith('{least}')"),
            "its scale",
        );
        page.screenshot(&format!("shapes-curve-{name}"));
        page.finish();
    }
}

#[test]
fn tensors_are_drawn_by_slices_or_as_lines() {
    let (shown, _) = set("slices", |i| {
        // Slice s has the value s in its upper left corner, and rises to the right and downwards.
        let values = (0..3 * 12 * 20_u16).map(|k| f32::from(k / 240 + k % 20 + k / 20 % 12 + i) - 5.0);
        ExampleBuilder::new().bytes("x", [floats(values)]).int64("x_shape", [3, 12, 20]).encode().unwrap()
    });
    let Some(page) = shown.page_at("slices", "view=record&id=0") else { return };
    page.wait("t.record() == 0 && t.painted(t.one('slice'))", "a slice");
    page.check("t.one('slice').width == 20 && t.one('slice').height == 12", "its size");
    let pixel =
        |x: u8, y: u8| format!("t.one('slice').getContext('2d').getImageData({x}, {y}, 1, 1).data[0]");
    // The range of all slices is -5 to 27.
    page.check(
        &format!("{} == 0 && {} == Math.round(30 * 255 / 32)", pixel(0, 0), pixel(19, 11)),
        "its pixels",
    );
    page.check("m.rect(t.one('slice')).height > 200", "a drawing that is seen");
    page.screenshot("shapes-slices");
    page.key("l");
    page.key("l");
    page.wait(
        &format!("{} == Math.round(2 * 255 / 32) && {} == 255", pixel(0, 0), pixel(19, 11)),
        "the last slice",
    );
    page.finish();

    let (shown, _) = set("few", |i| {
        let values = (0..50 * 3_u16).map(|k| f32::from(k / 3) * f32::from(k % 3) + f32::from(i));
        ExampleBuilder::new().bytes("path", [floats(values)]).int64("path/shape", [50, 3]).encode().unwrap()
    });
    let Some(page) = shown.page_at("few", "view=record&id=0") else { return };
    page.wait("t.record() == 0 && t.one('lines')?.querySelectorAll('.line').length == 3", "three lines");
    page.check(
        "(() => { const [a, b, c] = [...t.one('lines').querySelectorAll('.line')].map((p) => p.getBBox().height); return a < 1 && Math.abs(b - 48) < 1 && Math.abs(c - 96) < 1; })()",
        "a line for each dimension",
    );
    page.screenshot("shapes-few");
    page.finish();
}

#[test]
fn arrays_that_are_declared_are_drawn_and_those_that_do_not_fit_say_so() {
    let shown = Shown::new(data::declared_arrays);
    let Some(page) = shown.page_at("declared", "view=record&id=0") else { return };
    page.wait(
        "t.record() == 0 && t.all('lines').length == 3 && t.all('slice').length == 1",
        "curves and a slice",
    );
    page.check(
        "t.all('lines').some((l) => l.ariaLabel.startsWith('wave: 300 values between -150 and 149'))",
        "64-bit integers in zlib",
    );
    page.check(
        "t.all('lines').some((l) => l.querySelectorAll('.line').length == 4)",
        "a line for each dimension of a list",
    );
    page.check(
        "t.all('lines').some((l) => l.ariaLabel == 'few: 4 values between 0 and 2')",
        "half floats that are as long as floats while compressed",
    );
    page.check(
        "t.painted(t.one('slice')) && t.one('slice').width == 16 && t.one('slice').height == 9",
        "numbers of two dimensions",
    );
    page.screenshot("shapes-declared");
    page.navigate(&shown.at("view=record&id=1"));
    page.wait(
        "/matrix has 5 values, expected 9 × 16/.test(document.querySelector('main').innerText)",
        "an error in words",
    );
    page.finish();
}

#[test]
fn many_values_have_a_band_of_their_range() {
    let shown = Shown::new(|folder| {
        // Noise between -1 and 1, with a peak of 8 in its middle and a gap behind it.
        let noise = |k: u32| (k.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0;
        let value = |k| match k {
            50_000 => 8.0,
            60_000..70_000 => f32::NAN,
            k => noise(k),
        };
        let record = ExampleBuilder::new().float("signal", (0..100_000).map(value).collect::<Vec<_>>());
        data::one(folder, record.encode().unwrap())
    });
    let Some(page) = shown.page_at("band", "view=record&id=0") else { return };
    page.wait("t.record() == 0 && t.one('lines')?.querySelector('.band')", "a band");
    let (width, height) = (1000.0, 100.0);
    let inside = |x: f64, y: f64| {
        // In units of the chart; values from -1 to 8 are 98 to 2.
        let point = format!("new DOMPoint({}, {})", x * width, y * height);
        format!("t.one('lines').querySelector('.band').isPointInFill({point})")
    };
    page.check(&inside(0.25, 0.87), "the noise in the band");
    page.check(&format!("!{}", inside(0.25, 0.5)), "nothing above it");
    page.check(&format!("!{}", inside(0.65, 0.87)), "a gap");
    page.check("Math.abs(t.one('lines').querySelector('.band').getBBox().y - 2) < 0.5 && t.one('lines').querySelector('.band').getBBox().height > 95", "the peak");
    page.check(
        "(() => { const s = getComputedStyle(t.one('lines').querySelector('.band')); return s.fill != 'none' && Number(s.fillOpacity) > 0.2; })()",
        "a filled band",
    );
    // The mean of the noise is about 0.
    page.check(
        "(() => { const b = t.one('lines').querySelector('.line:not(.band)').getBBox(); return b.y > 80 && b.height < 8; })()",
        "the mean on the line",
    );
    page.screenshot("shapes-band");
    page.finish();
}
