//! Optional columns: at most one value per record, with values and presence.

use tfseek::batch::{Batch, BatchParser, Column, Values};
use tfseek::error::{Category, FeatureError};
use tfseek::example::FeatureBuf;
use tfseek::io::Region;
use tfseek::schema::{DType, FeatureSpec, Schema};
use tfseek::{ErrorKind, ExampleBuilder, SequenceExampleBuilder};

const KINDS: [DType; 3] = [DType::Int64, DType::Float32, DType::Bytes];

fn value(dtype: DType, count: usize) -> FeatureBuf {
    match dtype {
        DType::Int64 => FeatureBuf::Int64(vec![-3; count]),
        DType::Float32 => FeatureBuf::Float(vec![0.5; count]),
        DType::Bytes => FeatureBuf::Bytes(vec![b"abc".to_vec(); count]),
    }
}

/// Returns the payloads of a present value, an absent feature, an empty list, a feature without a kind, and a
/// value.
fn rows(dtype: DType) -> Vec<Vec<u8>> {
    let one = |feature| ExampleBuilder::new().feature("x", feature).int64("y", [1]).encode().unwrap();
    vec![
        one(value(dtype, 1)),
        ExampleBuilder::new().int64("y", [1]).encode().unwrap(),
        one(value(dtype, 0)),
        one(FeatureBuf::None),
        one(value(dtype, 1)),
    ]
}

fn parser(spec: FeatureSpec) -> BatchParser {
    BatchParser::new(&Schema::example().feature("x", spec).build().unwrap())
}

fn column(batch: &Batch) -> (&Values, &[u8], &[usize]) {
    match batch.get("x") {
        Some(Column::Optional(column)) => (&column.values, &column.present, &column.shape),
        other => panic!("{other:?}"),
    }
}

/// Returns the values as text, for all types.
fn text(values: &Values) -> Vec<String> {
    match values {
        Values::Int64(values) => values.iter().map(ToString::to_string).collect(),
        Values::Float32(values) => values.iter().map(ToString::to_string).collect(),
        Values::Bytes(values) => values.iter().map(|value| value.escape_ascii().to_string()).collect(),
        Values::Array(_) => panic!("an optional column has no arrays"),
    }
}

#[test]
fn a_missing_value_is_zero_and_not_present() {
    for (dtype, [value, zero]) in KINDS.into_iter().zip([["-3", "0"], ["0.5", "0"], ["abc", ""]]) {
        let parser = parser(FeatureSpec::optional(dtype));
        // Memory is reused with other values in it.
        for _ in 0..3 {
            for rows in [rows(dtype), rows(dtype).into_iter().rev().collect()] {
                let batch = parser.parse(&rows).unwrap();
                let (values, present, shape) = column(&batch);
                assert_eq!(text(values), [value, zero, zero, zero, value], "{dtype}");
                assert_eq!((present, shape), (&[1, 0, 0, 0, 1][..], &[5][..]), "{dtype}");
                let regions: Vec<_> = rows.iter().cloned().map(Region::new).collect();
                let batch = parser.parse(&regions).unwrap();
                assert_eq!(text(column(&batch).0), [value, zero, zero, zero, value], "{dtype}");
                assert!(!matches!(column(&batch).0, Values::Bytes(strings) if !strings.is_borrowed()));
            }
        }
        for (row, want) in rows(dtype).iter().zip([1, 0, 0, 0, 1]) {
            let batch = parser.parse_single(row).unwrap();
            let (values, present, shape) = column(&batch);
            assert_eq!((values.len(), present, shape), (1, &[want][..], &[][..]));
        }
        let none: [Vec<u8>; 0] = [];
        let batch = parser.parse(&none).unwrap();
        assert_eq!((column(&batch).0.len(), column(&batch).1, column(&batch).2), (0, &[][..], &[0][..]));
    }
}

#[test]
fn a_default_replaces_every_missing_value() {
    let defaults = [FeatureBuf::from([7i64]), FeatureBuf::from([7.0f32]), FeatureBuf::from(["seven"])];
    for ((dtype, default), [value, fill]) in
        KINDS.into_iter().zip(defaults).zip([["-3", "7"], ["0.5", "7"], ["abc", "seven"]])
    {
        let parser = parser(FeatureSpec::optional(dtype).with_default(default));
        let regions: Vec<_> = rows(dtype).into_iter().map(Region::new).collect();
        for batch in [parser.parse(&rows(dtype)).unwrap(), parser.parse(&regions).unwrap()] {
            let Some(Column::Dense(dense)) = batch.get("x") else { panic!("{batch:?}") };
            assert_eq!(text(&dense.values), [value, fill, fill, fill, value]);
            assert_eq!(dense.shape, [5]);
        }
        let batch = parser.parse_single(&rows(dtype)[2]).unwrap();
        let Some(Column::Dense(dense)) = batch.get("x") else { panic!("{batch:?}") };
        assert_eq!((text(&dense.values), &*dense.shape), (vec![fill.to_owned()], &[][..]));
    }
}

#[test]
fn several_values_are_an_error_of_the_row() {
    for spec in [FeatureSpec::optional(DType::Int64), FeatureSpec::optional(DType::Int64).with_default([0])] {
        let parser = parser(spec);
        let mut rows = rows(DType::Int64);
        rows.push(ExampleBuilder::new().int64("x", [1, 2, 3]).encode().unwrap());
        let e = parser.parse(&rows).unwrap_err();
        assert_eq!(e.to_string(), "row 5 of the batch: feature \"x\": expected at most 1 value, found 3");
        assert!(matches!(e.kind(), ErrorKind::Feature(FeatureError::Several { found: 3 })));
        assert_eq!((e.category(), e.is_data()), (Some(Category::CountMismatch), true));
        // Another kind is an error even if the list is empty.
        rows[5] = ExampleBuilder::new().feature("x", value(DType::Bytes, 0)).encode().unwrap();
        let e = parser.parse(&rows).unwrap_err();
        assert_eq!(e.to_string(), "row 5 of the batch: feature \"x\": expected int64, found bytes");
    }
}

#[test]
fn values_are_found_by_name_and_type() {
    let schema = Schema::sequence_example()
        .feature("i", FeatureSpec::optional(DType::Int64))
        .feature("f", FeatureSpec::var_len(DType::Float32))
        .feature("s", FeatureSpec::fixed_len(&[2], DType::Bytes))
        .feature_list("list", FeatureSpec::var_len(DType::Int64))
        .build()
        .unwrap();
    let row =
        SequenceExampleBuilder::new().float("f", [0.5f32, 1.5]).bytes("s", ["a", "bc"]).encode().unwrap();
    let batch = BatchParser::new(&schema).parse(&[row]).unwrap();
    assert_eq!((batch.int64("i").unwrap(), batch.float32("f").unwrap()), (&[0][..], &[0.5, 1.5][..]));
    assert_eq!(batch.bytes("s").unwrap().iter().collect::<Vec<_>>(), [b"a".as_slice(), b"bc"]);
    for (e, reason) in [
        (
            batch.int64("f").unwrap_err(),
            "feature \"f\": invalid schema: expected a column of int64, found one of float32",
        ),
        (
            batch.float32("s").unwrap_err(),
            "feature \"s\": invalid schema: expected a column of float32, found one of string",
        ),
        (
            batch.bytes("x").unwrap_err(),
            "feature \"x\": invalid schema: expected a column of string, found no such column",
        ),
        (
            batch.int64("list").unwrap_err(),
            "feature \"list\": invalid schema: expected a column of int64, found a feature list",
        ),
    ] {
        assert_eq!(
            (e.to_string().as_str(), e.category(), e.is_data()),
            (reason, Some(Category::BadSpec), false)
        );
    }
}

/// In a context, a feature without a kind is an empty list. It is missing as well, unlike for a `FixedLen`.
#[test]
fn a_context_may_have_optional_features() {
    let schema = |spec| Schema::sequence_example().feature("x", spec).build().unwrap();
    let row = |feature| SequenceExampleBuilder::new().feature("x", feature).encode().unwrap();
    let rows = [row(value(DType::Bytes, 1)), vec![], row(FeatureBuf::None), row(value(DType::Bytes, 0))];
    let batch = BatchParser::new(&schema(FeatureSpec::optional(DType::Bytes))).parse(&rows).unwrap();
    assert_eq!(text(column(&batch).0), ["abc", "", "", ""]);
    assert_eq!(column(&batch).1, [1, 0, 0, 0]);
    let spec = FeatureSpec::optional(DType::Bytes).with_default(["-"]);
    let batch = BatchParser::new(&schema(spec)).parse(&rows).unwrap();
    assert_eq!(text(batch.get("x").unwrap().values()), ["abc", "-", "-", "-"]);
}
