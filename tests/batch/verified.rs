//! Rows are verified before they are read.

use std::cell::Cell;
use tfseek::batch::{BatchParser, Row};
use tfseek::error::At;
use tfseek::example::FeatureBuf;
use tfseek::schema::{DType, FeatureSpec, Schema};
use tfseek::{Error, ErrorKind, ExampleBuilder, Result, SequenceExampleBuilder};

/// A row that counts its verifications, and may fail them.
struct Counted {
    payload: Vec<u8>,
    sound: bool,
    verified: Cell<usize>,
}

impl Row for Counted {
    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn at(&self) -> At<'_> {
        let mut at = At::NOWHERE;
        at.record = Some(77);
        at
    }

    fn verify(&self) -> Result<()> {
        self.verified.set(self.verified.get() + 1);
        if self.sound { Ok(()) } else { Err(Error::from(ErrorKind::CorruptData { computed: 1, stored: 2 })) }
    }
}

fn rows(payloads: impl IntoIterator<Item = Vec<u8>>) -> Vec<Counted> {
    payloads.into_iter().map(|payload| Counted { payload, sound: true, verified: Cell::new(0) }).collect()
}

#[test]
fn each_row_is_verified_once_and_no_row_after_a_refused_one() {
    let spec = FeatureSpec::var_len(DType::Int64);
    let example = Schema::example().feature("a", spec.clone()).build().unwrap();
    let lists =
        Schema::sequence_example().feature("a", spec.clone()).feature_list("b", spec).build().unwrap();
    let payload = |sequence: bool, len: usize| {
        let values = vec![300; len];
        if sequence {
            SequenceExampleBuilder::new().feature_list("b", vec![FeatureBuf::Int64(values)]).encode().unwrap()
        } else {
            ExampleBuilder::new().int64("a", values).encode().unwrap()
        }
    };
    for (schema, sequence) in [(example, false), (lists, true)] {
        let parser = BatchParser::new(&schema);
        // Payloads from a few bytes to more than a block.
        for len in [0, 3, 1000, 100_000, 300_000] {
            let mut rows = rows((0..150).map(|k| payload(sequence, if k % 50 == 1 { len } else { 1 })));
            parser.parse(&rows).unwrap();
            assert!(rows.iter().all(|row| row.verified.get() == 1));
            rows[101].sound = false;
            let e = parser.parse(&rows).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::CorruptData { computed: 1, stored: 2 }), "{e}");
            assert_eq!((e.location().row, e.location().record), (Some(101), Some(77)));
            let verified = |row: &Counted| row.verified.get();
            assert!(rows[..=101].iter().all(|row| verified(row) == 2));
            assert!(rows[102..].iter().all(|row| verified(row) == 1));
        }
    }
}
