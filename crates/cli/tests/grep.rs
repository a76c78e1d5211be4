//! Searches: `grep`, and `--where` of the verbs that print records.

use crate::common::*;
use std::fs;
use tfseek::{ExampleBuilder, FeatureBuf, SequenceExampleBuilder};

fn record(i: i64) -> Vec<u8> {
    ExampleBuilder::new()
        .int64("id", [i])
        .int64("objects", 0..i % 4)
        .bytes("caption", [format!("{i} dogs"), "a cat".into()])
        .encode()
        .unwrap()
}

fn records(range: std::ops::Range<i64>) -> Vec<Vec<u8>> {
    range.map(record).collect()
}

/// Returns a folder with three shards of ten records: plain, gzip, plain.
fn shards() -> Folder {
    let dir = Folder::new();
    dir.shard("a-0.tfrecord", records(0..10));
    dir.shard("a-1.tfrecord.gz", records(10..20));
    dir.shard("a-2.tfrecord", records(20..30));
    dir
}

fn lines(numbers: &[i64]) -> String {
    numbers.iter().map(|i| format!("{i}\n")).collect()
}

#[test]
fn matches_are_printed_in_order() {
    let dir = shards();
    for threads in ["1", "2", "8"] {
        let grep = |words: &[&str]| dir.run(&[&["grep", "-j", threads], words].concat());
        let all = &["a-0.tfrecord", "a-1.tfrecord.gz", "a-2.tfrecord"];
        let all = |words: &[&'static str]| grep(&[words, all].concat());
        all(&["len(objects) == 3 and id > 4", "--ids"]).prints(&lines(&[7, 11, 15, 19, 23, 27]));
        all(&["record in 9..12", "--ids"]).prints(&lines(&[9, 10, 11]));
        all(&["any(caption) contains '5 d'", "-c"]).prints("3\n");
        all(&["id > 14", "-v", "-c"]).prints("15\n");
        all(&["id > 14", "-l"]).prints("a-1.tfrecord.gz\na-2.tfrecord\n");
        all(&["len(objects) == 3", "--ids", "-m", "3"]).prints(&lines(&[3, 7, 11]));
        all(&["-F", "7 dog", "--ids"]).prints(&lines(&[7, 17, 27]));
        let none = all(&["-F", "caption", "-c"]);
        assert_eq!((none.code, none.out.as_str()), (1, "0\n"), "keys are not searched: {}", none.err);
        all(&["id == 11", "-f", "json", "--features", "id"])
            .prints("{\"file\":\"a-1.tfrecord.gz\",\"index\":11,\"record\":1,\"features\":{\"id\":[11]}}\n");
        all(&["id in 9..12", "-c", "--json"]).prints(
            "{\"file\":\"a-0.tfrecord\",\"matches\":1,\"records\":10,\"skipped\":0}\n\
             {\"file\":\"a-1.tfrecord.gz\",\"matches\":2,\"records\":10,\"skipped\":0}\n\
             {\"file\":\"a-2.tfrecord\",\"matches\":0,\"records\":10,\"skipped\":0}\n",
        );
        all(&["id == 99"]).fails(1, &[]);
        all(&["id == 9", "-f", "proto-json", "-n"]).fails(2, &["-n"]);
    }
    let words = ["grep", "id in 3, 25", "a-0.tfrecord", "a-2.tfrecord", "-f", "tfrecord"];
    let mut framed = Vec::new();
    [3, 25].iter().for_each(|&i| tfseek::frame::put_record(&mut framed, &record(i)).unwrap());
    assert_eq!(dir.command(&words).output().unwrap().stdout, framed);
    dir.run(&["grep", "id in 3", "a-0.tfrecord"]).prints(&dir.run(&["get", "a-0.tfrecord", "3"]).out);
    dir.run(&["grep", "id == 3", "a-0.tfrecord", "-n", "-f", "tfrecord"]).fails(2, &["-n"]);
    // Standard input.
    let bytes = fs::read(dir.path("a-1.tfrecord.gz")).unwrap();
    dir.run_on(&bytes, &["grep", "record in 2..4", "-", "--ids"]).prints("2\n3\n");
    let piped = |verb: &[&str]| {
        let ran = dir.run_on(&bytes, &[verb, &["-", "-f", "json", "--features", "id"]].concat());
        ran.out.lines().next().unwrap_or_default().to_owned()
    };
    let want = r#"{"index":null,"record":0,"features":{"id":[10]}}"#;
    for verb in [&["grep", "id == 10"][..], &["head"], &["cat"], &["tail"]] {
        assert_eq!(piped(verb), want, "{verb:?}");
    }
}

#[test]
fn many_units_have_the_same_matches_on_any_number_of_threads() {
    let dir = Folder::new();
    let small = |i: i64| ExampleBuilder::new().int64("id", [i]).encode().unwrap();
    dir.shard("x-0.tfrecord", (0..200_000).map(small));
    dir.shard("x-1.tfrecord.gz", (200_000..280_000).map(small));
    let run = |threads: &str, words: &[&str]| {
        let ran = dir.run(
            &[&["grep", "-j", threads, "split(0.001, seed=3)"], words, &["x-0.tfrecord", "x-1.tfrecord.gz"]]
                .concat(),
        );
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        ran.out
    };
    let ids = run("1", &["--ids"]);
    assert!((200..400).contains(&ids.lines().count()), "{}", ids.lines().count());
    for threads in ["2", "3", "8"] {
        assert_eq!(run(threads, &["--ids"]), ids);
        assert_eq!(run(threads, &["-f", "json"]), run("1", &["-f", "json"]));
        assert_eq!(
            run(threads, &["--ids", "-m", "7"]),
            ids.lines().take(7).map(|id| format!("{id}\n")).collect::<String>()
        );
        assert_eq!(run(threads, &["-l"]), "x-0.tfrecord\nx-1.tfrecord.gz\n");
    }
    // A reader that closes its pipe ends the search without a message.
    let ran = std::process::Command::new("sh")
        .arg("-c")
        .arg("\"$0\" grep 'id >= 0' x-0.tfrecord --ids -j 4 | head -n 2")
        .arg(env!("CARGO_BIN_EXE_tfseek"))
        .current_dir(dir.path(""))
        .output()
        .unwrap();
    assert_eq!(
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr)),
        ("0\n1\n".into(), "".into())
    );
}

#[test]
fn texts_are_found_in_values_only() {
    let dir = Folder::new();
    let sequence = SequenceExampleBuilder::new()
        .bytes("name", ["first"])
        .feature_list(
            "words",
            [FeatureBuf::Bytes(vec![b"alpha".to_vec()]), FeatureBuf::Bytes(vec![b"beta".to_vec()])],
        )
        .encode()
        .unwrap();
    dir.shard("s.tfrecord", [sequence]);
    dir.shard("t.tfrecord", ["plain text", "another line"]);
    dir.run(&["grep", "-F", "eta", "s.tfrecord", "-c"]).prints("1\n");
    dir.run(&["grep", "-F", "irs", "s.tfrecord", "-c"]).prints("1\n");
    dir.run(&["grep", "-F", "words", "s.tfrecord"]).fails(1, &[]);
    dir.run(&["grep", "-F", "line", "t.tfrecord", "-n", "-f", "raw"]).prints("1:another line\n");
    dir.run(&["grep", "split(1)", "t.tfrecord", "-c"]).prints("2\n");
    dir.run(&["grep", "name == 'x'", "t.tfrecord"])
        .fails(2, &["t.tfrecord: record 0", "expected an Example, found another message"]);
}

#[test]
fn errors_show_their_place() {
    let dir = shards();
    let err = "tfseek: invalid filter: at byte 3: expected `==`, found `=`\n  id = 3\n     ^\n";
    dir.run(&["grep", "id = 3", "a-0.tfrecord"]).fails(2, &[err]);
    dir.run(&["head", "--where", "id = 3", "a-0.tfrecord"]).fails(2, &["--where", "  id = 3\n     ^\n"]);
    for verb in ["grep", "head"] {
        let (words, expr) = if verb == "grep" {
            (vec![verb], "caption == 'x'")
        } else {
            (vec![verb, "--where"], "caption == 'x'")
        };
        let ran = dir.run(&[&words[..], &[expr, "a-0.tfrecord"]].concat());
        ran.fails(
            2,
            &["a-0.tfrecord: record 0 at byte 0", "2 values: expected one", "  caption == 'x'\n  ^\n"],
        );
    }
    let ran = dir.run(&["grep", "idd > 1 or id == 3", "a-0.tfrecord", "--ids"]);
    ran.fails(2, &["\"idd\"", "\"id\""]);
    let ran = dir.run(&["grep", "weather > 1 or id == 3", "a-0.tfrecord", "--ids"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "3\n"));
    assert!(ran.err.contains("no record that was read has a feature \"weather\""), "{}", ran.err);
}

#[test]
fn damage_ends_a_file_or_is_skipped() {
    let dir = shards();
    let mut bytes = fs::read(dir.path("a-0.tfrecord")).unwrap();
    let at = bytes.windows(6).position(|window| window == b"5 dogs").unwrap();
    bytes[at] ^= 1;
    fs::write(dir.path("a-0.tfrecord"), bytes).unwrap();
    for threads in ["1", "4"] {
        let ran = dir.run(&["grep", "id in 2, 8, 22", "--ids", "-j", threads, "a-0.tfrecord"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, "2\n"), "{}", ran.err);
        assert!(
            ran.err.contains("a-0.tfrecord: record 5") && ran.err.contains("`--damage skip` leaves it out"),
            "{}",
            ran.err
        );
        let ran = dir.run(&[
            "grep",
            "id in 2, 8, 22",
            "--ids",
            "--damage",
            "skip",
            "-j",
            threads,
            "a-0.tfrecord",
            "a-2.tfrecord",
        ]);
        assert_eq!((ran.code, ran.out.as_str()), (1, "2\n7\n11\n"), "{}", ran.err);
        assert!(ran.err.contains("1 damaged range is left out"), "{}", ran.err);
    }
}

#[test]
fn verbs_print_the_records_of_a_condition() {
    let dir = shards();
    let ids = |out: &str| -> Vec<i64> {
        out.lines()
            .filter_map(|line| line.trim().strip_prefix("id"))
            .filter_map(|rest| rest.split_whitespace().last()?.parse().ok())
            .collect()
    };
    let run = |words: &[&str]| {
        let ran = dir.run(words);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{words:?}");
        ids(&ran.out)
    };
    let (plain, gzip) = ("a-0.tfrecord", "a-1.tfrecord.gz");
    assert_eq!(run(&["head", "-n", "2", "--where", "len(objects) > 1", plain]), [2, 3]);
    assert_eq!(run(&["head", "-n", "2", "--skip", "1", "--where", "len(objects) > 1", plain]), [3, 6]);
    assert_eq!(run(&["head", "-n", "-1", "--where", "len(objects) > 1", plain]), [2, 3, 6]);
    assert_eq!(run(&["head", "-n", "1", "--where", "id > 5", plain, gzip]), [6, 10]);
    assert_eq!(run(&["cat", "--where", "record in 8..12", plain, gzip]), [8, 9, 10, 11]);
    assert_eq!(run(&["tail", "-n", "2", "--where", "id < 16", gzip]), [14, 15]);
    assert_eq!(run(&["tail", "-n", "+3", "--where", "id < 7", plain]), [2, 3, 4, 5, 6]);
    dir.run(&["index", plain]);
    assert_eq!(run(&["tail", "-n", "2", "--where", "id < 6", plain]), [4, 5]);
    assert_eq!(run(&["get", plain, "1:8", "--where", "len(objects) == 1"]), [1, 5]);
    let drawn = run(&["sample", "-n", "3", "--where", "len(objects) == 1", plain]);
    assert!(drawn.len() == 3 && drawn.iter().all(|i| i % 4 == 1), "{drawn:?}");
    let drawn = run(&["sample", "-n", "2", "--where", "len(objects) == 1", gzip]);
    assert!(drawn.len() == 2 && drawn.iter().all(|i| i % 4 == 1), "{drawn:?}");
    assert_eq!(dir.run(&["digest", "--where", "id < 3", plain]).out.lines().count(), 3);
    let bytes = fs::read(dir.path(gzip)).unwrap();
    assert_eq!(ids(&dir.run_on(&bytes, &["head", "--where", "record in 2..4", "-"]).out), [12, 13]);
    // The first file is not read to its end, and has no index.
    dir.shard("b.tfrecord", records(0..40));
    let ran = dir.run(&["head", "-n", "1", "--where", "record < 100", "b.tfrecord", plain]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("the condition tests record numbers"), "{}", ran.err);
    dir.run(&["tail", "--follow", "--where", "id < 3", plain]).fails(2, &["--follow"]);
    let ran = dir.run(&["cat", "--where", "present(nothing)", plain]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(ran.err.contains("no record that was read has a feature \"nothing\""), "{}", ran.err);
}

/// Shards that are searched at the same time do not end each other's search.
#[test]
fn each_shard_with_a_match_is_listed() {
    let dir = Folder::new();
    let name = |i: i64| format!("s-{i:02}.tfrecord");
    for i in 0..40 {
        // In the later shards the match comes first.
        let n = if i % 2 == 0 { 3000 } else { 1 };
        dir.shard(&name(i), (0..n).map(|_| 0).chain([7]).map(record));
    }
    let all: String = (0..40).map(|i| name(i) + "\n").collect();
    for _ in 0..10 {
        dir.run(&["grep", "-j", "8", "-l", "id == 7", "s-*.tfrecord"]).prints(&all);
    }
}
