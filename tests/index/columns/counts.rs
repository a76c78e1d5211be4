//! Columns of the numbers of values.

use super::*;
use tfseek::error::IndexError;

/// Returns the payload of record `i`: `i mod 5` values of one of three kinds, or no feature.
fn record(i: u64) -> Vec<u8> {
    let n = (i % 5) as usize;
    let example = ExampleBuilder::new().int64("label", [i as i64]);
    let example = match i % 4 {
        0 => example.int64("x", vec![7; n]),
        1 => example.float("x", vec![0.5; n]),
        2 => example.bytes("x", vec!["a"; n]),
        _ => example,
    };
    example.encode().unwrap()
}

fn count(i: u64) -> Option<Value<'static>> {
    Some(Value::Int((i % 5) as i64)).filter(|_| !i.is_multiple_of(5) && i % 4 != 3)
}

#[test]
fn counts_are_found_again_beside_the_column_of_the_values() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    (0..103).for_each(|i| tfseek::frame::put_record(&mut bytes, &record(i)).unwrap());
    write(dir.path(), "x", &bytes);
    let open = |mode| {
        let index = index_options(dir.path()).mode(mode);
        let path = dir.path().join("x");
        DatasetOptions::new().index(index).open(&path)
    };
    let ds = open(IndexMode::Auto).unwrap();
    let column = ds.value_counts("x", &Default::default()).unwrap();
    assert!((0..103).all(|i| column.get(i) == count(i)));
    assert_eq!(
        (column.kind, column.count()),
        (Some(DType::Int64), (0..103).filter_map(count).count() as u64)
    );
    // The values are of three kinds, and some records have several.
    assert!(ds.column("x", &Default::default()).is_err());

    // Another process finds the file, and scans nothing.
    let file = dir.path().join("i/x.x+len.tfrc");
    let found = open(IndexMode::Require).unwrap().value_counts("x", &Default::default()).unwrap();
    assert_eq!(found.shards()[0].file(), Some(&*file));
    assert!(found.iter().eq(column.iter()));
    let section: Vec<u8> =
        (0..103).flat_map(|i| (if i % 4 == 3 { 0 } else { i as u32 % 5 }).to_le_bytes()).collect();
    assert!(fs::read(&file).unwrap().windows(section.len()).any(|bytes| bytes == section));

    // Columns of values and of counts are not mistaken for each other.
    ds.column("label", &Default::default()).unwrap();
    ds.value_counts("label", &ColumnOptions { classes: true, ..Default::default() }).unwrap();
    assert!(
        !format!("{:?}", ds.value_counts("label", &Default::default()).unwrap().shards()[0])
            .contains("classes")
    );
    let label = |end: &str| dir.path().join(format!("i/x.label{end}.tfrc"));
    let (values, counts) = (fs::read(label("")).unwrap(), fs::read(label("+len")).unwrap());
    fs::write(label(""), &counts).unwrap();
    fs::write(label("+len"), &values).unwrap();
    let ds = open(IndexMode::Require).unwrap();
    for e in [
        ds.column("label", &Default::default()).unwrap_err(),
        ds.value_counts("label", &Default::default()).unwrap_err(),
    ] {
        assert!(matches!(e.kind(), ErrorKind::Index(IndexError::NoColumn { found: Some(_), .. })), "{e}");
    }
    let ds = open(IndexMode::Auto).unwrap();
    assert_eq!(ds.column("label", &Default::default()).unwrap().get(5), Some(Value::Int(5)));
    assert_eq!(ds.value_counts("label", &Default::default()).unwrap().get(5), Some(Value::Int(1)));
    assert_eq!((fs::read(label("")).unwrap(), fs::read(label("+len")).unwrap()), (values, counts));

    let e = ds.value_counts("y", &Default::default()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::UnknownFeature { .. }), "{e}");
}
