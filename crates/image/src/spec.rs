//! The meaning of a spec for a picture: the part that is used, and the words that are drawn.

use crate::crop::{Rect, Span, center, random_resized};
use crate::error::ImageError;
use crate::exif::Orientation;
use crate::format::PictureFile;
use tfseek::TensorDType;
use tfseek::schema::{Crop, ImageSpec};

/// The random words of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    /// The word of the crop and the mirror.
    pub place: u64,
    /// The word of the colours.
    pub colours: u64,
}

/// One word of all that is random.
impl From<u64> for Draws {
    fn from(word: u64) -> Draws {
        Draws { place: word, colours: word }
    }
}

/// Returns true if the values of a spec are floats.
pub(crate) fn is_float(spec: &ImageSpec) -> bool {
    matches!(spec.dtype, TensorDType::Float32 | TensorDType::Float16 | TensorDType::BFloat16)
}

/// Top, left, height and width of the part of a picture that is used, and 1 if it is mirrored.
pub(crate) type Geometry = [u32; 5];

/// The part of a picture that a spec uses.
#[derive(Clone, Copy)]
pub(crate) struct PicturePart {
    /// As it is seen.
    pub(crate) rect: Rect,
    /// In the stored picture, reduced by `reduction`: all pixels that have some of the part.
    pub(crate) stored: Rect,
    pub(crate) orientation: Orientation,
    /// Pixels of the file that become one, in each dimension: 1, 2, 4 or 8.
    pub(crate) reduction: usize,
    /// The part of the sides of `stored` that is used, as they are seen.
    pub(crate) sides: [Span; 2],
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
        let reduction = if picture.header.reducible { reduction(spec, rect) } else { 1 };
        let stored = orientation.stored(rect, size);
        let (top, rows) = reduced(stored.top, stored.height, reduction);
        let (left, columns) = reduced(stored.left, stored.width, reduction);
        let stored = Rect { top, left, height: rows.len, width: columns.len };
        let sides = orientation.sides([rows, columns]);
        Ok(PicturePart { rect, stored, orientation, reduction, sides })
    }

    /// Returns the geometry. A picture has at most 100 million pixels.
    pub(crate) fn geometry(&self, mirrored: bool) -> Geometry {
        let Rect { top, left, height, width } = self.rect;
        [top, left, height, width, usize::from(mirrored)].map(|number| number as u32)
    }
}

/// Returns the largest reduction that leaves at least the pixels of the spec.
fn reduction(spec: &ImageSpec, rect: Rect) -> usize {
    let (Some([h, w]), true, Some(_)) = (spec.size, spec.scaled, spec.resize) else { return 1 };
    let leaves = |d: usize| rect.height / d >= h as usize && rect.width / d >= w as usize;
    [8, 4, 2].into_iter().find(|&d| leaves(d)).unwrap_or(1)
}

/// Reduces `len` pixels from `start` on. Returns the first reduced one, and the span from there.
fn reduced(start: usize, len: usize, reduction: usize) -> (usize, Span) {
    let first = start / reduction;
    let end = start + len;
    let at = |k: usize| (k - first * reduction) as f64 / reduction as f64;
    (first, Span { len: end.div_ceil(reduction) - first, from: at(start), to: at(end) })
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
