//! Cost of a position in all kinds of orders: sequential, random, and without prior state.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tfseek::Order;
use tfseek::order::Spec;
use tfseek::order::{Component, LastBatch, MixSpec, RankShare, State, Subset, Weights};
use tfseek_testkit::bench;
use tfseek_testkit::rng::Rng;

/// Positions per run.
const RUN: u64 = 4096;

/// Fisher-Yates shuffle: the table that a shuffle without a permutation function needs.
fn drawn(n: u64) -> Vec<u64> {
    let mut rng = Rng::new(1);
    let mut table: Vec<u64> = (0..n).collect();
    for i in (1..table.len()).rev() {
        table.swap(i, rng.below_u64(i as u64 + 1) as usize);
    }
    table
}

fn permutation(c: &mut Criterion) {
    let mut group = c.benchmark_group("order/permutation");
    group.throughput(Throughput::Elements(RUN));
    for (name, n) in [
        ("100", 100),
        ("1e6", 1_000_000),
        ("1e9", 1_000_000_000),
        ("2^30+1", (1 << 30) + 1),
        ("2^63", 1 << 63),
    ] {
        let shuffle = Order::new(&Spec::Global, n, 42, 3).unwrap();
        let mut out = vec![0; RUN.min(n) as usize];
        let mut start = 0;
        let mut next = || {
            start = if n.saturating_sub(start) < 2 * RUN { 0 } else { start + RUN };
            start
        };
        for i in 0..RUN.min(n) {
            assert_eq!(shuffle.position_of(shuffle.get(i).unwrap()).unwrap(), Some(i));
        }
        group.bench_function(BenchmarkId::new("get", name), |b| {
            b.iter(|| {
                let start = next();
                (0..RUN).fold(0, |sum, i| sum ^ shuffle.get(if n < RUN { i % n } else { start + i }).unwrap())
            })
        });
        group.bench_function(BenchmarkId::new("fill", name), |b| {
            b.iter(|| {
                let times = RUN / out.len() as u64;
                (0..times).for_each(|_| {
                    shuffle.fill(if n > RUN { next() } else { 0 }, black_box(&mut out)).unwrap();
                });
            })
        });
    }
    group.finish();
}

fn table(c: &mut Criterion) {
    let mut group = c.benchmark_group("order/drawn");
    group.bench_function("build/1e6", |b| b.iter(|| drawn(1_000_000)));
    let table = drawn(1_000_000);
    group.throughput(Throughput::Elements(RUN));
    group.bench_function("get/1e6", |b| {
        let mut start = 0;
        b.iter(|| {
            start = (start + RUN as usize) % (table.len() - RUN as usize);
            table[start..start + RUN as usize].iter().fold(0, |sum, x| sum ^ x)
        })
    });
    group.finish();
}

fn kinds() -> Vec<(&'static str, Spec)> {
    let n = 1_000_000;
    let tenth = Subset::from_fn(n, |i| i % 10 == 3);
    let component = |weight, begin| Component::new(weight, Spec::Global).over(begin..begin + n / 4);
    let mixed = |weights: [u64; 4]| {
        Spec::Mix(MixSpec::new((0..).zip(weights).map(|(k, weight)| component(weight, k * n / 4)).collect()))
    };
    let class = |of, c| Subset::from_fn(n, move |i| i % of == c);
    let weights: Vec<u32> = (0..n as u32).map(|i| i % 1000).collect();
    vec![
        ("global", Spec::Global),
        ("block-256x1024", Spec::Block { block: 256, window: 1024 }),
        ("filter", Spec::Global.filtered(tenth)),
        ("weighted", Spec::Weighted(Weights::new(weights).unwrap())),
        ("mixture-4096", mixed([2048, 1024, 512, 512])),
        ("mixture-10", mixed([5, 2, 2, 1])),
        ("balanced-2", tfseek_testkit::order_twin::balanced((0..2).map(|c| class(2, c)))),
        ("balanced-1000", tfseek_testkit::order_twin::balanced((0..1000).map(|c| class(1000, c)))),
    ]
}

fn orders(c: &mut Criterion) {
    let mut group = c.benchmark_group("order/kinds");
    for (name, spec) in kinds() {
        let order = Order::new(&spec, 1_000_000, 42, 3).unwrap();
        let mut out = vec![0; RUN as usize];
        order.fill(5, &mut out).unwrap();
        assert!((5..).zip(&out).take(100).all(|(t, record)| order.get(t).unwrap() == *record));
        group.throughput(Throughput::Elements(RUN));
        let mut rng = Rng::new(3);
        group.bench_function(BenchmarkId::new("fill", name), |b| {
            b.iter(|| order.fill(rng.below_u64(order.len() - RUN), black_box(&mut out)).unwrap())
        });
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new("get", name), |b| {
            b.iter(|| order.get(rng.below_u64(order.len())).unwrap())
        });
    }
    group.finish();
}

/// Seeks without prior state: from (n, seed, epoch, position) to a record, to a rank's whole step and back,
/// and the cost of a resume from a saved state.
fn seek(c: &mut Criterion) {
    let n = 1_000_000_000;
    let fingerprint = "99aa06d3014798d86001c324468d497f";
    let mut group = c.benchmark_group("order/seek/1e9");
    for (name, spec) in [("global", Spec::Global), ("block", Spec::Block { block: 256, window: 1024 })] {
        let mut rng = Rng::new(7);
        let order = |seed| Order::new(black_box(&spec), n, seed, 5).unwrap();
        let share = RankShare::new(n, 2048, 3, 8, LastBatch::Pad).unwrap();
        let step = |order: &Order, start: u64, out: &mut [u64; 256]| {
            for run in share.clone().starting_at(start).unwrap().step(0).unwrap() {
                order.fill(run.start, &mut out[..run.len as usize]).unwrap();
            }
        };
        let saved = |rng: &mut Rng| {
            State::new(&order(rng.u64()), rng.below_u64(n - 4096), fingerprint).unwrap().to_json()
        };
        let resume = |saved: &str, out: &mut [u64; 256]| {
            let state = State::from_json(saved).unwrap();
            step(&state.resume(&spec, n, fingerprint).unwrap(), state.position, out);
        };
        // Checks before the timing that any seek and any resume takes less than a millisecond. Takes the
        // slowest of many, each the best of three runs, to exclude disturbances.
        let (mut slowest, mut out) = (Duration::ZERO, [0; 256]);
        for _ in 0..3_000 {
            let saved = saved(&mut rng);
            let mut once = || {
                let start = Instant::now();
                resume(&saved, &mut out);
                start.elapsed()
            };
            let best = once().min(once()).min(once());
            slowest = slowest.max(best);
        }
        println!("order/seek/1e9/{name}: from JSON to 256 records, the slowest of 3000: {slowest:?}");
        assert!(slowest < Duration::from_millis(1));

        group.bench_function(BenchmarkId::new("record", name), |b| {
            b.iter(|| order(rng.u64()).get(rng.below_u64(n)).unwrap())
        });
        group.bench_function(BenchmarkId::new("position-of", name), |b| {
            b.iter(|| order(rng.u64()).position_of(rng.below_u64(n)).unwrap())
        });
        group.bench_function(BenchmarkId::new("step-of-256", name), |b| {
            b.iter(|| step(&order(rng.u64()), rng.below_u64(n - 4096), &mut out))
        });
        let states: Vec<String> = (0..64).map(|_| saved(&mut rng)).collect();
        let mut states = states.iter().cycle();
        group.bench_function(BenchmarkId::new("resume-of-256", name), |b| {
            b.iter(|| resume(states.next().unwrap(), &mut out))
        });
    }
    group.finish();
}

criterion_group! { name = benches; config = bench::short(); targets = permutation, table, orders, seek }
criterion_main!(benches);
