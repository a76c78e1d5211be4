//! Names, patterns, folders and packs.

use super::*;
use tfseek::error::PathsError;
use tfseek::index::write_pack;
use tfseek::{IndexMode, Mapped};

fn names(ds: &Dataset) -> Vec<String> {
    ds.shards().map(|shard| shard.path.to_str().unwrap().replace(&format!("{ROOT}/"), "")).collect()
}

#[test]
fn every_form_finds_the_shards_in_two_listings() {
    for case in Case::all() {
        case.bucket.set(&url("sub/deep.tfrecord"), shard(0..3));
        case.bucket.set(&url(".hidden/train-9.tfrecord"), shard(0..3));
        case.bucket.set(&url("notes.txt"), b"text".as_slice());
        let set = ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"];
        // One of the shards, and one of the indexes beside them.
        let forms = [
            ("train-*", 2),
            ("train-?????-of-*.tfrecord", 2),
            ("train@2.tfrecord", 2),
            ("train@*.tfrecord", 2),
            ("train-{00000..00001}-of-00002.tfrecord", 2),
            ("", 2),
        ];
        for (form, listings) in forms {
            let before = case.bucket.requests().lists.load(Relaxed);
            let ds = case.open(form).unwrap();
            assert_eq!((names(&ds), ds.len()), (set.map(String::from).to_vec(), 100), "{form}");
            assert_eq!(case.bucket.requests().lists.load(Relaxed) - before, listings, "{form}");
            assert!(ds.warnings().is_empty(), "{:?}", ds.warnings());
        }
        // The folder without its slash.
        assert_eq!(names(&case.options().open(ROOT).unwrap()), set);
        assert_eq!(labels(&case.open(set[1]).unwrap()), (60..100).collect::<Vec<_>>());
        assert_eq!(names(&case.open("**/*.tfrecord").unwrap()), ["sub/deep.tfrecord", set[0], set[1]]);
        assert_eq!(names(&case.open("s*/*").unwrap()), ["sub/deep.tfrecord"]);
    }
}

#[test]
fn many_names_need_one_listing() {
    let case = Case::new(Manners::BUCKET);
    let names: Vec<String> = (0..40).map(|i| url(&format!("many-{i}.tfrecord"))).collect();
    for name in &names {
        case.bucket.set(name, shard(0..1));
    }
    let before = case.bucket.requests().lists.load(Relaxed);
    assert_eq!(case.options().open(&names).unwrap().len(), 40);
    assert_eq!(case.bucket.requests().lists.load(Relaxed) - before, 2);
    case.bucket.remove(&names[20]);
    let e = case.options().open(&names).unwrap_err().to_string();
    assert!(e.starts_with(&names[20]), "{e}");
}

#[test]
fn a_list_may_have_files_and_objects() {
    let case = Case::new(Manners::BUCKET);
    let file = case.cache.path().join("local.tfrecord");
    std::fs::write(&file, shard(100..105)).unwrap();
    let ds = case.options().open([file.to_str().unwrap(), &url("train@2.tfrecord")]).unwrap();
    assert_eq!(labels(&ds), (100..105).chain(0..100).collect::<Vec<_>>());
}

#[test]
fn errors_name_the_url_without_its_secrets() {
    for case in Case::all() {
        let text = |name: &str| case.open(name).unwrap_err().to_string();
        assert!(text("none.tfrecord").starts_with(&format!("{}: no such object", url("none.tfrecord"))));
        assert!(text("none-*").contains(&url("none-*")));
        case.bucket.remove(&url("train-00000-of-00002.tfrecord"));
        let e = case.open("train-*").unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::MissingShards { .. })), "{e}");
        assert!(e.to_string().contains(&url("train-00000-of-00002.tfrecord")), "{e}");

        case.bucket.set("mem://user:word@bucket/x.tfrecord?sig=1", shard(0..3));
        let ds = case.options().open("mem://user:word@bucket/x.tfrecord?sig=1").unwrap();
        assert_eq!(labels(&ds), [0, 1, 2]);
        assert_eq!(ds.shards().next().unwrap().path, Path::new("mem://bucket/x.tfrecord"));
        case.bucket.remove("mem://user:word@bucket/x.tfrecord?sig=1");
        let e = case.options().open("mem://user:word@bucket/x.tfrecord?sig=1").unwrap_err().to_string();
        assert!(e.contains("mem://bucket/x.tfrecord") && !e.contains("word") && !e.contains("sig"), "{e}");

        let mut torn = shard(0..3);
        torn.truncate(torn.len() - 5);
        case.bucket.set(&url("torn.tfrecord"), torn);
        let e = case.open("torn.tfrecord").unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Truncated { .. }), "{e}");
        assert!(e.to_string().starts_with(&format!("{}: record 2 at byte ", url("torn.tfrecord"))), "{e}");
        case.bucket.set(&url("page.tfrecord"), b"<!DOCTYPE html><title>no records</title>".as_slice());
        assert!(text("page.tfrecord").contains("an HTML page"));
    }
}

#[test]
fn two_urls_of_one_name_are_refused() {
    let case = Case::new(Manners::BUCKET);
    let [one, two] = [1, 2].map(|version| url(&format!("x.tfrecord?versionId={version}")));
    case.bucket.set(&one, shard(0..3));
    case.bucket.set(&two, shard(3..6));
    assert_eq!(labels(&case.options().open(&two).unwrap()), [3, 4, 5]);
    assert_eq!(labels(&case.options().open([&one, &one]).unwrap()), [0, 1, 2, 0, 1, 2]);
    let e = case.options().open([&one, &two]).unwrap_err().to_string();
    assert!(e.starts_with(&url("x.tfrecord: ")) && e.contains("differ in their queries"), "{e}");
}

#[test]
fn without_a_store_urls_are_refused() {
    let case = Case::new(Manners::BUCKET);
    for options in [DatasetOptions::new(), DatasetOptions::new().index(IndexMode::Memory)] {
        let e = options.open(url("train-*")).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::NotLocal { .. })), "{e}");
    }
    let e = case.options().open("file:///tmp/x.tfrecord").unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::NotLocal { .. })), "{e}");
    // Later options keep the store.
    let ds = case.options().index(IndexMode::Memory).open(url("train-*")).unwrap();
    assert_eq!(ds.len(), 100);
    assert!(Mapped::from_dataset(&ds).is_none());
}

#[test]
#[allow(unsafe_code)]
fn objects_are_not_mapped() {
    let case = Case::new(Manners::BUCKET);
    // SAFETY: there are no files.
    let e = unsafe { case.options().open_mapped(url("train-*")) }.unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::NotLocal { .. })), "{e}");
    // SAFETY: there are no files.
    let ds = unsafe { case.options().open_with_maps(url("train-*")) }.unwrap();
    assert_eq!(labels(&ds).len(), 100);
}

#[test]
fn a_pack_is_one_object() {
    for case in Case::all() {
        let paths =
            ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"].map(|name| url(name).into());
        let written = write_pack("train", &paths, &case.index_options().auto_limit(0));
        // What was scanned is not lost, also if the pack cannot be written.
        assert_eq!(case.cached(), 2);
        if !case.bucket.manners().writable {
            let e = written.unwrap_err().to_string();
            assert_eq!(e, format!("{}: the store is for reading only", url(".tfseek/train.tfrp")));
            continue;
        }
        let (path, _) = written.unwrap();
        assert_eq!(path, Path::new(&url(".tfseek/train.tfrp")));
        // Nothing is scanned, and opening reads no shard.
        let (bytes, ds) = case.bytes(|| case.open(".tfseek/train.tfrp").unwrap());
        assert_eq!((bytes, ds.len()), (0, 100));
        assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>());
        case.bucket.set(&url("train-00001-of-00002.tfrecord"), shard(70..110));
        let e = case.open(".tfseek/train.tfrp").unwrap().read(60, &mut Vec::new()).unwrap_err();
        assert!(e.to_string().contains(&url("train-00001-of-00002.tfrecord")), "{e}");
        let e = case.open(".tfseek/none.tfrp").unwrap_err();
        assert!(e.to_string().starts_with(&url(".tfseek/none.tfrp")), "{e}");
    }
    // Two buckets have no common folder.
    let case = Case::new(Manners::BUCKET);
    case.bucket.set("mem://other/x.tfrecord", shard(0..3));
    let paths = [url("train-00000-of-00002.tfrecord").into(), "mem://other/x.tfrecord".into()];
    assert!(write_pack("all", &paths, &case.index_options()).is_err());
}
