//! Objects whose bytes are in memory: records are borrowed from them.

use super::*;
use std::ops::Range;
use tfseek::Mapped;
use tfseek::io::{Fetched, Listing, Object, Region, Source, Stamp, Store};

/// A store that loads objects when it opens them.
#[derive(Debug)]
struct Loaded(BucketStore);

#[derive(Debug)]
struct LoadedObject(Region, Object);

impl Store for Loaded {
    fn list(&self, prefix: &str, deep: bool) -> Result<Listing> {
        self.0.list(prefix, deep)
    }

    fn open(&self, object: &Object) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(LoadedObject(self.0.get(&object.url).unwrap().into(), object.clone())))
    }

    fn small(&self, url: &str, limit: u64) -> Result<Option<(Region, Stamp)>> {
        self.0.small(url, limit)
    }

    fn put(&self, url: &str, bytes: &[u8]) -> Result<()> {
        self.0.put(url, bytes)
    }
}

impl Source for LoadedObject {
    fn name(&self) -> &str {
        &self.1.url
    }

    fn len(&self) -> u64 {
        Source::len(&self.0)
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(self.1.stamp.clone())
    }

    fn whole(&self) -> Option<&Region> {
        Some(&self.0)
    }

    fn want(&self, ranges: &[Range<u64>]) {
        self.0.want(ranges);
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.0.fetch(range, buf)
    }
}

#[test]
fn records_borrow_from_whole_objects() {
    for case in Case::all() {
        let options = || case.options().store(Arc::new(Loaded(case.bucket.clone())));
        let ds = options().open(url("train-*")).unwrap();
        assert_eq!(labels(&ds), (0..100).collect::<Vec<_>>());
        let mapped = Mapped::from_dataset(&ds).unwrap();
        let label = |i: u64| mapped.get(i).unwrap().example().int64("label").unwrap().first();
        assert_eq!((label(0), label(99)), (Some(0), Some(99)));
        assert!(mapped.get(7).unwrap().region().is_some());
        let loader = ds.record_loader().batch_size(7).threads(2).build().unwrap();
        assert_eq!(loader.map(|step| step.unwrap().ids.len()).sum::<usize>(), 100);
        let column = ds.column("label", &Default::default()).unwrap();
        assert_eq!((column.count(), case.cached()), (100, 4));
        assert!(options().open(url("train-*")).unwrap().find_columns(&["label"]).unwrap()[0].is_some());
        // Compressed ones are read as others are.
        case.bucket.set(&url("more.tfrecord.gz"), gzip(&shard(100..150)));
        let ds = options().open(url("*.tfrecord*")).unwrap();
        assert!(Mapped::from_dataset(&ds).is_none());
        assert_eq!(labels(&ds).len(), 150);
        // The bytes are those of the version that was opened.
        case.bucket.set(&url("train-00000-of-00002.tfrecord"), shard(500..560));
        assert_eq!((label(0), ds.refresh().is_err()), (Some(0), true));
    }
}
