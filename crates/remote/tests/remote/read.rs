//! The same records, indexes and errors as from files.

use super::*;
use std::fs;
use std::time::UNIX_EPOCH;
use tfseek::Shuffle;
use tfseek::io::Store;
use tfseek_testkit::labelled::epoch;

/// Returns a folder with the same files, of the same times.
fn as_files(case: &Case, names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        let stored = case.server.get(&case.object(name)).unwrap();
        let path = dir.path().join(name);
        fs::write(&path, &*stored.bytes).unwrap();
        let time = UNIX_EPOCH + Duration::from_secs(stored.time);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    dir
}

#[test]
fn records_and_index_bytes_are_those_of_files() {
    for case in Case::all() {
        let dir = as_files(&case, &NAMES);
        let cache = tempfile::tempdir().unwrap();
        let index = IndexOptions::new().default_dirs(None, Some(cache.path().into()));
        let files = DatasetOptions::new().index(index).open(dir.path()).unwrap();
        let objects = case.open_all(case.store()).unwrap();
        assert_eq!(labels(&objects), (0..100).collect::<Vec<_>>(), "{}", case.scheme);
        assert_eq!(objects.fingerprint().unwrap(), files.fingerprint().unwrap());
        let (mut own, mut of_files) = (contents(case.cache.path()), contents(cache.path()));
        // The hub has no times: -2^63 at byte 48, and the checksums of the header.
        if case.scheme == "hf" {
            for file in own.iter_mut().chain(&mut of_files) {
                file[48..56].fill(0);
                file.truncate(56);
            }
            own.sort();
            of_files.sort();
        }
        assert_eq!((own.len(), own), (2, of_files), "{}", case.scheme);
        // A second time no byte of the data is read to open it, except to compare objects without a time.
        case.server.counts();
        let again = case.open_all(case.store()).unwrap();
        let counts = case.server.counts();
        assert_eq!(again.len(), 100);
        assert!(case.scheme == "hf" || counts.gets == 0 || case.scheme == "http", "{counts:?}");
        // A web server is asked for an index beside each shard.
        let beside = if case.scheme == "http" { 2 } else { 0 };
        assert!(case.scheme == "hf" || counts.gets == beside, "{}: {counts:?}", case.scheme);
    }
}

#[test]
fn epochs_are_those_of_files() {
    for case in Case::all() {
        let dir = as_files(&case, &NAMES);
        let index = IndexOptions::new().default_dirs(None, None);
        let files = DatasetOptions::new().index(index).open(dir.path()).unwrap();
        let mut options = case.remote();
        options.requests = 4;
        // Less than a shard, so that pieces go before they are read.
        options.memory = 1000;
        let objects = case.open_all(Arc::new(RemoteStore::new(options))).unwrap();
        for shuffle in [Shuffle::None, Shuffle::Global, Shuffle::default()] {
            assert_eq!(epoch(&objects, &shuffle, 2), epoch(&files, &shuffle, 2), "{}", case.scheme);
        }
    }
}

#[test]
fn an_epoch_in_order_makes_few_requests() {
    let case = Case::new("s3");
    let mut bytes = Vec::new();
    for _ in 0..3000 {
        put_record(&mut bytes, &[7; 10_000]).unwrap();
    }
    let len = bytes.len() as u64;
    case.set("large.tfrecord", bytes);
    let ds = case.open("large.tfrecord").unwrap();
    case.server.counts();
    let loader = ds.record_loader().batch_size(100).shuffle(Shuffle::None).threads(2).build().unwrap();
    assert_eq!(loader.map(|step| step.unwrap().ids.len()).sum::<usize>(), 3000);
    let counts = case.server.counts();
    assert!(counts.gets <= 60 && counts.bytes <= len + len / 10, "{counts:?} of {len} bytes");
}

#[test]
fn damage_is_told_as_of_files() {
    for case in Case::all() {
        let whole = shard(0..20);
        let mut flipped = whole.clone();
        flipped[200] ^= 1;
        case.set("torn.tfrecord", whole[..whole.len() - 3].to_vec());
        case.set("flipped.tfrecord", flipped);
        case.set("empty.tfrecord", Vec::new());
        let names = ["torn.tfrecord", "flipped.tfrecord", "empty.tfrecord"];
        let dir = as_files(&case, &names);
        let files = DatasetOptions::new().index(IndexOptions::new().default_dirs(None, None));
        for name in names {
            let path = dir.path().join(name);
            let read = |ds: Result<Dataset>| {
                let ds = ds?;
                (0..ds.len()).map(|i| label(&ds, i, &mut Vec::new())).collect::<Result<Vec<_>>>()
            };
            let (of_file, of_object) = (read(files.open(&path)), read(case.open(name)));
            match (of_file, of_object) {
                (Ok(a), Ok(b)) => assert_eq!(a, b),
                (Err(a), Err(b)) => {
                    let text = a.to_string().replace(&path.display().to_string(), &case.url(name));
                    assert_eq!(text, b.to_string());
                    assert_eq!(a.is_data(), b.is_data());
                }
                (a, b) => panic!("{}: {a:?} and {b:?}", case.url(name)),
            }
        }
        let e = case.open("none.tfrecord").unwrap_err().to_string();
        assert!(e.starts_with(&case.url("none.tfrecord: no such object")), "{e}");
    }
}

#[test]
fn listings_have_pages_folders_and_names_with_all_characters() {
    for scheme in ["s3", "gs", "az", "hf"] {
        let case = Case::new(scheme);
        case.server.page(3);
        let odd = "x y/ü+&=%.tfrecord";
        for name in ["a/1.tfrecord", "a/2.tfrecord", "b/1.tfrecord", odd] {
            case.set(name, shard(0..1));
        }
        if scheme != "hf" {
            // Objects that stand for folders.
            case.server.set("bucket/data/a/", Vec::new());
            case.server.set("bucket/data/", Vec::new());
        }
        let store = case.store();
        let names = |prefix: &str, deep| {
            let listing = store.list(&case.url(prefix), deep).unwrap();
            let base = case.url("");
            let own = |url: &str| url.strip_prefix(&base).unwrap().to_owned();
            let objects: Vec<String> = listing.objects.iter().map(|object| own(&object.url)).collect();
            (objects, listing.folders.iter().map(|url| own(url)).collect::<Vec<String>>())
        };
        let all = ["a/1.tfrecord", "a/2.tfrecord", "b/1.tfrecord", NAMES[0], NAMES[1], odd];
        assert_eq!(names("", true), (all.map(str::to_owned).into(), vec![]), "{scheme}");
        let (objects, folders) = names("", false);
        assert_eq!(
            (objects, folders),
            (NAMES.map(str::to_owned).into(), ["a/", "b/", "x y/"].map(str::to_owned).into())
        );
        assert_eq!(names("train-00001", false).0, [NAMES[1]]);
        assert_eq!(names("none", true), (vec![], vec![]));
        assert_eq!(names("no/thing/", false), (vec![], vec![]));
        assert_eq!(case.open(odd).unwrap().len(), 1);
        assert_eq!(case.open("?/1.tfrecord").unwrap().len(), 2);
        let stored = case.server.get(&case.object(NAMES[0])).unwrap();
        let object = store.list(&case.url(NAMES[0]), false).unwrap().objects.remove(0);
        let time = (scheme != "hf").then(|| server::time_ns(&stored));
        assert_eq!((object.stamp.size, object.stamp.modified_ns), (stored.bytes.len() as u64, time));
        assert!(object.stamp.version.unwrap().contains(stored.tag.trim_matches('"')));
    }
}

#[test]
fn sidecars_in_buckets_are_found() {
    for scheme in ["s3", "gs", "az"] {
        let case = Case::new(scheme);
        let options = case.index().store(case.store());
        let paths = NAMES.map(|name| case.url(name).into());
        let built = tfseek::index::build_beside(&paths, &options).unwrap();
        // Indexes that are built are in the cache. Others may put them beside the objects.
        assert_eq!((case.server.counts().puts, contents(case.cache.path()).len()), (0, 2));
        for (name, built) in NAMES.iter().zip(built) {
            let file = built.unwrap().indexes[0].file().unwrap().to_path_buf();
            let url = case.url(&format!(".tfseek/{name}.tfri"));
            case.store().put(&url, &fs::read(&file).unwrap()).unwrap();
            fs::remove_file(file).unwrap();
        }
        assert_eq!(case.server.counts().puts, 2);
        let required = case.index().mode(tfseek::IndexMode::Require);
        let ds = DatasetOptions::new().index(required).store(case.store()).open(case.url("train-*")).unwrap();
        assert_eq!((ds.len(), contents(case.cache.path()).len()), (100, 0));
        // Two sidecars, and no byte of the data.
        assert_eq!(case.server.counts().gets, 2);
    }
}

#[test]
fn sources_obey_their_contract() {
    for case in Case::all() {
        let store = case.store();
        let object = store.list(&case.url(NAMES[0]), false).unwrap().objects.remove(0);
        case.server.counts();
        let source = store.open(&object).unwrap();
        assert_eq!(case.server.counts().requests, 0);
        let bytes = case.server.get(&case.object(NAMES[0])).unwrap().bytes;
        let len = bytes.len() as u64;
        assert_eq!((source.len(), source.name()), (len, &*case.url(NAMES[0])));
        source.want(&[0..10, 5..20, 7..u64::MAX, u64::MAX..u64::MAX, 3..3]);
        for range in [0..1, 0..len, 5..17, len - 1..len, 0..0] {
            let mut buf = b"before".to_vec();
            let want = &bytes[range.start as usize..range.end as usize];
            match source.fetch(range, &mut buf).unwrap() {
                tfseek::io::Fetched::Shared(part) => assert_eq!((&*part, &*buf), (want, &b"before"[..])),
                tfseek::io::Fetched::Appended => assert_eq!(buf, [b"before", want].concat()),
            }
        }
        source.forget(&[0..len]);
        for range in [0..len + 1, len..len + 1, 7..u64::MAX] {
            let e = source.fetch(range, &mut Vec::new()).unwrap_err();
            assert!(matches!(e.kind(), tfseek::ErrorKind::Truncated { .. }), "{e}");
        }
        let url = case.url(NAMES[0]);
        let (small, stamp) = store.small(&url, len).unwrap().unwrap();
        assert_eq!((&*small, stamp.size), (&bytes[..], len));
        let e = store.small(&url, len - 1).unwrap_err();
        assert!(matches!(e.kind(), tfseek::ErrorKind::TooLarge { .. }), "{e}");
        assert!(store.small(&case.url("none"), 10).unwrap().is_none());
    }
}

#[test]
fn scans_above_a_limit_tell_their_cost() {
    for scheme in ["s3", "gs", "az", "hf"] {
        let case = Case::new(scheme);
        let index = case.index().auto_limit(1000);
        let options = DatasetOptions::new().index(index).store(case.store());
        let e = options.open(case.url("train-*")).unwrap_err();
        let tfseek::ErrorKind::Index(tfseek::error::IndexError::BuildLimit { bytes, .. }) = e.kind() else {
            panic!("{e}")
        };
        let expected = format!(
            "expected at most 1000 bytes to scan without an explicit request, found {bytes} in 2 shards: about 6 requests and 1 second"
        );
        assert_eq!(e.to_string(), expected);
        let Some(tfseek::error::Remedy::Build(build)) = e.kind().remedy() else { panic!("{e}") };
        assert_eq!(build.paths, NAMES.map(|name| case.url(name)));
        assert_eq!(case.server.counts().gets, 0);
    }
}

#[test]
fn scans_of_very_many_objects_tell_their_requests() {
    let case = Case::new("s3");
    let one = shard(0..1);
    for k in 0..6700 {
        case.set(&format!("many-{k:05}-of-06700.tfrecord"), one.clone());
    }
    let e = case.open("many-*").unwrap_err();
    let text = e.to_string();
    let bytes = 6700 * one.len();
    assert!(
        text.starts_with(&format!(
            "expected at most 20000 requests to scan without an explicit request, found {bytes} bytes in 6700 shards: about 20100 requests and "
        )) && text.ends_with(" seconds"),
        "{text}"
    );
    assert_eq!(case.server.counts().gets, 0);
    let Some(tfseek::error::Remedy::Build(build)) = e.kind().remedy() else { panic!("{e}") };
    assert_eq!(build.paths, [case.url("many-0*-of-06700.tfrecord")]);
}

#[test]
fn what_is_kept_is_bounded() {
    let case = Case::new("s3");
    let mut bytes = Vec::new();
    for _ in 0..6000 {
        put_record(&mut bytes, &[7; 10_000]).unwrap();
    }
    let len = bytes.len() as u64;
    case.set("large.tfrecord", bytes);
    let mut options = case.remote();
    options.memory = 6 << 20;
    let store = Arc::new(RemoteStore::new(options));
    // Slower answers than reads, so that what is asked for is under way.
    case.server.latency(Duration::from_millis(2));
    let stream = tfseek::stream::StreamOptions { store: Some(store.clone()), ..Default::default() };
    let mut stream = stream.open(case.url("large.tfrecord")).unwrap();
    case.server.most_at_once();
    let mut n = 0;
    while stream.next().unwrap().is_some() {
        n += 1;
    }
    assert_eq!(n, 6000);
    let counts = case.server.counts();
    assert!(counts.bytes <= len + len / 10, "{counts:?} of {len} bytes");
    // Requests of 2 to 8 MiB: at most three are under way.
    let most = case.server.most_at_once();
    assert!(most <= 3, "{most} at a time");
}
