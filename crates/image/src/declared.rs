//! Pictures of a declared form: their shapes and pixels.

use crate::bmp::{self, Bmp};
use crate::crop::Rect;
use crate::decoder::{self, Decoder};
use crate::error::{ImageError, MOST_PIXELS};
use crate::form::{PictureForm, PictureShape};
use crate::gif::{self, Gif};
use crate::memory::resize;
use crate::sample::Sample;
use crate::sample::sealed::Sealed;
use tfseek::filter::image_format;
use tfseek::tensor::TensorDType;

/// Memory for decoded pixels, of the type that the form declares.
#[derive(Debug)]
pub enum PixelsMut<'a> {
    /// Values of 8 bits.
    U8(&'a mut [u8]),
    /// Values of 16 bits.
    U16(&'a mut [u16]),
    /// The bits of floats, which may be any.
    F32(&'a mut [u32]),
}

impl PixelsMut<'_> {
    /// Returns the number of values, and their type.
    fn kind(&self) -> (usize, TensorDType) {
        match self {
            PixelsMut::U8(values) => (values.len(), TensorDType::UInt8),
            PixelsMut::U16(values) => (values.len(), TensorDType::UInt16),
            PixelsMut::F32(values) => (values.len(), TensorDType::Float32),
        }
    }
}

/// A file whose header was read.
enum DeclaredFile<'a> {
    Single(decoder::Opened),
    Bmp(Bmp<'a>),
    Gif(Gif<'a>),
}

impl PictureForm {
    /// Returns the shape of a picture's pixels, from the header of its file, or the blocks of a GIF. At most
    /// 100 million pixels in all frames.
    ///
    /// # Errors
    /// What is wrong with the file, a file that the form does not allow, and a form that contradicts itself.
    pub fn shape(&self, file: &[u8]) -> Result<PictureShape, ImageError> {
        self.open(file).map(|(_, shape)| shape)
    }

    /// Returns the channels that a file is decoded to, if the form has a number.
    fn decoded_channels(&self) -> Result<Option<usize>, ImageError> {
        match (self.dtype, self.channels) {
            (TensorDType::Float32, Some(1)) => Ok(Some(4)),
            (TensorDType::Float32, _) => Err(ImageError::Spec("channels: expected 1 for float32".to_owned())),
            (TensorDType::UInt8 | TensorDType::UInt16, None) => Ok(None),
            (TensorDType::UInt8 | TensorDType::UInt16, Some(channels @ (1 | 3 | 4))) => {
                Ok(Some(channels.into()))
            }
            (TensorDType::UInt8 | TensorDType::UInt16, Some(other)) => {
                Err(ImageError::Spec(format!("channels: expected 1, 3 or 4, found {other}")))
            }
            (other, _) => {
                Err(ImageError::Spec(format!("dtype: expected uint8, uint16 or float32, found {other}")))
            }
        }
    }

    fn open<'a>(&self, file: &'a [u8]) -> Result<(DeclaredFile<'a>, PictureShape), ImageError> {
        let declared = self.decoded_channels()?;
        let (opened, frames, [height, width], channels) = match image_format(file) {
            Some("bmp") => {
                let bmp = Bmp::read(file).map_err(|fault| fault.of(bmp::FORMAT))?;
                if declared == Some(1) {
                    return Err(ImageError::Unsupported { what: "1 channel of a BMP" });
                }
                let size = [bmp.height, bmp.width];
                let channels = bmp.channels;
                (DeclaredFile::Bmp(bmp), None, size, channels)
            }
            Some("gif") => {
                let gif = Gif::read(file).map_err(|fault| fault.of(gif::FORMAT))?;
                if declared.is_some_and(|channels| channels != 3) {
                    return Err(ImageError::Unsupported { what: "other than 3 channels of a GIF" });
                }
                let frames = gif.frames;
                let size = [gif.height, gif.width];
                (DeclaredFile::Gif(gif), Some(frames), size, 3)
            }
            _ => {
                let opened = decoder::open(file, "a JPEG, PNG, BMP or GIF picture")?;
                opened.check_channels(declared.unwrap_or(3))?;
                let size = opened.size();
                let channels = opened.channels(file);
                (DeclaredFile::Single(opened), None, size, channels)
            }
        };
        let pixels = frames.unwrap_or(1).saturating_mul(height).saturating_mul(width);
        if pixels > MOST_PIXELS {
            return Err(ImageError::TooLarge { frames, height, width });
        }
        let channels = self.channels.map_or(channels, usize::from);
        let shape = PictureShape { frames, height, width, channels };
        if !self.allows(&shape) {
            return Err(ImageError::Shape { found: shape, expected: *self });
        }
        Ok((opened, shape))
    }
}

impl Decoder {
    /// Decodes a picture to `out`, which has the form's type and the number of values of
    /// [`PictureForm::shape`].
    ///
    /// # Errors
    /// As for the shape, and damage of the pixels. `out` then has any values.
    pub fn decode_to(
        &mut self,
        file: &[u8],
        form: &PictureForm,
        out: PixelsMut<'_>,
    ) -> Result<(), ImageError> {
        let (opened, shape) = form.open(file)?;
        let values = shape.values();
        let dtype = form.dtype;
        if out.kind() != (values, dtype) {
            let (found, other) = out.kind();
            return Err(ImageError::Spec(format!(
                "expected memory for {values} values of {dtype}, found {found} of {other}"
            )));
        }
        match out {
            PixelsMut::U8(out) => self.whole(file, opened, &shape, out),
            PixelsMut::U16(out) => self.whole(file, opened, &shape, out),
            PixelsMut::F32(out) => {
                let shape = PictureShape { channels: 4, ..shape };
                // The scratch memory is moved out, because the decoder is used meanwhile.
                let mut bytes = std::mem::take(u8::scratch(&mut self.scratch));
                let result = resize(&mut bytes, shape.values())
                    .map_err(|fault| fault.of(""))
                    .and_then(|()| self.whole(file, opened, &shape, &mut bytes[..shape.values()]));
                for (out, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *out = u32::from_le_bytes(*bytes);
                }
                *u8::scratch(&mut self.scratch) = bytes;
                result
            }
        }
    }

    /// Decodes all pixels.
    fn whole<T: Sample>(
        &mut self,
        file: &[u8],
        opened: DeclaredFile<'_>,
        shape: &PictureShape,
        out: &mut [T],
    ) -> Result<(), ImageError> {
        let height = shape.height;
        let width = shape.width;
        let channels = shape.channels;
        match opened {
            DeclaredFile::Single(opened) => {
                self.pixels(file, opened, Rect { top: 0, left: 0, height, width }, channels, out)
            }
            DeclaredFile::Bmp(bmp) => {
                bmp.decode(channels, out);
                Ok(())
            }
            DeclaredFile::Gif(gif) => gif.decode(&mut self.frame, out).map_err(|fault| fault.of(gif::FORMAT)),
        }
    }
}
