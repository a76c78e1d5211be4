//! `ImageSpec`: what is made of a picture. The library keeps it as data. `tfseek-image` decodes pictures.

use crate::error::{Error, Result};
use crate::tensor::TensorDType;

/// The largest number of pixels of a picture: 100 million.
pub const MOST_PIXELS: usize = 100_000_000;

/// How a picture gets its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resize {
    /// Linear weights. For a smaller picture they reach as far as the scale, so that all pixels count: the
    /// antialiased filter of Pillow and torchvision.
    Bilinear,
    /// The mean of the area that a pixel covers.
    Area,
}

/// The part of a picture that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Crop {
    /// The largest centred rectangle of the same ratio as the size. Without a resize, the centre of exactly
    /// this size.
    Center,
    /// A random rectangle, as torchvision's `RandomResizedCrop` draws it: 8 to 100 % of the area, a ratio of
    /// 3/4 to 4/3.
    RandomResized,
}

impl Resize {
    /// Returns `bilinear` or `area`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Resize::Bilinear => "bilinear",
            Resize::Area => "area",
        }
    }
}

impl Crop {
    /// Returns `center` or `random_resized`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Crop::Center => "center",
            Crop::RandomResized => "random_resized",
        }
    }
}

/// What is made of a picture. The default is RGB of 8 bits in the size of the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageSpec {
    /// Height and width. `None` for each file's own.
    pub size: Option<[u32; 2]>,
    /// 1 for brightness, 3 for RGB, 4 for RGB and alpha, which a JPEG does not have.
    pub channels: u8,
    /// How pictures get the size. With `None` they must have it.
    pub resize: Option<Resize>,
    /// The part that is used.
    pub crop: Option<Crop>,
    /// Name that random crops are drawn with. Pictures of a record with the same name and size have the same
    /// crop. `None`: the feature's key.
    pub crop_with: Option<String>,
    /// `UInt8` or `UInt16`.
    pub dtype: TensorDType,
}

impl Default for ImageSpec {
    fn default() -> ImageSpec {
        ImageSpec {
            size: None,
            channels: 3,
            resize: Some(Resize::Bilinear),
            crop: None,
            crop_with: None,
            dtype: TensorDType::UInt8,
        }
    }
}

impl ImageSpec {
    /// Checks that the spec does not contradict itself.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`](crate::ErrorKind::Spec).
    pub fn check(&self) -> Result<()> {
        if ![1, 3, 4].contains(&self.channels) {
            return Err(Error::spec(format!("channels: expected 1, 3 or 4, found {}", self.channels)));
        }
        if ![TensorDType::UInt8, TensorDType::UInt16].contains(&self.dtype) {
            return Err(Error::spec(format!("dtype: expected uint8 or uint16, found {}", self.dtype)));
        }
        if let Some([h, w]) = self.size {
            let pixels = u64::from(h) * u64::from(w);
            if pixels == 0 || pixels > MOST_PIXELS as u64 {
                return Err(Error::spec(format!(
                    "size: expected 1 to {MOST_PIXELS} pixels, found {h} x {w}"
                )));
            }
        }
        match (self.crop, self.size, self.resize) {
            (Some(_), None, _) => Err(Error::spec("crop: a crop requires a size")),
            (Some(Crop::RandomResized), _, None) => {
                Err(Error::spec("crop: random_resized requires a resize"))
            }
            _ if self.crop_with.as_deref() == Some("") => {
                Err(Error::spec("crop_with: expected a name, found an empty string"))
            }
            _ => Ok(()),
        }
    }
}
