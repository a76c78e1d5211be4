//! No allocation is sized by a record length beyond `max_record`, whichever way the record is read.

#![allow(unsafe_code)] // `Mapped` has one unsafe constructor.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use tfseek::Damage;
use tfseek::loader::Shuffle;
use tfseek::stream::StreamOptions;
use tfseek::{Dataset, DatasetOptions, ErrorKind, ExampleBuilder, IndexMode, Loader, Mapped, Schema, Stream};
use tfseek_testkit::alloc;
use tfseek_testkit::shards::{options, records};
use tfseek_testkit::tensors::field;
use tfseek_testkit::twin::put_header;

const GIB: u64 = 1 << 30;
/// Upper limit for a single allocation.
const CAP: usize = 16 << 20;
const DEFAULT: u64 = i32::MAX as u64;

fn example(label: i64) -> Vec<u8> {
    ExampleBuilder::new().int64("label", [label]).encode().unwrap()
}

/// Writes three records. The middle one is a hole of 60 GiB after a valid header.
fn sparse(dir: &Path) -> PathBuf {
    let path = dir.join("sparse.tfrecord");
    let mut file = File::create(&path).unwrap();
    let mut bytes = records(&[&example(0)]);
    put_header(&mut bytes, 60 * GIB).unwrap();
    file.write_all(&bytes).unwrap();
    let end = bytes.len() as u64 + 60 * GIB + 4;
    file.set_len(end).unwrap();
    use std::io::Seek;
    file.seek(std::io::SeekFrom::Start(end)).unwrap();
    file.write_all(&records(&[&example(2)])).unwrap();
    path
}

fn in_memory() -> DatasetOptions {
    DatasetOptions::new().index(options().mode(IndexMode::Memory))
}

#[track_caller]
fn assert_refused<T>(found: tfseek::Result<T>, len: u64, limit: u64) {
    let e = found.err().expect("the record is longer than max_record");
    match e.kind() {
        ErrorKind::RecordTooLarge { len: l, max_record: m } => assert_eq!((*l, *m), (len, limit)),
        other => panic!("{other:?}"),
    }
    assert!(e.is_data());
    assert!(e.to_string().contains("expected a payload of at most"), "{e}");
    let place = e.location();
    assert!(place.path.is_some() && place.record == Some(1) && place.offset.is_some(), "{place:?}");
}

/// Checks every public access to a record. Record 1 has `len` bytes, more than `limit`; records 0 and 2 are
/// Examples.
fn check_every_access(ds: &Dataset, len: u64, limit: u64) {
    let refused = |found: tfseek::Result<()>| assert_refused(found, len, limit);
    let mut buf = Vec::new();
    for i in [0, 2] {
        let label = ds.read(i, &mut buf).unwrap().example().int64("label").unwrap().first();
        assert_eq!(label, Some(i as i64), "other records stay readable");
    }
    refused(ds.read(1, &mut buf).map(drop));
    let mut seen = 0;
    let mut count = |_: tfseek::Record<'_>| {
        seen += 1;
        Ok(())
    };
    refused(ds.read_many(&[0, 2, 1], &mut count));
    refused(ds.read_many(&[0, 1, 2], &mut count));
    assert_eq!(seen, 3, "the records before it were delivered");
    if let Some(mapped) = Mapped::from_dataset(ds) {
        refused(mapped.get(1).map(drop));
        refused(mapped.get_many(&[1]).next().unwrap().map(drop));
        refused(mapped.iter().nth(1).unwrap().map(drop));
        refused(mapped.range(1..2).unwrap().next().unwrap().map(drop));
    }
    refused(ds.column("label", &Default::default()).map(drop));
    refused(ds.select(&"label == 2".parse().unwrap(), &Default::default()).map(drop));

    let schema =
        Schema::from_json(r#"{"features": {"label": {"type": "fixed", "dtype": "int64", "shape": []}}}"#);
    let schema = schema.unwrap();
    let loader = |parsed: bool, policy: Damage| -> Loader {
        let options = if parsed { ds.loader(&schema) } else { ds.record_loader() };
        // In this thread, whose allocations are counted.
        options.batch_size(3).shuffle(Shuffle::None).threads(0).damage(policy).build().unwrap()
    };
    for parsed in [true, false] {
        refused(loader(parsed, Damage::Raise).next().unwrap().map(drop));
        let step = loader(parsed, Damage::Skip).next().unwrap().unwrap();
        assert_eq!(step.ids, [0, 2]);
        assert_eq!(step.skipped.len(), 1);
        assert!(matches!(step.skipped[0].1.kind(), ErrorKind::RecordTooLarge { .. }));
    }
}

fn stream(mut stream: Stream, len: u64, limit: u64) {
    assert!(stream.next().unwrap().is_some());
    assert_refused(stream.next().map(drop), len, limit);
    assert!(stream.next().unwrap().is_none(), "a stream ends with its error");
}

#[test]
fn a_record_of_60_gib_is_refused_before_allocation() {
    let dir = tempfile::tempdir().unwrap();
    let path = sparse(dir.path());
    let mapped = |options: DatasetOptions| -> Mapped {
        // SAFETY: the file is written once, above.
        unsafe { options.open_mapped(&path) }.unwrap()
    };
    let (_, held) = alloc::most_held(CAP, || {
        check_every_access(&in_memory().open(&path).unwrap(), 60 * GIB, DEFAULT);
        check_every_access(mapped(in_memory()).dataset(), 60 * GIB, DEFAULT);
        stream(Stream::open(&path).unwrap(), 60 * GIB, DEFAULT);
        let file = File::open(&path).unwrap();
        stream(StreamOptions::default().read(file, path.clone()).unwrap(), 60 * GIB, DEFAULT);
    });
    assert!(held < 64 << 20, "{held} bytes were held");
}

/// If `max_record` allows a length for which there is not enough memory, the result is an error and not an
/// abort.
#[test]
fn out_of_memory_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = sparse(dir.path());
    let ds = in_memory().max_record(u64::MAX).open(&path).unwrap();
    let mut buf = Vec::new();
    let mut failed = |limit: u64| {
        let ds = in_memory().max_record(limit).open(&path).unwrap();
        let e = ds.read(1, &mut buf).err().unwrap();
        assert_eq!(e.location().record, Some(1));
        e
    };
    // The test allocator aborts the process if an infallible allocation exceeds the cap.
    let e = alloc::most_held(CAP, || failed(u64::MAX)).0;
    assert!(matches!(e.kind(), ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::OutOfMemory), "{e}");
    let schema =
        Schema::from_json(r#"{"features": {"label": {"type": "varlen", "dtype": "int64"}}}"#).unwrap();
    let (e, _) = alloc::most_held(CAP, || {
        ds.loader(&schema).batch_size(3).threads(0).build().unwrap().next().unwrap().err().unwrap()
    });
    assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)), "{e}");
    let (e, _) = alloc::most_held(CAP, || ds.column("label", &Default::default()).err().unwrap());
    assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)), "{e}");
    let (e, _) = alloc::most_held(CAP, || {
        let mut stream =
            StreamOptions { max_record: u64::MAX, ..StreamOptions::default() }.open(&path).unwrap();
        stream.next().unwrap();
        stream.next().map(drop).unwrap_err()
    });
    assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)), "{e}");
}

/// A short record may have many values: 4 million of one byte, which take 32 MB.
#[test]
fn values_without_memory_are_an_error() {
    let ints = field(3, &field(1, &vec![1; 4_000_000]));
    let payload = field(1, &field(1, &[field(1, b"label"), field(2, &ints)].concat()));
    for spec in [
        r#"{"type": "varlen", "dtype": "int64"}"#,
        r#"{"type": "ragged", "dtype": "int64"}"#,
        r#"{"type": "fixed_sequence", "shape": [], "dtype": "int64", "allow_missing": true}"#,
    ] {
        let Ok(schema) = Schema::from_json(&format!(r#"{{"features": {{"label": {spec}}}}}"#)) else {
            panic!("{spec}");
        };
        let parser = tfseek::BatchParser::new(&schema);
        parser.parse(&[&payload[..], &payload]).unwrap();
        let parser = tfseek::BatchParser::new(&schema);
        // A request above 8 MiB is refused; an infallible one ends the process.
        let (e, _) = alloc::most_held(8 << 20, || parser.parse(&[&payload[..]]).err().unwrap());
        assert!(
            matches!(e.kind(), ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::OutOfMemory),
            "{spec}: {e}"
        );
        parser.parse(&[&payload[..]]).unwrap();
        // The values fit, their indices or the padded rows do not.
        let (parsed, _) = alloc::most_held(40 << 20, || parser.parse(&[&payload[..], &b""[..]]).map(drop));
        assert!(parsed.is_ok() || parsed.unwrap_err().to_string().contains("not enough memory"));
    }
}

#[test]
fn max_record_counts_payload_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tfrecord");
    let long = ExampleBuilder::new().int64("label", [1]).bytes("b", [vec![7; 900]]).encode().unwrap();
    let bytes = records(&[&example(0), &long, &example(2)]);
    std::fs::write(&path, &bytes).unwrap();
    let (len, limit) = (long.len() as u64, long.len() as u64 - 1);
    let with = |limit| in_memory().max_record(limit);
    // SAFETY: the file is written once, above.
    let mapped = |options: DatasetOptions| unsafe { options.open_mapped(&path) }.unwrap();
    for ds in [with(limit).open(&path).unwrap(), mapped(with(limit)).dataset().clone()] {
        check_every_access(&ds, len, limit);
    }
    let region = tfseek::io::Region::new(bytes.clone());
    check_every_access(with(limit).open_regions([region]).unwrap().dataset(), len, limit);
    for ds in [with(len).open(&path).unwrap(), mapped(with(len)).dataset().clone()] {
        assert_eq!(ds.read(1, &mut Vec::new()).unwrap().payload(), long);
        assert_eq!(ds.column("label", &Default::default()).unwrap().count(), 3);
    }
    let plain = || StreamOptions { max_record: limit, ..StreamOptions::default() };
    stream(plain().open(&path).unwrap(), len, limit);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).unwrap();
    stream(plain().read(Cursor::new(gzip.finish().unwrap()), "gzip").unwrap(), len, limit);
    let mut all = StreamOptions { max_record: len, ..StreamOptions::default() }.open(&path).unwrap();
    for _ in 0..3 {
        assert!(all.next().unwrap().is_some());
    }
}
