//! Data sets of TensorFlow Datasets as tables.

#![cfg(feature = "tables")]

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use tfseek::{Dataset, DatasetOptions, ExampleBuilder, IndexMode, Writer};
use tfseek_convert::{ExportOptions, export};
use tfseek_tfds::Features;

/// Returns a node of `features.json`.
fn node(class: &str, content: &str) -> String {
    format!(r#"{{"pythonClassName": "tensorflow_datasets.core.features.{class}", {content}}}"#)
}

fn dict(features: &[(&str, String)]) -> String {
    let features: Vec<String> = features.iter().map(|(name, node)| format!(r#""{name}": {node}"#)).collect();
    let content = format!(r#""featuresDict": {{"features": {{{}}}}}"#, features.join(", "));
    node("features_dict.FeaturesDict", &content)
}

fn tensor(dtype: &str, shape: &str) -> String {
    let content = format!(r#""tensor": {{"dtype": "{dtype}", "shape": {{"dimensions": [{shape}]}}}}"#);
    node("tensor_feature.Tensor", &content)
}

/// Writes a data set of a hundred records.
fn data_set(folder: &Path) -> (Dataset, Arc<Features>) {
    let label = node("class_label_feature.ClassLabel", r#""classLabel": {"numClasses": "2"}"#);
    let text = node("text_feature.Text", r#""text": {}"#);
    let inner = dict(&[("bbox", tensor("float32", r#""2""#)), ("label", label.clone())]);
    let objects =
        node("sequence_feature.Sequence", &format!(r#""sequence": {{"feature": {inner}, "length": "-1"}}"#));
    let features = [("id", tensor("string", "")), ("label", label), ("objects", objects), ("text", text)];
    fs::write(folder.join("features.json"), dict(&features)).unwrap();
    fs::write(folder.join("label.labels.txt"), "cat\ndog\n").unwrap();
    let path = folder.join("set-train.tfrecord");
    let mut writer = Writer::create(&path).unwrap();
    for i in 0..100 {
        let n = i % 3;
        let record = ExampleBuilder::new()
            .bytes("id", [i.to_string()])
            .int64("label", [i % 3 - 1])
            .float("objects/bbox", (0..2 * n).map(|k| k as f32))
            .int64("objects/label", 0..n.min(2))
            .bytes("text", [format!("text {i}")]);
        writer.write(&record.encode().unwrap()).unwrap();
    }
    writer.close().unwrap();
    let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
    (ds, Arc::new(Features::read(folder, None).unwrap().0))
}

fn read(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).unwrap();
    match path.extension().unwrap().to_str().unwrap() {
        "parquet" => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            builder.build().unwrap().map(Result::unwrap).collect()
        }
        "arrow" => FileReader::try_new(file, None).unwrap().map(Result::unwrap).collect(),
        _ => StreamReader::try_new(file, None).unwrap().map(Result::unwrap).collect(),
    }
}

#[test]
fn tables_have_the_features_of_a_data_set() {
    let dir = tempfile::tempdir().unwrap();
    let (ds, features) = data_set(dir.path());
    let mut options = ExportOptions::default();
    (options.data_set, options.force) = (Some(features), true);
    for name in ["t.parquet", "t.arrow", "t.arrows"] {
        let path = dir.path().join(name);
        assert_eq!(export(&ds, &path, &options, &|_| {}).unwrap().records, 100);
        let batches = read(&path);
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 100);
        let batch = &batches[0];
        let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["id", "label", "objects", "text"]);
        let labels = batch["label"].as_dictionary::<Int64Type>();
        let labels = labels.downcast_dict::<arrow_array::StringArray>().unwrap();
        assert_eq!(labels.into_iter().take(3).collect::<Vec<_>>(), [None, Some("cat"), Some("dog")]);
        assert_eq!(batch["text"].as_string::<i32>().value(7), "text 7");
        assert_eq!(batch["id"].as_binary::<i32>().value(7), b"7");
        let boxes = batch["objects"].as_struct()["bbox"].as_list::<i64>().value(2);
        let values = boxes.as_fixed_size_list().values();
        assert_eq!(values.as_primitive::<Float32Type>().values(), &[0.0, 1.0, 2.0, 3.0]);
    }

    // Names are those of paths, and of dicts around them.
    let path = dir.path().join("t.arrow");
    options.features = vec!["objects".to_owned(), "i?".to_owned()];
    options.text = vec!["*".to_owned()];
    export(&ds, &path, &options, &|_| {}).unwrap();
    let schema = read(&path)[0].schema();
    let types: Vec<&DataType> = schema.fields().iter().map(|field| field.data_type()).collect();
    assert!(
        matches!(types[..], [DataType::Utf8, DataType::Struct(fields)] if fields.len() == 2),
        "{types:?}"
    );
    options.features = vec!["*/bbox".to_owned()];
    export(&ds, &path, &options, &|_| {}).unwrap();
    assert_eq!(read(&path)[0].schema().fields().len(), 1);
    for (features, text, expected) in [
        ("boxes", "text", "expected a feature that matches boxes, found none"),
        ("label", "label", "expected a feature of byte strings that matches label for text, found none"),
    ] {
        (options.features, options.text) = (vec![features.to_owned()], vec![text.to_owned()]);
        assert_eq!(export(&ds, &path, &options, &|_| {}).unwrap_err().to_string(), expected);
    }
}
