//! Datasets, indexes, columns, loaders, parts and streams over a store in memory, which behaves as a bucket
//! would.

mod hostile;
mod identity;
mod index;
mod open;
mod parts;
mod read;
mod web;
mod whole;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tempfile::TempDir;
use tfseek::frame::put_record;
use tfseek::index::IndexOptions;
use tfseek::{Dataset, DatasetOptions, ErrorKind, ExampleBuilder, Result};
use tfseek_testkit::bucket::{BucketStore, Manners};
use tfseek_testkit::labelled::{labels, shard};

const ROOT: &str = "mem://bucket/data";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use flate2::{Compression, write::GzEncoder};
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

fn url(name: &str) -> String {
    format!("{ROOT}/{name}")
}

/// A bucket with a set of two shards of 60 and 40 records, and a cache for its indexes.
struct Case {
    bucket: BucketStore,
    cache: TempDir,
}

impl Case {
    fn new(manners: Manners) -> Case {
        let bucket = BucketStore::new(manners);
        bucket.set(&url("train-00000-of-00002.tfrecord"), shard(0..60));
        bucket.set(&url("train-00001-of-00002.tfrecord"), shard(60..100));
        Case { bucket, cache: tempfile::tempdir().unwrap() }
    }

    /// Returns a case for each kind of store.
    fn all() -> impl Iterator<Item = Case> {
        Manners::ALL.into_iter().map(Case::new)
    }

    fn index_options(&self) -> IndexOptions {
        IndexOptions::new().default_dirs(None, Some(self.cache.path().into())).store(self.bucket.store())
    }

    fn options(&self) -> DatasetOptions {
        DatasetOptions::new().index(self.index_options())
    }

    fn open(&self, name: &str) -> Result<Dataset> {
        self.options().open(url(name))
    }

    /// Returns the number of bytes that `f` reads from objects, and its result.
    fn bytes<T>(&self, f: impl FnOnce() -> T) -> (u64, T) {
        let before = self.bucket.requests().bytes.load(Relaxed);
        let result = f();
        (self.bucket.requests().bytes.load(Relaxed) - before, result)
    }

    /// Returns the number of files in the cache.
    fn cached(&self) -> usize {
        std::fs::read_dir(self.cache.path()).unwrap().count()
    }
}

fn is_stale(e: &tfseek::Error) -> bool {
    let text = e.to_string();
    matches!(e.kind(), ErrorKind::Index(_)) && text.contains("stale")
}
