//! Epochs over records with the same floats in four forms: a float list, bytes in both orders, and a
//! serialized tensor.
//!
//! `loader/arrays/FLOATS/FORM`: records of this number of floats, 64 MiB of them, in batches of 32. One
//! thread of the loader reads and verifies them, and the consumer does not read the values.

use super::turns;
use criterion::{Criterion, Throughput};
use std::path::PathBuf;
use std::time::Instant;
use tfseek::frame::put_record;
use tfseek::schema::FeatureSpec;
use tfseek::tensor::serialize_values;
use tfseek::{DType, DatasetOptions, ExampleBuilder, IndexMode, Loader, Schema, TensorDType};
use tfseek_testkit::bench;
use tfseek_testkit::bench::sum::Sum;
use tfseek_testkit::rng::Rng;

/// Numbers of floats: an embedding, and an image of 112 x 112 pixels.
const FLOATS: [usize; 2] = [1024, 112 * 112 * 3];
const FORMS: [&str; 4] = ["list", "raw", "raw/big", "tensor"];
const BYTES: usize = 64 << 20;
const BATCH: usize = 32;

fn spec(form: &str, floats: usize) -> FeatureSpec {
    let (dtype, shape) = (TensorDType::Float32, [Some(floats)]);
    match form {
        "list" => FeatureSpec::fixed_len(&[floats], DType::Float32),
        "raw" => FeatureSpec::raw(&shape, dtype),
        "raw/big" => {
            FeatureSpec::Raw { dtype, shape: shape.into(), little_endian: false, fixed_length: false }
        }
        _ => FeatureSpec::Tensor { dtype, shape: shape.to_vec() },
    }
}

fn records(floats: usize) -> usize {
    BYTES / (4 * floats) / BATCH * BATCH
}

fn file(form: &str, floats: usize) -> PathBuf {
    bench::file(&format!("loader-arrays-{floats}-{}.tfrecord", form.replace('/', "-")), |w| {
        let mut rng = Rng::new(1);
        for _ in 0..records(floats) {
            let values: Vec<f32> = (0..floats).map(|_| rng.below(1000) as f32).collect();
            let builder = ExampleBuilder::new();
            let builder = match form {
                "list" => builder.float("x", values),
                "raw" => {
                    builder.bytes("x", [values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()])
                }
                "raw/big" => {
                    builder.bytes("x", [values.iter().flat_map(|x| x.to_be_bytes()).collect::<Vec<u8>>()])
                }
                _ => builder.bytes("x", [serialize_values(&[floats as u64], &values).unwrap()]),
            };
            put_record(w, &builder.encode().unwrap()).unwrap();
        }
    })
}

fn loader(form: &str, floats: usize) -> Loader {
    let dataset = DatasetOptions::new().index(IndexMode::Memory);
    // SAFETY: a file of this bench; nothing else writes to it.
    let dataset = unsafe { dataset.open_mapped(file(form, floats)) }.unwrap();
    let schema = Schema::example().feature("x", spec(form, floats)).build().unwrap();
    dataset.dataset().loader(&schema).batch_size(BATCH as u64).seed(42).threads(1).build().unwrap()
}

/// Returns the loaders of all forms, after checking that they give the same values.
fn loaders(floats: usize) -> Vec<Loader> {
    let mut first = Vec::new();
    let each = FORMS.map(|form| {
        let mut loader = loader(form, floats);
        let sums: Vec<Sum> = loader
            .by_ref()
            .map(|step| {
                let mut sum = Sum::default();
                sum.batch(&step.unwrap().into_batch().unwrap());
                sum
            })
            .collect();
        if first.is_empty() {
            first.clone_from(&sums);
        }
        assert!(sums.len() > 1 && sums[0] != sums[1] && sums == first, "{form}: expected the same values");
        loader
    });
    each.into()
}

fn run(loader: &mut Loader) -> usize {
    loader.map(|step| step.unwrap().into_batch().unwrap().rows()).sum()
}

pub(crate) fn bench(c: &mut Criterion) {
    for floats in FLOATS {
        let mut group = c.benchmark_group(format!("loader/arrays/{floats}"));
        group.throughput(Throughput::Bytes((records(floats) * floats * 4) as u64));
        for (form, mut loader) in FORMS.iter().zip(loaders(floats)) {
            group.bench_function(*form, |b| b.iter(|| run(&mut loader)));
        }
        group.finish();
    }
}

/// Prints the same measurements as a table.
pub(crate) fn in_turn(rounds: usize) {
    println!(
        "MB/s of floats: best (median) of {rounds} runs; speed as a part of that of `list`: best (median)"
    );
    for floats in FLOATS {
        let mut loaders = loaders(floats);
        let times = turns::take(loaders.len(), rounds, |form| {
            let start = Instant::now();
            assert_eq!(run(&mut loaders[form]), records(floats));
            start.elapsed()
        });
        let speed =
            |time: std::time::Duration| (records(floats) * floats * 4) as f64 / time.as_secs_f64() / 1e6;
        for (form, t) in FORMS.iter().zip(&times) {
            println!(
                "{floats:6} {form:8} {:8.0} ({:8.0})  {:.3} ({:.3})",
                speed(t.best),
                speed(t.median),
                speed(t.best) / speed(times[0].best),
                speed(t.median) / speed(times[0].median),
            );
        }
    }
}
