//! Statistics as a table for a terminal.

use super::bytes::ByteStats;
use super::chart::{self, Bars, NumberAxis};
use super::counters::Cell;
use super::feature::FeatureStats;
use super::fields::FieldStats;
use super::group::{RecordStats, SliceKey};
use super::histogram::{self, IntQuantile};
use super::moments::Moments;
use super::numbers::{FloatStats, IntStats};
use super::report::{KINDS, name_of};
use super::sizes::SizeCounters;
use super::statistics::Statistics;
use crate::digits::{brief, percent, thousands};
use crate::forms::fields::ValueType;
use std::fmt::Write;

/// Width and styles of a table.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TableStyle {
    /// Columns of the terminal. `None`: lines are as long as necessary.
    pub width: Option<usize>,
    /// Text before and after headings, e.g. escape sequences.
    pub heading: [String; 2],
    /// Text before and after labels.
    pub label: [String; 2],
}

/// The longest name that is printed whole, in characters.
const NAME: usize = 40;
/// The longest value that is printed whole, in characters.
const VALUE: usize = 24;
/// Number of values that are printed with their shares.
const FREQUENT: usize = 3;

impl Statistics {
    /// Returns what was left out: `; 1 record and 2 damaged ranges of 68 bytes left out`.
    fn loss(&self) -> String {
        let (ranges, bytes) = self.left_out;
        let records = (self.skipped > 0).then(|| things(self.skipped, "record"));
        let ranges =
            (ranges > 0).then(|| format!("{} of {}", things(ranges, "damaged range"), things(bytes, "byte")));
        let parts: Vec<_> = records.into_iter().chain(ranges).collect();
        format!("; {} left out", parts.join(" and "))
    }

    /// Returns a table with a line for each feature, and a line end after each line.
    pub fn table(&self, style: &TableStyle) -> String {
        let mut text = String::new();
        self.describe(&mut text, &self.unit.all, None, style);
        for (key, group) in &self.unit.slices {
            let by = self.selection.by.as_deref().unwrap_or_default();
            text.push('\n');
            self.describe(&mut text, group, Some(format!("{by} = {}", slice(key, self.names(by)))), style);
        }
        text
    }

    fn describe(&self, text: &mut String, group: &RecordStats, slice: Option<String>, style: &TableStyle) {
        let [examples, sequences, others] = group.kinds;
        let [features, lists] = self.unit.sorted(group);
        let fields = group.fields.messages();
        let mut kinds: Vec<String> =
            [(examples, "Example"), (sequences, "SequenceExample"), (others, "other record")]
                .into_iter()
                .filter(|(n, _)| *n > 0)
                .map(|(n, name)| things(n, name))
                .collect();
        if let (Some(of), Some(others)) = (group.fields.types.payload_type(), kinds.last_mut()) {
            *others = format!("{others} ({})", of.description());
        }
        let mut title = if kinds.is_empty() { "0 records".to_owned() } else { kinds.join(", ") };
        for (n, name) in [(features.len(), "feature"), (lists.len(), "feature list"), (fields.len(), "field")]
        {
            if n > 0 {
                title = title + ", " + &things(n as u64, name);
            }
        }
        let [on, off] = &style.heading;
        if let Some(slice) = slice {
            let _ = write!(text, "{on}{slice}{off}: ");
        }
        let (distinct, exact) = group.distinct_payloads();
        let total = examples + sequences + others;
        let seen = match self.sampled_from {
            Some(n) => format!("; a sample of {}", things(n, "record")),
            None if self.skipped > 0 || self.left_out.0 > 0 => self.loss(),
            None if total == 0 => String::new(),
            None if features.is_empty() && lists.is_empty() && fields.is_empty() => "; sizes only".to_owned(),
            None => "; every value seen".to_owned(),
        };
        let _ = writeln!(text, "{on}{title}{off}{seen}");
        if total > 0 {
            let mut line = format!("  records of {} bytes", sizes(&group.sizes));
            if distinct < total || !exact {
                let _ = write!(line, ", {} distinct", about(distinct, exact));
            }
            let _ = writeln!(text, "{}", fitted(&line, style));
        }
        let decoded = examples + sequences;
        let row_of = |(name, stats): &(&str, &FeatureStats)| row(name, stats, self.names(name), decoded);
        print_rows(text, "feature", "kind", features.iter().map(row_of), style);
        let row_of = |(name, stats): &(&str, &FeatureStats)| row(name, stats, None, sequences);
        print_rows(text, "feature list", "kind", lists.iter().map(row_of), style);
        let rows = fields.iter().map(|(number, name, stats)| field_row(*number, *name, stats, others));
        print_rows(text, "field", "type", rows, style);
    }
}

fn slice(key: &SliceKey, names: Option<&[Box<str>]>) -> String {
    match key {
        SliceKey::Missing => "no value".to_owned(),
        SliceKey::Int(value) => named(*value, names.unwrap_or_default()),
        SliceKey::Float(bits) => brief(f32::from_bits(*bits).into()),
        SliceKey::Bytes(value) => quoted(value),
    }
}

/// Returns a line, cut to the width of the table.
fn fitted(line: &str, style: &TableStyle) -> String {
    let line = line.trim_end();
    style.width.map_or_else(|| line.to_owned(), |width| shortened(line, width))
}

fn print_rows(
    text: &mut String,
    title: &str,
    kind: &str,
    rows: impl Iterator<Item = [String; 5]>,
    style: &TableStyle,
) {
    let mut cells = vec![[title, kind, "in", "distinct", "values"].map(str::to_owned)];
    cells.extend(rows);
    if cells.len() == 1 {
        return;
    }
    let width = |k: usize| {
        cells.iter().filter_map(|row| row.get(k)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2), width(3), 0];
    let before = widths.iter().take(4).map(|width| width + 2).sum::<usize>() + 2;
    let room = style.width.map(|width| width.saturating_sub(before));
    align(cells.iter_mut().skip(1).filter_map(|row| row.last_mut()).collect(), room);
    for (k, row) in cells.iter().enumerate() {
        let mut line = String::from("  ");
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        for line in line.lines().map(|line| fitted(line, style)) {
            let _ = match &style.label {
                [on, off] if k == 0 => writeln!(text, "{on}{line}{off}"),
                _ => writeln!(text, "{line}"),
            };
        }
    }
}

/// The separator of a range, a mean, a deviation and a histogram. Names and values have no tabs, only `\t`.
const COLUMN: char = '\t';

/// Aligns the range, the mean and the deviation of all rows that have them. If the widest row has no room, all
/// of them continue on a second line, so that histograms are not cut.
fn align(mut values: Vec<&mut String>, room: Option<usize>) {
    let mut widths = [0; 3];
    for text in values.iter().filter(|text| text.contains(COLUMN)) {
        for (width, part) in widths.iter_mut().zip(text.split(COLUMN)) {
            *width = part.chars().count().max(*width);
        }
    }
    let last = |text: &&mut String| text.rsplit(COLUMN).next().map_or(0, |last| last.chars().count());
    let last = values.iter().filter(|text| text.contains(COLUMN)).map(last).max().unwrap_or(0);
    let wraps = room.is_some_and(|room| widths.iter().map(|width| width + 2).sum::<usize>() + last > room);
    for text in values.iter_mut().filter(|text| text.contains(COLUMN)) {
        let widths = widths.into_iter().chain(std::iter::repeat(0));
        let parts = text.split(COLUMN).zip(widths).map(|(part, width)| format!("{part:width$}"));
        let parts: Vec<_> = parts.collect();
        **text = match parts.split_first() {
            Some((range, rest)) if wraps => format!("{range}\n      {}", rest.join("  ")),
            _ => parts.join("  "),
        };
    }
}

fn row(name: &str, stats: &FeatureStats, names: Option<&[Box<str>]>, records: u64) -> [String; 5] {
    let int_values =
        |ints: &IntStats| names.map_or_else(|| int_values(ints), |names| named_values(ints, names));
    let kinds = KINDS.into_iter().zip(stats.kinds).filter(|(_, n)| *n > 0);
    let kind = kinds.map(|(kind, _)| kind).collect::<Vec<_>>().join(", ");
    let kind = if kind.is_empty() { "none".to_owned() } else { kind };
    let present = of_all(stats.present(), records);
    let all = [
        stats.ints.as_ref().map(|ints| (ints.distinct(), int_values(ints))),
        stats.floats.as_ref().map(|floats| (floats.distinct(), float_values(floats))),
        stats.bytes.as_ref().map(|bytes| (bytes.distinct(), byte_values(bytes))),
    ];
    let all: Vec<_> = all.into_iter().flatten().collect();
    let distinct = all.iter().fold((0, true), |sum, (d, _)| (sum.0 + d.0, sum.1 && d.1));
    let mut values = all.into_iter().map(|(_, values)| values).collect::<Vec<_>>().join(";  ");
    let mut notes = Vec::new();
    if let Some(steps) = &stats.steps {
        notes.push(format!("{} steps", sizes(steps)));
    }
    // One value in each record is not worth a note.
    if stats.lengths.n > 0 && (stats.lengths.min, stats.lengths.max) != (1, 1) {
        let whole = if stats.steps.is_some() { "step" } else { "record" };
        notes.push(format!("{} a {whole}", sizes(&stats.lengths)));
    }
    for (n, what) in [(stats.kindless, "without kind"), (stats.empty, "empty")] {
        if n > 0 {
            notes.push(format!("{} {what}", thousands(n)));
        }
    }
    if !notes.is_empty() {
        let gap = if values.is_empty() { "" } else { "  " };
        values = format!("{values}{gap}({})", notes.join(", "));
    }
    [shortened(&readable(name), NAME), kind, present, about(distinct.0, distinct.1), values]
}

/// Returns a number of records, out of all of them.
fn of_all(n: u64, records: u64) -> String {
    if n == records { "all".to_owned() } else { format!("{} of {}", thousands(n), thousands(records)) }
}

fn field_row(number: u32, name: Option<&str>, stats: &FieldStats, records: u64) -> [String; 5] {
    let label = name.map_or_else(|| number.to_string(), |name| format!("{number} {name}"));
    let types = ValueType::ALL.into_iter().zip(stats.types).filter(|(_, n)| *n > 0);
    let types: Vec<_> = types.map(|(value_type, _)| value_type.name()).collect();
    let mut values = Vec::new();
    if let Some(ints) = &stats.ints {
        values.push(int_values(ints));
    }
    if stats.lengths.n > 0 {
        values.push(format!("{} bytes", sizes(&stats.lengths)));
    }
    for (low, high) in stats.floats.into_iter().flatten() {
        values.push(if low == high { brief(low) } else { format!("{} .. {}", brief(low), brief(high)) });
    }
    let mut values = values.join(";  ");
    if (stats.values.min, stats.values.max) != (1, 1) {
        let _ = write!(values, "  ({} a record)", sizes(&stats.values));
    }
    let distinct = stats.ints.as_ref().map(|ints| ints.distinct());
    let distinct = distinct.map_or_else(String::new, |(n, exact)| about(n, exact));
    [label, types.join(", "), of_all(stats.records(), records), distinct, values]
}

/// Returns the range of numbers with their median, and their mean, deviation and histogram.
fn number_values<T: NumberAxis>(
    [low, median, high]: [String; 3],
    cells: &[Cell<T>],
    bounds: (T, T),
    moments: &Moments,
) -> String {
    if low == high {
        return low;
    }
    let drawn = Bars::of(cells, Some(bounds));
    let bars = drawn.map_or_else(String::new, |drawn| {
        let axis = if drawn.is_log { " log" } else { "" };
        chart::line(drawn.bars.iter().map(|bar| bar.count)) + axis
    });
    let range = format!("{low} .. {median} .. {high}");
    let mean = brief(moments.mean().unwrap_or(0.0));
    let std = brief(moments.std().unwrap_or(0.0));
    format!("{range}{COLUMN}mean {mean}{COLUMN}std {std}{COLUMN}{bars}")
}

/// Returns a median of integers. The middle of a counter has a fraction.
fn int_median(value: IntQuantile) -> String {
    match value {
        IntQuantile::Value(value) => thousands(value),
        IntQuantile::Middle(value) => brief(value),
    }
}

fn int_values(ints: &IntStats) -> String {
    let Some((low, high)) = ints.all_bounds() else { return String::new() };
    let cells = ints.cells();
    let median = histogram::int_quantile(&cells, (low, high), 0.5).map_or_else(String::new, int_median);
    number_values([thousands(low), median, thousands(high)], &cells, (low, high), &ints.all_moments())
}

/// Returns the most frequent values with their names.
fn named_values(ints: &IntStats, names: &[Box<str>]) -> String {
    let shown = ints.top(FREQUENT).into_iter().map(|(value, count)| (named(value, names), count));
    frequent(shown.collect(), ints.all_moments().n, ints.distinct())
}

/// Returns a value with its name.
fn named(value: i64, names: &[Box<str>]) -> String {
    match name_of(value, names) {
        Some(name) => format!("{value} {}", quoted(name.as_bytes())),
        None => value.to_string(),
    }
}

/// Returns values with their shares of `n`, and how many others there are.
fn frequent(shown: Vec<(String, u64)>, n: u64, (distinct, exact): (u64, bool)) -> String {
    let more = distinct.saturating_sub(shown.len() as u64);
    let share = |(value, count): (String, u64)| format!("{value} {}", percent(count as f64, n as f64));
    let mut text = shown.into_iter().map(share).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(text, ", {} more", about(more, exact));
    }
    text
}

fn float_values(floats: &FloatStats) -> String {
    let mut parts = Vec::new();
    if let Some((low, high)) = floats.bounds {
        let cells = floats.cells();
        let bounds = (f64::from(low), f64::from(high));
        let median = histogram::quantile(&cells, bounds, 0.5).map_or_else(String::new, brief);
        let range = [brief(bounds.0), median, brief(bounds.1)];
        parts.push(number_values(range, &cells, bounds, &floats.moments));
    }
    for (n, what) in [(floats.nan, "NaN"), (floats.infinite, "inf"), (floats.negative_infinite, "-inf")] {
        if n > 0 {
            parts.push(format!("{} {what}", thousands(n)));
        }
    }
    parts.join("  ")
}

fn byte_values(bytes: &ByteStats) -> String {
    let mut parts = Vec::new();
    if let Some(images) = &bytes.images {
        let formats: Vec<_> =
            images.formats.iter().map(|(format, n)| format!("{} {format}", thousands(*n))).collect();
        parts.push(formats.join(", "));
        if images.widths.n > 0 {
            parts.push(format!("{} x {}", sizes(&images.widths), sizes(&images.heights)));
        }
        let without = bytes.without_header();
        if without > 0 {
            parts.push(format!("{} without a complete header", thousands(without)));
        }
    }
    let (distinct, exact) = bytes.distinct();
    let n = bytes.lengths.n;
    let repeats = n > 0 && (distinct < n / 2 || distinct <= 20);
    let top = bytes.top(FREQUENT);
    // Long and binary values that occur once say less than their lengths.
    let telling = top.iter().any(|(counter, text)| {
        counter.count > 1 || text.is_some_and(|text| std::str::from_utf8(text).is_ok())
    });
    if repeats && telling && bytes.images.is_none() {
        let shown = top.iter().map(|(counter, text)| {
            let value = text.map_or_else(|| format!("<{} bytes>", thousands(counter.len)), quoted);
            (value, counter.count)
        });
        parts.push(frequent(shown.collect(), n, (distinct, exact)));
    } else {
        parts.push(format!("{} bytes", sizes(&bytes.lengths)));
    }
    if bytes.not_utf8 > 0 && bytes.images.is_none() {
        parts.push(format!("{} not UTF-8", thousands(bytes.not_utf8)));
    }
    parts.join("  ")
}

/// Returns the range of sizes with their median.
fn sizes(sizes: &SizeCounters) -> String {
    if sizes.n == 0 {
        return "0".to_owned();
    }
    if sizes.min == sizes.max {
        return thousands(sizes.min);
    }
    let median = match histogram::int_quantile(&sizes.cells(), sizes.bounds(), 0.5) {
        Some(IntQuantile::Value(value)) => value as u64,
        Some(IntQuantile::Middle(value)) => value as u64,
        None => 0,
    };
    format!("{} .. {} .. {}", thousands(sizes.min), thousands(median), thousands(sizes.max))
}

fn things(n: u64, name: &str) -> String {
    format!("{} {name}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// Returns a number, with `~` if it is estimated.
fn about(n: u64, exact: bool) -> String {
    format!("{}{}", if exact { "" } else { "~" }, thousands(n))
}

/// Returns a text without control characters.
fn readable(text: &str) -> String {
    let plain =
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c.is_ascii_graphic() && c != '"');
    if plain { text.to_owned() } else { format!("{text:?}") }
}

/// Returns a byte string in quotes, or its size if it is not text.
fn quoted(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) if text.chars().count() > VALUE => {
            let start: String = text.chars().take(VALUE).collect();
            format!("{start:?}..")
        }
        Ok(text) => format!("{text:?}"),
        Err(_) => {
            let hex: String = value.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            format!("<{hex}{}>", if value.len() > 8 { ".." } else { "" })
        }
    }
}

fn shortened(text: &str, len: usize) -> String {
    if text.chars().count() <= len {
        return text.to_owned();
    }
    text.chars().take(len.saturating_sub(2)).chain("..".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned() {
        let mut values =
            ["1 .. 2\tmean 1\tstd 0.500\t▁█", "<2 bytes>", "10 .. 200\tmean 20\tstd 1\t█  (2 a record)"]
                .map(str::to_owned);
        align(values.iter_mut().collect(), None);
        let aligned = [
            "1 .. 2     mean 1   std 0.500  ▁█",
            "<2 bytes>",
            "10 .. 200  mean 20  std 1      █  (2 a record)",
        ];
        assert_eq!(values, aligned);
        let medians =
            [IntQuantile::Value(17_031_281_900), IntQuantile::Middle(178_687.5), IntQuantile::Middle(1e17)];
        assert_eq!(medians.map(int_median), ["17,031,281,900", "178,688", "1e17"]);
    }

    /// Binary values that occur once are described by their lengths.
    #[test]
    fn values_that_say_little_are_not_shown() {
        let mut bytes = ByteStats::default();
        [[0xff, 1], [0xff, 2]].iter().for_each(|value| bytes.add(value));
        bytes.flush();
        assert_eq!(byte_values(&bytes), "2 bytes  2 not UTF-8");
        bytes.add(&[0xff, 1]);
        bytes.flush();
        assert_eq!(byte_values(&bytes), "<ff01> 66.7 %, <ff02> 33.3 %  3 not UTF-8");
    }

    #[test]
    fn texts_have_no_control_characters() {
        assert_eq!(quoted(b"a\x1b[31m"), "\"a\\u{1b}[31m\"");
        assert_eq!(quoted(&[0xff; 9]), "<ffffffffffffffff..>");
        assert_eq!(readable("a\nb"), "\"a\\nb\"");
        let style = TableStyle { width: Some(6), ..TableStyle::default() };
        assert_eq!(fitted("0123456789", &style), "0123..");
    }
}
