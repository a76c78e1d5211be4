//! Formats of compressed files: their names, suffixes and first bytes.

use crate::error::{Error, OptionsError};
use std::fmt;
use std::str::FromStr;

/// The compression of a file. It applies to the whole record stream, not to single records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// gzip (RFC 1952), one or more members.
    Gzip,
    /// zlib (RFC 1950), one stream.
    Zlib,
}

/// The format of a compressed file.
///
/// A match on it names each format, so a new one does not compile before each place says what it does with
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompressedFormat {
    Gzip,
    Zlib,
}

impl CompressedFormat {
    pub(crate) const ALL: [CompressedFormat; 2] = [CompressedFormat::Gzip, CompressedFormat::Zlib];

    pub(crate) fn compression(self) -> Compression {
        match self {
            CompressedFormat::Gzip => Compression::Gzip,
            CompressedFormat::Zlib => Compression::Zlib,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            CompressedFormat::Gzip => "gzip",
            CompressedFormat::Zlib => "zlib",
        }
    }

    /// Returns the suffixes of file names. Writers use the first one.
    fn suffixes(self) -> &'static [&'static str] {
        match self {
            CompressedFormat::Gzip => &[".gz", ".gzip"],
            CompressedFormat::Zlib => &[".zz", ".zlib", ".z"],
        }
    }

    /// Returns true if a file of this format may begin with these bytes.
    pub(crate) fn may_begin(self, first: &[u8]) -> bool {
        match self {
            CompressedFormat::Gzip => first.starts_with(&[0x1f, 0x8b, 0x08]),
            // RFC 1950: method 8, a window of at most 2^15, a header that is a multiple of 31.
            CompressedFormat::Zlib => first.first_chunk().is_some_and(|&[method, flags]| {
                let header = u16::from_be_bytes([method, flags]);
                method & 15 == 8 && method >> 4 <= 7 && header.is_multiple_of(31)
            }),
        }
    }

    /// Returns true if few files of other formats begin so.
    pub(crate) fn is_sure(self) -> bool {
        match self {
            CompressedFormat::Gzip => true,
            CompressedFormat::Zlib => false,
        }
    }

    /// Returns true if a file may have several members, each with its own end. Otherwise it is one stream.
    pub(crate) fn has_members(self) -> bool {
        match self {
            CompressedFormat::Gzip => true,
            CompressedFormat::Zlib => false,
        }
    }
}

impl Compression {
    /// Returns `none`, `gzip` or `zlib`.
    pub fn name(self) -> &'static str {
        self.format().map_or("none", CompressedFormat::name)
    }

    /// Returns the format of a compressed file. `None` for a plain file.
    pub(crate) fn format(self) -> Option<CompressedFormat> {
        match self {
            Compression::None => None,
            Compression::Gzip => Some(CompressedFormat::Gzip),
            Compression::Zlib => Some(CompressedFormat::Zlib),
        }
    }

    /// Returns the compression that the suffix of a file name states, and the name without the suffix.
    ///
    /// ```
    /// use tfseek::Compression;
    /// assert_eq!(Compression::of_name("train.tfrecord.gz"), (Compression::Gzip, "train.tfrecord"));
    /// assert_eq!(Compression::of_name("train.tfrecord"), (Compression::None, "train.tfrecord"));
    /// ```
    pub fn of_name(name: &str) -> (Compression, &str) {
        let stem = |format: CompressedFormat| {
            let stem = format.suffixes().iter().find_map(|suffix| name.strip_suffix(*suffix))?;
            Some((format.compression(), stem))
        };
        CompressedFormat::ALL.into_iter().find_map(stem).unwrap_or((Compression::None, name))
    }

    /// Returns the suffix of files that are written with this compression. Empty for plain files.
    pub fn suffix(self) -> &'static str {
        self.format().and_then(|format| format.suffixes().first()).copied().unwrap_or("")
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses TensorFlow's names (`""`, `GZIP`, `ZLIB`) and tfseek's, in upper or lower case. An unknown name is
/// an error. TensorFlow treats it as uncompressed.
impl FromStr for Compression {
    type Err = Error;

    fn from_str(name: &str) -> Result<Compression, Error> {
        if name.is_empty() || name.eq_ignore_ascii_case(Compression::None.name()) {
            return Ok(Compression::None);
        }
        let mut all = CompressedFormat::ALL.into_iter();
        all.find(|format| name.eq_ignore_ascii_case(format.name()))
            .map(CompressedFormat::compression)
            .ok_or_else(|| {
                let reason = "expected none, gzip or zlib";
                OptionsError::Name { what: "compression", name: name.into(), reason }.into()
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_in_any_case() {
        for (name, expected) in
            [("", Compression::None), ("GZIP", Compression::Gzip), ("zlib", Compression::Zlib)]
        {
            assert_eq!(name.parse::<Compression>().unwrap(), expected);
        }
        assert!("SNAPPY".parse::<Compression>().is_err());
        for format in CompressedFormat::ALL {
            let compression = format.compression();
            assert_eq!(compression.format(), Some(format));
            assert_eq!(compression.name().parse::<Compression>().unwrap(), compression);
            assert_eq!(Compression::of_name(&format!("a{}", compression.suffix())), (compression, "a"));
        }
    }
}
