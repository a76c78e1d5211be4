//! GIF: blocks and frames. The codes of the pixels are decoded by the crate `weezl`.
//!
//! Frames are as in TensorFlow: the canvas is as large as the largest frame, black at first, and each frame
//! is painted over the one before, whatever is to happen with that. The size of the screen and times are not
//! used. Where no frame has painted, alpha is 0.

use crate::error::{ImageError, MOST_PIXELS, PictureFault};
use crate::format::{DecodeJob, PictureFormat, PictureHeader, store_bytes};
use crate::memory::resize;
use weezl::{BitOrder, LzwStatus, decode::Decoder};

pub(crate) const FORMAT: PictureFormat =
    PictureFormat { name: "GIF", word: "gif", byte_factor: 257, read, decode, decode_words: None };

/// The most pixels that a byte of codes has. A code of 12 bits, the longest, has at most 4096.
const MOST_PER_BYTE: usize = 4096 * 8 / 12 + 1;

/// A file whose blocks are complete.
struct Gif<'a> {
    frames: usize,
    height: usize,
    width: usize,
    blocks: GifBlocks<'a>,
}

impl<'a> Gif<'a> {
    /// Reads the blocks without the pixels. Frames that have too few bytes for their pixels are an error here
    /// already.
    fn read(data: &'a [u8]) -> Result<Gif<'a>, PictureFault> {
        let mut blocks = GifBlocks::read(data)?;
        let mut gif = Gif { frames: 0, height: 0, width: 0, blocks };
        while let Some(frame) = blocks.next()? {
            let bytes: usize = frame.codes().map(<[u8]>::len).sum();
            let pixels = frame.height * frame.width;
            if pixels <= MOST_PIXELS && pixels.div_ceil(MOST_PER_BYTE) > bytes {
                return Err(PictureFault::Truncated);
            }
            gif.frames += 1;
            gif.height = gif.height.max(frame.height);
            gif.width = gif.width.max(frame.width);
        }
        if gif.frames == 0 { Err(PictureFault::Corrupt("file without a frame")) } else { Ok(gif) }
    }

    /// Writes the pixels of a rectangle to `out`, in as many frames as it has room for. The frames after them
    /// are decoded only if the job is strict.
    fn paint(&self, job: DecodeJob<'_>, out: &mut [u8]) -> Result<(), PictureFault> {
        let DecodeJob { rect, channels, strict, memory, .. } = job;
        let pixels = self.height * self.width;
        resize(&mut memory.frame, 5 * pixels)?;
        let (canvas, numbers) = memory.frame.split_at_mut(4 * pixels);
        canvas.fill(0);
        let mut frames = out.chunks_exact_mut(rect.height * rect.width * channels);
        let mut blocks = self.blocks;
        while let Some(frame) = blocks.next()? {
            let out = frames.next();
            if out.is_none() && !strict {
                break;
            }
            let numbers = &mut numbers[..frame.height * frame.width];
            frame.unpack(numbers)?;
            frame.paint(numbers, self.width, canvas)?;
            let rows = out.into_iter().flat_map(|out| out.chunks_exact_mut(rect.width * channels));
            for (out, y) in rows.zip(rect.top..) {
                let row = &canvas[(y * self.width + rect.left) * 4..][..rect.width * 4];
                store_bytes(row, 4, channels, out);
            }
        }
        Ok(())
    }
}

fn read(data: &[u8]) -> Result<PictureHeader, PictureFault> {
    let Gif { frames, height, width, .. } = Gif::read(data)?;
    let size = [height, width];
    Ok(PictureHeader { frames: Some(frames), size, channels: 3, ..PictureHeader::default() })
}

fn decode(data: &[u8], job: DecodeJob<'_>, out: &mut [u8]) -> Result<(), ImageError> {
    Gif::read(data).and_then(|gif| gif.paint(job, out)).map_err(|fault| fault.of(FORMAT.name))
}

/// A frame of a file.
struct GifFrame<'a> {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    interlaced: bool,
    /// Red, green and blue of each colour.
    palette: &'a [u8],
    /// The colour that leaves a pixel as it is.
    transparent: Option<u8>,
    /// Bits of the first codes, without the one more that they have.
    bits: u8,
    /// Sub-blocks of codes.
    codes: &'a [u8],
}

impl<'a> GifFrame<'a> {
    /// Returns the codes without the lengths of the sub-blocks.
    fn codes(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut at = 0;
        let codes = self.codes;
        std::iter::from_fn(move || sub_block(codes, &mut at).ok().flatten())
    }

    /// Writes the number of the colour of each pixel to `out`, in the sequence of the file.
    fn unpack(&self, out: &mut [u8]) -> Result<(), PictureFault> {
        // A decoder that was reset misreads the codes of black and white frames (weezl 0.2.1).
        let mut decoder = Decoder::new(BitOrder::Lsb, self.bits);
        let mut done = 0;
        // The decoder keeps bits, so it is called until it has no code left, also behind the last sub-block.
        for codes in self.codes().chain([&[][..]]) {
            let mut at = 0;
            while done < out.len() {
                let step = decoder.decode_bytes(&codes[at..], &mut out[done..]);
                at += step.consumed_in;
                done += step.consumed_out;
                match step.status {
                    Ok(LzwStatus::Ok) => {}
                    // It looks at a code behind the last pixel, too.
                    Err(_) if done < out.len() => return Err(PictureFault::Corrupt("code of a pixel")),
                    _ => break,
                }
            }
        }
        if done < out.len() { Err(PictureFault::Truncated) } else { Ok(()) }
    }

    /// Paints the part that is on the canvas.
    fn paint(&self, numbers: &[u8], width: usize, canvas: &mut [u8]) -> Result<(), PictureFault> {
        // The first row and the distance of the next ones, for each pass.
        let passes: &[(usize, usize)] =
            if self.interlaced { &[(0, 8), (4, 8), (2, 4), (1, 2)] } else { &[(0, 1)] };
        let rows = passes.iter().flat_map(|&(first, step)| (first..self.height).step_by(step));
        for (numbers, y) in numbers.chunks_exact(self.width).zip(rows) {
            let row = canvas.chunks_exact_mut(width * 4).nth(self.top + y);
            let pixels = row.and_then(|row| row.get_mut(self.left * 4..)).unwrap_or_default();
            for (&number, pixel) in numbers.iter().zip(pixels.as_chunks_mut().0) {
                if Some(number) == self.transparent {
                    continue;
                }
                let colour = self.palette.as_chunks().0.get(usize::from(number));
                let [r, g, b] = *colour.ok_or(PictureFault::Corrupt("number of a colour"))?;
                *pixel = [r, g, b, u8::MAX];
            }
        }
        Ok(())
    }
}

/// The blocks of a file.
#[derive(Clone, Copy)]
struct GifBlocks<'a> {
    data: &'a [u8],
    at: usize,
    /// The palette of frames without their own.
    palette: Option<&'a [u8]>,
}

impl<'a> GifBlocks<'a> {
    /// Reads what precedes the blocks.
    fn read(data: &'a [u8]) -> Result<GifBlocks<'a>, PictureFault> {
        // The signature, the size of the screen, flags, the background, and the ratio of a pixel.
        let mut blocks = GifBlocks { data, at: 0, palette: None };
        let flags = blocks.bytes(13)?[10];
        blocks.palette = blocks.palette(flags)?;
        Ok(blocks)
    }

    fn bytes(&mut self, n: usize) -> Result<&'a [u8], PictureFault> {
        let bytes = self.data.get(self.at..).and_then(|rest| rest.get(..n)).ok_or(PictureFault::Truncated)?;
        self.at += n;
        Ok(bytes)
    }

    /// Reads a palette, if the flags announce one.
    fn palette(&mut self, flags: u8) -> Result<Option<&'a [u8]>, PictureFault> {
        if flags & 0x80 == 0 { Ok(None) } else { self.bytes(3 << ((flags & 7) + 1)).map(Some) }
    }

    /// Returns the next frame. `None` at the end of the file.
    fn next(&mut self) -> Result<Option<GifFrame<'a>>, PictureFault> {
        // The first graphic control before a frame counts.
        let mut control: Option<&[u8]> = None;
        loop {
            match self.bytes(1)?[0] {
                0x3b => return Ok(None),
                0x21 => {
                    let label = self.bytes(1)?[0];
                    let mut first = sub_block(self.data, &mut self.at)?;
                    if label == 0xf9 && control.is_none() {
                        control = first;
                    }
                    while first.is_some() {
                        first = sub_block(self.data, &mut self.at)?;
                    }
                }
                0x2c => return self.frame(control).map(Some),
                _ => return Err(PictureFault::Corrupt("block")),
            }
        }
    }

    fn frame(&mut self, control: Option<&[u8]>) -> Result<GifFrame<'a>, PictureFault> {
        let head = self.bytes(9)?;
        let word = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let left = word(0);
        let top = word(2);
        let width = word(4);
        let height = word(6);
        let flags = head[8];
        if width == 0 || height == 0 {
            return Err(PictureFault::Corrupt("size of a frame"));
        }
        let palette =
            self.palette(flags)?.or(self.palette).ok_or(PictureFault::Corrupt("frame without a palette"))?;
        let transparent = match control {
            Some(&[flags, _, _, number]) if flags & 1 == 1 => Some(number),
            _ => None,
        };
        let bits = self.bytes(1)?[0];
        if !(1..=8).contains(&bits) {
            return Err(PictureFault::Corrupt("number of bits of a code"));
        }
        let start = self.at;
        while sub_block(self.data, &mut self.at)?.is_some() {}
        let codes = &self.data[start..self.at];
        let interlaced = flags & 0x40 != 0;
        Ok(GifFrame { left, top, width, height, interlaced, palette, transparent, bits, codes })
    }
}

/// Returns the sub-block at `at`, and moves `at` behind it. `None` for the one without bytes, which is the
/// last.
fn sub_block<'a>(data: &'a [u8], at: &mut usize) -> Result<Option<&'a [u8]>, PictureFault> {
    let (&n, rest) = data.get(*at..).and_then(<[u8]>::split_first).ok_or(PictureFault::Truncated)?;
    let bytes = rest.get(..usize::from(n)).ok_or(PictureFault::Truncated)?;
    *at += 1 + bytes.len();
    Ok(if n == 0 { None } else { Some(bytes) })
}
