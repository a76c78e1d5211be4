//! Compares tfseek's results with TensorFlow's, bit for bit.
//!
//! Skipped with a message unless `TFSEEK_TF_PYTHON` names a Python that can import TensorFlow.
//! `TFSEEK_TF_PAYLOADS` sets the number of payloads (default 2,000) and `TFSEEK_TF_SEED` their seed.
//! `TFSEEK_TF_CORPORA` lists folders, separated by `:`, of `KIND.tfrecord` files with `KIND.spec.json`.
//! docs/differential.md describes the comparisons and the last result.

mod columns;
mod decoding;
mod departures;
mod messages;
mod refusals;
mod round;
mod schemas;
mod tally;
mod tensor;
mod worker;

use round::Round;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tally::Tally;
use tfseek::schema::Schema;
use tfseek::stream::Stream;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::spelled;
use worker::Worker;

/// What the tests need.
pub(crate) const TENSORFLOW: &str = "TFSEEK_TF_PYTHON, a Python with TensorFlow";

/// Number of payloads that share a schema.
const ROUND: usize = 200;
const SIZES: [usize; 4] = [1, 3, 64, 256];

/// Only one TensorFlow runs at a time: it takes a core and half a gigabyte.
static ONE: Mutex<()> = Mutex::new(());

fn start(test: &str) -> Option<(Worker, MutexGuard<'static, ()>)> {
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let python = std::env::var("TFSEEK_TF_PYTHON").unwrap_or_default();
    let worker = if python.is_empty() { None } else { Worker::start(&python) };
    match &worker {
        None => tfseek_testkit::skipped(TENSORFLOW),
        Some(worker) => print_uncaptured(&format!("{test}: {}", worker.versions)),
    }
    Some((worker?, guard))
}

/// Prints to the terminal, also if the test passes.
fn print_uncaptured(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn mutated_payloads() {
    let Some((mut worker, _guard)) = start("mutated payloads") else { return };
    let (payloads, seed) = (number("TFSEEK_TF_PAYLOADS", 2_000), number("TFSEEK_TF_SEED", 1));
    let mut tally = Tally::default();
    for k in 0..payloads.div_ceil(ROUND as u64) {
        let mut rng = Rng::new(seed << 32 | k);
        let sequence = k % 3 == 2;
        let schema = if sequence { schemas::sequence(&mut rng) } else { schemas::example(&mut rng) };
        let payloads = (0..ROUND).map(|_| payload(&mut rng, &schema)).collect();
        let mut round = Round::new(&mut worker, &mut tally, schema, format!("seed {seed}, round {k}"));
        round.payloads(&mut rng, payloads);
        tally.count("schemas", 1);
    }
    tally.count("TensorFlow crashed", worker.crashes as usize);
    let (all, accepted) = (tally.get("payloads"), tally.get("payloads that protobuf accepts"));
    assert!(accepted > all / 4, "{tally}");
    tally.finish();
}

#[test]
fn invalid_schemas() {
    let Some((mut worker, _guard)) = start("invalid schemas") else { return };
    let mut tally = Tally::default();
    let count = number("TFSEEK_TF_PAYLOADS", 2_000) / 10;
    refusals::schemas(&mut worker, &mut tally, &mut Rng::new(number("TFSEEK_TF_SEED", 1)), count);
    tally.count("TensorFlow crashed", worker.crashes as usize);
    tally.finish();
}

fn payload(rng: &mut Rng, schema: &Schema) -> Vec<u8> {
    if schema.is_sequence() {
        let message = messages::sequence(rng, schema);
        spelled::sequence(rng, &message)
    } else {
        let message = messages::example(rng, schema);
        spelled::example(rng, &message)
    }
}

#[test]
fn corpora() {
    let Some((mut worker, _guard)) = start("corpora") else { return };
    let Ok(folders) = std::env::var("TFSEEK_TF_CORPORA") else {
        return tfseek_testkit::skipped("TFSEEK_TF_CORPORA");
    };
    let mut tally = Tally::default();
    for folder in std::env::split_paths(&folders) {
        let mut specs: Vec<_> = std::fs::read_dir(&folder)
            .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with(".spec.json"))
            .collect();
        specs.sort();
        for spec in specs {
            corpus(&mut worker, &mut tally, &spec);
        }
    }
    tally.count("TensorFlow crashed", worker.crashes as usize);
    tally.finish();
}

fn corpus(worker: &mut Worker, tally: &mut Tally, spec: &Path) {
    let schema = Schema::from_json(&std::fs::read_to_string(spec).unwrap()).unwrap();
    let records = spec.with_extension("").with_extension("tfrecord");
    let mut stream = Stream::open(&records).unwrap();
    let mut payloads = Vec::new();
    while let Some(record) = stream.next().unwrap() {
        payloads.push(record.payload().to_vec());
    }
    tally.count("corpora", 1);
    Round::new(worker, tally, schema, records.display().to_string()).corpus(payloads, &SIZES);
}
