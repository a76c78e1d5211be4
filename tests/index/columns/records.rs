//! Column values extracted from records, for one shard and for several.

use super::*;
use tfseek::SequenceExampleBuilder;

#[test]
fn each_kind_and_each_count() {
    for n in [0, 1, 7, 8, 9, 63, 64, 65, 1000] {
        let some = |i: usize| !i.is_multiple_of(3);
        let all = |f: &dyn Fn(usize) -> Scalar| -> Vec<Option<Scalar>> {
            (0..n).map(|i| some(i).then(|| f(i))).collect()
        };
        check(&all(&|i| Scalar::Int([i64::MIN, -1, 0, 5, i64::MAX][i % 5])));
        check(&all(&|i| {
            Scalar::Float([f32::NEG_INFINITY, -0.0, 0.0, 1e-45, f32::from_bits(0x7fc0_1234)][i % 5])
        }));
        check(&all(&|i| Scalar::Str([&b""[..], b"\xff\0", b"cat", b"dog"][i % 4].to_vec())));
        check(&vec![None; n]);
    }
    assert_eq!(check(&[None, None]).kind(), DType::Int64, "a shard without values");
    assert_eq!(memory(&shard_of(&[None, None])).column("nothing", &Default::default()).unwrap().kind, None);
}

#[test]
fn absent_without_a_kind_and_empty_are_none() {
    let seven = ExampleBuilder::new().int64("label", [7]).encode().unwrap();
    let empty_of_another_kind = ExampleBuilder::new().float("label", [0f32; 0]).encode().unwrap();
    let payloads: [&[u8]; 6] = [
        b"",
        b"\x0a\x0b\x0a\x09\x0a\x05label\x12\x00",
        &empty_of_another_kind,
        b"\x0a\x09\x0a\x07\x0a\x05label",
        &seven,
        // The last entry of a key counts.
        &[&seven[..], b"\x0a\x0b\x0a\x09\x0a\x05label\x12\x00"].concat(),
    ];
    let ds = memory(&records(&payloads));
    let column = ds.column("label", &Default::default()).unwrap();
    assert_eq!(column.iter().collect::<Vec<_>>(), [None, None, None, None, Some(Value::Int(7)), None]);
}

#[test]
fn contexts_of_sequences() {
    let payload = |id: i64| {
        SequenceExampleBuilder::new()
            .int64("id", [id])
            .feature_list("frames", [tfseek::FeatureBuf::Float(vec![0.5, 1.5])])
            .encode()
            .unwrap()
    };
    let ds = memory(&records(&[&payload(5), &payload(-5)]));
    assert_eq!(
        ds.column("id", &Default::default()).unwrap().iter().collect::<Vec<_>>(),
        [Some(Value::Int(5)), Some(Value::Int(-5))]
    );
}

#[test]
fn features_that_cannot_be_a_column() {
    let dir = tempfile::tempdir().unwrap();
    let i = |n: &[i64]| ExampleBuilder::new().int64("label", n.iter().copied()).encode().unwrap();
    let f = ExampleBuilder::new().float("label", [1.0]).encode().unwrap();
    let good = i(&[1]);
    let malformed = [&good[..], b"\x0a\x05\x0a"].concat();
    // Another feature is malformed, so the payload is malformed.
    let other = [&good[..], b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\xff"].concat();
    for (bad, why) in [(i(&[1, 2]), "two"), (f, "kind"), (malformed, "wire"), (other, "wire")] {
        let path = write(dir.path(), "x", &records(&[&good, &good, &bad, &good]));
        for open in [at(&dir), DatasetOptions::new().index(index_options(dir.path()).mode(IndexMode::Memory))]
        {
            let e = open.open(&path).unwrap().column("label", &Default::default()).unwrap_err();
            let right = match e.kind() {
                ErrorKind::Feature(FeatureError::Count { expected: 1, found: 2 }) => "two",
                ErrorKind::Feature(FeatureError::WrongKind { expected: "int64", found: "float" }) => "kind",
                ErrorKind::Wire { .. } => "wire",
                _ => "other",
            };
            assert_eq!(right, why, "{e}");
            assert_eq!((e.location().record, e.location().path.as_deref()), (Some(2), Some(&*path)));
        }
        assert_eq!(names(&dir.path().join("i")), ["x.tfri"], "nothing is saved");
    }
    // A damaged payload is an error, whatever verification the readers use.
    let mut shard = records(&[&good, &good]);
    let at_payload = shard.len() - 6;
    shard[at_payload] ^= 1;
    let path = write(dir.path(), "x", &shard);
    let ds = at(&dir).verify(tfseek::Verify::Header).open(&path).unwrap();
    let e = ds.column("label", &Default::default()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptData { .. }) && e.location().record == Some(1), "{e}");
}

#[test]
fn shards_are_joined_by_value() {
    let dir = tempfile::tempdir().unwrap();
    let shards = [strs(&["dog", "cat", "cat"]), vec![None, None], vec![], strs(&["ant", "cat", "dog"])];
    let paths: Vec<PathBuf> = shards
        .iter()
        .enumerate()
        .map(|(s, values)| write(dir.path(), &format!("s{s}"), &shard_of(values)))
        .collect();
    for threads in [1, 3] {
        let open = DatasetOptions::new().index(index_options(dir.path()).threads(threads));
        let ds = open.open(&paths).unwrap();
        let column = ds.column("label", &Default::default()).unwrap();
        same(&column, &shards.concat());
        assert_eq!(column.kind, Some(DType::Bytes));
        let classes = column.classes().unwrap();
        let all: Vec<_> = classes.iter().map(|(value, list)| (value.to_string(), list.to_vec())).collect();
        let want = [("\"ant\"", vec![5]), ("\"cat\"", vec![1, 2, 6]), ("\"dog\"", vec![0, 7])];
        assert!(all.iter().map(|(v, l)| (v.as_str(), l.clone())).eq(want), "{all:?}");
        assert_eq!(
            ds.select(&"label == 'dog' or absent(label)".parse().unwrap(), &Default::default())
                .unwrap()
                .0
                .iter()
                .collect::<Vec<_>>(),
            [0, 3, 4, 7]
        );
    }
    assert_eq!(names(&dir.path().join("i")).len(), 8, "one index and one column per shard");
    // A shard with values of another kind.
    let odd = write(dir.path(), "odd", &shard_of(&ints([4])));
    let ds = at(&dir).open([&paths[1], &paths[0], &odd]).unwrap();
    let e = ds.column("label", &Default::default()).unwrap_err();
    assert!(
        matches!(e.kind(), ErrorKind::Feature(FeatureError::WrongKind { expected: "bytes", found: "int64" })),
        "{e}"
    );
    assert_eq!((e.location().path.as_deref(), e.location().feature.as_deref()), (Some(&*odd), Some("label")));
}

#[test]
fn several_features_in_one_scan() {
    let dir = tempfile::tempdir().unwrap();
    let payload = |i: i64| {
        ExampleBuilder::new()
            .int64("a", [i])
            .float("b", [i as f32])
            .bytes("c", [[i as u8]])
            .int64("d", [0i64; 0])
            .encode()
            .unwrap()
    };
    let payloads: Vec<Vec<u8>> = (0..100).map(payload).collect();
    let path = write(dir.path(), "x", &records(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    drop(at(&dir).open(&path).unwrap());
    let scanned = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&scanned);
    let ds = at(&dir).progress(counted(counter)).open(&path).unwrap();
    let columns = ds.columns(&["a", "b", "c", "a"], &Default::default()).unwrap();
    assert_eq!(columns.len(), 4);
    for i in 0..100 {
        let want =
            [Value::Int(i as i64), Value::Float(i as f32), Value::Bytes(&[i as u8]), Value::Int(i as i64)];
        assert!(columns.iter().zip(want).all(|(column, want)| column.get(i) == Some(want)));
    }
    let len = fs::metadata(&path).unwrap().len();
    assert_eq!(scanned.load(Relaxed), len, "once");
    ds.columns(&["c", "d"], &Default::default()).unwrap();
    assert_eq!(scanned.load(Relaxed), 2 * len, "only the missing columns are scanned");
    ds.columns(&["a", "b", "c", "d"], &Default::default()).unwrap();
    assert_eq!(scanned.load(Relaxed), 2 * len);
}

#[test]
fn columns_of_a_packed_set() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> =
        (0..3).map(|s| write(dir.path(), &format!("s{s}"), &shard_of(&ints(s..s + 5)))).collect();
    let (pack, _) = tfseek::index::write_pack("all", &paths, &options()).unwrap();
    let ds = at(&dir).open(&pack).unwrap();
    let want: Vec<_> = (0..3).flat_map(|s| ints(s..s + 5)).collect();
    same(&ds.column("label", &Default::default()).unwrap(), &want);
    let again = at(&dir).progress(nothing_scanned).open(&pack).unwrap();
    same(&again.column("label", &Default::default()).unwrap(), &want);
    ds.columns(&["label"], &ColumnOptions { beside: true, ..ColumnOptions::default() }).unwrap();
}
