//! Streams that leave damage out: they have the records and the warnings of an index of the same file.

use std::fs;
use std::path::Path;
use tfseek::index::IndexOptions;
use tfseek::stream::StreamOptions;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, Damage, DatasetOptions, IndexMode, Stream, Tail, Warning};

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
    StreamOptions::new().damage(Damage::Skip)
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
    let mut writer = WriterOptions::new().compression(compression).create(path).unwrap();
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
            match (collect(skips().tail(tail).open(&path).unwrap()), indexed(&path, tail)) {
                (Ok(streamed), Ok(indexed)) => {
                    assert_eq!(streamed, indexed, "{} bytes, {tail:?}", bytes.len());
                    left_out += usize::from(!streamed.1.is_empty());
                    let piped = skips().tail(tail).read(std::io::Cursor::new(bytes.clone()), &path).unwrap();
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

/// A pipe of a damaged compressed file ends with an error after the records before the damage.
#[test]
fn a_compressed_pipe_ends_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord.gz");
    let bytes = written(&path);
    let cut = bytes[..bytes.len() / 2].to_vec();
    let mut stream = skips().read(std::io::Cursor::new(cut), "pipe").unwrap();
    assert_eq!(stream.compression(), Compression::Gzip);
    let mut records = 0;
    let e = loop {
        match stream.next() {
            Ok(Some(_)) => records += 1,
            Ok(None) => panic!("no error after {records} records"),
            Err(e) => break e,
        }
    };
    assert!(records > 0 && records < RECORDS && e.to_string().contains("pipe"), "{records}: {e}");
}
