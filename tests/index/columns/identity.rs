//! Columns of shards that were replaced by others of the same size and time.

use super::*;
use tfseek::Filter;
use tfseek::error::IndexError;

const T: u64 = 1_600_000_000_000_000_000;

/// Replaces a shard by one whose labels are `by` larger, in place or by another file, and restores its time.
fn replace(path: &Path, by: i64, in_place: bool) {
    let bytes = shard_of(&ints((0..300).map(|i| (i + by) % 4)));
    if in_place {
        fs::write(path, bytes).unwrap();
        set_mtime(path, T);
    } else {
        let other = path.with_extension("new");
        fs::write(&other, bytes).unwrap();
        set_mtime(&other, T);
        fs::rename(other, path).unwrap();
    }
}

/// Returns the labels of the records that a dataset finds by its column, and then of those that a loader
/// draws by weight.
fn found(ds: &Dataset) -> Vec<i64> {
    let filter: Filter = "label == 3".parse().unwrap();
    let (selected, _) = ds.select(&filter, &ColumnOptions::default()).unwrap();
    let mut buf = Vec::new();
    let mut label = |i| ds.read(i, &mut buf).unwrap().example().int64("label").unwrap().first().unwrap();
    let mut labels: Vec<i64> = selected.iter().map(&mut label).collect();
    let column = ds.column("label", &ColumnOptions::default()).unwrap();
    let classes = column.classes().unwrap();
    assert_eq!(classes.len(), 4);
    for (class, records) in classes {
        assert!(records.iter().all(|&i| Value::Int(label(i)) == class), "{class:?}");
    }
    labels.dedup();
    labels
}

#[test]
fn a_column_does_not_answer_for_a_shard_with_restored_size_and_time() {
    for in_place in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = write(dir.path(), "x", b"");
        let cache = dir.path().join("cache");
        let of_cache = || DatasetOptions::new().index(options().default_dirs(None, Some(cache.clone())));
        for by in 0..3 {
            replace(&path, by, in_place);
            if by > 0 {
                let required = index_options(dir.path()).mode(IndexMode::Require);
                let e = DatasetOptions::new().index(required).open(&path).unwrap_err();
                assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })), "{e}");
            }
            for options in [at(&dir), of_cache()] {
                let ds = options.open(&path).unwrap();
                assert_eq!(found(&ds), [3], "{by} {in_place}");
                assert!(ds.warnings().is_empty(), "{:?}", ds.warnings());
            }
            let next = DatasetOptions::new().index(index_options(dir.path()).mode(IndexMode::Require));
            next.open(&path).unwrap().column("label", &ColumnOptions::default()).unwrap();
        }
        // While a dataset is open.
        let ds = at(&dir).open(&path).unwrap();
        ds.read(0, &mut Vec::new()).unwrap();
        replace(&path, 1, in_place);
        let old = fs::read(dir.path().join("i/x.label.tfrc")).unwrap();
        let column = ds.column("label", &ColumnOptions::default()).unwrap();
        let kinds: Vec<_> = column.warnings.iter().map(|warning| warning.kind()).collect();
        assert_eq!(kinds, ["shard_changed"]);
        assert_eq!(fs::read(dir.path().join("i/x.label.tfrc")).unwrap(), old);
        assert_eq!(found(&at(&dir).open(&path).unwrap()), [3]);
    }
}

/// A change of the mode or a second name tells nothing about the bytes. The fingerprints do.
#[test]
#[cfg(unix)]
fn a_column_of_a_shard_with_another_name_or_mode_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", b"");
    replace(&path, 0, true);
    found(&at(&dir).open(&path).unwrap());
    let ds = at(&dir).open(&path).unwrap();
    ds.read(0, &mut Vec::new()).unwrap();
    fs::hard_link(&path, dir.path().join("y")).unwrap();
    let scans = |options: DatasetOptions| {
        let ds = options.progress(nothing_scanned).open(&path).unwrap();
        ds.column("label", &ColumnOptions::default()).unwrap();
    };
    scans(at(&dir));
    scans(DatasetOptions::new().index(index_options(dir.path()).mode(IndexMode::Require)));
    assert!(ds.column("label", &ColumnOptions::default()).unwrap().warnings.is_empty());
}

/// Files may get the name and the folder of others that have their size and time, and are older than the
/// index.
#[test]
fn a_column_of_another_shard_of_equal_size_and_time_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
    for (folder, by) in [(&one, 0), (&two, 1)] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("x"), b"").unwrap();
        replace(&folder.join("x"), by, true);
    }
    let open = |folder: &Path| {
        DatasetOptions::new().index(options().index_dir(dir.path().join("i"))).open(folder.join("x")).unwrap()
    };
    let column = |ds: &Dataset| ds.column("label", &ColumnOptions::default()).unwrap();
    column(&open(&one));
    tfseek_testkit::shards::trust(&dir.path().join("i"));
    assert!(column(&open(&one)).warnings.is_empty());
    assert_eq!(found(&open(&two)), [3]);
}
