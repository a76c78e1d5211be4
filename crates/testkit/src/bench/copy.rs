//! A plain copy of the largest feature's values: what no parser can beat that makes an array of them.

use super::shapes::Shape;
use tfseek::Example;

/// The shapes whose cost is that of their bytes, and the feature that holds these.
pub fn feature(shape: &Shape) -> Option<&'static str> {
    match shape.name {
        "embedding" => Some("embedding"),
        "image" => Some("image/encoded"),
        _ => None,
    }
}

/// Where the values of each record lie.
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

/// One after the other, into memory that is there.
pub fn copy(values: &[&[u8]], to: &mut Vec<u8>) {
    to.clear();
    values.iter().for_each(|value| to.extend_from_slice(value));
}
