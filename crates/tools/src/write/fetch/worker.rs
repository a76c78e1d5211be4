//! The pieces of a thread's files: some are here, the next ones are announced, and each is written when it
//! arrives.

use super::journal::{Earlier, HIDDEN, Journal};
use super::wanted::WantedFile;
use crate::forms::digest;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tfseek::crc::crc32c;
use tfseek::io::{Fetched, HiddenFolder, Object, Region, Source, Store};
use tfseek::{Error, ErrorKind, Result};

/// Bytes of a piece. Only the last piece of an object is shorter.
pub(super) const PIECE: u64 = 8 << 20;

/// Bytes that all threads announce together before they need them.
const AHEAD: u64 = 128 << 20;

/// Number of files that a thread announces pieces of.
const FILES_AHEAD: usize = 16;

/// The state of a fetch that its threads share.
pub(super) struct FetchRun {
    pub(super) folder: PathBuf,
    /// The folder of the files that are not complete.
    pub(super) hidden: HiddenFolder,
    pub(super) store: Arc<dyn Store>,
    pub(super) journal: Journal,
    /// The files that no thread has taken yet.
    pub(super) todo: Mutex<VecDeque<FileJob>>,
    /// Number of threads that have work.
    pub(super) active: AtomicUsize,
    pub(super) cancelled: AtomicBool,
    /// Bytes and pieces that were requested in this run, and bytes that were here before.
    pub(super) fetched: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) found: AtomicU64,
    pub(super) advance: Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>,
}

impl FetchRun {
    /// Returns an error once the fetch was cancelled, or has failed in another thread.
    pub(super) fn check(&self) -> Result<()> {
        if self.cancelled.load(Relaxed) { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
    }

    /// Opens a file in the hidden folder, which is made if there is none.
    pub(super) fn created(&self, name: &str) -> Result<File> {
        let file = self.hidden.file(name, true).and_then(|file| file.ok_or(io::ErrorKind::NotFound.into()));
        file.map_err(|e| self.in_hidden(e, name))
    }

    /// Returns the error of a file in the hidden folder.
    pub(super) fn in_hidden(&self, e: io::Error, name: &str) -> Error {
        Error::from(e).in_file(&self.folder.join(HIDDEN).join(name))
    }
}

/// Returns the name in the hidden folder of the file of an object. It is one name, whatever folders the
/// object is in, of any length.
pub(super) fn hidden(name: &str, kind: &str) -> String {
    format!("{}.{kind}", digest::hex(&Sha256::digest(name)))
}

/// A file that is being fetched.
pub(super) struct FileJob {
    /// Its number in the journal.
    pub(super) index: usize,
    pub(super) wanted: WantedFile,
    /// The version that is fetched.
    pub(super) object: Object,
    pub(super) earlier: Earlier,
    source: Option<Arc<dyn Source>>,
    part: Option<File>,
    /// The next piece to read, and the next to announce.
    next: u64,
    cursor: u64,
    announced: BTreeSet<u64>,
    /// The next piece to fetch before the pieces of earlier runs are read. `None` if no earlier run wrote
    /// one.
    fill: Option<u64>,
    /// The pieces that were fetched so and are not read yet.
    filled: BTreeSet<u64>,
}

impl FileJob {
    pub(super) fn new(index: usize, wanted: WantedFile, earlier: Earlier) -> FileJob {
        let object = wanted.object.clone();
        let fill = (!earlier.pieces.is_empty()).then_some(0);
        let announced = BTreeSet::new();
        let filled = BTreeSet::new();
        let source = None;
        let part = None;
        let next = 0;
        let cursor = 0;
        FileJob { index, wanted, object, earlier, source, part, next, cursor, announced, fill, filled }
    }

    /// Returns the bytes of a piece. `None` after the last one.
    fn range(&self, piece: u64) -> Option<Range<u64>> {
        let size = self.object.stamp.size;
        let start = piece.checked_mul(PIECE).filter(|start| *start < size)?;
        Some(start..start + PIECE.min(size - start))
    }

    /// Returns the number of bytes that will be read and are not here, as far as it is known.
    pub(super) fn bytes_left(&self) -> u64 {
        let pieces = self.earlier.pieces.keys().filter_map(|piece| self.range(*piece));
        let here = pieces.map(|range| range.end - range.start).sum();
        // Earlier runs may have fetched more than the estimate.
        self.wanted.bytes().saturating_sub(here)
    }

    /// Returns the first missing piece from a piece on.
    fn next_missing(&self, from: u64) -> Option<(u64, Range<u64>)> {
        // Up to the estimated end of the wanted records. The pieces after it are fetched when they are
        // needed.
        let end = self.wanted.bytes().div_ceil(PIECE);
        let piece = (from..end).find(|piece| !self.earlier.pieces.contains_key(piece))?;
        Some((piece, self.range(piece)?))
    }

    /// Returns the next piece to announce.
    fn next_to_announce(&mut self) -> Option<(u64, Range<u64>)> {
        let found = self.next_missing(self.cursor);
        // Without one there is none after it either.
        self.cursor = found.as_ref().map_or(u64::MAX, |(piece, _)| piece + 1);
        found
    }

    /// Returns the next missing piece of a file that an earlier run began.
    ///
    /// The missing pieces come first. A run that is killed early has then fetched some, however many there
    /// are to check.
    fn next_to_fill(&mut self) -> Option<(u64, Range<u64>)> {
        let found = self.next_missing(self.fill?);
        self.fill = found.as_ref().map(|(piece, _)| piece + 1);
        self.filled.extend(found.as_ref().map(|(piece, _)| piece));
        found
    }

    fn source(&mut self, run: &FetchRun) -> Result<&Arc<dyn Source>> {
        let opened = match self.source.take() {
            Some(source) => source,
            None => run.store.open(&self.object)?,
        };
        Ok(self.source.insert(opened))
    }

    /// Returns the file of the pieces. It is made if there is none.
    fn part(&mut self, run: &FetchRun) -> Result<&mut File> {
        let opened = match self.part.take() {
            Some(part) => part,
            None => {
                let name = hidden(&self.wanted.name, "part");
                run.created(&name)?
            }
        };
        Ok(self.part.insert(opened))
    }

    /// Reads a piece that an earlier run wrote. `None` if its bytes are others. Earlier pieces are read
    /// again, because records are checked in order. A state of the check in the journal would save this, and
    /// trust the disk.
    fn kept(&mut self, run: &FetchRun, piece: u64, range: &Range<u64>) -> Result<Option<Region>> {
        let Some(&crc) = self.earlier.pieces.get(&piece) else { return Ok(None) };
        let name = hidden(&self.wanted.name, "part");
        let part = self.part(run)?;
        let mut bytes = Vec::new();
        let read = part.seek(SeekFrom::Start(range.start));
        let len = range.end - range.start;
        let read = read.and_then(|_| part.take(len).read_to_end(&mut bytes));
        read.map_err(|e| run.in_hidden(e, &name))?;
        if bytes.len() as u64 == len && crc32c(&bytes) == crc {
            return Ok(Some(bytes.into()));
        }
        self.earlier.pieces.remove(&piece);
        Ok(None)
    }

    /// Fetches a piece and writes it.
    fn fetch(&mut self, run: &FetchRun, piece: u64, range: &Range<u64>) -> Result<Region> {
        let mut bytes = Vec::new();
        let region = match self.source(run)?.fetch(range.clone(), &mut bytes)? {
            Fetched::Shared(region) => region,
            Fetched::Appended => bytes.into(),
        };
        run.check()?;
        let len = <[u8]>::len(&region) as u64;
        let expected = range.end - range.start;
        if len != expected {
            let text = format!("expected {expected} bytes of the store, found {len}");
            return Err(io::Error::other(text).into());
        }
        let name = hidden(&self.wanted.name, "part");
        let part = self.part(run)?;
        let written = part.seek(SeekFrom::Start(range.start)).and_then(|_| part.write_all(&region));
        written.map_err(|e| run.in_hidden(e, &name))?;
        let crc = crc32c(&region);
        run.journal.piece(self.index, piece, crc)?;
        self.earlier.pieces.insert(piece, crc);
        run.fetched.fetch_add(len, Relaxed);
        run.requests.fetch_add(1, Relaxed);
        Ok(region)
    }

    /// Drops the pieces of these bytes that were read: they are fetched once more.
    pub(super) fn drop_pieces(&mut self, from: u64) {
        let first = from / PIECE;
        let read = self.next;
        self.earlier.pieces.retain(|piece, _| *piece < first || *piece >= read);
        self.cursor = self.cursor.min(first);
        if let Some(source) = &self.source {
            source.distrust(&(first * PIECE..source.len()));
        }
    }

    /// Begins the file again with another version of the object.
    ///
    /// # Errors
    /// I/O errors of the journal.
    pub(super) fn begin_again(&mut self, run: &FetchRun, object: Object) -> Result<()> {
        run.journal.again(self.index, &object.stamp)?;
        self.earlier.begin_again(object.stamp.clone());
        self.object = object;
        (self.source, self.next, self.cursor, self.fill) = (None, 0, 0, None);
        self.filled.clear();
        if let Some(part) = &self.part {
            part.set_len(0).map_err(|e| run.in_hidden(e, &hidden(&self.wanted.name, "part")))?;
        }
        Ok(())
    }

    /// Returns the file of all pieces, cut to the size of the object.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn complete(&mut self, run: &FetchRun) -> Result<&File> {
        let size = self.object.stamp.size;
        let name = hidden(&self.wanted.name, "part");
        let part = self.part(run)?;
        part.set_len(size).map_err(|e| run.in_hidden(e, &name))?;
        Ok(part)
    }
}

/// The files of one thread. The first is being read.
pub(super) struct Worker {
    pub(super) run: Arc<FetchRun>,
    queue: VecDeque<FileJob>,
    /// Bytes that were announced and not read.
    ahead: u64,
    /// Why the reader of the first file has no more bytes.
    pub(super) failed: Option<Error>,
}

impl Worker {
    pub(super) fn new(run: Arc<FetchRun>) -> Worker {
        Worker { run, queue: VecDeque::new(), ahead: 0, failed: None }
    }

    /// Returns the file to read. `None` if there are no more.
    pub(super) fn current(&mut self) -> Option<&mut FileJob> {
        if self.queue.is_empty() {
            self.claim();
        }
        self.queue.front_mut()
    }

    /// Begins to read the first file from its start: pieces that are here are read from the disk. Returns it,
    /// and the state of the fetch.
    pub(super) fn begin(&mut self) -> Option<(WantedFile, Arc<FetchRun>)> {
        let run = self.run.clone();
        let job = self.current()?;
        job.next = 0;
        Some((job.wanted.clone(), run))
    }

    /// Takes a file that no thread has.
    fn claim(&mut self) -> bool {
        let job = self.run.todo.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let found = job.is_some();
        self.queue.extend(job);
        found
    }

    /// Takes back what was announced of the first file and not read.
    pub(super) fn forget(&mut self) {
        let Some(job) = self.queue.front_mut() else { return };
        let announced = std::mem::take(&mut job.announced);
        let ranges: Vec<_> = announced.iter().filter_map(|piece| job.range(*piece)).collect();
        self.ahead -= ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        if let Some(source) = &job.source {
            source.forget(&ranges);
        }
        job.cursor = job.next;
    }

    /// Ends the first file.
    pub(super) fn pop(&mut self) {
        self.forget();
        self.queue.pop_front();
    }

    /// Announces the next pieces of the first file, and of the files after it.
    fn announce(&mut self) -> Result<()> {
        let threads = self.run.active.load(Relaxed).max(1) as u64;
        let run = self.run.clone();
        let mut at = 0;
        while self.ahead < AHEAD / threads {
            if at == self.queue.len() && (at >= FILES_AHEAD || !self.claim()) {
                break;
            }
            let Some(job) = self.queue.get_mut(at) else { break };
            let Some((piece, range)) = job.next_to_announce() else {
                at += 1;
                continue;
            };
            job.source(&run)?.want(std::slice::from_ref(&range));
            job.announced.insert(piece);
            self.ahead += range.end - range.start;
        }
        Ok(())
    }

    /// Returns the next piece of the first file. `None` at its end.
    fn next_piece(&mut self) -> Result<Option<Region>> {
        let run = self.run.clone();
        loop {
            run.check()?;
            self.announce()?;
            let Some(job) = self.queue.front_mut() else { return Ok(None) };
            let Some((piece, range)) = job.next_to_fill() else { break };
            job.fetch(&run, piece, &range)?;
            self.arrived(piece, &range)?;
        }
        let Some(job) = self.queue.front_mut() else { return Ok(None) };
        let piece = job.next;
        let Some(range) = job.range(piece) else { return Ok(None) };
        let filled = job.filled.remove(&piece);
        let (region, fetched) = match job.kept(&run, piece, &range)? {
            Some(region) => (region, false),
            None => (job.fetch(&run, piece, &range)?, true),
        };
        job.next = piece + 1;
        if filled && !fetched {
            return Ok(Some(region));
        }
        if !fetched {
            run.found.fetch_add(range.end - range.start, Relaxed);
        }
        self.arrived(piece, &range)?;
        Ok(Some(region))
    }

    /// Counts a piece of the first file that is here now.
    fn arrived(&mut self, piece: u64, range: &Range<u64>) -> Result<()> {
        let len = range.end - range.start;
        if self.queue.front_mut().is_some_and(|job| job.announced.remove(&piece)) {
            self.ahead -= len;
        }
        if (self.run.advance)(len).is_break() { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
    }
}

/// A thread's files, for the reader of the first one.
#[derive(Clone)]
pub(super) struct SharedWorker(Arc<Mutex<Worker>>);

impl SharedWorker {
    pub(super) fn new(worker: Worker) -> SharedWorker {
        SharedWorker(Arc::new(Mutex::new(worker)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Worker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a reader of the first file.
    pub(super) fn reader(&self) -> PieceReader {
        PieceReader { worker: self.clone(), piece: Region::from(Vec::new()), at: 0 }
    }
}

/// The bytes of a file, in order. Each piece is fetched and written before its bytes are returned.
pub(super) struct PieceReader {
    worker: SharedWorker,
    piece: Region,
    at: usize,
}

impl Read for PieceReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.at >= <[u8]>::len(&self.piece) {
            let mut worker = self.worker.lock();
            match worker.next_piece() {
                Ok(Some(piece)) => (self.piece, self.at) = (piece, 0),
                Ok(None) => return Ok(0),
                Err(e) => {
                    worker.failed = Some(e);
                    return Err(io::Error::other("a piece was not fetched"));
                }
            }
        }
        let Some(mut rest) = self.piece.get(self.at..) else { return Ok(0) };
        let n = rest.read(buf)?;
        self.at += n;
        Ok(n)
    }
}
