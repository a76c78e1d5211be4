//! Formats and dimensions of encoded images, from their headers. The only list of first bytes of images.

use imagesize::ImageType;

/// Returns the format of an image by its first bytes: `jpeg`, `png`, `gif`, `webp`, `tiff`, `heif`, `jxl` or `qoi`. `None` for other bytes,
/// and for formats without an unambiguous signature. Nothing is decoded.
pub fn image_format(bytes: &[u8]) -> Option<&'static str> {
    // The first byte rules out most texts. Only `heif` may begin with any byte.
    let may_begin = matches!(bytes.first()?, 0xff | 0x89 | b'G' | b'R' | b'I' | b'M' | b'q' | 0);
    if !may_begin && bytes.get(4..8) != Some(b"ftyp") {
        return None;
    }
    Some(match imagesize::image_type(bytes).ok()? {
        ImageType::Jpeg => "jpeg",
        ImageType::Png => "png",
        ImageType::Gif => "gif",
        ImageType::Webp => "webp",
        ImageType::Tiff => "tiff",
        ImageType::Heif(_) => "heif",
        ImageType::Jxl => "jxl",
        ImageType::Qoi => "qoi",
        _ => return None,
    })
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
}
