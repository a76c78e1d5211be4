//! Records out: one file, or a set of shards; an index on the way.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::string_slice))]

use crate::error::{EncodeError, Error, IndexError, OptionsError, Result};
use crate::frame::{OVERHEAD, put_record};
use crate::index::{self, IndexOptions, TableBuilder};
use crate::io::{Compression, NameNotSynced, Output, Process};
use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compression as Level, GzBuilder};
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Options of writing files.
///
/// ```no_run
/// use tfseek::writer::WriterOptions;
/// let mut shards = WriterOptions::new().index(true).create_shards("out/train", ".tfrecord", 8)?;
/// shards.write(b"payload")?;
/// shards.close()?;
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WriterOptions {
    compression: Compression,
    level: u32,
    atomic: bool,
    index: Option<IndexOptions>,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions { compression: Compression::None, level: 6, atomic: true, index: None }
    }
}

impl WriterOptions {
    /// The defaults: uncompressed, atomic, without an index.
    pub fn new() -> WriterOptions {
        WriterOptions::default()
    }

    /// Compresses the whole file. Its records can then be read in order only.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> WriterOptions {
        self.compression = compression;
        self
    }

    /// How hard to compress, from 0 to 9; 6 by default, as TensorFlow.
    #[must_use]
    pub fn level(mut self, level: u32) -> WriterOptions {
        self.level = level.min(9);
        self
    }

    /// Whether the file appears under its name only when it is closed (the default), or is written in place, as TensorFlow does.
    #[must_use]
    pub fn atomic(mut self, atomic: bool) -> WriterOptions {
        self.atomic = atomic;
        self
    }

    /// Whether an index is written as the file is closed, to `.tfseek/` beside it. Costs four bytes of memory a record.
    #[must_use]
    pub fn index(mut self, index: bool) -> WriterOptions {
        self.index = index.then(IndexOptions::new);
        self
    }

    /// The same, to this folder.
    #[must_use]
    pub fn index_dir(mut self, dir: impl Into<PathBuf>) -> WriterOptions {
        self.index = Some(IndexOptions::new().index_dir(dir));
        self
    }

    /// Creates a file, or replaces one. Links are followed, and a FIFO or a device is written into: [`Output`] has the rules.
    ///
    /// # Errors
    /// Those of the system; an index of what is no regular file.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Writer> {
        let path = path.as_ref();
        let output = match self.atomic {
            true => Output::create(path),
            false => Output::in_place(path),
        };
        let here = |e| Error::from(e).in_file(path);
        let output = output.map_err(here)?;
        if self.index.is_some()
            && !output.is_whole()
            && !output.file().and_then(File::metadata).map_err(here)?.is_file()
        {
            let found = "a device or a FIFO".into();
            return Err(Error::from(IndexError::NotRegular { found }).in_file(path));
        }
        let target = Target { sink: TargetSink::File(output), process: Process::this() };
        let index = self.index.clone().map(|options| Noted {
            path: path.into(),
            offsets: TableBuilder::offsets(),
            options,
        });
        Ok(Writer {
            sink: Some(self.sink(target)),
            failed: false,
            path: Some(path.into()),
            end: 0,
            records: 0,
            index,
            process: Process::this(),
        })
    }

    /// Creates a set of `count` shards `PREFIX-00000-of-00010SUFFIX`, all of which appear when the set is closed.
    ///
    /// `("out/train", ".tfrecord", 10)` gives Beam's form; `("out/mnist-train.tfrecord", "", 10)` that of TensorFlow
    /// Datasets.
    ///
    /// # Errors
    /// Those of the system; a set of no shards.
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
        Ok(ShardedWriter { shards: (0..count).map(shard).collect::<Result<_>>()?, next: 0 })
    }

    fn sink(&self, target: Target) -> Sink {
        let out = BufWriter::with_capacity(BUFFER, target);
        let level = Level::new(self.level);
        match self.compression {
            Compression::None => Sink::Plain(out),
            // The header that TensorFlow writes: no name, no time, operating system 3.
            Compression::Gzip => Sink::Gzip(GzBuilder::new().mtime(0).operating_system(3).write(out, level)),
            Compression::Zlib => Sink::Zlib(ZlibEncoder::new(out, level)),
        }
    }
}

const BUFFER: usize = 256 << 10;

/// Writes records; byte for byte what TensorFlow's writer writes of the same payloads (before compression).
///
/// Buffered: nothing need be in the file before [`flush`](Writer::flush) or [`close`](Writer::close). By default the file
/// is written under a temporary name and gets its own when it is closed; dropped before, it leaves nothing behind.
///
/// The file belongs to the process that created the writer. In a forked child nothing reaches it: [`flush`](Writer::flush),
/// [`sync`](Writer::sync) and [`close`](Writer::close) are errors, [`write`](Writer::write) is one when the buffer is full, and a
/// drop neither writes nor removes anything.
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
    /// `None` once closed, or given up.
    sink: Option<Sink>,
    failed: bool,
    path: Option<PathBuf>,
    /// Bytes of the record stream.
    end: u64,
    records: u64,
    index: Option<Noted>,
    process: Process,
}

/// A file whose bytes are all there, and its name is not.
struct Finished {
    target: Target,
    compression: Compression,
}

/// A file that has its name, and no index yet.
struct Named {
    compression: Compression,
    /// The name may be lost in a power failure.
    unsynced: Option<io::Error>,
}

/// What is noted for the index.
struct Noted {
    path: PathBuf,
    offsets: TableBuilder,
    options: IndexOptions,
}

enum Sink {
    Plain(BufWriter<Target>),
    Gzip(GzEncoder<BufWriter<Target>>),
    Zlib(ZlibEncoder<BufWriter<Target>>),
}

/// The bytes' destination. It takes them in the process that it was made in, and in no other.
struct Target {
    sink: TargetSink,
    process: Process,
}

enum TargetSink {
    File(Output),
    Other(Box<dyn Write + Send>),
}

impl Writer {
    /// Creates a file, or replaces one when it is closed. [`WriterOptions`] has more to say.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create(path: impl AsRef<Path>) -> Result<Writer> {
        WriterOptions::new().create(path)
    }

    /// Writes into any sink. `options` about files do not matter here.
    pub fn new(sink: impl Write + Send + 'static, options: &WriterOptions) -> Writer {
        let target = Target { sink: TargetSink::Other(Box::new(sink)), process: Process::this() };
        let sink = options.sink(target);
        let process = Process::this();
        Writer { sink: Some(sink), failed: false, path: None, end: 0, records: 0, index: None, process }
    }

    /// Writes one record.
    ///
    /// # Errors
    /// [`EncodeError::Closed`]; those of the sink, after which the file is not to be trusted.
    pub fn write(&mut self, payload: &[u8]) -> Result<()> {
        let written = match &mut self.sink {
            Some(Sink::Plain(w)) => put_record(w, payload),
            Some(Sink::Gzip(w)) => put_record(w, payload),
            Some(Sink::Zlib(w)) => put_record(w, payload),
            None => return Err(self.closed()),
        };
        self.done(written)?;
        if let Some(noted) = &mut self.index {
            noted.offsets.push(self.end);
        }
        self.end += (payload.len() + OVERHEAD) as u64;
        self.records += 1;
        Ok(())
    }

    /// Hands everything written so far to the operating system. In a compressed file that ends a block: it costs room.
    ///
    /// # Errors
    /// As [`write`](Writer::write).
    pub fn flush(&mut self) -> Result<()> {
        self.check_process()?;
        let flushed = match &mut self.sink {
            Some(Sink::Plain(w)) => w.flush(),
            Some(Sink::Gzip(w)) => w.flush(),
            Some(Sink::Zlib(w)) => w.flush(),
            None => return Err(self.closed()),
        };
        self.done(flushed)
    }

    /// As [`flush`](Writer::flush), and waits until it is on the disk.
    ///
    /// # Errors
    /// As [`write`](Writer::write).
    pub fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let target = match &self.sink {
            Some(Sink::Plain(w)) => w.get_ref(),
            Some(Sink::Gzip(w)) => w.get_ref().get_ref(),
            Some(Sink::Zlib(w)) => w.get_ref().get_ref(),
            None => return Err(self.closed()),
        };
        let synced = target.sync();
        self.done(synced)
    }

    /// Ends the file and gives it its name, then writes its index if one was asked for. Closing again does nothing.
    ///
    /// # Errors
    /// Those of the sink; [`EncodeError::Failed`] after an earlier one; [`EncodeError::Forked`]. An atomic file that could not be
    /// ended is gone. It is there, whole and under its name, where the error is one of its index, or is
    /// [`NameNotSynced`].
    pub fn close(&mut self) -> Result<()> {
        match self.finish()? {
            Some(finished) => {
                let named = self.name(finished)?;
                self.index(named)
            }
            None => Ok(()),
        }
    }

    /// Brings every byte to the disk; the file has no name yet. `None` if it was closed before.
    fn finish(&mut self) -> Result<Option<Finished>> {
        if self.failed {
            return Err(self.placed(EncodeError::Failed.into()));
        }
        if self.sink.is_some() {
            self.check_process()?;
        }
        let Some(sink) = self.sink.take() else { return Ok(None) };
        let compression = sink.compression();
        let target = sink.finish().and_then(|target| {
            if let TargetSink::File(output) = &target.sink
                && output.is_whole()
            {
                output.sync()?;
            }
            Ok(target)
        });
        match target {
            Ok(target) => Ok(Some(Finished { target, compression })),
            Err(e) => self.done(Err(e)).map(|()| None),
        }
    }

    fn name(&mut self, Finished { target, compression }: Finished) -> Result<Named> {
        let unsynced = match target.commit() {
            Err(e) if NameNotSynced::is(&e) => Some(e),
            committed => {
                self.done(committed)?;
                None
            }
        };
        Ok(Named { compression, unsynced })
    }

    fn index(&mut self, Named { compression, unsynced }: Named) -> Result<()> {
        let indexed = match self.index.take() {
            Some(Noted { path, offsets, options }) => {
                index::sidecar_for_written(&path, compression, offsets, self.end, &options).map(drop)
            }
            None => Ok(()),
        };
        match unsynced {
            Some(e) => Err(self.placed(e.into())),
            None => indexed,
        }
    }

    /// A forked child must not touch the sink: it would write the parent's bytes again, and another thread may have been at work
    /// on it when the process was forked.
    fn check_process(&self) -> Result<()> {
        self.process.check().map_err(|e| self.placed(e.into()))
    }

    /// Records written so far.
    pub fn records_written(&self) -> u64 {
        self.records
    }

    fn closed(&self) -> Error {
        self.placed(if self.failed { EncodeError::Failed } else { EncodeError::Closed }.into())
    }

    /// After an error a record may be there in part, and nothing must follow it: the file is given up.
    fn done(&mut self, written: io::Result<()>) -> Result<()> {
        written.map_err(|e| {
            self.give_up();
            self.failed = true;
            self.placed(e.into())
        })
    }

    /// Drops the sink. A forked child forgets it: compressors and buffers write on a drop.
    fn give_up(&mut self) {
        if self.sink.is_some() && !self.process.is_this() {
            std::mem::forget((self.sink.take(), self.index.take()));
        }
        self.sink = None;
    }

    #[cold]
    fn placed(&self, e: Error) -> Error {
        match &self.path {
            Some(path) => e.in_file(path),
            None => e,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl Sink {
    fn compression(&self) -> Compression {
        match self {
            Sink::Plain(_) => Compression::None,
            Sink::Gzip(_) => Compression::Gzip,
            Sink::Zlib(_) => Compression::Zlib,
        }
    }

    fn finish(self) -> io::Result<Target> {
        let out = match self {
            Sink::Plain(w) => w,
            Sink::Gzip(w) => w.finish()?,
            Sink::Zlib(w) => w.finish()?,
        };
        out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl Target {
    fn sync(&self) -> io::Result<()> {
        match &self.sink {
            TargetSink::File(output) => output.sync(),
            TargetSink::Other(_) => self.process.check(),
        }
    }

    fn commit(self) -> io::Result<()> {
        self.process.check()?;
        match self.sink {
            TargetSink::File(output) => output.commit(),
            TargetSink::Other(mut sink) => sink.flush(),
        }
    }
}

impl Write for Target {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.process.check()?;
        match &mut self.sink {
            TargetSink::File(w) => w.write(buf),
            TargetSink::Other(w) => w.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.process.check()?;
        match &mut self.sink {
            TargetSink::File(w) => w.flush(),
            TargetSink::Other(w) => w.flush(),
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({:?}, {} records, {} bytes)", self.path, self.records, self.end)
    }
}

/// Writes a set of shards. Records go round: the first to shard 0, the next to shard 1. See
/// [`WriterOptions::create_shards`].
#[derive(Debug)]
pub struct ShardedWriter {
    shards: Vec<Writer>,
    next: usize,
}

impl ShardedWriter {
    /// Writes one record into the shard whose turn it is.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn write(&mut self, payload: &[u8]) -> Result<()> {
        let shard = self.next;
        self.next = (shard + 1) % self.shards.len().max(1);
        match self.shards.get_mut(shard) {
            Some(writer) => writer.write(payload),
            None => Err(OptionsError::NoShards.into()),
        }
    }

    /// Ends all shards, then gives them their names, then writes their indexes: a disk that is full leaves none of an atomic set.
    /// Closing again does nothing.
    ///
    /// # Errors
    /// The first shard's that fails. If that is a rename, the shards before it have their names already; if it is an index, all
    /// have.
    pub fn close(&mut self) -> Result<()> {
        let finished = self.shards.iter_mut().map(Writer::finish).collect::<Result<Vec<_>>>()?;
        let mut named = Vec::with_capacity(finished.len());
        for (shard, finished) in self.shards.iter_mut().zip(finished) {
            if let Some(finished) = finished {
                named.push((shard.name(finished)?, shard));
            }
        }
        let indexed: Vec<Result<()>> = named.into_iter().map(|(named, shard)| shard.index(named)).collect();
        indexed.into_iter().collect()
    }

    /// Records written so far.
    pub fn records_written(&self) -> u64 {
        self.shards.iter().map(Writer::records_written).sum()
    }
}
