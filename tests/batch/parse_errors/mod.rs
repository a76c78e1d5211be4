//! A bad record among a thousand is reported with its problem, feature, step, row, record number, file,
//! offset, and the expected and found values. Messages never contain values of the record.

mod cases;

use cases::{Case, MARKER, example_cases, ints, sequence_cases};
use std::path::PathBuf;
use tfseek::batch::BatchParser;
use tfseek::error::Category;
use tfseek::example::FeatureBuf;
use tfseek::schema::{DType, FeatureSpec, Partition, Schema, SplitsDType};
use tfseek::{DatasetOptions, Error, ExampleBuf, Result};

const ROWS: usize = 1000;

/// Writes a thousand records to three shards, parses all of them, and returns the error and the folder.
fn parse(case: &Case, bad_rows: &[usize]) -> (Error, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let mut shards = vec![Vec::new(); 3];
    for row in 0..ROWS {
        let payload = if bad_rows.contains(&row) { &case.bad } else { &case.good };
        tfseek::frame::put_record(&mut shards[row / 400], payload).unwrap();
    }
    for (k, shard) in shards.iter().enumerate() {
        std::fs::write(dir.path().join(format!("{k}.tfrecord")), shard).unwrap();
    }
    // SAFETY: the folder is private to this test.
    #[allow(unsafe_code)]
    let set = unsafe { DatasetOptions::new().open_mapped(dir.path()) }.unwrap();
    let records: Vec<_> = set.iter().map(Result::unwrap).collect();
    let parser = BatchParser::new(&case.schema).limit(1 << 20);
    if bad_rows.is_empty() {
        assert_eq!(parser.parse(&records).unwrap().rows(), ROWS);
        return (std::io::Error::other("none").into(), PathBuf::new());
    }
    (parser.parse(&records).unwrap_err(), dir.path().join(format!("{}.tfrecord", bad_rows[0] / 400)))
}

#[test]
fn one_bad_record_in_a_thousand_is_located() {
    let mut categories = std::collections::BTreeSet::new();
    for (k, case) in example_cases().into_iter().chain(sequence_cases()).enumerate() {
        parse(&case, &[]);
        for row in [0, 63, 64, 399, 400, 999] {
            let (e, path) = parse(&case, &[row]);
            let what = format!("case {k}, row {row}: {e}\n{e:?}\n{:?}", case.schema);
            assert_eq!(e.category(), Some(case.category), "{what}");
            assert!(e.is_data(), "{what}");
            let record = (row % 400) as u64;
            let place = e.location();
            assert_eq!((place.row, place.record), (Some(row), Some(record)), "{what}");
            assert_eq!(place.offset, Some(record * (case.good.len() as u64 + 16)), "{what}");
            assert_eq!(place.path.as_deref(), Some(&*path), "{what}");
            assert_eq!((place.feature.as_deref(), place.step), (case.feature, case.step), "{what}");

            let message = e.to_string();
            assert!(message.starts_with(&format!("{}: record {record} at byte ", path.display())), "{what}");
            assert!(message.contains(&format!("row {row} of the batch: ")), "{what}");
            for message_parts in case.message_parts {
                assert!(message.contains(message_parts), "{what}: no {message_parts:?}");
            }
            if let Some(key) = case.feature {
                assert!(message.contains(&format!("feature \"{key}\": ")), "{what}");
            }
            if let Some(step) = case.step {
                assert!(message.contains(&format!("step {step}: ")), "{what}");
            }
            for text in [message, format!("{e:?}"), format!("{:?}", std::io::Error::from(e))] {
                assert!(!text.contains(MARKER), "{what}");
            }
        }
        categories.insert(format!("{:?}", case.category));
        // A single parse has no row. All other fields are the same.
        let e = BatchParser::new(&case.schema).limit(1 << 20).parse_single(&case.bad).unwrap_err();
        assert_eq!((e.category(), e.location().row), (Some(case.category), None), "{e}");
        assert_eq!((e.location().feature.as_deref(), e.location().step), (case.feature, case.step), "{e}");
    }
    // All cases except the refused schema, which no record can cause.
    let want =
        "BadPartition BadSparseIndex CountMismatch KindMismatch MalformedProto MissingFeature TooLarge";
    assert_eq!(categories.into_iter().collect::<Vec<_>>().join(" "), want);
    let spec = FeatureSpec::fixed_len(&[2], DType::Int64).with_default([1i64]);
    let e = Schema::example().feature("x", spec).build().unwrap_err();
    assert_eq!((e.category(), e.location().feature.as_deref()), (Some(Category::BadSpec), Some("x")));
}

/// Puts all bad records into one batch, with the failing columns in all orders. The error names the lowest
/// row.
#[test]
fn error_names_the_lowest_row() {
    for case in example_cases().into_iter().chain(sequence_cases()) {
        for rows in [[3, 4], [10, 63], [63, 64], [5, 900], [130, 140]] {
            let (e, _) = parse(&case, &rows);
            assert_eq!(e.location().row, Some(rows[0]), "{e}");
        }
    }
}

#[test]
fn error_names_the_lowest_row_across_columns() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let column = |name: &str| match name {
        "a" => FeatureSpec::fixed_len(&[2], DType::Int64),
        "b" => FeatureSpec::var_len(DType::Int64),
        "c" => FeatureSpec::Ragged {
            dtype: DType::Int64,
            value_key: Some("c values".into()),
            partitions: vec![Partition::RowLengths("c".into())],
            row_splits_dtype: SplitsDType::Int64,
            validate: false,
        },
        "d" => FeatureSpec::fixed_len_sequence(&[2], DType::Int64),
        "e" => FeatureSpec::Sparse {
            index_keys: vec!["e".into()],
            value_key: "e values".into(),
            dtype: DType::Int64,
            size: vec![7],
            already_sorted: false,
        },
        _ => FeatureSpec::ragged(DType::Int64),
    };
    let mut builder = Schema::example();
    for name in names {
        builder = builder.feature(format!("column {name}"), column(name));
    }
    // The names of plain columns are their keys.
    let plain = |name: &str| ["a", "b", "d", "f"].contains(&name);
    let key = |name: &str| if plain(name) { format!("column {name}") } else { name.to_owned() };
    let schema = builder.build().unwrap();
    let message = |bad: Option<&str>| {
        let mut buf = ExampleBuf::default();
        for name in names {
            buf.features.insert(key(name), ints([1, 2]));
        }
        buf.features.insert("c values".into(), ints([1, 2, 3]));
        buf.features.insert("e values".into(), ints([1, 2]));
        if let Some(name) = bad {
            let feature = match name {
                "c" => ints([1, 1]),
                "e" => ints([1, 9]),
                _ => FeatureBuf::from([1.0f32]),
            };
            buf.features.insert(key(name), feature);
        }
        buf.encode().unwrap()
    };
    let parser = BatchParser::new(&schema);
    let good = vec![message(None); 300];
    assert!(parser.parse(&good).is_ok());
    for first in names {
        for second in names {
            for (a, b) in [(0, 1), (0, 299), (62, 63), (63, 64), (100, 200)] {
                let mut rows = good.clone();
                (rows[a], rows[b]) = (message(Some(first)), message(Some(second)));
                let e = parser.parse(&rows).unwrap_err();
                let place = e.location();
                assert_eq!(place.row, Some(a), "{first} {second}: {e}");
                assert_eq!(place.feature.as_deref(), Some(&*format!("column {first}")), "{second}: {e}");
            }
        }
    }
}
