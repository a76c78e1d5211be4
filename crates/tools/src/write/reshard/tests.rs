use super::*;
use crate::error::{PathReason, SplitReason, ToolsError};
use crate::forms::digest::sha256;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tfseek::order::{Spec, Split, Subset};
use tfseek::{DatasetOptions, ErrorKind, ExampleBuilder, IndexMode, Order, SequenceExampleBuilder, Writer};

/// A dataset of these shards.
fn dataset(dir: &Path, shards: &[Vec<Vec<u8>>], suffix: &str) -> Dataset {
    let compression = match suffix {
        ".gz" => Compression::Gzip,
        ".zz" => Compression::Zlib,
        _ => Compression::None,
    };
    let write = |(s, shard): (usize, &Vec<Vec<u8>>)| {
        let path = dir.join(format!("in-{s}{suffix}"));
        let mut writer = WriterOptions { compression, ..WriterOptions::default() }.create(&path).unwrap();
        shard.iter().for_each(|payload| writer.write(payload).unwrap());
        writer.close().unwrap();
        path
    };
    let paths: Vec<_> = shards.iter().enumerate().map(write).collect();
    open(&paths)
}

fn open(paths: &[PathBuf]) -> Dataset {
    DatasetOptions::new().index(IndexMode::Memory).open(paths).unwrap()
}

fn payloads(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for path in paths {
        let mut stream = tfseek::Stream::open(path).unwrap();
        while let Some(record) = stream.next().unwrap() {
            all.push(record.payload().to_vec());
        }
    }
    all
}

fn records(n: usize) -> Vec<Vec<u8>> {
    (0..n)
        .map(|i| {
            ExampleBuilder::new()
                .int64("id", [i as i64])
                .bytes("b", [vec![b'x'; i * 7 % 50]])
                .encode()
                .unwrap()
        })
        .collect()
}

/// Divides records into three shards, the second of them empty.
fn three(records: &[Vec<u8>]) -> [Vec<Vec<u8>>; 3] {
    let (a, b) = records.split_at(records.len() / 3);
    [a.to_vec(), Vec::new(), b.to_vec()]
}

fn run(ds: &Dataset, options: &ReshardOptions) -> Result<ReshardReport, ToolsError> {
    reshard(ds, options, &WriteProgress::default())
}

/// Returns the files of a folder and its folders.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    found
}

/// Compares an output with the model: shard s of N has the records of positions s * n / N to (s + 1) * n / N.
fn check_model(wanted: &[Vec<u8>], set: &ReshardSet) {
    let n = wanted.len();
    let count = set.shards.len();
    assert_eq!(set.records, n as u64);
    for (s, path) in set.shards.iter().enumerate() {
        let mut bytes = Vec::new();
        for payload in &wanted[s * n / count..(s + 1) * n / count] {
            tfseek::frame::put_record(&mut bytes, payload).unwrap();
        }
        assert!(fs::read(path).unwrap() == bytes, "{}", path.display());
    }
}

/// The two ways of a shuffle, and stored order, for many sizes.
#[test]
fn order_and_bytes_are_those_of_the_model() {
    for (n, seed) in [(0, 0), (1, 0), (2, 5), (10, u64::MAX), (5000, 7)] {
        let all = records(n);
        let dir = tempfile::tempdir().unwrap();
        let ds = dataset(dir.path(), &three(&all), "");
        for count in [1, 3, 64] {
            let mut options = ReshardOptions::new(dir.path().join(format!("out{count}@{count}.tfrecord")));
            options.force = true;
            options.seed = seed;
            check_model(&all, &run(&ds, &options).unwrap().sets[0]);
            options.order = OrderOptions::Shuffled;
            let order = Order::new(&Spec::Global, n as u64, seed, 0).unwrap();
            let wanted: Vec<_> = (0..n as u64).map(|k| all[order.get(k).unwrap() as usize].clone()).collect();
            for (memory, way) in [(1 << 30, ReshardWay::Direct), (n as u64 * 16, ReshardWay::Files)] {
                options.memory = Some(memory);
                let report = run(&ds, &options).unwrap();
                assert!(report.way == way || n == 0, "{n}: {:?}", report.way);
                check_model(&wanted, &report.sets[0]);
            }
        }
    }
}

#[test]
fn one_answer_for_any_threads_memory_and_compression_of_the_input() {
    let all = records(3000);
    let mut seen = BTreeMap::new();
    for suffix in ["", ".gz", ".zz"] {
        let dir = tempfile::tempdir().unwrap();
        let ds = dataset(dir.path(), &three(&all), suffix);
        for threads in [Some(1), Some(8)] {
            for memory in [60_000, 1 << 30] {
                for out in ["x/{split}@5.tfrecord", "x/{split}@3.tfrecord.gz", "x/{split}.zlib"] {
                    let mut options = ReshardOptions::new(dir.path().join(out));
                    (options.threads, options.memory, options.order) =
                        (threads, Some(memory), OrderOptions::Shuffled);
                    options.split = Some(split(&[("train", 0.9), ("val", 0.1)], Some("id"), None));
                    let report = run(&ds, &options).unwrap();
                    let name = |path: PathBuf| path.file_name().unwrap().to_owned();
                    let found: BTreeMap<_, _> = files(&dir.path().join("x"))
                        .into_iter()
                        .map(|(path, bytes)| (name(path), sha256(&bytes)))
                        .collect();
                    assert_eq!(
                        seen.entry(out).or_insert_with(|| found.clone()),
                        &found,
                        "{suffix} {threads:?} {memory} {out}"
                    );
                    let way = if memory == 60_000 {
                        ReshardWay::Files
                    } else if suffix.is_empty() {
                        ReshardWay::Direct
                    } else {
                        ReshardWay::Memory
                    };
                    assert_eq!(report.way, way);
                    fs::remove_dir_all(dir.path().join("x")).unwrap();
                }
            }
        }
    }
}

fn split(splits: &[(&str, f64)], by: Option<&str>, missing: Option<&str>) -> SplitOptions {
    let splits = splits.iter().map(|(name, fraction)| (name.to_string(), *fraction)).collect();
    SplitOptions { splits, by: by.map(String::from), missing: missing.map(String::from) }
}

#[test]
fn a_split_is_the_order_of_its_records() {
    let all = records(4000);
    let dir = tempfile::tempdir().unwrap();
    let ds = dataset(dir.path(), &three(&all), "");
    let mut options = ReshardOptions::new(dir.path().join("{split}@3.tfrecord"));
    options.seed = 7;
    options.force = true;
    let splits = Split::new(&[0.7, 0.2, 0.1]).unwrap();
    for by in [None, Some("id")] {
        let split_of = |i: u64| {
            let payload = &all[i as usize];
            splits.number(match by {
                None => Split::hash(payload, 7),
                Some(_) => Split::hash(&(i as i64).to_le_bytes(), 7),
            })
        };
        for order in [OrderOptions::Stored, OrderOptions::Shuffled] {
            options.split = Some(split(&[("a", 0.7), ("b", 0.2), ("c", 0.1)], by, None));
            options.order = order.clone();
            let report = run(&ds, &options).unwrap();
            assert_eq!(written(&report), 4000);
            for (p, set) in report.sets.iter().enumerate() {
                let subset = Subset::from_fn(4000, |i| split_of(i) == Some(p));
                let spec = if order == OrderOptions::Stored { Spec::Sequential } else { Spec::Global };
                let order = Order::new(&spec.filtered(subset), 4000, 7, 0).unwrap();
                let wanted: Vec<_> =
                    (0..order.len()).map(|k| all[order.get(k).unwrap() as usize].clone()).collect();
                check_model(&wanted, set);
                let fraction = [0.7, 0.2, 0.1][p];
                assert!((set.records as f64 - 4000.0 * fraction).abs() < 150.0, "{p} {}", set.records);
            }
        }
    }
}

/// Some of the records, in each order and with a split, by both ways.
#[test]
fn some_of_the_records() {
    let all = records(1000);
    let dir = tempfile::tempdir().unwrap();
    let ds = dataset(dir.path(), &three(&all), "");
    let some = Subset::from_fn(1000, |i| i % 3 == 1);
    for order in [
        OrderOptions::Stored,
        OrderOptions::Shuffled,
        OrderOptions::Sorted { feature: "id".into(), reverse: true },
    ] {
        for split_by in [None, Some("id")] {
            for (memory, sized) in [(1 << 30, false), (5000, false), (1 << 30, true)] {
                let mut options =
                    ReshardOptions::new(dir.path().join(if split_by.is_some() { "{split}" } else { "o" }));
                (options.force, options.memory, options.seed) = (true, Some(memory), 5);
                (options.order, options.records) = (order.clone(), Some(some.clone()));
                options.split = split_by.map(|by| split(&[("x", 0.5), ("y", 0.5)], Some(by), None));
                if sized {
                    options.out =
                        dir.path().join(format!("{}@*", options.out.file_name().unwrap().display()));
                    options.shards = Some(ShardCount::Size(2000));
                    options.keep = vec!["id".into()];
                }
                let report = run(&ds, &options).unwrap();
                assert_eq!((written(&report), report.left_out), (333, 667));
                let splits = Split::new(&[0.5, 0.5]).unwrap();
                for (p, set) in report.sets.iter().enumerate() {
                    let is_in_split = |i: u64| {
                        splits.number(Split::hash(&i.to_le_bytes(), 5)) == Some(p) || split_by.is_none()
                    };
                    let subset = Subset::from_fn(1000, |i| i % 3 == 1 && is_in_split(i));
                    let mut wanted: Vec<u64> = match order {
                        OrderOptions::Shuffled => {
                            let order = Order::new(&Spec::Global.filtered(subset), 1000, 5, 0).unwrap();
                            (0..order.len()).map(|k| order.get(k).unwrap()).collect()
                        }
                        _ => subset.iter().collect(),
                    };
                    if matches!(order, OrderOptions::Sorted { .. }) {
                        wanted.reverse();
                    }
                    let id = |payload: &Vec<u8>| {
                        tfseek::Example::new(payload).int64("id").unwrap().first().unwrap() as u64
                    };
                    let found: Vec<u64> = payloads(&set.shards).iter().map(id).collect();
                    assert_eq!(found, wanted);
                    let lens: Vec<_> =
                        set.shards.iter().map(|path| fs::metadata(path).unwrap().len()).collect();
                    assert!(!sized || lens.len() > 2 && lens.iter().all(|&len| len < 2050), "{lens:?}");
                    set.shards.iter().for_each(|path| fs::remove_file(path).unwrap());
                }
            }
        }
    }
}

/// Records with one value are in one split, also when others are added.
#[test]
fn groups_stay_together() {
    let dir = tempfile::tempdir().unwrap();
    let group = |i: u64| format!("patient-{}", i % 40);
    let all: Vec<_> = (0..2000u64)
        .map(|i| ExampleBuilder::new().int64("i", [i as i64]).bytes("group", [group(i)]).encode().unwrap())
        .collect();
    let mut before: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for n in [100, 1000, 2000] {
        let ds = dataset(dir.path(), &[all[..n].to_vec()], "");
        let mut options = ReshardOptions::new(dir.path().join(format!("{n}-{{split}}")));
        options.split = Some(split(&[("train", 0.5), ("val", 0.5)], Some("group"), None));
        let report = run(&ds, &options).unwrap();
        for (p, set) in report.sets.iter().enumerate() {
            for payload in payloads(&set.shards) {
                let group = tfseek::Example::new(&payload).bytes("group").unwrap().first().unwrap().to_vec();
                assert_eq!(*before.entry(group).or_insert(p), p);
            }
        }
    }
    assert_eq!(before.len(), 40);
}

/// The vectors of docs/resharding.md.
#[test]
fn hashes_of_values() {
    let page = include_str!("../../../../../docs/resharding.md");
    let hash = |feature: tfseek::FeatureBuf, seed| {
        let payload = ExampleBuilder::new().feature("f", feature).encode().unwrap();
        splits::hash_values(tfseek::Example::new(&payload).get("f").unwrap().unwrap(), seed, &mut vec![1])
    };
    for (name, hash) in [
        ("int64 `[5]`, seed 0", hash(vec![5i64].into(), 0)),
        ("int64 `[5]`, seed 7", hash(vec![5i64].into(), 7)),
        ("int64 `[-1, 2]`, seed 7", hash(vec![-1i64, 2].into(), 7)),
        ("float `[0.5]`, seed 7", hash(vec![0.5f32].into(), 7)),
        ("bytes `[\"p-17\"]`, seed 7", hash(vec![b"p-17".to_vec()].into(), 7)),
        ("bytes `[\"a\", \"\"]`, seed 7", hash(vec![b"a".to_vec(), Vec::new()].into(), 7)),
        ("payload `abc`, seed 7", Split::hash(b"abc", 7)),
    ] {
        let row = format!("| {name} | {hash:#018x} | {:.6} |", hash as f64 / 2f64.powi(64));
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn records_without_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let with = ExampleBuilder::new().int64("k", [1]).encode().unwrap();
    let without = [
        ExampleBuilder::new(),
        ExampleBuilder::new().int64("k", [0i64; 0]),
        ExampleBuilder::new().feature("k", tfseek::FeatureBuf::None),
    ];
    for without in without.map(|builder| builder.encode().unwrap()) {
        let ds = dataset(dir.path(), &[vec![with.clone(); 3], vec![with.clone(), without, with.clone()]], "");
        let mut options = ReshardOptions::new(dir.path().join("o/{split}"));
        options.force = true;
        options.split = Some(split(&[("train", 0.5), ("val", 0.5)], Some("k"), None));
        let e = run(&ds, &options).unwrap_err().to_string();
        assert!(e.contains("in-1: record 1: feature \"k\": expected a value"), "{e}");
        assert!(!dir.path().join("o").exists());
        let report = run(&ds, &{
            let mut o = options.clone();
            o.split = Some(split(&[("train", 0.5), ("val", 0.5)], Some("k"), Some("val")));
            o
        })
        .unwrap();
        let counts: Vec<_> = report.sets.iter().map(|set| set.records).collect();
        assert!(counts == [5, 1] || counts == [0, 6], "{counts:?}");
        fs::remove_dir_all(dir.path().join("o")).unwrap();
    }
}

#[test]
fn sorted_by_a_feature() {
    let dir = tempfile::tempdir().unwrap();
    let values = [Some(3), None, Some(-1), Some(3), Some(7), None, Some(-1)];
    let record = |(i, value): (usize, &Option<i64>)| {
        let builder = ExampleBuilder::new().int64("i", [i as i64]);
        match value {
            Some(value) => {
                builder.int64("v", [*value]).float("f", [-(*value as f32)]).bytes("b", [format!("{value}")])
            }
            None => builder,
        }
        .encode()
        .unwrap()
    };
    let all: Vec<_> = values.iter().enumerate().map(record).collect();
    let ds = dataset(dir.path(), &[all[..3].to_vec(), all[3..].to_vec()], "");
    let ids = |options: &ReshardOptions| -> Vec<Vec<i64>> {
        let id = |payload: Vec<u8>| tfseek::Example::new(&payload).int64("i").unwrap().first().unwrap();
        run(&ds, options)
            .unwrap()
            .sets
            .iter()
            .map(|set| payloads(&set.shards).into_iter().map(id).collect())
            .collect()
    };
    let mut options = ReshardOptions::new(dir.path().join("o@2"));
    options.force = true;
    for memory in [None, Some(80)] {
        options.memory = memory;
        for (feature, reverse, wanted) in [
            ("v", false, [2, 6, 0, 3, 4, 1, 5]),
            ("v", true, [4, 0, 3, 2, 6, 1, 5]),
            ("f", false, [4, 0, 3, 2, 6, 1, 5]),
            ("b", false, [2, 6, 0, 3, 4, 1, 5]),
        ] {
            options.order = OrderOptions::Sorted { feature: feature.into(), reverse };
            assert_eq!(ids(&options), [wanted]);
        }
    }
    options.out = dir.path().join("{split}");
    options.order = OrderOptions::Sorted { feature: "v".into(), reverse: false };
    options.split = Some(split(&[("x", 0.5), ("y", 0.5)], Some("i"), None));
    let [x, y] = &ids(&options)[..] else { panic!() };
    let sorted = |records: &[i64]| {
        [2, 6, 0, 3, 4, 1, 5].into_iter().filter(|i| records.contains(i)).collect::<Vec<_>>() == records
    };
    assert!(sorted(x) && sorted(y) && x.len() + y.len() == 7);
    options.order = OrderOptions::Sorted { feature: "none".into(), reverse: false };
    assert!(run(&ds, &options).unwrap_err().to_string().contains("no record has a value"));
}

#[test]
fn features_to_keep_and_to_drop() {
    let dir = tempfile::tempdir().unwrap();
    let example = ExampleBuilder::new()
        .int64("label", [1])
        .bytes("image/encoded", ["x"])
        .bytes("image/format", ["png"])
        .encode()
        .unwrap();
    let sequence = SequenceExampleBuilder::new()
        .int64("label", [1])
        .int64("id", [2])
        .feature_list("image/frames", [vec![1i64].into()])
        .feature_list("other", [])
        .encode()
        .unwrap();
    let run_on = |payload: &Vec<u8>, keep: &[&str], drop: &[&str]| -> Result<Vec<u8>, String> {
        let ds = dataset(dir.path(), &[vec![payload.clone(); 3]], "");
        let mut options = ReshardOptions::new(dir.path().join("o.tfrecord"));
        options.force = true;
        options.keep = keep.iter().map(|name| name.to_string()).collect();
        options.drop = drop.iter().map(|name| name.to_string()).collect();
        let report = run(&ds, &options).map_err(|e| e.to_string())?;
        let found = payloads(&report.sets[0].shards);
        assert_eq!(found, vec![found[0].clone(); 3]);
        Ok(found[0].clone())
    };
    let wanted = ExampleBuilder::new().int64("label", [1]).bytes("image/format", ["png"]).encode().unwrap();
    assert_eq!(run_on(&example, &["label", "*format"], &[]).unwrap(), wanted);
    assert_eq!(run_on(&example, &[], &["image/enc*"]).unwrap(), wanted);
    assert_eq!(run_on(&example, &["*"], &["image/enc*"]).unwrap(), wanted);
    let wanted = SequenceExampleBuilder::new()
        .int64("id", [2])
        .feature_list("image/frames", [vec![1i64].into()])
        .encode()
        .unwrap();
    assert_eq!(run_on(&sequence, &["id", "image/*"], &[]).unwrap(), wanted);
    for (keep, drop) in [(&["labl"][..], &[][..]), (&[], &["labl"])] {
        let words = "no record has a feature \"labl\"; the nearest name is \"label\"";
        assert_eq!(run_on(&example, keep, drop).unwrap_err(), words);
    }
    let e = run_on(&example, &["label"], &["nothing*"]).unwrap_err();
    assert_eq!(e, "no record has a feature \"nothing*\"");
    let e = run_on(&b"no Example at all".to_vec(), &["a"], &[]).unwrap_err();
    assert!(e.contains("found other payloads"), "{e}");
}

#[test]
fn shards_of_a_size() {
    let dir = tempfile::tempdir().unwrap();
    let all = records(1000);
    let stored = |payload: &Vec<u8>| payload.len() as u64 + 16;
    let total: u64 = all.iter().map(stored).sum();
    let ds = dataset(dir.path(), &three(&all), "");
    for (size, keep) in [(2000, false), (total - 1, false), (total, false), (5000, true)] {
        let mut options = ReshardOptions::new(dir.path().join(format!("o{size}.tfrecord")));
        options.shards = Some(ShardCount::Size(size));
        options.order = OrderOptions::Shuffled;
        if keep {
            options.drop = vec!["b".into()];
        }
        let set = run(&ds, &options).unwrap().sets.remove(0);
        let lens: Vec<u64> = set.shards.iter().map(|path| fs::metadata(path).unwrap().len()).collect();
        let written: u64 = lens.iter().sum();
        assert!(keep || written == total);
        assert_eq!(lens.len() as u64, written.div_ceil(size).min(1000), "{size}");
        assert!(lens.iter().all(|&len| len <= size + 140), "{size}: {lens:?}");
        assert_eq!(payloads(&set.shards).len(), 1000);
    }
}

#[test]
fn outputs_are_checked_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let ds = dataset(dir.path(), &[records(10)], "");
    let at = |name: &str| dir.path().join(name);
    let fails = |options: &ReshardOptions, words: &str| {
        let before = files(dir.path());
        let e = run(&ds, options).unwrap_err().to_string();
        assert!(e.contains(words), "{e}");
        assert!(files(dir.path()) == before);
    };
    fails(&ReshardOptions::new(at("in-0")), "is an input");
    let mut forced = ReshardOptions::new(at("in-0"));
    forced.force = true;
    fails(&forced, "is an input");
    run(&ds, &ReshardOptions::new(at("a@2"))).unwrap();
    fails(&ReshardOptions::new(at("a@2")), "already exists");
    fails(&ReshardOptions::new(at("a@3")), "a-00000-of-00002: belongs to another set");
    fails(&ReshardOptions::new(at("none/none/a@3")), "none/none");
    fails(&ReshardOptions::new(at("a@999999999999")), "expected at most");
    let with = |f: &dyn Fn(&mut ReshardOptions)| {
        let mut options = ReshardOptions::new(at("{split}"));
        options.split = Some(split(&[("x", 0.5), ("y", 0.5)], None, None));
        f(&mut options);
        options
    };
    let splits = |splits: &'static [(&str, f64)]| with(&move |o| o.split = Some(split(splits, None, None)));
    fails(&splits(&[("x", 0.5)]), "with a sum of 1");
    fails(&splits(&[("x", 0.5), ("x", 0.5)]), "twice");
    fails(&splits(&[("x", 0.7), ("y", 0.7)]), "split: expected fractions with a sum of at most 1, found 1.4");
    fails(&splits(&[("x", 1.0), ("y", 0.0)]), "above 0 for the split y");
    fails(&splits(&[("../x", 1.0)]), "expected a name");
    fails(&splits(&[]), "1 to 64 splits");
    fails(&with(&|o| o.split = Some(split(&[("x", 1.0)], None, Some("x")))), "requires a feature");
    fails(&with(&|o| o.split = Some(split(&[("x", 1.0)], Some("id"), Some("z")))), "found z");
    fails(&with(&|o| o.out = at("x")), "expected {split}");
    fails(&with(&|o| o.split = None), "requires a split");
    fails(&with(&|o| o.members = Some(5)), "expected compression gzip");
    fails(&with(&|o| o.threads = Some(9999)), "threads");
    // Reasons have fields.
    let failure = |options: &ReshardOptions| run(&ds, options).unwrap_err();
    let twice = failure(&splits(&[("x", 0.5), ("x", 0.5)]));
    assert!(matches!(twice, ToolsError::Split(SplitReason::Twice(name)) if name == "x"));
    let no_split = failure(&with(&|o| o.out = at("x")));
    assert!(matches!(no_split, ToolsError::Path { path, reason: PathReason::NoSplit } if path == at("x")));
    // Replacement keeps links and removes the old set first.
    let mut again = ReshardOptions::new(at("a@2"));
    (again.force, again.order) = (true, OrderOptions::Shuffled);
    check_records(&run(&ds, &again).unwrap(), 10);
}

fn written(report: &ReshardReport) -> u64 {
    report.sets.iter().map(|set| set.records).sum()
}

fn check_records(report: &ReshardReport, n: u64) {
    assert_eq!(written(report), n);
    assert_eq!(
        payloads(&report.sets.iter().flat_map(|set| set.shards.clone()).collect::<Vec<_>>()).len() as u64,
        n
    );
}

#[test]
fn damage_and_cancellation_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let ds = dataset(dir.path(), &[records(3000)], "");
    let before = files(dir.path());
    for memory in [50_000, 1 << 30] {
        let mut options = ReshardOptions::new(dir.path().join("o/x@4"));
        (options.order, options.memory) = (OrderOptions::Shuffled, Some(memory));
        let progress =
            WriteProgress { advance: Arc::new(|_| ControlFlow::Break(())), ..WriteProgress::default() };
        let e = reshard(&ds, &options, &progress).unwrap_err();
        assert!(matches!(e, ToolsError::Error(e) if matches!(e.kind(), ErrorKind::Cancelled)));
        assert!(files(dir.path()) == before && !dir.path().join("o").exists());
    }
    let path = dir.path().join("in-0");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let ds = open(&[path]);
    for (order, memory) in
        [(OrderOptions::Stored, 0), (OrderOptions::Shuffled, 50_000), (OrderOptions::Shuffled, 1 << 30)]
    {
        let mut options = ReshardOptions::new(dir.path().join("o/x@4"));
        (options.order, options.memory) = (order, Some(memory));
        let e = run(&ds, &options).unwrap_err().to_string();
        assert!(e.contains("in-0: record ") && e.contains("crc32c"), "{e}");
        assert!(files(dir.path()).len() == 1 && !dir.path().join("o").exists());
    }
}

#[test]
fn indexes_members_and_duplicates() {
    let dir = tempfile::tempdir().unwrap();
    let all = records(500);
    let ds = dataset(dir.path(), std::slice::from_ref(&all), "");
    let path = dir.path().join("in-0");
    let twice = open(&[path.clone(), path]);
    for out in ["a@3.tfrecord", "a@3.tfrecord.gz"] {
        let mut options = ReshardOptions::new(dir.path().join(out));
        (options.order, options.index) = (OrderOptions::Shuffled, true);
        options.members = out.ends_with("gz").then_some(1000);
        let report = run(&twice, &options).unwrap();
        let opened = DatasetOptions::new().index(IndexMode::Require).open(dir.path().join(out)).unwrap();
        assert_eq!((opened.len(), written(&report)), (1000, 1000));
        let mut found = payloads(&report.sets[0].shards);
        let mut wanted = [all.clone(), all.clone()].concat();
        found.sort();
        wanted.sort();
        assert!(found == wanted);
    }
    drop(ds);
}

/// A bucket that is larger than expected is read record by record, and other bytes in it are an error.
#[test]
fn more_records_than_shards_and_long_records() {
    let dir = tempfile::tempdir().unwrap();
    let mut all: Vec<Vec<u8>> = (0..300usize).map(|i| vec![i as u8; 3]).collect();
    all[77] = vec![7; 3 << 20];
    let ds = dataset(dir.path(), &three(&all), "");
    let order = Order::new(&Spec::Global, 300, 0, 0).unwrap();
    let wanted: Vec<_> = (0..300).map(|k| all[order.get(k).unwrap() as usize].clone()).collect();
    for memory in [3 << 20, 1 << 20, 100_000] {
        let mut options = ReshardOptions::new(dir.path().join("o@1000"));
        (options.order, options.memory, options.force) = (OrderOptions::Shuffled, Some(memory), true);
        let report = run(&ds, &options).unwrap();
        assert_eq!(report.way, ReshardWay::Files);
        check_model(&wanted, &report.sets[0]);
    }
    let mut options = ReshardOptions::new(dir.path().join("p"));
    (options.order, options.memory) = (OrderOptions::Shuffled, Some(1000));
    let e = run(&ds, &options).unwrap_err().to_string();
    assert!(e.contains("memory: expected at least"), "{e}");
}

/// A million small records in 1 to 64 shards, by both ways.
#[test]
#[ignore = "takes a minute: `make test-slow`"]
fn a_million_records() {
    let dir: TempDir = tempfile::tempdir().unwrap();
    let n = 1_000_000u64;
    let payload = |i: u64| i.to_le_bytes();
    let paths: Vec<_> = (0..4).map(|s| dir.path().join(format!("in-{s}"))).collect();
    for (s, path) in (0..).zip(&paths) {
        let mut writer = Writer::create(path).unwrap();
        (s * n / 4..(s + 1) * n / 4).for_each(|i| writer.write(&payload(i)).unwrap());
        writer.close().unwrap();
    }
    let ds = open(&paths);
    let order = Order::new(&Spec::Global, n, 3, 0).unwrap();
    let wanted: Vec<Vec<u8>> = (0..n).map(|k| payload(order.get(k).unwrap()).to_vec()).collect();
    for count in [1, 2, 5, 16, 64] {
        for (memory, way) in [(1 << 30, ReshardWay::Direct), (8 << 20, ReshardWay::Files)] {
            let mut options = ReshardOptions::new(dir.path().join(format!("o{count}@{count}")));
            (options.order, options.seed, options.memory, options.force) =
                (OrderOptions::Shuffled, 3, Some(memory), true);
            let report = run(&ds, &options).unwrap();
            assert_eq!(report.way, way);
            check_model(&wanted, &report.sets[0]);
        }
    }
}
