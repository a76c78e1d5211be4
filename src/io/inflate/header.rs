//! Headers of gzip members and zlib streams.

use crate::error::{CompressionError, Result};
use crate::io::compression::CompressedFormat;
use flate2::Crc;
use std::io;

/// Bytes of a gzip trailer: CRC32 and length.
pub(super) const TRAILER: usize = 8;
/// Bytes of the fields that every gzip header has.
pub(super) const GZIP_HEADER: u64 = 10;
/// The start of a gzip member: magic and method. The next byte has flags, of which five are defined.
pub(super) const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
const UNDEFINED_FLAGS: u8 = 0xe0;

/// Returns true if a gzip member may begin with these bytes.
pub(super) fn begins_member([a, b, c, flags]: [u8; 4]) -> bool {
    [a, b, c] == MAGIC && flags & UNDEFINED_FLAGS == 0
}

/// Reads the header of a gzip member (RFC 1952). Its checksum, if there is one, is verified.
///
/// # Errors
/// [`CompressionError`] for the header; errors of `byte`.
pub(super) fn gzip_header(mut byte: impl FnMut() -> io::Result<Option<u8>>) -> Result<()> {
    const HCRC: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    let mut crc = Crc::new();
    let mut next = |crc: &mut Crc| -> Result<u8> {
        let found = byte()?.ok_or(cut(CompressedFormat::Gzip))?;
        crc.update(&[found]);
        Ok(found)
    };
    let [first, second, method] = MAGIC;
    let magic = [next(&mut crc)?, next(&mut crc)?];
    if magic != [first, second] || next(&mut crc)? != method {
        return Err(corrupt(CompressedFormat::Gzip, "incorrect header").into());
    }
    let flags = next(&mut crc)?;
    if flags & UNDEFINED_FLAGS != 0 {
        return Err(corrupt(CompressedFormat::Gzip, "unknown flags in the header").into());
    }
    // Time, extra flags, operating system.
    for _ in 0..6 {
        next(&mut crc)?;
    }
    if flags & EXTRA != 0 {
        let len = u16::from_le_bytes([next(&mut crc)?, next(&mut crc)?]);
        for _ in 0..len {
            next(&mut crc)?;
        }
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            while next(&mut crc)? != 0 {}
        }
    }
    if flags & HCRC != 0 {
        let expected = crc.sum() as u16;
        if u16::from_le_bytes([next(&mut crc)?, next(&mut crc)?]) != expected {
            return Err(corrupt(CompressedFormat::Gzip, "the checksum of the header does not match").into());
        }
    }
    Ok(())
}

/// Reads the header of a zlib stream (RFC 1950).
///
/// # Errors
/// [`CompressionError`] for the header; errors of `byte`.
pub(super) fn zlib_header(mut byte: impl FnMut() -> io::Result<Option<u8>>) -> Result<()> {
    let mut next = || -> Result<u8> { Ok(byte()?.ok_or(cut(CompressedFormat::Zlib))?) };
    let method = next()?;
    let flags = next()?;
    if !CompressedFormat::Zlib.may_begin(&[method, flags]) || flags & 32 != 0 {
        return Err(corrupt(CompressedFormat::Zlib, "incorrect header").into());
    }
    Ok(())
}

pub(super) fn cut(format: CompressedFormat) -> CompressionError {
    CompressionError::Cut { format: format.name() }
}

pub(super) fn corrupt(format: CompressedFormat, reason: &str) -> CompressionError {
    CompressionError::Corrupt { format: format.name(), reason: reason.into() }
}
