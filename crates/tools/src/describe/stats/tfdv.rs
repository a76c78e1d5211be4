//! Statistics as a `DatasetFeatureStatisticsList`, which TensorFlow Data Validation, TFX and Facets read. The
//! message is encoded here by hand.
//!
//! The numbers of buckets and values are TFDV's defaults: 10 buckets of equal width, 10 of equal numbers, the
//! 20 most frequent values, and the 1,000 highest ranks. Slices are further datasets. The proto files are
//! `tensorflow-metadata`'s; field numbers are in the code.

use super::bytes::ByteStats;
use super::counters::Cell;
use super::feature::FeatureStats;
use super::group::{RecordStats, SliceKey};
use super::histogram::{Bucket, equal_count, equal_width, quantile};
use super::moments::Moments;
use super::report::TOP;
use super::sizes::SizeCounters;
use super::statistics::Statistics;
use tfseek_wire::{put_field, put_varint};

const BUCKETS: usize = 10;
const RANKS: usize = 1_000;
/// The parent of feature lists.
const SEQUENCE: &str = "##SEQUENCE##";

/// The types of features.
const INT: u64 = 0;
const FLOAT: u64 = 1;
const TEXT: u64 = 2;
const BYTES: u64 = 3;

/// An encoder of one message with field numbers up to 15. Fields that are 0 or empty are left out.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn int(&mut self, field: u8, value: u64) -> &mut Message {
        if value > 0 {
            self.0.push(field << 3);
            put_varint(value, &mut self.0);
        }
        self
    }

    fn double(&mut self, field: u8, value: f64) -> &mut Message {
        if value != 0.0 {
            self.0.push(field << 3 | 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
        self
    }

    fn float(&mut self, field: u8, value: f32) -> &mut Message {
        if value != 0.0 {
            self.0.push(field << 3 | 5);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
        self
    }

    fn text(&mut self, field: u8, value: &str) -> &mut Message {
        if !value.is_empty() {
            put_field(field << 3 | 2, value.as_bytes(), &mut self.0);
        }
        self
    }

    /// Adds a message, even an empty one.
    fn message(&mut self, field: u8, content: impl FnOnce(&mut Message)) -> &mut Message {
        let mut inner = Message::default();
        content(&mut inner);
        put_field(field << 3 | 2, &inner.0, &mut self.0);
        self
    }
}

impl Statistics {
    /// Returns the statistics as a serialized `tensorflow.metadata.v0.DatasetFeatureStatisticsList`.
    pub fn tfdv(&self) -> Vec<u8> {
        let mut all = Message::default();
        let name = if self.unit.slices.is_empty() { "" } else { "All Examples" };
        all.message(1, |dataset| self.dataset(dataset, name, &self.unit.all));
        for (key, group) in &self.unit.slices {
            let by = self.selection.by.as_deref().unwrap_or_default();
            let value = match key {
                SliceKey::Missing => "missing".to_owned(),
                SliceKey::Int(value) => value.to_string(),
                SliceKey::Float(bits) => f32::from_bits(*bits).to_string(),
                SliceKey::Bytes(value) => String::from_utf8_lossy(value).into_owned(),
            };
            all.message(1, |dataset| self.dataset(dataset, &format!("{by}_{value}"), group));
        }
        all.0
    }

    fn dataset(&self, dataset: &mut Message, name: &str, group: &RecordStats) {
        let [examples, sequences, _] = group.kinds;
        let records = examples.saturating_add(sequences);
        dataset.text(1, name).int(2, records);
        let [features, lists] = self.unit.sorted(group);
        for (name, stats) in features {
            dataset.message(3, |feature| {
                feature.text(1, name);
                put_feature(feature, stats, records);
            });
        }
        for (name, stats) in lists {
            dataset.message(3, |feature| {
                feature.message(8, |path| {
                    path.text(1, SEQUENCE).text(1, name);
                });
                put_feature(feature, stats, sequences);
            });
        }
    }
}

/// Adds the type of a feature and its statistics, by its most frequent kind. Images and other byte strings
/// that are mostly not UTF-8 are bytes.
fn put_feature(feature: &mut Message, stats: &FeatureStats, records: u64) {
    match (stats.kind(), &stats.ints, &stats.floats, &stats.bytes) {
        (Some("int64"), Some(ints), _, _) => {
            let numbers = Numeric {
                cells: ints.cells().iter().map(Cell::rounded).collect(),
                moments: ints.all_moments(),
                bounds: ints.all_bounds().map(|(low, high)| (low as f64, high as f64)),
                zeros: ints.zeros(),
                ..Numeric::default()
            };
            feature.int(2, INT).message(3, |message| numeric(message, &numbers, stats, records));
        }
        (Some("float"), _, Some(floats), _) => {
            let numbers = Numeric {
                cells: floats.cells(),
                moments: floats.moments,
                bounds: floats.bounds.map(|(low, high)| (low.into(), high.into())),
                zeros: floats.zeros,
                nan: floats.nan,
                infinite: floats.infinite,
                negative_infinite: floats.negative_infinite,
            };
            feature.int(2, FLOAT).message(3, |message| numeric(message, &numbers, stats, records));
        }
        (_, _, _, Some(bytes)) if bytes.not_utf8 > bytes.lengths.n / 2 => {
            feature.int(2, BYTES).message(5, |message| {
                message.message(1, |message| common(message, stats, records)).int(2, bytes.distinct().0);
                if bytes.lengths.n > 0 {
                    message
                        .float(3, bytes.lengths.mean().unwrap_or(0.0) as f32)
                        .float(4, bytes.lengths.min as f32)
                        .float(5, bytes.lengths.max as f32)
                        .int(6, bytes.lengths.max);
                }
            });
        }
        (_, _, _, bytes) => {
            feature.int(2, TEXT).message(4, |message| {
                message.message(1, |message| common(message, stats, records));
                if let Some(bytes) = bytes {
                    texts(message, bytes);
                }
            });
        }
    }
}

/// Sketches of numbers of either kind.
#[derive(Default)]
struct Numeric {
    cells: Vec<Cell>,
    moments: Moments,
    /// Bounds of the finite values.
    bounds: Option<(f64, f64)>,
    zeros: u64,
    nan: u64,
    infinite: u64,
    negative_infinite: u64,
}

fn numeric(message: &mut Message, numbers: &Numeric, stats: &FeatureStats, records: u64) {
    message.message(1, |message| common(message, stats, records));
    let (low, high) = numbers.bounds.unwrap_or((0.0, 0.0));
    message
        .double(2, numbers.moments.mean().unwrap_or(0.0))
        .double(3, numbers.moments.std().unwrap_or(0.0))
        .int(4, numbers.zeros)
        .double(5, if numbers.negative_infinite > 0 { f64::NEG_INFINITY } else { low })
        .double(6, quantile(&numbers.cells, (low, high), 0.5).unwrap_or(0.0))
        .double(7, if numbers.infinite > 0 { f64::INFINITY } else { high });
    let bucket = |low, high, n: u64| Bucket { low, high, count: n as f64 };
    let mut standard = Vec::new();
    if numbers.negative_infinite > 0 {
        standard.push(bucket(f64::NEG_INFINITY, low, numbers.negative_infinite));
    }
    standard.extend(equal_width(&numbers.cells, low, high, BUCKETS));
    if numbers.infinite > 0 {
        standard.push(bucket(high, f64::INFINITY, numbers.infinite));
    }
    message.message(8, |message| histogram(message, &standard, numbers.nan, 0));
    let quantiles = equal_count(&numbers.cells, (low, high), BUCKETS);
    message.message(8, |message| histogram(message, &quantiles, numbers.nan, 1));
}

/// Adds the buckets of a histogram: type 0 has equal widths, type 1 equal numbers.
fn histogram(message: &mut Message, buckets: &[Bucket], nan: u64, kind: u64) {
    message.int(1, nan);
    for bucket in buckets {
        message.message(3, |message| {
            message.double(1, bucket.low).double(2, bucket.high).double(4, bucket.count);
        });
    }
    message.int(4, kind);
}

/// Adds `CommonStatistics`. A feature with a kind and no values is not missing, as in TFDV.
fn common(message: &mut Message, stats: &FeatureStats, records: u64) {
    let lengths = &stats.lengths;
    let present = stats.steps.as_ref().unwrap_or(lengths).n;
    message.int(1, present).int(2, records.saturating_sub(present));
    if lengths.n == 0 {
        return;
    }
    let values = u64::try_from(lengths.sum).unwrap_or(u64::MAX);
    message
        .int(3, lengths.min)
        .int(4, lengths.max)
        .float(5, lengths.mean().unwrap_or(0.0) as f32)
        .int(8, values);
    let buckets = |sizes: &SizeCounters| {
        let cells: Vec<_> = sizes.cells().iter().map(Cell::rounded).collect();
        let (low, high) = sizes.bounds();
        equal_count(&cells, (low as f64, high as f64), BUCKETS)
    };
    message.message(6, |message| histogram(message, &buckets(lengths), 0, 1));
    if let Some(steps) = stats.steps.as_ref().filter(|steps| steps.n > 0) {
        message.message(9, |message| histogram(message, &buckets(steps), 0, 1));
    }
}

fn texts(message: &mut Message, bytes: &ByteStats) {
    message.int(2, bytes.distinct().0);
    let top = bytes.top(RANKS);
    // As TFDV, which puts a name in place of other byte strings.
    let label = |text: Option<&[u8]>| match text.map(std::str::from_utf8) {
        Some(Ok(text)) => text.to_owned(),
        Some(Err(_)) => "__BYTES_VALUE__".to_owned(),
        None => "__LARGE_STRING__".to_owned(),
    };
    for (counter, text) in top.iter().take(TOP) {
        message.message(3, |message| {
            message.text(2, &label(*text)).double(3, counter.count as f64);
        });
    }
    message.float(4, bytes.lengths.mean().unwrap_or(0.0) as f32);
    message.message(5, |message| {
        for (rank, (counter, text)) in (0..).zip(&top) {
            message.message(1, |message| {
                message.int(1, rank).int(2, rank).text(4, &label(*text)).double(5, counter.count as f64);
            });
        }
    });
    message.int(8, bytes.not_utf8);
}
