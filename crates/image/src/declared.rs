//! Pictures of a declared form: their shapes and pixels.

use crate::crop::Rect;
use crate::decoder::{self, Decoder};
use crate::error::{ImageError, MOST_PIXELS};
use crate::form::{PictureForm, PictureShape};
use crate::format::{PictureFile, PictureHeader};
use crate::sample::PixelsMut;
use tfseek::tensor::TensorDType;

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

    fn open<'a>(&self, file: &'a [u8]) -> Result<(PictureFile<'a>, PictureShape), ImageError> {
        let declared = self.decoded_channels()?;
        let picture = decoder::open(file, true)?;
        // Every format has 3 channels.
        picture.check_channels(declared.unwrap_or(3))?;
        let PictureHeader { frames, size: [height, width], .. } = picture.header;
        let pixels = frames.unwrap_or(1).saturating_mul(height).saturating_mul(width);
        if pixels > MOST_PIXELS {
            return Err(ImageError::TooLarge { frames, height, width });
        }
        let channels = self.channels.map_or(picture.header.channels, usize::from);
        let shape = PictureShape { frames, height, width, channels };
        if !self.allows(&shape) {
            return Err(ImageError::Shape { found: shape, expected: *self });
        }
        Ok((picture, shape))
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
        let (picture, shape) = form.open(file)?;
        let values = shape.values();
        let dtype = form.dtype;
        if out.kind() != (values, dtype) {
            let (found, other) = out.kind();
            return Err(ImageError::Spec(format!(
                "expected memory for {values} values of {dtype}, found {found} of {other}"
            )));
        }
        let PictureShape { height, width, channels, .. } = shape;
        let channels = if dtype == TensorDType::Float32 { 4 } else { channels };
        self.pixels(&picture, Rect { top: 0, left: 0, height, width }, 1, channels, out)
    }
}
