//! Images by their first bytes: format, width and height, without decoding them.

use imagesize::ImageType;

/// The header of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageHeader {
    /// `jpeg`, `png`, `gif`, `webp`, `tiff`, `heif`, `jxl` or `qoi`.
    pub format: &'static str,
    /// Width and height in pixels. `None` if the header has the signature of the format and cannot be decoded.
    pub size: Option<(usize, usize)>,
}

/// Returns the header of an image, if the bytes begin with the signature of a format.
pub fn header(bytes: &[u8]) -> Option<ImageHeader> {
    // The first byte rules out most texts.
    if !matches!(bytes.first()?, 0xff | 0x89 | b'G' | b'R' | b'I' | b'M' | b'q' | 0) {
        return None;
    }
    let format = match imagesize::image_type(bytes).ok()? {
        ImageType::Jpeg => "jpeg",
        ImageType::Png => "png",
        ImageType::Gif => "gif",
        ImageType::Webp => "webp",
        ImageType::Tiff => "tiff",
        ImageType::Heif(_) => "heif",
        ImageType::Jxl => "jxl",
        ImageType::Qoi => "qoi",
        _ => return None,
    };
    Some(ImageHeader { format, size: imagesize::blob_size(bytes).ok().map(|size| (size.width, size.height)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_a_format_and_a_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0";
        assert_eq!(header(png), Some(ImageHeader { format: "png", size: Some((320, 240)) }));
        // The signature alone is the start of an undecodable image.
        assert_eq!(header(&png[..12]), Some(ImageHeader { format: "png", size: None }));
        assert_eq!((header(b""), header(b"text"), header(b"\0\0\0\0")), (None, None, None));
    }
}
