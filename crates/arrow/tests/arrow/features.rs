//! Scans of data sets of TensorFlow Datasets: types, nulls, labels and errors.

use crate::nested::Nested;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tfseek::{Dataset, DatasetOptions, ExampleBuilder, IndexMode, Writer};
use tfseek_arrow::{
    ByteStrings, ClassLabels, Converter, Encoder, EncoderOptions, ErrorKind, Options, Scan, Tensors,
};
use tfseek_tfds::{DecodeOptions, Features};

const CORE: &str = "tensorflow_datasets.core.features.";

fn node(class: &str, content: &str) -> String {
    format!(r#"{{"pythonClassName": "{CORE}{class}", {content}}}"#)
}

fn tensor(dtype: &str, shape: &[i64], more: &str) -> String {
    let shape: Vec<String> = shape.iter().map(|size| format!("\"{size}\"")).collect();
    let shape = shape.join(",");
    let content = format!(r#""tensor": {{"dtype": "{dtype}", "shape": {{"dimensions": [{shape}]}}{more}}}"#);
    node("tensor_feature.Tensor", &content)
}

fn label(classes: u32) -> String {
    let content = format!(r#""classLabel": {{"numClasses": "{classes}"}}"#);
    node("class_label_feature.ClassLabel", &content)
}

fn text() -> String {
    node("text_feature.Text", r#""text": {}"#)
}

fn sequence(feature: &str, length: i64) -> String {
    let content = format!(r#""sequence": {{"feature": {feature}, "length": "{length}"}}"#);
    node("sequence_feature.Sequence", &content)
}

fn steps(feature: &str) -> String {
    let content = format!(r#""sequence": {{"feature": {feature}, "length": "-1"}}"#);
    node("dataset_feature.Dataset", &content)
}

fn dict(features: &[(&str, String)]) -> String {
    let features: Vec<String> = features.iter().map(|(name, node)| format!(r#""{name}": {node}"#)).collect();
    node(
        "features_dict.FeaturesDict",
        &format!(r#""featuresDict": {{"features": {{{}}}}}"#, features.join(", ")),
    )
}

/// A data set in a folder of its own.
struct Set {
    _dir: tempfile::TempDir,
    features: Arc<Features>,
    ds: Dataset,
}

impl Set {
    /// Writes the features, the names of labels, and records.
    fn new(features: &str, labels: &[(&str, &str)], records: &[ExampleBuilder]) -> Set {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("features.json"), features).unwrap();
        for (name, names) in labels {
            fs::write(at(&format!("{name}.labels.txt")), names).unwrap();
        }
        write(&at("set-train.tfrecord"), records);
        let (features, warnings) = Features::read(dir.path(), None).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        let ds = DatasetOptions::new().index(IndexMode::Memory).open(at("set-train.tfrecord")).unwrap();
        Set { features: Arc::new(features), ds, _dir: dir }
    }

    fn scan(&self, options: &Options) -> Result<Scan, tfseek_arrow::Error> {
        let converter = Converter::of_features(&self.features, &decode(), options)?;
        Ok(Scan::with_converter(&self.ds, &converter))
    }

    fn types(&self, options: &Options) -> Vec<(String, DataType, bool)> {
        let schema = self.scan(options).unwrap().schema().clone();
        let fields = schema.fields().iter();
        fields.map(|field| (field.name().clone(), field.data_type().clone(), field.is_nullable())).collect()
    }

    /// Returns the only batch.
    fn batch(&self, options: &Options) -> RecordBatch {
        let mut batches: Vec<RecordBatch> =
            self.scan(options).unwrap().reader().unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.len(), 1);
        batches.remove(0)
    }

    fn error(&self, options: &Options) -> String {
        let scan = match self.scan(options) {
            Ok(scan) => scan,
            Err(e) => return e.to_string(),
        };
        scan.reader().unwrap().find_map(Result::err).unwrap().to_string()
    }
}

fn decode() -> DecodeOptions {
    DecodeOptions { encoded: true, missing_none: true, batch_steps: true, ..DecodeOptions::default() }
}

fn write(path: &Path, records: &[ExampleBuilder]) {
    let mut writer = Writer::create(path).unwrap();
    records.iter().for_each(|record| writer.write(&record.clone().encode().unwrap()).unwrap());
    writer.close().unwrap();
}

fn list(item: DataType) -> DataType {
    DataType::new_large_list(item, false)
}

fn fixed(item: DataType, len: i32) -> DataType {
    DataType::new_fixed_size_list(item, len, false)
}

fn fields(fields: &[(&str, DataType)]) -> DataType {
    let fields = fields.iter().map(|(name, of)| arrow_schema::Field::new(*name, of.clone(), false));
    DataType::Struct(fields.collect())
}

/// Returns a type without the metadata of the fields in it.
fn bare(of: &DataType) -> DataType {
    match of {
        DataType::Struct(all) => {
            let all: Vec<(&str, DataType)> =
                all.iter().map(|field| (field.name().as_str(), bare(field.data_type()))).collect();
            fields(&all)
        }
        other => other.clone(),
    }
}

fn number(value: i64) -> Nested {
    Nested::Value(value.to_le_bytes().to_vec())
}

fn text_of(value: &str) -> Nested {
    Nested::Value(value.into())
}

#[test]
fn features_are_nested_columns() {
    let picture =
        r#""image": {"dtype": "uint8", "shape": {"dimensions": ["-1", "-1", "3"]}, "encodingFormat": "png"}"#;
    let objects = dict(&[("bbox", tensor("float32", &[2], "")), ("name", text())]);
    let features = dict(&[
        ("empty", dict(&[])),
        ("flag", tensor("bool", &[], "")),
        ("grid", tensor("uint8", &[2, 2], "")),
        ("image", node("image_feature.Image", picture)),
        ("objects", sequence(&objects, -1)),
        ("open", tensor("int32", &[2, -1, 1], "")),
        ("pair", sequence(&tensor("float16", &[], ""), 2)),
        ("rows", sequence(&sequence(&tensor("int64", &[], ""), -1), -1)),
        ("shaped", tensor("int16", &[-1, 2, -1], r#", "encoding": "bytes""#)),
        ("steps", steps(&dict(&[("x", tensor("int64", &[], "")), ("inner", dict(&[("y", text())]))]))),
        ("z", tensor("int64", &[], "")),
    ]);
    let record = ExampleBuilder::new()
        .int64("z", [7])
        .int64("flag", [3])
        .int64("grid", [1, 2, 3, 260])
        .int64("open", [1, 2, 3, 4, 5, 6])
        .bytes("image", ["\u{89}PNG".as_bytes()])
        .bytes("objects/name", ["a", "bee"])
        .float("objects/bbox", [0.5f32, 1.0, 2.0, 3.0])
        .int64("rows/ragged_flat_values", [1, 2, 3])
        .int64("rows/ragged_row_lengths_0", [2, 0, 1])
        .float("pair", [1.0f32, 2.0])
        .int64("shaped/shape", [1, 2, 2])
        .bytes("shaped/value", [[1u8, 0, 2, 0, 3, 0, 4, 0]])
        .int64("steps/x", [8, 9])
        .bytes("steps/inner/y", ["p", "q"]);
    let set = Set::new(&features, &[], &[record]);
    let names = |options: &Options| {
        let types = set.types(options).into_iter();
        types
            .map(|(name, of, nullable)| {
                assert!(!nullable, "{name}");
                (name, bare(&of))
            })
            .collect::<Vec<_>>()
    };
    let (text, bytes) = (DataType::Utf8View, DataType::BinaryView);
    let expected = [
        ("flag", DataType::Boolean),
        ("grid", fixed(fixed(DataType::UInt8, 2), 2)),
        ("image", bytes),
        ("objects", fields(&[("bbox", list(fixed(DataType::Float32, 2))), ("name", list(text.clone()))])),
        ("open", fixed(list(fixed(DataType::Int32, 1)), 2)),
        ("pair", fixed(DataType::Float16, 2)),
        ("rows", list(list(DataType::Int64))),
        ("shaped", list(fixed(list(DataType::Int16), 2))),
        ("steps", fields(&[("inner", fields(&[("y", list(text))])), ("x", list(DataType::Int64))])),
        ("z", DataType::Int64),
    ];
    assert_eq!(names(&Options::new()), expected.map(|(name, of)| (name.to_owned(), of)));

    let batch = set.batch(&Options::new());
    let Nested::Dict(row) = Nested::of_row(&batch, 0) else { panic!() };
    assert_eq!(row["z"], number(7));
    assert_eq!(row["flag"], Nested::Value(vec![1]));
    assert_eq!(batch["grid"].as_fixed_size_list().value(0).len(), 2);
    assert_eq!(row["rows"].count(), 3);
    let Nested::Dict(objects) = &row["objects"] else { panic!() };
    assert_eq!(objects["name"], Nested::List(vec![text_of("a"), text_of("bee")]));
    let boxes = batch["objects"].as_struct()["bbox"].as_list::<i64>().values().as_fixed_size_list().clone();
    assert_eq!(boxes.values().as_primitive::<Float32Type>().values(), &[0.5, 1.0, 2.0, 3.0]);
    let Nested::Dict(steps) = &row["steps"] else { panic!() };
    assert_eq!(steps["x"], Nested::List(vec![number(8), number(9)]));

    let metadata =
        |name: &str, key: &str| batch.schema().field_with_name(name).unwrap().metadata().get(key).cloned();
    assert_eq!(metadata("image", "tfseek.class").as_deref(), Some("Image"));
    assert_eq!(metadata("image", "tfseek.dtype").as_deref(), Some("uint8"));
    assert_eq!(metadata("image", "tfseek.shape").as_deref(), Some("[null,null,3]"));
    assert_eq!(metadata("image", "tfseek.stored").as_deref(), Some("file"));
    assert_eq!(metadata("z", "tfseek.stored"), None);

    let mut plain = Options::new().bytes(ByteStrings::Copy).tensors(Tensors::Extension);
    plain.text_features = false;
    let types = names(&plain);
    assert_eq!(types[1], ("grid".to_owned(), fixed(DataType::UInt8, 4)));
    assert_eq!(types[2], ("image".to_owned(), DataType::Binary));
    assert_eq!(
        types[8].1,
        fields(&[("inner", fields(&[("y", list(DataType::Binary))])), ("x", list(DataType::Int64))])
    );
    let schema = set.batch(&plain).schema();
    let grid = schema.field_with_name("grid").unwrap().metadata();
    assert_eq!(grid["ARROW:extension:metadata"], r#"{"shape":[2, 2]}"#);
}

#[test]
fn labels_are_their_names_or_their_numbers() {
    let features = dict(&[
        ("animal", label(3)),
        ("same", label(2)),
        ("tags", sequence(&label(2), -1)),
        ("plain", label(5)),
    ]);
    let labels = [("animal", "ant\nbee\ncat\n"), ("same", "x\nx\n"), ("tags", "red\nblue\n")];
    let record = |animal: i64, tags: &[i64]| {
        ExampleBuilder::new()
            .int64("animal", [animal])
            .int64("same", [1])
            .int64("plain", [4])
            .int64("tags", tags.to_vec())
    };
    let set = Set::new(&features, &labels, &[record(2, &[1, 0]), record(-1, &[]), record(0, &[-1])]);
    let batch = set.batch(&Options::new());
    let names = |array: &arrow_array::ArrayRef| {
        let all = array.as_dictionary::<Int64Type>().downcast_dict::<arrow_array::StringArray>().unwrap();
        all.into_iter().map(|name| name.map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(names(&batch["animal"]), [Some("cat".to_owned()), None, Some("ant".to_owned())]);
    let tags = batch["tags"].as_list::<i64>();
    assert_eq!(names(&tags.value(0)), [Some("blue".to_owned()), Some("red".to_owned())]);
    assert_eq!(names(&tags.value(2)), [None]);
    let schema = batch.schema();
    let names_of =
        |name: &str| schema.field_with_name(name).unwrap().metadata().get("tfseek.labels").cloned();
    // A dictionary would make one class of two, and cannot have names that there are not.
    assert_eq!(batch["same"].as_primitive::<Int64Type>().values(), &[1, 1, 1]);
    assert_eq!((names_of("same").as_deref(), names_of("animal")), (Some(r#"["x","x"]"#), None));
    assert_eq!(batch["plain"].as_primitive::<Int64Type>().values(), &[4, 4, 4]);
    assert_eq!(names_of("plain"), None);

    let mut numbers = Options::new();
    numbers.labels = ClassLabels::Numbers;
    let batch = set.batch(&numbers);
    assert_eq!(batch["animal"].as_primitive::<Int64Type>().values(), &[2, -1, 0]);
    assert_eq!(batch["animal"].null_count(), 0);
    let schema = batch.schema();
    assert_eq!(
        schema.field_with_name("animal").unwrap().metadata()["tfseek.labels"],
        r#"["ant","bee","cat"]"#
    );

    // Any other number is no label: it is told, and can be read.
    for wrong in [3, -2, i64::MIN, i64::MAX] {
        let set = Set::new(&features, &labels, &[record(0, &[]), record(1, &[0, wrong])]);
        let expected = format!(
            "record 1 of the dataset: column \"tags\": expected a label below 2, or -1 for none, found {wrong}: read labels as numbers"
        );
        assert_eq!(set.error(&Options::new()), format!("External error: {expected}"));
        let tags = set.batch(&numbers)["tags"].as_list::<i64>().value(1);
        assert_eq!(tags.as_primitive::<Int64Type>().values(), &[0, wrong]);
    }
}

#[test]
fn missing_values_are_null() {
    let optional = r#", "optional": true"#;
    let features = dict(&[
        ("number", tensor("int32", &[], optional)),
        ("pair", tensor("float32", &[2], optional)),
        ("open", tensor("int64", &[-1], optional)),
        ("name", tensor("string", &[], optional)),
        ("items", sequence(&tensor("int64", &[], ""), -1)),
    ]);
    let full = ExampleBuilder::new()
        .int64("number", [i64::from(i32::MIN)])
        .float("pair", [1.0f32, 2.0])
        .int64("open", [0i64; 0])
        .bytes("name", [""])
        .int64("items", [1]);
    let set = Set::new(&features, &[], &[full, ExampleBuilder::new()]);
    let batch = set.batch(&Options::new());
    for (name, nulls) in [("number", 1), ("pair", 1), ("open", 1), ("name", 1), ("items", 0)] {
        assert_eq!(batch[name].null_count(), nulls, "{name}");
        assert!(batch[name].is_valid(0));
    }
    assert_eq!(batch["items"].as_list::<i64>().value_length(1), 0);
    // With the values of TFDS nothing is null.
    let decode = DecodeOptions { missing_none: false, ..decode() };
    let converter = Converter::of_features(&set.features, &decode, &Options::new()).unwrap();
    let mut reader = Scan::with_converter(&set.ds, &converter).reader().unwrap();
    let batch = reader.next().unwrap().unwrap();
    assert!(batch.columns().iter().all(|array| array.null_count() == 0));
    assert!(batch.schema().fields().iter().all(|field| !field.is_nullable()));
}

#[test]
fn features_without_a_type_are_refused() {
    let refused = |feature: String| Set::new(&dict(&[("a", feature)]), &[], &[]).error(&Options::new());
    assert_eq!(
        refused(r#"{"pythonClassName": "mine.Pose", "tensor": {"dtype": "int64", "shape": {}}}"#.to_owned()),
        "column \"a\": expected a feature of a known class, found mine.Pose: choose other features"
    );
    assert_eq!(
        refused(tensor("bfloat16", &[], "")),
        "column \"a\": expected a type that Arrow has, found arrays of bfloat16"
    );
    let set = Set::new(&dict(&[("a", text()), ("n", tensor("int64", &[], ""))]), &[], &[]);
    assert_eq!(
        set.error(&Options::new().rename("a", "b")),
        "column \"a\": expected no `rename` for a data set, whose columns have the names of its features"
    );
    assert_eq!(
        set.error(&Options::new().text("b")),
        "column \"b\": expected a feature for `text`, found no such feature"
    );
    assert_eq!(
        set.error(&Options::new().text("n")),
        "column \"n\": expected byte strings for `text`, found Tensor(int64, [])"
    );
}

#[test]
fn records_that_do_not_fit_are_errors() {
    let record = |x: &[i64], y: &[&str]| {
        ExampleBuilder::new().int64("steps/x", x.to_vec()).bytes("steps/y", y.to_vec())
    };
    let features = dict(&[("steps", steps(&dict(&[("x", tensor("int64", &[], "")), ("y", text())])))]);
    let good = record(&[1, 2], &["a", "b"]);
    let set = Set::new(
        &features,
        &[],
        &[good.clone(), record(&[], &[]), record(&[1, 2, 3], &["a"]), record(&[], &["a"])],
    );
    let error = set.error(&Options::new());
    let expected = "feature \"steps\": expected features of one number of steps, found 3 of \"steps/x\" and 1 of \"steps/y\"";
    assert!(error.contains("record 2") && error.ends_with(expected), "{error}");

    let nested = steps(&dict(&[("inner", steps(&dict(&[("p", tensor("int64", &[], "")), ("q", text())])))]));
    let record = |p: &[i64], q: &[i64], count: usize| {
        ExampleBuilder::new()
            .int64("s/inner/p/ragged_flat_values", vec![0; count])
            .int64("s/inner/p/ragged_row_lengths_0", p.to_vec())
            .bytes("s/inner/q/ragged_flat_values", vec!["a"; count])
            .int64("s/inner/q/ragged_row_lengths_0", q.to_vec())
    };
    let set =
        Set::new(&dict(&[("s", nested)]), &[], &[record(&[2, 1], &[2, 1], 3), record(&[0, 3], &[1, 2], 3)]);
    let error = set.error(&Options::new());
    let expected = "feature \"s/inner\": expected features of one number of steps, found 0 of \"s/inner/p\" and 1 of \"s/inner/q\"";
    assert!(error.contains("record 1") && error.ends_with(expected), "{error}");

    let set = Set::new(&dict(&[("t", text())]), &[], &[ExampleBuilder::new().bytes("t", [b"a\xff"])]);
    assert!(
        set.error(&Options::new()).contains("column \"t\": expected text in UTF-8"),
        "{}",
        set.error(&Options::new())
    );
    let mut bytes = Options::new();
    bytes.text_features = false;
    assert_eq!(Nested::of_row(&set.batch(&bytes), 0).count(), 1);
}

#[test]
fn scans_of_data_sets_choose_columns_and_records() {
    let features = dict(&[
        ("a/b", tensor("int64", &[], "")),
        ("c", dict(&[("d", tensor("int64", &[], "")), ("e", text())])),
    ]);
    let record =
        |k: i64| ExampleBuilder::new().int64("a/b", [k]).int64("c/d", [10 * k]).bytes("c/e", [k.to_string()]);
    let set = Set::new(&features, &[], &(0..100).map(record).collect::<Vec<_>>());
    let scan = set.scan(&Options::new()).unwrap();
    let rows = |scan: &Scan| -> Vec<Nested> {
        let batches: Vec<RecordBatch> = scan.reader().unwrap().map(Result::unwrap).collect();
        let rows =
            batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| Nested::of_row(batch, row)));
        rows.collect()
    };
    let row = |k: i64| {
        let inner = [("d".to_owned(), number(10 * k)), ("e".to_owned(), text_of(&k.to_string()))];
        let values = [("a/b".to_owned(), number(k)), ("c".to_owned(), Nested::Dict(inner.into()))];
        Nested::Dict(values.into())
    };
    let all: Vec<Nested> = (0..100).map(row).collect();
    assert_eq!(rows(&scan), all);
    assert_eq!(rows(&scan.clone().batch_rows(7)), all);
    assert_eq!(rows(&scan.clone().records(vec![5, 3, 3])), [row(5), row(3), row(3)]);
    assert_eq!(rows(&scan.clone().filter("c/d > 970".parse().unwrap())), [row(98), row(99)]);
    assert_eq!(rows(&scan.slice(40..42).unwrap()), [row(40), row(41)]);
    let converter = Converter::of_features(&set.features, &decode(), &Options::new()).unwrap();
    let parts = Scan::of_parts(set.ds.shares(3).unwrap().into_iter().flatten(), &converter);
    assert_eq!(rows(&parts), all);

    let numbered = scan.record("record").unwrap().project(&["a/b"]).unwrap();
    let only =
        |k: i64| Nested::Dict([("a/b".to_owned(), number(k)), ("record".to_owned(), number(k))].into());
    assert_eq!(rows(&numbered)[..2], [only(0), only(1)]);
    let none = scan_of(&set, &[]).project(&[] as &[&str]).unwrap();
    assert_eq!(none.reader().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 100);
    let part = scan_of(&set, &["c/d", "a/b"]).project(&["c"]).unwrap();
    assert_eq!(
        rows(&part)[3],
        Nested::Dict([("c".to_owned(), Nested::Dict([("d".to_owned(), number(30))].into()))].into())
    );
    assert!(part.project(&["a/b"]).is_err());
    assert!(part.over_columns().unwrap().is_none());
}

/// Returns a scan of some features, or of all.
fn scan_of(set: &Set, select: &[&str]) -> Scan {
    let select = (!select.is_empty()).then(|| select.iter().map(|path| (*path).to_owned()).collect());
    let decode = DecodeOptions { select, ..decode() };
    Scan::with_converter(&set.ds, &Converter::of_features(&set.features, &decode, &Options::new()).unwrap())
}

/// Lists of structs are sequences too, labels may be names, and a null is the label -1 or an absent value.
#[test]
fn rows_of_other_forms_are_records() {
    use arrow_array::builder::{Int32Builder, ListBuilder, StringBuilder, StructBuilder};
    let objects = sequence(&dict(&[("label", label(2)), ("size", tensor("int32", &[], ""))]), -1);
    let all = dict(&[
        ("name", text()),
        ("objects", objects),
        ("scores", sequence(&tensor("float32", &[], ""), -1)),
    ]);
    let set = Set::new(&all, &[("objects-label", "cat\ndog\n")], &[]);
    let inner = vec![Field::new("label", DataType::Utf8, true), Field::new("size", DataType::Int32, true)];
    let fields: Vec<Box<dyn arrow_array::builder::ArrayBuilder>> =
        vec![Box::new(StringBuilder::new()), Box::new(Int32Builder::new())];
    let mut builder = ListBuilder::new(StructBuilder::new(inner, fields));
    for (name, size) in [(Some("dog"), 3), (Some("cat"), 4)] {
        let item = builder.values();
        item.field_builder::<StringBuilder>(0).unwrap().append_option(name);
        item.field_builder::<Int32Builder>(1).unwrap().append_value(size);
        item.append(true);
    }
    builder.append(true);
    let objects: ArrayRef = Arc::new(builder.finish());
    let name: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["one"]));
    let scores: ArrayRef =
        Arc::new(arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Float32Type, _, _>([
            None::<Vec<Option<f32>>>,
        ]));
    let batch =
        RecordBatch::try_from_iter([("name", name), ("objects", objects), ("scores", scores)]).unwrap();
    let mut encoder = Encoder::of_features(&set.features, &batch.schema(), &EncoderOptions::new()).unwrap();
    let mut payloads = Vec::new();
    encoder
        .encode(&batch, |payload| {
            payloads.push(payload.to_vec());
            Ok(())
        })
        .unwrap();
    let example = tfseek::Example::new(&payloads[0]);
    assert_eq!(example.int64("objects/label").unwrap().iter().collect::<Vec<_>>(), [1, 0]);
    assert_eq!(example.int64("objects/size").unwrap().iter().collect::<Vec<_>>(), [3, 4]);
    assert!(example.get("scores").unwrap().is_none());
    // A column without a feature, and a row without the value of a feature, are refused.
    let other = RecordBatch::try_from_iter([("other", ArrayRef::clone(batch.column(0)))]).unwrap();
    let e = Encoder::of_features(&set.features, &other.schema(), &EncoderOptions::new()).unwrap_err();
    assert!(e.to_string().contains("expected a feature of the data set"), "{e}");
    let fewer = batch.project(&[1]).unwrap();
    let e = Encoder::of_features(&set.features, &fewer.schema(), &EncoderOptions::new())
        .unwrap()
        .encode(&fewer, |_| Ok(()))
        .unwrap_err();
    assert!(
        e.to_string().contains("expected a value, found none") && e.column.as_deref() == Some("name"),
        "{e}"
    );
}

/// Float64 columns are rounded to the types of the features, on request, and never to infinity.
#[test]
fn numbers_of_float64_are_rounded_on_request() {
    use arrow_array::Float64Array;
    let dtypes = ["float16", "bfloat16", "float32", "float64"];
    let packed = [("bytes", tensor("float32", &[], r#", "encoding": "bytes""#))];
    let features: Vec<_> =
        dtypes.iter().map(|dtype| (*dtype, tensor(dtype, &[], ""))).chain(packed).collect();
    let set = Set::new(&dict(&features), &[], &[]);
    let encode = |value: f64, round: bool| {
        let column = || Arc::new(Float64Array::from(vec![value])) as ArrayRef;
        let batch = RecordBatch::try_from_iter(features.iter().map(|(name, _)| (*name, column()))).unwrap();
        let mut options = EncoderOptions::new();
        options.round_float64 = round;
        let mut encoder = Encoder::of_features(&set.features, &batch.schema(), &options).unwrap();
        let mut found = Vec::new();
        let ended = encoder.encode(&batch, |payload| {
            let example = tfseek::Example::new(payload);
            found.extend(
                dtypes.iter().flat_map(|dtype| example.float(dtype).unwrap().iter().collect::<Vec<f32>>()),
            );
            found.extend(
                example.bytes("bytes").unwrap().iter().map(|b| f32::from_le_bytes(b.try_into().unwrap())),
            );
            Ok(())
        });
        ended.map(|_| found)
    };
    let e = encode(0.1, false).unwrap_err();
    assert_eq!(e.kind.to_string(), "expected a float16 that float32 has exactly, found 0.1");
    assert!(matches!(e.kind, ErrorKind::Inexact(_)) && e.column.as_deref() == Some("float16"), "{e}");
    // Float32 has this one, and Float16 has not.
    assert!(matches!(encode(2049.0, false).unwrap_err().kind, ErrorKind::Inexact(_)));
    assert_eq!(encode(2049.0, true).unwrap(), [2048.0, 2048.0, 2049.0, 2049.0, 2049.0]);
    assert_eq!(encode(0.1, true).unwrap(), [0.099_975_586, 0.100_097_656, 0.1, 0.1, 0.1]);
    assert_eq!(encode(0.5, false).unwrap(), [0.5; 5]);
    for (value, round) in [(1e5, true), (1e5, false), (1e39, false)] {
        assert!(matches!(encode(value, round).unwrap_err().kind, ErrorKind::Value(_)), "{value}");
    }
}

/// Readers of Parquet return a null list of a stated length as a null with null items.
#[test]
fn a_null_list_of_null_items_is_an_absent_value() {
    use arrow_array::{FixedSizeListArray, Float32Array};
    use arrow_buffer::NullBuffer;
    let set = Set::new(&dict(&[("pair", tensor("float32", &[2], r#", "optional": true"#))]), &[], &[]);
    let encode = |items: Vec<Option<f32>>, valid: Vec<bool>| {
        let field = Arc::new(Field::new("item", DataType::Float32, true));
        let (items, nulls) = (Arc::new(Float32Array::from(items)), NullBuffer::from(valid));
        let pair: ArrayRef = Arc::new(FixedSizeListArray::new(field, 2, items, Some(nulls)));
        let batch = RecordBatch::try_from_iter([("pair", pair)]).unwrap();
        let mut encoder =
            Encoder::of_features(&set.features, &batch.schema(), &EncoderOptions::new()).unwrap();
        let mut rows = Vec::new();
        let ended = encoder.encode(&batch, |payload| {
            let example = tfseek::Example::new(payload);
            rows.push(example.float("pair").ok().map(|pair| pair.iter().collect::<Vec<f32>>()));
            Ok(())
        });
        ended.map(|_| rows).map_err(|e| e.to_string())
    };
    let rows = encode(vec![Some(1.0), Some(2.0), None, None, Some(3.0), Some(4.0)], vec![true, false, true]);
    assert_eq!(rows.unwrap(), [Some(vec![1.0, 2.0]), None, Some(vec![3.0, 4.0])]);
    let e = encode(vec![None, None, Some(1.0), None], vec![false, true]).unwrap_err();
    assert!(e.contains("expected a value, found a null inside a list"), "{e}");
}
