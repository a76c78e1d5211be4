//! Reader of TensorFlow's recorded results in JSON (`tests/data/README.md`).

use super::arrays::{Array, Arrays, Data, Neutral};
use super::hex::unhex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tfseek::schema::Schema;

/// Returns the arrays of a result, or `None` for an error.
pub fn answer(value: &Value) -> Option<Arrays> {
    if value["status"] != "ok" {
        return None;
    }
    let part = |name: &str| -> BTreeMap<String, Neutral> {
        let columns = value[name].as_object().into_iter().flatten();
        columns.map(|(name, of)| (name.clone(), column(of))).collect()
    };
    let lengths = part("lengths").into_iter().map(|(name, column)| match column {
        Neutral::Dense(Array { data: Data::Int64(lengths), .. }) => (name, lengths),
        other => panic!("{other:?}"),
    });
    let features = if value.get("outputs").is_some() { part("outputs") } else { part("context") };
    Some(Arrays { features, feature_lists: part("sequence"), lengths: lengths.collect() })
}

fn column(value: &Value) -> Neutral {
    match value["kind"].as_str().unwrap() {
        "dense" => Neutral::Dense(array(value)),
        "sparse" => Neutral::Sparse {
            indices: array(&value["indices"]),
            values: array(&value["values"]),
            dense_shape: array(&value["dense_shape"]),
        },
        "ragged" => Neutral::Ragged {
            values: array(&value["values"]),
            row_splits: value["row_splits"].as_array().unwrap().iter().map(array).collect(),
        },
        other => panic!("{other}"),
    }
}

fn array(value: &Value) -> Array {
    let data = value["data"].as_array().unwrap().iter();
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    let data = match value["dtype"].as_str().unwrap() {
        "int64" => Data::Int64(data.map(|v| v.as_i64().unwrap()).collect()),
        "int32" => Data::Int32(data.map(|v| v.as_i64().unwrap().try_into().unwrap()).collect()),
        "float32" => Data::Float32(data.map(|v| u32::from_str_radix(&text(v), 16).unwrap()).collect()),
        "string" => Data::Bytes(data.map(|v| unhex(&text(v))).collect()),
        other => panic!("{other}"),
    };
    Array::new(value["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap()), data)
}

/// Returns the schema of a case. For Examples the files contain only the map of features.
pub fn schema(case: &Value) -> tfseek::Result<Schema> {
    let spec = &case["spec"];
    let spec = if case["kind"] == "example" { json!({ "features": spec }) } else { spec.clone() };
    Schema::from_json(&spec.to_string())
}
