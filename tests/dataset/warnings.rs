//! Warnings about what a dataset or a stream leaves out: the same at each look, with all ranges.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tfseek::index::{IndexOptions, build_beside, write_pack};
use tfseek::stream::StreamOptions;
use tfseek::{Damage, DatasetOptions, IndexMode, Tail, Warning};
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards::{equal, options, records, set_mtime, sidecar, write};

fn with(index: &IndexOptions) -> DatasetOptions {
    DatasetOptions::new().index(index.clone())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A stream of records that do not compress well.
fn noise(n: usize) -> Vec<u8> {
    let mut rng = Rng::new(4);
    let payloads: Vec<Vec<u8>> = (0..n).map(|_| rng.bytes(80)).collect();
    records(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Path, records, offset, bytes and decompressed bytes of the only warning, about a torn tail.
#[track_caller]
fn torn(warnings: &[Warning]) -> (PathBuf, [u64; 4]) {
    match warnings {
        [Warning::TornTail { path, records, offset, bytes, inflated_bytes, .. }] => {
            (path.clone(), [*records, *offset, *bytes, *inflated_bytes])
        }
        other => panic!("{other:?}"),
    }
}

/// Returns what a stream and a dataset tell: when the index is built, when it is found, and from a pack.
fn looks(dir: &Path, path: &Path) -> Vec<(PathBuf, [u64; 4])> {
    let mut stream = StreamOptions { tail: Tail::Tolerate, ..StreamOptions::default() }.open(path).unwrap();
    let mut read = 0;
    while stream.next().unwrap().is_some() {
        assert_eq!(stream.warnings(), []);
        read += 1;
    }
    assert_eq!(stream.records_read(), read);
    let mut found = vec![torn(stream.warnings())];
    let tolerant = options().index_dir(dir.join("i")).tail(Tail::Tolerate);
    for mode in [IndexMode::Memory, IndexMode::Auto, IndexMode::Require] {
        let ds = with(&tolerant.clone().mode(mode)).open(path).unwrap();
        assert_eq!(ds.len(), read);
        found.push(torn(ds.warnings()));
    }
    let paths = [path.to_path_buf()];
    found.push(torn(&build_beside(&paths, &tolerant).unwrap().remove(0).unwrap().warnings));
    let (pack, built) = write_pack("all", &paths, &tolerant).unwrap();
    found.push(torn(&built.warnings));
    let ds = with(&tolerant.clone().mode(IndexMode::Require)).open(&pack).unwrap();
    found.push(torn(ds.warnings()));
    found
}

#[test]
fn a_tolerated_end_is_told_by_each_look() {
    let whole = equal(100, 9);
    let packed = gzip(&noise(100));
    let size = packed.len() as u64;
    let cases = [
        ("cut", whole[..whole.len() - 7].to_vec(), [99, 99 * 25, 18, 0]),
        ("header", whole[..99 * 25 + 5].to_vec(), [99, 99 * 25, 5, 0]),
        ("no trailer", packed[..packed.len() - 8].to_vec(), [100, size - 8, 0, 0]),
        ("half a trailer", packed[..packed.len() - 3].to_vec(), [100, size - 8, 5, 0]),
        ("other bytes", [&packed[..], b"garbage"].concat(), [100, size, 7, 0]),
    ];
    let cut = noise(100);
    let cut = gzip(&cut[..cut.len() - 7]);
    let in_record = ("cut record", cut.clone(), [99, cut.len() as u64, 0, 89]);
    for (name, file, want) in cases.into_iter().chain([in_record]) {
        let dir = tempfile::tempdir().unwrap();
        let path = write(dir.path(), "x", &file);
        for found in looks(dir.path(), &path) {
            assert_eq!(found, (path.clone(), want), "{name}");
        }
    }
}

#[test]
fn what_cannot_be_decompressed_is_told_by_each_look() {
    let dir = tempfile::tempdir().unwrap();
    let parts = noise(400);
    let members: Vec<Vec<u8>> = parts.chunks(9600).map(gzip).collect();
    let (mut file, size) = (members.concat(), members[1].len() as u64);
    let third = members[0].len() + 3000;
    // An invalid block begins the second member, which is lost.
    file[members[0].len() + 10] = 0xff;
    for (name, file) in [("damaged", file.clone()), ("cut", file[..third].to_vec())] {
        let path = write(dir.path(), name, &file);
        set_mtime(&path, 5);
        let skip = options().index_dir(dir.path().join("i")).damage(Damage::Skip);
        let first = with(&skip).open(&path).unwrap();
        let [Warning::DamageSkipped { gaps, bytes, records, .. }] = first.warnings() else {
            panic!("{:?}", first.warnings());
        };
        assert!(gaps.iter().any(|gap| gap.compressed), "{gaps:?}");
        let sum: u64 = gaps.iter().map(|gap| gap.end - gap.start).sum();
        assert_eq!((*bytes, *records), (sum, first.len()));
        assert!(
            gaps.iter().all(|gap| gap.records <= first.len()) && gaps.is_sorted_by_key(|gap| gap.records)
        );
        if name == "damaged" {
            let lost: u64 = gaps.iter().filter(|gap| gap.compressed).map(|gap| gap.end - gap.start).sum();
            assert!(lost > size / 2 && lost <= size, "{lost} of {size}");
        }
        for mode in [IndexMode::Auto, IndexMode::Require] {
            let again = with(&skip.clone().mode(mode)).open(&path).unwrap();
            assert_eq!(again.warnings(), first.warnings(), "{name}");
        }
        assert_eq!(
            sidecar(first.index(0).unwrap()),
            sidecar(with(&skip.clone().mode(IndexMode::Memory)).open(&path).unwrap().index(0).unwrap())
        );
    }
}

/// Shards with checkpoints that are more than 16 MiB apart, and others: a list of them and their pack, mapped
/// or not, read as a whole or in parts.
#[test]
#[allow(unsafe_code)]
fn a_pack_warns_of_long_blocks_as_its_shards_do() {
    let dir = tempfile::tempdir().unwrap();
    let payload = vec![7; 1 << 20];
    let stream = |n: usize| records(&vec![payload.as_slice(); n]);
    let mut paths = vec![write(dir.path(), "plain", &stream(3))];
    for (name, n) in [("short.gz", 3), ("long.gz", 20), ("longer.gz", 40), ("tiny.gz", 0)] {
        paths.push(write(dir.path(), name, &gzip(&stream(n))));
    }
    let index = options().index_dir(dir.path().join("i")).checkpoint_every(1 << 30);
    let of_list = with(&index).open(&paths).unwrap().warnings().to_vec();
    let [Warning::LongBlocks { path, shards: 2, bytes }] = &of_list[..] else { panic!("{of_list:?}") };
    assert_eq!((path, *bytes), (&paths[2], stream(40).len() as u64));
    let built = build_beside(&paths, &index).unwrap().into_iter().flat_map(|built| built.unwrap().warnings);
    assert_eq!(built.collect::<Vec<_>>(), of_list);
    // With many records the pack is longer than one that is read into memory.
    for records in [1, 600_000] {
        fs::write(&paths[0], equal(records, 0)).unwrap();
        let (pack, _) = write_pack(&format!("p{records}"), &paths, &index).unwrap();
        assert_eq!(with(&index).open(&pack).unwrap().warnings(), of_list);
        // SAFETY: the files do not change while they are open.
        let mapped = unsafe { with(&index).open_with_maps(&pack) }.unwrap();
        assert_eq!(mapped.warnings(), of_list);
    }
}

#[test]
fn an_index_that_does_not_tell_is_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let packed = gzip(&noise(100));
    let path = write(dir.path(), "x", &packed[..packed.len() - 3]);
    let tolerant = options().index_dir(dir.path().join("i")).tail(Tail::Tolerate);
    let ds = with(&tolerant).open(&path).unwrap();
    let file = ds.index(0).unwrap().file().unwrap().to_path_buf();
    let mut bytes = fs::read(&file).unwrap();
    // The type of the last section becomes an unknown one, which is not mandatory, and the checksums follow.
    let last = 128 + 32 * (u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize - 1);
    assert_eq!(bytes[last], 5);
    bytes[last] = 77;
    let table = crc32c::crc32c(&bytes[128..last + 32]);
    bytes[120..124].copy_from_slice(&table.to_le_bytes());
    let head = crc32c::crc32c(&bytes[..124]);
    bytes[124..128].copy_from_slice(&head.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    let again = with(&tolerant).open(&path).unwrap();
    assert_eq!(again.warnings(), ds.warnings());
    assert_eq!(fs::read(&file).unwrap(), sidecar(ds.index(0).unwrap()));
}
