//! The store: its thread, its buckets, and its copies in forked processes.

use crate::address::{Address, Kind};
use crate::backend::{Backend, Backends};
use crate::clients::Told;
use crate::cloud::is_option;
use crate::disk::{self, CachedPiece, DiskCache, Lease};
use crate::doubts::Doubts;
use crate::failure::{Cause, RequestFailure};
use crate::pieces::{Answer, Origin, PieceBytes, PiecePart, Pieces, Request};
use crate::place::Places;
use crate::ready::{HasPieces, ReadyPieces};
use crate::runtime::{ATTENTION, IoThread, Monitor, NoResult, on_disk};
use crate::settings::{RemoteOptions, Settings};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tfseek::error::{Error, ErrorKind, Result};
use tfseek::io::{
    Fetched, Listing, Object, PerProcess, Region, Source, Stamp, Store, Traffic, bare_url, is_interrupted,
};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Objects of S3, Google Cloud Storage, Azure, HTTP servers and the Hugging Face hub.
///
/// All requests are made by one thread, `tfseek-io`, which starts with the first. A forked process makes a
/// new store of the same options. No message and no `Debug` output has a credential, or the query or user of
/// a URL.
///
/// ```no_run
/// use std::sync::Arc;
/// use tfseek_remote::{RemoteOptions, RemoteStore};
///
/// let store = Arc::new(RemoteStore::new(RemoteOptions::default()));
/// let ds = tfseek::DatasetOptions::new().store(store).open("gs://bucket/train-*.tfrecord")?;
/// println!("{} records", ds.len());
/// # Ok::<(), tfseek::Error>(())
/// ```
pub struct RemoteStore(Arc<SharedStore>);

/// The URLs of objects by their names and keys. `None` for a name of several.
type NamedUrls = HashMap<Box<str>, Option<Box<str>>>;

struct SharedStore {
    settings: Arc<Settings>,
    places: Places,
    /// The process that made the store.
    process: u32,
    live: PerProcess<Mutex<Option<Arc<Live>>>>,
    /// Number of objects that were opened.
    opened: AtomicU64,
    /// The URLs of objects that were listed with a query or a user, by the names that are shown, and by their
    /// keys. `None` for a name of several.
    named: Mutex<NamedUrls>,
}

/// The thread, the clients and the pieces of one process.
struct Live {
    io: IoThread,
    settings: Arc<Settings>,
    backends: Mutex<Backends>,
    pieces: Monitor<Pieces<Remote>>,
    /// Handles that end the requests for pieces, by their numbers. Locked after `pieces`.
    running: Mutex<HashMap<u64, AbortHandle>>,
    cache: Option<Arc<DiskCache>>,
    /// The times of requests count from here.
    start: Instant,
}

/// An object for requests.
struct Remote {
    backend: Arc<Backend>,
    key: String,
    stamp: Stamp,
    /// The name of its folder in the cache.
    cached: Option<String>,
    ready: Option<Arc<ReadyPieces>>,
    /// Its bytes that failed a checksum.
    doubts: Mutex<Doubts>,
}

impl HasPieces for Remote {
    fn ready(&self) -> Option<&ReadyPieces> {
        self.ready.as_deref()
    }
}

/// The content of a cache on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheContent {
    /// The folder.
    pub folder: PathBuf,
    /// Number of pieces of objects in it.
    pub pieces: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Largest number of bytes.
    pub limit: u64,
}

impl SharedStore {
    /// Returns the names of objects. `None` in a forked process if a thread held the lock that it does not
    /// have.
    fn named(&self) -> Option<MutexGuard<'_, NamedUrls>> {
        if self.process == process::id() {
            Some(self.named.lock().unwrap_or_else(PoisonError::into_inner))
        } else {
            self.named.try_lock().ok()
        }
    }

    /// Checks the options, and returns the folder of the cache and its limit.
    fn cache(&self) -> Result<Option<(PathBuf, u64)>, RequestFailure> {
        let invalid = |text| RequestFailure::new(Cause::Invalid, text);
        if let Some(name) = self.settings.options().find(|name| !is_option(name)) {
            return Err(invalid(format!("unknown storage option {name:?}")));
        }
        let Some((folder, limit)) = self.settings.cache().map_err(invalid)? else { return Ok(None) };
        Ok(Some((disk::check_folder(folder).map_err(invalid)?, limit)))
    }

    /// Returns the thread and clients of this process. They are made if there are none.
    fn live(&self) -> Result<Arc<Live>, RequestFailure> {
        let mut live = self.live.own().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = &*live {
            return Ok(live.clone());
        }
        let cache = self.cache()?;
        let cache = cache.map(|(folder, limit)| Arc::new(DiskCache::new(folder, limit)));
        let failed =
            |e| RequestFailure::new(Cause::Other, format!("the thread for requests did not start: {e}"));
        let io = IoThread::start().map_err(failed)?;
        let pieces = Pieces::new(self.settings.requests, self.settings.memory, cache.is_none());
        let made = Arc::new(Live {
            io,
            settings: self.settings.clone(),
            backends: Mutex::default(),
            pieces: Monitor::new(pieces),
            running: Mutex::default(),
            cache,
            start: Instant::now(),
        });
        Ok(live.insert(made).clone())
    }
}

impl Live {
    fn backend(&self, address: Address<'_>) -> Result<Arc<Backend>, RequestFailure> {
        let mut backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |e: Told| RequestFailure::new(Cause::Other, e.to_string());
        backends.get(address, &self.settings).map_err(failed)
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces<Remote>> {
        self.pieces.lock()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, AbortHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends requests that are not needed any more, and makes others in their place.
    fn end(self: &Arc<Live>, pieces: &mut Pieces<Remote>, requests: &[u64]) {
        for request in requests.iter().filter_map(|number| self.running().remove(number)) {
            request.abort();
        }
        self.advance(pieces);
    }

    /// Makes the requests that may be made.
    fn advance(self: &Arc<Live>, pieces: &mut Pieces<Remote>) {
        while let Some((request, object)) = pieces.next(self.start.elapsed()) {
            let kept =
                object.cached.clone().filter(|_| request.range.end - request.range.start >= LEAST_KEPT);
            let kept = self.cache.clone().zip(kept);
            let again = object.doubts().wants(&request.range);
            if let Some((cache, folder)) = &kept
                && !again
                && let Some(piece) = cache.find_checked(folder, &request.range)
            {
                pieces.done(&request, Ok(PieceBytes::Disk(piece)), self.start.elapsed(), Origin::Cache);
                self.pieces.notify();
                continue;
            }
            let refusals = object.backend.refusals();
            let live = Arc::downgrade(self);
            let number = request.number;
            let running = Running { live, request, object, refusals, again, from_cache: false, result: None };
            let task = self.io.spawn(async move {
                let range = running.request.range.clone();
                if !running.request.delay.is_zero() {
                    tokio::time::sleep(running.request.delay).await;
                }
                let Some((cache, folder)) = kept else {
                    let result = running.object.read(range).await.map(Region::from);
                    return running.end(result);
                };
                let lease = match find(&cache, &folder, &range, again).await {
                    Found::Piece(piece) => return running.end_from_cache(piece),
                    Found::Lease(lease) => lease,
                };
                let result = running.object.read(range.clone()).await.map(Region::from);
                // The thread that waits does not wait for the disk.
                running.end(result.clone());
                if let Ok(bytes) = result {
                    let write = move || {
                        cache.write(&folder, &range, &bytes);
                        drop(lease);
                    };
                    // It cannot fail.
                    let _ = on_disk(write).await;
                }
            });
            self.running().insert(number, task);
        }
    }

    /// Waits for a request.
    fn wait<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, RequestFailure>> + Send + 'static,
    ) -> Result<T, RequestFailure> {
        match self.io.wait(request) {
            Ok(result) => result,
            Err(NoResult::Cancelled) => Err(RequestFailure::cancelled()),
            Err(NoResult::Ended) => {
                Err(RequestFailure::new(Cause::Other, "the thread for requests has ended"))
            }
        }
    }
}

/// The fewest bytes of a piece that is kept on disk.
const LEAST_KEPT: u64 = 4096;

/// The most times that a range is read whose pieces on disk cannot be.
const DISK_TRIES: usize = 3;

/// The result of a look into the cache.
enum Found {
    Piece(CachedPiece),
    /// The piece is to be fetched. Without a lease, other processes may fetch it too.
    Lease(Option<Lease>),
}

/// Looks for a piece in the cache. Waits a while for another process that is fetching it. With `again` a
/// piece is deleted, also one that was being written.
async fn find(cache: &Arc<DiskCache>, folder: &str, range: &Range<u64>, again: bool) -> Found {
    let since = Instant::now();
    loop {
        let cache = cache.clone();
        let folder = folder.to_owned();
        let range = range.clone();
        let look = move || match (!again).then(|| cache.find(&folder, &range)).flatten() {
            None if again => {
                let lease = cache.lease(&folder, &range)?;
                cache.remove(&folder, &range);
                Some(Found::Lease(Some(lease)))
            }
            Some(piece) => Some(Found::Piece(piece)),
            None => {
                let lease = cache.lease(&folder, &range)?;
                // Its last holder may have written the piece in between.
                Some(cache.find(&folder, &range).map_or(Found::Lease(Some(lease)), Found::Piece))
            }
        };
        match on_disk(look).await {
            Some(Some(found)) => return found,
            Some(None) if since.elapsed() < disk::LEASE => tokio::time::sleep(disk::LOOK).await,
            _ => return Found::Lease(None),
        }
    }
}

impl Remote {
    fn doubts(&self) -> MutexGuard<'_, Doubts> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, RequestFailure> {
        self.backend.read(&self.key, range, &self.stamp).await
    }
}

/// A request for a piece. Its end is noted also if it fails in an unexpected way.
struct Running {
    live: Weak<Live>,
    request: Request,
    object: Arc<Remote>,
    /// Number of refusals of the server before it.
    refusals: u64,
    /// Its bytes are in doubt.
    again: bool,
    from_cache: bool,
    result: Option<Result<PieceBytes, RequestFailure>>,
}

impl Running {
    fn end(mut self, result: Result<Region, RequestFailure>) {
        self.result = Some(result.map(PieceBytes::Memory));
    }

    fn end_from_cache(mut self, piece: CachedPiece) {
        self.from_cache = true;
        self.result = Some(Ok(match piece {
            CachedPiece::Open(piece) => PieceBytes::Disk(piece),
            CachedPiece::Read(bytes) => PieceBytes::Memory(bytes.into()),
        }));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If the store was dropped, so was the thread that asked.
        let Some(live) = self.live.upgrade() else { return };
        if self.result.as_ref().is_some_and(Result::is_ok) && !self.from_cache {
            self.object.doubts().came(&self.request.range, self.again);
        }
        let mut pieces = live.pieces();
        let given_up = live.running().remove(&self.request.number).is_none();
        let ended = || {
            if given_up {
                return Err(RequestFailure::cancelled());
            }
            Err(RequestFailure::new(Cause::Other, "the request ended without an answer"))
        };
        let result = self.result.take().unwrap_or_else(ended);
        let origin = if self.from_cache {
            Origin::Cache
        } else if self.object.backend.refusals() > self.refusals {
            Origin::RefusingServer
        } else {
            Origin::Server
        };
        pieces.done(&self.request, result, live.start.elapsed(), origin);
        live.advance(&mut pieces);
        drop(pieces);
        live.pieces.notify();
    }
}

impl RemoteStore {
    /// Makes a store. No request is made.
    pub fn new(options: RemoteOptions) -> RemoteStore {
        let settings = Arc::new(Settings::new(options));
        let places = Places::new(&settings);
        RemoteStore(Arc::new(SharedStore {
            settings,
            places,
            process: process::id(),
            live: PerProcess::default(),
            opened: AtomicU64::new(0),
            named: Mutex::default(),
        }))
    }

    /// Returns true if a URL has a scheme of these stores.
    pub fn has(url: &str) -> bool {
        crate::address::is_known(url)
    }

    /// Returns true if nothing can be written to the place of a URL: a web server, or the Hugging Face hub.
    pub fn is_read_only(url: &str) -> bool {
        Address::of(url).is_ok_and(|address| matches!(address.kind, Kind::Web | Kind::Hub))
    }

    /// Checks the options. No request is made.
    ///
    /// # Errors
    /// An unknown option, and a cache with a folder and no limit, or the other way round.
    pub fn check(&self) -> Result<()> {
        self.0.cache().map(drop).map_err(|failure| failure.error())
    }

    /// Returns the cache on disk. `None` if there is none. Its folder is looked through.
    ///
    /// # Errors
    /// A folder without a limit, or a limit without a folder.
    pub fn cache(&self) -> Result<Option<CacheContent>> {
        let cache = self.0.cache().map_err(|failure| failure.error())?;
        Ok(cache.map(|(folder, limit)| {
            let (pieces, bytes) = disk::content(&folder);
            CacheContent { folder, pieces, bytes, limit }
        }))
    }

    /// Returns the URL of an object, with the query and the user that it was listed with. Names of shards
    /// have none.
    fn full_url<'u>(&self, url: &'u str) -> Result<Cow<'u, str>, RequestFailure> {
        let name = if bare_url(url) == url { Box::from(url) } else { self.key(url) };
        match self.known_url(&name) {
            None => Ok(Cow::Borrowed(url)),
            Some(Some(full)) => Ok(Cow::Owned(full.into())),
            Some(None) => {
                let text =
                    "two URLs have this name, and differ in their queries or users: read each by itself";
                Err(RequestFailure::new(Cause::Invalid, text))
            }
        }
    }

    /// Returns the URL of the object of this name or key, if it was listed, and `Some(None)` for a name of
    /// several.
    fn known_url(&self, name: &str) -> Option<Option<Box<str>>> {
        self.0.named()?.get(name).cloned()
    }

    /// Notes the URL of an object that was listed.
    fn note_url(&self, url: &str) {
        let name = bare_url(url);
        let key = self.key(url);
        let is_other = match self.known_url(&name) {
            None => false,
            Some(None) => true,
            Some(Some(known)) => self.key(&known) != key,
        };
        let Some(mut named) = self.0.named() else { return };
        let full = Box::<str>::from(url);
        named.insert(name.into(), (!is_other).then(|| full.clone()));
        named.insert(key, Some(full));
    }

    /// Makes one request about a URL, and waits for it.
    fn request<T: Send + 'static, F>(
        &self,
        url: &str,
        request: impl FnOnce(Arc<Backend>, String) -> F,
    ) -> Result<T, RequestFailure>
    where
        F: Future<Output = Result<T, RequestFailure>> + Send + 'static,
    {
        let address = Address::of(url)?;
        let live = self.0.live()?;
        let backend = live.backend(address)?;
        live.wait(request(backend, address.key.to_owned()))
    }
}

#[cfg(test)]
impl RemoteStore {
    /// Returns what is wrong in the accounts of requests and bytes, while no request is under way.
    pub(crate) fn wrong_account(&self) -> Option<String> {
        let live = self.0.live().ok()?;
        let pieces = live.pieces();
        let is_idle = live.running().is_empty();
        is_idle.then(|| pieces.wrong_account()).flatten()
    }
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteStore").finish_non_exhaustive()
    }
}

/// Returns the error about an object.
#[cold]
fn about(url: &str, failure: &RequestFailure) -> Error {
    failure.error().in_file(Path::new(&bare_url(url)))
}

impl Store for RemoteStore {
    fn list(&self, prefix: &str, deep: bool) -> Result<Listing> {
        let list = |backend: Arc<Backend>, key: String| async move { backend.list(&key, deep).await };
        let full = self.full_url(prefix).map_err(|failure| failure.error())?;
        let found = self.request(&full, list).map_err(|failure| failure.error())?;
        let root = Address::of(&full).map_or("", |address| address.root);
        let url = |name: String| -> Box<str> { format!("{root}/{name}").into() };
        if found.objects.iter().any(|(name, _)| *url(name.clone()) == *full) {
            self.note_url(&full);
        }
        let objects = found.objects.into_iter().map(|(name, stamp)| Object { url: url(name), stamp });
        let mut objects: Vec<Object> = objects.collect();
        if *full != *prefix
            && let Some(object) = objects.iter_mut().find(|object| *object.url == *full)
        {
            // It was asked for by its name. Its URL, which identifies it, comes first, unless it has another
            // beginning.
            let named = Object { url: prefix.into(), stamp: object.stamp.clone() };
            if full.starts_with(prefix) {
                objects.push(named);
            } else {
                *object = named;
            }
        }
        Ok(Listing { objects, folders: found.folders.into_iter().map(url).collect() })
    }

    fn open(&self, object: &Object) -> Result<Arc<dyn Source>> {
        let full = self.full_url(&object.url).map_err(|failure| failure.error())?;
        let address = Address::of(&full).map_err(|failure| failure.error())?;
        if address.key.is_empty() {
            let failure = RequestFailure::new(Cause::Invalid, "the URL has no name after the bucket");
            return Err(failure.error());
        }
        Ok(Arc::new(RemoteObject {
            id: self.0.opened.fetch_add(1, Relaxed),
            shared: self.0.clone(),
            name: bare_url(&full).into(),
            key: self.key(&full),
            object: Object { url: full.into(), stamp: object.stamp.clone() },
            process: process::id(),
            ready: Arc::default(),
            known: Mutex::default(),
        }))
    }

    fn small(&self, url: &str, limit: u64) -> Result<Option<(Region, Stamp)>> {
        let small = |backend: Arc<Backend>, key: String| async move { backend.small(&key, limit).await };
        let full = self.full_url(url).map_err(|failure| about(url, &failure))?;
        let found = self.request(&full, small).map_err(|failure| about(url, &failure))?;
        Ok(found.map(|(bytes, stamp)| (Region::from(bytes), stamp)))
    }

    fn put(&self, url: &str, bytes: &[u8]) -> Result<()> {
        if RemoteStore::is_read_only(url) {
            return Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into());
        }
        let bytes = bytes.to_vec();
        let put = |backend: Arc<Backend>, key: String| async move { backend.put(&key, bytes).await };
        self.request(url, put).map_err(|failure| about(url, &failure))
    }

    fn place(&self, url: &str) -> String {
        let place = Address::of(url).map_or("", |address| self.0.places.of(address));
        let full = if bare_url(url) == url { self.known_url(url).flatten() } else { None };
        // The name of an object of a user.
        let user = full.as_deref().filter(|full| !full.starts_with(url)).and_then(|full| {
            let (_, rest) = full.split_once("://")?;
            let (login, _) = rest.split_once('/').map_or(rest, |(host, _)| host).rsplit_once('@')?;
            Some(login.split_once(':').map_or(login, |(user, _)| user))
        });
        user.map_or_else(|| place.to_owned(), |user| format!("{place}{user:?}"))
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.0.live().ok()?.pieces().traffic())
    }
}

/// The store of one process, and an object in it.
struct KnownObject {
    process: u32,
    live: Arc<Live>,
    remote: Arc<Remote>,
}

/// An object of one version. Announced pieces are kept until they are read.
struct RemoteObject {
    shared: Arc<SharedStore>,
    /// Its number in the pieces of the store.
    id: u64,
    object: Object,
    name: Box<str>,
    /// The object's name in the cache.
    key: Box<str>,
    /// The process that opened it. The pieces that are ready are its.
    process: u32,
    ready: Arc<ReadyPieces>,
    known: Mutex<Option<KnownObject>>,
}

impl fmt::Debug for RemoteObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteObject").field(&self.name).finish()
    }
}

impl RemoteObject {
    /// Returns the store of this process, and the object in it.
    fn live(&self) -> Result<(Arc<Live>, Arc<Remote>), RequestFailure> {
        let process = process::id();
        // If another thread held this lock at a fork, it is held in the child for ever.
        let mut known = self.known.try_lock().ok();
        if let Some(known) = known.as_deref().and_then(Option::as_ref)
            && known.process == process
        {
            return Ok((known.live.clone(), known.remote.clone()));
        }
        let live = self.shared.live()?;
        let address = Address::of(&self.object.url)?;
        let key = address.key.to_owned();
        let stamp = self.object.stamp.clone();
        let cached = live.cache.as_ref().and_then(|_| disk::folder_name(&self.key, &stamp));
        let ready = (process == self.process).then(|| self.ready.clone());
        let backend = live.backend(address)?;
        let doubts = Mutex::default();
        let remote = Arc::new(Remote { backend, key, stamp, cached, ready, doubts });
        if let Some(known) = &mut known {
            // The parent's object is not dropped: its clients have the parent's thread.
            std::mem::forget(known.replace(KnownObject {
                process,
                live: live.clone(),
                remote: remote.clone(),
            }));
        }
        Ok((live, remote))
    }

    /// Waits until all pieces of a range are here.
    fn parts(
        &self,
        live: &Arc<Live>,
        remote: &Arc<Remote>,
        range: &Range<u64>,
    ) -> Result<Vec<PiecePart>, RequestFailure> {
        let mut pieces = live.pieces();
        if let Some(part) = pieces.take_one(self.id, range) {
            // There may be memory for the next pieces.
            live.advance(&mut pieces);
            return Ok(vec![part]);
        }
        pieces.begin(self.id, remote, range);
        live.advance(&mut pieces);
        let mut since: Option<Instant> = None;
        loop {
            let answer = pieces.take(self.id, range);
            if let (Some(since), Answer::Here(_) | Answer::Failed(_)) = (since, &answer) {
                pieces.waited(since.elapsed());
            }
            match answer {
                Answer::Here(parts) => {
                    // There may be memory for the next pieces.
                    live.advance(&mut pieces);
                    return Ok(parts);
                }
                Answer::Failed(failure) => {
                    live.advance(&mut pieces);
                    return Err(failure);
                }
                Answer::Wait if is_interrupted() => {
                    let unneeded = pieces.give_up(self.id, range);
                    live.end(&mut pieces, &unneeded);
                    return Err(RequestFailure::cancelled());
                }
                Answer::Wait => {
                    let now = live.start.elapsed();
                    since.get_or_insert_with(Instant::now);
                    let slow = pieces.hurry(self.id, range, now);
                    live.advance(&mut pieces);
                    let time = slow.map_or(ATTENTION, |at| (at - now).min(ATTENTION));
                    pieces = live.pieces.wait(pieces, time);
                }
            }
        }
    }

    /// Reads a range of a piece that is ready. `None` if there is none, or if it cannot be read.
    fn ready(&self, range: &Range<u64>, buf: &mut Vec<u8>) -> Option<Fetched> {
        let left = self.ready.append(range, buf)?;
        // The bytes are here, also if the store cannot be asked to drop the piece.
        if left == 0
            && let Ok((live, _)) = self.live()
        {
            let mut pieces = live.pieces();
            pieces.clear(self.id, range);
            live.advance(&mut pieces);
        }
        Some(Fetched::Appended)
    }

    fn part(&self, range: &Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        if let Some(fetched) = self.ready(range, buf) {
            return Ok(fetched);
        }
        let (live, remote) = self.live().map_err(|failure| failure.error())?;
        let before = buf.len();
        'tries: for _ in 0..DISK_TRIES {
            let parts = self.parts(&live, &remote, range).map_err(|failure| failure.error())?;
            if parts.iter().all(|part| matches!(part.bytes, PieceBytes::Memory(_))) {
                let shared = parts.into_iter().filter_map(|part| match part.bytes {
                    PieceBytes::Memory(region) => Some((region, part.range)),
                    PieceBytes::Disk(_) => None,
                });
                return Fetched::from_parts(&shared.collect::<Vec<_>>(), buf);
            }
            for part in &parts {
                buf.try_reserve(part.range.len())?;
                match &part.bytes {
                    PieceBytes::Memory(region) => {
                        buf.extend_from_slice(region.get(part.range.clone()).unwrap_or_default());
                    }
                    PieceBytes::Disk(piece) => {
                        if piece.append(range, buf).is_err() {
                            self.lost(&live, &remote, piece.range());
                            buf.truncate(before);
                            continue 'tries;
                        }
                    }
                }
            }
            return Ok(Fetched::Appended);
        }
        Err(std::io::Error::other("a piece in the cache on disk cannot be read").into())
    }

    /// Deletes a piece on disk that could not be read. It is fetched again.
    #[cold]
    fn lost(&self, live: &Live, remote: &Remote, range: &Range<u64>) {
        if let (Some(cache), Some(folder)) = (&live.cache, &remote.cached) {
            cache.remove(folder, range);
        }
        live.pieces().lost(self.id, range.start);
    }
}

impl Source for RemoteObject {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.object.stamp.size
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(self.object.stamp.clone())
    }

    fn want(&self, ranges: &[Range<u64>]) {
        let Ok((live, remote)) = self.live() else { return };
        let mut pieces = live.pieces();
        pieces.want(self.id, &remote, ranges, self.len());
        live.advance(&mut pieces);
    }

    fn make_room(&self, bytes: u64) {
        // A read will tell of the failure.
        if let Ok((live, _)) = self.live() {
            live.pieces().make_room(bytes);
        }
    }

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        let need = range.end.saturating_sub(range.start);
        let here = |e: Error| e.in_file(Path::new(&*self.name));
        if range.end > self.len() {
            let have = self.len().saturating_sub(range.start);
            return Err(here(ErrorKind::Truncated { need, have }.into()));
        }
        if need == 0 {
            return Ok(Fetched::Appended);
        }
        self.part(&range, buf).map_err(here)
    }

    fn distrust(&self, range: &Range<u64>) -> bool {
        let Ok((live, remote)) = self.live() else { return false };
        // A request that ends takes this lock before the lock of the pieces, and waits here.
        let mut pieces = live.pieces();
        remote.doubts().add(range, || {
            if let (Some(cache), Some(folder)) = (&live.cache, &remote.cached) {
                cache.remove_in(folder, range);
            }
            if remote.ready.is_none() {
                self.ready.remove_in_child(range);
            }
            pieces.drop_here(self.id, range);
        })
    }

    fn forget(&self, ranges: &[Range<u64>]) {
        let Ok((live, _)) = self.live() else { return };
        let mut pieces = live.pieces();
        let unneeded = pieces.forget(self.id, ranges);
        live.end(&mut pieces, &unneeded);
    }
}

impl Drop for RemoteObject {
    fn drop(&mut self) {
        let known = self.known.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        match known {
            Some(known) if known.process == process::id() => {
                let mut pieces = known.live.pieces();
                let unneeded = pieces.remove(self.id);
                known.live.end(&mut pieces, &unneeded);
            }
            known => std::mem::forget(known),
        }
    }
}
