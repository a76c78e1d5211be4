//! Reading a file that is still being written: each record once and in order, and an error only for what
//! cannot become whole.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tfseek::follow::{Follow, FollowOptions};
use tfseek::frame::put_record;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, ErrorKind, Verify};

fn options(set: impl FnOnce(&mut FollowOptions)) -> FollowOptions {
    let mut options = FollowOptions::default();
    set(&mut options);
    options
}

fn file_of(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    payloads.iter().for_each(|payload| put_record(&mut file, payload).unwrap());
    file
}

fn payloads(n: usize) -> Vec<Vec<u8>> {
    (0..n).map(|i| format!("{i}:{}", "x".repeat(i * 31 % 97)).into_bytes()).collect()
}

fn append(path: &Path) -> File {
    OpenOptions::new().append(true).open(path).unwrap()
}

/// Returns all records that are whole now.
fn drain(follow: &mut Follow) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some(record) = follow.next().unwrap() {
        records.push(record.payload().to_vec());
    }
    records
}

#[test]
fn a_record_is_returned_with_its_last_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let records = payloads(20);
    let file = file_of(&records);
    fs::write(&path, "").unwrap();
    let (mut writer, mut follow) = (append(&path), Follow::open(&path, &Default::default()).unwrap());
    let (mut returned, mut ends) = (0, Vec::new());
    for payload in &records {
        ends.push(ends.last().unwrap_or(&0) + payload.len() + 16);
    }
    for at in 0..file.len() {
        writer.write_all(&file[at..=at]).unwrap();
        let found = drain(&mut follow);
        if ends.contains(&(at + 1)) {
            assert_eq!(found, [records[returned].clone()]);
            returned += 1;
            assert_eq!((follow.records_read(), follow.offset()), (returned as u64, at as u64 + 1));
            assert_eq!(follow.partial_bytes(), 0);
        } else {
            assert!(found.is_empty());
            assert!(follow.partial_bytes() > 0);
        }
    }
    assert_eq!(returned, 20);
}

#[test]
fn a_writer_that_appends_in_odd_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let records = payloads(10_000);
    let file = file_of(&records);
    fs::write(&path, "").unwrap();
    let done = AtomicBool::new(false);
    let mut found = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = append(&path);
            let (mut rest, mut k) = (file.as_slice(), 0usize);
            while !rest.is_empty() {
                k += 1;
                let (piece, later) = rest.split_at((k * 7919 % 1021 + 1).min(rest.len()));
                writer.write_all(piece).unwrap();
                rest = later;
            }
            done.store(true, Ordering::Release);
        });
        let mut follow = Follow::open(&path, &Default::default()).unwrap();
        loop {
            let last = done.load(Ordering::Acquire);
            found.extend(drain(&mut follow));
            if last {
                break;
            }
        }
        assert_eq!(follow.partial_bytes(), 0);
    });
    assert!(found == records, "{} of {} records", found.len(), records.len());
}

#[test]
fn damage_is_an_error_once_and_a_torn_tail_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let records = payloads(4);
    let file = file_of(&records);
    let third = file_of(&records[..2]).len();
    for cut in 0..file.len() {
        fs::write(&path, &file[..cut]).unwrap();
        let mut follow = Follow::open(&path, &Default::default()).unwrap();
        let found = drain(&mut follow);
        assert_eq!(file_of(&found).len() as u64, follow.offset());
        append(&path).write_all(&file[cut..]).unwrap();
        assert_eq!([found, drain(&mut follow)].concat(), records);
    }
    for (at, len, damaged) in
        [(third + 3, third + 12, "length crc32c"), (third + 14, file.len(), "payload crc32c")]
    {
        let mut bad = file.clone();
        bad[at] ^= 1;
        fs::write(&path, &bad[..third + 11]).unwrap();
        let mut follow = Follow::open(&path, &Default::default()).unwrap();
        assert_eq!(drain(&mut follow), records[..2]);
        append(&path).write_all(&bad[third + 11..len]).unwrap();
        let e = follow.next().unwrap_err();
        let want = format!("{}: record 2 at byte {third}: {damaged}", path.display());
        assert!(e.to_string().starts_with(&want), "{e}");
        assert!(follow.next().unwrap().is_none(), "the error is returned once");
    }
    let mut bad = file.clone();
    bad[third + 14] ^= 1;
    fs::write(&path, &bad).unwrap();
    let mut follow = Follow::open(&path, &options(|o| o.verify = Verify::Header)).unwrap();
    assert_eq!(drain(&mut follow).len(), 4);
}

#[test]
fn a_file_that_is_shorter_replaced_or_removed_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let records = payloads(3);
    let file = file_of(&records);
    let begin = || {
        fs::write(&path, &file[..file.len() - 1]).unwrap();
        let mut follow = Follow::open(&path, &Default::default()).unwrap();
        assert_eq!(drain(&mut follow), records[..2]);
        follow
    };
    let fails = |mut follow: Follow, words: &str| {
        let e = follow.next().unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Changed { .. }), "{e}");
        assert!(e.to_string().contains(words), "{e}");
        assert!(e.to_string().starts_with(&path.display().to_string()), "{e}");
        assert!(follow.next().unwrap().is_none());
    };
    let follow = begin();
    append(&path).set_len(10).unwrap();
    fails(follow, &format!("expected a file of at least {} bytes, found 10", file.len() - 1));

    if cfg!(unix) {
        let mut follow = begin();
        // The records of the old file come first, also those that were written after the last call.
        append(&path).write_all(&file[file.len() - 1..]).unwrap();
        fs::write(dir.path().join("b"), &file).unwrap();
        fs::rename(dir.path().join("b"), &path).unwrap();
        assert_eq!(follow.next().unwrap().unwrap().payload(), records[2]);
        fails(follow, "found another one at its path");

        let follow = begin();
        fs::remove_file(&path).unwrap();
        fails(follow, "found none at its path");
    }
}

#[test]
fn reading_starts_at_a_saved_position() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let records = payloads(30);
    fs::write(&path, file_of(&records)).unwrap();
    let mut follow = Follow::open(&path, &Default::default()).unwrap();
    for i in 0..=30 {
        let mut rest =
            Follow::open(&path, &options(|o| o.start = (follow.records_read(), follow.offset()))).unwrap();
        if let Some(record) = rest.next().unwrap() {
            let at = record.at();
            assert_eq!((at.record, at.offset), (Some(i as u64), Some(follow.offset())));
            assert_eq!(record.payload(), records[i]);
            assert_eq!(drain(&mut rest), records[i + 1..]);
        }
        follow.next().unwrap();
    }
    let e = Follow::open(&path, &options(|o| o.start = (31, follow.offset() + 1))).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Changed { .. }), "{e}");
    let mut inside = Follow::open(&path, &options(|o| o.start = (1, 5))).unwrap();
    assert!(matches!(inside.next().unwrap_err().kind(), ErrorKind::CorruptLength { .. }));
}

#[test]
fn positions_that_no_file_has_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let records = payloads(3);
    fs::write(&path, file_of(&records)).unwrap();
    let at = |record, offset| Follow::open(&path, &options(|o| o.start = (record, offset)));
    let most = i64::MAX as u64;
    let mut follow = at(most, 0).unwrap();
    assert_eq!(drain(&mut follow), records);
    assert_eq!(follow.records_read(), most + 3);
    for record in [most + 1, u64::MAX] {
        let e = at(record, 0).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::TooMany { .. }), "{e}");
        let text = format!("expected at most {most} records before the start, found {record}");
        assert!(e.to_string().ends_with(&text), "{e}");
    }
    for offset in [most + 1, u64::MAX] {
        let e = at(0, offset).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Changed { .. }), "{e}");
    }
}

#[test]
fn files_that_cannot_be_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    for (compression, format) in [(Compression::Gzip, "gzip"), (Compression::Zlib, "zlib")] {
        let mut writer = WriterOptions { compression, ..WriterOptions::default() }.create(&path).unwrap();
        payloads(50).iter().for_each(|payload| writer.write(payload).unwrap());
        writer.close().unwrap();
        let e = Follow::open(&path, &Default::default()).unwrap().next().unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Compressed { format: found } if *found == format), "{e}");
    }
    fs::write(&path, "PAR1 and then some more bytes").unwrap();
    let e = Follow::open(&path, &Default::default()).unwrap().next().unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::NotTfRecord { looks_like: "Parquet", .. }), "{e}");
    assert!(Follow::open(dir.path(), &Default::default()).is_err());
    assert!(Follow::open(dir.path().join("none"), &Default::default()).is_err());
    assert!(Follow::open("gs://bucket/a", &Default::default()).is_err());
    if cfg!(target_os = "linux") {
        let e = Follow::open("/dev/null", &Default::default()).unwrap_err();
        assert!(e.to_string().contains("expected a regular file, found a device"), "{e}");
    }
}

#[test]
fn long_records_are_refused_and_cost_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, file_of(&[vec![1; 10], vec![2; 11]])).unwrap();
    let mut follow = Follow::open(&path, &options(|o| o.max_record = 10)).unwrap();
    assert_eq!(follow.next().unwrap().unwrap().payload().len(), 10);
    let e = follow.next().unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::RecordTooLarge { len: 11, max_record: 10 }), "{e}");

    // A header that states a terabyte is whole, and the bytes after it may still be written.
    let mut header = Vec::new();
    put_record(&mut header, b"").unwrap();
    header[..8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let crc = tfseek::crc::masked(&header[..8]);
    header[8..12].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, &header).unwrap();
    let mut follow = Follow::open(&path, &options(|o| o.max_record = u64::MAX)).unwrap();
    assert!(follow.next().unwrap().is_none());
    assert!(
        Follow::open(&path, &Default::default()).unwrap().next().unwrap().is_none(),
        "the record may be refused later"
    );
}
