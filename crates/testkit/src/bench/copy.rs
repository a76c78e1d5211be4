//! A plain copy of the values of the largest feature: a lower bound for parsers that make an array of them.

use super::shapes::Shape;
use tfseek::Example;

/// Returns the largest feature of a shape whose cost is dominated by its bytes.
pub fn feature(shape: &Shape) -> Option<&'static str> {
    match shape.name {
        "embedding" => Some("embedding"),
        "image" => Some("image/encoded"),
        _ => None,
    }
}

/// Returns the bytes of the feature's values in each record.
pub fn values<'a>(payloads: impl Iterator<Item = &'a [u8]>, key: &str) -> Vec<&'a [u8]> {
    let values = |payload| {
        let example = Example::new(payload);
        match example.float(key) {
            Ok(floats) => floats.as_unaligned().expect("in one chunk").as_flattened(),
            Err(_) => example.bytes(key).ok().and_then(|list| list.first()).expect("a scalar"),
        }
    };
    payloads.map(values).collect()
}

/// Copies the values one after the other into `to`, which keeps its memory.
pub fn copy(values: &[&[u8]], to: &mut Vec<u8>) {
    to.clear();
    values.iter().for_each(|value| to.extend_from_slice(value));
}
