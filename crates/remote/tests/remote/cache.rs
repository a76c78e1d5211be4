//! The cache on disk: epochs without requests, several processes, damage, replaced objects and kills.

use super::epochs::{Blocks, ORDERS, loader, read};
use super::*;
use server::Fault;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;
use tfseek::Damage;
use tfseek::io::Store;
use tfseek::stream::StreamOptions;

const MIB: u64 = 1 << 20;

/// Returns objects whose index is here, so that no scan is in a cache.
fn indexed() -> Blocks {
    let blocks = Blocks::new();
    blocks.open(|_| ());
    blocks
}

/// Opens the objects with a cache.
fn cached(blocks: &Blocks, dir: &Path, bytes: u64) -> Dataset {
    blocks.open(|options| (options.cache_dir, options.cache_bytes) = (Some(dir.into()), Some(bytes)))
}

/// Returns all files of a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()))
        } else {
            found.push(entry.path())
        }
    }
    found
}

/// Waits until the pieces that were read are written.
fn settle(dir: &Path, pieces: usize) {
    let since = Instant::now();
    let done = || {
        let files = files(dir);
        files.len() >= pieces && files.iter().all(|file| file.extension().is_none())
    };
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(600), "{:?}", files(dir));
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_second_epoch_makes_no_request() {
    let blocks = indexed();
    for shuffle in [&ORDERS[0], &ORDERS[2], &ORDERS[3]] {
        let dir = tempfile::tempdir().unwrap();
        let ds = cached(&blocks, dir.path(), 100 * MIB);
        let first = read(loader(&ds, shuffle).threads(2));
        settle(dir.path(), 6);
        blocks.case.server.counts();
        assert_eq!(read(loader(&ds, shuffle).threads(2)), first);
        // Another process, and another seed.
        let again = cached(&blocks, dir.path(), 100 * MIB);
        let other = read(loader(&again, shuffle).seed(8));
        assert_eq!(other, read(loader(&blocks.files, shuffle).seed(8)));
        let counts = blocks.case.server.counts();
        assert_eq!(counts.gets, 0, "{shuffle:?}: {counts:?}");
    }
}

/// Records of a global order have a file each, and adjacent ones one together. Those of less than 4 KiB are
/// not kept.
#[test]
fn a_global_order_keeps_larger_records() {
    let case = Case::new("s3");
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    for k in 0..200u32 {
        put_record(&mut bytes, &vec![k as u8; 10_000 + 100 * k as usize]).unwrap();
    }
    case.set("large.tfrecord", bytes);
    let mut options = case.remote();
    (options.cache_dir, options.cache_bytes) = (Some(dir.path().into()), Some(100 * MIB));
    let ds = case.with(Arc::new(RemoteStore::new(options))).open(case.url("large.tfrecord")).unwrap();
    for epoch in 0..3 {
        case.server.counts();
        let loader =
            ds.record_loader().batch_size(16).shuffle(tfseek::Shuffle::Global).seed(epoch).threads(2);
        let ids: std::collections::BTreeSet<u64> =
            loader.build().unwrap().flat_map(|step| step.unwrap().ids.to_vec()).collect();
        assert_eq!(ids.len(), 200);
        let gets = case.server.counts().gets;
        assert!(if epoch == 0 { gets > 100 } else { gets < 60 }, "{epoch}: {gets}");
        settle(dir.path(), 150);
    }
}

#[test]
fn two_processes_fetch_a_piece_once() {
    let blocks = indexed();
    let dir = tempfile::tempdir().unwrap();
    blocks.case.server.latency(Duration::from_millis(20));
    // Both ranks read all blocks.
    blocks.case.server.counts();
    thread::scope(|scope| {
        for rank in 0..4 {
            let (blocks, dir) = (&blocks, dir.path());
            scope.spawn(move || {
                let of = |ds: &Dataset| read(loader(ds, &ORDERS[2]).rank(rank, 4).global_batch_size(64));
                assert_eq!(of(&cached(blocks, dir, 100 * MIB)), of(&blocks.files));
            });
        }
    });
    let counts = blocks.case.server.counts();
    assert!(counts.gets <= 16 && counts.bytes <= blocks.bytes + 2 * MIB, "{counts:?}");
}

/// What a checksum refuses is not in the cache for the next epoch, for other processes, or for those who skip
/// damage.
#[test]
fn a_flipped_bit_does_not_stay() {
    let blocks = indexed();
    let expected = read(loader(&blocks.files, &ORDERS[2]));
    for damage in [Damage::Raise, Damage::Skip] {
        let dir = tempfile::tempdir().unwrap();
        let ds = cached(&blocks, dir.path(), 100 * MIB);
        ds.index(0).unwrap();
        blocks.case.server.fail("set-1", Fault::Flip(1000), 1);
        assert_eq!(read(loader(&ds, &ORDERS[2]).damage(damage)), expected);
        assert_eq!(blocks.case.server.faults_left(), 0);
        // If the record was the last that was needed of its piece, only the record came again.
        settle(dir.path(), 11);
        assert_eq!(read(loader(&ds, &ORDERS[2]).damage(damage)), expected);
        settle(dir.path(), 12);
        blocks.case.server.counts();
        assert_eq!(read(loader(&cached(&blocks, dir.path(), 100 * MIB), &ORDERS[2])), expected);
        assert_eq!(blocks.case.server.counts().gets, 0);
    }
    // An earlier process has left wrong bytes whose checksum is theirs.
    let dir = tempfile::tempdir().unwrap();
    read(loader(&cached(&blocks, dir.path(), 100 * MIB), &ORDERS[2]));
    settle(dir.path(), 12);
    for file in files(dir.path()) {
        let mut bytes = fs::read(&file).unwrap();
        let len = bytes.len() - 4;
        bytes[len / 2] ^= 1;
        let sum = tfseek::crc::crc32c(&bytes[..len]).to_le_bytes();
        bytes[len..].copy_from_slice(&sum);
        fs::write(file, bytes).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(read(loader(&cached(&blocks, dir.path(), 100 * MIB), &ORDERS[2])), expected);
    }
    settle(dir.path(), 12);
    blocks.case.server.counts();
    assert_eq!(read(loader(&cached(&blocks, dir.path(), 100 * MIB), &ORDERS[2])), expected);
    assert_eq!(blocks.case.server.counts().gets, 0);
}

/// Bytes that are wrong in the store too are asked for once more, however many of their records are.
#[test]
fn damage_in_the_store_is_fetched_at_most_twice() {
    let case = Case::new("s3");
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    (0..300u32).for_each(|k| put_record(&mut bytes, &vec![k as u8; 10_000]).unwrap());
    for k in 0..200 {
        bytes[k * 10_016 + 500] ^= 1;
    }
    case.set("damaged.tfrecord", bytes.clone());
    // All records are one block, and no scan is in the cache.
    case.open("damaged.tfrecord").unwrap();
    let mut options = case.remote();
    (options.cache_dir, options.cache_bytes) = (Some(dir.path().into()), Some(100 * MIB));
    let ds = case.with(Arc::new(RemoteStore::new(options))).open(case.url("damaged.tfrecord")).unwrap();
    for epoch in 0..3 {
        case.server.counts();
        let loader = ds.record_loader().batch_size(10).shuffle(ORDERS[2].clone()).damage(Damage::Skip);
        let kept: usize = loader.build().unwrap().map(|step| step.unwrap().ids.len()).sum();
        assert_eq!(kept, 100);
        settle(dir.path(), 1);
        let counts = case.server.counts();
        assert!(counts.bytes <= 2 * bytes.len() as u64 + 2 * MIB, "{epoch}: {counts:?}");
    }
}

/// Objects of one name on two servers, and of two queries, may have one size, time and version.
#[test]
fn objects_that_are_alike_are_not_mixed_up() {
    for scheme in ["s3", "gs", "az", "http"] {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = [0, 1].map(|_| Case::new(scheme));
        let object = one.object("alike.tfrecord");
        one.server.set(&object, shard(0..40));
        let like = one.server.get(&object).unwrap();
        two.server.set_alike(&object, shard(1000..1040), &like);
        one.server.set_alike(&format!("{object}?f=a"), shard(2000..2040), &like);
        one.server.set_alike(&format!("{object}?f=b"), shard(3000..3040), &like);
        let open = |case: &Case, url: String| {
            let mut options = case.remote();
            (options.cache_dir, options.cache_bytes) = (Some(dir.path().into()), Some(100 * MIB));
            one.with(Arc::new(RemoteStore::new(options))).open(url)
        };
        for _ in 0..2 {
            let url = one.url("alike.tfrecord");
            assert_eq!(labels(&open(&one, url.clone()).unwrap()), (0..40).collect::<Vec<_>>());
            if scheme != "http" {
                assert_eq!(labels(&open(&two, url).unwrap()), (1000..1040).collect::<Vec<_>>());
                continue;
            }
            for (query, first) in [("f=a", 2000), ("f=b", 3000), ("f=a&X-Amz-Signature=1", 2000)] {
                let ds = open(&one, format!("{url}?{query}")).unwrap();
                assert_eq!(labels(&ds), (first..first + 40).collect::<Vec<_>>(), "{query}");
                // Parts keep the query, and the index of an object is its own.
                let part = ds.shares(1).unwrap().remove(0).remove(0);
                assert!(part.shard.ends_with(query.split_at(3).0), "{}", part.shard);
                let options = StreamOptions { store: Some(one.store()), ..StreamOptions::default() };
                let mut stream = options.part(&part).unwrap();
                let found = stream.next().unwrap().unwrap().example().int64("label").unwrap().first();
                assert_eq!((found, stream.name()), (Some(first), Path::new(&url)));
            }
        }
        // Those of a store that are read by their names, which have no query.
        if scheme == "http" {
            let url = |query: &str| format!("{}?{query}", one.url("alike.tfrecord"));
            let store = one.store();
            let paths =
                |url: String| tfseek::paths::resolve_in_store(Some(store.clone()), &*url, false).unwrap().0;
            let stream = StreamOptions { store: Some(store.clone()), ..StreamOptions::default() };
            let names = paths(url("f=a"));
            assert!(stream.open(&names[0]).is_ok());
            assert_eq!(paths(url("f=b")), names);
            let e = stream.open(&names[0]).map(drop).unwrap_err().to_string();
            assert!(e.contains("two URLs have this name"), "{e}");
            let e = one.with(store.clone()).open([url("f=a"), url("f=b")]).unwrap_err().to_string();
            assert!(e.contains("two URLs have this name") && !e.contains("f="), "{e}");
        }
    }
}

#[test]
fn a_folder_that_goes_or_cannot_be_written_changes_no_batch() {
    let blocks = indexed();
    let dir = tempfile::tempdir().unwrap();
    let expected = read(loader(&blocks.files, &ORDERS[2]));
    let ds = cached(&blocks, dir.path(), 100 * MIB);
    read(loader(&ds, &ORDERS[2]));
    fs::remove_dir_all(dir.path()).unwrap();
    assert_eq!(read(loader(&ds, &ORDERS[2])), expected);
    fs::create_dir_all(dir.path()).unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    assert_eq!(read(loader(&cached(&blocks, &file, 100 * MIB), &ORDERS[2])), expected);
}

/// Pieces on disk take no memory, and are read as they are needed. One that becomes shorter then is fetched.
#[test]
fn windows_stay_on_disk() {
    let blocks = indexed();
    let dir = tempfile::tempdir().unwrap();
    read(loader(&cached(&blocks, dir.path(), 100 * MIB), &ORDERS[2]));
    settle(dir.path(), 12);
    let expected = read(loader(&blocks.files, &ORDERS[2]));
    for threads in [1, 2] {
        let ds = cached(&blocks, dir.path(), 100 * MIB);
        assert_eq!(read(loader(&ds, &ORDERS[2]).threads(threads)), expected);
        let traffic = ds.traffic().unwrap();
        assert!(traffic.requests == 0 && traffic.cached_bytes >= blocks.bytes / 10 * 9, "{traffic:?}");
        // The second epoch opens the files again, and reads none to check it.
        assert_eq!(read(loader(&ds, &ORDERS[2]).threads(threads)), expected);
    }
    let ds = cached(&blocks, dir.path(), 100 * MIB);
    let mut steps = loader(&ds, &ORDERS[2]).threads(1).build().unwrap();
    let mut ids = vec![steps.next().unwrap().unwrap().ids.to_vec()];
    blocks.case.server.counts();
    for file in files(dir.path()) {
        fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(100).unwrap();
    }
    ids.extend(steps.map(|step| step.unwrap().ids.to_vec()));
    assert_eq!(
        ids.concat(),
        loader(&blocks.files, &ORDERS[2])
            .build()
            .unwrap()
            .flat_map(|s| s.unwrap().ids.to_vec())
            .collect::<Vec<_>>()
    );
    let counts = blocks.case.server.counts();
    assert!(counts.gets > 2, "{counts:?}");
}

#[test]
fn the_limit_holds_and_replaced_objects_have_pieces_of_their_own() {
    let blocks = indexed();
    let dir = tempfile::tempdir().unwrap();
    let ds = cached(&blocks, dir.path(), 5 * MIB);
    for seed in 0..3 {
        let of = |ds: &Dataset| read(loader(ds, &ORDERS[2]).seed(seed));
        assert_eq!(of(&ds), of(&blocks.files));
        let bytes: u64 = files(dir.path()).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
        // Files count once they are renamed.
        assert!(bytes <= 7 * MIB && bytes > MIB, "{bytes}");
    }
    let options = || {
        let mut options = blocks.case.remote();
        (options.cache_dir, options.cache_bytes) = (Some(dir.path().into()), Some(5 * MIB));
        options
    };
    let content = RemoteStore::new(options()).cache().unwrap().unwrap();
    assert_eq!((&*content.folder, content.limit), (dir.path(), 5 * MIB));
    assert!(content.bytes > MIB && content.pieces > 0, "{content:?}");
    // The other half of a pair is missing: the error names it.
    let mut half = options();
    half.cache_bytes = None;
    let e = RemoteStore::new(half).list("s3://bucket/data/", false).unwrap_err().to_string();
    assert!(e.contains("TFSEEK_CACHE_BYTES"), "{e}");

    let roomy = tempfile::tempdir().unwrap();
    let ds = cached(&blocks, roomy.path(), 100 * MIB);
    read(loader(&ds, &ORDERS[2]));
    let old = blocks.case.server.get("bucket/data/set-1.tfrecord").unwrap();
    let mut changed = old.bytes.to_vec();
    changed.truncate(old.bytes.len() / 2);
    changed.resize(old.bytes.len(), 0);
    blocks.case.set("set-1.tfrecord", changed);
    let open = || {
        let mut options = blocks.case.remote();
        (options.cache_dir, options.cache_bytes) = (Some(roomy.path().into()), Some(100 * MIB));
        let index = IndexOptions::new().default_dirs(None, None).mode(tfseek::IndexMode::Memory);
        DatasetOptions::new()
            .index(index)
            .store(Arc::new(RemoteStore::new(options)))
            .open(blocks.case.url("set-*"))
    };
    let e = open().unwrap_err();
    assert!(e.is_data() && e.to_string().contains("set-1"), "{e}");
}

/// The process that a test below kills: it reads epochs from the server in `TFSEEK_TEST_SERVER` with the
/// cache in `TFSEEK_TEST_CACHE`.
#[test]
fn a_reader_that_is_killed() {
    let (Ok(url), Ok(dir)) = (std::env::var("TFSEEK_TEST_SERVER"), std::env::var("TFSEEK_TEST_CACHE")) else {
        return;
    };
    let mut options = RemoteOptions::default();
    let variables = [("AWS_ENDPOINT_URL", &*url), ("AWS_ALLOW_HTTP", "true"), ("AWS_SKIP_SIGNATURE", "true")];
    options.variables = Some(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    (options.cache_dir, options.cache_bytes) = (Some(dir.into()), Some(8 * MIB));
    let index = IndexOptions::new().default_dirs(None, None).mode(tfseek::IndexMode::Memory);
    let ds = DatasetOptions::new().index(index).store(Arc::new(RemoteStore::new(options)));
    let ds = ds.open("s3://bucket/data/set-*").unwrap();
    loop {
        read(loader(&ds, &ORDERS[2]));
    }
}

fn kills(number: usize) {
    let blocks = indexed();
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "cache::a_reader_that_is_killed", "--nocapture"]);
        command.env("TFSEEK_TEST_SERVER", blocks.case.server.url()).env("TFSEEK_TEST_CACHE", dir.path());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut readers = [start(), start()];
    for k in 0..number {
        thread::sleep(Duration::from_millis(20 + (k as u64 * 37) % 90));
        let reader = &mut readers[k % 2];
        assert!(reader.try_wait().unwrap().is_none(), "a reader ended");
        reader.kill().unwrap();
        reader.wait().unwrap();
        *reader = start();
    }
    for mut reader in readers {
        reader.kill().unwrap();
        reader.wait().unwrap();
    }
    // Every piece is whole, and what is left over is few.
    let expected = read(loader(&blocks.files, &ORDERS[2]));
    assert_eq!(read(loader(&cached(&blocks, dir.path(), 8 * MIB), &ORDERS[2])), expected);
    let pieces = || files(dir.path()).iter().filter(|file| file.extension().is_none()).count();
    let since = Instant::now();
    // Pieces are written after they are read.
    while pieces() <= 2 {
        assert!(since.elapsed() < Duration::from_secs(600), "{} pieces", pieces());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn kills_leave_whole_pieces() {
    kills(10);
}

#[test]
#[ignore = "takes half a minute"]
fn a_hundred_kills_leave_whole_pieces() {
    kills(100);
}
