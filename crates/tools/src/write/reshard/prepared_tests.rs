use super::*;
use crate::error::ToolsError;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Barrier};
use tempfile::TempDir;
use tfseek::order::Subset;
use tfseek::{DatasetOptions, ExampleBuilder, IndexMode, Writer};
use tfseek_testkit::shards::names;
use tfseek_tfds::{CopySource, DatasetInfo};

fn record(split: &str, id: i64) -> Vec<u8> {
    ExampleBuilder::new().int64("id", [id]).bytes("split", [split]).encode().unwrap()
}

/// A data set with the splits `train`, of 5, 0 and 6 records in a folder of their own, `test`, of 4 records,
/// and `none`, without shards.
fn source() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("in");
    fs::create_dir_all(folder.join("train")).unwrap();
    let put = |name: &str, split: &str, ids: std::ops::Range<i64>| {
        let mut writer = Writer::create(folder.join(name)).unwrap();
        ids.for_each(|id| writer.write(&record(split, id)).unwrap());
        writer.close().unwrap();
    };
    put("train/tiny.tfrecord-00000-of-00003", "train", 0..5);
    put("train/tiny.tfrecord-00001-of-00003", "train", 0..0);
    put("train/tiny.tfrecord-00002-of-00003", "train", 5..11);
    put("tiny-test.tfrecord-00000-of-00001", "test", 0..4);
    let info = r#"{"name": "tiny", "version": "1.0.0", "description": "x", "splits": [
        {"name": "train", "shardLengths": ["5", "0", "6"], "numBytes": "9", "filepathTemplate": "{SPLIT}/{DATASET}.{FILEFORMAT}-{SHARD_X_OF_Y}"},
        {"name": "test", "shardLengths": ["4"], "numBytes": "9"},
        {"name": "none", "shardLengths": [], "numBytes": "0"}]}"#;
    fs::write(folder.join("dataset_info.json"), info).unwrap();
    for (name, text) in [("features.json", "{ }\n"), ("label.labels.txt", "cat\ndog"), ("train/NOTE", "a")] {
        fs::write(folder.join(name), text).unwrap();
    }
    dir
}

fn open(source: &CopySource) -> Dataset {
    DatasetOptions::new().index(IndexMode::Memory).open(source.shards()).unwrap()
}

/// Writes a copy of the folder `in` with changed options.
fn copied(
    dir: &Path,
    out: &str,
    change: impl FnOnce(&mut ReshardOptions),
) -> Result<ReshardReport, ToolsError> {
    let out = dir.join(out);
    let source = prepared(&[dir.join("in")], &out)?.unwrap();
    let ds = open(&source);
    let mut options = ReshardOptions::new(out);
    options.prepared = Some(Arc::new(source));
    change(&mut options);
    reshard(&ds, &options, &WriteProgress::default())
}

/// Returns the payloads of each split, and the lengths of its shards, which are checked.
fn splits(folder: &Path) -> BTreeMap<String, (Vec<Vec<u8>>, Vec<u64>)> {
    let source = CopySource::open(folder, None).unwrap().unwrap();
    let ds = open(&source);
    source.ends(&ds).unwrap();
    let info = DatasetInfo::parse(&fs::read(folder.join("dataset_info.json")).unwrap()).unwrap();
    let mut start = 0;
    let mut buf = Vec::new();
    let mut all = BTreeMap::new();
    for split in source.splits() {
        let end = start + split.records().unwrap();
        let payloads: Vec<Vec<u8>> =
            (start..end).map(|i| ds.read(i, &mut buf).unwrap().payload().to_vec()).collect();
        let bytes: u64 = payloads.iter().map(|p| p.len() as u64).sum();
        assert!(info.splits.iter().any(|info| info.name == split.name && info.num_bytes == Some(bytes)));
        all.insert(split.name.clone(), (payloads, split.shard_lengths.clone().unwrap()));
        start = end;
    }
    assert_eq!(start, ds.len());
    all
}

#[test]
fn each_split_has_its_own_shards() {
    let dir = source();
    let report = copied(dir.path(), "new/tiny/1.0.0@2", |options| options.index = true).unwrap();
    let out = dir.path().join("new/tiny/1.0.0");
    let all = splits(&out);
    let records = |name: &str, n| (0..n).map(|id| record(name, id)).collect::<Vec<_>>();
    assert_eq!(all["train"], (records("train", 11), vec![5, 6]));
    assert_eq!(all["test"], (records("test", 4), vec![2, 2]));
    assert_eq!(all["none"], (vec![], vec![]));
    let paths: Vec<_> = report.sets.iter().map(|set| set.path.strip_prefix(&out).unwrap()).collect();
    assert_eq!(
        paths,
        ["train/tiny.tfrecord@2", "tiny-test.tfrecord@2", ""].map(Path::new),
        "the folder is the path of a split without shards"
    );
    assert_eq!(report.sets[0].shards[1], out.join("train/tiny.tfrecord-00001-of-00002"));
    assert!(report.sets.iter().flat_map(|set| &set.shards).all(|path| path.is_file()));
    for name in ["features.json", "label.labels.txt", "train/NOTE"] {
        assert_eq!(fs::read(out.join(name)).unwrap(), fs::read(dir.path().join("in").join(name)).unwrap());
    }
    assert_eq!(names(&out.join("train/.tfseek")).len(), 2);
    let info = DatasetInfo::parse(&fs::read(out.join("dataset_info.json")).unwrap()).unwrap();
    assert_eq!((info.version.as_deref(), info.splits.len()), (Some("1.0.0"), 3));
    // By default the numbers of shards are kept.
    copied(dir.path(), "same", |_| ()).unwrap();
    let lengths: Vec<_> =
        splits(&dir.path().join("same")).into_values().map(|(_, lengths)| lengths).collect();
    assert_eq!(lengths, [vec![], vec![4], vec![3, 4, 4]]);
    assert_eq!(names(dir.path()), ["in", "new", "same"]);
}

#[test]
fn orders_sizes_and_conditions_hold_for_each_split() {
    let dir = source();
    let shuffled = |options: &mut ReshardOptions| (options.order, options.seed) = (OrderOptions::Shuffled, 7);
    copied(dir.path(), "direct", shuffled).unwrap();
    let all = splits(&dir.path().join("direct"));
    // A split has the order of a dataset with its records alone.
    let spec = tfseek::order::Spec::Global.filtered(Subset::from_fn(15, |i| i < 11));
    let order = tfseek::Order::new(&spec, 15, 7, 0).unwrap();
    let mut ids = [0; 11];
    order.fill(0, &mut ids).unwrap();
    let train: Vec<_> = ids.iter().map(|&id| record("train", id as i64)).collect();
    assert_eq!(all["train"].0, train);
    // Through temporary files the copy is the same.
    let report = copied(dir.path(), "files", |options| {
        shuffled(options);
        options.memory = Some(1000);
    });
    assert_eq!(report.unwrap().way, ReshardWay::Files);
    assert_eq!(splits(&dir.path().join("files")), all);

    copied(dir.path(), "sized", |options| options.shards = Some(ShardCount::Size(120))).unwrap();
    let sized = splits(&dir.path().join("sized"));
    assert!(sized["train"].1.len() > 3 && sized["test"].1.len() > 1, "{sized:?}");
    assert_eq!(sized["none"].1.len(), 0);

    let report = copied(dir.path(), "some", |options| {
        options.records = Some(Subset::from_fn(15, |i| i % 2 == 0 && i < 11));
        options.order = OrderOptions::Sorted { feature: "id".into(), reverse: true };
    });
    assert_eq!(report.unwrap().left_out, 9);
    let some = splits(&dir.path().join("some"));
    let even: Vec<_> = [10, 8, 6, 4, 2, 0].map(|id| record("train", id)).into();
    assert_eq!(some["train"], (even, vec![2, 2, 2]));
    assert_eq!(some["test"], (vec![], vec![0]));
}

#[test]
fn refused_options_and_outputs_leave_nothing() {
    let dir = source();
    let message = |out: &str, change: &dyn Fn(&mut ReshardOptions)| {
        let e = copied(dir.path(), out, change).unwrap_err().to_string();
        assert_eq!(names(dir.path()), ["in"], "{e}");
        e
    };
    let split = SplitOptions { splits: vec![("a".into(), 1.0)], by: None, missing: None };
    type Change<'a> = &'a dyn Fn(&mut ReshardOptions);
    let changes: [(&str, Change<'_>); 7] = [
        ("split: not for", &|o| o.split = Some(split.clone())),
        ("features to keep or to drop: not for", &|o| o.keep = vec!["id".into()]),
        ("features to keep or to drop: not for", &|o| o.drop = vec!["id".into()]),
        ("compression: not for", &|o| o.compression = Some(Compression::Gzip)),
        ("compression: not for", &|o| o.members = Some(1)),
        ("force: not for", &|o| o.force = true),
        ("found 0", &|o| o.shards = Some(ShardCount::Count(0))),
    ];
    for (words, change) in changes {
        let e = message("a/b/new", change);
        assert!(e.contains(words), "{e}");
    }
    for (out, words) in [
        ("new@0", "from 1 to"),
        ("new@*", "a number of shards or their size"),
        ("in", "expected a new or an empty folder"),
        ("in/new", "expected a folder outside of the input"),
        ("in/train/new", "expected a folder outside of the input"),
    ] {
        let e = message(out, &|_| ());
        assert!(e.contains(words), "{out}: {e}");
    }
    assert!(
        message("new@3", &|o| o.shards = Some(ShardCount::Count(4))).contains("has a number of shards, 3")
    );
    // Cancelled while the records are copied.
    let source = CopySource::open(&dir.path().join("in"), None).unwrap().unwrap();
    let ds = open(&source);
    let mut options = ReshardOptions::new(dir.path().join("a/new"));
    options.prepared = Some(Arc::new(source));
    let progress =
        WriteProgress { advance: Arc::new(|_| ControlFlow::Break(())), ..WriteProgress::default() };
    reshard(&ds, &options, &progress).unwrap_err();
    assert_eq!(names(dir.path()), ["in"]);
    // A file, and a folder with a file.
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(copied(dir.path(), "file", |_| ()).unwrap_err().to_string().contains("a new or an empty folder"));
    fs::create_dir(dir.path().join("empty")).unwrap();
    copied(dir.path(), "empty", |_| ()).unwrap();
    assert!(
        copied(dir.path(), "empty", |_| ()).unwrap_err().to_string().contains("a new or an empty folder")
    );
}

#[test]
fn shards_that_differ_from_the_metadata_are_refused() {
    let dir = source();
    let shard = dir.path().join("in/train/tiny.tfrecord-00002-of-00003");
    let bytes = fs::read(&shard).unwrap();
    let mut writer = Writer::create(&shard).unwrap();
    writer.write(b"one").unwrap();
    writer.close().unwrap();
    let e = copied(dir.path(), "new", |_| ()).unwrap_err().to_string();
    assert!(e.contains("00002-of-00003: expected 6 records, found 1 (shard 2 of split train)"), "{e}");
    fs::write(&shard, bytes).unwrap();
    fs::remove_file(dir.path().join("in/train/tiny.tfrecord-00001-of-00003")).unwrap();
    let e = copied(dir.path(), "new", |_| ()).unwrap_err().to_string();
    assert!(e.contains("1 of 3 shards of split train is missing: "), "{e}");
    assert!(e.ends_with("in/train/tiny.tfrecord-00001-of-00003"), "{e}");
    assert_eq!(names(dir.path()), ["in"]);
}

#[test]
fn names_without_numbers_have_one_shard() {
    let dir = source();
    let path = dir.path().join("in/dataset_info.json");
    fs::rename(dir.path().join("in/tiny-test.tfrecord-00000-of-00001"), dir.path().join("in/test.bin"))
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(r#""4"]"#, r#""4"], "filepathTemplate": "{SPLIT}.bin""#)).unwrap();
    let e = copied(dir.path(), "new@2", |_| ()).unwrap_err().to_string();
    assert!(e.contains("expected 1 for split test, whose names have no number, found 2"), "{e}");
    copied(dir.path(), "new", |_| ()).unwrap();
    assert_eq!(splits(&dir.path().join("new"))["test"].1, [4]);
}

#[test]
fn paths_of_files_are_no_copies() {
    let dir = source();
    let folder = dir.path().join("in");
    for out in ["a.tfrecord", "a@4.tfrecord", "a.tfrecord@4", "a@*.bin", "a.gz", "x/{split}@4", "a.tfr.zz"] {
        assert!(prepared(&[&folder], Path::new(out)).unwrap().is_none(), "{out}");
    }
    for out in ["a", "a@4", "x/tiny/1.0.0@4", "1.0.0/", "a@*", "a@b"] {
        assert!(prepared(&[&folder], Path::new(out)).unwrap().is_some(), "{out}");
    }
    let shard = folder.join("tiny-test.tfrecord-00000-of-00001");
    assert!(prepared(&[&shard], Path::new("a")).unwrap().is_none());
    assert!(prepared(&[&folder, &folder], Path::new("a")).unwrap().is_none());
    assert!(prepared(&[folder.join("train")], Path::new("a")).unwrap().is_none());
}

/// Of runs that write the same folder at the same time, one succeeds. A reader meanwhile sees no folder, or
/// all of it.
#[test]
fn one_of_several_runs_writes_the_folder() {
    let dir = source();
    for round in 0..20 {
        let out = format!("new{round}");
        let barrier = Barrier::new(3);
        let path = dir.path().join(&out);
        let done = std::thread::scope(|scope| {
            let run = |shards| {
                let dir = dir.path();
                let out = &out;
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    copied(dir, out, |options| options.shards = Some(ShardCount::Count(shards))).is_ok()
                })
            };
            let runs = [run(2), run(3)];
            barrier.wait();
            while !runs.iter().all(|run| run.is_finished()) {
                if let Ok(Some(found)) = CopySource::open(&path, None) {
                    assert_eq!(found.metadata().other_files().unwrap().len(), 3);
                }
            }
            runs.map(|run| run.join().unwrap())
        });
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
        assert_eq!(splits(&path)["train"].1.len(), if done[0] { 2 } else { 3 });
    }
    assert!(names(dir.path()).iter().all(|name| !name.contains("incomplete")), "{:?}", names(dir.path()));
}
