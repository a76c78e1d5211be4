//! The writer produces the bytes of TensorFlow's writer, and files appear complete or not at all.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tfseek::error::EncodeError;
use tfseek::index::IndexOptions;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, Dataset, DatasetOptions, ErrorKind, IndexMode, Stream, Writer};
use tfseek_testkit::shards::is_checked;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn records(path: &Path) -> Vec<Vec<u8>> {
    let mut stream = Stream::open(path).unwrap();
    let mut records = Vec::new();
    while let Some(record) = stream.next().unwrap() {
        records.push(record.payload().to_vec());
    }
    records
}

#[test]
fn three_records_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut writer = Writer::create(&path).unwrap();
    for payload in [b"".as_slice(), b"a", b"bb"] {
        writer.write(payload).unwrap();
    }
    writer.close().unwrap();
    let want = [
        &[0, 0, 0, 0, 0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2][..],
        &[1, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x75, 0xde, 0x41, b'a', 0x78, 0x6e, 0xe4, 0x28],
        &[2, 0, 0, 0, 0, 0, 0, 0, 0x78, 0x27, 0x0b, 0x34, b'b', b'b', 0x63, 0x97, 0xe2, 0xa5],
    ];
    assert_eq!(fs::read(&path).unwrap(), want.concat());
    assert_eq!(writer.records_written(), 3);
}

#[test]
fn unused_writers_create_empty_files() {
    let dir = tempfile::tempdir().unwrap();
    for (compression, want) in [
        (Compression::None, &[][..]),
        (Compression::Gzip, &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (Compression::Zlib, &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]),
    ] {
        let path = dir.path().join(compression.name());
        WriterOptions { compression, ..WriterOptions::default() }.create(&path).unwrap().close().unwrap();
        assert_eq!(fs::read(&path).unwrap(), want);
        assert!(records(&path).is_empty());
    }
}

#[test]
fn compressed_files_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let payloads: Vec<Vec<u8>> = (0..500).map(|i| vec![i as u8; i]).collect();
    for compression in [Compression::Gzip, Compression::Zlib] {
        for level in [0, 1, 6, 9] {
            let path = dir.path().join(format!("{compression}-{level}"));
            let mut writer =
                WriterOptions { compression, level, ..WriterOptions::default() }.create(&path).unwrap();
            payloads.iter().for_each(|p| writer.write(p).unwrap());
            writer.flush().unwrap();
            writer.close().unwrap();
            assert_eq!(records(&path), payloads);
            let head = fs::read(&path).unwrap();
            match compression {
                Compression::Gzip => assert_eq!(head[..4], [0x1f, 0x8b, 8, 0]),
                _ => assert_eq!(head[0], 0x78),
            }
        }
    }
}

#[test]
fn no_file_exists_before_close() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    fs::write(&path, "old").unwrap();
    let mut writer = Writer::create(&path).unwrap();
    writer.write(b"new").unwrap();
    writer.sync().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["a.tfrecord"], "a dropped writer removes its temporary file");

    let mut writer = Writer::create(&path).unwrap();
    writer.write(b"new").unwrap();
    writer.close().unwrap();
    assert_eq!(records(&path), [b"new"]);
    assert_eq!(names(dir.path()), ["a.tfrecord"]);
}

#[test]
fn in_place_writing_is_an_option() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let mut writer = WriterOptions { atomic: false, ..WriterOptions::default() }.create(&path).unwrap();
    writer.write(b"one").unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), 0, "buffered");
    writer.flush().unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), 19);
    writer.close().unwrap();
}

#[test]
fn records_are_appended_after_those_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let index = IndexOptions::new().default_dirs(Some(".tfseek".into()), None);
    let append = WriterOptions { append: true, ..WriterOptions::default() };
    let options = WriterOptions { index: Some(index.clone()), ..append.clone() };
    let mut whole = WriterOptions::default().create(dir.path().join("whole")).unwrap();
    for text in ["one", "two", "three"] {
        let mut writer = options.create(&path).unwrap();
        let e = options.create(&path).map(drop);
        assert_eq!(e.is_err(), cfg!(unix), "{e:?}");
        writer.write(text.as_bytes()).unwrap();
        whole.write(text.as_bytes()).unwrap();
        assert_eq!(writer.records_written(), 1);
        writer.close().unwrap();
        assert_eq!(records(&path).last().unwrap(), text.as_bytes());
        // The index has the new records, and was not scanned for again.
        let ds = DatasetOptions::new().index(index.clone().mode(IndexMode::Require)).open(&path).unwrap();
        assert_eq!(ds.len(), records(&path).len() as u64);
    }
    whole.close().unwrap();
    let sound = fs::read(dir.path().join("whole")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), sound);

    // A writer that is dropped leaves what was written.
    append.create(&path).unwrap().write(b"four").unwrap();
    assert_eq!(records(&path), [&b"one"[..], b"two", b"three", b"four"]);

    for bytes in
        [&sound[..sound.len() - 1], &[&sound[..19], &[0; 40]].concat(), b"text, and no records at all"]
    {
        fs::write(&path, bytes).unwrap();
        let e = append.create(&path).unwrap_err();
        assert!(e.is_data() && e.location().path.as_deref() == Some(&*path), "{e}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    let gzip = WriterOptions { compression: Compression::Gzip, ..WriterOptions::default() };
    let compressed = dir.path().join("b.tfrecord.gz");
    gzip.create(&compressed).unwrap().close().unwrap();
    for options in [gzip, WriterOptions::default()] {
        let e = WriterOptions { append: true, ..options }.create(&compressed).unwrap_err();
        assert!(e.to_string().contains("no compression, found gzip"), "{e}");
    }
    assert!(append.create(dir.path()).is_err());
}

/// FIFOs and devices receive the bytes and are kept. A symbolic link is kept, and its target is replaced.
#[test]
#[cfg(unix)]
fn links_and_devices_are_kept() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "old").unwrap();
    symlink("file", at("link")).unwrap();
    symlink("/dev/null", at("null")).unwrap();
    symlink("/dev/full", at("full")).unwrap();
    let write = |name: &str, options: WriterOptions| {
        let mut writer = options.create(at(name))?;
        writer.write(b"payload")?;
        writer.sync()?;
        writer.close()
    };
    for options in [WriterOptions::default(), WriterOptions { atomic: false, ..WriterOptions::default() }] {
        write("link", options.clone()).unwrap();
        assert_eq!(records(&at("file")), [b"payload"]);
        write("null", options.clone()).unwrap();
        if cfg!(target_os = "linux") {
            assert!(matches!(write("full", options.clone()).unwrap_err().kind(), tfseek::ErrorKind::Io(_)));
        }
        let e = write("null", WriterOptions { index: Some(IndexOptions::new()), ..options }).unwrap_err();
        assert!(e.to_string().contains("expected a regular file, found a device"), "{e}");
        for link in ["link", "null", "full"] {
            assert!(at(link).symlink_metadata().unwrap().is_symlink(), "{link}");
        }
        assert!(at("null").metadata().unwrap().file_type().is_char_device());
        fs::write(at("file"), "old").unwrap();
    }
    assert_eq!(names(dir.path()), ["file", "full", "link", "null"]);
}

/// If an index cannot be written, all shards are still complete and have their final names.
#[test]
fn all_shards_are_renamed_before_indexes_are_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("no folder"), "").unwrap();
    let options = WriterOptions {
        index: Some(IndexOptions::new().index_dir(dir.path().join("no folder"))),
        ..WriterOptions::default()
    };
    let mut shards = options.create_shards(dir.path().join("x"), "", 3).unwrap();
    (0..6u8).for_each(|i| shards.write(&[i]).unwrap());
    shards.close().unwrap_err();
    assert_eq!(names(dir.path()).len(), 4);
    assert_eq!(records(&dir.path().join("x-00002-of-00003")), [[2], [5]]);
}

#[test]
fn a_closed_writer_refuses_records() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path().join("a")).unwrap();
    writer.close().unwrap();
    writer.close().unwrap();
    for e in [writer.write(b"x").unwrap_err(), writer.flush().unwrap_err(), writer.sync().unwrap_err()] {
        assert!(matches!(e.kind(), ErrorKind::Encode(EncodeError::Closed)), "{e}");
    }
}

#[test]
fn any_io_write_is_a_sink() {
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(buf)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let sink = Shared::default();
    let mut writer = Writer::new(sink.clone(), &WriterOptions::default());
    writer.write(b"x").unwrap();
    writer.close().unwrap();
    assert_eq!(sink.0.lock().unwrap().len(), 17);
}

#[test]
fn a_sharded_set_appears_at_once_and_distributes_records_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("train");
    let mut shards = WriterOptions::default().create_shards(&prefix, ".tfrecord", 3).unwrap();
    for i in 0..11u8 {
        shards.write(&[i]).unwrap();
    }
    assert!(names(dir.path()).iter().all(|n| n.starts_with(".tmp-")));
    shards.close().unwrap();
    let want: Vec<String> = (0..3).map(|s| format!("train-{s:05}-of-00003.tfrecord")).collect();
    assert_eq!(names(dir.path()), want);
    assert_eq!(records(&dir.path().join(&want[2])), [[2], [5], [8]]);
    assert_eq!(shards.records_written(), 11);
    let ds = DatasetOptions::new().index(IndexMode::Memory).open(dir.path()).unwrap();
    assert_eq!(ds.len(), 11);
}

#[test]
fn the_index_made_while_writing_equals_a_scanned_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord");
    let mut writer =
        WriterOptions { index: Some(IndexOptions::new()), ..WriterOptions::default() }.create(&path).unwrap();
    (0..3000usize).for_each(|i| writer.write(&vec![1; i % 50]).unwrap());
    writer.close().unwrap();
    assert_eq!(names(&dir.path().join(".tfseek")), ["a.tfrecord.tfri"]);

    let ds: Dataset = DatasetOptions::new().index(IndexMode::Require).open(&path).unwrap();
    let scanned = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
    assert_eq!(ds.len(), 3000);
    assert!(is_checked(ds.index(0).unwrap()));
    for i in 0..3000 {
        assert_eq!(ds.index(0).unwrap().locate(i).unwrap(), scanned.index(0).unwrap().locate(i).unwrap());
    }
}

#[test]
fn a_failed_write_discards_the_file() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(buf.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(buf.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut writer = Writer::new(Full(100), &WriterOptions::default());
    writer.write(&[0; 50]).unwrap();
    writer.flush().unwrap();
    writer.write(&[0; 50]).unwrap();
    assert!(matches!(writer.flush().unwrap_err().kind(), tfseek::ErrorKind::Io(_)));
    for e in [writer.write(b"x").unwrap_err(), writer.flush().unwrap_err(), writer.close().unwrap_err()] {
        assert!(matches!(e.kind(), ErrorKind::Encode(EncodeError::Failed)), "{e}");
    }
}

/// Returns the decompressed members of a gzip file.
fn members(mut file: &[u8]) -> Vec<Vec<u8>> {
    let mut members = Vec::new();
    while !file.is_empty() {
        let mut decoder = flate2::bufread::GzDecoder::new(file);
        let mut member = Vec::new();
        decoder.read_to_end(&mut member).unwrap();
        members.push(member);
        file = decoder.into_inner();
    }
    members
}

fn gzip_members(bytes: u64) -> WriterOptions {
    WriterOptions { compression: Compression::Gzip, members: Some(bytes), ..WriterOptions::default() }
}

#[test]
fn members_begin_at_record_borders() {
    let dir = tempfile::tempdir().unwrap();
    let payloads: Vec<Vec<u8>> = (0..500).map(|i| vec![i as u8; i * 7 % 300]).collect();
    let plain = dir.path().join("plain");
    let write = |path: &Path, options: &WriterOptions, flushes: bool| {
        let mut writer = options.create(path).unwrap();
        for (i, payload) in payloads.iter().enumerate() {
            writer.write(payload).unwrap();
            if flushes && i % 50 == 0 {
                writer.flush().unwrap();
            }
        }
        writer.close().unwrap();
        fs::read(path).unwrap()
    };
    let plain = write(&plain, &WriterOptions::default(), false);
    for bytes in [0, 1, 16, 17, 1000, 5000, plain.len() as u64 - 1, plain.len() as u64, u64::MAX] {
        // The number of records of each member.
        let (mut expected, mut len) = (vec![0], 0);
        for payload in &payloads {
            if len > 0 && len >= bytes {
                expected.push(0);
                len = 0;
            }
            *expected.last_mut().unwrap() += 1;
            len += payload.len() as u64 + 16;
        }
        for flushes in [false, true] {
            let path = dir.path().join("gzip");
            let options = gzip_members(bytes);
            let file = write(&path, &options, flushes);
            assert_eq!(records(&path), payloads);
            let members = members(&file);
            assert_eq!(members.concat(), plain, "{bytes}");
            let counts = members.iter().map(|m| tfseek::frame::frames(m).map(Result::unwrap).count());
            assert_eq!(counts.collect::<Vec<_>>(), expected, "{bytes}");
            assert_eq!(file, write(&path, &options, flushes), "the bytes are deterministic");
        }
    }
    let one = WriterOptions { compression: Compression::Gzip, ..WriterOptions::default() };
    let same = write(&dir.path().join("one"), &one, false);
    assert_eq!(write(&dir.path().join("two"), &gzip_members(u64::MAX), false), same);
}

#[test]
fn members_of_unused_and_sharded_writers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty");
    gzip_members(1).create(&path).unwrap().close().unwrap();
    assert_eq!(members(&fs::read(&path).unwrap()), [b""]);

    let mut shards = WriterOptions { index: Some(IndexOptions::new()), ..gzip_members(1) }
        .create_shards(dir.path().join("x"), "", 2)
        .unwrap();
    (0..5u8).for_each(|i| shards.write(&[i]).unwrap());
    shards.close().unwrap();
    for (name, expected) in [("x-00000-of-00002", &[[0], [2], [4]][..]), ("x-00001-of-00002", &[[1], [3]])] {
        assert_eq!(records(&dir.path().join(name)), expected);
        assert_eq!(members(&fs::read(dir.path().join(name)).unwrap()).len(), expected.len());
        assert!(dir.path().join(".tfseek").join(format!("{name}.tfri")).exists());
    }
}

#[test]
fn members_require_gzip() {
    let dir = tempfile::tempdir().unwrap();
    for compression in [Compression::None, Compression::Zlib] {
        let options = WriterOptions { members: Some(1 << 20), compression, ..WriterOptions::default() };
        let want = format!("members: expected compression gzip, found {compression}");
        assert_eq!(options.create(dir.path().join("a")).unwrap_err().to_string(), want);
        assert_eq!(options.create_shards(dir.path().join("a"), "", 2).unwrap_err().to_string(), want);
        let mut writer = Writer::new(std::io::sink(), &options);
        for e in [writer.write(b"x").unwrap_err(), writer.flush().unwrap_err(), writer.close().unwrap_err()] {
            assert_eq!(e.to_string(), want);
        }
    }
    assert_eq!(names(dir.path()), [""; 0]);
}

/// A failure at the end of a member discards the file, like one inside it.
#[test]
fn a_failed_member_discards_the_file() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut writer = Writer::new(Full, &WriterOptions { level: 0, ..gzip_members(1) });
    let e = (0..100).find_map(|_| writer.write(&[0; 100_000]).err()).unwrap();
    assert!(matches!(e.kind(), ErrorKind::Io(_)), "{e}");
    assert!(matches!(writer.close().unwrap_err().kind(), ErrorKind::Encode(EncodeError::Failed)));
}

#[test]
fn a_finished_file_has_no_name_until_it_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut writers: Vec<_> = ["b", "a"]
        .map(|name| {
            WriterOptions { index: Some(IndexOptions::new()), ..WriterOptions::default() }
                .create(at(name))
                .unwrap()
        })
        .into();
    for writer in &mut writers {
        writer.write(b"payload").unwrap();
        writer.finish().unwrap();
        writer.finish().unwrap();
        let e = writer.write(b"more").unwrap_err();
        assert!(e.to_string().contains("closed"), "{e}");
        assert!(!at("a").exists() && !at("b").exists());
    }
    let mut dropped = WriterOptions::default().create(at("c")).unwrap();
    dropped.finish().unwrap();
    drop(dropped);
    tfseek::ShardedWriter::new(writers).close().unwrap();
    for name in ["a", "b"] {
        assert_eq!(std::fs::read(at(name)).unwrap().len(), 16 + 7);
        assert!(at(".tfseek").join(format!("{name}.tfri")).exists());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
}
