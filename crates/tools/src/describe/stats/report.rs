//! Statistics as values for users. docs/statistics.md lists the fields.

use super::bytes::{ByteStats, ImageStats};
use super::chart::{Bars, NumberAxis};
use super::counters::Cell;
use super::feature::FeatureStats;
use super::fields::FieldStats;
use super::group::{RecordStats, SliceKey};
use super::histogram::{self, IntQuantile};
use super::numbers::{FloatStats, IntStats, most_frequent};
use super::sizes::SizeCounters;
use super::statistics::Statistics;
use super::texts::TextCounter;
use crate::forms::fields::ValueType;
use crate::value::NamedValues;
use crate::value::ReportValue::{self, Fields};
use std::collections::BTreeSet;

/// Number of values in the lists of the most frequent ones.
pub(crate) const TOP: usize = 20;
/// Number of buckets of a histogram.
pub(crate) const BUCKETS: usize = 20;
/// The quantiles of a distribution, with their names.
const QUANTILES: [(&str, f64); 9] = [
    ("p1", 0.01),
    ("p5", 0.05),
    ("p10", 0.1),
    ("p25", 0.25),
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
];

impl Statistics {
    /// Returns the statistics as values, whose text is a JSON object on one line. They take a few times the
    /// memory of that text.
    pub fn report(&self) -> ReportValue<'_> {
        let mut fields = vec![("shards", self.shards.into())];
        self.group(&mut fields, &self.unit.all);
        fields.extend([
            ("sampled_from", self.sampled_from.into()),
            ("skipped", self.skipped.into()),
            ("damaged_ranges", self.left_out.0.into()),
            ("damaged_bytes", self.left_out.1.into()),
            ("not_counted", self.unit.not_counted.into()),
            ("limited", self.limited().into_iter().collect()),
            ("where", self.selection.condition.as_deref().into()),
            ("by", self.selection.by.as_deref().into()),
        ]);
        let slices = self.unit.slices.iter().map(|(key, group)| {
            let mut fields = vec![("value", slice(key))];
            self.group(&mut fields, group);
            Fields(fields)
        });
        fields.push(("slices", slices.collect()));
        Fields(fields)
    }

    /// Returns the same with integers beyond 2^53 as texts, because JavaScript would round them.
    pub fn browser_report(&self) -> ReportValue<'_> {
        self.report().for_browser()
    }

    fn group<'s>(&'s self, fields: &mut NamedValues<'s>, group: &'s RecordStats) {
        let [examples, sequences, others] = group.kinds;
        let decoded = examples + sequences;
        let kinds = [("example", examples), ("sequence_example", sequences), ("bytes", others)];
        let messages = group.fields.messages().into_iter().map(|message| field(message, others));
        let [features, lists] = self.unit.sorted(group).map(Vec::into_iter);
        let features = features.map(|(name, stats)| feature((name, self.names(name)), stats, decoded));
        let lists = lists.map(|(name, stats)| feature((name, None), stats, sequences));
        fields.extend([
            ("records", (decoded + others).into()),
            ("kinds", counts(kinds)),
            ("payload_bytes", group.sizes.sum.into()),
            ("sizes", drawn_sizes(&group.sizes)),
            ("distinct_payloads", distinct(group.distinct_payloads())),
            ("payloads", group.fields.types.payload_type().map(|of| of.name()).into()),
            ("fields", messages.collect()),
            ("features", features.collect()),
            ("feature_lists", lists.collect()),
        ]);
    }
}

/// Returns the name of a value.
pub(crate) fn name_of(value: i64, names: &[Box<str>]) -> Option<&str> {
    usize::try_from(value).ok().and_then(|k| names.get(k)).map(|name| &**name)
}

fn slice(key: &SliceKey) -> ReportValue<'_> {
    match key {
        SliceKey::Missing => ReportValue::Null,
        SliceKey::Int(value) => (*value).into(),
        SliceKey::Float(bits) => f32::from_bits(*bits).into(),
        SliceKey::Bytes(value) => value.as_slice().into(),
    }
}

/// Returns a feature, with the names of its values.
fn feature<'s>(
    (name, names): (&'s str, Option<&'s [Box<str>]>),
    stats: &'s FeatureStats,
    records: u64,
) -> ReportValue<'s> {
    let mut fields = vec![
        ("name", name.into()),
        ("kind", stats.kind().into()),
        ("kinds", counts(KINDS.into_iter().zip(stats.kinds))),
        ("present", stats.present().into()),
        ("absent", records.saturating_sub(stats.records()).into()),
        ("kindless", stats.kindless.into()),
        ("empty", stats.empty.into()),
        ("lengths", sizes(&stats.lengths)),
    ];
    fields.extend(stats.steps.iter().map(|steps| ("steps", sizes(steps))));
    fields.extend(stats.ints.iter().map(|ints| ("int64", int64(ints, names))));
    fields.extend(stats.floats.iter().map(|floats| ("float", float_stats(floats))));
    fields.extend(stats.bytes.iter().map(|bytes| ("bytes", byte_stats(bytes))));
    Fields(fields)
}

fn field<'s>((number, name, stats): (u32, Option<&'s str>, &'s FieldStats), records: u64) -> ReportValue<'s> {
    let types = || ValueType::ALL.into_iter().zip(stats.types).filter(|(_, n)| *n > 0);
    let wire: BTreeSet<_> = types().map(|(value_type, _)| value_type.wire_type()).collect();
    let mut fields = vec![
        ("number", u64::from(number).into()),
        ("name", name.into()),
        ("present", stats.records().into()),
        ("absent", records.saturating_sub(stats.records()).into()),
        ("wire_types", wire.into_iter().collect()),
        ("types", counts(types().map(|(value_type, n)| (value_type.name(), n)))),
        ("values", sizes(&stats.values)),
    ];
    fields.extend(stats.ints.iter().map(|ints| ("int64", int64(ints, None))));
    if stats.lengths.n > 0 {
        fields.push(("lengths", sizes(&stats.lengths)));
    }
    for (name, bounds) in ["fixed32", "fixed64"].into_iter().zip(stats.floats) {
        let ends = |(low, high): (f64, f64)| Fields(vec![("min", low.into()), ("max", high.into())]);
        fields.extend(bounds.map(|bounds| (name, ends(bounds))));
    }
    fields.push(("limited", stats.limited.into()));
    Fields(fields)
}

/// The names of the kinds, in their order in `FeatureStats::kinds`.
pub(crate) const KINDS: [&str; 3] = ["bytes", "float", "int64"];

impl FeatureStats {
    /// Returns the most frequent kind.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        let most = self.kinds.iter().copied().max().filter(|n| *n > 0)?;
        KINDS.into_iter().zip(self.kinds).find(|(_, n)| *n == most).map(|(kind, _)| kind)
    }

    /// Returns the number of records with a value, or of a feature list: with a step.
    pub(crate) fn present(&self) -> u64 {
        match &self.steps {
            Some(steps) => steps.n.saturating_sub(steps.counters.get(0)),
            None => self.kinds.iter().sum::<u64>().saturating_sub(self.empty),
        }
    }
}

fn int64<'s>(ints: &'s IntStats, names: Option<&'s [Box<str>]>) -> ReportValue<'s> {
    let moments = ints.all_moments();
    let bounds = ints.all_bounds();
    let cells = ints.cells();
    let rounded: Vec<_> = cells.iter().map(Cell::rounded).collect();
    let top = ints.top(TOP).into_iter().map(|(value, count)| {
        let mut fields = vec![("value", ReportValue::Int(value))];
        fields.extend(names.map(|names| ("name", name_of(value, names).into())));
        fields.push(("count", count.into()));
        Fields(fields)
    });
    Fields(vec![
        ("values", moments.n.into()),
        ("zeros", ints.zeros().into()),
        ("min", bounds.map(|bounds| bounds.0).into()),
        ("max", bounds.map(|bounds| bounds.1).into()),
        ("mean", moments.mean().into()),
        ("std", moments.std().into()),
        ("quantiles", quantiles(|part| histogram::int_quantile(&cells, bounds?, part))),
        ("histogram", histogram(&rounded, bounds.map(|(low, high)| (low as f64, high as f64)))),
        ("bars", bars(&cells, bounds)),
        ("distinct", distinct(ints.distinct())),
        ("top", top.collect()),
        ("top_error", ints.frequencies.missed.into()),
    ])
}

fn float_stats(floats: &FloatStats) -> ReportValue<'_> {
    let cells = floats.cells();
    let bounds = floats.bounds.map(|(low, high)| (f64::from(low), f64::from(high)));
    let top = floats.top(TOP).into_iter();
    let top = top.map(|(value, count)| Fields(vec![("value", value.into()), ("count", count.into())]));
    Fields(vec![
        ("values", floats.n().into()),
        ("zeros", floats.zeros.into()),
        ("nan", floats.nan.into()),
        ("positive_infinity", floats.infinite.into()),
        ("negative_infinity", floats.negative_infinite.into()),
        ("min", floats.bounds.map(|bounds| bounds.0).into()),
        ("max", floats.bounds.map(|bounds| bounds.1).into()),
        ("mean", floats.moments.mean().into()),
        ("std", floats.moments.std().into()),
        ("quantiles", quantiles(|part| Some(histogram::quantile(&cells, bounds?, part)? as f32))),
        ("histogram", histogram(&cells, bounds)),
        ("bars", bars(&cells, bounds)),
        ("distinct", distinct(floats.distinct())),
        ("top", top.collect()),
        ("top_error", floats.frequencies.missed.into()),
    ])
}

fn byte_stats(bytes: &ByteStats) -> ReportValue<'_> {
    let top = bytes.top(TOP).into_iter().map(|(counter, text)| {
        let mut fields = text_value(counter.hash, counter.len, text);
        fields.push(("count", counter.count.into()));
        Fields(fields)
    });
    let images = bytes.images.as_deref().map(|images| image_stats(images, bytes.without_header()));
    Fields(vec![
        ("values", bytes.lengths.n.into()),
        ("lengths", drawn_sizes(&bytes.lengths)),
        ("not_utf8", bytes.not_utf8.into()),
        ("distinct", distinct(bytes.distinct())),
        ("top", top.collect()),
        ("top_error", bytes.frequencies.missed.into()),
        ("images", images.into()),
    ])
}

impl ByteStats {
    /// Returns the most frequent values with their counters, the most frequent first. Equally frequent ones
    /// are in the order of their bytes.
    pub(crate) fn top(&self, n: usize) -> Vec<(TextCounter, Option<&[u8]>)> {
        let values = self.frequencies.iter().map(|(counter, text)| ((counter, text), counter.count));
        let top =
            most_frequent(values, n, |(counter, text)| (text.is_none(), text, counter.len, counter.hash));
        top.into_iter().map(|(value, _)| value).collect()
    }
}

/// Returns the value of a byte string, or what identifies a long one.
pub(crate) fn text_value(hash: u64, len: u64, text: Option<&[u8]>) -> NamedValues<'_> {
    match text {
        Some(text) => vec![("value", text.into())],
        None => vec![("length", len.into()), ("xxh3", format!("{hash:016x}").into())],
    }
}

fn image_stats(images: &ImageStats, without_header: u64) -> ReportValue<'_> {
    Fields(vec![
        ("formats", counts(images.formats.iter().map(|(format, n)| (&**format, *n)))),
        ("width", sizes(&images.widths)),
        ("height", sizes(&images.heights)),
        ("undecodable", without_header.into()),
    ])
}

fn counts<'s>(counts: impl IntoIterator<Item = (&'s str, u64)>) -> ReportValue<'s> {
    Fields(counts.into_iter().map(|(name, n)| (name, n.into())).collect())
}

fn distinct((count, exact): (u64, bool)) -> ReportValue<'static> {
    Fields(vec![("count", count.into()), ("exact", exact.into())])
}

/// Returns a distribution of sizes, or null without sizes.
fn sizes(sizes: &SizeCounters) -> ReportValue<'static> {
    if sizes.n == 0 { ReportValue::Null } else { Fields(size_fields(sizes, &sizes.cells())) }
}

/// Returns a distribution of sizes with its bars.
fn drawn_sizes(sizes: &SizeCounters) -> ReportValue<'static> {
    if sizes.n == 0 {
        return ReportValue::Null;
    }
    let cells = sizes.cells();
    let mut fields = size_fields(sizes, &cells);
    fields.push(("bars", bars(&cells, Some(sizes.bounds()))));
    Fields(fields)
}

fn size_fields(sizes: &SizeCounters, cells: &[Cell<i64>]) -> NamedValues<'static> {
    vec![
        ("min", sizes.min.into()),
        ("max", sizes.max.into()),
        ("mean", sizes.mean().into()),
        ("quantiles", quantiles(|part| histogram::int_quantile(cells, sizes.bounds(), part))),
    ]
}

impl SizeCounters {
    pub(crate) fn bounds(&self) -> (i64, i64) {
        let [low, high] = [self.min, self.max].map(|size| i64::try_from(size).unwrap_or(i64::MAX));
        (low, high)
    }
}

fn quantiles<T: Into<ReportValue<'static>>>(quantile: impl Fn(f64) -> Option<T>) -> ReportValue<'static> {
    Fields(QUANTILES.into_iter().map(|(name, part)| (name, quantile(part).into())).collect())
}

impl From<IntQuantile> for ReportValue<'_> {
    fn from(value: IntQuantile) -> Self {
        match value {
            IntQuantile::Value(value) => value.into(),
            IntQuantile::Middle(value) => value.into(),
        }
    }
}

/// Returns the bars that are drawn.
fn bars<T: NumberAxis + Into<ReportValue<'static>>>(
    cells: &[Cell<T>],
    bounds: Option<(T, T)>,
) -> ReportValue<'static> {
    let drawn = Bars::of(cells, bounds).map(|drawn| {
        let bars = drawn.bars.iter().map(|bar| bucket(bar.low, bar.high, bar.count));
        Fields(vec![("scale", drawn.scale().into()), ("buckets", bars.collect())])
    });
    drawn.into()
}

fn histogram(cells: &[Cell], bounds: Option<(f64, f64)>) -> ReportValue<'static> {
    let (low, high) = bounds.unwrap_or((0.0, 0.0));
    let buckets = histogram::equal_width(cells, low, high, BUCKETS).into_iter();
    buckets.map(|of| bucket(of.low, of.high, of.count)).collect()
}

fn bucket<T, N>(low: T, high: T, count: N) -> ReportValue<'static>
where
    T: Into<ReportValue<'static>>,
    N: Into<ReportValue<'static>>,
{
    Fields(vec![("low", low.into()), ("high", high.into()), ("count", count.into())])
}
