//! The exact output of the printed formats.

use crate::common::*;

#[test]
fn examples_in_readable_form() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", [rich()]);
    dir.run(&["head", "a.tfrecord"]).prints(
        r#"record 0, 184 bytes
  floats       float[6]   0.1 1.0 NaN -inf 1e-45 1e16
  größe        bytes[3]   "it's \"ü\"\n" <6 bytes ff0001020304> <07>
  many         int64[20]  0 1 2 3 4 5 6 7 .. 12 more
  min          int64      -9223372036854775808
  "no values"  int64[0]
  unset        no kind
  word         bytes      "goat"
"#,
    );
}

#[test]
fn sequence_examples_in_readable_form() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", [sequence()]);
    dir.run(&["head", "a.tfrecord"]).prints(
        "record 0, 90 bytes
  context
    id  int64  5
  feature lists
    frames   2 steps of float[2]  [0.5 2.0] [1.5 3.0]
    mixed    2 steps              [1] []
    nothing  0 steps
",
    );
}

#[test]
fn payloads_that_are_not_examples() {
    let dir = Folder::new();
    let text = dir.shard("a.tfrecord", ["hello world", "second\x1b[2J", ""]);
    let event = b"\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0dbrain.Event:2".as_slice();
    dir.shard("b.tfrecord", [event, event]);
    dir.run(&["cat", "a.tfrecord"]).prints(
        "record 0, 11 bytes
  \"hello world\"
record 1, 10 bytes
  <10 bytes 7365636f6e641b5b324a>
record 2, 0 bytes
  \"\"
",
    );
    dir.run(&["head", "-n", "1", "b.tfrecord"]).prints(
        "record 0, 24 bytes
  1 wall_time  double  1.0
  3 file_version  string  \"brain.Event:2\"
",
    );
    dir.run(&["head", "-n", "1", "-f", "json", "a.tfrecord"])
        .prints("{\"index\":0,\"record\":0,\"payload\":\"hello world\"}\n");
    dir.run(&["head", "-n", "1", "-f", "json", "b.tfrecord"])
        .prints("{\"index\":0,\"record\":0,\"payload\":{\"base64\":\"CQAAAAAAAPA/Gg1icmFpbi5FdmVudDoy\"}}\n");
    // With an explicit kind every payload must be of that kind.
    dir.run(&["head", "-n", "1", "--kind", "example", "b.tfrecord"])
        .fails(1, &["b.tfrecord: record 0 at byte 0: malformed message at payload byte 0"]);
    let ran = dir.run(&["head", "--kind", "example", text.to_str().unwrap()]);
    ran.fails(1, &["a.tfrecord: record 0 at byte 0: "]);
}

#[test]
fn one_json_object_per_line() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", [rich()]);
    dir.shard("s.tfrecord", [sequence()]);
    dir.run(&["head", "--format", "json", "a.tfrecord"]).prints(concat!(
        r#"{"index":0,"record":0,"features":{"floats":[0.1,1.0,"NaN","-Infinity",1e-45,1e+16],"#,
        r#""größe":["it's \"ü\"\n",{"base64":"/wABAgME"},"\u0007"],"#,
        r#""many":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19],"min":[-9223372036854775808],"#,
        r#""no values":[],"unset":null,"word":["goat"]}}"#,
        "\n"
    ));
    dir.run(&["head", "--format", "json", "s.tfrecord"]).prints(concat!(
        r#"{"index":0,"record":0,"context":{"id":[5]},"#,
        r#""feature_lists":{"frames":[[0.5,2.0],[1.5,3.0]],"mixed":[[1],null],"nothing":[]}}"#,
        "\n"
    ));
    let ran = dir.run(&["head", "--format", "json", "a.tfrecord", "s.tfrecord"]);
    assert!(ran.out.starts_with(r#"{"file":"a.tfrecord","index":0,"record":0,"features""#), "{}", ran.out);
}

/// The expected text is printed by `MessageToJson` of protobuf 7.36.2, with sorted keys.
#[test]
fn protobufs_json_mapping() {
    let dir = Folder::new();
    let payload = tfseek::ExampleBuilder::new()
        .bytes("ü\u{7f}😀\"", [[0xfbu8, 0xff].as_slice(), b""])
        .float("f", [0.1f32, f32::NAN, f32::INFINITY, 1e-45, 1e16])
        .int64("i", [-1i64])
        .int64("none", [0i64; 0])
        .feature("unset", tfseek::FeatureBuf::None)
        .encode()
        .unwrap();
    dir.shard("a.tfrecord", [payload, Vec::new(), b"\x0a\x00".to_vec()]);
    dir.run(&["cat", "--format", "proto-json", "a.tfrecord"]).prints(
        r#"{
  "features": {
    "feature": {
      "f": {
        "floatList": {
          "value": [
            0.1,
            "NaN",
            "Infinity",
            1.4013e-45,
            1e+16
          ]
        }
      },
      "i": {
        "int64List": {
          "value": [
            "-1"
          ]
        }
      },
      "none": {
        "int64List": {}
      },
      "unset": {},
      "\u00fc\u007f\ud83d\ude00\"": {
        "bytesList": {
          "value": [
            "+/8=",
            ""
          ]
        }
      }
    }
  }
}
{}
{
  "features": {}
}
"#,
    );
    dir.shard("s.tfrecord", [sequence()]);
    let ran = dir.run(&["cat", "--format", "proto-json", "s.tfrecord"]);
    let value: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(value["context"]["feature"]["id"]["int64List"]["value"][0], "5");
    let lists = &value["featureLists"]["featureList"];
    assert_eq!(lists["frames"]["feature"][1]["floatList"]["value"][0], 1.5);
    assert_eq!(lists["mixed"]["feature"][1], serde_json::json!({}));
    assert_eq!(lists["nothing"], serde_json::json!({}));
}

#[test]
fn raw_payloads_and_framed_records() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", ["one\n", "", "two\n"]);
    dir.run(&["cat", "-f", "raw", "a.tfrecord"]).prints("one\ntwo\n");
    let framed = dir.command(&["cat", "-f", "tfrecord", "a.tfrecord"]).output().unwrap();
    assert_eq!(framed.stdout, std::fs::read(path).unwrap());
}

/// Every verb that prints records prints the same line for a raw payload.
#[test]
fn raw_payloads_as_json_have_one_form() {
    let dir = Folder::new();
    let payloads = [label(0), b"text".to_vec(), b"\xff\x00".to_vec(), Vec::new()];
    dir.shard("a.tfrecord", &payloads);
    let lines = [
        r#"{"index":0,"record":0,"payload":"\n\u0010\n\u000e\n\u0005label\u0012\u0005\u001a\u0003\n\u0001\u0000"}"#,
        r#"{"index":1,"record":1,"payload":"text"}"#,
        r#"{"index":2,"record":2,"payload":{"base64":"/wA="}}"#,
        r#"{"index":3,"record":3,"payload":""}"#,
    ];
    let all = lines.map(|line| format!("{line}\n")).concat();
    let raw = ["--kind", "bytes", "-f", "json"];
    for indexed in [false, true] {
        for args in [
            &["head", "a.tfrecord"][..],
            &["tail", "a.tfrecord"],
            &["cat", "a.tfrecord"],
            &["get", "a.tfrecord", ":"],
        ] {
            dir.run(&[args, &raw].concat()).prints(&all);
        }
        let mut sampled: Vec<_> =
            dir.run(&[&["sample", "a.tfrecord"], &raw[..]].concat()).out.lines().map(str::to_owned).collect();
        sampled.sort();
        assert_eq!(sampled, lines, "{indexed}");
        assert_eq!(dir.run(&["index", "-q", "a.tfrecord"]).code, 0);
    }
    // On standard input the number over all files is not known.
    let bytes = std::fs::read(dir.path("a.tfrecord")).unwrap();
    for verb in ["head", "tail", "cat"] {
        let unnumbered =
            (0..4).fold(all.clone(), |all, i| all.replace(&format!("\"index\":{i}"), "\"index\":null"));
        dir.run_on(&bytes, &[&[verb, "-"], &raw[..]].concat()).prints(&unnumbered);
    }
    // With several files each line has its file.
    dir.shard("b.tfrecord", ["b"]);
    for args in [&["cat"][..], &["head"], &["tail"]] {
        let ran = dir.run(&[args, &["a.tfrecord", "b.tfrecord"], &raw].concat());
        assert_eq!(
            ran.out.lines().last(),
            Some(r#"{"file":"b.tfrecord","index":4,"record":0,"payload":"b"}"#)
        );
    }
    for args in [&["cat", "a.tfrecord"][..], &["get", "a.tfrecord", "0"], &["sample", "a.tfrecord"]] {
        dir.run(&[args, &raw, &["--features", "label"]].concat()).fails(2, &["--features", "--kind bytes"]);
    }
}

#[test]
fn several_files() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..3));
    dir.shard("b.tfrecord.gz", labels(10..13));
    dir.run(&["head", "-n", "1", "--skip", "1", "a.tfrecord", "b.tfrecord.gz"]).prints(
        "==> a.tfrecord <==
record 1, 18 bytes
  label  int64  1

==> b.tfrecord.gz <==
record 4, 18 bytes, record 1 of b.tfrecord.gz
  label  int64  11
",
    );
    let last = "record 2, 18 bytes\n  label  int64  2\n";
    dir.run(&["tail", "-n", "1", "a.tfrecord"]).prints(last);
    assert_eq!(dir.run(&["index", "-q", "a.tfrecord"]).code, 0);
    dir.run(&["tail", "-n", "1", "a.tfrecord"]).prints(last);
    dir.run(&["tail", "-n", "1", "b.tfrecord.gz"]).prints("record 2, 18 bytes\n  label  int64  12\n");
}

/// `index` counts over all files, as `get` takes it; `record` counts in the file. No file is scanned to
/// determine `index`.
#[test]
fn index_and_record_are_two_numbers_of_a_record() {
    let dir = Folder::new();
    let names = ["x-0.tfrecord", "x-1.tfrecord", "x-2.tfrecord"];
    for (name, start) in names.iter().zip([0, 100, 200]) {
        dir.shard(name, labels(start..start + 100));
    }
    let pairs = |args: &[&str]| -> Vec<(Option<u64>, Option<u64>)> {
        let ran = dir.run(args);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        ran.out.lines().map(line).map(|line| (line["index"].as_u64(), line["record"].as_u64())).collect()
    };
    let known = |i: u64, record: u64| (Some(i), Some(record));
    // The records of files that are read to their end are counted.
    for args in [&["cat", "-f", "json", "x-*"][..], &["digest", "x-*"]] {
        let want: Vec<_> = (0..300).map(|i| known(i, i % 100)).collect();
        assert_eq!(pairs(args), want, "{args:?}");
    }
    assert_eq!(pairs(&["tail", "-n1", "-f", "json", "x-*"]), [known(99, 99), known(199, 99), known(299, 99)]);
    // The records of other files are counted only if the file has an index.
    let head = ["head", "-n1", "--skip", "2", "-f", "json", "x-*"];
    assert_eq!(pairs(&head), [known(2, 2), (None, Some(2)), (None, Some(2))]);
    dir.run(&["head", "-n1", "x-1.tfrecord", "x-0.tfrecord"]).prints(
        "==> x-1.tfrecord <==\nrecord 0, 18 bytes\n  label  int64  100\n
==> x-0.tfrecord <==\nrecord 0 of x-0.tfrecord, 18 bytes\n  label  int64  0\n",
    );
    assert!(!dir.path("cache").exists() && !dir.path(".tfseek").exists(), "an index was written unasked");
    assert_eq!(dir.run(&["index", "-q", "x-[01]*"]).code, 0);
    assert_eq!(pairs(&head), [known(2, 2), known(102, 2), known(202, 2)]);
    assert_eq!(pairs(&["tail", "-n1", "-f", "json", "x-*"]), [known(99, 99), known(199, 99), known(299, 99)]);
    // Verbs that access records by number always know both.
    assert_eq!(pairs(&["get", "-f", "json", "x-*", "102", "7"]), [known(102, 2), known(7, 7)]);
    assert!(
        pairs(&["sample", "-n5", "-f", "json", "x-*"]).iter().all(|(i, j)| i.unwrap() % 100 == j.unwrap())
    );
    for (i, j) in pairs(&["order", "-b", "20", "--step", "3", "--json", "x-*"]) {
        assert_eq!(i.unwrap() % 100, j.unwrap());
    }
    assert_eq!(pairs(&["order", "-b", "20", "--record", "102", "--json", "x-*"]), [known(102, 2)]);
    // Records of standard input have no number that `get` takes.
    let bytes = std::fs::read(dir.path("x-0.tfrecord")).unwrap();
    let ran = dir.run_on(&bytes, &["head", "-n1", "-f", "json", "-"]);
    assert!(ran.out.starts_with(r#"{"index":null,"record":0,"#), "{}", ran.out);
    let ran = dir.run_on(&bytes, &["digest", "-"]);
    assert!(ran.out.starts_with(r#"{"index":null,"record":0,"#), "{}", ran.out);
    // A damaged record has both numbers. After a file whose records cannot be counted, `index` is null.
    damage(&dir.path("x-1.tfrecord"), 34 * 20);
    let ran = dir.run(&["verify", "--json", "x-*"]);
    let lines: Vec<serde_json::Value> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((&lines[1]["index"], &lines[1]["record"]), (&120.into(), &20.into()));
    assert_eq!(lines[1]["offset"], 34 * 20);
    assert_eq!(
        (&lines[0]["index"], &lines[0]["record"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    let ran = dir.run(&["tail", "-n1", "-f", "json", "x-1.tfrecord", "x-2.tfrecord"]);
    let last: serde_json::Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["index"], &last["record"]), (&serde_json::Value::Null, &99.into()));
}

#[test]
fn colours_are_optional() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..1));
    let escape = |ran: Ran| ran.out.contains('\x1b');
    assert!(!escape(dir.run(&["head", "a.tfrecord"])));
    assert!(escape(dir.run(&["head", "--color", "always", "a.tfrecord"])));
    let no_color = |args: &[&str]| Ran::of(dir.command(args).env("NO_COLOR", "1").output().unwrap());
    assert!(!escape(no_color(&["head", "a.tfrecord"])));
    // The option takes precedence over the environment.
    assert!(escape(no_color(&["head", "--color", "always", "a.tfrecord"])));
}

/// Records that are messages of other types are printed by their fields.
#[test]
fn fields_of_other_messages() {
    let dir = Folder::new();
    let time = [&[0x09][..], &1.5e9f64.to_le_bytes()].concat();
    let version = [&time[..], b"\x1a\x0dbrain.Event:2"].concat();
    let loss = [&time[..], b"\x10\x07\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f"].concat();
    dir.shard("events", [version, loss]);
    let text = "record 0, 24 bytes\n  \
        1 wall_time  double  1500000000.0  2017-07-14 02:40:00 UTC\n  \
        3 file_version  string  \"brain.Event:2\"\n\
        record 1, 26 bytes\n  \
        1 wall_time  double  1500000000.0  2017-07-14 02:40:00 UTC\n  \
        2 step  varint  7\n  \
        5 summary  message\n    \
        1 value  message\n      \
        1 tag  string  \"loss\"\n      \
        2 simple_value  float  0.5\n";
    dir.run(&["cat", "events"]).prints(text);
    dir.shard("raw", [&b"\xff\xfe\xfd\xfc\xfb"[..], b"text"]);
    dir.run(&["cat", "raw"])
        .prints("record 0, 5 bytes\n  <5 bytes fffefdfcfb>\nrecord 1, 4 bytes\n  \"text\"\n");
}

/// Times have their date beside them, and lists of Examples show the values of their features.
#[test]
fn times_and_lists_of_examples() {
    let dir = Folder::new();
    let example = |x: f32| {
        let example =
            tfseek::ExampleBuilder::new().float("relevance", [x]).int64("created_at", [1_571_434_067]);
        example.int64("count", [1_571_434_067]).encode().unwrap()
    };
    dir.shard("one.tfrecord", [example(0.25)]);
    dir.run(&["cat", "one.tfrecord"]).prints(
        "record 0, 70 bytes\n  count       int64  1571434067\n  created_at  int64  1571434067  2019-10-18 21:27:47 UTC\n  \
         relevance   float  0.25\n",
    );
    let list: Vec<u8> = [(1, 0.25), (1, 0.5), (2, 4.0)]
        .into_iter()
        .flat_map(|(number, x)| {
            let payload = example(x);
            [&[number << 3 | 2, payload.len() as u8][..], &payload].concat()
        })
        .collect();
    dir.shard("elwc.tfrecord", [list]);
    let ran = dir.run(&["cat", "elwc.tfrecord"]);
    let lines: Vec<_> =
        ran.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let time = "created_at int64 1571434067 2019-10-18 21:27:47 UTC";
    let count = "count int64 1571434067";
    let expected = [
        "record 0, 216 bytes",
        "examples 0",
        count,
        time,
        "relevance float 0.25",
        "examples 1",
        count,
        time,
        "relevance float 0.5",
        "context",
        count,
        time,
        "relevance float 4.0",
    ];
    assert_eq!(lines, expected);
}

/// `info` reads the first 16 payloads that are no Examples.
#[test]
fn info_shows_the_fields_of_other_messages() {
    let dir = Folder::new();
    let time = [&[0x09][..], &1.5e9f64.to_le_bytes()].concat();
    let version = [&time[..], b"\x1a\x0dbrain.Event:2"].concat();
    let step = [&time[..], b"\x10\x07\x2a\x02\x0a\x00"].concat();
    let events = [&[version][..], &vec![step; 19]].concat();
    let text = "  kind         other\n  payloads     TensorBoard events\n  first 16 records\n\
                \x20   1 wall_time     fixed64  in all\n\
                \x20   2 step          varint   in 15 of 16\n\
                \x20   3 file_version  string   in 1 of 16\n\
                \x20   5 summary       message  in 15 of 16\n";
    for name in ["events", "events.gz"] {
        let file = dir.shard(name, &events);
        let ran = dir.run(&["info", name]);
        assert!(
            ran.code == 0 && ran.out.ends_with(text) && ran.out.contains("  records      20\n"),
            "{ran:?}"
        );
        let ran = dir.run_on(&std::fs::read(file).unwrap(), &["info", "--json", "-"]);
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&json["payloads"], &json["fields_records"]), (&"event".into(), &16.into()), "{ran:?}");
        assert_eq!(json["records"], 20);
        let want = serde_json::json!({
            "number": 2, "name": "step", "wire_types": ["varint"], "types": ["varint"], "records": 15, "values": [1, 1],
        });
        assert_eq!((json["fields"].as_array().unwrap().len(), &json["fields"][1]), (4, &want));
    }
    dir.shard("texts", ["one", "two"]);
    dir.shard("more", [b"\x08\x05\x08\x06".as_slice(), b"\x08\x05", b""]);
    let ran = dir.run(&["info", "more"]);
    assert!(ran.out.contains(
        "protobuf messages of an unknown type\n  first 3 records\n    1  varint  in 2 of 3, 1..2 values\n"
    ));
    let ran = dir.run(&["info", "texts"]);
    assert!(ran.out.ends_with("  kind         other\n  payloads     text\n"), "{ran:?}");
    let ran = dir.run(&["info", "texts", "more"]);
    assert!(ran.out.contains("other: text ") && ran.out.contains("other: message "), "{ran:?}");
    // A damaged payload among the first records: those before it count.
    let mut bytes = std::fs::read(dir.path("events")).unwrap();
    let at = bytes.len() * 9 / 20;
    bytes[at] ^= 1;
    std::fs::write(dir.path("damaged"), &bytes).unwrap();
    let ran = dir.run_on(&bytes, &["info", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(ran.code == 1 && json["payloads"] == "event", "{ran:?}");
    assert_eq!(json["fields_records"], json["records"], "{ran:?}");
}

/// A file from elsewhere may have a name that clears the screen, hides what follows, or looks like another
/// line.
#[test]
#[cfg(unix)]
fn names_of_files_control_no_terminal() {
    let dir = Folder::new();
    let name = "a\u{1b}[2J\u{7}\n\u{202e}x.tfrecord";
    let mut damaged = std::fs::read(dir.shard(name, labels(0..3))).unwrap();
    dir.shard("b.tfrecord", labels(0..3));
    let raw = ['\u{1b}', '\u{7}', '\u{202e}'];
    let check = |args: &[&str], code: i32| {
        let ran = dir.run(args);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        let all = ran.out + &ran.err;
        assert!(
            !all.contains(raw) && all.contains(r"a\u{1b}[2J\u{7}\n\u{202e}x.tfrecord"),
            "{args:?}: {all:?}"
        );
    };
    check(&["head", "--color", "never", name, "b.tfrecord"], 0);
    check(&["info", "--color", "never", name], 0);
    // A name with `[` that does not exist is a pattern.
    check(&["head", &format!("{name}s")], 2);
    let json = dir.run(&["info", "--json", name]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert!(json.to_string().contains(r"a\u001b[2J\u0007\n"), "{json}");
    damaged.truncate(70);
    std::fs::write(dir.path(name), damaged).unwrap();
    check(&["cat", name], 1);
    check(&["verify", name], 1);
    check(&["get", name, "0", "--index-dir", "i"], 1);
    assert_eq!(dir.run(&["grep", "-l", "label == 0", name]).out, format!("{name}\n"), "a list for scripts");
}
