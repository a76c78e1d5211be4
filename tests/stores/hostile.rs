//! Stores and sources that do not keep their contract: errors, never panics or wrong records.

use super::*;
use std::io;
use std::ops::Range;
use tfseek::IndexMode;
use tfseek::error::Error;
use tfseek::io::{Fetched, Listing, Object, Region, Source, Stamp, Store};

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

#[test]
fn a_wrong_size_is_an_error() {
    let case = Case::new(Manners::BUCKET);
    let liar = Arc::new(Liar { honest: case.bucket.store(), lie: Lie::Size.into() });
    let options = DatasetOptions::new().index(IndexMode::Memory).store(Arc::new(LyingStore(liar)));
    let e = options.open(url("train-*")).unwrap_err().to_string();
    assert!(e.starts_with(&url("train-00000-of-00002.tfrecord")) || e.contains("limit"), "{e}");
}
