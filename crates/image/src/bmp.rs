//! BMP of 8, 24 and 32 bits without compression.

use crate::error::{ImageError, PictureFault};
use crate::format::{DecodeJob, PictureFormat, PictureHeader, convert};

pub(crate) const FORMAT: PictureFormat =
    PictureFormat { name: "BMP", word: "bmp", byte_factor: 257, read, decode, decode_words: None };

/// A file whose pixels are complete.
struct Bmp<'a> {
    height: usize,
    width: usize,
    /// Bytes per pixel: 1, 3 or 4.
    channels: usize,
    /// True if the first row is the one at the top.
    top_down: bool,
    /// Blue, green and red of each colour, and a byte more, for pixels of 8 bits. Without it these are grey.
    palette: &'a [[u8; 4]],
    /// The rows. Each has a multiple of four bytes.
    rows: &'a [u8],
    stride: usize,
}

/// The bits of red, green and blue of a pixel, if the bytes are blue, green, red, alpha.
const MASKS: [u32; 3] = [0x00ff_0000, 0x0000_ff00, 0x0000_00ff];

impl<'a> Bmp<'a> {
    /// Reads the header.
    fn read(data: &'a [u8]) -> Result<Bmp<'a>, PictureFault> {
        let number = |at: usize| match data.get(at..at + 4) {
            Some(&[a, b, c, d]) => Ok(u32::from_le_bytes([a, b, c, d])),
            _ => Err(PictureFault::Truncated),
        };
        let offset = number(10)?;
        let header = number(14)?;
        if header < 40 {
            return Err(PictureFault::Unsupported("BMP with a header of OS/2"));
        }
        let width = number(18)?.cast_signed();
        let height = number(22)?.cast_signed();
        let bits = number(26)? >> 16;
        let compression = number(30)?;
        let channels = match bits {
            8 => 1,
            24 => 3,
            32 => 4,
            _ => return Err(PictureFault::Unsupported("BMP of other than 8, 24 and 32 bits")),
        };
        match compression {
            0 => {}
            3 | 6 if bits == 32 => {
                if [number(54)?, number(58)?, number(62)?] != MASKS {
                    return Err(PictureFault::Unsupported("BMP with other masks of colours"));
                }
            }
            _ => return Err(PictureFault::Unsupported("BMP with compression")),
        }
        if width <= 0 || height == 0 {
            return Err(PictureFault::Corrupt("size"));
        }
        if header.checked_add(14).is_none_or(|end| end > offset) {
            return Err(PictureFault::Corrupt("offset of the pixels"));
        }
        let top_down = height < 0;
        let height = height.unsigned_abs() as usize;
        let width = width.unsigned_abs() as usize;
        let stride = width.checked_mul(channels).and_then(|bytes| bytes.checked_next_multiple_of(4));
        let bytes = stride.and_then(|stride| stride.checked_mul(height));
        let rows = data.get(offset as usize..).zip(bytes).and_then(|(rows, bytes)| rows.get(..bytes));
        let (Some(stride), Some(rows)) = (stride, rows) else { return Err(PictureFault::Truncated) };
        let colours = data.get(14 + header as usize..offset as usize).unwrap_or_default().as_chunks().0;
        let most = match number(46)? as usize {
            most @ 1..256 => most,
            _ => 256,
        };
        let palette = if channels == 1 { &colours[..most.min(colours.len())] } else { &[] };
        Ok(Bmp { height, width, channels, top_down, palette, rows, stride })
    }
}

fn read(data: &[u8]) -> Result<PictureHeader, PictureFault> {
    let Bmp { height, width, channels, .. } = Bmp::read(data)?;
    Ok(PictureHeader { size: [height, width], channels, ..PictureHeader::default() })
}

fn decode(data: &[u8], job: DecodeJob<'_>, out: &mut [u8]) -> Result<(), ImageError> {
    let bmp = Bmp::read(data).map_err(|fault| fault.of(FORMAT.name))?;
    let DecodeJob { rect, channels, declared, .. } = job;
    // A declared picture has the numbers of its colours, as in TensorFlow.
    let palette = if declared { &[] } else { bmp.palette };
    // Also outside of the rectangle, so that a file is refused or not whatever its crop is. 256 colours have all
    // numbers.
    let is_unknown = |&number: &u8| usize::from(number) >= palette.len();
    let mut rows = bmp.rows.chunks_exact(bmp.stride);
    if (1..256).contains(&palette.len()) && rows.any(|row| row[..bmp.width].iter().any(is_unknown)) {
        return Err(PictureFault::Corrupt("number of a colour").of(FORMAT.name));
    }
    let sample =
        |pixel: &[u8], k: usize| u32::from(if k < 3 && pixel.len() > 1 { pixel[2 - k] } else { pixel[k] });
    for (out, y) in out.chunks_exact_mut(rect.width * channels).zip(rect.top..) {
        let y = if bmp.top_down { y } else { bmp.height - 1 - y };
        let row = &bmp.rows[y * bmp.stride + rect.left * bmp.channels..][..rect.width * bmp.channels];
        if palette.is_empty() {
            convert(row.chunks_exact(bmp.channels), channels, out, sample, false);
        } else {
            let colours = row.iter().map(|&number| &palette[usize::from(number)][..3]);
            convert(colours, channels, out, sample, false);
        }
    }
    Ok(())
}
