//! `order`: prints the records that a loader returns, without reading any record.

use crate::common::*;
use std::fs;
use tfseek::loader::Shuffle;
use tfseek::order::{LastBatch, State};
use tfseek::{Dataset, DatasetOptions, IndexMode};

/// Writes and indexes two shards of 100 records each.
fn two_shards() -> Folder {
    let dir = Folder::new();
    dir.shard("x-0.tfrecord", labels(0..100));
    dir.shard("x-1.tfrecord", labels(100..200));
    assert_eq!(dir.run(&["index", "-q", "x-*"]).code, 0);
    dir
}

fn dataset(dir: &Folder) -> Dataset {
    DatasetOptions::new().index(IndexMode::Require).open(dir.path("x-*")).unwrap()
}

#[track_caller]
fn ids(dir: &Folder, args: &[&str]) -> Vec<u64> {
    let ran = dir.run(&[&["order", "x-*", "--ids"], args].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    ran.out.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn a_table_of_samples() {
    let dir = two_shards();
    let step = ["order", "x-*", "-b", "4", "--shuffle", "none", "--last-batch", "pad", "--step"];
    dir.run(&[&step[..], &["3"]].concat()).prints(
        "epoch  step  position  record
    0     3        12      12
    0     3        13      13
    0     3        14      14
    0     3        15      15
",
    );
    let of_three = ["order", "x-*", "-b", "11", "--world-size", "3", "--rank", "2", "--step", "6"];
    let ran = dir.run(&[&of_three[..], &["--shuffle", "none", "--json", "--epoch", "5"]].concat());
    let lines: Vec<&str> = ran.out.lines().collect();
    // Positions 198 to 230 are in the last step, and positions 220 to 230 belong to this rank.
    let first =
        r#"{"epoch":5,"file":"x-0.tfrecord","index":20,"padding":true,"position":20,"record":20,"step":6}"#;
    assert_eq!((lines.len(), lines[0]), (11, first));
    let of_two = ["order", "x-*", "-b", "2", "--world-size", "3", "--rank", "0", "--shuffle", "none"];
    dir.run(&[&of_two[..], &["--step", "32..41"]].concat()).prints(
        "epoch  step  position  record
    0    32       192     192  record 92 of x-1.tfrecord
    0    32       193     193  record 93 of x-1.tfrecord
    0    33       198     198  record 98 of x-1.tfrecord
    0    33       199     199  record 99 of x-1.tfrecord
",
    );
    let rank_1 = ["order", "x-*", "-b", "2", "--world-size", "3", "--rank", "1", "--shuffle", "none"];
    dir.run(&[&rank_1[..], &["--step", "33"]].concat()).prints(
        "epoch  step  position  record
    0    33         0       0  padding
    0    33         1       1  padding
",
    );
}

#[test]
fn ids_are_the_records_of_a_loader() {
    let dir = two_shards();
    let dataset = dataset(&dir);
    let orders = [("global", Shuffle::Global), ("block", Shuffle::Block), ("none", Shuffle::None)];
    let lasts = [
        ("drop", LastBatch::Drop),
        ("pad", LastBatch::Pad),
        ("short", LastBatch::Short),
        ("continuous", LastBatch::Continuous),
    ];
    for (k, (order, shuffle)) in orders.iter().enumerate() {
        for (last, policy) in lasts {
            let loader = dataset.record_loader().shuffle(shuffle.clone()).last_batch(policy);
            let mut loader = loader.seed(7).epoch(3).rank(1, 2).global_batch_size(24).build().unwrap();
            let steps: Vec<Vec<u64>> = loader.by_ref().map(|step| step.unwrap().ids.to_vec()).collect();
            assert!(steps.len() >= 8);
            let order = if k == 0 { vec![] } else { vec!["--shuffle", order] };
            let args = "--last-batch X --seed 7 --epoch 3 --world-size 2 --rank 1 --global-batch-size 24";
            let args = args.split(' ').map(|word| if word == "X" { last } else { word });
            let args: Vec<&str> = args.chain(order).collect();
            let all = ids(&dir, &[&args[..], &["--step", &format!("0..{}", steps.len())]].concat());
            assert_eq!(all, steps.concat(), "{args:?}");
            let final_step = steps.len() - 1;
            let here = ids(&dir, &[&args[..], &["--step", &final_step.to_string()]].concat());
            assert_eq!(here, steps[final_step], "{args:?}");
        }
    }
}

#[test]
fn get_takes_the_ids() {
    let dir = two_shards();
    let here = ids(&dir, &["-b", "5", "--seed", "1", "--step", "20"]);
    let words: Vec<String> = here.iter().map(u64::to_string).collect();
    let args: Vec<&str> =
        ["get", "x-*", "-f", "raw"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let got = dir.command(&args).output().unwrap().stdout;
    let want: Vec<u8> = here.iter().flat_map(|&id| label(id as i64)).collect();
    assert!(here.len() == 5 && got == want);
}

#[test]
fn steps_and_rows_of_a_record() {
    let dir = two_shards();
    let share = ["order", "x-*", "--seed", "1", "--global-batch-size", "24", "--world-size", "3"];
    for record in ["0", "77", "199"] {
        let ran = dir.run(&[&share[..], &["--record", record, "--json"]].concat());
        let line: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let (step, rank) = (line["step"].to_string(), line["rank"].to_string());
        let row = line["row"].as_u64().unwrap() as usize;
        let ran = dir.run(&[&share[..], &["--ids", "--step", &step, "--rank", &rank]].concat());
        assert_eq!(ran.out.lines().nth(row), Some(record));
    }
    let table = ["order", "x-*", "--shuffle", "none", "--global-batch-size", "24", "--world-size", "3"];
    dir.run(&[&table[..], &["--record", "150"]].concat())
        .prints("epoch  step  rank  row\n    0     6     0    6\n");
    let ran = dir.run(&[&table[..], &["--record", "199", "--last-batch", "drop"]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(ran.err.contains("record 199 is in no step of epoch 0"), "{}", ran.err);
    dir.run(&[&table[..], &["--record", "200"]].concat()).fails(2, &["200"]);
}

#[test]
fn a_description() {
    let dir = two_shards();
    dir.run(&["order", "x-*", "-b", "8", "--describe"])
        .prints("200 records in global order; deff(rho=1) = 1.00 for batches of 8\n25 steps of 8 samples\n");
    let ran = dir.run(&["order", "x-*", "-b", "8", "--world-size", "4", "--shuffle", "none", "--describe"]);
    ran.prints("200 records in sequential order\n7 steps of 32 samples, 8 for each of 4 ranks\n");
}

/// The shards are replaced by zeros, with the same size and modification time.
#[test]
fn no_record_is_read() {
    let dir = two_shards();
    let args = ["order", "x-*", "-b", "16", "--seed", "9", "--step", "2..102"];
    let before = dir.run(&args);
    assert_eq!(before.out.lines().count(), 1 + 200 - 32);
    for name in ["x-0.tfrecord", "x-1.tfrecord"] {
        let file = fs::OpenOptions::new().write(true).open(dir.path(name)).unwrap();
        let meta = file.metadata().unwrap();
        file.set_len(0).unwrap();
        file.set_len(meta.len()).unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
    }
    tfseek_testkit::shards::trust(&dir.path(".tfseek"));
    dir.run(&args).prints(&before.out);
    assert_eq!(dir.run(&["epoch", "x-*", "-b", "16"]).code, 1);
}

#[test]
fn steps_of_a_resumed_run() {
    let dir = two_shards();
    let ran =
        dir.run(&["epoch", "x-*", "-b", "16", "--seed", "4", "--steps", "3", "--state-out", "state.json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let state = State::from_json(&fs::read_to_string(dir.path("state.json")).unwrap()).unwrap();
    let mut loader =
        dataset(&dir).record_loader().batch_size(20).shuffle(Shuffle::Global).seed(0).build().unwrap();
    loader.seek(&state).unwrap();
    let want = loader.nth(2).unwrap().unwrap();
    assert_eq!(ids(&dir, &["--resume", "state.json", "-b", "20", "--step", "2"]), want.ids);
    let ran = dir.run(&["order", "x-*", "--resume", "state.json", "-b", "20", "--describe"]);
    assert!(ran.out.ends_with("\n8 steps of 20 samples\n"), "{}", ran.out);
}

#[test]
fn steps_and_options_that_are_refused() {
    let dir = two_shards();
    let order = |args: &[&str]| dir.run(&[&["order", "x-*", "-b", "16"], args].concat());
    order(&["--step", "13"]).fails(2, &["no step 13: there are 13, and the last is 12"]);
    order(&["--step", "0", "--last-batch", "drop", "--global-batch-size", "999"]).fails(2, &["--batch-size"]);
    dir.run(&["order", "x-*", "-b", "999", "--last-batch", "drop", "--step", "0"])
        .fails(2, &["no step 0: there are none"]);
    order(&[]).fails(2, &["--step", "--record", "--describe"]);
    order(&["--step", "1", "--record", "1"]).fails(2, &["--record"]);
    order(&["--record", "1", "--ids"]).fails(2, &["--ids"]);
    order(&["--step", "2..2"]).fails(2, &["expected a range with a step"]);
    // A continuous order has no last step, and a large batch is printed in chunks.
    assert_eq!(ids(&dir, &["-b", "16", "--last-batch", "continuous", "--step", "1000000"]).len(), 16);
    assert_eq!(ids(&dir, &["-b", "5000", "--last-batch", "pad", "--step", "0"]).len(), 5000);
}

/// Record `i` has the label `i`, so a condition on labels selects record numbers.
#[test]
fn filtered_and_balanced_orders() {
    let dir = two_shards();
    let mut some = ids(&dir, &["-b", "50", "--where", "label in 20..30 or label == 150", "--step", "0"]);
    assert!(!some.is_sorted());
    some.sort_unstable();
    assert!(some.into_iter().eq((20..30).chain([150])));
    // A cycle of 200 samples has one sample of each value.
    let mut each = ids(&dir, &["-b", "200", "--balance", "label", "--step", "0"]);
    each.sort_unstable();
    assert!(each.into_iter().eq(0..200));
    dir.run(&["order", "x-*", "-b", "4", "--step", "0", "--where", "label is 3"]).fails(2, &["--where"]);
    dir.run(&["order", "x-*", "-b", "4", "--step", "0", "--balance", "label", "--shuffle", "none"])
        .fails(2, &["--balance", "--shuffle global or block"]);
    // In blocks each record of one window has a class of its own.
    let mut blocks = ids(&dir, &["-b", "200", "--balance", "label", "--step", "0", "--shuffle", "block"]);
    blocks.sort_unstable();
    assert!(blocks.into_iter().eq(0..200));
}
