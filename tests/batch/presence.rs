//! The presence of features and feature lists, for all specs, compared with views of the records.

use tfseek::batch::{Batch, BatchParser, Buf};
use tfseek::example::FeatureBuf;
use tfseek::io::Region;
use tfseek::schema::{DType, FeatureSpec, Schema};
use tfseek::{ExampleBuilder, SequenceExampleBuilder};
use tfseek_testkit::presence::{has_feature, has_list};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shaped::{self, Style};

/// Compares the presence in a batch with the views of its records. Counts absent and present features.
fn check(batch: &Batch, schema: &Schema, payloads: &[&[u8]], what: &str) -> [usize; 2] {
    let mut seen = [0; 2];
    let mut same = |found: Option<&Buf<u8>>, has: &dyn Fn(&[u8]) -> bool, what: String| {
        let want: Vec<u8> = payloads.iter().map(|payload| u8::from(has(payload))).collect();
        assert_eq!(found.unwrap()[..], want, "{what}");
        want.iter().for_each(|&present| seen[usize::from(present)] += 1);
    };
    for name in schema.features().keys() {
        same(batch.presence(name), &|payload| has_feature(schema, name, payload), format!("{what}: {name}"));
    }
    for name in schema.feature_lists().keys() {
        let found = batch.feature_list_presence(name);
        same(found, &|payload| has_list(schema, name, payload), format!("{what}: list {name}"));
    }
    seen
}

fn random(sequence: bool) {
    let (mut batches, mut refused, mut seen) = (0, 0, [0; 2]);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let schema = shaped::schema(&mut rng, sequence);
        let contiguous = rng.chance(128);
        let parser = BatchParser::new(&schema).presence(true).contiguous_bytes(contiguous);
        for batch in 0..3 {
            let rows = rng.pick(&[0, 1, 2, 5, 63, 64, 65, 130]);
            let style = Style {
                odd: rng.pick(&[0, 20, 60]),
                own_order: rng.chance(100),
                spoilt: rng.pick(&[0, 0, 1]),
                damaged: 0,
            };
            let payloads: Vec<Vec<u8>> =
                (0..rows).map(|_| shaped::payload(&mut rng, &schema, style)).collect();
            let views: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            let what = format!("seed {seed}, batch {batch}: {schema:?}");
            let regions: Vec<Region> = payloads.iter().cloned().map(Region::new).collect();
            for found in [parser.parse(&payloads), parser.parse(&regions), parser.clone().parse(&views)] {
                match found {
                    Ok(found) => {
                        let [absent, present] = check(&found, &schema, &views, &what);
                        (batches, seen) = (batches + 1, [seen[0] + absent, seen[1] + present]);
                    }
                    Err(_) => refused += 1,
                }
            }
            for view in views.iter().take(2) {
                if let Ok(found) = parser.parse_single(*view) {
                    check(&found, &schema, &[*view], &what);
                }
            }
        }
    }
    println!("{batches} batches, {refused} refused, {seen:?} absent and present");
    assert!(
        batches > refused && refused > 10 && seen.iter().all(|&times| times > 1000),
        "{batches} {seen:?}"
    );
}

#[test]
fn random_examples() {
    random(false);
}

#[test]
fn random_sequence_examples() {
    random(true);
}

/// An empty list with a kind is there. A feature without a kind, or with a fault that only unknown fields
/// have, is not.
#[test]
fn states_of_a_feature() {
    let one = |feature: FeatureBuf| ExampleBuilder::new().feature("x", feature).encode().unwrap();
    // Features of an Example are the field 1, entries of the map are its field 1, of key and value.
    let raw = |value: &[u8]| {
        let entry = [&[0x0a, 1, b'x', 0x12, value.len() as u8], value].concat();
        let map = [&[0x0a, entry.len() as u8], &*entry].concat();
        [&[0x0a, map.len() as u8], &*map].concat()
    };
    let rows = vec![
        one(FeatureBuf::Int64(vec![7])),
        one(FeatureBuf::Int64(vec![])),
        one(FeatureBuf::None),
        ExampleBuilder::new().encode().unwrap(),
        raw(&[0x18, 5]),          // an unknown field
        raw(&[0x18, 5, 0x1a, 0]), // and an empty list after it
        raw(&[0x1a, 0, 0x18, 5]), // and before it
    ];
    let spec = |name: &str| match name {
        "optional" => FeatureSpec::optional(DType::Int64),
        "filled" => FeatureSpec::optional(DType::Int64).with_default([3]),
        "ragged" => FeatureSpec::ragged(DType::Int64),
        _ => FeatureSpec::var_len(DType::Int64),
    };
    for name in ["optional", "filled", "ragged", "var_len"] {
        let schema = Schema::example().feature("x", spec(name)).build().unwrap();
        let parser = BatchParser::new(&schema).presence(true);
        for _ in 0..3 {
            let batch = parser.parse(&rows).unwrap();
            assert_eq!(batch.presence("x").unwrap()[..], [1, 1, 0, 0, 0, 1, 1], "{name}");
            assert!(batch.presence("y").is_none() && batch.feature_list_presence("x").is_none());
        }
        let batch = BatchParser::new(&schema).parse(&rows).unwrap();
        assert!(batch.presence("x").is_none(), "off by default");
        // The same parser with the option off again.
        assert!(parser.presence(false).parse(&rows).unwrap().presence("x").is_none());
    }
}

#[test]
fn a_list_without_steps_is_there() {
    let schema = Schema::sequence_example()
        .feature("x", FeatureSpec::var_len(DType::Int64))
        .feature_list("x", FeatureSpec::var_len(DType::Int64))
        .build()
        .unwrap();
    let rows = [
        SequenceExampleBuilder::new().feature_list("x", [FeatureBuf::None]).encode().unwrap(),
        SequenceExampleBuilder::new().feature_list("x", [] as [FeatureBuf; 0]).encode().unwrap(),
        SequenceExampleBuilder::new().feature("x", FeatureBuf::None).encode().unwrap(),
    ];
    let batch = BatchParser::new(&schema).presence(true).parse(&rows).unwrap();
    assert_eq!(batch.presence("x").unwrap()[..], [0, 0, 0]);
    assert_eq!(batch.feature_list_presence("x").unwrap()[..], [1, 1, 0]);
}
