//! Scans of datasets and of parts.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use std::fs;
use std::path::{Path, PathBuf};
use tfseek::batch::BatchParser;
use tfseek::order::Subset;
use tfseek::schema::{DType, FeatureSpec, Schema};
use tfseek::{Compression, Dataset, DatasetOptions, ExampleBuilder, Filter, IndexMode, Writer};
use tfseek_arrow::{ByteStrings, Converter, ErrorKind, Options, Scan, ScanReader};
use tfseek_testkit::rng::Rng;

/// Records in shards of these lengths, the second of which is compressed.
const SHARDS: [usize; 5] = [40, 17, 0, 1, 80];

fn schema() -> Schema {
    Schema::example()
        .feature("label", FeatureSpec::optional(DType::Int64))
        .feature("name", FeatureSpec::fixed_len(&[], DType::Bytes))
        .feature("weights", FeatureSpec::var_len(DType::Float32))
        .build()
        .unwrap()
}

fn payloads() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(7);
    (0..SHARDS.iter().sum())
        .map(|k: usize| {
            let name = match k % 9 {
                0 => vec![b'x'; 20_000 + k],
                _ => format!("record {k:04}").into_bytes(),
            };
            let weights: Vec<f32> = (0..rng.below(9)).map(|_| rng.below(100) as f32).collect();
            let row = ExampleBuilder::new().bytes("name", [name]).float("weights", weights);
            let row = if k.is_multiple_of(5) { row } else { row.int64("label", [(k % 7) as i64]) };
            row.encode().unwrap()
        })
        .collect()
}

fn write(dir: &Path, payloads: &[Vec<u8>]) -> Vec<PathBuf> {
    let mut rest = payloads;
    let mut paths = Vec::new();
    for (s, &len) in SHARDS.iter().enumerate() {
        let path = dir.join(format!("s-{s:05}-of-{:05}", SHARDS.len()));
        let compression = if s == 1 { Compression::Gzip } else { Compression::None };
        let mut writer =
            tfseek::writer::WriterOptions { compression, ..Default::default() }.create(&path).unwrap();
        let (here, after) = rest.split_at(len);
        here.iter().for_each(|payload| writer.write(payload).unwrap());
        writer.close().unwrap();
        rest = after;
        paths.push(path);
    }
    paths
}

fn open(paths: &[PathBuf]) -> Dataset {
    DatasetOptions::new().index(IndexMode::Memory).open(paths).unwrap()
}

/// Returns the rows of record batches, each as text.
fn rows(reader: ScanReader) -> Vec<String> {
    let schema = reader.schema();
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        assert!(batch.num_rows() > 0);
        assert_eq!(batch.schema(), schema);
        rows.extend(text(&batch));
    }
    rows
}

fn text(batch: &RecordBatch) -> Vec<String> {
    batch.columns().iter().for_each(|array| array.to_data().validate_full().unwrap());
    let names = batch.schema();
    (0..batch.num_rows())
        .map(|row| {
            let cells = batch.columns().iter().zip(names.fields());
            cells.map(|(array, field)| format!("{} {:?}; ", field.name(), array.slice(row, 1))).collect()
        })
        .collect()
}

/// Returns the rows of one batch of these records.
fn expected(payloads: &[Vec<u8>], numbers: &[u64], options: &Options) -> Vec<String> {
    let converter = Converter::new(&schema(), options).unwrap();
    let chosen: Vec<&Vec<u8>> = numbers.iter().map(|&k| &payloads[k as usize]).collect();
    let batch = BatchParser::parse(&converter.parser(), &chosen).unwrap();
    text(&converter.record_batch(&batch).unwrap())
}

#[test]
fn rows_are_those_of_one_batch_for_every_source_and_size() {
    let dir = tempfile::tempdir().unwrap();
    let payloads = payloads();
    let ds = open(&write(dir.path(), &payloads));
    let all: Vec<u64> = (0..payloads.len() as u64).collect();
    for bytes in [ByteStrings::View, ByteStrings::Copy] {
        let options = Options::new().bytes(bytes).text("name");
        let want = expected(&payloads, &all, &options);
        let scan = Scan::new(&ds, &schema(), &options).unwrap();
        for threads in [0, 2] {
            for batch_rows in [Some(1), Some(7), Some(1000), None] {
                let scan = scan.clone().threads(threads);
                let scan = batch_rows.map_or(scan.clone(), |rows| scan.batch_rows(rows));
                assert_eq!(rows(scan.reader().unwrap()), want, "{batch_rows:?}");
                assert_eq!(rows(scan.reader().unwrap()), want, "the second reader");
            }
        }
        for n in 1..=8 {
            let mut found = Vec::new();
            for share in ds.shares(n).unwrap() {
                for batch_rows in [3, 5000] {
                    let scan = Scan::of_parts(share.clone(), &Converter::new(&schema(), &options).unwrap());
                    let part = rows(scan.batch_rows(batch_rows).reader().unwrap());
                    match batch_rows {
                        3 => found.extend(part),
                        _ => assert!(found.ends_with(&part)),
                    }
                }
            }
            assert_eq!(found, want, "{n} shares");
        }
    }
}

#[test]
fn a_scan_has_the_records_of_its_subset_and_of_its_condition() {
    let dir = tempfile::tempdir().unwrap();
    let payloads = payloads();
    let ds = open(&write(dir.path(), &payloads));
    let scan = Scan::new(&ds, &schema(), &Options::new()).unwrap();
    let filter: Filter = "label in 2..4".parse().unwrap();
    let meets = |k: &u64| !k.is_multiple_of(5) && [2, 3].contains(&(k % 7));
    let all = 0..payloads.len() as u64;

    let odd: Vec<u64> = all.clone().filter(|k| k % 2 == 1).collect();
    let some: Vec<u64> = all.clone().filter(meets).collect();
    let both: Vec<u64> = odd.iter().copied().filter(meets).collect();
    let subset = Subset::from_ids(odd.clone()).unwrap();
    for (scan, want) in [
        (scan.clone().subset(subset.clone()), &odd),
        (scan.clone().filter(filter.clone()), &some),
        (scan.clone().subset(subset.clone()).filter(filter.clone()), &both),
        (scan.clone().subset(Subset::from_ids([]).unwrap()), &vec![]),
    ] {
        let scan = scan.batch_rows(10);
        assert_eq!(rows(scan.reader().unwrap()), expected(&payloads, want, &Options::new()));
        let numbered = scan.record("number").unwrap();
        let found: Vec<u64> = numbered.reader().unwrap().flat_map(|batch| numbers(&batch.unwrap())).collect();
        assert_eq!(found, *want);
        // Without columns, no record is read.
        let none = Schema::example().build().unwrap();
        let bare = Scan::new(&ds, &none, &Options::new()).unwrap().subset(subset_of(want)).batch_rows(4);
        assert_eq!(bare.reader().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), want.len());
        let bare = bare.record("n").unwrap();
        assert_eq!(
            bare.reader().unwrap().flat_map(|batch| numbers(&batch.unwrap())).collect::<Vec<_>>(),
            *want
        );
    }

    // Any order, with repetitions.
    let listed: Vec<u64> = vec![5, 3, 3, 130, 0, 137, 12, 11, 10, 9, 8, 7, 6, 5, 45, 46];
    for batch_rows in [1, 5, 100] {
        let scan = scan.clone().records(listed.clone()).batch_rows(batch_rows);
        assert_eq!(rows(scan.reader().unwrap()), expected(&payloads, &listed, &Options::new()));
        let batches: Vec<usize> = scan.reader().unwrap().map(|batch| batch.unwrap().num_rows()).collect();
        assert!(batches.iter().rev().skip(1).all(|&len| len == batch_rows), "{batches:?}");
        let some: Vec<u64> = listed.iter().copied().filter(meets).collect();
        let scan = scan.filter(filter.clone());
        assert_eq!(rows(scan.reader().unwrap()), expected(&payloads, &some, &Options::new()));
    }
    assert!(scan.clone().records([0, 1 << 40]).reader().map(failure).is_err());
    assert!(failure(scan.clone().records([5, 3, 1 << 40]).reader().unwrap()).contains("1099511627776"));

    // A worker evaluates the condition on each record.
    let shares = ds.shares(3).unwrap();
    let scans = shares.into_iter().map(|share| {
        let scan = Scan::of_parts(share, &Converter::new(&schema(), &Options::new()).unwrap());
        scan.filter(filter.clone()).record("number").unwrap()
    });
    let found: Vec<u64> =
        scans.flat_map(|scan| scan.reader().unwrap()).flat_map(|batch| numbers(&batch.unwrap())).collect();
    assert_eq!(found, some);

    fn subset_of(ids: &[u64]) -> Subset {
        Subset::from_ids(ids.to_vec()).unwrap()
    }
}

/// Returns the values of the first column.
fn numbers(batch: &RecordBatch) -> Vec<u64> {
    batch.column(0).as_primitive::<Int64Type>().values().iter().map(|&number| number as u64).collect()
}

#[test]
fn without_columns_no_record_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write(dir.path(), &payloads());
    let ds = open(&paths);
    for path in &paths {
        fs::write(path, []).unwrap();
    }
    let scan = Scan::new(&ds, &Schema::example().build().unwrap(), &Options::new()).unwrap();
    let counts = scan.reader().unwrap().map(|batch| batch.unwrap().num_rows());
    assert_eq!(counts.sum::<usize>(), SHARDS.iter().sum::<usize>());
}

#[test]
fn errors_name_the_record_and_end_the_reader() {
    let dir = tempfile::tempdir().unwrap();
    let mut payloads = payloads();
    payloads[50] = ExampleBuilder::new().bytes("name", [b"abc\xff"]).encode().unwrap();
    let paths = write(dir.path(), &payloads);
    let ds = open(&paths);
    let sources = |options: &Options| {
        let scan = Scan::new(&ds, &schema(), options).unwrap();
        let parts = ds.shares(1).unwrap().remove(0);
        [scan, Scan::of_parts(parts, &Converter::new(&schema(), options).unwrap())]
    };
    for scan in sources(&Options::new().text("name")) {
        let message = failure(scan.batch_rows(8).reader().unwrap());
        let want = "record 50 of the dataset: column \"name\": expected text in UTF-8, found 4 bytes";
        assert!(message.starts_with(want), "{message}");
    }

    // Damage in the last shard.
    let mut bytes = fs::read(&paths[4]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let times = fs::metadata(&paths[4]).unwrap().modified().unwrap();
    fs::write(&paths[4], bytes).unwrap();
    fs::File::options().write(true).open(&paths[4]).unwrap().set_modified(times).unwrap();
    for scan in sources(&Options::new()) {
        let message = failure(scan.batch_rows(8).reader().unwrap());
        assert!(message.contains("s-00004-of-00005") && message.contains("record"), "{message}");
    }
}

/// Returns the text of the error of a reader, which ends it.
fn failure(mut reader: ScanReader) -> String {
    let error = reader.by_ref().find_map(Result::err).expect("an error");
    assert!(reader.next().is_none());
    match error {
        ArrowError::ExternalError(error) => error.to_string(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_replaced_shard_is_stale_for_its_parts() {
    let dir = tempfile::tempdir().unwrap();
    let paths = write(dir.path(), &payloads());
    let shares = open(&paths).shares(2).unwrap();
    let mut writer = Writer::create(&paths[4]).unwrap();
    (0..100u8).for_each(|k| writer.write(&[k; 30]).unwrap());
    writer.close().unwrap();
    let scan = Scan::of_parts(shares[1].clone(), &Converter::new(&schema(), &Options::new()).unwrap());
    let message = failure(scan.reader().unwrap());
    assert!(message.contains("s-00004-of-00005"), "{message}");
}

#[test]
fn wrong_requests_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ds = open(&write(dir.path(), &payloads()));
    let scan = Scan::new(&ds, &schema(), &Options::new()).unwrap();
    let error = scan.clone().record("label").unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Schema(_)), "{error}");
    let parts =
        Scan::of_parts(ds.shares(1).unwrap().remove(0), &Converter::new(&schema(), &Options::new()).unwrap());
    let error = parts.subset(Subset::from_ids([1]).unwrap()).reader().unwrap_err();
    assert!(error.to_string().contains("a scan of a dataset for chosen records"), "{error}");
    let unknown = scan.filter("lable == 1".parse().unwrap()).reader().unwrap_err();
    assert!(unknown.to_string().contains("lable"), "{unknown}");
}

#[test]
fn schemas_have_the_types_of_pandas_for_integers_that_may_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let ds = open(&write(dir.path(), &payloads()));
    let schema = Schema::example()
        .feature("label", FeatureSpec::optional(DType::Int64))
        .feature("weight", FeatureSpec::optional(DType::Float32))
        .feature("name", FeatureSpec::fixed_len(&[], DType::Bytes))
        .build()
        .unwrap();
    let scan = Scan::new(&ds, &schema, &Options::new()).unwrap().record("number").unwrap();
    let pandas = &scan.schema().metadata()["pandas"];
    let pandas: serde_json::Value = serde_json::from_str(pandas).unwrap();
    assert_eq!(pandas["columns"].as_array().unwrap().len(), 1);
    let column = &pandas["columns"][0];
    assert_eq!((&column["field_name"], &column["numpy_type"]), (&"label".into(), &"Int64".into()));
    assert_eq!(scan.reader().unwrap().schema(), *scan.schema());
    assert!(scan.project(&["name", "weight"]).unwrap().schema().metadata().is_empty());
    assert!(scan.project(&["label"]).unwrap().schema().metadata().contains_key("pandas"));
}
