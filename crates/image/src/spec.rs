//! The part of a picture that a spec uses.

use crate::crop::{Rect, center, random_resized};
use crate::error::ImageError;
use tfseek::schema::{Crop, ImageSpec};

/// Returns the part of a picture that is used, for the random word `draw`.
pub(crate) fn rect(spec: &ImageSpec, found: [usize; 2], draw: u64) -> Result<Rect, ImageError> {
    let [height, width] = found;
    let all = Rect { top: 0, left: 0, height, width };
    let Some(expected) = spec.size else { return Ok(all) };
    let [h, w] = expected.map(|side| side as usize);
    match (spec.crop, spec.resize) {
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
