//! Message types whose fields have known names.
//!
//! Sources: `tensorflow/core/util/event.proto`, `tensorflow/core/framework/summary.proto`,
//! `tensorflow_serving/apis/input.proto`.

use super::raw::{RawFields, RawValue};
use tfseek::Example;

/// Names of the fields of a type by their numbers, and the types of those that are messages.
type Names = &'static [(u32, &'static str, Option<&'static KnownType>)];

/// A message type with known field names.
#[derive(Debug)]
pub(super) struct KnownType(Names);

pub(super) static EVENT: KnownType = KnownType(&[
    (1, "wall_time", None),
    (2, "step", None),
    (3, "file_version", None),
    (4, "graph_def", None),
    (5, "summary", Some(&SUMMARY)),
    (6, "log_message", None),
    (7, "session_log", None),
    (8, "tagged_run_metadata", None),
    (9, "meta_graph_def", None),
    (10, "source_metadata", None),
]);

static SUMMARY: KnownType = KnownType(&[(1, "value", Some(&SUMMARY_VALUE))]);

static SUMMARY_VALUE: KnownType = KnownType(&[
    (1, "tag", None),
    (2, "simple_value", None),
    (3, "obsolete_old_style_histogram", None),
    (4, "image", Some(&IMAGE)),
    (5, "histo", Some(&HISTOGRAM)),
    (6, "audio", None),
    (7, "node_name", None),
    (8, "tensor", None),
    (9, "metadata", None),
]);

static IMAGE: KnownType = KnownType(&[
    (1, "height", None),
    (2, "width", None),
    (3, "colorspace", None),
    (4, "encoded_image_string", None),
]);

static HISTOGRAM: KnownType = KnownType(&[
    (1, "min", None),
    (2, "max", None),
    (3, "num", None),
    (4, "sum", None),
    (5, "sum_squares", None),
    (6, "bucket_limit", None),
    (7, "bucket", None),
]);

pub(super) static EXAMPLES_WITH_CONTEXT: KnownType =
    KnownType(&[(1, "examples", None), (2, "context", None)]);

impl KnownType {
    /// Returns the type of a message if it is one of the known ones.
    pub(super) fn of(payload: &[u8]) -> Option<&'static KnownType> {
        if is_event(payload) {
            return Some(&EVENT);
        }
        are_examples(payload).then_some(&EXAMPLES_WITH_CONTEXT)
    }

    /// Returns the name of a field, and its type if that is known too.
    pub(super) fn field(&self, number: u32) -> Option<(&'static str, Option<&'static KnownType>)> {
        self.0.iter().find(|(known, ..)| *known == number).map(|&(_, name, inner)| (name, inner))
    }
}

/// Returns true for the fields of an event, the first of which is a time.
fn is_event(payload: &[u8]) -> bool {
    // Seconds since 1970, before the year 5138.
    let is_time = |bits: u64| (0.0..1e11).contains(&f64::from_bits(bits));
    let mut fields = RawFields::new(payload);
    let mut is_first = true;
    loop {
        let is_known = match fields.next() {
            Some(Some((1, RawValue::Fixed64(bits)))) => is_time(bits),
            Some(Some((2, RawValue::Varint(_)))) => !is_first,
            Some(Some((3..=10, RawValue::Len(_)))) => !is_first,
            Some(None) => return !is_first,
            _ => false,
        };
        if !is_known {
            return false;
        }
        is_first = false;
    }
}

/// Returns true if all fields of a message are Examples with the numbers 1 and 2.
fn are_examples(payload: &[u8]) -> bool {
    let mut fields = RawFields::new(payload);
    let mut is_empty = true;
    loop {
        match fields.next() {
            Some(Some((1 | 2, RawValue::Len(value)))) => {
                let example = Example::new(value);
                if !example.has_features() || example.validate().is_err() {
                    return false;
                }
            }
            Some(None) => return !is_empty,
            _ => return false,
        }
        is_empty = false;
    }
}
