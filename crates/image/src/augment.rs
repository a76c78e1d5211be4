//! `Augmenter`: the last steps of a picture: mirror, colours, and the numbers of a training tensor.

use crate::crop::unit;
use crate::error::PictureFault;
use crate::memory::resize;
use crate::row::{
    BFloat16, ColourChange, ColourOperation, ColourRow, Float16, LoadRow, Number, NumberForm, NumberRow,
    Planes, StorePlane, StoreRow, SumRow,
};
use crate::sample::{PixelsMut, Sample};
use crate::spec::{Draws, is_float};
use tfseek::TensorDType;
use tfseek::schema::ImageSpec;
use tfseek_wire::VectorWork;

/// The draws of a mirror and of the first operation on colours. Those before are the crop's.
const MIRROR: u64 = 41;
const COLOURS: u64 = 42;

/// Returns true if a picture is mirrored.
pub(crate) fn is_mirrored(spec: &ImageSpec, draws: Draws) -> bool {
    unit(draws.place, MIRROR) < spec.flip
}

/// The draws of a picture, and memory for a row.
#[derive(Default)]
pub(crate) struct Augmenter {
    pub(crate) mirrored: bool,
    operations: Vec<ColourOperation>,
    planes: Planes,
}

impl Augmenter {
    /// Draws for a picture. Returns false if its samples stay as they are.
    pub(crate) fn begin(&mut self, spec: &ImageSpec, draws: Draws) -> bool {
        self.mirrored = is_mirrored(spec, draws);
        let operation = |(name, [low, high]): &(String, [f64; 2])| {
            let (colour, unchanged) = match name.as_str() {
                "brightness" => (ColourChange::Brightness, 1.0),
                "contrast" => (ColourChange::Contrast, 1.0),
                "saturation" => (ColourChange::Saturation, 1.0),
                _ => (ColourChange::Hue, 0.0),
            };
            let factor = low + unit(draws.colours, COLOURS + colour as u64) * (high - low);
            let operation = ColourOperation { colour, factor: factor as f32, rest: (1.0 - factor) as f32 };
            ([*low, *high] != [unchanged; 2]).then_some(operation)
        };
        self.operations.clear();
        self.operations.extend(spec.jitter.iter().filter_map(operation));
        self.mirrored || !self.operations.is_empty() || is_float(spec) || spec.channels_first
    }

    /// Makes the numbers of `out` of resized pixels.
    pub(crate) fn finish<T: Sample>(
        &mut self,
        spec: &ImageSpec,
        pixels: &[T],
        [height, width]: [usize; 2],
        out: PixelsMut<'_>,
    ) -> Result<(), PictureFault> {
        let channels = usize::from(spec.channels);
        for plane in &mut self.planes[..channels] {
            resize(plane, width)?;
        }
        let is_wide = is_float(spec) && size_of::<T>() == 2;
        let is_changed = !self.operations.is_empty() || spec.normalize.is_some();
        let numbers = match &spec.normalize {
            Some([mean, std]) => {
                let mut channels = [[0.0; 2]; 4];
                for (channel, (mean, std)) in channels.iter_mut().zip(mean.iter().zip(std)) {
                    *channel = [(1.0 / (255.0 * std)) as f32, (-mean / std) as f32];
                }
                NumberForm::Normalized(channels)
            }
            None if !is_float(spec) => NumberForm::Whole,
            None if is_wide && !is_changed => NumberForm::Divided(65535.0),
            None => NumberForm::Divided(255.0),
        };
        let divisor = (is_wide && is_changed).then_some(257.0);
        let picture = Rows { pixels, height, width, channels, divisor, numbers };
        self.measure(&picture);
        match (out, spec.dtype) {
            (PixelsMut::U8(out), _) => self.store::<T, u8>(&picture, spec.channels_first, out),
            (PixelsMut::F32(out), _) => self.store::<T, f32>(&picture, spec.channels_first, out),
            (PixelsMut::U16(out), TensorDType::Float16) => {
                self.store::<T, Float16>(&picture, spec.channels_first, out);
            }
            (PixelsMut::U16(out), TensorDType::BFloat16) => {
                self.store::<T, BFloat16>(&picture, spec.channels_first, out);
            }
            (PixelsMut::U16(out), _) => self.store::<T, u16>(&picture, spec.channels_first, out),
        }
        Ok(())
    }

    /// Fills `out` with numbers of samples of this value.
    pub(crate) fn fill(
        &mut self,
        spec: &ImageSpec,
        value: u8,
        out: PixelsMut<'_>,
    ) -> Result<(), PictureFault> {
        self.mirrored = false;
        self.operations.clear();
        let channels = usize::from(spec.channels);
        let samples = &[value; 4][..channels];
        match out {
            PixelsMut::U8(out) => out.fill(value),
            // As a PNG of 8 bits.
            PixelsMut::U16(out) if !is_float(spec) => out.fill(u16::from(value) * 257),
            PixelsMut::U16(out) => {
                let pixel = &mut [0; 4][..channels];
                self.finish(spec, samples, [1, 1], PixelsMut::U16(pixel))?;
                repeat(pixel, spec.channels_first, out);
            }
            PixelsMut::F32(out) => {
                let pixel = &mut [0; 4][..channels];
                self.finish(spec, samples, [1, 1], PixelsMut::F32(pixel))?;
                repeat(pixel, spec.channels_first, out);
            }
        }
        Ok(())
    }

    /// Computes the mean that contrast needs: of the picture as the operations before leave it.
    fn measure<T: Sample>(&mut self, picture: &Rows<'_, T>) {
        let Some(k) = self.operations.iter().position(|operation| operation.colour == ColourChange::Contrast)
        else {
            return;
        };
        let (before, rest) = self.operations.split_at_mut(k);
        let colours = picture.colours();
        let mut sums = [0; 3];
        for y in 0..picture.height {
            picture.load(y, false, &mut self.planes);
            let planes = &mut self.planes[..colours];
            ColourRow { planes, operations: before }.run_vectors();
            SumRow { planes, sums: &mut sums }.run_vectors();
        }
        let [r, g, b] = sums.map(|sum| sum as f64 / 4096.0);
        let sum = if colours == 1 { r } else { 0.2989 * r + 0.587 * g + 0.114 * b };
        let mean = sum / (picture.height as f64 * picture.width as f64);
        rest[0].rest *= mean as f32;
    }

    /// Stores all rows.
    fn store<T: Sample, N: Number>(
        &mut self,
        picture: &Rows<'_, T>,
        channels_first: bool,
        out: &mut [N::Bits],
    ) {
        let Rows { height, width, channels, numbers, .. } = *picture;
        for y in 0..height {
            picture.load(y, self.mirrored, &mut self.planes);
            let planes = &mut self.planes[..picture.colours()];
            ColourRow { planes, operations: &self.operations }.run_vectors();
            NumberRow { planes: &mut self.planes[..channels], numbers }.run_vectors();
            let planes = &self.planes;
            if channels_first {
                for (plane, out) in planes.iter().zip(out.chunks_exact_mut(height * width)) {
                    StorePlane::<N> { plane, out: &mut out[y * width..][..width] }.run_vectors();
                }
                continue;
            }
            let out = &mut out[y * width * channels..][..width * channels];
            match channels {
                1 => StoreRow::<N, 1> { planes, out: out.as_chunks_mut().0 }.run_vectors(),
                3 => StoreRow::<N, 3> { planes, out: out.as_chunks_mut().0 }.run_vectors(),
                _ => StoreRow::<N, 4> { planes, out: out.as_chunks_mut().0 }.run_vectors(),
            }
        }
    }
}

/// Fills `out` with copies of a pixel.
fn repeat<T: Copy>(pixel: &[T], channels_first: bool, out: &mut [T]) {
    if channels_first {
        let plane = out.len() / pixel.len();
        for (plane, &value) in out.chunks_exact_mut(plane).zip(pixel) {
            plane.fill(value);
        }
    } else {
        for out in out.chunks_exact_mut(pixel.len()) {
            out.copy_from_slice(pixel);
        }
    }
}

/// The rows of a resized picture.
struct Rows<'a, T> {
    pixels: &'a [T],
    height: usize,
    width: usize,
    channels: usize,
    /// Divides samples of 16 bits.
    divisor: Option<f32>,
    numbers: NumberForm,
}

impl<T: Sample> Rows<'_, T> {
    /// Returns the number of channels that are colours.
    fn colours(&self) -> usize {
        if self.channels == 1 { 1 } else { 3 }
    }

    /// Fills planes with a row.
    fn load(&self, y: usize, mirrored: bool, planes: &mut Planes) {
        let divisor = self.divisor;
        let row = &self.pixels[y * self.width * self.channels..][..self.width * self.channels];
        match self.channels {
            1 => LoadRow::<T, 1> { pixels: row.as_chunks().0, mirrored, divisor, planes }.run_vectors(),
            3 => LoadRow::<T, 3> { pixels: row.as_chunks().0, mirrored, divisor, planes }.run_vectors(),
            _ => LoadRow::<T, 4> { pixels: row.as_chunks().0, mirrored, divisor, planes }.run_vectors(),
        }
    }
}
