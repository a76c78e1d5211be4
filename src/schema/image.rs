//! `ImageSpec`: what is made of a picture. The library keeps it as data. `tfseek-image` decodes pictures.

use crate::error::{Error, Result};
use crate::tensor::TensorDType;

/// The largest number of pixels of a picture: 100 million.
pub const MOST_PIXELS: usize = 100_000_000;

/// The largest factor of a colour, which keeps products of float32 finite.
const MOST_FACTOR: f64 = 1e6;

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
    /// The largest centred rectangle of the same ratio as the size, times [`ImageSpec::fraction`]. Without a
    /// resize, the centre of exactly this size.
    Center,
    /// A random rectangle, as torchvision's `RandomResizedCrop` draws it, of [`ImageSpec::scale`] and
    /// [`ImageSpec::ratio`].
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

/// Returns `chw` or `hwc`.
pub(crate) const fn layout_name(channels_first: bool) -> &'static str {
    if channels_first { "chw" } else { "hwc" }
}

/// What is made of a picture. The default is RGB of 8 bits in the size of the file.
///
/// The steps have this order: the orientation, the crop, the resize, the mirror, the colours, the numbers.
/// All that is random follows from the seed, the epoch and the position of a sample ([order.md]).
///
/// [order.md]: https://github.com/tfseek/tfseek/blob/main/docs/order.md
#[derive(Clone, Debug, PartialEq)]
pub struct ImageSpec {
    /// Height and width. `None` for each file's own.
    pub size: Option<[u32; 2]>,
    /// 1 for brightness, 3 for RGB, 4 for RGB and alpha, which a JPEG does not have.
    pub channels: u8,
    /// How pictures get the size. With `None` they must have it.
    pub resize: Option<Resize>,
    /// The part that is used.
    pub crop: Option<Crop>,
    /// Name that random crops and mirrors are drawn with. Pictures of a record with the same name and size
    /// have the same ones. `None`: the feature's key.
    pub crop_with: Option<String>,
    /// The sides of a centred crop, as a part of the largest one's: above 0, at most 1.
    pub fraction: f64,
    /// The smallest and the largest part of the area that a random crop has: above 0, at most 1.
    pub scale: [f64; 2],
    /// The smallest and the largest ratio of width to height that a random crop has.
    pub ratio: [f64; 2],
    /// The probability that a picture is mirrored, left to right.
    pub flip: f64,
    /// Operations on colours, in their order, each with the smallest and the largest factor that is drawn:
    /// `brightness`, `contrast`, `saturation` and `hue`.
    pub jitter: Vec<(String, [f64; 2])>,
    /// The mean and the standard deviation of each channel, of values of 0 to 1. A value becomes its distance
    /// from the mean, in standard deviations. This needs floats.
    pub normalize: Option<[Vec<f64>; 2]>,
    /// `UInt8`, `UInt16`, `Float32`, `Float16` or `BFloat16`. Floats are 0 to 1 without
    /// [`normalize`](Self::normalize).
    pub dtype: TensorDType,
    /// True for a column of the shape `[rows, channels, height, width]`, with `size`.
    pub channels_first: bool,
    /// True if the orientation in the EXIF data of a JPEG is applied. All sizes are then the oriented picture's.
    pub exif: bool,
    /// The value of all channels, as 8 bits, where a record has no picture: no feature, an empty list or an
    /// empty byte string. It is neither mirrored nor changed in its colours. `None`: an error. With `size`.
    pub missing: Option<u8>,
    /// The name of one more column, `int32` of the shape `[rows, 5]`: top, left, height and width of the part
    /// of the oriented picture that is used, and 1 if it is mirrored. All are 0 where the picture is missing.
    pub geometry: Option<String>,
    /// True if a JPEG is decoded to a half, a quarter or an eighth of its height and width where that leaves at
    /// least the size, before the resize. It is faster, and changes pixels a little.
    pub scaled: bool,
}

impl Default for ImageSpec {
    fn default() -> ImageSpec {
        ImageSpec {
            size: None,
            channels: 3,
            resize: Some(Resize::Bilinear),
            crop: None,
            crop_with: None,
            fraction: 1.0,
            scale: [0.08, 1.0],
            ratio: [3.0 / 4.0, 4.0 / 3.0],
            flip: 0.0,
            jitter: Vec::new(),
            normalize: None,
            dtype: TensorDType::UInt8,
            channels_first: false,
            exif: false,
            missing: None,
            geometry: None,
            scaled: false,
        }
    }
}

/// A spec that is valid has no NaN.
impl Eq for ImageSpec {}

impl ImageSpec {
    /// Checks that the spec does not contradict itself.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`](crate::ErrorKind::Spec).
    pub fn check(&self) -> Result<()> {
        if ![1, 3, 4].contains(&self.channels) {
            return Err(Error::spec(format!("channels: expected 1, 3 or 4, found {}", self.channels)));
        }
        if let Some([h, w]) = self.size {
            let pixels = u64::from(h) * u64::from(w);
            if pixels == 0 || pixels > MOST_PIXELS as u64 {
                return Err(Error::spec(format!(
                    "size: expected 1 to {MOST_PIXELS} pixels, found {h} x {w}"
                )));
            }
        }
        if self.missing.is_some() && self.size.is_none() {
            return Err(Error::spec("missing: a value in place of a picture requires a size"));
        }
        if self.geometry.as_deref() == Some("") {
            return Err(Error::spec("geometry: expected a name, found an empty string"));
        }
        self.check_crop()?;
        self.check_jitter()?;
        self.check_numbers()
    }

    fn check_crop(&self) -> Result<()> {
        match (self.crop, self.size, self.resize) {
            (Some(_), None, _) => return Err(Error::spec("crop: a crop requires a size")),
            (Some(Crop::RandomResized), _, None) => {
                return Err(Error::spec("crop: random_resized requires a resize"));
            }
            _ if self.crop_with.as_deref() == Some("") => {
                return Err(Error::spec("crop_with: expected a name, found an empty string"));
            }
            _ => {}
        }
        if self.crop != Some(Crop::RandomResized) {
            let default = ImageSpec::default();
            if self.scale != default.scale || self.ratio != default.ratio {
                return Err(Error::spec("scale and ratio: expected the crop \"random_resized\""));
            }
        }
        let is_part = |value: f64| value > 0.0 && value <= 1.0;
        if !is_part(self.fraction) {
            return Err(Error::spec(format!(
                "fraction: expected a number above 0, at most 1, found {:?}",
                self.fraction
            )));
        }
        if self.fraction < 1.0 && (self.crop != Some(Crop::Center) || self.resize.is_none()) {
            return Err(Error::spec("fraction: expected the crop \"center\" and a resize"));
        }
        let [low, high] = self.scale;
        if !(is_part(low) && is_part(high) && low <= high) {
            return Err(Error::spec(format!(
                "scale: expected two ascending numbers above 0, at most 1, found {low:?} and {high:?}"
            )));
        }
        let [low, high] = self.ratio;
        if !(low > 0.0 && low <= high && high.is_finite()) {
            return Err(Error::spec(format!(
                "ratio: expected two ascending numbers above 0, found {low:?} and {high:?}"
            )));
        }
        if !(0.0..=1.0).contains(&self.flip) {
            return Err(Error::spec(format!(
                "flip: expected a probability of 0 to 1, found {:?}",
                self.flip
            )));
        }
        Ok(())
    }

    fn check_jitter(&self) -> Result<()> {
        for (k, (name, [low, high])) in self.jitter.iter().enumerate() {
            let range = match name.as_str() {
                "brightness" | "contrast" | "saturation" => 0.0..=MOST_FACTOR,
                "hue" => -0.5..=0.5,
                _ => {
                    return Err(Error::spec(format!(
                        "jitter: expected brightness, contrast, saturation or hue, found {name:?}"
                    )));
                }
            };
            if self.jitter.iter().take(k).any(|(earlier, _)| earlier == name) {
                return Err(Error::spec(format!("jitter: {name} is there twice")));
            }
            if !(range.contains(low) && range.contains(high) && low <= high) {
                let (start, end) = range.into_inner();
                return Err(Error::spec(format!(
                    "jitter: {name}: expected two ascending numbers of {start:?} to {end:?}, found {low:?} and {high:?}"
                )));
            }
            if self.channels == 1 && ["saturation", "hue"].contains(&name.as_str()) {
                return Err(Error::spec(format!("jitter: {name} needs colours, found 1 channel")));
            }
            if self.dtype == TensorDType::UInt16 {
                return Err(Error::spec("jitter: expected uint8 or floats, found uint16"));
            }
        }
        Ok(())
    }

    /// Checks the form of the numbers.
    fn check_numbers(&self) -> Result<()> {
        let is_float = match self.dtype {
            TensorDType::UInt8 | TensorDType::UInt16 => false,
            TensorDType::Float32 | TensorDType::Float16 | TensorDType::BFloat16 => true,
            other => {
                return Err(Error::spec(format!(
                    "dtype: expected uint8, uint16, float32, float16 or bfloat16, found {other}"
                )));
            }
        };
        if self.channels_first && self.size.is_none() {
            return Err(Error::spec("layout: chw requires a size"));
        }
        let Some([mean, std]) = &self.normalize else { return Ok(()) };
        if !is_float {
            return Err(Error::spec(format!("mean and std: expected floats, found {}", self.dtype)));
        }
        for (name, values) in [("mean", mean), ("std", std)] {
            let channels = usize::from(self.channels);
            if values.len() != channels {
                let found = values.len();
                return Err(Error::spec(format!(
                    "{name}: expected a number for each of {channels} channels, found {found}"
                )));
            }
        }
        // Both become a factor and a term of float32.
        for (&mean, &std) in mean.iter().zip(std) {
            if !std.is_finite() || ![1.0 / std, mean / std].iter().all(|value| (*value as f32).is_finite()) {
                return Err(Error::spec(format!(
                    "mean and std: expected numbers whose quotients are finite as float32, found {mean:?} and {std:?}"
                )));
            }
        }
        Ok(())
    }
}
