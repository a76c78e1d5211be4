//! Shorter ways to name records, and messages about damage.

use crate::common::*;
use std::fs;
use std::io::Read;
use std::process::Stdio;

/// Returns the labels of the records that the command printed as JSON.
#[track_caller]
fn found(ran: &Ran) -> Vec<i64> {
    let label = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["features"]["label"][0].as_i64().unwrap()
    };
    ran.out.lines().map(label).collect()
}

#[test]
fn get_takes_slices_lists_and_negative_numbers() {
    let dir = Folder::new();
    dir.shard("x-0.tfrecord", labels(0..5));
    dir.shard("x-1.tfrecord", labels(5..10));
    let get = |words: &[&str]| {
        let ran = dir.run(&[&["get", "-f", "json", "x-*"], words].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{words:?}");
        found(&ran)
    };
    assert_eq!(get(&["0:5"]), [0, 1, 2, 3, 4]);
    assert_eq!(get(&["3,7"]), [3, 7]);
    assert_eq!(get(&["-3:"]), [7, 8, 9]);
    assert_eq!(get(&["-3..", ":-8", "-9:3"]), [7, 8, 9, 0, 1, 1, 2]);
    assert_eq!(get(&["-1,0,-1,2:4", "3", "3"]), [9, 0, 9, 2, 3, 3, 3]);
    assert_eq!(get(&[":"]), (0..10).collect::<Vec<_>>());
    assert_eq!(get(&["8..", "..2"]), [8, 9, 0, 1]);
    // Options may follow the numbers, and `--` may precede them.
    let ran = dir.run(&["get", "x-0.tfrecord", "-2:", "-f", "json"]);
    assert_eq!(found(&ran), [3, 4]);
    let ran = dir.run(&["get", "-f", "json", "--", "x-0.tfrecord", "-2:"]);
    assert_eq!(found(&ran), [3, 4]);
}

#[test]
fn get_names_the_word_at_fault() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..10));
    let get = |words: &[&str]| dir.run(&[&["get", "a.tfrecord"], words].concat());
    for (words, word) in [
        (&["3,x"][..], "`3,x`"),
        (&["1", "2:y", "3"], "`2:y`"),
        (&["1", "two"], "`two`"),
        (&["5-7"], "`5-7`"),
        (&["-1x"], "`-1x`"),
        (&["1:2:3"], "`1:2:3`"),
        (&["3,,4"], "`3,,4`"),
        (&["99999999999999999999"], "`99999999999999999999`"),
    ] {
        get(words).fails(2, &["expected record numbers", word]);
    }
    get(&["0", "3,10"]).fails(2, &["`3,10`: ", "no record 10"]);
    get(&["10"]).fails(2, &["tfseek: no record 10"]);
    // A file may have such a name.
    fs::copy(dir.path("a.tfrecord"), dir.path("5-7")).unwrap();
    assert_eq!(get(&["5-7", "19"]).code, 0);
}

#[test]
fn ranges_end_where_the_records_do() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..10));
    let get = |word: &str| dir.run(&["get", "-f", "json", "a.tfrecord", word]);
    let cut = |ran: &Ran| (ran.code, ran.out.lines().count(), ran.err.clone());
    assert_eq!(cut(&get("8:100")), (0, 2, String::new()));
    assert_eq!(cut(&get("-11:")), (0, 10, String::new()));
    for (word, range) in [("5:2", "5:2"), ("1..2,20..30", "20:30"), ("10:", "10:")] {
        let ran = get(word);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!(ran.err, format!("tfseek: `{word}`: the range {range} of 10 records is empty\n"));
    }
    assert_eq!(dir.run(&["get", "-q", "a.tfrecord", "5:2"]).err, "");
    get("3,100").fails(2, &["no record 100"]);
}

#[test]
fn head_and_tail_count_as_in_coreutils() {
    let dir = Folder::new();
    for (name, start) in [("a.tfrecord", 0), ("b.tfrecord.gz", 10)] {
        dir.shard(name, labels(start..start + 5));
    }
    let on = |files: &[&str], args: &[&str]| {
        let ran = dir.run(&[args, &["-f", "json"], files].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        found(&ran)
    };
    let both = |args: &[&str]| on(&["a.tfrecord", "b.tfrecord.gz"], args);
    let check = || {
        assert_eq!(both(&["head", "-2"]), [0, 1, 10, 11]);
        assert_eq!(both(&["tail", "-2"]), [3, 4, 13, 14]);
        assert_eq!(both(&["head", "-n", "+2"]), [0, 1, 10, 11]);
        assert_eq!(both(&["tail", "-n", "-2"]), [3, 4, 13, 14]);
        assert_eq!(both(&["head", "-n", "-3"]), [0, 1, 10, 11]);
        assert_eq!(both(&["head", "-n-3"]), [0, 1, 10, 11]);
        assert_eq!(both(&["head", "-n", "-3", "--skip", "1"]), [1, 11]);
        assert_eq!(both(&["head", "-n", "-0"]), [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]);
        assert_eq!(both(&["tail", "-n", "+4"]), [3, 4, 13, 14]);
        for all in ["+0", "+1", "9"] {
            assert_eq!(on(&["a.tfrecord"], &["tail", "-n", all]), [0, 1, 2, 3, 4], "{all}");
        }
        for none in [["head", "-n", "-5"], ["head", "-n", "-9"], ["head", "-n", "0"]] {
            assert_eq!(both(&none), [0i64; 0], "{none:?}");
        }
        for none in ["+6", "+99", "-0"] {
            assert_eq!(both(&["tail", "-n", none]), [0i64; 0], "{none}");
        }
    };
    check();
    // With an index only the end of the file is read.
    assert_eq!(dir.run(&["index", "-q", "a.tfrecord"]).code, 0);
    check();
    assert_eq!(found(&dir.run(&["head", "a.tfrecord", "-1", "-f", "json"])), [0]);
    let bytes = fs::read(dir.path("a.tfrecord")).unwrap();
    assert_eq!(found(&dir.run_on(&bytes, &["head", "-n", "-4", "-f", "json", "-"])), [0]);
    assert_eq!(found(&dir.run_on(&bytes, &["tail", "-n", "+5", "-f", "json", "-"])), [4]);
    // The number over all files is that of `head`.
    let second = dir.run(&["tail", "-n", "+5", "-f", "json", "b.tfrecord.gz", "a.tfrecord"]);
    assert!(second.out.contains("{\"file\":\"a.tfrecord\",\"index\":9,\"record\":4,"), "{}", second.out);
    // A count that is no number, and two counts.
    for word in ["x", "--1", "+-1", "1.5", ""] {
        dir.run(&["head", "-n", word, "a.tfrecord"]).fails(2, &["expected a number of records, found"]);
        dir.run(&["tail", "-n", word, "a.tfrecord"]).fails(2, &["expected a number of records, found"]);
    }
    dir.run(&["head", "-2", "-n", "3", "a.tfrecord"]).fails(2, &["cannot be used multiple times"]);
    // Headings and numbers are those of the verb without the count.
    let ran = dir.run(&["head", "-n", "-4", "a.tfrecord", "b.tfrecord.gz"]);
    ran.prints(
        "==> a.tfrecord <==\nrecord 0, 18 bytes\n  label  int64  0\n
==> b.tfrecord.gz <==\nrecord 5, 18 bytes, record 0 of b.tfrecord.gz\n  label  int64  10\n",
    );
}

#[test]
fn features_are_selected_by_name() {
    let dir = Folder::new();
    let example = |i: i64| {
        let example = tfseek::ExampleBuilder::new().int64("label", [i]).bytes("image/encoded", ["x"]);
        example.int64("image/height", [2]).bytes("word", ["goat"]).encode().unwrap()
    };
    dir.shard("a.tfrecord", (0..3).map(example));
    dir.shard("s.tfrecord", [sequence()]);
    dir.run(&["head", "-1", "a.tfrecord", "--features", "label,image/*"])
        .prints("record 0, 83 bytes\n  image/encoded  bytes  \"x\"\n  image/height   int64  2\n  label          int64  0\n");
    let want = "{\"index\":2,\"record\":2,\"features\":{\"label\":[2],\"word\":[\"goat\"]}}\n";
    let both = ["-f", "json", "--features", "l????", "--features", "word", "a.tfrecord"];
    for verb in [&["tail", "-n", "1"][..], &["cat", "--skip", "2"], &["head", "--skip", "2"]] {
        dir.run(&[verb, &both].concat()).prints(want);
    }
    dir.run(&[&["get"], &both[..], &["2"]].concat()).prints(want);
    assert_eq!(
        dir.run(&[&["sample"], &both[..]].concat())
            .out
            .lines()
            .filter(|line| want == format!("{line}\n"))
            .count(),
        1
    );
    dir.run(&["head", "-1", "-f", "proto-json", "--features", "label", "a.tfrecord"]).prints(
        "{\n  \"features\": {\n    \"feature\": {\n      \"label\": {\n        \"int64List\": {\n          \"value\": [\n            \
         \"0\"\n          ]\n        }\n      }\n    }\n  }\n}\n",
    );
    // Context and feature lists of a SequenceExample.
    dir.run(&["head", "-f", "json", "--features", "id,f*", "s.tfrecord"])
        .prints("{\"index\":0,\"record\":0,\"context\":{\"id\":[5]},\"feature_lists\":{\"frames\":[[0.5,2.0],[1.5,3.0]]}}\n");
    dir.run(&["head", "--features", "frames", "s.tfrecord"]).prints(
        "record 0, 90 bytes\n  feature lists\n    frames  2 steps of float[2]  [0.5 2.0] [1.5 3.0]\n",
    );
    // A name that no printed record has is reported once; a pattern may match nothing.
    let ran = dir.run(&["cat", "-f", "json", "--features", "labels,x*,label", "a.tfrecord", "s.tfrecord"]);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 4));
    assert_eq!(
        ran.err,
        "tfseek: --features: no printed record has the feature labels; the nearest name is label\n"
    );
    for verb in ["head", "tail", "cat", "sample", "get"] {
        let numbers: &[&str] = if verb == "get" { &["0"] } else { &[] };
        let ran = dir.run(&[&[verb, "--features", "labels", "a.tfrecord"], numbers].concat());
        assert!(ran.err.contains("the feature labels; the nearest name is label\n"), "{ran:?}");
        // The formats of whole payloads have no features.
        for format in ["raw", "tfrecord"] {
            let ran =
                dir.run(&[&[verb, "-f", format, "--features", "label", "a.tfrecord"], numbers].concat());
            ran.fails(2, &["--features: expected the format human, json or proto-json, found", format]);
        }
    }
    // Payloads of another type have no features.
    dir.shard("text.tfrecord", ["secret"]);
    dir.run(&["head", "-f", "json", "--features", "*", "text.tfrecord"])
        .prints("{\"index\":0,\"record\":0,\"features\":{}}\n");
    dir.run(&["head", "-f", "proto-json", "--features", "*", "text.tfrecord"]).prints("{}\n");
    dir.run(&["head", "--features", "*", "text.tfrecord"]).prints("record 0, 6 bytes\n");
}

/// A shard of ten records with labels from `start`, and damaged payloads of these records.
fn damaged(dir: &Folder, name: &str, start: i64, records: &[usize]) {
    let path = dir.shard(name, labels(start..start + 10));
    records.iter().for_each(|record| damage(&path, 34 * record + 20));
}

#[test]
fn cat_leaves_damage_out() {
    let dir = Folder::new();
    damaged(&dir, "a.tfrecord", 0, &[0, 1, 4, 9]);
    damaged(&dir, "b.tfrecord", 10, &[]);
    damaged(&dir, "c.tfrecord", 20, &[3]);
    let cat = |args: &[&str]| dir.run(&[&["cat", "--damage", "skip", "-f", "json"], args].concat());
    let ran = cat(&["a.tfrecord", "b.tfrecord", "c.tfrecord"]);
    let sound: Vec<_> = (0..30).filter(|i| ![0, 1, 4, 9, 23].contains(i)).collect();
    assert_eq!((ran.code, found(&ran)), (1, sound));
    let lines: Vec<_> = ran.err.lines().collect();
    let first = "tfseek: a.tfrecord: 3 damaged ranges are left out, 136 bytes; the first one begins at byte 0, after 0 records";
    assert_eq!((lines.len(), lines[0]), (2, first));
    // Sound records are counted, as `get --damage skip` counts them.
    assert!(ran.out.contains("{\"file\":\"a.tfrecord\",\"index\":2,\"record\":2,"), "{}", ran.out);
    assert!(ran.out.contains("{\"file\":\"c.tfrecord\",\"index\":19,\"record\":3,"), "{}", ran.out);
    let by_number =
        dir.run(&["get", "--damage", "skip", "-f", "json", "a.tfrecord", "b.tfrecord", "c.tfrecord", "0:25"]);
    assert_eq!((by_number.code, by_number.out), (1, ran.out));
    // The end says what was left out, also if the run is quiet.
    let ran = cat(&["c.tfrecord", "-q"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 9));
    assert!(
        ran.err.starts_with("tfseek: c.tfrecord: 1 damaged range is left out, 34 bytes; "),
        "{}",
        ran.err
    );
    let ran = cat(&["c.tfrecord", "--skip", "4"]);
    assert_eq!((ran.code, found(&ran)), (1, (25..30).collect()));
    let ran = cat(&["b.tfrecord"]);
    assert_eq!((ran.code, ran.out.lines().count(), ran.err.as_str()), (0, 10, ""));
    // Damage that `head` does not come to is not left out.
    let words = ["head", "--damage", "skip", "--kind", "example", "-f", "json", "c.tfrecord", "-n"];
    let head = |n| dir.run(&[&words[..], &[n]].concat());
    assert_eq!((head("3").code, head("3").err.as_str()), (0, ""));
    let ran = head("4");
    assert_eq!((ran.code, found(&ran)), (1, vec![20, 21, 22, 24]));
    assert!(ran.err.contains("1 damaged range is left out, 34 bytes"), "{}", ran.err);
    // A torn tail is damage too, and is tolerated on request.
    let path = dir.path("c.tfrecord");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    let ran = cat(&["c.tfrecord"]);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 8));
    assert!(ran.err.contains("2 damaged ranges are left out, 63 bytes"), "{}", ran.err);
    // A record whose payload does not decode.
    dir.shard("d.tfrecord", [label(0), b"\x0a\x05\x0a\x03".to_vec(), label(2)]);
    let ran = cat(&["--kind", "example", "d.tfrecord"]);
    assert_eq!((ran.code, found(&ran)), (1, vec![0, 2]));
    let words = "tfseek: 1 record was left out: d.tfrecord: record 1 at byte 34: ";
    assert!(ran.err.starts_with(words), "{}", ran.err);
    // A length that equals the first bytes of a gzip file.
    let path = dir.shard("e.tfrecord", [vec![1; 3], vec![2; 0x0008_8b1f], vec![3; 3]]);
    damage(&path, 13);
    let ran = dir.run(&["cat", "--damage", "skip", "-f", "raw", "e.tfrecord"]);
    assert_eq!((ran.code, ran.out.len()), (1, 0x0008_8b1f + 3), "{}", ran.err);
}

#[test]
fn a_damaged_length_costs_one_record() {
    let dir = Folder::new();
    damage(&dir.shard("a.tfrecord", labels(0..10)), 34 * 5);
    dir.shard("b.tfrecord", labels(10..20));
    let ran = dir.run(&["cat", "--damage", "skip", "-f", "json", "a.tfrecord", "b.tfrecord"]);
    assert_eq!((ran.code, found(&ran)), (1, (0..20).filter(|i| *i != 5).collect()));
    let words =
        "tfseek: a.tfrecord: 1 damaged range is left out, 34 bytes; it begins at byte 170, after 5 records\n";
    assert_eq!(ran.err, words);
}

#[test]
fn damage_of_pipes_is_left_out() {
    let dir = Folder::new();
    damaged(&dir, "c.tfrecord", 0, &[3]);
    let mut bytes = fs::read(dir.path("c.tfrecord")).unwrap();
    bytes[34 * 7] ^= 1;
    let ran = dir.run_on(&bytes, &["cat", "--damage", "skip", "-f", "json", "-"]);
    assert_eq!((ran.code, found(&ran)), (1, [0, 1, 2, 4, 5, 6, 8, 9].into()));
    assert!(ran.err.starts_with("tfseek: <stdin>: 2 damaged ranges are left out, 68 bytes; "), "{}", ran.err);
}

/// The command waits for its output to be read while its input is replaced by another file.
#[test]
fn reading_goes_on_in_the_open_file_after_damage() {
    let dir = Folder::new();
    let n = 20_000;
    let path = dir.shard("a.tfrecord", labels(100_000..100_000 + n as i64));
    let record = fs::metadata(&path).unwrap().len() as usize / n;
    damage(&path, record * (n / 2) + 20);
    let old = fs::read(&path).unwrap();
    dir.shard("new.tfrecord", labels(200_000..200_000 + n as i64));
    for args in [&["cat", "-f", "json"][..], &["grep", "label >= 0", "-f", "json"]] {
        fs::write(&path, &old).unwrap();
        let mut command = dir.command(&[args, &["--damage", "skip", "a.tfrecord"]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut text = vec![0];
        out.read_exact(&mut text).unwrap();
        fs::copy(dir.path("new.tfrecord"), dir.path("next")).unwrap();
        fs::rename(dir.path("next"), &path).unwrap();
        out.read_to_end(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        let text = String::from_utf8(text).unwrap();
        let is_old = |line: &str| line.contains("\"label\":[1") && !line.contains("\"label\":[2");
        assert_eq!((text.lines().count(), text.lines().all(is_old)), (n - 1, true), "{args:?}");
    }
}

#[test]
fn damage_is_explained() {
    let dir = Folder::new();
    damaged(&dir, "a.tfrecord", 0, &[4]);
    let skip = "`--damage skip` leaves it out, `tfseek salvage` copies the sound records)\n";
    let after = format!("(the record is damaged; the 4 records before it are sound; {skip}");
    for verb in [&["head"][..], &["cat"], &["tail"], &["head", "-n", "-1"], &["tail", "-n", "+2"]] {
        let ran = dir.run(&[verb, &["a.tfrecord"]].concat());
        assert!(ran.code == 1 && ran.err.ends_with(&after), "{verb:?}: {}", ran.err);
    }
    let by_number =
        format!("(the record is damaged; the framing of the 4 records before it is sound; {skip}");
    for verb in [&["get", "a.tfrecord", "4"][..], &["sample", "a.tfrecord"], &["tail", "a.tfrecord"]] {
        assert_eq!(dir.run(&["index", "-q", "a.tfrecord"]).code, 0);
        let ran = dir.run(verb);
        assert!(ran.code == 1 && ran.err.ends_with(&by_number), "{verb:?}: {}", ran.err);
    }
    damaged(&dir, "b.tfrecord", 0, &[1]);
    let ran = dir.run(&["cat", "b.tfrecord"]);
    assert!(ran.err.contains("; the 1 record before it is sound; "), "{}", ran.err);
    damaged(&dir, "c.tfrecord", 0, &[0]);
    let ran = dir.run(&["cat", "c.tfrecord"]);
    assert!(
        ran.err.ends_with(&format!("(the record is damaged; it is the first record; {skip}")),
        "{}",
        ran.err
    );
    // A torn tail, a damaged length, and a damaged compressed file.
    let path = dir.shard("d.tfrecord", labels(0..10));
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let ran = dir.run(&["head", "-n", "20", "d.tfrecord"]);
    let torn = "(the record is damaged: the file ends inside it; the 9 records before it are sound; \
                `--tail tolerate` reads the part before it)\n";
    assert!(ran.err.ends_with(torn), "{}", ran.err);
    assert_eq!(dir.run(&["head", "-n", "9", "d.tfrecord"]).code, 0);
    damage(&dir.shard("e.tfrecord", labels(0..10)), 34 * 5);
    let ran = dir.run(&["get", "e.tfrecord", "0"]);
    assert!(
        ran.err.contains(
            "(the record is damaged; the framing of the 5 records before it is sound; `--damage skip`"
        ),
        "{}",
        ran.err
    );
    let path = dir.shard("f.tfrecord.gz", labels(0..10));
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 12]).unwrap();
    let ran = dir.run(&["cat", "f.tfrecord.gz"]);
    assert!(ran.code == 1 && ran.err.contains("(the record is damaged"), "{}", ran.err);
}

#[test]
fn one_thing_has_no_plural() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..1));
    dir.shard("z.tfrecord.gz", labels(0..1));
    let words = |args: &[&str], words: &str| {
        let ran = dir.run(args);
        assert!(ran.code == 0 && (ran.out.clone() + &ran.err).contains(words), "{ran:?}");
    };
    words(&["index", "a.tfrecord"], "1 shard, 1 record, ");
    words(&["index", "a.tfrecord", "--column", "label"], "values in 1 of 1 record\n");
    words(&["verify", "a.tfrecord"], "1 of 1 file sound: 1 record, ");
    words(&["unpack", "z.tfrecord.gz"], "z.tfrecord: 1 record, ");
    words(&["schema", "a.tfrecord"], "1 record seen");
    words(&["order", "a.tfrecord", "-b", "1", "--describe"], "1 step of 1 sample\n");
    let bad = b"\x0a\x05\x0a\x03".to_vec();
    for (n, words) in [(2, "1 more record does not decode"), (3, "2 more records do not decode")] {
        dir.shard("bad.tfrecord", vec![bad.clone(); n]);
        let ran = dir.run(&["verify", "--decode", "--kind", "example", "bad.tfrecord"]);
        assert!(ran.err.contains(words), "{}", ran.err);
    }
}

#[test]
fn a_quiet_demo_prints_nothing() {
    let dir = Folder::new();
    dir.run(&["demo", "-q"]).prints("");
    dir.run(&["demo", "--quiet", "--out", "data"]).prints("");
    let info = dir.run(&["info", "data"]).out;
    assert!(info.contains("10,000") && info.matches("fresh").count() == 4, "{info}");
}

#[test]
fn index_reports_built_and_fresh_indexes() {
    let dir = Folder::new();
    for s in 0..3 {
        dir.shard(&format!("x-{s}.tfrecord"), labels(0..10));
    }
    let index = |args: &[&str]| dir.run(&[&["index"], args].concat());
    assert!(index(&["x-0.tfrecord"]).err.ends_with("; 1 index built, 0 fresh\n"));
    assert!(index(&["x-*"]).err.ends_with("; 2 indexes built, 1 fresh\n"));
    assert!(index(&["x-*"]).err.ends_with("; 0 indexes built, 3 fresh\n"));
    assert!(index(&["x-*", "--rebuild"]).err.ends_with("; 3 indexes built, 0 fresh\n"));
    assert!(index(&["x-*", "--pack", "all"]).err.contains("; 0 indexes built, 3 fresh -> "));
    assert!(index(&["x-*", "--index-dir", "other"]).err.contains(" fresh\n"));
    // A changed shard, and a damaged one.
    dir.shard("x-1.tfrecord", labels(0..20));
    damage(&dir.shard("x-2.tfrecord", labels(0..20)), 34 * 5);
    let ran = index(&["x-*"]);
    assert!(ran.code == 1 && ran.err.starts_with("tfseek: x-2.tfrecord: record 5"), "{ran:?}");
    assert!(
        ran.err.contains("2 of 3 shards, 30 records, ") && ran.err.ends_with("; 1 index built, 1 fresh\n"),
        "{ran:?}"
    );
}

#[test]
fn a_folder_that_cannot_be_written_names_the_option() {
    let dir = Folder::new();
    fs::create_dir(dir.path("data")).unwrap();
    dir.shard("data/a.tfrecord", labels(0..10));
    // A file in place of the folder of indexes, which fails for every user.
    fs::write(dir.path("data/.tfseek"), b"").unwrap();
    let hint = "(`--index-dir DIR` writes index files to another folder)";
    dir.run(&["index", "-q", "data"]).fails(3, &["data/.tfseek/a.tfrecord.tfri: ", hint]);
    dir.run(&["index", "--pack", "all", "data"])
        .fails(3, &["all.tfrp: ", "`--index-dir DIR` instead of `--pack`"]);
    dir.run(&["index", "-q", "data", "--index-dir", "there"]).prints("");
    // The option is no remedy for a shard that cannot be read.
    let ran = dir.run(&["index", "data/missing.tfrecord"]);
    assert!(ran.code == 3 && !ran.err.contains("--index-dir"), "{ran:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::remove_file(dir.path("data/.tfseek")).unwrap();
        let mode = |mode| fs::set_permissions(dir.path("data"), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o555);
        if fs::write(dir.path("data/probe"), b"").is_ok() {
            tfseek_testkit::skipped("a user who is not root");
        } else {
            dir.run(&["index", "-q", "data"]).fails(3, &["data/.tfseek", hint]);
            dir.run(&["index", "--format", "dali", "data"]).fails(3, &["a.tfrecord.idx", hint]);
        }
        mode(0o755);
    }
}
