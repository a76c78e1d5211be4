//! `convert`: there and back for records of all kinds, options, errors, and paths.

#![cfg(feature = "tables")]

use crate::common::*;
use std::fs;
use tfseek::ExampleBuilder;

#[test]
fn json_lines_there_and_back() {
    let dir = Folder::new();
    dir.shard("examples", [rich(), label(3), vec![]]);
    dir.shard("sequences", [sequence(), sequence()]);
    dir.shard("others", [&b"\xff\x00"[..], b"text", b""]);
    for (name, kind) in [("examples", "example"), ("sequences", "sequence-example")] {
        fs::write(dir.path("schema"), dir.run(&["schema", "--all", "--json", "--kind", kind, name]).out)
            .unwrap();
        convert(&dir, &["--kind", kind, name, "exact.jsonl", "-f", "proto-json"]);
        convert(&dir, &["--kind", kind, name, "plain.ndjson"]);
        let lines = fs::read_to_string(dir.path("plain.ndjson")).unwrap();
        assert_eq!(lines, dir.run(&["cat", "-f", "json", "--kind", kind, name]).out);
        let exact = fs::read_to_string(dir.path("exact.jsonl")).unwrap();
        assert_eq!(exact.lines().count(), lines.lines().count());
        for out in ["o.tfrecord", "o.tfrecord.gz", "o.record.zz"] {
            convert(&dir, &["exact.jsonl", out]);
            same_digests(&dir, kind, [name, out]);
            convert(&dir, &["exact.jsonl", "-f", "proto-json", out]);
            same_digests(&dir, kind, [name, out]);
            convert(&dir, &["plain.ndjson", "--schema", "schema", out]);
            same_digests(&dir, kind, [name, out]);
        }
    }
    // Without a schema the values show the kinds, except those of lists without values.
    convert(&dir, &["sequences", "a.jsonl"]);
    convert(&dir, &["a.jsonl", "o.tfrecord"]);
    same_digests(&dir, "sequence-example", ["sequences", "o.tfrecord"]);
    convert(&dir, &["examples", "a.jsonl"]);
    dir.run(&["convert", "a.jsonl", "new.tfrecord"]).fails(
        1,
        &[
            "a.jsonl: line 1, column 1 (byte 0): feature \"no values\"",
            "found only empty lists",
            "`--schema FILE`",
        ],
    );
    assert!(!dir.path("new.tfrecord").exists());
    convert(&dir, &["examples", "a.jsonl", "--features", "word,größe,f*,m*,label,unset"]);
    convert(&dir, &["a.jsonl", "o.tfrecord"]);
    let kept = dir.run(&["cat", "-f", "json", "--features", "word,größe,f*,m*,label,unset", "examples"]).out;
    assert_eq!(dir.run(&["cat", "-f", "json", "o.tfrecord"]).out, kept);

    // Payloads of other types are kept too.
    convert(&dir, &["--kind", "bytes", "others", "a.jsonl"]);
    convert(&dir, &["a.jsonl", "o.tfrecord"]);
    assert_eq!(fs::read(dir.path("o.tfrecord")).unwrap(), fs::read(dir.path("others")).unwrap());
}

#[test]
fn several_files_are_one() {
    let dir = Folder::new();
    dir.shard("x-00000-of-00002.tfrecord", labels(0..3));
    dir.shard("x-00001-of-00002.tfrecord", labels(3..5));
    dir.shard("all.tfrecord", labels(0..5));
    let ran = dir.run(&["convert", "x@2.tfrecord", "a.jsonl", "--json"]);
    let size = fs::metadata(dir.path("a.jsonl")).unwrap().len();
    ran.prints(&format!(
        "{{\"bytes\":{size},\"format\":\"JSON lines\",\"kindless\":0,\"kindless_names\":[],\"path\":\"a.jsonl\",\"records\":5,\"shards\":[\"a.jsonl\"]}}\n"
    ));
    assert_eq!(
        fs::read_to_string(dir.path("a.jsonl")).unwrap(),
        dir.run(&["cat", "-f", "json", "x@2.tfrecord"]).out
    );
    let ran = dir.run(&["convert", "a.jsonl", "a.jsonl", "twice.tfrecord"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "twice.tfrecord: 10 records, 340 bytes\n"), "{}", ran.out);
    let twice = [digests(&dir, "example", "all.tfrecord"), digests(&dir, "example", "all.tfrecord")].concat();
    assert_eq!(digests(&dir, "example", "twice.tfrecord"), twice);

    convert(&dir, &["x@2.tfrecord", "a.jsonl", "--where", "label in 2..4"]);
    assert_eq!(fs::read_to_string(dir.path("a.jsonl")).unwrap().lines().count(), 2);
    let ran = dir.run(&["convert", "--force", "x@2.tfrecord", "a.jsonl", "--where", "label == 9"]);
    ran.fails(1, &["no record meets the condition"]);
}

#[test]
fn requests_that_do_not_fit() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..3));
    fs::write(dir.path("a.jsonl"), "{\"a\": 1}\n{\"a\": 0.5}\n").unwrap();
    let fails =
        |args: &[&str], code, words: &[&str]| dir.run(&[&["convert"], args].concat()).fails(code, words);
    fails(
        &["a.jsonl", "o.tfrecord"],
        1,
        &["a.jsonl: line 2", "feature \"a\": expected int64, as in line 1, or a schema, found 0.5"],
    );
    fails(&["a.tfrecord", "o.csv"], 2, &["o.csv: CSV is no format of convert"]);
    fails(
        &["a.tfrecord", "o.tfrecord"],
        2,
        &["o.tfrecord: expected TFRecords on one side only", "tfseek reshard"],
    );
    fails(
        &["a.jsonl", "o.jsonl"],
        2,
        &["o.jsonl: expected a TFRecord file for these inputs, found JSON lines"],
    );
    fails(
        &["a.jsonl", "a.tfrecord", "o.tfrecord"],
        2,
        &["a.tfrecord: expected the format of the other inputs"],
    );
    fails(&["a.tfrecord"], 2, &["expected two or more paths, IN.. OUT, found one"]);
    fails(&["-", "o.jsonl"], 2, &["o.jsonl: expected a TFRecord file for these inputs"]);
    fails(
        &["a.tfrecord", "-"],
        2,
        &["`-` (standard output): expected another format than TFRecord as the input"],
    );
    fails(&["a.tfrecord", "a.jsonl"], 2, &["a.jsonl: already exists (--force replaces it)"]);
    fails(
        &["a.tfrecord", "o.jsonl", "--features", "x*"],
        2,
        &["expected a feature that matches x*, found none"],
    );
    fails(&["a.tfrecord", "o.jsonl", "--features", "lable"], 2, &["found none; the nearest name is label"]);
    fails(&["a.jsonl", "o.tfrecord", "--features", "a"], 2, &["--features: expected TFRecords as an input"]);
    fails(&["a.jsonl", "o.tfrecord", "--where", "a == 1"], 2, &["--where: expected TFRecords as an input"]);
    fails(&["none.tfrecord", "o.jsonl"], 3, &["none.tfrecord"]);
    fails(&["none.jsonl", "o.tfrecord"], 3, &["none.jsonl"]);
    fails(&["a.tfrecord", "none/o.jsonl"], 3, &["none/o.jsonl"]);
    fs::write(dir.path("s.json"), "{}").unwrap();
    fails(
        &["a.tfrecord", "o.jsonl", "--schema", "s.json"],
        2,
        &["--schema: expected Parquet or Arrow as the output"],
    );
    // Damage, and a JSON text that is none: nothing is written.
    fs::write(dir.path("b.jsonl"), "{\"a\": 1}\n{\"a\": }\n").unwrap();
    fails(&["b.jsonl", "o.tfrecord"], 1, &["b.jsonl: line 2, column 7"]);
    let path =
        dir.shard("b.tfrecord", (0..3).map(|i| ExampleBuilder::new().int64("a", [i]).encode().unwrap()));
    damage(&path, 45);
    fails(&["b.tfrecord", "o.jsonl"], 1, &["b.tfrecord: record 1"]);
    assert!(!dir.path("o.tfrecord").exists() && !dir.path("o.jsonl").exists());
}

#[test]
fn tables_there_and_back() {
    let dir = Folder::new();
    let named =
        |word: &str, n: i64| ExampleBuilder::new().bytes("word", [word]).int64("n", 0..n).encode().unwrap();
    dir.shard("x-00000-of-00002.tfrecord", [named("ant", 1), named("bee", 0)]);
    dir.shard("x-00001-of-00002.tfrecord", [named("cow", 3), label(5)]);
    dir.shard("sequences", [sequence()]);
    for table in ["t.parquet", "t.arrow", "t.feather", "t.arrows"] {
        convert(&dir, &["x@2.tfrecord", table, "-j", "1"]);
        convert(&dir, &[table, "o.tfrecord.gz"]);
        same_digests(&dir, "example", ["x@2.tfrecord", "o.tfrecord.gz"]);
        // The step without a kind is an empty list now.
        convert(&dir, &["sequences", table]);
        convert(&dir, &[table, "o.tfrecord"]);
        dir.run(&["cat", "-f", "json", "o.tfrecord"]).prints(concat!(
            r#"{"index":0,"record":0,"context":{"id":[5]},"feature_lists":"#,
            "{\"frames\":[[0.5,2.0],[1.5,3.0]],\"mixed\":[[1],[]],\"nothing\":[]}}\n",
        ));
    }
    let ran = dir.run(&[
        "convert",
        "x@2.tfrecord",
        "n.parquet",
        "--json",
        "--where",
        "len(n) > 0",
        "--features",
        "n,w*",
    ]);
    let size = fs::metadata(dir.path("n.parquet")).unwrap().len();
    ran.prints(&format!(
        "{{\"bytes\":{size},\"format\":\"Parquet\",\"kindless\":0,\"kindless_names\":[],\"path\":\"n.parquet\",\"records\":2,\"shards\":[\"n.parquet\"]}}\n"
    ));
    convert(&dir, &["n.parquet", "n.parquet", "o.tfrecord"]);
    let words = |name: &str| dir.run(&["cat", "-f", "json", "--features", "word", name]).out.lines().count();
    assert_eq!(words("o.tfrecord"), 4);

    let ran = dir.run(&["convert", "n.parquet", "n@2.tfrecord"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "n@2.tfrecord: 2 records, 2 shards, 96 bytes\n"));
    dir.run(&["convert", "n.parquet", "n@2.tfrecord"]).fails(2, &["already exists (--force replaces it)"]);
    convert(&dir, &["n.parquet", "sized.tfrecord", "--shard-size", "1"]);
    assert_eq!(words("sized@2.tfrecord"), 2);

    // Columns of a schema; text; feature lists by name.
    fs::write(dir.path("s.json"), r#"{"features": {"n": {"type": "varlen", "dtype": "int64"}}}"#).unwrap();
    convert(&dir, &["x@2.tfrecord", "t.parquet", "--schema", "s.json"]);
    convert(&dir, &["t.parquet", "o.tfrecord", "--feature-lists", "n"]);
    let first = dir.run(&["get", "-f", "json", "--kind", "sequence-example", "o.tfrecord", "2"]).out;
    assert!(first.contains(r#""context":{},"feature_lists":{"n":[[0],[1],[2]]}"#), "{first}");
    convert(&dir, &["x@2.tfrecord", "t.arrow", "--text", "w*"]);
    convert(&dir, &["t.arrow", "o.tfrecord"]);
    same_digests(&dir, "example", ["x@2.tfrecord", "o.tfrecord"]);

    let fails = |args: &[&str], words: &[&str]| dir.run(&[&["convert"], args].concat()).fails(2, words);
    fails(
        &["t.parquet", "p.tfrecord", "--schema", "s.json"],
        &["--schema: expected JSON lines or TFRecords as an input"],
    );
    fails(&["t.parquet", "p.tfrecord", "--text", "w"], &["--text: expected TFRecords as an input"]);
    fails(&["t.parquet", "p.tfrecord", "-f", "json"], &["--format: expected JSON lines, found none"]);
    fails(
        &["t.parquet", "p.tfrecord", "--feature-lists", "y"],
        &["t.parquet: expected a column that matches y"],
    );
    fails(
        &["t.parquet", "t.arrow", "p.tfrecord"],
        &["t.arrow: expected the format of the other inputs, Parquet"],
    );
    fails(
        &["x@2.tfrecord", "p.parquet", "--feature-lists", "n"],
        &["--feature-lists: expected Parquet or Arrow as an input"],
    );
    fails(
        &["x@2.tfrecord", "p.parquet", "--text", "n"],
        &["expected a feature of byte strings that matches n"],
    );
    fails(&["x@2.tfrecord", "p.jsonl", "--text", "n"], &["--text: expected Parquet or Arrow as the output"]);
    fs::write(dir.path("bad.parquet"), "PAR1").unwrap();
    dir.run(&["convert", "bad.parquet", "p.tfrecord"]).fails(1, &["bad.parquet: "]);
    dir.run(&["convert", "none.parquet", "p.tfrecord"]).fails(3, &["none.parquet"]);
    assert!(!dir.path("p.tfrecord").exists() && !dir.path("p.parquet").exists());
}

#[test]
fn cat_prints_an_arrow_stream() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..5));
    convert(&dir, &["a.tfrecord", "a.arrows", "--where", "label in 1..4"]);
    let output =
        dir.command(&["cat", "-f", "arrow", "--where", "label in 1..4", "a.tfrecord"]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(output.stdout == fs::read(dir.path("a.arrows")).unwrap());
    dir.run(&["cat", "-f", "arrow", "a.tfrecord", "--skip", "1"]).fails(2, &["-f arrow", "--skip"]);
    dir.run_on(b"", &["cat", "-f", "arrow", "-"]).fails(2, &["-f arrow: expected files", "standard input"]);
    dir.run(&["head", "-f", "arrow", "a.tfrecord"]).fails(2, &["-f arrow: expected the verb `cat`"]);
}

#[test]
fn a_folder_of_tensorflow_datasets_has_the_columns_of_its_features() {
    let dir = Folder::new();
    fs::create_dir(dir.path("set")).unwrap();
    let dict = r#"{"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "featuresDict": {"features": FEATURES}}"#;
    let label = r#"{"pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "classLabel": {"numClasses": "5"}}"#;
    let inner = dict.replace("FEATURES", &format!(r#"{{"label": {label}}}"#));
    fs::write(dir.path("set/features.json"), dict.replace("FEATURES", &format!(r#"{{"inner": {inner}}}"#)))
        .unwrap();
    let record = |k: i64| ExampleBuilder::new().int64("inner/label", [k]).encode().unwrap();
    dir.shard("set/a-train.tfrecord", [record(3), record(4)]);
    let info = r#"{"name": "a", "version": "1.0.0", "fileFormat": "tfrecord", "splits": [{"name": "train", "shardLengths": ["2"], "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}"}]}"#;
    fs::write(dir.path("set/dataset_info.json"), info).unwrap();
    for input in ["set", "set[train[:1]]"] {
        convert(&dir, &[input, "t.parquet"]);
        // Structs have no counterpart in records.
        let ran = dir.run(&["convert", "t.parquet", "back.tfrecord"]);
        assert!(ran.code != 0 && ran.err.contains("column \"inner\""), "{input}: {}", ran.err);
    }
    // With the features, the rows of all tables of a name are a split, and each record is an equal one.
    fs::create_dir(dir.path("tables")).unwrap();
    convert(&dir, &["set[train[:1]]", "tables/train-00000-of-00002.parquet"]);
    convert(&dir, &["set[train[1:]]", "tables/train-00001-of-00002.parquet"]);
    convert(&dir, &["set", "tables/test.parquet"]);
    let tables =
        ["tables/train-00000-of-00002.parquet", "tables/train-00001-of-00002.parquet", "tables/test.parquet"];
    let ran = dir.run(&[&["convert", "--schema", "set"], &tables[..], &["new@2"]].concat());
    let lines = "new/a-train.tfrecord@2: 2 records, 2 shards, 80 bytes\nnew/a-test.tfrecord@2: 2 records, 2 shards, 80 bytes\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, lines, ""));
    same_digests(&dir, "example", ["set/a-train.tfrecord", "new[train]"]);
    same_digests(&dir, "example", ["set/a-train.tfrecord", "new[test]"]);
    assert_eq!(
        fs::read(dir.path("new/features.json")).unwrap(),
        fs::read(dir.path("set/features.json")).unwrap()
    );
    // Arrow, a stated size, and a report.
    convert(&dir, &["set", "test.arrow"]);
    let ran = dir.run(&["convert", "--json", "--shard-size", "1", "--schema", "set", "test.arrow", "sized"]);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &report["records"]), (0, &2.into()), "{}", ran.err);
    assert_eq!(report["sets"][0]["shards"][1], "sized/a-test.tfrecord-00001-of-00002");
    // Nothing is left of what is refused.
    fs::copy(dir.path("t.parquet"), dir.path("a b.parquet")).unwrap();
    fs::write(dir.path("t.jsonl"), "{}").unwrap();
    for (args, code, words) in [
        (["t.parquet", "new", "--schema", "set"].as_slice(), 2, "expected a new or an empty folder"),
        (&["a b.parquet", "other", "--schema", "set"], 2, "expected a name of letters, digits"),
        (
            &["t.jsonl", "other", "--schema", "set"],
            2,
            "expected Parquet or Arrow for a data set, found JSON lines",
        ),
        (&["set/a-train.tfrecord", "other", "--schema", "set"], 2, "found TFRecord"),
        (&["t.parquet", "other", "--schema", "tables"], 1, "dataset_info.json"),
        (&["t.parquet", "set/x", "--schema", "set"], 2, "set/x"),
        (&["t.parquet", "other", "--schema", "set", "--text", "x"], 2, "--text: expected --schema FILE"),
        (&["t.parquet", "other", "--schema", "set", "--force"], 2, "which is never replaced"),
    ] {
        dir.run(&[&["convert"], args].concat()).fails(code, &[words]);
        assert!(!dir.path("other").exists() && !dir.path("set/x").exists(), "{args:?}");
    }
    for inputs in [["set/*.tfrecord"].as_slice(), &["set", "--schema", "schema"]] {
        fs::write(dir.path("schema"), dir.run(&["schema", "--all", "--json", "set/a-train.tfrecord"]).out)
            .unwrap();
        convert(&dir, &[inputs, &["t.parquet"]].concat());
        convert(&dir, &["t.parquet", "back.tfrecord"]);
        same_digests(&dir, "example", ["set/a-train.tfrecord", "back.tfrecord"]);
    }
    fs::write(dir.path("set/features.json"), "{}").unwrap();
    dir.run(&["convert", "--force", "set", "t.parquet"])
        .fails(1, &["unless --schema or the files are named"]);
    convert(&dir, &["set", "t.jsonl"]);
}

#[test]
fn a_misspelt_optional_feature_of_a_schema_is_named() {
    let dir = Folder::new();
    dir.shard("x.tfrecord", [label(0), label(1)]);
    let optional =
        |name: &str| format!("{{\"features\":{{\"{name}\":{{\"type\":\"optional\",\"dtype\":\"int64\"}}}}}}");
    fs::write(dir.path("lable.json"), optional("lable")).unwrap();
    fs::write(dir.path("far.json"), optional("far")).unwrap();
    let warning = "tfseek: none of the first records has a feature \"lable\"; the nearest name is \"label\"";
    for verb in [
        &["parse", "x.tfrecord"][..],
        &["epoch", "x.tfrecord", "-b", "2"],
        &["epoch", "x.tfrecord", "-b", "2", "--json"],
        &["convert", "--force", "x.tfrecord", "x.parquet"],
        &["convert", "--force", "--json", "x.tfrecord", "x.arrow"],
    ] {
        let run = |schema: &str| dir.run(&[verb, &["--schema", schema]].concat());
        let ran = run("lable.json");
        assert!(
            ran.code == 0 && ran.err.lines().filter(|line| *line == warning).count() == 1,
            "{verb:?}: {}",
            ran.err
        );
        if verb[0] == "epoch" && verb.last() == Some(&"--json") {
            assert!(
                ran.out.contains("\"nearest\":\"label\"") && ran.out.contains("\"unknown_feature\""),
                "{}",
                ran.out
            );
        }
        // A name that is near to none may be absent.
        let ran = run("far.json");
        assert!(ran.code == 0 && !ran.err.contains("nearest"), "{verb:?}: {}", ran.err);
    }
}

#[test]
fn features_without_a_kind_that_a_table_loses_are_counted() {
    let dir = Folder::new();
    // One feature without a kind, beside a number.
    let kindless = [&label(1)[..], b"\x0a\x08\x0a\x06\x0a\x02no\x12\x00"].concat();
    dir.shard("x.tfrecord", [label(0), kindless.clone(), kindless]);
    let ran = dir.run(&["convert", "x.tfrecord", "x.parquet"]);
    let lost = "tfseek: x.parquet: 2 features or steps without a kind (\"no\") are null or empty there, and absent on the way back";
    assert!(ran.code == 0 && ran.err.lines().last() == Some(lost), "{}", ran.err);
    let ran = dir.run(&["convert", "x.tfrecord", "y.parquet", "--json"]);
    assert!(ran.err.is_empty() && ran.out.contains("\"kindless\":2,"), "{ran:?}");
    let output = dir.command(&["cat", "-f", "arrow", "x.tfrecord"]).output().unwrap();
    let lost = format!("{}\n", lost.replace("x.parquet", "standard output"));
    assert!(output.status.success() && output.stderr == lost.as_bytes(), "{output:?}");
    // JSON lines keep them, and a feature that is left out is not lost.
    for args in [&["x.jsonl"][..], &["z.parquet", "--features", "label"]] {
        let ran = dir.run(&[&["convert", "x.tfrecord"], args].concat());
        assert!(ran.code == 0 && !ran.err.contains("without a kind"), "{}", ran.err);
    }
}

/// Arrow's reader panics at some files. The message is one line, without the folders of the machine that
/// built the command.
#[test]
fn a_panic_of_a_reader_is_one_line() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..3));
    convert(&dir, &["a.tfrecord", "a.arrow"]);
    let file = fs::read(dir.path("a.arrow")).unwrap();
    let mut panics = 0;
    for at in file.len() / 2..file.len() {
        let mut changed = file.clone();
        changed[at] = !changed[at];
        fs::write(dir.path("bad.arrow"), changed).unwrap();
        let err = dir.run(&["convert", "--force", "bad.arrow", "o.tfrecord"]).err;
        assert!(!err.contains("panicked") && !err.contains("/registry/"), "{err}");
        if err.contains("found one that its reader cannot read: ") {
            assert_eq!(err.lines().count(), 1, "{err}");
            panics += 1;
        }
        if panics == 3 {
            return;
        }
    }
    panic!("{panics} files at which the reader panics");
}
