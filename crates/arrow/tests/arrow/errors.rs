//! Errors of schemas, options and batches.

use arrow_array::Array;
use tfseek::example::FeatureBuf;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};
use tfseek::{BatchParser, ExampleBuilder, SequenceExampleBuilder};
use tfseek_arrow::{ByteStrings, Converter, ErrorKind, Options};

fn schema(spec: FeatureSpec) -> Schema {
    Schema::example().feature("x", spec).build().unwrap()
}

fn refused(schema: &Schema, options: &Options) -> String {
    let error = Converter::new(schema, options).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Schema(_)), "{error:?}");
    error.to_string()
}

#[test]
fn options_that_do_not_match_the_schema() {
    let ints = schema(FeatureSpec::var_len(DType::Int64));
    assert_eq!(
        refused(&ints, &Options::new().text("x")),
        "column \"x\": expected byte strings for `text`, found int64"
    );
    assert_eq!(
        refused(&ints, &Options::new().text("y")),
        "column \"y\": expected a column for `text`, found no such column"
    );
    assert_eq!(
        refused(&ints, &Options::new().rename("y", "z")),
        "column \"y\": expected a feature for `rename`, found no such feature"
    );
    assert_eq!(
        refused(&ints, &Options::new().rename_list("x", "z")),
        "column \"x\": expected a feature list for `rename_list`, found no such feature list"
    );
    assert_eq!(
        refused(&ints, &Options::new().rename("x", "z").rename("x", "y")),
        "column \"x\": expected one new name of the feature, found several"
    );
    let two = Schema::example()
        .feature("x", FeatureSpec::var_len(DType::Int64))
        .feature("y", FeatureSpec::var_len(DType::Int64))
        .build()
        .unwrap();
    assert_eq!(
        refused(&two, &Options::new().rename("x", "y")),
        "column \"y\": the feature has the name of another column: `rename` one of them"
    );
}

#[test]
fn dimensions_beyond_those_of_arrow() {
    let long = FeatureSpec::Ragged {
        dtype: DType::Int64,
        value_key: None,
        partitions: vec![Partition::UniformRowLength(1 << 31)],
        row_splits_dtype: SplitsDType::Int64,
        validate: false,
    };
    assert_eq!(
        refused(&schema(long), &Options::new()),
        "column \"x\": expected at most 2147483647 values in a dimension, as Arrow has them, found 2147483648"
    );
}

#[test]
fn text_that_is_not_utf8() {
    let specs = [
        FeatureSpec::fixed_len(&[2], DType::Bytes),
        FeatureSpec::var_len(DType::Bytes),
        FeatureSpec::fixed_len_sequence(&[], DType::Bytes),
    ];
    for spec in specs {
        for bytes in [ByteStrings::View, ByteStrings::Copy] {
            let converter =
                Converter::new(&schema(spec.clone()), &Options::new().bytes(bytes).text("x")).unwrap();
            // The two halves of a character are UTF-8 only together.
            let rows = [["one", "two"].map(str::as_bytes), [b"\xc3\xa9", b"caf\xc3"], [b"\xa9", b"x"]]
                .map(|values| ExampleBuilder::new().bytes("x", values).encode().unwrap());
            let error = converter.record_batch(&converter.parser().parse(&rows).unwrap()).unwrap_err();
            assert_eq!(
                error.to_string(),
                "row 1 of the batch: column \"x\": expected text in UTF-8, found 4 bytes that are not UTF-8 at byte 3"
            );
            assert_eq!((error.column.as_deref(), error.row), (Some("x"), Some(1)));
            converter.record_batch(&converter.parser().parse(&rows[..1]).unwrap()).unwrap();
        }
    }
}

#[test]
fn batches_of_other_schemas() {
    let spec = FeatureSpec::fixed_len(&[2], DType::Int64);
    let converter = Converter::new(&schema(spec), &Options::new()).unwrap();
    let row = ExampleBuilder::new().int64("x", [1, 2]).float("y", [1.0f32]).encode().unwrap();
    let others = [
        schema(FeatureSpec::var_len(DType::Int64)),
        schema(FeatureSpec::fixed_len(&[2, 1], DType::Int64)),
        Schema::example().feature("y", FeatureSpec::fixed_len(&[], DType::Float32)).build().unwrap(),
    ];
    for other in &others {
        let batch = BatchParser::new(other).parse(std::slice::from_ref(&row)).unwrap();
        let error = converter.record_batch(&batch).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Batch(_)), "{error:?}");
        assert!(
            error.to_string().starts_with("column \"x\": expected a batch of `Converter::parser`, found ")
        );
    }
    // A single record has no rows.
    let single = converter.parser().parse_single(&row).unwrap();
    assert!(matches!(converter.record_batch(&single).unwrap_err().kind, ErrorKind::Batch(_)));
}

#[test]
fn text_of_other_columns_that_is_not_utf8() {
    let row = |values: &[&[u8]]| {
        let first = values.first().copied();
        ExampleBuilder::new()
            .bytes("o", first)
            .bytes("v", values)
            .int64("i", (0..values.len() as i64).collect::<Vec<_>>())
            .encode()
            .unwrap()
    };
    let rows = [row(&[b"a", b"b"]), row(&[]), row(&[b"\xff", b"c"])];
    let schema = Schema::example()
        .feature("i", FeatureSpec::var_len(DType::Int64))
        .feature("o", FeatureSpec::optional(DType::Bytes))
        .feature("s", FeatureSpec::sparse(&["i"], "v", DType::Bytes, &[9]))
        .build()
        .unwrap();
    for column in ["o", "s"] {
        let converter = Converter::new(&schema, &Options::new().text(column)).unwrap();
        let error = converter.record_batch(&converter.parser().parse(&rows).unwrap()).unwrap_err();
        assert_eq!((error.column.as_deref(), error.row), (Some(column), Some(2)), "{error}");
        let batch = converter.record_batch(&converter.parser().parse(&rows[..2]).unwrap()).unwrap();
        assert_eq!(batch["o"].null_count(), 1);
    }

    let steps = |steps: &[&[u8]]| {
        let steps = steps.iter().map(|&step| FeatureBuf::Bytes(vec![step.to_vec()])).collect::<Vec<_>>();
        SequenceExampleBuilder::new().feature_list("l", steps).encode().unwrap()
    };
    let rows = [steps(&[b"a", b"b", b"c"]), steps(&[]), steps(&[b"d"]), steps(&[b"e", b"\xff"])];
    for spec in [FeatureSpec::fixed_len_sequence(&[], DType::Bytes), FeatureSpec::var_len(DType::Bytes)] {
        let schema = Schema::sequence_example().feature_list("l", spec).build().unwrap();
        let converter = Converter::new(&schema, &Options::new().text("l")).unwrap();
        let error = converter.record_batch(&converter.parser().parse(&rows).unwrap()).unwrap_err();
        assert_eq!((error.column.as_deref(), error.row), (Some("l"), Some(3)), "{error}");
    }
}
