//! The files of a fetch, and the store that they were listed by.

use crate::error::{FetchReason, ToolsError};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};
use tfseek::io::{Listing, Object, Region, Source, Stamp, Store, bare_url};
use tfseek::{Compression, Error, Result};

/// An object that is wanted.
#[derive(Clone, Debug)]
pub(super) struct WantedFile {
    /// The name below the common folder of all objects, with `/`.
    pub(super) name: String,
    pub(super) object: Object,
    pub(super) part: WantedPart,
    /// The number of records that the description of the data set states.
    pub(super) records: Option<u64>,
}

/// The part of an object that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WantedPart {
    /// The bytes of a file that is no shard.
    File,
    /// All records, as they are.
    Shard,
    /// The records of these numbers, if there are ranges, that meet the condition, if there is one.
    Records(Option<Vec<Range<u64>>>),
    /// The description of a data set, which is written last, for what was fetched.
    Description,
}

impl WantedFile {
    /// Returns true if the name is a compressed file's.
    pub(super) fn is_compressed(&self) -> bool {
        Compression::of_name(&self.name).0 != Compression::None
    }

    /// Returns the number of bytes that will be read, as far as it is known.
    pub(super) fn bytes(&self) -> u64 {
        let size = self.object.stamp.size;
        if self.part == WantedPart::Description {
            return 0;
        }
        let (WantedPart::Records(Some(ranges)), Some(records)) = (&self.part, self.records) else {
            return size;
        };
        // Records after the last selected one are not read. Those before the first one are: ranges by an
        // index would save bytes of two shards at most for each range of a split.
        let end = ranges.last().map_or(0, |range| range.end).min(records);
        let bytes = u128::from(size) * u128::from(end) / u128::from(records.max(1));
        u64::try_from(bytes).unwrap_or(size)
    }
}

/// Returns true for a name that is a path below a folder, and none of our own files there. The names of a
/// store and of earlier runs are checked by it.
pub(super) fn is_below(name: &str) -> bool {
    let parts = || Path::new(name).components();
    let is_plain = !name.contains(|c: char| c.is_control()) && !name.contains("//") && !name.ends_with('/');
    is_plain
        && parts().all(|part| matches!(part, Component::Normal(_)))
        && parts().next().is_some_and(|first| !first.as_os_str().to_string_lossy().starts_with(".tfseek"))
}

/// Refuses names that are no paths below a folder.
pub(super) fn check_name(url: &str, name: &str) -> Result<(), ToolsError> {
    if is_below(name) { Ok(()) } else { Err(FetchReason::Name(url.to_owned()).into()) }
}

/// Returns the error of an object that is not in the store.
pub(super) fn no_object(url: &str) -> Error {
    let missing = io::Error::new(io::ErrorKind::NotFound, "no such object");
    Error::from(missing).in_file(Path::new(url))
}

/// A store that lists nothing twice, and keeps what it listed, by the URLs without query and user.
pub(super) struct NotedStore {
    store: Arc<dyn Store>,
    listings: Mutex<HashMap<(String, bool), Listing>>,
    found: Mutex<HashMap<String, Object>>,
}

impl NotedStore {
    pub(super) fn new(store: Arc<dyn Store>) -> NotedStore {
        NotedStore { store, listings: Mutex::default(), found: Mutex::default() }
    }

    /// Returns an object that was listed.
    pub(super) fn noted(&self, url: &str) -> Option<Object> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned()
    }
}

impl fmt::Debug for NotedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl Store for NotedStore {
    fn list(&self, prefix: &str, deep: bool) -> Result<Listing> {
        let key = (prefix.to_owned(), deep);
        let known = self.listings.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let listing = self.store.list(prefix, deep)?;
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        listings.insert(key, listing.clone());
        drop(listings);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(listing.objects.iter().map(|object| (bare_url(&object.url), object.clone())));
        Ok(listing)
    }

    fn open(&self, object: &Object) -> Result<Arc<dyn Source>> {
        self.store.open(object)
    }

    fn small(&self, url: &str, limit: u64) -> Result<Option<(Region, Stamp)>> {
        self.store.small(url, limit)
    }

    fn put(&self, url: &str, bytes: &[u8]) -> Result<()> {
        self.store.put(url, bytes)
    }

    fn place(&self, url: &str) -> String {
        self.store.place(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_below_a_folder() {
        for name in ["a", "a/b c", "..a", "é"] {
            check_name("u", name).unwrap();
        }
        for name in ["", "/a", "../a", "a/../b", "a//b", "a/", "a\nb", ".tfseek/x", ".tfseek-fetch/x", "./a"]
        {
            assert!(check_name("u", name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_part_reads_no_more_than_its_records() {
        let mut file = WantedFile {
            name: "x".into(),
            object: Object { url: "s3://b/x".into(), stamp: Stamp::new(1000) },
            part: WantedPart::Records(Some(vec![0..1, 5..20])),
            records: Some(100),
        };
        assert_eq!(file.bytes(), 200);
        file.records = None;
        assert_eq!(file.bytes(), 1000);
    }
}
