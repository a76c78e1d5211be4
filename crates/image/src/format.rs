//! `PictureFormat`: a format of pictures that are decoded.

use crate::crop::Rect;
use crate::error::{ImageError, PictureFault};
use crate::exif::Orientation;
use crate::memory::resize;
use crate::sample::PixelsMut;
use std::any::Any;
use std::sync::atomic::AtomicBool;

/// A format of pictures that are decoded. The file of the format has this constant.
pub(crate) struct PictureFormat {
    /// The name in errors.
    pub(crate) name: &'static str,
    /// The result of [`image_format`](tfseek::filter::image_format) for its first bytes.
    pub(crate) word: &'static str,
    /// True if loaders crop and resize it: any rectangle is decoded. Otherwise the format is only for
    /// pictures that a data set declares, which are decoded whole.
    pub(crate) has_crops: bool,
    /// Reads the header of a file. Files that are too short for their pixels are an error here already.
    pub(crate) read: fn(&[u8]) -> Result<PictureHeader, PictureFault>,
    /// Decodes samples of 8 bits of a file whose header was read.
    pub(crate) decode: PixelDecoder<u8>,
    /// Decodes samples of 16 bits. Without it, those of 8 bits are multiplied by 256.
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
}

impl PictureFile<'_> {
    /// Refuses channels to which the file is not decoded.
    pub(crate) fn check_channels(&self, channels: usize) -> Result<(), ImageError> {
        let found = self.header.unsupported.iter().find(|(unsupported, _)| *unsupported == channels);
        found.map_or(Ok(()), |&(_, what)| Err(ImageError::Unsupported { what }))
    }

    /// Decodes the pixels of a job. Floats have the bytes of four channels.
    pub(crate) fn decode(&self, job: DecodeJob<'_>, out: PixelsMut<'_>) -> Result<(), ImageError> {
        let PictureFormat { decode, decode_words, .. } = self.format;
        match (out, decode_words) {
            (PixelsMut::U8(out), _) => decode(self.data, job, out),
            (PixelsMut::U16(out), Some(decode)) => decode(self.data, job, out),
            (PixelsMut::U16(out), None) => {
                let bytes = job.filled(out.len(), |job, bytes| decode(self.data, job, bytes))?;
                for (out, &byte) in out.iter_mut().zip(bytes) {
                    *out = u16::from(byte) * 256;
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
    pub(crate) rect: Rect,
    pub(crate) channels: usize,
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
        let DecodeJob { rect, channels, strict, cancelled, memory } = self;
        // The bytes are moved out, because the memory is used meanwhile.
        let mut bytes = std::mem::take(&mut memory.bytes);
        let decoded = resize(&mut bytes, len).map_err(|fault| fault.of("")).and_then(|()| {
            let memory = &mut *memory;
            decode(DecodeJob { rect, channels, strict, cancelled, memory }, &mut bytes)
        });
        memory.bytes = bytes;
        decoded?;
        Ok(&memory.bytes[..])
    }
}
