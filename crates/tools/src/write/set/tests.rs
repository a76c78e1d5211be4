use super::*;
use crate::error::ToolsError;
use crate::forms::digest;
use crate::write::reshard::{ReshardSet, ShardCount};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use tfseek::frame::OVERHEAD;
use tfseek::{Compression, Dataset, DatasetOptions, IndexMode};
use tfseek_testkit::shards::names;

fn go(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn payload(k: u64) -> Vec<u8> {
    vec![k as u8; (k * 7 % 30) as usize]
}

fn write(options: &SetOptions, n: u64) -> Result<ReshardSet, ToolsError> {
    let mut writer = SetWriter::new(options)?;
    (0..n).try_for_each(|k| writer.write(&payload(k)))?;
    writer.close(&go)
}

fn open(path: &Path) -> Dataset {
    DatasetOptions::new().index(IndexMode::Memory).open(path).unwrap()
}

fn records(path: &Path) -> Vec<Vec<u8>> {
    let ds = open(path);
    let mut buf = Vec::new();
    (0..ds.len()).map(|i| ds.read(i, &mut buf).unwrap().payload().to_vec()).collect()
}

fn message<T: std::fmt::Debug>(result: Result<T, ToolsError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn records_keep_their_order_for_any_number_of_shards() {
    let dir = tempfile::tempdir().unwrap();
    for n in [0u64, 1, 2, 5, 64, 100] {
        for count in [1u64, 2, 3, 7, 101] {
            let want: Vec<u64> = (0..count).map(|s| (s + 1) * n / count - s * n / count).collect();
            // The number of records is known, and it is not.
            for known in [Some(n), None] {
                let mut options = SetOptions::new(dir.path().join(format!("{n}-{count}@*.tfrecord")));
                (options.shards, options.records, options.force) =
                    (Some(ShardCount::Count(count)), known, true);
                let set = write(&options, n).unwrap();
                assert_eq!(set.path, dir.path().join(format!("{n}-{count}@{count}.tfrecord")));
                assert_eq!((set.records, set.shards.len() as u64), (n, count));
                assert_eq!(records(&set.path), (0..n).map(payload).collect::<Vec<_>>());
                assert_eq!(set.shards.iter().map(|path| open(path).len()).collect::<Vec<_>>(), want);
                let sizes = set.shards.iter().map(|path| fs::metadata(path).unwrap().len());
                assert_eq!(set.bytes, sizes.sum::<u64>());
            }
        }
    }
}

#[test]
fn shards_of_a_size() {
    let dir = tempfile::tempdir().unwrap();
    for (n, size, count) in [(100u64, 500u64, 7), (100, 1, 100), (100, 1 << 40, 1), (0, 10, 1)] {
        let mut options = SetOptions::new(dir.path().join(format!("s{size}-{n}.tfrecord")));
        options.shards = Some(ShardCount::Size(size));
        let mut writer = SetWriter::new(&options).unwrap();
        (0..n).for_each(|k| writer.write(&payload(k)).unwrap());
        let bytes: u64 = (0..n).map(|k| (payload(k).len() + OVERHEAD) as u64).sum();
        let copied = std::cell::Cell::new(0);
        let set = writer
            .close(&|bytes| {
                copied.set(copied.get() + bytes);
                go(0)
            })
            .unwrap();
        assert_eq!((set.shards.len(), copied.get(), set.bytes), (count, bytes, bytes));
        assert_eq!(records(&set.path), (0..n).map(payload).collect::<Vec<_>>());
        let longest = set.shards.iter().map(|path| fs::metadata(path).unwrap().len()).max().unwrap();
        assert!(longest < size.saturating_add(2 * (30 + OVERHEAD as u64)), "{longest}");
    }
}

#[test]
fn one_file_compression_and_indexes() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.tfrecord", "a.tfrecord.gz", "new/a@2.tfrecord.zz"] {
        let mut options = SetOptions::new(dir.path().join(name));
        options.index = true;
        let set = write(&options, 20).unwrap();
        assert_eq!(records(&set.path), (0..20).map(payload).collect::<Vec<_>>(), "{name}");
        let ds = DatasetOptions::new().index(IndexMode::Require).open(&set.path).unwrap();
        assert_eq!(ds.len(), 20);
    }
    let gzip = fs::read(dir.path().join("a.tfrecord.gz")).unwrap();
    assert!(gzip.starts_with(b"\x1f\x8b"));
    let mut options = SetOptions::new(dir.path().join("b.tfrecord"));
    (options.compression, options.members) = (Some(Compression::Gzip), Some(100));
    write(&options, 20).unwrap();
    options.compression = Some(Compression::None);
    options.force = true;
    assert!(message(write(&options, 20)).contains("members"));
}

#[test]
fn nothing_appears_before_the_end() {
    let dir = tempfile::tempdir().unwrap();
    for (name, known) in [("a.tfrecord", None), ("new/a@3.tfrecord", None), ("new/a@3.tfrecord", Some(9))] {
        let mut options = SetOptions::new(dir.path().join(name));
        options.records = known;
        let mut writer = SetWriter::new(&options).unwrap();
        (0..9).for_each(|k| writer.write(&payload(k)).unwrap());
        drop(writer);
        assert_eq!(names(dir.path()), [""; 0], "{name}");
    }
    // An end by the caller during the copy.
    let options = SetOptions::new(dir.path().join("a@3.tfrecord"));
    let mut writer = SetWriter::new(&options).unwrap();
    (0..9).for_each(|_| writer.write(&vec![1; 1 << 20]).unwrap());
    assert!(writer.close(&|_| ControlFlow::Break(())).is_err());
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn refused_outputs() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = SetOptions::new(dir.path().join("a@3.tfrecord"));
    for stated in [8, 10] {
        options.records = Some(stated);
        let text = format!("records: expected {stated} records, as stated, found 9");
        assert_eq!(message(write(&options, 9)), text);
    }
    assert_eq!(names(dir.path()), [""; 0]);
    options.records = None;
    write(&options, 9).unwrap();
    assert!(message(write(&options, 9)).ends_with("a-00000-of-00003.tfrecord: already exists"));
    options.force = true;
    write(&options, 10).unwrap();
    assert_eq!(records(&options.out).len(), 10);
    let mut other = SetOptions::new(dir.path().join("a.tfrecord"));
    for shards in [ShardCount::Count(2), ShardCount::Size(1)] {
        other.shards = Some(shards);
        assert!(message(write(&other, 9)).contains("belongs to another set"));
    }
    other.shards = Some(ShardCount::Count(0));
    assert!(message(write(&other, 9)).contains("found 0"));
    assert!(SetWriter::new(&SetOptions::new(dir.path().join("no/folder/a"))).is_err());
}

fn attempt(job: &str, task: u64, attempt: &str) -> TaskAttempt {
    TaskAttempt { job: job.into(), task: task.to_string(), attempt: attempt.into() }
}

/// Writes records of a task.
fn run(folder: &Path, who: &TaskAttempt, records: std::ops::Range<u64>, options: &TaskOptions) -> TaskFile {
    let mut writer = TaskWriter::create(folder, who, options).unwrap();
    records.for_each(|k| writer.write(&payload(k)).unwrap());
    writer.close().unwrap()
}

#[test]
fn tasks_write_a_set() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    for compression in [Compression::None, Compression::Gzip] {
        let options = TaskOptions { compression, ..TaskOptions::default() };
        let out = folder.join(format!("{}.tfrecord", compression.name()));
        // The tasks end in another order. Task 1 runs twice, and another job is at work.
        let last = run(folder, &attempt("j", 12, "0"), 10..17, &options);
        let lost = run(folder, &attempt("j", 1, "a_1"), 0..5, &options);
        let first = run(folder, &attempt("j", 1, "b.2"), 0..10, &options);
        let empty = run(folder, &attempt("j", 3, "0"), 0..0, &options);
        let named = TaskAttempt { task: "x".into(), ..attempt("j", 0, "0") };
        let named = run(folder, &named, 17..20, &options);
        let other = run(folder, &attempt("jj", 1, "0"), 0..5, &options);
        // A task that died has no file.
        let mut died = TaskWriter::create(folder, &attempt("j", 2, "0"), &options).unwrap();
        died.write(b"x").unwrap();
        drop(died);
        assert_eq!((first.name.as_str(), first.records), (".tmp-j-00001-b.2", 10));
        assert_ne!(first.digest, lost.digest);
        let payloads = (0..10).map(payload).map(|p| [(p.len() as u64).to_le_bytes().to_vec(), p].concat());
        assert_eq!(first.digest, digest::sha256(&payloads.collect::<Vec<_>>().concat()));
        assert!(DatasetOptions::new().open(folder.join(format!("{}*", compression.name()))).is_err());

        check_job(&out).unwrap();
        let set = commit(&out, "j", &[last, named, empty, first.clone()], &options, false).unwrap();
        assert!(message(check_job(&out)).ends_with("already exists"));
        // The empty file is left out, and names come after numbers.
        assert_eq!((set.records, set.shards.len()), (20, 3));
        assert_eq!(fs::metadata(&set.shards[0]).unwrap().len(), first.bytes);
        assert_eq!(set.path, folder.join(format!("{}@3.tfrecord", compression.name())));
        assert_eq!(records(&set.path), (0..20).map(payload).collect::<Vec<_>>());
        // The indexes belong to the shards.
        let ds = DatasetOptions::new().index(IndexMode::Require).open(&set.path).unwrap();
        assert_eq!(ds.len(), 20);
        let tmp =
            |folder: &Path| names(folder).into_iter().filter(|n| n.starts_with(".tmp")).collect::<Vec<_>>();
        assert_eq!(tmp(folder), [other.name.as_str()]);
        assert_eq!(tmp(&folder.join(".tfseek")), [format!("{}.tfri", other.name)]);
        abort(folder, "jj").unwrap();
        assert!(tmp(folder).is_empty() && tmp(&folder.join(".tfseek")).is_empty());
        abort(folder, "jj").unwrap();
    }
    abort(&folder.join("none"), "j").unwrap();
}

#[test]
fn an_interrupted_commit_can_be_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let options = TaskOptions::default();
    let files: Vec<TaskFile> =
        (0..3).map(|t| run(folder, &attempt("j", t, "0"), t * 5..t * 5 + 5, &options)).collect();
    let out = folder.join("train.tfrecord");
    let shard = |s: u64| folder.join(format!("train-{s:05}-of-00003.tfrecord"));
    // The first shard has its name already.
    fs::rename(folder.join(&files[0].name), shard(0)).unwrap();
    assert!(DatasetOptions::new().open(folder.join("train@3.tfrecord")).is_err());
    let set = commit(&out, "j", &files, &options, false).unwrap();
    assert_eq!(records(&set.path).len(), 15);
    // A complete commit as well.
    assert_eq!(commit(&out, "j", &files, &options, false).unwrap(), set);
}

/// The old set has another number of shards. A folder with the name of a shard interrupts the commit.
#[test]
fn a_commit_that_is_interrupted_keeps_the_old_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let options = TaskOptions::default();
    let out = folder.join("train.tfrecord");
    let files = |job: &str, tasks: u64| -> Vec<TaskFile> {
        (0..tasks).map(|t| run(folder, &attempt(job, t, "0"), t * 5..t * 5 + 5, &options)).collect()
    };
    let old = commit(&out, "old", &files("old", 2), &options, false).unwrap();
    let new = files("new", 3);
    let blocked = folder.join("train-00001-of-00003.tfrecord");
    fs::create_dir(&blocked).unwrap();
    commit(&out, "new", &new, &options, true).unwrap_err();
    let hidden = folder.join(".tfseek-replaced");
    assert_eq!(names(&hidden), ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"]);
    fs::remove_dir(&blocked).unwrap();
    for pattern in ["train@2.tfrecord", "train@3.tfrecord", "train@*.tfrecord", "train-*", ""] {
        let e = Dataset::open(folder.join(pattern)).unwrap_err().to_string();
        assert!(
            e.contains("train@2.tfrecord: a run that replaces it was interrupted") && e.contains("2 old"),
            "{e}"
        );
    }
    // The commit is repeated, and the other way: the old shards are put back.
    let copy = tempfile::tempdir().unwrap();
    for name in names(&hidden) {
        fs::copy(hidden.join(&name), copy.path().join(&name)).unwrap();
    }
    let set = commit(&out, "new", &new, &options, true).unwrap();
    assert_eq!((set.records, records(&set.path).len()), (15, 15));
    assert!(!hidden.exists() && old.shards.iter().all(|path| !path.exists()));
    assert_eq!(records(&copy.path().join("train@2.tfrecord")), (0..10).map(payload).collect::<Vec<_>>());
}

#[test]
fn refused_commits() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let options = TaskOptions::default();
    let out = folder.join("train@*.tfrecord");
    let [a, b, other] = [("j", 0, "0"), ("j", 0, "1"), ("k", 1, "0")]
        .map(|(job, task, name)| run(folder, &attempt(job, task, name), 0..5, &options));
    let gone = TaskFile { name: ".tmp-j-00007-0".into(), ..a.clone() };
    let longer = TaskFile { bytes: a.bytes + 1, ..a.clone() };
    let outside = TaskFile { name: "../.tmp-j-00007-0".into(), ..a.clone() };
    for (files, words) in [
        (
            vec![a.clone(), b],
            "expected one file of the task 00000, found \".tmp-j-00000-0\" and \".tmp-j-00000-1\"",
        ),
        (vec![a.clone(), other], "\".tmp-k-00001-0\": expected the name of a file of the job \"j\""),
        (vec![outside], "expected the name of a file"),
        (vec![a.clone(), gone], "\".tmp-j-00007-0\": expected a file of "),
        (vec![longer], "found one of "),
    ] {
        let text = message(commit(&out, "j", &files, &options, false));
        assert!(text.contains(words), "{text}");
    }
    let file = std::slice::from_ref(&a);
    assert!(
        message(commit(&folder.join("train@2.tfrecord"), "j", file, &options, false))
            .contains("number of shards, 2")
    );
    fs::write(folder.join("train-00000-of-00001.tfrecord"), "old").unwrap();
    assert!(message(commit(&out, "j", file, &options, false)).contains("already exists"));
    fs::remove_file(folder.join("train-00000-of-00001.tfrecord")).unwrap();
    fs::write(folder.join("train-00000-of-00002.tfrecord"), "old").unwrap();
    assert!(message(commit(&out, "j", file, &options, false)).contains("belongs to another set"));
    assert!(folder.join(&a.name).exists());
    // With `force` it is replaced, whatever its number of shards. Empty sets have one shard.
    assert_eq!(commit(&out, "j", file, &options, true).unwrap().records, 5);
    let empty: Vec<_> = (0..3).map(|t| run(folder, &attempt("e", t, "0"), 0..0, &options)).collect();
    for (job, files) in [("e", empty.as_slice()), ("none", &[])] {
        let set = commit(&out, job, files, &options, true).unwrap();
        assert_eq!((set.records, set.shards.len(), records(&set.path).len()), (0, 1, 0));
    }
    assert_eq!(names(folder).len(), 3, "{:?}", names(folder));

    for (job, name) in [("", "0"), ("a-b", "0"), ("a/b", "0"), ("a", "x y")] {
        let refused = TaskWriter::create(folder, &attempt(job, 0, name), &options).err().unwrap();
        assert!(refused.to_string().contains("expected letters, digits"), "{refused}");
    }
}
