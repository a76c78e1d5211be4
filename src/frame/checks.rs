//! Pure checks of a header and a footer, and the records of a slice.

use crate::crc;
use crate::error::{At, Error, ErrorKind, IndexError, Result};
use byteorder::{LE, WriteBytesExt};
use std::hint::black_box;
use std::io::Write;

/// Bytes before a payload: the length and its crc.
pub const HEADER_LEN: usize = 8 + 4;
/// Bytes after a payload: its crc.
pub const FOOTER_LEN: usize = 4;
/// Bytes of a record that are not payload.
pub const OVERHEAD: usize = HEADER_LEN + FOOTER_LEN;

/// A header whose crc holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of payload that follow, as claimed: any `u64` may stand here.
    pub(crate) payload_len: u64,
}

impl Header {
    /// Checks the crc of a header.
    ///
    /// # Errors
    /// [`ErrorKind::CorruptLength`].
    #[inline]
    pub(crate) fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Header> {
        let (len, stored) = split(bytes);
        let computed = crc::masked_len(len);
        if computed != stored {
            return Err(ErrorKind::CorruptLength { computed, stored }.into());
        }
        Ok(Header { payload_len: len })
    }

    /// Bytes of the whole record; `u64::MAX`, which no file has, where they are more than that.
    #[inline]
    pub(crate) fn record_len(self) -> u64 {
        self.payload_len.saturating_add(OVERHEAD as u64)
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
fn check_payload(payload: &[u8], footer: [u8; FOOTER_LEN]) -> Result<()> {
    check_footer(crc::crc32c(payload), footer)
}

/// Checks the footer of a payload whose CRC32C, unmasked, is `crc`.
#[inline]
pub(super) fn check_footer(crc: u32, footer: [u8; FOOTER_LEN]) -> Result<()> {
    let (computed, stored) = (crc::mask(crc), u32::from_le_bytes(footer));
    if computed != stored {
        return Err(ErrorKind::CorruptData { computed, stored }.into());
    }
    Ok(())
}

/// Writes the 12 bytes that stand before a payload of `payload_len` bytes.
///
/// # Errors
/// Those of `w`.
pub(crate) fn put_header(w: &mut impl Write, payload_len: u64) -> std::io::Result<()> {
    let mut header = [0; HEADER_LEN];
    let mut rest = header.as_mut_slice();
    rest.write_u64::<LE>(payload_len)?;
    rest.write_u32::<LE>(crc::masked_len(payload_len))?;
    w.write_all(&header)
}

/// Writes one whole record.
///
/// # Errors
/// Those of `w`.
pub fn put_record(w: &mut impl Write, payload: &[u8]) -> std::io::Result<()> {
    put_header(w, payload.len() as u64)?;
    w.write_all(payload)?;
    w.write_u32::<LE>(crc::masked(payload))
}

/// One record in a slice: where it starts, and its payload.
#[non_exhaustive]
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

    fn step(&mut self) -> Result<Frame<'a>> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        match front(rest, true, u64::MAX)? {
            Front::Whole(payload) => {
                let frame = Frame { i: self.i, offset: self.pos as u64, payload };
                self.pos += payload.len() + OVERHEAD;
                self.i += 1;
                Ok(frame)
            }
            Front::Part(header) => Err(truncated(need(header), rest.len() as u64)),
            Front::TooLong(header) => Err(truncated(header.record_len(), rest.len() as u64)),
        }
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

/// The start of a slice, taken for a record.
pub(crate) enum Front<'a> {
    /// A whole record: its payload, which lies between a header and a footer.
    Whole(&'a [u8]),
    /// The beginning of a record. `None` if not even its header is all there.
    Part(Option<Header>),
    /// A payload above the limit, present or not.
    TooLong(Header),
}

/// Bytes of a record as far as they are known: at least a header.
pub(crate) fn need(header: Option<Header>) -> u64 {
    header.map_or(HEADER_LEN as u64, Header::record_len)
}

/// Takes the start of `bytes` for a record, whose payload is checked if `check` says so.
///
/// # Errors
/// [`ErrorKind::CorruptLength`], [`ErrorKind::CorruptData`]. The order of the checks: header crc, limit, presence of the body,
/// payload crc.
#[inline(always)]
pub(crate) fn front(bytes: &[u8], check: bool, max_payload: u64) -> Result<Front<'_>> {
    let Some((header, body)) = bytes.split_first_chunk::<HEADER_LEN>() else { return Ok(Front::Part(None)) };
    // The length's crc is checked before the payload is looked for: a flipped bit in the length is then a
    // corrupt length, and not a file that seems to end too early.
    let header = Header::parse(header)?;
    if header.payload_len > max_payload {
        return Ok(Front::TooLong(header));
    }
    if body.len() < FOOTER_LEN || header.payload_len > (body.len() - FOOTER_LEN) as u64 {
        return Ok(Front::Part(Some(header)));
    }
    // It fits into the slice, so it fits into a usize.
    let (payload, rest) = body.split_at(header.payload_len as usize);
    let Some(&footer) = rest.first_chunk::<FOOTER_LEN>() else { return Ok(Front::Part(Some(header))) };
    if check {
        check_payload(payload, footer)?;
    }
    Ok(Front::Whole(payload))
}

/// Returns the payload of the record that an index puts at byte `offset` of `bytes`, if it is all there, its header is valid and
/// gives `payload_len`, and, where `check` says so, its footer is that of the payload. `None` says only that the record is not as
/// expected; [`known_fault`] tells why.
#[inline(always)]
pub(crate) fn known(bytes: &[u8], offset: u64, payload_len: u64, check: bool) -> Option<&[u8]> {
    let (header, payload, footer) = known_parts(bytes, offset, payload_len)?;
    let (len, stored) = split(header);
    // Compared with a copy: from an equality the compiler would learn that it may take the payload's length from the header,
    // and what is done with the payload would then wait for its bytes.
    if crc::masked_len(len) != stored || len != black_box(payload_len) {
        return None;
    }
    if check && crc::masked(payload) != u32::from_le_bytes(*footer) {
        return None;
    }
    Some(payload)
}

/// Header, payload and footer of a record, if they are there.
#[inline(always)]
fn known_parts(
    bytes: &[u8],
    offset: u64,
    payload_len: u64,
) -> Option<(&[u8; HEADER_LEN], &[u8], &[u8; FOOTER_LEN])> {
    let start = usize::try_from(offset).ok()?;
    let len = usize::try_from(payload_len).ok()?.checked_add(OVERHEAD)?;
    let (header, rest) = bytes.get(start..start.checked_add(len)?)?.split_first_chunk()?;
    let (payload, footer) = rest.split_last_chunk()?;
    Some((header, payload, footer))
}

/// Returns the reason why [`known`] gives no payload: bytes that are missing, a header that is invalid or gives another length, or else
/// the footer.
#[cold]
pub(crate) fn known_fault(bytes: &[u8], offset: u64, payload_len: u64) -> Error {
    let Some((header, payload, footer)) = known_parts(bytes, offset, payload_len) else {
        let have = (bytes.len() as u64).saturating_sub(offset);
        return truncated(Header { payload_len }.record_len(), have);
    };
    match Header::parse(header) {
        Err(e) => e,
        Ok(Header { payload_len: stored }) if stored != payload_len => {
            IndexError::LengthMismatch { indexed: payload_len, stored }.into()
        }
        Ok(_) => {
            let (computed, stored) = (crc::masked(payload), u32::from_le_bytes(*footer));
            ErrorKind::CorruptData { computed, stored }.into()
        }
    }
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
                assert_eq!(e.location().record, Some(whole as u64));
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
