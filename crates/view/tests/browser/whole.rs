//! The page of the whole data set, and two of them side by side.

use crate::data;
use crate::shown::Shown;
use tfseek::{ExampleBuilder, FeatureBuf};

#[test]
fn statistics_schema_and_shards_are_shown() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page_at("data", "view=data") else { return };
    page.see("stats");
    page.wait("t.text('stats').includes('image/class/label')", "statistics of a feature");
    page.wait("t.all('histogram').length > 0 && t.all('bar').length > 0", "histograms");
    page.wait("!/so far/.test(document.body.innerText)", "complete statistics");
    page.check(
        "/Record size\\s+[\\d.]+ kB to [\\d.]+ kB, median [\\d.]+ kB/.test(document.body.innerText)",
        "labels of sizes",
    );
    page.screenshot("data");
    page.see("shards");
    page.wait("t.text('shards').includes('train-00000-of-00002.tfrecord: 60 records')", "the first shard");
    page.eval("t.one('shards').querySelector('input').focus()");
    page.key("ArrowRight");
    page.wait("t.text('shards').includes('train-00001-of-00002.tfrecord: 60 records')", "the second shard");
    page.see("schema");
    page.wait("t.text('schema').includes('image/class/label')", "the schema");
    page.screenshot("data-shards");
    page.all_manners("data");
    page.finish();
}

#[test]
fn features_without_a_specification_are_counted() {
    let record = |name| ExampleBuilder::new().int64("label", [1]).feature(name, FeatureBuf::None).encode();
    let shown =
        Shown::new(|folder| data::several(folder, ["never", "unset"].map(|name| record(name).unwrap())));
    let Some(page) = shown.page_at("kindless", "view=data") else { return };
    page.see("schema");
    page.wait("t.text('schema').includes('From 2 records. 2 features without a kind.')", "the number");
    page.wait("t.text('schema').includes('unset')", "the names");
    page.finish();
}

#[test]
fn a_bar_is_a_filter() {
    let shown = Shown::new(|folder| data::detection(folder, 60));
    let Some(page) = shown.page_at("bar", "view=data") else { return };
    page.wait("t.all('bar').length > 0", "bars");
    page.click("bar");
    page.wait("t.state('where')", "a condition in the address");
    page.wait(
        "(t.view() == 'grid' || t.view() == 'table') && /\\d/.test(t.text('hits'))",
        "the records of the bar",
    );
    page.back();
    page.wait("t.view() == 'data'", "the data set after the way back");
    page.finish();
}

#[test]
fn two_sets_are_compared() {
    let shown = Shown::against(|folder| data::detection(folder, 60), |folder| data::detection(folder, 40));
    let Some(page) = shown.page_at("compare", "view=compare") else { return };
    page.wait(
        "t.view() == 'compare' && document.body.innerText.includes('image/class/label')",
        "the comparison",
    );
    page.wait("/\\b80\\b/.test(document.body.innerText)", "80 records in both");
    page.wait(
        "['first', 'second'].every((side, set) => [...t.one('samples-' + side).querySelectorAll('img')].every(i => t.painted(i) && i.src.includes(`?set=${set}&`)))",
        "pictures of each side",
    );
    page.screenshot("compare");
    page.all_manners("compare");
    page.navigate(&shown.at("view=grid&set=1&at=70"));
    page.wait("t.ids().includes(70) && !t.ids().includes(80)", "records of the second set");
    page.finish();
}
