//! The types of images, audio and video that the page shows, by their first bytes.
//!
//! All other bytes are downloads. The list has only formats in which a browser runs no script, so neither SVG
//! nor HTML nor PDF.

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use std::borrow::Cow;
use tfseek::example::List;
use tfseek::filter::image_format;

/// The type of bytes that are not in the list.
pub(crate) const OCTET_STREAM: &str = "application/octet-stream";

/// A format: its type, and the test of its first bytes.
type Format = (&'static str, fn(&[u8]) -> bool);

/// The images that browsers show. Their names end like the words of [`image_format`].
const IMAGES: [&str; 6] = ["image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp", "image/avif"];

/// The audio and video that browsers show. No two formats accept the same bytes.
const FORMATS: [Format; 7] = [
    ("audio/wav", |b| b.starts_with(b"RIFF") && b.get(8..12) == Some(b"WAVE")),
    ("audio/flac", |b| b.starts_with(b"fLaC")),
    ("audio/ogg", |b| b.starts_with(b"OggS\0")),
    ("audio/mpeg", is_mp3),
    ("audio/mp4", is_m4a),
    ("video/mp4", is_mp4),
    ("video/webm", |b| is_webm(b).is_some()),
];

const AUDIO_BRANDS: [&[u8; 4]; 2] = [b"M4A ", b"M4B "];

const VIDEO_BRANDS: [&[u8; 4]; 13] = [
    b"isom", b"iso2", b"iso3", b"iso4", b"iso5", b"iso6", b"iso8", b"mp41", b"mp42", b"avc1", b"M4V ",
    b"MSNV", b"dash",
];

/// Returns the type of an image, an audio file or a video, and `None` for all other bytes. `bytes` are the
/// whole value, or at least its first 4,096 bytes.
pub(crate) fn payload_type(bytes: &[u8]) -> Option<&'static str> {
    let other = || FORMATS.iter().find(|(_, accepts)| accepts(bytes)).map(|(name, _)| *name);
    image_type(bytes).or_else(other)
}

fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let format = image_format(bytes)?;
    IMAGES.into_iter().find(|name| name.ends_with(format))
}

/// Returns whether byte strings are the elements of an array: eight or more of one byte each, some of them no
/// text.
pub(crate) fn is_one_array(list: List<'_, &[u8]>) -> bool {
    list.len() >= 8
        && list.iter().all(|value| value.len() == 1)
        && list.iter().flatten().any(|byte| !byte.is_ascii_graphic())
}

/// Number of characters in base64 whose bytes tell most formats of images.
const FIRST: usize = 16;
/// Largest text in base64 that is decoded.
const MAX_ENCODED: usize = 64 << 20;

/// Returns the image that a text in base64 holds, in either alphabet and also as a `data:` URL; all other
/// bytes as they are.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, [u8]> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    static STANDARD: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, CONFIG);
    static URL_SAFE: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, CONFIG);
    let image = |text: &[u8]| {
        let is_url = text.iter().any(|byte| matches!(byte, b'-' | b'_'));
        let engine = if is_url { &URL_SAFE } else { &STANDARD };
        engine.decode(text).ok().filter(|bytes| image_type(bytes).is_some())
    };
    let url = bytes.strip_prefix(b"data:image/").and_then(|rest| {
        let comma = rest.iter().take(32).position(|byte| *byte == b',')?;
        rest.get(comma + 1..)
    });
    let text = url.unwrap_or(bytes);
    if text.len() > MAX_ENCODED || text.get(..FIRST).and_then(image).is_none() {
        return Cow::Borrowed(bytes);
    }
    image(text.trim_ascii_end()).map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Returns the type of an image that browsers show, and its bytes, which a text in base64 may hold. `None`
/// for all other bytes.
pub fn shown_image(bytes: &[u8]) -> Option<(&'static str, Cow<'_, [u8]>)> {
    let image = decoded(bytes);
    Some((image_type(&image)?, image))
}

/// Returns whether a response may show a payload of this type in the page. All other payloads are downloads.
pub(crate) fn is_shown(content_type: &str) -> bool {
    IMAGES.contains(&content_type) || FORMATS.iter().any(|(name, _)| *name == content_type)
}

/// Returns the brands of the first box of an ISO base media file. The first one is the major brand.
fn brands(bytes: &[u8]) -> Option<impl Iterator<Item = &[u8; 4]>> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first_chunk::<4>()?;
    let size = u32::from_be_bytes(*size).checked_sub(8)?.min(4096) as usize;
    let rest = rest.get(..size.min(rest.len()))?;
    // The second word is the version of the major brand.
    let brands = rest.chunks_exact(4).enumerate().filter(|(k, _)| *k != 1);
    (kind == b"ftyp").then(|| brands.filter_map(|(_, brand)| brand.first_chunk()))
}

/// Tests the major brand.
fn is_m4a(bytes: &[u8]) -> bool {
    brands(bytes).and_then(|mut brands| brands.next()).is_some_and(|brand| AUDIO_BRANDS.contains(&brand))
}

/// Audio and AVIF files name brands of videos too, among the compatible ones.
fn is_mp4(bytes: &[u8]) -> bool {
    let is_video = brands(bytes).is_some_and(|mut brands| brands.any(|brand| VIDEO_BRANDS.contains(&brand)));
    is_video && !is_m4a(bytes) && image_format(bytes).is_none()
}

/// Looks for the document type in the header, because Matroska files have the same first bytes.
fn is_webm(bytes: &[u8]) -> Option<()> {
    /// Splits a number of variable length off. Its length is the number of leading zero bits, plus one.
    fn number(bytes: &[u8], keep_marker: bool) -> Option<(u64, &[u8])> {
        let first = *bytes.first()?;
        let len = first.leading_zeros() as usize + 1;
        let (own, rest) = bytes.split_at_checked(len)?;
        let value = own.get(..8.min(len))?.iter().fold(0, |value: u64, b| value << 8 | u64::from(*b));
        let marker = 1_u64.checked_shl(7 * len as u32)?;
        (len <= 8).then_some((if keep_marker { value } else { value & (marker - 1) }, rest))
    }
    let rest = bytes.strip_prefix(&[0x1a, 0x45, 0xdf, 0xa3])?;
    let (size, rest) = number(rest, false)?;
    let mut rest = rest.get(..usize::try_from(size).ok()?.min(rest.len()))?;
    loop {
        let (id, after) = number(rest, true)?;
        let (size, after) = number(after, false)?;
        let (value, after) = after.split_at_checked(usize::try_from(size).ok()?)?;
        if id == 0x4282 {
            return (value.strip_suffix(b"\0").unwrap_or(value) == b"webm").then_some(());
        }
        rest = after;
    }
}

/// Tests for a tag, or for two frames in a row, because the sync word alone is common in other bytes.
fn is_mp3(bytes: &[u8]) -> bool {
    if let Some(tag) = bytes.strip_prefix(b"ID3") {
        let [version, revision, _, size @ ..] = tag else { return false };
        let size = size.first_chunk::<4>();
        return (2..=4).contains(version)
            && *revision < 0xff
            && size.is_some_and(|s| s.iter().all(|b| *b < 0x80));
    }
    let Some(len) = frame_len(bytes) else { return false };
    let Some(next) = bytes.get(len..) else { return false };
    next.is_empty() || next.starts_with(b"TAG") || frame_len(next).is_some()
}

/// Returns the length of the MPEG audio frame of layer 2 or 3 at the start of `bytes`.
fn frame_len(bytes: &[u8]) -> Option<usize> {
    /// Kilobits per second of layer 2 and 3 of MPEG-1, and of both layers of the later versions.
    const RATES: [[usize; 14]; 3] = [
        [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
        [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    ];
    let [0xff, b, c, _, ..] = bytes else { return None };
    if b & 0xe0 != 0xe0 {
        return None;
    }
    let is_layer_3 = match b >> 1 & 3 {
        1 => true,
        2 => false,
        _ => return None,
    };
    // Sampling rates of MPEG-1 are halved by version 2 and halved again by 2.5.
    let halvings = match b >> 3 & 3 {
        3 => 0,
        2 => 1,
        0 => 2,
        _ => return None,
    };
    let sampling = [44_100, 48_000, 32_000].get(usize::from(c >> 2 & 3))? >> halvings;
    let row = if halvings > 0 { 2 } else { usize::from(is_layer_3) };
    let rate = RATES.get(row)?.get(usize::from(c >> 4).checked_sub(1)?)? * 1000;
    let bytes_per_rate = if is_layer_3 && halvings > 0 { 72 } else { 144 };
    Some(bytes_per_rate * rate / sampling + usize::from(c >> 1 & 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mp3_frames(count: usize) -> Vec<u8> {
        // MPEG-1, layer 3, 128 kbit/s, 44.1 kHz: 417 bytes a frame.
        let frame = [&[0xff, 0xfb, 0x90, 0x64][..], &[0; 413]].concat();
        frame.repeat(count)
    }

    fn shown() -> Vec<(&'static str, Vec<u8>)> {
        let ftyp = |brands: &[&[u8; 4]]| {
            let mut file = (8 + 4 + 4 * brands.len() as u32).to_be_bytes().to_vec();
            file.extend(b"ftyp");
            file.extend(brands[0]);
            file.extend(0_u32.to_be_bytes());
            file.extend(brands[1..].iter().copied().flatten());
            [file, vec![0, 0, 0, 8, b'm', b'd', b'a', b't']].concat()
        };
        let bmp = |header: u8| [&b"BM"[..], &[9; 12], &[header, 0, 0, 0], &[0; 50]].concat();
        vec![
            ("image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01".to_vec()),
            ("image/png", b"\x89PNG\r\n\x1a\nrest".to_vec()),
            ("image/gif", b"GIF87a\x0a\0\x01\0\0\0\0;".to_vec()),
            ("image/gif", b"GIF89a\x0a\0\x01\0\0\0\0;".to_vec()),
            ("image/webp", b"RIFF\x10\0\0\0WEBPVP8 ".to_vec()),
            ("image/bmp", bmp(40)),
            ("image/bmp", bmp(124)),
            ("image/avif", ftyp(&[b"avif", b"mif1", b"miaf"])),
            ("image/avif", ftyp(&[b"mif1", b"avif"])),
            ("image/avif", ftyp(&[b"avis", b"iso8", b"isom"])),
            ("audio/wav", b"RIFF\x10\0\0\0WAVEfmt ".to_vec()),
            ("audio/flac", b"fLaC\0".to_vec()),
            ("audio/ogg", b"OggS\0\x02".to_vec()),
            ("audio/mpeg", b"ID3\x04\0\0\0\0\x10\x10rest".to_vec()),
            ("audio/mpeg", mp3_frames(1)),
            ("audio/mpeg", mp3_frames(3)),
            ("audio/mpeg", mp3_frames(2)[..421].to_vec()),
            ("audio/mpeg", [mp3_frames(1), b"TAGtitle".to_vec()].concat()),
            ("audio/mp4", ftyp(&[b"M4A ", b"isom", b"mp42"])),
            ("video/mp4", ftyp(&[b"isom", b"iso2", b"avc1", b"mp41"])),
            ("video/mp4", ftyp(&[b"XXXX", b"mp42"])),
            ("video/webm", b"\x1a\x45\xdf\xa3\x8b\x42\x86\x81\x01\x42\x82\x84webm".to_vec()),
            ("video/webm", b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x07\x42\x82\x84webm".to_vec()),
        ]
    }

    #[test]
    fn each_format_has_its_type() {
        for (name, bytes) in shown() {
            assert_eq!(payload_type(&bytes), Some(name), "{}", bytes.escape_ascii());
            assert!(is_shown(name));
            let matches: Vec<_> = FORMATS.iter().filter(|(_, accepts)| accepts(&bytes)).collect();
            assert_eq!(matches.len(), usize::from(!name.starts_with("image/")), "{name}");
        }
    }

    #[test]
    fn images_in_base64_are_decoded() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\xfb\xff";
        let text = "/9j/4AAQSkZJRgAB+/8=";
        let urls = text.replace('/', "_").replace('+', "-");
        for encoded in [text, text.trim_end_matches('='), &urls, &format!("data:image/jpeg;base64,{text}\n")]
        {
            assert_eq!(&*decoded(encoded.as_bytes()), jpeg, "{encoded}");
        }
        for other in [&b"/9j/ is no image"[..], b"R0lGOD", b"iVBORw0KGgo", b"", jpeg] {
            assert_eq!(&*decoded(other), other);
        }
    }

    #[test]
    fn other_bytes_have_none() {
        let bmp_text = b"BM is the abbreviation of bitmap, and this is text.";
        for bytes in [
            &b""[..],
            b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
            b"<?xml version='1.0'?><svg/>",
            b"<!doctype html><script>alert(1)</script>",
            b"%PDF-1.7",
            b"II*\0",
            b"GIF88a",
            b"RIFF\x10\0\0\0AVI LIST",
            bmp_text,
            b"OggX",
            // A type of Apple, a still image, a box of size 0 and one that is no `ftyp`.
            b"\0\0\0\x14ftypqt  \0\0\0\0qt  ",
            b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
            b"\0\0\0\0ftypisom\0\0\0\0isom",
            b"\0\0\0\x18moovisom\0\0\0\0isom",
            // The version of the major brand is no brand.
            b"\0\0\0\x14ftypXXXXisomYYYY",
            // Brands after the end of the box.
            b"\0\0\0\x10ftypXXXX\0\0\0\0isomisom",
            // Matroska, and lengths that lie.
            b"\x1a\x45\xdf\xa3\x8b\x42\x82\x88matroska",
            b"\x1a\x45\xdf\xa3\x8b\x42\x82\x01\xff\xff\xff\xff\xff\xff\xffwebm",
            b"\x1a\x45\xdf\xa3\x80\x42\x82\x84webm",
            b"\x1a\x45\xdf\xa3\0\0\0\0\0\0\0\0\0",
            b"\x1a\x45\xdf\xa3",
            b"ID3 is not a tag here",
            b"ID3\x04\0\0\xff\0\0\0",
            &[0xff; 4000],
            &[0; 4000],
            &[0xff, 0xfb, 0x90, 0x64],
            // Frames without a second one.
            &[&mp3_frames(1)[..], &[1; 500]].concat(),
        ] {
            assert_eq!(payload_type(bytes), None, "{}", bytes.escape_ascii());
        }
        for name in ["image/svg+xml", "text/html", "text/plain", "application/json", OCTET_STREAM, ""] {
            assert!(!is_shown(name), "{name}");
        }
    }

    #[test]
    fn no_prefix_or_flipped_byte_panics() {
        for (name, bytes) in shown() {
            for len in 0..bytes.len().min(500) {
                payload_type(&bytes[..len]);
            }
            for at in 0..bytes.len().min(64) {
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut bytes = bytes.clone();
                    bytes[at] = value;
                    payload_type(&bytes);
                }
            }
            assert_eq!(payload_type(&[&b"x"[..], &bytes].concat()), None, "{name}");
        }
    }

    #[test]
    fn frames_of_all_versions_have_their_lengths() {
        for (header, len) in [
            ([0xff, 0xfb, 0x90, 0x64], 417),
            ([0xff, 0xfb, 0x92, 0x64], 418),
            ([0xff, 0xfb, 0xe0, 0], 1044),
            // Layer 2 of MPEG-1, 192 kbit/s, 48 kHz.
            ([0xff, 0xfd, 0xa4, 0], 576),
            // MPEG-2, 64 kbit/s, 22,050 Hz, layer 3; MPEG-2.5, 8 kbit/s, 8 kHz.
            ([0xff, 0xf3, 0x80, 0], 208),
            ([0xff, 0xe3, 0x18, 0], 72),
        ] {
            assert_eq!(frame_len(&header), Some(len), "{header:02x?}");
        }
        // A reserved version, layer 1, no layer (AAC), no sync, bit rates 0 and 15, sampling rate 3.
        for header in [
            [0xff, 0xeb, 0x90, 0],
            [0xff, 0xff, 0x90, 0],
            [0xff, 0xf9, 0x90, 0],
            [0xff, 0xdb, 0x90, 0],
            [0xff, 0xfb, 0x00, 0],
            [0xff, 0xfb, 0xf0, 0],
            [0xff, 0xfb, 0x9c, 0],
        ] {
            assert_eq!(frame_len(&header), None, "{header:02x?}");
        }
    }
}
