//! No panic, and no allocation beyond a bound in terms of the bytes of the input and of the result, for
//! arbitrary payloads. `TFSEEK_CASES` sets the number of payloads.

use tfseek::Result;
use tfseek::batch::{Batch, BatchParser, Column, RowSplits, Values};
use tfseek::io::Region;
use tfseek::schema::{FeatureSpec, Partition, Schema};
use tfseek_testkit::alloc;
use tfseek_testkit::payloads;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shaped::{self, Style};

/// Limits for the memory that a call may hold: per byte of input and of result, per call, per column, and per
/// column and row.
const PER_INPUT_BYTE: u64 = 24;
const PER_RESULT_BYTE: u64 = 4;
const PER_CALL: u64 = 16 << 10;
const PER_COLUMN: u64 = 4 << 10;
const PER_COLUMN_AND_ROW: u64 = 64;

/// `CAP`: maximum size of a single allocation. `LIMIT`: maximum padding or number of ragged rows that a
/// payload may request.
const CAP: usize = 64 << 20;
const LIMIT: u64 = 1 << 20;

fn cases() -> usize {
    match std::env::var("TFSEEK_CASES") {
        Ok(cases) => cases.parse().unwrap(),
        Err(_) => 200_000,
    }
}

/// Returns the size of a batch in bytes.
fn size(batch: &Batch) -> u64 {
    let values = |values: &Values| match values {
        Values::Int64(v) => 8 * v.len(),
        Values::Float32(v) => 4 * v.len(),
        // Location, length, and bytes of each string.
        Values::Bytes(v) => v.iter().map(|value| 24 + value.len()).sum(),
        Values::Array(v) => v.dtype().size().unwrap() * v.len(),
    };
    let columns = batch.columns().chain(batch.feature_lists()).map(|(_, column)| match column {
        Column::Dense(of) => values(&of.values),
        Column::Optional(of) => values(&of.values) + of.present.len(),
        Column::Sparse(of) => values(&of.values) + 8 * of.indices.len(),
        Column::Ragged(of) => {
            let splits = of.row_splits.iter().map(|splits| match splits {
                RowSplits::Int32(v) => 4 * v.len(),
                RowSplits::Int64(v) => 8 * v.len(),
            });
            values(&of.values) + splits.sum::<usize>()
        }
    });
    columns.sum::<usize>() as u64
}

#[derive(Default)]
struct Seen {
    payloads: usize,
    good: usize,
    bad: usize,
    worst: f64,
}

/// Parses some batches of one schema with a new parser.
fn parse_batches(seed: u64, seen: &mut Seen) {
    let mut rng = Rng::new(seed);
    let rng = &mut rng;
    let sequence = rng.chance(100);
    let schema = shaped::schema(rng, sequence);
    let contiguous = rng.chance(128);
    for _ in 0..8 {
        let n = rng.pick(&[1, 1, 1, 2, 3, 8, 65]);
        let style = Style {
            odd: rng.pick(&[0, 10, 60]),
            spoilt: rng.pick(&[0, 30]),
            damaged: rng.pick(&[0, 255, 255]),
            own_order: rng.chance(128),
        };
        let payloads: Vec<Vec<u8>> = (0..n)
            .map(|_| {
                let payload = if rng.chance(16) {
                    payloads::mutated(rng, sequence)
                } else {
                    shaped::payload(rng, &schema, style)
                };
                if rng.chance(style.damaged) { falsify(rng, payload) } else { payload }
            })
            .collect();
        let regions: Vec<Region> = payloads.iter().map(|payload| Region::new(payload.clone())).collect();
        let parser = BatchParser::new(&schema).contiguous_bytes(contiguous).limit(LIMIT);
        let borrow = rng.chance(128);
        let single = n == 1 && rng.chance(128);
        let (found, held) = alloc::most_held(CAP, || match (borrow, single) {
            (true, true) => parser.parse_single(&regions[0]),
            (true, false) => parser.parse(&regions),
            (false, true) => parser.parse_single(&payloads[0]),
            (false, false) => parser.parse(&payloads),
        });
        let input: u64 = payloads.iter().map(|payload| payload.len() as u64).sum();
        let allowed = bound(&schema, input, n as u64, &found);
        assert!(
            held <= allowed,
            "seed {seed}: {held} bytes for {input}, allowed {allowed}: {found:?}\n{schema:?}"
        );
        seen.worst = seen.worst.max(held as f64 / allowed as f64);
        seen.payloads += n;
        *if found.is_ok() { &mut seen.good } else { &mut seen.bad } += 1;
        // Printing must not panic either.
        if let Err(e) = found {
            assert!(e.category().is_some(), "seed {seed}: {e:?}");
            assert!(e.to_string().len() < 400, "seed {seed}: {e}");
        }
    }
}

/// Returns the number of bytes that a call may hold.
fn bound(schema: &Schema, input: u64, rows: u64, found: &Result<Batch>) -> u64 {
    let result = match found {
        Ok(batch) => size(batch),
        Err(_) => allocated_before_error(schema, rows),
    };
    let columns = (schema.features().len() + schema.feature_lists().len()) as u64;
    let of_columns = columns * (PER_COLUMN + PER_COLUMN_AND_ROW * rows);
    PER_CALL + PER_INPUT_BYTE * input + PER_RESULT_BYTE * result + of_columns
}

/// Returns the memory that may have been allocated before an error was found, in addition to the share of the
/// input: arrays of fixed shape, and ragged rows up to the limit.
fn allocated_before_error(schema: &Schema, rows: u64) -> u64 {
    let specs = schema.features().values().chain(schema.feature_lists().values());
    let of_specs = specs.map(|spec| match spec {
        FeatureSpec::FixedLen { shape, .. } => rows * 16 * shape.iter().product::<usize>() as u64,
        FeatureSpec::Optional { .. } => rows * 16,
        FeatureSpec::Ragged { partitions, .. } => {
            let ids = partitions.iter().filter(|partition| matches!(partition, Partition::ValueRowIds(_)));
            ids.count() as u64 * LIMIT
        }
        _ => 0,
    });
    of_specs.sum()
}

/// Replaces bytes by false lengths and numbers.
fn falsify(rng: &mut Rng, mut payload: Vec<u8>) -> Vec<u8> {
    const FALSE_LENGTHS: &[&[u8]] = &[
        b"\x7f",
        b"\xff\x7f",
        b"\xff\xff\xff\xff\x07",
        b"\xff\xff\xff\xff\x0f",
        b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x0a\xff\xff\xff\xff\x07",
        b"\x12\x80\x80\x80\x40",
    ];
    if rng.chance(100) {
        let at = rng.below(payload.len() + 1);
        let replacement = rng.pick(FALSE_LENGTHS);
        payload.splice(at..(at + 1).min(payload.len()), replacement.iter().copied());
    }
    payload
}

#[test]
fn arbitrary_payloads_stay_within_the_bound() {
    let mut seen = Seen::default();
    for seed in 0.. {
        parse_batches(seed, &mut seen);
        if seen.payloads >= cases() {
            break;
        }
    }
    let Seen { payloads, good, bad, worst } = seen;
    println!(
        "{payloads} payloads, {good} batches parsed, {bad} refused, at most {worst:.2} of the allowed memory"
    );
    assert!(good > bad / 20 && bad > good / 20, "{good} {bad}");
}

/// The counter of held memory works; otherwise the bound would always hold.
#[test]
fn held_memory_is_counted() {
    let ((), held) = alloc::most_held(CAP, || drop(vec![0u8; 1 << 20]));
    assert_eq!(held, 1 << 20);
}
