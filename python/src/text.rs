//! Short texts of features, for `repr` and errors.

use pyo3::prelude::*;
use tfseek::Feature;
use tfseek::example::FeatureList;
use tfseek::filter::nearest;

/// Number of characters after which the values of a feature are cut.
const VALUES: usize = 72;
/// Number of characters after which a byte string is cut.
const STRING: usize = 60;
/// Number of features, or of feature lists, in a text.
const NAMES: usize = 10;
/// Number of names among which the nearest one is searched.
const SEARCHED: usize = 4096;

/// Returns features as `{'label': [1] int64, 'image': [b'\x89PNG..'] bytes (12345 bytes)}`.
pub(crate) fn features<'a>(features: &[(&'a str, Feature<'a>)]) -> String {
    named(features.iter().map(|&(name, found)| (name, feature(found))))
}

/// Returns feature lists as `{'tokens': [[1, 2], [3]] int64 (2 steps)}`.
pub(crate) fn feature_lists<'a>(lists: &[(&'a str, FeatureList<'a>)]) -> String {
    named(lists.iter().map(|&(name, list)| (name, feature_list(list))))
}

fn named<'a>(texts: impl ExactSizeIterator<Item = (&'a str, String)>) -> String {
    let more = texts.len() > NAMES;
    let mut parts: Vec<_> =
        texts.take(NAMES).map(|(name, text)| format!("{}: {text}", quoted(name))).collect();
    if more {
        parts.push("..".to_owned());
    }
    format!("{{{}}}", parts.join(", "))
}

/// Returns the message about a name that is not one of `names`, with the nearest one or the first ones.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python passes a new list")]
pub(crate) fn no_such_name(what: &str, name: &str, names: Vec<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut listed: Vec<_> = names.iter().take(NAMES).map(|name| format!("{name:?}")).collect();
    if names.len() > NAMES {
        listed.push("..".to_owned());
    }
    let rest = match nearest(name, names.into_iter().take(SEARCHED)) {
        Some(near) => format!("the nearest name is {near:?}"),
        None if listed.is_empty() => "there are none".to_owned(),
        None => format!("there are {}", listed.join(", ")),
    };
    format!("no {what} {name:?}; {rest}")
}

/// Returns a name in single quotes, as Python's `repr` does.
fn quoted(name: &str) -> String {
    format!("'{}'", name.escape_debug().to_string().replace("\\\"", "\""))
}

fn feature(found: Feature<'_>) -> String {
    let Some(kind) = found.kind() else { return "None".to_owned() };
    let kind = kind.list_name();
    let (text, cut) = values(found);
    let n = found.len();
    match found {
        Feature::Bytes(list) if cut => {
            let bytes: usize = list.iter().map(<[u8]>::len).sum();
            match n {
                1 => format!("{text} {kind} ({bytes} bytes)"),
                n => format!("{text} {kind} ({n} values, {bytes} bytes)"),
            }
        }
        _ if cut => format!("{text} {kind} ({n} values)"),
        _ => format!("{text} {kind}"),
    }
}

fn feature_list(list: FeatureList<'_>) -> String {
    let (text, _) = joined(list.iter().map(|step| match step {
        Feature::None => ("None".to_owned(), false),
        step => values(step),
    }));
    let kind =
        list.iter().find_map(Feature::kind).map_or(String::new(), |kind| format!(" {}", kind.list_name()));
    format!("{text}{kind} ({} {})", list.len(), if list.len() == 1 { "step" } else { "steps" })
}

/// Returns the first values of a feature, and true if the text does not contain all of them.
fn values(found: Feature<'_>) -> (String, bool) {
    match found {
        Feature::None => ("[]".to_owned(), false),
        Feature::Int64(list) => joined(list.iter().map(|value| (value.to_string(), false))),
        Feature::Float(list) => joined(list.iter().map(|value| (float(value), false))),
        Feature::Bytes(list) => joined(list.iter().map(bytes)),
    }
}

fn float(value: f32) -> String {
    if value.is_nan() { "nan".to_owned() } else { format!("{value:?}") }
}

fn joined(items: impl Iterator<Item = (String, bool)>) -> (String, bool) {
    let mut text = String::from("[");
    let mut cut = false;
    for (k, (item, item_cut)) in items.enumerate() {
        if k > 0 {
            text += ", ";
            if text.len() + item.len() > VALUES {
                return (text + "..]", true);
            }
        }
        text += &item;
        cut |= item_cut;
    }
    (text + "]", cut)
}

/// Returns a byte string as a literal of Python, and true if it is cut.
fn bytes(value: &[u8]) -> (String, bool) {
    let mut text = String::from("b'");
    for &byte in value {
        if text.len() > STRING {
            return (text + "..'", true);
        }
        // `escape_ascii` escapes double quotes as well.
        match byte {
            b'"' => text.push('"'),
            byte => text.extend(byte.escape_ascii().map(char::from)),
        }
    }
    (text + "'", false)
}
