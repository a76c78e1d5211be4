//! Filters select the same records as a loop over the values.

use super::*;

/// The expected result of a filter for a record's value.
type Condition<'a> = &'a dyn Fn(Option<i64>) -> bool;

#[test]
fn filters_agree_with_a_loop() {
    let values: Vec<Option<Scalar>> =
        (0..200).map(|i| (i % 5 != 4).then_some(Scalar::Int(i % 13 - 4))).collect();
    let ds = memory(&shard_of(&values));
    let ids = |text: &str| ds.select(&text.parse().unwrap(), &Default::default()).unwrap();
    let want = |f: &dyn Fn(Option<i64>) -> bool| -> Vec<u64> {
        let int = |v: &Option<Scalar>| if let Some(Scalar::Int(v)) = v { Some(*v) } else { None };
        (0..200).filter(|&i| f(int(&values[i as usize]))).collect()
    };
    let cases: [(&str, Condition<'_>); 16] = [
        ("label == 3", &|v| v == Some(3)),
        ("label != 3", &|v| v.is_some_and(|v| v != 3)),
        ("not label == 3", &|v| v != Some(3)),
        ("label < -2", &|v| v.is_some_and(|v| v < -2)),
        ("label<=-2", &|v| v.is_some_and(|v| v <= -2)),
        ("label > 5", &|v| v.is_some_and(|v| v > 5)),
        ("label >= +5", &|v| v.is_some_and(|v| v >= 5)),
        ("label in 1,2, 7", &|v| v.is_some_and(|v| [1, 2, 7].contains(&v))),
        ("label in 3..7", &|v| v.is_some_and(|v| (3..7).contains(&v))),
        ("label in 3..=7", &|v| v.is_some_and(|v| (3..=7).contains(&v))),
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
        assert_eq!(found.count(), listed.len() as u64);
        assert!((0..300).all(|i| found.contains(i) == listed.contains(&i)), "{text}");
    }
    for text in ["label == 3.5", "label == 'x'", "label in 1, 99999999999999999999", "label in 'a'..'b'"] {
        let e = ds.select(&text.parse().unwrap(), &Default::default()).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Filter(_)) && e.to_string().contains("\"label\""), "{e}");
    }
    let columns = ds.columns(&["label"], &Default::default()).unwrap();
    let filter = "label == 3".parse().unwrap();
    assert_eq!(ds.select_from(&filter, &columns).unwrap(), ds.select(&filter, &Default::default()).unwrap());
    let e = ds.select_from(&"nowhere == 'x'".parse().unwrap(), &columns).unwrap_err();
    assert!(
        matches!(e.kind(), ErrorKind::Options(OptionsError::ColumnNotGiven))
            && e.to_string().contains("\"nowhere\""),
        "{e}"
    );
    let empty = memory(b"");
    assert!(empty.select_from(&filter, &columns).is_err(), "columns of another dataset");
    assert!(
        empty
            .select(&"not present(x)".parse().unwrap(), &Default::default())
            .unwrap()
            .iter()
            .next()
            .is_none()
    );
}

#[test]
fn filters_of_floats_and_strings() {
    let floats = [0.1, f32::NAN, -0.0, 2.5, f32::INFINITY].map(|v| Some(Scalar::Float(v)));
    let ds = memory(&shard_of(&floats));
    let ids = |ds: &Dataset, text: &str| {
        Vec::from_iter(ds.select(&text.parse().unwrap(), &Default::default()).unwrap().iter())
    };
    assert_eq!(ids(&ds, "label == 0.1"), [0]);
    assert_eq!(ids(&ds, "label != 0.1"), [1, 2, 3, 4], "IEEE: NaN is unequal to everything");
    assert_eq!(ids(&ds, "label == 0"), [2]);
    assert_eq!(ids(&ds, "label in 1e-1..2.5"), [0]);
    assert_eq!(ids(&ds, "label > 1"), [3, 4]);
    assert_eq!(ids(&ds, "label == +inf or label < -inf"), [4]);
    assert!(ds.select(&"label == 'x'".parse().unwrap(), &Default::default()).is_err());
    let ds = memory(&shard_of(&strs(&["cat", "dog", "", "it's", "dog"])));
    assert_eq!(ids(&ds, r#"label == "dog" "#), [1, 4]);
    assert_eq!(ids(&ds, r"label == 'it\'s' or label == ''"), [2, 3]);
    assert_eq!(ids(&ds, "label in 'c'..'e'"), [0, 1, 4]);
    assert!(ds.select(&"label == 3".parse().unwrap(), &Default::default()).is_err());
}
