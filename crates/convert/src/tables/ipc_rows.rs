//! Arrow IPC files and streams, as inputs.
//!
//! The lengths that a file states are compared with its size before memory is allocated for them. Memory for
//! a stream grows with the bytes that arrive. The readers of `arrow-ipc` allocate what a file states, so only
//! its decoders are used.

use super::guard::guarded;
use super::ipc_lengths::MessageStart;
use crate::error::ConvertError;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, StreamDecoder};
use arrow_ipc::{Block, root_as_footer};
use arrow_schema::{Schema, SchemaRef};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// The first bytes of a file, and its last ones. A stream has neither.
const MAGIC: &[u8; 6] = b"ARROW1";
/// The first bytes of a file in the format before Arrow IPC.
const FEATHER_1: &[u8; 4] = b"FEA1";
/// The mark at the end of a stream, which writers may leave out. The legacy format's mark is the last four
/// of these bytes.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// Number of bytes of a stream that are read at once.
const CHUNK: u64 = 1 << 20;

/// The rows of a file or a stream, which the first bytes tell apart.
pub(super) enum IpcRows {
    File(FileRows),
    Stream(StreamRows),
}

/// The rows of a file, whose footer has the offsets of its batches.
pub(super) struct FileRows {
    file: File,
    schema: SchemaRef,
    decoder: FileDecoder,
    blocks: Vec<Block>,
    len: u64,
}

/// The rows of a stream.
pub(super) struct StreamRows {
    file: File,
    decoder: StreamDecoder,
    schema: SchemaRef,
    chunk: Buffer,
    first: Option<RecordBatch>,
    /// Number of bytes that are not read yet.
    left: u64,
    /// True for a stream without an end mark whose end was not reached yet.
    is_open: bool,
}

impl IpcRows {
    pub(super) fn open(path: &Path) -> Result<IpcRows, ConvertError> {
        let io = |e| ConvertError::io(path, e);
        let mut file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let start = bytes_at(&mut file, 0, len.min(END.len() as u64)).map_err(io)?;
        if start.starts_with(FEATHER_1) {
            return Err(expected(path, "Feather version 1"));
        }
        if start.len() < END.len() {
            return Err(expected(path, &format!("{len} bytes")));
        }
        if start.starts_with(MAGIC) {
            return FileRows::open(file, len, path).map(IpcRows::File);
        }
        StreamRows::open(file, len, path).map(IpcRows::Stream)
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        match self {
            IpcRows::File(rows) => &rows.schema,
            IpcRows::Stream(rows) => &rows.schema,
        }
    }

    /// Calls a function with the rows, and with the number of bytes that were read for them.
    pub(super) fn for_each(
        self,
        path: &Path,
        f: impl FnMut(&RecordBatch, u64) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        match self {
            IpcRows::File(rows) => rows.for_each(path, f),
            IpcRows::Stream(rows) => rows.for_each(path, f),
        }
    }
}

impl FileRows {
    fn open(mut file: File, len: u64, path: &Path) -> Result<FileRows, ConvertError> {
        let io = |e| ConvertError::io(path, e);
        let footer = footer(&mut file, len).map_err(io)?;
        let footer =
            footer.ok_or_else(|| expected(path, "one that is cut off: its last bytes are no footer"))?;
        let parsed = guarded(path, || {
            let footer = root_as_footer(&footer).map_err(|e| format!("a footer that is damaged: {e:?}"))?;
            let schema = footer.schema().ok_or("a footer without a schema")?;
            if !schema.endianness().equals_to_target_endianness() {
                return Err("values in another byte order".to_owned());
            }
            let schema: Schema = fb_to_schema(schema);
            let batches = footer.recordBatches().into_iter().flatten().copied().collect();
            let dictionaries = footer.dictionaries().into_iter().flatten().copied().collect();
            Ok((schema, footer.version(), batches, dictionaries))
        })?;
        let parsed: (_, _, Vec<Block>, Vec<Block>) = parsed.map_err(|found| expected(path, &found))?;
        let (schema, version, blocks, dictionaries) = parsed;
        let schema = Arc::new(schema);
        let decoder = FileDecoder::new(Arc::clone(&schema), version);
        let mut rows = FileRows { file, schema, decoder, blocks, len };
        for block in &dictionaries {
            let bytes = rows.bytes(block, path)?;
            let read = guarded(path, || rows.decoder.read_dictionary(block, &bytes))?;
            read.map_err(|e| ConvertError::arrow(path, e))?;
        }
        Ok(rows)
    }

    fn for_each(
        mut self,
        path: &Path,
        mut f: impl FnMut(&RecordBatch, u64) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        for block in std::mem::take(&mut self.blocks) {
            let bytes = self.bytes(&block, path)?;
            let batch = guarded(path, || self.decoder.read_record_batch(&block, &bytes))?;
            let batch = batch.map_err(|e| ConvertError::arrow(path, e))?;
            let batch = batch.ok_or_else(|| expected(path, "a block without rows"))?;
            f(&batch, bytes.len() as u64)?;
        }
        Ok(())
    }

    /// Reads a block, which must lie in the file.
    fn bytes(&mut self, block: &Block, path: &Path) -> Result<Buffer, ConvertError> {
        let io = |e| ConvertError::io(path, e);
        let span = || {
            let start = u64::try_from(block.offset()).ok()?;
            let body = u64::try_from(block.bodyLength()).ok()?;
            let len = u64::try_from(block.metaDataLength()).ok()?.checked_add(body)?;
            (start.checked_add(len)? <= self.len).then_some((start, len))
        };
        let (start, len) = span().ok_or_else(|| expected(path, "a block that ends after the file"))?;
        let bytes = bytes_at(&mut self.file, start, len).map_err(io)?;
        if let Ok(Some(message)) = MessageStart::parse(&bytes)
            && let Some(body) = bytes.get(message.len..)
        {
            let read = |at: u64| {
                let rest = usize::try_from(at).ok().and_then(|at| body.get(at..));
                Ok(rest.and_then(|rest| rest.first_chunk()).copied())
            };
            message.check(read).map_err(io)?.map_err(|found| expected(path, &found))?;
        }
        Ok(Buffer::from_vec(bytes))
    }
}

impl StreamRows {
    fn open(mut file: File, len: u64, path: &Path) -> Result<StreamRows, ConvertError> {
        let is_open = !check_stream(&mut file, len, path)?;
        file.seek(SeekFrom::Start(0)).map_err(|e| ConvertError::io(path, e))?;
        let mut rows = StreamRows {
            file,
            decoder: StreamDecoder::new(),
            schema: Arc::new(Schema::empty()),
            chunk: Buffer::from_vec(Vec::<u8>::new()),
            first: None,
            left: len,
            is_open,
        };
        rows.first = rows.read(path)?;
        rows.schema = rows.decoder.schema().ok_or_else(|| expected(path, "one without a schema"))?;
        Ok(rows)
    }

    fn for_each(
        mut self,
        path: &Path,
        mut f: impl FnMut(&RecordBatch, u64) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let mut left = self.left + self.chunk.len() as u64;
        let mut next = self.first.take();
        while let Some(batch) = next {
            f(&batch, left - self.left)?;
            left = self.left;
            next = self.read(path)?;
        }
        guarded(path, || self.decoder.finish())?.map_err(|e| ConvertError::arrow(path, e))
    }

    /// Returns the next rows. `None` at the end.
    fn read(&mut self, path: &Path) -> Result<Option<RecordBatch>, ConvertError> {
        loop {
            let decoder = &mut self.decoder;
            let chunk = &mut self.chunk;
            let batch = guarded(path, || decoder.decode(chunk))?;
            if let Some(batch) = batch.map_err(|e| ConvertError::arrow(path, e))? {
                return Ok(Some(batch));
            }
            if self.left == 0 {
                if !std::mem::take(&mut self.is_open) {
                    return Ok(None);
                }
                // The decoder begins no body without bytes after it, even if the body has none.
                self.chunk = Buffer::from_vec(END.to_vec());
                continue;
            }
            let len = self.left.min(CHUNK);
            let bytes = exactly(&mut self.file, len).map_err(|e| ConvertError::io(path, e))?;
            self.left -= len;
            self.chunk = Buffer::from_vec(bytes);
        }
    }
}

/// Checks the lengths that the messages of a stream state. Little of their bodies is read. Returns false for
/// a stream that ends after a message, without an end mark.
fn check_stream(file: &mut File, len: u64, path: &Path) -> Result<bool, ConvertError> {
    let io = |e| ConvertError::io(path, e);
    let mut at = 0u64;
    let mut need = END.len();
    while at < len {
        let bytes = bytes_at(file, at, (len - at).min(need as u64)).map_err(io)?;
        match MessageStart::parse(&bytes) {
            Err(more) if more as u64 <= len - at && more > need => need = more,
            Err(_) if at == 0 => return Err(expected(path, "no message of one")),
            Err(_) => return Err(expected(path, CUT)),
            Ok(None) => return Ok(true),
            Ok(Some(message)) => {
                let body = at + message.len as u64;
                let read = |offset: u64| {
                    let from = body.checked_add(offset);
                    match from.filter(|from| from.checked_add(8).is_some_and(|end| end <= len)) {
                        Some(from) => Ok(bytes_at(file, from, 8)?.first_chunk().copied()),
                        None => Ok(None),
                    }
                };
                let checked = message.check(read).map_err(io)?.map_err(|found| expected(path, &found))?;
                // The decoder refuses it.
                let Some(body_len) = checked else { return Ok(true) };
                at = body.checked_add(body_len).ok_or_else(|| expected(path, CUT))?;
                need = END.len();
            }
        }
    }
    if at > len { Err(expected(path, CUT)) } else { Ok(false) }
}

const CUT: &str = "one that is cut off: it ends inside a message";

fn expected(path: &Path, found: &str) -> ConvertError {
    ConvertError::data(path, format!("expected an Arrow IPC file or stream, found {found}"))
}

/// Returns the footer of a file. `None` if it has none.
fn footer(file: &mut File, len: u64) -> io::Result<Option<Vec<u8>>> {
    const LAST: u64 = 10;
    let Some(end) = len.checked_sub(LAST) else { return Ok(None) };
    let last = bytes_at(file, end, LAST)?;
    let Some((footer_len, magic)) = last.split_first_chunk() else { return Ok(None) };
    let footer_len = u32::from_le_bytes(*footer_len);
    match end.checked_sub(footer_len.into()) {
        Some(start) if magic == MAGIC => bytes_at(file, start, footer_len.into()).map(Some),
        _ => Ok(None),
    }
}

fn bytes_at(file: &mut File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    exactly(file, len)
}

/// Reads this number of bytes, which the file has.
fn exactly(file: &mut File, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
