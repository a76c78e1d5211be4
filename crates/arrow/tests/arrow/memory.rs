//! Memory that record batches share with batches and records.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use std::sync::Arc;
use tfseek::batch::{Batch, Column, RowSplits};
use tfseek::io::Region;
use tfseek::schema::{DType, FeatureSpec, Schema};
use tfseek::{ErrorKind, Example, ExampleBuilder};
use tfseek_arrow::{ByteStrings, Converter, Options};
use tfseek_testkit::alloc::most_held;

fn numbers() -> Converter {
    let schema = Schema::example()
        .feature("a", FeatureSpec::optional(DType::Int64))
        .feature("b", FeatureSpec::fixed_len(&[2], DType::Float32))
        .feature("c", FeatureSpec::var_len(DType::Int64))
        .build()
        .unwrap();
    Converter::new(&schema, &Options::new()).unwrap()
}

fn rows() -> Vec<Vec<u8>> {
    let row =
        |k: i64| ExampleBuilder::new().int64("a", [k]).float("b", [k as f32; 2]).int64("c", vec![k; 300]);
    (0..100).map(|k| row(k).encode().unwrap()).collect()
}

/// Returns the addresses of all numbers and offsets of a record batch.
fn addresses(batch: &RecordBatch) -> [usize; 4] {
    let list = batch["c"].as_list::<i32>();
    [
        batch["a"].as_primitive::<Int64Type>().values().as_ptr().addr(),
        batch["b"].as_fixed_size_list().values().as_primitive::<Float32Type>().values().as_ptr().addr(),
        list.values().as_primitive::<Int64Type>().values().as_ptr().addr(),
        list.offsets().as_ptr().addr(),
    ]
}

fn addresses_of_batch(batch: &Batch) -> [usize; 4] {
    let Some(Column::Ragged(list)) = batch.get("c") else { panic!("{batch:?}") };
    let RowSplits::Int32(splits) = &list.row_splits[0] else { panic!("{list:?}") };
    [
        batch.int64("a").unwrap().as_ptr().addr(),
        batch.float32("b").unwrap().as_ptr().addr(),
        batch.int64("c").unwrap().as_ptr().addr(),
        splits.as_ptr().addr(),
    ]
}

#[test]
fn numbers_are_shared_and_return_to_the_pool_from_any_thread() {
    let converter = numbers();
    let parser = converter.parser();
    let rows = rows();
    let batch = parser.parse(&rows).unwrap();
    let first = converter.record_batch(&batch).unwrap();
    assert_eq!(addresses(&first), addresses_of_batch(&batch));
    let shared = addresses(&first);
    drop(batch);

    // While an array lives, its memory is not reused.
    let other = converter.record_batch(&parser.parse(&rows).unwrap()).unwrap();
    assert!(addresses(&other).iter().all(|address| !shared.contains(address)));
    let values = first["c"].as_list::<i32>().value(7);
    drop(other);

    // The last reference to the values of one column is dropped in another thread.
    std::thread::spawn(move || {
        drop(first);
        assert_eq!(values.as_primitive::<Int64Type>().values(), &[7; 300]);
    })
    .join()
    .unwrap();
    let held: Vec<RecordBatch> =
        (0..2).map(|_| converter.record_batch(&parser.parse(&rows).unwrap()).unwrap()).collect();
    let all: Vec<usize> = held.iter().flat_map(addresses).collect();
    assert!(shared.iter().all(|address| all.contains(address)), "{shared:x?} {all:x?}");
}

fn strings(bytes: ByteStrings) -> Converter {
    let schema = Schema::example().feature("s", FeatureSpec::fixed_len(&[], DType::Bytes)).build().unwrap();
    Converter::new(&schema, &Options::new().bytes(bytes)).unwrap()
}

#[test]
fn long_strings_of_regions_are_shared_and_short_ones_are_copied_together() {
    let lens = [0, 1, 12, 13, 100, (16 << 10) - 1, 16 << 10, 20, 1 << 20, 12, 50];
    let rows: Vec<Region> = lens
        .iter()
        .map(|&len| Region::new(ExampleBuilder::new().bytes("s", [vec![b'x'; len]]).encode().unwrap()))
        .collect();
    let converter = strings(ByteStrings::View);
    let batch = converter.record_batch(&converter.parser().parse(&rows).unwrap()).unwrap();
    let array = batch["s"].as_binary_view();
    array.to_data().validate_full().unwrap();
    // Two shared strings, and one buffer of copies.
    assert_eq!(array.data_buffers().len(), 3);
    for (row, region) in rows.iter().enumerate() {
        let feature = Example::new(region).bytes("s").unwrap();
        let value = feature.iter().next().unwrap();
        assert_eq!(array.value(row), value);
        assert_eq!(array.value(row).as_ptr() == value.as_ptr(), lens[row] >= 16 << 10, "{row}");
    }
    // The array keeps the records alive.
    drop(rows);
    assert_eq!(array.value(8), vec![b'x'; 1 << 20]);
}

#[test]
fn contiguous_strings_are_shared() {
    let rows: Vec<Vec<u8>> =
        (0..50).map(|k| ExampleBuilder::new().bytes("s", [vec![k; 40]]).encode().unwrap()).collect();
    for bytes in [ByteStrings::View, ByteStrings::Auto, ByteStrings::Copy] {
        let converter = strings(bytes);
        let batch = converter.parser().parse(&rows).unwrap();
        let shared = batch.bytes("s").unwrap().get(0).unwrap().as_ptr();
        let found = converter.record_batch(&batch).unwrap();
        let first = match bytes {
            ByteStrings::View | ByteStrings::Auto => found["s"].as_binary_view().value(0),
            ByteStrings::Copy => found["s"].as_binary::<i32>().value(0),
        };
        assert_eq!((first, first.as_ptr()), (&[0; 40][..], shared));
    }
}

#[test]
fn short_strings_need_no_buffer() {
    let rows: Vec<Vec<u8>> =
        (0..50).map(|k| ExampleBuilder::new().bytes("s", [vec![k; 12]]).encode().unwrap()).collect();
    let converter = strings(ByteStrings::View);
    let found = converter.record_batch(&converter.parser().parse(&rows).unwrap()).unwrap();
    assert!(found["s"].as_binary_view().data_buffers().is_empty());
    assert_eq!(found["s"].as_binary_view().value(49), [49; 12]);
}

/// The numbers of a row are converted when the row is encoded.
#[test]
fn nested_rows_take_the_memory_of_one_row() {
    let text = r#"{"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict", "featuresDict": {"features": {"x":
        {"pythonClassName": "tensorflow_datasets.core.features.tensor_feature.Tensor", "tensor": {"shape": {"dimensions": ["-1"]}, "dtype": "uint8", "encoding": "zlib"}}}}}"#;
    let features = tfseek_tfds::Features::parse(text.as_bytes()).unwrap();
    let n = 1 << 20;
    let rows: ArrayRef = Arc::new(ListArray::from_iter_primitive::<UInt8Type, _, _>(
        (0..4u8).map(|row| Some(vec![Some(row); n])),
    ));
    let batch = RecordBatch::try_from_iter([("x", rows)]).unwrap();
    let mut encoder = tfseek_arrow::Encoder::of_features(
        &features,
        &batch.schema(),
        &tfseek_arrow::EncoderOptions::default(),
    )
    .unwrap();
    let mut lengths = Vec::new();
    let mut encode = |limit| {
        let payload = |payload: &[u8]| {
            lengths.push(payload.len());
            Ok(())
        };
        most_held(limit, || encoder.encode(&batch, payload))
    };
    let (done, held) = encode(3 * n);
    done.unwrap();
    assert!(held < 4 * n as u64, "{held}");
    let e = encode(n / 2).0.unwrap_err().into_record_error().unwrap();
    assert!(matches!(e.kind(), ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::OutOfMemory), "{e}");
    assert_eq!(lengths.len(), 4);
}
