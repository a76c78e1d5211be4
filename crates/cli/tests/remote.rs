//! Verbs over URLs: the same output as over files.

#[path = "../../remote/src/tests/server/mod.rs"]
mod server;

use crate::common::{self, Folder, Ran};
use server::{Fault, Server};
use std::process::{Command, Stdio};
use tfseek::ExampleBuilder;

/// A folder, and a server with the same files.
struct Served {
    dir: Folder,
    server: Server,
}

const NAMES: [&str; 2] = ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"];

impl Served {
    fn new() -> Served {
        let served = Served { dir: Folder::new(), server: Server::start() };
        for (name, labels) in NAMES.iter().zip([0..30, 30..50]) {
            served.dir.shard(name, common::labels(labels));
            served.put(name);
        }
        served
    }

    /// Sends a file of the folder to the server.
    fn put(&self, name: &str) {
        let bytes = std::fs::read(self.dir.path(name)).unwrap();
        self.server.set(&format!("bucket/data/{name}"), bytes.clone());
        self.server.set(&format!("hub/data/{name}"), bytes);
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.dir.command(args);
        for name in ["AWS_ENDPOINT_URL", "GOOGLE_BASE_URL", "AZURE_STORAGE_ENDPOINT", "HF_ENDPOINT"] {
            command.env(name, self.server.url());
        }
        command.env("AWS_ALLOW_HTTP", "true").env("AZURE_ALLOW_HTTP", "true");
        command
            .env("AZURE_STORAGE_ACCOUNT_NAME", "account")
            .env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1");
        command.env("HOME", self.dir.path("home"));
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        let child = self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Ran::of(common::output_of(child))
    }

    /// Returns the folders of the same files: URLs that end in `/`.
    fn roots(&self) -> [String; 5] {
        let web = format!("{}/bucket/data/", self.server.url());
        let [s3, gs, az] = ["s3", "gs", "az"].map(|scheme| format!("{scheme}://bucket/data/"));
        [s3, gs, az, web, "hf://datasets/owner/name/data/".to_owned()]
    }
}

#[test]
fn verbs_print_what_they_print_of_files() {
    let served = Served::new();
    for root in served.roots() {
        for (verb, rest) in [
            // It builds the indexes, from which `head` knows the numbers of records in all files.
            ("get", &["2", "-1", "3:5"][..]),
            ("head", &["-n", "3"]),
            ("head", &["-f", "json", "--where", "label > 25"]),
            ("sample", &["-n", "5"]),
            ("schema", &[]),
            ("verify", &[]),
            ("verify", &["--json", "--decode"]),
        ] {
            let args = |at: &str| {
                let paths = NAMES.map(|name| format!("{at}{name}"));
                let words = [verb.to_owned()].into_iter().chain(paths);
                words.chain(rest.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>()
            };
            let run = |at: &str| served.run(&args(at).iter().map(String::as_str).collect::<Vec<_>>());
            let (files, objects) = (run(""), run(&root));
            assert_eq!(objects.out.replace(&root, ""), files.out, "{verb} {root}: {}", objects.err);
            assert_eq!(
                (objects.code, objects.err.replace(&root, "")),
                (files.code, files.err),
                "{verb} {root}"
            );
        }
        let ran = served.run(&["info", &format!("{root}{}", NAMES[0])]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let file = served.run(&["info", NAMES[0]]);
        let lines = |ran: &Ran| {
            ran.out.lines().filter(|line| !line.contains("index ")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&ran)[1..], lines(&file)[1..], "{root}");
        if !root.starts_with("http") {
            let ran = served.run(&["get", &format!("{root}train-*"), "40"]);
            assert_eq!(ran.out.replace(&root, ""), served.run(&["get", NAMES[0], NAMES[1], "40"]).out);
        }
    }
    // The index is in the cache, and nothing was written.
    assert_eq!(served.server.counts().puts, 0);
}

/// A schema of the records.
const SCHEMA: &str = r#"{"features": {"label": {"type": "fixed", "dtype": "int64", "shape": []}}}"#;

#[test]
fn all_verbs_that_read_take_urls() {
    let served = Served::new();
    std::fs::write(served.dir.path("schema.json"), SCHEMA).unwrap();
    for name in NAMES {
        let packed = format!("{name}.gz");
        served.dir.shard(&packed, common::labels(0..30));
        served.put(&packed);
    }
    let verbs: &[&[&str]] = &[
        &["cat"],
        &["cat", "-f", "json", "--skip", "28"],
        &["cat", "--bare"],
        &["cat", "--where", "label > 25", "-f", "json"],
        &["tail", "-n", "3"],
        &["tail", "-n", "+18", "-f", "json"],
        &["tail", "-n", "2", "--where", "label < 40"],
        &["grep", "label in 7, 33"],
        &["grep", "label > 20", "--count", "--json"],
        &["stats", "--json"],
        &["stats", "--json", "--where", "number > 45"],
        &["stats", "--json", "--sample", "20"],
        &["digest"],
        &["order", "--batch-size", "8", "--step", "2"],
        &["order", "--batch-size", "8", "--record", "40", "--where", "label > 20"],
        &["parse", "--schema", "schema.json", "-n", "40", "--skip", "20"],
        &["validate", "--schema", "schema.json", "--json"],
        &["schema", "--json"],
        &["verify", "--json"],
    ];
    // It builds the indexes.
    assert_eq!(served.run(&["order", NAMES[0], NAMES[1], "--batch-size", "8", "--describe"]).code, 0);
    for root in served.roots() {
        let urls = NAMES.map(|name| format!("{root}{name}"));
        assert_eq!(served.run(&["get", &urls[0], &urls[1], "0"]).code, 0);
        for args in verbs {
            let run = |paths: [&str; 2]| served.run(&[*args, &paths[..]].concat());
            let (files, objects) = (run(NAMES), run([&urls[0], &urls[1]]));
            let bare = |text: &str| text.replace(&root, "");
            assert_eq!((objects.code, bare(&objects.err)), (files.code, files.err), "{args:?} {root}");
            assert_eq!(bare(&objects.out), files.out, "{args:?} {root}");
        }
        let epoch = |paths: [&str; 2]| {
            let ran = served.run(
                &[&["epoch", "--json", "--schema", "schema.json", "-b", "8", "--seed", "3"], &paths[..]]
                    .concat(),
            );
            let report: serde_json::Value = serde_json::from_str(&ran.out).expect(&ran.err);
            (report["records"].clone(), report["sum"].clone(), report["steps"].clone())
        };
        assert_eq!(epoch([&urls[0], &urls[1]]), epoch(NAMES), "{root}");
        let arrow = |paths: [&str; 2]| {
            let child =
                served.command(&["cat", "-f", "arrow", paths[0], paths[1]]).stdout(Stdio::piped()).spawn();
            child.unwrap().wait_with_output().unwrap().stdout
        };
        let tables = (arrow([&urls[0], &urls[1]]), arrow(NAMES));
        assert!(tables.0 == tables.1 && tables.0.len() > 400, "{root}");
        for (args, out) in [
            (&["convert"][..], "all.parquet"),
            (&["convert", "--where", "label > 20"], "some.jsonl"),
            (&["convert", "--schema", "schema.json"], "some.arrow"),
        ] {
            let run = |paths: [&str; 2]| {
                let ran = served.run(&[args, &paths, &[out, "--force"]].concat());
                assert_eq!(ran.code, 0, "{args:?} {root}: {}", ran.err);
                let made = std::fs::read(served.dir.path(out)).unwrap();
                String::from_utf8_lossy(&made).replace(&root, "")
            };
            assert!(run([&urls[0], &urls[1]]) == run(NAMES), "{args:?} {root}");
        }
        for (args, out) in
            [(&["reshard", "-o"][..], "new.tfrecord"), (&["reshard", "--shuffle", "-o"], "new.tfrecord")]
        {
            let run = |paths: [&str; 2]| {
                let ran = served.run(&[args, &[out, "--force"], &paths].concat());
                assert_eq!(ran.code, 0, "{args:?} {root}: {}", ran.err);
                std::fs::read(served.dir.path(out)).unwrap()
            };
            assert!(run([&urls[0], &urls[1]]) == run(NAMES), "{args:?} {root}");
        }
        let ran = served.run(&["unpack", "--force", "-o", "plain.tfrecord", &format!("{}.gz", urls[0])]);
        assert_eq!(ran.code, 0, "{root}: {}", ran.err);
        let plain = std::fs::read(served.dir.path("plain.tfrecord")).unwrap();
        assert!(plain == std::fs::read(served.dir.path(NAMES[0])).unwrap(), "{root}");
        #[cfg(feature = "view")]
        {
            let ran = served.run(&["view", "--html", "page.html", "--force", &urls[0], &urls[1]]);
            assert_eq!(ran.code, 0, "{root}: {}", ran.err);
            let page = std::fs::read_to_string(served.dir.path("page.html")).unwrap();
            assert!(page.contains("50 records"), "{root}");
        }
    }
    assert_eq!(served.server.counts().puts, 0);
}

#[test]
fn verbs_in_file_order_read_each_byte_once() {
    let served = Served::new();
    std::fs::write(served.dir.path("schema.json"), SCHEMA).unwrap();
    let mut bytes = Vec::new();
    for label in 0..1200 {
        let example = ExampleBuilder::new().int64("label", [label]).bytes("more", [[7; 50_000]]);
        tfseek::frame::put_record(&mut bytes, &example.encode().unwrap()).unwrap();
    }
    let size = bytes.len() as u64;
    served.server.set("bucket/large.tfrecord", bytes);
    let url = "s3://bucket/large.tfrecord";
    for args in [
        &["cat", "-f", "json", "--features", "label"][..],
        &["tail", "-n", "1"],
        &["grep", "label == 7"],
        &["stats", "--features", "label"],
        &["digest"],
        &["parse", "--schema", "schema.json"],
        &["validate", "--schema", "schema.json"],
        &["verify"],
    ] {
        served.server.counts();
        let ran = served.run(&[args, &[url]].concat());
        assert!(ran.code <= 1, "{args:?}: {}", ran.err);
        let counts = served.server.counts();
        println!("{args:?}: {counts:?} of {size} bytes");
        assert!(counts.bytes <= size + size / 10, "{args:?}: {counts:?} of {size} bytes");
        assert!(counts.gets <= 8 + size / (1 << 20), "{args:?}: {counts:?} of {size} bytes");
    }
}

#[test]
fn verbs_by_number_request_records_together() {
    let served = Served::new();
    let mut bytes = Vec::new();
    for label in 0..2000 {
        let example = ExampleBuilder::new().int64("label", [label]).encode().unwrap();
        tfseek::frame::put_record(&mut bytes, &example).unwrap();
    }
    // A damaged record among them is one error.
    let len = bytes.len();
    bytes[len / 2 + 20] ^= 1;
    served.server.set("bucket/small.tfrecord", bytes);
    let url = "s3://bucket/small.tfrecord";
    assert_eq!(served.run(&["index", url]).code, 0);
    for args in [
        &["stats", "--json", "--sample", "1900"][..],
        &["stats", "--json", "--where", "number > 5"],
        &["epoch", "-b", "100", "--shuffle", "block"],
    ] {
        served.server.counts();
        let ran = served.run(&[args, &[url]].concat());
        let counts = served.server.counts();
        assert!(ran.code == 1 && ran.err.contains("payload crc32c"), "{args:?}: {}", ran.err);
        assert!(counts.gets < 40, "{args:?}: {counts:?}");
    }
}

#[test]
fn outputs_are_local() {
    let served = Served::new();
    let shard = NAMES[0];
    served.dir.shard("x.tfrecord.gz", common::labels(0..3));
    served.put("x.tfrecord.gz");
    for args in [
        &["convert", shard, "s3://bucket/new.parquet"][..],
        &["reshard", shard, "-o", "s3://bucket/new.tfrecord"],
        &["reshard", "s3://bucket/data/", "-o", "s3://bucket/new/x@2.tfrecord"],
        &["stats", shard, "--save", "s3://bucket/new"],
        &["salvage", shard, "s3://bucket/new"],
        &["unpack", "s3://bucket/data/x.tfrecord.gz"],
        &["unpack", "s3://bucket/data/x.tfrecord.gz", "-o", "s3://bucket/new"],
        &["epoch", shard, "-b", "8", "--state-out", "s3://bucket/new"],
        &["view", shard, "--html", "s3://bucket/new"],
        &["fetch", "s3://bucket/data/train-*", "s3://bucket/new"],
        &["demo", "--out", "s3://bucket/new"],
    ] {
        let ran = served.run(args);
        assert!(ran.code >= 2, "{args:?}: {} {}", ran.out, ran.err);
        assert!(ran.err.contains("expected a local path"), "{args:?}: {}", ran.err);
        assert!(!served.dir.path("s3:").exists(), "{args:?}: {}", ran.err);
    }
    assert_eq!(served.server.counts().puts, 0);
    for args in [
        &["convert", "s3://bucket/x.parquet", "new.tfrecord"][..],
        &["stats", "--merge", "s3://bucket/x"],
        &["parse", shard, "--schema", "s3://bucket/x"],
    ] {
        let ran = served.run(args);
        assert_eq!(
            (ran.code, ran.err.contains("expected a local file, found a URL")),
            (2, true),
            "{}",
            ran.err
        );
    }
    for args in [&["salvage", "s3://bucket/data/x", "out"][..], &["tail", "-F", "s3://bucket/data/x"]] {
        let ran = served.run(args);
        assert_eq!((ran.code, ran.err.contains("salvage and `tail -F`")), (2, true), "{args:?}: {}", ran.err);
    }
}

/// The `features.json` of records with a label of three classes.
const FEATURES: &str = r#"{"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "content": {
    "label": {"type": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "content": {"num_classes": 3}}}}"#;

/// Returns a server and a folder with the data set `tiny`: `train` with the labels 0, 1 and 2 in two shards,
/// `test` with the label 1.
fn data_set() -> Served {
    let served = Served::new();
    let folder = "tiny/1.0.0";
    std::fs::create_dir_all(served.dir.path(folder)).unwrap();
    let info = r#"{"name": "tiny", "version": "1.0.0", "splits": [
        {"name": "train", "shardLengths": ["2", "1"]}, {"name": "test", "shardLengths": ["1"]}]}"#;
    for (name, text) in
        [("dataset_info.json", info), ("features.json", FEATURES), ("label.labels.txt", "cat\ndog\nhorse\n")]
    {
        std::fs::write(served.dir.path(&format!("{folder}/{name}")), text).unwrap();
        served.put(&format!("{folder}/{name}"));
    }
    for (name, labels) in [
        ("train.tfrecord-00000-of-00002", 0..2),
        ("train.tfrecord-00001-of-00002", 2..3),
        ("test.tfrecord-00000-of-00001", 1..2),
    ] {
        let name = format!("{folder}/tiny-{name}");
        served.dir.shard(&name, common::labels(labels));
        served.put(&name);
    }
    served
}

#[test]
fn splits_of_data_sets_are_those_of_folders() {
    let served = data_set();
    for root in served.roots() {
        for (verb, split, rest) in [
            ("get", "[test+train[:2]]", &["-1", "0"][..]),
            ("head", "[train[1shard]]", &[]),
            ("head", "[train[:3]]", &["--where", "label in \"dog\", \"horse\""]),
            ("head", "[train[:3]]", &["--where", "label == 'cow'"]),
            ("head", "[train[:3]]", &["-f", "json"]),
            ("head", "[valid]", &[]),
            ("sample", "[train]", &["-n", "2"]),
            ("schema", "[all]", &[]),
            ("verify", "[train[1:]+test]", &["--json"]),
            ("cat", "[train[1:]+test]", &["-f", "json"]),
            ("tail", "[train]", &["-n", "2", "--where", "label == 'horse'"]),
            ("grep", "[train[:2]]", &["-f", "json"]),
            ("digest", "[train[1:]]", &[]),
            ("stats", "[all]", &["--json"]),
            ("order", "[train]", &["-b", "2", "--step", "0"]),
        ] {
            let condition = ["label == 'dog'"].into_iter().filter(|_| verb == "grep");
            let run = |at: &str| {
                let words = [verb].into_iter().chain(condition.clone()).map(str::to_owned);
                let words = words.chain([format!("{at}tiny/1.0.0{split}")]);
                let words: Vec<_> = words.chain(rest.iter().map(|word| (*word).to_owned())).collect();
                served.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
            };
            let (files, objects) = (run(""), run(&root));
            // Parts of files have absolute paths.
            let here = format!("{}/", served.dir.path("").display().to_string().trim_end_matches('/'));
            let bare = |text: &str| text.replace(&root, "").replace(&here, "");
            assert_eq!(
                (objects.code, bare(&objects.out), bare(&objects.err)),
                (files.code, bare(&files.out), bare(&files.err)),
                "{verb} {split} {root}"
            );
        }
        if root.starts_with("http") {
            continue;
        }
        let ran = served.run(&["get", &format!("{root}tiny[train]"), "2"]);
        assert_eq!(ran.out.replace(&root, ""), served.run(&["get", "tiny[train]", "2"]).out, "{}", ran.err);
        for folder in ["tiny/1.0.0", "tiny/1.0.0/"] {
            let run = |at: &str| served.run(&["verify", &format!("{at}{folder}")]);
            let (files, objects) = (run(""), run(&root));
            assert_eq!(
                (objects.code, objects.out.replace(&root, "")),
                (files.code, files.out),
                "{}",
                objects.err
            );
            let ran = served.run(&["info", &format!("{root}{folder}")]);
            let words: Vec<_> =
                ran.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            for expected in [
                format!("tiny 1.0.0 {root}tiny/1.0.0/dataset_info.json"),
                "3 3 2 of 2 train".to_owned(),
                "1 1 1 of 1 test".to_owned(),
                "label ClassLabel(3) cat, dog, horse".to_owned(),
            ] {
                assert!(words.contains(&expected), "{expected}: {}{}", ran.out, ran.err);
            }
        }
    }
}

#[test]
fn a_split_needs_few_requests() {
    let served = data_set();
    for (root, lists) in [("s3://bucket/data/", 1), (&*format!("{}/bucket/data/", served.server.url()), 0)] {
        let split = format!("{root}tiny/1.0.0[train]");
        assert_eq!(served.run(&["get", &split, "0"]).code, 0);
        served.server.counts();
        let before = served.server.log().len();
        let ran = served.run(&["get", &split, "2"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let counts = served.server.counts();
        let log = served.server.log().split_off(before);
        // One listing, or a HEAD of each shard; the descriptions, each once; the record, and one for the
        // guess of its kind.
        assert_eq!((counts.lists, counts.heads), (lists, 2 * (1 - lists)), "{log:#?}");
        let read =
            |name: &str| log.iter().filter(|line| line.starts_with("GET") && line.contains(name)).count();
        assert_eq!(["dataset_info.json", "features.json", "label.labels.txt"].map(read), [1; 3], "{log:#?}");
        // A server without listings is asked for the index file of each shard.
        let beside = read(".tfseek/");
        assert_eq!(beside as u64, 2 * (1 - lists), "{log:#?}");
        assert!(read(".tfrecord") - beside <= 2 && counts.gets <= 5 + beside as u64, "{log:#?}");
        // Bytes need no kind, so the first record is not read.
        let before = served.server.log().len();
        assert_eq!(served.run(&["get", &split, "2", "-f", "raw"]).code, 0);
        let log = served.server.log().split_off(before);
        let gets = log.iter().filter(|line| {
            line.starts_with("GET") && line.contains(".tfrecord") && !line.contains(".tfseek/")
        });
        assert_eq!(gets.count(), 1, "{log:#?}");
    }
}

#[test]
fn data_sets_that_are_not_whole_are_told() {
    let served = data_set();
    let object = "bucket/data/tiny/1.0.0/tiny-train.tfrecord-00001-of-00002";
    served.server.remove(object);
    let fails = |args: &[&str], code: i32, texts: &[&str]| {
        let ran = served.run(args);
        assert_eq!((ran.code, ran.err.lines().count()), (code, 1), "{args:?}: {}", ran.err);
        texts.iter().for_each(|text| assert!(ran.err.contains(text), "{args:?}: {}", ran.err));
    };
    let missing = "1 of 2 shards of split train is missing: s3://bucket/data/tiny/1.0.0/tiny-train";
    fails(&["head", "s3://bucket/data/tiny[test]"], 1, &[missing]);
    let web = format!("{}/bucket/data/tiny", served.server.url());
    fails(
        &["head", &format!("{web}/1.0.0[train]")],
        3,
        &["tiny-train.tfrecord-00001-of-00002: no such object"],
    );
    fails(&["head", &format!("{web}[train]")], 1, &["tiny/dataset_info.json: expected a file, found none"]);
    let ran = served.run(&["info", "s3://bucket/data/tiny/1.0.0"]);
    assert!(ran.err.contains(missing), "{}", ran.err);
    served.server.remove("bucket/data/tiny/1.0.0/dataset_info.json");
    fails(&["head", "s3://bucket/data/tiny/1.0.0[test]"], 3, &["tiny/1.0.0[test]"]);
}

#[test]
fn the_first_records_of_a_large_object_need_few_bytes_and_requests() {
    let served = Served::new();
    let mut bytes = std::fs::read(served.dir.path(NAMES[0])).unwrap();
    for _ in 0..3 {
        tfseek::frame::put_record(&mut bytes, &vec![1; 20 << 20]).unwrap();
    }
    served.server.set("bucket/large.tfrecord", bytes);
    for url in
        ["s3://bucket/large.tfrecord".to_owned(), format!("{}/bucket/large.tfrecord", served.server.url())]
    {
        served.server.counts();
        let ran = served.run(&["head", "-n", "5", &url]);
        assert_eq!((ran.code, ran.out.lines().count() > 5), (0, true), "{}", ran.err);
        let counts = served.server.counts();
        // One listing, or one HEAD.
        assert_eq!(counts.lists + counts.heads, 1, "{counts:?}");
        assert!(counts.bytes < 1 << 20, "{counts:?}");
    }
}

/// Returns the number of files in the cache of indexes.
fn cached(served: &Served) -> usize {
    std::fs::read_dir(served.dir.path("cache/tfseek")).map_or(0, Iterator::count)
}

#[test]
fn an_index_is_built_in_the_cache_and_read_from_there() {
    let served = Served::new();
    for root in served.roots() {
        let urls = NAMES.map(|name| format!("{root}{name}"));
        let before = cached(&served);
        let index = |rest: &[&str]| served.run(&[&["index", &urls[0], &urls[1]], rest].concat());
        let ran = index(&["--progress"]);
        assert_eq!(ran.code, 0, "{root}: {}", ran.err);
        assert!(
            ran.err.contains("2 shards, 50 records") && ran.err.contains("2 indexes built, 0 fresh"),
            "{}",
            ran.err
        );
        assert_eq!(cached(&served), before + 2, "{root}");
        served.server.counts();
        let ran = index(&[]);
        assert!(ran.err.contains("0 indexes built, 2 fresh"), "{root}: {}", ran.err);
        assert_eq!(served.server.counts().puts, 0);
        let info = served.run(&["info", &urls[1]]).out;
        assert!(info.contains("index") && info.contains("cache/tfseek"), "{info}");
        for verb in ["get", "head"] {
            let rest: &[&str] = if verb == "get" { &["-1"] } else { &["-n", "1"] };
            let run = |at: [&str; 2]| served.run(&[&[verb, at[0], at[1]], rest].concat());
            let (files, objects) = (run(NAMES), run([&urls[0], &urls[1]]));
            assert_eq!(objects.out.replace(&root, ""), files.out, "{verb} {root}: {}", objects.err);
        }
    }
    assert_eq!(served.server.counts().puts, 0);
}

#[test]
fn an_indexed_object_is_not_read_to_find_a_record() {
    let served = Served::new();
    let shard = |labels: std::ops::Range<i64>| {
        let mut bytes = Vec::new();
        for label in labels {
            let example = ExampleBuilder::new().int64("label", [label]).bytes("more", [[7; 20_000]]);
            tfseek::frame::put_record(&mut bytes, &example.encode().unwrap()).unwrap();
        }
        bytes
    };
    let bytes = shard(1000..1400);
    served.server.set("bucket/mid.tfrecord", bytes.clone());
    let url = "s3://bucket/mid.tfrecord";
    assert_eq!(served.run(&["index", url]).code, 0);
    let counts = served.server.counts();
    assert!((bytes.len() as u64..bytes.len() as u64 + (1 << 20)).contains(&counts.bytes), "{counts:?}");
    let get = || {
        served.server.counts();
        let args = ["get", "--kind", "example", "-f", "json", "--features", "label", url, "300"];
        let ran = served.run(&args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        (ran.out, served.server.counts())
    };
    let (record, counts) = get();
    assert!(record.contains("1300"), "{record}");
    assert!(counts.bytes < 100_000 && counts.gets <= 2, "{counts:?}");
    for (verb, more) in [("head", &["-n", "1"][..]), ("info", &[])] {
        assert_eq!(served.run(&[&[verb, url], more].concat()).code, 0);
        let counts = served.server.counts();
        assert!(counts.bytes < 1 << 20, "{verb} {counts:?}");
    }
    // The same size and another time: the fingerprints differ. The old index is not used.
    let other = shard(2000..2400);
    assert_eq!(other.len(), bytes.len());
    served.server.set("bucket/mid.tfrecord", other);
    let ran = served.run(&["info", url]);
    assert!(ran.out.contains("stale"), "{}", ran.out);
    assert!(get().0.contains("2300"));
    let ran = served.run(&["index", url]);
    assert!(ran.err.contains("400 records") && ran.err.contains("0 indexes built, 1 fresh"), "{}", ran.err);
}

#[test]
fn a_pack_is_written_beside_objects_by_one_put() {
    let served = Served::new();
    for (k, root) in served.roots().iter().enumerate() {
        let urls = NAMES.map(|name| format!("{root}{name}"));
        let before = cached(&served);
        served.server.counts();
        let ran = served.run(&["index", &urls[0], &urls[1], "--pack", "train"]);
        let counts = served.server.counts();
        if k >= 3 {
            assert_eq!(
                (ran.code, ran.err.lines().count(), counts.bytes),
                (2, 1, counts.bytes),
                "{}",
                ran.err
            );
            assert!(ran.err.contains("expected no --pack"), "{}", ran.err);
            assert_eq!((counts.puts, cached(&served)), (0, before));
            continue;
        }
        assert_eq!((ran.code, counts.puts), (0, 1), "{root}: {} {counts:?}", ran.err);
        let pack = format!("{root}.tfseek/train.tfrp");
        assert!(ran.err.contains(&format!("2 indexes built, 0 fresh -> {pack}")), "{}", ran.err);
        assert_eq!(cached(&served), before + 2);
        let ran = served.run(&["get", &pack, "40"]);
        assert_eq!(
            ran.out.replace(root, ""),
            served.run(&["get", NAMES[0], NAMES[1], "40"]).out,
            "{}",
            ran.err
        );
        served.server.remove("bucket/data/.tfseek/train.tfrp");
    }
}

#[test]
fn columns_and_text_indexes_of_objects_are_not_beside_them() {
    let served = Served::new();
    let url = format!("s3://bucket/data/{}", NAMES[0]);
    let ran = served.run(&["index", &url, "--column", "label"]);
    assert!(
        ran.code == 0 && ran.err.contains("column label: int64 values in 30 of 30 records"),
        "{}",
        ran.err
    );
    served.server.counts();
    let ran = served.run(&["head", "--where", "label == 7", &url]);
    assert_eq!((ran.code, ran.out.lines().count() > 0), (0, true), "{}", ran.err);
    let refused = served.run(&["index", &url, "--format", "dali"]);
    assert_eq!((refused.code, refused.err.contains("requires --index-dir")), (2, true), "{}", refused.err);
    let text = |path: &str| {
        let ran = served.run(&["index", path, "--format", "dali", "--index-dir", "text"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        std::fs::read(served.dir.path(&format!("text/{}.idx", NAMES[0]))).unwrap()
    };
    assert_eq!(text(&url), text(NAMES[0]));
    assert_eq!(served.server.counts().puts, 0);
}

#[test]
fn signed_urls_are_not_printed() {
    let served = Served::new();
    served.server.refuse_heads();
    let url = format!("{}/bucket/data/{}?X-Signature=secret", served.server.url(), NAMES[0]);
    for verb in ["head", "info", "verify", "schema", "sample", "cat", "tail", "stats", "digest"] {
        let ran = served.run(&[verb, &url]);
        assert_eq!(ran.code, 0, "{verb}: {}", ran.err);
        assert!(
            !ran.out.contains("secret") && !ran.err.contains("secret"),
            "{verb}: {} {}",
            ran.out,
            ran.err
        );
    }
    assert_eq!(served.run(&["get", &url, "29"]).code, 0);
    let log = served.server.log();
    assert!(
        log.iter().filter(|line| line.contains(".tfrecord?")).all(|line| line.contains("secret")),
        "{log:#?}"
    );
}

#[test]
fn errors_have_one_line() {
    let served = Served::new();
    let fails = |args: &[&str], code: i32, texts: &[&str]| {
        let ran = served.run(args);
        assert_eq!((ran.code, ran.err.lines().count()), (code, 1), "{args:?}: {}", ran.err);
        texts.iter().for_each(|text| assert!(ran.err.contains(text), "{args:?}: {}", ran.err));
    };
    fails(&["head", "s3://bucket/none.tfrecord"], 3, &["s3://bucket/none.tfrecord: no such object"]);
    fails(&["head", "s3://bucket/data/x-*"], 3, &["s3://bucket/data/x-*"]);
    fails(
        &["head", "hf://datasets/owner/other/x"],
        3,
        &["no such repository, or it is private; no token: HF_TOKEN"],
    );
    fails(&["cat", "s3://bucket/data/x"], 3, &["s3://bucket/data/x: no such object"]);
    fails(&["head", "hdfs://x/y"], 3, &["hdfs://x/y: unknown scheme, expected one of s3"]);
    served.server.private("bucket");
    fails(&["head", "s3://bucket/data/x"], 3, &["403 Forbidden: AccessDenied (no login: AWS_ACCESS_KEY_ID"]);
    served.server.fail("hub", Fault::Status(500), 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_stalled_request() {
    let served = Served::new();
    served.server.fail("GET /bucket/data/train-00000", Fault::Hold, 1000);
    let mut command = served.dir.interruptible(&["head", &format!("s3://bucket/data/{}", NAMES[0])]);
    command.env("AWS_ENDPOINT_URL", served.server.url()).env("AWS_ALLOW_HTTP", "true");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while served.server.counts().gets == 0
        && !served.server.log().iter().any(|line| line.contains("GET /bucket/data/train"))
    {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    // The server never answers.
    common::ended(&mut child);
}

/// The files of a folder, with their names.
fn files(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn shards_are_fetched_from_every_store() {
    let served = Served::new();
    let expected: Vec<_> = NAMES
        .iter()
        .map(|name| ((*name).to_owned(), std::fs::read(served.dir.path(name)).unwrap()))
        .collect();
    for (k, root) in served.roots().into_iter().enumerate() {
        let dir = served.dir.path(&format!("to{k}"));
        let (to, shown) = (dir.to_str().unwrap(), format!("{root}x"));
        // A web server has no listings.
        let pattern = if root.starts_with("http") { "train@2.tfrecord" } else { "train-*" };
        let url = format!("{root}{pattern}");
        served.server.counts();
        let ran = served.run(&["fetch", &url, to, "--dry-run"]);
        assert_eq!((ran.code, dir.exists()), (0, false), "{shown}: {}", ran.err);
        assert_eq!(served.server.counts().gets, 0, "{shown}");
        let ran = served.run(&["fetch", &url, to]);
        assert_eq!(ran.code, 0, "{shown}: {}", ran.err);
        assert_eq!(files(&dir), expected, "{shown}");
        served.server.counts();
        let ran = served.run(&["fetch", &url, to, "--json"]);
        let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&report["requests"], &report["files"]), (&0.into(), &expected.len().into()), "{shown}");
        assert_eq!(served.server.counts().gets, 0, "{shown}");
        let ran = served.run(&["fetch", &url, to, "--where", "label > 3"]);
        assert_eq!(ran.code, 2, "{shown}: {}", ran.err);
    }
    let ran = served.run(&["fetch", "s3://bucket/data/train-*", "new", "--where", "label >= 40"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = served.run(&["fetch", "s3://bucket/data/none-*", "other"]);
    assert_eq!((ran.code, served.dir.path("other").exists()), (3, false), "{}", ran.err);
    let ran = served.run(&["fetch", NAMES[0], "other"]);
    assert_eq!((ran.code, served.dir.path("other").exists()), (2, false), "{}", ran.err);
}

/// It ends with the same files, and no piece that the journal names is requested twice.
#[test]
fn a_fetch_that_is_killed_goes_on() {
    assert!(killed(80 << 20, 30..230) > 0);
}

/// The same of 1 GB, until there were a hundred kills.
#[test]
#[ignore = "takes a minute"]
fn fetches_that_are_killed_a_hundred_times_go_on() {
    let (mut kills, mut fetches) = (0, 0);
    while kills < 100 {
        kills += killed(1 << 30, 10..200);
        fetches += 1;
    }
    println!("{kills} kills in {fetches} fetches");
}

/// Fetches a set of this size, kills each run after a number of milliseconds, and returns the number of
/// kills.
fn killed(bytes: usize, after: std::ops::Range<u64>) -> usize {
    let served = Served::new();
    let mut large = std::fs::read(served.dir.path(NAMES[0])).unwrap();
    for k in 0..bytes >> 22 {
        tfseek::frame::put_record(&mut large, &vec![k as u8; 4 << 20]).unwrap();
    }
    std::fs::write(served.dir.path(NAMES[1]), &large).unwrap();
    served.put(NAMES[1]);
    served.server.latency(std::time::Duration::from_millis(20));
    let (to, journal) = (served.dir.path("to"), served.dir.path("to/.tfseek-fetch/journal"));
    let args = ["fetch", "s3://bucket/data/train-*", to.to_str().unwrap()];
    let pieces = || -> std::collections::BTreeSet<String> {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        text.lines().filter(|line| line.get(9..15) == Some("piece ")).map(str::to_owned).collect()
    };
    let (mut kills, mut patience) = (0, 0);
    let mut random = tfseek_testkit::rng::Rng::new(7);
    loop {
        let before = pieces().len();
        served.server.counts();
        let mut child = served.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let limit = std::time::Duration::from_millis(
            after.start + patience + random.below_u64(after.end - after.start),
        );
        let begun = std::time::Instant::now();
        while begun.elapsed() < limit && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let _ = child.kill();
        let ran = Ran::of(child.wait_with_output().unwrap());
        if ran.code == 0 {
            // Pieces that the journal named were not requested.
            let total = large.len().div_ceil(8 << 20) + 1;
            assert!(served.server.counts().gets as usize <= total - before, "{}", ran.err);
            break;
        }
        kills += 1;
        // A run that is killed at its very end leaves no journal.
        let now = if to.join(".tfseek/fetch.json").exists() { before } else { pieces().len() };
        // A slow machine gets more time to come to new pieces.
        patience += if now == before { 20 } else { 0 };
        assert!(kills < 1000 && now >= before, "{kills} kills, {before} pieces, then {now}");
    }
    let mut expected: Vec<_> = NAMES
        .iter()
        .map(|name| ((*name).to_owned(), std::fs::read(served.dir.path(name)).unwrap()))
        .collect();
    expected.sort();
    assert!(files(&to) == expected);
    assert!(!served.dir.path("to/.tfseek-fetch").exists());
    kills
}

/// The first steps of a data set without an index are those of its first episodes: no other is read.
#[test]
fn first_steps_are_read_without_the_other_episodes() {
    let served = Served::new();
    let mut noise = 1u32;
    let mut episode = |number: usize| {
        let mut episode = common::robot::Episode::new(number, 2);
        for image in &mut episode.images {
            image.extend((0..1 << 20).map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (noise >> 24) as u8
            }));
        }
        episode.encode()
    };
    let episodes: Vec<_> = (0..40).map(&mut episode).collect();
    served.dir.robot(&[&episodes]);
    let shard = "robot/robot-train.tfrecord-00000-of-00001";
    for name in [shard, "robot/features.json", "robot/dataset_info.json", "robot/steps-mode.labels.txt"] {
        served.put(name);
    }
    let all = std::fs::metadata(served.dir.path(shard)).unwrap().len();
    for root in served.roots() {
        served.server.counts();
        let args = |at: &str| {
            ["head", "--steps", "-n", "3", "-f", "json"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("{at}{shard}")])
                .collect::<Vec<_>>()
        };
        let run = |at: &str| served.run(&args(at).iter().map(String::as_str).collect::<Vec<_>>());
        let objects = run(&root);
        let bytes = served.server.counts().bytes;
        assert_eq!((objects.code, objects.err.as_str()), (0, ""), "{root}");
        assert!(objects.out == run("").out && objects.out.lines().count() == 3, "{root}");
        assert!(bytes < all / 2, "{root}: {bytes} of {all} bytes");
    }
    // Tables of objects are in the user's folder, and a later run needs only the bytes of its steps.
    let root = &served.roots()[0];
    let ran = served.run(&["index", "--steps", &format!("{root}{shard}")]);
    assert!(
        ran.code == 0 && ran.err.contains("steps: 40 episodes, 80 steps; 1 file of tables built"),
        "{}",
        ran.err
    );
    served.server.counts();
    let ran = served.run(&[
        "get",
        "--steps",
        "-f",
        "json",
        "--features",
        "action",
        &format!("{root}{shard}"),
        "79",
    ]);
    let bytes = served.server.counts().bytes;
    assert!(
        ran.out.contains("\"episode\":39,\"step\":1,\"features\":{\"action\":[39.0,1.0]}"),
        "{}",
        ran.err
    );
    assert!(bytes < 8 << 20, "{bytes} of {all} bytes");
}

/// Tables of steps and the pack are written once, for all readers.
#[test]
fn tables_of_steps_are_written_beside_objects_and_then_the_pack() {
    let served = Served::new();
    let mut episodes = common::robot::episodes(0, &[3, 2, 40]);
    let more = common::robot::episodes(3, &[1, 5]);
    served.dir.robot(&[&episodes, &more]);
    let shards = [0, 1].map(|k| format!("robot/robot-train.tfrecord-{k:05}-of-00002"));
    for name in ["robot/features.json", "robot/dataset_info.json", "robot/steps-mode.labels.txt"] {
        served.put(name);
    }
    shards.iter().for_each(|shard| served.put(shard));
    let get = |at: &str| {
        let paths = shards.clone().map(|shard| format!("{at}{shard}"));
        served.run(&["get", "--steps", "-f", "json", &paths[0], &paths[1], "49", "0", "44"])
    };
    let expected = get("").out;
    for root in &served.roots()[..3] {
        let folder = format!("{root}robot");
        served.server.counts();
        let ran = served.run(&["index", "--steps", &folder, "--pack", "all"]);
        let puts = served.server.counts().puts;
        assert_eq!((ran.code, puts), (0, 3), "{root}: {}", ran.err);
        assert!(
            ran.err.contains("steps: 5 episodes, 51 steps; 2 files of tables built, 0 fresh"),
            "{}",
            ran.err
        );
        assert!(ran.err.trim_end().ends_with(&format!("-> {folder}/.tfseek/all.tfrp")), "{}", ran.err);
        // A reader without a cache.
        std::fs::remove_dir_all(served.dir.path("cache/tfseek")).unwrap();
        let ran = get(root);
        assert_eq!((ran.out.replace(root, ""), ran.err), (expected.clone(), String::new()), "{root}");
        assert_eq!(cached(&served), 0);
        let ran = served.run(&["index", "--steps", &folder, "--pack", "all"]);
        assert_eq!((ran.code, served.server.counts().puts), (0, 1), "the pack only: {}", ran.err);
        assert!(ran.err.contains("0 files of tables built, 2 fresh"), "{}", ran.err);
        for name in [
            "all.tfrp",
            "robot-train.tfrecord-00000-of-00002.tfrs",
            "robot-train.tfrecord-00001-of-00002.tfrs",
        ] {
            served.server.remove(&format!("bucket/data/robot/.tfseek/{name}"));
        }
    }
    // An episode that is no sound one: the other shard is done, and there is no pack.
    episodes[1] = tfseek::ExampleBuilder::new().float("steps/action", [1.0; 3]).encode().unwrap();
    served.dir.robot(&[&episodes, &more]);
    served.put(&shards[0]);
    let folder = format!("{}robot", served.roots()[0]);
    served.server.counts();
    let ran = served.run(&["index", "--steps", &folder, "--pack", "all"]);
    assert_eq!((ran.code, served.server.counts().puts), (1, 1), "{}", ran.err);
    assert!(ran.err.contains("record 1"), "{}", ran.err);
    let read_only = format!("{}robot/robot-train.tfrecord-00001-of-00002", served.roots()[3]);
    let ran = served.run(&["index", "--steps", &read_only, "--pack", "all"]);
    assert!(ran.code == 2 && ran.err.contains("expected no --pack"), "{}", ran.err);
}

#[test]
fn tables_of_steps_and_a_pack_of_files_are_in_one_folder() {
    let dir = common::Folder::new();
    dir.robot(&[&common::robot::episodes(0, &[3, 2]), &common::robot::episodes(2, &[4])]);
    let ran = dir.run(&["index", "--steps", "robot", "--pack", "all"]);
    assert!(ran.code == 0 && ran.err.contains("3 episodes, 9 steps; 2 files of tables built"), "{}", ran.err);
    let names: std::collections::BTreeSet<_> = std::fs::read_dir(dir.path("robot/.tfseek"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let tables = [0, 1].map(|k| format!("robot-train.tfrecord-{k:05}-of-00002.tfrs"));
    assert!(names.iter().eq(["all.tfrp".to_owned()].iter().chain(&tables)), "{names:?}");
}

#[test]
fn info_and_epoch_tell_of_the_cache_and_of_requests() {
    let served = Served::new();
    let url = "s3://bucket/data/train-*";
    let with_cache = |args: &[&str]| {
        let mut command = served.command(args);
        command.env("TFSEEK_CACHE_DIR", served.dir.path("cache")).env("TFSEEK_CACHE_BYTES", "50000000");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Ran::of(common::output_of(child))
    };
    let plain = served.run(&["info", url]);
    assert!(!plain.out.contains("cache  ") || !plain.out.contains("pieces"), "{}", plain.out);
    // The index is built first, outside of the cache.
    served.run(&["index", url]);
    let first = with_cache(&["epoch", url, "-b", "8", "--shuffle", "block"]);
    assert!(
        first.out.contains("requests") && first.out.contains("latency") && first.out.contains("waits"),
        "{}",
        first.out
    );
    let json = served.run(&["epoch", url, "-b", "8", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert!(
        json["traffic"]["requests"].as_u64().unwrap() > 0 && json["traffic"]["bytes"].as_u64().unwrap() > 0
    );
    let files = served.dir.run(&["epoch", "train-*", "-b", "8", "--json"]);
    assert!(!files.out.contains("traffic"), "{}", files.out);
    let info = with_cache(&["info", url]);
    let folder = served.dir.path("cache");
    assert!(
        info.out.contains(&format!("{}: ", folder.display())) && info.out.contains("of 50 MB in"),
        "{}",
        info.out
    );
    let half = served.command(&["info", url]).env("TFSEEK_CACHE_DIR", &folder).output().unwrap();
    assert!(String::from_utf8_lossy(&half.stderr).contains("TFSEEK_CACHE_BYTES"));
}
