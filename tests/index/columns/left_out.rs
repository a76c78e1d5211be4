//! Datasets that leave damage out: records that do not decode have no column value, and meet no condition
//! that needs them.

use super::*;
use std::collections::BTreeMap;
use tfseek::example::MessageKind;
use tfseek::order::Subset;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, Damage, Filter, SequenceExampleBuilder, Warning};
use tfseek_testkit::rng::Rng;

/// A payload that is no message.
const MALFORMED: &[u8] = b"\x0a\x10\x0a\x0e123456789abcde";

/// The number of records that warnings say are left out because they do not decode, and the message.
fn left_out(warnings: &[Warning]) -> (u64, String) {
    let mut found = warnings.iter().filter(|warning| warning.kind() == "payloads_skipped");
    let message = found.next().map_or(String::new(), Warning::to_string);
    assert_eq!(found.next(), None);
    (message.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0), message)
}

fn skips(dir: &tempfile::TempDir) -> DatasetOptions {
    DatasetOptions::new().index(index_options(dir.path()).damage(Damage::Skip))
}

/// Two shards of labels. Records 2 and 4 of the first do not decode, and a payload of each shard is damaged.
/// Returns the labels by record number.
fn shards(dir: &Path) -> (Vec<PathBuf>, Vec<Option<i64>>) {
    let payload = |label: i64| ExampleBuilder::new().int64("label", [label]).encode().unwrap();
    let file = |payloads: &[Vec<u8>], damaged: usize| {
        let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let mut file = records(&payloads);
        let start: usize = payloads[..damaged].iter().map(|payload| payload.len() + 16).sum();
        file[start + 13] ^= 1;
        file
    };
    let mut first: Vec<Vec<u8>> = (0..7).map(payload).collect();
    first[2] = MALFORMED.to_vec();
    first[4] = MALFORMED.to_vec();
    let second: Vec<Vec<u8>> = (7..12).map(payload).collect();
    let paths = vec![write(dir, "a.tfrecord", &file(&first, 5)), write(dir, "b.tfrecord", &file(&second, 1))];
    (paths, [Some(0), Some(1), None, Some(3), None, Some(6), Some(7), Some(9), Some(10), Some(11)].to_vec())
}

#[test]
fn columns_have_no_value_for_them_and_are_not_saved() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, labels) = shards(dir.path());
    let saved = || names(&dir.path().join("i")).iter().filter(|name| name.ends_with(".tfrc")).count();
    for _ in 0..2 {
        let ds = skips(&dir).open(&paths).unwrap();
        let column = ds.column("label", &Default::default()).unwrap();
        let values: Vec<Option<i64>> =
            column.iter().map(|v| if let Some(Value::Int(v)) = v { Some(v) } else { None }).collect();
        assert_eq!((values, column.count()), (labels.clone(), 8));
        let (n, message) = left_out(&column.warnings);
        assert_eq!(n, 2, "{message}");
        assert!(message.starts_with("2 records were left out; the first: "), "{message}");
        assert!(message.contains("a.tfrecord: record 2 at byte 68: "), "{message}");
        let classes = column.classes().unwrap();
        assert_eq!(classes.iter().map(|(_, records)| records.len()).sum::<usize>(), 8);
        // The column of the second shard is for all readers.
        assert_eq!(saved(), 1);
        assert!(ds.find_columns(&["label"]).unwrap()[0].is_none());
        // A requested file needs all records.
        let e = ds.column("label", &ColumnOptions { beside: true, ..ColumnOptions::default() }).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Wire { .. }), "{e}");
        assert_eq!((e.location().record, e.location().path.as_deref()), (Some(2), Some(&*paths[0])));
    }
    // Without damage, a reader that does not leave records out sees the error, also after one that does.
    let sound: Vec<&[u8]> = vec![b"", MALFORMED];
    let path = write(dir.path(), "c.tfrecord", &records(&sound));
    let ds = skips(&dir).open(&path).unwrap();
    assert_eq!(
        left_out(
            &ds.column("label", &ColumnOptions { unknown: true, ..ColumnOptions::default() })
                .unwrap()
                .warnings
        )
        .0,
        1
    );
    let e = at(&dir).open(&path).unwrap().column("label", &Default::default()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Wire { .. }) && e.location().record == Some(1), "{e}");
    assert!(
        at(&dir).open(&path).unwrap().select(&"label == 1".parse().unwrap(), &Default::default()).is_err()
    );
}

#[test]
fn they_meet_neither_a_condition_nor_its_complement() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, labels) = shards(dir.path());
    let ds = skips(&dir).open(&paths).unwrap();
    let columns = ds.columns(&["label"], &Default::default()).unwrap();
    let select = |text: &str, options: &ColumnOptions| {
        let filter: Filter = text.parse().unwrap();
        let found = ds.select(&filter, options).unwrap();
        assert_eq!(found.0, ds.select_from(&filter, &columns, options).unwrap().0, "{text}");
        (Vec::from_iter(found.0.iter()), left_out(&found.1).0)
    };
    let decoded: Vec<u64> = (0..10).filter(|&i| labels[i as usize].is_some()).collect();
    for (text, expected, n) in [
        ("label == 3", vec![3], 2),
        ("not label == 3", vec![0, 1, 5, 6, 7, 8, 9], 2),
        ("absent(label)", vec![], 2),
        ("not absent(label)", decoded.clone(), 2),
        ("present(label) or absent(label)", decoded.clone(), 2),
        ("len(label) == 0", vec![], 2),
        ("not any(label) == 3", vec![0, 1, 5, 6, 7, 8, 9], 2),
        // Records that other tests decide are not left out.
        ("record < 4 and label >= 0", vec![0, 1, 3], 1),
        ("record == 2 or label == 3", vec![2, 3], 1),
        ("record > 4 and any(label) > 6", vec![6, 7, 8, 9], 0),
        ("not (record > 4 and any(label) > 6)", vec![0, 1, 2, 3, 4, 5], 0),
        ("record < 4", vec![0, 1, 2, 3], 0),
    ] {
        assert_eq!(select(text, &Default::default()), (expected, n), "{text}");
    }
    // Only the records that are asked for are tested.
    let among = |ids: &[u64]| ColumnOptions {
        among: Some(Subset::from_ids(ids).unwrap()),
        ..ColumnOptions::default()
    };
    assert_eq!(select("not label == 3", &among(&[0, 3, 6])), (vec![0, 6], 0));
    assert_eq!(select("not any(label) == 3", &among(&[0, 2, 3])), (vec![0], 1));
    // A condition that does not fit the values stays an error.
    for text in ["label == 'x'", "any(label) contains 'x'"] {
        let e = ds.select(&text.parse().unwrap(), &Default::default()).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Filter(_)), "{e}");
    }
    let e = ds.select(&"nothing == 1".parse().unwrap(), &Default::default()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::UnknownFeature { .. } | ErrorKind::Filter(_)), "{e}");
}

/// Damage of a shard that is open leaves its index as it is.
#[test]
fn a_record_that_is_damaged_later_is_left_out_too() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, _) = shards(dir.path());
    set_mtime(&paths[1], 1 << 60);
    let ds = skips(&dir).open(&paths).unwrap();
    ds.read(9, &mut Vec::new()).unwrap();
    let mut bytes = fs::read(&paths[1]).unwrap();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    fs::write(&paths[1], bytes).unwrap();
    set_mtime(&paths[1], 1 << 60);
    assert_eq!(
        (ds.len(), skips(&dir).open(&paths).unwrap().len()),
        (10, 9),
        "the index is that of the first scan"
    );
    for text in ["not label == 3", "not any(label) == 3"] {
        let (found, warnings) = ds.select(&text.parse().unwrap(), &Default::default()).unwrap();
        assert_eq!((Vec::from_iter(found.iter()), left_out(&warnings).0), (vec![0, 1, 5, 6, 7, 8], 3));
    }
    assert_eq!(ds.column("label", &Default::default()).unwrap().count(), 7);
}

#[test]
fn a_feature_is_not_unknown_where_no_record_decodes() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "a.tfrecord", &records(&[MALFORMED; 3]));
    let (found, warnings) = skips(&dir)
        .open(&path)
        .and_then(|ds| ds.select(&"label == 3".parse().unwrap(), &Default::default()))
        .unwrap();
    assert_eq!((found.iter().count(), left_out(&warnings).0), (0, 3));
}

/// Payloads of features `a`, `b` and `list`, of which some are flipped, cut or joined.
fn payloads(rng: &mut Rng, n: usize) -> Vec<Vec<u8>> {
    let one = |rng: &mut Rng| {
        let example = ExampleBuilder::new().int64("a", [rng.below(4) as i64]);
        let example = if rng.chance(128) { example.bytes("b", ["x"]) } else { example };
        let list: Vec<i64> = (0..rng.below(4)).map(|k| k as i64).collect();
        match rng.below(8) {
            0 => SequenceExampleBuilder::new().int64("a", [1]).encode().unwrap(),
            _ => example.int64("list", list).encode().unwrap(),
        }
    };
    (0..n)
        .map(|_| {
            let mut payload = one(rng);
            match rng.below(10) {
                0 => {
                    let at = rng.below(payload.len());
                    payload[at] ^= 1 << rng.below(8);
                }
                1 => payload.truncate(rng.below(payload.len())),
                2 => payload.extend(one(rng)),
                3 => payload = rng.bytes(12),
                _ => {}
            }
            payload
        })
        .collect()
}

/// A condition has one result on a record, whatever reads it.
#[test]
fn selections_agree_with_evaluations_of_each_record() {
    const CONDITIONS: [&str; 16] = [
        "a == 1",
        "not a == 1",
        "absent(a)",
        "not absent(b)",
        "a in 0..2 or b == 'x'",
        "a == 1 and b == 'x' or absent(a) and absent(b)",
        "any(list) == 2",
        "not len(list) > 1",
        "record < 20 and a > 0",
        "not (record < 20 and a > 0)",
        "not (record < 20 and any(list) == 2)",
        "split(0.5) or a == 1",
        "split(0.5) and any(list) == 1",
        "split(0.5)",
        "b contains 'x' and a == 2",
        "present(list) and not a == 3",
    ];
    let mut totals = BTreeMap::new();
    for seed in 0..30 {
        let dir = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(seed);
        let payloads = payloads(&mut rng, 60);
        let compression = [Compression::None, Compression::Gzip][seed as usize % 2];
        let paths: Vec<PathBuf> = (0..2).map(|s| dir.path().join(format!("{s}.tfrecord"))).collect();
        for (path, payloads) in paths.iter().zip(payloads.chunks(30)) {
            let mut writer = WriterOptions { compression, ..WriterOptions::default() }.create(path).unwrap();
            payloads.iter().for_each(|payload| writer.write(payload).unwrap());
            writer.close().unwrap();
        }
        let ds = skips(&dir).open(&paths).unwrap();
        for text in CONDITIONS {
            let filter: Filter = text.parse().unwrap();
            let mut records = filter.for_records();
            let (mut accepted, mut skipped, mut refused) = (Vec::new(), 0, false);
            for (i, payload) in (0..).zip(&payloads) {
                match records.accepts(i, payload, MessageKind::Example) {
                    Ok(true) => accepted.push(i),
                    Ok(false) => {}
                    Err(e) if e.is_data() => skipped += 1,
                    Err(e) => {
                        assert!(matches!(e.kind(), ErrorKind::Filter(_)), "{e}");
                        refused = true;
                    }
                }
            }
            match ds.select(&filter, &ColumnOptions { unknown: true, ..ColumnOptions::default() }) {
                Ok((found, warnings)) => {
                    let found = (Vec::from_iter(found.iter()), left_out(&warnings).0, false);
                    assert_eq!(found, (accepted, skipped, refused), "{text}, seed {seed}");
                    *totals.entry(text).or_insert(0) += skipped;
                }
                Err(e) => {
                    assert!(refused && matches!(e.kind(), ErrorKind::Filter(_)), "{text}, seed {seed}: {e}")
                }
            }
        }
    }
    assert!(
        totals.len() == CONDITIONS.len() && totals.values().filter(|n| **n > 20).count() > 10,
        "{totals:?}"
    );
}
