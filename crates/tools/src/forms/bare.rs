//! Payloads without TFRecord's framing: each follows its length, which is a varint.
//!
//! ```text
//! stream   (length payload)*
//! length   1 to 10 bytes, seven bits each, the lowest first; all but the last have the highest bit
//! ```
//!
//! Protobuf reads and writes such streams: `writeDelimitedTo` in Java, `serialize_length_prefixed` in Python.
//! They have no checksums.

use crate::error::ToolsError;
use std::io::{self, BufRead, Read, Write};
use tfseek_wire::put_varint;
use tfseek_wire::varint::MAX_VARINT;

/// Writes a payload after its length.
///
/// # Errors
/// I/O errors.
///
/// ```
/// let mut out = Vec::new();
/// tfseek_tools::bare::put(&mut out, &[7; 300])?;
/// assert_eq!((&out[..3], out.len()), (&[0xac, 0x02, 7][..], 302));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn put(out: &mut impl Write, payload: &[u8]) -> io::Result<()> {
    let mut len = Vec::with_capacity(MAX_VARINT);
    put_varint(payload.len() as u64, &mut len);
    out.write_all(&len)?;
    out.write_all(payload)
}

/// Payloads from a stream in which each follows its length. Memory is taken as the bytes of a payload arrive.
///
/// ```
/// use tfseek_tools::bare::BareReader;
/// let mut reader = BareReader::new(&b"\x03one\x00\x05thr"[..], 1 << 20);
/// assert_eq!(reader.next().unwrap(), Some(&b"one"[..]));
/// assert_eq!(reader.next().unwrap(), Some(&b""[..]));
/// let e = reader.next().unwrap_err();
/// assert_eq!(e.to_string(), "record 2 at byte 5: expected 5 bytes of payload, found 3");
/// ```
pub struct BareReader<R> {
    input: R,
    payload: Vec<u8>,
    offset: u64,
    records: u64,
    max_record: u64,
}

impl<R: BufRead> BareReader<R> {
    /// Reads payloads of at most `max_record` bytes.
    pub fn new(input: R, max_record: u64) -> BareReader<R> {
        BareReader { input, payload: Vec::new(), offset: 0, records: 0, max_record }
    }

    /// Returns the number of bytes of the payloads that were read, with their lengths.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next payload, or `None` at the end.
    ///
    /// # Errors
    /// [`ToolsError`]. The payloads after it cannot be read.
    #[allow(clippy::should_implement_trait, reason = "the payload borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, ToolsError> {
        let at = (self.records, self.offset);
        let Some((len, len_bytes)) = self.len(at)? else { return Ok(None) };
        if len > self.max_record {
            return Err(ToolsError::BareTooLong { at, len, limit: self.max_record });
        }
        self.payload.clear();
        let found = self.input.by_ref().take(len).read_to_end(&mut self.payload)? as u64;
        if found < len {
            return Err(ToolsError::BareTruncated { at, expected: Some(len), found });
        }
        self.offset += len_bytes + len;
        self.records += 1;
        Ok(Some(&self.payload))
    }

    /// Reads a length. Returns it with the number of its bytes, or `None` at the end.
    fn len(&mut self, at: (u64, u64)) -> Result<Option<(u64, u64)>, ToolsError> {
        let mut len = 0;
        for k in 0..MAX_VARINT as u64 {
            let mut byte = [0];
            // `read` returns 0 only at the end, and interrupted calls are repeated by `read_exact` alone.
            match self.input.read_exact(&mut byte) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof && k == 0 => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(ToolsError::BareTruncated { at, expected: None, found: k });
                }
                Err(e) => return Err(e.into()),
            }
            let [byte] = byte;
            if k + 1 == MAX_VARINT as u64 && byte > 1 {
                break;
            }
            len |= u64::from(byte & 0x7f) << (7 * k);
            if byte < 0x80 {
                return Ok(Some((len, k + 1)));
            }
        }
        Err(ToolsError::BareVarint { at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek_testkit::rng::Rng;

    /// All payloads of a stream, by another decoder: lengths are computed as 128-bit numbers from all bytes
    /// of a varint.
    fn twin(mut bytes: &[u8], limit: u64) -> (Vec<Vec<u8>>, bool) {
        let mut payloads = Vec::new();
        while !bytes.is_empty() {
            let Some(last) = bytes.iter().position(|byte| byte & 0x80 == 0) else { return (payloads, false) };
            let (len, rest) = bytes.split_at(last + 1);
            let value =
                len.iter().rev().take(19).fold(0u128, |value, byte| value << 7 | u128::from(byte & 0x7f));
            if len.len() > 10 || value > u128::from(limit) || value > rest.len() as u128 {
                return (payloads, false);
            }
            let (payload, rest) = rest.split_at(value as usize);
            payloads.push(payload.to_vec());
            bytes = rest;
        }
        (payloads, true)
    }

    fn all(bytes: &[u8], limit: u64) -> (Vec<Vec<u8>>, Option<ToolsError>) {
        // A buffer of few bytes, so that lengths and payloads lie in several of them.
        let mut reader = BareReader::new(io::BufReader::with_capacity(3, bytes), limit);
        let mut payloads = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(payload)) => payloads.push(payload.to_vec()),
                Ok(None) => {
                    assert_eq!(reader.offset(), bytes.len() as u64);
                    return (payloads, None);
                }
                Err(e) => return (payloads, Some(e)),
            }
        }
    }

    #[test]
    fn payloads_of_all_lengths() {
        let payloads: Vec<Vec<u8>> = [0, 1, 127, 128, 129, 16_383, 16_384, 0, 300]
            .map(|len| (0..len).map(|k| k as u8).collect())
            .into();
        let mut bytes = Vec::new();
        payloads.iter().for_each(|payload| put(&mut bytes, payload).unwrap());
        let (read, e) = all(&bytes, 1 << 20);
        assert!(read == payloads && e.is_none());
        assert_eq!(twin(&bytes, 1 << 20), (payloads, true));
    }

    #[test]
    fn a_second_decoder_agrees_on_damaged_streams() {
        let mut rng = Rng::new(1);
        let mut failed = 0;
        let rounds = if cfg!(miri) { 60 } else { 20_000 };
        for _ in 0..rounds {
            let mut bytes = Vec::new();
            for _ in 0..rng.below(4) {
                let len = rng.pick(&[0, 1, 5, 127, 128, 200]);
                put(&mut bytes, &rng.bytes(len)).unwrap();
            }
            if rng.chance(128) {
                tfseek_testkit::payloads::mutate(&mut rng, &mut bytes);
            }
            if rng.chance(32) {
                bytes.extend(vec![0xff; rng.below(12)]);
                bytes.extend(rng.bytes(1));
            }
            let (payloads, e) = all(&bytes, 180);
            assert_eq!(twin(&bytes, 180), (payloads, e.is_none()), "{bytes:?}");
            failed += usize::from(e.is_some());
        }
        assert!(failed > rounds / 20);
    }

    #[test]
    fn errors_have_the_record_and_its_offset() {
        let text = |bytes: &[u8]| all(bytes, 100).1.unwrap().to_string();
        assert_eq!(text(b"\x01a\x05abc"), "record 1 at byte 2: expected 5 bytes of payload, found 3");
        assert_eq!(
            text(b"\x01a\x85"),
            "record 1 at byte 2: expected a length that ends, found 1 bytes of a varint"
        );
        assert_eq!(
            text(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
            "record 0 at byte 0: expected a length of at most 10 bytes and 64 bits, found a longer varint"
        );
        assert_eq!(text(&[0x80; 11]), text(&[0xff; 11]));
        assert_eq!(
            text(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            "record 0 at byte 0: expected a payload of at most 100 bytes, found a length of 18446744073709551615"
        );
        // A length that is longer than necessary is read, as in protobuf.
        assert_eq!(all(b"\x81\x80\x00a", 100).0, [b"a"]);
    }
}
