//! `Decoder`: files to pixels.

use crate::crop::Rect;
use crate::error::{ImageError, MOST_PIXELS};
use crate::jpeg::{Header, Jpeg};
use crate::memory::resize;
use crate::png;
use crate::resize::Resizer;
use crate::sample::Sample;
use crate::sample::sealed::Scratch;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tfseek::filter::image_format;
use tfseek::schema::ImageSpec;

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
/// assert_eq!(e, ImageError::Format { expected: "a JPEG or PNG picture", found: "a GIF" });
/// ```
#[derive(Default)]
pub struct Decoder {
    /// Set from another thread, it ends a decoding between the scans of a JPEG, with
    /// [`ImageError::Cancelled`].
    pub cancelled: Option<Arc<AtomicBool>>,
    /// Also refuses a JPEG or a PNG that does not end after its pixels: with data that no pixel has, or
    /// without the mark of its end. That finds most cut and overwritten files. Default: false.
    pub strict: bool,
    jpeg: Jpeg,
    /// Pixels as they are in a file.
    pub(crate) frame: Vec<u8>,
    /// Pixels before a resize, or the bytes of floats.
    pub(crate) scratch: Scratch,
    resizer: Resizer,
}

/// The header of a JPEG or a PNG.
pub(crate) enum Opened {
    Jpeg(Box<Header>),
    Png([usize; 2]),
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
        let opened = open_for(file, spec)?;
        let rect = crate::spec::rect(spec, opened.size(), draw)?;
        self.finish(file, opened, rect, spec, [h, w], out)
    }

    /// Decodes a picture to new memory. Without a size in the spec the picture has the file's.
    pub fn decode<T: Sample>(
        &mut self,
        file: &[u8],
        spec: &ImageSpec,
        draw: u64,
    ) -> Result<Image<T>, ImageError> {
        spec.check().map_err(ImageError::of_spec)?;
        let opened = open_for(file, spec)?;
        let rect = crate::spec::rect(spec, opened.size(), draw)?;
        let [height, width] =
            spec.size.map_or([rect.height, rect.width], |size| size.map(|side| side as usize));
        let channels = usize::from(spec.channels);
        let mut pixels = Vec::new();
        resize(&mut pixels, height * width * channels).map_err(|fault| fault.of(""))?;
        self.finish(file, opened, rect, spec, [height, width], &mut pixels)?;
        Ok(Image { height, width, channels, pixels })
    }

    /// Decodes the pixels of a rectangle, and resizes them to `size` if it differs.
    fn finish<T: Sample>(
        &mut self,
        file: &[u8],
        opened: Opened,
        rect: Rect,
        spec: &ImageSpec,
        size: [usize; 2],
        out: &mut [T],
    ) -> Result<(), ImageError> {
        let channels = usize::from(spec.channels);
        let format = opened.format();
        let found = [rect.height, rect.width];
        let Some(filter) = spec.resize.filter(|_| found != size) else {
            return self.pixels(file, opened, rect, channels, out);
        };
        // The scratch memory is moved out, because the decoder is used meanwhile.
        let mut pixels = std::mem::take(T::scratch(&mut self.scratch));
        let result = resize(&mut pixels, rect.height * rect.width * channels)
            .map_err(|fault| fault.of(format))
            .and_then(|()| self.pixels(file, opened, rect, channels, &mut pixels))
            .and_then(|()| {
                let resized = self.resizer.resize(&pixels, found, out, size, channels, filter);
                resized.map_err(|fault| fault.of(format))
            });
        *T::scratch(&mut self.scratch) = pixels;
        result
    }

    /// Decodes the pixels of a rectangle.
    pub(crate) fn pixels<T: Sample>(
        &mut self,
        file: &[u8],
        opened: Opened,
        rect: Rect,
        channels: usize,
        out: &mut [T],
    ) -> Result<(), ImageError> {
        let format = opened.format();
        self.jpeg.cancelled.clone_from(&self.cancelled);
        self.jpeg.strict = self.strict;
        match opened {
            Opened::Png(_) => png::decode(file, rect, channels, &mut self.frame, out, self.strict),
            Opened::Jpeg(header) => {
                let decoded = match T::as_bytes(out) {
                    Some(out) => self.jpeg.decode(file, *header, rect, channels, out),
                    None => resize(&mut self.frame, out.len()).and_then(|()| {
                        self.jpeg.decode(file, *header, rect, channels, &mut self.frame)?;
                        T::of_bytes(&self.frame[..out.len()], 256, out);
                        Ok(())
                    }),
                };
                decoded.map_err(|fault| fault.of(format))
            }
        }
    }
}

impl Opened {
    fn format(&self) -> &'static str {
        match self {
            Opened::Jpeg(_) => "JPEG",
            Opened::Png(_) => "PNG",
        }
    }

    pub(crate) fn size(&self) -> [usize; 2] {
        match self {
            Opened::Jpeg(header) => header.size(),
            Opened::Png(size) => *size,
        }
    }

    /// Returns the channels of `file`: those that TensorFlow decodes without a wish.
    pub(crate) fn channels(&self, file: &[u8]) -> usize {
        match self {
            Opened::Jpeg(header) => header.channels(),
            Opened::Png(_) => png::channels(file),
        }
    }

    /// Refuses channels that a file does not have.
    pub(crate) fn check_channels(&self, channels: usize) -> Result<(), ImageError> {
        match self {
            Opened::Jpeg(_) if channels == 4 => {
                Err(ImageError::Unsupported { what: "4 channels of a JPEG, which has no alpha" })
            }
            Opened::Jpeg(header) if header.is_cmyk() && channels == 1 => {
                Err(ImageError::Unsupported { what: "1 channel of a JPEG in CMYK" })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the height and the width of a picture.
pub(crate) fn size(file: &[u8], spec: &ImageSpec) -> Result<[usize; 2], ImageError> {
    Ok(open_for(file, spec)?.size())
}

/// Reads the header of a file, and refuses what the spec cannot have.
fn open_for(file: &[u8], spec: &ImageSpec) -> Result<Opened, ImageError> {
    let opened = open(file, "a JPEG or PNG picture")?;
    let [height, width] = opened.size();
    if height.checked_mul(width).is_none_or(|pixels| pixels > MOST_PIXELS) {
        return Err(ImageError::TooLarge { frames: None, height, width });
    }
    opened.check_channels(spec.channels.into())?;
    Ok(opened)
}

/// Reads the header of a JPEG or a PNG. Its first bytes tell the format. `expected` is for the error of
/// another one.
pub(crate) fn open(file: &[u8], expected: &'static str) -> Result<Opened, ImageError> {
    match image_format(file) {
        Some("jpeg") => Ok(Opened::Jpeg(Box::new(Header::read(file).map_err(|fault| fault.of("JPEG"))?))),
        Some("png") => Ok(Opened::Png(png::size(file).map_err(|fault| fault.of(png::FORMAT))?)),
        format => Err(ImageError::Format { expected, found: other_format(file, format) }),
    }
}

/// Returns what bytes are that are no JPEG and no PNG.
#[cold]
fn other_format(file: &[u8], format: Option<&str>) -> &'static str {
    match format {
        Some("gif") => "a GIF",
        Some("bmp") => "a BMP",
        Some("webp") => "a WebP",
        Some("tiff") => "a TIFF",
        Some("heif") => "a HEIC",
        Some("avif") => "an AVIF",
        Some("jxl") => "a JPEG XL",
        Some("qoi") => "a QOI",
        _ if file.is_empty() => "no bytes",
        _ if file.iter().all(|byte| *byte == 0) => "zeros",
        _ => other_text(file),
    }
}

/// Returns what a text is that is in place of a picture.
fn other_text(file: &[u8]) -> &'static str {
    /// Bytes of a file that are looked at.
    const HEAD: usize = 4096;
    /// The first characters of JPEG, PNG, GIF and WebP in base64.
    const BASE64: [&[u8]; 5] = [b"/9j/", b"_9j_", b"iVBORw0KGgo", b"R0lGOD", b"UklGR"];
    let text = file.trim_ascii();
    let head = &text[..text.len().min(HEAD)];
    let begins = |word: &[u8]| head.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let ends =
        |word: &&[u8]| text.len() > word.len() && text[text.len() - word.len()..].eq_ignore_ascii_case(word);
    if !head.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
        return "other bytes";
    }
    if begins(b"<!doctype") || begins(b"<html") {
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
