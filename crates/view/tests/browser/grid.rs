//! The grid: images over all records, filters, numbers, samples, and the address as its state.

use crate::data;
use crate::manners::SHIFTS;
use crate::shown::Shown;

#[test]
fn images_are_painted_with_captions_and_boxes() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page("grid") else { return };
    page.wait("t.all('card').length > 8", "cards");
    page.wait("t.all('card-image').length > 8 && t.all('card-image').every(t.painted)", "painted images");
    page.check(
        "[0, 1, 2, 3].every(i => t.card(i).innerText.includes(['salmon roll', 'tuna', 'unagi', 'tamago'][i]))",
        "captions with classes",
    );
    // Records 0 to 3 have boxes, and record 4 has none.
    page.wait("[0, 1, 2, 3].every(i => t.painted(t.boxes(t.card(i))))", "boxes of the first records");
    page.check("!t.boxes(t.card(4)) || !t.painted(t.boxes(t.card(4)))", "record 4 without boxes");
    page.screenshot("grid");
    page.key("b");
    page.wait(
        "[0, 1, 2, 3].every(i => !t.boxes(t.card(i)) || !t.painted(t.boxes(t.card(i))))",
        "no boxes after `b`",
    );
    page.key("b");
    page.wait("t.painted(t.boxes(t.card(0)))", "boxes after `b` again");
    page.finish();
}

#[test]
fn the_grid_the_table_and_the_record_have_manners() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page("manners") else { return };
    for (view, ready) in [
        ("view=grid", "t.all('card-image').length > 8 && t.all('card-image').every(t.painted)"),
        ("view=table", "t.view() == 'table' && document.body.innerText.includes('salmon roll')"),
        ("view=record&id=7", "t.record() == 7 && t.painted(t.one('record-image'))"),
        ("view=record&id=7&tab=hex", "t.record() == 7 && document.body.innerText.includes('00000010')"),
    ] {
        page.navigate(&shown.at(view));
        page.wait(ready, view);
        page.all_manners(&format!("manners-{view}"));
        page.scheme("dark");
        page.screenshot(&format!("dark-{view}"));
        page.scheme("light");
    }
    page.navigate(&shown.at("view=grid"));
    page.wait("t.view() == 'grid'", "the grid");
    page.tab_reaches("[data-test=grid]");
    page.key("ArrowRight");
    page.key("ArrowRight");
    page.key("Enter");
    page.wait("t.record() == 2", "record 2 by keys alone");
    page.key("Escape");
    page.wait("t.view() == 'grid'", "the grid after Escape");
    page.key("?");
    page.see("help");
    page.all_manners("help");
    page.key("Escape");
    page.wait("!t.one('help')", "the end of the help");
    page.finish();
}

#[test]
fn nothing_jumps_while_images_come() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page_after("shift", SHIFTS, "") else { return };
    page.wait("t.all('card-image').length > 8 && t.all('card-image').every(t.painted)", "painted images");
    page.wheel(400.0, 400.0, 900.0);
    page.wait("t.ids()[0] > 0", "the grid to scroll");
    page.wait("t.all('card-image').every(t.painted)", "painted images");
    let shifts = page.eval("window.shifts");
    if shifts.as_array().is_none_or(|shifts| !shifts.is_empty()) {
        page.fail(&format!("the layout shifts: {shifts:#}"));
    }
    page.finish();
}

#[test]
fn a_condition_filters_and_is_part_of_the_address() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page("where") else { return };
    page.wait("t.all('card').length > 8", "cards");
    page.key("/");
    page.wait("document.activeElement == t.input('where')", "the focus on the condition");
    page.insert("image/class/label == 3");
    page.key("Enter");
    page.wait("t.ids().length > 8 && t.ids().every(id => id % 4 == 3)", "only records of class 3");
    page.wait("/\\b30\\b/.test(t.text('hits'))", "30 hits");
    page.check("t.state('where') == 'image/class/label == 3'", "the condition in the address");
    page.check(
        "!location.href.includes('t=') && !document.cookie",
        "no token in the address or a readable cookie",
    );
    page.reload();
    page.wait("t.ids().length > 8 && t.ids().every(id => id % 4 == 3)", "the same records after a reload");
    page.check("t.input('where').value == 'image/class/label == 3'", "the condition in its box");
    page.back();
    page.wait("t.ids().slice(0, 4).join() == '0,1,2,3'", "all records after the way back");

    page.expect("status of 400");
    page.fill("where", "image/class/label === = 3");
    page.key("Enter");
    page.wait("t.text('where-error').length > 10", "the reason of a bad condition");
    page.screenshot("where-error");

    page.fill("where", "image/class/label == 77");
    page.key("Enter");
    page.wait("t.text('empty').length > 10", "words about no records");
    page.screenshot("nothing-found");
    page.finish();
}

#[test]
fn a_number_a_sample_and_the_scroll_bar_lead_to_records() {
    let shown = Shown::new(|folder| data::many(folder, 1_000_000));
    let Some(page) = shown.page("many") else { return };
    page.wait("t.ids().includes(0)", "record 0");
    page.key("g");
    page.wait("document.activeElement == t.input('goto')", "the focus on the number");
    page.insert("765432");
    page.key("Enter");
    page.wait("t.ids().includes(765432) || t.record() == 765432", "record 765,432");
    page.navigate(&shown.at("view=grid&at=123456"));
    page.wait(
        "t.ids().includes(123456) && t.card(123456).innerText.includes('123456')",
        "record 123,456 by its address",
    );
    page.eval("t.one('scrollbar').focus()");
    page.key("End");
    page.wait("t.ids().includes(999999)", "the last record");
    page.key("Home");
    page.wait("t.ids().includes(0)", "the first record");
    let bar = page.eval("(() => { const r = t.one('scrollbar').getBoundingClientRect(); return [r.x + r.width / 2, r.y, r.height]; })()");
    let [x, y, height] = [0, 1, 2].map(|i| bar[i].as_f64().unwrap());
    page.drag((x, y + 5.0), (x, y + height / 2.0));
    page.wait("Math.abs(t.ids()[0] - 500000) < 30000", "the middle after a drag");
    page.screenshot("many");

    page.key("r");
    page.wait("t.state('seed') != null && t.ids().length > 8 && t.ids().some((id, i, ids) => i > 0 && id != ids[i - 1] + 1)", "a sample");
    let ids = page.eval("t.ids()");
    page.reload();
    page.wait("t.ids().length > 8", "the sample after a reload");
    assert_eq!(page.eval("t.ids()"), ids);
    page.finish();
}

#[test]
fn first_hits_come_while_the_scan_goes_on() {
    let shown = Shown::new(|folder| data::many(folder, 1_000_000));
    let Some(page) = shown.page("scan") else { return };
    page.fill("where", "number in 10, 999990..");
    page.key("Enter");
    page.wait("t.ids().includes(10)", "the first hit");
    page.wait("t.ids().join() == '10,' + [...Array(10).keys()].map(i => 999990 + i).join()", "all hits");
    page.fill("where", "label == 3");
    page.key("Enter");
    // While it searches, the text has other numbers, and the list of hits grows: its end is not the last one.
    page.wait(
        "t.text('hits') == '100,000 matches in 1,000,000 records'",
        "100,000 hits and the end of the scan",
    );
    page.eval("t.one('scrollbar').focus()");
    page.key("End");
    page.wait("t.ids().includes(999993)", "the last hit");
    page.finish();
}

#[test]
fn a_card_opens_its_record_and_the_way_back_leads_to_the_card() {
    let shown = Shown::new(|folder| data::detection(folder, 200));
    let Some(page) = shown.page_at("history", "view=grid&at=300") else { return };
    page.wait("t.ids().includes(300)", "record 300");
    let first = page.eval("t.ids()[0]");
    page.click_on("t.card(301)", "card 301");
    page.wait("t.record() == 301", "record 301");
    page.key("j");
    page.wait("t.record() == 302", "the next record");
    page.key("k");
    page.key("k");
    page.wait("t.record() == 300", "the record before");
    page.click("next");
    page.wait("t.record() == 301", "the next record by its button");
    page.click("previous");
    page.wait("t.record() == 300", "the record before by its button");
    for _ in 0..8 {
        if page.eval("t.view() == 'grid'") == true {
            break;
        }
        page.back();
        page.eval("new Promise(done => setTimeout(done, 300))");
    }
    page.wait("t.ids().length > 8", "the grid after the way back");
    assert_eq!(page.eval("t.ids()[0]"), first);
    page.finish();
}

#[test]
fn an_empty_file_and_records_that_are_no_messages_say_so() {
    let shown = Shown::new(data::empty);
    let Some(page) = shown.page("empty") else { return };
    page.wait("t.text('empty').length > 10", "words about the empty file");
    page.screenshot("empty");
    page.all_manners("empty");
    page.finish();

    let shown = Shown::new(data::bytes);
    let Some(page) = shown.page("bytes") else { return };
    page.wait("t.ids().length == 4", "four records");
    page.check("t.card(0).innerText.includes('a line of text')", "a payload as text");
    page.screenshot("bytes");
    page.finish();
}
