//! What is in the stores of a world, in each version, and which versions a reader may have.

use super::lock;
use super::plan::{Host, SHARDS};
use super::server::Stored;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock};
use tfseek::error::IndexError;
use tfseek::frame::put_record;
use tfseek::io::Region;
use tfseek::{Dataset, DatasetOptions, Error, ErrorKind};
use tfseek_testkit::rng::Rng;

/// The numbers of records of the shards.
pub(super) const LENS: [u64; SHARDS] = [40, 55, 30];

/// The objects of all servers.
pub(super) struct Truth {
    has_versions: bool,
    objects: Mutex<[[Now; SHARDS]; 2]>,
}

/// An object now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Now {
    version: u64,
    /// How often it was replaced or removed.
    changes: u64,
    removals: u64,
}

impl Truth {
    pub(super) fn new(has_versions: bool) -> Truth {
        Truth { has_versions, objects: Mutex::default() }
    }

    pub(super) fn change(&self, host: Host, shard: usize) {
        let object = &mut lock(&self.objects)[host][shard];
        object.version += 1;
        object.changes += 1;
    }

    pub(super) fn remove(&self, host: Host, shard: usize) {
        let object = &mut lock(&self.objects)[host][shard];
        object.changes += 1;
        object.removals += 1;
    }

    /// Returns the object of the current version. Versions of both servers are called alike.
    pub(super) fn stored(&self, host: Host, shard: usize) -> Stored {
        let version = lock(&self.objects)[host][shard].version;
        let mut bytes = Vec::new();
        for number in 0..LENS[shard] {
            put_record(&mut bytes, &payload(host, shard, version, number)).unwrap();
        }
        let (tag, time) = match self.has_versions {
            true => (format!("\"version-{version}\""), 1_704_067_200 + version),
            false => (String::new(), 0),
        };
        Stored { bytes: Arc::new(bytes), tag, time }
    }

    /// Returns the versions that a data set has which is opened now.
    pub(super) fn versions(&self, host: Host) -> Versions {
        let now = lock(&self.objects)[host];
        Versions { host, opened: now, allowed: now.map(|object| object.version..=object.version) }
    }

    pub(super) fn has_changed(&self, host: Host, versions: &Versions) -> bool {
        let now = lock(&self.objects)[host];
        now.iter().zip(&versions.opened).any(|(now, then)| now.changes != then.changes)
    }

    /// Returns how often objects of a server were replaced or removed.
    pub(super) fn changes(&self, host: Host) -> u64 {
        lock(&self.objects)[host].iter().map(|object| object.changes).sum()
    }

    pub(super) fn has_removed(&self, host: Host) -> bool {
        lock(&self.objects)[host].iter().any(|object| object.removals > 0)
    }
}

/// The versions of shards that a data set may have.
#[derive(Clone, Debug)]
pub(super) struct Versions {
    host: Host,
    opened: [Now; SHARDS],
    /// One version once a record was read.
    allowed: [RangeInclusive<u64>; SHARDS],
}

impl Versions {
    /// Allows also the versions up to those after the data set was opened.
    pub(super) fn until(&mut self, after: &Versions) {
        for (allowed, after) in self.allowed.iter_mut().zip(&after.opened) {
            *allowed = *allowed.start()..=after.version;
        }
    }

    /// Checks that a record is that of a shard and of its version.
    pub(super) fn check(&mut self, truth: &Truth, mut number: u64, found: &[u8]) -> Result<(), String> {
        let mut shard = 0;
        while number >= LENS[shard] {
            number -= LENS[shard];
            shard += 1;
        }
        if !truth.has_versions {
            // What is replaced cannot be told apart, and is as good as what was listed.
            let now = lock(&truth.objects)[self.host][shard].version;
            self.allowed[shard] = *self.allowed[shard].start()..=now;
        }
        let allowed = self.allowed[shard].clone();
        let is_of = |version: &u64| payload(self.host, shard, *version, number) == found;
        let Some(version) = allowed.clone().find(is_of) else {
            let known = (0..2).flat_map(|host| (0..=allowed.end() + 20).map(move |version| (host, version)));
            let other =
                known.clone().find(|(host, version)| payload(*host, shard, *version, number) == found);
            return Err(format!(
                "record {number} of shard {shard} is of {other:?}, expected versions {allowed:?}"
            ));
        };
        if truth.has_versions {
            self.allowed[shard] = version..=version;
        }
        Ok(())
    }
}

/// Returns a record. Its length depends on its place alone, so objects of all versions are equally long.
fn payload(host: Host, shard: usize, version: u64, number: u64) -> Vec<u8> {
    let place = shard as u64 * 1000 + number;
    let len = if place % 16 == 3 { 9000 } else { 300 };
    let len = len + Rng::new(place).below(1500);
    let mut rng = Rng::new(place << 32 | version << 8 | host as u64);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&rng.u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Returns a data set of the same records, in memory.
pub(super) fn reference() -> &'static Dataset {
    static REFERENCE: OnceLock<Dataset> = OnceLock::new();
    REFERENCE.get_or_init(|| {
        let truth = Truth::new(true);
        let region = |shard| Region::from(truth.stored(0, shard).bytes.to_vec());
        let regions: Vec<Region> = (0..SHARDS).map(region).collect();
        let options = DatasetOptions::new().index(tfseek::IndexMode::Memory);
        options.open_regions(regions).unwrap().dataset().clone()
    })
}

/// Returns what an error is about.
pub(super) fn kind_of(e: &Error) -> &'static str {
    match e.kind() {
        ErrorKind::Index(IndexError::Stale { .. }) => "stale",
        ErrorKind::Index(_) => "index",
        ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::NotFound => "missing",
        ErrorKind::Io(_) => "input",
        _ if e.is_data() => "damage",
        _ => "other",
    }
}
