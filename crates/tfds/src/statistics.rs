//! `StepStatistics`: mean, deviation, range and quantiles of values over steps, as robot policies normalize
//! with.

use crate::decoder::Decoder;
use crate::episodes::Episodes;
use crate::error::{Result, refused_option, wrong};
use crate::feature::{LeafClass, LeafFeature};
use crate::windows::{Offsets, WindowOptions};
use serde_json::{Map, Value, json};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use tfseek::batch::{ArrayBits, Batch, Column, Values};
use tfseek::{Error, ErrorKind, TensorDType};

/// Maximum number of values of a step.
const MAX_DIMENSIONS: usize = 1 << 20;
/// Number of dimensions whose quantiles are counted together: each takes up to 2 MiB.
const GROUP: usize = 128;
/// Number of digits of a value, of 16 bits each.
const DIGITS: u32 = 4;
/// Number of counters of a digit.
const COUNTERS: usize = 1 << 16;
/// Steps of a batch.
const BATCH: u64 = 1024;

/// The probabilities of the quantiles.
const QUANTILES: [f64; 2] = [0.01, 0.99];

/// Options of [`Episodes::statistics`].
#[derive(Clone, Default)]
pub struct StatisticsOptions {
    /// Ranges of steps of episodes. `None`: all steps.
    pub anchors: Option<Vec<(u64, Range<u64>)>>,
    /// Leaves out values that are NaN. If false they are an error.
    pub skip_nan: bool,
    /// Number of threads. `None`: as many as processors.
    pub threads: Option<usize>,
    /// Called with the number of steps since its last call. It may cancel the work.
    pub progress: Option<Arc<dyn Fn(u64) -> ControlFlow<()> + Send + Sync>>,
}

/// The statistics of a value, for each of its dimensions, in row-major order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct KeyStatistics {
    /// Arithmetic means.
    pub mean: Vec<f64>,
    /// Standard deviations of the population.
    pub std: Vec<f64>,
    /// Greatest values.
    pub max: Vec<f64>,
    /// Least values.
    pub min: Vec<f64>,
    /// First percentiles, linear between neighbours as NumPy computes them.
    pub q01: Vec<f64>,
    /// 99th percentiles.
    pub q99: Vec<f64>,
}

/// The statistics of values over steps.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StepStatistics {
    /// The statistics of each value, in the order of the keys.
    pub keys: Vec<(String, KeyStatistics)>,
    /// Number of steps.
    pub transitions: u64,
    /// Number of episodes that have one of the steps.
    pub trajectories: u64,
}

/// The form of statistics in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatisticsStyle {
    /// OpenVLA's form: `q01`, `q99`, and `proprio`, of zeros if there is none.
    OpenVla,
    /// Octo's form: `p01`, `p99`, and `proprio` if there is one.
    Octo,
}

impl Episodes {
    /// Returns the paths of the features of a step that are numbers of a known shape: `Tensor` and `Scalar`,
    /// but not booleans.
    pub fn numbers(&self) -> Vec<String> {
        let is_numbers = |leaf: &LeafFeature| {
            matches!(leaf.class, LeafClass::Tensor | LeafClass::Scalar)
                && !matches!(leaf.dtype, TensorDType::String | TensorDType::Bool)
                && leaf.shape.iter().all(Option::is_some)
        };
        // A feature below another sequence has several values in a step.
        let one = |path: &str| self.parts.leaf(path).is_some_and(|leaf| leaf.inner.is_empty());
        let leaves = self.parts.step.leaves().into_iter();
        leaves.filter(|(path, leaf)| is_numbers(leaf) && one(path)).map(|(path, _)| path).collect()
    }

    /// Returns statistics of values of steps. Reads only their lists, several times: for the moments and for
    /// each digit of the quantiles.
    ///
    /// They are exact, in double precision, in memory that does not grow with the number of steps.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Options`](crate::TfdsErrorKind::Options) for keys that have no numbers of a known
    /// shape; NaN, unless they are skipped; errors of reading.
    pub fn statistics(&self, keys: &[&str], options: &StatisticsOptions) -> Result<StepStatistics> {
        let offsets = keys.iter().map(|key| (*key, Offsets::One(0)));
        let windows = WindowOptions { anchors: options.anchors.clone(), ..WindowOptions::default() };
        let windows = self.windows(offsets, &windows)?;
        for key in keys {
            let leaf = self.parts.leaf(key).map(|leaf| &leaf.feature);
            let known = leaf.is_some_and(|leaf| {
                leaf.dtype != TensorDType::String && leaf.shape.iter().all(Option::is_some)
            });
            if !known {
                return Err(refused_option(format!("feature {key:?}: expected numbers of a known shape")));
            }
        }
        let parser = Decoder::new(windows.features(), windows.decode())?.parser()?;
        let dataset = windows.windows().dataset();
        let read = |each: &mut dyn FnMut(&Batch) -> tfseek::Result<()>| -> tfseek::Result<()> {
            let loader = dataset.record_loader().parser(parser.clone()).batch_size(BATCH);
            for step in loader.threads(options.threads).build()? {
                let step = step?;
                if let Some(batch) = step.batch() {
                    each(batch)?;
                }
                let report = options.progress.as_ref().map(|progress| progress(step.ids.len() as u64));
                if report.is_some_and(|flow| flow.is_break()) {
                    return Err(ErrorKind::Cancelled.into());
                }
            }
            Ok(())
        };
        let mut reducers: Vec<Reducer> = keys.iter().map(|_| Reducer::new(options.skip_nan)).collect();
        let mut transitions = 0u64;
        let mut last = None;
        let mut trajectories = 0u64;
        read(&mut |batch| {
            transitions += batch.rows() as u64;
            for episode in batch.int64("_episode")? {
                // Windows are in the order of their episodes.
                if last != Some(*episode) {
                    last = Some(*episode);
                    trajectories += 1;
                }
            }
            each_key(keys, batch, &mut reducers, Reducer::moments)
        })?;
        rank(&mut reducers, |reducers| read(&mut |batch| each_key(keys, batch, reducers, Reducer::count)))?;
        let keys = keys.iter().zip(&reducers).map(|(key, reducer)| ((*key).to_owned(), reducer.finish()));
        Ok(StepStatistics { keys: keys.collect(), transitions, trajectories })
    }
}

/// Finds the quantiles. `count` passes all rows to [`Reducer::count`].
fn rank(
    reducers: &mut [Reducer],
    mut count: impl FnMut(&mut [Reducer]) -> tfseek::Result<()>,
) -> tfseek::Result<()> {
    // Each reducer begins a pass, if any of them needs one.
    while reducers.iter_mut().map(Reducer::begin_pass).fold(false, |any, needed| any | needed) {
        count(reducers)?;
        reducers.iter_mut().for_each(Reducer::end_pass);
    }
    Ok(())
}

/// Calls `f` with the values of each key, and its number of dimensions.
fn each_key(
    keys: &[&str],
    batch: &Batch,
    reducers: &mut [Reducer],
    f: impl Fn(&mut Reducer, &[f64], usize) -> tfseek::Result<()>,
) -> tfseek::Result<()> {
    for (key, reducer) in keys.iter().zip(reducers) {
        let located = |e: Error| e.feature(key.as_bytes());
        let Some(column @ Column::Dense(dense)) = batch.get(key) else {
            return Err(located(wrong("expected a column of numbers")));
        };
        let strings = || located(wrong("expected numbers, found strings"));
        let values = numbers(column.values()).ok_or_else(strings)?;
        let dimensions = dense.shape.iter().skip(1).product();
        f(reducer, &values, dimensions).map_err(located)?;
    }
    Ok(())
}

/// Returns numbers in double precision.
fn numbers(values: &Values) -> Option<Vec<f64>> {
    use ArrayBits as B;
    use TensorDType as T;
    fn floats<N: Copy>(numbers: &[N], float: impl Fn(N) -> f64) -> Option<Vec<f64>> {
        Some(numbers.iter().map(|number| float(*number)).collect())
    }
    let array = match values {
        Values::Int64(values) => return floats(values, |value| value as f64),
        Values::Float32(values) => return floats(values, f64::from),
        Values::Bytes(_) => return None,
        Values::Array(array) => array,
    };
    match (array.dtype(), array.bits()) {
        (T::Bool | T::UInt8, B::Bits8(bits)) => floats(bits, f64::from),
        (T::Int8, B::Bits8(bits)) => floats(bits, |bits| f64::from(bits.cast_signed())),
        (T::UInt16, B::Bits16(bits)) => floats(bits, f64::from),
        (T::Int16, B::Bits16(bits)) => floats(bits, |bits| f64::from(bits.cast_signed())),
        (T::Float16, B::Bits16(bits)) => floats(bits, |bits| half::f16::from_bits(bits).to_f64()),
        (T::BFloat16, B::Bits16(bits)) => floats(bits, |bits| half::bf16::from_bits(bits).to_f64()),
        (T::UInt32, B::Bits32(bits)) => floats(bits, f64::from),
        (T::Int32, B::Bits32(bits)) => floats(bits, |bits| f64::from(bits.cast_signed())),
        (T::Float32, B::Bits32(bits)) => floats(bits, |bits| f64::from(f32::from_bits(bits))),
        (T::UInt64, B::Bits64(bits)) => floats(bits, |bits| bits as f64),
        (T::Int64, B::Bits64(bits)) => floats(bits, |bits| bits.cast_signed() as f64),
        (T::Float64, B::Bits64(bits)) => floats(bits, f64::from_bits),
        _ => None,
    }
}

/// Returns bits that are in the order of the numbers. -0.0 is 0.0.
fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Returns the number of ordered bits.
fn unordered(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

/// A value of a rank, as far as its digits are known.
#[derive(Clone, Copy, Debug, Default)]
struct RankedValue {
    /// The known bits, at the top.
    prefix: u64,
    /// The rank among the values with these bits.
    rank: u64,
}

/// The ranks of a dimension: two neighbours of each quantile.
type Ranks = [[RankedValue; 2]; QUANTILES.len()];

/// Moments and exact quantiles of the dimensions of a value, of rows that are passed several times.
///
/// Each pass counts a digit of 16 bits of the values whose higher digits are a wanted rank's.
pub(crate) struct Reducer {
    skip_nan: bool,
    dimensions: Vec<Moments>,
    ranks: Vec<Ranks>,
    /// The dimensions whose quantiles are counted now.
    group: Range<usize>,
    /// Number of digits of the group's ranks that are known.
    digits: u32,
    /// Counters of each dimension of the group, for each distinct prefix.
    counts: Vec<Vec<(u64, Vec<u64>)>>,
}

/// Count, mean, sum of squared deviations (Welford), and range.
#[derive(Clone, Copy, Debug)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Reducer {
    pub(crate) fn new(skip_nan: bool) -> Reducer {
        let dimensions = Vec::new();
        let ranks = Vec::new();
        let counts = Vec::new();
        // The empty group at the beginning is done.
        Reducer { skip_nan, dimensions, ranks, group: 0..0, digits: DIGITS, counts }
    }

    /// Adds rows in the first pass.
    ///
    /// # Errors
    /// NaN, unless they are skipped, and too many dimensions.
    pub(crate) fn moments(&mut self, values: &[f64], dimensions: usize) -> tfseek::Result<()> {
        if dimensions > MAX_DIMENSIONS {
            let found = dimensions as u128;
            return Err(ErrorKind::TooMany { what: "dimensions", found, limit: MAX_DIMENSIONS as u64 }.into());
        }
        let none = Moments { count: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };
        self.dimensions.resize(dimensions, none);
        for row in values.chunks_exact(dimensions.max(1)) {
            for (value, moments) in row.iter().zip(&mut self.dimensions) {
                if value.is_nan() {
                    if self.skip_nan {
                        continue;
                    }
                    return Err(wrong("expected numbers, found NaN"));
                }
                moments.count += 1;
                let delta = value - moments.mean;
                moments.mean += delta / moments.count as f64;
                moments.squares += delta * (value - moments.mean);
                moments.min = moments.min.min(*value);
                moments.max = moments.max.max(*value);
            }
        }
        Ok(())
    }

    /// Returns the shifts of the known digits and of the next one, during a pass.
    fn shifts(&self) -> (u32, u32) {
        let known = self.digits * 16;
        (64 - known, 48 - known)
    }

    /// Prepares the next pass. Returns false if none is needed.
    pub(crate) fn begin_pass(&mut self) -> bool {
        if self.ranks.is_empty() {
            self.ranks = self.dimensions.iter().map(|moments| ranks(moments.count)).collect();
        }
        if self.digits == DIGITS {
            let end = self.group.end;
            self.group = end..self.ranks.len().min(end + GROUP);
            self.digits = 0;
        }
        let (shift, _) = self.shifts();
        let group = self.ranks.iter().skip(self.group.start).take(self.group.len());
        self.counts = group
            .map(|ranks| {
                let ranks = ranks.as_flattened().iter();
                let mut prefixes: Vec<u64> =
                    ranks.map(|rank| rank.prefix.checked_shr(shift).unwrap_or(0)).collect();
                prefixes.sort_unstable();
                prefixes.dedup();
                prefixes.into_iter().map(|prefix| (prefix, vec![0; COUNTERS])).collect()
            })
            .collect();
        !self.group.is_empty()
    }

    /// Adds rows in a later pass.
    ///
    /// # Errors
    /// None.
    pub(crate) fn count(&mut self, values: &[f64], dimensions: usize) -> tfseek::Result<()> {
        let (shift, digit_at) = self.shifts();
        for row in values.chunks_exact(dimensions.max(1)) {
            // There are counters for the dimensions of the group.
            for (value, counts) in row.iter().skip(self.group.start).zip(&mut self.counts) {
                if value.is_nan() {
                    continue;
                }
                let bits = ordered(*value);
                let prefix = bits.checked_shr(shift).unwrap_or(0);
                let digit = (bits >> digit_at) as u16;
                for (_, counts) in counts.iter_mut().filter(|(known, _)| *known == prefix) {
                    if let Some(count) = counts.get_mut(usize::from(digit)) {
                        *count += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the digits that were counted.
    pub(crate) fn end_pass(&mut self) {
        let (shift, digit_at) = self.shifts();
        for (ranks, counts) in self.ranks.iter_mut().skip(self.group.start).zip(&self.counts) {
            for rank in ranks.as_flattened_mut() {
                let prefix = rank.prefix.checked_shr(shift).unwrap_or(0);
                let Some((_, counts)) = counts.iter().find(|(known, _)| *known == prefix) else { continue };
                for (digit, &count) in counts.iter().enumerate() {
                    if rank.rank < count {
                        rank.prefix |= (digit as u64) << digit_at;
                        break;
                    }
                    rank.rank -= count;
                }
            }
        }
        self.digits += 1;
        self.counts = Vec::new();
    }

    /// Returns the statistics after the last pass. A dimension without values has zeros.
    pub(crate) fn finish(&self) -> KeyStatistics {
        let mut found = KeyStatistics::default();
        for (moments, ranks) in self.dimensions.iter().zip(&self.ranks) {
            if moments.count == 0 {
                found.push([0.0; 6]);
                continue;
            }
            let std = (moments.squares / moments.count as f64).max(0.0).sqrt();
            let quantiles = QUANTILES.iter().zip(ranks).map(|(q, pair)| {
                let [low, high] = pair.map(|rank| unordered(rank.prefix));
                let at = q * (moments.count - 1) as f64;
                between(low, high, at - at.floor())
            });
            found.push([moments.mean, std, moments.max, moments.min].into_iter().chain(quantiles));
        }
        found
    }
}

/// Returns the ranks of the neighbours of each quantile of this number of values.
fn ranks(count: u64) -> Ranks {
    let Some(last) = count.checked_sub(1) else { return Ranks::default() };
    QUANTILES.map(|q| {
        let low = (q * last as f64).floor() as u64;
        [low, low + 1].map(|at| RankedValue { prefix: 0, rank: at.min(last) })
    })
}

/// Returns a number between two others, with NumPy's rounding.
fn between(low: f64, high: f64, t: f64) -> f64 {
    let step = high - low;
    if t < 0.5 { low + step * t } else { high - step * (1.0 - t) }
}

impl StepStatistics {
    /// Returns the statistics of arrays: of each, the values row by row, and the number of values of a row.
    ///
    /// # Errors
    /// NaN, unless they are skipped; arrays of other numbers of rows.
    pub fn of_arrays<'a>(
        arrays: impl IntoIterator<Item = (&'a str, Vec<f64>, usize)>,
        skip_nan: bool,
    ) -> Result<StepStatistics> {
        let mut found = StepStatistics::default();
        for (name, values, dimensions) in arrays {
            let rows = values.len().checked_div(dimensions).unwrap_or(0) as u64;
            if !found.keys.is_empty() && rows != found.transitions {
                return Err(refused_option(format!(
                    "array {name:?}: expected {} rows, found {rows}",
                    found.transitions
                )));
            }
            found.transitions = rows;
            let mut reducer = Reducer::new(skip_nan);
            reducer.moments(&values, dimensions).map_err(|e| e.feature(name.as_bytes()))?;
            while reducer.begin_pass() {
                reducer.count(&values, dimensions)?;
                reducer.end_pass();
            }
            found.keys.push((name.to_owned(), reducer.finish()));
        }
        Ok(found)
    }

    /// Returns the statistics as JSON. `names` gives keys other names, as a rule `action` and `proprio`.
    pub fn to_json(&self, style: StatisticsStyle, names: &[(&str, &str)]) -> Value {
        let name_of =
            |key: &str| names.iter().find(|(from, _)| *from == key).map_or(key, |(_, to)| to).to_owned();
        let mut all = Map::new();
        for (key, found) in &self.keys {
            all.insert(name_of(key), found.to_json(style));
        }
        if style == StatisticsStyle::OpenVla
            && !all.contains_key("proprio")
            && let Some((_, action)) = self.keys.iter().find(|(key, _)| name_of(key) == "action")
        {
            let mut proprio = KeyStatistics::default();
            action.mean.iter().for_each(|_| proprio.push([0.0; 6]));
            all.insert("proprio".to_owned(), proprio.to_json(style));
        }
        all.insert("num_transitions".to_owned(), json!(self.transitions));
        all.insert("num_trajectories".to_owned(), json!(self.trajectories));
        Value::Object(all)
    }
}

impl KeyStatistics {
    /// Adds a dimension, in the order of the fields.
    fn push(&mut self, dimension: impl IntoIterator<Item = f64>) {
        let KeyStatistics { mean, std, max, min, q01, q99 } = self;
        for (values, value) in [mean, std, max, min, q01, q99].into_iter().zip(dimension) {
            values.push(value);
        }
    }

    fn to_json(&self, style: StatisticsStyle) -> Value {
        let KeyStatistics { mean, std, max, min, q01, q99 } = self;
        match style {
            StatisticsStyle::OpenVla => {
                json!({"mean": mean, "std": std, "max": max, "min": min, "q01": q01, "q99": q99})
            }
            StatisticsStyle::Octo => {
                json!({"mean": mean, "std": std, "max": max, "min": min, "p99": q99, "p01": q01})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek_testkit::rng::Rng;

    /// Sorts, and takes the neighbours of the quantile.
    fn naive(values: &[f64], q: f64) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = q * (sorted.len() - 1) as f64;
        let low = sorted[at.floor() as usize];
        let high = sorted[(at.floor() as usize + 1).min(sorted.len() - 1)];
        between(low, high, at - at.floor())
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn statistics_are_those_of_sorted_values() {
        let mut rng = Rng::new(1);
        for rows in [1usize, 2, 3, 99, 100, 101, 5000] {
            for kind in 0..4 {
                let dimensions = 1 + rng.below(140) / (1 + rows / 100);
                let mut value = || match kind {
                    0 => f64::from(rng.u64() as i32) / 1e6,
                    1 => (rng.below(3) as f64) - 1.0,
                    2 => f64::from(f32::from_bits(rng.u64() as u32 & 0x7f7f_ffff)),
                    _ => -f64::from(rng.below(10) as u32) * 1e300,
                };
                let values: Vec<f64> = (0..rows * dimensions).map(|_| value()).collect();
                let found = StepStatistics::of_arrays([("a", values.clone(), dimensions)], false).unwrap();
                let (_, found) = &found.keys[0];
                for d in 0..dimensions {
                    let column: Vec<f64> = values.iter().skip(d).step_by(dimensions).copied().collect();
                    assert_eq!(found.q01[d], naive(&column, 0.01), "{rows} {kind}");
                    assert_eq!(found.q99[d], naive(&column, 0.99), "{rows} {kind}");
                    assert_eq!(found.min[d], column.iter().copied().fold(f64::INFINITY, f64::min));
                    assert_eq!(found.max[d], column.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                    if kind < 2 {
                        let mean = column.iter().sum::<f64>() / rows as f64;
                        let squares: f64 = column.iter().map(|x| (x - mean) * (x - mean)).sum();
                        assert!((found.mean[d] - mean).abs() <= 1e-9 * (1.0 + mean.abs()));
                        let std = (squares / rows as f64).sqrt();
                        assert!((found.std[d] - std).abs() <= 1e-9 * (1.0 + std));
                    }
                }
            }
        }
    }

    /// All reducers take part in the passes of the one with the most dimensions.
    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn a_value_without_dimensions_is_passed_as_often_as_others() {
        let values: Vec<f64> = (0..=GROUP).map(|k| k as f64).collect();
        let mut reducers = [Reducer::new(false), Reducer::new(false)];
        reducers[1].moments(&values, values.len()).unwrap();
        rank(&mut reducers, |reducers| {
            reducers[0].count(&[], 0)?;
            reducers[1].count(&values, values.len())
        })
        .unwrap();
        assert_eq!(reducers[0].finish(), KeyStatistics::default());
        assert_eq!(reducers[1].finish().q99, values);
    }

    /// As many equal digits as there are in four billion steps and more.
    #[test]
    fn a_digit_is_counted_beyond_32_bits() {
        let mut reducer = Reducer::new(false);
        reducer.moments(&[1.0, 2.0], 1).unwrap();
        let ones: u64 = 97 << 30;
        let twos: u64 = 3 << 30;
        reducer.dimensions[0].count = ones + twos;
        while reducer.begin_pass() {
            let (shift, digit_at) = reducer.shifts();
            for (prefix, counts) in &mut reducer.counts[0] {
                for (value, count) in [(1.0, ones), (2.0, twos)] {
                    let bits = ordered(value);
                    if bits.checked_shr(shift).unwrap_or(0) == *prefix {
                        counts[usize::from((bits >> digit_at) as u16)] = count - 1;
                    }
                }
            }
            reducer.count(&[1.0, 2.0], 1).unwrap();
            reducer.end_pass();
        }
        let found = reducer.finish();
        assert_eq!((found.q01[0], found.q99[0]), (1.0, 2.0));
    }

    #[test]
    fn nan_is_an_error_or_left_out() {
        let values = vec![1.0, f64::NAN, 3.0];
        assert!(StepStatistics::of_arrays([("a", values.clone(), 1)], false).is_err());
        let found = StepStatistics::of_arrays([("a", values, 1)], true).unwrap();
        assert_eq!((found.keys[0].1.mean[0], found.keys[0].1.max[0]), (2.0, 3.0));
    }
}
