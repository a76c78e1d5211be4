//! `Decoder`: files to pixels.

use crate::crop::Rect;
use crate::error::{ImageError, MOST_PIXELS};
use crate::format::{DecodeJob, FormatMemory, PictureFile, PictureFormat};
use crate::memory::resize;
use crate::resize::Resizer;
use crate::sample::{PixelsMut, Sample};
use crate::{bmp, gif, jpeg, png};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tfseek::filter::image_format;
use tfseek::schema::ImageSpec;

/// The formats that are decoded, in the order of messages.
static FORMATS: [PictureFormat; 4] = [jpeg::FORMAT, png::FORMAT, bmp::FORMAT, gif::FORMAT];

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
/// use tfseek_image::{Decoder, ImageError, ImageSpec};
///
/// let spec = ImageSpec { size: Some([8, 8]), ..ImageSpec::default() };
/// let mut pixels = [0_u8; 8 * 8 * 3];
/// let e = Decoder::new().decode_into(b"GIF89a", &spec, 0, &mut pixels).unwrap_err();
/// assert!(matches!(e, ImageError::Format { found, .. } if found == "a GIF"));
/// ```
#[derive(Default)]
pub struct Decoder {
    /// Set from another thread, it ends a decoding between the scans of a JPEG, with
    /// [`ImageError::Cancelled`].
    pub cancelled: Option<Arc<AtomicBool>>,
    /// Also refuses a JPEG or a PNG that does not end after its pixels: with data that no pixel has, or
    /// without the mark of its end. That finds most cut and overwritten files. Default: false.
    pub strict: bool,
    memory: FormatMemory,
    /// Pixels of 16 bits that are resized.
    words: Vec<u16>,
    resizer: Resizer,
}

impl Decoder {
    /// Returns a decoder without memory.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Decodes a picture to `out`, which has the `h * w * c` values of the spec. `draw` selects the rectangle
    /// of a random crop.
    pub fn decode_into<T: Sample>(
        &mut self,
        file: &[u8],
        spec: &ImageSpec,
        draw: u64,
        out: &mut [T],
    ) -> Result<(), ImageError> {
        spec.check().map_err(ImageError::of_spec)?;
        let size = spec
            .size
            .ok_or_else(|| ImageError::Spec("size: expected height and width, found none".to_owned()))?;
        let [h, w] = size.map(|side| side as usize);
        let values = h * w * usize::from(spec.channels);
        if out.len() != values {
            return Err(ImageError::Spec(format!(
                "expected memory for {values} values, found {}",
                out.len()
            )));
        }
        let picture = open_for(file, spec)?;
        let rect = crate::spec::rect(spec, picture.header.size, draw)?;
        self.finish(&picture, rect, spec, [h, w], out)
    }

    /// Decodes a picture to new memory. Without a size in the spec the picture has the file's.
    pub fn decode<T: Sample>(
        &mut self,
        file: &[u8],
        spec: &ImageSpec,
        draw: u64,
    ) -> Result<Image<T>, ImageError> {
        spec.check().map_err(ImageError::of_spec)?;
        let picture = open_for(file, spec)?;
        let rect = crate::spec::rect(spec, picture.header.size, draw)?;
        let [height, width] =
            spec.size.map_or([rect.height, rect.width], |size| size.map(|side| side as usize));
        let channels = usize::from(spec.channels);
        let mut pixels = Vec::new();
        resize(&mut pixels, height * width * channels).map_err(|fault| fault.of(""))?;
        self.finish(&picture, rect, spec, [height, width], &mut pixels)?;
        Ok(Image { height, width, channels, pixels })
    }

    /// Decodes the pixels of a rectangle, and resizes them to `size` if it differs.
    fn finish<T: Sample>(
        &mut self,
        picture: &PictureFile<'_>,
        rect: Rect,
        spec: &ImageSpec,
        size: [usize; 2],
        out: &mut [T],
    ) -> Result<(), ImageError> {
        let channels = usize::from(spec.channels);
        let found = [rect.height, rect.width];
        let Some(filter) = spec.resize.filter(|_| found != size) else {
            return self.pixels(picture, rect, channels, T::pixels(out));
        };
        let format = picture.format.name;
        // The scratch memory is moved out, because the decoder is used meanwhile.
        let mut pixels = std::mem::take(T::scratch(&mut self.memory.bytes, &mut self.words));
        let result = resize(&mut pixels, rect.height * rect.width * channels)
            .map_err(|fault| fault.of(format))
            .and_then(|()| self.pixels(picture, rect, channels, T::pixels(&mut pixels)))
            .and_then(|()| {
                let resized = self.resizer.resize(&pixels, found, out, size, channels, filter);
                resized.map_err(|fault| fault.of(format))
            });
        *T::scratch(&mut self.memory.bytes, &mut self.words) = pixels;
        result
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
        picture.decode(DecodeJob { rect, channels, strict: self.strict, cancelled, memory }, out)
    }
}

/// Returns the height and the width of a picture.
pub(crate) fn size(file: &[u8], spec: &ImageSpec) -> Result<[usize; 2], ImageError> {
    Ok(open_for(file, spec)?.header.size)
}

/// Reads the header of a file, and refuses what the spec cannot have.
fn open_for<'a>(file: &'a [u8], spec: &ImageSpec) -> Result<PictureFile<'a>, ImageError> {
    let picture = open(file, true)?;
    let [height, width] = picture.header.size;
    if height.checked_mul(width).is_none_or(|pixels| pixels > MOST_PIXELS) {
        return Err(ImageError::TooLarge { frames: None, height, width });
    }
    picture.check_channels(spec.channels.into())?;
    Ok(picture)
}

/// Reads the header of a file of any format, or of one that has crops.
pub(crate) fn open(file: &[u8], crops: bool) -> Result<PictureFile<'_>, ImageError> {
    let word = image_format(file);
    let Some(format) = formats(crops).find(|format| word == Some(format.word)) else {
        return Err(other_format(file, word, crops));
    };
    let header = (format.read)(file).map_err(|fault| fault.of(format.name))?;
    Ok(PictureFile { data: file, format, header })
}

/// Returns all formats, or those that have crops.
fn formats(crops: bool) -> impl Iterator<Item = &'static PictureFormat> {
    FORMATS.iter().filter(move |format| format.has_crops || !crops)
}

/// Returns the error of a file of another format, whose word is the result of [`image_format`].
#[cold]
fn other_format(file: &[u8], word: Option<&str>, crops: bool) -> ImageError {
    let names: Vec<&str> = formats(crops).map(|format| format.name).collect();
    let expected = match names.as_slice() {
        [others @ .., last] => format!("a {} or {last} picture", others.join(", ")),
        [] => String::new(),
    };
    let found = match word {
        Some("webp") => "a WebP".to_owned(),
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
