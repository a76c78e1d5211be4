//! Files written by the tools of other projects, if they are available.

use crate::common::Folder;
use std::fs;
use std::path::Path;

/// Every digest equals that in the golden file. Neither kind nor compression is specified.
#[test]
fn digests_of_real_files() {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/real");
    let Ok(golden) = fs::read_dir(real.join("golden")) else {
        tfseek_testkit::skipped("the real files beside the checkout");
        return;
    };
    let dir = Folder::new();
    let (mut files, mut records) = (0, 0);
    for entry in golden {
        let golden: serde_json::Value =
            serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        let file = real.join(golden["file"].as_str().unwrap());
        let ran = dir.run(&["digest", file.to_str().unwrap()]);
        assert_eq!(ran.code == 0, golden["framing"] == "ok", "{}: {}", file.display(), ran.err);
        let table = golden["table"].as_array().unwrap();
        assert_eq!(ran.out.lines().count(), table.len(), "{}", file.display());
        for (k, (line, row)) in ran.out.lines().zip(table).enumerate() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!((&line["index"], &line["record"]), (&k.into(), &k.into()), "{}", file.display());
            // A payload of neither kind may still decode as one by accident, so its digest is not compared.
            let columns = if golden["kind"] == "other" { 2 } else { 3 };
            for (name, want) in
                ["length", "sha256", "digest"].iter().zip(row.as_array().unwrap()).take(columns)
            {
                assert_eq!(&line[name], want, "{} of {} record {}", name, file.display(), line["index"]);
            }
            records += 1;
        }
        files += 1;
    }
    assert!(files > 0 && records > 0);
}

/// Both JSON forms of every record give back a record with the same content.
#[test]
fn real_files_to_json_and_back() {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/real");
    let Ok(entries) = fs::read_dir(real.join("golden")) else {
        tfseek_testkit::skipped("the real files beside the checkout");
        return;
    };
    let dir = Folder::new();
    let mut records = 0;
    for entry in entries {
        let golden: serde_json::Value =
            serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        let kind = match golden["kind"].as_str().unwrap() {
            "Example" => "example",
            "SequenceExample" => "sequence-example",
            _ => "bytes",
        };
        if golden["framing"] != "ok" || golden["table"].as_array().unwrap().is_empty() {
            continue;
        }
        let file = real.join(golden["file"].as_str().unwrap());
        let file = file.to_str().unwrap();
        let run = |args: &[&str]| {
            let ran = dir.run(args);
            assert_eq!(ran.code, 0, "{file}: {}", ran.err);
            ran.out
        };
        let content = |file: &str| -> Vec<[serde_json::Value; 2]> {
            let lines = run(&["digest", "--kind", kind, file]);
            let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            let parts = lines.map(|line| {
                // Equal messages may have other bytes.
                let bytes = if kind == "bytes" { line["sha256"].clone() } else { serde_json::Value::Null };
                [line["digest"].clone(), bytes]
            });
            parts.collect()
        };
        let want = content(file);
        for format in ["json", "proto-json"] {
            fs::write(dir.path("r.jsonl"), run(&["cat", "--kind", kind, "-f", format, file])).unwrap();
            let mut args = vec!["convert", "-q", "--force", "r.jsonl", "o.tfrecord"];
            if format == "json" && kind != "bytes" {
                fs::write(dir.path("spec"), run(&["schema", "-q", "--all", "--json", "--kind", kind, file]))
                    .unwrap();
                args.extend(["--schema", "spec"]);
            }
            run(&args);
            assert_eq!(content("o.tfrecord"), want, "{file} as {format}");
        }
        records += want.len();
    }
    assert!(records > 10_000, "{records}");
}
