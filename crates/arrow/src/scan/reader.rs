//! `ScanReader`: the batches of a scan.

use super::columns::SavedColumns;
use super::options::{Scan, ScanSource};
use super::part_rows::{PartRows, PlacedRow, ReadRows, RowLimits};
use super::rows::{MAX_ROWS, ROWS_OF_COLUMNS, batch_rows, together};
use super::selection::{RecordNumbers, numbers_of};
use crate::converter::Converter;
use crate::error::{Error, Result};
use crate::strings::MIN_SHARED;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tfseek::batch::{Batch, BatchParser};
use tfseek::column::ColumnOptions;
use tfseek::io::Region;
use tfseek::loader::Step;
use tfseek::order::Subset;
use tfseek::{Damage, Dataset, Filter, Loader, Verify, Warning};

/// Payload bytes of the batches that threads make ahead.
const MEMORY: u64 = 96 << 20;

/// An iterator over the record batches of a [`Scan`], in the order of the records. It ends after an error.
///
/// The records of a batch with more values than 32-bit offsets can count are returned as several batches.
pub struct ScanReader {
    form: BatchForm,
    parser: BatchParser,
    work: ScanWork,
    /// Batches that are returned before the work continues.
    ready: VecDeque<RecordBatch>,
    /// Error of the batch that was read ahead.
    failed: Option<Error>,
    ended: bool,
    /// The warnings of the search for the records that meet the condition, and about the names of the first
    /// batch.
    warnings: Vec<Warning>,
}

/// The origin of the next batches.
enum ScanWork {
    Loaded(LoadedBatches),
    Read(Box<ReadBatches>),
    /// The numbers of the records, where none is read: there are no columns, or they are saved.
    Numbers {
        numbers: RecordNumbers,
        columns: Option<Arc<SavedColumns>>,
        rows: usize,
    },
    Ended,
}

/// The batches of a loader.
struct LoadedBatches {
    dataset: Dataset,
    loader: Box<Loader>,
    subset: Option<Subset>,
    rows: usize,
    /// Number of batches that the loader returned.
    returned: usize,
}

/// Batches of records that are read in the calling thread.
struct ReadBatches {
    records: RowSource,
    limits: RowLimits,
    /// Memory of an earlier batch.
    bytes: Vec<u8>,
    /// True if batches may borrow the bytes.
    shares: bool,
}

/// The records that are left to read.
enum RowSource {
    Parts(Box<PartRows>),
    Listed {
        dataset: Dataset,
        numbers: Arc<[u64]>,
        next: usize,
        /// Number of records that are read together.
        together: usize,
    },
}

/// The form of the record batches.
struct BatchForm {
    converter: Converter,
    schema: SchemaRef,
    has_record: bool,
}

impl Scan {
    /// Starts to read from the first record. A scan of a dataset without columns returns numbers of rows, and
    /// reads no records.
    ///
    /// # Errors
    /// Errors of [`Dataset::select`](tfseek::Dataset::select) with a filter, and of
    /// [`LoaderOptions::build`](tfseek::LoaderOptions::build).
    pub fn reader(&self) -> Result<ScanReader> {
        ScanReader::with_parser(self, || self.converter.parser())
    }
}

impl ScanReader {
    fn with_parser(scan: &Scan, parser: impl Fn() -> BatchParser) -> Result<ScanReader> {
        let form = BatchForm {
            converter: scan.converter.clone(),
            schema: Arc::clone(&scan.schema),
            has_record: scan.has_record,
        };
        let mut warnings = Vec::new();
        let read = |records, filter| {
            let max_rows = scan.batch_rows.unwrap_or(MAX_ROWS);
            let is_sequence = scan.converter.parser_schema().is_sequence();
            let limits = RowLimits::new(filter, is_sequence, max_rows);
            let shares = scan.converter.shares_strings();
            ScanWork::Read(Box::new(ReadBatches { records, limits, bytes: Vec::new(), shares }))
        };
        let work = match (&scan.source, &scan.listed) {
            (ScanSource::Parts(parts), None) if scan.subset.is_none() => {
                let verify = scan.verify.unwrap_or(Verify::Payload);
                read(
                    RowSource::Parts(Box::new(PartRows::new(parts, verify, scan.store.clone()))),
                    scan.filter.as_ref(),
                )
            }
            (ScanSource::Parts(_), _) => {
                let reason = "expected a scan of a dataset for chosen records, found a scan of parts";
                return Err(Error::batch(reason));
            }
            (ScanSource::Columns(columns), _) => ScanWork::Numbers {
                numbers: scan.numbers(),
                columns: Some(Arc::clone(columns)),
                rows: scan.batch_rows.unwrap_or(ROWS_OF_COLUMNS),
            },
            (ScanSource::Dataset(dataset), Some(numbers)) => {
                let mut numbers = Arc::clone(numbers);
                let mut filter = scan.filter.as_ref();
                // What is left out must be known before the first batch.
                if let Some(condition) = filter.filter(|_| dataset.damage() == Damage::Skip) {
                    let mut tested = numbers.to_vec();
                    tested.sort_unstable();
                    tested.dedup();
                    let selected =
                        select(dataset, condition, Some(Subset::from_ids(tested)?), &mut warnings)?;
                    numbers =
                        numbers.iter().copied().filter(|&number| selected.rank(number).is_some()).collect();
                    filter = None;
                }
                let (dataset, together) = (dataset.clone(), together(dataset));
                read(RowSource::Listed { dataset, numbers, next: 0, together }, filter)
            }
            (ScanSource::Dataset(dataset), None) => work_on(dataset, scan, parser(), &mut warnings)?,
        };
        let parser = parser();
        Ok(ScanReader { form, parser, work, ready: VecDeque::new(), failed: None, ended: false, warnings })
    }

    /// Returns the warnings of the search for the records that meet the condition: about column files, and
    /// about records that a dataset of [`Damage::Skip`] leaves out. Once the first batch was read, also the
    /// warnings of [`BatchParser::unknown_names`].
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Reads the next batch, which the iterator then returns, so that [`warnings`](ScanReader::warnings) has
    /// those about the names of the first one. The iterator returns its error, too.
    pub fn peek(&mut self) {
        if self.ended || self.failed.is_some() || !self.ready.is_empty() {
            return;
        }
        match self.read() {
            Ok(None) => {}
            Ok(Some(batch)) => self.ready.push_front(batch),
            Err(e) => self.failed = Some(e),
        }
    }

    /// Returns the next batch.
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        while self.ready.is_empty() {
            match &mut self.work {
                ScanWork::Ended => return Ok(None),
                ScanWork::Loaded(loaded) => match loaded.loader.next() {
                    None => self.work = ScanWork::Ended,
                    Some(step) => {
                        let number = loaded.returned;
                        loaded.returned = number + 1;
                        if number == 0 {
                            self.warnings.extend_from_slice(loaded.loader.warnings());
                        }
                        match step.map_err(Error::from).and_then(|step| self.form.converted(step)) {
                            Ok(batch) => self.ready.push_back(batch),
                            Err(e) if e.is_too_large() && loaded.rows > 1 => {
                                let read = loaded.read_again(number)?;
                                self.form.parse(&self.parser, &read.rows(None), &mut self.ready)?;
                            }
                            Err(e) => return Err(e),
                        }
                    }
                },
                ScanWork::Read(read) => {
                    let mut rows = read.next()?;
                    if rows.is_empty() {
                        self.work = ScanWork::Ended;
                        continue;
                    }
                    let shares = read.shares && !is_small(rows.bytes.len() as u64, rows.len() as u64);
                    let region = shares.then(|| Region::new(std::mem::take(&mut rows.bytes)));
                    let placed = rows.rows(region.as_ref());
                    self.warnings.extend(self.parser.unknown_names(&placed)?);
                    self.form.parse(&self.parser, &placed, &mut self.ready)?;
                    read.bytes = rows.bytes;
                }
                ScanWork::Numbers { numbers, columns, rows } => {
                    let numbers: Vec<u64> = numbers.take(*rows).collect();
                    let columns = columns.as_ref().map(Arc::clone);
                    if numbers.is_empty() {
                        self.work = ScanWork::Ended;
                    } else {
                        self.form.saved(columns.as_deref(), &numbers, &mut self.ready)?;
                    }
                }
            }
        }
        Ok(self.ready.pop_front())
    }
}

/// Returns true if records of this size have no byte strings that are shared. The parser then copies them
/// while a record is in the cache: a string of each record in turn, as a column reads them, is a cache miss
/// each.
fn is_small(bytes: u64, records: u64) -> bool {
    bytes / (MIN_SHARED as u64) < records
}

/// Returns the records that meet a condition, and adds the warnings of the search.
fn select(
    dataset: &Dataset,
    condition: &Filter,
    among: Option<Subset>,
    warnings: &mut Vec<Warning>,
) -> Result<Subset> {
    let options = ColumnOptions { among, ..ColumnOptions::default() };
    let (selected, found) = dataset.select(condition, &options)?;
    warnings.extend(found);
    Ok(selected)
}

/// Returns the work of a scan of a dataset. Finds the records that meet the condition, and adds the warnings
/// of the search.
fn work_on(
    dataset: &Dataset,
    scan: &Scan,
    parser: BatchParser,
    warnings: &mut Vec<Warning>,
) -> Result<ScanWork> {
    let part = scan.range.clone().filter(|range| *range != (0..dataset.len()));
    let chosen = match (&scan.subset, part) {
        (Some(subset), _) => Some(subset.clone()),
        (None, Some(range)) => Some(Subset::from_ids(range.collect::<Vec<_>>())?),
        (None, None) => None,
    };
    let subset = match (&scan.filter, chosen) {
        (Some(filter), chosen) => Some(select(dataset, filter, chosen, warnings)?),
        (None, chosen) => chosen,
    };
    if scan.converter.schema().fields().is_empty() {
        let numbers = match subset {
            Some(subset) => numbers_of(subset),
            None => Box::new(0..dataset.len()),
        };
        let rows = scan.batch_rows.unwrap_or(ROWS_OF_COLUMNS);
        return Ok(ScanWork::Numbers { numbers, columns: None, rows });
    }
    let rows = scan.batch_rows.unwrap_or_else(|| batch_rows(dataset));
    let parser = match dataset.known_bytes() {
        Some(bytes) if is_small(bytes, dataset.len()) => parser.contiguous_bytes(true),
        _ => parser,
    };
    let mut options = dataset
        .loader(scan.converter.parser_schema())
        .parser(parser)
        .batch_size(rows as u64)
        .memory(MEMORY)
        .threads(scan.threads);
    if let Some(subset) = &subset {
        options = options.select(subset.clone());
    }
    if let Some(verify) = scan.verify {
        options = options.verify(verify, verify);
    }
    let dataset = dataset.clone();
    let loader = Box::new(options.build()?);
    Ok(ScanWork::Loaded(LoadedBatches { dataset, loader, subset, rows, returned: 0 }))
}

impl ReadBatches {
    /// Reads the records of the next batch. There are none at the end.
    fn next(&mut self) -> Result<ReadRows> {
        let ReadBatches { records, limits, bytes, .. } = self;
        let mut rows = ReadRows::new(std::mem::take(bytes));
        match records {
            RowSource::Parts(parts) => parts.read(limits, &mut rows)?,
            RowSource::Listed { dataset, numbers, next, together } => {
                while let Some(window) = numbers.get(*next..).filter(|left| !left.is_empty()) {
                    if limits.are_reached(&rows) {
                        break;
                    }
                    let room = limits.max_rows - rows.len();
                    let window = window.get(..room.min(*together)).unwrap_or(window);
                    *next += window.len();
                    let mut left = window.iter();
                    dataset.read_many(window, |record| match left.next() {
                        Some(&number) => limits.add(record, number, &mut rows),
                        None => Ok(()),
                    })?;
                }
            }
        }
        Ok(rows)
    }
}

impl LoadedBatches {
    /// Reads the records of a batch again.
    fn read_again(&self, batch: usize) -> Result<ReadRows> {
        let start = batch * self.rows;
        let numbers: Vec<u64> = match &self.subset {
            Some(subset) => subset.iter().skip(start).take(self.rows).collect(),
            None => (start as u64..self.dataset.len()).take(self.rows).collect(),
        };
        let mut read = ReadRows::new(Vec::new());
        let mut next = numbers.iter();
        self.dataset.read_many(&numbers, |record| match next.next() {
            Some(&number) => read.push(record, number),
            None => Ok(()),
        })?;
        Ok(read)
    }
}

impl BatchForm {
    /// Converts a step of a loader.
    fn converted(&self, step: Step) -> Result<RecordBatch> {
        let numbers = step.ids.to_vec();
        let batch = step.into_batch().ok_or_else(|| Error::batch("expected a loader with a schema"))?;
        self.record_batch(&batch, &numbers)
    }

    /// Parses rows and appends them to `ready`, as several batches if one has too many values.
    fn parse(
        &self,
        parser: &BatchParser,
        rows: &[PlacedRow<'_>],
        ready: &mut VecDeque<RecordBatch>,
    ) -> Result<()> {
        let numbers: Vec<u64> = rows.iter().map(|row| row.place.number).collect();
        let made =
            parser.parse(rows).map_err(Error::from).and_then(|batch| self.record_batch(&batch, &numbers));
        match made {
            Err(e) if e.is_too_large() && rows.len() > 1 => {
                let (one, other) = rows.split_at(rows.len() / 2);
                self.parse(parser, one, ready)?;
                self.parse(parser, other, ready)
            }
            made => {
                ready.push_back(made?);
                Ok(())
            }
        }
    }

    /// Appends batches of these records to `ready`, with the values of saved columns if there are any.
    fn saved(
        &self,
        columns: Option<&SavedColumns>,
        numbers: &[u64],
        ready: &mut VecDeque<RecordBatch>,
    ) -> Result<()> {
        match columns.map_or(Ok(Vec::new()), |columns| columns.arrays(numbers)) {
            Err(e) if e.is_too_large() && numbers.len() > 1 => {
                let (one, other) = numbers.split_at(numbers.len() / 2);
                self.saved(columns, one, ready)?;
                self.saved(columns, other, ready)
            }
            arrays => {
                ready.push_back(self.assembled(arrays?, numbers)?);
                Ok(())
            }
        }
    }

    /// Converts a batch of these records.
    fn record_batch(&self, batch: &Batch, numbers: &[u64]) -> Result<RecordBatch> {
        let arrays = self.converter.arrays(batch).map_err(|e| {
            let record = e.row.and_then(|row| numbers.get(row)).copied();
            e.in_record(record)
        });
        self.assembled(arrays?, numbers)
    }

    /// Returns the record batch of the columns, after the column of the record numbers if there is one.
    fn assembled(&self, mut arrays: Vec<ArrayRef>, numbers: &[u64]) -> Result<RecordBatch> {
        if self.has_record {
            let numbers = numbers.iter().map(|&number| {
                i64::try_from(number).map_err(|_| Error::batch("expected record numbers below 2^63"))
            });
            arrays.insert(0, Arc::new(Int64Array::from(numbers.collect::<Result<Vec<_>>>()?)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(numbers.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }
}

impl Iterator for ScanReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        if self.ended {
            return None;
        }
        let next = self.failed.take().map_or_else(|| self.read(), Err);
        let next = next.map_err(ArrowError::from).transpose();
        if !matches!(next, Some(Ok(_))) {
            // Threads and files are not needed any more.
            self.ended = true;
            self.work = ScanWork::Ended;
        }
        next
    }
}

impl RecordBatchReader for ScanReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.form.schema)
    }
}

impl fmt::Debug for ScanReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanReader").field("schema", &self.form.schema).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use tfseek::example::FeatureBuf;
    use tfseek::schema::{DType, FeatureSpec, Schema};
    use tfseek::{DatasetOptions, ExampleBuilder, IndexMode, SequenceExampleBuilder, Writer};

    #[test]
    fn parts_of_ranges_have_the_numbers_of_the_dataset() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tfrecord");
        let mut writer = Writer::create(&path).unwrap();
        (0..50).for_each(|k| {
            writer.write(&ExampleBuilder::new().int64("label", [k]).encode().unwrap()).unwrap();
        });
        writer.close().unwrap();
        let whole = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
        let schema = Schema::example().feature("label", FeatureSpec::fixed_len(&[], DType::Int64));
        let schema = schema.build().unwrap();
        for (ranges, labels) in [
            ([10..20, 20..50], (10..50).collect::<Vec<i64>>()),
            ([30..40, 5..9], (30..40).chain(5..9).collect()),
        ] {
            let some = whole.ranges(&ranges).unwrap();
            let mut found = Vec::new();
            for share in some.shares(3).unwrap() {
                let scan = Scan::of_parts(share, &Converter::new(&schema, &Options::new()).unwrap())
                    .record("number")
                    .unwrap();
                for batch in scan.reader().unwrap() {
                    let batch = batch.unwrap();
                    let column = |name| batch[name].as_primitive::<Int64Type>().values().to_vec();
                    found.extend(column("number").into_iter().zip(column("label")));
                }
            }
            assert_eq!(found, (0..).zip(labels).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_batch_with_too_many_values_is_divided() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long.tfrecord");
        let mut writer = Writer::create(&path).unwrap();
        let lens = [3, 1, 40, 0, 2, 2, 30, 1, 7, 7, 7];
        for len in lens {
            let steps = vec![FeatureBuf::Int64(vec![1]); len];
            let record = SequenceExampleBuilder::new().feature_list("steps", steps);
            writer.write(&record.encode().unwrap()).unwrap();
        }
        writer.close().unwrap();
        let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path).unwrap();
        let steps = FeatureSpec::fixed_len_sequence(&[], DType::Int64);
        let schema = Schema::sequence_example().feature_list("steps", steps).build().unwrap();
        let dataset = Scan::new(&ds, &schema, &Options::new()).unwrap();
        let odd = Subset::from_ids((1..lens.len() as u64).step_by(2).collect::<Vec<_>>()).unwrap();
        let parts = Scan::of_parts(
            ds.shares(1).unwrap().remove(0),
            &Converter::new(&schema, &Options::new()).unwrap(),
        );
        for (scan, is_odd) in [(dataset.clone(), false), (parts, false), (dataset.subset(odd), true)] {
            let scan = scan.record("number").unwrap().batch_rows(4);
            // The padded steps of a row take 8 bytes each.
            let limited =
                |bytes| ScanReader::with_parser(&scan, || scan.converter.parser().limit(bytes)).unwrap();
            let batches: Vec<RecordBatch> = limited(320).map(Result::unwrap).collect();
            let found: Vec<(i64, usize)> = batches
                .iter()
                .flat_map(|batch| {
                    let numbers = batch["number"].as_primitive::<Int64Type>().values().to_vec();
                    let steps = batch["steps"].as_list::<i32>().clone();
                    (0..).zip(numbers).map(move |(k, number)| (number, steps.value(k).len()))
                })
                .collect();
            let want = (0..).zip(lens).filter(|(k, _)| !is_odd || k % 2 == 1);
            assert_eq!(found, want.collect::<Vec<(i64, usize)>>());
            assert!(is_odd || batches.len() > 3, "{}", batches.len());
            // A single record needs no padding.
            assert_eq!(limited(1).map(|batch| batch.unwrap().num_rows()).sum::<usize>(), found.len());
        }
    }
}
