//! Arrow IPC: files and streams.

use crate::error::ConvertError;
use crate::guard::guarded;
use crate::table::Table;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use tfseek::io::Output;

/// The first bytes of a file, and with it the last ones. A stream has neither.
const MAGIC: &[u8; 6] = b"ARROW1";
/// Unit of the padding after the first bytes. A stream follows it.
const START: usize = 8;
/// Largest length of the first bytes with their padding.
const MAX_START: u64 = 64;
/// The first bytes of a file in the format before Arrow IPC.
const FEATHER_1: &[u8; 4] = b"FEA1";
/// The end of a stream.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// Number of bytes that are read at once.
const CHUNK: usize = 1 << 20;
const BUFFER: usize = 256 << 10;

/// Writes a table as a file, and returns the number of its rows.
pub(crate) fn write_file(table: &Table, out: &Path, progress: &dyn Fn(u64)) -> Result<u64, ConvertError> {
    let in_file = |e| ConvertError::io(out, e);
    let failed = |e| ConvertError::arrow(out, e);
    let file = BufWriter::with_capacity(BUFFER, Output::create(out).map_err(in_file)?);
    let mut writer = FileWriter::try_new(file, table.schema()).map_err(failed)?;
    let rows = table.for_each(|batch| {
        writer.write(batch).map_err(failed)?;
        progress(batch.num_rows() as u64);
        Ok(())
    })?;
    let file = writer.into_inner().map_err(failed)?;
    file.into_inner().map_err(|e| in_file(e.into_error()))?.commit().map_err(in_file)?;
    Ok(rows)
}

/// Writes a table as a stream to a file, and returns the number of its rows.
pub(crate) fn write_stream(table: &Table, out: &Path, progress: &dyn Fn(u64)) -> Result<u64, ConvertError> {
    let in_file = |e| ConvertError::io(out, e);
    let mut file = BufWriter::with_capacity(BUFFER, Output::create(out).map_err(in_file)?);
    let rows = stream(table, &mut file, progress).map_err(|e| match e {
        ConvertError::Sink(e) => in_file(e),
        e => e,
    })?;
    file.into_inner().map_err(|e| in_file(e.into_error()))?.commit().map_err(in_file)?;
    Ok(rows)
}

/// Writes a table as a stream, and returns the number of its rows.
pub(crate) fn stream(
    table: &Table,
    out: &mut impl Write,
    progress: &dyn Fn(u64),
) -> Result<u64, ConvertError> {
    let failed = |e| match e {
        ArrowError::IoError(_, e) => ConvertError::Sink(e),
        e => e.into(),
    };
    let mut writer = StreamWriter::try_new(out, table.schema()).map_err(failed)?;
    let rows = table.for_each(|batch| {
        writer.write(batch).map_err(failed)?;
        progress(batch.num_rows() as u64);
        Ok(())
    })?;
    writer.finish().map_err(failed)?;
    Ok(rows)
}

/// The rows of a file or a stream, which its first bytes tell apart.
///
/// A file is read as the stream that it contains: memory grows with the bytes that arrive, and not by lengths that the file states.
pub(crate) struct IpcRows {
    file: File,
    decoder: StreamDecoder,
    schema: SchemaRef,
    chunk: Buffer,
    first: Option<RecordBatch>,
    /// Bytes of the file before its footer, that are not read yet.
    left: u64,
}

impl IpcRows {
    pub(crate) fn open(path: &Path) -> Result<IpcRows, ConvertError> {
        let io = |e| ConvertError::io(path, e);
        let mut file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let mut start = [0; START];
        let is_short = file.read_exact(&mut start).is_err();
        let expected = |found: &str| {
            ConvertError::data(path, format!("expected an Arrow IPC file or stream, found {found}"))
        };
        if is_short {
            return Err(expected(&format!("{len} bytes")));
        }
        if start.starts_with(FEATHER_1) {
            return Err(expected("Feather version 1"));
        }
        let is_file = start.starts_with(MAGIC);
        let end = if is_file { footer(&mut file, len).map_err(io)? } else { Some(len) };
        let Some(end) = end.filter(|&end| end >= START as u64) else {
            return Err(expected("a file that is cut off: its last bytes are no footer"));
        };
        let mut last = END;
        file.seek(SeekFrom::Start(end.saturating_sub(END.len() as u64))).map_err(io)?;
        file.read_exact(&mut last).map_err(io)?;
        if last != END {
            return Err(expected("a stream that is cut off: its last bytes are no end mark"));
        }
        let start = if is_file { stream_start(&mut file).map_err(io)? } else { 0 };
        file.seek(SeekFrom::Start(start)).map_err(io)?;
        let mut rows = IpcRows {
            file,
            decoder: StreamDecoder::new(),
            schema: SchemaRef::new(arrow_schema::Schema::empty()),
            chunk: Buffer::from_vec(Vec::<u8>::new()),
            first: None,
            left: end.saturating_sub(start),
        };
        rows.first = rows.read(path)?;
        rows.schema = rows.decoder.schema().ok_or_else(|| expected("no schema"))?;
        Ok(rows)
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Calls a function with the rows, and with the number of bytes that were read for them.
    pub(crate) fn for_each(
        mut self,
        path: &Path,
        mut f: impl FnMut(&RecordBatch, u64) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let mut left = self.left.saturating_add(self.chunk.len() as u64);
        let mut next = self.first.take();
        while let Some(batch) = next {
            f(&batch, left.saturating_sub(self.left))?;
            left = self.left;
            next = self.read(path)?;
        }
        guarded(path, || self.decoder.finish())?.map_err(|e| ConvertError::arrow(path, e))
    }

    /// Returns the next rows. `None` at the end.
    fn read(&mut self, path: &Path) -> Result<Option<RecordBatch>, ConvertError> {
        loop {
            let (decoder, chunk) = (&mut self.decoder, &mut self.chunk);
            let batch = guarded(path, || decoder.decode(chunk))?;
            if let Some(batch) = batch.map_err(|e| ConvertError::arrow(path, e))? {
                return Ok(Some(batch));
            }
            if self.left == 0 && self.chunk.is_empty() {
                return Ok(None);
            }
            let len = self.left.min(CHUNK as u64);
            let mut bytes = Vec::with_capacity(len as usize);
            let read = Read::by_ref(&mut self.file).take(len).read_to_end(&mut bytes);
            let read = read.map_err(|e| ConvertError::io(path, e))? as u64;
            if read < len {
                return Err(ConvertError::data(path, "the file became shorter while it was read"));
            }
            self.left = self.left.saturating_sub(read);
            self.chunk = Buffer::from_vec(bytes);
        }
    }
}

/// Returns the offset of the stream in a file, after the padding of the first bytes. Eight zeros are no message.
fn stream_start(file: &mut File) -> std::io::Result<u64> {
    let mut start = START as u64;
    let mut next = [0; START];
    file.seek(SeekFrom::Start(start))?;
    while start < MAX_START {
        file.read_exact(&mut next)?;
        if next != [0; START] {
            break;
        }
        start = start.saturating_add(START as u64);
    }
    Ok(start)
}

/// Returns the offset of the footer of a file. `None` if it has none.
fn footer(file: &mut File, len: u64) -> std::io::Result<Option<u64>> {
    let mut last = [0; 10];
    let Some(start) = len.checked_sub(last.len() as u64) else { return Ok(None) };
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut last)?;
    let (footer_len, magic) = last.split_at(4);
    let footer_len: [u8; 4] = footer_len.try_into().unwrap_or_default();
    let offset = start.checked_sub(u32::from_le_bytes(footer_len).into());
    Ok(offset.filter(|_| magic == MAGIC))
}
