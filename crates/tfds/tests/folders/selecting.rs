//! Records that split specifications select. A record's payload is its split and its number.

use crate::made::{Made, payloads, selected};
use std::ops::Range;
use tfseek_tfds::{Builder, Rounding, TfdsErrorKind};

const SPLITS: &[(&str, &[u64])] =
    &[("train", &[3, 0, 4, 5]), ("test", &[7]), ("val-2", &[101]), ("empty", &[])];

fn made() -> (Made, Builder) {
    let made = Made::new();
    made.write("tiny", "", SPLITS);
    let tiny = made.open("tiny").unwrap();
    (made, tiny)
}

/// Returns payloads as ranges: `train 3..7 test 0..1`.
fn ranges(found: &[String]) -> String {
    let mut all: Vec<(&str, u64, u64)> = Vec::new();
    for (name, i) in found.iter().map(|record| record.split_once(' ').unwrap()) {
        let i: u64 = i.parse().unwrap();
        match all.last_mut() {
            Some((last, _, end)) if *last == name && *end == i => *end += 1,
            _ => all.push((name, i, i + 1)),
        }
    }
    all.iter().map(|(name, from, to)| format!("{name} {from}..{to}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn specifications_select_records() {
    let (_made, tiny) = made();
    for (spec, expected) in [
        ("train", "train 0..12"),
        ("all", "train 0..12 test 0..7 val-2 0..101"),
        ("test+train", "test 0..7 train 0..12"),
        ("train[:3] + train[1:2]", "train 0..3 train 1..2"),
        ("train[2:-3]", "train 2..9"),
        ("train[-0:]", "train 0..12"),
        ("train[1_0:]", "train 10..12"),
        ("train[5:2]", ""),
        ("empty[:50%]+empty", ""),
        ("train[-50%:]", "train 6..12"),
        ("train[10%:20]", "train 1..2"),
        // Halves round to the even number: 0.5, 2.5 and 3.5 records.
        ("test[:50%]", "test 0..4"),
        ("train[:20.8333%]", "train 0..2"),
        ("train[:4.1666%]", ""),
        ("train[2shard]", "train 3..7"),
        ("train[1:2shard]", ""),
        ("train[-1shard]", "train 7..12"),
        ("train[:-1shard]", "train 0..7"),
        ("train[4shard]", ""),
        ("train[99999999999999999999999999999999999999999shard:]", ""),
        ("train[-99999999999999999999999999999999999999999shard:]", "train 0..12"),
    ] {
        assert_eq!(ranges(&selected(&tiny, spec).unwrap()), expected, "{spec}");
    }
    let rounded =
        |spec| tiny.select_rounded(spec, Rounding::Pct1DropRemainder).map(|all| ranges(&payloads(&all)));
    assert_eq!(rounded("val-2[:100%]").unwrap(), "val-2 0..100");
    assert_eq!(rounded("val-2[-5%:]").unwrap(), "val-2 96..101");
    assert_eq!(rounded("test[:3]").unwrap(), "test 0..3");
    assert!(rounded("test[:10%]").unwrap_err().to_string().contains("at least 100 records"));
}

#[test]
fn other_specifications_are_refused() {
    let (_made, tiny) = made();
    for (spec, reason) in [
        ("trian", r#"expected a split, found "trian"; the nearest name is "train""#),
        ("Train[:1]", r#"expected a split, found "Train"; the nearest name is "train""#),
        ("nope", r#"expected a split, found "nope""#),
        ("train[:13]", "expected ends from -12 to 12, found 13"),
        ("train[-13:]", "expected ends from -12 to 12, found -13"),
        ("test[:101%]", "expected percents from -100 to 100, found 101"),
        ("all[:3]", "expected `all` without brackets"),
    ] {
        let e = tiny.select(spec).unwrap_err();
        let expected = format!("split {spec:?}: {reason}. The splits are train, test, val-2, empty");
        assert_eq!(e.to_string(), expected);
        assert!(matches!(e.kind(), TfdsErrorKind::Split { .. }), "{e}");
    }
    for spec in [
        "",
        " train",
        "train ",
        "train+",
        "+train",
        "train++test",
        "train [:3]",
        "train[:3",
        "train]",
        "train[:3]]",
        "[:3]",
        "train/x",
        "train[+2:]",
    ] {
        let e = tiny.select(spec).unwrap_err().to_string();
        assert!(e.contains("expected a split such as train or train[:80%], found "), "{spec}: {e}");
    }
    for inside in [
        "",
        ":",
        "3",
        "10%",
        "1:2:3",
        ":2.5",
        ": 2",
        "a:b",
        "1e1:",
        ":50 %",
        "shard",
        "%:",
        ":_1",
        "1__0:",
        "1_:",
        "-:",
        ":.%",
        ":1.2.3%",
        "2.5shard",
        ":1shard%",
        "1shard:2.5%",
        "--1:",
        ":٣",
    ] {
        let e = tiny.select(&format!("train[{inside}]")).unwrap_err().to_string();
        let found = format!("such as [:80%] or [2shard], found \"[{inside}]\"");
        assert!(e.contains(&found), "{inside}: {e}");
    }
}

#[test]
fn parts_of_equal_size() {
    let (_made, tiny) = made();
    let parts = |spec: &str, parts: u64, drop: bool| -> Vec<String> {
        tiny.even_splits(spec, parts, drop).unwrap().iter().map(|part| ranges(&payloads(part))).collect()
    };
    assert_eq!(
        parts("train", 5, false),
        ["train 0..3", "train 3..6", "train 6..8", "train 8..10", "train 10..12"]
    );
    assert_eq!(
        parts("train", 5, true),
        ["train 0..2", "train 2..4", "train 4..6", "train 6..8", "train 8..10"]
    );
    // Each part of the specification is divided.
    assert_eq!(
        parts("train[:7]+test", 3, false),
        ["train 0..3 test 0..3", "train 3..5 test 3..5", "train 5..7 test 5..7"]
    );
    assert_eq!(parts("test", 9, false)[6..], ["test 6..7", "", ""]);
    for bad in [0, u64::MAX] {
        let e = tiny.even_splits("train", bad, false).unwrap_err().to_string();
        assert_eq!(e, format!("even splits: expected from 1 to 1048576 parts, found {bad}"));
    }
}

/// The fields of a selection and of a split are a caller's, so their numbers may be any.
#[test]
fn numbers_of_a_caller() {
    let (_made, tiny) = made();
    let mut some = tiny.select("train").unwrap();
    some.ranges = vec![Range { start: 5, end: 2 }, 3..5];
    assert_eq!((some.len(), some.record(1), some.record(2)), (2, Some(4), None));
    some.ranges = vec![0..u64::MAX, 0..2];
    assert_eq!((some.len(), some.record(u64::MAX)), (u64::MAX, Some(0)));
    let mut train = tiny.splits()[0].clone();
    train.shard_lengths = Some(vec![u64::MAX, 1]);
    assert_eq!(train.records(), None);
}

/// Percentages of every number of records: neighbours neither overlap nor lack a record, and each end is the
/// nearest.
#[test]
fn percents_divide_without_gaps() {
    for n in [1u64, 7, 99, 100, 101, 250, 999] {
        let made = Made::new();
        made.write("tiny", "", &[("train", &[n])]);
        let tiny = made.open("tiny").unwrap();
        let ends: Vec<u64> =
            (0..=100).map(|p| tiny.select(&format!("train[:{p}%]")).unwrap().len()).collect();
        assert_eq!((ends[0], ends[100]), (0, n));
        for (p, end) in ends.iter().enumerate() {
            assert!((end * 100).abs_diff(p as u64 * n) <= 50, "{p}% of {n} is {end}");
            let rest = tiny.select(&format!("train[{p}%:]")).unwrap();
            assert_eq!(end + rest.len(), n);
        }
        for (p, pair) in ends.windows(2).enumerate() {
            let one = tiny.select(&format!("train[{p}%:{}%]", p + 1)).unwrap();
            assert_eq!(one.len(), pair[1] - pair[0]);
        }
    }
}
