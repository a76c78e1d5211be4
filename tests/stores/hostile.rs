//! Stores and sources that do not keep their contract: errors, never panics or wrong records.

use super::*;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use tfseek::IndexMode;
use tfseek::error::Error;
use tfseek::index::write_pack;
use tfseek::io::{Fetched, Listing, Object, Region, Source, Stamp, Store};
use tfseek_testkit::bucket::Requests;

/// Number of shards of a large pack.
const SHARDS: u64 = 2000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    None,
    /// The answer lacks its last byte.
    Short,
    /// The answer has a byte too many.
    Long,
    /// The answer is empty.
    Nothing,
    /// The buffer of the caller is emptied.
    Cleared,
    /// A part of another object.
    Other,
    /// The bytes of a range that ends beyond the object.
    Size,
    Fails,
}

#[derive(Debug)]
struct Liar {
    honest: Arc<dyn Store>,
    lie: std::sync::Mutex<Lie>,
}

#[derive(Debug)]
struct LyingSource(Arc<Liar>, Arc<dyn Source>);

#[derive(Debug)]
struct LyingStore(Arc<Liar>);

impl Store for LyingStore {
    fn list(&self, prefix: &str, deep: bool) -> Result<Listing> {
        let mut listing = self.0.honest.list(prefix, deep)?;
        if *self.0.lie.lock().unwrap() == Lie::Size {
            listing.objects.iter_mut().for_each(|object| object.stamp.size += 1 << 50);
        }
        Ok(listing)
    }

    fn open(&self, object: &Object) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(LyingSource(Arc::clone(&self.0), self.0.honest.open(object)?)))
    }

    fn small(&self, url: &str, limit: u64) -> Result<Option<(Region, Stamp)>> {
        self.0.honest.small(url, limit)
    }

    fn put(&self, url: &str, bytes: &[u8]) -> Result<()> {
        self.0.honest.put(url, bytes)
    }
}

impl Source for LyingSource {
    fn name(&self) -> &str {
        self.1.name()
    }

    fn len(&self) -> u64 {
        self.1.len()
    }

    fn stamp(&self) -> Result<Stamp> {
        self.1.stamp()
    }

    fn want(&self, _: &[Range<u64>]) {}

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        let mut bytes = Vec::new();
        if let Fetched::Shared(shared) = self.1.fetch(range.clone(), &mut bytes)? {
            bytes = shared.to_vec();
        }
        match *self.0.lie.lock().unwrap() {
            Lie::None | Lie::Size => {}
            Lie::Short => _ = bytes.pop(),
            Lie::Long => bytes.push(7),
            Lie::Nothing => bytes.clear(),
            Lie::Cleared => buf.clear(),
            Lie::Other => bytes.fill(7),
            Lie::Fails => return Err(Error::from(io::Error::other("the server has no time"))),
        }
        if range.start.is_multiple_of(2) {
            return Ok(Fetched::Shared(bytes.into()));
        }
        buf.extend_from_slice(&bytes);
        Ok(Fetched::Appended)
    }
}

#[test]
fn answers_are_compared_with_requests() {
    for lie in [Lie::Short, Lie::Long, Lie::Nothing, Lie::Cleared, Lie::Other, Lie::Fails] {
        let case = Case::new(Manners::BUCKET);
        let liar = Arc::new(Liar { honest: case.bucket.store(), lie: Lie::None.into() });
        let options =
            || DatasetOptions::new().index(IndexMode::Memory).store(Arc::new(LyingStore(liar.clone())));
        let ds = options().open(url("train-*")).unwrap();
        assert_eq!(labels(&ds).len(), 100);
        *liar.lie.lock().unwrap() = lie;
        for i in 0..100 {
            let mut buf = b"before".to_vec();
            match ds.read(i, &mut buf) {
                Ok(record) => assert_eq!(
                    (record.example().int64("label").unwrap().first(), lie),
                    (Some(i as i64), Lie::Cleared)
                ),
                Err(e) => assert!(e.to_string().contains("train-0000"), "{e}"),
            }
        }
        let loader = ds.record_loader().batch_size(7).threads(2).build().unwrap();
        let steps: Vec<_> = loader.collect();
        assert!(steps.iter().any(|step| step.is_err()), "{lie:?}");
        // While an index is built as well.
        if let Ok(built) = options().open(url("train-*")) {
            assert_eq!((built.len(), lie), (100, Lie::Cleared));
        }
    }
}

/// Returns a case with a pack of more than half a megabyte, which does not have the shards in the order of
/// their names, and its length.
fn large_pack() -> (Case, u64) {
    let case = Case::new(Manners { latency: Duration::ZERO, ..Manners::BUCKET });
    let names: Vec<_> = (0..SHARDS).map(|k| url(&format!("many-{k:05}-of-{SHARDS:05}.tfrecord"))).collect();
    names.iter().for_each(|name| case.bucket.set(name, shard(0..2)));
    let paths: Vec<_> = names.into_iter().rev().map(PathBuf::from).collect();
    write_pack("many", &paths, &case.index_options()).unwrap();
    let len = case.bucket.get(&url(".tfseek/many.tfrp")).unwrap().len() as u64;
    assert!(len > 512 << 10, "{len}");
    (case, len)
}

#[test]
fn a_large_pack_is_read_in_parts_at_a_time() {
    let (case, len) = large_pack();
    let Requests { ranges, wanted, smalls, bytes, .. } = case.bucket.requests();
    let counts = || [ranges, wanted, smalls, bytes].map(|n| n.load(Relaxed));
    // The pack itself, and the pack beside shards, which is found by the listing of its folder.
    for name in [".tfseek/many.tfrp", "many-*"] {
        let before = counts();
        let without_cache = IndexOptions::new().default_dirs(None, None).store(case.bucket.store());
        assert_eq!(DatasetOptions::new().index(without_cache).open(url(name)).unwrap().len(), 2 * SHARDS);
        let after = counts();
        let parts = len.div_ceil(256 << 10);
        let read: [u64; 4] = std::array::from_fn(|k| after[k] - before[k]);
        assert_eq!(read, [parts, parts, 0, len], "{name}");
    }
    // An index that no longer fits its shard is searched for in the other packs.
    let changed = url(&format!("many-00000-of-{SHARDS:05}.tfrecord"));
    case.bucket.set(&changed, shard(0..3));
    write_pack("new", &[changed.into()], &case.index_options()).unwrap();
    let options = IndexOptions::new().default_dirs(None, None).store(case.bucket.store());
    let required = DatasetOptions::new().index(options.mode(IndexMode::Require));
    assert_eq!(required.open(url("many-*")).unwrap().len(), 2 * SHARDS + 1);
}

#[test]
fn a_pack_whose_parts_cannot_be_read_is_read_at_once() {
    let (case, _) = large_pack();
    // Other bytes are found by the checksums.
    for lie in [Lie::Short, Lie::Long, Lie::Nothing, Lie::Cleared, Lie::Fails, Lie::Size, Lie::Other] {
        let liar = Arc::new(Liar { honest: case.bucket.store(), lie: lie.into() });
        let smalls = case.bucket.requests().smalls.load(Relaxed);
        let options = DatasetOptions::new().store(Arc::new(LyingStore(liar)));
        assert_eq!(options.open(url(".tfseek/many.tfrp")).unwrap().len(), 2 * SHARDS);
        assert_eq!(case.bucket.requests().smalls.load(Relaxed) - smalls, 1, "{lie:?}");
    }
}

#[test]
fn a_wrong_size_is_an_error() {
    let case = Case::new(Manners::BUCKET);
    let liar = Arc::new(Liar { honest: case.bucket.store(), lie: Lie::Size.into() });
    let options = DatasetOptions::new().index(IndexMode::Memory).store(Arc::new(LyingStore(liar)));
    let e = options.open(url("train-*")).unwrap_err().to_string();
    assert!(e.starts_with(&url("train-00000-of-00002.tfrecord")) || e.contains("limit"), "{e}");
}
