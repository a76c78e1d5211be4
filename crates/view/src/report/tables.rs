//! Tables of statistics and of the schema.

use super::html::Html;
use serde_json::Value;

/// Number of frequent values of a feature.
const TOP: usize = 5;
/// Characters of a value.
const WIDTH: usize = 40;

/// Writes the table of the features of statistics.
pub(super) fn features(page: &mut Html, stats: &Value) {
    let list = |name: &str| stats.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let features: Vec<_> = list("features").into_iter().chain(list("feature_lists")).collect();
    if features.is_empty() {
        page.element("p", "The records have no features.");
        return;
    }
    page.markup("<div class=\"scroll\"><table><thead><tr>");
    for title in ["feature", "kind"] {
        page.element("th", title);
    }
    // Of byte strings, the three in the middle are lengths.
    for title in ["records", "values", "least", "mean", "most", "distinct"] {
        page.element("th class=\"n\"", title);
    }
    page.element("th", "distribution");
    page.element("th", "frequent");
    page.markup("</tr></thead><tbody>");
    for feature in &features {
        row(page, feature);
    }
    page.markup("</tbody></table></div>");
    page.element("p class=\"dim\"", "Least, mean and most of byte strings are their lengths in bytes.");
}

fn row(page: &mut Html, feature: &Value) {
    let values =
        ["int64", "float", "bytes"].into_iter().map(|kind| &feature[kind]).find(|values| values.is_object());
    let missing = Value::Null;
    let values = values.unwrap_or(&missing);
    // Byte strings have lengths instead of values.
    let range = if values["lengths"].is_object() { &values["lengths"] } else { values };
    let lengths = &feature["lengths"];
    page.nested("tr", |page| {
        page.element("td class=\"name\"", text(&feature["name"]));
        page.element("td", text(&feature["kind"]));
        page.element("td class=\"n\"", text(&feature["present"]));
        let (least, most) = (text(&lengths["min"]), text(&lengths["max"]));
        let count = if least == most { least } else { format!("{least}..{most}") };
        page.element("td class=\"n\"", count);
        for name in ["min", "mean", "max"] {
            page.element("td class=\"n\"", rounded(&range[name]));
        }
        let distinct = &values["distinct"];
        let about = if distinct["exact"] == Value::Bool(false) { "about " } else { "" };
        page.element("td class=\"n\"", format_args!("{about}{}", text(&distinct["count"])));
        page.nested("td", |page| histogram(page, &values["histogram"]));
        page.nested("td class=\"top\"", |page| {
            let top = values["top"].as_array().map(Vec::as_slice).unwrap_or_default();
            if top.iter().all(|item| item["count"] == 1) {
                return;
            }
            // Long byte strings are known by their hashes only.
            let named = top.iter().filter(|item| !item["value"].is_null());
            for (k, item) in named.take(TOP).enumerate() {
                let name = item["name"].as_str().map_or(String::new(), |name| format!(" {name:?}"));
                let value = text(&item["value"]) + &name;
                let short: String = value.chars().take(WIDTH).collect();
                let dots = if short.len() < value.len() { ".." } else { "" };
                let comma = if k > 0 { ", " } else { "" };
                page.text(format_args!("{comma}{short}{dots} ({})", text(&item["count"])));
            }
        });
    });
}

/// Returns a value as text, empty for none.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(object) if object.contains_key("base64") => "(bytes)".into(),
        value => value.to_string(),
    }
}

/// Returns a number with at most six digits, or exactly if it is whole.
fn rounded(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if value.is_f64() => {
            let magnitude = number.abs();
            if magnitude != 0.0 && !(1e-3..1e6).contains(&magnitude) {
                format!("{number:.3e}")
            } else {
                format!("{number:.4}")
            }
        }
        _ => text(value),
    }
}

/// Writes the buckets of a histogram as bars.
fn histogram(page: &mut Html, buckets: &Value) {
    let Some(buckets) = buckets.as_array().filter(|buckets| !buckets.is_empty()) else { return };
    let counts: Vec<f64> = buckets.iter().map(|bucket| bucket["count"].as_f64().unwrap_or(0.0)).collect();
    let most = counts.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    page.markup(&format!(
        "<svg class=\"histogram\" role=\"img\" viewBox=\"0 0 {} 36\" preserveAspectRatio=\"none\"><title>",
        counts.len() * 8
    ));
    let bound = |bucket: Option<&Value>, name: &str| {
        rounded(&bucket.map_or(Value::Null, |bucket| bucket[name].clone()))
    };
    page.text(format_args!("from {} to {}", bound(buckets.first(), "low"), bound(buckets.last(), "high")));
    page.markup("</title>");
    for (k, count) in counts.iter().enumerate() {
        let height = count / most * 34.0;
        page.markup(&format!(
            "<rect x=\"{}\" y=\"{:.1}\" width=\"7\" height=\"{height:.1}\"/>",
            k * 8,
            36.0 - height
        ));
    }
    page.markup("</svg>");
}

/// Writes an inferred schema.
pub(super) fn schema(page: &mut Html, schema: &Value) {
    let conflicts = schema["features"].as_array().map(Vec::as_slice).unwrap_or_default();
    for conflict in conflicts.iter().filter_map(|feature| feature["conflict"].as_str()) {
        page.element("p", format_args!("Left out: {conflict}"));
    }
    match schema["python"].as_str() {
        Some(code) => {
            page.element(
                "p class=\"dim\"",
                format_args!("Inferred from {} records.", text(&schema["records"])),
            );
            page.element("pre", code);
        }
        None => page.element("p", "There are no Examples or SequenceExamples to infer a schema from."),
    }
}
