//! Indexes of damaged shards: `Damage::Skip`.

use std::fs;
use std::path::PathBuf;
use tfseek::error::{IndexError, Remedy};
use tfseek::frame::put_record;
use tfseek::index::*;
use tfseek::io::{Region, SalvageItem, SalvageReader};
use tfseek::{Damage, DatasetOptions, ErrorKind, IndexMode, Tail, Warning};
use tfseek_testkit::hex::unhex;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shards::*;

/// The second example of a sidecar on the format page, section 8: payloads "", "a" and "bb", and the payload
/// "a" is damaged.
const GOLDEN: &str = "
    89544652490d0a1a 0100000002000000 1801000000000000 0200000000000000 3300000000000000 3300000000000000 15cd853dfe9c9717 3e2bfb5002fb37c7
    3e2bfb5002fb37c7 3300000000000000 1800000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 aae0d4543e01d198
    0100000001000400 c000000000000000 1c00000000000000 0000000000000000 0200000001000400 0001000000000000 1800000000000000 0000000000000000
    0000000000000000 0f629aa400000000 0000000021000000 3300000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000
    0000000000000000 6bb917fd00000000 0000000002000000";

fn golden() -> Vec<u8> {
    unhex(&GOLDEN.split_whitespace().collect::<String>())
}

fn skip() -> IndexOptions {
    options().damage(Damage::Skip)
}

fn index_of(bytes: &[u8], options: &IndexOptions) -> tfseek::Result<Index> {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x", bytes);
    Ok(open(&path, &options.clone().mode(IndexMode::Memory))?.indexes.remove(0))
}

/// Pairs of an offset and a length, or of two offsets.
type Ranges = Vec<(u64, u64)>;

/// The spans and the gaps of a file in memory, by the parser that `tfseek salvage` uses.
fn twin(file: &[u8]) -> (Ranges, Ranges) {
    let mut reader = SalvageReader::new(&file, (1 << 31) - 1).unwrap();
    let (mut spans, mut gaps) = (Ranges::new(), Ranges::new());
    while let Some(item) = reader.next().unwrap() {
        match item {
            SalvageItem::Record { offset, bytes, .. } => spans.push((offset, bytes.len() as u64 - 16)),
            SalvageItem::Damage { offset, bytes, .. } => {
                match gaps.last_mut().filter(|gap| gap.1 == offset) {
                    Some(gap) => gap.1 += bytes.len() as u64,
                    None => gaps.push((offset, offset + bytes.len() as u64)),
                }
            }
            other => panic!("{other:?}"),
        }
    }
    (spans, gaps)
}

fn gaps(index: &Index) -> Ranges {
    index.gaps().map(|gap| gap.map(|gap| (gap.start, gap.end)).unwrap()).collect()
}

/// Returns a file of `n` records, some of which contain TFRecords.
fn some_records(n: usize, rng: &mut Rng) -> Vec<u8> {
    let mut file = Vec::new();
    for i in 0..n {
        let len = (rng.u64() % 90) as usize;
        let payload = match rng.u64() % 4 {
            0 => records(&[&vec![i as u8; len], b"inner", &[3; 20]]),
            _ => (0..len).map(|_| rng.u64() as u8).collect(),
        };
        put_record(&mut file, &payload).unwrap();
    }
    file
}

#[test]
#[cfg_attr(windows, ignore = "its times are multiples of 100 ns")]
fn the_example_of_the_format_page() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = records(&[b"", b"a", b"bb"]);
    file[28] ^= 1;
    let path = write(dir.path(), "three", &file);
    set_mtime(&path, 1_700_000_000_123_456_789);
    let built = built_beside(std::slice::from_ref(&path), &skip()).unwrap();
    assert_eq!(built.warnings.len(), 1);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(hex(&fs::read(dir.path().join(".tfseek/three.tfri")).unwrap()), hex(&golden()));
    let index = Index::from_sidecar(Region::new(golden())).unwrap();
    assert_eq!((spans(&index), gaps(&index)), (vec![(0, 0), (33, 2)], vec![(16, 33)]));
    assert_eq!((index.has_gaps(), is_checked(&index), torn_bytes(&index)), (true, true, 0));
    assert_eq!(sidecar(&index), golden());
    // Without the flag *checked* it serves a caller that skips damage and does not ask for more.
    let mut bytes = golden();
    bytes[80] ^= 1 << 4;
    let crc = tfseek::crc::crc32c(&bytes[..124]);
    bytes[124..128].copy_from_slice(&crc.to_le_bytes());
    write(&dir.path().join(".tfseek"), "three.tfri", &bytes);
    let required = skip().mode(IndexMode::Require);
    assert_eq!(open(&path, &required).unwrap().indexes[0].len(), 2);
    let e = open(&path, &required.check_payloads(true)).unwrap_err();
    assert!(e.to_string().contains("payloads were not verified"), "{e}");
}

#[test]
fn every_flipped_bit_is_detected() {
    for bit in 0..golden().len() * 8 {
        let byte = bit / 8;
        // Padding, and the zeros in both block tables.
        if (220..256).contains(&byte) || (204..208).contains(&byte) || (268..272).contains(&byte) {
            continue;
        }
        let mut bad = golden();
        bad[byte] ^= 1 << (bit % 8);
        let found = Index::from_sidecar(Region::new(bad)).and_then(|index| {
            assert_eq!(index.gaps().all(|gap| gap.is_ok()), index.verify().is_ok(), "bit {bit}");
            (0..2).try_for_each(|i| index.locate(i).map(drop))
        });
        assert!(found.is_err(), "bit {bit}");
    }
    for cut in 0..golden().len() {
        assert!(Index::from_sidecar(Region::new(golden()[..cut].to_vec())).is_err());
    }
}

#[test]
fn a_sound_shard_has_the_bytes_of_a_checked_scan() {
    let mut rng = Rng::new(3);
    let dir = tempfile::tempdir().unwrap();
    for n in [0, 1, 7, 1500] {
        let path = write(dir.path(), "x", &some_records(n, &mut rng));
        let bytes = |options: IndexOptions| {
            sidecar(&open(&path, &options.mode(IndexMode::Memory)).unwrap().indexes[0])
        };
        assert_eq!(bytes(skip()), bytes(options().check_payloads(true)));
        // A torn tail is not a gap in the file either.
        let torn = fs::read(&path).unwrap();
        fs::write(&path, &torn[..torn.len().saturating_sub(1)]).unwrap();
        assert_eq!(bytes(skip()), bytes(options().check_payloads(true).tail(Tail::Tolerate)));
    }
}

#[test]
fn records_are_those_that_salvage_finds() {
    let (mut rng, dir) = (Rng::new(8), tempfile::tempdir().unwrap());
    for case in 0..120 {
        let mut file = some_records(40, &mut rng);
        for _ in 0..1 + case % 5 {
            let bit = (rng.u64() % (8 * file.len() as u64)) as usize;
            file[bit / 8] ^= 1 << (bit % 8);
        }
        if case % 7 == 0 {
            file.truncate(file.len() - (rng.u64() % 60) as usize);
        }
        let path = write(dir.path(), "x", &file);
        let rest = dir.path().join(format!("rest-{case}"));
        let options = skip().index_dir(dir.path().join("i")).rest(&rest);
        let built = open(&path, &options).unwrap();
        let found = open(&path, &options.clone().mode(IndexMode::Require)).unwrap();
        let (index, want) = (&built.indexes[0], twin(&file));
        assert_eq!((spans(index), gaps(index)), want, "case {case}");
        assert_eq!(sidecar(index), sidecar(&found.indexes[0]));
        index.verify().unwrap();
        assert_eq!(built.warnings, found.warnings);
        let bytes: u64 = want.1.iter().map(|gap| gap.1 - gap.0).sum();
        let [Warning::DamageSkipped { path: of, gaps: told, bytes: sum, records }] = &built.warnings[..]
        else {
            panic!("{:?}", built.warnings);
        };
        assert_eq!((of, *sum, *records), (&path, bytes, want.0.len() as u64));
        let before = |start| want.0.iter().filter(|span| span.0 < start).count() as u64;
        let told: Vec<_> = told.iter().map(|gap| (gap.start, gap.end, gap.records)).collect();
        let all: Vec<_> = want.1.iter().map(|gap| (gap.0, gap.1, before(gap.0))).collect();
        assert_eq!(told, all, "case {case}");
        let left: Vec<u8> =
            want.1.iter().flat_map(|gap| &file[gap.0 as usize..gap.1 as usize]).copied().collect();
        assert_eq!(fs::read(rest.join("x.rest")).unwrap(), left);
        // Maps and memory.
        let regions = DatasetOptions::new().index(skip()).open_regions([Region::new(file.clone())]).unwrap();
        assert_eq!(spans(regions.dataset().index(0).unwrap()), want.0);
        assert_eq!(regions.dataset().warnings().len(), 1);
    }
}

#[test]
fn an_index_is_used_only_for_the_damage_it_allows() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = equal(30, 9);
    let path = write(dir.path(), "x", &file);
    let at = |options: IndexOptions| options.index_dir(dir.path().join("i"));
    // Without verified payloads, damage could be hidden.
    assert_eq!(scanned(&path, &at(options())).1, file.len() as u64);
    let e = open(&path, &at(skip()).mode(IndexMode::Require)).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })), "{e}");
    assert!(e.to_string().contains("payloads were not verified"), "{e}");
    assert_eq!(scanned(&path, &at(skip())).1, file.len() as u64);
    // The new one serves both.
    assert_eq!((scanned(&path, &at(skip())).1, scanned(&path, &at(options())).1), (0, 0));
    file[25 * 3 + 14] ^= 8;
    fs::write(&path, &file).unwrap();
    set_mtime(&path, 500);
    let (index, bytes) = scanned(&path, &at(skip()));
    assert_eq!((index.len(), index.has_gaps(), bytes), (29, true, file.len() as u64));
    assert_eq!(scanned(&path, &at(skip().check_payloads(true))).1, 0);
    // With gaps, it counts as not found, and a scan finds the damage.
    let e = open(&path, &at(options()).mode(IndexMode::Require)).unwrap_err();
    assert!(e.to_string().contains("damaged records were skipped"), "{e}");
    let e = open(&path, &at(options()).check_payloads(true)).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptData { .. }), "{e}");
    assert_eq!((e.location().record, e.location().offset), (Some(3), Some(75)));
    // Another time: an index with gaps is built again.
    set_mtime(&path, 600);
    assert_eq!(scanned(&path, &at(skip())).1, file.len() as u64);
    // An open dataset does not take another file of the same size for the damaged one.
    let dataset = DatasetOptions::new().index(at(skip())).open(&path).unwrap();
    write(dir.path(), "x", &equal(25, 14));
    set_mtime(&path, 700);
    let e = dataset.read(0, &mut Vec::new()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::Stale { .. })), "{e}");
}

#[test]
fn a_growing_shard_is_extended_until_it_has_gaps() {
    let (mut rng, dir) = (Rng::new(9), tempfile::tempdir().unwrap());
    let at = || skip().index_dir(dir.path().join("i"));
    let (file, path) = (some_records(300, &mut rng), dir.path().join("x"));
    let cut = file.len() / 2;
    fs::write(&path, &file[..cut]).unwrap();
    let (index, _) = scanned(&path, &at());
    let (end, torn) = (index.stream_end(), torn_bytes(&index));
    assert_eq!((end + torn, index.has_gaps()), (cut as u64, false));
    let mut bad = file.clone();
    let hit = cut + (file.len() - cut) / 2;
    bad[hit] ^= 1;
    for file in [&file, &bad] {
        fs::write(&path, &file[..cut]).unwrap();
        scanned(&path, &at().mode(IndexMode::Rebuild));
        fs::write(&path, file).unwrap();
        let (index, bytes) = scanned(&path, &at());
        assert_eq!(bytes, file.len() as u64 - end, "only the new part is scanned");
        assert_eq!((spans(&index), gaps(&index)), twin(file));
        assert_eq!(sidecar(&index), sidecar(&scanned(&path, &at().mode(IndexMode::Memory)).0));
    }
    bad.extend(records(&[b"more"]));
    fs::write(&path, &bad).unwrap();
    assert_eq!(scanned(&path, &at()).1, bad.len() as u64);
}

#[test]
fn torn_tails_and_files_without_records() {
    let file = equal(3, 5);
    let index = index_of(&file[..60], &skip()).unwrap();
    assert_eq!((index.len(), index.has_gaps(), gaps(&index)), (2, false, vec![(42, 60)]));
    // The last record is whole and damaged: an index without the flag would hide that under `Tail::Tolerate`.
    let mut bad = file.clone();
    bad[60] ^= 1;
    let index = index_of(&bad, &skip()).unwrap();
    assert_eq!((index.len(), index.has_gaps(), gaps(&index)), (2, true, vec![(42, 63)]));
    assert_eq!(torn_bytes(&index), 21);
    // Without a sound record there is nothing that could be left out.
    let mut one = equal(1, 5);
    one[14] ^= 1;
    for damaged in [one.clone(), vec![7; 3000]] {
        let e = index_of(&damaged, &skip()).unwrap_err();
        assert_eq!(e.kind().to_string(), "expected a TFRecord file, found no sound record");
        assert_eq!(e.kind().remedy(), Some(Remedy::NoRecords));
        let e = DatasetOptions::new().index(skip()).open_regions([Region::new(damaged)]).unwrap_err();
        assert_eq!(e.kind().to_string(), "expected a TFRecord file, found no sound record");
    }
    // With one, a file that does not begin like one of records is still a damaged one.
    let e = index_of(&[&[0x99; 20], &file[..]].concat(), &options()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptLength { .. }), "{e}");
    // Of large records only the headers are read.
    let large = equal(9, 99_984);
    let mut bad = large.clone();
    bad[600_000] ^= 1;
    let e = index_of(&bad, &options()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptLength { .. }), "{e}");
    assert_eq!((e.location().record, e.location().offset), (Some(6), Some(600_000)));
    let e = index_of(&large[..699_999], &options()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Truncated { need: 100_000, have: 99_999 }), "{e}");
    let e = index_of(&one, &options().check_payloads(true)).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptData { .. }), "{e}");
    let e = index_of(b"{\"a\": [1, 2, 3], \"b\": 7}", &skip()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::NotTfRecord { .. }), "{e}");
    let index = index_of(&file[..15], &skip()).unwrap();
    assert_eq!((index.len(), gaps(&index)), (0, vec![(0, 15)]));
}

/// A record of 60 GiB in a sparse file counts as damaged and is not read into memory.
#[test]
fn records_beyond_the_limit_are_damage() {
    let mut file = records(&[b"first"]);
    tfseek_testkit::twin::put_header(&mut file, 1 << 31).unwrap();
    file.extend(vec![9; 500]);
    file.extend(records(&[b"last"]));
    let index = index_of(&file, &skip()).unwrap();
    assert_eq!(spans(&index), [(0, 5), (533, 4)]);
}

#[test]
fn packs_and_names() {
    let dir = tempfile::tempdir().unwrap();
    let damaged = |name: &str| -> PathBuf {
        let mut file = equal(20, 4);
        file[20 * 7 + 13] ^= 1;
        write(dir.path(), name, &file)
    };
    let paths = [damaged("a"), write(dir.path(), "b", &equal(5, 4))];
    let rest = dir.path().join("rest");
    let (pack, built) = write_pack("all", &paths, &skip().rest(&rest)).unwrap();
    assert_eq!((built.warnings.len(), names(&rest)), (1, vec!["a.rest".to_owned()]));
    fs::remove_dir_all(&rest).unwrap();
    let open = |damage| {
        DatasetOptions::new().index(options().damage(damage).mode(IndexMode::Require).rest(&rest)).open(&pack)
    };
    let dataset = open(Damage::Skip).unwrap();
    assert_eq!((dataset.len(), dataset.warnings().len(), names(&rest)), (24, 1, vec!["a.rest".to_owned()]));
    // A file, or a folder, that has the name of the damaged bytes is not replaced.
    let taken = rest.join("a.rest");
    for is_dir in [false, true] {
        if is_dir { fs::create_dir(&taken) } else { fs::write(&taken, [9; 20]) }.unwrap();
        let e = open(Damage::Skip).unwrap_err();
        assert!(e.to_string().contains("another file has the name of the damaged bytes"), "{e}");
        assert_eq!(taken.is_dir(), is_dir);
        if is_dir { fs::remove_dir(&taken) } else { fs::remove_file(&taken) }.unwrap();
    }
    let raised = open(Damage::Raise).unwrap();
    let e = raised.read(0, &mut Vec::new()).unwrap_err();
    assert!(e.to_string().contains("damaged records were skipped"), "{e}");
    fs::create_dir(dir.path().join("c")).unwrap();
    let same: Vec<PathBuf> = vec![damaged("a"), damaged("c/a")];
    let e = open_shards(&same, &skip().rest(&rest)).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Index(IndexError::NameClash { .. })), "{e}");
}

/// A shard whose damage is gone keeps no gaps and no torn tail, although its size and time are those before.
#[test]
#[cfg(unix)]
fn a_repaired_shard_of_equal_size_and_time_is_indexed_again() {
    let sound = equal(200, 2000);
    let mut damaged = sound.clone();
    damaged[2016 * 100 + 500] ^= 1;
    // The length and its checksum are those of a longer record, which is not written yet.
    let mut torn = sound.clone();
    let mut longer = Vec::new();
    put_record(&mut longer, &[199; 9000]).unwrap();
    torn[2016 * 199..].copy_from_slice(&longer[..2016]);
    for (before, options) in [(damaged, skip()), (torn, options().tail(Tail::Tolerate))] {
        let dir = tempfile::tempdir().unwrap();
        let at = || options.clone().index_dir(dir.path().join("i"));
        let path = write(dir.path(), "x", &before);
        set_mtime(&path, 500);
        assert_eq!(open(&path, &at()).unwrap().indexes[0].len(), 199);
        // The index is not of the clock tick of the repair.
        set_mtime(&dir.path().join("i/x.tfri"), 600);
        fs::write(&path, &sound).unwrap();
        set_mtime(&path, 500);
        let found = open(&path, &at()).unwrap();
        assert_eq!((found.indexes[0].len(), found.warnings.len()), (200, 0));
        assert_eq!(scanned(&path, &at()).1, 0);
    }
}
