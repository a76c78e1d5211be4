//! `salvage`, and the damaged ranges of `verify`.

use crate::common::*;
use std::fs;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn sound_records_are_copied() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..10));
    dir.run(&["salvage", "a.tfrecord", "b.tfrecord"]).prints("b.tfrecord: 10 records, 340 bytes\n");
    assert_eq!(fs::read(&path).unwrap(), fs::read(dir.path("b.tfrecord")).unwrap());
    damage(&path, 34 * 3 + 20);
    damage(&path, 34 * 6);
    let before = fs::read(&path).unwrap();
    dir.run(&["salvage", "a.tfrecord", "b.tfrecord"]).fails(2, &["b.tfrecord: already exists", "--force"]);
    let ran = dir.run(&["salvage", "--force", "a.tfrecord", "b.tfrecord", "--rest", "rest"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.out,
        "a.tfrecord: damaged: bytes 102..136 (34 bytes): payload crc32c; record 4 follows\n\
         a.tfrecord: damaged: bytes 204..238 (34 bytes): length crc32c\n\
         b.tfrecord: 8 records, 272 bytes\n"
    );
    assert_eq!(ran.err, "tfseek: a.tfrecord: 2 damaged ranges, 68 bytes left out\n");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read(dir.path("rest")).unwrap(), [&before[102..136], &before[204..238]].concat());
    let ran = dir.run(&["cat", "-f", "json", "b.tfrecord"]);
    let found: Vec<_> =
        ran.out.lines().map(|line| json(line)["features"]["label"][0].as_i64().unwrap()).collect();
    assert_eq!(found, [0, 1, 2, 4, 5, 7, 8, 9]);

    let ran = dir.run(&["salvage", "--json", "a.tfrecord", "c.tfrecord"]);
    let report = json(&ran.out);
    assert_eq!((ran.code, &report["records"], &report["gap_bytes"]), (1, &8.into(), &68.into()));
    let first =
        r#"{"bytes":34,"file_bytes":null,"next_record":4,"offset":102,"reason":"payload crc32c","record":3}"#;
    assert_eq!(report["gaps"][0], json(first));
    assert_eq!(report["gaps"][1]["next_record"], serde_json::Value::Null);
    let sound = json(&dir.run(&["salvage", "--json", "b.tfrecord", "d.tfrecord"]).out);
    assert_eq!((&sound["records"], &sound["gaps"]), (&8.into(), &json("[]")));
}

#[test]
fn a_compressed_file_goes_on_at_the_next_member() {
    let dir = Folder::new();
    let first = fs::read(dir.shard("a.gz", labels(0..50))).unwrap();
    let second = fs::read(dir.shard("b.gz", labels(50..80))).unwrap();
    let mut joined = [first.clone(), second].concat();
    joined[15] ^= 0xff;
    fs::write(dir.path("c.gz"), joined).unwrap();
    let ran = dir.run(&["salvage", "--json", "c.gz", "out"]);
    let report = json(&ran.out);
    assert_eq!((ran.code, &report["gaps"][0]["reason"]), (1, &"inflate".into()), "{ran:?}");
    assert_eq!(report["gaps"][0]["file_bytes"][1], first.len());
    // The message has both accounts, also if the run is quiet.
    let bytes = |range: &serde_json::Value| range[1].as_u64().unwrap() - range[0].as_u64().unwrap();
    let lost = bytes(&report["gaps"][0]["file_bytes"]);
    let told = format!("left out; {lost} bytes of the file not inflated\n");
    assert!(dir.run(&["-q", "salvage", "c.gz", "out", "--force"]).err.ends_with(&told), "{}", ran.err);
    assert!(report["records"].as_u64().unwrap() >= 30);
    let last = dir.run(&["tail", "-n", "30", "-f", "json", "out"]).out;
    assert!(last.lines().next().unwrap().contains("[50]"), "{last}");
}

#[test]
fn files_that_are_refused() {
    let dir = Folder::new();
    dir.shard("a.tfrecord", labels(0..3));
    dir.run(&["salvage", "none", "out"]).fails(3, &["none"]);
    dir.run(&["salvage", "-", "out"]).fails(2, &["regular file, found standard input"]);
    dir.run(&["salvage", ".", "out"]).fails(2, &["regular file, found a folder"]);
    #[cfg(unix)]
    dir.run(&["salvage", "/dev/null", "out"]).fails(2, &["regular file, found a pipe or a device"]);
    dir.run(&["salvage", "--force", "a.tfrecord", "a.tfrecord"]).fails(2, &["is an input"]);
    dir.run(&["salvage", "a.tfrecord", "x", "--rest", "x"]).fails(2, &["both"]);
    fs::write(dir.path("text"), "{\"a\": 1}\n".repeat(20)).unwrap();
    dir.run(&["salvage", "text", "out"]).fails(4, &["JSON"]);
    fs::write(dir.path("noise"), [7; 200]).unwrap();
    dir.run(&["salvage", "noise", "out"]).fails(1, &["noise: ", "length crc32c"]);
    let ran = dir.run(&["salvage", "--max-record", "5", "a.tfrecord", "out"]);
    ran.fails(1, &["at most 5 bytes"]);
    assert!(!dir.path("out").exists() && !dir.path("x").exists());
}

#[test]
fn verify_lists_the_damaged_ranges() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..10));
    dir.run(&["verify", "a.tfrecord"]).prints("1 of 1 file sound: 10 records, 180 bytes of payload\n");
    damage(&path, 34 * 3 + 20);
    damage(&path, 34 * 6);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let ran = dir.run(&["verify", "a.tfrecord"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("a.tfrecord: record 3 at byte 102: payload crc32c"), "{}", ran.err);
    assert_eq!(
        ran.out,
        "a.tfrecord: damaged: bytes 102..136 (34 bytes): payload crc32c; record 4 follows\n\
         a.tfrecord: damaged: bytes 204..238 (34 bytes): length crc32c\n\
         a.tfrecord: damaged: bytes 306..339 (33 bytes): truncated\n\
         0 of 1 file sound: 7 records, 126 bytes of payload\n"
    );
    let report = json(&dir.run(&["verify", "--json", "a.tfrecord"]).out);
    assert_eq!(report["gaps"].as_array().unwrap().len(), 3);
    assert_eq!(report["gaps"][2]["offset"], 306);
}

/// The output has the order of the files, and the same bytes for any number of threads.
#[test]
fn verify_prints_the_same_for_any_number_of_threads() {
    let dir = Folder::new();
    for s in 0..12 {
        // The first files are the largest, so several threads finish out of order.
        let name = format!("{s:02}.tfrecord{}", if s % 4 == 3 { ".gz" } else { "" });
        let path = dir.shard(&name, labels(0..4000 / (s + 1)));
        match s % 4 {
            1 => [100, 5000, 9000].iter().filter(|at| **at < 34 * 300).for_each(|at| damage(&path, *at)),
            2 => fs::File::options().write(true).open(&path).unwrap().set_len(34 * 100 + 7).unwrap(),
            _ => {}
        }
    }
    fs::write(dir.path("05.tfrecord"), b"PK\x03\x04 no records at all").unwrap();
    for rest in [&["--json"][..], &["--decode"], &["--json", "--decode"], &["--tail", "tolerate"], &[]] {
        let run = |threads: &str| dir.run(&[&["verify", ".", "-j", threads][..], rest].concat());
        let one = run("1");
        assert_ne!(one.code, 0, "{}", one.err);
        // The position of each file's first line ascends.
        let lines: Vec<_> = (0..12).filter_map(|s| one.out.find(&format!("/{s:02}.tfrecord"))).collect();
        assert!(lines.is_sorted() && lines.len() >= 2, "{}", one.out);
        for threads in ["2", "3", "16", "0"] {
            let other = run(threads);
            assert_eq!(
                (other.code, &other.out, &other.err),
                (one.code, &one.out, &one.err),
                "-j {threads} {rest:?}"
            );
        }
    }
}

#[test]
fn damage_is_skipped_on_request() {
    let dir = Folder::new();
    let path = dir.shard("a.tfrecord", labels(0..10));
    damage(&path, 34 * 3 + 20);
    damage(&path, 34 * 6);
    let warning = "tfseek: a.tfrecord: 2 damaged ranges are left out, 68 bytes; the first one begins at byte 102, after 3 records\n";
    let ran = dir.run(&["get", "a.tfrecord", "3,-1", "-f", "json"]);
    assert_eq!((ran.code, ran.out.len()), (1, 0), "{ran:?}");
    for _ in 0..2 {
        let ran = dir.run(&["get", "a.tfrecord", "3,-1", "-f", "json", "--damage", "skip"]);
        let found: Vec<_> =
            ran.out.lines().map(|line| json(line)["features"]["label"][0].as_i64().unwrap()).collect();
        assert_eq!((ran.code, found), (1, vec![4, 9]));
        assert_eq!(ran.err, warning);
    }
    for _ in 0..2 {
        let ran = dir.run(&["index", "a.tfrecord", "--damage", "skip", "--rest", "rest"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.starts_with(warning) && ran.err.contains("8 records"), "{ran:?}");
        let bytes = fs::read(&path).unwrap();
        let rest = dir.path("rest/a.tfrecord.rest");
        assert_eq!(fs::read(&rest).unwrap(), [&bytes[102..136], &bytes[204..238]].concat());
        fs::remove_file(rest).unwrap();
    }
    // Without the option the index with gaps is not used.
    assert_eq!(dir.run(&["get", "a.tfrecord", "3"]).code, 1);
    let ran = dir.run(&["info", "a.tfrecord"]);
    assert!(ran.out.contains("damage       2 ranges, 68 bytes, left out of the index\n"), "{ran:?}");
    let info = json(&dir.run(&["info", "--json", "a.tfrecord"]).out);
    assert_eq!((&info["records"], &info["gap_bytes"]), (&8.into(), &68.into()));
    let gaps = info["gaps"].as_array().unwrap();
    assert_eq!(gaps.len(), 2);
    let bytes = |gap: &serde_json::Value| gap["end"].as_u64().unwrap() - gap["start"].as_u64().unwrap();
    assert_eq!(gaps.iter().map(bytes).sum::<u64>(), 68);
    assert_eq!(info["warnings"][0]["gaps"], info["gaps"]);
    let sound =
        json(&dir.run(&["info", "--json", dir.shard("b.tfrecord", labels(0..3)).to_str().unwrap()]).out);
    assert_eq!((&sound["gaps"], &sound["gap_bytes"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    dir.run(&["index", "a.tfrecord", "--rest", "x"]).fails(2, &["--rest requires --damage skip"]);
    dir.run(&["get", "a.tfrecord", "3", "--damage", "ignore"]).fails(2, &["raise, skip"]);
}
