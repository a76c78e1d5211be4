//! Cards of records.

use super::html::Html;
use crate::media::shown_image;
use crate::set::ViewSet;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tfseek::Feature;
use tfseek::example::MessageKind;
use tfseek::filter::image_size;
use tfseek_tools::fields::{self, ProtoField, ProtoValue};
use tfseek_tools::times::time_of;
use tfseek_tools::words::count;
use tfseek_tools::{Content, brief, sizes, thousands};

/// Largest image that is embedded, in bytes.
const MAX_IMAGE: usize = 256 << 10;
/// Size of the page beyond which no image is embedded.
const MAX_PAGE: usize = 11 << 20;
/// Number of features of a card without an image.
const FACTS: usize = 6;
/// Characters of a text.
const LONG: usize = 240;
/// Bytes in hex of other byte strings.
const HEX: usize = 10;
/// Number of values of a feature, and of characters of a line of them.
const MOST: usize = 8;
const WIDTH: usize = 40;
/// Number of boxes of an image.
const BOXES: usize = 100;

/// Writes a card for each record.
pub(super) fn grid(page: &mut Html, set: &ViewSet, roles: &Value, ids: &[u64]) {
    let labels = set.features.label_names();
    page.nested("div class=\"cards\"", |page| {
        for &i in ids {
            page.nested("figure", |page| {
                let written = set.with_content(i, |content, payload| {
                    card(page, content, payload, roles);
                    label(content, roles, &labels)
                });
                match written {
                    Ok(label) => page.nested("figcaption", |page| {
                        page.element("strong", label);
                        page.element("span class=\"muted\"", format_args!(" record {}", thousands(i)));
                    }),
                    Err(e) => {
                        page.nested("div class=\"facts\"", |page| page.element("p", e));
                        page.element("figcaption", format_args!("record {}", thousands(i)));
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

/// Returns the label of a record. `labels` has the names of the classes 0, 1, .. by feature.
fn label(content: &Content<'_>, roles: &Value, labels: &BTreeMap<String, Arc<[Box<str>]>>) -> String {
    let role = roles["label"].as_str();
    let Some(feature) = feature(content, role) else { return String::new() };
    let names = role.and_then(|role| labels.get(role));
    let class = match feature {
        Feature::Int64(list) if list.len() == 1 => list.first().and_then(|class| usize::try_from(class).ok()),
        _ => None,
    };
    let name = names.zip(class).and_then(|(names, class)| names.get(class));
    let name = name.map_or(String::new(), |name| format!(" {name:?}"));
    format!("{}{name}", short(feature))
}

fn card(page: &mut Html, content: &Content<'_>, payload: &[u8], roles: &Value) {
    let image = match feature(content, roles["image"].as_str()) {
        Some(Feature::Bytes(list)) => list.first().and_then(shown_image),
        _ => None,
    };
    match image {
        Some((name, bytes)) if bytes.len() <= MAX_IMAGE && page.len() + bytes.len() * 4 / 3 < MAX_PAGE => {
            page.nested("div class=\"picture\"", |page| {
                page.markup("<img alt=\"\" src=\"data:");
                page.markup(name);
                page.markup(";base64,");
                page.markup(&STANDARD.encode(&bytes));
                page.markup("\">");
                boxes(page, content, &roles["boxes"], image_size(&bytes).unwrap_or_default());
            });
        }
        Some((_, image)) => page.nested("div class=\"facts\"", |page| {
            page.element("p", format_args!("{}: not embedded", bytes(&image)));
        }),
        None => facts(page, content, payload),
    }
}

/// Writes the first features of a record, or what it contains otherwise.
fn facts(page: &mut Html, content: &Content<'_>, payload: &[u8]) {
    let mut lines = Vec::new();
    match content {
        Content::Example(features) | Content::Sequence(features, _) => {
            lines.extend(features.iter().map(|(name, feature)| ((*name).to_owned(), short(*feature))));
            if let Content::Sequence(_, lists) = content {
                for (name, list) in lists {
                    let first =
                        list.iter().next().map_or_else(String::new, |step| format!(": {}, ..", short(step)));
                    let steps = count(list.len() as u64, "step");
                    lines.push(((*name).to_owned(), format!("{steps}{first}")));
                }
            }
        }
        Content::Raw => {
            lines.extend(fields::examples(payload).iter().flat_map(|all| example_lines(all)));
            let fields =
                fields::decode(payload).filter(|_| lines.is_empty() && fields::text(payload).is_none());
            let time = |field: &ProtoField<'_>| match field.value {
                ProtoValue::Fixed64(bits) => time_of(field.name?, f64::from_bits(bits)),
                _ => None,
            };
            let lines_of = fields.iter().flatten();
            lines.extend(
                lines_of.map(|field| (named(field), time(field).unwrap_or_else(|| value(&field.value)))),
            );
        }
    }
    page.nested("div class=\"facts\"", |page| {
        for (name, value) in lines.iter().take(FACTS) {
            page.nested("div", |page| {
                page.element("span class=\"muted\"", name);
                page.text(format_args!(" {value}"));
            });
        }
        match lines.len().saturating_sub(FACTS) {
            0 => {}
            more => page.element("div class=\"muted\"", format_args!("{} more", thousands(more as u64))),
        }
        if lines.is_empty() {
            page.element("p", if payload.is_empty() { "no bytes".to_owned() } else { bytes(payload) });
        }
    });
}

/// Returns the features of the context and of the first of some Examples.
fn example_lines(all: &[(&str, &[u8])]) -> Vec<(String, String)> {
    let features = |wanted: &str| {
        let payload = all.iter().find(|(name, _)| *name == wanted).map(|(_, payload)| *payload);
        match payload.and_then(|payload| Content::decode(payload, MessageKind::Example).ok()) {
            Some(Content::Example(features)) => features,
            _ => BTreeMap::new(),
        }
    };
    let line = |(name, feature): (&str, Feature<'_>)| (name.to_owned(), short(feature));
    let mut lines: Vec<_> = features("context").into_iter().map(line).collect();
    let n = all.iter().filter(|(name, _)| *name == "examples").count();
    let first = if n > 1 { ", the first" } else { "" };
    lines.push(("examples".to_owned(), format!("{}{first}:", thousands(n as u64))));
    lines.extend(features("examples").into_iter().map(line));
    lines
}

fn named(field: &ProtoField<'_>) -> String {
    field.name.map_or_else(|| field.number.to_string(), str::to_owned)
}

/// Returns the value of a field of a message of another type.
fn value(value: &ProtoValue<'_>) -> String {
    match value {
        ProtoValue::Varint(value) => value.to_string(),
        ProtoValue::Fixed32(bits) => brief(f32::from_bits(*bits).into()),
        ProtoValue::Fixed64(bits) => brief(f64::from_bits(*bits)),
        ProtoValue::Text(text) => bytes(text.as_bytes()),
        ProtoValue::Bytes(value) => bytes(value),
        ProtoValue::Message(fields) => {
            // Only the innermost messages have names: what is around them seldom says more.
            let parts = fields.iter().take(FACTS).map(|field| match &field.value {
                ProtoValue::Message(_) => self::value(&field.value),
                one => format!("{}: {}", named(field), self::value(one)),
            });
            joined(parts)
        }
    }
}

/// Returns a byte string, or its start: its text, the type and the size of an image, or its size and first
/// bytes.
fn bytes(value: &[u8]) -> String {
    if let Some((name, image)) = shown_image(value) {
        let (width, height) = image_size(&image).unwrap_or_default();
        return format!("{name}, {width} x {height}, {}", sizes::text(image.len() as u64));
    }
    match fields::text(value) {
        Some("") => "\"\"".to_owned(),
        Some(text) => {
            let start: String = text.chars().take(LONG).collect();
            let dots = if start.len() < text.len() { " .." } else { "" };
            start + dots
        }
        None => {
            let hex: String = value.iter().take(HEX).map(|byte| format!("{byte:02x}")).collect();
            format!("{}, {hex}..", sizes::text(value.len() as u64))
        }
    }
}

/// Returns the first values of a feature: those that fit on a line as a whole, or one.
fn short(feature: Feature<'_>) -> String {
    let first: Vec<String> = match feature {
        Feature::None => Vec::new(),
        Feature::Int64(list) => list.iter().take(MOST).map(|v| v.to_string()).collect(),
        Feature::Float(list) => list.iter().take(MOST).map(|v| brief(v.into())).collect(),
        Feature::Bytes(list) => list.iter().take(MOST).map(bytes).collect(),
    };
    let n = first.iter().scan(0, |wide, value| {
        *wide += value.chars().count() + 2;
        Some(*wide)
    });
    let n = n.take_while(|wide| *wide <= WIDTH).count().max(1).min(first.len());
    let text = joined(first.into_iter().take(n));
    if n < feature.len() { format!("{text} .. of {}", thousands(feature.len() as u64)) } else { text }
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
    let w = width as f32;
    let h = height as f32;
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
