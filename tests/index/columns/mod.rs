//! Columns: file contents, rules for using saved columns, and filters over them.

mod bytes;
mod counts;
mod filters;
mod identity;
mod left_out;
mod records;
mod rules;
mod twin;
mod unknown;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tfseek::column::{ColumnOptions, DatasetColumn};
use tfseek::column::{FeatureColumn, Value};
use tfseek::error::{FeatureError, OptionsError};
use tfseek::index::IndexOptions;
use tfseek::io::Region;
use tfseek::{DType, Dataset, DatasetOptions, ErrorKind, ExampleBuilder, IndexMode, Mapped};
use tfseek_testkit::shards::{names, options, records, set_mtime, sidecar, write};
use twin::{Scalar, column_file, put_checksums};

fn of(value: &Option<Scalar>) -> Vec<u8> {
    let mut builder = ExampleBuilder::new();
    builder = builder.int64("other", [1, 2, 3]).int64("nothing", [0i64; 0]).int64("blank", [0i64; 0]);
    match value {
        None => {}
        Some(Scalar::Int(v)) => builder = builder.int64("label", [*v]),
        Some(Scalar::Float(v)) => builder = builder.float("label", [*v]),
        Some(Scalar::Str(v)) => builder = builder.bytes("label", [v.as_slice()]),
    }
    builder.encode().unwrap()
}

fn shard_of(values: &[Option<Scalar>]) -> Vec<u8> {
    let payloads: Vec<Vec<u8>> = values.iter().map(of).collect();
    records(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn ints(values: impl IntoIterator<Item = i64>) -> Vec<Option<Scalar>> {
    values.into_iter().map(|v| Some(Scalar::Int(v))).collect()
}

fn strs(values: &[&str]) -> Vec<Option<Scalar>> {
    values.iter().map(|v| Some(Scalar::Str(v.as_bytes().to_vec()))).collect()
}

fn memory(bytes: &[u8]) -> Dataset {
    Mapped::from_bytes(bytes.to_vec()).unwrap().dataset().clone()
}

fn same(column: &DatasetColumn, want: &[Option<Scalar>]) {
    assert_eq!(column.len(), want.len() as u64);
    let value = |v: &Option<Scalar>| match v {
        None => None,
        Some(Scalar::Int(v)) => Some(format!("{v}")),
        Some(Scalar::Float(v)) => Some(format!("{:08x}", v.to_bits())),
        Some(Scalar::Str(v)) => Some(v.escape_ascii().to_string()),
    };
    let got = |v: Option<Value<'_>>| match v {
        None => None,
        Some(Value::Int(v)) => Some(format!("{v}")),
        Some(Value::Float(v)) => Some(format!("{:08x}", v.to_bits())),
        Some(Value::Bytes(v)) => Some(v.escape_ascii().to_string()),
    };
    assert!(column.iter().map(got).eq(want.iter().map(value)));
    for (i, want) in want.iter().enumerate() {
        assert_eq!(got(column.get(i as u64)), value(want));
    }
    assert_eq!(column.get(column.len()), None);
    assert_eq!(column.get(u64::MAX), None);
    assert_eq!(column.count(), want.iter().flatten().count() as u64);
}

/// Returns the column file that the twin writes for a dataset in memory.
fn from_twin(ds: &Dataset, values: &[Option<Scalar>], classes: bool) -> Vec<u8> {
    column_file("label", values, classes, &sidecar(ds.index(0).unwrap()))
}

fn bytes(column: &FeatureColumn) -> Vec<u8> {
    let mut bytes = Vec::new();
    column.write_to(&mut bytes).unwrap();
    bytes
}

/// Builds the column in memory with and without classes, and compares both with the twin's files.
fn check(values: &[Option<Scalar>]) -> FeatureColumn {
    let ds = memory(&shard_of(values));
    let options = ColumnOptions { unknown: true, ..ColumnOptions::default() };
    let column =
        ds.columns(&["label"], &ColumnOptions { beside: true, ..options.clone() }).unwrap().remove(0);
    same(&column, values);
    assert_eq!(bytes(&column.shards()[0]), from_twin(&ds, values, false));
    let with =
        ds.columns(&["label"], &ColumnOptions { classes: true, beside: true, ..options }).unwrap().remove(0);
    assert_eq!(bytes(&with.shards()[0]), from_twin(&ds, values, true));
    let float = matches!(values.iter().flatten().next(), Some(Scalar::Float(_)));
    assert_eq!(format!("{:?}", with.shards()[0]).ends_with(", classes)"), !float);
    match with.classes() {
        Ok(listed) => {
            assert!(listed == column.classes().unwrap());
            assert!(
                listed.iter().all(|(value, records)| records.iter().all(|&i| with.get(i) == Some(*value)))
            );
        }
        Err(e) => assert!(float && matches!(e.kind(), ErrorKind::Options(OptionsError::FloatClasses)), "{e}"),
    }
    let read = FeatureColumn::from_bytes(Region::new(bytes(&with.shards()[0]))).unwrap();
    read.verify().unwrap();
    assert_eq!(read.len(), values.len() as u64);
    read
}

/// Options that keep indexes and columns in `DIR/i` only.
fn index_options(dir: &Path) -> IndexOptions {
    options().index_dir(dir.join("i"))
}

fn at(dir: &tempfile::TempDir) -> DatasetOptions {
    DatasetOptions::new().index(index_options(dir.path()))
}

/// Returns a progress callback that counts bytes.
fn counted(bytes: Arc<AtomicU64>) -> impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static {
    move |n| {
        bytes.fetch_add(n, Relaxed);
        ControlFlow::Continue(())
    }
}

/// Progress callback for calls that must not scan.
fn nothing_scanned(bytes: u64) -> ControlFlow<()> {
    assert_eq!(bytes, 0, "scanned");
    ControlFlow::Continue(())
}
