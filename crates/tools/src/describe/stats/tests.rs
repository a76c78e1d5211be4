//! Statistics of whole files, compared with naive twins and with themselves on other ways.

use super::{Statistics, StatsOptions, TableStyle};
use crate::error::ToolsError;
use serde_json::Value;
use std::io::Cursor;
use std::path::PathBuf;
use tfseek::Damage;
use tfseek::frame::put_record;
use tfseek::stream::StreamOptions;
use tfseek::{ExampleBuilder, FeatureBuf, SequenceExampleBuilder};
use tfseek_testkit::rng::Rng;

/// Returns the statistics of files in memory.
fn run(options: &StatsOptions, files: &[Vec<u8>]) -> Result<Statistics, ToolsError> {
    run_with(options, StreamOptions::default(), files)
}

fn run_with(
    options: &StatsOptions,
    streams: StreamOptions,
    files: &[Vec<u8>],
) -> Result<Statistics, ToolsError> {
    let paths: Vec<PathBuf> = (0..files.len()).map(|k| k.to_string().into()).collect();
    let open = |path: &PathBuf| {
        let k: usize = path.to_str().unwrap().parse().unwrap();
        streams.read(Cursor::new(files[k].clone()), path)
    };
    options.run(&paths, &open)
}

fn file(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    payloads.iter().for_each(|payload| put_record(&mut file, payload).unwrap());
    file
}

fn json(stats: &Statistics) -> Value {
    serde_json::from_str(&stats.report().to_string()).unwrap()
}

fn record(rng: &mut Rng, k: usize) -> Vec<u8> {
    let mut builder =
        ExampleBuilder::new().int64("id", [k as i64 * 1_000_003]).int64("label", [rng.below(7) as i64]);
    if rng.chance(200) {
        builder = builder.float("x", (0..rng.below(5)).map(|_| rng.below(10_000) as f32 / 7.0 - 300.0));
    }
    if rng.chance(128) {
        builder = builder.bytes("text", [format!("word {}", rng.below(40))]);
    }
    builder.encode().unwrap()
}

fn records(n: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(7);
    (0..n).map(|k| record(&mut rng, k)).collect()
}

#[test]
fn every_field_of_a_small_file() {
    let payloads = [
        ExampleBuilder::new().int64("a", [3, -5, 0]).bytes("b", [&b"x"[..], b"\xff", b"x"]).encode().unwrap(),
        ExampleBuilder::new()
            .int64("a", [i64::MAX])
            .float("f", [f32::NAN, f32::INFINITY, -0.0, 1.5])
            .encode()
            .unwrap(),
        ExampleBuilder::new().int64("a", [0i64; 0]).feature("b", FeatureBuf::None).encode().unwrap(),
        ExampleBuilder::new().float("a", [2.5]).encode().unwrap(),
    ];
    let found = json(&run(&StatsOptions::default(), &[file(&payloads)]).unwrap());
    assert_eq!(
        (&found["records"], &found["shards"], &found["kinds"]["example"]),
        (&4.into(), &1.into(), &4.into())
    );
    let sum: usize = payloads.iter().map(Vec::len).sum();
    assert_eq!(found["payload_bytes"], sum);
    assert_eq!(found["distinct_payloads"]["count"], 4);
    let [a, b, f] = found["features"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!((&a["name"], &a["kind"]), (&"a".into(), &"int64".into()));
    assert_eq!(
        (&a["present"], &a["absent"], &a["kindless"], &a["empty"]),
        (&3.into(), &0.into(), &0.into(), &1.into())
    );
    assert_eq!((&a["kinds"]["int64"], &a["kinds"]["float"]), (&3.into(), &1.into()));
    assert_eq!((&a["lengths"]["min"], &a["lengths"]["max"]), (&0.into(), &3.into()));
    let ints = &a["int64"];
    // An integer beyond 2^53 stays an integer.
    assert_eq!((&ints["min"], &ints["max"]), (&(-5).into(), &i64::MAX.into()));
    assert_eq!((&ints["values"], &ints["zeros"]), (&4.into(), &1.into()));
    assert_eq!((&ints["distinct"]["count"], &ints["distinct"]["exact"]), (&4.into(), &true.into()));
    assert_eq!((&b["present"], &b["absent"], &b["kindless"]), (&1.into(), &2.into(), &1.into()));
    assert_eq!((&b["bytes"]["not_utf8"], &b["bytes"]["top"][0]["value"]), (&1.into(), &"x".into()));
    assert_eq!(b["bytes"]["top"][1]["value"]["base64"], "/w==");
    let float = &f["float"];
    assert_eq!(
        (&float["nan"], &float["positive_infinity"], &float["zeros"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert_eq!((&float["mean"], &float["max"], &float["values"]), (&0.75.into(), &1.5.into(), &4.into()));
}

#[test]
fn feature_lists_and_other_payloads() {
    let step = |n: i64| FeatureBuf::Int64((0..n).collect());
    let sequences: Vec<_> = (0..20)
        .map(|k| {
            let builder = SequenceExampleBuilder::new().int64("id", [k]);
            builder.feature_list("frames", (0..k % 3).map(step)).encode().unwrap()
        })
        .collect();
    let texts: Vec<_> = (0..20).map(|k| format!("plain text {k}!").into_bytes()).collect();
    let found = json(&run(&StatsOptions::default(), &[file(&sequences), file(&texts)]).unwrap());
    assert_eq!((&found["kinds"]["sequence_example"], &found["kinds"]["bytes"]), (&20.into(), &20.into()));
    let frames = &found["feature_lists"][0];
    assert_eq!((&frames["steps"]["max"], &frames["kinds"]["int64"]), (&2.into(), &19.into()));
    assert_eq!(
        (&frames["present"], &frames["empty"], &frames["lengths"]["max"]),
        (&13.into(), &13.into(), &1.into())
    );
    assert_eq!(found["features"][0]["absent"], 0);
}

#[test]
fn the_result_does_not_depend_on_threads() {
    let files = [file(&records(66_000)), file(&[]), file(&records(1000)), file(&records(67_000))];
    let by = StatsOptions { by: Some("label".to_owned()), ..StatsOptions::default() };
    for options in [StatsOptions::default(), by, StatsOptions { memory: 4 << 20, ..StatsOptions::default() }]
    {
        let expected = run(&options, &files).unwrap().save();
        for threads in [3, 8] {
            assert!(
                run(&StatsOptions { threads: Some(threads), ..options.clone() }, &files).unwrap().save()
                    == expected
            );
        }
    }
}

#[test]
fn merged_statistics_are_those_of_one_run() {
    let first = file(&records(66_000));
    let second = file(&records(3_000));
    let options = StatsOptions { by: Some("label".to_owned()), ..StatsOptions::default() };
    let [one, two, both] = [vec![first.clone()], vec![second.clone()], vec![first, second]]
        .map(|files| run(&options, &files).unwrap());
    let saved = one.save();
    let other = two.save();
    let mut merged = Statistics::from_saved(&saved).unwrap();
    assert!(merged.save() == saved);
    merged.merge(&Statistics::from_saved(&other).unwrap()).unwrap();
    // Two files are two shards, so even the moments are merged in the same order.
    assert!(merged.save() == both.save());
    let different = run(&StatsOptions::default(), &[file(&records(3))]).unwrap();
    let message = merged.merge(&different).unwrap_err().to_string();
    assert_eq!(message, "expected statistics sliced by the same feature, found label and none");
}

#[test]
fn other_text_is_refused() {
    let kind = Some(tfseek::example::MessageKind::Other);
    let messages: Vec<_> = (0..300).map(|_| encoded(&message(&mut Rng::new(1)))).collect();
    let other = run(&StatsOptions { kind, ..StatsOptions::default() }, &[file(&messages)]).unwrap().save();
    let stats = run(&StatsOptions::default(), &[file(&records(300))]).unwrap().save();
    for text in
        ["", "{}", "[]", "{\"tfseek_stats\":2}", "{\"tfseek_stats\":1}", "{\"tfseek_stats\":1,\"state\":{}}"]
    {
        assert!(Statistics::from_saved(text).is_err(), "{text}");
    }
    // No damaged text causes a panic, also when its result is used.
    let mut rng = Rng::new(4);
    for k in 0..200 {
        let mut bytes = if k % 2 == 0 { stats.clone() } else { other.clone() }.into_bytes();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(bytes.len());
            bytes[at] = b"0123456789-,[]{}\"n"[rng.below(18)];
        }
        if let Ok(mut found) = Statistics::from_saved(&String::from_utf8(bytes).unwrap()) {
            let _ = (found.report().to_string(), found.tfdv(), found.table(&TableStyle::default()));
            let _ = found.clone().merge(&found);
            let _ = found.merge(&found.clone());
        }
    }
}

#[test]
fn counts_that_no_records_have_are_refused() {
    let saved = run(&StatsOptions::default(), &[file(&records(300))]).unwrap().save();
    let skipped = |n: u64| saved.replace("\"skipped\":0", &format!("\"skipped\":{n}"));
    assert!(Statistics::from_saved(&skipped(1 << 62)).is_err());
    // The sums of several files cannot overflow either.
    let mut large = Statistics::from_saved(&skipped(1 << 61)).unwrap();
    assert_eq!(large.skipped, 1 << 61);
    assert!(large.merge(&large.clone()).is_err());
}

#[test]
fn little_memory_ends_exact_counting() {
    let files = [file(&records(100_000))];
    let exact = run(&StatsOptions::default(), &files).unwrap();
    assert!(exact.limited().is_empty());
    let found = run(&StatsOptions { memory: 2 << 20, ..StatsOptions::default() }, &files).unwrap();
    assert!(found.limited().contains(&"id".into()), "{:?}", found.limited());
    let exact = json(&exact);
    let found = json(&found);
    let distinct = &found["features"][0]["int64"]["distinct"];
    assert!((distinct["count"].as_f64().unwrap() - 100_000.0).abs() < 4_000.0 && distinct["exact"] == false);
    for field in ["present", "absent", "lengths"] {
        assert_eq!(exact["features"][0][field], found["features"][0][field]);
    }
    assert_eq!(exact["features"][0]["int64"]["max"], found["features"][0]["int64"]["max"]);
}

#[test]
fn many_names_are_bounded() {
    let record = |k: usize| {
        let builder = ExampleBuilder::new();
        (0..100).fold(builder, |builder, n| builder.int64(format!("{k}-{n}"), [1])).encode().unwrap()
    };
    let files = [file(&(0..300).map(record).collect::<Vec<_>>())];
    let stats = run(&StatsOptions::default(), &files).unwrap();
    assert_eq!((stats.records(), stats.not_counted()), (300, 10_000));
    let few = StatsOptions { features: vec!["7-*".to_owned(), "8-8".to_owned()], ..StatsOptions::default() };
    assert_eq!(json(&run(&few, &files).unwrap())["features"].as_array().unwrap().len(), 101);
}

#[test]
fn damage_is_an_error_or_is_skipped() {
    let payloads = records(50);
    let mut damaged = payloads.clone();
    damaged[20] = vec![0x0a, 0x7f];
    let files = [file(&payloads[..10]), file(&damaged)];
    let kind = Some(tfseek::example::MessageKind::Example);
    let e = run(&StatsOptions { kind, ..StatsOptions::default() }, &files).unwrap_err();
    assert!(e.to_string().starts_with("1: record 20 at byte "), "{e}");
    let skip = |options: StatsOptions, files: &[Vec<u8>]| {
        run_with(
            &StatsOptions { damage: Damage::Skip, ..options },
            StreamOptions { damage: Damage::Skip, ..StreamOptions::default() },
            files,
        )
        .unwrap()
    };
    let counts = |stats: &Statistics| {
        (stats.records(), stats.skipped, stats.left_out.0, stats.left_out.1, stats.warnings.len())
    };
    let stats = skip(StatsOptions { kind, ..StatsOptions::default() }, &files);
    assert_eq!(counts(&stats), (59, 1, 0, 0, 0));
    assert!(stats.first_skipped.as_ref().unwrap().starts_with("1: record 20"));
    // A damaged payload and a damaged length cost their records.
    let mut flipped = file(&payloads);
    flipped[12] ^= 1;
    let lens = [0, 2].map(|i| 16 + payloads[i].len() as u64);
    let stats = skip(StatsOptions::default(), &[flipped.clone(), file(&payloads)]);
    assert_eq!(counts(&stats), (99, 0, 1, lens[0], 1));
    let third = 2 * 16 + payloads[0].len() + payloads[1].len();
    flipped[third] ^= 1;
    let stats = skip(
        StatsOptions { threads: Some(3), ..StatsOptions::default() },
        &[flipped.clone(), file(&payloads)],
    );
    assert_eq!(counts(&stats), (98, 0, 2, lens[0] + lens[1], 1));
    let words = format!("; 2 damaged ranges of {} bytes left out\n", lens[0] + lens[1]);
    assert!(stats.table(&TableStyle::default()).contains(&words));
    let saved = Statistics::from_saved(&stats.save()).unwrap();
    assert_eq!(counts(&saved), (98, 0, 2, lens[0] + lens[1], 0));
    assert_eq!(json(&saved)["damaged_ranges"], 2);
    assert!(run(&StatsOptions::default(), &[flipped]).is_err());
}

#[test]
fn slices_are_the_statistics_of_their_records() {
    let payloads = records(2_000);
    let stats =
        run(&StatsOptions { by: Some("label".to_owned()), ..StatsOptions::default() }, &[file(&payloads)])
            .unwrap();
    let found = json(&stats);
    assert_eq!(found["by"], "label");
    for slice in found["slices"].as_array().unwrap() {
        let value = slice["value"].as_i64().unwrap();
        let of: Vec<_> = payloads
            .iter()
            .filter(|p| tfseek::Example::new(p).int64("label").unwrap().first() == Some(value))
            .cloned()
            .collect();
        let alone = json(&run(&StatsOptions::default(), &[file(&of)]).unwrap());
        assert_eq!((&alone["features"], &alone["records"]), (&slice["features"], &slice["records"]));
    }
    let e = run(&StatsOptions { by: Some("id".to_owned()), ..StatsOptions::default() }, &[file(&payloads)])
        .unwrap_err();
    assert_eq!(e.to_string(), "id: expected at most 1000 values to slice by, found more");
    let e = run(&StatsOptions { by: Some("x".to_owned()), ..StatsOptions::default() }, &[file(&payloads)])
        .unwrap_err();
    assert!(e.to_string().starts_with("x: expected one value to slice by, found "), "{e}");
}

#[test]
fn a_table_has_a_line_for_each_feature() {
    let stats = run(&StatsOptions::default(), &[file(&records(500))]).unwrap();
    let table = stats.table(&TableStyle::default());
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines[0], "500 Examples, 4 features; every value seen");
    assert!(lines[3].starts_with("  id       int64  all  ") && lines.len() == 7, "{table}");
    let style = TableStyle { width: Some(60), ..TableStyle::default() };
    assert!(stats.table(&style).lines().all(|line| line.chars().count() <= 60));
    let empty = run(&StatsOptions::default(), &[]).unwrap();
    assert_eq!(empty.table(&TableStyle::default()), "0 records\n");
}

/// A message of random fields: 1 is a varint, 2 a string, 3 four bytes, 4 eight bytes. Each occurs up to
/// three times, in any order.
fn message(rng: &mut Rng) -> Vec<(u32, u64)> {
    (0..1 + rng.below(5))
        .map(|_| match 1 + rng.below(4) as u32 {
            1 => (1, if rng.chance(10) { u64::MAX } else { rng.below(100_000) as u64 }),
            2 => (2, rng.below(200) as u64),
            3 => (3, u64::from((rng.below(1_000) as f32 / 8.0).to_bits())),
            number => {
                (number, if rng.chance(5) { f64::NAN } else { rng.below(1_000) as f64 - 500.5 }.to_bits())
            }
        })
        .collect()
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn encoded(fields: &[(u32, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for &(number, value) in fields {
        match number {
            1 => {
                out.push(8);
                varint(value, &mut out);
            }
            2 => {
                out.push(2 << 3 | 2);
                varint(value, &mut out);
                out.extend(vec![b'a'; value as usize]);
            }
            3 => {
                out.push(3 << 3 | 5);
                out.extend((value as u32).to_le_bytes());
            }
            _ => {
                out.push(4 << 3 | 1);
                out.extend(value.to_le_bytes());
            }
        }
    }
    out
}

#[test]
fn fields_of_other_messages_are_those_of_a_naive_twin() {
    let mut rng = Rng::new(9);
    let messages: Vec<_> = (0..70_000).map(|_| message(&mut rng)).collect();
    let payloads: Vec<_> = messages.iter().map(|fields| encoded(fields)).collect();
    let kind = Some(tfseek::example::MessageKind::Other);
    let stats =
        run(&StatsOptions { kind, threads: Some(1), ..StatsOptions::default() }, &[file(&payloads)]).unwrap();
    let found = json(&stats);
    assert_eq!((&found["payloads"], &found["kinds"]["bytes"]), (&"message".into(), &70_000.into()));
    let fields = found["fields"].as_array().unwrap();
    assert_eq!(fields.len(), 4);
    let types = [("varint", "varint"), ("string", "len"), ("fixed32", "fixed32"), ("fixed64", "fixed64")];
    for (number, (field, (value_type, wire))) in (1..).zip(fields.iter().zip(types)) {
        let values: Vec<u64> =
            messages.iter().flatten().filter(|(n, _)| *n == number).map(|(_, v)| *v).collect();
        let per_record: Vec<_> = messages
            .iter()
            .map(|fields| fields.iter().filter(|(n, _)| *n == number).count())
            .filter(|n| *n > 0)
            .collect();
        assert_eq!((&field["number"], &field["name"]), (&number.into(), &Value::Null));
        assert_eq!(field["present"], per_record.len());
        assert_eq!(field["absent"], 70_000 - per_record.len());
        assert_eq!(field["types"], serde_json::json!({ value_type: values.len() }));
        assert_eq!(field["wire_types"], serde_json::json!([wire]));
        assert_eq!(field["values"]["max"], *per_record.iter().max().unwrap());
        assert_eq!(field["values"]["mean"], values.len() as f64 / per_record.len() as f64);
        let sorted = |keys: Vec<f64>| -> (f64, f64) {
            keys.iter()
                .filter(|v| v.is_finite())
                .fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)))
        };
        let bounds = |at: &Value| (at["min"].as_f64().unwrap(), at["max"].as_f64().unwrap());
        match number {
            1 => {
                let values: Vec<i64> = values.iter().map(|v| *v as i64).collect();
                let distinct: std::collections::BTreeSet<_> = values.iter().collect();
                let ints = &field["int64"];
                assert_eq!(
                    (&ints["min"], &ints["max"]),
                    (&(-1).into(), &(**distinct.last().unwrap()).into())
                );
                assert_eq!(
                    (&ints["values"], &ints["distinct"]["count"]),
                    (&values.len().into(), &distinct.len().into())
                );
            }
            2 => {
                let mut values = values;
                values.sort_unstable();
                let median = values[values.len().div_ceil(2) - 1];
                assert_eq!(field["lengths"]["quantiles"]["p50"], median);
            }
            3 => {
                let values = values.iter().map(|v| f32::from_bits(*v as u32).into()).collect();
                assert_eq!(bounds(&field["fixed32"]), sorted(values));
            }
            _ => assert_eq!(
                bounds(&field["fixed64"]),
                sorted(values.iter().map(|v| f64::from_bits(*v)).collect())
            ),
        }
    }
    // Any number of threads, and merged parts.
    let files = [file(&payloads[..66_000]), file(&payloads[66_000..])];
    let options = StatsOptions { kind, ..StatsOptions::default() };
    let both = run(&StatsOptions { threads: Some(1), ..options.clone() }, &files).unwrap();
    for threads in [2, 8] {
        assert!(
            run(&StatsOptions { threads: Some(threads), ..options.clone() }, &files).unwrap().save()
                == both.save()
        );
    }
    let [first, second] = files.map(|file| run(&options, &[file]).unwrap().save());
    let mut merged = Statistics::from_saved(&first).unwrap();
    assert!(merged.save() == first);
    merged.merge(&Statistics::from_saved(&second).unwrap()).unwrap();
    assert!(merged.save() == both.save());
    let table = stats.table(&TableStyle::default());
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(
        lines[0],
        "70,000 other records (protobuf messages of an unknown type), 4 fields; every value seen"
    );
    assert!(lines[2].starts_with("  field  type     in ") && lines.len() == 7, "{table}");
    // Fields are selected by their numbers.
    let one =
        run(&StatsOptions { features: vec!["3".to_owned()], ..options }, &[file(&payloads[..100])]).unwrap();
    assert_eq!((one.check_feature("3"), one.check_feature("2")), (Ok(()), Err(None)));
    assert_eq!(json(&one)["fields"].as_array().unwrap().len(), 1);
}

#[test]
fn numbers_of_fields_are_bounded() {
    let payload = |first: u32| -> Vec<u8> {
        (first..first + 600).flat_map(|number| [(number << 3) as u8 | 0x80, (number >> 4) as u8, 0]).collect()
    };
    let kind = Some(tfseek::example::MessageKind::Other);
    let files = [file(&[payload(100), payload(400)]), file(&[payload(1000), vec![0xff]])];
    let stats = run(&StatsOptions { kind, ..StatsOptions::default() }, &files).unwrap();
    let found = json(&stats);
    // Payloads that are no messages have no fields.
    assert_eq!((&found["payloads"], found["fields"].as_array().unwrap().len()), (&"bytes".into(), 0));
    assert_eq!(stats.not_counted(), 500);
    let found = json(&run(&StatsOptions { kind, ..StatsOptions::default() }, &files[..1]).unwrap());
    assert_eq!(found["fields"].as_array().unwrap().len(), 900);
    // Little memory.
    let mut rng = Rng::new(2);
    let payloads: Vec<_> = (0..100_000).map(|_| encoded(&[(1, rng.u64())])).collect();
    let stats =
        run(&StatsOptions { kind, memory: 2 << 20, ..StatsOptions::default() }, &[file(&payloads)]).unwrap();
    assert_eq!(stats.limited(), ["field 1"]);
    let found = json(&stats);
    let distinct = &found["fields"][0]["int64"]["distinct"];
    assert!((distinct["count"].as_f64().unwrap() - 100_000.0).abs() < 4_000.0 && distinct["exact"] == false);
    assert_eq!((&found["fields"][0]["present"], &found["limited"][0]), (&100_000.into(), &"field 1".into()));
}

/// With a condition, statistics are of the records that meet it. The features of the condition that no record
/// has are named.
#[test]
fn a_condition_selects_records() {
    let all = records(5000);
    let selects = |text: &str| StatsOptions {
        filter: Some(text.parse().unwrap()),
        threads: Some(3),
        ..StatsOptions::default()
    };
    for condition in
        ["label in 2, 4..6 and present(text)", "len(x) > 2", "any(x) > 100 or label == 1", "record in 7..99"]
    {
        let filter: tfseek::Filter = condition.parse().unwrap();
        let mut naive = filter.for_records();
        let kept: Vec<Vec<u8>> = all
            .iter()
            .zip(0..)
            .filter(|(payload, i)| naive.accepts(*i, payload, tfseek::example::MessageKind::Example).unwrap())
            .map(|(payload, _)| payload.clone())
            .collect();
        assert!(!kept.is_empty() && kept.len() < all.len(), "{condition}");
        let mut expected = json(&run(&StatsOptions::default(), &[file(&kept)]).unwrap());
        expected["where"] = condition.into();
        assert_eq!(json(&run(&selects(condition), &[file(&all)]).unwrap()), expected, "{condition}");
    }
    let mut stats = run(&selects("absent(nothing) and label < 3"), &[file(&all), file(&all)]).unwrap();
    assert_eq!(stats.unseen, ["nothing"]);
    let saved = Statistics::from_saved(&stats.save()).unwrap();
    assert_eq!(saved.report().to_string(), stats.report().to_string());
    assert_eq!(saved.unseen, ["nothing"]);
    let other = run(&selects("label < 3"), &[file(&all)]).unwrap();
    let e = stats.merge(&other).unwrap_err();
    assert!(e.to_string().contains("found absent(nothing) and label < 3 and label < 3"), "{e}");
    // The number of records in the first file is not known when the second one is read.
    let e = run(&selects("record < 3"), &[file(&all), file(&all)]).unwrap_err();
    assert!(e.to_string().contains("the record number is not known"), "{e}");
    let wrong = run(&selects("label == \"a\""), &[file(&all)]).unwrap_err();
    assert!(wrong.to_string().contains("label"), "{wrong}");
}
