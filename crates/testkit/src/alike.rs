//! Records that resemble each other, as those of one writer, and deviate from the usual encoding with a
//! probability.

use super::rng::Rng;
use tfseek::schema::{DType, FeatureSpec, Schema};

/// Lengths of keys: those whose entries are compared as words, and others.
pub const KEY_LENS: [usize; 16] = [1, 2, 3, 4, 5, 6, 7, 11, 14, 15, 17, 21, 22, 40, 127, 128];

/// The kinds of features in the test records, by key.
#[derive(Clone, Copy, PartialEq)]
pub enum Values {
    Int,
    Float,
    Text,
    Ints,
    Floats,
    Optional,
    Texts,
    Other,
}

pub const ALL: [Values; 8] = [
    Values::Int,
    Values::Float,
    Values::Text,
    Values::Ints,
    Values::Floats,
    Values::Optional,
    Values::Texts,
    Values::Other,
];

/// Returns a schema of all features but the last kind.
pub fn schema(features: &[(String, Values)]) -> Schema {
    let spec = |values| match values {
        Values::Int => FeatureSpec::fixed_len(&[], DType::Int64),
        Values::Float => FeatureSpec::fixed_len(&[], DType::Float32).with_default([0.5f32]),
        Values::Text => FeatureSpec::fixed_len(&[], DType::Bytes),
        Values::Ints => FeatureSpec::ragged(DType::Int64),
        Values::Floats => FeatureSpec::fixed_len(&[2], DType::Float32),
        Values::Optional => FeatureSpec::optional(DType::Int64),
        _ => FeatureSpec::ragged(DType::Bytes),
    };
    let named = features.iter().filter(|(_, values)| *values != Values::Other);
    named.fold(Schema::example(), |all, (key, values)| all.feature(key, spec(*values))).build().unwrap()
}

/// Appends a field. `extra` bytes make its length longer than needed.
pub fn field(tag: u8, bytes: &[u8], extra: usize) -> Vec<u8> {
    let mut out = vec![tag];
    varint(bytes.len() as u64, extra, &mut out);
    [out, bytes.to_vec()].concat()
}

fn varint(mut value: u64, extra: usize, out: &mut Vec<u8>) {
    let start = out.len();
    loop {
        out.push(value as u8 | 0x80);
        value >>= 7;
        if value == 0 {
            break;
        }
    }
    out.resize(out.len() + extra, 0x80);
    assert!(out.len() > start);
    *out.last_mut().unwrap() &= 0x7f;
}

/// Returns a packed list of integers, floats, or strings as a feature.
fn feature(rng: &mut Rng, values: Values, odd: u8, short: bool) -> Vec<u8> {
    let is_odd = |rng: &mut Rng| rng.chance(odd);
    let len = |rng: &mut Rng| match rng.below(12) {
        _ if short => 1 + rng.below(3),
        0 => rng.below(3),
        1 => 90 + rng.below(45),
        2 => 16_370 + rng.below(20),
        _ => 1 + rng.below(9),
    };
    let count = match values {
        Values::Int | Values::Float | Values::Text | Values::Optional if !is_odd(rng) => 1,
        Values::Floats if !is_odd(rng) => 2,
        Values::Text | Values::Texts => rng.below(4),
        _ => len(rng),
    };
    let values = if is_odd(rng) { rng.pick(&ALL) } else { values };
    let extra = |rng: &mut Rng| if is_odd(rng) { 1 + rng.below(2) } else { 0 };
    let (tag, list) = match values {
        Values::Text | Values::Texts | Values::Other => {
            let texts = (0..count.min(4)).flat_map(|_| {
                let text = vec![b'a'; len(rng)];
                let extra = extra(rng);
                field(0x0a, &text, extra)
            });
            (0x0a, texts.collect())
        }
        Values::Float | Values::Floats => {
            let mut bytes: Vec<u8> = (0..4 * count).map(|_| rng.u64() as u8).collect();
            // Not a number has several encodings, and no equal.
            bytes.chunks_mut(4).for_each(|bytes| bytes[3] = 0x3f);
            if is_odd(rng) {
                bytes.push(1);
            }
            if rng.chance(odd) {
                (0x12, bytes.chunks(4).flat_map(|bytes| [&[0x0d], bytes].concat()).collect())
            } else {
                (0x12, field(0x0a, &bytes, extra(rng)))
            }
        }
        _ => {
            let mut bytes = Vec::new();
            for _ in 0..count {
                let value = rng.u64() >> rng.below(64);
                varint(value, extra(rng), &mut bytes);
            }
            if is_odd(rng) {
                bytes.pop();
            }
            if rng.chance(odd) {
                (0x1a, bytes.iter().flat_map(|byte| [0x08, byte & 0x7f]).collect())
            } else {
                (0x1a, field(0x0a, &bytes, extra(rng)))
            }
        }
    };
    if rng.chance(odd) { Vec::new() } else { field(tag, &list, extra(rng)) }
}

fn entry(rng: &mut Rng, key: &str, values: Values, odd: u8, short: bool) -> Vec<u8> {
    let extra = |rng: &mut Rng| if rng.chance(odd) { 1 } else { 0 };
    let (key, value) = (field(0x0a, key.as_bytes(), extra(rng)), feature(rng, values, odd, short));
    let value = field(0x12, &value, extra(rng));
    let body = if rng.chance(odd) { [value, key].concat() } else { [key, value].concat() };
    field(0x0a, &body, extra(rng))
}

/// Returns a record with all features. Each deviation from the usual encoding has the probability `odd` /
/// 256.
pub fn record(rng: &mut Rng, features: &[(String, Values)], odd: u8) -> Vec<u8> {
    record_of(rng, features, odd, false)
}

/// Returns a record as [`record`] does, with values of a few bytes.
pub fn short_record(rng: &mut Rng, features: &[(String, Values)], odd: u8) -> Vec<u8> {
    record_of(rng, features, odd, true)
}

fn record_of(rng: &mut Rng, features: &[(String, Values)], odd: u8, short: bool) -> Vec<u8> {
    let mut entries = Vec::new();
    for (key, values) in features {
        if rng.chance(odd) {
            continue;
        }
        entries.push(entry(rng, key, *values, odd, short));
        if rng.chance(odd) {
            let (key, values) = &features[rng.below(features.len())];
            entries.push(entry(rng, key, *values, odd, short));
        }
        if rng.chance(odd) && entries.len() > 1 {
            let other = rng.below(entries.len() - 1);
            let last = entries.len() - 1;
            entries.swap(other, last);
        }
    }
    field(0x0a, &entries.concat(), 0)
}

/// Shuffles a list.
pub fn shuffle<T>(rng: &mut Rng, all: &mut [T]) {
    for k in (1..all.len()).rev() {
        all.swap(k, rng.below(k + 1));
    }
}

/// Returns features of all kinds, with keys of all lengths, in any order.
pub fn features(rng: &mut Rng) -> Vec<(String, Values)> {
    let mut keys = KEY_LENS.map(|len| "k".repeat(len));
    shuffle(rng, &mut keys);
    keys.into_iter().enumerate().map(|(k, key)| (key, ALL[k % ALL.len()])).collect()
}
