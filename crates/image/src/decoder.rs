//! `Decoder`: files to pixels.

use crate::augment::{Augmenter, is_mirrored};
use crate::crop::Rect;
use crate::error::{ImageError, MOST_PIXELS};
use crate::exif::Orientation;
use crate::format::{DecodeJob, FormatMemory, PictureFile, PictureFormat};
use crate::memory::resize;
use crate::resize::Resizer;
use crate::sample::{PictureMemory, PixelsMut, Sample};
use crate::spec::{Draws, Geometry, PicturePart, is_float, orientation};
use crate::{bmp, gif, jpeg, png, webp};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tfseek::filter::image_format;
use tfseek::schema::ImageSpec;

/// The formats that are decoded, in the order of messages.
static FORMATS: [PictureFormat; 5] = [jpeg::FORMAT, png::FORMAT, bmp::FORMAT, gif::FORMAT, webp::FORMAT];

/// Pixels of a picture: `height * width * channels` values, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<T> {
    /// Height in pixels.
    pub height: usize,
    /// Width in pixels.
    pub width: usize,
    /// Values per pixel.
    pub channels: usize,
    /// The values.
    pub pixels: Vec<T>,
}

/// A decoder with scratch memory, which it keeps from picture to picture. Each thread has its own.
///
/// ```
/// use tfseek_image::{Decoder, ImageError, ImageSpec, PixelsMut};
///
/// let spec = ImageSpec { size: Some([8, 8]), ..ImageSpec::default() };
/// let mut pixels = [0_u8; 8 * 8 * 3];
/// let out = PixelsMut::U8(&mut pixels);
/// let e = Decoder::default().decode_into(b"text", &spec, 0, out).unwrap_err();
/// assert!(matches!(e, ImageError::Format { found, .. } if found == "a text"));
/// ```
#[derive(Default)]
pub struct Decoder {
    /// Set from another thread, it ends a decoding between the scans of a JPEG, with
    /// [`ImageError::Cancelled`].
    pub cancelled: Option<Arc<AtomicBool>>,
    /// Also refuses a JPEG or a PNG that does not end after its pixels: with data that no pixel has, or
    /// without the mark of its end. That finds most cut and overwritten files. A WebP must have the length that
    /// it states, and of a GIF all frames are decoded. Default: false.
    pub strict: bool,
    memory: FormatMemory,
    bytes: PictureMemory<u8>,
    words: PictureMemory<u16>,
    resizer: Resizer,
    augmenter: Augmenter,
}

impl Decoder {
    /// Decodes a picture to `out`, which has the `h * w * c` values of the spec, or the bits of floats.
    ///
    /// # Errors
    /// Damage of the file, a spec that contradicts itself, and memory of another length or type.
    pub fn decode_into(
        &mut self,
        file: &[u8],
        spec: &ImageSpec,
        draws: impl Into<Draws>,
        out: PixelsMut<'_>,
    ) -> Result<(), ImageError> {
        self.decode_drawn(file, spec, draws.into(), out).map(drop)
    }

    /// Decodes a picture with these random words. Returns its geometry.
    pub(crate) fn decode_drawn(
        &mut self,
        file: &[u8],
        spec: &ImageSpec,
        draws: Draws,
        out: PixelsMut<'_>,
    ) -> Result<Geometry, ImageError> {
        spec.check().map_err(ImageError::of_spec)?;
        let size = spec
            .size
            .ok_or_else(|| ImageError::Spec("size: expected height and width, found none".to_owned()))?;
        let [h, w] = size.map(|side| side as usize);
        let expected = h * w * usize::from(spec.channels);
        let (values, memory) = out.kind();
        if values != expected || memory.size() != spec.dtype.size() {
            let dtype = spec.dtype;
            let bits = memory.size().map_or(0, |bytes| bytes * 8);
            return Err(ImageError::Spec(format!(
                "expected memory for {expected} values of {dtype}, found {values} of {bits} bits"
            )));
        }
        self.finish(file, spec, draws, [h, w], out)
    }

    /// Decodes a picture to new memory, to integers of this type whatever the spec's. Without a size in the spec
    /// the picture has the file's.
    pub fn decode<T: Sample>(
        &mut self,
        file: &[u8],
        spec: &ImageSpec,
        draw: u64,
    ) -> Result<Image<T>, ImageError> {
        spec.check().map_err(ImageError::of_spec)?;
        if is_float(spec) || spec.channels_first {
            return Err(ImageError::Spec("expected integers in the layout hwc".to_owned()));
        }
        let [height, width] = match spec.size {
            Some(sides) => sides.map(|side| side as usize),
            None => picture_size(file, spec)?,
        };
        let draws = Draws::from(draw);
        let channels = usize::from(spec.channels);
        let mut pixels = Vec::new();
        resize(&mut pixels, height * width * channels).map_err(|fault| fault.of(""))?;
        self.finish(file, spec, draws, [height, width], T::pixels(&mut pixels))?;
        Ok(Image { height, width, channels, pixels })
    }

    /// Decodes a part of a picture, and does all that the spec says to its pixels. Returns its geometry.
    fn finish(
        &mut self,
        file: &[u8],
        spec: &ImageSpec,
        draws: Draws,
        size: [usize; 2],
        out: PixelsMut<'_>,
    ) -> Result<Geometry, ImageError> {
        if let Some(value) = spec.missing
            && file.is_empty()
        {
            self.augmenter.fill(spec, value, out).map_err(|fault| fault.of(""))?;
            return Ok(Geometry::default());
        }
        let picture = &open_for(file, spec)?;
        let part = PicturePart::of(picture, spec, draws)?;
        let is_plain = !self.augmenter.begin(spec, draws);
        match out {
            PixelsMut::U16(_) if !is_float(spec) && !spec.jitter.is_empty() => {
                Err(ImageError::Spec("jitter: expected memory of 8 bits, found 16".to_owned()))
            }
            PixelsMut::U8(out) if is_plain => self.with_memory(|this, [decoded, turned, _]| {
                this.resized(picture, part, spec, size, [decoded, turned], out)
            }),
            PixelsMut::U16(out) if is_plain => self.with_memory(|this, [decoded, turned, _]| {
                this.resized(picture, part, spec, size, [decoded, turned], out)
            }),
            PixelsMut::U8(_) => self.augment::<u8>(picture, part, spec, size, out),
            PixelsMut::U16(_) if !is_float(spec) => self.augment::<u16>(picture, part, spec, size, out),
            // Floats have all bits of the file.
            _ if picture.header.wide => self.augment::<u16>(picture, part, spec, size, out),
            _ => self.augment::<u8>(picture, part, spec, size, out),
        }?;
        Ok(part.geometry(self.augmenter.mirrored))
    }

    /// Lends the memory of pixels to `work`. It is moved out, because the decoder is used meanwhile.
    fn with_memory<T: Sample>(
        &mut self,
        work: impl FnOnce(&mut Decoder, &mut PictureMemory<T>) -> Result<(), ImageError>,
    ) -> Result<(), ImageError> {
        let mut memory = std::mem::take(T::memory(&mut self.bytes, &mut self.words));
        let result = work(self, &mut memory);
        *T::memory(&mut self.bytes, &mut self.words) = memory;
        result
    }

    /// Decodes and resizes a part of a picture to samples of `T`, and augments it.
    fn augment<T: Sample>(
        &mut self,
        picture: &PictureFile<'_>,
        part: PicturePart,
        spec: &ImageSpec,
        size: [usize; 2],
        out: PixelsMut<'_>,
    ) -> Result<(), ImageError> {
        let format = picture.format.name;
        let [h, w] = size;
        self.with_memory::<T>(|this, [decoded, turned, pixels]| {
            resize(pixels, h * w * usize::from(spec.channels)).map_err(|fault| fault.of(format))?;
            this.resized(picture, part, spec, size, [decoded, turned], pixels)?;
            this.augmenter.finish(spec, pixels, size, out).map_err(|fault| fault.of(format))
        })
    }

    /// Decodes a part of a picture as it is seen, and resizes it to `size` if it differs.
    fn resized<T: Sample>(
        &mut self,
        picture: &PictureFile<'_>,
        part: PicturePart,
        spec: &ImageSpec,
        size: [usize; 2],
        [decoded, turned]: [&mut Vec<T>; 2],
        out: &mut [T],
    ) -> Result<(), ImageError> {
        let PicturePart { rect, stored, orientation, reduction, sides } = part;
        let channels = usize::from(spec.channels);
        let found = [rect.height, rect.width];
        let filter = spec.resize.filter(|_| found != size);
        let is_upright = orientation == Orientation::default();
        if is_upright && filter.is_none() {
            return self.pixels(picture, stored, reduction, channels, T::pixels(out));
        }
        let format = picture.format.name;
        let values = stored.height * stored.width * channels;
        resize(decoded, values).map_err(|fault| fault.of(format))?;
        self.pixels(picture, stored, reduction, channels, T::pixels(decoded))?;
        let stored = [stored.height, stored.width];
        let Some(filter) = filter else {
            orientation.turn(decoded, stored, channels, out);
            return Ok(());
        };
        let mut seen = decoded;
        if !is_upright {
            resize(turned, values).map_err(|fault| fault.of(format))?;
            orientation.turn(seen, stored, channels, turned);
            seen = turned;
        }
        self.resizer.resize(seen, sides, out, size, channels, filter).map_err(|fault| fault.of(format))
    }

    /// Decodes the pixels of a rectangle of the reduced picture. Floats have the bytes of four channels.
    pub(crate) fn pixels(
        &mut self,
        picture: &PictureFile<'_>,
        rect: Rect,
        reduction: usize,
        channels: usize,
        out: PixelsMut<'_>,
    ) -> Result<(), ImageError> {
        let cancelled = self.cancelled.as_deref();
        let memory = &mut self.memory;
        let declared = picture.declared;
        let strict = self.strict;
        picture.decode(DecodeJob { rect, reduction, channels, declared, strict, cancelled, memory }, out)
    }
}

/// Returns the height and the width of a picture, as it is seen, from the header of its file.
pub(crate) fn picture_size(file: &[u8], spec: &ImageSpec) -> Result<[usize; 2], ImageError> {
    let picture = open_for(file, spec)?;
    Ok(orientation(&picture, spec).size(picture.header.size))
}

/// Returns top, left, height and width of the part of a picture that is used, as it is seen, and 1 if it is
/// mirrored, from the header of its file. A missing picture has zeros.
///
/// # Errors
/// A file that the spec cannot have, and damage of the header.
pub fn picture_geometry(
    file: &[u8],
    spec: &ImageSpec,
    draws: impl Into<Draws>,
) -> Result<Geometry, ImageError> {
    if spec.missing.is_some() && file.is_empty() {
        return Ok(Geometry::default());
    }
    let draws = draws.into();
    let part = PicturePart::of(&open_for(file, spec)?, spec, draws)?;
    Ok(part.geometry(is_mirrored(spec, draws)))
}

/// Reads the header of a file, and refuses what the spec cannot have.
fn open_for<'a>(file: &'a [u8], spec: &ImageSpec) -> Result<PictureFile<'a>, ImageError> {
    let picture = open(file, false)?;
    let [height, width] = picture.header.size;
    if height.checked_mul(width).is_none_or(|pixels| pixels > MOST_PIXELS) {
        return Err(ImageError::TooLarge { frames: None, height, width });
    }
    picture.check_channels(spec.channels.into())?;
    Ok(picture)
}

/// Reads the header of a file of any format. `declared` is true if a data set declares the picture.
pub(crate) fn open(file: &[u8], declared: bool) -> Result<PictureFile<'_>, ImageError> {
    let word = image_format(file);
    let Some(format) = FORMATS.iter().find(|format| word == Some(format.word)) else {
        return Err(other_format(file, word));
    };
    let header = (format.read)(file).map_err(|fault| fault.of(format.name))?;
    Ok(PictureFile { data: file, format, header, declared })
}

/// Returns the error of a file of another format, whose word is the result of [`image_format`].
#[cold]
fn other_format(file: &[u8], word: Option<&str>) -> ImageError {
    let expected = match FORMATS.each_ref().map(|format| format.name).as_slice() {
        [others @ .., last] => format!("a {} or {last} picture", others.join(", ")),
        [] => String::new(),
    };
    let found = match word {
        Some("heif") => "a HEIC".to_owned(),
        Some("jxl") => "a JPEG XL".to_owned(),
        Some(word) => {
            let article = if word.starts_with('a') { "an" } else { "a" };
            format!("{article} {}", word.to_uppercase())
        }
        None => other_bytes(file).to_owned(),
    };
    ImageError::Format { expected, found }
}

/// Returns the kind of bytes that are in place of a picture.
fn other_bytes(file: &[u8]) -> &'static str {
    /// Bytes of a file that are looked at.
    const HEAD: usize = 4096;
    /// The first characters of JPEG, PNG, GIF and WebP in base64.
    const BASE64: [&[u8]; 5] = [b"/9j/", b"_9j_", b"iVBORw0KGgo", b"R0lGOD", b"UklGR"];
    let text = file.trim_ascii();
    let head = &text[..text.len().min(HEAD)];
    let begins = |word: &[u8]| head.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let ends =
        |word: &&[u8]| text.len() > word.len() && text[text.len() - word.len()..].eq_ignore_ascii_case(word);
    if file.is_empty() {
        "no bytes"
    } else if file.iter().all(|byte| *byte == 0) {
        "zeros"
    } else if !head.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
        "other bytes"
    } else if begins(b"<!doctype") || begins(b"<html") {
        "an HTML page"
    } else if begins(b"b'") || begins(b"b\"") {
        "the text of a Python bytes object, as str() writes it"
    } else if begins(b"data:image/") || BASE64.iter().any(|start| head.starts_with(start)) {
        "a picture in base64, which is to be decoded before it is written"
    } else if begins(b"http://") || begins(b"https://") {
        "a URL"
    } else if text.len() <= HEAD
        && [&b".jpg"[..], b".jpeg", b".png", b".gif", b".bmp", b".webp"].iter().any(ends)
    {
        "the path of a file, not its bytes"
    } else {
        "a text"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tfseek::crc::crc32c;
    use tfseek::schema::{Crop, Resize};
    use tfseek_testkit::rng::Rng;

    const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

    fn reduced(file: &[u8], rect: Rect, reduction: usize) -> Vec<u8> {
        let mut pixels = vec![9; rect.height * rect.width * 3];
        let picture = open(file, false).unwrap();
        let out = PixelsMut::U8(&mut pixels);
        Decoder::default().pixels(&picture, rect, reduction, 3, out).unwrap();
        pixels
    }

    /// The checksums are of Pillow's pixels: `tests/data/make.py` writes them.
    #[test]
    fn reduced_jpegs_have_the_pixels_of_libjpeg() {
        let table = include_str!("../tests/data/reduced.tsv");
        let mut rng = Rng::new(1);
        for line in table.lines().skip(1).step_by(if cfg!(miri) { 100 } else { 1 }) {
            let row: Vec<&str> = line.split('\t').collect();
            let file = fs::read(format!("{DATA}/{}", row[0])).unwrap();
            let [reduction, height, width, crc] = [1, 2, 3, 4].map(|k| row[k].parse::<usize>().unwrap());
            let pixels = reduced(&file, Rect { top: 0, left: 0, height, width }, reduction);
            assert_eq!(crc32c(&pixels) as usize, crc, "{line}");
            for _ in 0..if cfg!(miri) { 1 } else { 20 } {
                let [top, left] = [rng.below(height), rng.below(width)];
                let [h, w] = [1 + rng.below(height - top), 1 + rng.below(width - left)];
                let part = reduced(&file, Rect { top, left, height: h, width: w }, reduction);
                for (y, part) in part.chunks(w * 3).enumerate() {
                    let from = ((top + y) * width + left) * 3;
                    assert_eq!(part, &pixels[from..from + w * 3], "{line}: {top} {left} {h} {w}");
                }
            }
        }
        assert_eq!(table.lines().count(), 1 + 41 * 3);
    }

    /// Returns the weights of the pixels of a side of the reduced picture, by their definition. `span` is in
    /// pixels of the file.
    fn weights(
        span: [usize; 2],
        side: usize,
        reduction: usize,
        reversed: bool,
        result: usize,
        filter: Resize,
    ) -> Vec<Vec<f64>> {
        let n = side.div_ceil(reduction);
        let [from, to] = span.map(|pixel| pixel as f64 / reduction as f64);
        let [from, to] = if reversed { [n as f64 - to, n as f64 - from] } else { [from, to] };
        let scale = (to - from) / result as f64;
        let weight = |i: usize, k: usize| {
            let [first, last] = [k as f64, k as f64 + 1.0].map(|end| end.clamp(from, to));
            let begin = from + i as f64 * scale;
            match filter {
                Resize::Bilinear => {
                    let away = first.midpoint(last) - (begin + scale / 2.0);
                    (last - first) * (1.0 - away.abs() / scale).max(0.0)
                }
                Resize::Area => (last.min(begin + scale) - first.max(begin)).max(0.0),
            }
        };
        let row = |i: usize| {
            let sum: f64 = (0..n).map(|k| weight(i, k)).sum();
            (0..n).map(|k| weight(i, k) / sum).collect()
        };
        (0..result).map(row).collect()
    }

    /// Decodes a picture and compares it with the weighted sums of its reduced one. Returns the reduction.
    fn compare(file: &[u8], spec: &ImageSpec, orientation: Orientation, number: u8, draw: u64) -> usize {
        let picture = open(file, false).unwrap();
        let draws = Draws { place: draw, colours: draw };
        let Rect { top, left, height, width } = PicturePart::of(&picture, spec, draws).unwrap().rect;
        let [h, w] = spec.size.unwrap().map(|side| side as usize);
        let most = [height / h, width / w].into_iter().min().unwrap();
        let reduction = [1, 2, 4, 8].into_iter().filter(|d| *d == 1 || *d <= most).max().unwrap();
        let found = Decoder::default().decode::<u8>(file, spec, draw).unwrap().pixels;
        if reduction == 1 {
            let spec = ImageSpec { scaled: false, ..spec.clone() };
            assert_eq!(found, Decoder::default().decode::<u8>(file, &spec, draw).unwrap().pixels);
            return 1;
        }
        let size = picture.header.size;
        let [rows, columns] = size.map(|side| side.div_ceil(reduction));
        let stored = reduced(file, Rect { top: 0, left: 0, height: rows, width: columns }, reduction);
        let mut seen = vec![0; stored.len()];
        orientation.turn(&stored, [rows, columns], 3, &mut seen);
        let filter = spec.resize.unwrap();
        let sides = orientation.size(size);
        // By the numbers of EXIF: the orientations whose first seen row or column is the last stored one.
        let [down, across] = [[3, 4, 7, 8], [2, 3, 6, 7]].map(|all: [u8; 4]| all.contains(&number));
        let stored_span = |start: usize, len: usize, side: usize, reversed: bool| {
            if reversed { [side - start - len, side - start] } else { [start, start + len] }
        };
        let down = weights(stored_span(top, height, sides[0], down), sides[0], reduction, down, h, filter);
        let across =
            weights(stored_span(left, width, sides[1], across), sides[1], reduction, across, w, filter);
        let columns = across[0].len();
        for (at, found) in found.iter().enumerate() {
            let [y, x, c] = [at / 3 / w, at / 3 % w, at % 3];
            let row = |k: usize| -> f64 {
                let values = across[x].iter().enumerate();
                values.map(|(l, weight)| weight * f64::from(seen[(k * columns + l) * 3 + c])).sum()
            };
            let want: f64 = down[y].iter().enumerate().map(|(k, weight)| weight * row(k)).sum();
            let off = (f64::from(*found) - want).abs();
            assert!(off < 0.52, "{number} {spec:?} {draw}: {off} from {want}");
        }
        reduction
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn scaled_pictures_are_the_resized_part_of_the_reduced_ones() {
        let mut rng = Rng::new(2);
        let mut reductions = [0; 9];
        for round in 0..800 {
            let name =
                rng.pick(&["yuv420", "yuv422-progressive", "restart-rows", "restart-many", "optimized"]);
            let mut file = fs::read(format!("{DATA}/{name}.jpg")).unwrap();
            let number = 1 + (round % 8) as u8;
            let exif = [&b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..], &[number], b"\0\0\0\0\0\0"];
            let exif = exif.concat();
            let segment = [b"\xff\xe1\0\x22Exif\0\0", &exif[..]].concat();
            file.splice(2..2, segment);
            let crop = rng.pick(&[None, Some(Crop::Center), Some(Crop::RandomResized)]);
            let spec = ImageSpec {
                size: Some([1 + rng.below(6) as u32, 1 + rng.below(6) as u32]),
                resize: Some(rng.pick(&[Resize::Bilinear, Resize::Area])),
                crop,
                fraction: if crop == Some(Crop::Center) { rng.pick(&[1.0, 0.7]) } else { 1.0 },
                exif: true,
                scaled: true,
                ..ImageSpec::default()
            };
            reductions[compare(&file, &spec, Orientation::of_exif(&exif), number, rng.u64())] += 1;
        }
        assert!([1, 2, 4, 8].into_iter().all(|d| reductions[d] > 20), "{reductions:?}");
    }
}
