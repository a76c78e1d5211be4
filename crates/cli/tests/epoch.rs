//! `epoch`: reports of runs, of resumed runs, and of runs over damaged records.

use crate::common::*;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tfseek::{DType, ExampleBuilder, FeatureSpec, Schema};

/// Writes two shards of 100 records each, with labels 0 to 199. Returns the folder and the number of payload
/// bytes.
fn two_shards() -> (Folder, u64) {
    let dir = Folder::new();
    dir.shard("x-0.tfrecord", labels(0..100));
    dir.shard("x-1.tfrecord", labels(100..200));
    let schema = Schema::example().feature("label", FeatureSpec::fixed_len(&[], DType::Int64));
    fs::write(dir.path("s.json"), schema.build().unwrap().to_json()).unwrap();
    (dir, labels(0..200).iter().map(|payload| payload.len() as u64).sum())
}

#[track_caller]
fn report(dir: &Folder, args: &[&str]) -> Value {
    let ran = dir.run(&[&["epoch", "x-*", "--json"], args].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    serde_json::from_str(&ran.out).unwrap()
}

fn sum(report: &Value) -> u64 {
    u64::from_str_radix(report["sum"].as_str().unwrap(), 16).unwrap()
}

#[test]
fn the_report_as_json() {
    let (dir, payload) = two_shards();
    let seen = report(&dir, &["-b", "16", "--schema", "s.json", "--seed", "3", "--epoch", "7"]);
    let all = [
        ("steps", 13),
        ("examples", 200),
        ("padding", 0),
        ("skipped", 0),
        ("payload_bytes", payload),
        ("epoch", 7),
        ("rank", 0),
        ("world_size", 1),
        ("records", 200),
        ("shards", 2),
        ("global_batch_size", 16),
        ("rank_samples", 200),
    ];
    for (name, want) in all {
        assert_eq!(seen[name], want, "{name} of {seen}");
    }
    assert_eq!(sum(&seen), (0..200).sum::<u64>());
    assert_eq!(seen["verify"], "payload");
    assert!(seen["threads"].as_u64().unwrap() > 0, "{seen}");
    let order = seen["order"].as_str().unwrap();
    assert!(order.starts_with("200 records in global order; deff"), "{order}");
    assert!((50..1000).contains(&seen["state_bytes"].as_u64().unwrap()), "{seen}");
    for name in ["seconds", "examples_per_second", "gb_per_second", "first_batch_seconds"] {
        assert!(seen[name].as_f64().unwrap() > 0.0, "{name} of {seen}");
    }
    let time = |name: &str| seen[name].as_f64().unwrap();
    let [p50, p99, max] = ["p50", "p99", "max"].map(|name| time(&format!("step_{name}_seconds")));
    assert!(0.0 < p50 && p50 <= p99 && p99 <= max && max <= time("seconds"), "{seen}");
    assert!(time("stall_seconds") <= time("seconds") && time("stalls") <= 12.0, "{seen}");
    if cfg!(unix) {
        assert!(time("cpu_seconds") > 0.0);
    }
    if cfg!(target_os = "linux") {
        assert!(time("peak_bytes") > time("peak_anonymous_bytes"));
        assert!(time("page_table_bytes") > 0.0);
    }
}

#[test]
fn the_report_as_text() {
    let (dir, _) = two_shards();
    let ran = dir.run(&["epoch", "x-*", "-b", "16", "--world-size", "3", "--rank", "1", "--shuffle", "none"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("epoch 0, rank 1 of 3, 200 records in sequential order\n"), "{}", ran.out);
    let begin = "epoch 0, rank 1 of 3, 200 records in sequential order
  dataset      200 records in 2 shards
  steps        5 of 5
  batch size   48, 16 on each rank
  this rank    80 of 200 samples
  last batch   padded with 40 samples on all ranks
  saved state  ";
    assert!(ran.out.starts_with(begin), "{}", ran.out);
    assert!(!ran.out.contains("deff"), "{}", ran.out);
    let described = dir.run(&["epoch", "x-*", "-b", "16", "--describe", "--shuffle", "block"]).out;
    assert!(described.contains("\n  order        200 records in block order: "), "{described}");
    assert!(described.trim_end().ends_with("for batches of 16"), "{described}");
    for (last, text) in [
        ("drop", "8 samples dropped"),
        ("pad", "padded with 8 samples"),
        ("short", "short, 8 samples"),
        ("continuous", "continues with the next epoch"),
    ] {
        let out = dir.run(&["epoch", "x-*", "-b", "16", "--last-batch", last]).out;
        assert!(out.contains(&format!("\n  last batch   {text}\n")), "{out}");
    }
    assert!(dir.run(&["epoch", "x-*", "-b", "20"]).out.contains("\n  last batch   full\n"));
    let words = [
        "\n  steps        5 of 5\n",
        "\n  examples     80, ",
        // The last batch has 8 records, which belong to rank 0.
        "\n  padding      16 of them\n",
        " GB/s, verified: payload\n",
        "\n  first batch  after ",
        "\n  step         p50 ",
        "\n  sum          ",
    ];
    for word in words {
        assert!(ran.out.contains(word), "no {word:?} in {}", ran.out);
    }
    // A single step has no step times, because the first step is reported separately.
    let ran = dir.run(&["epoch", "x-*", "-b", "16", "--steps", "1", "--verify", "header"]);
    assert!(ran.out.contains("steps        1 of 13\n") && !ran.out.contains("p50"), "{}", ran.out);
    assert!(ran.out.contains("verified: header"), "{}", ran.out);
    // An empty epoch has no times.
    dir.shard("empty.tfrecord", [""; 0]);
    let ran = dir.run(&["epoch", "empty.tfrecord", "-b", "16"]);
    assert!(ran.code == 0 && ran.out.contains("steps        0 of 0\n"), "{}{}", ran.out, ran.err);
}

#[test]
fn the_sum_does_not_depend_on_the_order() {
    let (dir, payload) = two_shards();
    for kind in [&["-s", "s.json"][..], &[]] {
        let run = |args: &[&str]| report(&dir, &[kind, args].concat());
        let whole = run(&["-b", "7"]);
        let others = [
            "--threads 0",
            "--threads 1 --shuffle none",
            "--threads 3 --shuffle block",
            "--io pread --seed 9",
            "--verify header --epoch 1",
            "--verify first-epoch --last-batch short",
        ];
        for args in others {
            let args: Vec<&str> = args.split(' ').chain(["-b", "7"]).collect();
            let other = run(&args);
            assert_eq!((sum(&other), &other["examples"]), (sum(&whole), &whole["examples"]), "{args:?}");
        }
        let ranks = ["0", "1", "2"].map(|rank| {
            let args = ["--global-batch-size", "12", "--last-batch", "short", "--world-size", "3", "--rank"];
            run(&[&args[..], &[rank]].concat())
        });
        assert_eq!(ranks.iter().map(sum).fold(0, u64::wrapping_add), sum(&whole));
        let bytes: u64 = ranks.iter().map(|rank| rank["payload_bytes"].as_u64().unwrap()).sum();
        assert_eq!(bytes, payload);
    }
    let dropped = report(&dir, &["-b", "64", "--last-batch", "drop"]);
    assert_eq!((&dropped["steps"], &dropped["examples"]), (&3.into(), &192.into()));
    let continued = report(&dir, &["-b", "64", "--last-batch", "continuous"]);
    assert_eq!((&continued["steps"], &continued["examples"]), (&4.into(), &256.into()));
}

#[test]
fn a_run_is_stopped_and_resumed() {
    let (dir, payload) = two_shards();
    let whole = report(&dir, &["-b", "16", "--seed", "5", "--epoch", "2"]);
    let first = report(
        &dir,
        &["-b", "16", "--seed", "5", "--epoch", "2", "--steps", "4", "--state-out", "state.json"],
    );
    assert_eq!((&first["steps"], &first["examples"]), (&4.into(), &64.into()));
    // Resumed with another number of ranks and another batch size. The new state replaces the old one.
    let state = fs::read(dir.path("state.json")).unwrap();
    let ranks = ["0", "1"].map(|rank| {
        fs::write(dir.path("state.json"), &state).unwrap();
        let args = ["--resume", "state.json", "--state-out", "state.json", "--global-batch-size", "10"];
        let how = ["--last-batch", "short", "--world-size", "2", "--rank", rank];
        report(&dir, &[&args[..], &how].concat())
    });
    assert_eq!((&ranks[0]["epoch"], &ranks[0]["steps"]), (&2.into(), &14.into()));
    let all = [&first, &ranks[0], &ranks[1]];
    assert_eq!(all.into_iter().map(sum).fold(0, u64::wrapping_add), sum(&whole));
    assert_eq!(all.iter().map(|part| part["payload_bytes"].as_u64().unwrap()).sum::<u64>(), payload);
    // The state at the end of an epoch continues with the next one.
    let next = report(&dir, &["--resume", "state.json", "-b", "16"]);
    assert_eq!((&next["epoch"], &next["examples"]), (&3.into(), &200.into()));

    // This also holds for a run without steps.
    fs::write(dir.path("state.json"), &state).unwrap();
    let args = ["--resume", "state.json", "--state-out", "state.json", "-b", "150", "--last-batch", "drop"];
    assert_eq!(report(&dir, &args)["steps"], 0);
    let next = report(&dir, &args);
    assert_eq!((&next["epoch"], &next["steps"]), (&3.into(), &1.into()));

    // This also holds if --steps is the number of remaining steps.
    let args = ["--state-out", "all.json", "-b", "50", "--steps", "4"];
    assert_eq!(report(&dir, &args)["steps"], 4);
    let next = report(&dir, &["--resume", "all.json", "-b", "50"]);
    assert_eq!((&next["epoch"], &next["steps"]), (&1.into(), &4.into()));
    // No epoch follows the last one.
    let last = ["--epoch", "18446744073709551615", "--state-out", "all.json", "-b", "50"];
    assert_eq!(report(&dir, &last)["steps"], 4);
    assert_eq!(report(&dir, &["--resume", "all.json", "-b", "50"])["steps"], 0);

    let refused = |args: &[&str], code: i32, words: &[&str]| {
        dir.run(&[&["epoch", "-b", "16", "--resume"], args].concat()).fails(code, words);
    };
    refused(&["state.json", "x-*", "--seed", "5"], 2, &["--seed"]);
    fs::write(dir.path("state.json"), &state).unwrap();
    refused(
        &["state.json", "x-*", "--shuffle", "none"],
        2,
        &["another order: expected file order", "found a global shuffle"],
    );
    refused(&["state.json", "x-0*"], 2, &["another dataset: expected 100 records, found 200"]);
    refused(&["nowhere.json", "x-*"], 3, &["nowhere.json"]);
    refused(&["s.json", "x-*"], 2, &["s.json: invalid saved state"]);
}

#[test]
fn damaged_records_end_the_run_or_are_skipped() {
    let (dir, _) = two_shards();
    let whole = report(&dir, &["-b", "10", "--shuffle", "none", "--steps", "5"]);
    for record in 50..62 {
        damage(&dir.path("x-0.tfrecord"), 34 * record + 14);
    }
    // The headers of these records are intact.
    assert_eq!(report(&dir, &["-b", "10", "--verify", "header", "--shuffle", "none"])["examples"], 200);
    let run = |args: &[&str]| dir.run(&[&["epoch", "x-*", "-b", "10", "--shuffle", "none"], args].concat());
    run(&["--state-out", "state.json"]).fails(1, &["x-0.tfrecord: record 50 at byte 1700: payload crc32c"]);
    // The saved state is the position before the damaged record.
    let state: Value = serde_json::from_slice(&fs::read(dir.path("state.json")).unwrap()).unwrap();
    assert_eq!(state["pos"], 50);
    let skip = |args: &[&str]| {
        let ran = run(&[&["--damage", "skip"], args].concat());
        let words = "tfseek: x-0.tfrecord: 1 damaged range is left out, 408 bytes; it begins at byte 1700, after 50 records\n";
        assert_eq!((ran.code, ran.err.as_str()), (1, words));
        ran
    };
    let parsed = |ran: &crate::common::Ran| serde_json::from_str::<Value>(&ran.out).unwrap();
    assert_eq!(sum(&parsed(&skip(&["--json", "--steps", "5"]))), sum(&whole));
    let seen = parsed(&skip(&["--json", "-q"]));
    assert_eq!((&seen["examples"], &seen["skipped"]), (&188.into(), &0.into()));

    // Records that do not match the schema are treated like damaged ones.
    let schema = Schema::example().feature("label", FeatureSpec::fixed_len(&[2], DType::Int64));
    fs::write(dir.path("pairs.json"), schema.build().unwrap().to_json()).unwrap();
    run(&["-s", "pairs.json"]).fails(1, &["x-0.tfrecord: record 0", "\"label\""]);
    // An epoch without a sound row is an error.
    let ran = run(&["-s", "pairs.json", "--damage", "skip", "--json"]);
    let words = "no batch has a sound row: 188 records from position 0 on were left out";
    assert!(ran.code == 1 && ran.err.contains(words), "{}", ran.err);
}

#[test]
fn invalid_options_are_refused() {
    let (dir, _) = two_shards();
    let refused = |args: &[&str], words: &[&str]| {
        dir.run(&[&["epoch", "x-*"], args].concat()).fails(2, words);
        dir.run(&[&["order", "x-*", "--describe"], args].concat()).fails(2, words);
    };
    refused(&["-b", "16", "--rank", "2", "--world-size", "2"], &["no rank 2: there are 2"]);
    refused(&["-b", "16", "--rank", "1"], &["no rank 1: there is 1"]);
    refused(&["-b", "16", "--world-size", "0"], &["--world-size"]);
    let words = ["expected a global batch size that is a multiple of 3 ranks, found 16"];
    refused(&["--global-batch-size", "16", "--world-size", "3"], &words);
    refused(&["-b", "0"], &["--batch-size"]);
    refused(&[], &["--batch-size", "--global-batch-size"]);
    refused(&["-b", "4", "--global-batch-size", "4"], &["--global-batch-size"]);
    refused(
        &["-b", "9223372036854775808", "--world-size", "2"],
        &["expected fewer than 2^64 samples per step"],
    );
    refused(&["-b", "16", "--shuffle", "well"], &["global", "block", "none"]);
    dir.run(&["epoch", "x-*", "-b", "1", "-s", "nowhere.json"]).fails(3, &["nowhere.json"]);
    dir.run(&["epoch", "x-*", "-b", "1", "-s", "x-0.tfrecord"]).fails(3, &["x-0.tfrecord"]);
    dir.run(&["epoch", "missing-*", "-b", "1"]).fails(3, &["no file matches missing-*"]);
}

#[test]
fn progress_is_printed_on_request() {
    let (dir, _) = two_shards();
    let ran = dir.run(&["epoch", "x-*", "-b", "16", "--progress"]);
    assert!(ran.err.contains("epoch ") && ran.err.contains("/13 steps"), "{}", ran.err);
    assert_eq!(dir.run(&["epoch", "x-*", "-b", "16", "-q", "--progress"]).err, "");
}

/// Every verb that may build a column shows the progress of that.
#[test]
fn progress_is_printed_while_columns_are_built() {
    for args in [
        &["epoch", "-b", "16", "--where", "label < 50"][..],
        &["epoch", "-b", "16", "--balance", "label"],
        &["order", "-b", "16", "--step", "0", "--where", "label < 50"],
        &["order", "-b", "16", "--step", "0", "--balance", "label"],
        &["index", "--column", "label"],
    ] {
        for progress in ["--progress", "-q"] {
            let (dir, _) = two_shards();
            let ran = dir.run(&[args, &["x-*", progress]].concat());
            assert_eq!(
                (ran.code, ran.err.contains("columns ")),
                (0, progress == "--progress"),
                "{args:?}: {}",
                ran.err
            );
        }
    }
}

/// Pictures are decoded, also where the file is one of several names. All other verbs refuse the schema.
#[test]
fn pictures_of_a_schema_are_decoded() {
    let dir = Folder::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../image/tests/data");
    let files = ["yuv420.jpg", "rgb8.png"].map(|name| fs::read(data.join(name)).unwrap());
    let payload = |k: usize| ExampleBuilder::new().bytes("image", [&files[k % 2]]).encode().unwrap();
    dir.shard("x-0.tfrecord", (0..10).map(payload).collect::<Vec<_>>());
    fs::write(dir.path("s.json"), r#"{"features": {"image": {"type": "image", "size": [8, 8]}}}"#).unwrap();
    let seen = report(&dir, &["-b", "4", "-s", "s.json", "--seed", "3"]);
    assert_eq!(seen["examples"], 10);
    // The sum of the pixels of all pictures, in words of eight bytes.
    assert_ne!(sum(&seen), 0);
    let again = report(&dir, &["-b", "3", "-s", "s.json", "--seed", "4", "--threads", "1"]);
    assert_eq!(sum(&again), sum(&seen));
    let ran = dir.run(&["parse", "x-0.tfrecord", "-s", "s.json"]);
    assert!(ran.code != 0 && ran.err.contains("pictures are decoded by loaders"), "{}", ran.err);
}

/// Messages say what a person would: the option, the expected number, and how a missing file is made.
#[test]
fn mistakes_are_named() {
    let (dir, _) = two_shards();
    for (args, words) in [
        ("epoch x-* -b 0", "'--batch-size <N>': expected a whole number of at least 1"),
        (
            "epoch x-* --global-batch-size x",
            "'--global-batch-size <N>': expected a whole number of at least 1",
        ),
        (
            "order x-* -b 4 --world-size 0 --step 0",
            "'--world-size <W>': expected a whole number of at least 1",
        ),
        ("parse x-* -s s.json -b 0", "'--batch-size <N>': expected a whole number of at least 1"),
        (
            "epoch x-* -b 4 -s t.json",
            "t.json: expected a schema, found no such file (`tfseek schema --json` prints one)",
        ),
        ("parse x-* -s t.json", "t.json: expected a schema, found no such file"),
        ("validate x-* --schema t.json", "t.json: expected a schema, found no such file"),
        (
            "epoch x-* -b 4 --resume t",
            "t: expected a saved state, found no such file (`tfseek epoch --state-out` writes one)",
        ),
    ] {
        let ran = dir.run(&args.split(' ').collect::<Vec<_>>());
        assert!(ran.code > 1 && ran.err.contains(words), "{args}: {} {}", ran.code, ran.err);
    }
    fs::write(
        dir.path("bad.json"),
        r#"{"features": {"lable": {"type": "fixed", "dtype": "int64", "shape": []}}}"#,
    )
    .unwrap();
    let ran = dir.run(&["parse", "x-0.tfrecord", "-s", "bad.json"]);
    assert!(
        ran.code == 1 && ran.err.contains("no such feature; the nearest name is \"label\""),
        "{}",
        ran.err
    );
    let ran = dir.run(&["cat", "x@2"]);
    assert!(ran.code == 3 && ran.err.contains("no file matches x@2"), "{}", ran.err);
}
