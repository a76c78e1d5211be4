//! Arrays in byte strings become columns: bytes as they are, and serialized tensors.

use tfseek::batch::{ArrayBits, ArrayValues, Batch, BatchParser, Column, RowSplits, Values};
use tfseek::error::{Category, ErrorKind};
use tfseek::schema::{DType, FeatureSpec, ImageSpec, Schema};
use tfseek::tensor::{Element, TensorDType, parse_tensor, serialize_tensor, serialize_values};
use tfseek::{ExampleBuilder, FeatureBuf, Result, SequenceExampleBuilder};

fn schema(spec: FeatureSpec) -> Schema {
    Schema::example().feature("x", spec).build().unwrap()
}

fn row(string: impl AsRef<[u8]>) -> Vec<u8> {
    ExampleBuilder::new().bytes("x", [string.as_ref()]).encode().unwrap()
}

fn parse(spec: FeatureSpec, strings: &[Vec<u8>]) -> Result<Batch> {
    let rows: Vec<_> = strings.iter().map(row).collect();
    BatchParser::new(&schema(spec)).parse(&rows)
}

fn values(batch: &Batch) -> &ArrayValues {
    match batch.get("x").map(Column::values) {
        Some(Values::Array(values)) => values,
        other => panic!("{other:?}"),
    }
}

/// Checks that a type is read from bytes of both orders and from tensors.
#[track_caller]
fn agree<T: Element + PartialEq + std::fmt::Debug>(all: &[T]) {
    let shape = [Some(2), Some(all.len() / 4)];
    let mut little = Vec::new();
    all.iter().for_each(|value| value.put(&mut little));
    let number = match T::DTYPE {
        TensorDType::Complex64 => 4,
        TensorDType::Complex128 => 8,
        _ => size_of::<T>(),
    };
    let big: Vec<u8> = little.chunks(number).flat_map(|number| number.iter().rev().copied()).collect();
    let halves = |bytes: &[u8]| bytes.chunks(bytes.len() / 2).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let tensors = [&all[..all.len() / 2], &all[all.len() / 2..]]
        .map(|half| serialize_values(&[2, half.len() as u64 / 2], half).unwrap());
    let raw = |little_endian| FeatureSpec::Raw {
        dtype: T::DTYPE,
        shape: shape.into(),
        little_endian,
        fixed_length: false,
    };
    for (spec, strings) in [
        (raw(true), halves(&little)),
        (raw(false), halves(&big)),
        (FeatureSpec::Tensor { dtype: T::DTYPE, shape: shape.to_vec() }, tensors.to_vec()),
    ] {
        let batch = parse(spec, &strings).unwrap();
        let Some(Column::Dense(dense)) = batch.get("x") else { panic!("{batch:?}") };
        assert_eq!(dense.shape, [2, 2, all.len() / 4]);
        let found = values(&batch);
        assert_eq!((found.dtype(), found.len()), (T::DTYPE, all.len()));
        assert_eq!(found.as_slice::<T>().unwrap(), all);
        let other = if T::DTYPE == TensorDType::UInt8 {
            found.as_slice::<i8>().is_err()
        } else {
            found.as_slice::<u8>().is_err()
        };
        assert!(other);
    }
}

#[test]
fn every_type_is_read_in_both_byte_orders_and_from_tensors() {
    agree(&[1u8, 2, 3, 255]);
    agree(&[-1i8, 2, 3, -128]);
    agree(&[1u16, 0x0102, 0xff00, 0]);
    agree(&[-1i16, 0x0102, i16::MIN, 0, 1, 2, 3, 4]);
    agree(&[1u32, 0x0102_0304, u32::MAX, 0]);
    agree(&[-1i32, 0x0102_0304, i32::MIN, 0]);
    agree(&[1u64, 0x0102_0304_0506_0708, u64::MAX, 0]);
    agree(&[-1i64, 0x0102_0304_0506_0708, i64::MIN, 0]);
    agree(&[1.5f32, -0.0, f32::INFINITY, f32::MIN_POSITIVE]);
    agree(&[1.5f64, -0.0, f64::INFINITY, f64::MIN_POSITIVE]);
    agree(&[[1.0f32, 2.0], [-1.0, 0.5], [0.0, -0.0], [f32::MAX, f32::MIN]]);
    agree(&[[1.0f64, 2.0], [-1.0, 0.5], [0.0, -0.0], [f64::MAX, f64::MIN]]);
    agree(&[true, false, false, true]);
}

#[test]
fn halves_have_the_bits_of_the_file() {
    for dtype in [TensorDType::Float16, TensorDType::BFloat16] {
        let bytes = vec![0x00, 0x3c, 0x01, 0x7e];
        let tensor = serialize_tensor(dtype, &[2], &bytes).unwrap();
        let shape = [Some(2)];
        let big = FeatureSpec::Raw { dtype, shape: shape.into(), little_endian: false, fixed_length: false };
        for (spec, string, want) in [
            (FeatureSpec::raw(&shape, dtype), &bytes, [0x3c00, 0x7e01]),
            (FeatureSpec::Tensor { dtype, shape: shape.to_vec() }, &tensor, [0x3c00, 0x7e01]),
            (big, &bytes, [0x003c, 0x017e]),
        ] {
            let batch = parse(spec, std::slice::from_ref(string)).unwrap();
            let ArrayBits::Bits16(bits) = values(&batch).bits() else { panic!("{batch:?}") };
            assert_eq!(bits[..], want);
        }
    }
}

#[test]
fn a_byte_of_a_bool_that_is_not_zero_is_true() {
    let bytes = vec![0, 1, 2, 0x80, 255];
    // The writer refuses such bytes, so they replace those of another dtype.
    let mut tensor = serialize_tensor(TensorDType::UInt8, &[5], &bytes).unwrap();
    tensor[1] = TensorDType::Bool as u8;
    let shape = [Some(5)];
    for (spec, string) in [
        (FeatureSpec::raw(&shape, TensorDType::Bool), bytes),
        (FeatureSpec::Tensor { dtype: TensorDType::Bool, shape: shape.to_vec() }, tensor),
    ] {
        let batch = parse(spec, &[string]).unwrap();
        assert_eq!(values(&batch).as_slice::<bool>().unwrap(), [false, true, true, true, true]);
        let ArrayBits::Bits8(bits) = values(&batch).bits() else { panic!("{batch:?}") };
        assert_eq!(bits[..], [0, 1, 1, 1, 1]);
    }
}

#[test]
fn an_open_first_dimension_makes_a_ragged_column() {
    let strings = [vec![1, 2, 3, 4, 5, 6], vec![], vec![7, 8]];
    let tensors: Vec<_> =
        strings.iter().map(|items| serialize_values(&[items.len() as u64 / 2, 2], items).unwrap()).collect();
    let shape = [None, Some(2)];
    for (spec, strings) in [
        (FeatureSpec::raw(&shape, TensorDType::UInt8), strings.to_vec()),
        (FeatureSpec::Tensor { dtype: TensorDType::UInt8, shape: shape.to_vec() }, tensors),
    ] {
        let batch = parse(spec.clone(), &strings).unwrap();
        let Some(Column::Ragged(ragged)) = batch.get("x") else { panic!("{batch:?}") };
        assert_eq!(ragged.shape, [4, 2]);
        assert_eq!(ragged.row_splits, [RowSplits::Int64(vec![0, 3, 3, 4].into())]);
        assert_eq!(values(&batch).as_slice::<u8>().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);

        let single = BatchParser::new(&schema(spec)).parse_single(&row(&strings[0])).unwrap();
        let Some(Column::Dense(dense)) = single.get("x") else { panic!("{single:?}") };
        assert_eq!(dense.shape, [3, 2]);
    }
}

/// Every prefix of a tensor is refused, or is a tensor with all of its values.
#[test]
fn no_prefix_of_a_tensor_gives_values() {
    let all = [1.5f32, 2.5, 3.5, 4.5, 5.5, 6.5];
    let tensor = serialize_values(&[2, 3], &all).unwrap();
    let spec = FeatureSpec::Tensor { dtype: TensorDType::Float32, shape: vec![Some(2), Some(3)] };
    let parser = BatchParser::new(&schema(spec));
    let mut malformed = 0;
    for len in 0..tensor.len() {
        let e = parser.parse(&[row(&tensor), row(&tensor[..len])]).unwrap_err();
        assert_eq!((e.location().row, e.location().feature.as_deref()), (Some(1), Some("x")), "{len}: {e}");
        assert!(e.is_data() && e.category().is_some(), "{len}: {e}");
        if let ErrorKind::Wire { offset, .. } = e.kind() {
            // The offset is that of the payload, which ends with the string.
            let start = row(&tensor[..len]).len() - len;
            let alone = parse_tensor(&tensor[..len], TensorDType::Float32).unwrap_err();
            assert!(
                matches!(alone.kind(), ErrorKind::Wire { offset: own, .. } if start + own == *offset),
                "{len}"
            );
            malformed += 1;
        }
    }
    assert!(malformed > 20, "{malformed}");
    assert_eq!(values(&parser.parse(&[row(&tensor)]).unwrap()).as_slice::<f32>().unwrap(), all);
}

#[test]
fn an_empty_tensor_needs_no_values() {
    let batch = parse(
        FeatureSpec::Tensor { dtype: TensorDType::Int64, shape: vec![None, Some(3)] },
        &[serialize_values::<i64>(&[0, 3], &[]).unwrap()],
    );
    assert_eq!(values(&batch.unwrap()).len(), 0);
    let batch = parse(
        FeatureSpec::Tensor { dtype: TensorDType::Int64, shape: vec![Some(0)] },
        &[serialize_values::<i64>(&[0], &[]).unwrap()],
    );
    assert_eq!(values(&batch.unwrap()).len(), 0);
}

/// A tensor with fewer values than elements repeats the last one, as in TensorFlow, within the limit of the
/// batch.
#[test]
fn filled_tensors_count_towards_the_limit() {
    // dtype int32, shape [1000], int_val 7.
    let filled = vec![8, 3, 18, 5, 18, 3, 8, 0xe8, 7, 56, 7];
    let spec = FeatureSpec::Tensor { dtype: TensorDType::Int32, shape: vec![Some(1000)] };
    let batch = parse(spec.clone(), &[filled.clone(), filled.clone()]).unwrap();
    assert!(values(&batch).as_slice::<i32>().unwrap() == [7; 2000]);
    let parser = BatchParser::new(&schema(spec)).limit(7999);
    let e = parser.parse(&[row(&filled), row(&filled)]).unwrap_err();
    assert_eq!((e.location().row, e.category()), (Some(1), Some(Category::TooLarge)));
    assert!(matches!(e.kind(), ErrorKind::TooLarge { len: 4000, limit: 3999 }), "{e}");
    // A length that no memory has is refused before anything is allocated.
    let huge = vec![8, 3, 18, 11, 18, 9, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 56, 7];
    let e = parse(FeatureSpec::Tensor { dtype: TensorDType::Int32, shape: vec![None] }, &[huge]).unwrap_err();
    assert_eq!(e.category(), Some(Category::MalformedProto), "{e}");
    let huge = vec![8, 3, 18, 11, 18, 9, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 56, 7];
    let e = parse(FeatureSpec::Tensor { dtype: TensorDType::Int32, shape: vec![None] }, &[huge]).unwrap_err();
    assert_eq!(e.category(), Some(Category::TooLarge), "{e}");
}

/// The lowest refused row is reported, also if the strings of a later row are missing.
#[test]
fn a_wrong_array_before_an_absent_one() {
    let spec = FeatureSpec::raw(&[Some(4)], TensorDType::UInt8);
    let mut rows: Vec<_> = (0..100).map(|_| row([1, 2, 3, 4])).collect();
    rows[70] = ExampleBuilder::new().encode().unwrap();
    rows[68] = row([1, 2, 3]);
    let e = BatchParser::new(&schema(spec)).parse(&rows).unwrap_err();
    assert_eq!(e.to_string(), "row 68 of the batch: feature \"x\": expected 4 bytes of an array, found 3");
}

#[test]
fn specs_that_are_refused() {
    let refused = |spec: FeatureSpec, reason: &str| {
        let e = Schema::example().feature("x", spec).build().unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Spec(_)) && e.to_string().contains(reason), "{e}");
    };
    refused(FeatureSpec::raw(&[Some(1)], TensorDType::String), "found string");
    refused(FeatureSpec::Tensor { dtype: TensorDType::String, shape: vec![Some(1)] }, "found string");
    refused(FeatureSpec::raw(&[Some(1), None], TensorDType::Int8), "as the first only");
    refused(FeatureSpec::Tensor { dtype: TensorDType::Int8, shape: vec![None, None] }, "as the first only");
    refused(FeatureSpec::raw(&[None, Some(0)], TensorDType::Int8), "no values");
    refused(FeatureSpec::raw(&[Some(usize::MAX); 2], TensorDType::Int8), "2^62");
    refused(FeatureSpec::Tensor { dtype: TensorDType::Int8, shape: vec![Some(1 << 30); 3] }, "2^62");
    let several = |of| FeatureSpec::Several(Box::new(of));
    refused(several(FeatureSpec::raw(&[None], TensorDType::Int8)), "open dimension in each");
    refused(several(FeatureSpec::Image(ImageSpec::default())), "needs a size");
    refused(several(several(label(&["a"], None))), "found several");
    refused(several(FeatureSpec::var_len(DType::Bytes)), "found varlen");
    let stack = |dtype| FeatureSpec::Stack { keys: Vec::new(), dtype, default: None };
    refused(stack(DType::Int64), "at least one feature");
    refused(label(&[], None), "at least one string");
    refused(label(&["a", "b", "a"], None), "found \"a\" as 0 and as 2");
    refused(fixed_length(TensorDType::Int8, &[None]), "without an open dimension");
    let listed = |spec: FeatureSpec, reason: &str| {
        let context = FeatureSpec::fixed_len(&[], DType::Int64);
        let schema = Schema::sequence_example().feature("x", context).feature_list("x", spec);
        let e = schema.build().unwrap_err().to_string();
        assert!(e.contains(reason), "{e}");
    };
    listed(FeatureSpec::raw(&[None], TensorDType::Int8), "open dimension in each");
    listed(several(label(&["a"], None)), "each step of a feature list has one byte string");
    listed(
        FeatureSpec::Image(ImageSpec { size: Some([1, 1]), ..ImageSpec::default() }),
        "the name of a feature",
    );
    let geometry = Some("g".into());
    listed(
        FeatureSpec::Image(ImageSpec { size: Some([1, 1]), geometry, ..ImageSpec::default() }),
        "has none",
    );
    let context = Schema::sequence_example().feature("x", FeatureSpec::raw(&[], TensorDType::Int8)).build();
    assert!(context.is_ok());
}

fn label(words: &[&str], unknown: Option<i64>) -> FeatureSpec {
    FeatureSpec::Label { vocabulary: words.iter().map(|word| word.as_bytes().into()).collect(), unknown }
}

fn fixed_length(dtype: TensorDType, shape: &[Option<usize>]) -> FeatureSpec {
    FeatureSpec::Raw { dtype, shape: shape.to_vec(), little_endian: false, fixed_length: true }
}

/// As `tf.io.decode_raw(.., fixed_length=4)`.
#[test]
fn byte_strings_of_a_fixed_length_are_cut_and_padded() {
    let spec = fixed_length(TensorDType::UInt16, &[Some(2)]);
    let strings = [vec![], vec![1], vec![1, 2, 3], vec![1, 2, 3, 4], vec![1, 2, 3, 4, 5]];
    let found = parse(spec.clone(), &strings).unwrap();
    assert_eq!(
        values(&found).as_slice::<u16>().unwrap(),
        [0, 0, 0x100, 0, 0x102, 0x300, 0x102, 0x304, 0x102, 0x304]
    );
    let parser = BatchParser::new(&schema(spec)).limit(7);
    let e = parser.parse(&strings.map(row)).unwrap_err();
    assert_eq!((e.location().row, e.category()), (Some(1), Some(Category::TooLarge)), "{e}");
}

#[test]
fn labels_are_positions_in_the_vocabulary() {
    let strings = ["dog", "", "fox", "cat"].map(|word| word.as_bytes().to_vec());
    let found = parse(label(&["cat", "dog", ""], Some(-7)), &strings).unwrap();
    assert_eq!(found.int64("x").unwrap(), [1, 2, -7, 0]);
    let e = parse(label(&["cat", "dog", ""], None), &strings).unwrap_err();
    assert!(e.is_data());
    assert_eq!(
        e.to_string(),
        "row 2 of the batch: feature \"x\": expected a string of the vocabulary, found \"fox\""
    );
    let none = [ExampleBuilder::new().encode().unwrap()];
    let e = BatchParser::new(&schema(label(&["a"], Some(0)))).parse(&none).unwrap_err();
    assert_eq!(e.category(), Some(Category::MissingFeature), "an absent label is no unknown one: {e}");
}

/// A feature with several byte strings, and a feature list with one in each step, make the same column.
#[test]
fn several_arrays_are_a_ragged_column() {
    let of = FeatureSpec::raw(&[Some(2)], TensorDType::UInt8);
    let rows: [&[[u8; 2]]; 4] = [&[[1, 2], [3, 4]], &[], &[[5, 6]], &[[7, 8], [9, 10], [11, 12]]];
    let example = |row: &&[[u8; 2]]| ExampleBuilder::new().bytes("x", row.iter()).encode().unwrap();
    let step = |string: &[u8; 2]| FeatureBuf::Bytes(vec![string.to_vec()]);
    let sequence = |row: &&[[u8; 2]]| {
        SequenceExampleBuilder::new().feature_list("x", row.iter().map(step)).encode().unwrap()
    };
    let several = Schema::example().feature("x", FeatureSpec::Several(Box::new(of.clone()))).build().unwrap();
    let listed = Schema::sequence_example().feature_list("x", of).build().unwrap();
    let ends = RowSplits::Int64([0, 2, 2, 3, 6].to_vec().into());
    for (schema, rows) in [(several, rows.each_ref().map(example)), (listed, rows.each_ref().map(sequence))] {
        let parser = BatchParser::new(&schema);
        let batch = parser.parse(&rows).unwrap();
        let column = batch.get("x").or(batch.feature_list("x"));
        let Some(Column::Ragged(ragged)) = column else { panic!("{column:?}") };
        assert_eq!((&*ragged.shape, &ragged.row_splits[..]), (&[6, 2][..], &[ends.clone()][..]));
        let Values::Array(values) = &ragged.values else { panic!("{ragged:?}") };
        assert_eq!(values.as_slice::<u8>().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let single = parser.parse_single(&rows[3]).unwrap();
        let column = single.get("x").or(single.feature_list("x"));
        assert!(matches!(column, Some(Column::Dense(dense)) if dense.shape == [3, 2]), "{column:?}");
    }
}

#[test]
fn numbers_of_several_features_are_stacked() {
    let keys = ["c", "a", "b"].map(String::from).to_vec();
    let stack = |default| FeatureSpec::Stack { keys: keys.clone(), dtype: DType::Float32, default };
    let row = |c: f32, b: f32| ExampleBuilder::new().float("c", [c]).float("b", [b]);
    let rows = [row(1.0, 2.0).float("a", [3.0]), row(4.0, 5.0).float("a", [-0.0]), row(6.0, 7.0)];
    let rows = rows.map(|row| row.encode().unwrap());
    let batch = BatchParser::new(&schema(stack(Some(vec![9.5f32].into())))).parse(&rows).unwrap();
    let Some(Column::Dense(dense)) = batch.get("x") else { panic!("{batch:?}") };
    assert_eq!(dense.shape, [3, 3]);
    assert_eq!(batch.float32("x").unwrap(), [1.0, 3.0, 2.0, 4.0, -0.0, 5.0, 6.0, 9.5, 7.0]);
    let e = BatchParser::new(&schema(stack(None))).parse(&rows).unwrap_err();
    assert_eq!((e.location().row, e.location().feature.as_deref()), (Some(2), Some("a")), "{e}");
    let twice =
        Schema::example().feature("x", stack(None)).feature("a", FeatureSpec::var_len(DType::Float32));
    assert!(twice.build().unwrap_err().to_string().contains("is used as"));
}
