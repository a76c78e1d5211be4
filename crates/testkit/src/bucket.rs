//! A store in memory that behaves as a bucket would: no inodes, a clock of its own or none, listings by
//! prefix, reads of ranges after a delay. A replaced object has another version.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tfseek::error::{ErrorKind, IndexError, Result};
use tfseek::io::{Fetched, Listing, Object, Region, Source, Stamp, Store, bare_url};

/// What a bucket tells of its objects, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    pub times: bool,
    pub versions: bool,
    pub writable: bool,
    pub latency: Duration,
}

impl Manners {
    pub const BUCKET: Manners =
        Manners { times: true, versions: true, writable: true, latency: Duration::from_micros(200) };

    /// A bucket, a hub that has versions and no times, and a server that has times only and cannot be written
    /// to.
    pub const ALL: [Manners; 3] = [
        Manners::BUCKET,
        Manners { times: false, ..Manners::BUCKET },
        Manners { versions: false, writable: false, ..Manners::BUCKET },
    ];
}

/// Numbers of requests.
#[derive(Debug, Default)]
pub struct Requests {
    pub lists: AtomicU64,
    pub opens: AtomicU64,
    pub ranges: AtomicU64,
    pub bytes: AtomicU64,
    pub smalls: AtomicU64,
    pub wanted: AtomicU64,
    pub forgotten: AtomicU64,
}

/// A store in memory. A clone has the same objects.
#[derive(Clone)]
pub struct BucketStore(Arc<Shared>);

struct Shared {
    manners: Manners,
    objects: Mutex<BTreeMap<String, Stored>>,
    requests: Requests,
    /// Number of objects that were written.
    writes: AtomicU64,
}

#[derive(Clone)]
struct Stored {
    bytes: Arc<[u8]>,
    stamp: Stamp,
}

impl BucketStore {
    pub fn new(manners: Manners) -> BucketStore {
        let (objects, requests, writes) = Default::default();
        BucketStore(Arc::new(Shared { manners, objects, requests, writes }))
    }

    /// Returns a bucket for the options of a dataset.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    pub fn requests(&self) -> &Requests {
        &self.0.requests
    }

    pub fn manners(&self) -> Manners {
        self.0.manners
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Stored>> {
        self.0.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes or replaces an object, also in a bucket that is not writable.
    pub fn set(&self, url: &str, bytes: impl Into<Vec<u8>>) {
        let (bytes, write) = (bytes.into(), self.0.writes.fetch_add(1, Relaxed) + 1);
        let mut stamp = Stamp::new(bytes.len() as u64);
        // A clock of 2096.
        stamp.modified_ns =
            self.0.manners.times.then_some(4_000_000_000_000_000_000 + write as i64 * 1_000_000_000);
        stamp.version = self.0.manners.versions.then(|| format!("\"v{write}\"").into());
        self.objects().insert(url.into(), Stored { bytes: bytes.into(), stamp });
    }

    pub fn get(&self, url: &str) -> Option<Vec<u8>> {
        self.objects().get(url).map(|stored| stored.bytes.to_vec())
    }

    pub fn remove(&self, url: &str) -> bool {
        self.objects().remove(url).is_some()
    }

    pub fn urls(&self) -> Vec<String> {
        self.objects().keys().cloned().collect()
    }

    fn wait(&self) {
        std::thread::sleep(self.0.manners.latency);
    }

    fn stored(&self, url: &str) -> Result<Stored> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "the bucket has no such object");
        Ok(self.objects().get(url).cloned().ok_or_else(missing)?)
    }
}

impl fmt::Debug for BucketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BucketStore({} objects)", self.objects().len())
    }
}

impl Store for BucketStore {
    fn list(&self, prefix: &str, deep: bool) -> Result<Listing> {
        self.wait();
        self.0.requests.lists.fetch_add(1, Relaxed);
        let (mut objects, mut folders) = (Vec::new(), BTreeSet::new());
        let all = self.objects();
        for (url, stored) in all.range(prefix.to_owned()..).take_while(|(url, _)| url.starts_with(prefix)) {
            match url[prefix.len()..].find('/').filter(|_| !deep) {
                Some(end) => _ = folders.insert(url[..=prefix.len() + end].into()),
                None => objects.push(Object { url: url.as_str().into(), stamp: stored.stamp.clone() }),
            }
        }
        Ok(Listing { objects, folders: folders.into_iter().collect() })
    }

    fn open(&self, object: &Object) -> Result<Arc<dyn Source>> {
        self.0.requests.opens.fetch_add(1, Relaxed);
        Ok(Arc::new(BucketObject { bucket: self.clone(), object: object.clone() }))
    }

    fn small(&self, url: &str, limit: u64) -> Result<Option<(Region, Stamp)>> {
        self.wait();
        self.0.requests.smalls.fetch_add(1, Relaxed);
        match self.stored(url) {
            Err(_) => Ok(None),
            Ok(Stored { stamp, .. }) if stamp.size > limit => {
                Err(ErrorKind::TooLarge { len: stamp.size.into(), limit }.into())
            }
            Ok(Stored { bytes, stamp }) => Ok(Some((Region::new(bytes), stamp))),
        }
    }

    fn put(&self, url: &str, bytes: &[u8]) -> Result<()> {
        self.wait();
        if !self.0.manners.writable {
            return Err(io::Error::from(io::ErrorKind::Unsupported).into());
        }
        self.set(url, bytes);
        Ok(())
    }
}

/// An object of one version.
#[derive(Debug)]
struct BucketObject {
    bucket: BucketStore,
    object: Object,
}

impl Source for BucketObject {
    fn name(&self) -> &str {
        &self.object.url
    }

    fn len(&self) -> u64 {
        self.object.stamp.size
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(self.object.stamp.clone())
    }

    fn want(&self, ranges: &[Range<u64>]) {
        self.bucket.requests().wanted.fetch_add(ranges.len() as u64, Relaxed);
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        self.bucket.wait();
        let Requests { ranges, bytes, .. } = self.bucket.requests();
        ranges.fetch_add(1, Relaxed);
        let here = bare_url(&self.object.url);
        let here = Path::new(&*here);
        let now = self.bucket.stored(&self.object.url).map_err(|e| e.in_file(here))?;
        let (then, stamp) = (&self.object.stamp, &now.stamp);
        let same = then.version.is_none() || then.version == stamp.version;
        if !same || then.modified_ns.is_some() && then.modified_ns != stamp.modified_ns {
            let reason = "the object was replaced".into();
            return Err(tfseek::Error::from(IndexError::Stale { reason }).in_file(here));
        }
        let part = now.bytes.get(range.start as usize..range.end as usize).ok_or_else(|| {
            let have = stamp.size.saturating_sub(range.start);
            ErrorKind::Truncated { need: range.end.saturating_sub(range.start), have }
        })?;
        bytes.fetch_add(part.len() as u64, Relaxed);
        // Both answers are allowed.
        if range.start.is_multiple_of(2) {
            return Ok(Fetched::Shared(Region::from(part.to_vec())));
        }
        buf.extend_from_slice(part);
        Ok(Fetched::Appended)
    }

    fn forget(&self, ranges: &[Range<u64>]) {
        self.bucket.requests().forgotten.fetch_add(ranges.len() as u64, Relaxed);
    }
}
