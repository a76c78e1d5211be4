//! Index, pack and column files of all versions, in `tests/data/formats/`. `TFSEEK_WRITE_FORMATS=1` writes those
//! of this version.

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;
use tfseek::column::{ColumnOptions, FeatureColumn, Value};
use tfseek::index::{IndexOptions, write_pack};
use tfseek::io::Region;
use tfseek::{Damage, Dataset, DatasetOptions, ExampleBuilder, IndexMode, Tail};
use tfseek_testkit::formats;
use tfseek_testkit::shards::{options, records, set_mtime};

/// The time of all shards. It is a multiple of 100 ns, as times on Windows are.
const TIME: u64 = 1_700_000_000_123_456_700;

/// The label, the weight, the name and the number of tags of each record.
type Row = (Option<i64>, Option<f32>, Option<&'static str>, usize);
const ROWS: [Row; 5] = [
    (Some(3), Some(0.5), Some("red"), 0),
    (Some(-1), None, Some(""), 3),
    (None, Some(-0.0), None, 1),
    (Some(1 << 40), Some(f32::INFINITY), Some("red"), 200),
    (Some(3), Some(1e-40), Some("blue"), 2),
];

/// The shards: a sound one, one whose third record has a flipped bit, and gzip members of three and of two
/// records, of which the last one lacks the end of its trailer.
const SHARDS: [&str; 3] = ["plain.tfrecord", "damaged.tfrecord", "cut.tfrecord.gz"];

fn payloads() -> Vec<Vec<u8>> {
    let payload = |(label, weight, name, tags): &Row| {
        let mut builder = ExampleBuilder::new().int64("tags", (0..*tags as i64).map(|tag| tag * tag));
        if let Some(label) = label {
            builder = builder.int64("label", [*label]);
        }
        if let Some(weight) = weight {
            builder = builder.float("weight", [*weight]);
        }
        if let Some(name) = name {
            builder = builder.bytes("name", [name.as_bytes()]);
        }
        builder.encode().unwrap()
    };
    ROWS.iter().map(payload).collect()
}

/// Writes the shards if that is wanted. They are not compared: another compressor makes other bytes.
static MADE: LazyLock<()> = LazyLock::new(|| {
    let payloads = payloads();
    let all: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    let mut damaged = records(&all);
    damaged[records(&all[..2]).len() + 20] ^= 4;
    let mut cut = Vec::new();
    for part in [&all[..3], &all[3..]] {
        let mut member = GzEncoder::new(cut, Level::new(6));
        for payload in part {
            member.write_all(&records(&[payload])).unwrap();
            // The next block begins here, so that there is a checkpoint with a window.
            member.flush().unwrap();
        }
        cut = member.finish().unwrap();
    }
    cut.truncate(cut.len() - 4);
    for (name, bytes) in SHARDS.into_iter().zip([records(&all), damaged, cut]) {
        formats::write(name, &bytes);
    }
});

/// Returns a folder with the shards of a version, and files of it.
fn copied(version: &Path, files: &[(&str, &str)]) -> TempDir {
    LazyLock::force(&MADE);
    let dir = tempfile::tempdir().unwrap();
    for (from, to) in SHARDS.map(|name| (name, name)).iter().chain(files) {
        let path = dir.path().join(to);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(version.join(from), &path).unwrap();
        if SHARDS.contains(to) {
            set_mtime(&path, TIME);
        }
    }
    dir
}

fn index_options(dir: &TempDir, mode: IndexMode) -> IndexOptions {
    options().index_dir(dir.path().join("i")).checkpoint_every(64).mode(mode)
}

fn opened(dir: &TempDir, name: &str, options: IndexOptions) -> Dataset {
    DatasetOptions::new().index(options).open(dir.path().join(name)).unwrap()
}

fn check_payloads(ds: &Dataset, want: &[Vec<u8>]) {
    let mut buf = Vec::new();
    // Backwards, so that records of compressed shards are reached from checkpoints.
    let mut found: Vec<Vec<u8>> =
        (0..ds.len()).rev().map(|i| ds.read(i, &mut buf).unwrap().payload().to_vec()).collect();
    found.reverse();
    assert!(found == want, "{ds:?}");
}

#[test]
fn indexes_of_all_versions_find_their_records() {
    let without_third = [&payloads()[..2], &payloads()[3..]].concat();
    let want = [payloads(), without_third, payloads()];
    for (shard, want) in SHARDS.into_iter().zip(&want) {
        let name = format!("{shard}.tfri");
        let in_folder = format!("i/{name}");
        let dir = copied(&formats::written(), &[]);
        opened(&dir, shard, index_options(&dir, IndexMode::Auto).damage(Damage::Skip));
        formats::compare(&name, &fs::read(dir.path().join(&in_folder)).unwrap());
        for version in formats::versions(&name) {
            let dir = copied(&version, &[(&name, &in_folder)]);
            let options = index_options(&dir, IndexMode::Require).damage(Damage::Skip);
            let ds = opened(&dir, shard, options);
            check_payloads(&ds, want);
            ds.index(0).unwrap().verify().unwrap();
        }
    }
}

#[test]
fn packs_of_all_versions_open_their_shards() {
    let name = "set.tfrp";
    let in_folder = ".tfseek/set.tfrp";
    let dir = copied(&formats::written(), &[]);
    let of_pack = ["plain.tfrecord", "cut.tfrecord.gz"];
    let paths: Vec<PathBuf> = of_pack.iter().map(|name| dir.path().join(name)).collect();
    let options = options().checkpoint_every(64).tail(Tail::Tolerate);
    let (pack, _) = write_pack("set", &paths, &options).unwrap();
    formats::compare(name, &fs::read(pack).unwrap());
    for version in formats::versions(name) {
        let dir = copied(&version, &[(name, in_folder)]);
        let options = DatasetOptions::new().index(options.clone().mode(IndexMode::Require));
        let ds = options.open(dir.path().join(in_folder)).unwrap();
        check_payloads(&ds, &[payloads(), payloads()].concat());
        assert!(ds.shards().map(|shard| shard.path.file_name().unwrap().to_owned()).eq(of_pack));
    }
}

/// Returns the values of a column as text: floats as their bits.
fn values(column: &FeatureColumn) -> Vec<Option<String>> {
    let text = |value: Value<'_>| match value {
        Value::Int(value) => format!("{value}"),
        Value::Float(value) => format!("{:08x}", value.to_bits()),
        Value::Bytes(value) => value.escape_ascii().to_string(),
    };
    (0..column.len()).map(|i| column.get(i).unwrap().map(text)).collect()
}

#[test]
fn columns_of_all_versions_have_their_values() {
    let shard = SHARDS[0];
    let dir = copied(&formats::written(), &[]);
    let ds = opened(&dir, shard, index_options(&dir, IndexMode::Auto));
    let classes = ColumnOptions { classes: true, ..ColumnOptions::default() };
    ds.columns(&["label", "name"], &classes).unwrap();
    ds.column("weight", &ColumnOptions::default()).unwrap();
    ds.value_counts("tags", &ColumnOptions::default()).unwrap();
    let count = |tags: usize| (tags > 0).then(|| tags.to_string());
    let want = [
        ("label", ROWS.map(|row| row.0.map(|label| label.to_string()))),
        ("weight", ROWS.map(|row| row.1.map(|weight| format!("{:08x}", weight.to_bits())))),
        ("name", ROWS.map(|row| row.2.map(str::to_owned))),
        ("tags+len", ROWS.map(|row| count(row.3))),
    ];
    for (feature, want) in &want {
        let name = format!("{shard}.{feature}.tfrc");
        let in_folder = format!("i/{name}");
        formats::compare(&name, &fs::read(dir.path().join(&in_folder)).unwrap());
        for version in formats::versions(&name) {
            let bytes = fs::read(version.join(&name)).unwrap();
            let column = FeatureColumn::from_bytes(Region::new(bytes)).unwrap();
            column.verify().unwrap();
            assert_eq!(values(&column), *want, "{feature}");
            // Of the files of columns only this one is there, so it is found and accepted for the shard.
            let dir = copied(&version, &[(&name, &in_folder)]);
            if !feature.ends_with("+len") {
                let ds = opened(&dir, shard, index_options(&dir, IndexMode::Auto));
                let found = ds.find_columns(&[feature]).unwrap().remove(0).unwrap();
                assert_eq!(values(&found.shards()[0]), *want, "{feature}");
            }
        }
    }
}
