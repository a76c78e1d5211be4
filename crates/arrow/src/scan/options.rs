//! `Scan`: what to read, and how.

use super::columns::{FoundColumns, SavedColumns};
use super::pandas;
use crate::converter::Converter;
use crate::error::{Error, Result};
use crate::options::Options;
use arrow_schema::{DataType, Field, SchemaRef};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tfseek::io::Store;
use tfseek::order::Subset;
use tfseek::{Dataset, Filter, Part, Schema, Verify};

/// A reader of the records of a dataset, or of parts of one, as record batches in the order of the records.
///
/// Nothing is read before [`reader`](Scan::reader), which can be called again and again.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("train.tfrecord");
/// # let mut writer = tfseek::Writer::create(&path)?;
/// # for i in 0..1000 { writer.write(&tfseek::ExampleBuilder::new().int64("label", [i % 10]).encode()?)?; }
/// # writer.close()?;
/// use arrow_array::{cast::AsArray, types::Int64Type};
/// use tfseek::{DType, DatasetOptions, FeatureSpec, IndexMode, Schema};
/// use tfseek_arrow::{Options, Scan};
///
/// let ds = DatasetOptions::new().index(IndexMode::Memory).open(&path)?;
/// let schema = Schema::example().feature("label", FeatureSpec::fixed_len(&[], DType::Int64)).build()?;
/// let scan = Scan::new(&ds, &schema, &Options::new())?.record("record")?.filter("label == 3".parse()?);
/// let mut numbers = Vec::new();
/// for batch in scan.reader()? {
///     numbers.extend_from_slice(batch?["record"].as_primitive::<Int64Type>().values());
/// }
/// assert_eq!((numbers.len(), numbers[1]), (100, 13));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Scan {
    pub(super) source: ScanSource,
    pub(super) converter: Converter,
    pub(super) schema: SchemaRef,
    pub(super) has_record: bool,
    pub(super) subset: Option<Subset>,
    pub(super) listed: Option<Arc<[u64]>>,
    /// The records of a dataset, if none are chosen.
    pub(super) range: Option<Range<u64>>,
    /// Column files that were loaded, for all scans made of this one.
    pub(super) found: FoundColumns,
    pub(super) filter: Option<Filter>,
    pub(super) batch_rows: Option<usize>,
    pub(super) threads: Option<usize>,
    pub(super) verify: Option<Verify>,
    /// The store of parts whose shards are URLs.
    pub(super) store: Option<Arc<dyn Store>>,
}

/// The origin of the records.
#[derive(Clone)]
pub(super) enum ScanSource {
    Dataset(Dataset),
    Parts(Arc<[Part]>),
    Columns(Arc<SavedColumns>),
}

impl Scan {
    /// Returns a scan of all records of a dataset. Batches are made by the threads of a
    /// [`Loader`](tfseek::Loader).
    ///
    /// # Errors
    /// Errors of [`Converter::new`].
    pub fn new(dataset: &Dataset, schema: &Schema, options: &Options) -> Result<Scan> {
        Ok(Scan::with_converter(dataset, &Converter::new(schema, options)?))
    }

    /// Returns a scan of all records of a dataset with the columns of a converter.
    pub fn with_converter(dataset: &Dataset, converter: &Converter) -> Scan {
        Scan::of(ScanSource::Dataset(dataset.clone()), converter)
    }

    /// Returns a scan of parts of a dataset, in their order, with the columns of a converter. Workers read
    /// them without an index, in the thread that asks for batches.
    pub fn of_parts(parts: impl IntoIterator<Item = Part>, converter: &Converter) -> Scan {
        Scan::of(ScanSource::Parts(parts.into_iter().collect()), converter)
    }

    fn of(source: ScanSource, converter: &Converter) -> Scan {
        let range = match &source {
            ScanSource::Dataset(dataset) => Some(0..dataset.len()),
            _ => None,
        };
        Scan {
            source,
            range,
            found: FoundColumns::default(),
            schema: pandas::schema(converter.schema().fields().to_vec()),
            converter: converter.clone(),
            has_record: false,
            subset: None,
            listed: None,
            filter: None,
            batch_rows: None,
            threads: None,
            verify: None,
            store: None,
        }
    }

    /// Adds a first column with the number of each record in the dataset, as `Int64`.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema) if there is a column of that name.
    pub fn record(mut self, column: &str) -> Result<Scan> {
        let columns = self.converter.schema().fields();
        if columns.iter().any(|field| field.name() == column) {
            let reason =
                "expected another name for the column of record numbers, found a column of that name";
            return Err(Error::schema(column, reason));
        }
        let number = Arc::new(Field::new(column, DataType::Int64, false));
        self.schema = pandas::schema(std::iter::once(number).chain(columns.iter().cloned()).collect());
        self.has_record = true;
        Ok(self)
    }

    /// Restricts the scan of a dataset to these records. Other records are neither read nor verified.
    #[must_use]
    pub fn subset(mut self, records: impl Into<Subset>) -> Scan {
        (self.subset, self.listed) = (Some(records.into()), None);
        self
    }

    /// Sets the records of a scan of a dataset, in any order, also several times. It replaces
    /// [`subset`](Scan::subset).
    ///
    /// Ascending numbers are a subset. Other records are read in the thread that asks for batches, with the
    /// checksums that the dataset verifies. The condition is evaluated on each of them.
    #[must_use]
    pub fn records(mut self, numbers: impl Into<Arc<[u64]>>) -> Scan {
        let numbers = numbers.into();
        (self.subset, self.listed) = match Subset::from_ids(&*numbers) {
            Ok(subset) => (Some(subset), None),
            Err(_) => (None, Some(numbers)),
        };
        self
    }

    /// Restricts the scan to the records that meet a condition.
    ///
    /// In a dataset they are found first, by [`Dataset::select`](tfseek::Dataset::select). In parts, the
    /// condition is evaluated on each record.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Scan {
        self.filter = Some(filter);
        self
    }

    /// Sets the number of rows of a batch, at least 1. Default: as many as have about 32 MiB of records, at
    /// most 8192.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Scan {
        self.batch_rows = Some(rows.max(1));
        self
    }

    /// Sets the number of [`threads`](tfseek::threads) that make the batches of a dataset. Default: one per
    /// processor. 0: the thread that asks for them.
    #[must_use]
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> Scan {
        self.threads = threads.into();
        self
    }

    /// Sets the checksums that are verified. Default: those that the dataset verifies, and
    /// [`Verify::Payload`] for parts.
    #[must_use]
    pub fn verify(mut self, verify: Verify) -> Scan {
        self.verify = Some(verify);
        self
    }

    /// Sets the store of parts whose shards are URLs. Default: none; such a part is then an error.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Scan {
        self.store = Some(store);
        self
    }

    /// Returns the schema of the record batches. Its metadata has the types that pandas needs for integers
    /// that may be missing.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("schema", &self.schema).finish_non_exhaustive()
    }
}
