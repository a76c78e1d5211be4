//! A record for people: a line for each feature, keys sorted, values shortened.
//!
//! ```text
//! record 5, 73 bytes, record 0 of b.tfrecord
//!   image     bytes       <png 28x28 312 bytes>
//!   label     int64       4
//!   pixels    float[784]  0.0 0.0 0.25 0.5 1.0 1.0 0.0 0.0 .. 776 more
//! ```
//!
//! The first number counts over all files and is the one that `get` takes. The number in the file is shown where it differs; where
//! only that one is known, the heading is `record 0 of b.tfrecord, 73 bytes`.

use super::Item;
use crate::bytes::{Key, Shown, Size, Value};
use crate::console::{BOLD, Console, DIM};
use crate::exit::Outcome;
use std::fmt::{self, Display};
use tfseek::{Feature, FeatureList};
use tfseek_tools::{Content, Map};

/// How much is shown of each feature.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Values of a list.
    pub(super) values: usize,
    /// One byte string, when it stands alone.
    pub(super) one: Shown,
}

pub(super) fn print(
    console: &mut Console,
    item: Item<'_>,
    content: &Content<'_>,
    limits: Limits,
    many: bool,
) -> Outcome {
    let (bold, dim) = (console.style(BOLD), console.style(DIM));
    let payload = item.record.payload();
    let size = Size { bytes: payload.len() as u64, exact: limits.one.exact };
    let at = item.record.at();
    let in_file = |i: u64| match at.path {
        Some(path) => format!("record {i} of {}", path.display()),
        None => format!("record {i}"),
    };
    match (item.index, at.record) {
        (Some(i), Some(j)) if i != j => {
            console.print(format_args!("{bold}record {i}{bold:#}{dim}, {size}, {}{dim:#}\n", in_file(j)))?;
        }
        (None, Some(j)) if many => {
            console.print(format_args!("{bold}{}{bold:#}{dim}, {size}{dim:#}\n", in_file(j)))?;
        }
        (index, record) => {
            let i = index.or(record).unwrap_or(0);
            console.print(format_args!("{bold}record {i}{bold:#}{dim}, {size}{dim:#}\n"))?;
        }
    }
    match content {
        Content::Raw => {
            // All there is to see of it, so more than of a value among many.
            let Limits { one, .. } = limits;
            let one = Shown { text: one.text.max(400), hex: one.hex.max(64), ..one };
            console.print(format_args!("  {}\n", Value(payload, one)))
        }
        Content::Example(features) => print_map(console, "  ", features, limits),
        Content::Sequence(context, lists) => {
            for (name, empty) in [("context", context.is_empty()), ("feature lists", lists.is_empty())] {
                if empty {
                    continue;
                }
                console.print(format_args!("  {dim}{name}{dim:#}\n"))?;
                match name {
                    "context" => print_map(console, "    ", context, limits)?,
                    _ => print_map(console, "    ", lists, limits)?,
                }
            }
            Ok(())
        }
    }
}

/// What can stand behind a key.
trait Shape: Copy {
    fn shape(self) -> String;
    fn is_empty(self) -> bool;
    fn values(self, limits: Limits) -> impl Display;
}

fn print_map(console: &mut Console, indent: &str, map: &Map<'_, impl Shape>, limits: Limits) -> Outcome {
    // One long key does not push all others to the right.
    const WIDEST: usize = 40;
    let (bold, dim) = (console.style(BOLD), console.style(DIM));
    let widths = map.iter().map(|(key, value)| (Key(key).width().min(WIDEST), value.shape().len()));
    let (keys, shapes) = widths.fold((0, 0), |(a, b), (c, d)| (a.max(c), b.max(d)));
    for (key, value) in map {
        let (key, shape) = (Key(key), value.shape());
        let pad = keys.saturating_sub(key.width());
        // Without values nothing follows, spaces neither.
        let shapes = if value.is_empty() { 0 } else { shapes };
        console.print(format_args!("{indent}{bold}{key}{bold:#}{:pad$}  {dim}{shape:shapes$}{dim:#}", ""))?;
        let gap = if value.is_empty() { "" } else { "  " };
        console.print(format_args!("{gap}{}\n", value.values(limits)))?;
    }
    Ok(())
}

impl Shape for Feature<'_> {
    fn shape(self) -> String {
        match (self.kind(), self.len()) {
            (None, _) => "no kind".to_owned(),
            (Some(kind), 1) => kind.to_string(),
            (Some(kind), n) => format!("{kind}[{n}]"),
        }
    }

    fn is_empty(self) -> bool {
        Feature::is_empty(self)
    }

    fn values(self, limits: Limits) -> impl Display {
        Values(self, limits)
    }
}

impl Shape for FeatureList<'_> {
    fn shape(self) -> String {
        let mut shapes = self.iter().map(Shape::shape);
        let steps = match self.iter().len() {
            1 => "1 step".to_owned(),
            n => format!("{n} steps"),
        };
        match shapes.next() {
            Some(first) if shapes.all(|other| other == first) => format!("{steps} of {first}"),
            _ => steps,
        }
    }

    fn is_empty(self) -> bool {
        self.iter().len() == 0
    }

    fn values(self, limits: Limits) -> impl Display {
        Steps(self, limits)
    }
}

struct Values<'a>(Feature<'a>, Limits);

impl Display for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Values(feature, limits) = *self;
        let n = feature.len();
        match feature {
            Feature::None => Ok(()),
            // Debug: `1.0` and `1e-7`, the shortest that reads back as the same.
            Feature::Float(list) => some(f, n, limits.values, list.iter().map(|v| format!("{v:?}"))),
            Feature::Int64(list) => some(f, n, limits.values, list.iter()),
            Feature::Bytes(list) => {
                // Several share the line.
                let one = match n.min(limits.values) {
                    0 | 1 => limits.one,
                    _ if limits.values == usize::MAX => limits.one,
                    k => Shown { text: (2 * limits.one.text / k).max(16), hex: 8, ..limits.one },
                };
                some(f, n, limits.values, list.iter().map(|v| Value(v, one)))
            }
        }
    }
}

struct Steps<'a>(FeatureList<'a>, Limits);

impl Display for Steps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Steps(list, limits) = *self;
        // About as many values as a plain list shows: many short steps, or few long ones.
        let longest = list.iter().take(limits.values).map(Feature::len).max().unwrap_or(0);
        let steps = if longest > 4 && limits.values < usize::MAX { 2 } else { limits.values };
        let inner = match limits.values {
            usize::MAX => limits,
            _ => Limits { values: 4, one: Shown { text: 24, hex: 8, ..limits.one } },
        };
        some(f, list.iter().len(), steps, list.iter().map(|step| format!("[{}]", Values(step, inner))))
    }
}

/// The first `limit` of `n` values, and how many there are beyond.
fn some<T: Display>(
    f: &mut fmt::Formatter<'_>,
    n: usize,
    limit: usize,
    values: impl Iterator<Item = T>,
) -> fmt::Result {
    for (k, value) in values.take(limit).enumerate() {
        write!(f, "{}{value}", if k == 0 { "" } else { " " })?;
    }
    match n.saturating_sub(limit) {
        0 => Ok(()),
        more => write!(f, " .. {more} more"),
    }
}
