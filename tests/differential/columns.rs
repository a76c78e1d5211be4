//! tfseek's columns in the form of the TensorFlow worker's answers.

use serde_json::{Map, Value, json};
use tfseek::batch::{Batch, Column, RowSplits, Values};
use tfseek_testkit::hex::hex;

/// Returns all columns, and their lengths in batches of sequences.
pub(crate) fn columns(batch: &Batch, single: bool) -> Map<String, Value> {
    let mut all = Map::new();
    for (key, column) in batch.columns() {
        all.insert(format!("features/{key}"), value(column));
    }
    for (key, column) in batch.feature_lists() {
        all.insert(format!("lists/{key}"), value(column));
        if let (false, Some(lengths)) = (single, batch.lengths(key)) {
            let mut lengths = integers(lengths, &[lengths.len()]);
            lengths["kind"] = "dense".into();
            all.insert(format!("lengths/{key}"), lengths);
        }
    }
    all
}

fn value(column: &Column) -> Value {
    match column {
        Column::Dense(dense) => {
            let mut value = array(&dense.values, &dense.shape);
            value["kind"] = "dense".into();
            value
        }
        // TensorFlow has no such column.
        Column::Optional(optional) => json!({
            "kind": "optional",
            "values": array(&optional.values, &optional.shape),
            "present": &*optional.present,
        }),
        Column::Sparse(sparse) => json!({
            "kind": "sparse",
            "indices": integers(&sparse.indices, &[sparse.values.len(), sparse.dense_shape.len()]),
            "values": array(&sparse.values, &[sparse.values.len()]),
            "dense_shape": sparse.dense_shape,
        }),
        Column::Ragged(ragged) => json!({
            "kind": "ragged",
            "values": array(&ragged.values, &ragged.shape),
            "row_splits": ragged.row_splits.iter().map(splits).collect::<Vec<_>>(),
            "row_splits_dtype": match ragged.row_splits[0] {
                RowSplits::Int32(_) => "int32",
                RowSplits::Int64(_) => "int64",
            },
        }),
    }
}

fn integers(values: &[i64], shape: &[usize]) -> Value {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    json!({"dtype": "int64", "shape": shape, "data": hex(&data)})
}

fn array(values: &Values, shape: &[usize]) -> Value {
    match values {
        Values::Int64(values) => integers(values, shape),
        Values::Float32(values) => {
            let data: Vec<u8> = values.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect();
            json!({"dtype": "float32", "shape": shape, "data": hex(&data)})
        }
        Values::Bytes(values) => {
            json!({"dtype": "string", "shape": shape, "data": values.iter().map(hex).collect::<Vec<_>>()})
        }
        Values::Array(values) => panic!("tf.io.parse_example has no arrays of {}", values.dtype()),
    }
}

fn splits(splits: &RowSplits) -> Vec<i64> {
    match splits {
        RowSplits::Int32(splits) => splits.iter().map(|&split| split.into()).collect(),
        RowSplits::Int64(splits) => splits.to_vec(),
    }
}
