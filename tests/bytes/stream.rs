//! Sequential reading: all intact records are delivered, then the end or one error, for every way in which a
//! file can end, plain or compressed. Each case is a row of the tables in `docs/format.md`.

use flate2::Compression as Level;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use std::io::{Cursor, Read, Write};
use tfseek::error::CompressionError;
use tfseek::frame::put_record;
use tfseek::stream::StreamOptions;
use tfseek::{Compression, Error, ErrorKind, Stream, Tail, Verify, Warning};
use tfseek_testkit::twin::put_header;

fn payloads() -> Vec<Vec<u8>> {
    (0..50).map(|i| vec![i as u8; i * 37 % 400]).collect()
}

/// Returns the bytes that the stream left out as a torn tail, of the file and of its compressed stream.
fn torn_bytes(stream: &Stream) -> Option<u64> {
    stream.warnings().iter().find_map(|warning| match warning {
        Warning::TornTail { bytes, inflated_bytes, .. } => Some(bytes + inflated_bytes),
        _ => None,
    })
}

fn plain() -> Vec<u8> {
    let mut file = Vec::new();
    payloads().iter().for_each(|p| put_record(&mut file, p).unwrap());
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut w = GzEncoder::new(Vec::new(), Level::default());
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut w = ZlibEncoder::new(Vec::new(), Level::default());
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

/// Returns the records of a file, and the error that ended it.
fn read_with(options: StreamOptions, file: Vec<u8>) -> (Vec<Vec<u8>>, Option<Error>) {
    let mut stream = match options.read(Cursor::new(file), "x.tfrecord") {
        Ok(stream) => stream,
        Err(e) => return (Vec::new(), Some(e)),
    };
    let mut records = Vec::new();
    loop {
        match stream.next() {
            Ok(Some(record)) => {
                assert_eq!(record.at().record, Some(records.len() as u64));
                records.push(record.payload().to_vec());
            }
            Ok(None) => return (records, None),
            Err(e) => {
                assert_eq!(e.location().path.as_deref(), Some("x.tfrecord".as_ref()));
                assert!(stream.next().unwrap().is_none(), "an error ends the stream");
                return (records, Some(e));
            }
        }
    }
}

fn read(file: Vec<u8>) -> (Vec<Vec<u8>>, Option<Error>) {
    read_with(StreamOptions::default(), file)
}

/// Checks that all records are delivered, then an error of this kind.
fn whole_then(file: Vec<u8>, is: impl Fn(&ErrorKind) -> bool) {
    let (records, error) = read(file);
    assert_eq!(records, payloads());
    let error = error.expect("an error at the end");
    assert!(is(error.kind()), "{error}");
    assert_eq!(error.location().record, Some(50));
}

fn whole(file: Vec<u8>) {
    let (records, error) = read(file);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(records, payloads());
}

#[test]
fn the_compression_is_detected_from_the_content() {
    whole(plain());
    whole(gzip(&plain()));
    whole(zlib(&plain()));
}

#[test]
fn empty_files_have_no_records() {
    for file in [Vec::new(), gzip(b""), zlib(b"")] {
        assert!(matches!(read(file), (records, None) if records.is_empty()));
    }
    for named in [Compression::Gzip, Compression::Zlib, Compression::None] {
        let (records, error) =
            read_with(StreamOptions { compression: Some(named), ..StreamOptions::default() }, Vec::new());
        assert!(records.is_empty() && error.is_none());
    }
}

#[test]
fn every_truncation_of_a_plain_file() {
    let file: Vec<u8> = {
        let mut file = Vec::new();
        [b"".as_slice(), b"a", b"bb"].iter().for_each(|p| put_record(&mut file, p).unwrap());
        file
    };
    let ends = [0usize, 16, 33, 51];
    for cut in 0..=file.len() {
        let (records, error) = read(file[..cut].to_vec());
        let want = ends.iter().filter(|&&end| end != 0 && end <= cut).count();
        assert_eq!(records.len(), want, "cut at {cut}");
        assert_eq!(error.is_none(), ends.contains(&cut), "cut at {cut}");
        if let Some(e) = error {
            assert!(matches!(e.kind(), ErrorKind::Truncated { .. }), "{e}");
            assert_eq!(
                (e.location().record, e.location().offset),
                (Some(want as u64), Some(ends[want] as u64))
            );
        }
        // A file that is still being written: a torn tail is the end, and is reported.
        let options = StreamOptions { tail: Tail::Tolerate, ..StreamOptions::default() };
        let mut stream = options.read(Cursor::new(file[..cut].to_vec()), "x").unwrap();
        while stream.next().unwrap().is_some() {}
        assert_eq!(stream.records_read(), want as u64);
        let torn = (cut - ends[want]) as u64;
        assert_eq!(torn_bytes(&stream), (torn > 0).then_some(torn));
    }
}

#[test]
fn every_flipped_bit_of_a_plain_file() {
    let mut file = Vec::new();
    [b"".as_slice(), b"a", b"bb"].iter().for_each(|p| put_record(&mut file, p).unwrap());
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let hit = [16, 33, 51].iter().position(|&end| bit / 8 < end).unwrap();
        let (records, error) = read(damaged);
        let error = error.expect("no flip passes");
        assert_eq!(records.len(), hit, "bit {bit}: the records before the damage are delivered");
        assert_eq!(error.location().record, Some(hit as u64), "bit {bit}");
        assert!(error.is_data());
    }
}

#[test]
fn header_only_verification_accepts_a_damaged_payload() {
    let mut file = Vec::new();
    put_record(&mut file, b"abc").unwrap();
    file[13] ^= 1;
    assert!(read(file.clone()).1.is_some());
    let (records, error) =
        read_with(StreamOptions { verify: Verify::Header, ..StreamOptions::default() }, file);
    assert!(error.is_none() && records.len() == 1);
}

#[test]
fn lengths_beyond_the_end_are_truncated_files() {
    for len in [1u64 << 31, 1 << 32, 1 << 40, (1 << 63) - 4, 1 << 63, u64::MAX - 5, u64::MAX] {
        let mut file = plain();
        put_header(&mut file, len).unwrap();
        file.extend([0; 100]);
        whole_then(file, |e| matches!(e, ErrorKind::Truncated { have: 112, .. }));
    }
}

#[test]
fn twelve_zero_bytes_are_not_a_header() {
    let file = [plain(), vec![0; 12]].concat();
    whole_then(file, |e| matches!(e, ErrorKind::CorruptLength { stored: 0, .. }));
}

#[test]
fn records_larger_than_the_buffer() {
    let big: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
    let mut file = Vec::new();
    for payload in [&b"small"[..], &big, b"", &big[..700_000], b"end"] {
        put_record(&mut file, payload).unwrap();
    }
    for file in [file.clone(), gzip(&file)] {
        let (records, error) = read(file);
        assert!(error.is_none());
        assert_eq!(records.iter().map(Vec::len).collect::<Vec<_>>(), [5, 3_000_000, 0, 700_000, 3]);
        assert_eq!(records[1], big);
    }
}

#[test]
fn a_reader_that_returns_one_byte_at_a_time() {
    struct Slow(Cursor<Vec<u8>>);
    impl Read for Slow {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = buf.len().min(1);
            self.0.read(&mut buf[..n])
        }
    }
    for file in [plain(), gzip(&plain()), zlib(&plain())] {
        let mut stream = StreamOptions::default().read(Slow(Cursor::new(file)), "x").unwrap();
        let mut n = 0;
        while let Some(record) = stream.next().unwrap() {
            assert_eq!(record.payload(), payloads()[n]);
            n += 1;
        }
        assert_eq!(n, 50);
    }
}

// ---- gzip ----

#[test]
fn gzip_header_fields_are_ignored() {
    let mut w = flate2::GzBuilder::new()
        .filename("name")
        .mtime(77)
        .comment("hm")
        .extra([1, 2])
        .write(Vec::new(), Level::best());
    w.write_all(&plain()).unwrap();
    whole(w.finish().unwrap());
}

#[test]
fn gzip_members_are_one_stream_even_within_a_record() {
    let file = plain();
    for cut in [0, 5, 16, 100, file.len() - 1, file.len()] {
        whole([gzip(&file[..cut]), gzip(&file[cut..])].concat());
    }
    whole(file.chunks(7).flat_map(gzip).collect());
}

#[test]
fn gzip_with_trailing_bytes() {
    for garbage in [&[0u8; 40][..], b"garbage after the stream", b"\0"] {
        let file = [&gzip(&plain()), garbage].concat();
        whole_then(file, |e| {
            matches!(
                e,
                ErrorKind::Compression(CompressionError::Corrupt { .. } | CompressionError::Cut { .. })
            )
        });
    }
}

#[test]
fn gzip_without_a_trailer() {
    let file = gzip(&plain());
    for cut in 1..=8 {
        whole_then(file[..file.len() - cut].to_vec(), |e| {
            matches!(e, ErrorKind::Compression(CompressionError::Cut { format: "gzip" }))
        });
    }
}

#[test]
fn gzip_with_a_wrong_trailer_delivers_all_records_first() {
    for back in [1, 4, 5, 8] {
        let mut file = gzip(&plain());
        let at = file.len() - back;
        file[at] ^= 0x40;
        whole_then(file, |e| matches!(e, ErrorKind::Compression(CompressionError::Corrupt { .. })));
    }
}

#[test]
fn every_truncation_of_a_gzip_file_is_an_error() {
    let file = gzip(&plain());
    for cut in 3..file.len() {
        let (records, error) = read(file[..cut].to_vec());
        assert!(error.is_some(), "cut at {cut}");
        assert!(payloads().starts_with(&records), "cut at {cut}");
    }
}

#[test]
fn a_torn_record_in_intact_gzip() {
    let file = plain();
    for cut in [file.len() - 1, file.len() - 5] {
        let (records, error) = read(gzip(&file[..cut]));
        assert_eq!(records, payloads()[..49]);
        assert!(matches!(error.unwrap().kind(), ErrorKind::Truncated { .. }));
    }
    let (records, error) = read(gzip(&[&file[..], &[1, 2, 3]].concat()));
    assert_eq!(records, payloads());
    assert!(matches!(error.unwrap().kind(), ErrorKind::Truncated { need: 12, have: 3 }));
}

// ---- zlib ----

#[test]
fn zlib_with_every_window_size() {
    for bits in 9..=15 {
        let mut stream = flate2::Compress::new_with_window_bits(Level::default(), true, bits);
        let mut out = Vec::with_capacity(100_000);
        stream.compress_vec(&plain(), &mut out, flate2::FlushCompress::Finish).unwrap();
        whole(out);
    }
}

#[test]
fn zlib_with_trailing_bytes() {
    for trailing in [zlib(&plain()), vec![0], b"garbage".to_vec()] {
        let stream = zlib(&plain());
        let end = stream.len() as u64;
        whole_then([stream, trailing].concat(), |e| {
            *e_compression(e) == CompressionError::TrailingData { format: "zlib", at: end }
        });
    }
}

fn e_compression(e: &ErrorKind) -> &CompressionError {
    match e {
        ErrorKind::Compression(e) => e,
        _ => panic!("{e}"),
    }
}

#[test]
fn zlib_with_a_wrong_or_missing_checksum() {
    let file = zlib(&plain());
    for cut in 1..=4 {
        whole_then(file[..file.len() - cut].to_vec(), |e| {
            *e_compression(e) == CompressionError::Cut { format: "zlib" }
        });
    }
    let mut wrong = file;
    *wrong.last_mut().unwrap() ^= 1;
    whole_then(wrong, |e| matches!(e_compression(e), CompressionError::Corrupt { format: "zlib", .. }));
}

// ---- torn tails of compressed files ----

/// Reads a file of which the tail is tolerated. Returns its records, and the bytes that were left out if the
/// tail is torn.
#[track_caller]
fn tolerated(file: &[u8]) -> (Vec<Vec<u8>>, Option<u64>) {
    let options = StreamOptions { tail: Tail::Tolerate, ..StreamOptions::default() };
    let mut stream = options.read(Cursor::new(file.to_vec()), "x").unwrap();
    let mut records = Vec::new();
    while let Some(record) = stream.next().unwrap() {
        records.push(record.payload().to_vec());
    }
    (records, torn_bytes(&stream))
}

#[track_caller]
fn not_tolerated(file: &[u8]) -> ErrorKind {
    let (records, error) =
        read_with(StreamOptions { tail: Tail::Tolerate, ..StreamOptions::default() }, file.to_vec());
    assert!(payloads().starts_with(&records));
    error.expect("an error at the end").into_kind()
}

#[test]
fn every_truncation_of_compressed_files_under_tolerate() {
    let plain = plain();
    let mut ends = vec![0];
    payloads().iter().for_each(|p| ends.push(ends.last().unwrap() + p.len() + 16));
    // Two members, of which the second one begins inside a record; and a zlib stream.
    let (a, b) = plain.split_at(plain.len() / 2);
    for (parts, header, trailer) in
        [(vec![(a, gzip(a)), (b, gzip(b))], 10, 8), (vec![(&plain[..], zlib(&plain))], 2, 4)]
    {
        let file: Vec<u8> = parts.iter().flat_map(|(_, part)| part.clone()).collect();
        let (mut start, mut content) = (0, 0);
        for (k, (bytes, part)) in parts.iter().enumerate() {
            for len in 0..=part.len() {
                let (cut, deflated) = (start + len, part.len() - trailer);
                // Before that the file is taken for a plain one.
                if cut < 50 && header == 2 || cut < 3 {
                    continue;
                }
                if (header..deflated).contains(&len) {
                    let e = not_tolerated(&file[..cut]);
                    let e = matches!(e, ErrorKind::Compression(CompressionError::Cut { .. }));
                    assert!(e, "cut at {cut}");
                    continue;
                }
                let (content, left) = match len {
                    _ if len < header => (content, len),
                    _ => (content + bytes.len(), len - deflated),
                };
                let whole = ends.iter().rposition(|&end| end <= content).unwrap();
                let whole_part = len == part.len() || len == 0 && k > 0;
                let left = if whole_part { 0 } else { left } + content - ends[whole];
                let torn = !whole_part || left > 0;
                let want = (payloads()[..whole].to_vec(), torn.then_some(left as u64));
                assert_eq!(tolerated(&file[..cut]), want, "cut at {cut}");
                // A wrong byte of the part of a trailer is an error.
                if len > deflated {
                    let mut wrong = file[..cut].to_vec();
                    wrong[start + deflated] ^= 1;
                    let e = not_tolerated(&wrong);
                    let e = matches!(e, ErrorKind::Compression(_));
                    assert!(e, "cut at {cut}");
                }
            }
            start += part.len();
            content += bytes.len();
        }
    }
}

#[test]
fn trailing_bytes_under_tolerate() {
    let noise: Vec<u8> = (0..200_000u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8 & 0xfe).collect();
    for garbage in [&[0; 70_000][..], b"\0", b"\x1f", b"garbage", &noise] {
        for file in [gzip(&plain()), zlib(&plain()), [gzip(&plain()), gzip(b"")].concat()] {
            let found = tolerated(&[&file[..], garbage].concat());
            assert_eq!(found, (payloads(), Some(garbage.len() as u64)));
        }
        // Inside a record.
        let cut = plain().len() - 5;
        let (records, left) = tolerated(&[&gzip(&plain()[..cut]), garbage].concat());
        assert_eq!(
            (records.len(), left),
            (49, Some(garbage.len() as u64 + plain().len() as u64 - 5 - end_of_49()))
        );
    }
}

fn end_of_49() -> u64 {
    payloads()[..49].iter().map(|p| p.len() as u64 + 16).sum()
}

/// Bytes that seem to contain records are never left out.
#[test]
fn trailing_records_are_an_error_under_tolerate() {
    let more = gzip(&plain());
    let mut damaged = more.clone();
    damaged[3] = 0xff;
    for rest in [
        plain(),
        zlib(&plain()),
        zlib(b""),
        [&b"garbage"[..], &more].concat(),
        [&[0; 3_000][..], &more].concat(),
        [&b"\x1f"[..], &more].concat(),
        [&b"\x1f\x8b"[..], &more].concat(),
    ] {
        for file in [gzip(&plain()), zlib(&plain())] {
            not_tolerated(&[file, rest.clone()].concat());
        }
    }
    not_tolerated(&[gzip(&plain()), damaged].concat());
    not_tolerated(&[zlib(&plain()), more].concat());
}

#[test]
fn corrupt_data_and_checksums_are_errors_under_tolerate() {
    for (file, trailer) in [(gzip(&plain()), 8), (zlib(&plain()), 4)] {
        let bits = (8 * (file.len() - trailer)..8 * file.len()).chain((160..8 * file.len()).step_by(61));
        for bit in bits {
            let mut bad = file.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            not_tolerated(&bad);
        }
    }
}

// ---- the wrong format ----

#[test]
fn a_configured_compression_that_does_not_match() {
    let raw = {
        let mut w = DeflateEncoder::new(Vec::new(), Level::default());
        w.write_all(&plain()).unwrap();
        w.finish().unwrap()
    };
    for (named, file) in [
        (Compression::Gzip, plain()),
        (Compression::Gzip, zlib(&plain())),
        (Compression::Zlib, gzip(&plain())),
        (Compression::Zlib, raw.clone()),
        (Compression::None, gzip(&plain())),
    ] {
        let (records, error) =
            read_with(StreamOptions { compression: Some(named), ..StreamOptions::default() }, file);
        let error = error.unwrap();
        assert!(records.is_empty());
        assert!(matches!(e_compression(error.kind()), CompressionError::Mismatch { .. }), "{error}");
    }
    // Raw deflate has no header, so it cannot be detected.
    assert!(read(raw).1.is_some());
}

#[test]
fn other_formats_are_recognized() {
    for (file, what) in [
        (&b"{\"a\": 1, \"b\": [1, 2, 3], \"c\": null}"[..], "JSON"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a git-LFS pointer"),
        (b"PAR1 and then some bytes", "Parquet"),
        (&[0; 100], "zeros"),
    ] {
        let (_, error) = read(file.to_vec());
        match error.unwrap().kind() {
            ErrorKind::NotTfRecord { looks_like, .. } => assert_eq!(*looks_like, what),
            e => panic!("{e}"),
        }
    }
    // After a good record, other formats are not considered: damage is damage.
    let mut file = Vec::new();
    put_record(&mut file, b"x").unwrap();
    file.extend(b"{\"a\": 1, \"b\": 2}");
    assert!(matches!(read(file).1.unwrap().kind(), ErrorKind::CorruptLength { .. }));
}

#[test]
fn files_and_folders() {
    let dir = tempfile::tempdir().unwrap();
    // A misleading suffix.
    let path = dir.path().join("a.tfrecord");
    std::fs::write(&path, gzip(&plain())).unwrap();
    let mut stream = Stream::open(&path).unwrap();
    assert_eq!(stream.compression(), Compression::Gzip);
    assert_eq!(stream.next().unwrap().unwrap().payload(), b"");
    assert!(matches!(Stream::open(dir.path()).unwrap_err().kind(), ErrorKind::Io(_)));
    let e = Stream::open(dir.path().join("none")).unwrap_err();
    assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)) && e.to_string().contains("none"));
}
