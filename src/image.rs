//! Formats and dimensions of encoded images, from their headers. The only list of first bytes of images, and
//! of the formats' names.

use imagesize::ImageType;

/// Returns the format of an image by its first bytes: `jpeg`, `png`, `gif`, `bmp`, `webp`, `tiff`, `heif`,
/// `avif`, `jxl` or `qoi`. `None` for other bytes, and for formats without an unambiguous signature. Nothing
/// is decoded.
pub fn image_format(bytes: &[u8]) -> Option<&'static str> {
    if let Some(major) = major_brand(bytes) {
        return iso_format(bytes, major);
    }
    // The first byte rules out most texts.
    match bytes.first()? {
        b'B' => return is_bmp(bytes).then_some("bmp"),
        b'G' => return matches!(bytes.get(..6), Some(b"GIF87a" | b"GIF89a")).then_some("gif"),
        0xff | 0x89 | b'R' | b'I' | b'M' | b'q' | 0 => {}
        _ => return None,
    }
    Some(match imagesize::image_type(bytes).ok()? {
        ImageType::Jpeg => "jpeg",
        ImageType::Png => "png",
        ImageType::Webp => "webp",
        ImageType::Tiff => "tiff",
        ImageType::Jxl => "jxl",
        ImageType::Qoi => "qoi",
        _ => return None,
    })
}

/// Returns the name in messages of an image's format, by its first bytes.
pub(crate) fn image_name(bytes: &[u8]) -> Option<&'static str> {
    Some(match image_format(bytes)? {
        "jpeg" => "a JPEG image",
        "png" => "a PNG image",
        "gif" => "a GIF image",
        "bmp" => "a BMP image",
        "webp" => "a WebP image",
        "tiff" => "a TIFF image",
        "heif" => "a HEIC image",
        "avif" => "an AVIF image",
        _ => "an image",
    })
}

/// Tests the two letters, and the size of the second header, because text may begin with these letters.
fn is_bmp(bytes: &[u8]) -> bool {
    const HEADERS: [u32; 8] = [12, 16, 40, 52, 56, 64, 108, 124];
    let header = bytes.get(14..).and_then(<[u8]>::first_chunk).map(|size| u32::from_le_bytes(*size));
    bytes.starts_with(b"BM") && header.is_some_and(|size| HEADERS.contains(&size))
}

/// Returns the major brand of a file with an `ftyp` box: an image, a video or a sound.
pub(crate) fn major_brand(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(8..12).filter(|_| bytes.get(4..8) == Some(b"ftyp"))
}

/// Returns the format of a file with an `ftyp` box. The major brand may be one of videos too, and then the
/// compatible ones decide; videos name no brand of an image first.
fn iso_format(bytes: &[u8], major: &[u8]) -> Option<&'static str> {
    const AVIF: [&[u8]; 5] = [b"avif", b"avis", b"avio", b"MA1A", b"MA1B"];
    const HEIF: [&[u8]; 8] = [b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"];
    const IMAGES: [&[u8]; 4] = [b"mif1", b"msf1", b"mif2", b"miaf"];
    let size = bytes.first_chunk().map(|size| u32::from_be_bytes(*size))?.min(4096) as usize;
    // The version follows the major brand.
    let mut compatible = bytes.get(16..size.min(bytes.len())).unwrap_or_default().chunks_exact(4);
    if AVIF.contains(&major) || (IMAGES.contains(&major) && compatible.any(|brand| AVIF.contains(&brand))) {
        return Some("avif");
    }
    (HEIF.contains(&major) || IMAGES.contains(&major)).then_some("heif")
}

/// Returns width and height of an image in pixels, from its header. `None` if the header cannot be decoded.
pub fn image_size(bytes: &[u8]) -> Option<(usize, usize)> {
    let size = imagesize::blob_size(bytes).ok()?;
    Some((size.width, size.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_a_format_and_a_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0";
        assert_eq!((image_format(png), image_size(png)), (Some("png"), Some((320, 240))));
        // The signature alone is the start of an undecodable image.
        assert_eq!((image_format(&png[..12]), image_size(&png[..12])), (Some("png"), None));
        assert_eq!([&b""[..], b"text", b"\0\0\0\0"].map(image_format), [None; 3]);
    }

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        let ftyp = |brands: &[&[u8; 4]]| {
            let size = (8 + 4 * (brands.len() as u32 + 1)).to_be_bytes();
            let (major, compatible) = brands.split_first().unwrap();
            let compatible: Vec<u8> = compatible.iter().flat_map(|brand| **brand).collect();
            [&size[..], b"ftyp", *major, &[0; 4], &compatible, b"mdat"].concat()
        };
        let bmp = |header: u8| [&b"BM"[..], &[9; 12], &[header, 0, 0, 0], &[0; 50]].concat();
        for (expected, bytes) in [
            (Some("jpeg"), b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01".to_vec()),
            (Some("gif"), b"GIF89a\x01\0\x01\0".to_vec()),
            (Some("webp"), b"RIFF\x10\0\0\0WEBPVP8 ".to_vec()),
            (Some("tiff"), b"II*\0\x08\0\0\0\0\0\0\0".to_vec()),
            (Some("tiff"), b"MM\0*\0\0\0\x08\0\0\0\0".to_vec()),
            (Some("bmp"), bmp(40)),
            (Some("avif"), ftyp(&[b"avif", b"mif1", b"miaf"])),
            (Some("avif"), ftyp(&[b"mif1", b"avif"])),
            (Some("heif"), ftyp(&[b"heic", b"mif1", b"heic"])),
            (Some("heif"), ftyp(&[b"mif1", b"heic"])),
            (None, ftyp(&[b"isom", b"iso2", b"avc1", b"mp41"])),
            (None, ftyp(&[b"qt  "])),
            (None, bmp(99)),
            (None, b"BMX riders are in the picture".to_vec()),
            (None, b"GIF8 is short for it".to_vec()),
        ] {
            assert_eq!(image_format(&bytes), expected, "{}", bytes.escape_ascii());
        }
    }
}
