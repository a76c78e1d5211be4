//! PNG, by the crate `png`.

use crate::error::{ImageError, MOST_PIXELS, PictureFault};
use crate::format::{DecodeJob, PictureFormat, PictureHeader, convert, store_bytes};
use crate::memory::resize;
use crate::sample::Sample;
use png::{BitDepth, DecodingError, Limits, Transformations};
use std::io::{Cursor, ErrorKind};
use tfseek::error::catch_panic;

pub(crate) const FORMAT: PictureFormat =
    PictureFormat { name: "PNG", word: "png", byte_factor: 257, read, decode, decode_words: Some(decode) };

/// The bytes before the size: the signature, and the beginning of the first chunk.
const BEFORE_SIZE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";

/// Position of the first chunk.
const FIRST_CHUNK: usize = 8;

/// Memory for the rows and the texts of a PNG, in addition to the memory of its pixels.
const LIMIT: usize = 64 << 20;

/// Returns height and width. Files that are too short for their pixels are an error here already.
fn size(data: &[u8]) -> Result<[usize; 2], PictureFault> {
    let header = data.get(FIRST_CHUNK..33).ok_or(PictureFault::Truncated)?;
    if !data.starts_with(BEFORE_SIZE) {
        return Err(PictureFault::Corrupt("header"));
    }
    let side =
        |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize;
    let [height, width] = match [side(12), side(8)] {
        [0, _] | [_, 0] => return Err(PictureFault::Corrupt("size")),
        size => size,
    };
    let channels = match header[17] {
        2 => 3,
        4 => 2,
        6 => 4,
        _ => 1,
    };
    // Two bits of deflate give at most 258 bytes.
    let most = data.len() as u64 * (4 * 258);
    let pixels = height as u64 * width as u64;
    let bits = u64::from(header[16]) * channels;
    if pixels <= MOST_PIXELS as u64 && pixels * bits / 8 > most {
        return Err(PictureFault::Truncated);
    }
    Ok([height, width])
}

fn read(data: &[u8]) -> Result<PictureHeader, PictureFault> {
    let size = size(data)?;
    let mut before = chunks(data).take_while(|chunk| chunk.tag != b"IDAT");
    let channels = match data.get(25) {
        Some(2) => 3,
        // A transparent colour is a channel only in a palette.
        Some(3) if before.any(|chunk| chunk.tag == b"tRNS") => 4,
        Some(3) => 3,
        Some(4) => 2,
        Some(6) => 4,
        _ => 1,
    };
    let wide = data.get(24) == Some(&16);
    Ok(PictureHeader { size, wide, channels, ..PictureHeader::default() })
}

/// Decodes the pixels of a job to `out`.
fn decode<T: Sample>(data: &[u8], mut job: DecodeJob<'_>, out: &mut [T]) -> Result<(), ImageError> {
    if job.strict && !chunks(data).any(|chunk| chunk.tag == b"IEND" && chunk.end <= data.len()) {
        return Err(PictureFault::Truncated.of(FORMAT.name));
    }
    let result = decode_caught(data, &mut job, out);
    if result != Err(PictureFault::Truncated.of(FORMAT.name)) {
        return result;
    }
    // The crate reads on behind the data of the pixels. Without what follows they are complete all the same.
    let Some(chunks) = pixel_chunks(data) else { return result };
    decode_caught(&[chunks, END].concat(), &mut job, out)
}

/// Decodes the chunks of a file. A palette that ends within a colour can make the crate panic (png 0.18.1).
fn decode_caught<T: Sample>(data: &[u8], job: &mut DecodeJob<'_>, out: &mut [T]) -> Result<(), ImageError> {
    catch_panic(|| decode_chunks(data, job, out))
        .unwrap_or_else(|what| Err(ImageError::Corrupt { format: FORMAT.name, what: what.into() }))
}

/// The chunk that ends a PNG.
const END: &[u8] = b"\0\0\0\0IEND\xae\x42\x60\x82";

/// A chunk of a file, which may be cut.
struct Chunk<'a> {
    tag: &'a [u8],
    /// Position behind it.
    end: usize,
}

/// Returns the chunks of a file.
fn chunks(data: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut at = FIRST_CHUNK;
    std::iter::from_fn(move || {
        let &[a, b, c, d] = data.get(at..at + 4)? else { return None };
        let tag = data.get(at + 4..at + 8).unwrap_or_default();
        let end = at.checked_add(12)?.checked_add(u32::from_be_bytes([a, b, c, d]) as usize)?;
        at = end.min(data.len());
        Some(Chunk { tag, end })
    })
}

/// Returns the file up to the last chunk of pixels that is complete.
fn pixel_chunks(data: &[u8]) -> Option<&[u8]> {
    let complete = chunks(data).filter(|chunk| chunk.tag == b"IDAT" && chunk.end <= data.len());
    data.get(..complete.last()?.end)
}

fn decode_chunks<T: Sample>(data: &[u8], job: &mut DecodeJob<'_>, out: &mut [T]) -> Result<(), ImageError> {
    let rect = job.rect;
    let channels = job.channels;
    let frame = &mut job.memory.frame;
    let [height, width] = size(data).map_err(|fault| fault.of(FORMAT.name))?;
    // A row of the file has at most 8 bytes per pixel.
    let limits = Limits { bytes: LIMIT + width * 8 };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(data), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    // Palettes and fewer than 8 bits become plain channels, and a transparent colour becomes an alpha
    // channel.
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(fault)?;
    let bytes = reader.output_buffer_size().ok_or(ImageError::Memory)?;
    resize(frame, bytes).map_err(|fault| fault.of(FORMAT.name))?;
    let info = reader.next_frame(frame).map_err(fault)?;
    if [info.height as usize, info.width as usize] != [height, width] {
        return Err(PictureFault::Corrupt("size of the first frame").of(FORMAT.name));
    }
    let stored = info.color_type.samples();
    let wide = info.bit_depth == BitDepth::Sixteen;
    let bytes = stored * if wide { 2 } else { 1 };
    for (row, out) in out.chunks_exact_mut(rect.width * channels).take(rect.height).enumerate() {
        let from = (rect.top + row) * info.line_size + rect.left * bytes;
        let row = &frame[from..from + rect.width * bytes];
        if wide {
            let sample = |bytes: &[u8], k| u32::from(u16::from_be_bytes([bytes[2 * k], bytes[2 * k + 1]]));
            convert(row.chunks_exact(2 * stored), channels, out, sample, true);
        } else {
            store_bytes(row, stored, channels, out);
        }
    }
    Ok(())
}

/// Returns what an error of the crate means.
#[cold]
fn fault(e: DecodingError) -> ImageError {
    match e {
        DecodingError::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => {
            PictureFault::Truncated.of(FORMAT.name)
        }
        DecodingError::LimitsExceeded => {
            PictureFault::Unsupported("PNG with more than 64 MiB beside its pixels").of(FORMAT.name)
        }
        e => ImageError::Corrupt { format: FORMAT.name, what: e.to_string() },
    }
}
