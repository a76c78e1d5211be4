//! Packed int64 lists: decoding by masks, by a scalar loop, and by quick-protobuf's reader.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quick_protobuf::BytesReader;
use std::hint::black_box;
use tfseek::{Example, ExampleBuilder, FeatureBuf};
use tfseek_testkit::bench;
use tfseek_testkit::rng::Rng;

/// Values in a long list. Bytes and values together fit in the L2 cache.
const VALUES: usize = 20_000;
/// Number of different short lists in a cycle, which prevents branch prediction from learning one list.
const LISTS: usize = 256;

type Value = fn(&mut Rng) -> i64;

/// Distributions of the values, named by their encoded lengths.
const SHAPES: [(&str, Value); 6] = [
    ("one_byte", |rng| rng.below_u64(128) as i64),
    ("ids_50k", |rng| rng.below_u64(50_000) as i64),
    // Word ids by frequency rank in a text: one to three bytes, mostly one or two.
    ("ids_log_uniform", |rng| (50_000f64.powf(rng.below_u64(1 << 32) as f64 / 4_294_967_296.0)) as i64),
    ("five_bytes", |rng| ((1 << 28) + rng.below_u64((1 << 35) - (1 << 28))) as i64),
    ("negative", |rng| -1 - rng.below_u64(50_000) as i64),
    ("one_to_ten_bytes", |rng| match rng.below_u64(10) {
        0 => rng.below_u64(128) as i64,
        9 => rng.u64() as i64 | i64::MIN,
        k => (1 << (7 * k)) | rng.below_u64(1 << (7 * k)) as i64,
    }),
];

fn payload(values: &[i64]) -> Vec<u8> {
    let mut builder = ExampleBuilder::new();
    builder = builder.feature("k", FeatureBuf::Int64(values.to_vec()));
    builder.encode().unwrap()
}

/// Returns the bytes of the list's only chunk.
fn chunk(payload: &[u8]) -> &[u8] {
    let mut message = payload;
    // Features, entry, value, int64 list, chunk: each is the last field of its parent.
    for tag in [0x0a, 0x0a, 0x12, 0x1a, 0x0a] {
        let mut reader = BytesReader::from_bytes(message);
        while reader.next_tag(message).unwrap() != tag {
            reader.read_bytes(message).unwrap();
        }
        message = reader.read_bytes(message).unwrap();
    }
    message
}

/// The fallback for processors without AVX2 and BMI2: decodes eight values at once if all have one byte.
fn scalar(mut chunk: &[u8], out: &mut [i64]) -> usize {
    let mut done = 0;
    while done < out.len() {
        if let Some((word, rest)) = chunk.split_first_chunk::<8>()
            && let Some(to) = out[done..].first_chunk_mut::<8>()
            && u64::from_le_bytes(*word) & 0x8080_8080_8080_8080 == 0
        {
            *to = word.map(i64::from);
            (chunk, done) = (rest, done + 8);
            continue;
        }
        let mut value = 0;
        for k in 0..10 {
            let Some((&byte, rest)) = chunk.split_first() else { return done };
            chunk = rest;
            value |= u64::from(byte & 0x7f) << (7 * k);
            if byte < 0x80 {
                break;
            }
        }
        out[done] = value as i64;
        done += 1;
    }
    done
}

fn quick(chunk: &[u8], out: &mut [i64]) -> usize {
    let mut reader = BytesReader::from_bytes(chunk);
    let mut done = 0;
    while !reader.is_eof() {
        let (Some(to), Ok(value)) = (out.get_mut(done), reader.read_int64(chunk)) else { break };
        *to = value;
        done += 1;
    }
    done
}

/// Measures all decoders on lists of equal length.
fn rows(c: &mut Criterion, name: String, lists: &[Vec<i64>]) {
    let payloads: Vec<_> = lists.iter().map(|values| payload(values)).collect();
    let views: Vec<_> = payloads.iter().map(|payload| Example::new(payload).int64("k").unwrap()).collect();
    let chunks: Vec<_> = payloads.iter().map(|payload| chunk(payload)).collect();
    let mut out = vec![0; lists[0].len()];
    for (k, values) in lists.iter().enumerate() {
        let clear = |out: &mut [i64]| out.fill(0x5555);
        views[k].decode_into(&mut out).unwrap();
        assert_eq!(&out, values);
        clear(&mut out);
        assert_eq!((scalar(chunks[k], &mut out), &out), (values.len(), values));
        clear(&mut out);
        assert_eq!((quick(chunks[k], &mut out), &out), (values.len(), values));
        assert!(views[k].iter().eq(values.iter().copied()));
    }
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements((lists.len() * out.len()) as u64));
    group.bench_function("decode_into", |b| {
        b.iter(|| {
            for list in black_box(&views) {
                list.decode_into(black_box(&mut out)).unwrap();
            }
        });
    });
    group.bench_function("iter", |b| {
        b.iter(|| {
            for list in black_box(&views) {
                for (to, value) in black_box(&mut out).iter_mut().zip(*list) {
                    *to = value;
                }
            }
        });
    });
    group.bench_function("scalar", |b| {
        b.iter(|| black_box(&chunks).iter().map(|chunk| scalar(chunk, black_box(&mut out))).sum::<usize>());
    });
    group.bench_function("quick_protobuf", |b| {
        b.iter(|| black_box(&chunks).iter().map(|chunk| quick(chunk, black_box(&mut out))).sum::<usize>());
    });
    group.finish();
}

fn decode(c: &mut Criterion) {
    for (k, (shape, value)) in SHAPES.into_iter().enumerate() {
        let mut rng = Rng::new(k as u64);
        let list = (0..VALUES).map(|_| value(&mut rng)).collect();
        rows(c, format!("varint/decode/{shape}"), &[list]);
    }
}

fn short_lists(c: &mut Criterion) {
    let (_, value) = SHAPES[2];
    for len in [1, 4, 8, 16, 32, 64] {
        let mut rng = Rng::new(len as u64);
        let lists: Vec<Vec<_>> = (0..LISTS).map(|_| (0..len).map(|_| value(&mut rng)).collect()).collect();
        rows(c, format!("varint/decode_short/{len}"), &lists);
    }
}

/// Counting the values of a list, which every lookup does. Short lists show the cost of the lookup.
fn count(c: &mut Criterion) {
    let mut group = c.benchmark_group("varint/count");
    for (shape, value) in SHAPES {
        for (suffix, len) in [("", VALUES), ("_short", 32)] {
            let mut rng = Rng::new(len as u64);
            let values: Vec<_> = (0..len).map(|_| value(&mut rng)).collect();
            let payload = payload(&values);
            let count = |payload: &[u8]| Example::new(payload).int64("k").unwrap().len();
            assert_eq!(count(&payload), len);
            group.throughput(Throughput::Bytes(chunk(&payload).len() as u64));
            group.bench_function(format!("{shape}{suffix}"), |b| b.iter(|| count(black_box(&payload))));
        }
    }
    group.finish();
}

criterion_group! { name = benches; config = bench::short(); targets = decode, short_lists, count }
criterion_main!(benches);
