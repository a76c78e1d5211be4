//! Detection of file formats by the first bytes. File name suffixes are not reliable.

use super::compression::{CompressedFormat, Compression};
use super::inflate::{first_inflated, first_record, inflates_to_records};
use super::unframed::{self, LooksLike};
use crate::error::{CompressionError, Error, ErrorKind, Remedy};
use crate::frame::starts_with_record;
use crate::image::{image_name, major_brand};
use std::io::{self, Read};

/// Number of first bytes that the functions of this module need at most.
pub(crate) const SNIFF_LEN: usize = 512;

/// Reads up to [`SNIFF_LEN`] bytes.
pub(crate) fn first_bytes(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(SNIFF_LEN);
    reader.take(SNIFF_LEN as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// Returns the compression of the file that begins with `first`. A valid record header takes precedence.
pub(crate) fn compression(first: &[u8]) -> Compression {
    if starts_with_record(first) {
        return Compression::None;
    }
    let begins = |format: &CompressedFormat| {
        format.may_begin(first) && (format.is_sure() || inflates_to_records(first, *format))
    };
    CompressedFormat::ALL.into_iter().find(begins).map_or(Compression::None, CompressedFormat::compression)
}

/// Returns true if the file that begins with `first` is a TFRecord file with a record, compressed or not.
pub(crate) fn begins_with_record(first: &[u8]) -> bool {
    let compressed =
        |format: &CompressedFormat| format.may_begin(first) && first_record(first, *format) == Some(true);
    starts_with_record(first) || CompressedFormat::ALL.iter().any(compressed)
}

/// Offset, magic bytes, name and remedy of a file format.
type Magic = (usize, &'static [u8], &'static str, Remedy<'static>);

const MAGICS: &[Magic] = &[
    (0, b"version https://git-lfs.github.com/spec", "a git-LFS pointer", Remedy::FetchLfs),
    (0, b"\x1f\x8b", "gzip", Remedy::Compression),
    (0, b"PAR1", "Parquet", Remedy::Convert),
    (0, b"PK\x03\x04", "a zip archive", Remedy::Extract),
    (0, b"PK\x05\x06", "an empty zip archive", Remedy::Extract),
    (257, b"ustar", "a tar archive", Remedy::ExtractOr("webdataset")),
    (0, b"\x93NUMPY", "a NumPy array", Remedy::ReadWith("numpy.load")),
    (
        0,
        b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f",
        "ArrayRecord or Riegeli",
        Remedy::ReadWith("array_record or riegeli"),
    ),
    (0, b"ARROW1", "an Arrow or Feather file", Remedy::Convert),
    (0, b"\xff\xff\xff\xff", "an Arrow stream", Remedy::Convert),
    (0, b"ORC", "ORC", Remedy::Convert),
    (0, b"Obj\x01", "Avro", Remedy::Convert),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5", Remedy::Convert),
    (0, b"SQLite format 3\0", "an SQLite database", Remedy::Convert),
    (0, b"SEQ", "a Hadoop sequence file", Remedy::Convert),
    (0, b"BZh", "bzip2", Remedy::Extract),
    (0, b"\xfd7zXZ\0", "xz", Remedy::Extract),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard", Remedy::Extract),
    (0, b"\x04\x22\x4d\x18", "LZ4", Remedy::Extract),
    (0, b"\xff\x06\0\0sNaPpY", "Snappy", Remedy::Extract),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", Remedy::Extract),
    (0, b"%PDF-", "a PDF", Remedy::Convert),
    (0, b"\x89TFRI", "a tfseek index", Remedy::OpenShard),
    (0, b"\x89TFRC", "a tfseek column file", Remedy::OpenShard),
    (0, b"\x89TFRP", "a tfseek pack", Remedy::OpenPack),
    (0, b"\x7fELF", "a program", Remedy::Convert),
    (0, b"\x80\x03]", "a pickle", PICKLE),
    (0, b"\x80\x03}", "a pickle", PICKLE),
    (0, b"\x80\x03c", "a pickle", PICKLE),
    (0, b"\x80\x04\x95", "a pickle", PICKLE),
    (0, b"\x80\x05\x95", "a pickle", PICKLE),
    (16, b"\xde\xc0\xef\xbe", "an LMDB database", Remedy::ReadWith("lmdb")),
    (0, b"\x0a\x23\xd7\xce", "MXNet RecordIO", Remedy::ReadWith("mxnet.recordio")),
];

/// The first letters of the brands of videos in MP4 and QuickTime files. Pictures have others.
const VIDEOS: [&[u8]; 8] = [b"iso", b"mp4", b"avc1", b"M4V", b"qt  ", b"dash", b"3g", b"MSNV"];
const PICKLE: Remedy<'static> = Remedy::ReadWith("pickle.load, if you trust who wrote it");

/// Returns the format of the file that begins with `first`. `None` if it is unknown or TFRecord.
pub(crate) fn looks_like(first: &[u8]) -> Option<LooksLike> {
    if first.is_empty() || starts_with_record(first) {
        return None;
    }
    let magic = MAGICS.iter().find(|(at, magic, ..)| first.get(*at..).is_some_and(|b| b.starts_with(magic)));
    if let Some(&(.., what, remedy)) = magic {
        return Some(LooksLike { what, remedy });
    }
    if major_brand(first).is_some_and(|brand| VIDEOS.iter().any(|video| brand.starts_with(video))) {
        return Some(LooksLike { what: "an MP4 video", remedy: Remedy::Convert });
    }
    if let Some(what) = image_name(first) {
        return Some(LooksLike { what, remedy: Remedy::Convert });
    }
    if first.len() >= 12 && first.iter().all(|&b| b == 0) {
        // The file was never written, or is a sparse copy that lost its content.
        return Some(LooksLike { what: "zeros", remedy: Remedy::FetchAgain });
    }
    text(first).or_else(|| unframed::seems(first))
}

fn text(first: &[u8]) -> Option<LooksLike> {
    let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    let shown = first.trim_ascii_start();
    let starts =
        |word: &str| shown.get(..word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word.as_bytes()));
    let (what, remedy) = match shown {
        _ if starts("<!doctype html") || starts("<html") => ("an HTML page", Remedy::FetchAgain),
        _ if starts("<?xml") => ("XML", Remedy::FetchAgain),
        [b'{' | b'[', ..] if is_text(first) => ("JSON", Remedy::Convert),
        _ if is_text(first) && first.len() >= 4 => ("text", Remedy::Convert),
        _ => return None,
    };
    Some(LooksLike { what, remedy })
}

/// Returns true for UTF-8 text without control characters. A character that is cut off at the end is ignored.
fn is_text(first: &[u8]) -> bool {
    let is_binary = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c');
    unframed::utf8(first).is_some_and(|text| !text.is_empty() && !text.chars().any(is_binary))
}

/// Replaces an error in the first record by the file's actual format, if the first bytes show that it is not
/// a TFRecord file, and an error of a later one by what was done to line ends. Returns other errors
/// unchanged.
#[cold]
pub(crate) fn explain(e: Error, first: &[u8]) -> Error {
    let is_framing = matches!(e.kind(), ErrorKind::CorruptLength { .. } | ErrorKind::Truncated { .. });
    if e.kind().remedy().is_some() || !is_framing && !matches!(e.kind(), ErrorKind::CorruptData { .. }) {
        return e;
    }
    let at_start = is_framing && is_first_record(&e);
    let found = if at_start { looks_like(first) } else { None };
    let found = found.or_else(|| unframed::line_ends(first, e.location().offset.unwrap_or(0)));
    let kind = match (compression(first).format().filter(|_| at_start), found) {
        (None, None) => match at_start.then(|| compressed_twice(first)).flatten() {
            Some(twice) => ErrorKind::Compression(twice),
            None => return e,
        },
        (None, Some(LooksLike { what, remedy })) => ErrorKind::NotTfRecord { looks_like: what, remedy },
        (Some(format), _) => ErrorKind::Compressed { format: format.name() },
    };
    located(kind, &e)
}

/// Returns true for an error of the first record of a file.
fn is_first_record(e: &Error) -> bool {
    e.location().record.unwrap_or(0) == 0 && e.location().offset.unwrap_or(0) == 0
}

/// Returns true for damage of the first record that [`explain`] leaves as it is.
pub(crate) fn is_unexplained(e: &Error) -> bool {
    let is_damage = matches!(e.kind(), ErrorKind::CorruptLength { .. } | ErrorKind::CorruptData { .. });
    is_damage && is_first_record(e) && e.kind().remedy().is_none()
}

/// Replaces damage of the first record that is not explained: there is no sound record after it.
#[cold]
pub(crate) fn without_records(e: Error) -> Error {
    if !is_unexplained(&e) {
        return e;
    }
    located(ErrorKind::NotTfRecord { looks_like: "no sound record", remedy: Remedy::NoRecords }, &e)
}

/// Returns an error of this kind in the file of another one.
fn located(kind: ErrorKind, e: &Error) -> Error {
    match &e.location().path {
        Some(path) => Error::new(kind).in_file(path),
        None => Error::new(kind),
    }
}

/// Returns the error of a file whose first bytes are a compressed stream of another one. It is asked for a
/// format that few first bytes tell apart from other files.
fn compressed_twice(first: &[u8]) -> Option<CompressionError> {
    CompressedFormat::ALL.into_iter().filter(|format| format.may_begin(first)).find_map(|format| {
        let inner = compression(&first_inflated(first, format, SNIFF_LEN)).format()?;
        Some(CompressionError::Twice { format: format.name(), inner: inner.name() })
    })
}

/// Does the same for a compressed file: `first` is the start of its content.
#[cold]
pub(crate) fn explain_inflated(e: Error, format: CompressedFormat, first: &[u8]) -> Error {
    let e = explain(e, first);
    let ErrorKind::Compressed { format: inner } = *e.kind() else { return e };
    located(ErrorKind::Compression(CompressionError::Twice { format: format.name(), inner }), &e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_header_takes_precedence() {
        // A length whose first bytes equal a zlib header.
        let mut file = Vec::new();
        crate::frame::put_header(&mut file, 0x9c78).unwrap();
        assert_eq!(&file[..2], b"\x78\x9c");
        assert_eq!(compression(&file), Compression::None);
        assert_eq!(looks_like(&file), None);
    }

    #[test]
    fn a_stream_in_a_zlib_stream_is_named() {
        use std::io::Write;
        let zlib = |bytes: &[u8]| {
            let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        };
        let mut records = Vec::new();
        (0..200u8).for_each(|k| crate::frame::put_record(&mut records, &[k; 90]).unwrap());
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&records).unwrap();
        let gzip = gzip.finish().unwrap();
        let explained = |first: &[u8]| {
            let length = ErrorKind::CorruptLength { computed: 1, stored: 2 };
            explain(Error::from(length), first.get(..SNIFF_LEN).unwrap_or(first)).to_string()
        };
        for (inner, name) in [(&gzip, "gzip"), (&zlib(&records), "zlib"), (&zlib(b""), "zlib")] {
            let text = explained(&zlib(inner));
            assert!(
                text.contains(&format!(
                    "compressed twice: expected records in the zlib stream, found a {name}"
                )),
                "{text}"
            );
        }
        assert_eq!(compression(&zlib(b"")), Compression::Zlib);
        assert!(!explained(&zlib(b"some text, and more of it")).contains("twice"));
    }

    #[test]
    fn formats_are_detected() {
        let mut tar = vec![b'a'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        for (first, expected) in [
            (&b"version https://git-lfs.github.com/spec/v1\noid sha256:12"[..], "a git-LFS pointer"),
            (b"PAR1\x15\x04", "Parquet"),
            (&tar, "a tar archive"),
            (b"PK\x03\x04\x14\0", "a zip archive"),
            (b"\x93NUMPY\x01\0", "a NumPy array"),
            (b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0", "ArrayRecord or Riegeli"),
            (b"\n  <!DOCTYPE html><title>404", "an HTML page"),
            (b"{\"features\": [1, 2]}\n", "JSON"),
            (b"[1, 2, 3]\n", "JSON"),
            (b"id,name\n1,caf\xc3\xa9\n1,caf\xc3", "text"),
            (&[0; 64], "zeros"),
            (b"\0\0\0\x20ftypisom\0\0\x02\0", "an MP4 video"),
            (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1", "an AVIF image"),
            (b"\x80\x04\x95\x0f\0\0\0\0\0\0\0]", "a pickle"),
            (b"\x0a\x23\xd7\xce\x24\0\0\0", "MXNet RecordIO"),
        ] {
            assert_eq!(looks_like(first).map(|l| l.what), Some(expected));
        }
        assert_eq!(looks_like(b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"), None);
        assert_eq!(looks_like(b""), None);
    }
}
