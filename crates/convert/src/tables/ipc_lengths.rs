//! The lengths of decompressed buffers that Arrow IPC messages state. The reader allocates them as they are,
//! so they are checked before.

use arrow_ipc::{CompressionType, MessageHeader, RecordBatch, root_as_message};
use std::io;
use tfseek_tools::memory::ensure;

/// The first bytes of a message, in streams and files since version 0.15 of the format.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Length of a buffer that is stored as it is.
const STORED: i64 = -1;
/// Bytes that one byte of the compressed data can stand for at most: in LZ4 a length byte adds 255 bytes; in
/// zstd a block of 4 bytes has up to 128 KiB.
const MOST_LZ4: u64 = 255;
const MOST_ZSTD: u64 = 1 << 15;
/// Bytes that a short buffer can have more.
const MARGIN: u64 = 1 << 17;

/// The metadata of a message: their bytes, and the number of bytes before the body.
pub(super) struct MessageStart<'a> {
    metadata: &'a [u8],
    pub(super) len: usize,
}

impl<'a> MessageStart<'a> {
    /// Finds the metadata in the first bytes of a message. `None` at the end of a stream, and if there are
    /// too few bytes: then `Err` has the number of bytes that are needed.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Option<MessageStart<'a>>, usize> {
        let word = |at: usize| bytes.get(at..)?.first_chunk::<4>().copied();
        let head = if word(0).ok_or(8usize)? == CONTINUATION { 4 } else { 0 };
        let len = usize::try_from(u32::from_le_bytes(word(head).ok_or(8usize)?)).unwrap_or(usize::MAX);
        if len == 0 {
            return Ok(None);
        }
        let start = head + 4;
        let end = start.saturating_add(len);
        let metadata = bytes.get(start..end).ok_or(end)?;
        Ok(Some(MessageStart { metadata, len: end }))
    }

    /// Checks the buffers of the message, and returns the length of its body. `read` reads 8 bytes of the
    /// body at an offset, `None` beyond its end. `None` for a message that cannot be parsed: the reader
    /// refuses it.
    ///
    /// # Errors
    /// A text about the first buffer that states too many bytes, or about a schema of values that are in
    /// another byte order, which the reader does not refuse in streams. I/O errors of `read`.
    pub(super) fn check(
        &self,
        mut read: impl FnMut(u64) -> io::Result<Option<[u8; 8]>>,
    ) -> io::Result<Result<Option<u64>, String>> {
        let Ok(message) = root_as_message(self.metadata) else { return Ok(Ok(None)) };
        let body = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch(),
            MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|d| d.data()),
            MessageHeader::Schema => {
                let order = message.header_as_schema().map(|schema| schema.endianness());
                if order.is_some_and(|order| !order.equals_to_target_endianness()) {
                    return Ok(Err("values in another byte order".to_owned()));
                }
                None
            }
            _ => None,
        };
        Ok(match batch {
            Some(batch) => check_batch(batch, &mut read)?.map_or(Ok(Some(body)), Err),
            None => Ok(Some(body)),
        })
    }
}

/// Returns what is wrong with the first buffer that states too many bytes.
fn check_batch(
    batch: RecordBatch<'_>,
    read: &mut dyn FnMut(u64) -> io::Result<Option<[u8; 8]>>,
) -> io::Result<Option<String>> {
    let Some(compression) = batch.compression() else { return Ok(None) };
    let mut total = 0u64;
    let most = if compression.codec() == CompressionType::ZSTD { MOST_ZSTD } else { MOST_LZ4 };
    for buffer in batch.buffers().into_iter().flatten() {
        let at = u64::try_from(buffer.offset()).unwrap_or(u64::MAX);
        let len = u64::try_from(buffer.length()).unwrap_or(0);
        let Some(compressed) = len.checked_sub(8) else { continue };
        let Some(stated) = read(at)?.map(i64::from_le_bytes) else { continue };
        let possible = compressed.saturating_mul(most).saturating_add(MARGIN);
        let is_possible = stated == STORED || u64::try_from(stated).is_ok_and(|stated| stated <= possible);
        if !is_possible {
            return Ok(Some(format!(
                "a buffer of {compressed} bytes that states {stated} decompressed bytes"
            )));
        }
        total = total.saturating_add(u64::try_from(stated).unwrap_or_default());
    }
    // The reader does not return an error without memory, so it is requested before.
    ensure(usize::try_from(total).unwrap_or(usize::MAX))?;
    Ok(None)
}
