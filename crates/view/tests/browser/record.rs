//! The page of one record: its tree, images, sequences and sounds, and copies of it.

use crate::data;
use crate::shown::Shown;

#[test]
fn the_tree_the_bytes_and_the_copies_are_those_of_the_record() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page_at("record", "view=record&id=7") else { return };
    page.wait("t.record() == 7", "record 7");
    page.wait("t.text('record-tree').includes('image/object/bbox/xmin')", "the names of features");
    page.check("t.text('record-tree').includes('photo 7.png')", "a value");
    page.wait("t.painted(t.one('record-image'))", "the image");
    page.wait("t.painted(t.one('boxes'))", "the boxes");
    page.screenshot("record");

    let json = page.copied(|| page.click("copy-json"));
    let copied: serde_json::Value =
        serde_json::from_str(&json).unwrap_or_else(|e| page.fail(&format!("{e}: {json}")));
    assert!(copied.to_string().contains("photo 7.png"), "{copied}");
    let command = page.copied(|| page.click("copy-command"));
    assert!(command.starts_with("tfseek get ") && command.contains(" 7"), "{command}");

    // The first 4 KiB, and a link to all.
    page.click("tab-hex");
    page.wait("/00000000|0a [0-9a-f]{2}/i.test(document.body.innerText)", "bytes in hex");
    page.check("document.querySelector('pre.hex').innerText.trim().split('\\n').length <= 256 && document.querySelector('#detail a[download]').href.endsWith('/api/bytes/7')", "one page of bytes");
    page.screenshot("hex");
    page.click("tab-tree");
    page.see("record-tree");
    page.key("ArrowRight");
    page.wait("t.record() == 8", "the next record after a click on a tab");
    page.navigate(&shown.at("view=record&id=119"));
    page.wait("t.record() == 119", "the last record");
    page.finish();
}

#[test]
fn a_record_that_does_not_exist_is_an_error_in_words() {
    let shown = Shown::new(|folder| data::tfds(folder, 20));
    let Some(page) = shown.page_at("missing", "view=record&id=5000") else { return };
    page.expect("status of 404");
    page.wait(
        "t.view() && /5,?000/.test(document.querySelector('main').innerText)",
        "words about record 5000",
    );
    page.screenshot("missing");
    page.finish();
}

#[test]
fn frames_lines_and_one_cursor_show_a_sequence() {
    let shown = Shown::new(data::sequences);
    let Some(page) = shown.page_at("sequence", "view=record&id=3") else { return };
    page.wait("t.record() == 3", "record 3");
    page.see("slider");
    page.wait("[...document.querySelectorAll('main img, main canvas')].some(t.painted)", "a frame");
    page.see("lines");
    let before = page.text("t.one('slider').matches('input') ? t.one('slider').value : t.one('slider').querySelector('input').value");
    page.key("l");
    page.wait(
        &format!("(t.one('slider').matches('input') ? t.one('slider') : t.one('slider').querySelector('input')).value != '{before}'"),
        "the next frame after `l`",
    );
    for tab in ["tab-hex", "tab-tree"] {
        page.click(tab);
        page.key("ArrowRight");
    }
    page.wait("t.input('slider').value == '3' && t.record() == 3", "two frames more by arrows");
    page.screenshot("sequence");
    page.all_manners("sequence");
    page.finish();
}

#[test]
fn floats_and_raw_bytes_are_drawn_as_pixels() {
    for (which, name) in [(0, "floats"), (1, "raw")] {
        let shown = Shown::new(|folder| vec![data::pixels(folder).remove(which)]);
        let Some(page) = shown.page(name) else { return };
        page.wait("t.all('card').length == 10 && t.all('card').every(t.painted)", "canvases of ten records");
        page.navigate(&shown.at("view=record&id=4"));
        page.wait("t.record() == 4 && t.all('pixels').some(t.painted)", "the pixels of record 4");
        page.screenshot(name);
        page.finish();
    }
}

#[test]
fn compressed_shards_are_shown_as_others() {
    let shown = Shown::new(|folder| data::gzip(folder, 500));
    let Some(page) = shown.page_at("gzip", "view=grid&at=480") else { return };
    page.wait("t.ids().includes(480) && t.painted(t.card(480))", "record 480");
    page.finish();
}

#[test]
fn labels_of_prepared_sets_have_their_names() {
    let shown = Shown::new(|folder| data::prepared(folder)[..1].to_vec());
    let Some(page) = shown.page_at("prepared", "view=record&id=7") else { return };
    page.wait("t.record() == 7", "record 7");
    page.wait("t.text('record-tree').includes('2 \"unagi\"')", "the name of a class");
    page.check("t.text('record-tree').includes('Sequence(BBoxFeature(float32, [4]))')", "the declared type");
    page.wait("t.painted(t.one('boxes'))", "the boxes");
    page.navigate(&shown.at("view=record&id=4"));
    page.wait("t.record() == 4", "record 4");
    page.wait(
        "[...document.querySelectorAll('[data-feature=label] .value')].some((v) => v.textContent === '4')",
        "no class",
    );
    page.navigate(&shown.at("view=grid"));
    page.wait("document.body.innerText.includes('salmon roll')", "the name in a caption");
    page.navigate(&shown.at("view=table"));
    page.wait("t.text('table').includes('1 \"tuna\"')", "the name in a cell");
    page.navigate(&shown.at("view=data"));
    page.wait(
        "t.all('bar').some((bar) => bar.getAttribute('aria-label').includes('1 \"tuna\": 4'))",
        "the name in a histogram",
    );
    page.screenshot("prepared");
    page.finish();
}

#[test]
fn compressed_arrays_of_prepared_sets_are_drawn() {
    let shown = Shown::new(|folder| data::prepared(folder)[1..].to_vec());
    let Some(page) = shown.page_at("prepared-arrays", "view=record&id=3") else { return };
    page.wait("t.record() == 3", "record 3");
    page.wait(
        "[...document.querySelectorAll('main canvas')].some((c) => c.title.startsWith('depth: 20 × 30'))",
        "the array",
    );
    page.finish();
}
