//! Pixels of pictures, by the crate of pictures if it is there.

use crate::array::Numbers;
use crate::compile::Leaf;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tfseek::Result;
use tfseek::batch::BytesColumn;
use tfseek::crc::crc32c;
use tfseek::schema::{Crop, ImageSpec};

#[cfg(feature = "image")]
use crate::{array::NumberBits, error::wrong};
#[cfg(feature = "image")]
use std::sync::{Mutex, PoisonError};
#[cfg(feature = "image")]
use tfseek_image::{Decoder, Draws, PictureForm, PixelsMut, picture_geometry};

/// Decoders of pictures, for the threads that read. Each call takes one that is free, or makes one.
#[derive(Default)]
pub(crate) struct PictureDecoders {
    #[cfg(feature = "image")]
    free: Mutex<Vec<Decoder>>,
}

/// The decoders for work that another thread may cancel.
#[derive(Clone, Copy)]
pub(crate) struct PictureWork<'a> {
    #[cfg_attr(not(feature = "image"), expect(dead_code, reason = "nothing is decoded"))]
    pub(crate) decoders: &'a PictureDecoders,
    pub(crate) cancelled: Option<&'a Arc<AtomicBool>>,
    /// The row of the picture, and the random word of a row and a name.
    pub(crate) row: usize,
    pub(crate) draw: &'a dyn Fn(usize, &str) -> u64,
}

impl PictureWork<'_> {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }

    /// Returns the random words of the picture of the leaf `path`, for the place and for the colours.
    fn words(self, image: &ImageSpec, path: &str) -> [u64; 2] {
        let colours = (self.draw)(self.row, path);
        let place = image.crop_with.as_deref().map_or(colours, |name| (self.draw)(self.row, name));
        [place, colours]
    }

    /// Returns the random words that the pixels of a leaf depend on.
    fn used_words(self, leaf: &Leaf) -> [Option<u64>; 2] {
        let Some(image) = &leaf.image else { return [None; 2] };
        let [place, colours] = self.words(image, &leaf.path);
        let is_placed = image.crop == Some(Crop::RandomResized) || image.flip > 0.0;
        [is_placed.then_some(place), (!image.jitter.is_empty()).then_some(colours)]
    }

    /// Returns for each picture the number of the first one with the same file and random words. Windows have
    /// frames twice in their padding, and where they overlap. `row` returns the row of a picture.
    pub(crate) fn first_alike(
        self,
        leaf: &Leaf,
        files: &BytesColumn,
        row: impl Fn(usize) -> usize,
    ) -> Vec<usize> {
        let mut firsts = HashMap::new();
        let first = |(k, file): (usize, &[u8])| {
            let words = PictureWork { row: row(k), ..self }.used_words(leaf);
            let first = *firsts.entry((crc32c(file), words)).or_insert(k);
            if files.get(first) == Some(file) { first } else { k }
        };
        files.iter().enumerate().map(first).collect()
    }
}

#[cfg(not(feature = "image"))]
impl PictureWork<'_> {
    /// No plan has a picture that is decoded.
    pub(crate) fn decode(self, _leaf: &Leaf, _file: &[u8], _out: &mut Numbers) -> Result<Vec<usize>> {
        Ok(Vec::new())
    }

    pub(crate) fn geometry(self, _: &ImageSpec, _: &str, _: &[u8], _: &mut Numbers) -> Result<Vec<usize>> {
        Ok(Vec::new())
    }
}

#[cfg(feature = "image")]
impl PictureWork<'_> {
    /// Decodes a picture to the end of `out`, and returns its shape.
    pub(crate) fn decode(self, leaf: &Leaf, file: &[u8], out: &mut Numbers) -> Result<Vec<usize>> {
        if let Some(image) = &leaf.image {
            return self.made(leaf, image, file, out);
        }
        let form = form(leaf)?;
        let shape = form.shape(file)?;
        let values = shape.values();
        self.with_decoder(|decoder| match &mut out.bits {
            NumberBits::Bits8(pixels) => {
                grown(pixels, values, |to| decoder.decode_to(file, &form, PixelsMut::U8(to)))
            }
            NumberBits::Bits16(pixels) => {
                grown(pixels, values, |to| decoder.decode_to(file, &form, PixelsMut::U16(to)))
            }
            NumberBits::Float32(pixels) => grown(pixels, values, |to| {
                decoder.decode_to(file, &form, PixelsMut::F32(bytemuck::cast_slice_mut(to)))
            }),
            _ => Err(wrong("expected a picture of uint8, uint16 or float32")),
        })?;
        let sizes = [shape.height, shape.width, shape.channels];
        Ok(shape.frames.into_iter().chain(sizes).collect())
    }

    /// Makes a picture as a spec says, to the end of `out`, and returns its shape.
    fn made(self, leaf: &Leaf, image: &ImageSpec, file: &[u8], out: &mut Numbers) -> Result<Vec<usize>> {
        let of_file;
        let (image, [h, w]) = match image.size {
            Some(size) => (image, size),
            None => {
                let [_, _, height, width, _] = picture_geometry(file, image, 0)?;
                let [h, w] = [height, width].map(|side| side as usize);
                let found = [h, w].map(Some);
                if leaf.shape().iter().zip(found).any(|(stated, found)| stated.is_some() && *stated != found)
                {
                    let feature = &leaf.feature;
                    return Err(wrong(format!("expected {feature}, found a picture of {h} x {w}")));
                }
                let size = [h, w].map(|side| side as u32);
                of_file = ImageSpec { size: Some(size), resize: None, ..image.clone() };
                (&of_file, size)
            }
        };
        let [h, w] = [h, w].map(|side| side as usize);
        let channels = usize::from(image.channels);
        let draws = self.draws(image, &leaf.path);
        let values = h * w * channels;
        self.with_decoder(|decoder| {
            let mut decode = |to: PixelsMut<'_>| decoder.decode_into(file, image, draws, to);
            match &mut out.bits {
                NumberBits::Bits8(pixels) => grown(pixels, values, |to| decode(PixelsMut::U8(to))),
                NumberBits::Bits16(pixels) => grown(pixels, values, |to| decode(PixelsMut::U16(to))),
                NumberBits::Float32(pixels) => {
                    grown(pixels, values, |to| decode(PixelsMut::F32(bytemuck::cast_slice_mut(to))))
                }
                _ => Err(wrong("expected a picture of 8, 16 or 32 bits")),
            }
        })?;
        let [a, b, c] = if image.channels_first { [channels, h, w] } else { [h, w, channels] };
        Ok(vec![a, b, c])
    }

    /// Appends the geometry of the picture of the leaf `path`, and returns its shape.
    pub(crate) fn geometry(
        self,
        image: &ImageSpec,
        path: &str,
        file: &[u8],
        out: &mut Numbers,
    ) -> Result<Vec<usize>> {
        let geometry = picture_geometry(file, image, self.draws(image, path))?;
        out.push_bytes(bytemuck::cast_slice(&geometry.map(u32::to_le_bytes)))?;
        Ok(vec![geometry.len()])
    }

    fn draws(self, image: &ImageSpec, path: &str) -> Draws {
        let [place, colours] = self.words(image, path);
        Draws { place, colours }
    }

    /// Calls `decode` with a decoder that no other thread uses.
    fn with_decoder(self, decode: impl FnOnce(&mut Decoder) -> Result<()>) -> Result<()> {
        let free = || self.decoders.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut decoder = free().pop().unwrap_or_default();
        decoder.cancelled = self.cancelled.cloned();
        let decoded = decode(&mut decoder);
        free().push(decoder);
        decoded
    }
}

/// Appends values and fills them.
#[cfg(feature = "image")]
fn grown<T: Copy + Default>(
    pixels: &mut Vec<T>,
    values: usize,
    fill: impl FnOnce(&mut [T]) -> std::result::Result<(), tfseek_image::ImageError>,
) -> Result<()> {
    let start = pixels.len();
    pixels.try_reserve(values)?;
    pixels.resize(start + values, T::default());
    let (_, to) = pixels.split_at_mut(start);
    Ok(fill(to)?)
}

/// Returns the form of the pictures of a leaf.
#[cfg(feature = "image")]
fn form(leaf: &Leaf) -> Result<PictureForm> {
    let too_large = || wrong(format!("expected pictures of fewer pixels, found {}", leaf.feature));
    let side = |size: Option<usize>| size.map(u32::try_from).transpose().map_err(|_| too_large());
    let (frames, [height, width, channels]) = match *leaf.shape() {
        [height, width, channels] => (None, [height, width, channels]),
        [frames, height, width, channels] => (Some(side(frames)?), [height, width, channels]),
        _ => return Err(wrong(format!("expected a picture, found {}", leaf.feature))),
    };
    let channels = channels.map(u8::try_from).transpose().map_err(|_| too_large())?;
    let height = side(height)?;
    let width = side(width)?;
    Ok(PictureForm { frames, height, width, channels, dtype: leaf.feature.dtype })
}
