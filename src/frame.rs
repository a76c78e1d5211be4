//! Record framing over a slice.
//!
//! A TFRecord file is records, one after the other, and nothing else. One record, all little-endian:
//!
//! ```text
//! | 0..8          | length of the payload, u64         | \ header, 12 bytes
//! | 8..12         | masked CRC32C of bytes 0..8        | /
//! | 12..12+length | payload                            |
//! | ..16+length   | masked CRC32C of the payload       |   footer, 4 bytes
//! ```
//!
//! Nothing here allocates, and no length is believed before it is compared with the bytes that are there.

use crate::crc;
use crate::error::{At, Error, ErrorKind, Result};
use byteorder::{LE, WriteBytesExt};
use std::io::Write;

/// Bytes before a payload: the length and its crc.
pub const HEADER_LEN: usize = 8 + 4;
/// Bytes after a payload: its crc.
pub const FOOTER_LEN: usize = 4;
/// Bytes of a record that are not payload.
pub const OVERHEAD: usize = HEADER_LEN + FOOTER_LEN;

/// A header whose crc holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of payload that follow, as claimed: any `u64` may stand here.
    pub payload_len: u64,
}

impl Header {
    /// Checks the crc of a header.
    ///
    /// # Errors
    /// [`ErrorKind::CorruptLength`].
    #[inline]
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Header> {
        let (len, stored) = split(bytes);
        let computed = crc::masked_len(len);
        if computed != stored {
            return Err(ErrorKind::CorruptLength { computed, stored }.into());
        }
        Ok(Header { payload_len: len })
    }

    /// Bytes of the whole record, or `None` above `u64::MAX`.
    #[inline]
    pub fn record_len(self) -> Option<u64> {
        self.payload_len.checked_add(OVERHEAD as u64)
    }
}

/// The length and the stored crc of a header, unchecked.
#[inline(always)]
pub(crate) fn split(header: &[u8; HEADER_LEN]) -> (u64, u32) {
    // Two loads. Taken apart byte by byte, the compiler makes it twelve.
    let len = header.first_chunk().copied().unwrap_or_default();
    let crc = header.last_chunk().copied().unwrap_or_default();
    (u64::from_le_bytes(len), u32::from_le_bytes(crc))
}

/// Checks a payload against the four bytes that follow it.
///
/// # Errors
/// [`ErrorKind::CorruptData`].
#[inline]
pub fn check_payload(payload: &[u8], footer: [u8; FOOTER_LEN]) -> Result<()> {
    let (computed, stored) = (crc::masked(payload), u32::from_le_bytes(footer));
    if computed != stored {
        return Err(ErrorKind::CorruptData { computed, stored }.into());
    }
    Ok(())
}

/// Writes the 12 bytes that stand before a payload of `payload_len` bytes.
///
/// # Errors
/// Those of `w`.
pub fn put_header(w: &mut impl Write, payload_len: u64) -> std::io::Result<()> {
    let mut header = [0; HEADER_LEN];
    let mut rest = header.as_mut_slice();
    rest.write_u64::<LE>(payload_len)?;
    rest.write_u32::<LE>(crc::masked_len(payload_len))?;
    w.write_all(&header)
}

/// Writes the 4 bytes that stand after `payload`.
///
/// # Errors
/// Those of `w`.
pub fn put_footer(w: &mut impl Write, payload: &[u8]) -> std::io::Result<()> {
    w.write_u32::<LE>(crc::masked(payload))
}

/// Writes one whole record.
///
/// # Errors
/// Those of `w`.
pub fn put_record(w: &mut impl Write, payload: &[u8]) -> std::io::Result<()> {
    put_header(w, payload.len() as u64)?;
    w.write_all(payload)?;
    put_footer(w, payload)
}

/// One record in a slice: where it starts, and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Ordinal, counted from 0.
    pub i: u64,
    /// Byte offset of the header.
    pub offset: u64,
    /// The payload, its crc checked.
    pub payload: &'a [u8],
}

/// The records of a slice, in order, both crcs of each checked.
///
/// After the last whole record the iterator ends if no byte is left, and else yields one error and then ends.
/// An error carries the ordinal and the offset of the record at fault.
///
/// ```
/// use tfseek::frame::{put_record, Frames};
/// let mut file = Vec::new();
/// put_record(&mut file, b"one")?;
/// put_record(&mut file, b"two")?;
/// let payloads = Frames::new(&file).map(|f| f.map(|f| f.payload)).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(payloads, [b"one", b"two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    pos: usize,
    i: u64,
    done: bool,
}

impl<'a> Frames<'a> {
    /// The records of `bytes`. Looks at nothing yet.
    pub fn new(bytes: &'a [u8]) -> Frames<'a> {
        Frames { bytes, pos: 0, i: 0, done: false }
    }

    /// Byte offset at which the next record starts, or the damaged one.
    pub fn offset(&self) -> u64 {
        self.pos as u64
    }

    fn step(&mut self) -> Result<Frame<'a>> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let (payload, len) = record_at(rest)?;
        let frame = Frame { i: self.i, offset: self.pos as u64, payload };
        self.pos += len;
        self.i += 1;
        Ok(frame)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done || self.pos == self.bytes.len() {
            return None;
        }
        let place = At { path: None, record: Some(self.i), offset: Some(self.pos as u64) };
        let step = self.step().map_err(|e| e.at(place));
        self.done = step.is_err();
        Some(step)
    }
}

impl std::iter::FusedIterator for Frames<'_> {}

/// The record at the start of `rest`, all of it checked: its payload, and its length with header and footer.
///
/// # Errors
/// [`ErrorKind::Truncated`], [`ErrorKind::CorruptLength`], [`ErrorKind::CorruptData`], looked for in the order
/// header crc, presence of the body, payload crc.
pub fn record_at(rest: &[u8]) -> Result<(&[u8], usize)> {
    let have = rest.len() as u64;
    let Some((header, rest)) = rest.split_first_chunk::<HEADER_LEN>() else {
        return Err(truncated(HEADER_LEN as u64, have));
    };
    // The length's crc is checked before the payload is looked for: a flipped bit in the length is then a
    // corrupt length, and not a file that seems to end too early.
    let header = Header::parse(header)?;
    let need = header.record_len().unwrap_or(u64::MAX);
    if need > have {
        return Err(truncated(need, have));
    }
    // It fits into the slice, so it fits into a usize.
    let (payload, rest) = rest.split_at(header.payload_len as usize);
    let Some(&footer) = rest.first_chunk::<FOOTER_LEN>() else {
        return Err(truncated(need, have));
    };
    check_payload(payload, footer)?;
    Ok((payload, need as usize))
}

#[cold]
pub(crate) fn truncated(need: u64, have: u64) -> Error {
    ErrorKind::Truncated { need, have }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<u8> {
        let mut file = Vec::new();
        for payload in [b"".as_slice(), b"a", b"bb"] {
            put_record(&mut file, payload).unwrap();
        }
        file
    }

    #[test]
    fn bytes_of_three_records() {
        let hex = "0000000000000000 29039807 d8ea82a2 0100000000000000 0175de41 61 786ee428 \
                   0200000000000000 78270b34 6262 6397e2a5";
        let want: String = hex.split_whitespace().collect();
        let got: String = three().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn every_truncation_delivers_what_is_whole_and_then_says_so() {
        let file = three();
        for cut in 0..file.len() {
            let mut whole = 0;
            let mut error = None;
            for frame in Frames::new(&file[..cut]) {
                match frame {
                    Ok(_) => whole += 1,
                    Err(e) => error = Some(e),
                }
            }
            let ends = [0, 16, 33];
            assert_eq!(whole, ends.iter().filter(|&&end| end != 0 && end <= cut).count());
            assert_eq!(error.is_none(), ends.contains(&cut), "cut at {cut}");
            if let Some(e) = error {
                assert!(matches!(e.kind(), ErrorKind::Truncated { .. }), "{e}");
                assert_eq!(e.place().record, Some(whole as u64));
            }
        }
    }

    #[test]
    fn lengths_that_no_file_has() {
        for len in [1u64 << 31, 1 << 32, 1 << 40, (1 << 63) - 4, 1 << 63, u64::MAX - 15, u64::MAX] {
            let mut file = Vec::new();
            put_header(&mut file, len).unwrap();
            file.extend([0; 64]);
            let e = Frames::new(&file).next().unwrap().unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Truncated { have: 76, .. }), "{len}: {e}");
        }
    }
}
