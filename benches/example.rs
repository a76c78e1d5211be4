//! Access to one key of a record, and to all keys, compared with a parser over raw slices.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quick_protobuf::BytesReader;
use std::hint::black_box;
use tfseek::{Example, Feature};
use tfseek_testkit::bench;
use tfseek_testkit::rng::Rng;

/// Number of different records in a cycle, which prevents branch prediction from learning one record.
const RECORDS: usize = 64;

/// A minimal parser over raw slices: fields in any order, the last entry of a key wins, lengths checked. It
/// expects one packed chunk of int64 values. It has no depth limit, no groups, no merging, and no other
/// validation.
mod bare {
    fn varint(rest: &mut &[u8]) -> Option<u64> {
        let mut value = 0;
        for k in 0..10 {
            let (&byte, after) = rest.split_first()?;
            *rest = after;
            value |= u64::from(byte & 0x7f) << (7 * k);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn field<'a>(rest: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
        let tag = varint(rest)?;
        let len = match tag & 7 {
            0 => {
                varint(rest)?;
                0
            }
            1 => 8,
            2 => varint(rest)? as usize,
            5 => 4,
            _ => return None,
        };
        let (value, after) = rest.split_at_checked(len)?;
        *rest = after;
        Some((tag, value))
    }

    fn inner(message: &[u8], want: u64) -> Option<&[u8]> {
        let (mut rest, mut found) = (message, &[][..]);
        while !rest.is_empty() {
            let (tag, value) = field(&mut rest)?;
            if tag == want {
                found = value;
            }
        }
        Some(found)
    }

    /// Returns the value message of the last entry with this key.
    pub(super) fn find<'a>(payload: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
        let mut found = None;
        let mut features = inner(payload, 0x0a)?;
        while !features.is_empty() {
            let (tag, mut entry) = field(&mut features)?;
            if tag != 0x0a {
                continue;
            }
            let (mut name, mut value) = (&[][..], &[][..]);
            while !entry.is_empty() {
                match field(&mut entry)? {
                    (0x0a, bytes) => name = bytes,
                    (0x12, bytes) => value = bytes,
                    _ => {}
                }
            }
            if name == key {
                found = Some(value);
            }
        }
        found
    }

    pub(super) fn first(payload: &[u8], key: &[u8]) -> Option<i64> {
        let list = inner(find(payload, key)?, 0x1a)?;
        let mut chunk = inner(list, 0x0a)?;
        varint(&mut chunk).map(|value| value as i64)
    }

    /// Returns the number of bytes in all keys and values.
    pub(super) fn all(payload: &[u8]) -> Option<usize> {
        let mut sum = 0;
        let mut features = inner(payload, 0x0a)?;
        while !features.is_empty() {
            let (_, mut entry) = field(&mut features)?;
            while !entry.is_empty() {
                sum += field(&mut entry)?.1.len();
            }
        }
        Some(sum)
    }
}

/// The same parser on quick-protobuf's reader.
fn quick(payload: &[u8], key: &[u8]) -> quick_protobuf::Result<Option<i64>> {
    let mut found = None;
    let mut reader = BytesReader::from_bytes(payload);
    while !reader.is_eof() {
        if reader.next_tag(payload)? != 0x0a {
            continue;
        }
        let features = reader.read_bytes(payload)?;
        let mut reader = BytesReader::from_bytes(features);
        while !reader.is_eof() {
            reader.next_tag(features)?;
            let entry = reader.read_bytes(features)?;
            let (mut name, mut value) = (&[][..], &[][..]);
            let mut reader = BytesReader::from_bytes(entry);
            while !reader.is_eof() {
                match reader.next_tag(entry)? {
                    0x0a => name = reader.read_bytes(entry)?,
                    _ => value = reader.read_bytes(entry)?,
                }
            }
            if name == key {
                found = Some(value);
            }
        }
    }
    let Some(value) = found else { return Ok(None) };
    let mut reader = BytesReader::from_bytes(value);
    reader.next_tag(value)?;
    let list = reader.read_bytes(value)?;
    let mut reader = BytesReader::from_bytes(list);
    reader.next_tag(list)?;
    let chunk = reader.read_bytes(list)?;
    BytesReader::from_bytes(chunk).read_int64(chunk).map(Some)
}

fn one_key(c: &mut Criterion) {
    for n in [4, 20, 200] {
        let mut rng = Rng::new(n as u64);
        let payloads: Vec<_> = (0..RECORDS).map(|_| bench::example(&mut rng, n)).collect();
        // The int64 feature in the middle; every parser reads to the end of the record.
        let key = bench::key((n / 2) / 3 * 3 + 2);
        let ours = |payload: &[u8]| Example::new(payload).int64(&key).unwrap().first();
        for payload in &payloads {
            assert!(ours(payload).is_some());
            assert_eq!(ours(payload), bare::first(payload, key.as_bytes()));
            assert_eq!(ours(payload), quick(payload, key.as_bytes()).unwrap());
        }
        let mut group = c.benchmark_group(format!("example/one_key/{n}"));
        group.throughput(Throughput::Elements(RECORDS as u64));
        let sum = |f: &dyn Fn(&[u8]) -> Option<i64>| {
            black_box(&payloads).iter().map(|p| f(p).unwrap()).sum::<i64>()
        };
        group.bench_function("view", |b| b.iter(|| sum(&|p| ours(p))));
        group.bench_function("bare_walk", |b| b.iter(|| sum(&|p| bare::first(p, key.as_bytes()))));
        group.bench_function("quick_protobuf", |b| b.iter(|| sum(&|p| quick(p, key.as_bytes()).unwrap())));
        group.finish();
    }
}

fn all_features(c: &mut Criterion) {
    for n in [4, 20, 200] {
        let mut rng = Rng::new(n as u64);
        let payloads: Vec<_> = (0..RECORDS).map(|_| bench::example(&mut rng, n)).collect();
        let values = |feature: Feature<'_>| match feature {
            Feature::Int64(list) => list.iter().sum::<i64>() as usize,
            Feature::Float(list) => list.iter().sum::<f32>() as usize,
            Feature::Bytes(list) => list.iter().map(<[u8]>::len).sum(),
            Feature::None => 0,
        };
        let entries = |p: &[u8]| {
            Example::new(p).entries().map(|e| e.unwrap()).map(|(k, f)| k.len() + f.len()).sum::<usize>()
        };
        let features = |p: &[u8]| {
            Example::new(p).features().unwrap().iter().map(|(k, f)| k.len() + f.len()).sum::<usize>()
        };
        let decoded = |p: &[u8]| Example::new(p).entries().map(|e| values(e.unwrap().1)).sum::<usize>();
        for payload in &payloads {
            assert_eq!(Example::new(payload).entries().count(), n);
            assert_eq!(entries(payload), features(payload));
            assert!(bare::all(payload).unwrap() > n * 17 && decoded(payload) > 0);
        }
        let mut group = c.benchmark_group(format!("example/all_features/{n}"));
        group.throughput(Throughput::Elements((RECORDS * n) as u64));
        let sum = |f: &dyn Fn(&[u8]) -> usize| black_box(&payloads).iter().map(|p| f(p)).sum::<usize>();
        group.bench_function("bare_walk", |b| b.iter(|| sum(&|p| bare::all(p).unwrap())));
        group.bench_function("entries", |b| b.iter(|| sum(&|p| entries(p))));
        group.bench_function("entries_decoded", |b| b.iter(|| sum(&|p| decoded(p))));
        group.bench_function("features", |b| b.iter(|| sum(&|p| features(p))));
        group.finish();
    }
}

criterion_group! { name = benches; config = bench::short(); targets = one_key, all_features }
criterion_main!(benches);
