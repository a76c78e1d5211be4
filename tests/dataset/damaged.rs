//! Datasets with damaged shards: everything that works on records works on the sound ones.

#![allow(unsafe_code)] // `DatasetOptions::open_with_maps` is unsafe.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tfseek::column::{ColumnOptions, Value};
use tfseek::frame::put_record;
use tfseek::index::IndexOptions;
use tfseek::schema::FeatureSpec;
use tfseek::{DType, Damage, Dataset, DatasetOptions, ErrorKind, ExampleBuilder, Filter, IndexMode, Schema};
use tfseek_testkit::rng::Rng;

/// Records with the labels 0, 1, 2, .. in three shards. In the second one records 3 and 4 are damaged, and
/// the tail is torn.
fn shards(dir: &Path) -> (Vec<PathBuf>, Vec<i64>) {
    let (mut paths, mut labels, mut next) = (Vec::new(), Vec::new(), 0);
    for s in 0..3 {
        let (mut file, mut starts) = (Vec::new(), Vec::new());
        for i in 0..40 {
            starts.push(file.len());
            let example = ExampleBuilder::new().int64("label", [next]).bytes("x", [vec![7; i]]);
            put_record(&mut file, &example.encode().unwrap()).unwrap();
            if s != 1 || ![3, 4, 39].contains(&i) {
                labels.push(next);
            }
            next += 1;
        }
        if s == 1 {
            file[starts[3] + 20] ^= 1;
            file[starts[4] + 2] ^= 1;
            file.truncate(file.len() - 3);
        }
        let path = dir.join(format!("d-{s:05}-of-00003.tfrecord"));
        fs::write(&path, &file).unwrap();
        paths.push(path);
    }
    (paths, labels)
}

fn options(dir: &Path, damage: Damage) -> DatasetOptions {
    let index = IndexOptions::new().default_dirs(None, None).index_dir(dir.join("index"));
    DatasetOptions::new().index(index.damage(damage))
}

fn label(record: tfseek::Record<'_>) -> i64 {
    record.example().int64("label").unwrap().first().unwrap()
}

#[test]
fn every_way_to_read_sees_the_sound_records() {
    let dir = tempfile::tempdir().unwrap();
    let (paths, labels) = shards(dir.path());
    let e = options(dir.path(), Damage::Raise).open(&paths).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::CorruptLength { .. }), "{e}");
    let options = options(dir.path(), Damage::Skip);
    // SAFETY: the test writes its shards before it opens them.
    let mapped = unsafe { options.open_with_maps(&paths) }.unwrap();
    let read = options.open(&paths).unwrap();
    assert_eq!(mapped.fingerprint().unwrap(), read.fingerprint().unwrap());
    for ds in [&read, &mapped] {
        assert_eq!(ds.warnings().len(), 1);
        assert_eq!(ds.warnings()[0].path(), Some(&*paths[1]));
        check(ds, &labels);
    }
    let map = tfseek::Mapped::from_dataset(&mapped).unwrap();
    assert!(map.iter().map(|record| label(record.unwrap())).eq(labels.iter().copied()));
    let ids: Vec<u64> = (0..300u64).map(|k| k * 7919 % map.len()).collect();
    assert!(map.get_many(&ids).zip(&ids).all(|(r, &i)| label(r.unwrap()) == labels[i as usize]));
}

fn check(ds: &Dataset, labels: &[i64]) {
    let (n, mut buf) = (ds.len(), Vec::new());
    assert_eq!(n, labels.len() as u64);
    for (i, &want) in labels.iter().enumerate() {
        assert_eq!(label(ds.read(i as u64, &mut buf).unwrap()), want);
    }
    let mut found = Vec::new();
    for ids in [Vec::from_iter(0..n), (0..n).rev().collect(), (0..500).map(|k| k * 31 % n).collect()] {
        found.clear();
        ds.read_many(&ids, |record| {
            found.push(label(record));
            Ok(())
        })
        .unwrap();
        assert!(ids.iter().map(|&i| labels[i as usize]).eq(found.iter().copied()));
    }
    // Columns, built and found, and filters over them.
    for _ in 0..2 {
        let column = ds.column("label", &ColumnOptions::default()).unwrap();
        let want = labels.iter().map(|&label| Some(Value::Int(label)));
        assert!(column.iter().eq(want));
    }
    let filter: Filter = "label >= 43 and label < 50".parse().unwrap();
    let (chosen, _) = ds.select(&filter, &ColumnOptions::default()).unwrap();
    assert!(chosen.iter().map(|i| labels[i as usize]).eq([45, 46, 47, 48, 49]));
    // Batches and an epoch.
    let spec = FeatureSpec::fixed_len(&[], DType::Int64);
    let schema = Schema::example().feature("label", spec).build().unwrap();
    let loader = ds.loader(&schema).batch_size(16).seed(5).build().unwrap();
    let mut seen = Vec::new();
    for step in loader {
        let step = step.unwrap();
        seen.extend_from_slice(step.batch().unwrap().int64("label").unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, labels);
}

/// Opens files of 200 records with one flipped bit each. All records but at most one are found, each once.
fn flips(copies: usize, len: usize) {
    let (dir, mut rng) = (tempfile::tempdir().unwrap(), Rng::new(12));
    let (path, mut file, mut starts) = (dir.path().join("x"), Vec::new(), Vec::new());
    for i in 0..200u64 {
        starts.push(file.len());
        let mut payload: Vec<u8> = (0..len + i as usize).map(|_| rng.u64() as u8).collect();
        payload[..8].copy_from_slice(&i.to_le_bytes());
        put_record(&mut file, &payload).unwrap();
    }
    let index = IndexOptions::new().mode(IndexMode::Memory).damage(Damage::Skip).threads(1);
    let (mut all, mut but_one) = (0, 0);
    for _ in 0..copies {
        let bit = (rng.u64() % (8 * file.len() as u64)) as usize;
        let hit = starts.partition_point(|&start| start <= bit / 8) - 1;
        file[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &file).unwrap();
        let ds = DatasetOptions::new().index(index.clone()).open(&path).unwrap();
        let mut found = Vec::new();
        ds.read_many(&Vec::from_iter(0..ds.len()), |record| {
            let number = u64::from_le_bytes(*record.payload().first_chunk().unwrap()) as usize;
            let start = starts[number] + 12;
            assert!(file[start..start + record.payload().len()] == *record.payload());
            found.push(number);
            Ok(())
        })
        .unwrap();
        assert!(found.iter().copied().eq((0..200).filter(|&i| i != hit)), "bit {bit}");
        *(if found.len() == 200 { &mut all } else { &mut but_one }) += 1;
        file[bit / 8] ^= 1 << (bit % 8);
    }
    println!("{all} files with 200 records, {but_one} with 199");
}

#[test]
fn one_flipped_bit_costs_one_record() {
    flips(10, 500);
}

#[test]
#[ignore = "40 GB are read and 20 GB written: `make test-slow`"]
fn one_flipped_bit_in_large_records() {
    flips(1000, 100 << 10);
}

/// Opens gzip files of 200 records in 23 members with one flipped bit each. All records come out that end
/// before the damage, as far as a decoder gets that sees only the bytes before it, and all that begin in a
/// later member. None is damaged, and none comes out twice.
fn gzip_flips(copies: usize, len: usize) {
    let (dir, mut rng) = (tempfile::tempdir().unwrap(), Rng::new(14));
    let (path, mut stream, mut ends) = (dir.path().join("x.gz"), Vec::new(), Vec::new());
    let mut payloads = Vec::new();
    for i in 0..200u64 {
        // Bytes of 16 values, so that they compress.
        let mut payload: Vec<u8> = (0..len + i as usize).map(|_| rng.u64() as u8 & 15).collect();
        payload[..8].copy_from_slice(&i.to_le_bytes());
        put_record(&mut stream, &payload).unwrap();
        ends.push(stream.len());
        payloads.push(payload);
    }
    // The ends of members in the file and in the stream. They do not depend on the records.
    let (mut file, mut members) = (Vec::new(), Vec::new());
    for part in stream.chunks(stream.len() / 23 + 1) {
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::new(6));
        encoder.write_all(part).unwrap();
        file = encoder.finish().unwrap();
        members.push((file.len(), members.last().map_or(0, |&(_, end)| end) + part.len()));
    }
    assert_eq!(members.len(), 23);
    let start = |i: usize| if i == 0 { 0 } else { ends[i - 1] };
    let index = IndexOptions::new().mode(IndexMode::Memory).damage(Damage::Skip).threads(1);
    let (mut before, mut after, mut others, mut whole) = (0, 0, 0, 0);
    for _ in 0..copies {
        let bit = (rng.u64() % (8 * file.len() as u64)) as usize;
        let (mut sound, mut out) = (0, [0; 8192]);
        let mut decoder = flate2::bufread::MultiGzDecoder::new(&file[..bit / 8]);
        while let Ok(n @ 1..) = decoder.read(&mut out) {
            sound += n;
        }
        let (_, next) = members[members.iter().position(|&(end, _)| bit / 8 < end).unwrap()];
        file[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &file).unwrap();
        let ds = DatasetOptions::new().index(index.clone()).open(&path).unwrap();
        let mut found = Vec::new();
        ds.read_many(&Vec::from_iter(0..ds.len()), |record| {
            let number = u64::from_le_bytes(*record.payload().first_chunk().unwrap()) as usize;
            assert!(payloads[number] == *record.payload());
            found.push(number);
            Ok(())
        })
        .unwrap();
        assert!(found.is_sorted_by(|a, b| a < b), "bit {bit}");
        for (i, &end) in ends.iter().enumerate() {
            let has = found.binary_search(&i).is_ok();
            let counted = match () {
                () if end <= sound => &mut before,
                () if start(i) >= next => &mut after,
                () => {
                    others += usize::from(has);
                    continue;
                }
            };
            assert!(has, "bit {bit}, record {i}");
            *counted += 1;
        }
        whole += usize::from(found.len() == 200);
        file[bit / 8] ^= 1 << (bit % 8);
    }
    println!(
        "{before} records before the damage, {after} after the next member, {others} others; {whole} whole files"
    );
}

#[test]
fn one_flipped_bit_in_gzip_members() {
    gzip_flips(100, 400);
}

#[test]
#[ignore = "takes half a minute: `make test-slow`"]
fn one_flipped_bit_in_a_thousand_gzip_files() {
    gzip_flips(1000, 4000);
}
