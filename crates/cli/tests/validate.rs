//! `validate`, and the schemas that `schema --tfdv` prints for it.

use crate::common::*;
use std::fs;
use tfseek::ExampleBuilder;

const SCHEMA: &str = r#"feature { name: "label" type: INT presence { min_fraction: 1 } int_domain { min: 0 max: 9 } }
feature { name: "pay" type: BYTES domain: "pay" }
feature { name: "comment" type: BYTES natural_language_domain {} }
string_domain { name: "pay" value: "Cash" }
"#;

fn record(label: i64, pay: &str) -> Vec<u8> {
    ExampleBuilder::new().int64("label", [label]).bytes("pay", [pay]).encode().unwrap()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn anomalies_and_their_records() {
    let dir = Folder::new();
    fs::write(dir.path("schema.pbtxt"), SCHEMA).unwrap();
    dir.shard("good.tfrecord", (0..10).map(|i| record(i, "Cash")));
    let unchecked = "not checked: natural_language_domain (comment)";
    dir.run(&["validate", "good.tfrecord", "-s", "schema.pbtxt"])
        .prints(&format!("no anomaly in 10 records; {unchecked}\n"));
    let bad = |i: i64| record(i, if i % 4 == 3 { "Prcard" } else { "Cash" });
    dir.shard("bad.tfrecord.gz", (0..12).map(bad));
    let ran = dir.run(&["validate", "-s", "schema.pbtxt", "good.tfrecord", "bad.tfrecord.gz"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert_eq!(
        ran.out,
        format!(
            "  error  pay    ENUM_TYPE_UNEXPECTED_STRING_VALUES  3 values outside the domain, of 22; 3 records: 13, 17, 21   \"Prcard\"\n  \
               error  label  INT_TYPE_BIG_INT  expected 0 to 9; 2 records: 20, 21   10, 11\n\
             2 anomalies in 22 records; {unchecked}\n"
        )
    );
    let twice = SCHEMA.replace("INT ", "INT natural_language_domain {} ");
    fs::write(dir.path("twice.pbtxt"), twice).unwrap();
    dir.run(&["validate", "good.tfrecord", "-s", "twice.pbtxt"])
        .prints("no anomaly in 10 records; not checked: natural_language_domain (comment, label)\n");
    fs::write(
        dir.path("two.pbtxt"),
        r#"feature { name: "label" value_count { min: 2 } } feature { name: "pay" }"#,
    )
    .unwrap();
    let ran = dir.run(&["validate", "good.tfrecord", "-s", "two.pbtxt"]);
    let line = "  error  label  FEATURE_TYPE_LOW_NUMBER_VALUES  expected at least 2 values; 10 records: 0, 1, 2 ..   1 value\n";
    assert!(ran.out.starts_with(line), "{}", ran.out);
    // Errors come first, and features with one anomaly share a line.
    let many = (0..5).map(|k| (0..40).fold(ExampleBuilder::new(), |e, i| e.int64(format!("f{i:02}"), [k])));
    dir.shard("many.tfrecord", many.map(|example| example.int64("label", [99]).encode().unwrap()));
    fs::write(dir.path("one.pbtxt"), r#"feature { name: "label" type: INT int_domain { max: 9 } }"#).unwrap();
    let ran = dir.run(&["validate", "-s", "one.pbtxt", "many.tfrecord"]);
    let lines: Vec<_> =
        ran.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(lines[0].starts_with("error label INT_TYPE_BIG_INT"), "{}", ran.out);
    let new = "SCHEMA_NEW_COLUMN the schema has no such feature; 5 records: 0, 1, 2 ..";
    assert_eq!(
        lines[1..],
        [format!("warning f00, f01, f02, 37 more {new}"), "41 anomalies in 5 records".to_owned()]
    );
    let ran = dir.run(&["validate", "--json", "-s", "one.pbtxt", "many.tfrecord"]);
    let all = json(&ran.out);
    assert_eq!(all["anomalies"].as_array().unwrap().len(), 41);
    assert!(
        all["anomalies"]
            .as_array()
            .unwrap()
            .iter()
            .all(|a| (a["severity"] == "error") == (a["feature"] == "label"))
    );
    let args = ["validate", "--json", "-s", "schema.pbtxt", "good.tfrecord", "bad.tfrecord.gz", "-j"];
    let one = dir.run(&[&args[..], &["1"]].concat());
    assert_eq!(one.out, dir.run(&[&args[..], &["8"]].concat()).out);
    let report = json(&one.out);
    assert_eq!((one.code, &report["records"]), (1, &22.into()));
    assert_eq!(report["anomalies"][1]["first"], json("[13, 17, 21]"));
    assert_eq!(report["unchecked"][0]["feature"], "comment");
    // The same records from standard input.
    let bytes = fs::read(dir.path("bad.tfrecord.gz")).unwrap();
    let ran = dir.run_on(&bytes, &["validate", "--json", "-s", "schema.pbtxt", "-"]);
    assert_eq!(json(&ran.out)["anomalies"][1]["first"], json("[3, 7, 11]"));
}

#[test]
fn baselines_and_environments() {
    let dir = Folder::new();
    let schema = r#"feature { name: "pay" type: BYTES drift_comparator { infinity_norm { threshold: 0.2 } } }
        feature { name: "target" type: INT presence { min_fraction: 1 } not_in_environment: "serving" }
        default_environment: "training" default_environment: "serving""#;
    fs::write(dir.path("s"), schema).unwrap();
    dir.shard("old.tfrecord", (0..10).map(|i| record(i, if i < 5 { "Cash" } else { "Card" })));
    dir.shard("new.tfrecord", (0..10).map(|i| record(i, if i < 8 { "Cash" } else { "Card" })));
    let names = |args: &[&str]| -> Vec<String> {
        let ran = dir.run(&[&["validate", "--json", "-s", "s", "new.tfrecord"], args].concat());
        let report = json(&ran.out);
        let list = report["anomalies"].as_array().unwrap().clone();
        list.iter().map(|a| a["anomaly"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["--environment", "serving"]), ["SCHEMA_NEW_COLUMN"]);
    assert_eq!(names(&[]), ["SCHEMA_NEW_COLUMN", "SCHEMA_MISSING_COLUMN"]);
    let serving = ["--environment", "serving", "--baseline", "old.tfrecord"];
    assert_eq!(names(&serving), ["SCHEMA_NEW_COLUMN", "COMPARATOR_L_INFTY_HIGH"]);
    // A column that no record has is first in the table.
    let table = dir.run(&["validate", "-s", "s", "new.tfrecord"]).out;
    let at = |name: &str| table.find(name).unwrap_or_else(|| panic!("{name}: {table}"));
    assert!(at("SCHEMA_MISSING_COLUMN") < at("SCHEMA_NEW_COLUMN"), "{table}");
}

/// Records have no anomaly by the schema that was inferred from them, in both forms.
#[test]
fn inferred_schemas_accept_their_records() {
    let dir = Folder::new();
    let payload = |i: i64| {
        let record = ExampleBuilder::new().int64("n", 0..i).float("x \"q\"", [1.5]);
        let record = if i == 3 { record.feature("none", tfseek::FeatureBuf::default()) } else { record };
        let record = if i % 2 == 0 { record.int64("mixed", [1]) } else { record.bytes("mixed", ["a"]) };
        record.encode().unwrap()
    };
    dir.shard("a.tfrecord", (0..9).map(payload));
    let steps = |i: i64| {
        let record = tfseek::SequenceExampleBuilder::new().int64("id", [i]);
        let steps = (0..i % 3).map(|k| tfseek::FeatureBuf::Int64(vec![k; 2]));
        record.feature_list("steps", steps).encode().unwrap()
    };
    dir.shard("s.tfrecord", (0..9).map(steps));
    for (file, form) in [("a", "--tfdv"), ("s", "--tfdv"), ("a", "--json"), ("s", "--json")] {
        let file = format!("{file}.tfrecord");
        let schema = dir.run(&["schema", "--all", form, &file]);
        fs::write(dir.path("s"), &schema.out).unwrap();
        let ran = dir.run(&["validate", "-s", "s", &file]);
        let left_out = form == "--json" && file == "a.tfrecord";
        // JSON leaves out the feature of two kinds.
        assert_eq!(ran.code, i32::from(left_out), "{file} {form}\n{schema:?}\n{ran:?}");
        assert_eq!(ran.out.contains("SCHEMA_NEW_COLUMN"), left_out, "{}", ran.out);
    }
    let text = dir.run(&["schema", "--all", "--tfdv", "s.tfrecord"]).out;
    // The next shard may have other numbers of values.
    assert!(text.contains("name: \"##SEQUENCE##\"") && text.contains("name: \"steps\""), "{text}");
    assert!(!text.contains("value_counts"), "{text}");
}

#[test]
fn errors() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..10));
    for (schema, message) in [
        (
            "feature {\n  nam: 'x'\n}",
            "s: expected a schema as JSON or in text format: line 2, column 3: expected a field of Feature, found `nam`",
        ),
        ("{}", "s: "),
        ("feature { name: 'a' type: ", "line 1, column 27: expected a value, found the end of the text"),
    ] {
        fs::write(dir.path("s"), schema).unwrap();
        dir.run(&["validate", "-s", "s", "a.tfrecord"]).fails(2, &[message]);
    }
    fs::write(dir.path("s"), SCHEMA).unwrap();
    dir.run(&["validate", "-s", "none", "a.tfrecord"]).fails(3, &["none"]);
    dir.shard("raw.tfrecord", (0..3).map(|_| b"plain text".to_vec()));
    dir.run(&["validate", "-s", "s", "raw.tfrecord"]).fails(1, &["neither Examples nor SequenceExamples"]);
    damage(&dir.path("a.tfrecord"), 34 * 3 + 20);
    dir.run(&["validate", "-s", "s", "a.tfrecord"]).fails(1, &["a.tfrecord", "record 3"]);
}
