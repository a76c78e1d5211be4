//! The cache on disk: a file for each piece, which all processes of a machine share.
//!
//! ```text
//! FOLDER/objects/<hash of key and version>/<from>-<to>          the bytes, and their CRC32C
//!                                          <from>-<to>.lease    a process is fetching it
//!                                          <from>-<to>.<p>.tmp  a process is writing it
//! ```
//!
//! `FOLDER/blocks` has the pieces of versions whose keys had less than what selects an object. They are not
//! read, but count, and go first.
//!
//! A piece is written by rename, so it is whole or not there. No other name is read or deleted. Errors of the
//! disk are not errors of a read: the piece is then fetched. Processes share the cache by files alone: there
//! is no daemon, and no lock that a killed process could hold.
//!
//! A piece has what was requested. A grid of the object would fetch two pieces for each block, or a MiB for
//! each small record. So another block size finds nothing.

use crate::copies::{CopyMemory, PieceCopy, SMALL};
use crate::wanted::WantedBytes;
use std::collections::{HashMap, VecDeque};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};
use tfseek::crc;
use tfseek::io::{Source, Stamp, check_own_folder};

/// The folder of pieces.
const OBJECTS: &str = "objects";

/// Bytes of the checksum after the bytes of a piece. A damaged piece is found before a record is parsed, also
/// with [`Verify::Header`](tfseek::Verify::Header). The price is a second pass over the bytes, once a
/// process.
const TRAILER: u64 = 4;
/// The longest wait for another process, and the time between two looks.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// The age at which the time of a piece that is read is set again, for the order of deletion.
const TOUCH: Duration = Duration::from_secs(60);
/// The age at which a file of a process that was killed is deleted.
const ABANDONED: Duration = Duration::from_secs(3600);
/// The time after an error in which nothing is written.
const PAUSE: Duration = Duration::from_secs(10);

/// The most pieces that a process keeps open, and at most a fourth of its descriptors. Those beyond are read
/// into memory.
const OPEN: usize = if cfg!(target_os = "linux") { 320 } else { 64 };
/// The most pieces whose checks are remembered.
const CHECKS: usize = 1 << 20;

/// A folder with pieces of objects.
#[derive(Debug)]
pub(crate) struct DiskCache {
    /// The folder of the user.
    folder: PathBuf,
    /// Maximum number of bytes of all pieces.
    limit: u64,
    used: Mutex<Used>,
    /// The pieces whose checksum was right, by the hash of their path, and when they were modified.
    checked: Mutex<HashMap<u128, SystemTime>>,
    /// Memory for copies. The open pieces own it.
    copies: Mutex<Weak<CopyMemory>>,
}

/// Number of pieces that this process has open.
static OPENED: AtomicUsize = AtomicUsize::new(0);

/// Returns true if this process may open one more piece.
fn may_open() -> bool {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    let limit = LIMIT.get_or_init(|| {
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_else(|_| String::new());
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let files = files.and_then(|files| files.split_whitespace().next()?.parse::<usize>().ok());
        files.map_or(OPEN, |files| OPEN.min(files / 4))
    });
    OPENED.load(Relaxed) < *limit
}

/// An open piece, whose checksum was right when this process first read it. Bytes of it are read when they
/// are needed. Pieces in memory made the second epoch half as fast as one over files, and a map would end the
/// process if the file became shorter.
#[derive(Clone, Debug)]
pub(crate) struct DiskPiece(Arc<OpenPiece>);

/// All that the read of a record needs is here, because it is seldom in the cache of the processor.
#[derive(Debug)]
struct OpenPiece {
    file: File,
    /// The bytes of the object that it has.
    range: Range<u64>,
    wanted: WantedBytes,
    copy: PieceCopy,
}

impl Drop for OpenPiece {
    fn drop(&mut self) {
        OPENED.fetch_sub(1, Relaxed);
    }
}

impl DiskPiece {
    /// The bytes of the object that the piece has.
    pub(crate) fn range(&self) -> &Range<u64> {
        &self.0.range
    }

    /// The wanted bytes of the piece, since it is open.
    pub(crate) fn wanted(&self) -> &WantedBytes {
        &self.0.wanted
    }

    /// Appends the bytes of the piece in a range of the object to `buf`, which has room for them.
    ///
    /// # Errors
    /// Errors of the disk. The piece may have become shorter. `buf` may then have other bytes at its end.
    pub(crate) fn append(&self, range: &Range<u64>, buf: &mut Vec<u8>) -> io::Result<()> {
        let OpenPiece { file, range: here, wanted, copy } = &*self.0;
        let at = |at: u64| (at - here.start) as usize;
        let part = at(range.start.max(here.start))..at(range.end.min(here.end));
        let whole = here.end - here.start;
        let before = buf.len();
        let len = range.end - range.start;
        // Most bytes of the piece, and more than a few records.
        let is_worth_it = || wanted.get() >= (whole / 2).max(len * 4);
        if len <= SMALL
            && let Some(bytes) = copy.get(is_worth_it, whole, |bytes| read_all(file, bytes, 0))
            && let Some(bytes) = bytes.get(part.clone())
        {
            buf.extend_from_slice(bytes);
            return Ok(());
        }
        buf.resize(before + part.len(), 0);
        let (_, to) = buf.split_at_mut(before);
        read_all(file, to, part.start as u64)
    }
}

/// Fills `buf` with the bytes of a file at `offset`.
fn read_all(file: &File, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match file.read_at(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                (_, buf) = buf.split_at_mut(n);
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The bytes of a piece that was found.
#[derive(Debug)]
pub(crate) enum CachedPiece {
    Open(DiskPiece),
    Read(Vec<u8>),
}

/// Number of temporary files of this process so far.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The known bytes of all files.
#[derive(Debug, Default)]
struct Used {
    /// Their bytes at the last look, and those that this process has added since. `None` before the first
    /// look.
    bytes: Option<(u64, u64)>,
    /// Nothing is written until then.
    paused: Option<Instant>,
}

/// The right to fetch a piece. Others wait for it, for a while.
#[derive(Debug)]
pub(crate) struct Lease(PathBuf);

impl Drop for Lease {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = fs::remove_file(&self.0);
    }
}

/// A file of the cache.
struct CachedFile {
    path: PathBuf,
    used: SystemTime,
    bytes: u64,
}

/// Returns the name of the folder of the object with this key. `None` if a replaced object would have the
/// same.
pub(crate) fn folder_name(key: &str, stamp: &Stamp) -> Option<String> {
    let version = match (&stamp.version, stamp.modified_ns) {
        (Some(version), _) => version.to_string(),
        (None, Some(time)) => time.to_string(),
        (None, None) => return None,
    };
    let text = format!("{key}\n{}\n{version}", stamp.size);
    Some(format!("{:032x}", xxhash_rust::xxh3::xxh3_128(text.as_bytes())))
}

/// Checks that no other user can write to the folder of a cache.
///
/// # Errors
/// A text that names the folder.
pub(crate) fn check_folder(folder: PathBuf) -> Result<PathBuf, String> {
    for folder in [folder.clone(), folder.join(OBJECTS)] {
        check_own_folder(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    Ok(folder)
}

impl DiskCache {
    pub(crate) fn new(folder: PathBuf, limit: u64) -> DiskCache {
        DiskCache {
            folder,
            limit,
            used: Mutex::default(),
            checked: Mutex::default(),
            copies: Mutex::default(),
        }
    }

    fn path(&self, object: &str, range: &Range<u64>) -> PathBuf {
        self.folder.join(OBJECTS).join(object).join(format!("{}-{}", range.start, range.end))
    }

    /// Returns a piece. A damaged file is deleted.
    pub(crate) fn find(&self, object: &str, range: &Range<u64>) -> Option<CachedPiece> {
        let path = self.path(object, range);
        let len = range.end.checked_sub(range.start)?;
        let mut file = open_piece(&path)?;
        let found = file.metadata().ok()?;
        let bytes = (found.len() == len.checked_add(TRAILER)?).then(|| read_piece(&mut file, len)).flatten();
        let Some(bytes) = bytes else {
            let _ = fs::remove_file(&path);
            return None;
        };
        touch(&file, found.modified());
        self.note_checked(&path, &file);
        Some(if may_open() { CachedPiece::Open(self.opened(file, range)) } else { CachedPiece::Read(bytes) })
    }

    /// Returns a piece that this process has written or checked, and that was not changed since. `None` also
    /// if too many are open.
    pub(crate) fn find_checked(&self, object: &str, range: &Range<u64>) -> Option<DiskPiece> {
        if !may_open() {
            return None;
        }
        let path = self.path(object, range);
        let since = *self.checked().get(&hash_of(&path))?;
        let file = open_piece(&path)?;
        let found = file.metadata().ok()?;
        let len = range.end.checked_sub(range.start)?;
        let modified = found.modified().ok()?;
        if found.len() != len.checked_add(TRAILER)? || modified != since {
            return None;
        }
        if touch(&file, Ok(modified)) {
            self.note_checked(&path, &file);
        }
        Some(self.opened(file, range))
    }

    fn opened(&self, file: File, range: &Range<u64>) -> DiskPiece {
        OPENED.fetch_add(1, Relaxed);
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = copies.upgrade().unwrap_or_default();
        *copies = Arc::downgrade(&memory);
        let copy = PieceCopy::new(memory);
        DiskPiece(Arc::new(OpenPiece { file, range: range.clone(), wanted: WantedBytes::default(), copy }))
    }

    fn checked(&self) -> MutexGuard<'_, HashMap<u128, SystemTime>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the checksum of a piece was right.
    fn note_checked(&self, path: &Path, file: &File) {
        let Ok(modified) = file.metadata().and_then(|found| found.modified()) else { return };
        let mut checked = self.checked();
        if checked.len() >= CHECKS {
            checked.clear();
        }
        checked.insert(hash_of(path), modified);
    }

    /// Deletes a piece that could not be read. If it stays, it is checked again.
    pub(crate) fn remove(&self, object: &str, range: &Range<u64>) {
        let path = self.path(object, range);
        self.checked().remove(&hash_of(&path));
        let _ = fs::remove_file(&path);
    }

    /// Deletes the pieces of an object that have bytes of a range.
    pub(crate) fn remove_in(&self, object: &str, range: &Range<u64>) {
        for file in entries(&self.folder.join(OBJECTS).join(object)) {
            let name = file.file_name();
            let Some((piece, Kind::Piece)) = name.to_str().and_then(kind_of) else { continue };
            if piece.start < range.end && range.start < piece.end {
                self.remove(object, &piece);
            }
        }
    }

    /// Returns true if there is a file of a piece.
    #[cfg(test)]
    fn has(&self, object: &str, range: &Range<u64>) -> bool {
        self.path(object, range).exists()
    }

    /// Takes the lease of a piece. `None` if another process has it. Without a file for it, because the
    /// folder is read-only or full, all processes have it.
    pub(crate) fn lease(&self, object: &str, range: &Range<u64>) -> Option<Lease> {
        let path = self.path(object, range).with_extension("lease");
        let create = || File::options().write(true).create_new(true).open(&path);
        let created = create().or_else(|e| {
            if e.kind() == io::ErrorKind::NotFound {
                path.parent().map_or(Ok(()), create_folder)?;
                return create();
            }
            Err(e)
        });
        match created {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let age = fs::metadata(&path).and_then(|found| found.modified()).ok()?.elapsed();
                // Its process was killed, or is slow.
                (!age.is_ok_and(|age| age < LEASE)).then(|| Lease(path))
            }
            _ => Some(Lease(path)),
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a piece, and deletes those that were not used for the longest time if there are too many bytes.
    pub(crate) fn write(&self, object: &str, range: &Range<u64>, bytes: &[u8]) {
        let len = bytes.len() as u64 + TRAILER;
        if len > self.limit || !self.make_room(len) {
            return;
        }
        let path = self.path(object, range);
        let number = WRITTEN.fetch_add(1, Relaxed);
        let temporary = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
        let write = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                create_folder(folder)?;
            }
            let mut file = File::options().write(true).create_new(true).open(&temporary)?;
            file.write_all(bytes)?;
            file.write_all(&crc::crc32c(bytes).to_le_bytes())?;
            fs::rename(&temporary, &path)?;
            self.note_checked(&path, &file);
            Ok(())
        };
        let written = write();
        let mut used = self.used();
        match (written, &mut used.bytes) {
            (Ok(()), Some((_, added))) => *added += len,
            (Ok(()), None) => {}
            (Err(_), _) => {
                let _ = fs::remove_file(&temporary);
                (used.bytes, used.paused) = (None, Some(Instant::now()));
            }
        }
    }

    /// Deletes pieces until `len` more bytes have room. Returns false while nothing is written.
    ///
    /// Other processes add pieces too, so the folder is looked at again after a part of the limit.
    fn make_room(&self, len: u64) -> bool {
        let mut used = self.used();
        if used.paused.is_some_and(|since| since.elapsed() < PAUSE) {
            return false;
        }
        used.paused = None;
        let fits =
            |(found, added): (u64, u64)| added + len <= self.limit / 16 && found + added + len <= self.limit;
        if used.bytes.is_some_and(fits) {
            return true;
        }
        let mut files = self.files();
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        if bytes + len > self.limit {
            let least = (self.limit - len).saturating_sub(self.limit / 16);
            files.make_contiguous().sort_by_key(|file| file.used);
            while bytes > least
                && let Some(file) = files.pop_front()
            {
                if fs::remove_file(&file.path).is_ok()
                    && let Some(folder) = file.path.parent()
                {
                    // It stays if it has other files.
                    let _ = fs::remove_dir(folder);
                }
                bytes -= file.bytes;
            }
        }
        used.bytes = Some((bytes, 0));
        true
    }

    /// Returns all pieces. Deletes the files of processes that were killed.
    fn files(&self) -> VecDeque<CachedFile> {
        let mut found = VecDeque::new();
        for_each_file(&self.folder, |path, kind| {
            let Ok(file) = fs::metadata(&path) else { return };
            let Ok(used) = file.modified() else { return };
            match kind {
                Kind::Piece => found.push_back(CachedFile { path, used, bytes: file.len() }),
                Kind::Temporary => {
                    if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                        let _ = fs::remove_file(&path);
                    }
                }
            }
        });
        found
    }
}

/// Returns the number of pieces in a cache, and their bytes.
pub(crate) fn content(folder: &Path) -> (u64, u64) {
    let mut pieces = 0u64;
    let mut bytes = 0u64;
    for_each_file(folder, |path, kind| {
        if let (Kind::Piece, Ok(file)) = (kind, fs::metadata(path)) {
            pieces += 1;
            bytes += file.len();
        }
    });
    (pieces, bytes)
}

/// Creates a folder, and those that it is in. Only the user can write to them, whatever the umask.
fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.recursive(true).create(path)
}

/// Opens the file of a piece. A link, or what is no regular file, is no piece: opening a FIFO would wait for
/// its writer.
fn open_piece(path: &Path) -> Option<File> {
    fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    File::open(path).ok()
}

fn hash_of(path: &Path) -> u128 {
    xxhash_rust::xxh3::xxh3_128(path.as_os_str().as_encoded_bytes())
}

/// Sets the time of a piece, for the order of deletion, if it is old. Returns true if it was set.
fn touch(file: &File, modified: io::Result<SystemTime>) -> bool {
    let is_old = |used: SystemTime| used.elapsed().is_ok_and(|age| age > TOUCH);
    modified.is_ok_and(is_old) && file.set_modified(SystemTime::now()).is_ok()
}

/// Reads the bytes of a piece of `len` bytes, if its checksum is right.
fn read_piece(file: &mut File, len: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(len.checked_add(TRAILER)?).ok()?).ok()?;
    file.read_to_end(&mut bytes).ok()?;
    let checksum = bytes.split_off(usize::try_from(len).ok().filter(|len| *len <= bytes.len())?);
    (checksum == crc::crc32c(&bytes).to_le_bytes()).then_some(bytes)
}

/// A file whose name is of the form of this cache.
enum Kind {
    Piece,
    /// A lease, or a file that is being written.
    Temporary,
}

/// Returns the range in the name of a file, and what the file is.
fn kind_of(name: &str) -> Option<(Range<u64>, Kind)> {
    let (range, rest) = name.split_once('.').map_or((name, None), |(range, rest)| (range, Some(rest)));
    let (from, to) = range.split_once('-')?;
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| number.to_string() == text);
    let range = Some(number(from)?..number(to)?).filter(|range| range.start < range.end)?;
    let kind = match rest {
        None => Kind::Piece,
        Some("lease") => Kind::Temporary,
        Some(rest) => {
            let (process, count) = rest.strip_suffix(".tmp")?.split_once('-')?;
            number(process).zip(number(count)).map(|_| Kind::Temporary)?
        }
    };
    Some((range, kind))
}

/// Returns what is in a folder. Nothing if it cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Calls `f` with each file of the cache, and its kind.
fn for_each_file(folder: &Path, mut f: impl FnMut(PathBuf, Kind)) {
    for object in entries(&folder.join(OBJECTS)) {
        let name = object.file_name();
        let is_hash = |name: &str| name.len() == 32 && name.bytes().all(|c| c.is_ascii_hexdigit());
        if !name.to_str().is_some_and(is_hash) || !object.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        for file in entries(&object.path()) {
            let kind = file.file_name().to_str().and_then(kind_of);
            if let (Some((_, kind)), Ok(true)) = (kind, file.file_type().map(|kind| kind.is_file())) {
                f(file.path(), kind);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek_testkit::formats;

    const OBJECT: &str = "0123456789abcdef0123456789abcdef";

    fn bytes(range: &Range<u64>) -> Vec<u8> {
        range.clone().map(|at| at as u8).collect()
    }

    fn read(cache: &DiskCache, range: &Range<u64>) -> Option<Vec<u8>> {
        Some(match cache.find(OBJECT, range)? {
            CachedPiece::Read(bytes) => bytes,
            CachedPiece::Open(piece) => {
                let mut bytes = Vec::new();
                piece.append(range, &mut bytes).unwrap();
                bytes
            }
        })
    }

    #[test]
    fn pieces_are_whole_or_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(dir.path().into(), 1 << 20);
        let range = 5..1005;
        assert_eq!(read(&cache, &range), None);
        cache.write(OBJECT, &range, &bytes(&range));
        assert!(cache.has(OBJECT, &range));
        let path = cache.path(OBJECT, &range);
        let whole = fs::read(&path).unwrap();
        // Every truncation, flips, and more bytes: the file goes.
        for len in (0..whole.len()).chain([whole.len() + 1]) {
            let mut other = whole.clone();
            other.resize(len, 0);
            fs::write(&path, &other).unwrap();
            assert_eq!(read(&cache, &range), None, "{len}");
            assert!(!path.exists());
        }
        for bit in 0..whole.len() * 8 {
            let mut other = whole.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &other).unwrap();
            assert_eq!(read(&cache, &range), None, "{bit}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(read(&cache, &range), Some(bytes(&range)));
        assert_eq!((read(&cache, &(5..1004)), read(&cache, &(4..1005))), (None, None));
        assert_eq!(content(dir.path()), (1, 1004));
    }

    /// The name of an object's folder is a part of the format. `TFSEEK_WRITE_FORMATS=1` writes the piece.
    #[test]
    fn pieces_of_all_versions_are_found() {
        let mut stamp = Stamp::new(9_000);
        stamp.modified_ns = Some(1_700_000_000_123_456_700);
        let object = folder_name("s3://bucket/train.tfrecord", &stamp).unwrap();
        let range = 5..405;
        let piece = |cache: &DiskCache| cache.path(&object, &range);
        let folder_of = |dir: &Path| DiskCache::new(dir.join("cache"), 1 << 20);
        let dir = tempfile::tempdir().unwrap();
        let cache = folder_of(dir.path());
        cache.write(&object, &range, &bytes(&range));
        let name = piece(&folder_of(Path::new(""))).display().to_string();
        formats::compare(&name, &fs::read(piece(&cache)).unwrap());
        for version in formats::versions(&name) {
            let dir = tempfile::tempdir().unwrap();
            let cache = folder_of(dir.path());
            fs::create_dir_all(piece(&cache).parent().unwrap()).unwrap();
            fs::copy(version.join(&name), piece(&cache)).unwrap();
            let mut found = Vec::new();
            match cache.find(&object, &range) {
                Some(CachedPiece::Read(read)) => found = read,
                Some(CachedPiece::Open(piece)) => piece.append(&range, &mut found).unwrap(),
                None => panic!("{}", version.display()),
            }
            assert_eq!(found, bytes(&range));
        }
    }

    /// A FIFO would wait for a writer, and a link could name any file.
    #[test]
    #[cfg(unix)]
    fn what_is_no_regular_file_is_no_piece() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(dir.path().into(), 1 << 20);
        let range = 5..1005;
        let path = cache.path(OBJECT, &range);
        let other = dir.path().join("other");
        cache.write(OBJECT, &range, &bytes(&range));
        fs::rename(&path, &other).unwrap();
        let whole = fs::read(&other).unwrap();
        let fifo = |path: &Path| {
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        };
        let make: [&dyn Fn(&Path); 3] =
            [&fifo, &|path| std::os::unix::fs::symlink(&other, path).unwrap(), &|path| {
                std::os::unix::fs::symlink("/dev/zero", path).unwrap()
            }];
        for make in make {
            make(&path);
            assert_eq!(read(&cache, &range), None);
            assert!(cache.find_checked(OBJECT, &range).is_none());
            let lease = path.with_extension("lease");
            fifo(&lease);
            assert!(cache.lease(OBJECT, &range).is_none());
            fs::remove_file(lease).unwrap();
            // The piece takes its place.
            cache.write(OBJECT, &range, &bytes(&range));
            assert_eq!(read(&cache, &range), Some(bytes(&range)));
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read(&other).unwrap(), whole);
    }

    #[test]
    #[cfg(unix)]
    fn folders_that_others_can_write_to_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(dir.path().join("new"), 1 << 20);
        cache.write(OBJECT, &(0..5), &bytes(&(0..5)));
        let folder = dir.path().join("new");
        let blocks = dir.path().join("new").join(OBJECTS);
        assert_eq!(check_folder(folder.clone()).as_ref(), Ok(&folder));
        for changed in [&blocks, &folder] {
            fs::set_permissions(changed, PermissionsExt::from_mode(0o777)).unwrap();
            let e = check_folder(folder.clone()).unwrap_err();
            assert!(e.starts_with(&format!("{}: others may write", changed.display())), "{e}");
            fs::set_permissions(changed, PermissionsExt::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn a_piece_is_checked_once() {
        let dir = tempfile::tempdir().unwrap();
        let [cache, other] = [0, 1].map(|_| DiskCache::new(dir.path().into(), 1 << 20));
        let range = 5..1005;
        assert!(cache.find_checked(OBJECT, &range).is_none());
        cache.write(OBJECT, &range, &bytes(&range));
        assert!(cache.find_checked(OBJECT, &range).is_some() && other.find_checked(OBJECT, &range).is_none());
        assert!(other.find(OBJECT, &range).is_some() && other.find_checked(OBJECT, &range).is_some());
        let path = cache.path(OBJECT, &range);
        let mut part = vec![1];
        let piece = cache.find_checked(OBJECT, &range).unwrap();
        piece.append(&(15..25), &mut part).unwrap();
        assert_eq!(part, [&[1][..], &bytes(&(15..25))].concat());
        // A range that has bytes of other pieces too.
        for (range, here) in
            [(0..8, 5..8), (1000..2000, 1000..1005), (0..9999, 5..1005), (0..5, 0..0), (1005..1010, 0..0)]
        {
            let mut part = Vec::new();
            piece.append(&range, &mut part).unwrap();
            assert_eq!(part, bytes(&here), "{range:?}");
        }
        // It becomes shorter while it is open, is changed later, and could not be read.
        fs::write(&path, b"x").unwrap();
        assert!(piece.append(&(15..25), &mut part).is_err());
        let mut changed = bytes(&range);
        changed.extend([0; 4]);
        fs::write(&path, &changed).unwrap();
        assert!(cache.find_checked(OBJECT, &range).is_none() && cache.find(OBJECT, &range).is_none());
        cache.write(OBJECT, &range, &bytes(&range));
        assert!(cache.find_checked(OBJECT, &range).is_some());
        cache.remove(OBJECT, &range);
        assert!(cache.find_checked(OBJECT, &range).is_none() && !cache.has(OBJECT, &range));
    }

    /// A copy has the bytes that the file had at its first small record.
    #[test]
    fn small_records_of_wanted_pieces_are_those_of_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(dir.path().into(), 1 << 20);
        let range = 5..100_005;
        cache.write(OBJECT, &range, &bytes(&range));
        let [wanted, other] = [0, 1].map(|_| cache.find_checked(OBJECT, &range).unwrap());
        let small: Vec<_> = (5..99_000).step_by(777).map(|start| start..start + start % SMALL).collect();
        wanted.wanted().add(50_000);
        other.wanted().add(49_999);
        for zeros in [false, true] {
            if zeros {
                fs::write(cache.path(OBJECT, &range), [0; 100_004]).unwrap();
            }
            for range in small.iter().chain([&(9..9 + SMALL), &(99_000..100_020), &(9..10 + SMALL)]) {
                let read = |piece: &DiskPiece| {
                    let mut buf = vec![1];
                    piece.append(range, &mut buf).unwrap();
                    buf
                };
                let same = [&[1][..], &bytes(&(range.start..range.end.min(100_005)))].concat();
                let zero = [&[1][..], &vec![0; same.len() - 1]].concat();
                let is_long = range.end - range.start > SMALL;
                assert_eq!(read(&wanted), *if zeros && is_long { &zero } else { &same }, "{range:?}");
                assert_eq!(read(&other), *if zeros { &zero } else { &same }, "{range:?}");
            }
        }
        // Memory for copies goes with the last piece.
        assert!(cache.copies.lock().unwrap().upgrade().is_some());
        drop((wanted, other));
        assert!(cache.copies.lock().unwrap().upgrade().is_none());
    }

    #[test]
    fn pieces_beyond_the_number_of_open_ones_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(dir.path().into(), 1 << 20);
        let range = 0..9;
        cache.write(OBJECT, &range, &bytes(&range));
        let found = (0..OPEN + 50).map(|_| cache.find(OBJECT, &range).unwrap()).collect::<Vec<_>>();
        assert!(found.iter().any(|piece| matches!(piece, CachedPiece::Read(read) if *read == bytes(&range))));
        drop(found);
        assert!(matches!(cache.find(OBJECT, &range), Some(CachedPiece::Open(_))));
    }

    #[test]
    fn the_oldest_pieces_go_and_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(dir.path().into(), 10_040);
        let others = ["0-5.part", "5-0", "x-y", "05-7", "0-5.1.tmp", "notes.txt", "0-5.1-x.tmp"];
        let folder = dir.path().join(OBJECTS).join(OBJECT);
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(dir.path().join("objects/other")).unwrap();
        for name in others {
            fs::write(folder.join(name), [7; 20_000]).unwrap();
        }
        fs::write(dir.path().join("objects/other/0-5"), [7; 20_000]).unwrap();
        fs::write(folder.join("0-9.77-1.tmp"), b"").unwrap();
        let old = SystemTime::now() - Duration::from_secs(7200);
        File::options().write(true).open(folder.join("0-9.77-1.tmp")).unwrap().set_modified(old).unwrap();
        for k in 0..30u64 {
            let range = k * 1000..(k + 1) * 1000;
            cache.write(OBJECT, &range, &bytes(&range));
            // Two that are used stay.
            for used in [0, 1] {
                let path = cache.path(OBJECT, &(used * 1000..(used + 1) * 1000));
                let later = SystemTime::now() + Duration::from_secs(100);
                if let Ok(file) = File::options().write(true).open(path) {
                    file.set_modified(later).unwrap();
                }
            }
            let (pieces, bytes) = content(dir.path());
            assert!(bytes <= 10_040 && (k < 10 || pieces >= 8), "{pieces} {bytes}");
            assert!(cache.has(OBJECT, &range));
        }
        assert!(cache.has(OBJECT, &(0..1000)) && cache.has(OBJECT, &(1000..2000)));
        assert!(!cache.has(OBJECT, &(2000..3000)));
        assert!(others.iter().all(|name| folder.join(name).exists()));
        assert!(dir.path().join("objects/other/0-5").exists() && !folder.join("0-9.77-1.tmp").exists());
        // A piece above the limit is not written, and deletes nothing.
        let before = content(dir.path());
        cache.write(OBJECT, &(0..20_000), &bytes(&(0..20_000)));
        assert_eq!(content(dir.path()), before);
    }

    #[test]
    fn pieces_with_bytes_of_a_range_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(dir.path().into(), 1 << 20);
        let ranges = [0..10, 5..15, 10..20, 20..30];
        ranges.iter().for_each(|range| cache.write(OBJECT, range, &bytes(range)));
        cache.remove_in(OBJECT, &(14..20));
        assert_eq!(ranges.map(|range| cache.has(OBJECT, &range)), [true, false, false, true]);
    }

    #[test]
    fn a_lease_is_that_of_one_process_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let caches = [0, 1].map(|_| DiskCache::new(dir.path().into(), 1 << 20));
        let lease = caches[0].lease(OBJECT, &(0..5));
        assert!(lease.is_some());
        assert!((0..3).all(|_| caches[1].lease(OBJECT, &(0..5)).is_none()));
        assert!(caches[1].lease(OBJECT, &(0..6)).is_some());
        drop(lease);
        let lease = caches[1].lease(OBJECT, &(0..5)).unwrap();
        let old = SystemTime::now() - LEASE;
        File::options().write(true).open(&lease.0).unwrap().set_modified(old).unwrap();
        assert!(caches[0].lease(OBJECT, &(0..5)).is_some());
    }

    #[test]
    fn errors_of_the_disk_are_not_those_of_reads() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        let cache = DiskCache::new(file, 1 << 20);
        assert!(cache.lease(OBJECT, &(0..5)).is_some());
        cache.write(OBJECT, &(0..5), &bytes(&(0..5)));
        assert_eq!(read(&cache, &(0..5)), None);
        // Nothing is tried again for a while.
        assert!(!cache.make_room(5));
    }

    #[test]
    fn versions_have_folders_of_their_own() {
        let stamp = |modified_ns, version: Option<&str>| {
            let mut stamp = Stamp::new(9);
            (stamp.modified_ns, stamp.version) = (modified_ns, version.map(Into::into));
            folder_name("s3://a/b", &stamp)
        };
        assert_eq!(stamp(None, None), None);
        let names =
            [stamp(Some(1), None), stamp(Some(2), None), stamp(Some(1), Some("x")), stamp(None, Some("y"))];
        assert!(names.iter().flatten().all(|name| name.len() == 32));
        assert!(names.iter().enumerate().all(|(k, name)| !names[..k].contains(name)));
        assert_eq!(stamp(Some(1), Some("x")), stamp(Some(2), Some("x")));
    }
}
