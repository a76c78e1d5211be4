//! Property of the prediction of records: a parser that has learned from other records gives the results of
//! one that has seen none.

use super::script::Script;
use crate::agree_parse::same_error;
use crate::alike::{features, record, schema, short_record, shuffle};
use crate::rng::Rng;
use tfseek::batch::BatchParser;
use tfseek::schema::Schema;

/// Rows of a block of the parser. A parser learns at the end of a block, so nothing is predicted in the
/// first.
const BLOCK: usize = 64;

/// Checks the records that a script makes of those of one writer, or two: with changed bytes, cut, with
/// missing and repeated keys, or in unusual encodings.
pub fn predicted(data: &[u8]) {
    let mut script = Script(data);
    let (options, seed) = (script.u8(), script.u16());
    let rng = &mut Rng::new(seed as u64);
    let mut features = features(rng);
    features.truncate(1 + usize::from(options >> 3) % features.len());
    let mut other = features.clone();
    shuffle(rng, &mut other);
    let (two, short) = (options & 1 != 0, options & 2 != 0);
    let schema = schema(&features);
    let one = |rng: &mut Rng, odd| {
        let features = if two && rng.chance(128) { &other } else { &features };
        if short { short_record(rng, features, odd) } else { record(rng, features, odd) }
    };
    let parser = BatchParser::new(&schema).presence(true);
    let learned: Vec<_> = (0..BLOCK).map(|_| one(rng, 0)).collect();
    parser.parse(&learned).expect("records in the usual encoding");
    while !script.is_empty() {
        let rows: Vec<_> = (0..1 + usize::from(script.u8()) % BLOCK)
            .map(|_| {
                let op = script.u8();
                let mut row = one(rng, if op % 4 == 1 { op } else { 0 });
                if op % 4 >= 2 {
                    Script(script.take(5 * usize::from(op % 4 - 1))).edit(&mut row);
                }
                row
            })
            .collect();
        check(&parser, &schema, rows);
    }
}

/// Compares the result, and then those without the lowest refused row, with a parser that has learned
/// nothing.
fn check(parser: &BatchParser, schema: &Schema, mut rows: Vec<Vec<u8>>) {
    loop {
        let fresh = BatchParser::new(schema).presence(true);
        match (parser.parse(&rows), fresh.parse(&rows)) {
            (Ok(found), Ok(want)) => {
                assert_eq!(format!("{found:?}"), format!("{want:?}"), "{rows:02x?}");
                for (name, _) in want.columns() {
                    assert_eq!(found.presence(name), want.presence(name), "{name}: {rows:02x?}");
                }
                return;
            }
            (Err(found), Err(want)) => {
                assert!(same_error(&found, &want), "found {found:?}, want {want:?}: {rows:02x?}");
                rows.remove(found.location().row.expect("a row of the batch"));
            }
            (found, want) => panic!("found {found:?}, want {want:?}: {rows:02x?}"),
        }
    }
}
