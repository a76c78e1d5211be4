//! Property of the batch parser: a parse gives the same arrays as the naive twin, or an error in the same
//! row.

use super::arrays::Arrays;
use super::rng::Rng;
use super::shaped;
use super::twin_parse::{self, DecodedRow, FaultyRow, Form};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tfseek::batch::{Batch, BatchParser, Row as PayloadRow};
use tfseek::error::Category;
use tfseek::io::Region;
use tfseek::schema::Schema;
use tfseek::{Error, Result};

/// The result of a parse that agrees with the twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The same arrays.
    Same,
    /// An error in the same row, of this category.
    Refused(Category),
    /// An error in a row that is malformed in a part that the schema does not use. Such a row may be refused
    /// (R4).
    RefusedElsewhere,
    /// A success for more rows in one record than the twin supports.
    Large,
}

/// The twin's result for a batch of payloads.
pub struct Want {
    rows: Vec<DecodedRow>,
    form: Form,
    /// The arrays, or the error of the first row that is faulty, or malformed in a part that the schema uses.
    arrays: Result<Arrays, FaultyRow>,
}

impl Want {
    /// Parses the payloads with the twin.
    pub fn new<P: AsRef<[u8]>>(schema: &Schema, payloads: &[P], form: Form) -> Want {
        let rows: Vec<DecodedRow> =
            payloads.iter().map(|payload| twin_parse::decode(schema, payload.as_ref())).collect();
        let messages: Vec<_> = rows
            .iter()
            .map_while(|row| match row {
                DecodedRow::Whole(message) | DecodedRow::Elsewhere(message) => Some(message.clone()),
                DecodedRow::Malformed => None,
            })
            .collect();
        let malformed = messages.len();
        let fault = FaultyRow { row: malformed, any_of: vec![Category::MalformedProto] };
        let arrays = if malformed == rows.len() {
            twin_parse::parse(schema, &messages, form)
        } else if malformed == 0 {
            Err(fault)
        } else {
            // A lower row may be faulty.
            match twin_parse::parse(schema, &messages, form) {
                Err(lower) => Err(lower),
                Ok(_) => Err(fault),
            }
        };
        Want { rows, form, arrays }
    }

    /// Returns the twin's arrays, or `None` if its result is an error.
    pub fn arrays(&self) -> Option<&Arrays> {
        self.arrays.as_ref().ok()
    }

    /// Compares the result of a parse with the twin's. `Err` describes the difference.
    pub fn compare(&self, found: &Result<Batch>) -> Result<Outcome, String> {
        match (found, &self.arrays) {
            (Ok(batch), Ok(want)) => {
                if !self.form.single && batch.rows() != self.rows.len() {
                    return Err(format!("{} rows instead of {}", batch.rows(), self.rows.len()));
                }
                match Arrays::from(batch).difference(want) {
                    same if same.is_empty() => Ok(Outcome::Same),
                    difference => Err(difference),
                }
            }
            (Ok(_), Err(FaultyRow { any_of, .. })) if *any_of == [Category::TooLarge] => Ok(Outcome::Large),
            (Ok(_), Err(fault)) => Err(format!("found no error, want {fault:?}")),
            (Err(e), want) => self.error(e, want.as_ref().err()),
        }
    }

    fn error(&self, e: &Error, want: Option<&FaultyRow>) -> Result<Outcome, String> {
        let wrong = || format!("found {e:?}\nwant {want:?}");
        let Some(category) = e.category() else { return Err(wrong()) };
        let row = match (e.location().row, self.form.single) {
            (Some(row), false) => row,
            (None | Some(0), true) => 0,
            _ => return Err(wrong()),
        };
        match want {
            Some(fault) if row == fault.row => {
                let malformed = self.rows[row] == DecodedRow::Malformed;
                let elsewhere = matches!(self.rows[row], DecodedRow::Elsewhere(_));
                let expected = fault.any_of.contains(&category)
                    // The twin cannot read a malformed payload to its end, so it does not know the other
                    // faults of the row.
                    || malformed && category != Category::TooLarge && category != Category::BadSpec
                    || elsewhere && category == Category::MalformedProto;
                if expected { Ok(Outcome::Refused(category)) } else { Err(wrong()) }
            }
            fault => {
                let lower = fault.is_none_or(|fault| row < fault.row);
                let elsewhere = matches!(self.rows.get(row), Some(DecodedRow::Elsewhere(_)));
                if lower && elsewhere && category == Category::MalformedProto {
                    Ok(Outcome::RefusedElsewhere)
                } else {
                    Err(wrong())
                }
            }
        }
    }
}

/// Returns true if two errors have the same category, reason and location. What a message says of other
/// records depends on those before.
pub fn same_error(a: &Error, b: &Error) -> bool {
    let place = |e: &Error| {
        let at = e.location();
        (at.path.clone(), at.record, at.offset, at.feature.clone(), at.row, at.step)
    };
    a.category() == b.category()
        && place(a) == place(b)
        && format!("{:?}", a.kind()) == format!("{:?}", b.kind())
}

/// Returns true if two results are equal. Errors are compared by [`same_error`].
pub fn same_result(a: &tfseek::Result<Batch>, b: &tfseek::Result<Batch>) -> bool {
    match (a, b) {
        (Err(a), Err(b)) => same_error(a, b),
        _ => format!("{a:?}") == format!("{b:?}"),
    }
}

/// A batch as a fuzz target reads it.
pub struct Input {
    /// Options, one bit each.
    pub options: u8,
    /// Seed of the schema.
    pub seed: u16,
    pub payloads: Vec<Vec<u8>>,
}

impl Input {
    pub const SEQUENCE: u8 = 1;
    pub const SINGLE: u8 = 2;
    pub const CONTIGUOUS: u8 = 16;
    pub const REGIONS: u8 = 32;
    /// A schema with arrays in byte strings, of Examples.
    pub const ARRAYS: u8 = 64;

    /// Maximum number of rows: more than a block of the parser, but few enough that large results stay within
    /// the limit together.
    const MAX_ROWS: usize = 80;

    pub fn schema(&self) -> Schema {
        let mut rng = Rng::new(self.seed.into());
        match self.options & Input::ARRAYS {
            0 => shaped::schema(&mut rng, self.options & Input::SEQUENCE != 0),
            _ => shaped::schema_of_arrays(&mut rng),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.options];
        bytes.extend(self.seed.to_le_bytes());
        for payload in &self.payloads {
            bytes.extend((payload.len() as u16).to_le_bytes());
            bytes.extend(payload);
        }
        bytes
    }

    /// Reads an input from any bytes.
    pub fn read(bytes: &[u8]) -> Input {
        let mut rest = bytes.iter().copied();
        let mut byte = || rest.next();
        let options = byte().unwrap_or(0);
        let seed = u16::from_le_bytes([byte().unwrap_or(0), byte().unwrap_or(0)]);
        let mut payloads = Vec::new();
        while let (Some(low), true) = (byte(), payloads.len() < Input::MAX_ROWS) {
            let len = u16::from_le_bytes([low, byte().unwrap_or(0)]);
            payloads.push((0..len).map_while(|_| byte()).collect());
        }
        Input { options, seed, payloads }
    }
}

/// Checks that the parser and its twin agree on the batch that these bytes describe. The batch is parsed
/// twice, because the second parse uses the key order learned in the first.
pub fn parse(data: &[u8]) {
    let input = Input::read(data);
    let has = |option| input.options & option != 0;
    let (schema, payloads) = (input.schema(), &input.payloads);
    let form = Form { single: has(Input::SINGLE) && payloads.len() == 1 };
    let parser = BatchParser::new(&schema).contiguous_bytes(has(Input::CONTIGUOUS)).limit(64 << 20);
    let regions: Vec<Region> = payloads.iter().map(|payload| Region::new(payload.clone())).collect();
    let run = || match (has(Input::REGIONS), form.single) {
        (false, false) => parser.parse(payloads),
        (false, true) => parser.parse_single(&payloads[0]),
        (true, false) => parser.parse(&regions),
        (true, true) => parser.parse_single(&regions[0]),
    };
    let want = Want::new(&schema, payloads, form);
    let first = run();
    for found in [&first, &run()] {
        if let Err(difference) = want.compare(found) {
            panic!("{schema:?}\n{payloads:?}\n{difference}");
        }
        if let Err(e) = found {
            assert!(e.is_data() && !e.to_string().is_empty());
        }
    }
}

/// Parses the rows in batches on a number of threads that share the parser. The error is that of the first
/// batch that fails.
pub fn parse_batches<R: PayloadRow + Sync>(
    parser: &BatchParser,
    rows: &[R],
    batch_size: usize,
    threads: usize,
) -> Result<Vec<Batch>> {
    let (next, parsed) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(rows) = rows.chunks(batch_size).nth(next.fetch_add(1, Ordering::Relaxed)) {
                    let batch = parser.parse(rows);
                    parsed.lock().unwrap().insert(rows.as_ptr().addr(), batch);
                }
            });
        }
    });
    parsed.into_inner().unwrap().into_values().collect()
}
