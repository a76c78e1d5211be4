//! Stored values whose decoded values are zeros, for padding.

use crate::error::Result;
use crate::grammar::refused;
use flate2::{Compression, Crc, write::ZlibEncoder};
use std::io::Write;

/// Maximum bytes of the zeros of a value.
const MOST: usize = 256 << 20;

/// Returns the PNG file of a black picture.
///
/// # Errors
/// A picture that is too large, or has a number of channels that PNG does not have.
pub(crate) fn black_png(
    path: &str,
    [height, width]: [usize; 2],
    channels: usize,
    bits: u8,
) -> Result<Box<[u8]>> {
    let color = match channels {
        1 => 0,
        2 => 4,
        3 => 2,
        4 => 6,
        _ => return Err(refused(path, format!("expected a picture of 1 to 4 channels, found {channels}"))),
    };
    let line = width.saturating_mul(channels).saturating_mul(usize::from(bits / 8)).saturating_add(1);
    let pixels = zlib_zeros(path, line.saturating_mul(height))?;
    let side = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let head = [&side(width)[..], &side(height), &[bits, color, 0, 0, 0]].concat();
    for (name, bytes) in [(b"IHDR", &*head), (b"IDAT", &*pixels), (b"IEND", &[])] {
        let mut crc = Crc::new();
        crc.update(name);
        crc.update(bytes);
        file.extend(side(bytes.len()));
        file.extend(name);
        file.extend(bytes);
        file.extend(crc.sum().to_be_bytes());
    }
    Ok(file.into())
}

/// Returns a zlib stream of zeros.
///
/// # Errors
/// Too many of them.
pub(crate) fn zlib_zeros(path: &str, len: usize) -> Result<Box<[u8]>> {
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::default());
    let zeros = zeros(path, len)?;
    let done = stream.write_all(&zeros).and_then(|()| stream.finish());
    done.map(Into::into).map_err(|e| refused(path, e.to_string()))
}

/// Returns zeros.
///
/// # Errors
/// Too many of them.
pub(crate) fn zeros(path: &str, len: usize) -> Result<Box<[u8]>> {
    if len > MOST {
        return Err(refused(path, format!("expected padding of at most {MOST} bytes, found {len}")));
    }
    Ok(vec![0; len].into())
}
