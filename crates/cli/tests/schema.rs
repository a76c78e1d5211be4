//! `schema` and `parse`: inferred schemas, and printed batches.

use crate::common::*;
use std::fs;
use tfseek::{DType, ExampleBuilder, FeatureBuf, FeatureSpec, Schema, SequenceExampleBuilder};

/// Returns records whose feature `words` has `i % 3` values. Record 3 has no `weight`.
fn rows(range: std::ops::Range<i64>) -> Vec<Vec<u8>> {
    range
        .map(|i| {
            let mut row = ExampleBuilder::new();
            row = row
                .int64("label", [i])
                .float("emb", [0.5f32, i as f32])
                .bytes("words", (0..i % 3).map(|_| "w"));
            if i != 3 {
                row = row.float("weight", [1.0f32]);
            }
            row.encode().unwrap()
        })
        .collect()
}

fn sequences() -> Vec<Vec<u8>> {
    let frames = |steps: usize| vec![FeatureBuf::Float(vec![0.0, 1.0]); steps];
    (0..3usize)
        .map(|i| {
            let mut row = SequenceExampleBuilder::new();
            row = row.int64("id", [i as i64]).feature_list("frames", frames(i));
            row = row.feature_list("words", (0..i).map(|k| FeatureBuf::Bytes(vec![b"w".to_vec(); k])));
            row.encode().unwrap()
        })
        .collect()
}

#[test]
fn a_readable_table() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", rows(0..10));
    dir.run(&["schema", "a.tfrecord"]).prints(
        "Example, 10 records seen
  feature  kind   values  in       schema
  emb      float  2       all      fixed [2]
  label    int64  1       all      fixed []
  weight   float  1       9 of 10  optional
  words    bytes  0..2    all      varlen
",
    );
    dir.shard("s.tfrecord.gz", sequences());
    dir.run(&["schema", "s.tfrecord.gz"]).prints(
        "SequenceExample, 3 records seen
  context  kind   values  in   schema
  id       int64  1       all  fixed []
  feature list  kind   steps x values  in   schema
  frames        float  0..2 x 2        all  fixed_sequence [2]
  words         bytes  0..2 x 0..1     all  varlen
",
    );
}

#[test]
fn schemas_as_json_and_as_code() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", rows(0..10));
    let json = dir.run(&["schema", "--json", "a.tfrecord"]);
    let schema = Schema::from_json(&json.out).unwrap();
    assert_eq!(schema.features()["emb"], FeatureSpec::fixed_len(&[2], DType::Float32));
    json.prints(&schema.to_json());
    dir.run(&["schema", "--tf", "a.tfrecord"]).prints(&tfseek_tools::schema_code::python(&schema));
    dir.run(&["schema", "--tf", "--json", "a.tfrecord"]).fails(2, &["--json"]);
    // Read as SequenceExamples, the records have only a context.
    let json = dir.run(&["schema", "--json", "--kind", "sequence-example", "a.tfrecord"]);
    assert!(Schema::from_json(&json.out).unwrap().is_sequence());
    dir.run(&["schema", "--kind", "bytes", "a.tfrecord"]).fails(2, &["--kind", "bytes"]);
}

#[test]
fn samples_are_spread_over_the_files() {
    let dir = Folder::new();
    for s in 0..4 {
        dir.shard(&format!("x-{s}.tfrecord"), rows(s * 10..s * 10 + if s == 1 { 1 } else { 10 }));
    }
    let first = |args: &[&str]| {
        let ran = dir.run(&[&["schema", "x-*"], args].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        ran.out.lines().next().unwrap().to_owned()
    };
    // The second file has only one record, so more are read from the third.
    assert_eq!(first(&["-n", "8"]), "Example, 8 records seen");
    assert_eq!(first(&["-n", "1"]), "Example, 1 record seen");
    assert_eq!(first(&["--all"]), "Example, 31 records seen");
    dir.run(&["schema", "x-*", "-n", "0"]).fails(2, &["0"]);
    dir.run(&["schema", "x-*", "-n", "3", "--all"]).fails(2, &["--all"]);
    let bytes = fs::read(dir.path("x-0.tfrecord")).unwrap();
    assert!(dir.run_on(&bytes, &["schema", "-"]).out.starts_with("Example, 10 records seen\n"));
}

#[test]
fn conflicts_mixed_kinds_and_damage() {
    let dir = Folder::new();
    let mut mixed = labels(0..3);
    mixed.push(ExampleBuilder::new().float("label", [1.0f32]).int64("other", [1]).encode().unwrap());
    dir.shard("mixed.tfrecord", mixed);
    let ran = dir.run(&["schema", "mixed.tfrecord"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("label    float, int64  1       all     left out\n"), "{}", ran.out);
    assert!(
        ran.err.contains("left out: feature \"label\": ") && ran.err.contains("int64 in 3 records"),
        "{}",
        ran.err
    );
    let json = dir.run(&["schema", "-q", "--json", "mixed.tfrecord"]);
    assert_eq!(json.err, "");
    assert_eq!(Schema::from_json(&json.out).unwrap().features().keys().collect::<Vec<_>>(), ["other"]);

    // Examples come first, then SequenceExamples.
    dir.shard("y-0.tfrecord", rows(0..3));
    dir.shard("y-1.tfrecord", sequences());
    assert!(dir.run(&["schema", "y-*"]).out.starts_with("SequenceExample, 6 records seen\n"));

    dir.shard("text.tfrecord", ["plain text"]);
    dir.run(&["schema", "text.tfrecord"]).fails(1, &["text.tfrecord: ", "neither"]);
    dir.shard("none.tfrecord", [""; 0]);
    let none = "expected at least one record to infer a schema from, found none\n";
    dir.run(&["schema", "none.tfrecord"]).fails(1, &[&format!("tfseek: none.tfrecord: {none}")]);
    dir.shard("none-1.tfrecord", [""; 0]);
    dir.run(&["schema", "none*"]).fails(1, &[&format!("tfseek: none-1.tfrecord and 1 more file: {none}")]);
    dir.run_on(b"", &["schema", "-"]).fails(1, &[&format!("tfseek: <stdin>: {none}")]);

    // A feature without a kind is named.
    let kindless = |name| ExampleBuilder::new().int64("label", [1]).feature(name, FeatureBuf::None).encode();
    dir.shard("kindless.tfrecord", ["cap tion", "mask"].map(|name| kindless(name).unwrap()));
    let note = "tfseek: left out: 2 features without a kind in 2 records: \"cap tion\", mask\n";
    for form in [&[][..], &["--json"], &["--tf"], &["--tfdv"]] {
        let ran = dir.run(&[&["schema", "kindless.tfrecord"], form].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, note));
        assert_eq!(ran.out.contains("mask"), form.is_empty(), "{}", ran.out);
    }

    // Records without features.
    dir.shard("empty.tfrecord", ["", ""]);
    let ran = dir.run(&["schema", "--json", "empty.tfrecord"]);
    assert!(ran.code == 0 && Schema::from_json(&ran.out).unwrap().features().is_empty(), "{ran:?}");
    assert!(
        ran.err.contains("the schema is empty: no feature of a single kind in 2 records, read as Example"),
        "{}",
        ran.err
    );
    assert_eq!(dir.run(&["schema", "-q", "empty.tfrecord"]).err, "");

    // Records before the damage count.
    let path = dir.shard("z-0.tfrecord", labels(0..100));
    damage(&path, 34 * 50);
    dir.shard("z-1.tfrecord", labels(0..1));
    let ran = dir.run(&["schema", "--all", "z-*"]);
    assert!(ran.code == 1 && ran.out.starts_with("Example, 51 records seen\n"), "{}", ran.out);
    assert!(ran.err.contains("z-0.tfrecord: record 50 at byte 1700"), "{}", ran.err);
    let mut payloads = labels(0..20);
    payloads[17] = b"\x0a\x05\x0a\x03".to_vec();
    dir.shard("b.tfrecord", payloads);
    let ran = dir.run(&["schema", "b.tfrecord"]);
    assert!(ran.code == 1 && ran.err.contains("b.tfrecord: record 17 at byte "), "{}", ran.err);
}

/// Writes a schema to the folder, as JSON.
fn schema(dir: &Folder, features: &str) {
    fs::write(dir.path("s.json"), format!("{{\"features\": {{{features}}}}}")).unwrap();
}

#[test]
fn batches_as_json() {
    let dir = Folder::new();
    dir.shard("x-0.tfrecord", rows(0..2));
    dir.shard("x-1.tfrecord", rows(2..4));
    schema(
        &dir,
        r#""label": {"type": "fixed", "dtype": "int64", "shape": []},
           "emb": {"type": "fixed", "dtype": "float32", "shape": [2]},
           "words": {"type": "varlen", "dtype": "string"},
           "r": {"type": "ragged", "dtype": "string", "value_key": "absent"}"#,
    );
    let ran = dir.run(&["parse", "x-*", "-s", "s.json", "-b", "3"]);
    assert!(
        ran.code == 0 && ran.err.contains("none of the first records has a feature \"absent\""),
        "{}",
        ran.err
    );
    let expected = concat!(
        r#"{"status":"ok","outputs":{"#,
        r#""emb":{"kind":"dense","dtype":"float32","shape":[3,2],"data":["3f000000","00000000","3f000000","3f800000","3f000000","40000000"]},"#,
        r#""label":{"kind":"dense","dtype":"int64","shape":[3],"data":[0,1,2]},"#,
        r#""r":{"kind":"ragged","values":{"dtype":"string","shape":[0],"data":[]},"row_splits":[{"dtype":"int32","shape":[4],"data":[0,0,0,0]}]},"#,
        r#""words":{"kind":"sparse","indices":{"dtype":"int64","shape":[3,2],"data":[1,0,2,0,2,1]},"values":{"dtype":"string","shape":[3],"data":["77","77","77"]},"dense_shape":{"dtype":"int64","shape":[2],"data":[3,2]}}}}"#,
        "\n",
        r#"{"status":"ok","outputs":{"#,
        r#""emb":{"kind":"dense","dtype":"float32","shape":[1,2],"data":["3f000000","40400000"]},"#,
        r#""label":{"kind":"dense","dtype":"int64","shape":[1],"data":[3]},"#,
        r#""r":{"kind":"ragged","values":{"dtype":"string","shape":[0],"data":[]},"row_splits":[{"dtype":"int32","shape":[2],"data":[0,0]}]},"#,
        r#""words":{"kind":"sparse","indices":{"dtype":"int64","shape":[0,2],"data":[]},"values":{"dtype":"string","shape":[0],"data":[]},"dense_shape":{"dtype":"int64","shape":[2],"data":[1,0]}}}}"#,
        "\n",
    );
    assert_eq!(ran.out, expected);
    schema(&dir, r#""label": {"type": "fixed", "dtype": "int64", "shape": []}"#);
    let labels = |args: &[&str]| {
        let ran = dir.run(&[&["parse", "x-*", "-s", "s.json"], args].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let label = |line: &str| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["outputs"]["label"]["data"].to_string()
        };
        ran.out.lines().map(label).collect::<Vec<_>>()
    };
    // Records count over all files.
    assert_eq!(labels(&["-b", "2", "--skip", "1"]), ["[1,2]", "[3]"]);
    assert_eq!(labels(&["--skip", "1", "-n", "2"]), ["[1,2]"]);
    assert_eq!(labels(&["--single", "-n", "2"]), ["[0]", "[1]"]);
    assert!(labels(&["-n", "0"]).is_empty());
    dir.run(&["parse", "x-*", "-s", "s.json", "-n", "1", "--single"]).prints(concat!(
        r#"{"status":"ok","outputs":{"label":{"kind":"dense","dtype":"int64","shape":[],"data":[0]}}}"#,
        "\n"
    ));
    let bytes = fs::read(dir.path("x-0.tfrecord")).unwrap();
    assert_eq!(dir.run_on(&bytes, &["parse", "-", "-s", "s.json"]).out.lines().count(), 1);
}

/// Numbers of arrays are the hex digits of their bits.
#[test]
fn arrays_in_byte_strings() {
    let dir = Folder::new();
    let row = |bytes: &[u8]| {
        let tensor = tfseek::tensor::serialize_values(&[bytes.len() as u64], bytes).unwrap();
        ExampleBuilder::new().bytes("a", [[0, 2, 1, 0]]).bytes("b", [tensor]).encode().unwrap()
    };
    dir.shard("x.tfrecord", [row(&[7]), row(&[8, 9])]);
    schema(
        &dir,
        r#""a": {"type": "raw", "dtype": "int16", "shape": [2], "byte_order": "big"},
           "b": {"type": "tensor", "dtype": "uint8", "shape": [null]}"#,
    );
    dir.run(&["parse", "x.tfrecord", "-s", "s.json"]).prints(concat!(
        r#"{"status":"ok","outputs":{"#,
        r#""a":{"kind":"dense","dtype":"int16","shape":[2,2],"data":["0002","0100","0002","0100"]},"#,
        r#""b":{"kind":"ragged","values":{"dtype":"uint8","shape":[3],"data":["07","08","09"]},"#,
        r#""row_splits":[{"dtype":"int64","shape":[3],"data":[0,1,3]}]}}}"#,
        "\n",
    ));
    let ran = dir.run(&["validate", "x.tfrecord", "-s", "s.json"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "no anomaly in 2 records; not checked: arrays and pictures in byte strings (a, b)\n")
    );
    schema(&dir, r#""a": {"type": "raw", "dtype": "int16", "shape": [3]}"#);
    let ran = dir.run(&["parse", "x.tfrecord", "-s", "s.json"]);
    assert!(ran.err.contains("expected 6 bytes of an array, found 4"), "{}", ran.err);
    schema(&dir, r#""a": {"type": "raw", "dtype": "bfloat16", "shape": [2]}"#);
    let ran = dir.run(&["convert", "x.tfrecord", "x.parquet", "-s", "s.json"]);
    assert!(ran.err.contains("expected a type that Arrow has, found arrays of bfloat16"), "{}", ran.err);
}

/// Record 3 has no weight.
#[test]
fn optional_columns() {
    let dir = Folder::new();
    dir.shard("x.tfrecord", rows(2..5));
    schema(
        &dir,
        r#""weight": {"type": "optional", "dtype": "float32"}, "w": {"type": "optional", "dtype": "string"},
           "with": {"type": "optional", "dtype": "int64", "default": -7}"#,
    );
    dir.run(&["parse", "x.tfrecord", "-s", "s.json"]).prints(concat!(
        r#"{"status":"ok","outputs":{"#,
        r#""w":{"kind":"optional","values":{"dtype":"string","shape":[3],"data":["","",""]},"#,
        r#""present":{"dtype":"bool","shape":[3],"data":[false,false,false]}},"#,
        r#""weight":{"kind":"optional","values":{"dtype":"float32","shape":[3],"data":["3f800000","00000000","3f800000"]},"#,
        r#""present":{"dtype":"bool","shape":[3],"data":[true,false,true]}},"#,
        r#""with":{"kind":"dense","dtype":"int64","shape":[3],"data":[-7,-7,-7]}}}"#,
        "\n",
    ));
    schema(&dir, r#""weight": {"type": "optional", "dtype": "float32"}"#);
    dir.run(&["parse", "x.tfrecord", "-s", "s.json", "--single", "--skip", "1", "-n", "1"]).prints(concat!(
        r#"{"status":"ok","outputs":{"weight":{"kind":"optional","values":{"dtype":"float32","shape":[],"data":["00000000"]},"#,
        r#""present":{"dtype":"bool","shape":[],"data":[false]}}}}"#,
        "\n",
    ));
    // Several values.
    schema(&dir, r#""emb": {"type": "optional", "dtype": "float32"}"#);
    let wanted = ["record 0", "row 0", "feature \"emb\": expected at most 1 value, found 2"];
    dir.run(&["parse", "x.tfrecord", "-s", "s.json"]).fails(1, &wanted);
}

#[test]
fn sequences_as_json() {
    let dir = Folder::new();
    dir.shard("s.tfrecord", sequences());
    fs::write(
        dir.path("s.json"),
        r#"{"context": {"id": {"type": "fixed", "dtype": "int64", "shape": []}},
            "sequence": {"frames": {"type": "fixed_sequence", "dtype": "float32", "shape": [2]}}}"#,
    )
    .unwrap();
    dir.run(&["parse", "s.tfrecord", "-s", "s.json", "-n", "2"]).prints(concat!(
        r#"{"status":"ok","context":{"id":{"kind":"dense","dtype":"int64","shape":[2],"data":[0,1]}},"#,
        r#""sequence":{"frames":{"kind":"dense","dtype":"float32","shape":[2,1,2],"data":["00000000","00000000","00000000","3f800000"]}},"#,
        r#""lengths":{"frames":{"kind":"dense","dtype":"int64","shape":[2],"data":[0,1]}}}"#,
        "\n",
    ));
    dir.run(&["parse", "s.tfrecord", "-s", "s.json", "--skip", "1", "-n", "1", "--single"]).prints(concat!(
        r#"{"status":"ok","context":{"id":{"kind":"dense","dtype":"int64","shape":[],"data":[1]}},"#,
        r#""sequence":{"frames":{"kind":"dense","dtype":"float32","shape":[1,2],"data":["00000000","3f800000"]}}}"#,
        "\n",
    ));
}

#[test]
fn parse_errors() {
    let dir = Folder::new();
    dir.shard("x-0.tfrecord", rows(0..2));
    dir.shard("x-1.tfrecord", rows(2..6));
    schema(&dir, r#""weight": {"type": "fixed", "dtype": "float32", "shape": []}"#);
    // The batches before the error are printed.
    let ran = dir.run(&["parse", "x-*", "-s", "s.json", "-b", "3"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 1));
    for words in ["x-1.tfrecord: record 1 at byte ", "row 0 of the batch", "feature \"weight\""] {
        assert!(ran.err.contains(words), "no {words:?} in {:?}", ran.err);
    }
    schema(&dir, r#""weight": {"type": "fixed", "dtype": "int32", "shape": []}"#);
    dir.run(&["parse", "x-*", "-s", "s.json"]).fails(2, &["s.json: feature \"weight\": ", "int32"]);
    dir.run(&["parse", "x-*", "-s", "missing.json"]).fails(3, &["missing.json"]);
    dir.run(&["parse", "x-*"]).fails(2, &["--schema"]);
    dir.run(&["parse", "x-*", "-s", "s.json", "-b", "0"]).fails(2, &["0"]);
    dir.run(&["parse", "x-*", "-s", "s.json", "-b", "2", "--single"]).fails(2, &["--single"]);
    schema(&dir, r#""label": {"type": "fixed", "dtype": "int64", "shape": []}"#);
    let path = dir.path("x-1.tfrecord");
    let len = fs::metadata(&path).unwrap().len() as usize;
    damage(&path, len - 1);
    dir.run(&["parse", "x-*", "-s", "s.json"]).fails(1, &["x-1.tfrecord: record 3 at byte", "crc32c"]);
}

/// Standard input cannot be read a second time, even if its records are SequenceExamples.
#[test]
fn sequence_examples_on_standard_input_have_the_same_schema() {
    let dir = Folder::new();
    let bytes = fs::read(dir.shard("b.tfrecord", sequences())).unwrap();
    let of_file = dir.run(&["schema", "b.tfrecord"]);
    assert!(of_file.out.starts_with("SequenceExample"), "{}", of_file.out);
    dir.run_on(&bytes, &["schema", "-"]).prints(&of_file.out);
}

/// `parse` accepts the schema that `schema` prints, and all records match it.
#[test]
fn an_inferred_schema_parses_what_it_was_inferred_from() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", rows(0..50));
    dir.shard("b.tfrecord", sequences());
    for file in ["a.tfrecord", "b.tfrecord"] {
        fs::write(dir.path("s.json"), dir.run(&["schema", "--all", "--json", file]).out).unwrap();
        let ran = dir.run(&["parse", file, "-s", "s.json", "-b", "7"]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    }
}
