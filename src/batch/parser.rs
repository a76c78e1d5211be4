//! `BatchParser`: a schema, ready to be used on any number of batches.

use super::assemble::{Ends, Extra, Misfit, Scraps};
use super::bytes::{Origins, Owners, Rings};
use super::column::{Column, Values};
use super::compile::{Need, Part, Plan};
use super::decode::{Bad, Filled, Tile};
use super::keys::Keys;
use super::locate::{Holds, Scrutiny, TILE, Table, locate};
use super::output::{Batch, Home};
use super::pool::Ring;
use super::row::Row;
use crate::error::{Error, ErrorKind, Result};
use crate::example::Rules;
use crate::io::Region;
use crate::io::threads;
use crate::schema::Schema;
use crate::wire::MAX_LEN;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Parses records into columns by a schema, as `tf.io.parse_example` and `tf.io.parse_sequence_example` do.
///
/// A parser learns the order of the keys and keeps the memory of batches that were dropped: make one and use it for all
/// batches, from as many threads as you like. In the steady state nothing is allocated. Cost: about 30 ns for a feature
/// with a few values, then the speed of memory.
///
/// ```
/// use tfseek::batch::BatchParser;
/// use tfseek::{DType, ExampleBuilder, FeatureSpec, Schema};
/// let schema = Schema::example()
///     .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
///     .feature("tokens", FeatureSpec::var_len(DType::Int64))
///     .build()?;
/// let parser = BatchParser::new(&schema);
///
/// let rows = [
///     ExampleBuilder::new().int64("label", [3]).int64("tokens", [10, 11]).encode()?,
///     ExampleBuilder::new().int64("label", [4]).encode()?,
/// ];
/// let batch = parser.parse(&rows)?;
/// let label = batch.get("label").and_then(|column| column.dense()).unwrap();
/// assert_eq!((label.values.int64().unwrap(), &*label.shape), (&[3, 4][..], &[2][..]));
/// let tokens = batch.get("tokens").and_then(|column| column.sparse()).unwrap();
/// assert_eq!((&*tokens.indices, &*tokens.dense_shape), (&[0, 0, 0, 1][..], &[2, 2][..]));
///
/// // One bad record is named.
/// let rows = [rows[0].clone(), ExampleBuilder::new().float("label", [3.0f32]).encode()?];
/// let e = parser.parse(&rows).unwrap_err();
/// assert_eq!(e.to_string(), "row 1 of the batch: feature \"label\": expected int64, found float");
/// # Ok::<(), tfseek::Error>(())
/// ```
pub struct BatchParser {
    plan: Arc<Plan>,
    home: Arc<Home>,
    benches: Mutex<Vec<Bench>>,
    full: bool,
    contiguous: bool,
    lenient: bool,
    limit: u64,
}

/// All that one parse at a time works with.
struct Bench {
    table: Table,
    features: PartBench,
    lists: PartBench,
    scraps: Scraps,
}

struct PartBench {
    keys: Keys,
    filled: Vec<Filled>,
    rings: Vec<Rings>,
    extras: Vec<Extra>,
    sealed: Vec<Option<Values>>,
    origins: Origins,
    /// Byte strings stay where they are.
    borrows: bool,
}

impl PartBench {
    fn new(part: &Part) -> PartBench {
        PartBench {
            keys: Keys::new(&part.slots),
            filled: part.slots.iter().map(|_| Filled::default()).collect(),
            rings: part.slots.iter().map(|_| Rings::default()).collect(),
            extras: part.columns.iter().map(|_| Extra::default()).collect(),
            sealed: Vec::new(),
            origins: Origins::default(),
            borrows: false,
        }
    }
}

/// The first row that is bad, and why.
struct Failure {
    row: usize,
    error: Error,
}

impl BatchParser {
    /// Bytes beyond which a column is refused that its values do not pay for.
    const LIMIT: u64 = 4 << 30;

    /// A parser for this schema. Checks only what it was asked for, copies byte strings only where it must, refuses sparse
    /// indices outside of their dimension.
    pub fn new(schema: &Schema) -> BatchParser {
        BatchParser {
            plan: Arc::new(Plan::new(schema)),
            home: Arc::default(),
            benches: Mutex::default(),
            full: false,
            contiguous: false,
            lenient: false,
            limit: BatchParser::LIMIT,
        }
    }

    /// Checks all of each payload, as protobuf's own decoder would: also features that the schema does not name, and that
    /// keys are UTF-8. By default those are skipped unread.
    #[must_use]
    pub fn validate_full(self, full: bool) -> BatchParser {
        BatchParser { full, ..self }
    }

    /// Copies byte strings into memory of the batch, one behind the other, also where it could refer to that of the rows.
    #[must_use]
    pub fn contiguous_bytes(self, contiguous: bool) -> BatchParser {
        BatchParser { contiguous, ..self }
    }

    /// Takes sparse indices that are negative or beyond their dimension, as TensorFlow does.
    #[must_use]
    pub fn lenient_sparse_index(self, lenient: bool) -> BatchParser {
        BatchParser { lenient, ..self }
    }

    /// The most bytes that a column may take which are not paid for by its values: a few records can ask for any amount of
    /// padding, or of empty ragged rows. 4 GiB by default.
    #[must_use]
    pub fn limit(self, bytes: u64) -> BatchParser {
        BatchParser { limit: bytes, ..self }
    }

    /// The records as one batch: the first dimension of each column is that of the rows.
    ///
    /// # Errors
    /// Of the lowest row that cannot be taken: [`ErrorKind::Wire`], [`ErrorKind::Feature`] or [`ErrorKind::TooLarge`], with
    /// the row, the feature, the step of a feature list, and the record's place where the row knows it.
    /// [`Error::category`] sorts them.
    pub fn parse<R: Row>(&self, rows: &[R]) -> Result<Batch> {
        self.run(rows, false)
    }

    /// One record, without the dimension of the rows: as `tf.io.parse_single_example` and
    /// `tf.io.parse_single_sequence_example`.
    ///
    /// # Errors
    /// As [`parse`](BatchParser::parse).
    pub fn parse_single<R: Row + ?Sized>(&self, row: &R) -> Result<Batch> {
        self.run(&[row], true)
    }

    /// The records in batches of `batch_size` rows, the last one shorter, parsed by `jobs` threads (0: one for each
    /// processor). Equal to [`parse`](BatchParser::parse) on each. Row numbers in errors are those in the batch.
    ///
    /// # Errors
    /// As [`parse`](BatchParser::parse), of the first batch that fails.
    ///
    /// # Panics
    /// If `batch_size` is 0.
    pub fn parse_batches<R: Row + Sync>(
        &self,
        rows: &[R],
        batch_size: usize,
        jobs: usize,
    ) -> Result<Vec<Batch>> {
        let batches = rows.len().div_ceil(batch_size);
        threads::each(jobs, batches, true, |k| {
            let rows = &rows[k * batch_size..];
            self.parse(&rows[..batch_size.min(rows.len())])
        })
    }

    fn run<R: Row>(&self, rows: &[R], single: bool) -> Result<Batch> {
        let bench = self.benches.lock().ok().and_then(|mut benches| benches.pop());
        let mut bench = bench.unwrap_or_else(|| Bench {
            table: Table::default(),
            features: PartBench::new(&self.plan.features),
            lists: PartBench::new(&self.plan.lists),
            scraps: Scraps::default(),
        });
        let parsed = self.run_on(&mut bench, rows, single);
        if let Ok(mut benches) = self.benches.lock() {
            benches.push(bench);
        }
        parsed
    }

    fn run_on<R: Row>(&self, bench: &mut Bench, rows: &[R], single: bool) -> Result<Batch> {
        let mut body = self.home.body();
        body.rows = rows.len();
        let Bench { table, features, lists, scraps } = bench;
        let (lists_too, plan) = (self.plan.sequence, &*self.plan);
        features.start(&plan.features);
        lists.start(&plan.lists);
        let borrow = |bench: &mut PartBench, part, regions: &mut Ring<Region>| {
            bench.borrows = !self.contiguous && bench.origins.find(rows, part, regions);
        };
        borrow(features, &plan.features, &mut body.regions);
        borrow(lists, &plan.lists, &mut body.list_regions);
        // A failure stops the rows behind it, not those before: the lowest row is the one to be named.
        let mut end = rows.len();
        let mut failure: Option<Error> = None;
        let mut first = 0;
        while first < end {
            let tile = &rows[first..end.min(first + TILE)];
            let mut tile_of = |holds, bench: &mut PartBench, part| {
                let fails = self.tile(holds, part, bench, table, rows, tile.len().min(end - first), first);
                if let Err(Failure { row, error }) = fails {
                    (end, failure) = (row, Some(error));
                }
            };
            tile_of(Holds::Features, features, &plan.features);
            if lists_too {
                tile_of(Holds::FeatureLists, lists, &plan.lists);
            }
            first += tile.len();
        }
        let mut misfit: Option<(usize, Error)> = None;
        let parts = [
            (features, &plan.features, &mut body.features, false),
            (lists, &plan.lists, &mut body.lists, true),
        ];
        for (bench, part, columns, is_lists) in parts {
            let mut worst = |e: Misfit| {
                if misfit.as_ref().is_none_or(|(row, _)| e.row < *row) {
                    let column = part.columns.get(e.column).map_or("", |column| &column.name);
                    let error = e.error.feature(column.as_bytes());
                    let error = e.step.into_iter().fold(error, Error::step);
                    misfit = Some((e.row, error));
                }
            };
            let mut ends = self.ends(bench, part, rows, scraps, end, single, is_lists);
            if failure.is_some() {
                ends.misfit().unwrap_or_else(&mut worst);
            } else {
                ends.columns(columns).unwrap_or_else(&mut worst);
                if is_lists && !single {
                    body.lengths.clear();
                    body.lengths.extend((0..part.columns.len()).map(|at| ends.lengths(at)));
                }
            }
            bench.end();
        }
        let error = match (misfit, failure) {
            (Some((row, error)), _) => named(error, row, rows, single),
            (None, Some(error)) => named(error, end, rows, single),
            (None, None) => return Ok(Batch::new(body, &self.plan, &self.home)),
        };
        // The body goes home.
        drop(Batch::new(body, &self.plan, &self.home));
        Err(error)
    }

    /// One tile of one part: finds the features of its rows, then fills slot after slot.
    #[allow(clippy::too_many_arguments)]
    fn tile<R: Row>(
        &self,
        holds: Holds,
        part: &Part,
        bench: &mut PartBench,
        table: &mut Table,
        rows: &[R],
        len: usize,
        first: usize,
    ) -> Result<(), Failure> {
        let scrutiny = Scrutiny { rules: Rules { lenient: false, utf8: self.full }, full: self.full };
        table.reset(len, part.slots.len());
        let mut failure = None;
        let mut good = len;
        for (k, row) in rows[first..first + len].iter().enumerate() {
            let payload = row.payload();
            let found = match payload.len() as u64 > MAX_LEN {
                true => Err(ErrorKind::TooLarge { len: payload.len() as u128, limit: MAX_LEN }.into()),
                false => locate(payload, holds, scrutiny, &mut bench.keys, table, k)
                    .map_err(|fault| fault.in_payload(payload).into()),
            };
            if let Err(error) = found {
                (good, failure) = (k, Some(Failure { row: first + k, error }));
                break;
            }
        }
        let context = self.plan.sequence;
        let owners = Owners { rows, part, origins: None };
        let slots = part.slots.iter().zip(&mut bench.filled).zip(&mut bench.rings);
        for (at, ((slot, filled), rings)) in slots.enumerate() {
            let tile = Tile { rows: &rows[first..first + good], first, total: rows.len(), table, context };
            let done = match holds {
                Holds::Features => filled.features(at, slot, &tile),
                Holds::FeatureLists => filled.lists(at, slot, &tile),
            };
            if let Err(Bad { row, step, fail }) = done {
                let error = fail.error(rows[first + row].payload(), &slot.key);
                let error = step.into_iter().fold(error, Error::step);
                (good, failure) = (row, Some(Failure { row: first + row, error }));
            } else if !bench.borrows && !matches!(slot.need, Need::Blocks { .. }) {
                // Blocks move when they are padded.
                filled.copy_strings(rings, &owners);
            }
        }
        failure.map_or(Ok(()), Err)
    }

    #[allow(clippy::too_many_arguments)]
    fn ends<'a, R: Row>(
        &'a self,
        bench: &'a mut PartBench,
        part: &'a Part,
        rows: &'a [R],
        scraps: &'a mut Scraps,
        good: usize,
        single: bool,
        lists: bool,
    ) -> Ends<'a, R> {
        Ends {
            owners: Owners { rows, part, origins: bench.borrows.then_some(&bench.origins) },
            filled: &mut bench.filled,
            rings: &mut bench.rings,
            sealed: &mut bench.sealed,
            extras: &mut bench.extras,
            scraps,
            rows: good,
            single,
            lists,
            limit: self.limit,
            lenient: self.lenient,
        }
    }
}

impl PartBench {
    fn start(&mut self, part: &Part) {
        for ((filled, rings), slot) in self.filled.iter_mut().zip(&mut self.rings).zip(&part.slots) {
            filled.start(rings.memory(slot.dtype));
        }
    }

    /// Lets go of what the batch has now.
    fn end(&mut self) {
        self.sealed.clear();
        self.origins.release();
    }
}

/// The error with the row's place.
#[cold]
fn named<R: Row>(error: Error, row: usize, rows: &[R], single: bool) -> Error {
    let error = match rows.get(row) {
        Some(at) => error.at(at.at()),
        None => error,
    };
    if single { error } else { error.row(row) }
}

impl fmt::Debug for BatchParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns =
            |part: &Part| part.columns.iter().map(|column| column.name.to_string()).collect::<Vec<_>>();
        f.debug_struct("BatchParser")
            .field("features", &columns(&self.plan.features))
            .field("feature_lists", &columns(&self.plan.lists))
            .finish_non_exhaustive()
    }
}

/// Parses serialized Examples: [`BatchParser::parse`] for once.
///
/// # Errors
/// As there, and [`ErrorKind::Spec`] if the schema is one of SequenceExamples.
pub fn parse_example<R: Row>(rows: &[R], schema: &Schema) -> Result<Batch> {
    of_examples(schema, true)?.parse(rows)
}

/// Parses one serialized Example: [`BatchParser::parse_single`] for once.
///
/// # Errors
/// As [`parse_example`].
pub fn parse_single_example<R: Row + ?Sized>(row: &R, schema: &Schema) -> Result<Batch> {
    of_examples(schema, true)?.parse_single(row)
}

/// Parses serialized SequenceExamples: [`BatchParser::parse`] for once.
///
/// # Errors
/// As there, and [`ErrorKind::Spec`] if the schema is one of Examples.
pub fn parse_sequence_example<R: Row>(rows: &[R], schema: &Schema) -> Result<Batch> {
    of_examples(schema, false)?.parse(rows)
}

/// Parses one serialized SequenceExample: [`BatchParser::parse_single`] for once.
///
/// # Errors
/// As [`parse_sequence_example`].
pub fn parse_single_sequence_example<R: Row + ?Sized>(row: &R, schema: &Schema) -> Result<Batch> {
    of_examples(schema, false)?.parse_single(row)
}

fn of_examples(schema: &Schema, examples: bool) -> Result<BatchParser> {
    if schema.is_sequence() == examples {
        let found = if examples { "SequenceExamples" } else { "Examples" };
        return Err(ErrorKind::Spec(format!("it describes {found}").into()).into());
    }
    Ok(BatchParser::new(schema))
}

const _: () = {
    const fn send_sync_static<T: Send + Sync + 'static>() {}
    send_sync_static::<BatchParser>();
    send_sync_static::<Batch>();
    send_sync_static::<Column>();
};
