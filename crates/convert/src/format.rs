//! `FileFormat`: formats of files, known by the suffixes of their names.

use crate::error::ConvertError;
use std::fmt;
use std::path::Path;
use tfseek::Compression;
use tfseek::paths::has_extension;

/// The format of a file, which the suffix of its name states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFormat {
    /// TFRecord: `.tfrecord`, `.tfrecords`, `.tfrec`, `.record`, `.tfr`, also with `.gz` or `.zz`.
    TfRecord(Compression),
    /// One JSON object per line: `.jsonl`, `.ndjson`.
    JsonLines,
    /// Parquet: `.parquet`.
    Parquet,
    /// An Arrow IPC file, which Feather version 2 is: `.arrow`, `.feather`.
    ArrowFile,
    /// An Arrow IPC stream: `.arrows`.
    ArrowStream,
    /// Payloads that each follow their length as a varint. No suffix states it;
    /// [`ImportOptions::format`](crate::ImportOptions::format) does.
    Bare,
}

/// Suffixes of the other formats.
const SUFFIXES: [(&str, FileFormat); 6] = [
    (".parquet", FileFormat::Parquet),
    (".arrow", FileFormat::ArrowFile),
    (".feather", FileFormat::ArrowFile),
    (".arrows", FileFormat::ArrowStream),
    (".jsonl", FileFormat::JsonLines),
    (".ndjson", FileFormat::JsonLines),
];

impl FileFormat {
    /// Returns the format that the suffix of a name states.
    ///
    /// ```
    /// use std::path::Path;
    /// use tfseek::Compression;
    /// use tfseek_convert::FileFormat;
    /// assert_eq!(FileFormat::of(Path::new("out/train.jsonl")), Some(FileFormat::JsonLines));
    /// assert_eq!(FileFormat::of(Path::new("a.tfrecord.gz")), Some(FileFormat::TfRecord(Compression::Gzip)));
    /// assert_eq!(FileFormat::of(Path::new("train.csv")), None);
    /// ```
    pub fn of(path: &Path) -> Option<FileFormat> {
        let name = path.file_name()?.to_str()?;
        let other = SUFFIXES.iter().find(|(suffix, _)| name.len() > suffix.len() && name.ends_with(suffix));
        match other {
            Some((_, format)) => Some(*format),
            None => has_extension(name).then(|| FileFormat::TfRecord(Compression::of_name(name).0)),
        }
    }

    /// Returns the format of an output.
    ///
    /// # Errors
    /// [`ConvertError::Options`] names the suffixes, if the name has none of them.
    pub fn of_output(path: &Path) -> Result<FileFormat, ConvertError> {
        FileFormat::of(path).ok_or_else(|| {
            let suffixes = SUFFIXES.map(|(suffix, _)| suffix).join(", ");
            let reason =
                format!("expected a name that ends in {suffixes}, or .tfrecord (also with .gz or .zz)");
            ConvertError::refused(path, reason)
        })
    }

    /// Returns the error of a table in a build without them.
    #[cfg(not(feature = "tables"))]
    pub(crate) fn missing(self, path: &Path) -> ConvertError {
        let reason = format!("expected another format, because this build has no tables, found {self}");
        ConvertError::refused(path, reason)
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileFormat::TfRecord(_) => "TFRecord",
            FileFormat::JsonLines => "JSON lines",
            FileFormat::Parquet => "Parquet",
            FileFormat::ArrowFile => "Arrow IPC file",
            FileFormat::ArrowStream => "Arrow IPC stream",
            FileFormat::Bare => "payloads that follow their length",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_state_the_format() {
        let of = |name: &str| FileFormat::of(Path::new(name));
        for name in ["a.tfrecord", "x/a.tfrecords", "a.record", "a.tfrecord-00000-of-00002"] {
            assert_eq!(of(name), Some(FileFormat::TfRecord(Compression::None)), "{name}");
        }
        assert_eq!(of("a.tfrec.zz"), Some(FileFormat::TfRecord(Compression::Zlib)));
        assert_eq!(of("a.b.ndjson"), Some(FileFormat::JsonLines));
        assert_eq!(of("a.parquet"), Some(FileFormat::Parquet));
        assert_eq!([of("a.arrow"), of("a.feather")], [Some(FileFormat::ArrowFile); 2]);
        assert_eq!(of("a.arrows"), Some(FileFormat::ArrowStream));
        for name in ["a", "a.json", "a.csv", "jsonl", ".jsonl", "a.jsonl.gz", "a/", ".", "..", ""] {
            assert_eq!(of(name), None, "{name}");
        }
        let e = FileFormat::of_output(Path::new("a.csv")).unwrap_err();
        assert!(e.to_string().starts_with("a.csv: expected a name that ends in .parquet, .arrow, "), "{e}");
    }
}
