//! Every hand-made payload decodes as with protobuf's own decoder (`tests/data/README.md`).

use serde_json::{Value, json};
use tfseek::{Example, ExampleBuf, Feature, Result, SequenceExample, SequenceExampleBuf};
use tfseek_testkit::hex::{hex, unhex};

fn feature(feature: Feature<'_>) -> Value {
    match feature {
        Feature::None => json!({"kind": null, "values": []}),
        Feature::Bytes(list) => json!({"kind": "bytes", "values": list.iter().map(hex).collect::<Vec<_>>()}),
        Feature::Int64(list) => json!({"kind": "int64", "values": list.iter().collect::<Vec<_>>()}),
        Feature::Float(list) => {
            let bits: Vec<_> = list.iter().map(|v| format!("{:08x}", v.to_bits())).collect();
            json!({"kind": "float", "values": bits})
        }
    }
}

fn features(example: Example<'_>) -> Result<Value> {
    let all = example.features()?;
    Ok(all.iter().map(|&(key, f)| (key.to_owned(), feature(f))).collect::<serde_json::Map<_, _>>().into())
}

fn decode(kind: &str, payload: &[u8]) -> Result<Value> {
    if kind == "example" {
        let example = Example::new(payload);
        return Ok(json!({"features": features(example)?}));
    }
    let sequence = SequenceExample::new(payload);
    sequence.validate()?;
    let mut lists = serde_json::Map::new();
    for entry in sequence.feature_lists() {
        let (key, list) = entry?;
        lists.insert(key.to_owned(), list.iter().map(feature).collect());
    }
    Ok(json!({"context": features(sequence.context())?, "feature_lists": lists}))
}

#[test]
fn every_row_decodes_as_from_string() {
    let (mut same, mut refused, mut departures) = (0, 0, 0);
    for line in include_str!("../data/wire_cases.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let (id, name) = (&row["id"], &row["name"]);
        let payload = unhex(row["payload"].as_str().unwrap());
        let kind = row["kind"].as_str().unwrap();
        let got = decode(kind, &payload);
        if row["follow"] == "refuse" {
            // A map entry with an unknown field.
            assert!(got.is_err(), "{id} {name}: {got:?}");
            departures += 1;
        } else if row["from_string"]["status"] == "ok" {
            assert_eq!(got.unwrap(), row["from_string"]["value"], "{id} {name}");
            let again = match kind {
                "example" => ExampleBuf::try_from(Example::new(&payload)).unwrap().encode().unwrap(),
                _ => SequenceExampleBuf::try_from(SequenceExample::new(&payload)).unwrap().encode().unwrap(),
            };
            assert_eq!(hex(&again), row["canonical"].as_str().unwrap(), "{id} {name}");
            same += 1;
        } else {
            let error = got.expect_err(&format!("{id} {name}"));
            assert!(error.is_data(), "{id} {name}: {error}");
            refused += 1;
        }
    }
    assert!(same > 60 && refused > 30 && departures > 0, "{same} {refused} {departures}");
}
