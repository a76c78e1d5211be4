//! Reading records in file order without an index: from plain, gzip and zlib files, standard input, or any
//! reader.

use crate::error::{At, CompressionError, Error, OptionsError, PartError, Result};
use crate::frame::{self, Event, OVERHEAD, Parser, Torn};
use crate::io::inflate::CheckpointScan;
use crate::io::sniff::{self, SNIFF_LEN};
use crate::io::{
    Ahead, CompressedFormat, Compression, Inflate, OpenedShard, ReadBuffer, ReadRange, SalvageReader,
    Sequential, Source, Storage, Store, Watched, is_corrupt,
};
use crate::part::Part;
use crate::policy::{Damage, Tail, Verify};
use crate::record::{MAX_RECORD, Record};
use crate::sound::SoundRecords;
use crate::warning::Warning;
use std::fmt;
use std::fs::File;
use std::io::{self, Chain, Cursor, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Options of a [`Stream`].
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// The compression that the file must have. Default: `None`, it is detected from the first bytes. The
    /// file name is not used.
    pub compression: Option<Compression>,
    /// The checksums to verify. Default: [`Verify::Payload`].
    pub verify: Verify,
    /// The treatment of a torn tail. Default: [`Tail::Strict`].
    pub tail: Tail,
    /// The treatment of damaged records. Default: [`Damage::Raise`].
    ///
    /// With [`Damage::Skip`] the stream returns the sound records, with the numbers that a dataset with the
    /// same option has, and all payloads are verified. At the end [`Stream::warnings`] has
    /// [`Warning::DamageSkipped`] if bytes were left out. A file without any sound record stays an error. If
    /// damage stops the inflation of a compressed file, it begins again at the next place with a sound
    /// record. A pipe cannot be read again. Of a compressed one 64 MiB are kept, so a place counts if a sound
    /// record is found within 64 MiB. Parts are read with the damage that their plan left out, and no other.
    pub damage: Damage,
    /// Maximum payload length in bytes. Default: 2^31 - 1, the longest message that protobuf parses. A longer
    /// record is the error [`ErrorKind::RecordTooLarge`](crate::ErrorKind::RecordTooLarge), returned before
    /// memory is allocated for it.
    pub max_record: u64,
    /// A function that is called with each warning, besides [`Stream::warnings`]: for streams that are read
    /// by other code. It also receives what was left out of a file that is not read to its end, when the
    /// stream is dropped. Default: `None`.
    pub on_warning: Option<fn(&Warning)>,
    /// The store of names that are URLs. Default: `None`; a URL is then an error.
    pub store: Option<Arc<dyn Store>>,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions {
            compression: None,
            verify: Verify::default(),
            tail: Tail::default(),
            damage: Damage::default(),
            max_record: MAX_RECORD,
            on_warning: None,
            store: None,
        }
    }
}

impl StreamOptions {
    /// Opens a file, or an object of the store.
    ///
    /// # Errors
    /// I/O errors; [`PathsError::NotLocal`](crate::error::PathsError::NotLocal) for the address of a store,
    /// if the options have none; [`CompressionError::Mismatch`] if the file does not have the specified
    /// compression.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Stream> {
        let path = path.as_ref();
        if let Some(source) = self.storage().open_object(path)? {
            let object = |source, at| Sequential::new(source, at..u64::MAX, Ahead::OF_FIRST);
            return self.read_object(source, object);
        }
        let file = File::open(path).map_err(|e| Error::from(e).in_file(path))?;
        let is_regular = is_regular(&file, path)?;
        self.read_opened(file, is_regular, path)
    }

    /// Reads the records of a file that was opened and not read. Errors contain `name` as the path.
    ///
    /// `progress` is called after each read, with the number of bytes that were not read before, and with 0
    /// if a signal interrupted the read. It may cancel the work.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data.tfrecord");
    /// # let mut writer = tfseek::Writer::create(&path)?;
    /// # for i in 0..100 { writer.write(&[i; 1000])?; }
    /// # writer.close()?;
    /// use std::ops::ControlFlow;
    /// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    /// use tfseek::stream::StreamOptions;
    /// let read = Arc::new(AtomicU64::new(0));
    /// let progress = {
    ///     let read = Arc::clone(&read);
    ///     move |bytes| {
    ///         read.fetch_add(bytes, Ordering::Relaxed);
    ///         ControlFlow::Continue(())
    ///     }
    /// };
    /// let mut stream = StreamOptions::default().read_file(std::fs::File::open(&path)?, &path, progress)?;
    /// while stream.next()?.is_some() {}
    /// assert_eq!(read.load(Ordering::Relaxed), std::fs::metadata(&path)?.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`open`](StreamOptions::open). If `progress` cancels a read,
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub fn read_file(
        &self,
        file: File,
        name: impl Into<PathBuf>,
        progress: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Result<Stream> {
        let name = name.into();
        let is_regular = is_regular(&file, &name)?;
        self.read_opened(Watched::new(file, progress), is_regular, &name)
    }

    /// Opens a file, or an object of the store, like [`open`](StreamOptions::open). `progress` is called as
    /// by [`read_file`](StreamOptions::read_file).
    ///
    /// # Errors
    /// Errors of [`open`](StreamOptions::open) and of [`read_file`](StreamOptions::read_file).
    pub fn open_with(
        &self,
        path: impl AsRef<Path>,
        progress: impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Result<Stream> {
        let path = path.as_ref();
        if let Some(source) = self.storage().open_object(path)? {
            let progress = Arc::new(progress);
            let end = Arc::<AtomicU64>::default();
            let object = move |source, at| {
                let object = Sequential::new(source, at..u64::MAX, Ahead::OF_FIRST);
                let progress = Arc::clone(&progress);
                Watched::from(object, at, move |bytes| progress(bytes), Arc::clone(&end))
            };
            return self.read_object(source, object);
        }
        let file = File::open(path).map_err(|e| Error::from(e).in_file(path))?;
        self.read_file(file, path, progress)
    }

    /// Reads the records of an object. `object` returns a reader of it from an offset on.
    fn read_object<S: Read + Source + 'static>(
        &self,
        source: Arc<dyn Source>,
        object: impl Fn(Arc<dyn Source>, u64) -> S + Send + 'static,
    ) -> Result<Stream> {
        let name = PathBuf::from(source.name());
        let mut stream = self.read_opened(object(Arc::clone(&source), 0), true, &name)?;
        let again = Arc::clone(&source);
        let open = Box::new(move |at| Box::new(object(Arc::clone(&again), at)) as Box<dyn Read + Send>);
        if let StreamRecords::Framed(records) = &mut stream.records {
            records.again = Some(ObjectAgain { source, open, settled: 0 });
        }
        Ok(stream)
    }

    /// Returns the files and the objects of the store. They are listed anew in each call: an object may have
    /// been replaced since an earlier one.
    fn storage(&self) -> Storage {
        self.store.clone().map_or_else(Storage::default, Storage::with_store)
    }

    fn read_opened(
        &self,
        file: impl Read + Source + 'static,
        is_regular: bool,
        name: &Path,
    ) -> Result<Stream> {
        self.check_policies()?;
        // Damage is left out of a file that can be read again: its bytes are read at offsets.
        if self.damage == Damage::Skip && is_regular {
            return self.sound(file, name).map_err(|e| e.in_file(name));
        }
        self.read(file, name)
    }

    /// Reads the records of any reader. Errors contain `name` as the path.
    ///
    /// # Errors
    /// I/O errors of the reader; [`CompressionError::Mismatch`] if the bytes do not have the specified
    /// compression.
    pub fn read(&self, reader: impl Read + Send + 'static, name: impl Into<PathBuf>) -> Result<Stream> {
        self.check_policies()?;
        let name = name.into();
        let mut reader: Box<dyn Read + Send> = Box::new(reader);
        let first = sniff::first_bytes(&mut reader).map_err(|e| Error::from(e).in_file(&name))?;
        let found = sniff::compression(&first);
        let compression = self.check(found, &first).map_err(|e| e.in_file(&name))?;
        if self.damage == Damage::Skip {
            let pipe = Box::new(Cursor::new(first.clone()).chain(reader));
            let reader = SalvageReader::piped(pipe, compression, self.max_record);
            return Ok(self.start_sound(reader, first, name, compression));
        }
        let records = self.framed(reader, first.clone(), compression);
        Ok(self.with_records(StreamRecords::Framed(Box::new(records)), first, name, compression))
    }

    /// Damage is what checksums tell of.
    fn check_policies(&self) -> Result<()> {
        if self.verify == Verify::None && self.damage == Damage::Skip {
            return Err(OptionsError::Unverified { asked: "to leave out damage" }.into());
        }
        Ok(())
    }

    /// Returns the compression of a file from that found in its first bytes.
    fn check(&self, found: Compression, first: &[u8]) -> Result<Compression> {
        match self.compression {
            // An empty file is an empty stream with every compression.
            Some(named) if named != found && !first.is_empty() => Err(mismatch(named, found, first)),
            Some(named) => Ok(named),
            None => Ok(found),
        }
    }

    /// Returns the stream of the sound records of a regular file, which can be read again.
    fn sound(&self, file: impl Source + 'static, path: &Path) -> Result<Stream> {
        let size = file.stamp()?.size;
        let first = sniff::first_bytes(ReadRange { file: &file, at: 0, end: size })?;
        let compression = self.check(sniff::compression(&first), &first)?;
        let reader = SalvageReader::kept(file, size, compression, self.max_record);
        Ok(self.start_sound(reader, first, path.into(), compression))
    }

    /// Returns a stream of sound records.
    fn start_sound(
        &self,
        reader: SalvageReader<'static>,
        first: Vec<u8>,
        name: PathBuf,
        compression: Compression,
    ) -> Stream {
        let records = SoundRecords::new(reader, &name, self.on_warning);
        self.with_records(StreamRecords::Sound(Box::new(records)), first, name, compression)
    }

    /// Opens a part of a dataset, made by [`Dataset::shares`](crate::Dataset::shares). No index is needed.
    /// The stream returns the records of the part, with their ordinals and offsets in the shard, and ends
    /// with an error unless they are as many as the part has, and end where it ends.
    ///
    /// The shard must have the bytes that were indexed, by the fingerprints of its head and tail. A copy is
    /// accepted, and so is a shard that has grown. A torn tail is treated as the dataset of the part did, or
    /// as these options tell if they tolerate it.
    ///
    /// # Errors
    /// [`IndexError::Stale`](crate::error::IndexError::Stale), if the shard was replaced; the first damage of
    /// a shard of the same size whose head or tail differs; [`CompressionError::Mismatch`], if the part does
    /// not have the specified compression; I/O errors. [`Stream::next`] also returns [`PartError::Records`]
    /// and [`PartError::End`].
    pub fn part(&self, part: &Part) -> Result<Stream> {
        part.check()?;
        let name = part.name();
        self.part_of(part, &name).map_err(|e| e.in_file(&name))
    }

    fn part_of(&self, part: &Part, name: &Path) -> Result<Stream> {
        let opened = self.storage().open_as(Path::new(&*part.shard), part.stamp())?;
        part.check_file(opened.source())?;
        let bytes = part.bytes.clone();
        let compression = part.compression;
        let mut again = None;
        let mut reader: Box<dyn Read + Send> = match opened {
            OpenedShard::File(mut file) => {
                file.seek(SeekFrom::Start(bytes.start))?;
                Box::new(file.take(bytes.end - bytes.start))
            }
            OpenedShard::Object(source) => {
                let of = Arc::clone(&source);
                let end = bytes.end;
                let open = Box::new(move |at: u64| {
                    let object = Sequential::new(Arc::clone(&of), at..end, Ahead::OF_RANGE);
                    Box::new(object.take(end - at)) as Box<dyn Read + Send>
                });
                let reader = open(bytes.start);
                again = Some(ObjectAgain { source, open, settled: 0 });
                reader
            }
        };
        let first = sniff::first_bytes(&mut reader)?;
        let found = match compression.format() {
            // A damaged record may begin like a compressed file.
            None => Compression::None,
            Some(_) => sniff::compression(&first),
        };
        for named in [self.compression, Some(compression)].into_iter().flatten() {
            if named != found {
                return Err(mismatch(named, found, &first));
            }
        }
        let mut options = self.clone();
        options.damage = Damage::Raise;
        if part.unverified {
            options.verify = Verify::None;
        }
        if part.tail == Tail::Tolerate {
            options.tail = Tail::Tolerate;
        }
        if compression == Compression::None && part.records.is_some() {
            // These bytes end after a record, whatever follows in the shard.
            options.tail = Tail::Strict;
        }
        let mut records = options.framed(reader, first.clone(), compression);
        records.parser = Parser::whole_from(options.verify, self.max_record, part.ordinal, bytes.start);
        records.begin = part.ordinal;
        records.end = Some(PartEnd { records: part.records, to: bytes.end });
        records.again = again;
        Ok(options.with_records(StreamRecords::Framed(Box::new(records)), first, name.into(), compression))
    }

    /// Returns the records of a reader after its `first` bytes.
    fn framed(
        &self,
        reader: Box<dyn Read + Send>,
        first: Vec<u8>,
        compression: Compression,
    ) -> FramedRecords {
        let source = Cursor::new(first).chain(reader);
        let source = match (self.tail, compression.format()) {
            (Tail::Tolerate, Some(format)) => {
                let scan = CheckpointScan::new(source, format, u64::MAX).tolerant(true);
                StreamInflate::Tolerant(Box::new(scan))
            }
            (Tail::Tolerate, None) | (Tail::Strict, _) => {
                StreamInflate::Strict(Inflate::new(source, compression))
            }
        };
        FramedRecords {
            source,
            buffer: ReadBuffer::default(),
            parser: Parser::whole(self.verify, self.max_record),
            more: true,
            begin: 0,
            end: None,
            compression,
            tail: self.tail,
            torn: None,
            again: None,
        }
    }

    fn with_records(
        &self,
        records: StreamRecords,
        first: Vec<u8>,
        name: PathBuf,
        compression: Compression,
    ) -> Stream {
        let options = self.clone();
        let ended = false;
        let warnings = Vec::new();
        Stream { records, first, name, options, compression, ended, warnings }
    }
}

/// Returns true for a regular file, which can be read again.
///
/// # Errors
/// A folder.
fn is_regular(file: &File, name: &Path) -> Result<bool> {
    match file.metadata() {
        Ok(found) if found.is_dir() => {
            Err(Error::from(io::Error::from(io::ErrorKind::IsADirectory)).in_file(name))
        }
        found => Ok(found.is_ok_and(|found| found.is_file())),
    }
}

#[cold]
fn mismatch(named: Compression, found: Compression, first: &[u8]) -> Error {
    let plain = "an uncompressed file";
    let found = match (found.format(), sniff::looks_like(first)) {
        (None, Some(looks)) => looks.what,
        (None, None) => plain,
        (Some(format), _) => format.name(),
    };
    let expected = named.format().map_or(plain, CompressedFormat::name);
    CompressionError::Mismatch { expected, found }.into()
}

/// A reader after its first bytes, which were read already.
type StreamSource = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// A reader of the record stream of a file.
enum StreamInflate {
    Strict(Inflate<StreamSource>),
    /// The decoder that knows the parts of a compressed file. It is slower.
    Tolerant(Box<CheckpointScan<StreamSource>>),
}

impl Read for StreamInflate {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            StreamInflate::Strict(inflate) => inflate.read(buf),
            StreamInflate::Tolerant(scan) => scan.read(buf),
        }
    }
}

/// A reader of records in file order. It has one buffer, about as large as the largest record so far, which
/// grows only as bytes arrive: a corrupt length does not allocate memory.
///
/// Records before damage are returned, then the error, once. After the error the stream has ended. With
/// [`StreamOptions::damage`] it returns the sound records after the damage too.
///
/// ```
/// use tfseek::{frame::put_record, stream::StreamOptions};
/// let mut file = Vec::new();
/// put_record(&mut file, b"one")?;
/// put_record(&mut file, b"two")?;
/// let mut stream = StreamOptions::default().read(std::io::Cursor::new(file), "memory")?;
/// let mut payloads = Vec::new();
/// while let Some(record) = stream.next()? {
///     payloads.push(record.payload().to_vec());
/// }
/// assert_eq!(payloads, [b"one", b"two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Stream {
    records: StreamRecords,
    /// First bytes of the file, to detect its format if the first record is damaged.
    first: Vec<u8>,
    name: PathBuf,
    options: StreamOptions,
    compression: Compression,
    ended: bool,
    /// Warnings of records that were left out so far.
    warnings: Vec<Warning>,
}

/// The records of a file.
enum StreamRecords {
    /// All of them. The first damaged one is an error.
    Framed(Box<FramedRecords>),
    /// The sound ones.
    Sound(Box<SoundRecords>),
}

/// All records of a file, or of a part of it.
struct FramedRecords {
    source: StreamInflate,
    buffer: ReadBuffer,
    /// Parser of the record stream, positioned at the first byte of the buffer.
    parser: Parser,
    /// True until the end of the reader.
    more: bool,
    /// Ordinal of the first record.
    begin: u64,
    /// End of the part that is read. `None` for a whole file.
    end: Option<PartEnd>,
    compression: Compression,
    tail: Tail,
    /// Bytes of the record stream after the last complete record, if the end was reached and the tail is
    /// torn.
    torn: Option<u64>,
    again: Option<ObjectAgain>,
}

/// An object whose bytes may be right when they come from its store once more.
struct ObjectAgain {
    source: Arc<dyn Source>,
    /// Returns a reader from an offset on.
    open: Box<dyn Fn(u64) -> Box<dyn Read + Send> + Send>,
    /// The record stream before this offset is as it is in the store.
    settled: u64,
}

/// The end of a part according to its plan.
struct PartEnd {
    /// Number of records, if it is known.
    records: Option<u64>,
    /// Byte offset in the file.
    to: u64,
}

impl Stream {
    /// Opens a file, compressed or not, with the default options.
    ///
    /// # Errors
    /// I/O errors; [`PathsError::NotLocal`](crate::error::PathsError::NotLocal) for the address of a store.
    pub fn open(path: impl AsRef<Path>) -> Result<Stream> {
        StreamOptions::default().open(path)
    }

    /// Returns the next record, which is valid until the next call. `None` at the end and after an error.
    ///
    /// # Errors
    /// Damage, with path, record and the offset of its header in the record stream;
    /// [`ErrorKind::NotTfRecord`](crate::ErrorKind::NotTfRecord) if the first bytes belong to another format;
    /// I/O errors of the reader.
    #[allow(clippy::should_implement_trait, reason = "the record borrows from the stream")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        if self.ended {
            return Ok(None);
        }
        if let StreamRecords::Sound(_) = self.records {
            return self.next_sound();
        }
        let Stream { records, first, name, options, compression, ended, warnings } = self;
        let StreamRecords::Framed(records) = records else { return Ok(None) };
        let at = At::new(name, records.parser.records(), records.parser.offset());
        let step = match records.step() {
            Err(e) if is_corrupt(&e) && records.begins_again(options)? => records.step(),
            step => step,
        };
        match step.and_then(|len| records.check_part(len)) {
            Ok(Some(len)) => Ok(Some(Record::new(records.buffer.consume_record(len), at))),
            Ok(None) => {
                *ended = true;
                if let Some(warning) = records.torn_tail(name) {
                    if let Some(report) = options.on_warning {
                        report(&warning);
                    }
                    warnings.push(warning);
                }
                Ok(None)
            }
            Err(e) => {
                *ended = true;
                // For a compressed file, detect the format of the decompressed bytes.
                let inflated = records.buffer.bytes();
                Err(match compression.format() {
                    None => sniff::explain(e.at(at), first),
                    Some(format) => {
                        let first = inflated.get(..SNIFF_LEN).unwrap_or(inflated);
                        sniff::explain_inflated(e.at(at), format, first)
                    }
                })
            }
        }
    }

    /// Returns the next sound record. What was left out is known at the end.
    fn next_sound(&mut self) -> Result<Option<Record<'_>>> {
        let StreamRecords::Sound(sound) = &mut self.records else { return Ok(None) };
        let error = match sound.next() {
            Ok(Some(record)) => {
                let at = At::new(&self.name, record.record, record.offset);
                return Ok(Some(Record::new(sound.payload(&record), at)));
            }
            Ok(None) => None,
            Err(e) => Some(e),
        };
        self.ended = true;
        let warning = match sound.warning(self.options.tail) {
            Ok(warning) => warning,
            Err(e) => {
                let e = sniff::explain(error.unwrap_or(e), &self.first);
                return Err(sniff::without_records(e).in_file(&self.name));
            }
        };
        self.warnings.extend(warning);
        error.map_or(Ok(None), |e| Err(e.in_file(&self.name)))
    }

    /// Returns the number of records returned so far.
    pub fn records_read(&self) -> u64 {
        match &self.records {
            StreamRecords::Framed(records) => records.records_read(),
            StreamRecords::Sound(sound) => sound.records,
        }
    }

    /// Returns the offset in the record stream of the next record, or of the damaged one.
    pub fn offset(&self) -> u64 {
        match &self.records {
            StreamRecords::Framed(records) => records.parser.offset(),
            StreamRecords::Sound(sound) => sound.end,
        }
    }

    /// Returns the path, or the name given by the caller.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Returns the compression of the file.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Returns the warnings so far: at the end of a file that was read with [`Tail::Tolerate`], a torn tail
    /// ([`Warning::TornTail`]); with [`Damage::Skip`], what was left out ([`Warning::DamageSkipped`]).
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl FramedRecords {
    /// Returns the number of records returned so far.
    fn records_read(&self) -> u64 {
        self.parser.records() - self.begin
    }

    /// Reads a complete record into the buffer, verifies it, and returns its payload length.
    fn step(&mut self) -> Result<Option<usize>> {
        loop {
            match self.parser.step(self.buffer.bytes(), self.more)? {
                Event::Record(taken) => return Ok(Some(taken - OVERHEAD)),
                Event::Need(need) => self.more = self.buffer.fill(&mut self.source, need)?,
                Event::Torn(Torn { need, have }) if self.tail == Tail::Strict => {
                    return Err(frame::truncated(need, have));
                }
                Event::Torn(Torn { have, .. }) => {
                    self.torn = Some(have);
                    return Ok(None);
                }
                // A parser of whole records does not return these.
                Event::End | Event::Consumed(_) | Event::Skip(_) => return Ok(None),
            }
        }
    }

    /// Goes back to the record that failed a checksum, whose bytes the store of an object is asked for once
    /// more: of a compressed one for all of them. Returns false if this is of no use.
    #[cold]
    fn begins_again(&mut self, options: &StreamOptions) -> Result<bool> {
        let Some(mut again) = self.again.take() else { return Ok(false) };
        let offset = self.parser.offset();
        let records = self.parser.records();
        let plain = self.compression == Compression::None;
        let have = (self.buffer.bytes().len() as u64).max(1);
        let range = if plain { offset..offset + have } else { 0..again.source.len() };
        if offset < again.settled || !again.source.distrust(&range) {
            self.again = Some(again);
            return Ok(false);
        }
        again.settled = offset + have;
        let reader = (again.open)(if plain { offset } else { 0 });
        let mut new = options.framed(reader, Vec::new(), self.compression);
        if plain {
            new.parser = Parser::whole_from(options.verify, options.max_record, records, offset);
        }
        while new.parser.records() < records
            && let Some(len) = new.step()?
        {
            new.buffer.consume_record(len);
        }
        *self = FramedRecords {
            begin: self.begin,
            end: self.end.take(),
            tail: self.tail,
            again: Some(again),
            ..new
        };
        Ok(true)
    }

    /// Checks the number of records of a part, and its end. `next` is the length of the record that was just
    /// read, if there is one.
    fn check_part(&self, next: Option<usize>) -> Result<Option<usize>> {
        let Some(end) = &self.end else { return Ok(next) };
        let found = self.records_read();
        if let Some(expected) = end.records
            && (found > expected || (next.is_none() && found < expected))
        {
            return Err(PartError::Records { expected, found, more: next.is_some() }.into());
        }
        let at = self.parser.offset() + self.torn.unwrap_or(0);
        if next.is_none() && self.compression == Compression::None && at != end.to {
            return Err(PartError::End { expected: end.to, found: at }.into());
        }
        Ok(next)
    }

    /// Returns the warning about a torn tail at the end of the file.
    #[cold]
    fn torn_tail(&self, name: &Path) -> Option<Warning> {
        let inflated = self.torn;
        // Bytes at the end of a compressed file that were left out, and those that were consumed.
        let (left, consumed) = match &self.source {
            StreamInflate::Strict(_) => (None, 0),
            StreamInflate::Tolerant(scan) => (scan.left_out(), scan.consumed()),
        };
        if inflated.is_none() && left.is_none() {
            return None;
        }
        let inflated = inflated.unwrap_or(0);
        let bytes = left.unwrap_or(0);
        let path = name.to_path_buf();
        let records = self.records_read();
        Some(match self.compression.format() {
            None => {
                let offset = self.parser.offset();
                Warning::TornTail { path, records, offset, bytes: inflated, inflated_bytes: 0 }
            }
            Some(_) => {
                let offset = consumed - bytes;
                Warning::TornTail { path, records, offset, bytes, inflated_bytes: inflated }
            }
        })
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.display();
        let compression = self.compression;
        let offset = self.offset();
        write!(f, "Stream({name}, {compression}, {} records read, at byte {offset})", self.records_read())
    }
}
