//! Cards of records.

use super::html::Html;
use crate::api::{Api, LabelNames};
use crate::media::payload_type;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tfseek::Feature;
use tfseek::filter::image_size;
use tfseek_tools::Content;

/// Largest image that is embedded, in bytes.
const MAX_IMAGE: usize = 256 << 10;
/// Size of the page beyond which no image is embedded.
const MAX_PAGE: usize = 11 << 20;
/// Number of features of a card without an image.
const FACTS: usize = 8;
/// Characters of a value.
const WIDTH: usize = 40;
/// Number of boxes of an image.
const BOXES: usize = 100;

/// Writes a card for each record.
pub(super) fn grid(page: &mut Html, api: &Api, ids: &[u64]) {
    let (roles, labels) = (Value::Object(api.roles()), api.label_names());
    page.nested("div class=\"grid\"", |page| {
        for &i in ids {
            page.nested("figure", |page| {
                let written = api.with_content(i, |content| {
                    card(page, content, &roles);
                    label(content, &roles, &labels)
                });
                match written {
                    Ok(label) => page.element("figcaption", format_args!("record {i}{label}")),
                    Err(e) => {
                        page.element("div class=\"facts\"", e);
                        page.element("figcaption", format_args!("record {i}"));
                    }
                }
            });
        }
    });
}

/// Returns the feature of an Example, or of the context of a SequenceExample.
fn feature<'a>(content: &Content<'a>, name: Option<&str>) -> Option<Feature<'a>> {
    match content {
        Content::Example(features) | Content::Sequence(features, _) => features.get(name?).copied(),
        Content::Raw => None,
    }
}

/// Returns the label of a record, after a comma.
fn label(content: &Content<'_>, roles: &Value, labels: &LabelNames) -> String {
    let role = roles["label"].as_str();
    let Some(feature) = feature(content, role) else { return String::new() };
    let names = role.and_then(|role| labels.get(role));
    let class = match feature {
        Feature::Int64(list) if list.len() == 1 => list.first().and_then(|class| usize::try_from(class).ok()),
        _ => None,
    };
    let name = names.zip(class).and_then(|(names, class)| names.get(class));
    let name = name.map_or(String::new(), |name| format!(" {name:?}"));
    format!(", {}{name}", short(feature))
}

fn card(page: &mut Html, content: &Content<'_>, roles: &Value) {
    let image = match feature(content, roles["image"].as_str()) {
        Some(Feature::Bytes(list)) => list.first(),
        _ => None,
    };
    let image =
        image.and_then(|bytes| Some((bytes, payload_type(bytes).filter(|name| name.starts_with("image/"))?)));
    match image {
        Some((bytes, name)) if bytes.len() <= MAX_IMAGE && page.len() + bytes.len() * 4 / 3 < MAX_PAGE => {
            page.nested("div class=\"picture\"", |page| {
                page.markup("<img alt=\"\" src=\"data:");
                page.markup(name);
                page.markup(";base64,");
                page.markup(&STANDARD.encode(bytes));
                page.markup("\">");
                boxes(page, content, &roles["boxes"], image_size(bytes).unwrap_or_default());
            });
        }
        Some((bytes, name)) => {
            let (width, height) = image_size(bytes).unwrap_or_default();
            let text = format_args!("{name}, {width} x {height}, {} bytes: not embedded", bytes.len());
            page.element("div class=\"facts\"", text);
        }
        None => facts(page, content),
    }
}

/// Writes the first features of a record.
fn facts(page: &mut Html, content: &Content<'_>) {
    page.nested("div class=\"facts\"", |page| match content {
        Content::Example(features) | Content::Sequence(features, _) => {
            for (name, feature) in features.iter().take(FACTS) {
                page.element("div", format_args!("{name}: {}", short(*feature)));
            }
            if let Content::Sequence(_, lists) = content {
                for (name, list) in lists.iter().take(FACTS) {
                    page.element("div", format_args!("{name}: {} steps", list.len()));
                }
            }
        }
        Content::Raw => page.text("The payload is no Example."),
    });
}

/// Returns the first values of a feature.
fn short(feature: Feature<'_>) -> String {
    let text = match feature {
        Feature::None => String::new(),
        Feature::Int64(list) => joined(list.iter().take(4).map(|v| v.to_string())),
        Feature::Float(list) => joined(list.iter().take(4).map(|v| v.to_string())),
        Feature::Bytes(list) => joined(list.iter().take(4).map(|v| match tfseek_tools::fields::text(v) {
            Some(text) => text.chars().take(WIDTH).collect(),
            None => format!("{} bytes", v.len()),
        })),
    };
    let cut: String = text.chars().take(WIDTH).collect();
    let dots = if cut.len() < text.len() || feature.len() > 4 { " .." } else { "" };
    cut + dots
}

fn joined(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(", ")
}

/// Draws the boxes of a record over its image. Boxes with other counts of their sides are left out.
fn boxes(page: &mut Html, content: &Content<'_>, roles: &Value, (width, height): (usize, usize)) {
    let floats = |name: &Value| match feature(content, name.as_str()) {
        Some(Feature::Float(list)) => list.iter().take(4 * BOXES).collect::<Vec<f32>>(),
        _ => Vec::new(),
    };
    let sides: Vec<[f32; 4]> = if roles["feature"].is_string() {
        let order = roles["order"].as_str().unwrap_or("yxyx");
        let quads = floats(&roles["feature"]);
        let quad = |v: &[f32]| match (order, v) {
            ("xyxy", [x0, y0, x1, y1]) | ("yxyx", [y0, x0, y1, x1]) => Some([*x0, *y0, *x1, *y1]),
            ("xywh", [x, y, w, h]) => Some([*x, *y, x + w, y + h]),
            _ => None,
        };
        quads.chunks_exact(4).filter_map(quad).collect()
    } else {
        let [x0, y0, x1, y1] = ["xmin", "ymin", "xmax", "ymax"].map(|name| floats(&roles[name]));
        x0.into_iter().zip(y0).zip(x1).zip(y1).map(|(((x0, y0), x1), y1)| [x0, y0, x1, y1]).collect()
    };
    if sides.is_empty() || width == 0 || height == 0 {
        return;
    }
    // The rule of the page: values up to 1.5 are parts of the image, others are pixels.
    let is_relative = sides.iter().flatten().all(|v| v.is_nan() || *v <= 1.5);
    let (w, h) = (width as f32, height as f32);
    let scale = if is_relative { [w, h] } else { [1.0, 1.0] };
    page.markup(&format!(
        "<svg aria-hidden=\"true\" viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"xMidYMid meet\">"
    ));
    for [x0, y0, x1, y1] in sides.into_iter().take(BOXES) {
        let rect = [x0 * scale[0], y0 * scale[1], (x1 - x0) * scale[0], (y1 - y0) * scale[1]];
        if rect.iter().all(|v| v.is_finite()) && rect[2] >= 0.0 && rect[3] >= 0.0 {
            let [x, y, w, h] = rect;
            page.markup(&format!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" vector-effect=\"non-scaling-stroke\"/>"
            ));
        }
    }
    page.markup("</svg>");
}
