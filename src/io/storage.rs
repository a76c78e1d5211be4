//! Shards by name: files by their paths, and objects of a store by their URLs.

use super::open::open_regular;
use super::process::Process;
use super::source::in_steps;
use super::url::{bare_url, check_local, is_selected_by_name, may_be_object, object_key, url_of};
use super::{FileId, Listing, Object, Region, Scans, Source, Stamp, Store, Traffic};
use crate::error::{Error, ErrorKind, PathsError, Result};
use crate::memory::room;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

/// Number of milliseconds after which a forked process takes a lock for one that is held for ever: by a
/// thread that it does not have.
const HELD: u32 = 200;

/// The bytes of a part of an object that is read in parts.
const PARTS: Range<u64> = 256 << 10..8 << 20;
/// Number of parts of an object, while they have these bytes.
const AT_A_TIME: u64 = 16;

/// Access to shards and their index files by name: to files, and to the objects of a store if there is one.
///
/// Files have what objects do not: maps, descriptors that are kept, links, folders. So they are opened as
/// [`File`]s, and each place that reads a shard takes both as [`Source`]s.
#[derive(Clone, Default)]
pub(crate) struct Storage {
    store: Option<Arc<dyn Store>>,
    /// The objects that were listed, by their names, which have no query and no user.
    listed: Arc<Mutex<HashMap<Box<str>, Object>>>,
    /// The objects in the folders of index files. `None` for a folder that could not be listed.
    beside: Arc<Mutex<HashMap<Box<str>, Option<ListedObjects>>>>,
    scans: Arc<Scans>,
    /// The process that made it.
    process: Process,
}

/// The objects in a folder, by their URLs.
type ListedObjects = BTreeMap<Box<str>, Object>;

/// An open shard.
#[derive(Debug)]
pub(crate) enum OpenedShard {
    File(File),
    Object(Arc<dyn Source>),
}

impl OpenedShard {
    pub(crate) fn source(&self) -> &dyn Source {
        match self {
            OpenedShard::File(file) => file,
            OpenedShard::Object(source) => &**source,
        }
    }
}

impl Storage {
    /// Returns the storage of files, and of the objects of this store.
    pub(crate) fn with_store(store: Arc<dyn Store>) -> Storage {
        Storage { store: Some(store), ..Storage::default() }
    }

    /// Returns true if there is a store.
    pub(crate) fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// Returns what the store has read so far, if it counts that.
    pub(crate) fn traffic(&self) -> Option<Traffic> {
        self.store.as_ref()?.traffic()
    }

    /// Returns the store of objects. `None` if there is none.
    pub(crate) fn store(&self) -> Option<&Arc<dyn Store>> {
        self.store.as_ref()
    }

    /// Returns the scans of objects that are under way.
    pub(crate) fn scans(&self) -> &Arc<Scans> {
        &self.scans
    }

    /// Returns the same storage, which has listed no object yet.
    pub(crate) fn renewed(&self) -> Storage {
        Storage { store: self.store.clone(), ..Storage::default() }
    }

    /// Locks what was listed. `None` in a forked process if a thread held the lock that it does not have:
    /// objects are then listed again.
    fn lock<'m, T>(&self, listed: &'m Mutex<T>) -> Option<MutexGuard<'m, T>> {
        if self.process.is_this() {
            return Some(listed.lock().unwrap_or_else(PoisonError::into_inner));
        }
        for _ in 0..HELD {
            match listed.try_lock() {
                Ok(listed) => return Some(listed),
                Err(TryLockError::Poisoned(e)) => return Some(e.into_inner()),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            }
        }
        None
    }

    /// Returns the store and the URL of an object. `None` for a path.
    ///
    /// # Errors
    /// [`PathsError::NotLocal`](crate::error::PathsError::NotLocal) for a URL if there is no store for it.
    pub(crate) fn object_of<'a>(&'a self, name: &'a Path) -> Result<Option<(&'a dyn Store, &'a str)>> {
        match (&self.store, url_of(name)) {
            (Some(store), Some(url)) if may_be_object(url) => Ok(Some((&**store, url))),
            _ => check_local(name).map(|()| None),
        }
    }

    /// Returns the store of an object. `None` for a path.
    ///
    /// # Errors
    /// Errors of [`object_of`](Storage::object_of).
    pub(crate) fn store_of(&self, name: &Path) -> Result<Option<Arc<dyn Store>>> {
        Ok(if self.object_of(name)?.is_some() { self.store.clone() } else { None })
    }

    /// Lists objects, and keeps their stamps.
    ///
    /// # Errors
    /// Errors of [`Store::list`].
    pub(crate) fn list(&self, store: &dyn Store, prefix: &str, deep: bool) -> Result<Listing> {
        let in_folder = |e| unsupported(e, "the store has no listings").in_file(Path::new(&bare_url(prefix)));
        let listing = store.list(prefix, deep).map_err(in_folder)?;
        if let Some(mut listed) = self.lock(&self.listed) {
            for object in &listing.objects {
                let name = bare_url(&object.url);
                // A name stands for one URL.
                if listed.get(name.as_str()).is_none_or(|known| known.url == object.url) {
                    listed.insert(name.into(), object.clone());
                }
            }
        }
        Ok(listing)
    }

    /// Returns the object of this name, which has no query, if it was listed.
    fn listed(&self, name: &str) -> Option<Object> {
        self.lock(&self.listed)?.get(name).cloned()
    }

    /// Returns the URL of the object of this name, which has no query, if it was listed.
    pub(crate) fn listed_url(&self, name: &str) -> Option<Box<str>> {
        self.listed(name).map(|object| object.url)
    }

    /// Returns an index file, if it was listed with its folder.
    fn listed_beside(&self, url: &str) -> Option<Object> {
        let (folder, _) = url.rsplit_once('/')?;
        self.lock(&self.beside)?.get(folder)?.as_ref()?.get(url).cloned()
    }

    /// Returns an object of the store, which is listed if it was not before. Its name may have no query.
    fn object(&self, store: &dyn Store, url: &str) -> Result<Object> {
        let name = bare_url(url);
        if let Some(object) = self.listed(&name) {
            return check_same(object, url, &name);
        }
        let listing = self.list(store, url, false)?;
        let listed = || listing.objects.into_iter().find(|object| bare_url(&object.url) == name);
        let found = self.listed(&name).or_else(listed);
        check_same(found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?, url, &name)
    }

    /// Returns the URL that the name of an object stands for.
    fn url_named<'a>(&self, url: &'a str) -> Cow<'a, str> {
        self.listed_url(&bare_url(url)).map_or(Cow::Borrowed(url), |listed| Cow::Owned(listed.into()))
    }

    /// Returns the [key](Store::key) of an object. `None` for a path.
    pub(crate) fn key(&self, name: &Path) -> Option<Box<str>> {
        let (store, url) = self.object_of(name).ok()??;
        Some(store.key(&self.url_named(url)))
    }

    /// Returns true if the name of an object is all that selects it in its store. Else a file beside it may
    /// belong to another object. True for a path.
    pub(crate) fn is_selected_by_name(&self, name: &Path) -> bool {
        url_of(name).is_none_or(|url| is_selected_by_name(&self.url_named(url)))
    }

    /// Returns the [key](Store::key) of an object, if its name is not all that selects it.
    pub(crate) fn key_beside_name(&self, name: &Path) -> Option<Box<str>> {
        let (store, url) = self.object_of(name).ok()??;
        let is_all = self.is_selected_by_name(name) && store.place(&self.url_named(url)).is_empty();
        if is_all { None } else { self.key(name) }
    }

    /// Returns names of shards: URLs without secrets, whose objects are listed.
    ///
    /// # Errors
    /// Errors of [`Store::list`].
    pub(crate) fn names(&self, given: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let mut named = HashMap::<String, &str>::new();
        let mut names = Vec::with_capacity(given.len());
        for path in given {
            let Some((store, url)) = self.object_of(path)? else {
                names.push(path.clone());
                continue;
            };
            let name = bare_url(url);
            if name != url {
                self.object(store, url)?;
            }
            if named.get(&name).is_some_and(|other| !is_same_object(other, url)) {
                return Err(two_of_one_name(&name));
            }
            names.push(name.clone().into());
            named.insert(name, url);
        }
        Ok(names)
    }

    /// Opens a shard.
    ///
    /// # Errors
    /// I/O errors, also for a file that is not regular; errors of [`object_of`](Storage::object_of).
    pub(crate) fn open(&self, name: &Path) -> Result<OpenedShard> {
        Ok(match self.open_object(name)? {
            Some(source) => OpenedShard::Object(source),
            None => OpenedShard::File(open_regular(name)?),
        })
    }

    /// Opens an object. `None` for a path.
    ///
    /// # Errors
    /// Errors of [`open`](Storage::open).
    pub(crate) fn open_object(&self, name: &Path) -> Result<Option<Arc<dyn Source>>> {
        let Some((store, url)) = self.object_of(name)? else { return Ok(None) };
        let opened = self.object(store, url).and_then(|object| store.open(&object));
        opened.map(Some).map_err(|e| e.in_file(Path::new(&bare_url(url))))
    }

    /// Returns an object that was listed and its bytes, if they are all in memory or mapped.
    pub(crate) fn whole(&self, name: &Path) -> Option<(Arc<dyn Source>, Region)> {
        let (store, url) = self.object_of(name).ok()??;
        let source = store.open(&self.listed(url)?).ok()?;
        let whole = source.whole()?.clone();
        Some((source, whole))
    }

    /// Opens an object of a version that another process listed.
    ///
    /// # Errors
    /// Errors of [`open`](Storage::open).
    pub(crate) fn open_as(&self, name: &Path, stamp: Stamp) -> Result<OpenedShard> {
        match self.object_of(name)? {
            Some((store, url)) => {
                let object = Object { url: url.into(), stamp };
                Ok(OpenedShard::Object(store.open(&object)?))
            }
            None => self.open(name),
        }
    }

    /// Returns the stamp of a shard: of a file now, of an object as it was listed.
    ///
    /// # Errors
    /// Errors of [`open`](Storage::open).
    pub(crate) fn stamp(&self, name: &Path) -> Result<Stamp> {
        match self.known_object(name)? {
            Some(object) => Ok(object.stamp),
            None => Ok(Stamp::of(&fs::metadata(name)?)?),
        }
    }

    /// Returns the identity of a file. `None` for an object.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn id(&self, name: &Path) -> io::Result<Option<FileId>> {
        if url_of(name).is_some() { Ok(None) } else { FileId::of(name) }
    }

    /// Returns an object as it was listed. `None` for a path.
    ///
    /// # Errors
    /// Errors of [`Store::list`].
    pub(crate) fn known_object(&self, name: &Path) -> Result<Option<Object>> {
        self.object_of(name)?.map(|(store, url)| self.object(store, url)).transpose()
    }

    /// Returns the version of an object that was listed.
    pub(crate) fn version(&self, name: &Path) -> Option<Box<str>> {
        self.listed(&bare_url(url_of(name)?))?.stamp.version
    }

    /// Writes a whole object.
    ///
    /// # Errors
    /// Errors of [`Store::put`].
    pub(crate) fn put(&self, name: &Path, bytes: &[u8]) -> Result<()> {
        let (store, url) = self.object_of(name)?.ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        store.put(url, bytes).map_err(|e| unsupported(e, "the store is for reading only"))?;
        let folder = url.rsplit_once('/').map_or("", |(folder, _)| folder);
        if let Some(mut beside) = self.lock(&self.beside)
            && let Some(Some(names)) = beside.get_mut(folder)
        {
            let stamp = Stamp::new(bytes.len() as u64);
            names.insert(url.into(), Object { url: url.into(), stamp });
        }
        Ok(())
    }

    /// Reads and decodes a whole object, and once more if `decode` fails: a bit may have flipped on its way.
    /// `None` if there is none, or if `name` is a path. The inner result comes from `decode`.
    ///
    /// # Errors
    /// Errors of [`Store::small`].
    pub(crate) fn small<T, E>(
        &self,
        name: &Path,
        limit: u64,
        decode: impl Fn(Region) -> Result<T, E>,
    ) -> Result<Option<Result<T, E>>> {
        let Some((store, url)) = self.object_of(name)? else { return Ok(None) };
        let listed = self.listed(&bare_url(url)).or_else(|| self.listed_beside(url));
        let large = listed.filter(|object| (2 * PARTS.start..=limit).contains(&object.stamp.size));
        let read = || -> Result<_> { Ok(store.small(url, limit)?.map(|(bytes, _)| bytes)) };
        let first = match large.map(|object| read_in_parts(store, &object)) {
            Some(Ok(bytes)) => Some(bytes),
            // Parts cannot be read if the object was replaced or deleted after it was listed, or if the
            // server ignores ranges.
            Some(Err(_)) | None => read()?,
        };
        match first.map(&decode) {
            Some(Err(_)) => Ok(read()?.map(decode)),
            decoded => Ok(decoded),
        }
    }

    /// Returns true if there may be an index file of this name. Its folder is listed, once for all of its
    /// files: most shards have none. True for a folder without a listing.
    ///
    /// # Errors
    /// Errors of [`object_of`](Storage::object_of).
    pub(crate) fn may_have_index_file(&self, name: &Path) -> Result<bool> {
        let Some((store, url)) = self.object_of(name)? else { return Ok(false) };
        let Some((folder, _)) = url.rsplit_once('/') else { return Ok(false) };
        Ok(self.beside(store, folder, |objects| objects.is_none_or(|objects| objects.contains_key(url))))
    }

    /// Opens an index file of a folder that can be listed. `None` if there is none, and for paths and folders
    /// without a listing.
    ///
    /// # Errors
    /// Errors of [`Store::open`].
    pub(crate) fn listed_index_file(&self, name: &Path) -> Result<Option<Arc<dyn Source>>> {
        let Some((store, url)) = self.object_of(name)? else { return Ok(None) };
        let Some((folder, _)) = url.rsplit_once('/') else { return Ok(None) };
        let found = self.beside(store, folder, |objects| objects?.get(url).cloned());
        found.map(|object| store.open(&object)).transpose()
    }

    /// Returns the URLs in a folder of index files that have this ending, sorted. None for paths and folders
    /// without a listing.
    ///
    /// # Errors
    /// Errors of [`object_of`](Storage::object_of).
    pub(crate) fn index_files(&self, folder: &Path, ending: &str) -> Result<Vec<Box<str>>> {
        let Some((store, folder)) = self.object_of(folder)? else { return Ok(Vec::new()) };
        let ended = |objects: &ListedObjects| {
            objects.keys().filter(|url| url.ends_with(ending)).cloned().collect::<Vec<_>>()
        };
        Ok(self.beside(store, folder, |objects| objects.map(ended)).unwrap_or_default())
    }

    /// Calls `f` with the objects in a folder of index files, which is listed once. `None` if it cannot be
    /// listed.
    fn beside<T>(&self, store: &dyn Store, folder: &str, f: impl Fn(Option<&ListedObjects>) -> T) -> T {
        if let Some(beside) = self.lock(&self.beside)
            && let Some(objects) = beside.get(folder)
        {
            return f(objects.as_ref());
        }
        let listing = match store.list(&format!("{folder}/"), false) {
            Ok(listing) => Some(listing),
            // The next reader lists it.
            Err(e) if matches!(e.kind(), ErrorKind::Cancelled) => return f(None),
            Err(_) => None,
        };
        let objects = listing.map(|all| {
            all.objects.into_iter().map(|object| (object.url.clone(), object)).collect::<ListedObjects>()
        });
        match self.lock(&self.beside) {
            Some(mut beside) => f(beside.entry(folder.into()).or_insert(objects).as_ref()),
            None => f(objects.as_ref()),
        }
    }
}

/// Returns an object, unless its URL differs from the one that was asked for: two URLs may have one name, and
/// belong to two objects.
fn check_same(object: Object, url: &str, name: &str) -> Result<Object> {
    if url == name || is_same_object(&object.url, url) { Ok(object) } else { Err(two_of_one_name(name)) }
}

/// Returns true if two URLs in one store belong to one object. Signatures may differ.
fn is_same_object(one: &str, other: &str) -> bool {
    one == other || object_key(one, "") == object_key(other, "")
}

/// Returns the error of two URLs that differ only in what is not shown. Records of both would be read from
/// one of them.
#[cold]
pub(crate) fn two_of_one_name(name: &str) -> Error {
    let reason =
        "two URLs have this name, and differ in their queries or users: open each as a data set of its own";
    PathsError::BadPattern { pattern: name.into(), reason: reason.into() }.into()
}

/// Reads an object in parts at a time. One connection often has a small part of the link's rate.
fn read_in_parts(store: &dyn Store, object: &Object) -> Result<Region> {
    let source = store.open(object)?;
    if let Some(whole) = source.whole() {
        return Ok(whole.clone());
    }
    let len = object.stamp.size;
    let part = (len / AT_A_TIME).clamp(PARTS.start, PARTS.end);
    let mut bytes = room(usize::try_from(len).unwrap_or(usize::MAX))?;
    let parts = in_steps(0..len, part);
    // One by one: ranges that are announced together may be one request.
    parts.clone().for_each(|part| source.want(&[part]));
    for part in parts {
        let before = bytes.len();
        source.fetch(part.clone(), &mut bytes)?.complete(&part, before, &mut bytes)?;
    }
    Ok(bytes.into())
}

/// Returns the error of a store that cannot do what it was asked to, with a text if it has none.
#[cold]
fn unsupported(e: Error, text: &str) -> Error {
    match e.kind() {
        ErrorKind::Io(io) if io.kind() == io::ErrorKind::Unsupported && io.get_ref().is_none() => {
            io::Error::new(io::ErrorKind::Unsupported, text).into()
        }
        _ => e,
    }
}

/// URLs that were listed may have queries, which may be secret.
impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Storage").field(&self.store).finish()
    }
}
