//! How a byte string is shown to people: text as text, an image by its size, the rest in hex.

use std::fmt::{self, Display, Write};

/// A number of bytes: `17 kB`, or exact.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) exact: bool,
}

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { bytes, exact } = *self;
        if exact || bytes < 1000 {
            return match bytes {
                1 if !exact => f.write_str("1 byte"),
                _ if exact => write!(f, "{bytes} B"),
                _ => write!(f, "{bytes} bytes"),
            };
        }
        let (mut value, mut name) = (bytes as f64 / 1e3, "kB");
        for larger in ["MB", "GB", "TB", "PB", "EB"] {
            // 999.95 kB would round to 1000.0 kB.
            if value < 999.5 {
                break;
            }
            (value, name) = (value / 1e3, larger);
        }
        if value < 9.95 { write!(f, "{value:.1} {name}") } else { write!(f, "{value:.0} {name}") }
    }
}

/// The bytes as text, if they are text: UTF-8, and of the control characters only tab and line ends.
pub(crate) fn as_text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let printable = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    text.chars().all(printable).then_some(text)
}

/// A text in quotes, on one line, and with nothing in it that a terminal would act upon.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        escape(f, self.0, true)?;
        f.write_char('"')
    }
}

/// A key: as it is, unless something in it needs quotes.
pub(crate) struct Key<'a>(pub(crate) &'a str);

impl Key<'_> {
    fn plain(&self) -> bool {
        !self.0.is_empty() && self.0.chars().all(|c| c.is_alphanumeric() || c.is_ascii_graphic() && c != '"')
    }

    /// Characters it takes.
    pub(crate) fn width(&self) -> usize {
        if self.plain() { self.0.chars().count() } else { Quoted(self.0).to_string().chars().count() }
    }
}

impl Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plain() { f.write_str(self.0) } else { Quoted(self.0).fmt(f) }
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: &str, quoted: bool) -> fmt::Result {
    // Piece by piece: `escape_debug` escapes both quotes, and combining marks at the start of a text only.
    for (k, piece) in text.split('\'').enumerate() {
        if k > 0 {
            f.write_char('\'')?;
        }
        for (k, piece) in piece.split('"').enumerate() {
            if k > 0 {
                f.write_str(if quoted { "\\\"" } else { "\"" })?;
            }
            piece.escape_debug().fmt(f)?;
        }
    }
    Ok(())
}

/// How much of a value is shown.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    /// Characters of a text.
    pub(crate) text: usize,
    /// Bytes in hex.
    pub(crate) hex: usize,
    /// Sizes in bytes.
    pub(crate) exact: bool,
}

/// A byte string for people, on one line.
pub(crate) struct Value<'a>(pub(crate) &'a [u8], pub(crate) Shown);

impl Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Value(bytes, shown) = *self;
        let size = Size { bytes: bytes.len() as u64, exact: shown.exact };
        if let Some(text) = as_text(bytes) {
            return match text.char_indices().nth(shown.text) {
                None => Quoted(text).fmt(f),
                Some((end, _)) => write!(f, "{}.. ({size})", Quoted(text.get(..end).unwrap_or(text))),
            };
        }
        if let Some((name, width, height)) = image(bytes) {
            return write!(f, "<{name} {width}x{height} {size}>");
        }
        f.write_char('<')?;
        // A few bytes are counted at a glance.
        if bytes.len() > 4 {
            write!(f, "{size} ")?;
        }
        for byte in bytes.iter().take(shown.hex) {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(if bytes.len() > shown.hex { "..>" } else { ">" })
    }
}

fn image(bytes: &[u8]) -> Option<(&'static str, usize, usize)> {
    use imagesize::ImageType;
    let name = match imagesize::image_type(bytes).ok()? {
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
    let size = imagesize::blob_size(bytes).ok()?;
    Some((name, size.width, size.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        Value(bytes, Shown { text: 10, hex: 4, exact: false }).to_string()
    }

    #[test]
    fn sizes() {
        let size = |bytes| Size { bytes, exact: false }.to_string();
        assert_eq!(
            [0, 1, 999, 1000, 1234, 9_949, 9_950, 17_123, 999_499, 999_500, 1_000_000, u64::MAX].map(size),
            [
                "0 bytes",
                "1 byte",
                "999 bytes",
                "1.0 kB",
                "1.2 kB",
                "9.9 kB",
                "10 kB",
                "17 kB",
                "999 kB",
                "1.0 MB",
                "1.0 MB",
                "18 EB"
            ]
        );
        assert_eq!(Size { bytes: 17_123, exact: true }.to_string(), "17123 B");
    }

    #[test]
    fn text_and_what_is_none() {
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
    fn images_by_their_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0";
        assert_eq!(shown(png), "<png 320x240 29 bytes>");
        // The signature alone is no image.
        assert_eq!(shown(&png[..8]), "<8 bytes 89504e47..>");
    }

    #[test]
    fn keys() {
        assert_eq!(Key("image/encoded").to_string(), "image/encoded");
        assert_eq!(Key("größe").to_string(), "größe");
        assert_eq!(Key("").to_string(), "\"\"");
        assert_eq!(Key("a b").to_string(), "\"a b\"");
        assert_eq!(Key("a\nb").width(), 6);
    }
}
