//! If several rows are faulty, the error names the lowest row, regardless of which feature of the column is
//! at fault.

use tfseek::batch::BatchParser;
use tfseek::example::FeatureBuf;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};
use tfseek::{ExampleBuilder, SequenceExampleBuilder};

fn schema(lists: bool) -> Schema {
    let spec = FeatureSpec::Ragged {
        dtype: DType::Int64,
        value_key: Some("values".into()),
        partitions: vec![Partition::RowLengths("outer".into()), Partition::RowLengths("inner".into())],
        row_splits_dtype: SplitsDType::Int32,
        validate: false,
    };
    if lists {
        Schema::sequence_example().feature_list("ragged", spec).build().unwrap()
    } else {
        Schema::example().feature("ragged", spec).build().unwrap()
    }
}

/// A row with three values and these partition lengths.
fn row(lists: bool, outer: &[i64], inner: &[i64]) -> Vec<u8> {
    let features = [("values", vec![1, 2, 3]), ("outer", outer.to_vec()), ("inner", inner.to_vec())];
    if lists {
        let mut builder = SequenceExampleBuilder::new();
        for (key, numbers) in features {
            builder = builder.feature_list(key, vec![FeatureBuf::Int64(numbers)]);
        }
        return builder.encode().unwrap();
    }
    let mut builder = ExampleBuilder::new();
    for (key, numbers) in features {
        builder = builder.feature(key, FeatureBuf::Int64(numbers));
    }
    builder.encode().unwrap()
}

/// Regression test: the inner partition used to be checked in all rows before the outer partition was checked
/// in any.
#[test]
fn outer_partition_error_in_a_lower_row_is_reported_first() {
    for lists in [false, true] {
        let parser = BatchParser::new(&schema(lists));
        let good = row(lists, &[1, 1], &[1, 2]);
        let (outer, inner) = (row(lists, &[1, 2], &[1, 2]), row(lists, &[1, 1], &[1, 1]));
        parser.parse(&[&good, &good]).unwrap();
        for rows in [[&good, &outer, &inner], [&good, &inner, &outer]] {
            let error = parser.parse(&rows).unwrap_err();
            assert_eq!(error.location().row, Some(1), "{error}");
        }
    }
}
