//! Streams that leave damage out: they have the records and the warnings of an index of the same file.

use flate2::{Compress, FlushCompress};
use std::fs;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tfseek::frame::put_record;
use tfseek::index::IndexOptions;
use tfseek::stream::StreamOptions;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, Damage, DatasetOptions, ErrorKind, IndexMode, Stream, Tail, Warning};

const RECORDS: u64 = 60;

type Found = tfseek::Result<(Vec<Vec<u8>>, Vec<Warning>)>;

fn collect(mut stream: Stream) -> Found {
    let mut payloads = Vec::new();
    while let Some(record) = stream.next()? {
        assert_eq!(record.at().record, Some(payloads.len() as u64));
        payloads.push(record.payload().to_vec());
    }
    assert!(stream.next()?.is_none() && stream.records_read() == payloads.len() as u64);
    Ok((payloads, stream.warnings().to_vec()))
}

fn skips() -> StreamOptions {
    StreamOptions { damage: Damage::Skip, ..StreamOptions::default() }
}

fn indexed(path: &Path, tail: Tail) -> Found {
    let index = IndexOptions::new().mode(IndexMode::Memory).damage(Damage::Skip).tail(tail);
    let dataset = DatasetOptions::new().index(index).open(path)?;
    let mut payloads = Vec::new();
    let mut buf = Vec::new();
    for i in 0..dataset.len() {
        payloads.push(dataset.read(i, &mut buf)?.payload().to_vec());
    }
    Ok((payloads, dataset.warnings().to_vec()))
}

fn written(path: &Path) -> Vec<u8> {
    let compression = match path.extension().and_then(|e| e.to_str()) {
        Some("gz") => Compression::Gzip,
        Some("zz") => Compression::Zlib,
        _ => Compression::None,
    };
    let mut writer = WriterOptions { compression, ..WriterOptions::default() }.create(path).unwrap();
    for i in 0..RECORDS {
        let noise: Vec<u8> = (0..i * 7 % 90).map(|k| (i * 31 + k * k * 17) as u8).collect();
        writer.write(&noise).unwrap();
    }
    writer.close().unwrap();
    fs::read(path).unwrap()
}

/// Every damaged form of a file: flipped bytes, cut ends, and a missing range.
fn damaged(sound: &[u8], step: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..sound.len()).step_by(step).flat_map(move |at| {
        let mut flipped = sound.to_vec();
        flipped[at] ^= 0x41;
        let mut torn = sound.to_vec();
        torn.drain(at..(at + 23).min(sound.len()));
        [flipped, sound[..at].to_vec(), torn]
    })
}

#[test]
fn plain_streams_have_the_records_and_warnings_of_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let sound = written(&path);
    assert_eq!(collect(skips().open(&path).unwrap()).unwrap().1, []);
    let mut left_out = 0;
    for bytes in damaged(&sound, 5) {
        fs::write(&path, &bytes).unwrap();
        for tail in [Tail::Strict, Tail::Tolerate] {
            match (collect(StreamOptions { tail, ..skips() }.open(&path).unwrap()), indexed(&path, tail)) {
                (Ok(streamed), Ok(indexed)) => {
                    assert_eq!(streamed, indexed, "{} bytes, {tail:?}", bytes.len());
                    left_out += usize::from(!streamed.1.is_empty());
                    let piped = StreamOptions { tail, ..skips() }
                        .read(std::io::Cursor::new(bytes.clone()), &path)
                        .unwrap();
                    assert_eq!(collect(piped).unwrap(), streamed);
                }
                (Err(_), Err(_)) => {}
                (streamed, indexed) => panic!("{streamed:?} and {indexed:?}"),
            }
        }
    }
    assert!(left_out > 100, "{left_out}");
}

#[test]
fn compressed_streams_have_the_records_of_an_index() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.tfrecord.gz", "a.tfrecord.zz"] {
        let path = dir.path().join(name);
        let sound = written(&path);
        let mut left_out = 0;
        for bytes in damaged(&sound, 17) {
            fs::write(&path, &bytes).unwrap();
            match (collect(skips().open(&path).unwrap()), indexed(&path, Tail::Strict)) {
                (Ok(streamed), Ok(indexed)) => {
                    assert_eq!(streamed.0, indexed.0, "{name}, {} bytes", bytes.len());
                    assert_eq!(streamed.1.is_empty(), indexed.1.is_empty(), "{name}: {streamed:?}");
                    left_out += usize::from(!streamed.1.is_empty());
                }
                (Err(_), Err(_)) => {}
                (streamed, indexed) => panic!("{streamed:?} and {indexed:?}"),
            }
        }
        assert!(left_out > 10 || name.ends_with("zz"), "{name}: {left_out}");
    }
}

/// After a damaged length the rest of the file used to be left out.
#[test]
fn a_damaged_length_costs_one_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let mut bytes = written(&path);
    bytes[1] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let (payloads, warnings) = collect(skips().open(&path).unwrap()).unwrap();
    assert_eq!(payloads.len() as u64, RECORDS - 1);
    assert!(
        matches!(&warnings[..], [Warning::DamageSkipped { gaps, .. }] if gaps.len() == 1),
        "{warnings:?}"
    );
}

/// A pipe, which returns a few bytes per read and may be interrupted.
struct Pipe {
    bytes: std::io::Cursor<Vec<u8>>,
    reads: usize,
}

impl Read for Pipe {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.reads += 1;
        if self.reads % 7 == 3 {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let most = buf.len().min(1 + self.reads * 37 % 500);
        self.bytes.read(&mut buf[..most])
    }
}

fn pipe(bytes: Vec<u8>) -> Pipe {
    Pipe { bytes: std::io::Cursor::new(bytes), reads: 0 }
}

/// Gzip members, and a gzip and a zlib stream with full and with sync flushes, of the same records.
fn parts() -> Vec<(&'static str, Vec<u8>)> {
    let part = |k: u64| {
        let mut bytes = Vec::new();
        for i in k * 10..k * 10 + 10 {
            let noise: Vec<u8> = (0..20 + i * 7 % 90).map(|k| (i * 31 + k * k * 17 + k * i) as u8).collect();
            put_record(&mut bytes, &noise).unwrap();
        }
        bytes
    };
    let parts: Vec<Vec<u8>> = (0..6).map(part).collect();
    let member = |bytes: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    };
    let flushed = |zlib: bool, flush: FlushCompress| {
        let mut deflate = Compress::new(flate2::Compression::new(6), zlib);
        let mut file = if zlib { Vec::new() } else { vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3] };
        let mut crc = flate2::Crc::new();
        for (k, part) in parts.iter().enumerate() {
            crc.update(part);
            let flush = if k + 1 == parts.len() { FlushCompress::Finish } else { flush };
            let mut out = Vec::with_capacity(2 * part.len() + 1000);
            deflate.compress_vec(part, &mut out, flush).unwrap();
            file.extend(out);
        }
        if !zlib {
            file.extend(crc.sum().to_le_bytes().into_iter().chain(crc.amount().to_le_bytes()));
        }
        file
    };
    vec![
        ("members", parts.iter().flat_map(|part| member(part)).collect()),
        ("split members", parts.concat().chunks(777).flat_map(member).collect()),
        ("full flushes", flushed(false, FlushCompress::Full)),
        ("sync flushes", flushed(false, FlushCompress::Sync)),
        ("zlib", flushed(true, FlushCompress::Full)),
    ]
}

/// A pipe cannot be read again. The bytes that a search may need are kept.
#[test]
fn compressed_pipes_have_the_records_and_warnings_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    for (name, sound) in parts() {
        let path = dir.path().join(name);
        fs::write(&path, &sound).unwrap();
        let all = collect(skips().open(&path).unwrap()).unwrap();
        assert_eq!((all.0.len(), all.1.len()), (RECORDS as usize, 0), "{name}");
        assert_eq!(collect(skips().read(pipe(sound.clone()), &path).unwrap()).unwrap(), all, "{name}");
        let (mut went_on, mut damage) = (0, 0);
        for bytes in damaged(&sound, 13) {
            fs::write(&path, &bytes).unwrap();
            let piped = skips().read(pipe(bytes.clone()), &path).and_then(collect);
            match (skips().open(&path).and_then(collect), piped) {
                (Ok(file), Ok(piped)) => {
                    assert_eq!(piped, file, "{name}, {} bytes", bytes.len());
                    damage += usize::from(!file.1.is_empty());
                    went_on += usize::from(!file.1.is_empty() && file.0.last() == all.0.last());
                }
                (Err(file), Err(piped)) => assert_eq!(piped.to_string(), file.to_string(), "{name}"),
                (file, piped) => panic!("{name}: {file:?} and {piped:?}"),
            }
        }
        assert!(damage > 50 && (went_on > 30 || name == "sync flushes"), "{name}: {damage} {went_on}");
    }
}

/// Each byte of a file counts once, also if damage makes the stream read it again. The callback can cancel
/// the work.
#[test]
fn progress_counts_the_bytes_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let counted = |path: &Path, damage, limit: u64| {
        let count = Arc::new(AtomicU64::new(0));
        let progress = {
            let count = Arc::clone(&count);
            move |bytes| match count.fetch_add(bytes, Relaxed) + bytes {
                sum if sum > limit => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        let options = StreamOptions { damage, ..StreamOptions::default() };
        let found = options.read_file(fs::File::open(path).unwrap(), path, progress).and_then(collect);
        (found, count.load(Relaxed))
    };
    let path = dir.path().join("a.tfrecord");
    let mut files = parts();
    files.push(("plain", written(&path)));
    for (name, sound) in files {
        let mut damaged = sound.clone();
        damaged[sound.len() / 3] ^= 0x41;
        for (bytes, damage) in [(&sound, Damage::Raise), (&sound, Damage::Skip), (&damaged, Damage::Skip)] {
            fs::write(&path, bytes).unwrap();
            let (found, count) = counted(&path, damage, u64::MAX);
            let opened =
                StreamOptions { damage, ..StreamOptions::default() }.open(&path).and_then(collect).unwrap();
            assert_eq!((found.unwrap(), count), (opened, bytes.len() as u64), "{name}");
            for limit in [0, 40, bytes.len() as u64 / 2] {
                let e = counted(&path, damage, limit).0.unwrap_err();
                assert!(matches!(e.kind(), ErrorKind::Cancelled), "{name}, {limit}: {e}");
            }
        }
    }
    let e = StreamOptions::default()
        .read_file(fs::File::open(dir.path()).unwrap(), dir.path(), |_| ControlFlow::Continue(()))
        .unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Io(_)), "{e}");
}

/// An I/O error of a pipe is no damage. It follows the records before it.
#[test]
fn a_pipe_that_fails_ends_with_its_error() {
    struct Failing(std::io::Cursor<Vec<u8>>);
    impl Read for Failing {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buf)? {
                0 => Err(std::io::Error::other("the other end is gone")),
                n => Ok(n),
            }
        }
    }
    let (_, sound) = parts().remove(0);
    for damage in [false, true] {
        let mut bytes = sound[..sound.len() * 2 / 3].to_vec();
        if damage {
            bytes[30] ^= 0x41;
        }
        let mut stream = skips().read(Failing(std::io::Cursor::new(bytes)), "pipe").unwrap();
        let mut records = 0;
        let e = loop {
            match stream.next() {
                Ok(Some(_)) => records += 1,
                Ok(None) => panic!("no error after {records} records"),
                Err(e) => break e,
            }
        };
        assert!(!e.is_data() && e.to_string() == "pipe: the other end is gone", "{e}");
        assert!(records > 20 && records < RECORDS, "{records}");
        assert!(stream.next().unwrap().is_none());
    }
}
