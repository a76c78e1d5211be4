//! Decompression from a checkpoint on.
//!
//! zlib-rs decompresses faster than the decoder that finds checkpoints. Its input begins with a whole byte,
//! so empty blocks of suitable length are put in front of a block that begins inside a byte.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::header::{TRAILER, corrupt, cut, gzip_header};
use super::input::{BufferedInput, INPUT};
use super::scan::{Checkpoint, CheckpointScan, PausedInflate};
use crate::error::Result;
use crate::io::compression::CompressedFormat;
use crate::io::source::{Source, read_exact_at};
use std::io::{self, Read};
use zlib_rs::{Inflate as RawInflate, InflateFlush, Status};

/// A reader of the decompressed bytes of a file after a checkpoint.
///
/// Memory is constant. The checksums of the stream are not verified, since it is not read from its start.
pub(crate) enum InflateFrom<'a, F: ?Sized> {
    Fast(FastInflate<'a, F>),
    /// The decoder of [`CheckpointScan`]. Before damage it returns the same bytes as the scan.
    AsScanned(CheckpointScan<ResumedBytes<'a, F>>),
}

impl<F: Source + ?Sized> InflateFrom<'_, F> {
    /// Returns a reader that first reads up to the offset `likely_end` of the file, and beyond it only if it
    /// needs more.
    pub(crate) fn new<'a>(
        file: &'a F,
        format: CompressedFormat,
        from: Checkpoint<'_>,
        likely_end: u64,
    ) -> Result<InflateFrom<'a, F>> {
        let input = BufferedInput::new(ResumedBytes::new(file, from.bit, likely_end), INPUT);
        let decoder = raw_decoder(from.window, format)?;
        Ok(InflateFrom::Fast(FastInflate { decoder, input, format, next: NextInflate::Blocks }))
    }

    pub(crate) fn as_scanned<'a>(
        file: &'a F,
        format: CompressedFormat,
        from: Checkpoint<'_>,
    ) -> InflateFrom<'a, F> {
        let bytes = ResumedBytes::new(file, from.bit, u64::MAX);
        InflateFrom::AsScanned(CheckpointScan::from_block(bytes, format, from))
    }

    /// Decompresses up to `out.len()` bytes. Returns 0 only at the end of the stream, and if `out` is empty.
    ///
    /// # Errors
    /// I/O errors, and [`CompressionError`] for damage and for a file that ends inside the stream.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            InflateFrom::Fast(decoder) => decoder.read(out),
            InflateFrom::AsScanned(decoder) => Ok(decoder.read(out)?),
        }
    }

    /// Decompresses `len` bytes and drops them. Stops early at the end of the stream.
    ///
    /// # Errors
    /// Errors of [`read`](InflateFrom::read).
    pub(crate) fn skip(&mut self, mut len: u64) -> Result<()> {
        let mut out = vec![0; usize::try_from(len).unwrap_or(INPUT).min(INPUT)];
        while len > 0 {
            let most = usize::try_from(len).unwrap_or(INPUT).min(INPUT);
            match self.read(out.split_at_mut(most).0)? {
                0 => break,
                n => len = len.saturating_sub(n as u64),
            }
        }
        Ok(())
    }

    /// Decompresses bytes until `out` is full. Returns false if the stream ends before.
    ///
    /// # Errors
    /// Errors of [`read`](InflateFrom::read).
    pub(crate) fn fill(&mut self, out: &mut [u8]) -> Result<bool> {
        fill(out, |out| self.read(out))
    }
}

/// Calls `read` until `out` is full. Returns false if it returns 0 before.
fn fill(mut out: &mut [u8], mut read: impl FnMut(&mut [u8]) -> Result<usize>) -> Result<bool> {
    while !out.is_empty() {
        match read(out)? {
            0 => return Ok(false),
            n => out = out.split_at_mut(n).1,
        }
    }
    Ok(true)
}

/// A reader of the decompressed bytes after a checkpoint that can be paused at any byte, and resumed as often
/// as needed.
///
/// Its decoder is miniz_oxide, whose state can be copied, also inside a deflate block.
pub(crate) struct PausableInflate<'a, F: ?Sized>(CheckpointScan<ResumedBytes<'a, F>>);

#[expect(clippy::arithmetic_side_effects, reason = "offsets in a file and its stream, which end before 2^61")]
impl<'a, F: Source + ?Sized> PausableInflate<'a, F> {
    pub(crate) fn new(file: &'a F, format: CompressedFormat, from: Checkpoint<'_>) -> PausableInflate<'a, F> {
        let bytes = ResumedBytes::new(file, from.bit, u64::MAX);
        PausableInflate(CheckpointScan::from_block(bytes, format, from))
    }

    pub(crate) fn resume(
        file: &'a F,
        format: CompressedFormat,
        paused: &PausedInflate,
    ) -> PausableInflate<'a, F> {
        let bytes = ResumedBytes::new(file, paused.at.saturating_mul(8), u64::MAX);
        PausableInflate(CheckpointScan::resume(bytes, format, paused))
    }

    /// Returns the offset of the next byte in the decompressed stream.
    pub(crate) fn out(&self) -> u64 {
        self.0.returned()
    }

    /// Decompresses bytes until `out` is full. Returns false if the stream ends before.
    ///
    /// # Errors
    /// Errors of [`InflateFrom::read`].
    pub(crate) fn fill(&mut self, out: &mut [u8]) -> Result<bool> {
        self.0.stop_at(self.out() + out.len() as u64);
        fill(out, |out| Ok(self.0.read(out)?))
    }

    /// Returns the state of the decoder. [`fill`](PausableInflate::fill) was called before.
    pub(crate) fn pause(&mut self) -> PausedInflate {
        let read = self.0.inner().at;
        self.0.pause(read)
    }
}

/// The decoder of zlib-rs after a checkpoint.
pub(crate) struct FastInflate<'a, F: ?Sized> {
    decoder: RawInflate,
    input: BufferedInput<ResumedBytes<'a, F>>,
    format: CompressedFormat,
    next: NextInflate,
}

/// The part of a stream that [`FastInflate`] decompresses next.
#[derive(Clone, Copy)]
enum NextInflate {
    Blocks,
    /// The trailer of a gzip member, and the next member, if there is one.
    Member,
    Damage,
    End,
}

impl<F: Source + ?Sized> FastInflate<'_, F> {
    #[expect(clippy::arithmetic_side_effects, reason = "the decoder's counts only grow")]
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        while !out.is_empty() {
            match self.next {
                NextInflate::Blocks => {}
                NextInflate::Member => {
                    for _ in 0..TRAILER {
                        self.input.byte()?.ok_or(cut(self.format))?;
                    }
                    if !self.input.fill()? {
                        self.next = NextInflate::End;
                        continue;
                    }
                    gzip_header(|| self.input.byte())?;
                    self.decoder = raw_decoder(&[], self.format)?;
                    self.next = NextInflate::Blocks;
                }
                NextInflate::Damage => return Err(corrupt(self.format, "invalid deflate data").into()),
                NextInflate::End => return Ok(0),
            }
            self.input.fill()?;
            let before_in = self.decoder.total_in();
            let before_out = self.decoder.total_out();
            let done = self.decoder.decompress(self.input.buffered(), out, InflateFlush::NoFlush);
            let taken = (self.decoder.total_in() - before_in) as usize;
            let made = (self.decoder.total_out() - before_out) as usize;
            self.input.consume(taken);
            self.next = match done {
                Ok(Status::StreamEnd) if self.format.has_members() => NextInflate::Member,
                Ok(Status::StreamEnd) => NextInflate::End,
                Ok(_) if taken == 0 && made == 0 => return Err(cut(self.format).into()),
                Ok(_) => NextInflate::Blocks,
                Err(_) => NextInflate::Damage,
            };
            if made > 0 {
                return Ok(made.min(out.len()));
            }
        }
        Ok(0)
    }
}

fn raw_decoder(window: &[u8], format: CompressedFormat) -> Result<RawInflate> {
    let mut decoder = RawInflate::new(false, 15);
    if !window.is_empty() {
        decoder.set_dictionary(window).map_err(|_| corrupt(format, "invalid window"))?;
    }
    Ok(decoder)
}

/// The bytes of a file from a bit position on, as a stream of whole bytes.
///
/// Empty deflate blocks come first. They end at the same bit of a byte as the position, so all later bytes
/// are the file's, and stored blocks, which begin at whole bytes, stay aligned.
pub(crate) struct ResumedBytes<'a, F: ?Sized> {
    file: &'a F,
    /// Offset of the next byte to read.
    at: u64,
    /// No read crosses this offset, so the system does not read further ahead before the bytes are needed.
    likely_end: u64,
    /// Number of bits of the first byte that belong to earlier blocks, below 8.
    bits: u32,
    /// The empty blocks, with zeros after their last bit. Empty once they were returned.
    blocks: Vec<u8>,
}

impl<F: Source + ?Sized> ResumedBytes<'_, F> {
    fn new(file: &F, bit: u64, likely_end: u64) -> ResumedBytes<'_, F> {
        let bits = (bit % 8) as u32;
        ResumedBytes { file, at: bit / 8, likely_end, bits, blocks: empty_blocks(bits) }
    }
}

impl<F: Source + ?Sized> Read for ResumedBytes<'_, F> {
    /// `buf` must hold the empty blocks.
    #[expect(clippy::arithmetic_side_effects, reason = "`at` is an offset in the file")]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.blocks.is_empty() {
            let before_end = self.likely_end.saturating_sub(self.at);
            let most = if before_end == 0 { buf.len() } else { before_end.min(buf.len() as u64) as usize };
            let n = self.file.read_at(buf.split_at_mut(most).0, self.at)?.min(most);
            self.at += n as u64;
            return Ok(n);
        }
        let mut first = [0];
        read_exact_at(self.file, &mut first, self.at)?;
        self.at += 1;
        let mut blocks = std::mem::take(&mut self.blocks);
        if let (Some(last), [first]) = (blocks.last_mut(), first) {
            *last |= first & (0xff << self.bits);
        }
        let to = buf.get_mut(..blocks.len()).ok_or(io::ErrorKind::InvalidInput)?;
        to.copy_from_slice(&blocks);
        Ok(blocks.len())
    }
}

/// Returns deflate blocks without content that end after `bits` bits of a byte. Empty for 0.
///
/// A block with fixed codes has 10 bits, and [`ODD_BLOCK`] has 91, so together they can end at each bit.
fn empty_blocks(bits: u32) -> Vec<u8> {
    /// Not the last block, with fixed codes, and the end of the block: seven zeros.
    const FIXED: &[u8] = b"0100000000";
    if bits == 0 {
        return Vec::new();
    }
    let odd: &[u8] = if bits % 2 == 1 { ODD_BLOCK } else { &[] };
    let fixed = (bits.wrapping_sub(odd.len() as u32) % 8 / 2) as usize;
    let digits: Vec<u8> = odd.iter().copied().chain(FIXED.repeat(fixed)).collect();
    digits.chunks(8).map(|byte| byte.iter().rev().fold(0, |byte, digit| byte << 1 | (digit & 1))).collect()
}

/// The bits of an empty block with dynamic codes, in the order of the stream.
///
/// The numbers of codes and of code lengths: 257, 1, and 18. Of these 18, the third is for symbol 18 (11 to
/// 138 zeros) and the last for symbol 1; both have one bit. Then the code lengths: 1, 138 zeros, 117 zeros, 1
/// (the end of the block) and 1 (a distance). Last the end of the block.
const ODD_BLOCK: &[u8] = b"001\
    00000\
    00000\
    0111\
    000000100000000000000000000000000000000000000000000100\
    0\
    11111111\
    10101011\
    0\
    0\
    1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_blocks_end_at_each_bit() {
        for bits in 0..8 {
            let blocks = empty_blocks(bits);
            let mut decoder = RawInflate::new(false, 15);
            let done = decoder.decompress(&blocks, &mut [0; 10], InflateFlush::NoFlush);
            assert!(matches!(done, Ok(Status::Ok | Status::BufError)), "{bits}: {done:?}");
            assert_eq!((decoder.total_in(), decoder.total_out()), (blocks.len() as u64, 0));
            // A stored block with the last bit set: three bits, padding, the length and its complement.
            let mut stream = blocks.clone();
            match stream.last_mut() {
                Some(last) if bits < 6 => *last |= 1 << bits,
                Some(last) => {
                    *last |= 1 << bits;
                    stream.push(0);
                }
                None => stream.push(1),
            }
            stream.extend([1, 0, 0xfe, 0xff, b'x']);
            let mut decoder = RawInflate::new(false, 15);
            let mut out = [0; 10];
            let done = decoder.decompress(&stream, &mut out, InflateFlush::NoFlush);
            assert!(matches!(done, Ok(Status::StreamEnd)) && out[0] == b'x', "{bits}: {done:?}");
        }
        assert_eq!(ODD_BLOCK.len() % 2, 1);
    }
}
