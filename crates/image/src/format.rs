//! `PictureFormat`: a format of pictures that are decoded.

use crate::crop::Rect;
use crate::error::{ImageError, PictureFault};
use crate::exif::Orientation;
use crate::memory::resize;
use crate::sample::{PixelsMut, Sample};
use std::any::Any;
use std::sync::atomic::AtomicBool;

/// A format of pictures that are decoded. The file of the format has this constant.
pub(crate) struct PictureFormat {
    /// The name in errors.
    pub(crate) name: &'static str,
    /// The result of [`image_format`](tfseek::filter::image_format) for its first bytes.
    pub(crate) word: &'static str,
    /// The factor from 8 bits to 16. Declared pictures other than PNG have TensorFlow's: 256.
    pub(crate) byte_factor: u16,
    /// Reads the header of a file. Files that are too short for their pixels are an error here already.
    pub(crate) read: fn(&[u8]) -> Result<PictureHeader, PictureFault>,
    /// Decodes samples of 8 bits of a file whose header was read.
    pub(crate) decode: PixelDecoder<u8>,
    /// Decodes samples of 16 bits. Without it, those of 8 bits are multiplied.
    pub(crate) decode_words: Option<PixelDecoder<u16>>,
}

/// Decodes the pixels of a file.
pub(crate) type PixelDecoder<T> = fn(&[u8], DecodeJob<'_>, &mut [T]) -> Result<(), ImageError>;

/// What the header of a file states. Decoders read the header again, so that no memory is taken for its
/// tables.
#[derive(Default)]
pub(crate) struct PictureHeader {
    /// The number of frames, if the format has several.
    pub(crate) frames: Option<usize>,
    /// Height and width.
    pub(crate) size: [usize; 2],
    /// True for samples of 16 bits.
    pub(crate) wide: bool,
    /// True if the file can be decoded to fewer pixels.
    pub(crate) reducible: bool,
    pub(crate) orientation: Orientation,
    /// The channels that TensorFlow decodes without a wish.
    pub(crate) channels: usize,
    /// The numbers of channels among 1, 3 and 4 to which the file is not decoded, in words.
    pub(crate) unsupported: &'static [(usize, &'static str)],
}

/// A file whose header was read.
pub(crate) struct PictureFile<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) format: &'static PictureFormat,
    pub(crate) header: PictureHeader,
    /// True if a data set declares it.
    pub(crate) declared: bool,
}

impl PictureFile<'_> {
    /// Refuses channels to which the file is not decoded.
    pub(crate) fn check_channels(&self, channels: usize) -> Result<(), ImageError> {
        let found = self.header.unsupported.iter().find(|(unsupported, _)| *unsupported == channels);
        found.map_or(Ok(()), |&(_, what)| Err(ImageError::Unsupported { what }))
    }

    /// Decodes the pixels of a job. Floats have the bytes of four channels.
    pub(crate) fn decode(&self, job: DecodeJob<'_>, out: PixelsMut<'_>) -> Result<(), ImageError> {
        let &PictureFormat { decode, decode_words, byte_factor, .. } = self.format;
        match (out, decode_words) {
            (PixelsMut::U8(out), _) => decode(self.data, job, out),
            (PixelsMut::U16(out), Some(decode)) => decode(self.data, job, out),
            (PixelsMut::U16(out), None) => {
                let factor = if job.declared { 256 } else { byte_factor };
                let bytes = job.filled(out.len(), |job, bytes| decode(self.data, job, bytes))?;
                for (out, &byte) in out.iter_mut().zip(bytes) {
                    *out = u16::from(byte) * factor;
                }
                Ok(())
            }
            (PixelsMut::F32(out), _) => {
                let bytes = job.filled(out.len() * 4, |job, bytes| decode(self.data, job, bytes))?;
                for (out, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *out = u32::from_le_bytes(*bytes);
                }
                Ok(())
            }
        }
    }
}

/// The pixels that are decoded, and how. The memory is the decoder's.
pub(crate) struct DecodeJob<'a> {
    /// In the reduced picture.
    pub(crate) rect: Rect,
    /// Pixels of the file that become one, in each dimension: 1, or 2, 4 or 8 of a JPEG.
    pub(crate) reduction: usize,
    pub(crate) channels: usize,
    /// True for a picture as a data set declares it: its whole, with all frames, as TensorFlow decodes it.
    /// Loaders have the first frame.
    pub(crate) declared: bool,
    /// Refuses files that do not end after their pixels.
    pub(crate) strict: bool,
    /// Set to end the work early.
    pub(crate) cancelled: Option<&'a AtomicBool>,
    pub(crate) memory: &'a mut FormatMemory,
}

/// Memory that a decoder keeps from picture to picture.
#[derive(Default)]
pub(crate) struct FormatMemory {
    /// Pixels, or numbers of colours, as they are in a file.
    pub(crate) frame: Vec<u8>,
    /// Samples that become others.
    pub(crate) bytes: Vec<u8>,
    /// The memory of the format that used it last.
    pub(crate) kept: Option<Box<dyn Any + Send + Sync>>,
}

impl<'a> DecodeJob<'a> {
    /// Lets `decode` fill this number of bytes, and returns them.
    pub(crate) fn filled(
        self,
        len: usize,
        decode: impl FnOnce(DecodeJob<'_>, &mut [u8]) -> Result<(), ImageError>,
    ) -> Result<&'a [u8], ImageError> {
        let DecodeJob { rect, reduction, channels, declared, strict, cancelled, memory } = self;
        // The bytes are moved out, because the memory is used meanwhile.
        let mut bytes = std::mem::take(&mut memory.bytes);
        let decoded = resize(&mut bytes, len).map_err(|fault| fault.of("")).and_then(|()| {
            let memory = &mut *memory;
            let job = DecodeJob { rect, reduction, channels, declared, strict, cancelled, memory };
            decode(job, &mut bytes)
        });
        memory.bytes = bytes;
        decoded?;
        Ok(&memory.bytes[..])
    }
}

/// Writes a row of pixels with 8 bits, of which each has `stored` channels.
pub(crate) fn store_bytes<T: Sample>(row: &[u8], stored: usize, channels: usize, out: &mut [T]) {
    if stored == channels {
        T::of_bytes(row, out);
    } else {
        convert(row.chunks_exact(stored), channels, out, |pixel, k| u32::from(pixel[k]), false);
    }
}

/// Converts the pixels of a row. `sample` returns a channel of a pixel, in the depth of the file.
pub(crate) fn convert<'a, T: Sample>(
    pixels: impl Iterator<Item = &'a [u8]>,
    channels: usize,
    out: &mut [T],
    sample: impl Fn(&[u8], usize) -> u32,
    wide: bool,
) {
    let of = |value: u32| if wide { T::of_word(value) } else { T::of_byte(value) };
    let stored_channels = |pixel: &[u8]| if wide { pixel.len() / 2 } else { pixel.len() };
    for (pixel, out) in pixels.zip(out.chunks_exact_mut(channels)) {
        let stored = stored_channels(pixel);
        let alpha = if stored % 2 == 0 { of(sample(pixel, stored - 1)) } else { T::MOST };
        let [r, g, b] = if stored < 3 { [sample(pixel, 0); 3] } else { [0, 1, 2].map(|k| sample(pixel, k)) };
        match out {
            [grey] => {
                // As libpng: 16 bits are rounded, and 8 bits are not.
                let rounding = if wide { 16384 } else { 0 };
                *grey = of((9797 * r + 19234 * g + 3737 * b + rounding) >> 15);
            }
            [grey, last] => (*grey, *last) = (of(r), alpha),
            [out @ .., last] if channels == 4 => {
                out.copy_from_slice(&[of(r), of(g), of(b)]);
                *last = alpha;
            }
            out => out.copy_from_slice(&[of(r), of(g), of(b)]),
        }
    }
}
