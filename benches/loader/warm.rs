//! Epochs in global order over records in the page cache: the loader, compared with a plain loop.
//!
//! `loader/SHAPE/VERIFY/WAY`: `loop` calls `fill`, `get_many` and `parse` per batch; `threads/N` is the
//! loader, where 0 threads means the caller's thread. The consumer reads every value, except with `unread`,
//! where it counts rows only. This shows how the producing threads use two cores without a competing
//! consumer.

use super::turns;
use criterion::{Criterion, Throughput};
use std::path::PathBuf;
use std::time::Instant;
use tfseek::batch::{Batch, BatchParser};
use tfseek::frame::put_record;
use tfseek::order::Spec;
use tfseek::{DatasetOptions, IndexMode, Loader, Mapped, Order, Record, Result, Schema, Verify};
use tfseek_testkit::bench;
use tfseek_testkit::bench::shapes::{BATCH, Order as Keys, Shape};
use tfseek_testkit::bench::sum::Sum;

const SEED: u64 = 42;

/// Shape, number of batches, and whether strings are copied (the faster choice if all values are read).
const SETS: [(&str, usize, bool); 2] = [("tutorial", 2048, false), ("wide", 64, true)];

struct Set {
    name: String,
    dataset: Mapped,
    schema: Schema,
    contiguous: bool,
}

/// A way to run through an epoch.
enum Way<'a> {
    Loop { dataset: &'a Mapped, parser: BatchParser, epoch: u64 },
    Loader { loader: Box<Loader>, reads: bool },
}

fn sets() -> Vec<Set> {
    let of_shape = |&(name, batches, contiguous): &(&str, usize, bool)| {
        let shape = Shape::named(name).expect("a known shape");
        let path = file(&shape, batches * BATCH);
        let schema = shape.schema();
        [(Verify::Header, "header"), (Verify::Payload, "payload")].map(|(verify, mode)| {
            let options = DatasetOptions::new().index(IndexMode::Memory).verify(verify);
            // SAFETY: a file of this bench; nothing else writes to it.
            let dataset = unsafe { options.open_mapped(&path) }.unwrap();
            Set { name: format!("{name}/{mode}"), dataset, schema: schema.clone(), contiguous }
        })
    };
    SETS.iter().flat_map(of_shape).collect()
}

fn file(shape: &Shape, records: usize) -> PathBuf {
    bench::file(&format!("loader-{}-{records}.tfrecord", shape.name), |w| {
        shape.payloads(Keys::Same, records).iter().for_each(|payload| put_record(w, payload).unwrap());
    })
}

impl Set {
    fn parser(&self) -> BatchParser {
        BatchParser::new(&self.schema).contiguous_bytes(self.contiguous)
    }

    fn loader(&self, threads: usize) -> Box<Loader> {
        let options = self.dataset.dataset().loader(&self.schema).parser(self.parser());
        Box::new(
            options
                .batch_size(BATCH as u64)
                .shuffle(tfseek::loader::Shuffle::Global)
                .seed(SEED)
                .threads(threads)
                .build()
                .unwrap(),
        )
    }

    /// Returns the ways with their names, after checking that all that read values give the same batches.
    fn ways(&self) -> Vec<(String, Way<'_>)> {
        let mut ways =
            vec![("loop".to_owned(), Way::Loop { dataset: &self.dataset, parser: self.parser(), epoch: 0 })];
        for threads in 0..3 {
            let loader = self.loader(threads);
            ways.push((format!("threads/{threads}"), Way::Loader { loader, reads: true }));
        }
        let mut answers = ways.iter_mut().map(|(_, way)| {
            let mut sums = Vec::new();
            way.epoch(|sum| sums.push(sum));
            sums
        });
        let first = answers.next().unwrap_or_default();
        assert!(first.len() > 1 && first[0] != first[1]);
        assert!(answers.all(|sums| sums == first), "expected the same batches in the same order");
        for threads in 1..3 {
            let loader = self.loader(threads);
            ways.push((format!("threads/{threads}/unread"), Way::Loader { loader, reads: false }));
        }
        ways
    }
}

impl Way<'_> {
    /// Runs the next epoch and calls `each` with the sum of each batch.
    fn epoch(&mut self, mut each: impl FnMut(Sum)) {
        let mut read = |batch: &Batch| {
            let mut sum = Sum::default();
            sum.batch(batch);
            each(sum);
        };
        match self {
            Way::Loop { dataset, parser, epoch } => {
                let (n, batch) = (dataset.len(), BATCH as u64);
                let order = Order::new(&Spec::Global, n, SEED, *epoch).unwrap();
                let mut ids = vec![0; BATCH];
                for step in 0..n / batch {
                    order.fill(step * batch, &mut ids).unwrap();
                    let records: Vec<Record<'_>> = dataset.get_many(&ids).collect::<Result<_>>().unwrap();
                    read(&parser.parse(&records).unwrap());
                }
                *epoch += 1;
            }
            Way::Loader { loader, reads } => {
                for step in loader.by_ref() {
                    let batch = step.unwrap().into_batch().expect("the loader has a schema");
                    if *reads {
                        read(&batch);
                    } else {
                        assert_eq!(batch.rows(), BATCH);
                    }
                }
            }
        }
    }

    /// Runs an epoch and returns the sum of its last batch.
    fn run(&mut self) -> Sum {
        let mut last = Sum::default();
        self.epoch(|sum| last = sum);
        last
    }
}

pub(crate) fn bench(c: &mut Criterion) {
    for set in sets() {
        let mut group = c.benchmark_group(format!("loader/{}", set.name));
        group.throughput(Throughput::Elements(set.dataset.len()));
        for (name, mut way) in set.ways() {
            group.bench_function(name, |b| b.iter(|| way.run()));
        }
        group.finish();
    }
}

/// Prints the same measurements as a table.
pub(crate) fn in_turn(rounds: usize) {
    println!("ns per record: best (median) of {rounds} runs; ratio to `loop`: best (median)");
    for set in sets() {
        let mut ways = set.ways();
        let times = turns::take(ways.len(), rounds, |way| {
            let start = Instant::now();
            std::hint::black_box(ways[way].1.run());
            start.elapsed()
        });
        let each = |time: std::time::Duration| time.as_nanos() as f64 / set.dataset.len() as f64;
        for ((name, _), t) in ways.iter().zip(&times) {
            println!(
                "{:17} {name:18} {:8.1} ({:8.1})  {:.3} ({:.3})",
                set.name,
                each(t.best),
                each(t.median),
                t.best.as_secs_f64() / times[0].best.as_secs_f64(),
                t.median.as_secs_f64() / times[0].median.as_secs_f64(),
            );
        }
    }
}
