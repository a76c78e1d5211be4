//! Readable forms of byte strings: text in quotes, images by their dimensions, other bytes in hex.

use std::fmt::{self, Display, Write};
use tfseek::filter::{image_format, image_size};
use tfseek_tools::fields::text;
use tfseek_tools::words::Quoted;

pub(crate) use tfseek_tools::words::Key;

/// A number of bytes, printed rounded (`17.1 kB`) or exact (`17123 B`).
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) exact: bool,
}

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { bytes, exact } = *self;
        match bytes {
            _ if exact => write!(f, "{bytes} B"),
            1 => f.write_str("1 byte"),
            0..1000 => write!(f, "{bytes} bytes"),
            _ => f.write_str(&tfseek_tools::sizes::text(bytes)),
        }
    }
}

/// Limits on the printed part of a byte string.
#[derive(Clone, Copy)]
pub(crate) struct ByteLimits {
    /// Maximum number of characters of a text.
    pub(crate) text: usize,
    /// Maximum number of bytes in hex.
    pub(crate) hex: usize,
    /// Print sizes as exact numbers of bytes.
    pub(crate) exact: bool,
}

/// A byte string in readable form, on one line.
pub(crate) struct Readable<'a>(pub(crate) &'a [u8], pub(crate) ByteLimits);

impl Display for Readable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Readable(bytes, limits) = *self;
        let size = Size { bytes: bytes.len() as u64, exact: limits.exact };
        if let Some(text) = text(bytes) {
            return match text.char_indices().nth(limits.text) {
                None => Quoted(text).fmt(f),
                Some((end, _)) => write!(f, "{}.. ({size})", Quoted(text.get(..end).unwrap_or(text))),
            };
        }
        if let Some(format) = image_format(bytes)
            && let Some((width, height)) = image_size(bytes)
        {
            return write!(f, "<{format} {width}x{height} {size}>");
        }
        f.write_char('<')?;
        // Up to four bytes need no size: a reader can count them.
        if bytes.len() > 4 {
            write!(f, "{size} ")?;
        }
        for byte in bytes.iter().take(limits.hex) {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(if bytes.len() > limits.hex { "..>" } else { ">" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        Readable(bytes, ByteLimits { text: 10, hex: 4, exact: false }).to_string()
    }

    #[test]
    fn sizes() {
        let size = |bytes| Size { bytes, exact: false }.to_string();
        assert_eq!(
            [0, 1, 999, 1000, 17_123, 1_000_000].map(size),
            ["0 bytes", "1 byte", "999 bytes", "1 kB", "17.1 kB", "1 MB"]
        );
        assert_eq!(Size { bytes: 17_123, exact: true }.to_string(), "17123 B");
    }

    #[test]
    fn text_and_other_bytes() {
        assert_eq!(shown(b""), "\"\"");
        assert_eq!(shown(b"cat"), "\"cat\"");
        assert_eq!(shown("it's \"ü\"\n".as_bytes()), "\"it's \\\"ü\\\"\\n\"");
        assert_eq!(shown(b"0123456789"), "\"0123456789\"");
        assert_eq!(shown(b"0123456789a"), "\"0123456789\".. (11 bytes)");
        assert_eq!(shown(b"\x1b[31m"), "<5 bytes 1b5b3331..>");
        assert_eq!(shown("a\u{202e}b".as_bytes()), "\"a\\u{202e}b\"");
        assert_eq!(shown(&[0xff, 0]), "<ff00>");
    }

    #[test]
    fn images_are_printed_by_their_dimensions() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0";
        assert_eq!(shown(png), "<png 320x240 29 bytes>");
        // The signature alone is not an image.
        assert_eq!(shown(&png[..8]), "<8 bytes 89504e47..>");
    }
}
