//! `SetFolder`: a folder of a data set, at a path or at a URL in a store.

use crate::error::{Result, TfdsError, TfdsErrorKind, refused_folder};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tfseek::io::{Listing, Object, Region, Source, Stamp, Store, bare_url};
use tfseek::{Dataset, DatasetOptions, Error, ErrorKind};

/// Maximum size of a file of a data set in bytes. The lengths of a hundred thousand shards take 2 MiB.
pub(crate) const MAX_BYTES: u64 = 8 << 20;

/// A folder of a data set.
#[derive(Clone, Debug)]
pub(crate) struct SetFolder {
    /// The path, or the URL without `/` at its end.
    path: PathBuf,
    /// The store of a URL.
    store: Option<Arc<ListedStore>>,
}

/// An entry of a folder.
#[derive(Debug)]
pub(crate) struct FolderEntry {
    pub(crate) name: OsString,
    pub(crate) kind: EntryKind,
}

#[derive(Debug)]
pub(crate) enum EntryKind {
    /// A file of this number of bytes.
    File(u64),
    Folder,
    /// A pipe or a device.
    Other,
    /// It may exist: the store has no listings.
    Unlisted,
    /// An error of the system.
    Failed(io::Error),
}

impl EntryKind {
    fn of(path: &Path) -> EntryKind {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => EntryKind::Folder,
            Ok(metadata) if metadata.is_file() => EntryKind::File(metadata.len()),
            Ok(_) => EntryKind::Other,
            Err(e) => EntryKind::Failed(e),
        }
    }
}

impl SetFolder {
    /// Returns a folder, which need not exist. A URL is one of the store in `options`.
    ///
    /// # Errors
    /// [`PathsError::NotLocal`](tfseek::error::PathsError::NotLocal) for a URL without a store.
    /// [`TfdsErrorKind::Folder`] for a URL with a query or a user: they may be secret, and the URLs of the
    /// files in it would have them.
    pub(crate) fn new(folder: &Path, options: &DatasetOptions) -> Result<SetFolder> {
        let (Some(store), Some(url)) = (options.store_of(folder)?, folder.to_str()) else {
            return Ok(SetFolder { path: folder.to_path_buf(), store: None });
        };
        let bare = bare_url(url);
        if bare != url {
            let reason = "expected the URL of a folder without a user and a query, found one with them";
            return Err(refused_folder(Path::new(&bare), reason));
        }
        let store = ListedStore { store, listed: Mutex::new(Some(HashMap::new())) };
        Ok(SetFolder { path: url.trim_end_matches('/').into(), store: Some(Arc::new(store)) })
    }

    /// Returns the path or the URL.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if it is the folder of a URL.
    pub(crate) fn is_remote(&self) -> bool {
        self.store.is_some()
    }

    /// Returns true unless the store is known to have no listings.
    pub(crate) fn is_listed(&self) -> bool {
        let is_unlisted = |store: &Arc<ListedStore>| {
            store.lock().as_ref().is_some_and(|listed| listed.values().any(Option::is_none))
        };
        !self.store.as_ref().is_some_and(is_unlisted)
    }

    /// Returns the path or the URL of a file in the folder, or in one below it.
    pub(crate) fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        let relative = relative.as_ref();
        if self.store.is_none() {
            return self.path.join(relative);
        }
        let mut url = self.path.to_string_lossy().into_owned();
        for component in relative.components() {
            if let Component::Normal(name) = component {
                url.push('/');
                url.push_str(&name.to_string_lossy());
            }
        }
        url.into()
    }

    /// Returns a folder below this one.
    pub(crate) fn below(&self, relative: impl AsRef<Path>) -> SetFolder {
        SetFolder { path: self.join(relative), store: self.store.clone() }
    }

    /// Checks that a path is a folder's path.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Folder`] for a file; I/O errors.
    pub(crate) fn check_folder(&self) -> Result<()> {
        if self.is_remote() {
            return Ok(());
        }
        match EntryKind::of(&self.path) {
            EntryKind::Folder => Ok(()),
            EntryKind::Failed(e) => Err(TfdsError::from(TfdsErrorKind::Io(e)).at(&self.path)),
            _ => Err(refused_folder(&self.path, "expected the folder of a data set, found a file")),
        }
    }

    /// Returns the entries in no order. `None` if the store has no listings.
    ///
    /// # Errors
    /// I/O errors. A folder in a store without objects does not exist.
    pub(crate) fn entries(&self) -> Result<Option<Vec<FolderEntry>>> {
        let Some(store) = &self.store else {
            let here = |e| TfdsError::from(TfdsErrorKind::Io(e)).at(&self.path);
            let entry = |entry: io::Result<fs::DirEntry>| {
                let entry = entry.map_err(here)?;
                Ok(FolderEntry { name: entry.file_name(), kind: EntryKind::of(&entry.path()) })
            };
            return fs::read_dir(&self.path).map_err(here)?.map(entry).collect::<Result<_>>().map(Some);
        };
        let folder = self.url_as_prefix();
        let Some(listing) = store.listing(&folder)? else { return Ok(None) };
        if *listing == Listing::default() {
            let missing = io::Error::new(io::ErrorKind::NotFound, "no such folder");
            return Err(Error::from(missing).in_file(&self.path).into());
        }
        let entry = |url: &str, kind| {
            let name = url.strip_prefix(&*folder).unwrap_or(url).trim_end_matches('/');
            // A folder may itself be an object.
            (!name.is_empty()).then(|| FolderEntry { name: name.into(), kind })
        };
        let objects = listing.objects.iter();
        let objects = objects.filter_map(|object| entry(&object.url, EntryKind::File(object.stamp.size)));
        let folders = listing.folders.iter().filter_map(|url| entry(url, EntryKind::Folder));
        Ok(Some(objects.chain(folders).collect()))
    }

    /// Returns the kind of an entry of this folder, or of one below it. `None` if there is none. In a store
    /// the folder of the entry is listed, once for all of its entries.
    ///
    /// # Errors
    /// Errors of the listing.
    pub(crate) fn find(&self, relative: impl AsRef<Path>) -> Result<Option<EntryKind>> {
        let path = self.join(relative);
        let Some(store) = &self.store else {
            // A path that cannot be accessed does not exist.
            return Ok(Some(EntryKind::of(&path)).filter(|kind| !matches!(kind, EntryKind::Failed(_))));
        };
        let url = path.to_string_lossy();
        let Some((folder, _)) = url.rsplit_once('/') else { return Ok(None) };
        let Some(listing) = store.listing(&format!("{folder}/"))? else {
            return Ok(Some(EntryKind::Unlisted));
        };
        let is_folder = || listing.folders.iter().any(|folder| folder.strip_suffix('/') == Some(&url));
        let object = object_of(&listing, &url).map(|object| EntryKind::File(object.stamp.size));
        Ok(object.or_else(|| is_folder().then_some(EntryKind::Folder)))
    }

    /// Reads a file of the folder. `None` if there is none. `fault` makes the error of a file of another type
    /// or size.
    ///
    /// # Errors
    /// Errors of `fault`, and I/O errors. They have the path.
    pub(crate) fn read(&self, name: &str, fault: impl Fn(String) -> TfdsError) -> Result<Option<Vec<u8>>> {
        let path = self.join(name);
        let Some(store) = &self.store else { return read_file(&path, &fault).map_err(|e| e.at(&path)) };
        let url = path.to_string_lossy();
        if store.known(&self.url_as_prefix()).is_some_and(|listing| object_of(&listing, &url).is_none()) {
            return Ok(None);
        }
        match store.small(&url, MAX_BYTES) {
            Ok(found) => Ok(found.map(|(bytes, _)| bytes.to_vec())),
            Err(e) if matches!(e.kind(), ErrorKind::TooLarge { .. }) => Err(fault(too_large()).at(&path)),
            Err(e) => Err(e.in_file(&path).into()),
        }
    }

    /// Opens shards of the folder with `options`. Folders that were listed are not listed again.
    ///
    /// # Errors
    /// Errors of `open`.
    pub(crate) fn open(
        &self,
        options: &DatasetOptions,
        open: impl FnOnce(&DatasetOptions) -> tfseek::Result<Dataset>,
    ) -> tfseek::Result<Dataset> {
        let Some(store) = &self.store else { return open(options) };
        let known =
            Arc::new(ListedStore { store: store.store.clone(), listed: Mutex::new(store.lock().clone()) });
        let opened = open(&options.clone().store(known.clone()));
        // The dataset lists again when it is refreshed.
        *known.lock() = None;
        opened
    }

    /// Returns the prefix of the URLs of all objects in the folder.
    fn url_as_prefix(&self) -> String {
        format!("{}/", self.path.to_string_lossy())
    }
}

fn too_large() -> String {
    format!("expected at most {MAX_BYTES} bytes, found more")
}

fn read_file(path: &Path, fault: &impl Fn(String) -> TfdsError) -> Result<Option<Vec<u8>>> {
    // Opening a pipe would wait for its writer.
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(fault("expected a regular file, found another one".to_owned())),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(TfdsErrorKind::Io(e).into()),
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(TfdsErrorKind::Io)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(TfdsErrorKind::Io)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(fault(too_large()));
    }
    Ok(Some(text))
}

/// Returns the object with a URL.
fn object_of<'l>(listing: &'l Listing, url: &str) -> Option<&'l Object> {
    let at = listing.objects.binary_search_by(|object| (*object.url).cmp(url)).ok()?;
    listing.objects.get(at)
}

/// A store that lists a folder once for all shards and other files in it. A request for each of a thousand
/// shards would take a minute, and the template of their names would not tell which one is missing.
#[derive(Debug)]
struct ListedStore {
    store: Arc<dyn Store>,
    /// The listings of folders by their URLs, which end in `/`. `None` once the shards are open.
    listed: Mutex<Option<Listings>>,
}

/// Listings of folders. `None` for a folder of a store without listings.
type Listings = HashMap<Box<str>, Option<Arc<Listing>>>;

impl ListedStore {
    fn lock(&self) -> MutexGuard<'_, Option<Listings>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the listing of a folder, if it was listed.
    fn known(&self, folder: &str) -> Option<Arc<Listing>> {
        self.lock().as_ref()?.get(folder)?.clone()
    }

    /// Lists a folder, unless it was listed before. `None` if the store has no listings.
    fn listing(&self, folder: &str) -> Result<Option<Arc<Listing>>> {
        if let Some(known) = self.lock().as_ref().and_then(|listed| listed.get(folder).cloned()) {
            return Ok(known);
        }
        let new = match self.list(folder, false) {
            Ok(listing) => Some(Arc::new(listing)),
            Err(e) if is_kind(&e, io::ErrorKind::Unsupported) => None,
            Err(e) => return Err(e.in_file(Path::new(folder)).into()),
        };
        if let Some(listed) = &mut *self.lock() {
            listed.insert(folder.into(), new.clone());
        }
        Ok(new)
    }
}

impl Store for ListedStore {
    fn list(&self, prefix: &str, deep: bool) -> tfseek::Result<Listing> {
        let (folder, _) = prefix.split_at(prefix.rfind('/').map_or(0, |at| at + 1));
        if !deep && let Some(listing) = self.known(folder) {
            let first = listing.objects.partition_point(|object| &*object.url < prefix);
            let objects = listing.objects.iter().skip(first).cloned();
            let folders = listing.folders.iter().filter(|folder| folder.starts_with(prefix)).cloned();
            return Ok(Listing {
                objects: objects.take_while(|object| object.url.starts_with(prefix)).collect(),
                folders: folders.collect(),
            });
        }
        // Most folders have no index files, so the folder of those does not exist.
        let above =
            folder.strip_suffix('/').and_then(|folder| Some(folder.split_at(folder.rfind('/')? + 1).0));
        if let Some(above) = above.and_then(|above| self.known(above))
            && above.folders.iter().all(|known| **known != *folder)
        {
            return Ok(Listing::default());
        }
        self.store.list(prefix, deep)
    }

    fn open(&self, object: &Object) -> tfseek::Result<Arc<dyn Source>> {
        self.store.open(object)
    }

    fn small(&self, url: &str, limit: u64) -> tfseek::Result<Option<(Region, Stamp)>> {
        self.store.small(url, limit)
    }

    fn put(&self, url: &str, bytes: &[u8]) -> tfseek::Result<()> {
        self.store.put(url, bytes)
    }

    fn place(&self, url: &str) -> String {
        self.store.place(url)
    }
}

/// Returns true for an I/O error of this kind.
fn is_kind(e: &Error, kind: io::ErrorKind) -> bool {
    matches!(e.kind(), ErrorKind::Io(io) if io.kind() == kind)
}

/// Returns true for a file that may not be read. Without a right to list objects, those that do not exist are
/// refused.
pub(crate) fn is_denied(e: &TfdsError) -> bool {
    matches!(e.kind(), TfdsErrorKind::Error(e) if is_kind(e, io::ErrorKind::PermissionDenied))
}

/// Returns options with this store.
pub(crate) fn with_store(store: Option<&Arc<dyn Store>>) -> DatasetOptions {
    match store {
        Some(store) => DatasetOptions::new().store(store.clone()),
        None => DatasetOptions::new(),
    }
}
