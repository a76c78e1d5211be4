//! Writing records to a file or to a set of shards, with or without an index.

use crate::error::{EncodeError, Error, IndexError, OptionsError, Result};
use crate::frame::{OVERHEAD, put_record};
use crate::index::{self, IndexOptions, TableBuilder};
use crate::io::{
    CompressedFormat, Compression, Existing, NameNotSynced, Output, Process, folder, sync_folder,
};
use crate::paths::{Replacement, is_last};
use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compression as Level, GzBuilder};
use std::fmt;
#[cfg(unix)]
use std::fs::TryLockError;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Options of a [`Writer`] and a [`ShardedWriter`].
///
/// ```no_run
/// use tfseek::writer::WriterOptions;
/// let options = WriterOptions { index: Some(Default::default()), ..Default::default() };
/// let mut shards = options.create_shards("out/train", ".tfrecord", 8)?;
/// shards.write(b"payload")?;
/// shards.close()?;
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The compression of the whole file. Default: none. Records of a compressed file can only be read in
    /// order.
    pub compression: Compression,
    /// The compression level, from 0 to 9. Default: 6, as in TensorFlow. Larger values are treated as 9.
    pub level: u32,
    /// Writes a gzip file in members: a new one begins at the first record border after this number of
    /// uncompressed bytes. Default: `None`, one member. 0 is treated as 1, with which each record is a
    /// member.
    ///
    /// Every reader of gzip reads the members as one stream. A reader that knows their offsets can begin at
    /// each of them. Members of 1 MiB make a file little larger. Only for gzip: TensorFlow ignores what
    /// follows the first stream of a zlib file.
    pub members: Option<u64>,
    /// If true (the default), the file is written under a temporary name and renamed when it is closed. If
    /// false, it is written in place, as in TensorFlow.
    pub atomic: bool,
    /// If true, records are written in place after those that a file has, or the file is created. Default: false.
    ///
    /// The old records do not change, and a kill leaves them before a torn tail at worst.
    /// [`close`](Writer::close) syncs the file. The old records are found by the options of `index`, or the default
    /// ones. On Unix a file has one such writer at a time, and elsewhere the caller must see to that.
    pub append: bool,
    /// The treatment of an existing file. Default: [`Existing::Replace`]. With [`Existing::Keep`] writing is
    /// always atomic.
    pub existing: Existing,
    /// Writes an index when the file is closed: to the folder of these options, or to `.tfseek/` in the
    /// folder of the file. Default: `None`. Takes four bytes of memory per record.
    pub index: Option<IndexOptions>,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions {
            compression: Compression::None,
            level: 6,
            members: None,
            atomic: true,
            append: false,
            existing: Existing::Replace,
            index: None,
        }
    }
}

impl WriterOptions {
    /// Creates or replaces a file. Links are followed, and FIFOs and devices are written directly, by the
    /// rules of [`Output`].
    ///
    /// # Errors
    /// I/O errors; [`IndexError::NotRegular`] if an index was requested for a file that is not regular;
    /// [`OptionsError::Members`] if members were requested for a file that is not compressed with gzip. With
    /// `append` also [`OptionsError::Append`] for a compressed file, and a torn tail or other damage of the old
    /// records, as [`open_shards`](index::open_shards) finds it.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        if let Some(refused) = self.refused() {
            return Err(refused.into());
        }
        if self.append {
            return self.append(path);
        }
        let output = if self.atomic || self.existing == Existing::Keep {
            Output::open(path, self.existing)
        } else {
            Output::in_place(path)
        };
        let in_file = |e| Error::from(e).in_file(path);
        let output = output.map_err(in_file)?;
        if self.index.is_some()
            && !output.is_whole()
            && !output.file().and_then(File::metadata).map_err(in_file)?.is_file()
        {
            let found = "a device or a FIFO".into();
            return Err(Error::from(IndexError::NotRegular { found }).in_file(path));
        }
        let mut writer = Writer::of(TargetKind::File(output), self);
        writer.path = Some(path.into());
        writer.offsets = self.index.is_some().then(TableBuilder::offsets);
        Ok(writer)
    }

    /// Opens a file to write more records after those that it has, or creates it.
    fn append(&self, path: &Path) -> Result<Writer> {
        let append = |found| Error::from(OptionsError::Append { found }).in_file(path);
        if self.compression != Compression::None {
            return Err(append(self.compression.name()));
        }
        let (file, end) = self.end_of_records(path).map_err(|e| e.in_file(path))?;
        let mut writer = Writer::of(TargetKind::File(Output::direct(file)), self);
        (writer.path, writer.end) = (Some(path.into()), end);
        Ok(writer)
    }

    /// Opens and locks a file, and returns the end of its last record, which must be its own.
    fn end_of_records(&self, path: &Path) -> Result<(File, u64)> {
        // A FIFO would wait for its reader.
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(IndexError::NotRegular { found: "a folder, a device or a FIFO".into() }.into());
        }
        let file = File::options().append(true).create(true).open(path)?;
        // Elsewhere a lock keeps readers out.
        #[cfg(unix)]
        if let Err(e) = file.try_lock() {
            return Err(match e {
                TryLockError::WouldBlock => {
                    io::Error::new(io::ErrorKind::ResourceBusy, "another writer appends to it")
                }
                TryLockError::Error(e) => e,
            }
            .into());
        }
        let size = file.metadata()?.len();
        if size == 0 {
            sync_folder(folder(path))?;
            return Ok((file, 0));
        }
        let options = self.index.clone().unwrap_or_default();
        let found = index::open_shards(&[path.into()], &options)?.indexes;
        match found.first() {
            Some(index) if index.compression() != Compression::None => {
                Err(OptionsError::Append { found: index.compression().name() }.into())
            }
            Some(index) if index.indexed_end() == size && !index.has_gaps() => Ok((file, size)),
            _ => Err(IndexError::TornTail.into()),
        }
    }

    /// Creates a set of `count` shards `PREFIX-00000-of-00010SUFFIX`. By default they appear when the set is
    /// closed.
    ///
    /// `("out/train", ".tfrecord", 10)` produces Beam's names, `("out/mnist-train.tfrecord", "", 10)` the
    /// names of TensorFlow Datasets.
    ///
    /// # Errors
    /// I/O errors; [`OptionsError::NoShards`] if `count` is 0; [`OptionsError::Members`] as for
    /// [`create`](WriterOptions::create).
    pub fn create_shards(
        &self,
        prefix: impl AsRef<Path>,
        suffix: &str,
        count: usize,
    ) -> Result<ShardedWriter> {
        if count == 0 {
            return Err(OptionsError::NoShards.into());
        }
        let shard = |s: usize| {
            let mut name = prefix.as_ref().as_os_str().to_owned();
            name.push(format!("-{s:05}-of-{count:05}{suffix}"));
            self.create(PathBuf::from(name))
        };
        Ok(ShardedWriter::new((0..count).map(shard).collect::<Result<_>>()?))
    }

    /// Returns the reason why these options are invalid, if they are.
    fn refused(&self) -> Option<OptionsError> {
        let found = self.compression;
        let has_members = found.format().is_some_and(CompressedFormat::has_members);
        (self.members.is_some() && !has_members).then(|| OptionsError::Members { found: found.name() })
    }

    fn level(&self) -> Level {
        Level::new(self.level.min(9))
    }

    fn sink(&self, target: WriterTarget) -> WriterSink {
        let out = BufWriter::with_capacity(BUFFER, target);
        match self.compression {
            Compression::None => WriterSink::Plain(out),
            Compression::Gzip => WriterSink::Gzip(self.member(out)),
            Compression::Zlib => WriterSink::Zlib(ZlibEncoder::new(out, self.level())),
        }
    }

    /// Begins a gzip member, with the same header as in TensorFlow: no name, no time, operating system 3.
    fn member(&self, out: BufWriter<WriterTarget>) -> GzEncoder<BufWriter<WriterTarget>> {
        GzBuilder::new().mtime(0).operating_system(3).write(out, self.level())
    }
}

const BUFFER: usize = 256 << 10;

/// A writer of one TFRecord file. Before compression, its output is identical to the output of TensorFlow's
/// writer.
///
/// Writes are buffered until [`flush`](Writer::flush) or [`close`](Writer::close). By default the file is
/// written under a temporary name and renamed when it is closed. If the writer is dropped before that, the
/// temporary file is removed.
///
/// The file belongs to the process that created the writer. In a forked child, [`flush`](Writer::flush),
/// [`sync`](Writer::sync) and [`close`](Writer::close) return errors, [`write`](Writer::write) returns an
/// error when the buffer is full, and a drop neither writes nor removes anything.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("a.tfrecord");
/// let mut writer = tfseek::Writer::create(&path)?;
/// writer.write(b"payload")?;
/// writer.close()?;
/// assert_eq!(std::fs::read(&path)?.len(), 16 + 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer {
    /// `None` after the file was finished or a call failed.
    sink: Option<WriterSink>,
    /// The file between [`finish`](Writer::finish) and [`close`](Writer::close): its bytes are all written and
    /// synced, but it is not renamed yet.
    finished: Option<WriterTarget>,
    /// A finished file that was appended to. It is locked until its index is written.
    locked: Option<File>,
    options: WriterOptions,
    failed: bool,
    path: Option<PathBuf>,
    /// Length of the record stream in bytes.
    end: u64,
    /// Offset in the record stream of the current gzip member.
    member: u64,
    records: u64,
    /// The offsets of the records, if an index is written when the file is closed.
    offsets: Option<TableBuilder>,
    process: Process,
}

enum WriterSink {
    Plain(BufWriter<WriterTarget>),
    Gzip(GzEncoder<BufWriter<WriterTarget>>),
    Zlib(ZlibEncoder<BufWriter<WriterTarget>>),
}

/// The destination of the bytes. It accepts bytes only in the process that created it.
struct WriterTarget {
    sink: TargetKind,
    process: Process,
}

enum TargetKind {
    File(Output),
    Other(Box<dyn Write + Send>),
}

impl Writer {
    /// Creates a writer with the default [`WriterOptions`]. An existing file is replaced when the writer is
    /// closed.
    ///
    /// # Errors
    /// I/O errors.
    pub fn create(path: impl AsRef<Path>) -> Result<Writer> {
        WriterOptions::default().create(path)
    }

    /// Creates a writer to any sink. Options about files and indexes are ignored. If the options contradict
    /// each other ([`OptionsError::Members`]), nothing is written, and every call returns the error.
    pub fn new(sink: impl Write + Send + 'static, options: &WriterOptions) -> Writer {
        Writer::of(TargetKind::Other(Box::new(sink)), options)
    }

    fn of(sink: TargetKind, options: &WriterOptions) -> Writer {
        let target = WriterTarget { sink, process: Process::this() };
        Writer {
            sink: options.refused().is_none().then(|| options.sink(target)),
            finished: None,
            locked: None,
            options: options.clone(),
            failed: options.refused().is_some(),
            path: None,
            end: 0,
            member: 0,
            records: 0,
            offsets: None,
            process: Process::this(),
        }
    }

    /// Writes one record.
    ///
    /// # Errors
    /// I/O errors, after which the file is incomplete and further writes fail; [`EncodeError::Closed`];
    /// [`EncodeError::Failed`] after an earlier error; [`EncodeError::Forked`].
    pub fn write(&mut self, payload: &[u8]) -> Result<()> {
        if self.options.members.is_some_and(|bytes| self.end - self.member >= bytes.max(1)) {
            self.next_member()?;
        }
        let written = match &mut self.sink {
            Some(WriterSink::Plain(w)) => put_record(w, payload),
            Some(WriterSink::Gzip(w)) => put_record(w, payload),
            Some(WriterSink::Zlib(w)) => put_record(w, payload),
            None => return Err(self.closed()),
        };
        self.fail_on_error(written)?;
        if let Some(offsets) = &mut self.offsets {
            offsets.push(self.end);
        }
        self.end += (payload.len() + OVERHEAD) as u64;
        self.records += 1;
        Ok(())
    }

    /// Ends the gzip member and begins the next one.
    fn next_member(&mut self) -> Result<()> {
        self.check_process()?;
        match self.sink.take() {
            Some(WriterSink::Gzip(w)) => match w.finish() {
                Ok(out) => self.sink = Some(WriterSink::Gzip(self.options.member(out))),
                Err(e) => return self.fail_on_error(Err(e)),
            },
            other => self.sink = other,
        }
        self.member = self.end;
        Ok(())
    }

    /// Writes all buffered bytes to the operating system. In a compressed file this ends a block, which makes
    /// the file larger.
    ///
    /// # Errors
    /// The same as [`write`](Writer::write).
    pub fn flush(&mut self) -> Result<()> {
        self.check_process()?;
        let flushed = match &mut self.sink {
            Some(WriterSink::Plain(w)) => w.flush(),
            Some(WriterSink::Gzip(w)) => w.flush(),
            Some(WriterSink::Zlib(w)) => w.flush(),
            None => return Err(self.closed()),
        };
        self.fail_on_error(flushed)
    }

    /// Flushes like [`flush`](Writer::flush), then syncs the file to the disk.
    ///
    /// # Errors
    /// The same as [`write`](Writer::write).
    pub fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let target = match &self.sink {
            Some(WriterSink::Plain(w)) => w.get_ref(),
            Some(WriterSink::Gzip(w)) => w.get_ref().get_ref(),
            Some(WriterSink::Zlib(w)) => w.get_ref().get_ref(),
            None => return Err(self.closed()),
        };
        let synced = target.sync();
        self.fail_on_error(synced)
    }

    /// Finishes the file and renames it to its path, then writes its index if one was requested. A second
    /// call does nothing.
    ///
    /// # Errors
    /// I/O errors; [`EncodeError::Failed`] after an earlier error; [`EncodeError::Forked`]. After an error an
    /// atomic file is not created, except if the error comes from a folder that cannot be synced, or from the
    /// index: then the file is complete and has its name.
    pub fn close(&mut self) -> Result<()> {
        self.finish()?;
        match self.finished.take() {
            Some(target) => {
                let unsynced = self.commit(target)?;
                self.write_index(unsynced)
            }
            None => Ok(()),
        }
    }

    /// Writes all bytes and syncs an atomic or appended file to the disk, but does not rename it:
    /// [`close`](Writer::close) does. Further writes fail.
    ///
    /// A finished writer has no buffer. So several files can be finished one after the other, and renamed
    /// when all are complete, as a [`ShardedWriter`] does.
    ///
    /// # Errors
    /// I/O errors; [`EncodeError::Failed`] after an earlier error; [`EncodeError::Forked`]. The file is not
    /// created then.
    pub fn finish(&mut self) -> Result<()> {
        if self.failed {
            return Err(self.closed());
        }
        if self.sink.is_some() || self.finished.is_some() {
            self.check_process()?;
        }
        let Some(sink) = self.sink.take() else { return Ok(()) };
        let target = sink.finish().and_then(|target| {
            if let TargetKind::File(output) = &target.sink
                && (output.is_whole() || self.options.append)
            {
                output.sync()?;
                if self.options.append {
                    self.locked = Some(output.file()?.try_clone()?);
                }
            }
            Ok(target)
        });
        self.finished = Some(self.fail_on_error(target)?);
        Ok(())
    }

    /// Renames a finished file to its path. Returns the error of the folder's sync, after which a power
    /// failure may undo the rename.
    fn commit(&mut self, target: WriterTarget) -> Result<Option<io::Error>> {
        match target.commit() {
            Err(e) if NameNotSynced::is(&e) => Ok(Some(e)),
            result => self.fail_on_error(result).map(|()| None),
        }
    }

    /// Writes the index of a file that is renamed.
    fn write_index(&mut self, unsynced: Option<io::Error>) -> Result<()> {
        let WriterOptions { compression, index, .. } = &self.options;
        let indexed = match (self.offsets.take(), index, &self.path) {
            (Some(offsets), Some(options), Some(path)) => {
                index::sidecar_for_written(path, *compression, offsets, self.end, options).map(drop)
            }
            (None, Some(options), Some(path)) => index::build_beside(std::slice::from_ref(path), options)
                .and_then(|built| built.into_iter().try_for_each(|built| built.map(drop))),
            _ => Ok(()),
        };
        self.unlock();
        match unsynced {
            Some(e) => Err(self.locate(e.into())),
            None => indexed,
        }
    }

    /// Unlocks a finished file that was appended to. A forked child has the lock too, and keeps it otherwise.
    fn unlock(&mut self) {
        if let Some(file) = self.locked.take()
            && self.process.is_this()
        {
            // The file is synced. An error leaves the lock to the end of the processes.
            let _ = file.unlock();
        }
    }

    /// Checks that this is not a forked child. A child must not use the sink: it would write the parent's
    /// bytes again, and another thread may have been using the sink during the fork. A write does this only
    /// when the buffer is full, because a check at each record would cost more than the record.
    fn check_process(&self) -> Result<()> {
        self.process.check().map_err(|e| self.locate(e.into()))
    }

    /// Returns the number of records written so far.
    pub fn records_written(&self) -> u64 {
        self.records
    }

    /// Gives a finished file the mode of the file that it replaces.
    fn keep_mode(&self) -> Result<()> {
        match self.finished.as_ref().map(|target| &target.sink) {
            Some(TargetKind::File(output)) => output.keep_mode().map_err(|e| self.locate(e.into())),
            _ => Ok(()),
        }
    }

    /// Returns true for a finished writer that gives its file the name of an existing one.
    fn replaces(&self) -> bool {
        let is_whole = |target: &WriterTarget| match &target.sink {
            TargetKind::File(output) => output.is_whole(),
            TargetKind::Other(_) => false,
        };
        self.options.existing == Existing::Replace && self.finished.as_ref().is_some_and(is_whole)
    }

    /// Returns the error of a call without a sink.
    fn closed(&self) -> Error {
        match self.options.refused() {
            Some(refused) => refused.into(),
            None => self.locate(if self.failed { EncodeError::Failed } else { EncodeError::Closed }.into()),
        }
    }

    /// Drops the sink after an error: the last record may be incomplete, so no other record must follow it.
    fn fail_on_error<T>(&mut self, written: io::Result<T>) -> Result<T> {
        written.map_err(|e| {
            self.drop_sink();
            self.failed = true;
            self.locate(e.into())
        })
    }

    /// Drops the sink. A forked child leaks it instead, because compressors and buffers write when they are
    /// dropped.
    fn drop_sink(&mut self) {
        if self.sink.is_some() && !self.process.is_this() {
            std::mem::forget((self.sink.take(), self.offsets.take()));
        }
        self.sink = None;
    }

    #[cold]
    fn locate(&self, e: Error) -> Error {
        match &self.path {
            Some(path) => e.in_file(path),
            None => e,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.drop_sink();
        self.unlock();
    }
}

impl WriterSink {
    fn finish(self) -> io::Result<WriterTarget> {
        let out = match self {
            WriterSink::Plain(w) => w,
            WriterSink::Gzip(w) => w.finish()?,
            WriterSink::Zlib(w) => w.finish()?,
        };
        out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl WriterTarget {
    fn sync(&self) -> io::Result<()> {
        match &self.sink {
            TargetKind::File(output) => output.sync(),
            TargetKind::Other(_) => self.process.check(),
        }
    }

    fn commit(self) -> io::Result<()> {
        self.process.check()?;
        match self.sink {
            TargetKind::File(output) => output.commit(),
            TargetKind::Other(mut sink) => sink.flush(),
        }
    }
}

impl Write for WriterTarget {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.process.check()?;
        match &mut self.sink {
            TargetKind::File(w) => w.write(buf),
            TargetKind::Other(w) => w.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.process.check()?;
        match &mut self.sink {
            TargetKind::File(w) => w.flush(),
            TargetKind::Other(w) => w.flush(),
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({:?}, {} records, {} bytes)", self.path, self.records, self.end)
    }
}

/// A writer of a set of shards. Records are distributed round-robin: the first goes to shard 0, the second to
/// shard 1. Created by [`WriterOptions::create_shards`], or from the writers of its shards.
///
/// The last shard of a set gets its name last. If a set is replaced, its last shard loses its name first, and
/// old shards are in the hidden folder `.tfseek-replaced` next to it until the new set is complete. So a kill
/// leaves the old set, the new set, or one that does not open
/// ([`PathsError::Interrupted`](crate::error::PathsError::Interrupted)) and whose old shards can be moved
/// back. Files that are written in place are not part of this.
#[derive(Debug)]
pub struct ShardedWriter {
    shards: Vec<Writer>,
    next: usize,
}

impl ShardedWriter {
    /// Creates a set of these writers, which may be [finished](Writer::finish). They are renamed in this
    /// order, except that the last shards of sets and files that are no shards follow the others.
    pub fn new(shards: Vec<Writer>) -> ShardedWriter {
        ShardedWriter { shards, next: 0 }
    }

    /// Writes one record to the next shard.
    ///
    /// # Errors
    /// The same as [`Writer::write`].
    pub fn write(&mut self, payload: &[u8]) -> Result<()> {
        let shard = self.next;
        self.next = (shard + 1) % self.shards.len().max(1);
        match self.shards.get_mut(shard) {
            Some(writer) => writer.write(payload),
            None => Err(OptionsError::NoShards.into()),
        }
    }

    /// Finishes all shards, then renames all, then writes all indexes, so a full disk leaves no shard of an
    /// atomic set. A second call does nothing. If the set has several shards, their folders stay locked until
    /// the result is dropped, so the names belong to these files. Other sets in these folders wait for that.
    ///
    /// # Errors
    /// The error of the first shard that fails, like [`Writer::close`]. If a rename fails, the shards before
    /// it are renamed already, and a set that is replaced does not open. If an index fails, or an old shard
    /// cannot be removed, all shards are renamed.
    pub fn close(&mut self) -> Result<Replacement> {
        self.shards.iter_mut().try_for_each(Writer::finish)?;
        let mut writers: Vec<&mut Writer> =
            self.shards.iter_mut().filter(|shard| shard.finished.is_some()).collect();
        let replacing = writers.iter().filter(|writer| writer.replaces());
        let replacing: Vec<PathBuf> = replacing.filter_map(|writer| writer.path.clone()).collect();
        // A single file is replaced by its rename.
        let is_set = writers.len() > 1;
        let outputs = writers.iter().filter_map(|writer| writer.path.as_deref());
        let mut replacement = Replacement::lock(outputs.filter(|_| is_set));
        if is_set {
            writers.iter().try_for_each(|writer| writer.keep_mode())?;
            replacement.set_aside(&replacing)?;
        }
        // The sort is stable.
        writers.sort_by_key(|writer| writer.path.as_deref().is_none_or(is_last));
        let mut committed = Vec::with_capacity(writers.len());
        for writer in writers {
            if let Some(target) = writer.finished.take() {
                committed.push((writer.commit(target)?, writer));
            }
        }
        let is_durable = committed.iter().all(|(unsynced, _)| unsynced.is_none());
        let indexed: Vec<Result<()>> =
            committed.into_iter().map(|(unsynced, writer)| writer.write_index(unsynced)).collect();
        let ended = if is_durable { replacement.end(&replacing) } else { Ok(()) };
        indexed.into_iter().chain([ended]).collect::<Result<()>>().map(|()| replacement)
    }

    /// Returns the number of records written so far to all shards.
    pub fn records_written(&self) -> u64 {
        self.shards.iter().map(Writer::records_written).sum()
    }
}
