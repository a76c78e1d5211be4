//! `BatchParser`: a compiled schema and the scratch buffers to parse any number of batches.
//!
//! A batch takes four stages, over blocks of 64 rows:
//!
//! 1. **Locate.** One pass over each payload finds the wanted features and stores them in a table of slots by
//!    rows. A *slot* is a feature of the records that one or more columns need. Keys are predicted (`keys`),
//!    and so are all bytes of an entry before its values (`crate::example::EntryForm`). Records of one writer
//!    are compared eight at a time with the bytes that earlier ones had in common (`skeleton`), and those
//!    that differ are located one by one. Numbers of scalar slots are then in the table themselves, other
//!    values are spans of their payload. A duplicate key replaces the earlier entry, which was validated
//!    before.
//! 2. **Fill.** Slot by slot, the values of the block are checked, counted and decoded into the slot's memory
//!    (`decode`). Lists in the usual encoding take a fast path. All others go through the `Feature::check`
//!    that the views use.
//! 3. **Freeze.** Memory becomes values: shared [`Buf`](super::Buf)s, and byte strings that refer to the
//!    rows' regions or are copied (`bytes`).
//! 4. **Finish.** Slots become columns: padding, indices, row splits, sparse order (`assemble`).
//!
//! **The row of an error** is the lowest one. A refused row ends the batch for the rows after it, but not for
//! the slots that are still to be filled, because one of them may fail in a lower row. If a row has several
//! faults, any of them may be reported.
//!
//! Batches are parsed in parallel, and the rows of a batch are not. A parser has one set of scratch buffers
//! for each thread that uses it at the same time, and results do not depend on the number of threads.

#![expect(clippy::indexing_slicing, reason = "rows are numbered from 0 to their count")]

use super::assemble::Assembly;
use super::bytes::{RowRegions, SpanBytes, ValuePools};
use super::column::{Column, Values};
use super::compile::{BatchPlan, ColumnPlan, MapField, MapPlan, Need};
use super::decode::{RowBlock, SlotValues};
use super::decoder::{ColumnDecoder, DecodeContext};
use super::fit::GROUP;
use super::keys::KeyPredictor;
use super::locate::locate;
use super::output::{Batch, BatchData, BatchDataPool};
use super::pool::BufPool;
use super::predict::RecordPredictor;
use super::row::Row;
use super::slots::{ColumnPools, RowError};
use super::span::{BLOCK_ROWS, SpanTable};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Region;
use crate::order::{augmentation_seed, named_draw};
use crate::schema::Schema;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tfseek_wire::MAX_LEN;

/// A parser of records into columns by a schema, as in `tf.io.parse_example` and
/// `tf.io.parse_sequence_example`.
///
/// A parser learns the order of the keys and reuses the memory of dropped batches. Create one parser and use
/// it for all batches, from any number of threads. In the steady state it allocates nothing. Parsing costs
/// about 10 to 20 ns for a feature with a few values; larger features are limited by memory bandwidth.
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
/// assert_eq!((batch.int64("label")?, &*label.shape), (&[3, 4][..], &[2][..]));
/// let Some(Column::Sparse(tokens)) = batch.get("tokens") else { panic!() };
/// assert_eq!((&*tokens.indices, &*tokens.dense_shape), (&[0, 0, 0, 1][..], &[2, 2][..]));
///
/// // The error identifies the record.
/// let rows = [rows[0].clone(), ExampleBuilder::new().float("label", [3.0f32]).encode()?];
/// let e = parser.parse(&rows).unwrap_err();
/// assert_eq!(e.to_string(), "row 1 of the batch: feature \"label\": expected int64, found float");
/// # Ok::<(), tfseek::Error>(())
/// ```
pub struct BatchParser {
    pub(super) plan: Arc<BatchPlan>,
    pub(super) batch_data: Arc<BatchDataPool>,
    scratch: Mutex<Vec<ParserScratch>>,
    contiguous: bool,
    presence: bool,
    deny_unknown: bool,
    pub(super) limit: u64,
    pub(super) decoder: Option<Arc<dyn ColumnDecoder>>,
    /// True if a loader calls the decoder after it has parsed a batch.
    decodes_later: bool,
    /// Set to end the decoder's work early.
    cancelled: Arc<AtomicBool>,
    /// True once the names of the first rows were compared.
    pub(super) names_compared: AtomicBool,
    /// True once rows were parsed: they have all features that are required.
    has_parsed: AtomicBool,
}

/// Scratch buffers, used by one `parse` call at a time.
struct ParserScratch {
    spans: SpanTable,
    features: MapScratch,
    lists: MapScratch,
    assembly: Vec<u32>,
}

/// Scratch buffers of one map field.
struct MapScratch {
    keys: KeyPredictor,
    records: RecordPredictor,
    slots: Vec<SlotValues>,
    slot_pools: Vec<ValuePools>,
    column_pools: Vec<ColumnPools>,
    values: Vec<Values>,
    regions: RowRegions,
    /// Byte strings are spans of the rows' regions, and are not copied.
    borrows: bool,
}

impl MapScratch {
    fn new(part: &MapPlan, map: MapField) -> MapScratch {
        MapScratch {
            keys: KeyPredictor::new(&part.slots, map),
            records: RecordPredictor::default(),
            slots: part.slots.iter().map(|_| SlotValues::default()).collect(),
            slot_pools: part.slots.iter().map(|_| ValuePools::default()).collect(),
            column_pools: part.columns.iter().map(|_| ColumnPools::default()).collect(),
            values: Vec::new(),
            regions: RowRegions::default(),
            borrows: false,
        }
    }

    /// Starts a batch of these rows.
    fn start<R: Row>(&mut self, rows: &[R], part: &MapPlan, contiguous: bool, pool: &mut BufPool<Region>) {
        for ((slot, pools), planned) in self.slots.iter_mut().zip(&mut self.slot_pools).zip(&part.slots) {
            let arrays =
                planned.array.as_ref().map(|array| (pools.arrays.take(array.dtype), array.is_label()));
            slot.start(pools.memory(planned.dtype), arrays);
        }
        self.borrows = !contiguous && self.regions.find(rows, part, pool);
    }

    /// Releases the scratch references to memory that the batch now holds.
    fn end(&mut self) {
        self.values.clear();
        self.regions.release();
    }
}

/// Maximum bytes of the payloads of a block of more than one row. They stay in the cache from their
/// verification until their values are copied.
const BLOCK_BYTES: usize = 256 << 10;

/// Verifies a row, unless that was done for another map field, and returns its payload.
#[inline]
fn verified_payload<R: Row>(row: &R, map: MapField) -> Result<&[u8]> {
    if map == MapField::Features {
        row.verify()?;
    }
    let payload = row.payload();
    let len = payload.len() as u64;
    if len > MAX_LEN {
        Err(ErrorKind::TooLarge { len: len.into(), limit: MAX_LEN }.into())
    } else {
        Ok(payload)
    }
}

/// Returns the end of the block of rows that starts at `first`.
fn block_end<R: Row>(rows: &[R], first: usize) -> usize {
    let mut bytes = 0;
    let fitting = rows[first..].iter().take(BLOCK_ROWS).take_while(|row| {
        bytes += row.payload().len();
        bytes <= BLOCK_BYTES
    });
    first + fitting.count().max(1)
}

/// The rows of one `parse` call.
struct Rows<'a, R> {
    rows: &'a [R],
    /// Number of the first row, for error messages.
    first: usize,
    /// True if the columns omit the row dimension.
    single: bool,
}

impl<R: Row> Rows<'_, R> {
    /// Adds the location of the row to the error.
    #[cold]
    fn locate_error(&self, RowError { row, error }: RowError) -> Error {
        let error = match self.rows.get(row) {
            Some(row) => error.at(row.at()),
            None => error,
        };
        if self.single { error } else { error.row(self.first + row) }
    }
}

/// A clone has the same plan and options, and separate scratch buffers.
impl Clone for BatchParser {
    fn clone(&self) -> BatchParser {
        let BatchParser { contiguous, presence, deny_unknown, limit, decodes_later, .. } = *self;
        let decoder = self.decoder.clone();
        let cancelled = Arc::clone(&self.cancelled);
        let unused = BatchParser::of_plan(Arc::clone(&self.plan));
        BatchParser { contiguous, presence, deny_unknown, limit, decodes_later, decoder, cancelled, ..unused }
    }
}

impl BatchParser {
    /// Default of [`limit`](BatchParser::limit): 4 GiB.
    const DEFAULT_LIMIT: u64 = 4 << 30;

    /// Creates a parser for a schema.
    ///
    /// By default it checks only the features of the schema, copies byte strings only if the rows do not have
    /// a [`Region`], and refuses sparse indices outside of their dimension.
    pub fn new(schema: &Schema) -> BatchParser {
        BatchParser::of_plan(Arc::new(BatchPlan::new(schema)))
    }

    /// Creates a parser with the default options.
    fn of_plan(plan: Arc<BatchPlan>) -> BatchParser {
        BatchParser {
            plan,
            batch_data: Arc::default(),
            scratch: Mutex::default(),
            contiguous: false,
            presence: false,
            deny_unknown: false,
            limit: BatchParser::DEFAULT_LIMIT,
            decoder: None,
            decodes_later: false,
            cancelled: Arc::default(),
            names_compared: AtomicBool::new(false),
            has_parsed: AtomicBool::new(false),
        }
    }

    /// Sets the decoder that changes the columns of each batch. A schema with
    /// [pictures](crate::FeatureSpec::Image) requires one, which `tfseek-image` has. A row that it refuses is
    /// treated as a record that does not match the schema. Default: none.
    #[must_use]
    pub fn decoder(self, decoder: Arc<dyn ColumnDecoder>) -> BatchParser {
        BatchParser { decoder: Some(decoder), ..self }
    }

    /// Returns the parser of a loader, which calls [`decode_columns`](BatchParser::decode_columns) itself. The
    /// decoder ends its work early once `cancelled` is set.
    pub(crate) fn of_loader(self, cancelled: &Arc<AtomicBool>) -> BatchParser {
        BatchParser { cancelled: Arc::clone(cancelled), decodes_later: true, ..self }
    }

    /// Returns true if there is a decoder.
    pub(crate) fn has_decoder(&self) -> bool {
        self.decoder.is_some()
    }

    /// Calls the decoder, if there is one. `seed` returns the augmentation seed of a row. Returns the refused
    /// rows, ascending, and the error of each.
    pub(crate) fn decode_columns(
        &self,
        batch: &mut Batch,
        seed: impl Fn(usize) -> u64,
        single: bool,
    ) -> Result<Vec<(usize, Error)>> {
        let Some(decoder) = &self.decoder else { return Ok(Vec::new()) };
        let context = DecodeContext {
            pictures: &self.plan.pictures,
            draw: &|row, name| named_draw(seed(row), name),
            limit: self.limit,
            single,
            cancelled: &self.cancelled,
        };
        batch.decode(&**decoder, &context)
    }

    /// Returns the signature of the decoder, or `""`.
    pub(super) fn signature(&self) -> &str {
        self.decoder.as_ref().map_or("", |decoder| decoder.signature())
    }

    /// Sets whether byte strings are always copied into contiguous memory of the batch. Default: false.
    ///
    /// If false, a batch borrows the memory of its rows where possible.
    #[must_use]
    pub fn contiguous_bytes(self, contiguous: bool) -> BatchParser {
        BatchParser { contiguous, ..self }
    }

    /// Sets whether batches record which records have each feature and feature list. Default: false.
    ///
    /// It tells an absent feature from an empty list. See [`Batch::presence`].
    ///
    /// ```
    /// use tfseek::{BatchParser, DType, ExampleBuilder, FeatureSpec, Schema};
    /// let schema = Schema::example().feature("x", FeatureSpec::ragged(DType::Int64)).build()?;
    /// let rows = [ExampleBuilder::new().int64("x", [0i64; 0]).encode()?, ExampleBuilder::new().encode()?];
    /// let batch = BatchParser::new(&schema).presence(true).parse(&rows)?;
    /// assert_eq!(batch.presence("x").unwrap()[..], [1, 0]);
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    #[must_use]
    pub fn presence(self, presence: bool) -> BatchParser {
        BatchParser { presence, ..self }
    }

    /// Sets whether a record is refused that has a feature or a feature list that the schema does not name.
    /// Default: false.
    ///
    /// It shows that a schema of some records has everything that the others have.
    ///
    /// ```
    /// use tfseek::{BatchParser, DType, ExampleBuilder, FeatureSpec, Schema};
    /// let schema = Schema::example().feature("x", FeatureSpec::optional(DType::Int64)).build()?;
    /// let row = ExampleBuilder::new().int64("y", [1]).encode()?;
    /// let e = BatchParser::new(&schema).deny_unknown(true).parse(&[row]).unwrap_err();
    /// assert_eq!(e.to_string(), r#"row 0 of the batch: feature "y": invalid schema: expected a spec of each feature of the record, found none"#);
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    #[must_use]
    pub fn deny_unknown(self, deny: bool) -> BatchParser {
        BatchParser { deny_unknown: deny, ..self }
    }

    /// Sets the limit on the bytes of a padded column or of the row splits of a ragged partition. Default: 4
    /// GiB.
    ///
    /// Without a limit, a few small records could require any amount of padding or any number of empty ragged
    /// rows.
    #[must_use]
    pub fn limit(self, bytes: u64) -> BatchParser {
        BatchParser { limit: bytes, ..self }
    }

    /// Gives columns of features other names, from the names in the schema.
    ///
    /// ```
    /// use tfseek::{BatchParser, DType, ExampleBuilder, FeatureSpec, Schema};
    /// let schema = Schema::example().feature("y", FeatureSpec::fixed_len(&[], DType::Int64)).build()?;
    /// let parser = BatchParser::new(&schema).rename([("y", "label")])?;
    /// let batch = parser.parse(&[ExampleBuilder::new().int64("y", [3]).encode()?])?;
    /// assert_eq!(batch.int64("label")?, [3]);
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] for a name that is not in the schema, and for two columns of one name.
    pub fn rename<'a>(self, names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<BatchParser> {
        let plan = Arc::new(self.plan.renamed(names)?);
        Ok(BatchParser { plan, ..self })
    }

    /// Returns true if the parser is for SequenceExamples.
    pub(crate) fn is_sequence(&self) -> bool {
        self.plan.schema.is_sequence()
    }

    /// Returns true if both parsers make the same batches.
    pub(crate) fn is_like(&self, other: &BatchParser) -> bool {
        let options =
            |parser: &BatchParser| (parser.contiguous, parser.presence, parser.deny_unknown, parser.limit);
        // Columns of features may have other names than in the schema.
        let same = |(a, b): (&ColumnPlan, &ColumnPlan)| (&a.key, &a.name) == (&b.key, &b.name);
        options(self) == options(other)
            && self.plan.schema == other.plan.schema
            && self.signature() == other.signature()
            && self.plan.features.columns.iter().zip(&other.plan.features.columns).all(same)
    }

    /// Parses the records as one batch. The first dimension of each column is the rows.
    ///
    /// # Errors
    /// The error of the lowest refused row: [`ErrorKind::Wire`], [`ErrorKind::Feature`] or
    /// [`ErrorKind::TooLarge`]. It contains the row, the feature, the step of a feature list, and the
    /// location of the record if the row has one. [`Error::category`] classifies it.
    pub fn parse<R: Row>(&self, rows: &[R]) -> Result<Batch> {
        self.run(&Rows { rows, first: 0, single: false })
    }

    /// Parses one record, without the row dimension, as `tf.io.parse_single_example` and
    /// `tf.io.parse_single_sequence_example` do.
    ///
    /// # Errors
    /// Same as [`parse`](BatchParser::parse).
    pub fn parse_single<R: Row + ?Sized>(&self, row: &R) -> Result<Batch> {
        self.run(&Rows { rows: &[row], first: 0, single: true })
    }

    /// Parses the records as one batch and leaves out the refused rows.
    ///
    /// Calls `skip` with the number and the error of each refused row. The order is the one in which repeated
    /// calls of [`parse`](BatchParser::parse) would refuse them, each without the rows refused before. Row
    /// numbers in errors are counted the same way, without the rows skipped before.
    ///
    /// Each row is visited at most four times, however many rows are refused: by the first parse, twice
    /// during the search for refused rows, and by the last parse. Only a batch that is too large as a whole
    /// is parsed again for each row left out.
    ///
    /// # Errors
    /// Errors of `skip`, and errors that no single row causes.
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
            // A row that can be parsed alone was refused because of the size of the whole batch, which may
            // fit without it.
            if self.run(&Rows { rows: &kept[first..=first], first: 0, single: false }).is_err() {
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

    /// Calls `found` with each row from `from` on that is refused on its own. Exactly one row before `from`
    /// is refused.
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
            let parsed = self.run(&Rows { rows: &rows[start..end], first: 0, single: false });
            let first = match parsed {
                Ok(_) => end,
                Err(error) => error.location().row.map_or(start, |row| start + row),
            };
            // Rows before `first` were accepted. The others are parsed one by one, because a parse reports
            // only one refused row.
            for row in first..end {
                let alone = Rows { rows: &rows[row..=row], first: row - skipped, single: false };
                if let Err(error) = self.run(&alone) {
                    found(row, error)?;
                    skipped += 1;
                }
            }
            start = end;
        }
        Ok(())
    }

    fn run<R: Row>(&self, rows: &Rows<'_, R>) -> Result<Batch> {
        if let Some((name, _)) = self.plan.pictures.first()
            && self.decoder.is_none()
        {
            return Err(Error::spec(
                "pictures are decoded by loaders and by parsers with a decoder, and this one has none",
            )
            .feature(name.as_bytes()));
        }
        let scratch = self.scratch.lock().ok().and_then(|mut all| all.pop());
        let mut scratch = scratch.unwrap_or_else(|| ParserScratch {
            spans: SpanTable::default(),
            features: MapScratch::new(&self.plan.features, MapField::Features),
            lists: MapScratch::new(&self.plan.lists, MapField::FeatureLists),
            assembly: Vec::new(),
        });
        let mut data = self.batch_data.take();
        data.rows = rows.rows.len();
        let parsed = self.run_with(&mut scratch, &mut data, rows);
        if let Ok(mut all) = self.scratch.lock() {
            all.push(scratch);
        }
        // On an error the batch is dropped, and its data returns to the pool.
        let mut batch = Batch::new(data, &self.plan, &self.batch_data);
        parsed.map_err(|error| rows.locate_error(error))?;
        if self.deny_unknown {
            self.check_known(rows.rows).map_err(|error| rows.locate_error(error))?;
        }
        if !rows.rows.is_empty() && !self.has_parsed.load(Ordering::Relaxed) {
            self.has_parsed.store(true, Ordering::Relaxed);
        }
        if !self.decodes_later {
            let seed = |row: usize| {
                let own = rows.rows.get(row).and_then(Row::augmentation_seed);
                own.unwrap_or_else(|| augmentation_seed(0, 0, row as u64))
            };
            if let Some((row, error)) = self.decode_columns(&mut batch, seed, rows.single)?.into_iter().next()
            {
                return Err(rows.locate_error(RowError { row, error }));
            }
        }
        Ok(batch)
    }

    /// Runs all stages: locates and decodes the rows block by block, then assembles the columns.
    fn run_with<R: Row>(
        &self,
        scratch: &mut ParserScratch,
        data: &mut BatchData,
        rows: &Rows<'_, R>,
    ) -> Result<(), RowError> {
        let ParserScratch { spans, features, lists, assembly: buffers } = scratch;
        features.start(rows.rows, &self.plan.features, self.contiguous, &mut data.regions);
        lists.start(rows.rows, &self.plan.lists, self.contiguous, &mut data.list_regions);
        // After a refused row only lower rows are processed, because the error is the lowest row's.
        let mut end = rows.rows.len();
        let mut refused: Option<RowError> = None;
        let mut first = 0;
        while first < end {
            let block = first..block_end(&rows.rows[..end], first);
            let decoded = self.decode(MapField::Features, features, spans, rows.rows, first, block.len());
            if let Err(error) = decoded {
                end = error.row;
                refused = Some(error);
            }
            if self.is_sequence() {
                let len = block.len().min(end - first);
                if let Err(error) = self.decode(MapField::FeatureLists, lists, spans, rows.rows, first, len) {
                    end = error.row;
                    refused = Some(error);
                }
            }
            first = block.end;
        }
        // Columns made of several features may refuse an even lower row.
        let mut lowest = None;
        let parts = [(features, &mut data.features, false), (lists, &mut data.lists, true)];
        for (part, columns, is_lists) in parts {
            let plan = self.part(if is_lists { MapField::FeatureLists } else { MapField::Features });
            let regions = part.borrows.then_some(&part.regions);
            let mut assembly = Assembly {
                bytes: SpanBytes { rows: rows.rows, part: plan, regions },
                slots: &mut part.slots,
                slot_pools: &mut part.slot_pools,
                column_pools: &mut part.column_pools,
                values: &mut part.values,
                scratch: &mut *buffers,
                rows: end,
                single: rows.single,
                lists: is_lists,
                limit: self.limit,
            };
            let mut result = if refused.is_some() { assembly.check() } else { assembly.columns(columns) };
            if is_lists && refused.is_none() && result.is_ok() && !rows.single {
                result = assembly.lengths(&mut data.lengths);
            }
            if self.presence && refused.is_none() && result.is_ok() {
                let to = if is_lists { &mut data.list_presence } else { &mut data.presence };
                result = assembly.presences(to);
            }
            RowError::keep_lowest(&mut lowest, result);
            part.end();
        }
        lowest.or(refused).map_or(Ok(()), Err)
    }

    pub(super) fn part(&self, map: MapField) -> &MapPlan {
        match map {
            MapField::Features => &self.plan.features,
            MapField::FeatureLists => &self.plan.lists,
        }
    }

    /// Locates the features of one map field in a block of rows, then decodes them slot by slot.
    fn decode<R: Row>(
        &self,
        map: MapField,
        scratch: &mut MapScratch,
        spans: &mut SpanTable,
        rows: &[R],
        first: usize,
        len: usize,
    ) -> Result<(), RowError> {
        let part = self.part(map);
        spans.reset(len, part.slots.len());
        // Number of rows before the first refused one.
        let mut refused = None;
        let mut valid = len;
        if let Err((k, error)) = self.locate_block(map, scratch, spans, &rows[first..first + len]) {
            (valid, refused) = (k, Some(RowError { row: first + k, error }));
        }
        let context = self.is_sequence();
        let bytes = SpanBytes { rows, part, regions: None };
        let slots = part.slots.iter().zip(&mut scratch.slots).zip(&mut scratch.slot_pools);
        for (index, ((slot, values), pools)) in slots.enumerate() {
            let block =
                RowBlock { rows: &rows[first..first + valid], first, total: rows.len(), spans, context };
            let decoded = match map {
                MapField::Features => values.features(index, slot, &block),
                MapField::FeatureLists => values.lists(index, slot, &block),
            };
            let mut bad = decoded.err().map(|(row, error)| (row, error.feature(slot.key.as_bytes())));
            if let Some(plan) = &slot.array {
                // A lower row may have another array than the planned one.
                let decoded = bad.as_ref().map_or(block.rows.len(), |(row, _)| *row);
                if let Err((row, error)) = values.read_arrays(plan, map, &block, decoded, self.limit) {
                    bad = Some((row, error.feature(slot.key.as_bytes())));
                }
            }
            if let Some((row, error)) = bad {
                (valid, refused) = (row, Some(RowError { row: first + row, error }));
                continue;
            }
            if !scratch.borrows && slot.array.is_none() && !matches!(slot.need, Need::Blocks { .. }) {
                // The spans of blocks move when rows are padded, so their strings are copied later.
                let copied = values.copy_strings(pools, &bytes);
                copied.map_err(|e| RowError::without_memory(first, &slot.key, e))?;
            }
            if self.presence {
                let recorded = values.record_presence(index, map, &block);
                recorded.map_err(|e| RowError::without_memory(first, &slot.key, e))?;
            }
        }
        let has_parsed = || self.has_parsed.load(Ordering::Relaxed);
        refused.map_or(Ok(()), |error| Err(error.with_hint(part, map, rows, has_parsed())))
    }

    /// Verifies the rows of a block and locates their features. Eight rows at a time are compared with the
    /// predicted records, and those that do not fit are located one by one.
    ///
    /// # Errors
    /// The first refused row, counted from the start of the block.
    fn locate_block<R: Row>(
        &self,
        map: MapField,
        scratch: &mut MapScratch,
        spans: &mut SpanTable,
        rows: &[R],
    ) -> Result<(), (usize, Error)> {
        let MapScratch { keys, records, .. } = scratch;
        let predicts = map == MapField::Features && !self.is_sequence();
        let mut located = |k: usize, payload: &[u8], spans: &mut SpanTable| {
            locate(payload, map, keys, spans, k).map_err(|e| (k, e.into()))
        };
        if predicts && records.is_ready() {
            for (number, group) in rows.chunks(GROUP).enumerate() {
                let start = number * GROUP;
                let mut payloads: [&[u8]; GROUP] = [&[]; GROUP];
                let mut verified = 0;
                let mut failed = Ok(());
                for (payload, row) in payloads.iter_mut().zip(group) {
                    match verified_payload(row, map) {
                        Ok(bytes) => *payload = bytes,
                        Err(error) => {
                            failed = Err((start + verified, error));
                            break;
                        }
                    }
                    verified += 1;
                }
                let fits = records.locate(payloads, verified, start, spans);
                for (k, payload) in payloads.iter().enumerate().take(verified) {
                    if fits & 1 << k == 0 {
                        located(start + k, payload, spans)?;
                    }
                }
                failed?;
            }
        } else {
            for (k, row) in rows.iter().enumerate() {
                located(k, verified_payload(row, map).map_err(|e| (k, e))?, spans)?;
            }
        }
        if predicts {
            records.end_block(rows.iter().map(Row::payload), &self.plan.features.slots);
        }
        Ok(())
    }
}

impl fmt::Debug for BatchParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns =
            |part: &MapPlan| part.columns.iter().map(|column| column.name.to_string()).collect::<Vec<_>>();
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

    /// A row that counts the accesses to its payload.
    struct CountedRow<'a>(Vec<u8>, &'a Cell<usize>);

    impl Row for CountedRow<'_> {
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

    /// Returns a valid row for `fault` 0, or a row that one stage refuses: malformed, wrong kind, or
    /// inconsistent partition.
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
    fn skipped_rows_equal_the_rows_refused_by_repeated_parses() {
        let parser = BatchParser::new(&schema()).presence(true);
        let patterns: [fn(usize) -> u32; 7] = [
            |_| 0,
            |_| 1,
            |k| (k % 4) as u32,
            |k| u32::from(k % 50 == 49) * 3,
            |k| if k > 150 { 3 } else { 0 },
            |k| [0, 0, 2, 3, 0, 1, 0][k * k % 7],
            |k| if k == 0 { 2 } else { 0 },
        ];
        let len = if cfg!(miri) { 60 } else { 200 };
        for (number, pattern) in patterns.iter().enumerate() {
            let rows: Vec<Vec<u8>> = (0..len).map(|k| payload(pattern(k))).collect();
            let (want, refused) = one_by_one(&parser, rows.clone());
            let mut skipped = Vec::new();
            let batch = parser.parse_skipping(&rows, |row, e| {
                skipped.push((row, e.to_string()));
                Ok(())
            });
            assert_eq!(skipped, refused, "pattern {number}");
            let batch = batch.unwrap();
            assert_eq!(format!("{batch:?}"), format!("{want:?}"), "pattern {number}");
            for name in ["label", "ragged"] {
                let present = batch.presence(name).unwrap();
                assert_eq!((present.len(), Some(present)), (batch.rows(), want.presence(name)));
            }
        }
    }

    /// The number of visits per row is bounded, whether one or all rows of a batch are refused.
    #[test]
    fn each_row_is_visited_at_most_four_times() {
        let parser = BatchParser::new(&schema());
        let len = if cfg!(miri) { 100 } else { 1000 };
        let visits = |pattern: fn(usize) -> u32| {
            let count = Cell::new(0);
            let rows: Vec<_> = (0..len).map(|k| CountedRow(payload(pattern(k)), &count)).collect();
            let mut skipped = 0;
            let batch = parser.parse_skipping(&rows, |_, _| {
                skipped += 1;
                Ok(())
            });
            assert_eq!(batch.unwrap().rows() + skipped, len);
            count.get()
        };
        let once = visits(|_| 0);
        for pattern in [|_| 3, |_| 2, |k| (k % 2) as u32 * 3, |k| (k % 4) as u32] as [fn(usize) -> u32; 4] {
            let many = visits(pattern);
            assert!(many <= 4 * once + 64, "{many} visits, {once} if no row is refused");
        }
    }

    /// A batch that is too large as a whole loses its first rows one by one, as with repeated parses.
    #[test]
    fn a_batch_above_the_limit_drops_one_row_at_a_time() {
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
