//! Datasets opened from a pack, and datasets with more shards than a process can keep open.
#![allow(unsafe_code)] // `Mapped` has one unsafe constructor.

use std::fs;
use std::path::{Path, PathBuf};
use tfseek::error::{IndexError, PathsError, Remedy};
use tfseek::index::{IndexOptions, write_pack};
use tfseek::{Dataset, DatasetOptions, ErrorKind, IndexMode, Mapped, Tail};
use tfseek_testkit::shards::{equal, options, records, sidecar, write};

/// Writes `n` shards of 5 records each, and their pack.
fn packed(dir: &Path, n: usize) -> (Vec<PathBuf>, PathBuf) {
    let paths: Vec<_> =
        (0..n).map(|s| write(dir, &format!("x-{s}.tfrecord"), &equal(5, 10 + s % 7))).collect();
    let (pack, _) = write_pack("x", &paths, &options()).unwrap();
    (paths, pack)
}

fn mapped(pack: &Path, options: &DatasetOptions) -> tfseek::Result<Mapped> {
    // SAFETY: the tests write their shards before they open them, and only replace them by rename.
    unsafe { options.open_mapped(pack) }
}

fn payloads(ds: &Dataset) -> tfseek::Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    ds.read_many(&Vec::from_iter(0..ds.len()), |r| {
        all.push(r.payload().to_vec());
        Ok(())
    })?;
    Ok(all)
}

#[test]
fn a_pack_opens_with_maps_and_with_positional_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, pack) = packed(dir.path(), 300);
    let want = payloads(&DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap()).unwrap();
    // 300 shards: more than the number of descriptors kept for positional reads.
    let ds = DatasetOptions::new().open(&pack).unwrap();
    let map = mapped(&pack, &DatasetOptions::new()).unwrap();
    for ds in [&ds, map.dataset()] {
        assert_eq!(ds.len(), 1500);
        assert_eq!(payloads(ds).unwrap(), want);
        // The second pass uses kept descriptors and reopened files.
        assert_eq!(payloads(ds).unwrap(), want);
        assert!(ds.shards().map(|s| s.path.to_path_buf()).eq(paths.iter().cloned()));
    }
    assert_eq!(ds.fingerprint().unwrap(), map.dataset().fingerprint().unwrap());
}

#[test]
fn a_changed_shard_is_an_error_at_its_first_access() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, pack) = packed(dir.path(), 3);
    let ds = mapped(&pack, &DatasetOptions::new()).unwrap();
    fs::write(&paths[1], equal(7, 40)).unwrap();
    fs::remove_file(&paths[2]).unwrap();
    assert!(ds.get(4).is_ok());
    let e = ds.get(5).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::StalePack { .. })), "{e}");
    assert_eq!(e.kind().remedy(), Some(Remedy::WritePack(&pack)));
    let text = e.to_string();
    assert!(text.contains("x-1.tfrecord") && text.contains("x.tfrp"), "{text}");
    let e = ds.get(10).unwrap_err();
    assert!(matches!(e.kind(), tfseek::ErrorKind::Io(_)) && e.to_string().contains("x-2.tfrecord"), "{e}");
}

#[test]
fn the_memory_mode_ignores_the_index_in_a_pack() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, pack) = packed(dir.path(), 3);
    fs::write(&paths[1], equal(7, 40)).unwrap();
    assert_eq!(mapped(&pack, &DatasetOptions::new().index(IndexMode::Memory)).unwrap().len(), 17);
}

#[test]
fn a_torn_tail_is_an_error_in_a_pack() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = records(&[b"one", b"two"]);
    let path = write(dir.path(), "x", &bytes[..bytes.len() - 1]);
    let (pack, _) = write_pack("x", &[path], &options().tail(Tail::Tolerate)).unwrap();
    let e = mapped(&pack, &DatasetOptions::new()).unwrap().get(0).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Truncated { need: 19, have: 18 }), "{e}");
    assert_eq!(e.location().record, Some(1));
    let ds = mapped(&pack, &DatasetOptions::new().index(IndexOptions::new().tail(Tail::Tolerate))).unwrap();
    assert_eq!((ds.len(), ds.get(0).unwrap().payload()), (1, &b"one"[..]));
}

#[test]
fn a_shard_reopened_for_each_read_must_not_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, _) = packed(dir.path(), 300);
    let ds = DatasetOptions::new().index(IndexMode::Memory).open(&paths).unwrap();
    payloads(&ds).unwrap();
    let other = write(dir.path(), "other", &equal(6, 10));
    fs::rename(&other, &paths[299]).unwrap();
    let mut buf = Vec::new();
    assert!(ds.read(0, &mut buf).is_ok());
    let e = ds.read(1499, &mut buf).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })), "{e}");
    assert!(e.to_string().contains("x-299.tfrecord"), "{e}");
}

#[test]
fn too_many_shards_for_maps_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", b"");
    let system = fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let maps = system.and_then(|s| s.trim().parse::<usize>().ok()).unwrap_or(65_530);
    let many = vec![path; maps / 2 + 1];
    // SAFETY: as above.
    let e = unsafe { Mapped::open(&many) }.unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Paths(PathsError::TooManyMaps { .. })), "{e}");
    assert_eq!(e.kind().remedy(), Some(Remedy::ReadWithoutMaps));
}

/// Writes plain, gzip and zlib shards, and returns their paths. The indexes of compressed shards have windows
/// of 32 KiB.
fn mixed(dir: &Path, n: usize) -> Vec<PathBuf> {
    use tfseek::{Compression, writer::WriterOptions};
    let shard = |s: usize| {
        let compression = [Compression::None, Compression::Gzip, Compression::Zlib][s % 3];
        let path = dir.join(format!("m-{s}.tfrecord"));
        let mut writer = WriterOptions { compression, ..WriterOptions::default() }.create(&path).unwrap();
        for i in 0..100 {
            let mut rng = tfseek_testkit::rng::Rng::new((s * 100 + i) as u64);
            writer.write(&(0..2000).map(|_| rng.below(64) as u8).collect::<Vec<_>>()).unwrap();
        }
        writer.close().unwrap();
        path
    };
    (0..n).map(shard).collect()
}

#[test]
fn packs_of_compressed_shards() {
    let dir = tempfile::tempdir().unwrap();
    let options = options().checkpoint_every(20_000);
    // The second pack exceeds the size up to which packs are read into memory.
    for (n, large) in [(4, false), (18, true)] {
        let paths = mixed(dir.path(), n);
        let (pack, _) = write_pack("x", &paths, &options).unwrap();
        assert_eq!(fs::metadata(&pack).unwrap().len() > 1 << 20, large);
        let plain =
            DatasetOptions::new().index(options.clone().mode(IndexMode::Memory)).open(&paths).unwrap();
        let want = payloads(&plain).unwrap();
        let with = DatasetOptions::new().index(options.clone());
        // SAFETY: the tests write their shards before they open them.
        let maps = unsafe { with.open_with_maps(&pack) }.unwrap();
        for ds in [&with.open(&pack).unwrap(), &maps] {
            assert!(Mapped::from_dataset(ds).is_none());
            assert!(payloads(ds).unwrap() == want);
            let mut buf = Vec::new();
            for i in (0..want.len()).step_by(37).rev() {
                assert_eq!(ds.read(i as u64, &mut buf).unwrap().payload(), want[i]);
            }
            assert_eq!(ds.fingerprint().unwrap(), plain.fingerprint().unwrap());
            assert!(sidecar(ds.index(1).unwrap()) == sidecar(plain.index(1).unwrap()));
            assert_eq!(ds.refresh().unwrap().len(), ds.len());
            let loader = ds.record_loader().batch_size(50).shuffle(tfseek::Shuffle::Block).build().unwrap();
            assert_eq!(loader.map(|step| step.unwrap().ids.len()).sum::<usize>(), want.len());
        }
        let e = mapped(&pack, &with).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Compressed { format: "gzip" }), "{e}");
        assert_eq!(e.location().path.as_deref(), Some(&*paths[1]));
    }
}

/// Checkpoints of a large pack are read when they are needed: what their section states is checked then.
#[test]
fn a_large_pack_with_wrong_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let options = options().checkpoint_every(20_000);
    let (pack, _) = write_pack("x", &mixed(dir.path(), 18), &options).unwrap();
    let good = fs::read(&pack).unwrap();
    let number = |at: usize| u64::from_le_bytes(*good[at..].first_chunk().unwrap()) as usize;
    // The second sidecar, and its section of checkpoints.
    let file = number(128 + 32);
    let entry = (file + 128..).step_by(32).find(|at| good[*at] == 3).unwrap();
    let section = file + number(entry + 8);
    for (at, reason) in [
        (section + 3, "truncated"),
        (section + 16 + 16 + 3, "outside its section"),
        (entry, "no checkpoints"),
    ] {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        for (part, crc) in [(file + 128..entry + 32, file + 120), (file..file + 124, file + 124)] {
            let sum = tfseek::crc::crc32c(&bad[part]).to_le_bytes();
            bad[crc..crc + 4].copy_from_slice(&sum);
        }
        fs::write(&pack, &bad).unwrap();
        let ds = DatasetOptions::new().index(options.clone()).open(&pack).unwrap();
        let e = (100..200).find_map(|i| ds.read(i, &mut Vec::new()).err()).unwrap().to_string();
        assert!(e.contains(reason), "{e}");
    }
}

#[test]
fn a_changed_compressed_shard_of_a_pack() {
    let dir = tempfile::tempdir().unwrap();
    let paths = mixed(dir.path(), 3);
    let (pack, _) = write_pack("x", &paths, &options()).unwrap();
    let open = || DatasetOptions::new().open(&pack).unwrap();
    let stale = |i: u64| {
        let e = open().read(i, &mut Vec::new()).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Index(IndexError::StalePack { .. })), "{e}");
    };
    let (gzip, plain) = (fs::read(&paths[1]).unwrap(), equal(100, 2000));
    // A member was appended, the compression is another one, and the content is another one.
    fs::write(&paths[1], [&gzip[..], &gzip].concat()).unwrap();
    stale(100);
    fs::write(&paths[1], &plain).unwrap();
    stale(100);
    fs::write(&paths[0], &gzip).unwrap();
    stale(0);
    fs::write(&paths[1], &gzip).unwrap();
    assert!(open().read(100, &mut Vec::new()).is_ok());
    // A torn tail of the record stream.
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
    encoder.write_all(&plain[..plain.len() - 1]).unwrap();
    let torn = write(dir.path(), "torn", &encoder.finish().unwrap());
    let tolerant = options().tail(Tail::Tolerate);
    let (pack, _) = write_pack("t", std::slice::from_ref(&torn), &tolerant).unwrap();
    let e = DatasetOptions::new().open(&pack).unwrap().read(0, &mut Vec::new()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::TornTail)), "{e}");
    let ds = DatasetOptions::new().index(tolerant).open(&pack).unwrap();
    assert_eq!((ds.len(), payloads(&ds).unwrap().len()), (99, 99));
    // A pack is not written for a shard that cannot be read to its end.
    fs::write(&torn, &gzip[..gzip.len() - 3]).unwrap();
    let e = write_pack("t", &[torn], &options()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Compression(_)), "{e}");
}
