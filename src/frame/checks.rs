//! Pure checks of a header and a footer, and an iterator over the records of a slice.

use crate::crc::{self, LenCrc, WithLenCrc, with_len_crc};
use crate::error::{At, Error, ErrorKind, IndexError, Result};
use crate::policy::Verify;
use byteorder::{LE, WriteBytesExt};
use std::fmt;
use std::hint::black_box;
use std::io::Write;
use std::iter::FusedIterator;

/// Bytes of a record's header: the length of the payload and its crc.
pub const HEADER_LEN: usize = 8 + 4;
/// Bytes of a record's footer: the crc of the payload.
pub const FOOTER_LEN: usize = 4;
/// Bytes of a record that are not payload: header and footer.
pub const OVERHEAD: usize = HEADER_LEN + FOOTER_LEN;

/// A header whose crc is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    /// Bytes of payload, as the header states. Any `u64` is possible.
    pub(crate) payload_len: u64,
}

/// Returns true if a record with a sound header begins with these bytes.
pub(crate) fn starts_with_record(first: &[u8]) -> bool {
    first.first_chunk().is_some_and(|header| RecordHeader::parse(header).is_ok())
}

impl RecordHeader {
    /// Reads a header and checks its crc.
    ///
    /// # Errors
    /// [`ErrorKind::CorruptLength`].
    #[inline]
    pub(crate) fn parse(bytes: &[u8; HEADER_LEN]) -> Result<RecordHeader> {
        let (len, _) = split_header(bytes);
        RecordHeader::check(bytes, crc::masked_len(len))
    }

    /// Compares a header with the masked crc of its length.
    #[inline(always)]
    fn check(bytes: &[u8; HEADER_LEN], computed: u32) -> Result<RecordHeader> {
        let (len, stored) = split_header(bytes);
        if computed != stored {
            return Err(ErrorKind::CorruptLength { computed, stored }.into());
        }
        Ok(RecordHeader { payload_len: len })
    }

    /// Returns the bytes of the whole record, saturating at `u64::MAX`, which no file has.
    #[inline]
    pub(crate) fn record_len(self) -> u64 {
        self.payload_len.saturating_add(OVERHEAD as u64)
    }
}

/// Returns the length and the stored crc of a header, unchecked.
#[inline(always)]
pub(crate) fn split_header(header: &[u8; HEADER_LEN]) -> (u64, u32) {
    // Two loads. The compiler makes twelve loads of a pattern that takes the array apart byte by byte.
    let len = header.first_chunk().copied().unwrap_or_default();
    let crc = header.last_chunk().copied().unwrap_or_default();
    (u64::from_le_bytes(len), u32::from_le_bytes(crc))
}

/// Returns the length of the payload of the record at the start of `bytes`, if its header is sound and all of
/// its bytes are present.
#[inline(always)]
pub(crate) fn whole_len(bytes: &[u8], crc: impl LenCrc) -> Option<usize> {
    let (header, body) = bytes.split_first_chunk::<HEADER_LEN>()?;
    let (len, stored) = split_header(header);
    #[expect(clippy::arithmetic_side_effects, reason = "the condition before it excludes a shorter body")]
    if crc::mask(crc.crc(len)) != stored || body.len() < FOOTER_LEN || len > (body.len() - FOOTER_LEN) as u64
    {
        return None;
    }
    // The payload is inside the slice, so its length fits a usize.
    Some(len as usize)
}

/// Returns true if the record at the start of `bytes` has a payload of `len` bytes that matches its footer.
#[inline(always)]
pub(crate) fn payload_is_sound(bytes: &[u8], len: usize, crc: impl LenCrc) -> bool {
    let parts = bytes.get(HEADER_LEN..).and_then(|body| body.split_at_checked(len));
    parts.is_some_and(|(payload, rest)| {
        let computed = crc::mask(crc.append(0, payload));
        rest.first_chunk().is_some_and(|footer| u32::from_le_bytes(*footer) == computed)
    })
}

/// Checks a footer against the unmasked CRC32C of its payload.
#[inline]
pub(super) fn check_footer(crc: u32, footer: [u8; FOOTER_LEN]) -> Result<()> {
    let computed = crc::mask(crc);
    let stored = u32::from_le_bytes(footer);
    if computed != stored {
        return Err(ErrorKind::CorruptData { computed, stored }.into());
    }
    Ok(())
}

/// Writes the header of a payload of `payload_len` bytes.
///
/// # Errors
/// The errors of `w`.
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
/// The errors of `w`.
pub fn put_record(w: &mut impl Write, payload: &[u8]) -> std::io::Result<()> {
    put_header(w, payload.len() as u64)?;
    w.write_all(payload)?;
    w.write_u32::<LE>(crc::masked(payload))
}

/// Returns the records of a slice, in order: the byte offset of the header, and the payload. Both crcs of
/// each record are checked.
///
/// After the last whole record the iterator ends if no bytes are left. Otherwise it yields one error and then
/// ends. An error carries the ordinal and the offset of the damaged record.
///
/// ```
/// use tfseek::frame::{frames, put_record};
/// let mut file = Vec::new();
/// put_record(&mut file, b"one")?;
/// put_record(&mut file, b"two")?;
/// let payloads = frames(&file).map(|found| found.map(|(_, payload)| payload)).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(payloads, [b"one", b"two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn frames(bytes: &[u8]) -> impl FusedIterator<Item = Result<(u64, &[u8])>> + Clone + fmt::Debug {
    Frames { bytes, pos: 0, i: 0, done: false }
}

#[derive(Clone, Debug)]
struct Frames<'a> {
    bytes: &'a [u8],
    pos: usize,
    i: u64,
    done: bool,
}

impl<'a> Frames<'a> {
    fn step(&mut self) -> Result<(u64, &'a [u8])> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        match first_record(rest, Verify::Payload, u64::MAX)? {
            FirstRecord::Whole(payload) => {
                let record = (self.pos as u64, payload);
                #[expect(clippy::arithmetic_side_effects, reason = "the record is in `bytes`")]
                {
                    self.pos += payload.len() + OVERHEAD;
                    self.i += 1;
                }
                Ok(record)
            }
            FirstRecord::Partial(header) => Err(truncated(needed_len(header), rest.len() as u64)),
            FirstRecord::TooLong(header) => Err(truncated(header.record_len(), rest.len() as u64)),
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<(u64, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done || self.pos == self.bytes.len() {
            return None;
        }
        let at = At { path: None, record: Some(self.i), offset: Some(self.pos as u64) };
        let step = self.step().map_err(|e| e.at(at));
        self.done = step.is_err();
        Some(step)
    }
}

impl FusedIterator for Frames<'_> {}

/// The record at the start of a slice.
pub(crate) enum FirstRecord<'a> {
    /// A whole record: its payload.
    Whole(&'a [u8]),
    /// The start of a record. `None` if even its header is incomplete.
    Partial(Option<RecordHeader>),
    /// A record whose payload is longer than the limit, present or not.
    TooLong(RecordHeader),
}

/// Returns the bytes that a record needs, as far as known: without its header, the length of a header.
pub(crate) fn needed_len(header: Option<RecordHeader>) -> u64 {
    header.map_or(HEADER_LEN as u64, RecordHeader::record_len)
}

/// Parses the record at the start of `bytes`, and verifies these checksums.
///
/// # Errors
/// [`ErrorKind::CorruptLength`], [`ErrorKind::CorruptData`]. The order of the checks: header crc, limit,
/// presence of the body, payload crc.
#[inline(always)]
pub(crate) fn first_record(bytes: &[u8], verify: Verify, max_payload: u64) -> Result<FirstRecord<'_>> {
    struct First<'a> {
        bytes: &'a [u8],
        verify: Verify,
        max_payload: u64,
    }
    impl<'a> WithLenCrc for First<'a> {
        type Out = Result<FirstRecord<'a>>;
        #[inline(always)]
        fn run(self, crc: impl LenCrc) -> Self::Out {
            let First { bytes, verify, max_payload } = self;
            let Some((header, body)) = bytes.split_first_chunk::<HEADER_LEN>() else {
                return Ok(FirstRecord::Partial(None));
            };
            // The crc of the length is checked before the presence of the payload: a flipped bit in the
            // length is then a corrupt length, and not a file that seems to end too early.
            let len = split_header(header).0;
            let header = match RecordHeader::check(header, crc::mask(crc.crc(len))) {
                Err(_) if verify == Verify::None => RecordHeader { payload_len: len },
                checked => checked?,
            };
            if header.payload_len > max_payload {
                return Ok(FirstRecord::TooLong(header));
            }
            #[expect(clippy::arithmetic_side_effects, reason = "a shorter body is excluded first")]
            if body.len() < FOOTER_LEN || header.payload_len > (body.len() - FOOTER_LEN) as u64 {
                return Ok(FirstRecord::Partial(Some(header)));
            }
            // The length fits into the slice, so it fits into a usize.
            let (payload, rest) = body.split_at(header.payload_len as usize);
            let Some(footer) = rest.first_chunk::<FOOTER_LEN>() else {
                return Ok(FirstRecord::Partial(Some(header)));
            };
            if verify == Verify::Payload {
                // The footer is loaded after the payload. It is not in the caches before, and an earlier
                // load would stop the processor until it is.
                let computed = crc.append(0, payload);
                check_footer(computed, *footer)?;
            }
            Ok(FirstRecord::Whole(payload))
        }
    }
    with_len_crc(First { bytes, verify, max_payload })
}

/// Returns the payload of the record at byte `offset` of `bytes`, where an index expects a payload of
/// `payload_len` bytes. `None` if the record is incomplete, its header is invalid or has another length, or,
/// with `check` set, its footer does not match the payload. [`payload_fault`] returns the reason.
#[inline(always)]
pub(crate) fn payload_at(bytes: &[u8], offset: u64, payload_len: u64, check: bool) -> Option<&[u8]> {
    struct Sound<'a>(RecordFields<'a>);
    impl WithLenCrc for Sound<'_> {
        type Out = bool;
        #[inline(always)]
        fn run(self, crc: impl LenCrc) -> bool {
            let Sound((header, payload, footer)) = self;
            is_header_of(header, crc::mask(crc.crc(split_header(header).0)), payload.len())
                && crc::mask(crc.append(0, payload)) == u32::from_le_bytes(*footer)
        }
    }
    let fields = record_fields(bytes, offset, payload_len)?;
    let (header, payload, _) = fields;
    let sound = if check {
        with_len_crc(Sound(fields))
    } else {
        is_header_of(header, crc::masked_len(split_header(header).0), payload.len())
    };
    sound.then_some(payload)
}

/// Returns the payload of the record at byte `offset`, whose checksums are not verified.
///
/// # Errors
/// Bytes are missing, or the header has another length.
#[cold]
pub(crate) fn unverified_payload(bytes: &[u8], offset: u64, payload_len: u64) -> Result<&[u8]> {
    let Some((header, payload, _)) = record_fields(bytes, offset, payload_len) else {
        return Err(payload_fault(bytes, offset, payload_len));
    };
    match split_header(header).0 {
        stored if stored == payload_len => Ok(payload),
        stored => Err(IndexError::LengthMismatch { indexed: payload_len, stored }.into()),
    }
}

/// Compares a header with the length of its record's payload, and with the masked crc of its length.
#[inline(always)]
fn is_header_of(header: &[u8; HEADER_LEN], computed: u32, payload_len: usize) -> bool {
    let (len, stored) = split_header(header);
    // Compared with an opaque copy. From a plain equality the compiler could take the payload's length from
    // the header, and the use of the payload would then wait for the header's bytes.
    computed == stored && len == black_box(payload_len as u64)
}

/// The header, payload and footer of a record.
type RecordFields<'a> = (&'a [u8; HEADER_LEN], &'a [u8], &'a [u8; FOOTER_LEN]);

/// Returns the header, payload and footer of a record, if they are present.
#[inline(always)]
fn record_fields(bytes: &[u8], offset: u64, payload_len: u64) -> Option<RecordFields<'_>> {
    let start = usize::try_from(offset).ok()?;
    let len = usize::try_from(payload_len).ok()?.checked_add(OVERHEAD)?;
    let (header, rest) = bytes.get(start..start.checked_add(len)?)?.split_first_chunk()?;
    let (payload, footer) = rest.split_last_chunk()?;
    Some((header, payload, footer))
}

/// Returns the reason why [`payload_at`] returns no payload: missing bytes, a header that is invalid or has
/// another length, or otherwise the footer.
#[cold]
pub(crate) fn payload_fault(bytes: &[u8], offset: u64, payload_len: u64) -> Error {
    let Some((header, payload, footer)) = record_fields(bytes, offset, payload_len) else {
        let have = (bytes.len() as u64).saturating_sub(offset);
        return truncated(RecordHeader { payload_len }.record_len(), have);
    };
    if let Err(e) = check_header(header, payload_len) {
        return e;
    }
    let computed = crc::masked(payload);
    let stored = u32::from_le_bytes(*footer);
    ErrorKind::CorruptData { computed, stored }.into()
}

/// Checks the header of a record whose payload has a known length.
///
/// # Errors
/// The header is invalid, or has another length.
pub(crate) fn check_header(header: &[u8; HEADER_LEN], payload_len: u64) -> Result<()> {
    match RecordHeader::parse(header)?.payload_len {
        stored if stored == payload_len => Ok(()),
        stored => Err(IndexError::LengthMismatch { indexed: payload_len, stored }.into()),
    }
}

#[cold]
pub(crate) fn truncated(need: u64, have: u64) -> Error {
    ErrorKind::Truncated { need, have }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three_records() -> Vec<u8> {
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
        let got: String = three_records().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn truncated_files_yield_whole_records_and_then_an_error() {
        let file = three_records();
        for cut in 0..file.len() {
            let mut whole = 0;
            let mut error = None;
            for frame in frames(&file[..cut]) {
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
    fn huge_lengths_are_truncation() {
        for len in [1u64 << 31, 1 << 32, 1 << 40, (1 << 63) - 4, 1 << 63, u64::MAX - 15, u64::MAX] {
            let mut file = Vec::new();
            put_header(&mut file, len).unwrap();
            file.extend([0; 64]);
            let e = frames(&file).next().unwrap().unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Truncated { have: 76, .. }), "{len}: {e}");
        }
    }

    #[test]
    fn faults_of_an_indexed_record() {
        let file = three_records();
        let fault = |bytes: &[u8], offset, len| payload_fault(bytes, offset, len).into_kind();
        for (offset, len, have) in [(33, 3, 18), (40, 2, 11), (51, 0, 0), (60, 0, 0)] {
            let kind = fault(&file, offset, len);
            let need = len + OVERHEAD as u64;
            assert!(
                matches!(kind, ErrorKind::Truncated { need: n, have: h } if (n, h) == (need, have)),
                "{kind:?}"
            );
        }
        // A length that overflows.
        assert!(matches!(fault(&file, 0, u64::MAX), ErrorKind::Truncated { need: u64::MAX, have: 51 }));
        let kind = fault(&file, 16, 0);
        assert!(
            matches!(kind, ErrorKind::Index(IndexError::LengthMismatch { indexed: 0, stored: 1 })),
            "{kind:?}"
        );
        assert!(matches!(fault(&file, 1, 2), ErrorKind::CorruptLength { .. }));
        let mut bad = file.clone();
        bad[33 + 12] ^= 1;
        assert!(matches!(fault(&bad, 33, 2), ErrorKind::CorruptData { .. }));
    }
}
