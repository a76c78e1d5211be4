//! Indexes: found, built, cached, stale.

use super::*;
use tfseek::error::Remedy;
use tfseek::index::build_beside;
use tfseek::{Damage, IndexMode, Tail};

const NAME: &str = "train-00000-of-00002.tfrecord";

fn size(case: &Case) -> u64 {
    case.bucket.get(&url(NAME)).unwrap().len() as u64
}

#[test]
fn an_index_is_built_once_and_cached_by_the_url() {
    for case in Case::all() {
        let (bytes, ds) = case.bytes(|| case.open(NAME).unwrap());
        assert!(bytes >= size(&case) && ds.len() == 60);
        assert_eq!(case.cached(), 1);
        let file = ds.index(0).unwrap().file().unwrap().to_path_buf();
        assert_eq!(file.parent(), Some(case.cache.path()));
        let written = std::fs::metadata(&file).unwrap().modified().unwrap();
        let options = case.options().index(case.index_options().mode(IndexMode::Require));
        let wanted = || case.bucket.requests().wanted.load(Relaxed);
        let before = wanted();
        let (bytes, again) = case.bytes(|| options.open(url(NAME)).unwrap());
        // Of a small shard they are the same, and announced once for each time that they are read.
        assert_eq!(wanted() - before, if case.bucket.manners().times { 0 } else { bytes / size(&case) });
        // Without a time the fingerprints are compared: of a small shard all its bytes, twice.
        assert_eq!(bytes > 0, !case.bucket.manners().times);
        assert_eq!(labels(&again), (0..60).collect::<Vec<_>>());
        case.open(NAME).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), written);
        // The query is no part of the name.
        case.bucket.set(&url(&format!("{NAME}?sig=1")), case.bucket.get(&url(NAME)).unwrap());
        case.open(&format!("{NAME}?sig=1")).unwrap();
        assert_eq!(case.cached(), 1);
    }
}

/// An index of another object would be that of all objects at one address, or be built again and again.
#[test]
fn objects_that_differ_in_their_query_have_files_of_their_own() {
    for case in Case::all() {
        let of = |query: &str| url(&format!("get?f={query}"));
        case.bucket.set(&of("a"), shard(0..30));
        case.bucket.set(&of("b"), shard(100..130));
        let dir = tempfile::tempdir().unwrap();
        for index in [case.index_options(), case.index_options().index_dir(dir.path())] {
            let open = |query, mode| {
                let options = case.options().index(index.clone().mode(mode));
                let ds = options.open(of(query)).unwrap();
                let found = ds.select(&"label >= 20".parse().unwrap(), &Default::default()).unwrap();
                (labels(&ds), found.0.len())
            };
            for mode in [IndexMode::Auto, IndexMode::Require] {
                assert_eq!(open("a", mode), ((0..30).collect(), 10), "{mode:?}");
                assert_eq!(open("b", mode), ((100..130).collect(), 30), "{mode:?}");
            }
        }
        // An index beside them would be that of both.
        let file = case.options().open(of("a")).unwrap().index(0).unwrap().file().unwrap().to_path_buf();
        case.bucket.set(&url(".tfseek/get.tfri"), std::fs::read(file).unwrap());
        let require = IndexOptions::new().default_dirs(None, None).store(case.bucket.store());
        let options = case.options().index(require.mode(IndexMode::Require));
        assert!(options.open(of("a")).is_err());
        for both in [[of("a"), of("b")], [of("a"), url("get")]] {
            let paths: Vec<_> = both.iter().map(Into::into).collect();
            let e = tfseek::index::open_shards(&paths, &case.index_options()).map(drop).unwrap_err();
            assert!(e.to_string().contains("two URLs have this name"), "{e}");
        }
    }
}

/// In a bucket a name may look like a URL with a query.
#[test]
fn names_that_look_like_queries_are_told_apart() {
    let case = Case::new(Manners::BUCKET);
    case.bucket.set(&url("x"), shard(0..10));
    case.bucket.set(&url("x?y=1"), shard(10..20));
    let e = case.open("x*").unwrap_err().to_string();
    assert!(e.contains("two URLs have this name"), "{e}");
    assert_eq!(labels(&case.open("x").unwrap()), (0..10).collect::<Vec<_>>());
    assert_eq!(labels(&case.open("x?y=1").unwrap()), (10..20).collect::<Vec<_>>());
}

#[test]
fn an_index_beside_the_object_is_used() {
    for case in Case::all() {
        let beside = url(&format!(".tfseek/{NAME}.tfri"));
        for _ in 0..2 {
            // Only the cache is written to.
            let built = build_beside(&[url(NAME).into()], &case.index_options()).unwrap().remove(0).unwrap();
            let file = built.indexes[0].file().unwrap();
            assert_eq!((case.bucket.get(&beside), file.parent()), (None, Some(case.cache.path())));
            assert_eq!(case.cached(), 1);
        }
        let file = std::fs::read_dir(case.cache.path()).unwrap().next().unwrap().unwrap().path();
        case.bucket.set(&beside, std::fs::read(&file).unwrap());
        std::fs::remove_file(file).unwrap();
        let options = case.index_options().mode(IndexMode::Require);
        let ds = case.options().index(options).open(url(NAME)).unwrap();
        assert_eq!((ds.len(), ds.index(0).unwrap().file()), (60, Some(Path::new(&beside))));
        // A damaged one is a warning.
        case.bucket.set(&beside, b"no index".as_slice());
        let ds = case.open(NAME).unwrap();
        assert_eq!((ds.len(), ds.warnings().len(), case.cached()), (60, 1, 1), "{:?}", ds.warnings());
        assert!(ds.warnings()[0].to_string().contains(&beside));
    }
}

#[test]
fn one_listing_tells_that_no_index_is_beside_the_objects() {
    let case = Case::new(Manners::BUCKET);
    for i in 0..100 {
        case.bucket.set(&url(&format!("many-{i}.tfrecord")), shard(i..i + 1));
    }
    let count = || [&case.bucket.requests().lists, &case.bucket.requests().smalls].map(|n| n.load(Relaxed));
    for _ in 0..2 {
        let [lists, smalls] = count();
        assert_eq!(case.open("many-*").unwrap().len(), 100);
        let now = count();
        // Several threads may list the folder of indexes at the same time.
        assert!(now[0] - lists <= 10 && now[1] == smalls, "{now:?}");
    }
    let paths: Vec<_> = (0..100).map(|i| url(&format!("many-{i}.tfrecord")).into()).collect();
    let built = build_beside(&paths, &case.index_options()).unwrap();
    assert!(built.into_iter().all(|index| index.is_ok()));
    assert_eq!(
        (case.bucket.urls().iter().filter(|at| at.ends_with(".tfri")).count(), case.cached()),
        (0, 100)
    );
}

#[test]
fn a_scan_of_a_store_has_a_limit() {
    let case = Case::new(Manners::BUCKET);
    let limited = case.options().index(case.index_options().auto_limit(1000));
    let e = limited.open(url(NAME)).unwrap_err();
    assert!(e.to_string().contains("at most 1000 bytes"), "{e}");
    let Some(Remedy::Build(build)) = e.kind().remedy() else { panic!("{e:?}") };
    assert_eq!(build.paths, [url(NAME)]);
    // What the advice names can be built, however many bytes it has.
    let paths: Vec<_> = build.paths.iter().map(Into::into).collect();
    let built = build_beside(&paths, &case.index_options().auto_limit(1000)).unwrap();
    assert!(built.iter().all(Result::is_ok));
    assert_eq!(limited.open(url(NAME)).unwrap().len(), 60);
}

#[test]
fn an_index_of_a_file_fits_its_copy() {
    for case in Case::all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        std::fs::write(&path, case.bucket.get(&url(NAME)).unwrap()).unwrap();
        let local = IndexOptions::new().default_dirs(None, None);
        build_beside(std::slice::from_ref(&path), &local).unwrap().remove(0).unwrap();
        let sidecar = std::fs::read(dir.path().join(format!(".tfseek/{NAME}.tfri"))).unwrap();
        case.bucket.set(&url(&format!(".tfseek/{NAME}.tfri")), sidecar);
        let options = case.index_options().mode(IndexMode::Require);
        let ds = case.options().index(options).open(url(NAME)).unwrap();
        assert_eq!(labels(&ds), (0..60).collect::<Vec<_>>());
    }
}

#[test]
fn a_replaced_object_is_stale() {
    for case in Case::all() {
        let ds = case.open(NAME).unwrap();
        let early = case.open(NAME).unwrap();
        assert_eq!(early.read(3, &mut Vec::new()).unwrap().at().record, Some(3));
        let mut other = shard(1000..1060);
        other.resize(size(&case) as usize, 0);
        case.bucket.set(&url(NAME), shard(500..560));
        // Open datasets read no byte of another version.
        for ds in [&ds, &early] {
            let e = ds.read(5, &mut Vec::new()).unwrap_err();
            assert!(is_stale(&e) && e.to_string().starts_with(&url(NAME)), "{e}");
        }
        // A new one has a new index, and the old one is no index of it.
        let required = case.options().index(case.index_options().mode(IndexMode::Require));
        assert!(is_stale(&required.open(url(NAME)).unwrap_err()));
        assert_eq!(labels(&case.open(NAME).unwrap()), (500..560).collect::<Vec<_>>());
        assert_eq!(required.open(url(NAME)).unwrap().len(), 60);
    }
}

#[test]
fn a_grown_object_is_scanned_from_its_old_end() {
    for case in Case::all() {
        let long = shard(0..3000);
        case.bucket.set(&url("grows.tfrecord"), long.clone());
        let tolerant = || case.options().index(case.index_options().tail(Tail::Tolerate));
        let ds = tolerant().open(url("grows.tfrecord")).unwrap();
        let mut longer = shard(0..3010);
        longer.extend([7, 0, 0]);
        case.bucket.set(&url("grows.tfrecord"), longer.clone());
        let scanned = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let count = Arc::clone(&scanned);
        let grown = ds
            .refresh_with(move |bytes| {
                count.fetch_add(bytes, Relaxed);
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!((ds.len(), grown.len()), (3000, 3010));
        assert!(scanned.load(Relaxed) <= (longer.len() - long.len()) as u64);
        assert_eq!(labels(&grown)[2990..], (2990..3010).collect::<Vec<_>>());
        assert_eq!(tolerant().open(url("grows.tfrecord")).unwrap().len(), 3010);
        // Another shard is no growth.
        case.bucket.set(&url("grows.tfrecord"), shard(5..3020));
        assert!(is_stale(&ds.refresh().unwrap_err()));
    }
}

#[test]
fn compressed_objects_are_read_from_checkpoints() {
    for case in Case::all() {
        case.bucket.set(&url("packed.tfrecord.gz"), gzip(&shard(0..9000)));
        let options = || case.options().index(case.index_options().checkpoint_every(64 << 10));
        let ds = options().open(url("packed.tfrecord.gz")).unwrap();
        assert!(ds.index(0).unwrap().checkpoint_spacing().unwrap().unwrap().0 > 3);
        let ds = options().open(url("packed.tfrecord.gz")).unwrap();
        let mut buf = Vec::new();
        for i in [8999u64, 0, 4321, 4322, 7000] {
            let label = ds.read(i, &mut buf).unwrap().example().int64("label").unwrap().first();
            assert_eq!(label, Some(i as i64));
        }
        assert_eq!(labels(&ds), (0..9000).collect::<Vec<_>>());
        case.bucket.set(&url("packed.tfrecord.gz"), gzip(&shard(1..9001)));
        let ds = options().open(url("packed.tfrecord.gz")).unwrap();
        assert_eq!(labels(&ds)[..3], [1, 2, 3]);
    }
}

#[test]
fn damage_is_skipped_as_in_files() {
    for case in Case::all() {
        let mut damaged = shard(0..60);
        damaged[1000] ^= 1;
        case.bucket.set(&url(NAME), damaged.clone());
        let rest = tempfile::tempdir().unwrap();
        let index = || case.index_options().damage(Damage::Skip).rest(rest.path());
        let first = case.options().index(index()).open(url(NAME)).unwrap();
        let again = case.options().index(index()).open(url(NAME)).unwrap();
        for ds in [&first, &again] {
            assert!(ds.len() < 60 && ds.warnings().len() == 1, "{:?}", ds.warnings());
            assert_eq!(labels(ds).len() as u64, ds.len());
        }
        let file = std::fs::read(rest.path().join(format!("{NAME}.rest"))).unwrap();
        assert!(!file.is_empty() && damaged.windows(file.len()).any(|part| part == file));
        assert!(case.open(NAME).is_ok_and(|ds| (0..60).any(|i| ds.read(i, &mut Vec::new()).is_err())));
    }
}
