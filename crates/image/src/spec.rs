//! The meaning of a spec for a picture: the part that is used, and the words that are drawn.

use crate::crop::{Rect, center, random_resized};
use crate::error::ImageError;
use crate::exif::Orientation;
use crate::format::PictureFile;
use tfseek::TensorDType;
use tfseek::schema::{Crop, ImageSpec};

/// The random words of a picture.
#[derive(Clone, Copy)]
pub(crate) struct Draws {
    /// The word of the crop and the mirror.
    pub(crate) place: u64,
    pub(crate) colours: u64,
}

/// Returns true if the values of a spec are floats.
pub(crate) fn is_float(spec: &ImageSpec) -> bool {
    matches!(spec.dtype, TensorDType::Float32 | TensorDType::Float16 | TensorDType::BFloat16)
}

/// The part of a picture that a spec uses.
#[derive(Clone, Copy)]
pub(crate) struct PicturePart {
    /// As it is seen.
    pub(crate) rect: Rect,
    /// As it is in the file.
    pub(crate) stored: Rect,
    pub(crate) orientation: Orientation,
}

impl PicturePart {
    pub(crate) fn of(
        picture: &PictureFile<'_>,
        spec: &ImageSpec,
        draws: Draws,
    ) -> Result<PicturePart, ImageError> {
        let orientation = orientation(picture, spec);
        let size = picture.header.size;
        let rect = rect(spec, orientation.size(size), draws.place)?;
        Ok(PicturePart { rect, stored: orientation.stored(rect, size), orientation })
    }
}

/// Returns the orientation that is applied to a picture.
pub(crate) fn orientation(picture: &PictureFile<'_>, spec: &ImageSpec) -> Orientation {
    if spec.exif { picture.header.orientation } else { Orientation::default() }
}

/// Returns the part of a picture that is used, for the random word `draw`.
fn rect(spec: &ImageSpec, found: [usize; 2], draw: u64) -> Result<Rect, ImageError> {
    let [height, width] = found;
    let all = Rect { top: 0, left: 0, height, width };
    let Some(expected) = spec.size else { return Ok(all) };
    let [h, w] = expected.map(|side| side as usize);
    match (spec.crop, spec.resize) {
        (Some(Crop::RandomResized), _) => Ok(random_resized(found, spec.scale, spec.ratio, draw)),
        (Some(Crop::Center), Some(_)) => Ok(center(found, [h, w], spec.fraction)),
        (Some(Crop::Center), None) if h <= height && w <= width => {
            Ok(Rect { top: (height - h) / 2, left: (width - w) / 2, height: h, width: w })
        }
        (None, None) if found == [h, w] => Ok(all),
        (None, Some(_)) => Ok(all),
        (crop, None) => Err(ImageError::Size { found, expected, crop: crop.is_some() }),
    }
}
