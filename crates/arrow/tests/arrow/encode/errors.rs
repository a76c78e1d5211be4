//! Errors of encoding, and the memory that it takes.

use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema};
use std::collections::HashMap;
use std::sync::Arc;
use tfseek::error::EncodeError;
use tfseek::example::Example;
use tfseek_arrow::{Encoder, EncoderOptions, ErrorKind};
use tfseek_testkit::alloc;

fn schema(data_type: DataType) -> ArrowSchema {
    ArrowSchema::new(vec![Field::new("id", DataType::Int64, true), Field::new("a", data_type, true)])
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", item, true)))
}

fn batch(array: impl Array + 'static) -> RecordBatch {
    RecordBatch::try_from_iter([("a", Arc::new(array) as ArrayRef)]).unwrap()
}

fn encode(batch: &RecordBatch) -> Result<Vec<Vec<u8>>, tfseek_arrow::Error> {
    let mut payloads = Vec::new();
    let mut encoder = Encoder::new(&batch.schema(), &EncoderOptions::new())?;
    encoder.encode(batch, |payload| {
        payloads.push(payload.to_vec());
        Ok(())
    })?;
    Ok(payloads)
}

#[test]
fn types_without_a_feature_are_refused_before_anything_is_encoded() {
    let sparse = Fields::from(vec![
        Field::new("indices", list(DataType::Int64), false),
        Field::new("values", list(DataType::Float32), false),
    ]);
    let two = |item| DataType::FixedSizeList(Arc::new(Field::new("item", item, true)), 2);
    for (data_type, words) in [
        (DataType::Date32, "found Date32: cast it"),
        (DataType::Decimal128(9, 2), "found Decimal128(9, 2): cast it"),
        (list(DataType::Date32), "found List(Date32): cast it"),
        (DataType::Struct(sparse), "make a column of each of its fields"),
        (list(list(DataType::Int64)), "only a feature list has two"),
        (two(list(DataType::Int64)), "no list around it"),
        (DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Date32)), "expected numbers"),
        (DataType::Dictionary(Box::new(DataType::Int8), Box::new(list(DataType::Int8))), "expected numbers"),
    ] {
        let error = Encoder::new(&schema(data_type.clone()), &EncoderOptions::new()).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Schema(_)), "{error:?}");
        assert_eq!(error.column.as_deref(), Some("a"));
        let text = error.to_string();
        assert!(text.starts_with("column \"a\": expected ") && text.contains(words), "{data_type}: {text}");
    }
    // A feature list has one more dimension.
    let as_list = EncoderOptions::new().feature_list("a");
    for (data_type, ok) in [
        (list(list(DataType::Int64)), true),
        (two(list(two(DataType::Int64))), true),
        (list(DataType::Utf8), true),
        (list(list(list(DataType::Int64))), false),
        (DataType::Int64, false),
    ] {
        let found = Encoder::new(&schema(data_type.clone()), &as_list);
        assert_eq!(found.is_ok(), ok, "{data_type}");
    }
}

#[test]
fn tensors_in_another_order_are_refused() {
    let field = |parameters: &str| {
        let storage = DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Int64, true)), 6);
        let metadata =
            [("ARROW:extension:name", "arrow.fixed_shape_tensor"), ("ARROW:extension:metadata", parameters)];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let field = Field::new("a", storage, false).with_metadata(HashMap::from(metadata));
        Encoder::new(&ArrowSchema::new(vec![field]), &EncoderOptions::new())
    };
    for good in [r#"{"shape":[2,3]}"#, r#"{"shape":[2,3],"permutation":[0, 1]}"#] {
        field(good).unwrap();
    }
    for (bad, reason) in [
        (r#"{"shape":[2,3],"permutation":[1,0]}"#, "expected a tensor in the order of its dimensions"),
        (r#"{"shape":[2,3],"permutation":"no"}"#, "expected a tensor in the order of its dimensions"),
        (r#"{"shape":[2,4]}"#, "expected a list of as many values as the shape has"),
        (
            r#"{"shape":[4294967296,4294967296,4294967296]}"#,
            "expected a list of as many values as the shape has",
        ),
        (r#"{"shape":[-2,-3]}"#, "expected the shape of a tensor"),
        ("{}", "expected the shape of a tensor"),
        ("", "expected the parameters of a tensor"),
    ] {
        let error = field(bad).unwrap_err().to_string();
        assert!(error.starts_with(&format!("column \"a\": {reason}, found {bad}")), "{error}");
    }
}

#[test]
fn names_are_checked() {
    let int = |name: &str| Field::new(name, DataType::Int64, true);
    let new = |names: &[&str], options: &EncoderOptions| {
        Encoder::new(&ArrowSchema::new(names.iter().map(|name| int(name)).collect::<Vec<_>>()), options)
    };
    let options = EncoderOptions::new();
    for (names, options, words) in [
        (&["a", "b", "a"][..], options.clone(), "column \"a\": expected one column for each feature"),
        (&["a", "b"], options.clone().rename("a", "b"), "column \"b\": expected one column for each feature"),
        (&["a"], options.clone().rename("b", "c"), "column \"b\": expected a column for `rename`"),
        (&["a"], options.clone().feature_list("b"), "column \"b\": expected a column for `feature_list`"),
    ] {
        let error = new(names, &options).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
    new(&["a", "b"], &options.clone().rename("a", "b").rename("b", "a")).unwrap();
    // The context and the feature lists have names of their own.
    let fields = vec![int("a"), Field::new("steps", list(DataType::Int64), true)];
    let both = options.feature_list("steps").rename("steps", "a");
    Encoder::new(&ArrowSchema::new(fields), &both).unwrap();
}

#[test]
fn values_that_change_are_errors_with_their_row() {
    let lists = |rows: Vec<Option<Vec<Option<i64>>>>| ListArray::from_iter_primitive::<Int64Type, _, _>(rows);
    let big =
        DictionaryArray::<Int8Type>::new(vec![0, 0, 1].into(), Arc::new(UInt64Array::from(vec![5, 1 << 63])));
    for (batch, row, words) in [
        (
            batch(Float64Array::from(vec![0.5, f64::NAN, 0.1])),
            2,
            "row 2 of the batch: column \"a\": expected a number that Float32 has exactly, found 0.1",
        ),
        (batch(Float64Array::from(vec![1e39])), 0, "found 1e39"),
        (batch(UInt64Array::from(vec![0, u64::MAX])), 1, "found 18446744073709551615"),
        (batch(big), 2, "found 9223372036854775808"),
        (batch(lists(vec![None, Some(vec![Some(1), None])])), 1, "expected values in the list, found null"),
    ] {
        let error = encode(&batch).unwrap_err();
        assert_eq!((error.row, error.column.as_deref()), (Some(row), Some("a")));
        assert!(matches!(error.kind, ErrorKind::Value(_) | ErrorKind::Inexact(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    // Infinite numbers are kept, and NaN.
    let kept = encode(&batch(Float64Array::from(vec![f64::INFINITY, f64::NAN, -0.0]))).unwrap();
    let value = |row: usize| Example::new(&kept[row]).float("a").unwrap().get(0).unwrap();
    assert!(value(0) == f32::INFINITY && value(1).is_nan() && value(2).is_sign_negative());
    // Numbers of no row are not checked.
    let slice = batch(UInt64Array::from(vec![u64::MAX, 1])).slice(1, 1);
    assert_eq!(encode(&slice).unwrap().len(), 1);
    let nulls = UInt64Array::new(vec![u64::MAX, 1].into(), Some(vec![false, true].into()));
    assert_eq!(Example::new(&encode(&batch(nulls)).unwrap()[1]).int64("a").unwrap().get(0), Some(1));
}

#[test]
fn errors_of_the_caller_and_of_other_batches() {
    let numbers = batch(Int64Array::from(vec![1, 2, 3]));
    let mut encoder = Encoder::new(&numbers.schema(), &EncoderOptions::new()).unwrap();
    let mut calls = 0;
    let error = encoder.encode(&numbers, |_| {
        calls += 1;
        if calls < 2 { Ok(()) } else { Err(EncodeError::Closed.into()) }
    });
    let error = error.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Record(_)), "{error:?}");
    assert_eq!((calls, error.to_string()), (2, tfseek::Error::from(EncodeError::Closed).to_string()));

    let found = |batch: &RecordBatch, encoder: &mut Encoder| {
        encoder.encode(batch, |_| Ok(())).unwrap_err().to_string()
    };
    let text = found(&batch(Int32Array::from(vec![1])), &mut encoder);
    assert_eq!(text, "column \"a\": expected the type Int64 of the schema, found Int32");
    let two = Arc::new(StringArray::from(vec!["x"])) as ArrayRef;
    let text = found(&RecordBatch::try_from_iter([("a", two.clone()), ("b", two)]).unwrap(), &mut encoder);
    assert!(text.contains("another number of columns"), "{text}");
    // The encoder continues.
    encoder.encode(&numbers, |_| Ok(())).unwrap();
}

#[test]
fn rows_allocate_nothing() {
    let of_rows = |rows: usize| {
        let ints = Int32Array::from_iter((0..rows as i32).map(|k| (k % 3 > 0).then_some(k)));
        let floats = Float64Array::from_iter_values((0..rows).map(|k| k as f64));
        let strings = StringArray::from_iter_values((0..rows).map(|k| "x".repeat(k % 50)));
        let lists = (0..rows).map(|k| Some((0..k as i64 % 7).map(Some).collect::<Vec<_>>()));
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let columns: [(&str, ArrayRef); 4] = [
            ("ints", Arc::new(ints)),
            ("floats", Arc::new(floats)),
            ("strings", Arc::new(strings)),
            ("lists", Arc::new(lists)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let (few, many) = (of_rows(100), of_rows(10_000));
    let mut encoder = Encoder::new(&few.schema(), &EncoderOptions::new()).unwrap();
    let mut bytes = 0;
    let mut requests = |batch: &RecordBatch| {
        let encode = || {
            encoder.encode(batch, |payload| {
                bytes += payload.len();
                Ok(())
            })
        };
        let (encoded, requests) = alloc::during(encode);
        encoded.unwrap();
        requests.times
    };
    requests(&many);
    let (few, many) = (requests(&few), requests(&many));
    assert_eq!(few, many);
    assert!(many < 60, "{many}");
}
