//! Parquet and Arrow IPC: there and back, files of other writers, damaged files.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int8Array, Int64Array, RecordBatch, StringArray,
    TimestampSecondArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tfseek::example::MessageKind;
use tfseek::{
    DType, Dataset, DatasetOptions, ExampleBuilder, FeatureBuf, FeatureSpec, IndexMode, Schema,
    SequenceExampleBuilder, Stream, Writer,
};
use tfseek_convert::{ConvertError, ExportOptions, ImportOptions, export, import, stream};
use tfseek_testkit::rng::Rng;
use tfseek_tools::{Content, digest};

const FORMATS: [&str; 3] = ["t.parquet", "t.arrow", "t.arrows"];

fn write(path: &Path, payloads: &[Vec<u8>]) {
    let mut writer = Writer::create(path).unwrap();
    payloads.iter().for_each(|payload| writer.write(payload).unwrap());
    writer.close().unwrap();
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let mut stream = Stream::open(path).unwrap();
    let mut payloads = Vec::new();
    while let Some(record) = stream.next().unwrap() {
        payloads.push(record.payload().to_vec());
    }
    payloads
}

fn dataset(path: &Path) -> Dataset {
    DatasetOptions::new().index(IndexMode::Memory).open(path).unwrap()
}

fn digests(payloads: &[Vec<u8>], kind: MessageKind) -> Vec<String> {
    payloads
        .iter()
        .map(|payload| digest::content(&Content::decode(payload, kind).unwrap()).unwrap())
        .collect()
}

fn forced() -> ImportOptions {
    let mut options = ImportOptions::default();
    options.force = true;
    options
}

/// Converts the records of a file to a table, and the table to records.
fn there_and_back(dir: &Path, table: &str, options: &ExportOptions) -> Vec<Vec<u8>> {
    let (table, back) = (dir.join(table), dir.join("back.tfrecord"));
    let mut options = options.clone();
    options.force = true;
    let report = export(&dataset(&dir.join("a.tfrecord")), &table, &options, &|_| {}).unwrap();
    assert_eq!(report.bytes, fs::metadata(&table).unwrap().len());
    let again = import(&[table], &back, &forced(), &|_| {}).unwrap();
    assert_eq!(again.records, report.records);
    read(&back)
}

/// The kind of a feature of generated records, and its numbers of values.
#[derive(Clone, Copy)]
struct Shape {
    kind: usize,
    always: bool,
    min: usize,
    max: usize,
}

fn value(rng: &mut Rng, shape: Shape) -> FeatureBuf {
    let n = shape.min + rng.below(shape.max - shape.min + 1);
    match shape.kind {
        0 => FeatureBuf::Int64((0..n).map(|_| rng.pick(&[0, 1, -1, i64::MIN, i64::MAX])).collect()),
        // The bits of a NaN, and both zeros.
        1 => FeatureBuf::Float(
            (0..n)
                .map(|_| rng.pick(&[0.0, -0.0, 1.5, f32::from_bits(0x7fc0_1234), f32::INFINITY, 1e-45]))
                .collect(),
        ),
        _ => FeatureBuf::Bytes(
            (0..n).map(|_| vec![rng.below(256) as u8; rng.pick(&[0, 1, 13, 300])]).collect(),
        ),
    }
}

const NAMES: [&str; 7] = ["a", "a/b", "größe", "a.b", "with \"quotes\" and spaces", "", "item"];

/// Returns records with the same features, of one kind each.
fn records(rng: &mut Rng, sequence: bool) -> Vec<Vec<u8>> {
    let shape = |rng: &mut Rng| {
        let (min, max) = rng.pick(&[(1, 1), (1, 1), (0, 1), (0, 3), (2, 2), (0, 0)]);
        Shape { kind: rng.below(3), always: rng.chance(2), min, max }
    };
    let shapes: Vec<Shape> = NAMES.iter().map(|_| shape(rng)).collect();
    let lists: Vec<Shape> = (0..3).map(|_| shape(rng)).collect();
    let mut payloads = Vec::new();
    for _ in 0..1 + rng.below(30) {
        let mut features: Vec<(&str, FeatureBuf)> = Vec::new();
        for (name, &shape) in NAMES.iter().zip(&shapes) {
            if shape.always || rng.chance(2) {
                features.push((name, value(rng, shape)));
            }
        }
        if !sequence {
            let builder = ExampleBuilder::new().int64("id", [7]);
            payloads.push(features.into_iter().fold(builder, |b, (k, v)| b.feature(k, v)).encode().unwrap());
            continue;
        }
        let builder = SequenceExampleBuilder::new().int64("id", [7]);
        let mut builder = features.into_iter().fold(builder, |b, (k, v)| b.feature(k, v));
        for (k, &shape) in lists.iter().enumerate() {
            if shape.always || rng.chance(2) {
                let steps: Vec<FeatureBuf> = (0..rng.below(4)).map(|_| value(rng, shape)).collect();
                builder = builder.feature_list(format!("list{k}"), steps);
            }
        }
        payloads.push(builder.encode().unwrap());
    }
    payloads
}

#[test]
fn records_of_one_writer_there_and_back() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let sequence = seed % 3 == 0;
        let payloads = records(&mut rng, sequence);
        write(&dir.path().join("a.tfrecord"), &payloads);
        let mut options = ExportOptions::default();
        let kind = if sequence { MessageKind::SequenceExample } else { MessageKind::Example };
        options.kind = Some(kind);
        options.row_group_bytes = Some(rng.pick(&[1, 300, 1 << 20]));
        options.threads = Some(rng.below(3));
        for format in FORMATS {
            let back = there_and_back(dir.path(), format, &options);
            assert_eq!(digests(&back, kind), digests(&payloads, kind), "seed {seed}, {format}");
            // The builder writes the bytes of Python's deterministic serialization, and so does the way back.
            assert!(sequence || back == payloads, "seed {seed}, {format}");
        }
    }
}

#[test]
fn other_encodings_and_features_without_a_kind() {
    let dir = tempfile::tempdir().unwrap();
    // `a` = [1], packed and not packed; an absent `features`; a feature without a kind.
    let payloads = [
        &b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x01"[..],
        b"\x0a\x0b\x0a\x09\x0a\x01a\x12\x04\x1a\x02\x08\x01",
        b"",
        b"\x0a\x07\x0a\x05\x0a\x01a\x12\x00",
    ];
    let payloads = payloads.map(<[u8]>::to_vec);
    write(&dir.path().join("a.tfrecord"), &payloads);
    for format in FORMATS {
        let back = there_and_back(dir.path(), format, &ExportOptions::default());
        assert_eq!(digests(&back[..3], MessageKind::Example), digests(&payloads[..3], MessageKind::Example));
        // It is absent after the way back.
        assert_eq!(digests(&back[3..], MessageKind::Example), digests(&payloads[2..3], MessageKind::Example));
        assert_eq!(back[0], payloads[0]);
    }
}

#[test]
fn the_first_pass_reads_all_records_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    const N: i64 = 40_000;
    let record = |i: i64| {
        let record = ExampleBuilder::new().int64("a", [i]).float("most", [i as f32; 1]);
        let record = if i % 3 == 0 { record.bytes("some", [format!("{i}")]) } else { record };
        // Only the last record shows that `a` is a list, and has a key that no other has.
        let record =
            if i == N - 1 { ExampleBuilder::new().int64("a", [1, 2]).int64("late", [i]) } else { record };
        record.encode().unwrap()
    };
    let mut payloads: Vec<Vec<u8>> = (0..N).map(record).collect();
    // A feature without a kind in two records, and one of whose two entries the last counts.
    for i in [7, 33_000] {
        payloads[i].extend(b"\x0a\x08\x0a\x06\x0a\x02no\x12\x00");
    }
    let twice = [record(5), b"\x0a\x0e\x0a\x0c\x0a\x01a\x12\x07\x0a\x05\x0a\x03abc".to_vec()].concat();
    write(&at("x.tfrecord"), &payloads);
    let ds = dataset(&at("x.tfrecord"));
    let convert = |name: &str, threads: usize, features: &[&str]| {
        let mut options = ExportOptions::default();
        (options.threads, options.force) = (Some(threads), true);
        options.features = features.iter().map(|name| name.to_string()).collect();
        let (calls, sum) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let progress = |n: u64| (calls.set(calls.get() + 1), sum.set(sum.get() + n)).0;
        let report = export(&ds, &at(name), &options, &progress).unwrap();
        assert_eq!((report.records, sum.get()), (N as u64, N as u64));
        assert!(calls.get() > 4, "each pass tells of its parts");
        (report.kindless, fs::read(at(name)).unwrap())
    };
    let (kindless, bytes) = convert("a.arrow", 0, &[]);
    assert_eq!(kindless, 2);
    for threads in [1, 2, 5] {
        assert!(convert("b.arrow", threads, &[]) == (2, bytes.clone()), "{threads} threads");
    }
    let schema = FileReader::try_new(File::open(at("a.arrow")).unwrap(), None).unwrap().schema();
    let types = ["a", "late", "most", "some"];
    let types = types.map(|name| schema.field_with_name(name).unwrap().data_type().clone());
    assert!(schema.fields().len() == 4 && matches!(types[0], DataType::List(_)), "{schema:?}");
    assert_eq!(types[1..], [DataType::Int64, DataType::Float32, DataType::Binary]);
    assert_eq!(convert("c.arrow", 2, &["a"]).0, 0, "features that are not converted do not count");
    // A schema loses on purpose.
    let mut options = ExportOptions::default();
    options.schema =
        Some(Schema::example().feature("a", FeatureSpec::var_len(DType::Int64)).build().unwrap());
    assert_eq!(export(&ds, &at("d.parquet"), &options, &|_| {}).unwrap().kindless, 0);
    // `a` is a byte string in the last entry, and in no other record.
    write(&at("twice.tfrecord"), &[twice.clone(), twice]);
    let ds = dataset(&at("twice.tfrecord"));
    export(&ds, &at("twice.arrow"), &ExportOptions::default(), &|_| {}).unwrap();
    let schema = FileReader::try_new(File::open(at("twice.arrow")).unwrap(), None).unwrap().schema();
    assert_eq!(*schema.field_with_name("a").unwrap().data_type(), DataType::Binary);
}

#[test]
fn columns_have_the_documented_types() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let payloads = [
        SequenceExampleBuilder::new()
            .int64("always", [1])
            .int64("some", [1])
            .float("empty", [0f32; 0])
            .bytes("name", ["ä"])
            .int64("two", [1, 2])
            .feature_list("steps", [FeatureBuf::Float(vec![0.5])]),
        SequenceExampleBuilder::new()
            .int64("always", [2])
            .float("empty", [1f32])
            .bytes("name", ["b"])
            .int64("two", [3, 4]),
    ];
    write(&path, &payloads.map(|builder| builder.encode().unwrap()));
    let mut options = ExportOptions::default();
    options.force = true;
    options.text = vec!["na*".into()];
    let table = dir.path().join("t.arrow");
    export(&dataset(&path), &table, &options, &|_| {}).unwrap();
    let reader = FileReader::try_new(File::open(&table).unwrap(), None).unwrap();
    let schema = reader.schema();
    let list = |inner| DataType::List(Arc::new(Field::new("item", inner, false)));
    let column = |name: &str| {
        (
            schema.field_with_name(name).unwrap().data_type().clone(),
            schema.field_with_name(name).unwrap().is_nullable(),
        )
    };
    assert_eq!(column("always"), (DataType::Int64, false));
    assert_eq!(column("some"), (DataType::Int64, true));
    assert_eq!(column("empty"), (list(DataType::Float32), true));
    assert_eq!(column("two"), (list(DataType::Int64), true));
    assert_eq!(column("name"), (DataType::Utf8, false));
    assert_eq!(column("steps"), (list(list(DataType::Float32)), true));
    assert_eq!(schema.metadata()["tfseek.feature_lists"], "[\"steps\"]");
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(batches[0]["always"].as_primitive::<Int64Type>().values(), &[1, 2]);

    // The file, the stream and Parquet have the same rows.
    export(&dataset(&path), &dir.path().join("t.arrows"), &options, &|_| {}).unwrap();
    let reader = StreamReader::try_new(File::open(dir.path().join("t.arrows")).unwrap(), None).unwrap();
    assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), batches);
    let mut out = Vec::new();
    let report = stream(&dataset(&path), &options, &mut out, &|_| {}).unwrap();
    assert_eq!((report.path.to_str(), report.records, report.kindless), (Some("-"), 2, 0));
    assert_eq!(out, fs::read(dir.path().join("t.arrows")).unwrap());
    export(&dataset(&path), &dir.path().join("t.parquet"), &options, &|_| {}).unwrap();
    let file = File::open(dir.path().join("t.parquet")).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(builder.schema().metadata(), schema.metadata());
    let reader = builder.build().unwrap();
    let columns = |batch: &RecordBatch| batch.columns().to_vec();
    let rows: Vec<_> = reader.map(|batch| columns(&batch.unwrap())).collect();
    assert_eq!(rows, batches.iter().map(columns).collect::<Vec<_>>());

    // A given schema has the columns, and so have patterns.
    options.text.clear();
    let schema = Schema::example()
        .feature("two", FeatureSpec::fixed_len(&[2], DType::Int64))
        .feature("name", FeatureSpec::var_len(DType::Bytes));
    options.schema = Some(schema.build().unwrap());
    options.features = vec!["t*".into()];
    export(&dataset(&path), &table, &options, &|_| {}).unwrap();
    let schema = FileReader::try_new(File::open(&table).unwrap(), None).unwrap().schema();
    assert_eq!(schema.fields().len(), 1);
    assert!(matches!(schema.field_with_name("two").unwrap().data_type(), DataType::FixedSizeList(_, 2)));
}

#[test]
fn row_groups_end_by_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let mut rng = Rng::new(1);
    let payloads: Vec<_> = (0..200)
        .map(|_| {
            let bytes: Vec<u8> = (0..1000).map(|_| rng.below(256) as u8).collect();
            ExampleBuilder::new().bytes("b", [bytes]).encode().unwrap()
        })
        .collect();
    write(&path, &payloads);
    let mut options = ExportOptions::default();
    options.row_group_bytes = Some(50_000);
    let back = there_and_back(dir.path(), "t.parquet", &options);
    assert!(back == payloads);
    let file = File::open(dir.path().join("t.parquet")).unwrap();
    let metadata = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().metadata().clone();
    // The first group has all rows of a batch of records that are this small.
    assert!(metadata.row_groups().iter().map(|group| group.num_rows()).sum::<i64>() == 200);
    let by_default = there_and_back(dir.path(), "t.parquet", &ExportOptions::default());
    assert!(by_default == payloads);
}

/// A table as other writers make it: a dictionary, narrow and wide numbers, nulls.
fn foreign() -> (RecordBatch, Vec<Vec<u8>>) {
    let words = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![Some(1), None, Some(0)]),
        Arc::new(StringArray::from(vec!["ant", "bee"])),
    );
    let batch = RecordBatch::try_from_iter([
        ("word", Arc::new(words) as ArrayRef),
        ("small", Arc::new(Int8Array::from(vec![1, -2, 3]))),
        ("wide", Arc::new(Float64Array::from(vec![Some(0.5), Some(f64::INFINITY), None]))),
    ])
    .unwrap();
    let rows = [
        ExampleBuilder::new().bytes("word", ["bee"]).int64("small", [1]).float("wide", [0.5f32]),
        ExampleBuilder::new().int64("small", [-2]).float("wide", [f32::INFINITY]),
        ExampleBuilder::new().bytes("word", ["ant"]).int64("small", [3]),
    ];
    (batch, rows.map(|builder| builder.encode().unwrap()).to_vec())
}

#[test]
fn files_of_other_writers() {
    let dir = tempfile::tempdir().unwrap();
    let (batch, want) = foreign();
    let back = dir.path().join("back.tfrecord");
    let convert =
        |path: &PathBuf| import(std::slice::from_ref(path), &back, &forced(), &|_| {}).map(|_| read(&back));
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
    ] {
        let path = dir.path().join("f.parquet");
        let properties =
            WriterProperties::builder().set_compression(codec).set_max_row_group_row_count(Some(2)).build();
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        assert_eq!(convert(&path).unwrap(), want);
    }
    // Streams also have the suffix of files.
    for (name, codec) in [("f.feather", Some(CompressionType::LZ4_FRAME)), ("f.arrows", None)] {
        let path = dir.path().join(name);
        let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
        let mut writer =
            FileWriter::try_new_with_options(File::create(&path).unwrap(), &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        assert_eq!(convert(&path).unwrap(), [want.clone(), want.clone()].concat());
    }

    let fails = |path: &PathBuf, words: &[&str]| {
        let e = convert(path).unwrap_err().to_string();
        assert!(words.iter().all(|word| e.contains(word)), "{e}");
    };
    let path = dir.path().join("g.arrow");
    let times =
        RecordBatch::try_from_iter([("t", Arc::new(TimestampSecondArray::from(vec![1])) as ArrayRef)])
            .unwrap();
    let mut writer = FileWriter::try_new(File::create(&path).unwrap(), &times.schema()).unwrap();
    writer.write(&times).unwrap();
    writer.finish().unwrap();
    fails(&path, &["g.arrow: column \"t\"", "Timestamp"]);
    fs::write(&path, b"FEA1....").unwrap();
    fails(&path, &["g.arrow: expected an Arrow IPC file or stream, found Feather version 1"]);
    fs::write(&path, b"ARROW1").unwrap();
    fails(&path, &["g.arrow: expected an Arrow IPC file or stream, found 6 bytes"]);
    let path = dir.path().join("g.parquet");
    fs::write(&path, b"PAR1 is not enough").unwrap();
    fails(&path, &["g.parquet: "]);
}

/// A stream may end without its mark, after any message. The reader of the crate does not refuse numbers in
/// another byte order.
#[test]
fn the_ends_and_the_byte_order_of_streams() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.arrows");
    let convert = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let out = dir.path().join("out.tfrecord");
        let found = import(std::slice::from_ref(&path), &out, &forced(), &|_| {});
        found.map(|report| report.records).map_err(|e| e.to_string())
    };
    let numbers = |n: i64| {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(0..n)) as ArrayRef)]).unwrap()
    };
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, &numbers(0).schema()).unwrap();
    let schema = writer.get_ref().len();
    let mut ends = vec![];
    for n in [3, 0, 4, 0] {
        writer.write(&numbers(n)).unwrap();
        ends.push(writer.get_ref().len());
    }
    writer.finish().unwrap();
    drop(writer);
    assert_eq!(convert(&stream), Ok(7));
    assert_eq!(convert(&stream[..schema]), Ok(0));
    assert_eq!(ends.iter().map(|end| convert(&stream[..*end]).unwrap()).collect::<Vec<_>>(), [3, 3, 7, 7]);
    for len in [ends[3] - 1, ends[3] + 1, ends[3] + 4, ends[3] + 7, ends[0] - 9, schema + 100] {
        let e = convert(&stream[..len]).unwrap_err();
        assert!(e.contains("one that is cut off: it ends inside a message"), "{len}: {e}");
    }
    let e = convert(b"id,name\n1,x\n").unwrap_err();
    assert!(e.contains("expected an Arrow IPC file or stream, found no message of one"), "{e}");

    let mut bytes = flatbuffers::FlatBufferBuilder::new();
    let fields = bytes.create_vector::<flatbuffers::ForwardsUOffset<arrow_ipc::Field<'_>>>(&[]);
    let mut schema = arrow_ipc::SchemaBuilder::new(&mut bytes);
    schema.add_endianness(arrow_ipc::Endianness::Big);
    schema.add_fields(fields);
    let schema = schema.finish();
    let mut message = arrow_ipc::MessageBuilder::new(&mut bytes);
    message.add_version(arrow_ipc::MetadataVersion::V5);
    message.add_header_type(arrow_ipc::MessageHeader::Schema);
    message.add_header(schema.as_union_value());
    let message = message.finish();
    bytes.finish(message, None);
    let metadata = bytes.finished_data();
    let len = u32::try_from(metadata.len()).unwrap().to_le_bytes();
    let e = convert(&[&[0xff; 4], &len[..], metadata].concat()).unwrap_err();
    assert!(e.contains("found values in another byte order"), "{e}");
}

/// The decompressed length that a buffer states is compared with its compressed bytes before memory is
/// allocated for it.
#[test]
fn a_buffer_that_states_petabytes() {
    let dir = tempfile::tempdir().unwrap();
    let numbers = Arc::new(Int64Array::from_iter_values(0..10_000)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let options =
        || IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
    let (mut file, mut stream) = (Vec::new(), Vec::new());
    let mut writer = FileWriter::try_new_with_options(&mut file, &batch.schema(), options()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let mut writer = StreamWriter::try_new_with_options(&mut stream, &batch.schema(), options()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    for (name, sound) in [("a.feather", file), ("a.arrows", stream)] {
        let path = dir.path().join(name);
        let import = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let out = dir.path().join("out.tfrecord");
            import(std::slice::from_ref(&path), &out, &forced(), &|_| {}).map(|report| report.records)
        };
        assert_eq!(import(&sound).unwrap(), 10_000);
        let len = 80_000u64.to_le_bytes();
        let at = sound.windows(8).position(|window| window == len).unwrap();
        for stated in [40i64 << 50, i64::MAX, i64::MIN, -2, 80_000 * 255] {
            let mut forged = sound.clone();
            forged[at..at + 8].copy_from_slice(&stated.to_le_bytes());
            let e = import(&forged).unwrap_err().to_string();
            let words = format!("{name}: expected an Arrow IPC file or stream, found a buffer of ");
            assert!(e.contains(&words) && e.contains(&format!("states {stated} ")), "{e}");
        }
    }
}

/// Every file that is cut off is an error. Files with changed bytes are records or an error.
#[test]
fn damaged_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(5);
    write(&dir.path().join("a.tfrecord"), &records(&mut rng, true));
    let mut options = ExportOptions::default();
    options.kind = Some(MessageKind::SequenceExample);
    let mut read_again = [0; 3];
    for (k, format) in FORMATS.into_iter().enumerate() {
        there_and_back(dir.path(), format, &options);
        let sound = fs::read(dir.path().join(format)).unwrap();
        let path = dir.path().join(format!("damaged-{format}"));
        let back = dir.path().join("new.tfrecord");
        let convert = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            import(std::slice::from_ref(&path), &back, &forced(), &|_| {})
        };
        for len in (0..sound.len()).step_by(1 + sound.len() / 150) {
            convert(&sound[..len]).unwrap_err();
            assert!(!back.exists());
        }
        for _ in 0..600 {
            let mut bytes = sound.clone();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(bytes.len());
                bytes[at] = rng.pick(&[0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x40]);
            }
            if convert(&bytes).is_ok() {
                read_again[k] += 1;
                fs::remove_file(&back).unwrap();
            }
        }
    }
    assert!(read_again.iter().all(|&n| n > 5), "{read_again:?}");
}

#[test]
fn errors_name_feature_and_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let table = dir.path().join("t.parquet");
    let fails = |payloads: &[ExampleBuilder], options: &ExportOptions, words: &[&str]| {
        let payloads: Vec<_> = payloads.iter().map(|builder| builder.encode().unwrap()).collect();
        write(&path, &payloads);
        let e = export(&dataset(&path), &table, options, &|_| {}).unwrap_err();
        let text = e.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert!(!table.exists());
        e
    };
    let (one, other) = (ExampleBuilder::new().int64("a", [1]), ExampleBuilder::new().float("a", [1f32]));
    let mut options = ExportOptions::default();
    let e = fails(&[one.clone(), other], &options, &["\"a\"", "int64", "float", "leave the feature out"]);
    assert!(matches!(e, ConvertError::Records(_)));
    fails(&[ExampleBuilder::new()], &options, &["expected a feature with a kind"]);
    fails(&[], &options, &["expected at least one record to infer a schema from"]);
    options.text = vec!["a".into()];
    fails(
        std::slice::from_ref(&one),
        &options,
        &["expected a feature of byte strings that matches a for text, found none"],
    );
    options.text = vec!["b".into()];
    let (good, bad) = (ExampleBuilder::new().bytes("b", ["x"]), ExampleBuilder::new().bytes("b", [b"\xff"]));
    fails(&[good.clone(), good, bad], &options, &["record 2", "\"b\"", "UTF-8"]);
    let mut options = ExportOptions::default();
    options.features = vec!["x*".into()];
    fails(std::slice::from_ref(&one), &options, &["expected a feature that matches x*, found none"]);
    options.features = vec!["A".into()];
    fails(std::slice::from_ref(&one), &options, &["matches A, found none; the nearest name is a"]);
    let mut options = ExportOptions::default();
    options.schema =
        Some(Schema::example().feature("c", FeatureSpec::fixed_len(&[], DType::Int64)).build().unwrap());
    let e = fails(&[one], &options, &["a.tfrecord", "record 0", "\"c\""]);
    assert!(matches!(e, ConvertError::Error(_)));
}

#[test]
fn sets_of_shards() {
    let dir = tempfile::tempdir().unwrap();
    let payloads: Vec<_> = (0..10).map(|i| ExampleBuilder::new().int64("i", [i]).encode().unwrap()).collect();
    write(&dir.path().join("a.tfrecord"), &payloads);
    for format in FORMATS.into_iter().chain(["t.jsonl"]) {
        let table = dir.path().join(format);
        export(&dataset(&dir.path().join("a.tfrecord")), &table, &ExportOptions::default(), &|_| {}).unwrap();
        let e = export(&dataset(&dir.path().join("a.tfrecord")), &table, &ExportOptions::default(), &|_| {});
        assert!(matches!(e, Err(ConvertError::Conflict(_))));
        let out = dir.path().join(format!("{format}@3.tfrecord"));
        let report =
            import(&[table.clone(), table.clone()], &out, &ImportOptions::default(), &|_| {}).unwrap();
        assert_eq!((report.records, report.shards.len(), &report.path), (20, 3, &out));
        let found: Vec<_> = report.shards.iter().flat_map(|shard| read(shard)).collect();
        assert_eq!(found, [payloads.clone(), payloads.clone()].concat(), "{format}");
        let e = import(std::slice::from_ref(&table), &out, &ImportOptions::default(), &|_| {});
        assert!(matches!(e, Err(ConvertError::Conflict(_))));
    }
}
