//! The batch parser agrees with its naive twin on random schemas, for payloads that are well-formed, odd,
//! faulty and damaged. `TFSEEK_CASES` sets the number of payloads per test.

use std::collections::HashMap;
use tfseek::Result;
use tfseek::batch::{Batch, BatchParser};
use tfseek::io::Region;
use tfseek::schema::Schema;
use tfseek_testkit::agree_parse::{Outcome, Want, parse_batches, same_error};
use tfseek_testkit::arrays::Arrays;
use tfseek_testkit::rng::Rng;
use tfseek_testkit::shaped::{self, Style};
use tfseek_testkit::twin_parse::Form;

/// Batch sizes around the 64 rows that the parser processes at a time, and others.
const SIZES: [usize; 16] = [0, 1, 2, 3, 5, 17, 40, 63, 64, 65, 100, 127, 128, 129, 150, 200];

fn cases() -> usize {
    match std::env::var("TFSEEK_CASES") {
        Ok(cases) => cases.parse().unwrap(),
        Err(_) => 100_000,
    }
}

/// Parses a few batches of one schema with one parser. Tallies the outcomes and returns the number of
/// payloads.
fn session(seed: u64, schema: fn(&mut Rng) -> Schema, tally: &mut HashMap<Outcome, usize>) -> usize {
    let mut rng = Rng::new(seed);
    let rng = &mut rng;
    let schema = schema(rng);
    let form = Form { single: false };
    let contiguous = rng.chance(128);
    let make = || BatchParser::new(&schema).contiguous_bytes(contiguous);
    let parser = make();
    let (odd, own_order) = (rng.pick(&[0, 0, 3, 20, 60]), rng.chance(100));
    let (mut all, mut kept, mut payloads_made): (Vec<Vec<u8>>, Vec<(Batch, Arrays)>, _) = (vec![], vec![], 0);
    for batch in 0..1 + rng.below(6) {
        let n = rng.pick(&SIZES);
        // Payloads with no faults, with one or two, or with many.
        let rare = (400 / (n + 1)).min(255) as u8;
        let style = Style {
            odd,
            own_order,
            spoilt: rng.pick(&[0, 0, 0, 0, 0, rare, 60]),
            damaged: rng.pick(&[0, 0, 0, 0, 0, rare, 60]),
        };
        let payloads: Vec<Vec<u8>> = (0..n).map(|_| shaped::payload(rng, &schema, style)).collect();
        let want = Want::new(&schema, &payloads, form);
        let found = parse_with_some_row_type(rng, &parser, &payloads);
        let what = || format!("seed {seed}, batch {batch} of {n} rows: {schema:?}\n{style:?}");
        match want.compare(&found) {
            Ok(outcome) => *tally.entry(outcome).or_default() += 1,
            Err(difference) => panic!("{}\n{difference}", what()),
        }
        singles(rng, &parser, &schema, &payloads, Form { single: true }, &what);
        if let Ok(found) = found
            && rng.chance(100)
        {
            let arrays = Arrays::from(&found);
            kept.push((found, arrays));
        }
        if rng.chance(64) && !kept.is_empty() {
            kept.swap_remove(0);
        }
        payloads_made += n;
        all.extend(payloads);
    }
    // Batches that were kept alive are unchanged.
    for (batch, arrays) in &kept {
        Arrays::from(batch).assert_eq(arrays, format!("seed {seed}: a batch that was kept alive"));
    }
    if rng.chance(64) {
        parallel(rng, &make(), &all, seed);
    }
    payloads_made
}

fn parse_with_some_row_type(rng: &mut Rng, parser: &BatchParser, payloads: &[Vec<u8>]) -> Result<Batch> {
    match rng.below(5) {
        0 => parser.parse(payloads),
        1 => parser.parse(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>()),
        2 => parser.parse(&payloads.iter().map(|payload| Region::new(payload.clone())).collect::<Vec<_>>()),
        3 => {
            // Several regions with several payloads each.
            let mut rows = Vec::new();
            for payloads in payloads.chunks(1 + rng.below(40)) {
                let region = Region::new(payloads.concat());
                let mut at = 0;
                for payload in payloads {
                    rows.push(region.slice(at..at + payload.len()).unwrap());
                    at += payload.len();
                }
            }
            parser.parse(&rows)
        }
        _ => {
            let mut stream = Vec::new();
            for payload in payloads {
                tfseek::frame::put_record(&mut stream, payload).unwrap();
            }
            let set = tfseek::Mapped::from_bytes(stream).unwrap();
            let records: Vec<_> = set.iter().map(Result::unwrap).collect();
            let batch = parser.parse(&records);
            if let Err(e) = &batch {
                assert_eq!(e.location().record, e.location().row.map(|row| row as u64));
            }
            batch
        }
    }
}

fn singles(
    rng: &mut Rng,
    parser: &BatchParser,
    schema: &Schema,
    payloads: &[Vec<u8>],
    form: Form,
    what: &dyn Fn() -> String,
) {
    for _ in 0..payloads.len().min(2) {
        let payload = rng.below(payloads.len());
        let payload = &payloads[payload..=payload];
        let want = Want::new(schema, payload, form);
        if let Err(difference) = want.compare(&parser.parse_single(&payload[0])) {
            panic!("{}\nalone\n{difference}", what());
        }
    }
}

/// Parsing many batches on several threads gives the same batches.
fn parallel(rng: &mut Rng, parser: &BatchParser, payloads: &[Vec<u8>], seed: u64) {
    let batch_size = rng.pick(&[1, 7, 63, 64, 65, 100, 1000]);
    let serial: Result<Vec<Batch>> = payloads.chunks(batch_size).map(|rows| parser.parse(rows)).collect();
    for threads in 1..=3 {
        match (parse_batches(parser, payloads, batch_size, threads), &serial) {
            (Ok(found), Ok(serial)) => {
                assert_eq!(found.len(), serial.len());
                for (k, (found, serial)) in found.iter().zip(serial).enumerate() {
                    Arrays::from(found).assert_eq(
                        &Arrays::from(serial),
                        format!("seed {seed}: batch {k}, threads {threads}"),
                    );
                }
            }
            (Err(found), Err(serial)) => {
                assert!(
                    same_error(&found, serial),
                    "seed {seed}, threads {threads}: {found:?} and {serial:?}"
                );
            }
            (found, serial) => panic!("seed {seed}, threads {threads}: {found:?} and {serial:?}"),
        }
    }
}

fn sessions(schema: fn(&mut Rng) -> Schema) {
    let (mut made, mut tally) = (0, HashMap::new());
    for seed in 0.. {
        made += session(seed, schema, &mut tally);
        if made >= cases() {
            break;
        }
    }
    println!("{made} payloads: {tally:?}");
    let same = tally[&Outcome::Same];
    let refused: usize =
        tally.iter().map(|(of, times)| if let Outcome::Refused(_) = of { *times } else { 0 }).sum();
    // The test is void if all batches pass or all fail.
    assert!(same > refused / 2 && refused > same / 20, "{tally:?}");
}

#[test]
fn examples() {
    sessions(|rng| shaped::schema(rng, false));
}

#[test]
fn sequence_examples() {
    sessions(|rng| shaped::schema(rng, true));
}

#[test]
fn arrays_in_byte_strings() {
    sessions(shaped::schema_of_arrays);
}
