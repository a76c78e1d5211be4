//! Rules for accepting column files, and for the folders where they are found and written.

use super::*;
use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use tfseek::Dataset;
use tfseek::Warning;
use tfseek::error::{IndexError, Remedy};

const T: u64 = 1_600_000_000_000_000_000;

struct Case {
    dir: tempfile::TempDir,
    path: PathBuf,
}

/// Creates a shard of 300 labels with its index and its column.
fn case() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &shard_of(&ints(0..300)));
    set_mtime(&path, T);
    let case = Case { dir, path };
    assert!(case.built(case.options()) > 0);
    assert_eq!(case.built(case.options()), 0, "found");
    case
}

impl Case {
    fn options(&self) -> DatasetOptions {
        at(&self.dir)
    }

    fn index(&self) -> IndexOptions {
        index_options(self.dir.path())
    }

    /// Returns the number of bytes scanned to build the column, after comparing its values with the records.
    fn built(&self, options: DatasetOptions) -> u64 {
        // Opens the index first, at whatever cost.
        drop(options.open(&self.path).unwrap());
        let bytes = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&bytes);
        let ds = options.progress(counted(counter)).open(&self.path).unwrap();
        let opening = bytes.load(Relaxed);
        let column = ds.column("label", &Default::default()).unwrap();
        let mut buf = Vec::new();
        for i in 0..ds.len() {
            let value = ds.read(i, &mut buf).unwrap().example().int64("label").unwrap().first();
            assert_eq!(column.get(i), value.map(Value::Int));
        }
        bytes.load(Relaxed) - opening
    }

    fn require(&self) -> tfseek::Result<DatasetColumn> {
        DatasetOptions::new()
            .index(self.index().mode(IndexMode::Require))
            .open(&self.path)?
            .column("label", &Default::default())
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("i/x.label.tfrc")
    }
}

#[test]
fn a_touch_or_a_copy_rebuilds_the_column() {
    let case = case();
    set_mtime(&case.path, T + 100);
    let e = case.require().unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::NoColumn { found: Some(_), .. })), "{e}");
    assert!(e.to_string().contains("size or modification time has changed"), "{e}");
    let Some(Remedy::Build(build)) = e.kind().remedy() else { panic!("{e}") };
    assert_eq!(build.features, ["label"]);
    let len = fs::metadata(&case.path).unwrap().len();
    assert_eq!(case.built(case.options()), len);
    assert_eq!(case.built(case.options()), 0);
    // A copy of the shard with its index and column files.
    let there = tempfile::tempdir().unwrap();
    let copy = Case { path: there.path().join("x"), dir: there };
    fs::copy(&case.path, &copy.path).unwrap();
    set_mtime(&copy.path, T + 200);
    fs::create_dir(copy.dir.path().join("i")).unwrap();
    for name in names(&case.dir.path().join("i")) {
        fs::copy(case.dir.path().join("i").join(&name), copy.dir.path().join("i").join(&name)).unwrap();
    }
    assert_eq!(copy.built(copy.options()), len);
}

#[test]
fn appended_or_rewritten_records_rebuild_the_column() {
    for rewrite in [false, true] {
        let case = case();
        if rewrite {
            fs::write(&case.path, shard_of(&ints((0..300).rev()))).unwrap();
        } else {
            let more = shard_of(&ints([7, 8]));
            File::options().append(true).open(&case.path).unwrap().write_all(&more).unwrap();
        }
        let len = fs::metadata(&case.path).unwrap().len();
        assert!(case.require().is_err());
        assert_eq!(case.built(case.options()), len, "other records");
        assert_eq!(case.built(case.options()), 0);
        case.require().unwrap();
    }
}

#[test]
fn no_column_is_saved_for_a_shard_replaced_while_open() {
    let case = case();
    // SAFETY: files of this test; replacements are new files.
    #[allow(unsafe_code)]
    let ds = unsafe { case.options().open_mapped(&case.path) }.unwrap();
    ds.get(0).unwrap();
    let new = write(case.dir.path(), "new", &shard_of(&ints(5..305)));
    fs::rename(new, &case.path).unwrap();
    let before = fs::read(case.file()).unwrap();
    let column = ds.dataset().column("label", &Default::default()).unwrap();
    same(&column, &ints(0..300));
    assert!(matches!(column.warnings[0], Warning::ShardChanged { .. }), "{:?}", column.warnings);
    assert_eq!(fs::read(case.file()).unwrap(), before);
}

#[test]
fn modes_and_limits() {
    let case = case();
    fs::remove_file(case.file()).unwrap();
    let e = case.require().unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::NoColumn { found: None, .. })), "{e}");
    assert_eq!(
        (e.location().path.as_deref(), e.location().feature.as_deref()),
        (Some(&*case.path), Some("label"))
    );
    assert!(case.built(case.options().index(case.index().mode(IndexMode::Memory))) > 0);
    assert!(!case.file().exists());
    let len = fs::metadata(&case.path).unwrap().len();
    let limited = case.options().index(case.index().auto_limit(len - 1)).progress(nothing_scanned);
    let e = limited.open(&case.path).unwrap().columns(&["label", "a b"], &Default::default()).unwrap_err();
    let ErrorKind::Index(IndexError::BuildLimit { shards: 1, bytes, build, .. }) = e.kind() else {
        panic!("{e}")
    };
    assert_eq!(*bytes, len);
    assert_eq!((build.paths.as_slice(), build.more), ([case.path.display().to_string()].as_slice(), 0));
    assert_eq!(build.features, ["label", "a b"]);
    assert!(case.built(case.options().index(case.index().auto_limit(len))) == len && case.file().exists());
    assert_eq!(case.built(case.options().index(case.index().mode(IndexMode::Rebuild))), len);
}

#[test]
fn where_columns_are_found_and_written() {
    let dir = tempfile::tempdir().unwrap();
    let payload = ExampleBuilder::new().int64("Label", [1]).encode().unwrap();
    let path = write(dir.path(), "x", &records(&[&payload[..]; 10]));
    let place = |name: &str| dir.path().join(name);
    let blocked = |name: &str| path.join(name);
    let open = |a: PathBuf, b: PathBuf, c: PathBuf| {
        let options = options().index_dir(a).default_dirs(Some(b), Some(c));
        DatasetOptions::new().index(options).open(&path).unwrap()
    };
    let saved = |ds: &Dataset| {
        let column = ds.column("Label", &Default::default()).unwrap();
        (column.shards()[0].file().map(|f| f.parent().unwrap().to_path_buf()), column.warnings.len())
    };
    let (a, b, c) = (place("a"), place("b"), place("c"));
    assert_eq!(
        saved(&open(blocked("a"), blocked("b"), blocked("c"))),
        (None, 1),
        "in memory, with one warning"
    );
    assert_eq!(saved(&open(blocked("a"), blocked("b"), c.clone())), (Some(c.clone()), 0));
    assert_eq!(names(dir.path()), ["c", "x"], "no files next to the data");
    assert!(
        names(&c).iter().any(|name| name.ends_with(".%4Cabel.tfrc") && name.len() == 32 + 13),
        "{:?}",
        names(&c)
    );
    let every = || open(a.clone(), b.clone(), c.clone());
    every().columns(&["Label"], &ColumnOptions { beside: true, ..ColumnOptions::default() }).unwrap();
    assert!(a.join("x.%4Cabel.tfrc").exists(), "in the configured folder");
    open_next_to_data(&path);
    for found in [a.clone(), place(".tfseek"), c.clone()] {
        assert_eq!(saved(&every()), (Some(found.clone()), 0));
        let name = names(&found).into_iter().find(|name| name.ends_with(".tfrc")).unwrap();
        fs::remove_file(found.join(name)).unwrap();
    }
    assert_eq!(saved(&every()), (Some(a), 0));
    let e = open(blocked("a"), b, c)
        .columns(&["Label"], &ColumnOptions { beside: true, ..ColumnOptions::default() })
        .unwrap_err();
    assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)), "{e}");
}

fn open_next_to_data(path: &Path) {
    let ds = DatasetOptions::new().index(options().mode(IndexMode::Memory)).open(path).unwrap();
    ds.columns(&["Label"], &ColumnOptions { beside: true, ..ColumnOptions::default() }).unwrap();
}

#[test]
fn a_column_of_another_feature_is_refused() {
    let case = case();
    let good = fs::read(case.file()).unwrap();
    for other in ["i/x.blank.tfrc", "i/x.nothing.tfrc"] {
        fs::write(case.dir.path().join(other), &good).unwrap();
    }
    let ds = case.options().open(&case.path).unwrap();
    for feature in ["blank", "nothing"] {
        let column = ds.column(feature, &Default::default()).unwrap();
        assert_eq!(column.count(), 0);
        let [warning] = &*column.warnings else { panic!("{:?}", column.warnings) };
        assert!(warning.to_string().contains("another feature"), "{warning}");
        assert!(
            ds.column(feature, &Default::default()).unwrap().warnings.is_empty(),
            "the file was rewritten"
        );
    }
    // Damage inside a section is an error that names the file.
    let mut bad = good;
    let at = 320;
    bad[at] ^= 1;
    fs::write(case.file(), bad).unwrap();
    let e = case.options().open(&case.path).unwrap().column("label", &Default::default()).unwrap_err();
    let ErrorKind::Index(IndexError::CorruptSection { file, section: "VALUES", .. }) = e.kind() else {
        panic!("{e}")
    };
    assert!(**file == *case.file() && !e.is_data() && e.kind().remedy() == Some(Remedy::Delete(file)), "{e}");
}

#[test]
fn large_files_through_maps_and_reads() {
    let dir = tempfile::tempdir().unwrap();
    let values: Vec<Option<Scalar>> =
        (0..20_000).map(|i| (i % 7 != 0).then_some(Scalar::Int(i / 3))).collect();
    let path = write(dir.path(), "x", &shard_of(&values));
    at(&dir)
        .open(&path)
        .unwrap()
        .columns(&["label"], &ColumnOptions { classes: true, beside: true, ..ColumnOptions::default() })
        .unwrap();
    let file = dir.path().join("i/x.label.tfrc");
    let on_disk = fs::read(&file).unwrap();
    assert!(on_disk.len() > 64 << 10, "large enough that the reader maps it, or reads sections at first use");
    let options = DatasetOptions::new().index(index_options(dir.path()).mode(IndexMode::Require));
    let read = options.open(&path).unwrap();
    // SAFETY: files of this test; nothing writes to them.
    #[allow(unsafe_code)]
    let mapped = unsafe { options.open_mapped(&path) }.unwrap();
    for ds in [&read, mapped.dataset()] {
        let column = ds.column("label", &Default::default()).unwrap();
        same(&column, &values);
        assert_eq!(bytes(&column.shards()[0]), on_disk);
        assert!(format!("{:?}", column.shards()[0]).ends_with(", classes)"));
        assert!(column.classes().unwrap().contains(&(Value::Int(5), vec![15, 16, 17])));
    }
    // A column that is asked for is built where the index has to be there.
    fs::remove_file(&file).unwrap();
    let beside = ColumnOptions { classes: true, beside: true, ..ColumnOptions::default() };
    options.open(&path).unwrap().columns(&["label"], &beside).unwrap();
    assert_eq!(fs::read(&file).unwrap(), on_disk);
    // The file without class lists differs; lists can be added without a scan.
    fs::remove_file(&file).unwrap();
    at(&dir).open(&path).unwrap().column("label", &Default::default()).unwrap();
    assert!(fs::read(&file).unwrap().len() < on_disk.len());
    let quiet = at(&dir).progress(nothing_scanned).open(&path).unwrap();
    quiet.columns(&["label"], &beside).unwrap();
    assert_eq!(fs::read(&file).unwrap(), on_disk);
}

const ROLE: &str = "TFSEEK_TEST_ROLE";

/// Not a test: the body of the child processes, each of which builds its own column.
#[test]
fn as_a_child() {
    let Some(k) = std::env::var(ROLE).ok() else { return };
    let dir = PathBuf::from(std::env::var_os("TFSEEK_TEST_DIR").unwrap());
    while !dir.join("go").exists() {
        std::thread::yield_now();
    }
    let paths = [dir.join("s0"), dir.join("s1")];
    let ds = DatasetOptions::new().index(index_options(&dir)).open(&paths).unwrap();
    let columns = ds.columns(&[&format!("f{k}"), "shared"], &Default::default()).unwrap();
    assert!(columns[0].warnings.is_empty());
    for i in 0..ds.len() {
        assert_eq!(columns[0].get(i), Some(Value::Int(k.parse().unwrap())));
    }
}

#[test]
fn sixteen_processes_build_different_columns() {
    let dir = tempfile::tempdir().unwrap();
    let mut builder = ExampleBuilder::new();
    builder = builder.int64("shared", [1]);
    for k in 0..16 {
        builder = builder.int64(format!("f{k}"), [k]);
    }
    let payload = builder.encode().unwrap();
    for s in ["s0", "s1"] {
        write(dir.path(), s, &records(&vec![payload.as_slice(); 500]));
    }
    let child = |k: usize| -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &tfseek_testkit::test_name(module_path!(), "as_a_child"), "--nocapture"])
            .env(ROLE, k.to_string())
            .env("TFSEEK_TEST_DIR", dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..16).map(child).collect();
    fs::write(dir.path().join("go"), b"").unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let found = names(&dir.path().join("i"));
    assert_eq!(found.len(), 2 * (1 + 16 + 1), "{found:?}");
    let options = DatasetOptions::new().index(index_options(dir.path()).mode(IndexMode::Require));
    let ds = options.open([dir.path().join("s0"), dir.path().join("s1")]).unwrap();
    let features: Vec<String> = (0..16).map(|k| format!("f{k}")).collect();
    let features: Vec<&str> = features.iter().map(String::as_str).collect();
    for (k, column) in ds.columns(&features, &Default::default()).unwrap().iter().enumerate() {
        assert!(column.iter().all(|value| value == Some(Value::Int(k as i64))));
    }
    assert_eq!(names(dir.path()), ["go", "i", "s0", "s1"], "no files next to the data");
}
