//! Listings, and stamps of objects.

use crate::failure::RequestFailure;
use chrono::{DateTime, Utc};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use tfseek::io::Stamp;

/// A listing, with names in the bucket.
#[derive(Debug, Default)]
pub(crate) struct BucketListing {
    pub(crate) objects: Vec<(String, Stamp)>,
    pub(crate) folders: Vec<String>,
}

/// The most bytes of a page of a listing. A thousand names have about one MB.
pub(crate) const PAGE: u64 = 64 << 20;
/// The most names of a listing: they are in memory.
const NAMES: u64 = 4 << 20;
/// The most pages in a row that have no name. Servers send such pages for what was deleted.
const EMPTY: u32 = 1000;

/// The pages of a listing so far. A server that is wrong may send pages for ever.
pub(crate) struct Pages<'a> {
    /// Hashes of the addresses of all pages: addresses may be long.
    seen: HashSet<u64>,
    hashes: RandomState,
    /// Names in all chains of the listing.
    names: &'a AtomicU64,
    empty: u32,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(names: &'a AtomicU64) -> Pages<'a> {
        Pages { seen: HashSet::new(), hashes: RandomState::new(), names, empty: 0 }
    }

    /// Notes a page of this number of names, and the address of the next one.
    ///
    /// # Errors
    /// The listing has no end.
    pub(crate) fn add(&mut self, names: usize, next: Option<&str>) -> Result<(), Box<str>> {
        let all = self.names.fetch_add(names as u64, Relaxed) + names as u64;
        self.empty = if names == 0 { self.empty + 1 } else { 0 };
        if all > NAMES {
            return Err(format!("the listing has more than {NAMES} names: use a longer prefix").into());
        }
        if self.empty > EMPTY {
            return Err(format!("the listing has no end: {EMPTY} pages in a row have no name").into());
        }
        if next.is_some_and(|next| !self.seen.insert(self.hashes.hash_one(next))) {
            return Err("the listing has no end: a page leads to an earlier one".into());
        }
        Ok(())
    }
}

/// Returns the stamp of an object.
pub(crate) fn stamp(size: u64, time: Option<DateTime<Utc>>, version: Option<String>) -> Stamp {
    // Servers that know no time send 1970, or one that is to come. Clocks differ by less than a day.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let is_time = |time: &DateTime<Utc>| (1..now + 86_400).contains(&time.timestamp().cast_unsigned());
    let mut stamp = Stamp::new(size);
    stamp.modified_ns = time.filter(is_time).and_then(|time| time.timestamp_nanos_opt());
    stamp.version =
        version.filter(|version| !version.trim_matches('"').is_empty()).map(String::into_boxed_str);
    stamp
}

/// Returns the failure of an object that is not the listed one. Times are compared if there is no version: a
/// listing may have fractions of seconds, and headers have none.
pub(crate) fn changed(expected: &Stamp, now: &Stamp) -> Option<RequestFailure> {
    if expected.size != now.size {
        return Some(RequestFailure::stale(&format!("it had {} bytes and has {}", expected.size, now.size)));
    }
    let seconds = |stamp: &Stamp| stamp.modified_ns.map(|ns| ns.div_euclid(1_000_000_000));
    let differ = seconds(expected).zip(seconds(now)).is_some_and(|(then, now)| then != now);
    (expected.version.is_none() && differ).then(|| RequestFailure::stale("its time is another"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_objects_have_is_no_identity() {
        let of = |seconds, tag: &str| {
            let stamp = stamp(1, DateTime::from_timestamp(seconds, 0), Some(tag.to_owned()));
            (stamp.modified_ns.is_some(), stamp.version.is_some())
        };
        assert_eq!(of(1_700_000_000, "\"a\""), (true, true));
        for seconds in [0, -1, 4_102_444_800] {
            assert_eq!(of(seconds, "\"\""), (false, false));
        }
    }

    #[test]
    fn listings_end() {
        let names = AtomicU64::new(0);
        let mut pages = Pages::new(&names);
        let mut add = |names, next: Option<&str>| pages.add(names, next).map_err(String::from);
        assert_eq!(add(1000, Some("a")), Ok(()));
        assert_eq!(add(0, Some("b")), Ok(()));
        assert!(add(1000, Some("a")).unwrap_err().contains("an earlier one"));
        assert_eq!(add(1, None), Ok(()));
        let empty: Vec<_> = (0..=EMPTY).map(|k| add(0, Some(&format!("empty {k}")))).collect();
        assert!(empty[..EMPTY as usize].iter().all(Result::is_ok) && empty[EMPTY as usize].is_err());
        // The names of all chains count.
        names.store(NAMES, Relaxed);
        let mut other = Pages::new(&names);
        assert!(other.add(0, None).is_ok() && other.add(1, None).unwrap_err().contains("names"));
    }
}
