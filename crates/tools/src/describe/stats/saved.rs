//! Statistics as a file: the JSON for users, and the content of the sketches in the member `state`.
//!
//! ```text
//! {"tfseek_stats":1, .. the members of `Statistics::report` .., "state":STATE}
//! ```
//!
//! Counters are lists of keys and numbers in turn. Registers, and byte strings that are not UTF-8, are
//! base64.

use super::bytes::{ByteStats, ImageStats};
use super::counters::KeyCounters;
use super::distinct::HyperLogLog;
use super::feature::FeatureStats;
use super::fields::{FieldStats, PayloadFields};
use super::frequent::{EXACT, NumberFrequencies};
use super::group::{MAX_SLICES, RecordStats, Selection, SliceKey, UnitStats};
use super::json::JsonText;
use super::moments::Moments;
use super::names::MAX_FEATURES;
use super::numbers::{FloatStats, IntStats};
use super::payloads::DistinctHashes;
use super::sizes::SizeCounters;
use super::statistics::{Statistics, saved_total};
use super::texts::{KEPT, TextFrequencies};
use crate::error::{SavedReason, ToolsError};
use crate::forms::fields::{MAX_NUMBERS, TypeCounts};
use crate::value::ReportValue;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeMap;

const VERSION: u64 = 1;

impl Statistics {
    /// Returns the statistics as text that [`from_saved`](Statistics::from_saved) reads: one line of JSON
    /// with a line end.
    pub fn save(&self) -> String {
        let json = self.report().to_string();
        let mut state = JsonText::default();
        state.object(|json| self.put(json));
        let fields = json.strip_prefix('{').and_then(|json| json.strip_suffix('}')).unwrap_or_default();
        format!("{{\"tfseek_stats\":{VERSION},{fields},\"state\":{}}}\n", state.finish())
    }

    fn put(&self, json: &mut JsonText) {
        json.key("memory").raw(self.memory);
        json.key("patterns").list(&self.selection.patterns, |json, pattern| json.string(pattern));
        json.key("by").optional(self.selection.by.as_deref(), JsonText::string);
        json.key("where").optional(self.selection.condition.as_deref(), JsonText::string);
        json.key("unseen").list(&self.unseen, |json, feature| json.string(feature));
        json.key("shards").raw(self.shards);
        json.key("sampled_from").optional(self.sampled_from, JsonText::raw);
        json.key("skipped").raw(self.skipped);
        json.key("first_skipped").optional(self.first_skipped.as_deref(), JsonText::string);
        json.key("damaged_ranges").raw(self.left_out.0);
        json.key("damaged_bytes").raw(self.left_out.1);
        json.key("not_counted").raw(self.unit.not_counted);
        json.key("full").raw(self.unit.feature_names().is_full);
        json.key("features").list(self.unit.feature_names().iter(), JsonText::string);
        json.key("feature_lists").list(self.unit.list_names().iter(), JsonText::string);
        json.key("all");
        put_group(json, &self.unit.all);
        json.key("slices").list(&self.unit.slices, |json, (key, group)| {
            json.object(|json| {
                match key {
                    SliceKey::Missing => {}
                    SliceKey::Int(value) => json.key("int").raw(value),
                    SliceKey::Float(bits) => json.key("float").raw(bits),
                    SliceKey::Bytes(value) => json.key("bytes").string(&STANDARD.encode(value)),
                }
                json.key("stats");
                put_group(json, group);
            });
        });
    }

    /// Reads what [`save`](Statistics::save) returned.
    ///
    /// # Errors
    /// [`ToolsError::Saved`] for text of another kind or version.
    pub fn from_saved(text: &str) -> Result<Statistics, ToolsError> {
        let not_json = |e: serde_json::Error| SavedReason::NotJson { reason: e.to_string() };
        let value: Value = serde_json::from_str(text).map_err(|e| ToolsError::Saved(not_json(e)))?;
        match value.get("tfseek_stats").map(Value::as_u64) {
            None => return Err(ToolsError::Saved(SavedReason::NotStatistics)),
            Some(Some(VERSION)) => {}
            Some(found) => {
                return Err(ToolsError::Saved(SavedReason::Version { expected: VERSION, found }));
            }
        }
        let state = value.get("state").ok_or(ToolsError::Saved(SavedReason::NoState))?;
        read(state).ok_or(ToolsError::Saved(SavedReason::State))
    }
}

fn read(state: &Value) -> Option<Statistics> {
    let texts = |key: &str| -> Option<Vec<&str>> { list(state, key)?.iter().map(Value::as_str).collect() };
    let optional = |key: &str| state.get(key).and_then(Value::as_str).map(str::to_owned);
    let selection = Selection {
        patterns: texts("patterns")?.into_iter().map(str::to_owned).collect(),
        by: optional("by"),
        condition: optional("where"),
    };
    let names = (texts("features")?, texts("feature_lists")?);
    if names.0.len() > MAX_FEATURES || names.1.len() > MAX_FEATURES {
        return None;
    }
    let mut unit = UnitStats::named(&names.0, &names.1, &selection)?;
    unit.set_full(state.get("full")?.as_bool()?);
    let places = (names.0.len(), names.1.len());
    let total = CountTotal::default();
    unit.all = group(state.get("all")?, places, &total)?;
    unit.not_counted = total.get(state, "not_counted")?;
    let slices = list(state, "slices")?;
    if slices.len() > MAX_SLICES {
        return None;
    }
    for slice in slices {
        let key = match (slice.get("int"), slice.get("float"), slice.get("bytes")) {
            (Some(int), _, _) => SliceKey::Int(int.as_i64()?),
            (_, Some(float), _) => SliceKey::Float(u32::try_from(float.as_u64()?).ok()?),
            (_, _, Some(bytes)) => SliceKey::Bytes(STANDARD.decode(bytes.as_str()?).ok()?),
            (None, None, None) => SliceKey::Missing,
        };
        unit.slices.insert(key, group(slice.get("stats")?, places, &total)?);
    }
    let count = |key: &str| number(state, key).map_or(Some(None), |n| total.add(n).map(Some));
    Some(Statistics {
        unit,
        selection,
        memory: number(state, "memory")?,
        shards: total.get(state, "shards")?,
        sampled_from: count("sampled_from")?,
        skipped: total.get(state, "skipped")?,
        first_skipped: optional("first_skipped"),
        left_out: (count("damaged_ranges")?.unwrap_or(0), count("damaged_bytes")?.unwrap_or(0)),
        warnings: Vec::new(),
        unseen: texts("unseen").into_iter().flatten().map(str::to_owned).collect(),
        value_names: BTreeMap::new(),
        saved: total.0.get(),
    })
}

fn list<'v>(value: &'v Value, key: &str) -> Option<&'v Vec<Value>> {
    value.get(key)?.as_array()
}

/// Reads a member that may be missing or null. `None` if it cannot be read.
fn optional<T>(value: &Value, key: &str, read: impl Fn(&Value) -> Option<T>) -> Option<Option<T>> {
    value.get(key).filter(|value| !value.is_null()).map_or(Some(None), |value| read(value).map(Some))
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

/// The sum of the counts of a file, which is limited.
#[derive(Default)]
struct CountTotal(Cell<u64>);

impl CountTotal {
    fn add(&self, n: u64) -> Option<u64> {
        self.0.set(saved_total(self.0.get().checked_add(n)?)?);
        Some(n)
    }

    fn get(&self, value: &Value, key: &str) -> Option<u64> {
        self.add(number(value, key)?)
    }

    fn list<const N: usize>(&self, value: &Value, key: &str) -> Option<[u64; N]> {
        let counts: [u64; N] = numbers(value, key)?;
        counts.iter().try_for_each(|n| self.add(*n).map(drop))?;
        Some(counts)
    }
}

/// Returns a number that was saved as a string, because JSON parsers have at most 64 bits for it.
fn large(value: &Value, key: &str) -> Option<u128> {
    value.get(key)?.as_str()?.parse().ok()
}

fn put_group(json: &mut JsonText, group: &RecordStats) {
    json.object(|json| {
        json.key("kinds").list(group.kinds, JsonText::raw);
        put_sizes(json.key("sizes"), &group.sizes);
        let mut hashes: Vec<_> = group.payloads.hashes.keys().collect();
        hashes.sort_unstable();
        json.key("hashes").list(hashes, JsonText::raw);
        put_registers(json.key("estimate"), group.payloads.estimate.as_ref());
        for (key, all) in [("features", &group.features), ("lists", &group.lists)] {
            json.key(key).list(all, |json, stats| json.optional(stats.as_deref(), put_feature));
        }
        json.key("payload_types").list(group.fields.types.to_array(), JsonText::raw);
        json.key("fields")
            .list(&group.fields.fields, |json, (number, field)| put_field(json, *number, field));
    });
}

fn put_field(json: &mut JsonText, number: u32, field: &FieldStats) {
    json.object(|json| {
        json.key("number").raw(number);
        json.key("types").list(field.types, JsonText::raw);
        put_sizes(json.key("values"), &field.values);
        put_sizes(json.key("lengths"), &field.lengths);
        json.key("ints").optional(field.ints.as_deref(), put_ints);
        // The bits of doubles.
        json.key("floats").list(field.floats, |json, bounds| {
            json.list(bounds.into_iter().flat_map(|(a, b)| [a.to_bits(), b.to_bits()]), JsonText::raw);
        });
        json.key("limited").raw(field.limited);
    });
}

fn field(value: &Value, total: &CountTotal) -> Option<(u32, Box<FieldStats>)> {
    let bounds = |value: &Value| -> Option<Option<(f64, f64)>> {
        let bits: Option<Vec<u64>> = value.as_array()?.iter().map(Value::as_u64).collect();
        match bits?.as_slice() {
            [] => Some(None),
            [low, high] => {
                let low = f64::from_bits(*low);
                let high = f64::from_bits(*high);
                (low <= high && low.is_finite() && high.is_finite()).then_some(Some((low, high)))
            }
            _ => None,
        }
    };
    let [fixed32, fixed64] = list(value, "floats")?.as_slice() else { return None };
    let stats = FieldStats {
        types: total.list(value, "types")?,
        values: sizes(value.get("values")?, total)?,
        lengths: sizes(value.get("lengths")?, total)?,
        ints: optional(value, "ints", |ints| int_stats(ints, total))?.map(Box::new),
        floats: [bounds(fixed32)?, bounds(fixed64)?],
        limited: value.get("limited")?.as_bool()?,
    };
    let number = u32::try_from(number(value, "number")?).ok()?;
    Some((number, Box::new(stats)))
}

fn payload_fields(value: &Value, total: &CountTotal) -> Option<PayloadFields> {
    let all = list(value, "fields")?;
    let fields: BTreeMap<_, _> = all.iter().map(|value| field(value, total)).collect::<Option<_>>()?;
    let is_sound = fields.len() == all.len() && fields.len() <= MAX_NUMBERS;
    let types = TypeCounts::from_array(total.list(value, "payload_types")?);
    is_sound.then_some(PayloadFields { types, fields })
}

fn put_ints(json: &mut JsonText, ints: &IntStats) {
    json.object(|json| {
        json.key("exact").raw(ints.is_exact);
        put_counters(json.key("table"), &ints.table);
        put_counters(json.key("counters"), &ints.counters);
        put_moments(json.key("moments"), &ints.moments);
        json.key("bounds").list(ints.bounds.into_iter().flat_map(|(a, b)| [a, b]), JsonText::raw);
        put_frequencies(json.key("values"), &ints.frequencies);
    });
}

fn group(value: &Value, (features, lists): (usize, usize), total: &CountTotal) -> Option<RecordStats> {
    let all = |key: &str, n: usize| -> Option<Vec<Option<Box<FeatureStats>>>> {
        let items = list(value, key)?;
        let read = |item: &Value| match item {
            Value::Null => Some(None),
            item => feature(item, total).map(|stats| Some(Box::new(stats))),
        };
        (items.len() <= n).then(|| items.iter().map(read).collect::<Option<_>>())?
    };
    let mut payloads =
        DistinctHashes { estimate: registers(value, "estimate")?, ..DistinctHashes::default() };
    for hash in list(value, "hashes")? {
        payloads.add(hash.as_u64()?);
    }
    Some(RecordStats {
        kinds: total.list(value, "kinds")?,
        sizes: sizes(value.get("sizes")?, total)?,
        payloads,
        fields: payload_fields(value, total)?,
        features: all("features", features)?,
        lists: all("lists", lists)?,
    })
}

fn numbers<const N: usize>(value: &Value, key: &str) -> Option<[u64; N]> {
    let all: Option<Vec<u64>> = list(value, key)?.iter().map(Value::as_u64).collect();
    all?.try_into().ok()
}

fn put_feature(json: &mut JsonText, stats: &FeatureStats) {
    json.object(|json| {
        json.key("kinds").list(stats.kinds, JsonText::raw);
        json.key("kindless").raw(stats.kindless);
        json.key("empty").raw(stats.empty);
        json.key("limited").raw(stats.limited);
        put_sizes(json.key("lengths"), &stats.lengths);
        json.key("steps").optional(stats.steps.as_ref(), put_sizes);
        json.key("ints").optional(stats.ints.as_deref(), put_ints);
        json.key("floats").optional(stats.floats.as_deref(), |json, floats| {
            json.object(|json| {
                let counts = [floats.zeros, floats.nan, floats.infinite, floats.negative_infinite];
                json.key("counts").list(counts, JsonText::raw);
                put_counters(json.key("counters"), &floats.counters);
                put_moments(json.key("moments"), &floats.moments);
                let bounds = floats.bounds.into_iter().flat_map(|(a, b)| [a.to_bits(), b.to_bits()]);
                json.key("bounds").list(bounds, JsonText::raw);
                put_frequencies(json.key("values"), &floats.frequencies);
            });
        });
        json.key("bytes").optional(stats.bytes.as_deref(), |json, bytes| {
            json.object(|json| {
                put_sizes(json.key("lengths"), &bytes.lengths);
                json.key("not_utf8").raw(bytes.not_utf8);
                put_texts(json.key("values"), &bytes.frequencies);
                json.key("images").optional(bytes.images.as_deref(), |json, images| {
                    json.object(|json| {
                        json.key("formats").object(|json| {
                            images.formats.iter().for_each(|(format, n)| json.key(format).raw(n));
                        });
                        put_sizes(json.key("widths"), &images.widths);
                        put_sizes(json.key("heights"), &images.heights);
                        json.key("undecodable").raw(images.undecodable);
                    });
                });
            });
        });
    });
}

fn feature(value: &Value, total: &CountTotal) -> Option<FeatureStats> {
    Some(FeatureStats {
        kinds: total.list(value, "kinds")?,
        kindless: total.get(value, "kindless")?,
        empty: total.get(value, "empty")?,
        lengths: sizes(value.get("lengths")?, total)?,
        steps: optional(value, "steps", |steps| sizes(steps, total))?,
        bytes: optional(value, "bytes", |bytes| byte_stats(bytes, total))?.map(Box::new),
        floats: optional(value, "floats", |floats| float_stats(floats, total))?.map(Box::new),
        ints: optional(value, "ints", |ints| int_stats(ints, total))?.map(Box::new),
        limited: value.get("limited")?.as_bool()?,
        ..FeatureStats::default()
    })
}

fn int_stats(value: &Value, total: &CountTotal) -> Option<IntStats> {
    let mut stats = IntStats::new();
    stats.is_exact = value.get("exact")?.as_bool()?;
    stats.table = counters(value, "table", total)?;
    stats.counters = counters(value, "counters", total)?;
    stats.moments = moments(value.get("moments")?, total)?;
    let bounds: Option<Vec<i64>> = list(value, "bounds")?.iter().map(Value::as_i64).collect();
    stats.bounds = match *bounds? {
        [] => None,
        [low, high] if low <= high => Some((low, high)),
        _ => return None,
    };
    stats.frequencies = frequencies(value.get("values")?, total)?;
    Some(stats)
}

fn float_stats(value: &Value, total: &CountTotal) -> Option<FloatStats> {
    let [zeros, nan, infinite, negative_infinite] = total.list(value, "counts")?;
    let bounds: Option<Vec<u64>> = list(value, "bounds")?.iter().map(Value::as_u64).collect();
    let bounds: Option<Vec<f32>> =
        bounds?.into_iter().map(|bits| u32::try_from(bits).ok().map(f32::from_bits)).collect();
    let mut stats = FloatStats::default();
    (stats.zeros, stats.nan, stats.infinite, stats.negative_infinite) =
        (zeros, nan, infinite, negative_infinite);
    stats.bounds = match *bounds? {
        [] => None,
        [low, high] if low <= high && low.is_finite() && high.is_finite() => Some((low, high)),
        _ => return None,
    };
    stats.counters = counters(value, "counters", total)?;
    stats.moments = moments(value.get("moments")?, total)?;
    stats.frequencies = frequencies(value.get("values")?, total)?;
    Some(stats)
}

fn byte_stats(value: &Value, total: &CountTotal) -> Option<ByteStats> {
    Some(ByteStats {
        lengths: sizes(value.get("lengths")?, total)?,
        not_utf8: total.get(value, "not_utf8")?,
        frequencies: texts(value.get("values")?, total)?,
        images: optional(value, "images", |images| image_stats(images, total))?.map(Box::new),
    })
}

fn image_stats(value: &Value, total: &CountTotal) -> Option<ImageStats> {
    let formats = value.get("formats")?.as_object()?.iter();
    let formats = formats.map(|(format, n)| Some((format.clone(), total.add(n.as_u64()?)?)));
    Some(ImageStats {
        formats: formats.collect::<Option<_>>()?,
        widths: sizes(value.get("widths")?, total)?,
        heights: sizes(value.get("heights")?, total)?,
        undecodable: total.get(value, "undecodable")?,
    })
}

fn put_sizes(json: &mut JsonText, sizes: &SizeCounters) {
    json.object(|json| {
        put_counters(json.key("counters"), &sizes.counters);
        json.key("n").raw(sizes.n);
        json.key("sum").string(&sizes.sum.to_string());
        json.key("bounds").list([sizes.min, sizes.max], JsonText::raw);
    });
}

fn sizes(value: &Value, total: &CountTotal) -> Option<SizeCounters> {
    let [min, max] = numbers(value, "bounds")?;
    let n = total.get(value, "n")?;
    Some(SizeCounters {
        counters: counters(value, "counters", total)?,
        n,
        sum: large(value, "sum").filter(|sum| *sum <= u128::from(n) * u128::from(max))?,
        min,
        max,
        ..SizeCounters::default()
    })
}

fn put_counters(json: &mut JsonText, counters: &KeyCounters) {
    json.list(counters.iter().flat_map(|(key, n)| [u64::from(key), n]), JsonText::raw);
}

fn counters(value: &Value, key: &str, total: &CountTotal) -> Option<KeyCounters> {
    let mut counters = KeyCounters::default();
    for pair in list(value, key)?.chunks(2) {
        let [key, n] = pair else { return None };
        counters.add(u16::try_from(key.as_u64()?).ok()?, total.add(n.as_u64()?)?);
    }
    Some(counters)
}

fn put_moments(json: &mut JsonText, moments: &Moments) {
    json.object(|json| {
        json.key("n").raw(moments.n);
        json.key("mean").raw(Value::from(moments.mean));
        json.key("squares").raw(Value::from(moments.squares));
    });
}

fn moments(value: &Value, total: &CountTotal) -> Option<Moments> {
    // A sum that is not finite is null.
    let float = |key: &str| value.get(key).map(|value| value.as_f64().unwrap_or(f64::INFINITY));
    Some(Moments { n: total.get(value, "n")?, mean: float("mean")?, squares: float("squares")? })
}

fn put_registers(json: &mut JsonText, sketch: Option<&HyperLogLog>) {
    json.optional(sketch, |json, sketch| json.string(&STANDARD.encode(sketch.registers())));
}

fn registers(value: &Value, key: &str) -> Option<Option<HyperLogLog>> {
    match value.get(key)? {
        Value::Null => Some(None),
        value => HyperLogLog::from_registers(STANDARD.decode(value.as_str()?).ok()?).map(Some),
    }
}

fn put_frequencies(json: &mut JsonText, frequencies: &NumberFrequencies) {
    json.object(|json| {
        json.key("keep").raw(frequencies.keep);
        json.key("missed").raw(frequencies.missed);
        put_registers(json.key("distinct"), frequencies.distinct.as_ref());
        json.key("counts").list(frequencies.counts.iter().flat_map(|(bits, n)| [bits, n]), JsonText::raw);
    });
}

/// Returns the number of counters that are kept.
fn keep(value: &Value) -> Option<usize> {
    usize::try_from(number(value, "keep")?).ok().filter(|keep| (1..=EXACT).contains(keep))
}

fn frequencies(value: &Value, total: &CountTotal) -> Option<NumberFrequencies> {
    let mut frequencies = NumberFrequencies {
        keep: keep(value)?,
        missed: total.get(value, "missed")?,
        distinct: registers(value, "distinct")?,
        ..NumberFrequencies::default()
    };
    let pairs = list(value, "counts")?.chunks(2);
    let pair = |pair: &[Value]| match pair {
        [bits, n] => Some((bits.as_u64()?, total.add(n.as_u64()?)?)),
        _ => None,
    };
    frequencies.add_counts(pairs.map(pair).collect::<Option<_>>()?);
    Some(frequencies)
}

fn put_texts(json: &mut JsonText, texts: &TextFrequencies) {
    json.object(|json| {
        json.key("keep").raw(texts.keep);
        json.key("missed").raw(texts.missed);
        put_registers(json.key("distinct"), texts.distinct.as_ref());
        json.key("counts").list(texts.iter(), |json, (counter, text)| {
            json.nested(['[', ']'], |json| {
                json.raw(counter.count);
                match text {
                    Some(text) => json.raw(ReportValue::from(text)),
                    None => {
                        json.raw(counter.hash);
                        json.raw(counter.len);
                    }
                }
            });
        });
    });
}

fn texts(value: &Value, total: &CountTotal) -> Option<TextFrequencies> {
    let mut texts = TextFrequencies::default();
    (texts.keep, texts.missed) = (keep(value)?, total.get(value, "missed")?);
    let counts = list(value, "counts")?;
    if counts.len() > 2 * EXACT {
        return None;
    }
    for counter in counts {
        match counter.as_array()?.as_slice() {
            [n, hash, len] => {
                let len = len.as_u64().filter(|len| *len > KEPT as u64)?;
                texts.push(hash.as_u64()?, len, &[], total.add(n.as_u64()?)?);
            }
            [n, text] => {
                let decoded;
                let text = match text {
                    Value::String(text) => text.as_bytes(),
                    other => {
                        decoded = STANDARD.decode(other.get("base64")?.as_str()?).ok()?;
                        &decoded
                    }
                };
                if text.len() > KEPT {
                    return None;
                }
                let n = total.add(n.as_u64()?)?;
                texts.push(xxhash_rust::xxh3::xxh3_64(text), text.len() as u64, text, n);
            }
            _ => return None,
        }
    }
    texts.sort();
    texts.distinct = registers(value, "distinct")?;
    Some(texts)
}
