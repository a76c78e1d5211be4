//! Records that resemble earlier ones: a parser that predicts their bytes gives the results and errors of one that has seen no record.

use tfseek::batch::BatchParser;
use tfseek::schema::{DType, FeatureSpec, Schema};
use tfseek_testkit::agree_parse::Want;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::twin_parse::Form;

/// Lengths of keys: those whose entries are compared as words, and others.
const KEY_LENS: [usize; 16] = [1, 2, 3, 4, 5, 6, 7, 11, 14, 15, 17, 21, 22, 40, 127, 128];

/// The kinds of features in the test records, by key.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    Int,
    Float,
    Text,
    Ints,
    Floats,
    Optional,
    Texts,
    Other,
}

const ALL: [Values; 8] = [
    Values::Int,
    Values::Float,
    Values::Text,
    Values::Ints,
    Values::Floats,
    Values::Optional,
    Values::Texts,
    Values::Other,
];

fn schema(features: &[(String, Values)]) -> Schema {
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
fn field(tag: u8, bytes: &[u8], extra: usize) -> Vec<u8> {
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
fn feature(rng: &mut Rng, values: Values, odd: u8) -> Vec<u8> {
    let is_odd = |rng: &mut Rng| rng.chance(odd);
    let len = |rng: &mut Rng| match rng.below(12) {
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
            match rng.chance(odd) {
                true => (0x12, bytes.chunks(4).flat_map(|bytes| [&[0x0d], bytes].concat()).collect()),
                false => (0x12, field(0x0a, &bytes, extra(rng))),
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
            match rng.chance(odd) {
                true => (0x1a, bytes.iter().flat_map(|byte| [0x08, byte & 0x7f]).collect()),
                false => (0x1a, field(0x0a, &bytes, extra(rng))),
            }
        }
    };
    match rng.chance(odd) {
        true => Vec::new(),
        false => field(tag, &list, extra(rng)),
    }
}

fn entry(rng: &mut Rng, key: &str, values: Values, odd: u8) -> Vec<u8> {
    let extra = |rng: &mut Rng| if rng.chance(odd) { 1 } else { 0 };
    let (key, value) = (field(0x0a, key.as_bytes(), extra(rng)), feature(rng, values, odd));
    let value = field(0x12, &value, extra(rng));
    let body = match rng.chance(odd) {
        true => [value, key].concat(),
        false => [key, value].concat(),
    };
    field(0x0a, &body, extra(rng))
}

/// Returns a record with all features. Each deviation from the usual encoding has the probability `odd` / 256.
fn record(rng: &mut Rng, features: &[(String, Values)], odd: u8) -> Vec<u8> {
    let mut entries = Vec::new();
    for (key, values) in features {
        if rng.chance(odd) {
            continue;
        }
        entries.push(entry(rng, key, *values, odd));
        if rng.chance(odd) {
            let (key, values) = &features[rng.below(features.len())];
            entries.push(entry(rng, key, *values, odd));
        }
        if rng.chance(odd) && entries.len() > 1 {
            let other = rng.below(entries.len() - 1);
            let last = entries.len() - 1;
            entries.swap(other, last);
        }
    }
    field(0x0a, &entries.concat(), 0)
}

fn shuffle<T>(rng: &mut Rng, all: &mut [T]) {
    for k in (1..all.len()).rev() {
        all.swap(k, rng.below(k + 1));
    }
}

fn features(rng: &mut Rng) -> Vec<(String, Values)> {
    let mut keys = KEY_LENS.map(|len| "k".repeat(len));
    shuffle(rng, &mut keys);
    keys.into_iter().enumerate().map(|(k, key)| (key, ALL[k % ALL.len()])).collect()
}

/// Compares the parse of `payload` with that of a parser that has learned nothing, and with the naive twin.
fn check(parser: &BatchParser, schema: &Schema, full: bool, payload: &[u8]) {
    let found = parser.parse_single(payload);
    let fresh = BatchParser::new(schema).validate_full(full).presence(true).parse_single(payload);
    let (text, want) = (format!("{found:?}"), format!("{fresh:?}"));
    assert_eq!(text, want, "{payload:02x?}");
    if let (Ok(found), Ok(fresh)) = (&found, &fresh) {
        for (name, _) in fresh.columns() {
            assert_eq!(found.presence(name), fresh.presence(name), "{name}: {payload:02x?}");
        }
    }
    let form = Form { single: true };
    if let Err(difference) = Want::new(schema, &[payload], form, full).compare(&found) {
        panic!("{difference}\n{payload:02x?}");
    }
}

/// Returns a parser that expects records like these. With `own`, it expects no order of the keys.
fn trained(
    rng: &mut Rng,
    schema: &Schema,
    features: &[(String, Values)],
    full: bool,
    own: bool,
) -> BatchParser {
    let parser = BatchParser::new(schema).validate_full(full).presence(true);
    let mut features = features.to_vec();
    for _ in 0..if own { 30 } else { 3 } {
        if own {
            shuffle(rng, &mut features);
        }
        parser.parse_single(&record(rng, &features, 0)).unwrap();
    }
    parser
}

#[test]
fn records_like_earlier_ones_and_less_and_less_like_them() {
    for seed in 0..40 {
        let rng = &mut Rng::new(seed);
        let features = features(rng);
        let (schema, full) = (schema(&features), seed % 4 == 3);
        for own in [false, true] {
            let parser = trained(rng, &schema, &features, full, own);
            for odd in [0, 0, 1, 4, 1, 0, 20, 2] {
                for _ in 0..6 {
                    check(&parser, &schema, full, &record(rng, &features, odd));
                }
            }
        }
    }
}

/// Every byte of a record with short values is changed, and the record is cut off everywhere.
#[test]
fn one_byte_is_different() {
    let rng = &mut Rng::new(7);
    for own in [false, true] {
        let mut features = features(rng);
        features.retain(|(key, _)| key.len() < 30);
        let schema = schema(&features);
        let usual = loop {
            let usual = record(rng, &features, 0);
            if usual.len() < 900 {
                break usual;
            }
        };
        let mut parser = trained(rng, &schema, &features, false, own);
        for at in 0..usual.len() {
            for change in [1, 2, 3, 4, 0x80, 0x7f, 0xff, usual[at], usual[at] ^ 0x0a, usual[at] ^ 0x80] {
                let mut changed = usual.clone();
                changed[at] ^= change;
                check(&parser, &schema, false, &changed);
                let _ = parser.parse_single(&usual);
            }
            check(&parser, &schema, false, &usual[..at]);
            if at % 64 == 63 {
                parser = trained(rng, &schema, &features, false, own);
            }
        }
    }
}

/// Lists and strings of all lengths around those at which a length around them takes another byte.
#[test]
fn lengths_take_one_to_three_bytes() {
    for key_len in KEY_LENS {
        let features = [("a".repeat(key_len), Values::Texts), ("b".repeat(key_len), Values::Ints)];
        let schema = schema(&features);
        let parser = BatchParser::new(&schema).presence(true);
        let lens = (0..140).chain((1 << 14) - 150..(1 << 14) + 8);
        for len in lens.filter(|len| len % 3 == 0 || len % 128 > 80 || *len > 1000 && len % 7 == 0) {
            let text = field(0x0a, &field(0x0a, &vec![b'x'; len], 0), 0);
            let ints = field(0x1a, &field(0x0a, &vec![7; len], 0), 0);
            let entry = |key: &str, value: &[u8]| {
                let parts = [field(0x0a, key.as_bytes(), 0), field(0x12, value, 0)];
                field(0x0a, &parts.concat(), 0)
            };
            let entries = [entry(&features[0].0, &text), entry(&features[1].0, &ints)];
            check(&parser, &schema, false, &field(0x0a, &entries.concat(), 0));
        }
    }
}

/// An error names the lowest row of a batch, whatever the rows before it have taught the parser.
#[test]
fn batches_with_one_different_row() {
    let rng = &mut Rng::new(3);
    for _ in 0..30 {
        let features = features(rng);
        let schema = schema(&features);
        let parser = BatchParser::new(&schema);
        for odd in [0, 2, 10] {
            let rows: Vec<Vec<u8>> = (0..70)
                .map(|k| {
                    let odd = if k == 40 || k == 66 { odd } else { 0 };
                    record(rng, &features, odd)
                })
                .collect();
            let form = Form { single: false };
            let found = parser.parse(&rows);
            Want::new(&schema, &rows, form, false).compare(&found).unwrap();
            if let Err(error) = found {
                let row = error.location().row.unwrap();
                let alone = BatchParser::new(&schema).parse(&rows[row..=row]).unwrap_err();
                assert_eq!(error.to_string(), alone.to_string().replacen("row 0", &format!("row {row}"), 1));
            }
        }
    }
}
