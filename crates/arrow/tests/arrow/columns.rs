//! Types, names and order of columns.

use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use std::sync::Arc;
use tfseek::TensorDType;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};
use tfseek::{BatchParser, ExampleBuilder, FeatureBuf, SequenceExampleBuilder};
use tfseek_arrow::{ByteStrings, Converter, Options, Tensors, schema_of, spec_of};

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", item, false)))
}

fn large_list(item: DataType) -> DataType {
    DataType::LargeList(Arc::new(Field::new("item", item, false)))
}

fn fixed(item: DataType, len: i32) -> DataType {
    DataType::FixedSizeList(Arc::new(Field::new("item", item, false)), len)
}

/// Returns the type and the nullability of the only column of a schema.
fn type_of(spec: FeatureSpec, options: &Options) -> (DataType, bool) {
    let schema = Schema::example().feature("x", spec).build().unwrap();
    let arrow = schema_of(&schema, options).unwrap();
    (arrow.field(0).data_type().clone(), arrow.field(0).is_nullable())
}

#[test]
fn types_of_specs() {
    let options = Options::new();
    let of = |spec| type_of(spec, &options);
    let (int, float, view) = (DataType::Int64, DataType::Float32, DataType::BinaryView);
    assert_eq!(of(FeatureSpec::fixed_len(&[], DType::Int64)), (int.clone(), false));
    assert_eq!(of(FeatureSpec::fixed_len(&[], DType::Bytes)), (view.clone(), false));
    assert_eq!(
        of(FeatureSpec::fixed_len(&[2, 3], DType::Float32)),
        (fixed(fixed(float.clone(), 3), 2), false)
    );
    assert_eq!(of(FeatureSpec::optional(DType::Float32)), (float.clone(), true));
    assert_eq!(of(FeatureSpec::optional(DType::Int64).with_default([7])), (int.clone(), false));
    assert_eq!(of(FeatureSpec::var_len(DType::Bytes)), (list(view), true));
    assert_eq!(of(FeatureSpec::fixed_len_sequence(&[4], DType::Int64)), (list(fixed(int.clone(), 4)), false));
    let ragged = |row_splits_dtype| FeatureSpec::Ragged {
        dtype: DType::Int64,
        value_key: None,
        partitions: vec![
            Partition::UniformRowLength(2),
            Partition::RowLengths("l".into()),
            Partition::UniformRowLength(3),
        ],
        row_splits_dtype,
        validate: false,
    };
    assert_eq!(of(ragged(SplitsDType::Int32)), (list(fixed(list(fixed(int.clone(), 3)), 2)), true));
    let large = large_list(fixed(large_list(fixed(int.clone(), 3)), 2));
    assert_eq!(of(ragged(SplitsDType::Int64)), (large, true));
    let (sparse, nullable) = of(FeatureSpec::sparse(&["i", "j"], "v", DType::Float32, &[10, 10]));
    assert!(!nullable);
    let DataType::Struct(fields) = sparse else { panic!("{sparse}") };
    assert_eq!(
        fields.iter().map(|field| (&**field.name(), field.data_type().clone())).collect::<Vec<_>>(),
        [("indices", list(fixed(int, 2))), ("values", list(float))]
    );
}

#[test]
fn types_of_byte_strings_and_tensors() {
    let bytes = |options: Options| type_of(FeatureSpec::optional(DType::Bytes), &options).0;
    assert_eq!(bytes(Options::new().bytes(ByteStrings::Copy)), DataType::Binary);
    assert_eq!(bytes(Options::new().bytes(ByteStrings::Copy).text("x")), DataType::Utf8);
    assert_eq!(bytes(Options::new().text("x")), DataType::Utf8View);

    let schema = Schema::example()
        .feature("image", FeatureSpec::fixed_len(&[2, 3], DType::Int64))
        .feature("words", FeatureSpec::fixed_len(&[2], DType::Bytes))
        .build()
        .unwrap();
    let arrow = schema_of(&schema, &Options::new().tensors(Tensors::Extension)).unwrap();
    let image = arrow.field_with_name("image").unwrap();
    assert_eq!(image.data_type(), &fixed(DataType::Int64, 6));
    assert_eq!(image.extension_type_name(), Some("arrow.fixed_shape_tensor"));
    assert_eq!(image.extension_type_metadata(), Some("{\"shape\":[2, 3]}"));
    assert!(arrow.field_with_name("words").unwrap().metadata().is_empty());
}

#[test]
fn types_of_arrays_in_byte_strings() {
    use TensorDType::*;
    let of = |shape: &[Option<usize>], dtype| {
        type_of(FeatureSpec::Tensor { dtype, shape: shape.to_vec() }, &Options::new())
    };
    let types = [
        (Bool, DataType::Boolean),
        (Int8, DataType::Int8),
        (Int16, DataType::Int16),
        (Int32, DataType::Int32),
        (Int64, DataType::Int64),
        (UInt8, DataType::UInt8),
        (UInt16, DataType::UInt16),
        (UInt32, DataType::UInt32),
        (UInt64, DataType::UInt64),
        (Float16, DataType::Float16),
        (Float32, DataType::Float32),
        (Float64, DataType::Float64),
    ];
    for (dtype, item) in types {
        assert_eq!(of(&[], dtype), (item.clone(), false));
        assert_eq!(of(&[Some(2), Some(3)], dtype), (fixed(fixed(item.clone(), 3), 2), false));
        assert_eq!(of(&[None, Some(3)], dtype), (large_list(fixed(item, 3)), false));
    }
    for dtype in [BFloat16, Complex64, Complex128] {
        for spec in [FeatureSpec::raw(&[Some(2)], dtype), FeatureSpec::Tensor { dtype, shape: vec![None] }] {
            let schema = Schema::example().feature("x", spec).build().unwrap();
            let error = schema_of(&schema, &Options::new()).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("column \"x\": expected a type that Arrow has, found arrays of {dtype}")
            );
        }
    }
    let schema = Schema::example().feature("x", FeatureSpec::raw(&[Some(2)], UInt8)).build().unwrap();
    let error = schema_of(&schema, &Options::new().text("x")).unwrap_err().to_string();
    assert!(error.contains("expected byte strings for `text`, found arrays of UInt8"), "{error}");
    let schema = Schema::example()
        .feature("bools", FeatureSpec::raw(&[Some(2)], Bool))
        .feature("pixels", FeatureSpec::raw(&[Some(2), Some(3)], UInt8))
        .build()
        .unwrap();
    let arrow = schema_of(&schema, &Options::new().tensors(Tensors::Extension)).unwrap();
    let pixels = arrow.field_with_name("pixels").unwrap();
    assert_eq!(pixels.data_type(), &fixed(DataType::UInt8, 6));
    assert_eq!(pixels.extension_type_metadata(), Some("{\"shape\":[2, 3]}"));
    assert!(arrow.field_with_name("bools").unwrap().metadata().is_empty());
}

/// The schema that is made of an Arrow schema has that Arrow schema.
#[test]
fn specs_of_arrow_schemas() {
    let specs = [
        FeatureSpec::optional(DType::Int64),
        FeatureSpec::optional(DType::Bytes),
        FeatureSpec::fixed_len(&[], DType::Float32),
        FeatureSpec::fixed_len(&[2, 3], DType::Int64),
        FeatureSpec::var_len(DType::Bytes),
        FeatureSpec::fixed_len_sequence(&[4], DType::Float32),
    ];
    for mask in 1..1u32 << specs.len() {
        let chosen = specs.iter().enumerate().filter(|(k, _)| mask >> k & 1 == 1);
        let schema =
            chosen.fold(Schema::example(), |schema, (k, spec)| schema.feature(format!("c{k}"), spec.clone()));
        let schema = schema.build().unwrap();
        for bytes in [ByteStrings::View, ByteStrings::Copy] {
            for tensors in [Tensors::Lists, Tensors::Extension] {
                let mut options = Options::new().bytes(bytes).tensors(tensors);
                if mask & 2 != 0 {
                    options = options.text("c1");
                }
                let arrow = schema_of(&schema, &options).unwrap();
                let (found, options) = spec_of(&arrow).unwrap();
                assert_eq!(found, schema);
                assert_eq!(schema_of(&found, &options).unwrap(), arrow);
            }
        }
    }
    let refused = |name: &str, data_type: DataType| {
        let fields = vec![Field::new("good", DataType::Int64, true), Field::new(name, data_type, true)];
        spec_of(&ArrowSchema::new(fields)).unwrap_err().to_string()
    };
    for bad in [DataType::Float64, DataType::Boolean, list(list(DataType::Int64)), fixed(DataType::Int8, 2)] {
        let error = refused("bad", bad.clone());
        assert!(error.starts_with("column \"bad\": expected int64, float32, byte strings"), "{error}");
        assert!(error.ends_with(&format!("found {bad}")), "{error}");
    }
    assert!(refused("good", DataType::Int64).contains("good"));
}

#[test]
fn narrow_columns_are_first() {
    let schema = Schema::sequence_example()
        .feature("a", FeatureSpec::optional(DType::Bytes))
        .feature("b", FeatureSpec::var_len(DType::Int64))
        .feature("c", FeatureSpec::fixed_len(&[2], DType::Int64))
        .feature("e", FeatureSpec::fixed_len(&[], DType::Float32))
        .feature("d", FeatureSpec::optional(DType::Int64))
        .feature_list("a", FeatureSpec::var_len(DType::Float32))
        .feature_list("f", FeatureSpec::var_len(DType::Bytes))
        .build()
        .unwrap();
    let error = schema_of(&schema, &Options::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column \"a\": the feature list has the name of another column: `rename` one of them"
    );
    let arrow = schema_of(&schema, &Options::new().rename_list("a", "z").rename("d", "g")).unwrap();
    let names: Vec<_> = arrow.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["e", "g", "c", "b", "z", "a", "f"]);
}

#[test]
fn a_var_len_feature_may_be_shared_with_a_sparse_column() {
    let schema = Schema::example()
        .feature("i", FeatureSpec::var_len(DType::Int64))
        .feature("s", FeatureSpec::sparse(&["i"], "v", DType::Bytes, &[9]))
        .build()
        .unwrap();
    let converter = Converter::new(&schema, &Options::new().text("s")).unwrap();
    let rows = [
        ExampleBuilder::new().encode().unwrap(),
        ExampleBuilder::new().int64("i", [5, 2]).bytes("v", ["five", "two"]).encode().unwrap(),
    ];
    let batch = converter.record_batch(&converter.parser().parse(&rows).unwrap()).unwrap();
    let indices = batch["i"].as_list::<i32>();
    assert_eq!((indices.value_length(0), indices.value_length(1)), (0, 2));
    let values = batch["s"].as_struct().column_by_name("values").unwrap().as_list::<i32>().value(1);
    assert_eq!(values.as_string_view().iter().flatten().collect::<Vec<_>>(), ["two", "five"]);
}

#[test]
fn batches_without_columns_or_rows() {
    let empty = Schema::example().build().unwrap();
    let converter = Converter::new(&empty, &Options::new()).unwrap();
    let batch = converter.record_batch(&converter.parser().parse(&[[0u8; 0]; 3]).unwrap()).unwrap();
    assert_eq!((batch.num_rows(), batch.num_columns()), (3, 0));

    let schema = Schema::example().feature("x", FeatureSpec::var_len(DType::Bytes)).build().unwrap();
    let converter = Converter::new(&schema, &Options::new()).unwrap();
    let parser = BatchParser::new(converter.parser_schema());
    let batch = converter.record_batch(&parser.parse::<[u8; 0]>(&[]).unwrap()).unwrap();
    assert_eq!((batch.num_rows(), batch.num_columns()), (0, 1));
}

/// Absent lists are null, and empty lists with a kind are not. Without nulls there is no null buffer.
#[test]
fn absent_and_empty_lists() {
    let ragged = FeatureSpec::Ragged {
        dtype: DType::Int64,
        value_key: Some("x".into()),
        partitions: vec![Partition::RowLengths("lengths".into())],
        row_splits_dtype: SplitsDType::Int32,
        validate: false,
    };
    let schema = Schema::sequence_example()
        .feature("ragged", ragged)
        .feature("x", FeatureSpec::ragged(DType::Int64))
        .feature("bytes", FeatureSpec::var_len(DType::Bytes))
        .feature_list("steps", FeatureSpec::var_len(DType::Int64))
        .build()
        .unwrap();
    let none = || SequenceExampleBuilder::new();
    let rows = [
        none()
            .int64("x", [1, 2])
            .int64("lengths", [2])
            .bytes("bytes", ["a"])
            .feature_list("steps", [FeatureBuf::Int64(vec![1])])
            .encode()
            .unwrap(),
        none().int64("x", [0i64; 0]).bytes("bytes", [""; 0]).feature_list("steps", []).encode().unwrap(),
        none().feature("x", FeatureBuf::None).feature("bytes", FeatureBuf::None).encode().unwrap(),
        none().encode().unwrap(),
        none().int64("lengths", [0, 0]).encode().unwrap(), // two rows without values
    ];
    let converter = Converter::new(&schema, &Options::new()).unwrap();
    let nulls = |parser: &BatchParser, rows: &[Vec<u8>]| {
        let batch = converter.record_batch(&parser.parse(rows).unwrap()).unwrap();
        let columns = ["x", "bytes", "ragged", "steps"].map(|name| batch[name].clone());
        columns.map(|column| column.nulls().map(|nulls| nulls.iter().map(|valid| !valid).collect::<Vec<_>>()))
    };
    let parser = converter.parser();
    for _ in 0..3 {
        let lists = Some(vec![false, false, true, true, true]);
        let want = [lists.clone(), lists.clone(), Some(vec![false, false, true, true, false]), lists];
        assert_eq!(nulls(&parser, &rows), want);
        assert_eq!(nulls(&parser, &rows[..2]), [const { None }; 4]);
    }
    assert_eq!(nulls(&BatchParser::new(converter.parser_schema()), &rows), [const { None }; 4]);
}

#[test]
fn byte_strings_in_lists_are_copied_where_readers_cannot_convert_views() {
    let auto = Options::new().bytes(ByteStrings::Auto);
    let specs = [
        (FeatureSpec::fixed_len(&[], DType::Bytes), DataType::BinaryView),
        (FeatureSpec::optional(DType::Bytes), DataType::BinaryView),
        (FeatureSpec::fixed_len(&[2], DType::Bytes), fixed(DataType::Binary, 2)),
        (FeatureSpec::var_len(DType::Bytes), list(DataType::Binary)),
    ];
    let mut builder = Schema::example();
    for (k, (spec, want)) in specs.iter().enumerate() {
        assert_eq!(type_of(spec.clone(), &auto).0, *want);
        builder = builder.feature(k.to_string(), spec.clone());
    }
    // The schema of the columns leads back to the same columns.
    let schema = builder.build().unwrap();
    let arrow = schema_of(&schema, &auto.clone().text("0").text("3")).unwrap();
    let (found, options) = spec_of(&arrow).unwrap();
    assert_eq!(options.bytes, ByteStrings::Auto);
    assert_eq!(schema_of(&found, &options).unwrap(), arrow);
}

#[test]
fn columns_of_byte_strings_that_are_not_text() {
    let schema = Schema::example()
        .feature("a", FeatureSpec::fixed_len(&[2], DType::Bytes))
        .feature("b", FeatureSpec::var_len(DType::Bytes))
        .feature("c", FeatureSpec::fixed_len(&[], DType::Bytes))
        .feature("n", FeatureSpec::var_len(DType::Int64))
        .build()
        .unwrap();
    let options = Options::new().rename("b", "title").text("c");
    assert_eq!(Converter::new(&schema, &options).unwrap().byte_strings(), ["a", "title"]);
}
