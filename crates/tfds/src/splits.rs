//! Split specifications such as `train[:80%]+test`: their grammar, and the records that they select.
//!
//! ```text
//! spec := part ("+" part)*                   spaces around "+" only
//! part := NAME | NAME "[" sel "]" | "all"    "all": every split, in the order of the file
//! sel  := end ":" end | INT "shard"          not both ends empty
//! end  := "" | INT | NUMBER "%" | INT "shard"
//! ```

use crate::error::{Result, TfdsErrorKind, refused_option};
use crate::info::{DatasetInfo, content};
use crate::json::quoted;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Maximum number of splits that a message names.
const MAX_NAMED: usize = 20;

/// Maximum number of parts of an even division.
const MAX_PARTS: u64 = 1 << 20;

/// How a percentage of the records of a split becomes a number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// The nearest number, and the even one of two. `train[:50%]` and `train[50%:]` are all of `train`.
    #[default]
    Closest,
    /// As many times one percent, rounded down. All percents have the same number of records, and the
    /// remainder is left out of `train[:100%]`. A split of fewer than 100 records is an error. TFDS calls it
    /// `pct1_dropremainder`.
    Pct1DropRemainder,
}

/// Maximum number of parts of a specification, where `all` has as many as there are splits.
const MAX_SPEC_PARTS: usize = 1 << 20;

impl DatasetInfo {
    /// Returns the records that a specification selects: for each of its parts the number of the split in
    /// [`splits`](DatasetInfo::splits), and record numbers in the split.
    ///
    /// ```
    /// use tfseek_tfds::{DatasetInfo, Rounding};
    ///
    /// let text = br#"{"name": "tiny", "splits": [{"name": "train", "shardLengths": [3, 4, 5]}, {"name": "test", "shardLengths": [7]}]}"#;
    /// let info = DatasetInfo::parse(text)?;
    /// assert_eq!(info.select("train[:25%]+test[-2:]", Rounding::Closest)?, [(0, 0..3), (1, 5..7)]);
    /// # Ok::<(), tfseek_tfds::TfdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`TfdsErrorKind::Split`]. [`TfdsErrorKind::Info`] for a split without `shardLengths`, or with 2^64
    /// records or more.
    pub fn select(&self, spec: &str, rounding: Rounding) -> Result<Vec<(usize, Range<u64>)>> {
        let spec = Spec::parse(spec, self.splits.iter().map(|split| split.name.as_str()))?;
        for number in spec.splits() {
            if self.splits.get(number).is_none_or(|split| split.records().is_none()) {
                let field = format!("splits[{number}].shardLengths");
                return Err(content(field, "expected fewer than 2^64 records in all, found none or more"));
            }
        }
        let lengths = |split: usize| self.splits.get(split).and_then(|split| split.shard_lengths.as_deref());
        spec.ranges(|split| lengths(split).unwrap_or_default(), rounding)
    }
}

/// The number of a split, and records of it in file order.
pub(crate) type SplitRange = (usize, Range<u64>);

/// A split specification without the numbers of records that its ends depend on.
#[derive(Clone, Debug)]
pub(crate) struct Spec<'s> {
    text: &'s str,
    splits: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    split: usize,
    selection: Option<Selected>,
}

#[derive(Clone, Copy, Debug)]
enum Selected {
    Records(Option<i128>, Option<i128>),
    Percent(Option<f64>, Option<f64>),
    Shards(Option<i128>, Option<i128>),
}

impl<'s> Spec<'s> {
    /// Parses a specification. `names` are the names of the splits.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Split`].
    pub(crate) fn parse<'n>(text: &'s str, names: impl Iterator<Item = &'n str> + Clone) -> Result<Spec<'s>> {
        let mut spec = Spec { text, splits: listed(names.clone()), parts: Vec::new() };
        // Spaces are allowed around `+`, but neither before the first part nor after the last one.
        let mut rest = Some(text);
        while let Some(parts) = rest {
            let (part, after) = match parts.split_once('+') {
                Some((part, after)) => (part.trim_end(), Some(after.trim_start())),
                None => (parts, None),
            };
            spec.add(part, names.clone())?;
            rest = after;
        }
        Ok(spec)
    }

    fn add<'n>(&mut self, part: &str, names: impl Iterator<Item = &'n str> + Clone) -> Result<()> {
        let (name, selection) = match part.split_once('[') {
            Some((name, rest)) => {
                let inside = rest.strip_suffix(']').filter(|inside| !inside.contains(['[', ']']));
                (name, Some(inside.ok_or_else(|| self.fault(form(part)))?))
            }
            None => (part, None),
        };
        if !is_split_name(name) {
            return Err(self.fault(form(part)));
        }
        let selection = match selection {
            Some(inside) => Some(Selected::parse(inside).map_err(|reason| self.fault(reason))?),
            None => None,
        };
        let more = if name == "all" { names.clone().take(MAX_SPEC_PARTS).count() } else { 1 };
        if self.parts.len() + more > MAX_SPEC_PARTS {
            return Err(self.fault(format!("expected at most {MAX_SPEC_PARTS} parts, found more")));
        }
        if name == "all" {
            if selection.is_some() {
                return Err(self.fault("expected `all` without brackets".to_owned()));
            }
            self.parts.extend(names.enumerate().map(|(split, _)| Part { split, selection: None }));
        } else if let Some(split) = names.clone().position(|known| known == name) {
            self.parts.push(Part { split, selection });
        } else {
            let hint = nearest(name, names)
                .map_or(String::new(), |near| format!("; the nearest name is {}", quoted(near)));
            return Err(self.fault(format!("expected a split, found {}{hint}", quoted(name))));
        }
        Ok(())
    }

    fn fault(&self, reason: String) -> crate::TfdsError {
        let spec: String = self.text.chars().take(200).collect();
        TfdsErrorKind::Split { spec, reason: format!("{reason}. {}", self.splits) }.into()
    }

    /// Returns the numbers of the splits of all parts, in their order, each once.
    pub(crate) fn splits(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        self.parts.iter().map(|part| part.split).filter(|split| seen.insert(*split)).collect()
    }

    /// Returns the records of each part. `lengths` returns the numbers of records of the shards of a split.
    ///
    /// # Errors
    /// [`TfdsErrorKind::Split`] for ends outside of a split, and for a split too small for
    /// [`Rounding::Pct1DropRemainder`].
    pub(crate) fn ranges<'l>(
        &self,
        lengths: impl Fn(usize) -> &'l [u64],
        rounding: Rounding,
    ) -> Result<Vec<SplitRange>> {
        let mut totals = HashMap::new();
        let range = |part: &Part| {
            let lengths = lengths(part.split);
            let n = *totals.entry(part.split).or_insert_with(|| total(lengths));
            let (from, to) = match part.selection {
                None => (0, n),
                Some(selected) => {
                    selected.range(lengths, n, rounding).map_err(|reason| self.fault(reason))?
                }
            };
            Ok((part.split, from..to.max(from)))
        };
        self.parts.iter().map(range).collect()
    }
}

/// Returns true for a name that a split may have.
pub(crate) fn is_split_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// Divides each range into `parts` ranges of equal size. The first ones get one record more each if there is
/// a remainder, which `drop_remainder` leaves out. Returns the ranges of each part.
///
/// # Errors
/// [`TfdsErrorKind::Options`] for no parts, and for more than 2^20.
pub(crate) fn even_splits(
    ranges: &[SplitRange],
    parts: u64,
    drop_remainder: bool,
) -> Result<Vec<Vec<SplitRange>>> {
    if !(1..=MAX_PARTS).contains(&parts) {
        let reason = format!("even splits: expected from 1 to {MAX_PARTS} parts, found {parts}");
        return Err(refused_option(reason));
    }
    let mut starts: Vec<u64> = ranges.iter().map(|(_, records)| records.start).collect();
    let mut all = Vec::new();
    for part in 0..parts {
        let divided = ranges.iter().zip(&mut starts).map(|((split, records), start)| {
            let n = records.end - records.start;
            let more = u64::from(!drop_remainder && part < n % parts);
            let from = *start;
            *start = from + n / parts + more;
            (*split, from..*start)
        });
        all.push(divided.collect());
    }
    Ok(all)
}

impl Selected {
    /// Parses the text between brackets.
    fn parse(inside: &str) -> std::result::Result<Selected, String> {
        let bad = || selection_form(inside);
        let Some((from, to)) = inside.split_once(':') else {
            let shard = inside.strip_suffix("shard").and_then(integer).ok_or_else(bad)?;
            return Ok(Selected::Shards(Some(shard), Some(shard.saturating_add(1))));
        };
        let (from, from_unit) = with_unit(from);
        let (to, to_unit) = with_unit(to);
        // A unit without a number is no end.
        let is_bare = |number: &str, unit: &str| number.is_empty() && !unit.is_empty();
        if from.is_empty() && to.is_empty() || is_bare(from, from_unit) || is_bare(to, to_unit) {
            return Err(bad());
        }
        // The unit of the first end that has one applies to both.
        let unit = if from_unit.is_empty() { to_unit } else { from_unit };
        fn each<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
            if text.is_empty() { Some(None) } else { parse(text).map(Some) }
        }
        let selected = || {
            Some(match unit {
                "%" => Selected::Percent(each(from, decimal)?, each(to, decimal)?),
                "shard" => Selected::Shards(each(from, integer)?, each(to, integer)?),
                _ => Selected::Records(each(from, integer)?, each(to, integer)?),
            })
        };
        selected().ok_or_else(bad)
    }

    /// Returns the first record and the one after the last, of a split of `n` records.
    fn range(self, lengths: &[u64], n: u64, rounding: Rounding) -> std::result::Result<(u64, u64), String> {
        // A negative number counts from the end.
        let from_end = |end: i128| if end < 0 { i128::from(n) + end } else { end };
        let clamped = |end: i128| end.clamp(0, i128::from(n)) as u64;
        match self {
            Selected::Records(from, to) => {
                for end in [from, to].into_iter().flatten() {
                    if end.unsigned_abs() > u128::from(n) {
                        return Err(format!("expected ends from -{n} to {n}, found {end}"));
                    }
                }
                let end = |end: Option<i128>, absent| end.map_or(absent, |end| clamped(from_end(end)));
                Ok((end(from, 0), end(to, n)))
            }
            Selected::Percent(from, to) => {
                if rounding == Rounding::Pct1DropRemainder && n < 100 {
                    return Err(format!(
                        "expected at least 100 records, as percents are rounded down, found {n}"
                    ));
                }
                let end = |end: Option<f64>, absent| {
                    let Some(percent) = end else { return Ok(absent) };
                    if percent.abs() > 100.0 {
                        return Err(format!("expected percents from -100 to 100, found {percent}"));
                    }
                    let records = match rounding {
                        Rounding::Closest => (percent * n as f64 / 100.0).round_ties_even(),
                        Rounding::Pct1DropRemainder => (percent * (n / 100) as f64).trunc(),
                    };
                    Ok(clamped(from_end(records as i128)))
                };
                Ok((end(from, 0)?, end(to, n)?))
            }
            Selected::Shards(from, to) => {
                let shards = lengths.len() as i128;
                // The records of the shards before one. A negative number counts shards from the end.
                let before = |shard: i128| {
                    let shard = if shard < 0 { (shards + shard).max(0) } else { shard.min(shards) };
                    let shard = usize::try_from(shard).unwrap_or(lengths.len());
                    total(lengths.get(..shard).unwrap_or(lengths))
                };
                // An end of 0 is the end of the last shard, so that `[-1shard]` is `[-1shard:0shard]`.
                let last = |to: i128| if to <= 0 { shards + to } else { to };
                Ok((from.map_or(0, before), to.map_or(n, |to| before(last(to)))))
            }
        }
    }
}

/// Returns the number of an end and its unit, which may be empty.
fn with_unit(end: &str) -> (&str, &str) {
    let mut units = ["%", "shard"].into_iter();
    units.find_map(|unit| Some((end.strip_suffix(unit)?, unit))).unwrap_or((end, ""))
}

/// Returns the number of records of shards. It was checked that a split has fewer than 2^64.
fn total(lengths: &[u64]) -> u64 {
    lengths.iter().sum()
}

/// Returns an integer with `_` between digits. Large ones saturate.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let digits = without_underscores(digits).filter(|digits| digits.bytes().all(|c| c.is_ascii_digit()))?;
    let value = digits
        .bytes()
        .fold(0i128, |value, digit| value.saturating_mul(10).saturating_add(i128::from(digit - b'0')));
    Some(if negative { value.saturating_neg() } else { value })
}

/// Returns a decimal number without exponent, with `_` between digits.
fn decimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let part = |part: &str| {
        let digits = if part.is_empty() { Some(String::new()) } else { without_underscores(part) };
        digits.filter(|digits| digits.bytes().all(|c| c.is_ascii_digit()))
    };
    let whole = part(whole)?;
    let fraction = part(fraction)?;
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let value: f64 = format!("{whole}.{fraction}0").parse().ok()?;
    Some(if text.starts_with('-') { -value } else { value })
}

/// Removes single underscores between digits. `None` for other underscores, and for no digits.
fn without_underscores(digits: &str) -> Option<String> {
    digits.split('_').all(|run| !run.is_empty()).then(|| digits.replace('_', ""))
}

fn form(part: &str) -> String {
    format!("expected a split such as train or train[:80%], found {}", quoted(part))
}

fn selection_form(inside: &str) -> String {
    let inside = quoted(&format!("[{inside}]"));
    format!("expected [from:to] with numbers, percents or shards, such as [:80%] or [2shard], found {inside}")
}

/// Returns a sentence with the names of splits.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<String> = names
        .take(MAX_NAMED + 1)
        .map(|name| if is_split_name(name) && name.len() <= 100 { name.to_owned() } else { quoted(name) })
        .collect();
    if names.len() > MAX_NAMED {
        names.truncate(MAX_NAMED);
        names.push("..".to_owned());
    }
    match names.as_slice() {
        [] => "There are no splits".to_owned(),
        [name] => format!("The split is {name}"),
        names => format!("The splits are {}", names.join(", ")),
    }
}

/// Returns the nearest name: one that differs in a few letters only.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Long names have no typing errors that could be found in time.
    const LONGEST: usize = 200;
    if name.len() > LONGEST {
        return None;
    }
    let requested = name.to_lowercase();
    let near = names.take(1000).filter(|known| known.len() <= LONGEST).filter_map(|known| {
        let edits = strsim::osa_distance(&known.to_lowercase(), &requested);
        (edits <= (requested.chars().count() / 3).max(1)).then_some((edits, known))
    });
    near.min().map(|(_, known)| known)
}
