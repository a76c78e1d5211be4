//! `BatchParser`: a compiled schema and the memory to parse with, for any number of batches.

use super::assemble::Assembly;
use super::bytes::{RowRegions, SpanBytes, ValuePools};
use super::column::{Column, Values};
use super::compile::{BatchPlan, Need, PlanPart};
use super::decode::{BadRow, RowBlock, SlotValues};
use super::keys::KeyPredictor;
use super::locate::{BLOCK_ROWS, MapField, SpanTable, Validation, locate};
use super::output::{Batch, BatchBody, BodyPool};
use super::pool::BufPool;
use super::row::Row;
use super::slots::{AssemblyScratch, ColumnPools, RowError};
use crate::error::{Error, ErrorKind, Result};
use crate::example::EntryRules;
use crate::io::Region;
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
/// use tfseek::batch::{BatchParser, Column};
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
/// let Some(Column::Dense(label)) = batch.get("label") else { panic!() };
/// assert_eq!((label.values.int64().unwrap(), &*label.shape), (&[3, 4][..], &[2][..]));
/// let Some(Column::Sparse(tokens)) = batch.get("tokens") else { panic!() };
/// assert_eq!((&*tokens.indices, &*tokens.dense_shape), (&[0, 0, 0, 1][..], &[2, 2][..]));
///
/// // One bad record is named.
/// let rows = [rows[0].clone(), ExampleBuilder::new().float("label", [3.0f32]).encode()?];
/// let e = parser.parse(&rows).unwrap_err();
/// assert_eq!(e.to_string(), "row 1 of the batch: feature \"label\": expected int64, found float");
/// # Ok::<(), tfseek::Error>(())
/// ```
pub struct BatchParser {
    plan: Arc<BatchPlan>,
    bodies: Arc<BodyPool>,
    scratch: Mutex<Vec<ParserScratch>>,
    full: bool,
    contiguous: bool,
    lenient: bool,
    limit: u64,
}

/// The memory of one parse at a time.
struct ParserScratch {
    spans: SpanTable,
    features: PartScratch,
    lists: PartScratch,
    assembly: AssemblyScratch,
}

/// The memory of one part of the plan.
struct PartScratch {
    keys: KeyPredictor,
    slots: Vec<SlotValues>,
    slot_pools: Vec<ValuePools>,
    column_pools: Vec<ColumnPools>,
    values: Vec<Values>,
    regions: RowRegions,
    /// Byte strings stay in the regions of their rows.
    borrows: bool,
}

impl PartScratch {
    fn new(part: &PlanPart) -> PartScratch {
        PartScratch {
            keys: KeyPredictor::new(&part.slots),
            slots: part.slots.iter().map(|_| SlotValues::default()).collect(),
            slot_pools: part.slots.iter().map(|_| ValuePools::default()).collect(),
            column_pools: part.columns.iter().map(|_| ColumnPools::default()).collect(),
            values: Vec::new(),
            regions: RowRegions::default(),
            borrows: false,
        }
    }

    /// Begins a batch of these rows.
    fn start<R: Row>(&mut self, rows: &[R], part: &PlanPart, contiguous: bool, pool: &mut BufPool<Region>) {
        for ((slot, pools), planned) in self.slots.iter_mut().zip(&mut self.slot_pools).zip(&part.slots) {
            slot.start(pools.memory(planned.dtype));
        }
        self.borrows = !contiguous && self.regions.find(rows, part, pool);
    }

    /// Lets go of what the batch has now.
    fn end(&mut self) {
        self.values.clear();
        self.regions.release();
    }
}

/// The rows of one parse.
struct Rows<'a, R> {
    rows: &'a [R],
    /// The number of the first row in messages.
    first: usize,
    /// Without the dimension of the rows.
    single: bool,
}

impl<R> Clone for Rows<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Rows<'_, R> {}

impl<R: Row> Rows<'_, R> {
    /// The error with the row's place.
    #[cold]
    fn named(self, RowError { row, error }: RowError) -> Error {
        let error = match self.rows.get(row) {
            Some(at) => error.at(at.at()),
            None => error,
        };
        if self.single { error } else { error.row(self.first + row) }
    }
}

/// A clone has the same plan and options, and memory of its own.
impl Clone for BatchParser {
    fn clone(&self) -> BatchParser {
        let BatchParser { ref plan, full, contiguous, lenient, limit, .. } = *self;
        let plan = Arc::clone(plan);
        BatchParser {
            plan,
            bodies: Arc::default(),
            scratch: Mutex::default(),
            full,
            contiguous,
            lenient,
            limit,
        }
    }
}

impl BatchParser {
    /// Bytes beyond which a column is refused that its values do not pay for.
    const LIMIT: u64 = 4 << 30;

    /// A parser for this schema. Checks only what it was asked for, copies byte strings only where it must, refuses sparse
    /// indices outside of their dimension.
    pub fn new(schema: &Schema) -> BatchParser {
        BatchParser {
            plan: Arc::new(BatchPlan::new(schema)),
            bodies: Arc::default(),
            scratch: Mutex::default(),
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
        self.run(Rows { rows, first: 0, single: false })
    }

    /// One record, without the dimension of the rows: as `tf.io.parse_single_example` and
    /// `tf.io.parse_single_sequence_example`.
    ///
    /// # Errors
    /// As [`parse`](BatchParser::parse).
    pub fn parse_single<R: Row + ?Sized>(&self, row: &R) -> Result<Batch> {
        self.run(Rows { rows: &[row], first: 0, single: true })
    }

    /// The records as one batch, without those that are refused: `skip` is called with the number of each and its error, in
    /// the order in which [`parse`](BatchParser::parse) would refuse them if each were left out and the rest parsed again. Row
    /// numbers in errors are counted accordingly, without the rows that were skipped before.
    ///
    /// A row is visited four times at most, however many are refused: by the first parse, twice while the refused ones are
    /// found, and by the last parse. Only a batch that is too large as a whole is parsed again for each row that is left out.
    ///
    /// # Errors
    /// Those of `skip`, and errors that no row can be blamed for.
    pub(crate) fn parse_skipping<R: Row>(
        &self,
        rows: &[R],
        mut skip: impl FnMut(usize, Error) -> Result<()>,
    ) -> Result<Batch> {
        let mut error = match self.parse(rows) {
            Ok(batch) => return Ok(batch),
            Err(error) => error,
        };
        let mut kept: Vec<&R> = rows.iter().collect();
        let mut numbers: Vec<usize> = (0..rows.len()).collect();
        loop {
            let Some(first) = error.location().row.filter(|&row| row < kept.len()) else { return Err(error) };
            let mut refused = vec![first];
            skip(numbers[first], error)?;
            // A row that can be parsed alone was refused for the size of the whole batch, which may fit without it.
            if self.run(Rows { rows: &kept[first..=first], first: 0, single: false }).is_err() {
                self.find_refused(&kept, first + 1, |row, error| {
                    refused.push(row);
                    skip(numbers[row], error)
                })?;
            }
            let keep = |row: &usize| refused.binary_search(row).is_err();
            kept = (0..kept.len()).filter(keep).map(|row| kept[row]).collect();
            numbers = (0..numbers.len()).filter(keep).map(|row| numbers[row]).collect();
            error = match self.parse(&kept) {
                Ok(batch) => return Ok(batch),
                Err(error) => error,
            };
        }
    }

    /// Calls `found` with each row from `from` on that is refused, whatever the other rows are; one row before `from` is.
    fn find_refused<R: Row>(
        &self,
        rows: &[R],
        from: usize,
        mut found: impl FnMut(usize, Error) -> Result<()>,
    ) -> Result<()> {
        let mut skipped = 1;
        let mut start = from;
        while start < rows.len() {
            let end = rows.len().min(start + BLOCK_ROWS);
            let parsed = self.run(Rows { rows: &rows[start..end], first: 0, single: false });
            let first = match parsed {
                Ok(_) => end,
                Err(error) => error.location().row.map_or(start, |row| start + row),
            };
            // Those before it were taken. The others one by one: of two that are refused, a parse names one.
            for row in first..end {
                let alone = Rows { rows: &rows[row..=row], first: row - skipped, single: false };
                if let Err(error) = self.run(alone) {
                    found(row, error)?;
                    skipped += 1;
                }
            }
            start = end;
        }
        Ok(())
    }

    fn run<R: Row>(&self, rows: Rows<'_, R>) -> Result<Batch> {
        let scratch = self.scratch.lock().ok().and_then(|mut all| all.pop());
        let mut scratch = scratch.unwrap_or_else(|| ParserScratch {
            spans: SpanTable::default(),
            features: PartScratch::new(&self.plan.features),
            lists: PartScratch::new(&self.plan.lists),
            assembly: AssemblyScratch::default(),
        });
        let mut body = self.bodies.take();
        let parsed = self.run_with(&mut scratch, &mut body, rows);
        if let Ok(mut all) = self.scratch.lock() {
            all.push(scratch);
        }
        // If a row is refused, the body returns to its pool.
        let batch = Batch::new(body, &self.plan, &self.bodies);
        parsed.map(|()| batch).map_err(|error| rows.named(error))
    }

    /// Takes the rows through all stages: locate and decode, block by block, then assemble.
    fn run_with<R: Row>(
        &self,
        scratch: &mut ParserScratch,
        body: &mut BatchBody,
        rows: Rows<'_, R>,
    ) -> Result<(), RowError> {
        let ParserScratch { spans, features, lists, assembly } = scratch;
        body.rows = rows.rows.len();
        features.start(rows.rows, &self.plan.features, self.contiguous, &mut body.regions);
        lists.start(rows.rows, &self.plan.lists, self.contiguous, &mut body.list_regions);
        // A refused row stops the rows behind it, not those before: the lowest row is the one to be named.
        let mut end = rows.rows.len();
        let mut refused: Option<RowError> = None;
        let mut first = 0;
        while first < end {
            let block = first..end.min(first + BLOCK_ROWS);
            let done = self.decode(MapField::Features, features, spans, rows.rows, first, block.len());
            if let Err(error) = done {
                end = error.row;
                refused = Some(error);
            }
            if self.plan.sequence {
                let len = block.len().min(end - first);
                if let Err(error) = self.decode(MapField::FeatureLists, lists, spans, rows.rows, first, len) {
                    end = error.row;
                    refused = Some(error);
                }
            }
            first = block.end;
        }
        // Columns of several features may refuse a row that is lower still.
        let mut lowest = None;
        let parts = [(features, &mut body.features, false), (lists, &mut body.lists, true)];
        for (part, columns, is_lists) in parts {
            let mut assembled = self.assembly(part, assembly, rows, end, is_lists);
            let done = if refused.is_some() { assembled.check() } else { assembled.columns(columns) };
            if is_lists && refused.is_none() && done.is_ok() && !rows.single {
                body.lengths.clear();
                body.lengths.extend((0..self.plan.lists.columns.len()).map(|at| assembled.lengths(at)));
            }
            RowError::keep_lowest(&mut lowest, done);
            part.end();
        }
        lowest.or(refused).map_or(Ok(()), Err)
    }

    fn part(&self, map: MapField) -> &PlanPart {
        match map {
            MapField::Features => &self.plan.features,
            MapField::FeatureLists => &self.plan.lists,
        }
    }

    /// One block of rows, one part of the plan: locates the features of its rows, then decodes slot after slot.
    fn decode<R: Row>(
        &self,
        map: MapField,
        scratch: &mut PartScratch,
        spans: &mut SpanTable,
        rows: &[R],
        first: usize,
        len: usize,
    ) -> Result<(), RowError> {
        let part = self.part(map);
        let validation =
            Validation { rules: EntryRules { lenient: false, utf8: self.full }, full: self.full };
        spans.reset(len, part.slots.len());
        let mut refused = None;
        let mut good = len;
        for (k, row) in rows[first..first + len].iter().enumerate() {
            let payload = row.payload();
            let located = match payload.len() as u64 > MAX_LEN {
                true => Err(ErrorKind::TooLarge { len: payload.len() as u128, limit: MAX_LEN }.into()),
                false => locate(payload, map, validation, &mut scratch.keys, spans, k).map_err(Error::from),
            };
            if let Err(error) = located {
                (good, refused) = (k, Some(RowError { row: first + k, error }));
                break;
            }
        }
        let context = self.plan.sequence;
        let bytes = SpanBytes { rows, part, regions: None };
        let slots = part.slots.iter().zip(&mut scratch.slots).zip(&mut scratch.slot_pools);
        for (at, ((slot, values), pools)) in slots.enumerate() {
            let block =
                RowBlock { rows: &rows[first..first + good], first, total: rows.len(), spans, context };
            let done = match map {
                MapField::Features => values.features(at, slot, &block),
                MapField::FeatureLists => values.lists(at, slot, &block),
            };
            if let Err(BadRow { row, step, fault }) = done {
                let error = step.into_iter().fold(fault.error(&slot.key), Error::step);
                (good, refused) = (row, Some(RowError { row: first + row, error }));
            } else if !scratch.borrows && !matches!(slot.need, Need::Blocks { .. }) {
                // Blocks move when they are padded.
                values.copy_strings(pools, &bytes);
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn assembly<'a, R: Row>(
        &'a self,
        part: &'a mut PartScratch,
        scratch: &'a mut AssemblyScratch,
        rows: Rows<'a, R>,
        good: usize,
        lists: bool,
    ) -> Assembly<'a, R> {
        let plan = self.part(if lists { MapField::FeatureLists } else { MapField::Features });
        let regions = part.borrows.then_some(&part.regions);
        Assembly {
            bytes: SpanBytes { rows: rows.rows, part: plan, regions },
            slots: &mut part.slots,
            slot_pools: &mut part.slot_pools,
            column_pools: &mut part.column_pools,
            values: &mut part.values,
            scratch,
            rows: good,
            single: rows.single,
            lists,
            limit: self.limit,
            lenient: self.lenient,
        }
    }
}

impl fmt::Debug for BatchParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns =
            |part: &PlanPart| part.columns.iter().map(|column| column.name.to_string()).collect::<Vec<_>>();
        f.debug_struct("BatchParser")
            .field("features", &columns(&self.plan.features))
            .field("feature_lists", &columns(&self.plan.lists))
            .finish_non_exhaustive()
    }
}

const _: () = {
    const fn send_sync_static<T: Send + Sync + 'static>() {}
    send_sync_static::<BatchParser>();
    send_sync_static::<Batch>();
    send_sync_static::<Column>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{ExampleBuilder, FeatureBuf};
    use crate::schema::{DType, FeatureSpec, Partition, SplitsDType};
    use std::cell::Cell;

    /// A row that counts how often its payload is asked for.
    struct Counted<'a>(Vec<u8>, &'a Cell<usize>);

    impl Row for Counted<'_> {
        fn payload(&self) -> &[u8] {
            self.1.set(self.1.get() + 1);
            &self.0
        }
    }

    fn schema() -> Schema {
        let ragged = FeatureSpec::Ragged {
            dtype: DType::Int64,
            value_key: Some("values".into()),
            partitions: vec![Partition::RowLengths("lengths".into())],
            row_splits_dtype: SplitsDType::Int64,
            validate: false,
        };
        let built = Schema::example()
            .feature("label", FeatureSpec::fixed_len(&[], DType::Int64))
            .feature("ragged", ragged)
            .build();
        built.unwrap()
    }

    /// Good rows, and those that each stage refuses: a malformed one, one of another kind, one whose partition does not fit.
    fn payload(fault: u32) -> Vec<u8> {
        let mut builder = ExampleBuilder::new();
        match fault {
            1 => return b"\x0a\x05\x0a".to_vec(),
            2 => builder = builder.feature("label", FeatureBuf::Float(vec![1.0])),
            _ => builder = builder.int64("label", [7]),
        };
        builder = builder.int64("values", [1, 2, 3]).int64("lengths", [1, if fault == 3 { 1 } else { 2 }]);
        builder.encode().unwrap()
    }

    /// Leaves out the lowest refused row and parses the rest again, until none is refused.
    fn one_by_one(parser: &BatchParser, mut rows: Vec<Vec<u8>>) -> (Batch, Vec<(usize, String)>) {
        let mut numbers: Vec<usize> = (0..rows.len()).collect();
        let mut skipped = Vec::new();
        loop {
            match parser.parse(&rows) {
                Ok(batch) => return (batch, skipped),
                Err(e) => {
                    let row = e.location().row.unwrap();
                    skipped.push((numbers.remove(row), e.to_string()));
                    rows.remove(row);
                }
            }
        }
    }

    #[test]
    fn skipped_rows_are_those_that_would_be_refused_one_by_one() {
        let parser = BatchParser::new(&schema());
        let patterns: [fn(usize) -> u32; 7] = [
            |_| 0,
            |_| 1,
            |k| (k % 4) as u32,
            |k| u32::from(k % 50 == 49) * 3,
            |k| if k > 150 { 3 } else { 0 },
            |k| [0, 0, 2, 3, 0, 1, 0][k * k % 7],
            |k| if k == 0 { 2 } else { 0 },
        ];
        for (number, pattern) in patterns.iter().enumerate() {
            let rows: Vec<Vec<u8>> = (0..200).map(|k| payload(pattern(k))).collect();
            let (want, refused) = one_by_one(&parser, rows.clone());
            let mut skipped = Vec::new();
            let batch = parser.parse_skipping(&rows, |row, e| {
                skipped.push((row, e.to_string()));
                Ok(())
            });
            assert_eq!(skipped, refused, "pattern {number}");
            assert_eq!(format!("{:?}", batch.unwrap()), format!("{want:?}"), "pattern {number}");
        }
    }

    /// A row is visited a few times, whether one or all rows of its batch are refused.
    #[test]
    fn many_refused_rows_are_found_in_a_few_visits() {
        let parser = BatchParser::new(&schema());
        let visits = |pattern: fn(usize) -> u32| {
            let count = Cell::new(0);
            let rows: Vec<Counted<'_>> = (0..1000).map(|k| Counted(payload(pattern(k)), &count)).collect();
            let mut skipped = 0;
            let batch = parser.parse_skipping(&rows, |_, _| {
                skipped += 1;
                Ok(())
            });
            assert_eq!(batch.unwrap().rows() + skipped, 1000);
            count.get()
        };
        let once = visits(|_| 0);
        for pattern in [|_| 3, |_| 2, |k| (k % 2) as u32 * 3, |k| (k % 4) as u32] as [fn(usize) -> u32; 4] {
            let many = visits(pattern);
            assert!(many <= 4 * once + 64, "{many} visits, {once} where no row is refused");
        }
    }

    /// A batch that is too large as a whole loses its first rows, as if they were left out one by one.
    #[test]
    fn a_limit_of_the_whole_batch_leaves_out_one_row_at_a_time() {
        let spec = FeatureSpec::FixedLenSequence {
            shape: vec![],
            dtype: DType::Int64,
            default: None,
            allow_missing: true,
        };
        let schema = Schema::example().feature("x", spec).build().unwrap();
        let parser = BatchParser::new(&schema).limit(100 * 8);
        let row = |n: i64| ExampleBuilder::new().int64("x", 0..n).encode().unwrap();
        let rows: Vec<Vec<u8>> = [1, 50, 2, 3, 4].map(row).into();
        let (want, refused) = one_by_one(&parser, rows.clone());
        assert_eq!(refused.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [0, 1]);
        let mut skipped = Vec::new();
        let batch = parser.parse_skipping(&rows, |row, e| {
            skipped.push((row, e.to_string()));
            Ok(())
        });
        assert_eq!(skipped, refused);
        assert_eq!(format!("{:?}", batch.unwrap()), format!("{want:?}"));
        // An error of `skip` ends the call.
        let e = parser.parse_skipping(&rows, |_, e| Err(e)).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::TooLarge { .. }));
    }
}
