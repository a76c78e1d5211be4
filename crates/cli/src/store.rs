//! URLs of objects, for the verbs that read them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tfseek::io::Store;

/// Set for the verbs that read objects.
static ALLOWED: AtomicBool = AtomicBool::new(false);

/// Returns true for a URL of the store. `None` in a build without one.
pub(crate) const IS_OBJECT: Option<fn(&str) -> bool> =
    if cfg!(feature = "remote") { Some(remote::has) } else { None };

/// Sets whether the verb of this run reads objects.
pub(crate) fn allow(allowed: bool) {
    ALLOWED.store(allowed, Relaxed);
}

/// Returns the store of all URLs. `None` for verbs that read files only.
pub(crate) fn store() -> Option<Arc<dyn Store>> {
    if ALLOWED.load(Relaxed) { remote::store() } else { None }
}

/// Returns true if a path is a URL of the store.
pub(crate) fn is_object(path: &Path) -> bool {
    path.to_str().is_some_and(|url| remote::has(url) && store().is_some())
}

/// Returns true if a path is the URL of an object whose store is for reading only.
pub(crate) fn is_read_only(path: &Path) -> bool {
    is_object(path) && path.to_str().is_some_and(remote::is_read_only)
}

/// Returns true for a folder, also for one of objects. A URL with the name of a TFRecord file or a pattern is
/// none.
pub(crate) fn is_folder(path: &Path) -> bool {
    match (path.to_str(), store()) {
        (Some(url), Some(store)) if is_object(path) => {
            let folder = format!("{}/", url.trim_end_matches('/'));
            let name = url.rsplit_once('/').map_or(url, |(_, name)| name);
            if tfseek::paths::has_extension(name) || name.contains(['*', '?', '[', '{', '@']) {
                return false;
            }
            // A single path is resolved by the same listing.
            let found = store.list(url, false).unwrap_or_default();
            found.folders.iter().any(|found| **found == *folder)
                || url.ends_with('/') && found != Default::default()
        }
        _ => path.is_dir(),
    }
}

/// Returns the names of the folders in a folder. There are none if it cannot be read.
pub(crate) fn folders_in(path: &Path) -> Vec<OsString> {
    match (path.to_str(), store()) {
        (Some(url), Some(store)) if is_object(path) => {
            let folder = format!("{}/", url.trim_end_matches('/'));
            if !is_folder(path) {
                return Vec::new();
            }
            let found = store.list(&folder, false).unwrap_or_default();
            let names = found.folders.iter().filter_map(|url| url.strip_prefix(&*folder));
            names.map(|name| name.trim_end_matches('/').into()).collect()
        }
        _ => {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name()).collect()
        }
    }
}

/// Returns the path or URL of an entry of a folder.
#[cfg(feature = "tables")]
pub(crate) fn entry(folder: &Path, name: &str) -> PathBuf {
    match folder.to_str().filter(|_| is_object(folder)) {
        Some(url) => format!("{}/{name}", url.trim_end_matches('/')).into(),
        None => folder.join(name),
    }
}

/// Returns the number of bytes of a file or an object. `None` if there is none.
pub(crate) fn size(path: &Path) -> Option<u64> {
    match (path.to_str(), store()) {
        (Some(url), Some(store)) if is_object(path) => {
            let listing = store.list(url, false).ok()?;
            let name = tfseek::io::bare_url(url);
            let found = listing.objects.iter().find(|object| tfseek::io::bare_url(&object.url) == name);
            found.map(|object| object.stamp.size)
        }
        _ => std::fs::metadata(path).ok().map(|meta| meta.len()),
    }
}

/// The cache of objects on disk: its folder, the number of its pieces, their bytes, and the limit.
pub(crate) type ObjectCache = (PathBuf, u64, u64, u64);

/// Returns the cache on disk of an object. `None` for a file, and without a cache.
pub(crate) fn cache(path: &Path) -> Option<ObjectCache> {
    is_object(path).then(remote::cache)?
}

#[cfg(not(feature = "remote"))]
mod remote {
    use std::path::PathBuf;
    use std::sync::Arc;
    use tfseek::io::Store;

    pub(super) fn store() -> Option<Arc<dyn Store>> {
        None
    }

    pub(super) fn has(_: &str) -> bool {
        false
    }

    pub(super) fn is_read_only(_: &str) -> bool {
        false
    }

    pub(super) fn cache() -> Option<(PathBuf, u64, u64, u64)> {
        None
    }
}

#[cfg(feature = "remote")]
mod remote {
    use std::collections::HashMap;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex, OnceLock, PoisonError};
    use tfseek::io::{Listing, Object, Region, Source, Stamp, Store, Traffic};
    use tfseek_remote::{RemoteOptions, RemoteStore};

    /// Returns the cache on disk. The folder is looked through.
    pub(super) fn cache() -> Option<(PathBuf, u64, u64, u64)> {
        let found = RemoteStore::new(RemoteOptions::default()).cache().ok()??;
        Some((found.folder, found.pieces, found.bytes, found.limit))
    }

    pub(super) fn store() -> Option<Arc<dyn Store>> {
        static STORE: OnceLock<Arc<OneRun>> = OnceLock::new();
        let new = || {
            let store = RemoteStore::new(RemoteOptions::default());
            Arc::new(OneRun { store, listed: Mutex::default(), read: Mutex::default() })
        };
        Some(STORE.get_or_init(new).clone())
    }

    pub(super) fn has(url: &str) -> bool {
        RemoteStore::has(url)
    }

    pub(super) fn is_read_only(url: &str) -> bool {
        RemoteStore::is_read_only(url)
    }

    /// Maximum size of an object that is kept: the maximum size of a data set's description.
    const MAX_KEPT: u64 = 8 << 20;

    /// A whole object. `None` if there is none.
    type Whole = Option<(Region, Stamp)>;

    /// The store of one run of the command. It lists nothing twice, and reads no small object twice.
    #[derive(Debug)]
    struct OneRun {
        store: RemoteStore,
        /// Listings by prefix and depth.
        listed: Mutex<HashMap<(String, bool), Arc<Listing>>>,
        /// Small objects by URL.
        read: Mutex<HashMap<String, Whole>>,
    }

    impl OneRun {
        /// Returns a listing that has the objects of this prefix, if there is one.
        fn known(&self, prefix: &str, deep: bool) -> Option<Arc<Listing>> {
            let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = listed.get(&(prefix.to_owned(), deep)) {
                return Some(known.clone());
            }
            // A web server knows the object of the prefix only.
            if prefix.starts_with("http") {
                return None;
            }
            let folder = prefix.rfind('/').map_or(0, |at| at + 1);
            let wider = (folder..prefix.len()).rev().filter_map(|end| prefix.get(..end));
            wider.filter_map(|wider| listed.get(&(wider.to_owned(), deep)).cloned()).next()
        }
    }

    impl Store for OneRun {
        fn list(&self, prefix: &str, deep: bool) -> tfseek::Result<Listing> {
            let known = match self.known(prefix, deep) {
                Some(known) => known,
                None => {
                    let new = Arc::new(self.store.list(prefix, deep)?);
                    let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
                    listed.insert((prefix.to_owned(), deep), new.clone());
                    new
                }
            };
            // Listings are sorted. Each shard of a large one is listed on its own.
            let first = known.objects.partition_point(|object| &*object.url < prefix);
            let objects = known.objects.iter().skip(first);
            let objects = objects.take_while(|object| object.url.starts_with(prefix));
            let folders = known.folders.iter().filter(|folder| folder.starts_with(prefix));
            Ok(Listing { objects: objects.cloned().collect(), folders: folders.cloned().collect() })
        }

        fn open(&self, object: &Object) -> tfseek::Result<Arc<dyn Source>> {
            self.store.open(object)
        }

        fn small(&self, url: &str, limit: u64) -> tfseek::Result<Option<(Region, Stamp)>> {
            let read = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
            if limit > MAX_KEPT {
                return self.store.small(url, limit);
            }
            if let Some(known) = read().get(url) {
                return Ok(known.clone());
            }
            let found = self.store.small(url, limit)?;
            read().insert(url.to_owned(), found.clone());
            Ok(found)
        }

        fn place(&self, url: &str) -> String {
            self.store.place(url)
        }

        fn traffic(&self) -> Option<Traffic> {
            self.store.traffic()
        }

        fn put(&self, url: &str, bytes: &[u8]) -> tfseek::Result<()> {
            self.listed.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.read.lock().unwrap_or_else(PoisonError::into_inner).remove(url);
            self.store.put(url, bytes)
        }
    }
}
