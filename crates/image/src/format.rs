//! `PictureFormat`: a format of pictures that are decoded.

use crate::crop::Rect;
use crate::error::{ImageError, PictureFault};
use crate::memory::resize;
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
    pub(crate) read: HeaderReader,
}

/// Reads the header of a file.
pub(crate) type HeaderReader = fn(&[u8]) -> Result<Box<dyn PictureFile + '_>, PictureFault>;

/// A file whose header was read.
pub(crate) trait PictureFile {
    /// Returns the number of frames, if the format has several.
    fn frames(&self) -> Option<usize> {
        None
    }

    /// Returns height and width.
    fn size(&self) -> [usize; 2];

    /// Returns the channels that TensorFlow decodes without a wish.
    fn channels(&self) -> usize;

    /// Returns 1, 3 or 4 channels in words, if the file is not decoded to them.
    fn unsupported(&self, _channels: usize) -> Option<&'static str> {
        None
    }

    /// Decodes samples of 8 bits.
    fn decode(self: Box<Self>, job: DecodeJob<'_>, out: &mut [u8]) -> Result<(), ImageError>;

    /// Decodes samples of 16 bits. Those of 8 bits are multiplied by 256.
    fn decode_words(self: Box<Self>, job: DecodeJob<'_>, out: &mut [u16]) -> Result<(), ImageError> {
        let bytes = job.filled(out.len(), |job, bytes| self.decode(job, bytes))?;
        for (out, &byte) in out.iter_mut().zip(bytes) {
            *out = u16::from(byte) * 256;
        }
        Ok(())
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
    /// Pixels that are resized, or samples that become others.
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
