//! The features of statistics, as the page shows them, and the schema.

use super::html::Html;
use serde_json::Value;
use tfseek_tools::stats::Statistics;
use tfseek_tools::{brief, percent, sizes, thousands};

/// Number of frequent values of a feature.
const TOP: usize = 6;
/// Characters of a value.
const WIDTH: usize = 60;
/// Number of places of a histogram, as on the page.
const LEAST: usize = 5;
/// Height of a histogram in pixels. A bar is at least one pixel high.
const HEIGHT: f64 = 56.0;

/// Returns statistics as their JSON has them. Its floats of 32 bits have the digits that identify them, and
/// not the digits of the same number in 64 bits.
pub(super) fn json(stats: &Statistics) -> Value {
    // The text is JSON.
    serde_json::from_str(&stats.report().to_string()).unwrap_or_default()
}

/// Writes the features of statistics, each with its distribution.
pub(super) fn features(page: &mut Html, stats: &Value) {
    let list = |name: &str| stats[name].as_array().map_or(&[][..], Vec::as_slice);
    let features: Vec<_> = list("features").iter().chain(list("feature_lists")).collect();
    if features.is_empty() {
        if list("fields").is_empty() {
            page.element("p", "The records have no features.");
        }
        return fields(page, list("fields"));
    }
    page.nested("div class=\"features\"", |page| features.into_iter().for_each(|feature| row(page, feature)));
}

/// Writes the fields of messages of another type.
fn fields(page: &mut Html, fields: &[Value]) {
    let rows = fields.iter().map(|field| {
        let types: Vec<_> =
            field["types"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let numbers = ["int64", "fixed64", "fixed32"]
            .into_iter()
            .map(|name| &field[name])
            .find(|found| found.is_object());
        let values = match numbers {
            Some(numbers) => range(numbers, number),
            None if field["lengths"].is_object() => range(&field["lengths"], size),
            None => String::new(),
        };
        let name = field["name"].as_str().unwrap_or_default();
        [format!("{} {name}", field["number"]), types.join(", "), number(&field["present"]), values]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return;
    }
    page.nested("div class=\"scroll-x\"", |page| {
        page.nested("table class=\"data\"", |page| {
            page.nested("thead", |page| {
                page.nested("tr", |page| {
                    ["Field", "Type", "In", "Values"].into_iter().for_each(|title| page.element("th", title));
                });
            });
            page.nested("tbody", |page| {
                for row in &rows {
                    page.nested("tr", |page| row.iter().for_each(|cell| page.element("td", cell)));
                }
            });
        });
    });
}

fn row(page: &mut Html, feature: &Value) {
    let kinds: Vec<_> =
        ["int64", "float", "bytes"].into_iter().filter(|kind| feature[kind].is_object()).collect();
    let is_list = feature["steps"].is_object();
    page.nested("article class=\"feature\"", |page| {
        page.nested("div class=\"who\"", |page| {
            page.element("h3", text(&feature["name"]));
            page.nested("div class=\"row\"", |page| {
                page.element(
                    "span class=\"chip\"",
                    if kinds.is_empty() { "no kind".to_owned() } else { kinds.join(", ") },
                );
                if is_list {
                    page.element("span class=\"chip\"", "feature list");
                }
            });
            let of = |name: &str| feature[name].as_u64().unwrap_or(0);
            let others = if is_list { 0 } else { of("kindless") + of("empty") };
            let present = of("present");
            let all = of("present") + of("absent") + others;
            let share = if present == all {
                "in all records".to_owned()
            } else {
                format!("in {}, {}", thousands(present), percent(present as f64, all as f64))
            };
            page.nested("div class=\"share\"", |page| {
                let width = present as f64 / (all.max(1)) as f64 * 100.0;
                page.markup(&format!(
                    "<span class=\"gauge\"><span style=\"width:{width:.1}%\"></span></span>"
                ));
                page.element("span class=\"small\"", share);
            });
            let unit = if is_list { "per step" } else { "per record" };
            for (sizes, noun, unit) in
                [(&feature["steps"], "step", "per record"), (&feature["lengths"], "value", unit)]
            {
                if sizes.is_object() && (noun == "step" || sizes["min"] != 1 || sizes["max"] != 1) {
                    let plural = if sizes["max"] == 1 { "" } else { "s" };
                    page.element(
                        "p class=\"small muted\"",
                        format_args!("{} {noun}{plural} {unit}", range(sizes, number)),
                    );
                }
            }
        });
        if kinds.is_empty() {
            page.element("p class=\"small muted\"", "no values");
        }
        for kind in kinds {
            page.nested("div class=\"values\"", |page| {
                values(page, &feature[kind], (&text(&feature["name"]), kind))
            });
        }
    });
}

/// Writes the distribution of values, and their figures.
fn values(page: &mut Html, values: &Value, (name, kind): (&str, &str)) {
    let count = values["values"].as_f64().unwrap_or(0.0);
    let top = values["top"].as_array().map_or(&[][..], Vec::as_slice);
    let differ = at(values, "/distinct/count").as_f64().unwrap_or(0.0) > count / 2.0 && count > TOP as f64;
    page.nested("div", |page| match kind {
        "bytes" if differ || values["images"].is_object() => {
            histogram(page, &values["lengths"], (name, kind), &[]);
        }
        "bytes" => {
            page.nested("ul class=\"top\"", |page| {
                top.iter().take(TOP).for_each(|entry| frequent(page, entry, count))
            });
        }
        _ => histogram(page, values, (name, kind), top),
    });
    page.nested("dl class=\"figures\"", |page| {
        let mut add = |term: &str, value: String| {
            if !value.is_empty() {
                page.nested("div", |page| {
                    page.element("dt", term);
                    page.element("dd", value);
                });
            }
        };
        for (term, value) in
            [("mean", &values["mean"]), ("std", &values["std"]), ("median", at(values, "/quantiles/p50"))]
        {
            add(term, number(value));
        }
        for (term, name) in [("zeros", "zeros"), ("NaN", "nan"), ("not text", "not_utf8")] {
            if let Some(n) = values[name].as_f64().filter(|n| *n > 0.0) {
                add(term, percent(n, count));
            }
        }
        if values["lengths"].is_object() {
            add("bytes each", range(&values["lengths"], number));
        }
        for (format, n) in at(values, "/images/formats").as_object().into_iter().flatten() {
            add(format, number(n));
        }
        if at(values, "/images/width").is_object() {
            let [width, height] =
                ["width", "height"].map(|side| range(at(values, &format!("/images/{side}")), number));
            add("pixels", format!("{width} x {height}"));
        }
        let about = if at(values, "/distinct/exact") == false { "about " } else { "" };
        add("distinct", format!("{about}{}", number(at(values, "/distinct/count"))));
    });
}

/// Writes a frequent value with its share.
fn frequent(page: &mut Html, entry: &Value, all: f64) {
    let count = entry["count"].as_f64().unwrap_or(0.0);
    let word = match &entry["value"] {
        Value::Null => format!("a value of {} bytes", number(&entry["length"])),
        value => text(value),
    };
    let short: String = word.chars().take(WIDTH).collect();
    let dots = if short.len() < word.len() { ".." } else { "" };
    page.nested("li", |page| {
        page.nested("span", |page| {
            page.markup(&format!(
                "<span class=\"amount\" style=\"width:{:.1}%\"></span>",
                100.0 * count / all.max(1.0)
            ));
            page.element("span class=\"word\"", format_args!("{short}{dots}"));
            page.element("span class=\"number muted\"", percent(count, all));
        });
    });
}

/// Writes the bars of numbers with their scale and axis. `top` has the names of values.
fn histogram(page: &mut Html, values: &Value, (name, kind): (&str, &str), top: &[Value]) {
    let buckets = at(values, "/bars/buckets").as_array().map_or(&[][..], Vec::as_slice);
    let counts: Vec<f64> = buckets.iter().map(|bucket| bucket["count"].as_f64().unwrap_or(0.0)).collect();
    let most = counts.iter().copied().fold(1.0, f64::max);
    let all = counts.iter().sum::<f64>();
    if buckets.is_empty() {
        return page.element("p class=\"small muted\"", "no finite value");
    }
    let unit = if kind == "bytes" { " bytes" } else { "" };
    let label = |bucket: &Value| {
        let name =
            top.iter().find(|entry| entry["value"] == bucket["low"]).and_then(|entry| entry["name"].as_str());
        match (bucket["low"] == bucket["high"], name) {
            (true, Some(name)) => format!("{} {name:?}", number(&bucket["low"])),
            (true, None) => number(&bucket["low"]) + unit,
            (false, _) => format!("{} to {}{unit}", number(&bucket["low"]), number(&bucket["high"])),
        }
    };
    page.nested("div class=\"histogram\"", |page| {
        page.nested("div class=\"scale small muted\"", |page| {
            page.element("span", percent(most, all));
            page.element("span", "0");
        });
        let n = buckets.len();
        let left = LEAST.saturating_sub(n) * 5;
        let width = LEAST.max(n) * 10;
        page.markup(&format!(
            "<svg role=\"img\" viewBox=\"-{left} 0 {width} 100\" preserveAspectRatio=\"none\">"
        ));
        page.element("title", format_args!("{name}: {n} bars"));
        for (k, (bucket, count)) in buckets.iter().zip(&counts).enumerate() {
            let height = if *count > 0.0 { (100.0 / HEIGHT).max(100.0 * count / most) } else { 0.0 };
            let title = format!("{}: {}, {}", label(bucket), thousands(*count as u64), percent(*count, all));
            page.nested("g class=\"column-bar fixed\"", |page| bar(page, k, height, &title));
        }
        page.markup("</svg>");
        let (few, ends) = match buckets {
            buckets if n < LEAST => (" few", buckets.iter().map(label).collect()),
            _ => ("", ends(values, kind, n)),
        };
        page.nested(&format!("div class=\"axis{few}\""), |page| {
            ends.iter().for_each(|end| page.element("span", end))
        });
    });
}

/// Writes bar `k` of a histogram, whose height is a percentage.
fn bar(page: &mut Html, k: usize, height: f64, title: &str) {
    page.element("title", title);
    let x = k * 10;
    page.markup(&format!("<rect class=\"hit\" x=\"{x}\" width=\"10\" height=\"100\"/>"));
    let x = x as f64 + 0.5;
    let y = 100.0 - height;
    page.markup(&format!("<rect class=\"fill\" x=\"{x}\" y=\"{y:.2}\" width=\"9\" height=\"{height:.2}\"/>"));
}

/// Returns the texts below a histogram of `n` bars: the ends of its axis, and its scale between them.
fn ends(values: &Value, kind: &str, n: usize) -> Vec<String> {
    let note = match (kind, at(values, "/bars/scale") == "log") {
        ("bytes", true) => "length in bytes, log scale",
        ("bytes", false) => "length in bytes",
        (_, true) => "log scale",
        _ => "",
    };
    let last = if n > 1 { number(&values["max"]) } else { String::new() };
    vec![number(&values["min"]), note.to_owned(), last]
}

/// Returns the value at a JSON pointer, null without one.
pub(super) fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Returns a value as text, empty for none.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(object) if object.contains_key("base64") => "bytes".into(),
        value => number(value),
    }
}

/// Returns a number in the form of the page.
fn number(value: &Value) -> String {
    match (value.as_i64(), value.as_f64()) {
        (Some(whole), _) => thousands(whole),
        (None, Some(float)) => brief(float),
        _ => String::new(),
    }
}

fn size(value: &Value) -> String {
    value.as_u64().map_or_else(String::new, sizes::text)
}

/// Returns the ends of a distribution.
fn range(sizes: &Value, write: fn(&Value) -> String) -> String {
    let [low, high] = ["min", "max"].map(|end| write(&sizes[end]));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Writes an inferred schema.
pub(super) fn schema(page: &mut Html, schema: &Value) {
    let conflicts = schema["features"].as_array().map_or(&[][..], Vec::as_slice);
    for conflict in conflicts.iter().filter_map(|feature| feature["conflict"].as_str()) {
        page.element("p", format_args!("Left out: {conflict}"));
    }
    match schema["python"].as_str() {
        Some(code) => {
            page.element(
                "p class=\"muted\"",
                format_args!("Inferred from {} records.", number(&schema["records"])),
            );
            page.element("pre class=\"code\"", code);
        }
        None => page.element("p", "There are no Examples or SequenceExamples to infer a schema from."),
    }
}
