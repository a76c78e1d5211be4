//! `ImageSpec`: what is made of a picture.

use crate::crop::{Rect, center, random_resized};
use crate::error::ImageError;

/// How a picture gets its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resize {
    /// Linear weights. For a smaller picture they reach as far as the scale, so that all pixels count: the antialiased filter of Pillow and
    /// torchvision.
    Bilinear,
    /// The mean of the area that a pixel covers.
    Area,
}

/// The part of a picture that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Crop {
    /// The largest centred rectangle of the same ratio as the size. Without a resize, the centre of exactly this size.
    Center,
    /// A random rectangle, as torchvision's `RandomResizedCrop` draws it: 8 to 100 % of the area, a ratio of 3/4 to 4/3.
    RandomResized,
}

/// What is made of a picture. The default is RGB in the size of the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageSpec {
    /// Height and width. `None` for those of each file.
    pub size: Option<[u32; 2]>,
    /// 1 for brightness, 3 for RGB, 4 for RGB and alpha, which a JPEG does not have.
    pub channels: u8,
    /// How pictures get the size. With `None` they must have it.
    pub resize: Option<Resize>,
    /// The part that is used.
    pub crop: Option<Crop>,
}

impl Default for ImageSpec {
    fn default() -> ImageSpec {
        ImageSpec { size: None, channels: 3, resize: Some(Resize::Bilinear), crop: None }
    }
}

impl ImageSpec {
    /// Checks that the spec does not contradict itself.
    pub fn check(&self) -> Result<(), ImageError> {
        let fault = |reason: String| Err(ImageError::Spec(reason));
        if ![1, 3, 4].contains(&self.channels) {
            return fault(format!("channels: expected 1, 3 or 4, found {}", self.channels));
        }
        if let Some([h, w]) = self.size {
            let pixels = u64::from(h) * u64::from(w);
            if pixels == 0 || pixels > crate::error::MOST_PIXELS as u64 {
                let most = crate::error::MOST_PIXELS;
                return fault(format!("size: expected 1 to {most} pixels, found {h} x {w}"));
            }
        }
        match (self.crop, self.size, self.resize) {
            (Some(_), None, _) => fault("crop: a crop requires a size".to_owned()),
            (Some(Crop::RandomResized), _, None) => {
                fault("crop: random_resized requires a resize".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns the part of a picture that is used, for the random word `draw`.
    pub(crate) fn rect(&self, found: [usize; 2], draw: u64) -> Result<Rect, ImageError> {
        let [height, width] = found;
        let all = Rect { top: 0, left: 0, height, width };
        let Some(expected) = self.size else { return Ok(all) };
        let [h, w] = expected.map(|side| side as usize);
        match (self.crop, self.resize) {
            (Some(Crop::RandomResized), _) => Ok(random_resized(found, draw)),
            (Some(Crop::Center), Some(_)) => Ok(center(found, [h, w])),
            (Some(Crop::Center), None) if h <= height && w <= width => {
                Ok(Rect { top: (height - h) / 2, left: (width - w) / 2, height: h, width: w })
            }
            (None, None) if found == [h, w] => Ok(all),
            (None, Some(_)) => Ok(all),
            (crop, None) => Err(ImageError::Size { found, expected, crop: crop.is_some() }),
        }
    }
}
