//! `Decoder`: files to pixels.

use crate::augment::Augmenter;
use crate::crop::Rect;
use crate::error::{ImageError, MOST_PIXELS};
use crate::exif::Orientation;
use crate::format::{DecodeJob, FormatMemory, PictureFile, PictureFormat};
use crate::memory::resize;
use crate::resize::Resizer;
use crate::sample::{PictureMemory, PixelsMut, Sample};
use crate::spec::{Draws, PicturePart, is_float, orientation};
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
/// let e = Decoder::new().decode_into(b"text", &spec, 0, out).unwrap_err();
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
    /// Returns a decoder without memory.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Decodes a picture to `out`, which has the `h * w * c` values of the spec, or the bits of floats. `draw` is
    /// the word of all that is random.
    ///
    /// # Errors
    /// Damage of the file, a spec that contradicts itself, and memory of another length or type.
    pub fn decode_into(
        &mut self,
        file: &[u8],
        spec: &ImageSpec,
        draw: u64,
        out: PixelsMut<'_>,
    ) -> Result<(), ImageError> {
        let draws = Draws { place: draw, colours: draw };
        self.decode_drawn(file, spec, draws, out)
    }

    /// Decodes a picture with these random words.
    pub(crate) fn decode_drawn(
        &mut self,
        file: &[u8],
        spec: &ImageSpec,
        draws: Draws,
        out: PixelsMut<'_>,
    ) -> Result<(), ImageError> {
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
        let picture = open_for(file, spec)?;
        let part = PicturePart::of(&picture, spec, draws)?;
        self.finish(&picture, part, spec, draws, [h, w], out)
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
        let picture = open_for(file, spec)?;
        let draws = Draws { place: draw, colours: draw };
        let part = PicturePart::of(&picture, spec, draws)?;
        let [height, width] =
            spec.size.map_or([part.rect.height, part.rect.width], |size| size.map(|side| side as usize));
        let channels = usize::from(spec.channels);
        let mut pixels = Vec::new();
        resize(&mut pixels, height * width * channels).map_err(|fault| fault.of(""))?;
        self.finish(&picture, part, spec, draws, [height, width], T::pixels(&mut pixels))?;
        Ok(Image { height, width, channels, pixels })
    }

    /// Decodes a part of a picture, and does all that the spec says to its pixels.
    fn finish(
        &mut self,
        picture: &PictureFile<'_>,
        part: PicturePart,
        spec: &ImageSpec,
        draws: Draws,
        size: [usize; 2],
        out: PixelsMut<'_>,
    ) -> Result<(), ImageError> {
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
        }
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
        let PicturePart { rect, stored, orientation } = part;
        let channels = usize::from(spec.channels);
        let found = [rect.height, rect.width];
        let filter = spec.resize.filter(|_| found != size);
        let is_upright = orientation == Orientation::default();
        if is_upright && filter.is_none() {
            return self.pixels(picture, stored, channels, T::pixels(out));
        }
        let format = picture.format.name;
        let values = rect.height * rect.width * channels;
        resize(decoded, values).map_err(|fault| fault.of(format))?;
        self.pixels(picture, stored, channels, T::pixels(decoded))?;
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
        self.resizer.resize(seen, found, out, size, channels, filter).map_err(|fault| fault.of(format))
    }

    /// Decodes the pixels of a rectangle. Floats have the bytes of four channels.
    pub(crate) fn pixels(
        &mut self,
        picture: &PictureFile<'_>,
        rect: Rect,
        channels: usize,
        out: PixelsMut<'_>,
    ) -> Result<(), ImageError> {
        let cancelled = self.cancelled.as_deref();
        let memory = &mut self.memory;
        let declared = picture.declared;
        picture.decode(DecodeJob { rect, channels, declared, strict: self.strict, cancelled, memory }, out)
    }
}

/// Returns the height and the width of a picture, as it is seen.
pub(crate) fn size(file: &[u8], spec: &ImageSpec) -> Result<[usize; 2], ImageError> {
    let picture = open_for(file, spec)?;
    Ok(orientation(&picture, spec).size(picture.header.size))
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
