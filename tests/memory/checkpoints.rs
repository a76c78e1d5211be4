//! The windows of checkpoints stay in the index file until they are needed.

use tfseek::index::IndexOptions;
use tfseek::writer::WriterOptions;
use tfseek::{Compression, DatasetOptions, IndexMode};
use tfseek_testkit::alloc;
use tfseek_testkit::rng::Rng;

/// A gzip shard of 10 MB that does not compress, with a window of 32 KiB for each 16 KiB: its sidecar has about 20 MB.
#[test]
fn an_index_file_of_windows_is_not_read_into_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tfrecord.gz");
    let mut writer = WriterOptions::new().compression(Compression::Gzip).create(&path).unwrap();
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
