//! Records in readable form: one line per feature, with sorted keys and shortened values.
//!
//! ```text
//! record 5, 73 bytes, record 0 of b.tfrecord
//!   image     bytes       <png 28x28 312 bytes>
//!   label     int64       4 "deer"
//!   pixels    float[784]  0.0 0.0 0.25 0.5 1.0 1.0 0.0 0.0 .. 776 more
//! ```
//!
//! The heading of a step of an episode is `step 40, 73 bytes, step 4 of episode 7, record 2 of b.tfrecord`.
//!
//! Class labels have names if the files have a `features.json` of TensorFlow Datasets.
//!
//! The first number counts over all files, and `get` takes it. The number in the file is printed if it
//! differs. If only the number in the file is known, the heading is `record 0 of b.tfrecord, 73 bytes`.

use super::{NumberedRecord, StepNumber};
use crate::bytes::{ByteLimits, Key, Readable, Size};
use crate::console::{BOLD, Console, DIM};
use crate::exit::Outcome;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::Arc;
use tfseek::example::MessageKind;
use tfseek::{Feature, FeatureList};
use tfseek_tools::fields::{self, ProtoField, ProtoValue};
use tfseek_tools::times::time_of;
use tfseek_tools::{Content, thousands};

/// Limits on the printed part of each feature.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Maximum number of values of a list.
    pub(super) values: usize,
    /// Limits on a byte string that is the only value of its feature.
    pub(super) bytes: ByteLimits,
}

/// The names of the classes 0, 1, .. of labels, by feature.
pub(super) type LabelNames = BTreeMap<String, Arc<[Box<str>]>>;

pub(super) fn print(
    console: &mut Console,
    item: NumberedRecord<'_>,
    content: &Content<'_>,
    (labels, limits): (&LabelNames, Limits),
    many_files: bool,
) -> Outcome {
    let bold = console.style(BOLD);
    let dim = console.style(DIM);
    let payload = item.record.payload();
    let size = Size { bytes: payload.len() as u64, exact: limits.bytes.exact };
    let at = item.record.at();
    let in_file = |i: u64| match at.path {
        Some(path) => format!("record {i} of {}", tfseek::error::printable(path)),
        None => format!("record {i}"),
    };
    let (name, place) = if let Some(StepNumber { episode, step }) = item.step {
        let of = match (episode, at.record) {
            (Some(e), Some(j)) if e != j => format!("episode {e}, {}", in_file(j)),
            (Some(e), _) => format!("episode {e}"),
            (None, record) => in_file(record.unwrap_or(0)),
        };
        let place = format!("step {step} of {of}");
        match item.index {
            Some(i) => (format!("step {i}"), format!(", {place}")),
            None => (place, String::new()),
        }
    } else {
        match (item.index, at.record) {
            (Some(i), Some(j)) if i != j => (format!("record {i}"), format!(", {}", in_file(j))),
            (None, Some(j)) if many_files => (in_file(j), String::new()),
            (index, record) => (format!("record {}", index.or(record).unwrap_or(0)), String::new()),
        }
    };
    console.print(format_args!("{bold}{name}{bold:#}{dim}, {size}{place}{dim:#}\n"))?;
    print_content(console, payload, content, (labels, limits))
}

fn print_content(
    console: &mut Console,
    payload: &[u8],
    content: &Content<'_>,
    (labels, limits): (&LabelNames, Limits),
) -> Outcome {
    let dim = console.style(DIM);
    match content {
        Content::Raw => {
            if let Some(examples) = fields::examples(payload) {
                return print_examples(console, &examples, (labels, limits));
            }
            // A text may also decode as a message.
            if fields::text(payload).is_none()
                && let Some(fields) = fields::decode(payload)
            {
                return print_fields(console, "  ", &fields, limits);
            }
            // The payload is the whole record, so more of it is printed than of a single value.
            let Limits { bytes, .. } = limits;
            let bytes = ByteLimits { text: bytes.text.max(400), hex: bytes.hex.max(64), ..bytes };
            console.print(format_args!("  {}\n", Readable(payload, bytes)))
        }
        Content::Example(features) => print_map(console, "  ", features, (labels, limits)),
        Content::Sequence(context, lists) => {
            let limits = (&LabelNames::new(), limits);
            if !context.is_empty() {
                console.print(format_args!("  {dim}context{dim:#}\n"))?;
                print_map(console, "    ", context, limits)?;
            }
            if !lists.is_empty() {
                console.print(format_args!("  {dim}feature lists{dim:#}\n"))?;
                print_map(console, "    ", lists, limits)?;
            }
            Ok(())
        }
    }
}

/// Prints the Examples of a list with their context.
fn print_examples(
    console: &mut Console,
    examples: &[(&str, &[u8])],
    (labels, limits): (&LabelNames, Limits),
) -> Outcome {
    let dim = console.style(DIM);
    let mut places = BTreeMap::new();
    for (k, (name, payload)) in examples.iter().enumerate() {
        let place: &mut u64 = places.entry(name).or_default();
        if k >= limits.values && *name != "context" {
            *place += 1;
            continue;
        }
        let number = if *name == "context" { String::new() } else { format!(" {place}") };
        *place += 1;
        console.print(format_args!("  {dim}{name}{number}{dim:#}\n"))?;
        match Content::decode(payload, MessageKind::Example)? {
            Content::Example(features) => print_map(console, "    ", &features, (labels, limits))?,
            content => print_content(console, payload, &content, (labels, limits))?,
        }
    }
    match examples.iter().skip(limits.values).filter(|(name, _)| *name != "context").count() {
        0 => Ok(()),
        more => console.print(format_args!("  .. {} more\n", thousands(more as u64))),
    }
}

/// The fields of known messages that hold doubles one after the other.
const DOUBLES: [Option<&str>; 2] = [Some("bucket_limit"), Some("bucket")];

/// Prints the fields of a message of another type, one per line; messages in it are indented.
fn print_fields(console: &mut Console, indent: &str, fields: &[ProtoField<'_>], limits: Limits) -> Outcome {
    let bold = console.style(BOLD);
    let dim = console.style(DIM);
    for field in fields.iter().take(limits.values) {
        let label = match field.name {
            Some(name) => format!("{} {name}", field.number),
            None => field.number.to_string(),
        };
        console.print(format_args!("{indent}{bold}{label}{bold:#}  "))?;
        let time = |value: f64| match field.name.and_then(|name| time_of(name, value)) {
            Some(time) => format!("  {dim}{time}{dim:#}"),
            None => String::new(),
        };
        // Fixed fields with names are floats: the fixed fields of known messages are.
        match &field.value {
            ProtoValue::Fixed32(bits) if field.name.is_some() => {
                console.print(format_args!("{dim}float{dim:#}  {:?}\n", f32::from_bits(*bits)))?;
            }
            ProtoValue::Fixed64(bits) if field.name.is_some() => {
                let value = f64::from_bits(*bits);
                console.print(format_args!("{dim}double{dim:#}  {value:?}{}\n", time(value)))?;
            }
            ProtoValue::Bytes(bytes) if DOUBLES.contains(&field.name) => {
                let (values, _) = bytes.as_chunks();
                let values = values.iter().map(|bytes| f64::from_le_bytes(*bytes));
                let shown = First(values.clone().map(|v| format!("{v:?}")), values.len(), limits.values);
                console.print(format_args!("{dim}double[{}]{dim:#}  {shown}\n", values.len()))?;
            }
            ProtoValue::Varint(value) => console.print(format_args!("{dim}varint{dim:#}  {value}\n"))?,
            ProtoValue::Fixed32(bits) => {
                let float = f32::from_bits(*bits);
                console.print(format_args!("{dim}fixed32{dim:#}  {bits}, as a float {float:?}\n"))?;
            }
            ProtoValue::Fixed64(bits) => {
                let float = f64::from_bits(*bits);
                console.print(format_args!("{dim}fixed64{dim:#}  {bits}, as a double {float:?}\n"))?;
            }
            ProtoValue::Text(text) => {
                let text = Readable(text.as_bytes(), limits.bytes);
                console.print(format_args!("{dim}string{dim:#}  {text}\n"))?;
            }
            ProtoValue::Bytes(bytes) => {
                console.print(format_args!("{dim}bytes{dim:#}  {}\n", Readable(bytes, limits.bytes)))?;
            }
            ProtoValue::Message(fields) => {
                console.print(format_args!("{dim}message{dim:#}\n"))?;
                print_fields(console, &format!("{indent}  "), fields, limits)?;
            }
        }
    }
    match fields.len().saturating_sub(limits.values) {
        0 => Ok(()),
        more => console.print(format_args!("{indent}.. {} more\n", thousands(more as u64))),
    }
}

/// A value of a map of features.
trait MapValue: Copy {
    fn shape(self) -> String;
    fn is_empty(self) -> bool;
    /// Returns the only number.
    fn number(self) -> Option<f64> {
        None
    }
    fn values(self, names: Option<&[Box<str>]>, limits: Limits) -> impl Display;
}

fn print_map(
    console: &mut Console,
    indent: &str,
    map: &BTreeMap<&str, impl MapValue>,
    (labels, limits): (&LabelNames, Limits),
) -> Outcome {
    // The limit keeps a single long key from widening the column for all keys.
    const MAX_KEY_WIDTH: usize = 40;
    let bold = console.style(BOLD);
    let dim = console.style(DIM);
    let widths = map.iter().map(|(key, value)| (Key(key).width().min(MAX_KEY_WIDTH), value.shape().len()));
    let (keys, shapes) = widths.fold((0, 0), |(a, b), (c, d)| (a.max(c), b.max(d)));
    for (key, value) in map {
        let names = labels.get(*key).map(|names| &**names);
        let key = Key(key);
        let shape = value.shape();
        let pad = keys.saturating_sub(key.width());
        // A line without values has no trailing spaces.
        let shapes = if value.is_empty() { 0 } else { shapes };
        console.print(format_args!("{indent}{bold}{key}{bold:#}{:pad$}  {dim}{shape:shapes$}{dim:#}", ""))?;
        let gap = if value.is_empty() { "" } else { "  " };
        let time = value.number().and_then(|number| time_of(key.0, number));
        let time = time.map_or_else(String::new, |time| format!("  {dim}{time}{dim:#}"));
        console.print(format_args!("{gap}{}{time}\n", value.values(names, limits)))?;
    }
    Ok(())
}

/// Returns the kind of a feature and the number of its values.
pub(crate) fn shape(feature: Feature<'_>) -> String {
    match (feature.kind(), feature.len()) {
        (None, _) => "no kind".to_owned(),
        (Some(kind), 1) => kind.list_name().to_owned(),
        (Some(kind), n) => format!("{}[{n}]", kind.list_name()),
    }
}

impl MapValue for Feature<'_> {
    fn shape(self) -> String {
        shape(self)
    }

    fn is_empty(self) -> bool {
        Feature::is_empty(self)
    }

    fn number(self) -> Option<f64> {
        match self {
            Feature::Int64(list) if list.len() == 1 => list.first().map(|value| value as f64),
            Feature::Float(list) if list.len() == 1 => list.first().map(f64::from),
            _ => None,
        }
    }

    fn values(self, names: Option<&[Box<str>]>, limits: Limits) -> impl Display {
        FeatureValues(self, names, limits)
    }
}

impl MapValue for FeatureList<'_> {
    fn shape(self) -> String {
        let mut shapes = self.iter().map(shape);
        let steps = match self.iter().len() {
            1 => "1 step".to_owned(),
            n => format!("{} steps", thousands(n as u64)),
        };
        match shapes.next() {
            Some(first) if shapes.all(|other| other == first) => format!("{steps} of {first}"),
            _ => steps,
        }
    }

    fn is_empty(self) -> bool {
        self.iter().len() == 0
    }

    fn values(self, _: Option<&[Box<str>]>, limits: Limits) -> impl Display {
        ListSteps(self, limits)
    }
}

/// A feature, and the names of the classes if it is a label.
struct FeatureValues<'a, 'n>(Feature<'a>, Option<&'n [Box<str>]>, Limits);

impl Display for FeatureValues<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FeatureValues(feature, names, limits) = *self;
        let n = feature.len();
        match feature {
            Feature::None => Ok(()),
            // `Debug` prints `1.0` and `1e-7`: the shortest form that reads back as the same value.
            Feature::Float(list) => print_first(f, n, limits.values, list.iter().map(|v| format!("{v:?}"))),
            Feature::Int64(list) => match names {
                Some(names) => {
                    let named = |v: i64| match usize::try_from(v).ok().and_then(|k| names.get(k)) {
                        Some(name) => format!("{v} {}", Readable(name.as_bytes(), limits.bytes)),
                        None => v.to_string(),
                    };
                    print_first(f, n, limits.values, list.iter().map(named))
                }
                None => print_first(f, n, limits.values, list.iter()),
            },
            Feature::Bytes(list) => {
                // Several byte strings share one line, so each is shorter.
                let each = match n.min(limits.values) {
                    0 | 1 => limits.bytes,
                    _ if limits.values == usize::MAX => limits.bytes,
                    k => ByteLimits { text: (2 * limits.bytes.text / k).max(16), hex: 8, ..limits.bytes },
                };
                print_first(f, n, limits.values, list.iter().map(|v| Readable(v, each)))
            }
        }
    }
}

struct ListSteps<'a>(FeatureList<'a>, Limits);

impl Display for ListSteps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListSteps(list, limits) = *self;
        // There are about as many values as in a plain list: many short steps or few long steps.
        let longest = list.iter().take(limits.values).map(Feature::len).max().unwrap_or(0);
        let steps = if longest > 4 && limits.values < usize::MAX { 2 } else { limits.values };
        let inner = match limits.values {
            usize::MAX => limits,
            _ => Limits { values: 4, bytes: ByteLimits { text: 24, hex: 8, ..limits.bytes } },
        };
        let values = list.iter().map(|step| format!("[{}]", FeatureValues(step, None, inner)));
        print_first(f, list.iter().len(), steps, values)
    }
}

/// The first of some values: their texts, the number of all, and how many are printed.
struct First<I>(I, usize, usize);

impl<I: Iterator<Item = String> + Clone> Display for First<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_first(f, self.1, self.2, self.0.clone())
    }
}

/// Prints the first `limit` of `n` values, and the number of the remaining ones.
fn print_first<T: Display>(
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
        more => write!(f, " .. {} more", thousands(more as u64)),
    }
}
