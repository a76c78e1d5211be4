//! Records that resemble earlier ones: a parser that predicts their bytes gives the results and errors of one
//! that has seen no record.

use tfseek::ExampleBuilder;
use tfseek::batch::BatchParser;
use tfseek::schema::{DType, FeatureSpec, Schema};
use tfseek_testkit::agree_parse::{Want, same_result};
use tfseek_testkit::alike::{KEY_LENS, Values, features, field, record, schema, short_record, shuffle};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::twin_parse::Form;

/// Compares the parse of `payload` with that of a parser that has learned nothing, and with the naive twin.
fn check(parser: &BatchParser, schema: &Schema, payload: &[u8]) {
    let found = parser.parse_single(payload);
    let fresh = BatchParser::new(schema).presence(true).parse_single(payload);
    assert!(same_result(&found, &fresh), "{found:?}, expected {fresh:?}: {payload:02x?}");
    if let (Ok(found), Ok(fresh)) = (&found, &fresh) {
        for (name, _) in fresh.columns() {
            assert_eq!(found.presence(name), fresh.presence(name), "{name}: {payload:02x?}");
        }
    }
    let form = Form { single: true };
    if let Err(difference) = Want::new(schema, &[payload], form).compare(&found) {
        panic!("{difference}\n{payload:02x?}");
    }
}

/// Returns a parser that expects records like these. With `own`, it expects no order of the keys.
fn trained(rng: &mut Rng, schema: &Schema, features: &[(String, Values)], own: bool) -> BatchParser {
    let parser = BatchParser::new(schema).presence(true);
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
        let schema = schema(&features);
        for own in [false, true] {
            let parser = trained(rng, &schema, &features, own);
            for odd in [0, 0, 1, 4, 1, 0, 20, 2] {
                for _ in 0..6 {
                    check(&parser, &schema, &record(rng, &features, odd));
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
        let mut parser = trained(rng, &schema, &features, own);
        for at in 0..usual.len() {
            for change in [1, 2, 3, 4, 0x80, 0x7f, 0xff, usual[at], usual[at] ^ 0x0a, usual[at] ^ 0x80] {
                let mut changed = usual.clone();
                changed[at] ^= change;
                check(&parser, &schema, &changed);
                let _ = parser.parse_single(&usual);
            }
            check(&parser, &schema, &usual[..at]);
            if at % 64 == 63 {
                parser = trained(rng, &schema, &features, own);
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
            check(&parser, &schema, &field(0x0a, &entries.concat(), 0));
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
            Want::new(&schema, &rows, form).compare(&found).unwrap();
            if let Err(error) = found {
                let row = error.location().row.unwrap();
                let alone = BatchParser::new(&schema).parse(&rows[row..=row]).unwrap_err();
                assert_eq!(format!("{:?}", error.kind()), format!("{:?}", alone.kind()));
                assert_eq!(error.location().feature, alone.location().feature);
            }
        }
    }
}

/// Records of one writer are compared eight at a time with what they have in common. Each change of one bit
/// has the result that it has in a parser that has learned nothing.
#[test]
fn records_of_one_writer_that_differ_in_one_bit() {
    for seed in 0..6 {
        let rng = &mut Rng::new(seed);
        let features: Vec<_> = features(rng).into_iter().filter(|(key, _)| key.len() < 30).take(8).collect();
        let schema = schema(&features);
        let parser = BatchParser::new(&schema).presence(true);
        let rows: Vec<_> = (0..64).map(|_| short_record(rng, &features, 0)).collect();
        parser.parse(&rows).unwrap();
        let row = &rows[5];
        for bit in 0..8 * row.len() {
            let mut group = rows[..8].to_vec();
            group[5][bit / 8] ^= 1 << (bit % 8);
            let fresh = BatchParser::new(&schema).presence(true);
            let (found, want) = (parser.parse(&group), fresh.parse(&group));
            assert!(
                same_result(&found, &want),
                "{found:?}, expected {want:?}: seed {seed}, bit {bit} of {row:02x?}"
            );
        }
    }
}

/// A string whose length takes one byte more than in the records that were learned, and the integers of all
/// lengths.
#[test]
fn values_of_all_lengths_after_short_ones() {
    let spec = |dtype| FeatureSpec::fixed_len(&[], dtype);
    let schema = Schema::example()
        .feature("int", spec(DType::Int64))
        .feature("other", spec(DType::Int64))
        .feature("text", spec(DType::Bytes))
        .build()
        .unwrap();
    let record = |int: i64, len: usize, other: i64| {
        let builder = ExampleBuilder::new().int64("int", [int]).bytes("text", [vec![b'x'; len]]);
        builder.float("unused", [0.5]).int64("other", [other]).encode().unwrap()
    };
    let learned: Vec<_> = (0..64).map(|k| record(k * 1000, 1 + k as usize % 3, k)).collect();
    let parser = BatchParser::new(&schema);
    parser.parse(&learned).unwrap();
    let ints = (0..64)
        .flat_map(|bits| [1i64 << bits, (1i64 << bits).wrapping_sub(1), (1i64 << bits).wrapping_neg()]);
    for int in ints {
        for len in [0, 1, 2, 3, 70, 90, 100, 110, 120, 125, 126, 127, 128, 129, 16_383, 16_384] {
            let mut group = learned[..8].to_vec();
            group[3] = record(int, len, 7);
            let (found, want) = (parser.parse(&group), BatchParser::new(&schema).parse(&group));
            assert!(same_result(&found, &want), "{found:?}, expected {want:?}: {int} and {len} bytes");
        }
    }
}
