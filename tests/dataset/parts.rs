//! Parts: every record in exactly one share, and read there as in the dataset; shards that changed; JSON of
//! any content.

use std::fs;
use std::path::{Path, PathBuf};
use tfseek::error::{CompressionError, IndexError, PartError};
use tfseek::frame::put_record;
use tfseek::index::{IndexOptions, write_pack};
use tfseek::stream::StreamOptions;
use tfseek::writer::WriterOptions;
use tfseek::{
    Compression, Damage, Dataset, DatasetOptions, Error, ErrorKind, IndexMode, Mapped, Part, Tail, Verify,
};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards::{equal, options, records, set_mtime, trust, write};

fn memory() -> IndexOptions {
    options().mode(IndexMode::Memory)
}

fn open(paths: &[PathBuf]) -> Dataset {
    DatasetOptions::new().index(memory()).open(paths).unwrap()
}

/// Ordinal, offset, payload and path of each record of a part, and the error at its end.
type Read = (Vec<(u64, u64, Vec<u8>, PathBuf)>, Option<Error>);

fn read_with(options: &StreamOptions, part: &Part) -> Read {
    let mut found = Vec::new();
    let mut stream = match options.part(part) {
        Ok(stream) => stream,
        Err(e) => return (found, Some(e)),
    };
    loop {
        match stream.next() {
            Ok(Some(record)) => {
                let at = record.at();
                let path = at.path.unwrap().to_path_buf();
                found.push((at.record.unwrap(), at.offset.unwrap(), record.payload().to_vec(), path));
            }
            Ok(None) => {
                assert_eq!(stream.records_read(), found.len() as u64);
                return (found, None);
            }
            Err(e) => {
                assert!(stream.next().unwrap().is_none(), "a stream ends with its error");
                return (found, Some(e));
            }
        }
    }
}

fn read(part: &Part) -> Read {
    read_with(&StreamOptions::default(), part)
}

#[track_caller]
fn failed(part: &Part) -> Error {
    let e = read(part).1.expect("an error");
    assert_eq!(e.location().path.as_deref(), Some(Path::new(&*part.shard)), "{e}");
    e
}

fn is_stale(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. }))
}

/// Bytes of a share.
fn size(share: &[Part]) -> u64 {
    share.iter().map(|part| part.bytes.end - part.bytes.start).sum()
}

/// Checks that shares are disjoint, complete, in order and nearly equal. `unit` is the size of the largest
/// record or compressed shard.
fn check_shares(ds: &Dataset, shares: &[Vec<Part>], n: u64, unit: u64) {
    let total: u64 = shares.iter().map(|share| size(share)).sum();
    assert!(shares.len() as u64 <= n);
    let mut next = 0;
    let mut last: Option<(String, u64)> = None;
    for share in shares {
        assert!(!share.is_empty());
        // Differences to the exact size, times `n`.
        let (found, exact) = (size(share) * n, total);
        assert!(found <= exact + unit * n, "{n}: {found} {exact} {unit}");
        assert!(shares.len() as u64 != n || found + unit * n >= exact, "{n}: {found} {exact} {unit}");
        for part in share {
            assert_eq!(part.first, next);
            let (s, i) = ds.shard_of(next).unwrap();
            assert_eq!((part.ordinal, Path::new(&*part.shard)), (i, ds.shards().nth(s).unwrap().path));
            next += part.records.unwrap();
            match &last {
                Some((shard, end)) if **shard == *part.shard => assert_eq!(*end, part.bytes.start),
                _ => assert_eq!(part.bytes.start, 0),
            }
            last = Some((part.shard.to_string(), part.bytes.end));
            let json = part.to_json();
            assert!(json.len() < 300, "{json}");
            assert_eq!(Part::from_json(&json).unwrap(), *part);
        }
    }
    assert_eq!(next, ds.len());
}

/// Reads all shares and compares their records with those of the dataset.
fn check_records(ds: &Dataset, shares: &[Vec<Part>]) {
    let (mut buf, mut next) = (Vec::new(), 0);
    for part in shares.iter().flatten() {
        let (found, e) = read(part);
        assert!(e.is_none(), "{e:?}");
        assert_eq!(Some(found.len() as u64), part.records);
        for (record, offset, payload, path) in found {
            let want = ds.read(next, &mut buf).unwrap();
            assert!(payload == want.payload());
            let at = want.at();
            assert_eq!((Some(record), Some(offset), Some(&*path)), (at.record, at.offset, at.path));
            next += 1;
        }
    }
    assert_eq!(next, ds.len());
}

fn payload(rng: &mut Rng, largest: usize) -> Vec<u8> {
    let len = if rng.chance(20) { rng.below(largest * 20 + 1) } else { rng.below(largest + 1) };
    rng.bytes(len)
}

#[test]
fn random_sets_are_divided_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(1);
    for round in 0..25 {
        let (mut paths, mut unit) = (Vec::new(), 0);
        for s in 0..rng.below(7) + 1 {
            let (count, largest) = (rng.pick(&[0, 0, 1, 2, 30, 300]), rng.pick(&[0, 10, 200]));
            let path = dir.path().join(format!("{round}-{s}"));
            let compression =
                rng.pick(&[Compression::None, Compression::None, Compression::Gzip, Compression::Zlib]);
            let mut options = WriterOptions { compression, ..WriterOptions::default() };
            if compression == Compression::Gzip {
                options.members = Some(200);
            }
            let mut writer = options.create(&path).unwrap();
            for _ in 0..count {
                let payload = payload(&mut rng, largest);
                unit = unit.max(payload.len() as u64 + 16);
                writer.write(&payload).unwrap();
            }
            writer.close().unwrap();
            if compression != Compression::None {
                unit = unit.max(fs::metadata(&path).unwrap().len());
            }
            paths.push(path);
        }
        let ds = open(&paths);
        for n in 1..=9 {
            let shares = ds.shares(n).unwrap();
            check_shares(&ds, &shares, n, unit);
            check_records(&ds, &shares);
        }
        check_shares(&ds, &ds.shares(u64::MAX).unwrap(), u64::MAX >> 40, unit);
        for bytes in [1, 1000, u64::MAX] {
            let shares = ds.shares_of(bytes).unwrap();
            check_records(&ds, &shares);
            assert!(shares.iter().all(|share| size(share) <= bytes.saturating_add(unit)));
        }
    }
}

#[test]
fn one_large_record_may_be_a_share() {
    let dir = tempfile::tempdir().unwrap();
    let small = equal(500, 40);
    let large = [small.clone(), records(&[&vec![7; 30 << 20]]), small.clone()].concat();
    let paths = [write(dir.path(), "a", &small), write(dir.path(), "b", &large), write(dir.path(), "c", b"")];
    let ds = open(&paths);
    for n in 1..=9 {
        let shares = ds.shares(n).unwrap();
        check_shares(&ds, &shares, n, (30 << 20) + 16);
        if n >= 3 {
            assert_eq!(shares.iter().map(|share| share.len()).collect::<Vec<_>>(), [2, 1, 1]);
            assert_eq!(shares[1][0].records, Some(1));
        }
    }
    check_records(&ds, &ds.shares(4).unwrap());
}

#[test]
fn equal_records_are_divided_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let ds = open(&[write(dir.path(), "x", &equal(5000, 40))]);
    for n in [1, 2, 4, 5, 8, 1000, 5000, 6000, u64::MAX] {
        let counts: Vec<_> = ds.shares(n).unwrap().iter().map(|share| share[0].records.unwrap()).collect();
        let share = 5000 / n.min(5000);
        assert_eq!(counts, vec![share; (5000 / share) as usize], "{n}");
    }
    assert_eq!(ds.shares_of(560).unwrap().len(), 500);
    assert_eq!(ds.shares_of(u64::MAX).unwrap().len(), 1);
}

#[test]
fn small_shards_are_joined_and_packs_are_divided() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..1000).map(|s| write(dir.path(), &format!("s{s:04}"), &equal(s % 3, 5))).collect();
    let ds = open(&paths);
    let shares = ds.shares(4).unwrap();
    check_shares(&ds, &shares, 4, 21);
    assert!(shares.iter().all(|share| share.len() > 100));
    check_records(&ds, &shares);
    let (pack, _) = write_pack("all", &paths, &options()).unwrap();
    let packed = DatasetOptions::new().index(options()).open(pack).unwrap();
    assert_eq!(packed.shares(4).unwrap(), shares);
    let none = open(&paths[..1]);
    assert!(none.shares(3).unwrap().is_empty() && none.shares_of(1).unwrap().is_empty());
}

#[test]
fn shards_that_have_no_parts_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = equal(20, 40);
    let path = write(dir.path(), "x", &bytes);
    let kind = |e: Error| match e.into_kind() {
        ErrorKind::Part(e) => e,
        other => panic!("{other}"),
    };
    let ds = open(std::slice::from_ref(&path));
    assert_eq!(kind(ds.shares(0).unwrap_err()), PartError::Zero { what: "number of shares" });
    assert_eq!(kind(ds.shares_of(0).unwrap_err()), PartError::Zero { what: "bytes of a share" });
    let in_memory = Mapped::from_bytes(bytes.clone()).unwrap();
    assert_eq!(kind(in_memory.dataset().shares(2).unwrap_err()), PartError::InMemory);

    let mut damaged = bytes.clone();
    damaged[56 * 3 + 20] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let ds = DatasetOptions::new().index(memory().damage(Damage::Skip)).open(&path).unwrap();
    assert_eq!(ds.len(), 19);
    let e = ds.shares(2).unwrap_err();
    assert_eq!(e.location().path.as_deref(), Some(&*path));
    assert_eq!(kind(e), PartError::Gaps);

    // The records before a torn tail are whole.
    fs::write(&path, &bytes[..56 * 19 + 30]).unwrap();
    let ds = DatasetOptions::new().index(memory().tail(Tail::Tolerate)).open(&path).unwrap();
    check_records(&ds, &ds.shares(3).unwrap());

    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt;
        let odd = dir.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
        fs::write(&odd, &bytes).unwrap();
        assert_eq!(kind(open(std::slice::from_ref(&odd)).shares(1).unwrap_err()), PartError::NotUtf8);
        assert_eq!(kind(Part::of_shard(&odd, 0, None).unwrap_err()), PartError::NotUtf8);
    }
}

#[test]
fn a_shard_that_changed_is_stale_unless_its_records_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = equal(100, 40);
    let path = write(dir.path(), "x", &bytes);
    set_mtime(&path, 1_600_000_000_000_000_000);
    let shares = open(std::slice::from_ref(&path)).shares(4).unwrap();
    let want: Vec<_> = shares.iter().flatten().map(|part| read(part).0).collect();
    let unchanged = || shares.iter().flatten().map(read).all(|(_, e)| e.is_none());
    let all_stale = || shares.iter().flatten().all(|part| is_stale(&failed(part)));

    // A copy, a touch, and more records.
    fs::copy(&path, dir.path().join("copy")).unwrap();
    fs::rename(dir.path().join("copy"), &path).unwrap();
    set_mtime(&path, 1_700_000_000_000_000_000);
    assert!(unchanged());
    fs::write(&path, [bytes.clone(), equal(3, 9)].concat()).unwrap();
    assert!(unchanged());
    let again: Vec<_> = shares.iter().flatten().map(|part| read(part).0).collect();
    assert_eq!(again, want);
    // A shard that was planned while it had another end is no part of what was appended.
    assert_eq!(again.iter().map(Vec::len).sum::<usize>(), 100);

    for len in [bytes.len() - 1, 56 * 50, 1, 0] {
        fs::write(&path, &bytes[..len]).unwrap();
        assert!(all_stale(), "{len}");
    }
    // Records of the same lengths, with the same size and time.
    fs::write(&path, records(&vec![&[0xaa; 40][..]; 100])).unwrap();
    set_mtime(&path, 1_600_000_000_000_000_000);
    assert!(all_stale());
    let e = failed(&shares[0][0]).to_string();
    assert!(e.contains("the content of the shard has changed: expected 5600 bytes"), "{e}");
    fs::remove_file(&path).unwrap();
    assert!(shares.iter().flatten().all(|part| matches!(failed(part).kind(), ErrorKind::Io(_))));
    fs::create_dir(&path).unwrap();
    assert!(shares.iter().flatten().all(|part| matches!(failed(part).kind(), ErrorKind::Io(_))));
}

/// The fingerprints cover these bytes, so damage there is no other shard.
#[test]
fn damage_near_the_ends_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    for compression in [Compression::None, Compression::Gzip] {
        let path = dir.path().join(compression.name());
        let mut writer = WriterOptions { compression, ..WriterOptions::default() }.create(&path).unwrap();
        let mut rng = Rng::new(2);
        (0..250).for_each(|_| writer.write(&rng.bytes(1000)).unwrap());
        writer.close().unwrap();
        set_mtime(&path, 1_600_000_000_000_000_000);
        let bytes = fs::read(&path).unwrap();
        let index = options().index_dir(dir.path().join("i"));
        let open = || DatasetOptions::new().index(index.clone()).open(&path).unwrap();
        let shares = open().shares(4).unwrap();
        trust(&dir.path().join("i"));
        for (record, at) in [(0, 500), (3, 4 * 1016 - 2), (246, 246 * 1016 + 12), (249, bytes.len() - 8)] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            for time in [1_600_000_000_000_000_000, 1_600_000_000_000_000_001] {
                set_mtime(&path, time);
                for part in shares.iter().flatten() {
                    let e = failed(part);
                    assert!(e.is_data() && !is_stale(&e), "{compression:?} {at}: {e}");
                    if compression == Compression::None {
                        assert_eq!(
                            (e.location().record, e.location().offset),
                            (Some(record), Some(record * 1016))
                        );
                    }
                }
            }
            // The index has the size and time, so it is used, and its parts know the old bytes.
            set_mtime(&path, 1_600_000_000_000_000_000);
            let e = open().shares(4).unwrap().iter().flatten().map(failed).next().unwrap();
            assert!(e.is_data() && !is_stale(&e), "{e}");
        }
    }
}

/// The dataset tolerates the end, so readers of its parts do.
#[test]
fn the_tail_policy_travels_in_the_part() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut writer =
        WriterOptions { compression: Compression::Gzip, ..WriterOptions::default() }.create(&path).unwrap();
    (0..200u8).for_each(|i| writer.write(&[i; 30]).unwrap());
    writer.close().unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let tolerant = memory().tail(Tail::Tolerate);
    let ds = DatasetOptions::new().index(tolerant).open(&path).unwrap();
    let shares = ds.shares(2).unwrap();
    let part = Part::from_json(&shares[0][0].to_json()).unwrap();
    assert_eq!((part.tail, &part), (Tail::Tolerate, &shares[0][0]));
    check_records(&ds, &shares);
    let mut stream = StreamOptions::default().part(&part).unwrap();
    while stream.next().unwrap().is_some() {}
    assert_eq!(stream.warnings(), ds.warnings());
    assert!(with(&part, "tail", "strict".into()).is_err() && with(&part, "tail", 1.into()).is_err());
    // A part of another dataset does not have the field.
    let strict = with(&part, "tail", serde_json::Value::Null);
    assert!(strict.is_err());
    fs::write(&path, &bytes).unwrap();
    assert_eq!(open(&[path]).shares(2).unwrap()[0][0].tail, Tail::Strict);
}

/// Damage between the first and the last 64 KiB, which the fingerprints do not cover.
#[test]
fn damage_is_reported_by_the_part_that_contains_it() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = equal(400, 1000);
    let path = write(dir.path(), "x", &bytes);
    let shares = open(std::slice::from_ref(&path)).shares(4).unwrap();
    assert_eq!(shares.iter().map(|share| share[0].records).collect::<Vec<_>>(), [Some(100); 4]);
    for (i, at) in [(150, 500), (150, 3), (150, 9), (150, 1014), (100, 0), (199, 1015)] {
        let mut damaged = bytes.clone();
        damaged[1016 * i + at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        for (k, share) in shares.iter().enumerate() {
            let (found, e) = read(&share[0]);
            if k != 1 {
                assert!(e.is_none() && found.len() == 100);
                continue;
            }
            let e = e.unwrap();
            let (path, record, offset) =
                (e.location().path.as_deref(), e.location().record, e.location().offset);
            assert_eq!(
                (path, record, offset),
                (Some(Path::new(&*share[0].shard)), Some(i as u64), Some(1016 * i as u64))
            );
            assert!(e.is_data() && found.len() == i - 100, "{e}");
        }
    }
    // Another record, larger and with true checksums, in the place of two.
    let other = [&bytes[..1016 * 150], &records(&[&vec![7; 2016]]), &bytes[1016 * 152..]].concat();
    assert_eq!(other.len(), bytes.len());
    fs::write(&path, other).unwrap();
    let (found, e) = read(&shares[1][0]);
    let e = e.unwrap();
    assert_eq!(found.len(), 99);
    assert_eq!(e.location().record, Some(199));
    assert!(
        matches!(e.kind(), ErrorKind::Part(PartError::Records { expected: 100, found: 99, more: false })),
        "{e}"
    );
    assert!(e.to_string().ends_with("expected 100 records in the part, found 99"), "{e}");
    // Two records in the place of one.
    let other = [&bytes[..1016 * 150], &records(&[&[7; 492], &[8; 492]]), &bytes[1016 * 151..]].concat();
    fs::write(&path, other).unwrap();
    let (found, e) = read(&shares[1][0]);
    let e = e.unwrap();
    assert_eq!(found.len(), 100);
    assert!(e.to_string().ends_with("expected 100 records in the part, found at least 101"), "{e}");
    assert_eq!(e.location().record, Some(200));
}

/// Replaces a field of a part's JSON.
fn with(part: &Part, field: &str, value: serde_json::Value) -> tfseek::Result<Part> {
    let mut json: serde_json::Value = serde_json::from_str(&part.to_json()).unwrap();
    json[field] = value;
    Part::from_json(&json.to_string())
}

#[test]
fn parts_that_do_not_fit_their_shard_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", &equal(100, 40));
    let part = open(std::slice::from_ref(&path)).shares(4).unwrap()[1][0].clone();
    assert_eq!((part.bytes.clone(), part.ordinal, part.records), (1400..2800, 25, Some(25)));
    let error = |field: &str, value: u64| failed(&with(&part, field, value.into()).unwrap());
    assert!(matches!(error("from", 1401).kind(), ErrorKind::CorruptLength { .. }));
    assert!(matches!(error("to", 2799).kind(), ErrorKind::Truncated { .. }));
    assert_eq!(error("to", 2799).location().record, Some(49));
    assert!(matches!(error("to", 2801).kind(), ErrorKind::Truncated { .. } | ErrorKind::Part(_)));
    assert!(matches!(error("records", 24).kind(), ErrorKind::Part(PartError::Records { more: true, .. })));
    assert!(matches!(error("records", 26).kind(), ErrorKind::Part(PartError::Records { more: false, .. })));
    assert!(is_stale(&error("end", 5599)));
    // A torn end is an error, whatever the tail may be.
    let tolerant = StreamOptions { tail: Tail::Tolerate, verify: Verify::Header, ..StreamOptions::default() };
    let torn = with(&part, "to", 2799.into()).unwrap();
    assert!(matches!(read_with(&tolerant, &torn).1.unwrap().kind(), ErrorKind::Truncated { .. }));
    // A part without a number of records ends where it says.
    let open_end = with(&part, "records", serde_json::Value::Null).unwrap();
    assert_eq!(read(&open_end).0, read(&part).0);
    let e = StreamOptions { compression: Some(Compression::Gzip), ..StreamOptions::default() }
        .part(&part)
        .unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Compression(CompressionError::Mismatch { .. })), "{e}");
}

#[test]
fn a_compressed_shard_is_one_part() {
    let dir = tempfile::tempdir().unwrap();
    for (name, compression) in [("a", Compression::Gzip), ("b", Compression::Zlib)] {
        let path = dir.path().join(name);
        let mut writer = WriterOptions { compression, ..WriterOptions::default() }.create(&path).unwrap();
        (0..200u8).for_each(|i| writer.write(&[i; 30]).unwrap());
        writer.close().unwrap();
        let ds = open(std::slice::from_ref(&path));
        let shares = ds.shares(8).unwrap();
        assert_eq!((shares.len(), shares[0].len(), shares[0][0].records), (1, 1, Some(200)));
        check_records(&ds, &shares);
        let part = &shares[0][0];
        let records = |n: u64| failed(&with(part, "records", n.into()).unwrap());
        for n in [0, 199, 201] {
            assert!(matches!(records(n).kind(), ErrorKind::Part(PartError::Records { .. })), "{n}");
        }
        assert!(with(part, "from", 1.into()).is_err() && with(part, "ordinal", 1.into()).is_err());
        // Without an index the number of records is unknown.
        let whole = Part::of_shard(&path, 70, None).unwrap();
        assert_eq!((whole.records, whole.first, whole.compression), (None, 70, compression));
        assert_eq!(Part::from_json(&whole.to_json()).unwrap(), whole);
        assert_eq!(read(&whole).0, read(part).0);
        // Bytes that were appended are not read.
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, [&bytes[..], &bytes[..]].concat()).unwrap();
        assert_eq!(read(part).0.len(), 200);
        assert!(read(part).1.is_none());
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(is_stale(&failed(part)));
    }
}

#[test]
fn a_shard_without_an_index_is_one_part() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = equal(30, 40);
    let path = write(dir.path(), "x", &bytes);
    let part = Part::of_shard(&path, 5, None).unwrap();
    assert_eq!((part.bytes.clone(), part.records, part.first), (0..1680, None, 5));
    assert_eq!(read(&part).0.len(), 30);
    fs::write(&path, [&bytes[..], &[1, 2, 3]].concat()).unwrap();
    assert_eq!(read(&part).0.len(), 30);
    // A torn tail is an error, unless it is tolerated.
    let torn = Part::of_shard(&path, 5, None).unwrap();
    assert!(matches!(failed(&torn).kind(), ErrorKind::Truncated { .. }));
    let (found, e) = read_with(&StreamOptions { tail: Tail::Tolerate, ..StreamOptions::default() }, &torn);
    assert!(e.is_none() && found.len() == 30);
    let empty = Part::of_shard(write(dir.path(), "e", b""), 0, None).unwrap();
    assert_eq!(read(&empty).0.len(), 0);
    assert!(read(&empty).1.is_none());
    assert!(
        Part::of_shard(dir.path().join("none"), 0, None).is_err()
            && Part::of_shard("gs://a/b", 0, None).is_err()
    );
    assert!(Part::of_shard(&path, u64::MAX, None).is_err());
}

#[test]
fn json_of_a_part() {
    let dir = tempfile::tempdir().unwrap();
    let part = open(&[write(dir.path(), "x", &equal(9, 40))]).shares(3).unwrap()[1][0].clone();
    let refused = |field: &str, value: serde_json::Value, message: &str| {
        let e = with(&part, field, value).expect_err(field).to_string();
        assert!(e.starts_with(&format!("invalid part: {message}")), "{e}");
    };
    refused("more", 1.into(), "json: expected no other fields, found more");
    refused("v", 2.into(), "v: expected 1, found 2");
    refused("shard", "".into(), "shard: expected a path, found \"\"");
    refused("shard", 7.into(), "shard: expected a path, found 7");
    refused("compression", "bzip2".into(), "compression: expected none, gzip or zlib");
    refused("fp", "12".into(), "fp: expected 32 hex digits");
    refused("fp", "+".repeat(32).into(), "fp: expected 32 hex digits");
    refused("mtime", (1u64 << 63).into(), "mtime: expected nanoseconds");
    refused("records", (-1).into(), "records: expected a number from 0 to 2^63 - 1, found -1");
    refused("records", 0.into(), "records: expected at least 1, found 0");
    refused("records", 11.into(), "records: expected at most as many as fit between from and to, found 11");
    refused("from", 400.into(), "from: expected at most to, and 0 in a compressed shard, found 400");
    refused("to", 505.into(), "to: expected at most the end");
    refused("end", 505.into(), "end: expected at most the size");
    refused("ordinal", 0.into(), "ordinal: expected 0 at byte 0, and only there, found 0");
    refused("first", i64::MAX.into(), "records: expected numbers below 2^63, found 3");
    for field in ["size", "end", "from", "to", "ordinal", "first"] {
        for bad in [(1u64 << 63).into(), 1.5.into(), "7".into(), serde_json::Value::Null, true.into()] {
            refused(field, bad, &format!("{field}: expected a number from 0 to 2^63 - 1, found "));
        }
    }
    let json: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&part.to_json()).unwrap();
    for field in json.keys() {
        let mut json = json.clone();
        json.remove(field);
        let e = Part::from_json(&serde_json::Value::Object(json).to_string()).unwrap_err().to_string();
        assert_eq!(e, format!("invalid part: json: expected a field {field}, found none"));
    }
    for bad in ["", "[]", "7", "null", "{}", "{\"v\": 1}", &"[".repeat(100_000)] {
        let e = Part::from_json(bad).unwrap_err().to_string();
        assert!(e.starts_with("invalid part: ") && e.len() < 200, "{e}");
    }
    // A long path of a large set.
    let shard = format!("/data/{}/train-00000-of-10000.tfrecord", "x".repeat(20));
    let mut large = json;
    let sizes =
        [("size", 1u64 << 36), ("end", 1 << 36), ("to", 1 << 35), ("from", 1 << 34), ("first", 1 << 36)];
    sizes.into_iter().for_each(|(name, number)| _ = large.insert(name.into(), number.into()));
    large.insert("shard".into(), shard.into());
    large.insert("mtime".into(), 1_700_000_000_123_456_789u64.into());
    let large = Part::from_json(&serde_json::Value::Object(large).to_string()).unwrap();
    assert!(large.to_json().len() < 300, "{}", large.to_json().len());
}

/// Any text is an error or a part that is equal to its own JSON, and reading it is no panic.
#[test]
fn mutated_json_is_an_error_or_a_valid_part() {
    let dir = tempfile::tempdir().unwrap();
    let part = open(&[write(dir.path(), "x", &equal(9, 40))]).shares(3).unwrap()[1][0].clone();
    let json = part.to_json();
    let (mut valid, mut errors) = (0, 0);
    let mut check = |text: &[u8]| {
        let Ok(text) = std::str::from_utf8(text) else { return };
        match Part::from_json(text) {
            Ok(found) => {
                valid += 1;
                assert_eq!(Part::from_json(&found.to_json()).unwrap(), found);
                let (records, e) = read(&found);
                assert!(e.is_some() || found.records.is_none_or(|n| n == records.len() as u64));
            }
            Err(e) => {
                errors += 1;
                assert!(matches!(e.kind(), ErrorKind::Part(PartError::Invalid { .. })), "{e}");
            }
        }
    };
    (0..json.len()).for_each(|len| check(&json.as_bytes()[..len]));
    for bit in 0..json.len() * 8 {
        let mut text = json.clone().into_bytes();
        text[bit / 8] ^= 1 << (bit % 8);
        check(&text);
    }
    let mut rng = Rng::new(5);
    let pieces: [&[u8]; 10] = [
        b"9223372036854775807",
        b"18446744073709551615",
        b"null",
        b"-1",
        b"{",
        b"\"",
        b"e9",
        b"0",
        b":",
        b",",
    ];
    for _ in 0..20_000 {
        let mut text = json.clone().into_bytes();
        for _ in 0..rng.below(3) + 1 {
            let (at, len) = (rng.below(text.len()), rng.below(12));
            let end = (at + len).min(text.len());
            text.splice(at..end, rng.pick(&pieces).iter().copied());
        }
        check(&text);
    }
    assert!(valid > 100 && errors > 1000, "{valid} {errors}");
}

/// `TFSEEK_PARTS=1 cargo test --release --test dataset many_shards -- --nocapture` prints times.
#[test]
fn many_shards_and_many_shares() {
    let dir = tempfile::tempdir().unwrap();
    let count = if std::env::var_os("TFSEEK_PARTS").is_some() { 10_000 } else { 300 };
    let bytes = equal(100, 40);
    let paths: Vec<_> = (0..count).map(|s| write(dir.path(), &format!("s{s:05}"), &bytes)).collect();
    let ds = open(&paths);
    for n in [8, 1000, 100_000] {
        let begin = std::time::Instant::now();
        let shares = ds.shares(n).unwrap();
        println!("{count} shards, {} shares: {:?}", shares.len(), begin.elapsed());
        assert_eq!(shares.iter().flatten().map(|part| part.records.unwrap()).sum::<u64>(), ds.len());
    }
    let mut file = Vec::new();
    (0..count * 100).for_each(|i| put_record(&mut file, &[i as u8; 9]).unwrap());
    let ds = open(&[write(dir.path(), "one", &file)]);
    let begin = std::time::Instant::now();
    let shares = ds.shares(1000).unwrap();
    println!("one shard of {} records, {} shares: {:?}", ds.len(), shares.len(), begin.elapsed());
    assert_eq!(shares.len(), 1000);
}
