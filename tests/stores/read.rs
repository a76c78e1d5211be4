//! Records, columns and epochs.

use super::*;
use tfseek::Shuffle;
use tfseek::column::ColumnOptions;
use tfseek_testkit::labelled::epoch;

/// Returns the same set as files.
fn as_files(case: &Case) -> (TempDir, Dataset) {
    let dir = tempfile::tempdir().unwrap();
    for at in case.bucket.urls() {
        if let Some(name) = at.strip_prefix(&format!("{ROOT}/")).filter(|name| !name.contains('/')) {
            std::fs::write(dir.path().join(name), case.bucket.get(&at).unwrap()).unwrap();
        }
    }
    let options = IndexOptions::new().default_dirs(None, None);
    let ds = DatasetOptions::new().index(options).open(dir.path()).unwrap();
    (dir, ds)
}

#[test]
fn epochs_equal_those_over_files() {
    for case in Case::all() {
        case.bucket.set(&url("more.tfrecord.gz"), gzip(&shard(100..150)));
        let (_dir, files) = as_files(&case);
        let objects = case.open("").unwrap();
        assert_eq!(objects.fingerprint().unwrap(), files.fingerprint().unwrap());
        for shuffle in [Shuffle::None, Shuffle::Global, Shuffle::default()] {
            for threads in [0, 2] {
                let before = case.bucket.requests().wanted.load(Relaxed);
                assert_eq!(epoch(&objects, &shuffle, threads), epoch(&files, &shuffle, threads));
                // All records of plain objects are requested, whatever the time of a read. In order they are
                // requested in blocks.
                let least = if shuffle == Shuffle::Global { 100 } else { 2 };
                assert!(case.bucket.requests().wanted.load(Relaxed) - before >= least);
            }
        }
    }
}

#[test]
fn requests_are_taken_back_when_an_epoch_is_left() {
    // A batch takes longer than its plan.
    let case = Case::new(Manners { latency: std::time::Duration::from_millis(5), ..Manners::BUCKET });
    let ds = case.open("train-*").unwrap();
    let mut loader = ds.record_loader().batch_size(10).threads(2).build().unwrap();
    loader.next().unwrap().unwrap();
    drop(loader);
    let requests = case.bucket.requests();
    let (wanted, forgotten) = (requests.wanted.load(Relaxed), requests.forgotten.load(Relaxed));
    assert!(forgotten > 0 && forgotten < wanted, "{wanted} {forgotten}");
}

#[test]
fn records_that_are_adjacent_are_read_together() {
    let case = Case::new(Manners::BUCKET);
    let ds = case.open("train-*").unwrap();
    ds.read(0, &mut Vec::new()).unwrap();
    ds.read(99, &mut Vec::new()).unwrap();
    let before = case.bucket.requests().ranges.load(Relaxed);
    let mut seen = 0;
    ds.read_many(&(0..100).collect::<Vec<_>>(), |record| {
        assert_eq!(record.example().int64("label")?.first(), Some(seen));
        seen += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!((seen, case.bucket.requests().ranges.load(Relaxed) - before), (100, 2));
}

#[test]
fn records_in_any_order_are_requested_before_they_are_read() {
    let case = Case::new(Manners::BUCKET);
    let ds = case.open("train-*").unwrap();
    let count = || {
        let requests = case.bucket.requests();
        [requests.wanted.load(Relaxed), requests.forgotten.load(Relaxed)]
    };
    let ids: Vec<u64> = (0..100).map(|k| k * 37 % 100).collect();
    let before = count();
    let mut seen = Vec::new();
    ds.read_many(&ids, |record| {
        // All of them are on their way when the first is here.
        assert!(count()[0] - before[0] >= 90, "{:?}", count());
        seen.push(record.example().int64("label")?.first().unwrap() as u64);
        Ok(())
    })
    .unwrap();
    assert_eq!((seen, count()[1]), (ids.clone(), before[1]));
    let left = ds.read_many(&ids, |_| Err(ErrorKind::Cancelled.into()));
    assert!(matches!(left.unwrap_err().kind(), ErrorKind::Cancelled));
    assert!(count()[1] - before[1] >= 90, "{:?}", count());
}

#[test]
fn columns_are_built_saved_and_found() {
    for case in Case::all() {
        let ds = case.open("train-*").unwrap();
        let values = |ds: &Dataset| {
            let column = ds.column("label", &ColumnOptions::default()).unwrap();
            assert!(column.warnings.is_empty(), "{:?}", column.warnings);
            column.iter().map(|value| value.unwrap().to_string()).collect::<Vec<_>>()
        };
        let want: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        assert_eq!(values(&ds), want);
        assert_eq!(case.cached(), 4);
        let ds = case.open("train-*").unwrap();
        assert!(ds.find_columns(&["label"]).unwrap()[0].is_some());
        let (some, _) =
            ds.select(&"label in 10..20 or label == 70".parse().unwrap(), &ColumnOptions::default()).unwrap();
        assert_eq!(some.iter().collect::<Vec<_>>(), (10..20).chain([70]).collect::<Vec<_>>());
        // Head, tail, size and records are equal, and one label is not.
        let mut other = Vec::new();
        for i in 0..60 {
            let label = if i == 30 { 31 } else { i };
            let text = [vec![i as u8; i as usize % 90]];
            let example = ExampleBuilder::new().int64("label", [label]).bytes("text", text);
            put_record(&mut other, &example.encode().unwrap()).unwrap();
        }
        case.bucket.set(&url("train-00000-of-00002.tfrecord"), other);
        let mut want = want;
        want[30] = "31".into();
        assert_eq!(values(&case.open("train-*").unwrap()), want);
        // Columns that are requested are not beside the objects either.
        case.open("train-*")
            .unwrap()
            .column("label", &ColumnOptions { beside: true, ..ColumnOptions::default() })
            .unwrap();
        assert!(!case.bucket.urls().iter().any(|at| at.ends_with(".tfrc")));
    }
}

/// Only the version tells that an object has changed where no fingerprint reaches.
#[test]
fn a_cached_column_is_one_of_a_version() {
    let case = Case::new(Manners { times: false, ..Manners::BUCKET });
    let long = |middle: i64| {
        let mut bytes = Vec::new();
        for i in 0..4000 {
            let label = if i == 2000 { middle } else { i };
            let example = ExampleBuilder::new().int64("label", [label]).bytes("text", [vec![1; 100]]);
            put_record(&mut bytes, &example.encode().unwrap()).unwrap();
        }
        bytes
    };
    let value = || {
        let ds = case.open("long.tfrecord").unwrap();
        ds.column("label", &ColumnOptions::default()).unwrap().get(2000).unwrap().to_string()
    };
    for middle in [2000, 2001, 2002] {
        case.bucket.set(&url("long.tfrecord"), long(middle));
        assert_eq!((value(), value()), (middle.to_string(), middle.to_string()));
    }
}
