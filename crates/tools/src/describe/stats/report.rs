//! Statistics as JSON for users. docs/statistics.md lists the fields.

use super::bytes::{ByteStats, ImageStats};
use super::chart::{Bars, NumberAxis};
use super::counters::Cell;
use super::feature::FeatureStats;
use super::fields::FieldStats;
use super::group::{RecordStats, SliceKey};
use super::histogram::{self, Bucket, IntQuantile};
use super::json::JsonText;
use super::numbers::{FloatStats, IntStats, most_frequent};
use super::sizes::SizeCounters;
use super::statistics::Statistics;
use super::texts::TextCounter;
use crate::forms::fields::ValueType;
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
    /// Returns the statistics as a JSON object on one line, without a line end.
    pub fn json(&self) -> String {
        self.written(JsonText::default())
    }

    /// Returns the same with integers beyond 2^53 as strings, because JavaScript would round them.
    pub fn browser_json(&self) -> String {
        self.written(JsonText::for_browser())
    }

    fn written(&self, mut json: JsonText) -> String {
        json.object(|json| {
            json.key("shards").raw(self.shards);
            self.group(json, &self.unit.all);
            json.key("sampled_from").optional(self.sampled_from, JsonText::raw);
            json.key("skipped").raw(self.skipped);
            json.key("damaged_ranges").raw(self.left_out.0);
            json.key("damaged_bytes").raw(self.left_out.1);
            json.key("not_counted").raw(self.unit.not_counted);
            json.key("limited").list(self.limited(), |json, name| json.string(&name));
            json.key("where").optional(self.selection.condition.as_deref(), JsonText::string);
            json.key("by").optional(self.selection.by.as_deref(), JsonText::string);
            json.key("slices").list(&self.unit.slices, |json, (key, group)| {
                json.object(|json| {
                    json.key("value");
                    slice(json, key);
                    self.group(json, group);
                });
            });
        });
        json.finish()
    }

    fn group(&self, json: &mut JsonText, group: &RecordStats) {
        let [examples, sequences, others] = group.kinds;
        let decoded = examples + sequences;
        json.key("records").raw(decoded + others);
        json.key("kinds").object(|json| {
            json.key("example").raw(examples);
            json.key("sequence_example").raw(sequences);
            json.key("bytes").raw(others);
        });
        json.key("payload_bytes").raw(group.sizes.sum);
        json.key("sizes");
        drawn_sizes(json, &group.sizes);
        let (count, exact) = group.distinct_payloads();
        json.key("distinct_payloads");
        distinct(json, count, exact);
        json.key("payloads").optional(group.fields.payload_type(), |json, of| json.string(of.name()));
        json.key("fields").list(group.fields.messages(), |json, item| field(json, item, others));
        let names = sorted(self.unit.feature_names().iter(), &group.features);
        json.key("features").list(names, |json, (name, stats)| {
            feature(json, (name, self.names(name)), stats, decoded);
        });
        let names = sorted(self.unit.list_names().iter(), &group.lists);
        json.key("feature_lists").list(names, |json, (name, stats)| {
            feature(json, (name, None), stats, sequences);
        });
    }
}

/// Returns the name of a value.
pub(crate) fn name_of(value: i64, names: &[Box<str>]) -> Option<&str> {
    usize::try_from(value).ok().and_then(|k| names.get(k)).map(|name| &**name)
}

/// Returns the features that were found, in the order of their names.
pub(crate) fn sorted<'s>(
    names: impl Iterator<Item = &'s str>,
    stats: &'s [Option<Box<FeatureStats>>],
) -> Vec<(&'s str, &'s FeatureStats)> {
    let mut found: Vec<_> =
        names.zip(stats).filter_map(|(name, stats)| Some((name, &**stats.as_ref()?))).collect();
    found.sort_unstable_by_key(|(name, _)| *name);
    found
}

fn slice(json: &mut JsonText, key: &SliceKey) {
    match key {
        SliceKey::Missing => json.raw("null"),
        SliceKey::Int(value) => json.int(*value),
        SliceKey::Float(bits) => float(json, f32::from_bits(*bits)),
        SliceKey::Bytes(value) => json.bytes(value),
    }
}

/// Writes a feature, with the names of its values.
fn feature(
    json: &mut JsonText,
    (name, names): (&str, Option<&[Box<str>]>),
    stats: &FeatureStats,
    records: u64,
) {
    let absent = records.saturating_sub(stats.records());
    json.object(|json| {
        json.key("name").string(name);
        json.key("kind").optional(stats.kind(), JsonText::string);
        json.key("kinds").object(|json| {
            for (kind, n) in KINDS.into_iter().zip(stats.kinds) {
                json.key(kind).raw(n);
            }
        });
        json.key("present").raw(stats.present());
        json.key("absent").raw(absent);
        json.key("kindless").raw(stats.kindless);
        json.key("empty").raw(stats.empty);
        json.key("lengths");
        sizes(json, &stats.lengths);
        if let Some(steps) = &stats.steps {
            json.key("steps");
            sizes(json, steps);
        }
        if let Some(ints) = &stats.ints {
            json.key("int64");
            int64(json, ints, names);
        }
        if let Some(floats) = &stats.floats {
            json.key("float");
            float_stats(json, floats);
        }
        if let Some(bytes) = &stats.bytes {
            json.key("bytes");
            byte_stats(json, bytes);
        }
    });
}

fn field(json: &mut JsonText, (number, name, stats): (u32, Option<&str>, &FieldStats), records: u64) {
    json.object(|json| {
        json.key("number").raw(number);
        json.key("name").optional(name, JsonText::string);
        json.key("present").raw(stats.records());
        json.key("absent").raw(records.saturating_sub(stats.records()));
        let types = || ValueType::ALL.into_iter().zip(stats.types).filter(|(_, n)| *n > 0);
        let wire: BTreeSet<_> = types().map(|(value_type, _)| value_type.wire_type()).collect();
        json.key("wire_types").list(wire, JsonText::string);
        json.key("types").object(|json| {
            types().for_each(|(value_type, n)| json.key(value_type.name()).raw(n));
        });
        json.key("values");
        sizes(json, &stats.values);
        if let Some(ints) = &stats.ints {
            json.key("int64");
            int64(json, ints, None);
        }
        if stats.lengths.n > 0 {
            json.key("lengths");
            sizes(json, &stats.lengths);
        }
        for (name, bounds) in ["fixed32", "fixed64"].into_iter().zip(stats.floats) {
            if let Some((low, high)) = bounds {
                json.key(name).object(|json| {
                    json.key("min").float(Some(low));
                    json.key("max").float(Some(high));
                });
            }
        }
        json.key("limited").raw(stats.limited);
    });
}

/// The names of the kinds, in their order in `FeatureStats::kinds`.
const KINDS: [&str; 3] = ["bytes", "float", "int64"];

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

fn int64(json: &mut JsonText, ints: &IntStats, names: Option<&[Box<str>]>) {
    let moments = ints.all_moments();
    let bounds = ints.all_bounds();
    let cells = ints.cells();
    json.object(|json| {
        json.key("values").raw(moments.n);
        json.key("zeros").raw(ints.zeros());
        json.key("min").optional(bounds.map(|bounds| bounds.0), JsonText::int);
        json.key("max").optional(bounds.map(|bounds| bounds.1), JsonText::int);
        json.key("mean").float(moments.mean());
        json.key("std").float(moments.std());
        quantiles(json, |part| histogram::int_quantile(&cells, bounds?, part), int_quantile);
        let rounded: Vec<_> = cells.iter().map(Cell::rounded).collect();
        histogram(json, &rounded, bounds.map(|(low, high)| (low as f64, high as f64)));
        bars(json, &cells, bounds, JsonText::int);
        let (count, exact) = ints.distinct();
        json.key("distinct");
        distinct(json, count, exact);
        json.key("top").list(ints.top(TOP), |json, (value, count)| {
            json.object(|json| {
                json.key("value").int(value);
                if let Some(names) = names {
                    json.key("name").optional(name_of(value, names), JsonText::string);
                }
                json.key("count").raw(count);
            });
        });
        json.key("top_error").raw(ints.frequencies.missed);
    });
}

/// Writes the shortest text of a 32-bit float, not of its value in 64 bits.
fn float(json: &mut JsonText, value: f32) {
    json.raw(serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned()));
}

fn float_stats(json: &mut JsonText, floats: &FloatStats) {
    let cells = floats.cells();
    json.object(|json| {
        json.key("values").raw(floats.n());
        json.key("zeros").raw(floats.zeros);
        json.key("nan").raw(floats.nan);
        json.key("positive_infinity").raw(floats.infinite);
        json.key("negative_infinity").raw(floats.negative_infinite);
        json.key("min").optional(floats.bounds.map(|bounds| bounds.0), float);
        json.key("max").optional(floats.bounds.map(|bounds| bounds.1), float);
        json.key("mean").float(floats.moments.mean());
        json.key("std").float(floats.moments.std());
        let bounds = floats.bounds.map(|(low, high)| (low.into(), high.into()));
        let quantile = |part| histogram::quantile(&cells, bounds?, part);
        quantiles(json, quantile, |json, value| float(json, value as f32));
        histogram(json, &cells, bounds);
        bars(json, &cells, bounds, |json, value| json.float(Some(value)));
        let (count, exact) = floats.distinct();
        json.key("distinct");
        distinct(json, count, exact);
        json.key("top").list(floats.top(TOP), |json, (value, count)| {
            json.object(|json| {
                float(json.key("value"), value);
                json.key("count").raw(count);
            });
        });
        json.key("top_error").raw(floats.frequencies.missed);
    });
}

fn byte_stats(json: &mut JsonText, bytes: &ByteStats) {
    json.object(|json| {
        json.key("values").raw(bytes.lengths.n);
        json.key("lengths");
        drawn_sizes(json, &bytes.lengths);
        json.key("not_utf8").raw(bytes.not_utf8);
        let (count, exact) = bytes.distinct();
        json.key("distinct");
        distinct(json, count, exact);
        json.key("top").list(bytes.top(TOP), |json, (counter, text)| {
            json.object(|json| {
                match text {
                    Some(text) => json.key("value").bytes(text),
                    None => {
                        json.key("length").raw(counter.len);
                        json.key("xxh3").string(&format!("{:016x}", counter.hash));
                    }
                }
                json.key("count").raw(counter.count);
            });
        });
        json.key("top_error").raw(bytes.frequencies.missed);
        let images =
            |json: &mut JsonText, images: &ImageStats| image_stats(json, images, bytes.without_header());
        json.key("images").optional(bytes.images.as_deref(), images);
    });
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

fn image_stats(json: &mut JsonText, images: &ImageStats, without_header: u64) {
    json.object(|json| {
        json.key("formats").object(|json| {
            for (format, n) in &images.formats {
                json.key(format).raw(n);
            }
        });
        json.key("width");
        sizes(json, &images.widths);
        json.key("height");
        sizes(json, &images.heights);
        json.key("undecodable").raw(without_header);
    });
}

fn distinct(json: &mut JsonText, count: u64, exact: bool) {
    json.object(|json| {
        json.key("count").raw(count);
        json.key("exact").raw(exact);
    });
}

/// Writes a distribution of sizes, or null without sizes.
fn sizes(json: &mut JsonText, sizes: &SizeCounters) {
    put_sizes(json, sizes, |_| ());
}

/// Writes a distribution of sizes with its bars.
fn drawn_sizes(json: &mut JsonText, sizes: &SizeCounters) {
    put_sizes(json, sizes, |json| bars(json, &sizes.cells(), Some(sizes.bounds()), JsonText::int));
}

fn put_sizes(json: &mut JsonText, sizes: &SizeCounters, more: impl FnOnce(&mut JsonText)) {
    if sizes.n == 0 {
        return json.raw("null");
    }
    let cells = sizes.cells();
    json.object(|json| {
        json.key("min").raw(sizes.min);
        json.key("max").raw(sizes.max);
        json.key("mean").float(sizes.mean());
        quantiles(json, |part| histogram::int_quantile(&cells, sizes.bounds(), part), int_quantile);
        more(json);
    });
}

impl SizeCounters {
    pub(crate) fn bounds(&self) -> (i64, i64) {
        let [low, high] = [self.min, self.max].map(|size| i64::try_from(size).unwrap_or(i64::MAX));
        (low, high)
    }
}

fn quantiles<T>(json: &mut JsonText, quantile: impl Fn(f64) -> Option<T>, write: impl Fn(&mut JsonText, T)) {
    json.key("quantiles").object(|json| {
        for (name, part) in QUANTILES {
            json.key(name).optional(quantile(part), &write);
        }
    });
}

fn int_quantile(json: &mut JsonText, value: IntQuantile) {
    match value {
        IntQuantile::Value(value) => json.int(value),
        IntQuantile::Middle(value) => json.float(Some(value)),
    }
}

/// Writes the bars that are drawn.
fn bars<T: NumberAxis>(
    json: &mut JsonText,
    cells: &[Cell<T>],
    bounds: Option<(T, T)>,
    write: impl Fn(&mut JsonText, T),
) {
    json.key("bars").optional(Bars::of(cells, bounds), |json, drawn| {
        json.object(|json| {
            json.key("scale").string(drawn.scale());
            json.key("buckets").list(&drawn.bars, |json, bar| {
                json.object(|json| {
                    write(json.key("low"), bar.low);
                    write(json.key("high"), bar.high);
                    json.key("count").raw(bar.count);
                });
            });
        });
    });
}

fn histogram(json: &mut JsonText, cells: &[Cell], bounds: Option<(f64, f64)>) {
    let (low, high) = bounds.unwrap_or((0.0, 0.0));
    let buckets: Vec<Bucket> = histogram::equal_width(cells, low, high, BUCKETS);
    json.key("histogram").list(buckets, |json, bucket| {
        json.object(|json| {
            json.key("low").float(Some(bucket.low));
            json.key("high").float(Some(bucket.high));
            json.key("count").float(Some(bucket.count));
        });
    });
}
