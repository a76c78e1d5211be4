//! The windows of checkpoints stay in the index file until they are needed.

use std::path::Path;
use tfseek::index::IndexOptions;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, DatasetOptions, IndexMode};
use tfseek_testkit::alloc;
use tfseek_testkit::rng::Rng;

/// A gzip shard of 10 MB that does not compress, with a window of 32 KiB for each 16 KiB: its sidecar has
/// about 20 MB.
#[test]
fn an_index_file_of_windows_is_not_read_into_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord.gz");
    let mut writer =
        WriterOptions { compression: Compression::Gzip, ..WriterOptions::default() }.create(&path).unwrap();
    let mut rng = Rng::new(1);
    let payloads: Vec<Vec<u8>> =
        (0..10_000).map(|_| (0..1000).map(|_| rng.below(256) as u8).collect()).collect();
    payloads.iter().for_each(|payload| writer.write(payload).unwrap());
    writer.close().unwrap();
    let index = IndexOptions::new().index_dir(dir.path()).checkpoint_every(16 << 10);
    drop(DatasetOptions::new().index(index.clone()).open(&path).unwrap());
    let sidecar = dir.path().join("a.tfrecord.gz.tfri");
    let size = std::fs::metadata(&sidecar).unwrap().len();
    assert!(size > 16 << 20, "{size}");

    let required = DatasetOptions::new().index(index.clone().mode(IndexMode::Require));
    let kept = sidecar.with_extension("kept");
    let mut buf = Vec::new();
    let ((), held) = alloc::most_held(usize::MAX, || {
        let dataset = required.open(&path).unwrap();
        // The file stays open.
        dataset.read(0, &mut buf).unwrap();
        std::fs::rename(&sidecar, &kept).unwrap();
        for i in (0..dataset.len()).step_by(997) {
            assert_eq!(dataset.read(i, &mut buf).unwrap().payload(), payloads[i as usize]);
        }
    });
    assert!(held < 1 << 20, "{held} bytes for a sidecar of {size}");
    std::fs::rename(&kept, &sidecar).unwrap();

    // A copy has all windows.
    let opened = tfseek::index::open_shards(&[path], &index.mode(IndexMode::Require)).unwrap();
    opened.indexes[0].verify().unwrap();
    let mut copy = Vec::new();
    opened.indexes[0].write_to(&mut copy).unwrap();
    assert!(copy == std::fs::read(&sidecar).unwrap());
    // A window that has rotted is an error of its checkpoint.
    let mut bytes = copy;
    let at = bytes.len() - 5;
    bytes[at] ^= 1;
    std::fs::write(&sidecar, bytes).unwrap();
    let dataset = required.open(dir.path().join("a.tfrecord.gz")).unwrap();
    let e = dataset.read(dataset.len() - 1, &mut buf).unwrap_err();
    assert!(e.to_string().contains("the checksum of a checkpoint does not match"), "{e}");
    assert_eq!(dataset.read(0, &mut buf).unwrap().payload(), payloads[0]);
}

/// Writes a gzip file of records of 64 KiB of zeros, each in a deflate block of its own, with its number in
/// front. It inflates to about 750 times its size.
fn bomb(path: &Path, records: std::ops::Range<u64>) {
    let mut stream =
        WriterOptions { compression: Compression::Gzip, ..WriterOptions::default() }.create(path).unwrap();
    let mut payload = vec![0; 64 << 10];
    for i in records {
        payload[..8].copy_from_slice(&i.to_le_bytes());
        stream.write(&payload).unwrap();
        stream.flush().unwrap();
    }
    stream.close().unwrap();
}

/// Without a limit, there would be a window of 32 KiB for each record: 100 MB for 200 MB of zeros.
#[test]
fn the_windows_of_a_file_that_inflates_to_a_thousand_times_its_size_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord.gz");
    let index = IndexOptions::new().index_dir(dir.path()).checkpoint_every(64 << 10).threads(1);
    let sidecar = dir.path().join("a.tfrecord.gz.tfri");
    for (records, mib) in [(1600, 100), (3200, 200)] {
        bomb(&path, 0..records);
        let options = DatasetOptions::new().index(index.clone().mode(IndexMode::Rebuild));
        let (dataset, held) = alloc::most_held(usize::MAX, || options.open(&path).unwrap());
        let (file, size) =
            (std::fs::metadata(&path).unwrap().len(), std::fs::metadata(&sidecar).unwrap().len());
        println!("{mib} MiB of zeros in {file} bytes: a sidecar of {size} bytes, {held} bytes of memory");
        assert!(file < mib << 11, "{file}");
        // 16 MiB, and 16 bytes for each byte of the file, because the spacing is a sixteenth of the default.
        assert!(size < (16 << 20) + 16 * file + (256 << 10), "{size} for a file of {file}");
        assert!(held > 1 << 20 && held < 2 * size + (4 << 20), "{held} for a sidecar of {size}");
        let mut buf = Vec::new();
        for i in (0..records).step_by(97).chain([records - 1]) {
            let payload = dataset.read(i, &mut buf).unwrap().payload();
            assert!(payload[..8] == i.to_le_bytes() && payload[8..].iter().all(|&byte| byte == 0));
        }
    }
    // An index that is extended has the bytes of a new one.
    let more = dir.path().join("more.gz");
    bomb(&more, 0..400);
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    std::io::copy(&mut std::fs::File::open(more).unwrap(), &mut file).unwrap();
    let mut found = Vec::new();
    for mode in [IndexMode::Auto, IndexMode::Rebuild] {
        assert_eq!(DatasetOptions::new().index(index.clone().mode(mode)).open(&path).unwrap().len(), 3600);
        found.push(std::fs::read(&sidecar).unwrap());
    }
    assert!(found[0] == found[1]);
}

/// Twelve datasets of 16 MiB each, all open: their decompressed bytes are in one cache of 128 MiB.
#[test]
fn datasets_of_a_process_share_one_cache() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(2);
    let payloads: Vec<Vec<u8>> =
        (0..64).map(|_| (0..256 << 10).map(|_| rng.below(16) as u8).collect()).collect();
    let open = |k: usize| {
        let path = dir.path().join(format!("{k}.gz"));
        let mut writer =
            WriterOptions { compression: Compression::Gzip, level: 1, ..WriterOptions::default() }
                .create(&path)
                .unwrap();
        payloads.iter().for_each(|payload| writer.write(payload).unwrap());
        writer.close().unwrap();
        DatasetOptions::new().index(IndexOptions::from(IndexMode::Memory)).open(&path).unwrap()
    };
    let datasets: Vec<_> = (0..12).map(open).collect();
    let mut buf = Vec::with_capacity(1 << 20);
    let ((), held) = alloc::most_held(usize::MAX, || {
        for dataset in &datasets {
            // The second access to a segment keeps all of it.
            for i in (0..dataset.len()).chain(0..dataset.len()) {
                assert!(dataset.read(i, &mut buf).unwrap().payload() == payloads[i as usize]);
            }
        }
    });
    println!("twelve datasets of 16 MiB: {held} bytes of memory");
    assert!(held > 64 << 20 && held < 140 << 20, "{held}");
}
