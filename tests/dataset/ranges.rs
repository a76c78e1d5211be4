//! Datasets of some records of another one: each way to read them agrees with the records of the whole.

#![expect(clippy::single_range_in_vec_init, reason = "a list of one range is one")]

use std::ops::Range;
use std::path::PathBuf;
use tempfile::TempDir;
use tfseek::column::{ColumnOptions, Value};
use tfseek::order::Spec;
use tfseek::stream::StreamOptions;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, Dataset, DatasetOptions, ErrorKind, ExampleBuilder, IndexMode, Mapped, Shuffle};

/// Writes shards of 5, 0, 7 and 300 records with the features `i`, `name` and, of every third record, `some`.
fn shards(compression: Compression) -> (TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let (mut paths, mut i) = (Vec::new(), 0);
    for (k, n) in [5, 0, 7, 300].into_iter().enumerate() {
        let path = dir.path().join(format!("{k}.tfrecord"));
        let options = WriterOptions { compression, ..WriterOptions::default() };
        let mut writer = options.create(&path).unwrap();
        for _ in 0..n {
            let mut example = ExampleBuilder::new().int64("i", [i]).bytes("name", [format!("{}", i % 4)]);
            if i % 3 == 0 {
                example = example.int64("some", [i]);
            }
            writer.write(&example.encode().unwrap()).unwrap();
            i += 1;
        }
        writer.close().unwrap();
        paths.push(path);
    }
    (dir, paths)
}

const RANGES: &[&[Range<u64>]] = &[
    &[],
    &[0..312],
    &[0..5],
    &[5..12],
    &[3..7],
    &[4..5, 11..12, 0..0],
    &[200..311, 2..9, 5..6, 2..9],
    &[12..312, 0..12],
    &[312..312, 311..312],
];

fn numbers(ranges: &[Range<u64>]) -> Vec<u64> {
    ranges.iter().cloned().flatten().collect()
}

fn number(payload: &[u8]) -> u64 {
    let example = tfseek::Example::new(payload);
    example.int64("i").unwrap().first().unwrap() as u64
}

fn check(all: &Dataset, ranges: &[Range<u64>]) {
    let some = all.ranges(ranges).unwrap();
    let expected = numbers(ranges);
    assert_eq!(some.len(), expected.len() as u64);
    let mut buf = Vec::new();
    for (i, &of_all) in (0..).zip(&expected) {
        let (s, ordinal) = all.shard_of(of_all).unwrap();
        let path = all.shards().nth(s).unwrap().path;
        let record = some.read(i, &mut buf).unwrap();
        assert_eq!((number(record.payload()), record.at().record), (of_all, Some(ordinal)));
        assert_eq!(record.at().path, Some(path));
        let (s, found) = some.shard_of(i).unwrap();
        let entry = some.shards().nth(s).unwrap();
        assert_eq!((entry.path, found, entry.first + i - entry.start), (path, ordinal, ordinal));
    }
    let outside = some.read(some.len(), &mut buf).unwrap_err();
    assert!(matches!(outside.kind(), ErrorKind::OutOfRange { .. }), "{outside}");
    // Together, backwards.
    let backwards: Vec<u64> = (0..some.len()).rev().collect();
    let mut found = Vec::new();
    some.read_many(&backwards, |record| {
        found.push(number(record.payload()));
        Ok(())
    })
    .unwrap();
    found.reverse();
    assert_eq!(found, expected);

    // Values of columns.
    for feature in ["i", "name", "some"] {
        let options = ColumnOptions { unknown: true, ..ColumnOptions::default() };
        let (of_all, of_some) =
            (all.column(feature, &options).unwrap(), some.column(feature, &options).unwrap());
        let values: Vec<Option<Value<'_>>> = expected.iter().map(|i| of_all.get(*i)).collect();
        assert_eq!(of_some.iter().collect::<Vec<_>>(), values);
        assert_eq!((0..some.len()).map(|i| of_some.get(i)).collect::<Vec<_>>(), values);
        assert_eq!(of_some.count(), values.iter().flatten().count() as u64);
        for (value, records) in of_some.classes().unwrap() {
            let having = (0..).zip(&values).filter(|(_, of)| **of == Some(value)).map(|(i, _)| i);
            assert_eq!(records, having.collect::<Vec<u64>>());
        }
    }
    // Conditions, decided by columns, by numbers and by records.
    let options = ColumnOptions { unknown: true, ..ColumnOptions::default() };
    for (condition, meets) in [
        ("i > 100", (|_, of_all| of_all > 100) as fn(u64, u64) -> bool),
        ("record in 1..4", |i, _| (1..4).contains(&i)),
        ("absent(some)", |_, of_all| of_all % 3 != 0),
        ("name contains '2' or i == 7", |_, of_all| of_all % 4 == 2 || of_all == 7),
    ] {
        let (found, _) = some.select(&condition.parse().unwrap(), &options).unwrap();
        let expected = (0..).zip(&expected).filter(|(i, of_all)| meets(*i, **of_all)).map(|(i, _)| i);
        assert_eq!(found.iter().collect::<Vec<_>>(), expected.collect::<Vec<u64>>(), "{condition}");
    }

    // A fingerprint is that of the records and their order.
    let same = all.ranges(ranges).unwrap().fingerprint().unwrap();
    assert_eq!(some.fingerprint().unwrap(), same);
    // Again some of some.
    let inner = some.len() / 3..some.len();
    let again = some.ranges(std::slice::from_ref(&inner)).unwrap();
    let mut found = Vec::new();
    for i in 0..again.len() {
        found.push(number(again.read(i, &mut buf).unwrap().payload()));
    }
    assert_eq!(found, expected[inner.start as usize..]);
    // An epoch in blocks, and one in order.
    for shuffle in [Shuffle::None, Shuffle::Order(Spec::Block { block: 10, window: 3 })] {
        let loader = some.record_loader().batch_size(7).shuffle(shuffle).seed(3).build().unwrap();
        let (mut ids, mut found) = (Vec::new(), Vec::new());
        for step in loader {
            let step = step.unwrap();
            ids.extend(step.samples().map(|sample| sample.record));
            found.extend(step.records().unwrap().map(|record| number(record.unwrap().payload())));
        }
        assert_eq!(found, ids.iter().map(|i| expected[*i as usize]).collect::<Vec<_>>());
        ids.sort_unstable();
        assert_eq!(ids, (0..some.len()).collect::<Vec<_>>());
    }
}

#[test]
fn records_of_ranges_are_those_of_the_whole() {
    for compression in [Compression::None, Compression::Gzip] {
        let (dir, paths) = shards(compression);
        let index = tfseek::index::IndexOptions::new().default_dirs(Some(dir.path().join("indexes")), None);
        let all = DatasetOptions::new().index(index).open(&paths).unwrap();
        for ranges in RANGES {
            check(&all, ranges);
        }
    }
}

#[test]
fn records_of_ranges_are_borrowed() {
    let (_dir, paths) = shards(Compression::None);
    let regions = paths.iter().map(|path| std::fs::read(path).unwrap().into());
    let all = DatasetOptions::new().open_regions(regions).unwrap();
    let payload = |record: tfseek::Result<tfseek::Record<'_>>| number(record.unwrap().payload());
    for ranges in RANGES {
        check(all.dataset(), ranges);
        let some = Mapped::from_dataset(&all.dataset().ranges(ranges).unwrap()).unwrap();
        let expected = numbers(ranges);
        assert_eq!((0..some.len()).map(|i| payload(some.get(i))).collect::<Vec<_>>(), expected);
        assert_eq!(some.iter().map(payload).collect::<Vec<_>>(), expected);
        let middle = some.len() / 2;
        let half: Vec<u64> = some.range(middle..some.len()).unwrap().map(payload).collect();
        assert_eq!(half, expected[middle as usize..]);
    }
}

#[test]
fn shares_have_the_records_of_ranges() {
    let (_dir, paths) = shards(Compression::None);
    let all = DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap();
    for ranges in RANGES {
        let some = all.ranges(ranges).unwrap();
        for n in [1, 2, 5, 400] {
            let (mut found, mut next) = (Vec::new(), 0);
            for part in some.shares(n).unwrap().into_iter().flatten() {
                assert_eq!(part.first, next);
                let mut stream = StreamOptions::default().part(&part).unwrap();
                let mut ordinal = part.ordinal;
                while let Some(record) = stream.next().unwrap() {
                    assert_eq!(record.at().record, Some(ordinal));
                    found.push(number(record.payload()));
                    (ordinal, next) = (ordinal + 1, next + 1);
                }
                assert_eq!(part.records, Some(ordinal - part.ordinal));
            }
            assert_eq!(found, numbers(ranges), "{n} shares of {ranges:?}");
        }
    }
    let (_dir, paths) = shards(Compression::Gzip);
    let all = DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap();
    assert_eq!(all.ranges(&[5..12]).unwrap().shares(1).unwrap().len(), 1);
    let e = all.ranges(&[5..11]).unwrap().shares(1).unwrap_err();
    assert!(
        e.to_string().contains("2.tfrecord: expected all records of the compressed shard or none"),
        "{e}"
    );
}

#[test]
fn ranges_outside_are_refused() {
    let (_dir, paths) = shards(Compression::None);
    let all = DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap();
    let backwards = Range { start: 7, end: 3 };
    assert!(all.ranges(&[backwards]).unwrap().is_empty());
    for outside in [0..313, 313..314] {
        let e = all.ranges(&[outside]).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::OutOfRange { len: 312, .. }), "{e}");
    }
    // Different records have different fingerprints.
    let fingerprint = |ranges: &[Range<u64>]| all.ranges(ranges).unwrap().fingerprint().unwrap();
    let found: std::collections::BTreeSet<String> =
        RANGES.iter().chain([&[0..4][..], &[1..5][..]].iter()).map(|ranges| fingerprint(ranges)).collect();
    assert_eq!(found.len(), RANGES.len() + 2);
}
