//! WebP, by the crate `image-webp`: pictures, and the first frame of animations.
//!
//! The chunks of a file are read here, and the crate is given those of one picture. It takes its memory for
//! each of them: at most 7 bytes per pixel, and tables.

use crate::crop::Rect;
use crate::error::{ImageError, PictureFault};
use crate::format::{DecodeJob, PictureFormat, PictureHeader, store_bytes};
use crate::memory::resize;
use image_webp::{DecodingError, WebPDecoder};
use std::io::Cursor;
use tfseek::error::catch_panic;

pub(crate) const FORMAT: PictureFormat =
    PictureFormat { name: "WebP", word: "webp", byte_factor: 257, read, decode, decode_words: None };

/// A file whose first picture is complete.
struct WebP<'a> {
    /// Height and width.
    canvas: [usize; 2],
    /// The part of the canvas that the picture covers.
    place: Rect,
    has_alpha: bool,
    /// The chunk of a lossy picture's alpha. May be empty.
    alpha: &'a [u8],
    /// The chunk of the pixels.
    pixels: &'a [u8],
}

/// Bytes of a chunk before its content: the name, and the length of the content.
const CHUNK_HEADER: usize = 8;

impl<'a> WebP<'a> {
    /// Reads the chunks up to the first picture.
    fn read(data: &'a [u8]) -> Result<WebP<'a>, PictureFault> {
        let place = Rect { top: 0, left: 0, height: 0, width: 0 };
        let mut webp = WebP { canvas: [0, 0], place, has_alpha: false, alpha: &[], pixels: &[] };
        let mut animated = false;
        // `RIFF`, the number of bytes that follow, and `WEBP`.
        let mut rest = data.get(12..).ok_or(PictureFault::Truncated)?;
        while webp.pixels.is_empty() {
            let (chunk, after) = split_chunk(rest).ok_or(PictureFault::Truncated)?;
            let content = &chunk[CHUNK_HEADER..];
            rest = after;
            match &chunk[..4] {
                b"VP8X" => webp.canvas = [number(content, 7)? + 1, number(content, 4)? + 1],
                b"ANMF" => {
                    animated = true;
                    webp.place.left = 2 * number(content, 0)?;
                    webp.place.top = 2 * number(content, 3)?;
                    // A frame has chunks of its own.
                    rest = content.get(16..).ok_or(PictureFault::Truncated)?;
                }
                b"ALPH" => webp.alpha = chunk,
                b"VP8 " | b"VP8L" => webp.pixels = chunk,
                _ => {}
            }
        }
        webp.read_size()?;
        let Rect { top, left, height, width } = webp.place;
        if webp.canvas == [0, 0] {
            webp.canvas = [height, width];
        }
        let [h, w] = webp.canvas;
        let fits = if animated { top + height <= h && left + width <= w } else { [height, width] == [h, w] };
        if fits { Ok(webp) } else { Err(PictureFault::Corrupt("size")) }
    }

    /// Reads the size of the picture, and whether it has alpha.
    fn read_size(&mut self) -> Result<(), PictureFault> {
        let content = &self.pixels[CHUNK_HEADER..];
        let [height, width] = if self.pixels.starts_with(b"VP8L") {
            // Behind a byte that is always the same: 14 bits for each side, one for alpha, three for the version.
            let &[_, a, b, c, d, ..] = content else { return Err(PictureFault::Truncated) };
            let bits = u32::from_le_bytes([a, b, c, d]);
            self.alpha = &[];
            self.has_alpha = bits >> 28 & 1 == 1;
            [bits >> 14, bits].map(|side| (side & 0x3fff) as usize + 1)
        } else {
            // Behind three bytes of flags and three that are always the same: 14 bits for each side, and two.
            self.has_alpha = !self.alpha.is_empty();
            [number(content, 8)? & 0x3fff, number(content, 6)? & 0x3fff]
        };
        if height == 0 || width == 0 {
            return Err(PictureFault::Corrupt("size"));
        }
        self.place = Rect { height, width, ..self.place };
        Ok(())
    }

    /// Writes the pixels of a rectangle of the canvas to `out`.
    fn decode(&self, job: DecodeJob<'_>, out: &mut [u8]) -> Result<(), PictureFault> {
        let DecodeJob { rect, channels, memory, .. } = job;
        let place = self.place;
        let stored = if self.has_alpha { 4 } else { 3 };
        let pixels = &mut memory.frame;
        resize(pixels, place.height * place.width * stored)?;
        let file = self.picture();
        // Lengths of codes that are no tree, which no encoder writes, can make it panic (image-webp 0.2.4).
        match catch_panic(|| WebPDecoder::new(Cursor::new(&file))?.read_image(pixels)) {
            Ok(Ok(())) => {}
            Ok(Err(DecodingError::IoError(_))) => return Err(PictureFault::Truncated),
            _ => return Err(PictureFault::Corrupt("data of the pixels")),
        }
        let left = rect.left.max(place.left);
        let right = (rect.left + rect.width).min(place.left + place.width);
        out.fill(0);
        for (out, y) in out.chunks_exact_mut(rect.width * channels).zip(rect.top..) {
            let rows = place.top..place.top + place.height;
            if rows.contains(&y) && left < right {
                let from = (y - place.top) * place.width + left - place.left;
                let row = &pixels[from * stored..][..(right - left) * stored];
                let out = &mut out[(left - rect.left) * channels..][..(right - left) * channels];
                store_bytes(row, stored, channels, out);
            }
        }
        Ok(())
    }

    /// Returns a file of the picture alone, in the extended form, in which every size is allowed.
    fn picture(&self) -> Vec<u8> {
        let side = |side: usize| (side as u32 - 1).to_le_bytes();
        let [w, h] = [self.place.width, self.place.height].map(side);
        let flags = if self.has_alpha { 0x10 } else { 0 };
        let header =
            [b'V', b'P', b'8', b'X', 10, 0, 0, 0, flags, 0, 0, 0, w[0], w[1], w[2], h[0], h[1], h[2]];
        let mut file = b"RIFF\xff\xff\xff\x7fWEBP".to_vec();
        for chunk in [&header[..], self.alpha, self.pixels] {
            file.extend_from_slice(chunk);
            file.resize(file.len().next_multiple_of(2), 0);
        }
        file
    }
}

/// Returns the first chunk, and what follows it.
fn split_chunk(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let &[_, _, _, _, a, b, c, d] = data.first_chunk()?;
    let end = (u32::from_le_bytes([a, b, c, d]) as usize).checked_add(CHUNK_HEADER)?;
    let (chunk, rest) = data.split_at_checked(end)?;
    // An odd number of bytes is filled up.
    Some((chunk, rest.get(end % 2..).unwrap_or_default()))
}

/// Returns a number of 24 bits.
fn number(bytes: &[u8], at: usize) -> Result<usize, PictureFault> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    let &[a, b, c] = bytes.ok_or(PictureFault::Truncated)?;
    Ok(u32::from_le_bytes([a, b, c, 0]) as usize)
}

fn read(data: &[u8]) -> Result<PictureHeader, PictureFault> {
    let WebP { canvas, has_alpha, .. } = WebP::read(data)?;
    let channels = if has_alpha { 4 } else { 3 };
    Ok(PictureHeader { size: canvas, channels, ..PictureHeader::default() })
}

fn decode(data: &[u8], job: DecodeJob<'_>, out: &mut [u8]) -> Result<(), ImageError> {
    let decoded = WebP::read(data).and_then(|webp| {
        let len = data.get(4..).and_then(<[u8]>::first_chunk).map_or(0, |len| u32::from_le_bytes(*len));
        if job.strict && (data.len() as u64) < u64::from(len) + CHUNK_HEADER as u64 {
            return Err(PictureFault::Truncated);
        }
        webp.decode(job, out)
    });
    decoded.map_err(|fault| fault.of(FORMAT.name))
}
