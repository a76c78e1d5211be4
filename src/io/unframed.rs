//! Files without a sound record at their start: records that were changed on their way, records of writers
//! with other checksums, messages without framing, and compressions that are not read.

use crate::crc::mask;
use crate::error::Remedy;
use crate::frame::{FOOTER_LEN, HEADER_LEN, OVERHEAD, frames, split_header, starts_with_record};
use flate2::{Decompress, FlushDecompress};
use tfseek_wire::varint;

/// The likely format of a file that is not a TFRecord file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LooksLike {
    /// Name of the format, e.g. `a git-LFS pointer`.
    pub(crate) what: &'static str,
    pub(crate) remedy: Remedy<'static>,
}

/// Payloads are shorter, unless a header is none.
const MAX_PAYLOAD: u64 = 1 << 31;

/// Returns what the file that begins with `first` seems to be. No record with a sound header begins there.
pub(super) fn seems(first: &[u8]) -> Option<LooksLike> {
    let again = Remedy::FetchAgain;
    let found = |what, remedy| Some(LooksLike { what, remedy });
    match first {
        _ if is_crc32(first) => {
            found("TFRecords with checksums of CRC-32 in place of CRC32C", Remedy::Unverified)
        }
        _ if has_zero_checksums(first) => found("TFRecords with checksums that are zero", Remedy::Unverified),
        _ if is_latin1(first) => found("TFRecords that were written as text, encoded as UTF-8", again),
        _ if is_lossy(first) => {
            found("TFRecords that were read as text, with bytes replaced by U+FFFD", again)
        }
        _ if deflated(first).is_some_and(|bytes| starts_with_record(&bytes)) => found(
            "raw deflate, without the header of gzip or zlib",
            Remedy::ReadWith("zlib.decompress(data, wbits=-15) of Python, and write its bytes to a file"),
        ),
        _ if snappy(first).is_some_and(|bytes| starts_with_record(&bytes)) => {
            found("TFRecords compressed with Snappy", Remedy::Extract)
        }
        _ if begins_delimited(first) => {
            found("messages that follow their lengths, without the framing of TFRecords", Remedy::Delimited)
        }
        _ if begins_message(first).is_some() => {
            found("a message without the framing of TFRecords", Remedy::WriteRecords)
        }
        _ => None,
    }
}

/// Returns what was done to the line ends of a file that begins with `first`, up to `offset`, where a record
/// is unsound.
pub(super) fn line_ends(first: &[u8], offset: u64) -> Option<LooksLike> {
    let sound = frames(first).map_while(Result::ok).last();
    let at = sound.map_or(0, |(at, payload)| at + (payload.len() + OVERHEAD) as u64);
    let rest = usize::try_from(at).ok().filter(|_| at <= offset).and_then(|at| first.get(at..))?;
    let next = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"));
    if next.is_some_and(|next| at > 0 && (next.is_empty() || starts_with_record(next))) {
        return Some(LooksLike {
            what: "TFRecords with a line end after each record",
            remedy: Remedy::LeaveOut,
        });
    }
    let mut unix = Vec::with_capacity(rest.len());
    for (k, &byte) in rest.iter().enumerate() {
        if byte != b'\r' || rest.get(k + 1) != Some(&b'\n') {
            unix.push(byte);
        }
    }
    let is_changed = unix.len() < rest.len() && frames(&unix).next().is_some_and(|record| record.is_ok());
    is_changed.then_some(LooksLike {
        what: "TFRecords whose line ends were changed from LF to CRLF",
        remedy: Remedy::FetchAgain,
    })
}

/// Returns true for a header with a CRC-32 that is not Castagnoli's, masked or not.
fn is_crc32(first: &[u8]) -> bool {
    let Some(header) = first.first_chunk::<HEADER_LEN>() else { return false };
    let (len, stored) = split_header(header);
    let mut crc = flate2::Crc::new();
    crc.update(&len.to_le_bytes());
    len > 0 && [crc.sum(), mask(crc.sum())].contains(&stored)
}

/// Returns true for records whose checksums are all zero. Numbers of 64 bits may begin alike, so the footers
/// must agree.
fn has_zero_checksums(first: &[u8]) -> bool {
    let mut rest = first;
    while let Some((header, body)) = rest.split_first_chunk::<HEADER_LEN>() {
        let (len, stored) = split_header(header);
        if stored != 0 || !(1..MAX_PAYLOAD).contains(&len) {
            return false;
        }
        let end = usize::try_from(len).unwrap_or(usize::MAX);
        match body.get(end..).and_then(|rest| rest.split_first_chunk::<FOOTER_LEN>()) {
            Some((footer, next)) if *footer == [0; FOOTER_LEN] => rest = next,
            Some(_) => return false,
            None => break,
        }
    }
    first.len() > HEADER_LEN
}

/// Returns the start of UTF-8, without a character that is cut off at the end.
pub(super) fn utf8(first: &[u8]) -> Option<&str> {
    match std::str::from_utf8(first) {
        Ok(text) => Some(text),
        Err(e) if e.error_len().is_none() => std::str::from_utf8(first.get(..e.valid_up_to())?).ok(),
        Err(_) => None,
    }
}

/// Returns true for bytes that were taken for characters, and encoded.
fn is_latin1(first: &[u8]) -> bool {
    let bytes: Option<Vec<u8>> =
        utf8(first).and_then(|text| text.chars().take(HEADER_LEN).map(|c| u8::try_from(c).ok()).collect());
    bytes.is_some_and(|bytes| starts_with_record(&bytes))
}

/// Returns true for UTF-8 with the zeros of a length, and with replacements of what was no UTF-8.
fn is_lossy(first: &[u8]) -> bool {
    utf8(first).is_some_and(|text| text.contains('\u{fffd}') && text.chars().take(8).any(|c| c == '\0'))
}

/// Inflates bytes without a header.
fn deflated(first: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(HEADER_LEN);
    let mut inflate = Decompress::new(false);
    inflate.decompress_vec(first, &mut out, FlushDecompress::None).ok()?;
    Some(out)
}

/// Decompresses the start of the first block of TensorFlow's writer: its length, big-endian, and a block of
/// Snappy.
fn snappy(first: &[u8]) -> Option<Vec<u8>> {
    let (len, block) = first.split_first_chunk::<4>()?;
    let len = u64::from(u32::from_be_bytes(*len));
    let (size, mut rest) = varint::first::<5>(block)?;
    if len == 0 || size < OVERHEAD as u64 {
        return None;
    }
    let mut out: Vec<u8> = Vec::new();
    while out.len() < HEADER_LEN {
        let (&tag, after) = rest.split_first()?;
        let more = usize::from(tag >> 2);
        let back = match tag & 3 {
            0 if more < 60 => {
                let (literal, next) = after.split_at_checked(more + 1)?;
                out.extend_from_slice(literal);
                rest = next;
                continue;
            }
            0 => {
                // The length follows, and is longer than what is needed.
                let literal = after.get(more - 59..)?;
                out.extend_from_slice(literal.get(..HEADER_LEN)?);
                continue;
            }
            1 => (usize::from(tag >> 5) << 8) | usize::from(*after.first()?),
            _ => usize::from(u16::from_le_bytes(*after.first_chunk()?)),
        };
        let count = if tag & 3 == 1 { (more & 7) + 4 } else { more + 1 };
        for _ in 0..count {
            let byte = *out.get(out.len().checked_sub(back)?)?;
            out.push(byte);
        }
        rest = after.get(usize::from(tag & 3)..)?;
    }
    Some(out)
}

/// Returns true for an Example or a SequenceExample after its length, and for another one after it, as far as
/// there are bytes.
fn begins_delimited(first: &[u8]) -> bool {
    let Some((len, message)) = varint::first::<5>(first) else { return false };
    let Some(need) = begins_message(message) else { return false };
    let next = usize::try_from(len).ok().and_then(|len| message.get(len..));
    // A second part of a SequenceExample may follow the first.
    need <= len
        && next.is_none_or(|next| {
            next.len() < 8 || varint::first::<5>(next).is_some_and(|(_, m)| begins_message(m).is_some())
        })
}

/// Returns the length of the first field of a message that begins like an Example or a SequenceExample: a map
/// with a name.
fn begins_message(first: &[u8]) -> Option<u64> {
    let field = |bytes: &[u8], tags: &[u8]| {
        let (tag, rest) = bytes.split_first()?;
        let (len, body) = varint::first::<5>(rest)?;
        let head = bytes.len().checked_sub(body.len())?;
        tags.contains(tag).then(|| (len, head, body.to_vec()))
    };
    let (outer, head, body) = field(first, &[0x0a, 0x12])?;
    let (entry, _, body) = field(&body, &[0x0a])?;
    let (name, _, body) = field(&body, &[0x0a])?;
    let key = std::str::from_utf8(body.get(..usize::try_from(name).ok()?)?).ok()?;
    let is_named = !key.is_empty() && !key.chars().any(char::is_control);
    (is_named && name < entry && entry < outer && outer < MAX_PAYLOAD).then_some(outer + head as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::ExampleBuilder;
    use crate::frame::put_record;

    fn payloads() -> Vec<Vec<u8>> {
        (0..40)
            .map(|i| ExampleBuilder::new().int64("label", [i]).bytes("name", ["x"]).encode().unwrap())
            .collect()
    }

    fn file() -> Vec<u8> {
        let mut file = Vec::new();
        payloads().iter().for_each(|payload| put_record(&mut file, payload).unwrap());
        file
    }

    fn what(first: &[u8]) -> &'static str {
        seems(first).map_or("nothing", |looks| looks.what)
    }

    #[test]
    fn files_without_a_sound_record_are_named() {
        let file = file();
        let payloads = payloads();
        let with = |checksum: &dyn Fn(&[u8]) -> u32| {
            let record = |payload: &Vec<u8>| {
                let len = (payload.len() as u64).to_le_bytes();
                [&len, &checksum(&len).to_le_bytes()[..], payload, &checksum(payload).to_le_bytes()].concat()
            };
            payloads.iter().flat_map(record).collect::<Vec<u8>>()
        };
        let crc32 = |bytes: &[u8]| {
            let mut crc = flate2::Crc::new();
            crc.update(bytes);
            crc.sum()
        };
        assert!(what(&with(&|_| 0)).ends_with("zero"));
        assert!(what(&with(&crc32)).contains("CRC-32 in place"));
        assert!(what(&with(&|bytes| mask(crc32(bytes)))).contains("CRC-32 in place"));
        let numbers: Vec<u8> = (5u64..90).flat_map(u64::to_le_bytes).collect();
        assert_eq!(what(&numbers), "nothing");
        assert_eq!(what(&[0; 600]), "nothing");

        let latin1: String = file.iter().map(|byte| char::from(*byte)).collect();
        assert!(what(latin1.as_bytes()).contains("written as text"));
        assert!(what(String::from_utf8_lossy(&file).as_bytes()).contains("read as text"));

        let mut deflated = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut deflated, &file).unwrap();
        assert!(what(&deflated.finish().unwrap()).contains("raw deflate"));

        let delimited = |payload: &Vec<u8>| [&[payload.len() as u8], &payload[..]].concat();
        let all: Vec<u8> = payloads.iter().flat_map(delimited).collect();
        assert!(what(&all).starts_with("messages"));
        assert!(what(&all[..payloads[0].len()]).starts_with("messages"));
        assert!(what(&payloads[0]).starts_with("a message"));
        assert_eq!(what(b"\x0a\x02\x0a\x00 and other bytes"), "nothing");
    }

    #[test]
    fn the_start_of_a_snappy_block() {
        let mut record = Vec::new();
        put_record(&mut record, &[7; 100]).unwrap();
        // A literal of two bytes, a copy of the zeros, and the rest.
        let copied =
            [&[116, 1 << 2][..], &record[..2], &[1 | 2 << 2, 1], &[60 << 2, 107], &record[8..]].concat();
        let long = [&[116, 60 << 2, 115][..], &record].concat();
        for block in [copied, long] {
            let len = u32::try_from(block.len()).unwrap().to_be_bytes();
            assert!(what(&[&len[..], &block].concat()).contains("Snappy"));
        }
    }

    #[test]
    fn line_ends_are_named() {
        let file = file();
        let changed = |lines: &[u8], end: &[u8]| -> Vec<u8> {
            frames(lines)
                .flat_map(|record| {
                    let mut bytes = Vec::new();
                    put_record(&mut bytes, record.unwrap().1).unwrap();
                    [bytes, end.to_vec()].concat()
                })
                .collect()
        };
        let named = |first: &[u8]| line_ends(first, u64::MAX).map_or("nothing", |looks| looks.what);
        for end in [&b"\n"[..], b"\r\n"] {
            assert!(named(&changed(&file, end)).ends_with("after each record"));
        }
        let crlf: Vec<u8> =
            file.iter().flat_map(|&b| if b == b'\n' { vec![b'\r', b] } else { vec![b] }).collect();
        assert!(named(&crlf).contains("from LF to CRLF"));
        assert_eq!(named(&file), "nothing");
        assert_eq!(named(&file[..file.len() - 3]), "nothing");
        let mut flipped = file;
        flipped[200] ^= 1;
        assert_eq!(named(&flipped), "nothing");
    }
}
