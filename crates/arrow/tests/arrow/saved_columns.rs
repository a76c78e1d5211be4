//! Scans of column files: the values of the records, without the records. Projections and slices of scans.

use crate::cells::{Cell, of_arrow};
use arrow_array::{Array, RecordBatch};
use std::path::{Path, PathBuf};
use tfseek::column::ColumnOptions;
use tfseek::example::FeatureBuf;
use tfseek::order::Subset;
use tfseek::schema::{DType, FeatureSpec, Schema};
use tfseek::{Dataset, DatasetOptions, ExampleBuilder, IndexMode, Writer};
use tfseek_arrow::{ByteStrings, Converter, ErrorKind, Options, Scan};

/// Records of four shards: of 100 records, of none, of one, and of 57.
fn shards(dir: &Path) -> Vec<PathBuf> {
    let mut number = 0;
    let shards = [100, 0, 1, 57].into_iter().enumerate().map(|(shard, len)| {
        let path = dir.join(format!("{shard}.tfrecord"));
        let mut writer = Writer::create(&path).unwrap();
        for _ in 0..len {
            let mut row = ExampleBuilder::new()
                .int64("id", [number])
                .bytes("name", [format!("the name of row {}", number % 9)])
                .int64("list", 0..number % 3)
                .float("vec", [number as f32, 0.5]);
            row = match number % 4 {
                0 => row.int64("label", [number % 5]),
                1 => row.feature("label", FeatureBuf::None),
                _ => row,
            };
            row = if number % 3 > 0 { row.float("weight", [number as f32 / 3.0]) } else { row };
            row = if number % 7 > 0 { row.bytes("tag", [vec![b't'; number as usize % 20]]) } else { row };
            writer.write(&row.encode().unwrap()).unwrap();
            number += 1;
        }
        writer.close().unwrap();
        path
    });
    shards.collect()
}

fn schema() -> Schema {
    let built = Schema::example()
        .feature("id", FeatureSpec::fixed_len(&[], DType::Int64))
        .feature("name", FeatureSpec::fixed_len(&[], DType::Bytes))
        .feature("label", FeatureSpec::optional(DType::Int64))
        .feature("weight", FeatureSpec::optional(DType::Float32).with_default([-1.0f32]))
        .feature("tag", FeatureSpec::fixed_len(&[], DType::Bytes).with_default(["a default of some length"]))
        .feature("list", FeatureSpec::var_len(DType::Int64))
        .feature("vec", FeatureSpec::fixed_len(&[2], DType::Float32));
    built.build().unwrap()
}

fn open(paths: &[PathBuf]) -> Dataset {
    DatasetOptions::new().open(paths).unwrap()
}

/// Opens the shards, after building column files of these features.
fn with_columns(paths: &[PathBuf], features: &[&str]) -> Dataset {
    open(paths).columns(features, &ColumnOptions { beside: true, ..ColumnOptions::default() }).unwrap();
    open(paths)
}

fn batches(scan: &Scan) -> Vec<RecordBatch> {
    scan.reader().unwrap().map(Result::unwrap).collect()
}

/// Returns the names and the values of the columns.
fn joined(scan: &Scan) -> Vec<(String, Vec<Cell>)> {
    let fields = scan.schema().fields().iter();
    let mut columns: Vec<_> = fields.map(|field| (field.name().clone(), Vec::new())).collect();
    for batch in batches(scan) {
        assert_eq!(batch.schema(), *scan.schema());
        for ((_, cells), array) in columns.iter_mut().zip(batch.columns()) {
            array.to_data().validate_full().unwrap();
            cells.extend((0..array.len()).map(|row| of_arrow(array, row)));
        }
    }
    columns
}

/// Returns the values of the first column.
fn first(scan: &Scan) -> Vec<Cell> {
    joined(scan).swap_remove(0).1
}

fn ints(numbers: impl IntoIterator<Item = i64>) -> Vec<Cell> {
    numbers.into_iter().map(Cell::Int64).collect()
}

/// Returns the columns of a scan that are in column files. `record` is the column of record numbers.
fn saved_columns(scan: &Scan) -> Vec<String> {
    let names = scan.schema().fields().iter().map(|field| field.name().clone());
    let is_saved = |name: &String| scan.project(&[name]).unwrap().over_columns().unwrap().is_some();
    names.filter(|name| name != "record" && is_saved(name)).collect()
}

const SCALARS: [&str; 5] = ["id", "label", "name", "tag", "weight"];

#[test]
fn values_are_those_of_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let paths = shards(dir.path());
    let ds = with_columns(&paths, &SCALARS);
    for options in [
        Options::new(),
        Options::new().text("name").text("tag"),
        Options::new().bytes(ByteStrings::Copy).text("name"),
        Options::new().rename("label", "class"),
    ] {
        let scan = Scan::new(&ds, &schema(), &options).unwrap().record("record").unwrap();
        let mut saved = saved_columns(&scan);
        saved.sort_by_key(|name| if name == "class" { "label".to_owned() } else { name.clone() });
        assert_eq!(saved.len(), 5, "{saved:?}");
        assert!(scan.over_columns().unwrap().is_none(), "lists have no column files");
        let scan = scan.project(&saved).unwrap();
        let numbers: Vec<u64> = vec![157, 3, 100, 100, 99];
        let even = Subset::from_fn(158, |number| number % 2 == 0);
        for scan in [
            scan.clone(),
            scan.clone().batch_rows(7),
            scan.slice(90..120).unwrap(),
            scan.slice(90..120).unwrap().slice(5..10).unwrap(),
            scan.slice(150..1000).unwrap(),
            scan.slice(5..5).unwrap(),
            scan.clone().subset(even.clone()),
            scan.clone().subset(even).slice(40..70).unwrap(),
            scan.clone().records(numbers.clone()),
            scan.clone().records(numbers).slice(1..4).unwrap(),
        ] {
            let saved = scan.over_columns().unwrap().unwrap();
            assert_eq!(saved.schema(), scan.schema());
            assert_eq!((saved.rows(), saved.rows().unwrap()), (scan.rows(), first(&scan).len() as u64));
            assert_eq!(joined(&saved), joined(&scan));
        }
        assert_eq!(
            batches(&scan.over_columns().unwrap().unwrap().batch_rows(7)).len(),
            158_usize.div_ceil(7)
        );
    }
}

/// The shards may be gone, once their columns were found.
#[test]
fn no_shard_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let paths = shards(dir.path());
    let ds = with_columns(&paths, &["id", "label"]);
    let scan = Scan::new(&ds, &schema(), &Options::new()).unwrap();
    let saved = scan.project(&["label", "id"]).unwrap();
    let (want, saved) = (joined(&saved), saved.over_columns().unwrap().unwrap());
    paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert_eq!(joined(&saved), want);
    // The files were loaded by a scan that this one was made of.
    assert_eq!(first(&scan.project(&["id"]).unwrap().over_columns().unwrap().unwrap()), ints(0..158));
}

#[test]
fn columns_that_differ_from_their_specs_are_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let paths = shards(dir.path());
    let saved = |ds: &Dataset, name: &str, spec: FeatureSpec| {
        let schema = Schema::example().feature(name, spec).build().unwrap();
        let scan = Scan::new(ds, &schema, &Options::new()).unwrap();
        scan.over_columns().unwrap().is_some()
    };
    let label = || FeatureSpec::optional(DType::Int64);
    assert!(!saved(&open(&paths), "label", label()), "nothing is built");
    let ds = with_columns(&paths, &["label", "id"]);
    assert!(saved(&ds, "label", label()) && saved(&ds, "id", FeatureSpec::fixed_len(&[], DType::Int64)));
    assert!(!saved(&ds, "label", FeatureSpec::optional(DType::Float32)), "another type");
    assert!(!saved(&ds, "label", FeatureSpec::var_len(DType::Int64)), "lists");
    assert!(!saved(&ds, "id", FeatureSpec::fixed_len(&[1], DType::Int64)));
    assert!(!saved(&ds, "label", FeatureSpec::fixed_len(&[], DType::Int64)), "some records have no value");
    assert!(saved(&ds, "label", FeatureSpec::fixed_len(&[], DType::Int64).with_default([7])));
    assert!(!saved(&ds, "weight", FeatureSpec::optional(DType::Float32)), "no file");
    let memory = DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap();
    assert!(!saved(&memory, "label", label()), "no files are read");
    // A column in memory needs no file.
    let column = memory.column("label", &ColumnOptions::default()).unwrap();
    let schema = Schema::example().feature("label", label()).build().unwrap();
    let scan = Scan::new(&memory, &schema, &Options::new()).unwrap();
    assert!(scan.clone().loaded_columns(&[column]).over_columns().unwrap().is_some());
    let filtered = scan.filter("label == 3".parse().unwrap());
    assert!(filtered.over_columns().unwrap().is_none(), "conditions read what they need");
    // The column of one shard is missing.
    for file in std::fs::read_dir(dir.path().join(".tfseek")).unwrap().map(|entry| entry.unwrap().path()) {
        if file.to_str().unwrap().ends_with("3.tfrecord.label.tfrc") {
            std::fs::remove_file(file).unwrap();
        }
    }
    assert!(!saved(&open(&paths), "label", label()));
}

#[test]
fn text_that_is_not_utf8_names_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.tfrecord");
    let mut writer = Writer::create(&path).unwrap();
    for value in [&b"good"[..], b"\xff", b"good"] {
        writer.write(&ExampleBuilder::new().bytes("s", [value]).encode().unwrap()).unwrap();
    }
    writer.close().unwrap();
    let ds = with_columns(&[path], &["s"]);
    let schema = Schema::example().feature("s", FeatureSpec::optional(DType::Bytes)).build().unwrap();
    for bytes in [ByteStrings::View, ByteStrings::Copy] {
        let options = Options::new().text("s").bytes(bytes);
        let scan = Scan::new(&ds, &schema, &options).unwrap().over_columns().unwrap().unwrap();
        let e = scan.reader().unwrap().next().unwrap().unwrap_err().to_string();
        assert!(e.contains("record 1 of the dataset: column \"s\": expected text in UTF-8"), "{e}");
    }
}

#[test]
fn projections_of_scans() {
    let dir = tempfile::tempdir().unwrap();
    let ds = open(&shards(dir.path()));
    let scan = Scan::new(&ds, &schema(), &Options::new().text("name")).unwrap();
    let all = joined(&scan);
    for names in [vec![], vec!["list"], vec!["vec", "name", "id"]] {
        let part = scan.project(&names).unwrap();
        // In the order of the names.
        let column = |name: &&str| all.iter().find(|column| column.0 == *name).unwrap().clone();
        assert_eq!(joined(&part), names.iter().map(column).collect::<Vec<_>>());
        let numbered = scan.clone().record("n").unwrap().project(&names).unwrap();
        assert_eq!((first(&numbered), joined(&numbered).len()), (ints(0..158), names.len() + 1));
    }
    let e = scan.project(&["lists"]).unwrap_err();
    assert!(matches!(e.kind, ErrorKind::Schema(_)));
    assert_eq!(e.to_string(), "column \"lists\": expected the name of a column, found no such column");
    // A slice of a condition is taken before the condition is evaluated.
    let filtered = scan.record("n").unwrap().slice(10..100).unwrap().filter("id in 5..20".parse().unwrap());
    assert_eq!(first(&filtered), ints(10..20));
}

#[test]
fn parts_know_their_rows_and_have_no_column_files() {
    let dir = tempfile::tempdir().unwrap();
    let ds = with_columns(&shards(dir.path()), &["label"]);
    let parts =
        Scan::of_parts(ds.shares(1).unwrap().remove(0), &Converter::new(&schema(), &Options::new()).unwrap());
    assert_eq!(parts.rows(), Some(158));
    assert!(parts.over_columns().unwrap().is_none());
}
