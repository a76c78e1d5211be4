//! The objects of a fetch, and the records of them that are wanted.

use super::data_set::DataSet;
use super::journal::FetchRequest;
use super::options::FetchOptions;
use crate::error::{FetchReason, ToolsError};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};
use tfseek::error::ErrorKind;
use tfseek::io::{Listing, Object, Region, Source, Stamp, Store, bare_url};
use tfseek::{Error, Filter, Result};

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
    /// Returns the number of bytes that will be read, as far as it is known.
    pub(super) fn bytes(&self) -> u64 {
        let size = self.object.stamp.size;
        if self.part == WantedPart::Description {
            return 0;
        }
        let (WantedPart::Records(Some(ranges)), Some(records)) = (&self.part, self.records) else {
            return size;
        };
        // Records after the last selected one are not read.
        let end = ranges.last().map_or(0, |range| range.end).min(records);
        let bytes = u128::from(size) * u128::from(end) / u128::from(records.max(1));
        u64::try_from(bytes).unwrap_or(size)
    }
}

/// The objects of a fetch.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) request: FetchRequest,
    pub(super) files: Vec<WantedFile>,
    /// The data set that they are, if they are one.
    pub(super) data_set: Option<DataSet>,
    /// The condition, which knows the names of classes.
    pub(super) filter: Option<Filter>,
}

impl Wanted {
    /// Lists the objects. No object is read.
    pub(super) fn list(options: &FetchOptions) -> Result<Wanted, ToolsError> {
        let request = FetchRequest {
            url: bare_url(&options.url),
            split: options.split.clone(),
            filter: options.filter.as_ref().map(ToString::to_string),
        };
        if options.filter.as_ref().is_some_and(Filter::uses_numbers) {
            return Err(FetchReason::NumbersInCondition.into());
        }
        let store = Arc::new(NotedStore::new(options.store.clone()));
        let (split, filter) = (options.split.as_deref(), options.filter.clone());
        if let Some((data_set, files)) = DataSet::find(&store, &options.url, split, filter.is_some())? {
            let filter = filter.map(|filter| data_set.filter(&store, &filter)).transpose()?;
            return Ok(Wanted { request, files, data_set: Some(data_set), filter });
        }
        let (paths, _) = tfseek::paths::resolve_in_store(Some(store.clone()), &*options.url, false)?;
        let urls: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
        let folder = common_folder(&urls);
        let mut files = Vec::new();
        for url in urls {
            let name = url.get(folder..).unwrap_or(url);
            check_name(url, name)?;
            let object = store.noted(url).ok_or_else(|| {
                Error::from(std::io::Error::from(std::io::ErrorKind::NotFound)).in_file(Path::new(url))
            })?;
            let part = match options.filter {
                Some(_) => WantedPart::Records(None),
                None => WantedPart::Shard,
            };
            files.push(WantedFile { name: name.to_owned(), object, part, records: None });
        }
        Ok(Wanted { request, files, data_set: None, filter })
    }
}

/// Refuses names that are no paths below a folder.
pub(super) fn check_name(url: &str, name: &str) -> Result<(), ToolsError> {
    let parts = || Path::new(name).components();
    let is_below = parts().all(|part| matches!(part, Component::Normal(_)))
        && parts().next().is_some_and(|first| !first.as_os_str().to_string_lossy().starts_with(".tfseek"));
    let is_plain = !name.contains(|c: char| c.is_control()) && !name.contains("//") && !name.ends_with('/');
    if is_below && is_plain {
        return Ok(());
    }
    Err(FetchReason::Name { url: url.to_owned() }.into())
}

/// Returns the length of the folder, with its slash, that all URLs are in.
fn common_folder(urls: &[&str]) -> usize {
    let folder = |text: &str| text.rfind('/').map_or(0, |at| at + 1);
    let Some((first, others)) = urls.split_first() else { return 0 };
    let common = others.iter().fold(folder(first), |len, other| {
        let same = first.bytes().zip(other.bytes()).take(len).take_while(|(a, b)| a == b).count();
        folder(first.get(..same).unwrap_or_default())
    });
    common
}

/// A store that lists nothing twice, and keeps what it listed, by the URLs without query and user.
pub(super) struct NotedStore {
    store: Arc<dyn Store>,
    listings: Mutex<HashMap<(String, bool), Listing>>,
    found: Mutex<HashMap<String, Object>>,
}

impl NotedStore {
    fn new(store: Arc<dyn Store>) -> NotedStore {
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
}

/// Lists one object again, because it was replaced.
pub(super) fn listed_again(store: &dyn Store, object: &Object) -> Result<Object> {
    let listing = store.list(&object.url, false)?;
    let name = bare_url(&object.url);
    let found = listing.objects.into_iter().find(|found| bare_url(&found.url) == name);
    found.ok_or_else(|| {
        let missing = std::io::Error::new(std::io::ErrorKind::NotFound, "no such object");
        Error::from(missing).in_file(Path::new(&name))
    })
}

/// Returns true for the error of an object that was replaced.
pub(super) fn is_stale(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Index(tfseek::error::IndexError::Stale { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_below_the_common_folder() {
        let len = |urls: &[&str]| common_folder(urls);
        assert_eq!(len(&["s3://b/x/y"]), "s3://b/x/".len());
        assert_eq!(len(&["s3://b/x/ab1", "s3://b/x/ab2"]), "s3://b/x/".len());
        assert_eq!(len(&["s3://b/x/a", "s3://b/xy/a"]), "s3://b/".len());
        assert_eq!(len(&[]), 0);
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
