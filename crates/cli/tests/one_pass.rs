//! `sample` on files that can only be read in order, and `--tail tolerate` of every verb.

use crate::common::*;
use std::fs;

#[track_caller]
fn found(out: &str) -> Vec<i64> {
    let label = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["features"]["label"][0].as_i64().unwrap()
    };
    out.lines().map(label).collect()
}

#[test]
fn sample_reads_compressed_files_and_pipes_in_one_pass() {
    let dir = Folder::new();
    dir.shard("a.tfrecord.gz", labels(0..50));
    dir.shard("b.tfrecord.zz", labels(50..80));
    dir.shard("c.tfrecord", labels(80..100));
    let files = ["a.tfrecord.gz", "b.tfrecord.zz", "c.tfrecord"];
    let sample = |args: &[&str]| {
        let ran = dir.run(&[&["sample", "-f", "json"], args, &files].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        ran.out
    };
    let seven = sample(&["-n", "7", "--seed", "3"]);
    assert_eq!(seven, sample(&["-n", "7", "--seed", "3"]));
    // `tfseek.stream(files).sample(7, 3)` draws the same records.
    assert_eq!(found(&seven), SEVEN);
    assert_ne!(found(&sample(&["-n", "7", "--seed", "4"])), SEVEN);
    assert_eq!(found(&sample(&["-n", "1000"])), (0..100).collect::<Vec<_>>());
    assert_eq!(sample(&["-n", "0"]), "");
    for line in seven.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["index"], line["features"]["label"][0], "{line}");
        assert!(line["file"].as_str().unwrap().contains(".tfrecord"), "{line}");
    }

    let all: Vec<u8> = fs::read(dir.path("c.tfrecord")).unwrap();
    let ran = dir.run_on(&all, &["sample", "-", "-n", "3", "-f", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let drawn = found(&ran.out);
    assert!(
        drawn.len() == 3 && drawn.is_sorted() && drawn.iter().all(|i| (80..100).contains(i)),
        "{drawn:?}"
    );
    let ran = dir.run(&["sample", "a.tfrecord.gz", "-n", "2"]);
    assert!(ran.code == 0 && ran.out.starts_with("record "), "{ran:?}");
    // Plain files are read by number, in the order of the draw.
    let by_number = found(&dir.run(&["sample", "-f", "json", "-n", "20", "c.tfrecord"]).out);
    assert!(by_number.len() == 20 && !by_number.is_sorted());

    let cut = fs::read(dir.path("a.tfrecord.gz")).unwrap();
    fs::write(dir.path("cut.tfrecord.gz"), &cut[..cut.len() / 2]).unwrap();
    dir.run(&["sample", "cut.tfrecord.gz"]).fails(1, &["cut.tfrecord.gz: ", "gzip"]);

    let ran = dir.run(&["sample", "-f", "json", "-n", "1000", "cut.tfrecord.gz", "--damage", "skip"]);
    assert!(ran.code == 1 && ran.err.contains("damaged"), "{ran:?}");
    let mut left = found(&ran.out);
    left.sort_unstable();
    assert!(!left.is_empty() && left.len() < 50 && left.iter().copied().eq(0..left.len() as i64), "{left:?}");
    let ran = dir.run_on(&all, &["sample", "-", "-n", "3", "--damage", "skip", "-f", "json"]);
    assert!(ran.code == 0 && found(&ran.out).len() == 3, "{ran:?}");
}

const SEVEN: [i64; 7] = [3, 13, 24, 30, 78, 82, 93];

#[test]
fn every_verb_tolerates_a_torn_tail() {
    let dir = Folder::new();
    let whole = fs::read(dir.shard("a.tfrecord", labels(0..5))).unwrap();
    fs::write(dir.path("a.tfrecord"), &whole[..whole.len() - 3]).unwrap();
    dir.shard("b.tfrecord", labels(5..10));
    let schema = dir.run(&["schema", "--json", "b.tfrecord"]);
    fs::write(dir.path("s.json"), schema.out).unwrap();
    for verb in [
        "info FILE",
        "head FILE",
        "tail FILE",
        "tail -n +2 FILE",
        "cat FILE",
        "schema --all FILE",
        "parse -s s.json FILE",
        "digest FILE",
        "verify FILE",
        "verify --decode FILE",
        "index --format dali --index-dir i FILE",
        "index --index-dir i FILE",
        "index --index-dir j --column label FILE",
        "sample FILE",
        "epoch -b 2 FILE",
        "order -b 2 --step 0 FILE",
        "get FILE 0 -1",
        "stats FILE",
        "stats --sample 3 FILE",
        "grep --count --threads 2 label>=0 FILE",
        "validate -s s.json FILE",
        "reshard --force -o r.tfrecord FILE",
        #[cfg(feature = "tables")]
        "convert --force FILE c.parquet",
    ] {
        let args: Vec<_> = verb.split(' ').map(|word| word.replace("FILE", "a.tfrecord")).collect();
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let ran = dir.run(&args);
        assert_eq!(ran.code, 1, "{verb}: {ran:?}");
        assert!(
            ran.err.contains("truncated") && ran.err.contains("`--tail tolerate`"),
            "{verb}: {}",
            ran.err
        );
        let ran = dir.run(&[&args[..1], &["--tail", "tolerate"], &args[1..]].concat());
        assert_eq!(ran.code, 0, "{verb}: {}", ran.err);
        // The warning is printed once.
        assert_eq!(ran.err.matches("the end is torn: ").count(), 1, "{verb}: {}", ran.err);
        assert!(ran.err.contains("a.tfrecord: the end is torn: 31 bytes from byte "), "{verb}: {}", ran.err);
    }
    let ran = dir.run(&["cat", "-f", "json", "--tail", "tolerate", "a.tfrecord", "b.tfrecord"]);
    assert_eq!(found(&ran.out), [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    let ran = dir.run(&["get", "-f", "json", "--tail", "tolerate", "a.tfrecord", "b.tfrecord", "3", "4"]);
    assert_eq!(found(&ran.out), [3, 5]);
    let ran = dir.run(&["verify", "--tail", "tolerate", "a.tfrecord", "b.tfrecord"]);
    assert!(ran.err.contains("a.tfrecord: the end is torn: 31 bytes from byte "), "{}", ran.err);
    assert!(ran.out.starts_with("2 of 2 files sound: 9 records"), "{}", ran.out);
    let info = dir.run(&["info", "--json", "--tail", "tolerate", "a.tfrecord"]);
    assert!(info.out.contains("\"records\":4"), "{}", info.out);
    // A stream that ends inside a record, without a file to go back to.
    let ran =
        dir.run_on(&whole[..whole.len() - 3], &["unpack", "--tail", "tolerate", "-", "-o", "c.tfrecord"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    dir.run(&["head", "--tail", "lax", "a.tfrecord"]).fails(2, &["--tail", "strict, tolerate"]);
}

#[test]
fn compressed_files_with_torn_tails() {
    let dir = Folder::new();
    let whole = fs::read(dir.shard("a.tfrecord.gz", labels(0..50))).unwrap();
    let zlib = fs::read(dir.shard("b.tfrecord.zz", labels(0..50))).unwrap();
    for (name, bytes, left) in [
        ("trailing.gz", [&whole[..], b"garbage"].concat(), 7),
        ("trailing.zz", [&zlib[..], b"garbage"].concat(), 7),
        ("cut.gz", whole[..whole.len() - 3].to_vec(), 5),
        ("cut.zz", zlib[..zlib.len() - 3].to_vec(), 1),
        ("missing.gz", whole[..whole.len() - 8].to_vec(), 0),
    ] {
        fs::write(dir.path(name), bytes).unwrap();
        for verb in ["head -n 100", "cat", "tail -n 100", "sample -n 100", "get"] {
            let mut args: Vec<_> = verb.split(' ').collect();
            args.extend(["-f", "json", name]);
            if verb == "get" {
                args.extend(["0:50", "--index-dir", "i"]);
            }
            let ran = dir.run(&args);
            assert!(ran.code == 1 && ran.err.contains(name), "{args:?}: {}", ran.err);
            args.extend(["--tail", "tolerate"]);
            let ran = dir.run(&args);
            assert_eq!((ran.code, found(&ran.out)), (0, (0..50).collect()), "{args:?}: {}", ran.err);
        }
        let ran = dir.run(&["verify", name]);
        assert_eq!(ran.code, 1, "{}", ran.out);
        let ran = dir.run(&["verify", "--tail", "tolerate", name]);
        assert!(ran.code == 0 && ran.out.starts_with("1 of 1 file sound: 50 records"), "{ran:?}");
        let note = match left {
            0 => "the trailer of the compressed file is missing".to_owned(),
            1 => "1 byte from byte ".to_owned(),
            n => format!("{n} bytes from byte "),
        };
        assert!(ran.err.contains(&format!("{name}: the end is torn: {note}")), "{}", ran.err);
        // Each look says the same: the file is read, it is indexed, and the index is used.
        let looks: Vec<_> = (0..3)
            .map(|look| {
                if look == 1 {
                    assert_eq!(dir.run(&["index", "--tail", "tolerate", name]).code, 0);
                }
                let info = dir.run(&["info", "--json", "--tail", "tolerate", name]);
                let json: serde_json::Value = serde_json::from_str(&info.out).unwrap();
                assert_eq!((info.code, &json["records"]), (0, &50.into()), "{json}");
                json["warnings"].clone()
            })
            .collect();
        assert!(looks.iter().all(|look| look == &looks[0]), "{looks:?}");
        assert_eq!((&looks[0][0]["kind"], &looks[0][0]["bytes"]), (&"torn_tail".into(), &left.into()));
        // Without the option the count is the same, and the end is an error.
        let info = dir.run(&["info", "--json", name]);
        let json: serde_json::Value = serde_json::from_str(&info.out).unwrap();
        assert_eq!((info.code, &json["records"]), (1, &50.into()), "{json}");
    }
}
