//! Invalid schemas: both libraries must accept or refuse the same schemas.

use crate::tally::Tally;
use crate::worker::Worker;
use serde_json::{Map, Value, json};
use tfseek::schema::Schema;
use tfseek_testkit::rng::Rng;

/// A small set of names, so that columns use the same features in different roles.
const KEYS: &[&str] = &["a", "b", "c", "d"];

/// Passes `count` schemas to both libraries with a batch of no records, so that any error is caused by the
/// schema.
pub(crate) fn schemas(worker: &mut Worker, tally: &mut Tally, rng: &mut Rng, count: u64) {
    for _ in 0..count {
        let (kind, spec) = invalid_schema(rng);
        let ours = Schema::from_json(&spec.to_string());
        let theirs = worker.parse(kind, &spec, &[Vec::new()], false).remove(0);
        // The schema is valid, but TensorFlow needs a record to accept it.
        let sound = |message: &String| message.contains("Inconsistent max number of elements");
        match (&ours, theirs.as_ref().err().filter(|message| !sound(message))) {
            (Ok(_), None) => tally.count("schemas that both take", 1),
            (Err(_), Some(_)) => tally.count("schemas that both refuse", 1),
            (Err(e), None) if e.to_string().contains("a default without values") => {
                tally.count("departure: default without values refused", 1);
            }
            (ours, theirs) => {
                tally.disagree(format!(
                    "schema {spec}\n ours   {:?}\n theirs {theirs:?}",
                    ours.as_ref().err()
                ));
            }
        }
    }
}

fn invalid_schema(rng: &mut Rng) -> (&'static str, Value) {
    let mut part = |types: &[&str]| -> Map<String, Value> {
        let count = rng.below(3);
        (0..count).map(|_| (rng.pick(KEYS).to_owned(), column(rng, types))).collect()
    };
    let all = &["fixed", "fixed_sequence", "varlen", "ragged", "sparse"];
    let example = part(all);
    if !example.is_empty() {
        return ("example", json!({"features": example}));
    }
    // Mostly types that are valid in this position.
    let mut context = part(&["fixed", "varlen", "ragged", "ragged", "fixed_sequence"]);
    let lists = part(&["fixed_sequence", "fixed_sequence", "varlen", "ragged", "fixed"]);
    if lists.is_empty() {
        // TensorFlow requires at least one column.
        context.insert("a".to_owned(), json!({"type": "varlen", "dtype": "int64"}));
    }
    ("sequence", json!({"context": context, "sequence": lists}))
}

fn column(rng: &mut Rng, types: &[&str]) -> Value {
    let dtype = rng.pick(&["int64", "int64", "float32", "string"]);
    let value = match rng.pick(&[dtype, dtype, dtype, dtype, "int64", "string"]) {
        "int64" => json!(7),
        "float32" => json!(0.5),
        _ => json!("x"),
    };
    let default = match rng.below(8) {
        0 => json!([]),
        1 => json!([value]),
        2 => json!([value, value]),
        3 => json!([[value, value], [value, value]]),
        4 => value,
        _ => Value::Null,
    };
    let key = |rng: &mut Rng| json!(rng.pick(KEYS));
    match rng.pick(types) {
        "fixed" => {
            let shape = rng.pick(&[&[][..], &[1], &[2], &[2, 2]]);
            json!({"type": "fixed", "dtype": dtype, "shape": shape, "default": default})
        }
        "fixed_sequence" => {
            let shape = rng.pick(&[&[][..], &[1], &[2]]);
            let allow_missing = rng.chance(200);
            json!({"type": "fixed_sequence", "dtype": dtype, "shape": shape, "allow_missing": allow_missing, "default": default})
        }
        "varlen" => json!({"type": "varlen", "dtype": dtype}),
        "ragged" => {
            let partitions: Vec<Value> = (0..rng.below(3))
                .map(|_| match rng.below(3) {
                    0 => json!({"kind": "uniform_row_length", "length": 2}),
                    1 => json!({"kind": "row_splits", "key": key(rng)}),
                    _ => json!({"kind": "row_lengths", "key": key(rng)}),
                })
                .collect();
            let value_key = if rng.chance(128) { key(rng) } else { Value::Null };
            let splits = rng.pick(&["int32", "int64"]);
            json!({"type": "ragged", "dtype": dtype, "value_key": value_key, "partitions": partitions, "row_splits_dtype": splits})
        }
        _ => {
            let (index_key, size) = match rng.below(4) {
                0 => (json!([key(rng)]), json!([4])),
                1 => (json!([key(rng), key(rng)]), json!([4, 5])),
                2 => (json!([key(rng), key(rng)]), json!([4])),
                _ => (key(rng), json!(4)),
            };
            json!({"type": "sparse", "index_key": index_key, "value_key": key(rng), "dtype": dtype, "size": size})
        }
    }
}
