//! Filters select the same records as a loop over the values.

use super::*;
use tfseek::Filter;
use tfseek::example::MessageKind;
use tfseek::frame::put_record;

/// The expected result of a filter for a record's value.
type Condition<'a> = &'a dyn Fn(Option<i64>) -> bool;

#[test]
fn filters_agree_with_a_loop() {
    let values: Vec<Option<i64>> = (0..200).map(|i| (i % 5 != 4).then_some(i % 13 - 4)).collect();
    let ds = memory(&shard_of(&values.iter().map(|v| v.map(Scalar::Int)).collect::<Vec<_>>()));
    let ids = |text: &str| ds.select(&text.parse().unwrap(), &Default::default()).unwrap().0;
    let want = |f: Condition<'_>| Vec::from_iter((0..200).filter(|&i| f(values[i as usize])));
    let cases: [(&str, Condition<'_>); 11] = [
        ("label == 3", &|v| v == Some(3)),
        ("not label == 3", &|v| v != Some(3)),
        ("label<=-2", &|v| v.is_some_and(|v| v <= -2)),
        ("label >= +5", &|v| v.is_some_and(|v| v >= 5)),
        ("label in 1,2, 7", &|v| v.is_some_and(|v| [1, 2, 7].contains(&v))),
        ("label in ..0, 8..", &|v| v.is_some_and(|v| !(0..8).contains(&v))),
        ("label in 7..3", &|_| false),
        ("present(label)", &|v| v.is_some()),
        ("absent ( label )", &|v| v.is_none()),
        ("absent(nothing) and (label == 1 or label == 2)", &|v| v == Some(1) || v == Some(2)),
        ("not not label == 1 and not absent(label) or nothing == 'x'", &|v| v == Some(1)),
    ];
    for (text, f) in cases {
        let found = ids(text);
        let listed: Vec<u64> = found.iter().collect();
        assert_eq!(listed, want(f), "{text}");
        assert_eq!(found.len(), listed.len() as u64);
        assert!((0..300).all(|i| found.rank(i).is_some() == listed.contains(&i)), "{text}");
    }
    for text in ["label == 3.5", "label == 'x'", "label in 1, 99999999999999999999", "label in 'a'..'b'"] {
        let e = ds.select(&text.parse().unwrap(), &Default::default()).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Filter(_)) && e.to_string().contains("\"label\""), "{e}");
    }
    let columns = ds.columns(&["label"], &Default::default()).unwrap();
    let filter = "label == 3".parse().unwrap();
    assert_eq!(ds.select_from(&filter, &columns, &Default::default()).unwrap().0.len(), 12);
    let e = ds.select_from(&"nowhere == 'x'".parse().unwrap(), &columns, &Default::default()).unwrap_err();
    let not_given = matches!(e.kind(), ErrorKind::Options(OptionsError::ColumnNotGiven));
    assert!(not_given && e.to_string().contains("\"nowhere\""), "{e}");
    let empty = memory(b"");
    assert!(empty.select_from(&filter, &columns, &Default::default()).is_err(), "columns of another dataset");
    assert!(empty.select(&"not present(x)".parse().unwrap(), &Default::default()).unwrap().0.is_empty());
}

/// A name stands for its number wherever values are compared for equality: in columns, in records, and in
/// lists.
#[test]
fn names_of_values_select_as_their_numbers() {
    let record = |i: i64| {
        let record =
            ExampleBuilder::new().int64("label", [i % 5 - 1]).int64("all", (0..i % 4).map(|k| k + i % 3));
        record.bytes("text", [["cat", "dog"][i as usize % 2]]).encode().unwrap()
    };
    let mut bytes = Vec::new();
    (0..60).for_each(|i| put_record(&mut bytes, &record(i)).unwrap());
    let ds = memory(&bytes);
    let names = [("cat", 0), ("dog", 1), ("it's", 2), ("cat", 3), ("", -1)];
    let named = |text: &str| {
        let filter: Filter = text.parse().unwrap();
        filter.with_names("label", names).and_then(|filter| filter.with_names("all", names))
    };
    let ids = |filter: &Filter| {
        let (found, _) = ds.select(filter, &Default::default()).unwrap();
        let (mut records, mut buf) = (filter.for_records(), Vec::new());
        for i in 0..ds.len() {
            let payload = ds.read(i, &mut buf).unwrap().payload().to_vec();
            let accepted = records.accepts(i, &payload, MessageKind::Example).unwrap();
            assert_eq!(accepted, found.rank(i).is_some(), "{filter} {i}");
        }
        found.iter().collect::<Vec<u64>>()
    };
    for (text, numbers) in [
        ("label == 'dog'", "label == 1"),
        ("label != \"cat\"", "label != 0"),
        ("not label == ''", "not label == -1"),
        ("label in 'cat', 2, 'dog' and text == 'cat'", "label in 0, 2, 1 and text == 'cat'"),
        ("any(all) == 'it\\'s'", "any(all) == 2"),
        ("all(all) in 'dog', 3.. or label == 'dog'", "all(all) in 1, 3.. or label == 1"),
    ] {
        let (named, numbers): (Filter, Filter) = (named(text).unwrap(), numbers.parse().unwrap());
        assert_eq!(named.to_string(), text);
        assert_eq!(named, numbers);
        assert_eq!(named.column_features(), numbers.column_features());
        let found = ids(&named);
        assert_eq!(found, ids(&numbers), "{text}");
        assert!(!found.is_empty() && found.len() < 60, "{text}");
    }
    // Only comparisons for equality have names, and only those of the feature itself.
    for text in ["label < 'dog'", "label in 'cat'..'dog'", "label contains 'a'"] {
        let e = ds.select(&named(text).unwrap(), &Default::default()).unwrap_err();
        assert!(e.to_string().contains("has values of int64: expected a 64-bit integer"), "{e}");
    }
    assert_eq!(named("format(label) == 'png'").unwrap(), "format(label) == 'png'".parse().unwrap());
    for (text, reason) in [
        (
            "label == 'Dog'",
            "byte 9: feature \"label\" has no value named \"Dog\"; the nearest name is \"dog\"",
        ),
        ("any(all) in 'cat', 'bird'", "the names are \"cat\", \"dog\", \"it's\", \"cat\", \"\""),
        ("label == '\\xff\\n'", "named \"\u{fffd}\\n\"; the names are"),
    ] {
        let e = named(text).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Filter(_)) && e.to_string().contains(reason), "{e}");
    }
}

/// Returns a dataset of two shards of ten records with lists, strings and images.
fn lists() -> Dataset {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0".as_slice();
    let record = |i: i64| {
        let image = if i % 2 == 0 { png } else { b"no image" };
        let mut record = ExampleBuilder::new()
            .int64("id", [i])
            .int64("objects", (0..i % 4).map(|k| i + k))
            .bytes("caption", [format!("a dog and {i} cats")])
            .bytes("image", [image]);
        if i == 17 {
            record = record.float("rare", [f32::NAN]);
        }
        record.encode().unwrap()
    };
    let shard = |from: i64| {
        let mut bytes = Vec::new();
        (from..from + 10).for_each(|i| put_record(&mut bytes, &record(i)).unwrap());
        tfseek::io::Region::from(bytes)
    };
    let options = DatasetOptions::new().index(IndexMode::Memory);
    options.open_regions([shard(0), shard(10)]).unwrap().dataset().clone()
}

#[test]
fn tests_of_lists_strings_and_images_read_records() {
    let ds = lists();
    let ids = |text: &str| {
        let filter: Filter = text.parse().unwrap();
        let (found, _) = ds.select(&filter, &Default::default()).unwrap();
        let mut records = filter.for_records();
        let mut buf = Vec::new();
        for i in 0..ds.len() {
            let payload = ds.read(i, &mut buf).unwrap().payload();
            let accepted = records.accepts(i, payload, MessageKind::Example).unwrap();
            assert_eq!(found.rank(i).is_some(), accepted, "{text}: {i}");
        }
        Vec::from_iter(found.iter())
    };
    assert_eq!(ids("len(objects) == 3"), [3, 7, 11, 15, 19]);
    assert_eq!(ids("len(objects) == 0 and id < 10"), [0, 4, 8]);
    assert_eq!(ids("any(objects) == 15"), [14, 15]);
    assert_eq!(ids("all(objects) > 14"), [15, 17, 18, 19], "not a record without values");
    assert_eq!(ids("not all(objects) > 14 and id > 14"), [16]);
    assert_eq!(ids("all(objects) in 1..=3"), [1, 2], "record 3 has 5");
    assert_eq!(ids("caption contains 'g and 1' and id < 12"), [1, 10, 11]);
    assert_eq!(ids(r"caption matches '\b1?[89] cats$'"), [8, 9, 18, 19]);
    assert_eq!(ids("bytes(caption) == 17 and id < 12"), [10, 11]);
    assert_eq!(ids("width(image) == 320 and height(image) < 241 and record in 3..8"), [4, 6]);
    assert_eq!(ids("format(image) == 'png' and record >= 16"), [16, 18]);
    assert_eq!(ids("not format(image) == 'png' and record < 4"), [1, 3], "no image has no format");
    assert_eq!(ids("rare is nan"), [17]);
    assert_eq!(ids("rare is not nan"), [0; 0]);
    assert_eq!(ids("present(objects) and id > 15"), [17, 18, 19], "a column is not possible");
    assert_eq!((ids("split(1)").len(), ids("split(0)").len()), (20, 0));
    let (train, val) = (ids("not split(0.3, seed=7)"), ids("split(0.3, seed=7)"));
    assert_eq!((train.len() + val.len(), (3..10).contains(&val.len())), (20, true));
    assert_ne!(ids("split(0.3)"), val);
    let (split, mut buf) = (tfseek::order::Split::new(&[0.3]).unwrap(), Vec::new());
    let mut hash = |i: u64| tfseek::order::Split::hash(ds.read(i, &mut buf).unwrap().payload(), 7);
    assert_eq!(val, (0..20).filter(|&i| split.number(hash(i)) == Some(0)).collect::<Vec<_>>());
}

/// Returns ten records, of which the values of `m` have two kinds, and record 9 has two values of `id`.
fn two_kinds() -> Dataset {
    let record = |i: i64| {
        let record = ExampleBuilder::new().int64("id", if i == 9 { vec![9, 9] } else { vec![i] });
        match i % 3 {
            0 => record.int64("m", [i]),
            1 => record.bytes("m", [format!("{i}")]),
            _ => record,
        }
        .encode()
        .unwrap()
    };
    let mut bytes = Vec::new();
    (0..10).for_each(|i| put_record(&mut bytes, &record(i)).unwrap());
    memory(&bytes)
}

#[test]
fn a_condition_has_one_result_for_columns_and_records() {
    let ds = two_kinds();
    let by_records = |text: &str| {
        let mut records = text.parse::<Filter>().unwrap().for_records();
        let mut buf = Vec::new();
        (0..ds.len())
            .map(|i| records.accepts(i, ds.read(i, &mut buf).unwrap().payload(), MessageKind::Example).ok())
            .collect::<Option<Vec<bool>>>()
    };
    let by_columns = |text: &str| {
        let found = ds.select(&text.parse().unwrap(), &Default::default());
        found.ok().map(|(found, _)| (0..ds.len()).map(|i| found.rank(i).is_some()).collect::<Vec<bool>>())
    };
    for (text, is_error) in [
        ("present(m)", false),
        ("absent(m)", false),
        ("not present(m) or id == 3 and record < 9", false),
        ("len(m) == 1", false),
        ("m == 3", true),
        ("m == 3 and record in 0, 3, 6", false),
        ("record in 0, 3, 6 and m == 3", false),
        ("m == 3 or present(m) and record < 9", false),
        ("id < 5", true),
        ("id < 5 and record < 9", false),
        ("record == 9 or id < 5", false),
        ("id == 'x' and absent(id)", false),
        ("any(id) == 'x' and record > 20", false),
        ("any(m) == 3 and record in 0, 3", false),
        ("record in 0, 3 and any(m) contains 'x' or m == 3", true),
    ] {
        let records = by_records(text);
        assert_eq!(records.is_none(), is_error, "{text}");
        assert_eq!(by_columns(text), records, "{text}");
    }
    // Only the records that are asked for are tested.
    for (text, ids, expected) in [
        ("id < 3", vec![0, 1, 2, 3, 4], vec![0, 1, 2]),
        ("m == 3", vec![0, 2, 3, 5], vec![3]),
        ("m == '4'", vec![4, 5, 7, 8], vec![4]),
        ("id == 'x'", vec![], vec![]),
    ] {
        let among = Some(tfseek::order::Subset::from_ids(ids).unwrap());
        let options = ColumnOptions { among, ..ColumnOptions::default() };
        let (found, _) = ds.select(&text.parse().unwrap(), &options).unwrap();
        assert_eq!(Vec::from_iter(found.iter()), expected, "{text}");
        assert!(ds.select(&text.parse().unwrap(), &Default::default()).is_err(), "{text}");
    }
}

#[test]
fn errors_of_tests_that_read_records() {
    let ds = lists();
    let select = |text: &str| ds.select(&text.parse().unwrap(), &Default::default());
    let error = |text: &str| select(text).unwrap_err();
    let e = error("id > 3 and objects == 5");
    assert_eq!(
        e.to_string(),
        "<memory 0>: record 6 at byte 690: feature \"objects\": invalid filter: at byte 11: feature \"objects\" has 2 values: \
         expected one; `any(..)`, `all(..)` and `len(..)` test lists"
    );
    let ErrorKind::Filter(filter) = e.kind() else { panic!("{e:?}") };
    assert_eq!(filter.excerpt(), "id > 3 and objects == 5\n           ^");
    for (text, record, offset, reason) in [
        ("any(objects) == 'x'", 1, 16, "has values of int64: expected a 64-bit integer, found \"x\""),
        ("objects contains 'x'", 1, 17, "has values of int64: expected a 64-bit integer, found \"x\""),
        ("bytes(id) > 2", 0, 6, "has values of int64: expected values of bytes, found bytes(..)"),
        ("any(caption) is nan", 0, 16, "has values of bytes: expected a string in quotes, found nan"),
    ] {
        let e = error(text);
        let ErrorKind::Filter(filter) = e.kind() else { panic!("{e:?}") };
        assert!(filter.offset == offset && filter.reason.contains(reason), "{text}: {e}");
        assert_eq!(e.location().record, Some(record), "the first record with a value: {e}");
    }
    // A feature that no record has is an error, also if few records are read. One that only unread records
    // have is not.
    for text in ["len(objets) > 1", "record in 3..5 and any(objets) > 1", "absent(objets) or id > 1"] {
        let e = error(text);
        let is_unknown = matches!(e.kind(), ErrorKind::UnknownFeature { .. });
        assert!(is_unknown && e.to_string().contains("\"objects\""), "{text}: {e}");
    }
    assert_eq!(select("record in 3..5 and any(rare) > 1").unwrap().0.len(), 0);
    let unknown = ColumnOptions { unknown: true, ..ColumnOptions::default() };
    assert_eq!(ds.select(&"len(objets) > 1".parse().unwrap(), &unknown).unwrap().0.len(), 0);
    // Other messages have no features.
    let other = |text: &str| text.parse::<Filter>()?.for_records().accepts(0, b"text", MessageKind::Other);
    let e = other("split(1) or a == 1").unwrap_err().to_string();
    assert!(e.contains("expected an Example, found another message") && other("split(1)").unwrap(), "{e}");
}

#[test]
fn features_that_no_record_had() {
    let filter: Filter = "a == 1 or b == 2 or absent(c)".parse().unwrap();
    let (mut one, mut two) = (filter.for_records(), filter.for_records());
    let payload = |name: &str| ExampleBuilder::new().int64(name, [5]).encode().unwrap();
    assert!(one.accepts(0, &payload("b"), MessageKind::Example).unwrap());
    assert_eq!(one.unseen().collect::<Vec<_>>(), ["a", "c"]);
    two.accepts(1, &payload("c"), MessageKind::SequenceExample).unwrap();
    one.merge(&two);
    assert_eq!(one.unseen().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn two_features_of_a_record_compare() {
    let mut file = Vec::new();
    let big = (1i64 << 53) + 1;
    for (width, height, ratio) in [(3, 2, 1.5), (2, 2, 1.0), (1, 2, 0.5), (big, big - 1, 9007199254740992.0)]
    {
        let builder = ExampleBuilder::new().int64("width", [width]).int64("height", [height]);
        let record =
            builder.float("ratio", [ratio]).bytes("name", [width.to_string()]).int64("l", [width, 2]);
        put_record(&mut file, &record.encode().unwrap()).unwrap();
    }
    put_record(&mut file, &ExampleBuilder::new().int64("width", [7]).encode().unwrap()).unwrap();
    let ds = Mapped::from_bytes(file).unwrap().dataset().clone();
    let select = |text: &str| ds.select(&text.parse().unwrap(), &Default::default());
    for (text, want) in [
        ("width > height", &[0, 3][..]),
        ("width != height", &[0, 2, 3]),
        ("not width == height", &[0, 2, 3, 4]),
        // Exact: as floats both would be 2^53.
        ("width > ratio", &[0, 1, 2, 3]),
        ("height <= ratio", &[3]),
        ("ratio < height", &[0, 1, 2]),
        ("any(l) > height", &[0, 3]),
        ("all(l) >= height", &[0, 1]),
        ("len(l) == height", &[0, 1, 2]),
        ("height == len(l)", &[0, 1, 2]),
        ("bytes(name) == len(ratio)", &[0, 1, 2]),
        ("record in 1..3 and width <= height", &[1, 2]),
    ] {
        let (found, _) = select(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(found.iter().collect::<Vec<_>>(), want, "{text}");
    }
    for (text, at, reason) in [
        ("width == name", 9, "\"width\" is a number, and \"name\" is a string"),
        ("name == len(l)", 12, "\"name\" is a string, and len(l) is a number"),
        ("width == l", 9, "feature \"l\" has 2 values"),
        ("width == bytes(height)", 15, "has values of int64: expected values of bytes, found bytes(..)"),
        ("name == cat", 8, "no record has a feature \"cat\"; a string needs quotes: \"cat\""),
    ] {
        let e = select(text).unwrap_err();
        let ErrorKind::Filter(filter) = e.kind() else { panic!("{e:?}") };
        assert!(filter.offset == at && filter.reason.contains(reason), "{text}: {e}");
    }
    let filter: Filter = "width > height and name == 'height'".parse().unwrap();
    assert_eq!(filter.features(), ["height", "name", "width"]);
    assert_eq!(filter.column_features(), ["name"]);
    // Where records are read in order, the first ones decide: the name is probably a string.
    let mut records = "name == cat".parse::<Filter>().unwrap().for_records();
    let payload = ExampleBuilder::new().bytes("name", ["dog"]).encode().unwrap();
    assert!(!records.accepts(0, &payload, MessageKind::Example).unwrap());
    let e = records.check_names(false).unwrap_err().to_string();
    let expected = "at byte 8: none of the first records has a feature \"cat\"; a string needs quotes";
    assert!(e.contains(expected), "{e}");
}
