//! The cache on disk: epochs without requests, several processes, damage, replaced objects and kills.

use super::epochs::{Blocks, ORDERS, loader, read};
use super::*;
use server::Fault;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;
use tfseek::io::Store;

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
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
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
        assert!(since.elapsed() < Duration::from_secs(120), "{:?}", files(dir));
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

/// Records of a global order have a file each, and adjacent ones one together. Those of less than 4 KiB are not kept.
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

#[test]
fn damaged_files_are_fetched_again() {
    let blocks = indexed();
    let dir = tempfile::tempdir().unwrap();
    let expected = read(loader(&blocks.files, &ORDERS[2]));
    let ds = cached(&blocks, dir.path(), 100 * MIB);
    read(loader(&ds, &ORDERS[2]));
    settle(dir.path(), 12);
    let found = files(dir.path());
    for (k, file) in found.iter().enumerate() {
        let mut bytes = fs::read(file).unwrap();
        match k % 4 {
            0 => bytes[1000] ^= 1,
            1 => bytes.truncate(bytes.len() / 2),
            2 => bytes.clear(),
            _ => continue,
        }
        fs::write(file, bytes).unwrap();
    }
    blocks.case.server.counts();
    assert_eq!(read(loader(&ds, &ORDERS[2])), expected);
    assert_eq!(blocks.case.server.counts().gets as usize, found.len().div_ceil(4) * 3);
    // A folder that goes, and one that cannot be written.
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

#[test]
fn faults_are_not_kept() {
    let blocks = indexed();
    let dir = tempfile::tempdir().unwrap();
    let expected = read(loader(&blocks.files, &ORDERS[2]));
    let ds = cached(&blocks, dir.path(), 100 * MIB);
    for fault in [Fault::Status(503), Fault::Reset(1000), Fault::Status(403)] {
        blocks.case.server.fail("set-1", fault, 2);
        let loader = loader(&ds, &ORDERS[2]).build().unwrap();
        let failed = loader.map(|step| step.map(drop)).collect::<Result<Vec<_>>>().is_err();
        blocks.case.server.clear_faults();
        if failed {
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(read(super::epochs::loader(&ds, &ORDERS[2])), expected);
    }
}

/// The process that a test below kills: it reads epochs from the server in `TFSEEK_TEST_SERVER` with the cache in `TFSEEK_TEST_CACHE`.
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
        assert!(since.elapsed() < Duration::from_secs(60), "{} pieces", pieces());
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
