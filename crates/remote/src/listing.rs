//! Listings, and stamps of objects.

use crate::failure::RequestFailure;
use chrono::{DateTime, Utc};
use tfseek::io::Stamp;

/// A listing, with names in the bucket.
#[derive(Debug, Default)]
pub(crate) struct BucketListing {
    pub(crate) objects: Vec<(String, Stamp)>,
    pub(crate) folders: Vec<String>,
}

/// Returns the stamp of an object.
pub(crate) fn stamp(size: u64, time: Option<DateTime<Utc>>, version: Option<String>) -> Stamp {
    let mut stamp = Stamp::new(size);
    stamp.modified_ns = time.and_then(|time| time.timestamp_nanos_opt());
    stamp.version = version.map(String::into_boxed_str);
    stamp
}

/// Returns the failure of an object that is not the listed one. Times are compared if there is no version: a listing may have fractions of
/// seconds, and headers have none.
pub(crate) fn changed(expected: &Stamp, now: &Stamp) -> Option<RequestFailure> {
    if expected.size != now.size {
        return Some(RequestFailure::stale(&format!("it had {} bytes and has {}", expected.size, now.size)));
    }
    let seconds = |stamp: &Stamp| stamp.modified_ns.map(|ns| ns.div_euclid(1_000_000_000));
    let differ = seconds(expected).zip(seconds(now)).is_some_and(|(then, now)| then != now);
    (expected.version.is_none() && differ).then(|| RequestFailure::stale("its time is another"))
}
