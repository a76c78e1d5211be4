//! `PictureForm`: a picture as a data set declares it, and the shape of one.

use std::fmt;
use tfseek::tensor::TensorDType;

/// The declared form of a picture, as in data sets prepared by TensorFlow Datasets.
/// [`Decoder::decode_to`](crate::Decoder::decode_to) decodes by it.
///
/// ```
/// use tfseek_image::{Decoder, PictureForm, PixelsMut};
///
/// # let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/grey8.png")).unwrap();
/// let form = PictureForm { channels: Some(3), width: Some(7), ..PictureForm::default() };
/// let shape = form.shape(&file)?;
/// assert_eq!(shape.to_string(), "(5, 7, 3)");
/// let mut pixels = vec![0_u8; shape.values()];
/// Decoder::default().decode_to(&file, &form, PixelsMut::U8(&mut pixels))?;
/// # Ok::<(), tfseek_image::ImageError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureForm {
    /// `Some` for the frames of a GIF, with their number if it is declared. `None` for one picture, which a
    /// GIF is not.
    pub frames: Option<Option<u32>>,
    /// Height, if it is declared.
    pub height: Option<u32>,
    /// Width, if it is declared.
    pub width: Option<u32>,
    /// 1, 3 or 4. `None` for the file's: 1 to 4.
    pub channels: Option<u8>,
    /// `UInt8`, `UInt16`, or `Float32` with one channel. The four channels of such a file are the bytes of a
    /// float.
    pub dtype: TensorDType,
}

impl Default for PictureForm {
    /// Any picture that is no GIF, in 8 bits.
    fn default() -> PictureForm {
        PictureForm { frames: None, height: None, width: None, channels: None, dtype: TensorDType::UInt8 }
    }
}

/// The shape of decoded pixels. It prints as in NumPy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureShape {
    /// The number of frames, for the frames of a GIF.
    pub frames: Option<usize>,
    /// Height in pixels.
    pub height: usize,
    /// Width in pixels.
    pub width: usize,
    /// Values per pixel.
    pub channels: usize,
}

impl PictureShape {
    /// Returns the number of values: at most 400 million.
    pub fn values(&self) -> usize {
        self.frames.unwrap_or(1) * self.height * self.width * self.channels
    }
}

impl PictureForm {
    /// Returns true if a picture of this shape has the form.
    pub(crate) fn allows(&self, shape: &PictureShape) -> bool {
        let allowed =
            |declared: Option<u32>, found: usize| declared.is_none_or(|side| side as usize == found);
        let frames = match (self.frames, shape.frames) {
            (None, None) => true,
            (Some(declared), Some(found)) => allowed(declared, found),
            _ => false,
        };
        frames && allowed(self.height, shape.height) && allowed(self.width, shape.width)
    }
}

impl fmt::Display for PictureForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: Option<u32>| side.map_or("None".to_owned(), |side| side.to_string());
        let frames = self.frames.map_or(String::new(), |frames| side(frames) + ", ");
        let channels = side(self.channels.map(u32::from));
        write!(f, "({frames}{}, {}, {channels})", side(self.height), side(self.width))
    }
}

impl fmt::Display for PictureShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frames = self.frames.map_or(String::new(), |frames| format!("{frames}, "));
        write!(f, "({frames}{}, {}, {})", self.height, self.width, self.channels)
    }
}
