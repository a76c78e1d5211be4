//! Compressed files of unusual blocks and members, and a decoder for them.
//!
//! RFC 1950 (zlib), RFC 1951 (deflate) and RFC 1952 (gzip) define the formats.

use super::script::Script;
use flate2::{Compress, Crc, Decompress, FlushCompress, FlushDecompress, Status};
use std::io::Cursor;
use tfseek::Compression;
use tfseek::crc::masked;
use tfseek::stream::StreamOptions;

/// Compresses bytes, in blocks that a script selects: stored, with fixed codes, of a compressor, or empty. A
/// gzip file has several members if the script says so.
pub(super) fn deflated(bytes: &[u8], zlib: bool, script: &mut Script<'_>) -> Vec<u8> {
    let mut file = Bits::default();
    let (mut start, mut at) = (0, 0);
    header(&mut file, zlib, script.u8());
    for _ in 0..64 {
        let (op, len) = (script.u8(), 1 + script.u16() % 3000);
        let end = (at + len).min(bytes.len());
        match op % 6 {
            0 => file.stored(&bytes[at..end]),
            1 => file.fixed(&bytes[start..end], at - start),
            2 => {
                if !file.is_aligned() {
                    file.stored(&[]);
                }
                file.bytes.extend(compressed(&bytes[at..end], op / 6 % 10));
            }
            3 => file.fixed(&[], 0),
            4 => file.stored(&[]),
            _ if zlib => {}
            _ => {
                trailer(&mut file, &bytes[start..at], zlib);
                header(&mut file, zlib, op / 6);
                start = at;
            }
        }
        if op % 6 < 3 {
            at = end;
        }
        if script.is_empty() {
            break;
        }
    }
    if at < bytes.len() {
        file.fixed(&bytes[start..], at - start);
    }
    trailer(&mut file, &bytes[start..], zlib);
    file.bytes
}

fn header(file: &mut Bits, zlib: bool, flags: u8) {
    if zlib {
        return file.bytes.extend([0x78, 0x9c]);
    }
    let start = file.bytes.len();
    // Header checksum, extra field, name, comment.
    let flags = flags & 30;
    file.bytes.extend([0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 0, 255]);
    if flags & 4 != 0 {
        file.bytes.extend([3, 0, 7, 7, 7]);
    }
    for text in [8, 16] {
        if flags & text != 0 {
            file.bytes.extend(b"text\0");
        }
    }
    if flags & 2 != 0 {
        let sum = crc(&file.bytes[start..]) as u16;
        file.bytes.extend(sum.to_le_bytes());
    }
}

/// Writes the last block, which is empty, and the checksum of `content`.
fn trailer(file: &mut Bits, content: &[u8], zlib: bool) {
    file.put(0b011, 3);
    file.symbol(256);
    file.align();
    if zlib {
        return file.bytes.extend(adler(content).to_be_bytes());
    }
    file.bytes.extend(crc(content).to_le_bytes());
    file.bytes.extend((content.len() as u32).to_le_bytes());
}

/// Returns blocks of a compressor that end at a whole byte.
fn compressed(bytes: &[u8], level: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * bytes.len() + 1000);
    let mut encoder = Compress::new(flate2::Compression::new(level.into()), false);
    encoder.compress_vec(bytes, &mut out, FlushCompress::Sync).unwrap();
    assert_eq!(encoder.total_in(), bytes.len() as u64);
    out
}

/// A stream of bits, the lowest bit of each byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Number of bits of the last byte that are in use; 0 for all.
    used: u32,
}

impl Bits {
    fn is_aligned(&self) -> bool {
        self.used == 0
    }

    fn align(&mut self) {
        self.used = 0;
    }

    fn put(&mut self, value: u32, bits: u32) {
        for k in 0..bits {
            if self.used == 0 {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= ((value >> k & 1) as u8) << self.used;
            self.used = (self.used + 1) % 8;
        }
    }

    /// Writes a code, whose highest bit comes first.
    fn code(&mut self, code: u32, bits: u32) {
        self.put(code.reverse_bits() >> (32 - bits), bits);
    }

    /// Writes a symbol of the fixed codes.
    fn symbol(&mut self, symbol: u32) {
        match symbol {
            0..144 => self.code(0x30 + symbol, 8),
            144..256 => self.code(0x190 + symbol - 144, 9),
            256..280 => self.code(symbol - 256, 7),
            _ => self.code(0xc0 + symbol - 280, 8),
        }
    }

    fn stored(&mut self, bytes: &[u8]) {
        self.put(0, 3);
        self.align();
        let len = u16::try_from(bytes.len()).unwrap();
        self.bytes.extend(len.to_le_bytes());
        self.bytes.extend((!len).to_le_bytes());
        self.bytes.extend(bytes);
    }

    /// Writes a block with fixed codes: `bytes` from `at` on, with matches in all of `bytes`.
    fn fixed(&mut self, bytes: &[u8], mut at: usize) {
        self.put(0b010, 3);
        while at < bytes.len() {
            let run = |distance: usize| match at.checked_sub(distance) {
                Some(from) => {
                    bytes[from..].iter().zip(&bytes[at..]).take(10).take_while(|(a, b)| a == b).count()
                }
                None => 0,
            };
            let distance =
                [1, 2, 3, 5, 20, 33, 64, 100, 1000, 4000].into_iter().find(|&distance| run(distance) > 2);
            match distance {
                Some(distance) => {
                    self.symbol(254 + run(distance) as u32);
                    self.distance(distance as u32);
                    at += run(distance);
                }
                None => {
                    self.symbol(bytes[at].into());
                    at += 1;
                }
            }
        }
        self.symbol(256);
    }

    fn distance(&mut self, distance: u32) {
        let base = |code: u32| {
            if code < 4 { (code + 1, 0) } else { (((2 + code % 2) << (code / 2 - 1)) + 1, code / 2 - 1) }
        };
        let code = (0..30).rev().find(|&code| base(code).0 <= distance).unwrap();
        let (first, extra) = base(code);
        self.code(code, 5);
        self.put(distance - first, extra);
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn adler(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65521;
        (a, (b + a) % 65521)
    });
    b << 16 | a
}

/// The end of a compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileEnd {
    Sound,
    /// All members or streams were decompressed. The last trailer is cut, or bytes that contain no records
    /// follow.
    Torn,
    Damaged,
}

/// Decompresses a file.
pub(super) fn inflated(file: &[u8], format: Compression) -> (Vec<u8>, FileEnd) {
    let (mut bytes, mut rest) = (Vec::new(), file);
    loop {
        if rest.is_empty() && rest.len() < file.len() {
            return (bytes, FileEnd::Sound);
        }
        let first = rest.len() == file.len();
        let before = rest;
        let part = if format == Compression::Gzip {
            gzip_member(&mut rest, &mut bytes)
        } else if first {
            zlib_stream(&mut rest, &mut bytes)
        } else {
            None
        };
        match part {
            Some(true) => {}
            Some(false) => return (bytes, FileEnd::Torn),
            None if is_rest(before, first, format) => return (bytes, FileEnd::Torn),
            None => return (bytes, FileEnd::Damaged),
        }
    }
}

/// Returns true if these bytes, which are no member or stream, may be left out at the end of a file.
fn is_rest(bytes: &[u8], first: bool, format: Compression) -> bool {
    const MAGIC: &[u8] = &[0x1f, 0x8b, 8];
    if format == Compression::Gzip {
        let header = bytes.len() < 10 && bytes.iter().zip(MAGIC).all(|(a, b)| a == b);
        if header || first || bytes.starts_with(MAGIC) {
            return header && bytes.get(3).is_none_or(|&flags| flags < 32);
        }
    }
    let record = bytes
        .first_chunk::<8>()
        .zip(bytes.get(8..12))
        .is_some_and(|(len, crc)| crc == masked(len).to_le_bytes());
    let stream = StreamOptions::default().read(Cursor::new(bytes.to_vec()), "rest").unwrap();
    let member = bytes.windows(4).any(|start| start.starts_with(MAGIC) && start[3] < 32);
    !first && !record && !member && stream.compression() != Compression::Zlib
}

/// Decompresses a stream. `Some(false)`: the file ends inside its trailer.
fn zlib_stream(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let [method, flags] = *take(rest)?;
    let valid =
        method & 15 == 8 && method >> 4 <= 7 && (u32::from(method) * 256 + u32::from(flags)) % 31 == 0;
    if !valid || flags & 32 != 0 {
        return None;
    }
    blocks(rest, out)?;
    has_trailer(rest, &adler(out).to_be_bytes())
}

/// Moves past a trailer. `Some(false)`: the file ends inside it.
fn has_trailer(rest: &mut &[u8], trailer: &[u8]) -> Option<bool> {
    let found = &rest[..rest.len().min(trailer.len())];
    *rest = &rest[found.len()..];
    trailer.starts_with(found).then_some(found.len() == trailer.len())
}

/// Decompresses a member. `Some(false)`: the file ends inside its trailer.
fn gzip_member(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let member = *rest;
    let [0x1f, 0x8b, 8, flags, ..] = *take::<10>(rest)? else { return None };
    if flags > 31 {
        return None;
    }
    if flags & 4 != 0 {
        let len = u16::from_le_bytes(*take(rest)?);
        *rest = rest.get(len.into()..)?;
    }
    for text in [8, 16] {
        if flags & text != 0 {
            let end = rest.iter().position(|&byte| byte == 0)?;
            *rest = &rest[end + 1..];
        }
    }
    if flags & 2 != 0 {
        let sum = crc(&member[..member.len() - rest.len()]) as u16;
        if u16::from_le_bytes(*take(rest)?) != sum {
            return None;
        }
    }
    let start = out.len();
    blocks(rest, out)?;
    let content = &out[start..];
    let trailer = [crc(content).to_le_bytes(), (content.len() as u32).to_le_bytes()].concat();
    has_trailer(rest, &trailer)
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(taken)
}

/// Decompresses blocks up to the last one.
fn blocks(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (mut decoder, mut part) = (Decompress::new(false), [0; 4096]);
    loop {
        let before = (decoder.total_in(), decoder.total_out());
        let done = decoder.decompress(rest, &mut part, FlushDecompress::None);
        let taken = (decoder.total_in() - before.0) as usize;
        let made = (decoder.total_out() - before.1) as usize;
        *rest = &rest[taken..];
        out.extend(&part[..made]);
        match done {
            Ok(Status::StreamEnd) => return Some(()),
            Ok(_) if taken + made > 0 => {}
            _ => return None,
        }
    }
}
