//! The bytes of column files: golden files, damaged and hostile files, and files of later versions.

use super::*;
use tfseek_testkit::alloc;
use tfseek_testkit::rng::Rng;

/// The example of the format page, section 8: the payloads {label: "b"}, "" and {label: "a"}. Padding is
/// omitted.
const GOLDEN: &[(usize, &str)] = &[
    (0, "89544652430d0a1a 0100000005000000 7002000000000000 0300000000000000"),
    (32, "5400000000000000 5400000000000000 15cd853dfe9c9717 e16f658fc524b50f"),
    (64, "e16f658fc524b50f 5400000000000000 1000000000000000 0000000000000000"),
    (96, "0000000000000000 0000000000000000 0000000000000000 41b13dc65dde2013"),
    (128, "1000000001000000 4001000000000000 0500000000000000 e654107500000000"),
    (160, "1100000001000200 8001000000000000 0300000000000000 043125c500000000"),
    (192, "1200000001000000 c001000000000000 0100000000000000 4d478c6700000000"),
    (224, "1300000001000000 0002000000000000 1a00000000000000 fc0c210400000000"),
    (256, "1400000000000400 4002000000000000 3000000000000000 bc4327d600000000"),
    (320, "6c6162656c000000"),
    (384, "0100000000000000"),
    (448, "0500000000000000"),
    (512, "0200000000000000 0100000000000000 0200000000000000 6162000000000000"),
    (576, "0200000000000000 0100000000000000 0200000000000000 0000000000000000"),
    (608, "0100000000000000 0200000000000000"),
];

#[test]
fn dictionaries_widen_at_256_and_65536() {
    for (d, param) in [(1, 2), (255, 2), (256, 2), (257, 3), (65_535, 3), (65_536, 3), (65_537, 4)] {
        // Values are not sorted and each occurs twice, so the codes differ from the order of arrival.
        let value = |i: u64| Some(Scalar::Str(format!("{:x}", (i * 7919 + 13) % d).into_bytes()));
        let values: Vec<Option<Scalar>> = (0..d).chain((0..d).rev()).map(value).collect();
        let ds = memory(&shard_of(&values));
        let column = ds.column("label", &Default::default()).unwrap();
        same(&column, &values);
        let file = bytes(&column.shards()[0]);
        assert_eq!(file[128 + 32 + 6], param, "{d} strings");
        if d <= 257 {
            check(&values);
        }
        let classes = column.classes().unwrap();
        assert_eq!(classes.len() as u64, d);
        assert!(classes.iter().all(|(value, list)| list.iter().all(|&i| column.get(i) == Some(*value))));
    }
}

#[test]
#[cfg_attr(windows, ignore = "its times are multiples of 100 ns")]
fn the_example_of_the_format_page() {
    let dir = tempfile::tempdir().unwrap();
    let label = |s: &str| ExampleBuilder::new().bytes("label", [s.as_bytes()]).encode().unwrap();
    let path = write(dir.path(), "three", &records(&[&label("b"), b"", &label("a")]));
    set_mtime(&path, 1_700_000_000_123_456_789);
    let ds = DatasetOptions::new().index(options().mode(IndexMode::Memory)).open(&path).unwrap();
    ds.columns(&["label"], &ColumnOptions { classes: true, beside: true, ..ColumnOptions::default() })
        .unwrap();
    let file = fs::read(dir.path().join(".tfseek/three.label.tfrc")).unwrap();
    let mut want = vec![0; file.len()];
    for (at, hex) in GOLDEN {
        let hex: String = hex.split_whitespace().collect();
        for (k, byte) in
            (0..hex.len()).step_by(2).map(|k| u8::from_str_radix(&hex[k..k + 2], 16).unwrap()).enumerate()
        {
            want[at + k] = byte;
        }
    }
    if file != want {
        for (k, line) in file.chunks(32).enumerate() {
            let hex: Vec<String> =
                line.chunks(8).map(|w| w.iter().map(|b| format!("{b:02x}")).collect()).collect();
            println!("{:4} {}", k * 32, hex.join(" "));
        }
        panic!("the file differs from the example");
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_detected() {
    let mut seeds = vec![strs(&["b", "a", "", "b"]), ints([3, -3, 3]), vec![None; 9]];
    seeds.push(vec![Some(Scalar::Float(0.5)), None]);
    for values in seeds {
        let ds = memory(&shard_of(&values));
        let good = from_twin(&ds, &values, true);
        let read =
            |bytes: &[u8]| FeatureColumn::from_bytes(Region::new(bytes.to_vec())).and_then(|c| c.verify());
        read(&good).unwrap();
        // Padding between the table and the sections, and between sections.
        let mut used = vec![false; good.len()];
        let count = good[12] as usize;
        used[..128 + 32 * count].fill(true);
        for k in 0..count {
            let field = |at: usize| {
                let at = 128 + 32 * k + at;
                u64::from_le_bytes(good[at..at + 8].try_into().unwrap()) as usize
            };
            used[field(8)..field(8) + field(16)].fill(true);
        }
        for bit in (0..good.len() * 8).filter(|bit| used[bit / 8]) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bad).is_err(), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(read(&good[..cut]).is_err());
        }
        assert!(read(&[&good[..], b"\0"].concat()).is_err());
    }
}

/// Versions and section types that this reader does not support.
#[test]
fn files_of_later_versions() {
    let values = ints([1, 2]);
    let ds = memory(&shard_of(&values));
    let good = from_twin(&ds, &values, true);
    let read = |mut bytes: Vec<u8>| {
        put_checksums(&mut bytes);
        FeatureColumn::from_bytes(Region::new(bytes)).and_then(|c| c.verify().map(|()| c))
    };
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        read(bytes)
    };
    assert!(changed(10, 9).is_ok(), "minor");
    assert!(changed(8, 2).is_err(), "major");
    // Changes the type of CLASSES, the last section, to an unknown one.
    let last = 128 + 32 * 3;
    assert!(!format!("{:?}", changed(last, 21).unwrap()).contains("classes"));
    let mut mandatory = good.clone();
    (mandatory[last], mandatory[last + 4]) = (21, 1);
    assert!(read(mandatory).unwrap_err().to_string().contains("mandatory"));
    assert!(changed(80, 0).is_err(), "payload checksums were not verified");
    assert!(changed(128 + 32 + 6, 5).is_err(), "an unknown type of values");
}

#[test]
fn mutated_files_never_panic_or_allocate_much() {
    let seeds: Vec<Vec<u8>> = [strs(&["b", "a", "", "b"]), ints([3, -3, 3, 0, 1 << 40]), vec![None; 9]]
        .iter()
        .map(|values| from_twin(&memory(&shard_of(values)), values, true))
        .collect();
    let count = std::env::var("TFSEEK_TEST_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let (mut rng, mut opened, mut sound) = (Rng::new(1), 0u64, 0u64);
    for k in 0..count {
        let mut file = seeds[k as usize % seeds.len()].clone();
        for _ in 0..=rng.below(3) {
            let range = if rng.chance(128) { file.len().min(352) } else { file.len() };
            let at = rng.below(range.max(1));
            let edge = rng.pick(&[0, 1, u64::MAX, 1 << 31, 1 << 63, 0xffff_ffff, 51, 1024]);
            match rng.below(8) {
                0 => file.truncate(at),
                1..=3 if at + 8 <= file.len() => file[at..at + 8].copy_from_slice(&edge.to_le_bytes()),
                4 if at + 4 <= file.len() => file[at..at + 4].copy_from_slice(&(edge as u32).to_le_bytes()),
                _ if at < file.len() => file[at] ^= 1 << rng.below(8),
                _ => {}
            }
        }
        if k % 8 != 0 {
            put_checksums(&mut file);
        }
        let len = file.len() as u64;
        let ((o, s), asked) = alloc::during(|| open_and_read(file));
        assert!(asked.bytes <= 64 * len + 8192, "{asked:?} for {len} bytes");
        (opened, sound) = (opened + u64::from(o), sound + u64::from(s));
    }
    assert!(opened > count / 20 && sound > count / 50, "{opened} and {sound} of {count}");
}

fn open_and_read(file: Vec<u8>) -> (bool, bool) {
    let Ok(column) = FeatureColumn::from_bytes(Region::from(file)) else { return (false, false) };
    let n = column.len();
    let sound = column.verify().is_ok();
    for i in [0, 1, n / 2, n.saturating_sub(1), n, u64::MAX] {
        if let Ok(Some(value)) = column.get(i) {
            assert!(i < n && value.kind() == column.kind());
        }
    }
    (true, sound)
}
