//! The rows of an episode's lists: what a list has for one step, as it is stored.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::encode::{count_strings, put_string};
use crate::keys::{EpisodeKeys, ResolvedValues, wrong};
use crate::payload::{PayloadParts, PayloadView};
use crate::table::{EpisodeTable, ListForm};
use std::borrow::Cow;
use tfseek::error::{Error, FeatureError, Result};
use tfseek::example::{DType, Example, Feature};
use tfseek_wire::{WireReader, varint};

/// The rows of one episode's lists. Those whose borders the table does not have are found by reading the list
/// once.
pub(crate) struct StepRows<'t> {
    keys: &'t EpisodeKeys,
    table: &'t EpisodeTable,
    found: Vec<FoundRows>,
}

/// The rows of a list that were found by reading it.
struct FoundRows {
    key: usize,
    /// The list as it would be encoded, if it is not a slice of the payload.
    made: Option<Vec<u8>>,
    /// End of each row.
    ends: Vec<u32>,
}

/// Returns the error of a list that is not divided among the steps as its lengths say.
#[cold]
fn uneven(expected: u64, found: u64) -> Error {
    wrong(format!("expected {expected} values in all steps, as their lengths say, found {found}"))
}

impl<'t> StepRows<'t> {
    pub(crate) fn new(keys: &'t EpisodeKeys, table: &'t EpisodeTable) -> StepRows<'t> {
        StepRows { keys, table, found: Vec::new() }
    }

    /// Adds the bytes that are needed for the rows of these steps.
    pub(crate) fn need(&self, parts: &mut PayloadParts, key: usize, steps: impl IntoIterator<Item = u32>) {
        let Some(known) = self.keys.all().get(key) else { return };
        let mut steps = steps.into_iter().peekable();
        match &known.values {
            _ if steps.peek().is_none() => {}
            ResolvedValues::Episode => parts.need_list(self.table, key),
            ResolvedValues::Steps { .. } => {
                steps.for_each(|step| parts.need_row(self.table, key, step));
            }
            ResolvedValues::Divided { lengths, .. } => {
                parts.need_list(self.table, key);
                lengths.iter().for_each(|length| parts.need_list(self.table, usize::from(*length)));
            }
        }
    }

    /// Finds the rows of a key, if the table does not have their borders. The bytes of the list must be in
    /// the view.
    ///
    /// # Errors
    /// The list has another kind, or other numbers of values than its lengths say.
    pub(crate) fn prepare(&mut self, view: PayloadView<'_>, key: usize) -> Result<()> {
        let form = self.table.place(key).form;
        let known = matches!(
            form,
            ListForm::Uniform { .. } | ListForm::Table | ListForm::Constant { .. } | ListForm::Absent
        );
        if known || self.found.iter().any(|found| found.key == key) {
            return Ok(());
        }
        let Some(known) = self.keys.all().get(key) else { return Ok(()) };
        let name = known.name.as_bytes();
        let counts = self.counts(view, key).map_err(|e| e.feature(name))?;
        let list = self.list(view, key).map_err(|e| e.feature(name))?;
        let bytes = &*list;
        let ends = match counts {
            Some(counts) => ends(known.kind, bytes, &counts).map_err(|e| e.feature(name))?,
            None => vec![bytes.len() as u32],
        };
        let made = match list {
            Cow::Owned(made) => Some(made),
            Cow::Borrowed(_) => None,
        };
        self.found.push(FoundRows { key, made, ends });
        Ok(())
    }

    /// Checks that the lists of a payload are divided among its steps as their lengths say.
    ///
    /// # Errors
    /// The first one that is not.
    pub(crate) fn check(payload: &[u8], keys: &EpisodeKeys, table: &EpisodeTable) -> Result<()> {
        let divided = |key: &usize| {
            keys.all().get(*key).is_some_and(|key| matches!(key.values, ResolvedValues::Divided { .. }))
        };
        (0..keys.len())
            .filter(divided)
            .try_for_each(|key| StepRows::new(keys, table).prepare(PayloadView::Whole(payload), key))
    }

    /// Returns a list: made of values that are no slice of the payload, or the slice.
    fn list<'v>(&self, view: PayloadView<'v>, key: usize) -> Result<Cow<'v, [u8]>> {
        let place = self.table.place(key);
        if place.form != ListForm::Irregular {
            let list = view.get(place.start..place.start.saturating_add(place.len));
            return Ok(Cow::Borrowed(list.unwrap_or_default()));
        }
        let (Some(known), Some(payload)) = (self.keys.all().get(key), view.whole()) else {
            return Ok(Cow::Borrowed(&[]));
        };
        let Some(feature) = Example::new(payload).get(&known.name)? else {
            return Ok(Cow::Owned(Vec::new()));
        };
        let mut made = Vec::new();
        match (feature, known.kind) {
            (Feature::None, _) => {}
            (Feature::Float(list), DType::Float32) => {
                list.iter().for_each(|value| made.extend(value.to_bits().to_le_bytes()));
            }
            (Feature::Int64(list), DType::Int64) => {
                list.iter().for_each(|value| tfseek_wire::put_varint(value as u64, &mut made));
            }
            (Feature::Bytes(list), DType::Bytes) => {
                list.iter().for_each(|value| put_string(value, &mut made));
            }
            (found, expected) => {
                let found = found.kind().map_or("no kind", DType::list_name);
                return Err(FeatureError::WrongKind { expected: expected.list_name(), found }.into());
            }
        }
        Ok(Cow::Owned(made))
    }

    /// Returns the number of values of each step. `None` for values of the episode.
    fn counts(&self, view: PayloadView<'_>, key: usize) -> Result<Option<Vec<u64>>> {
        let Some(known) = self.keys.all().get(key) else { return Ok(None) };
        let steps = self.table.steps() as usize;
        let (lengths, width): (&[u16], u32) = match &known.values {
            ResolvedValues::Episode => return Ok(None),
            ResolvedValues::Steps { width } => (&[], *width),
            ResolvedValues::Divided { lengths, width } => (lengths, *width),
        };
        let mut counts: Vec<u64> = Vec::new();
        counts.try_reserve_exact(steps)?;
        counts.resize(steps, 1);
        for length in lengths {
            let list = self.list(view, usize::from(*length))?;
            let numbers = integers(&list)?;
            let all: u64 = counts.iter().fold(0, |sum, count| sum.saturating_add(*count));
            if all != numbers.len() as u64 {
                return Err(uneven(all, numbers.len() as u64));
            }
            let mut numbers = numbers.into_iter();
            for count in &mut counts {
                let mut items = 0u64;
                for number in numbers.by_ref().take(*count as usize) {
                    let Ok(number) = u64::try_from(number) else {
                        return Err(wrong(format!("expected a number of items, found {number}")));
                    };
                    items = items.saturating_add(number);
                }
                *count = items;
            }
        }
        for count in &mut counts {
            *count = count.saturating_mul(width.into());
        }
        Ok(Some(counts))
    }

    /// Returns true if the record does not have the feature.
    pub(crate) fn is_absent(&self, key: usize) -> bool {
        self.table.place(key).form == ListForm::Absent
    }

    /// Returns the row of a step, as it is stored. `None` if the record does not have the feature.
    #[inline]
    pub(crate) fn row<'s>(&'s self, view: PayloadView<'s>, key: usize, step: u32) -> Option<&'s [u8]> {
        if let Some(row) = self.table.row(key, step) {
            return view.get(row);
        }
        let FoundRows { made, ends, .. } = self.found.iter().find(|found| found.key == key)?;
        let of_episode = self.keys.all().get(key).is_some_and(|key| key.values == ResolvedValues::Episode);
        // All steps have the values of their episode.
        let step = if of_episode { 0 } else { step };
        let from = match step.checked_sub(1) {
            Some(before) => *ends.get(before as usize)?,
            None => 0,
        };
        let to = *ends.get(step as usize)?;
        match made {
            Some(made) => made.get(from as usize..to as usize),
            None => {
                let start = self.table.place(key).start;
                view.get(start.checked_add(from)?..start.checked_add(to)?)
            }
        }
    }

    /// Returns a list, as it is stored. `None` if the record does not have the feature.
    pub(crate) fn whole<'s>(&'s self, view: PayloadView<'s>, key: usize) -> Option<&'s [u8]> {
        let place = self.table.place(key);
        match place.form {
            ListForm::Absent => None,
            ListForm::Irregular => {
                self.found.iter().find(|found| found.key == key).and_then(|found| found.made.as_deref())
            }
            _ => view.get(place.start..place.start.saturating_add(place.len)),
        }
    }
}

/// Returns the integers of a list.
fn integers(row: &[u8]) -> Result<Vec<i64>> {
    let mut values = vec![0; varint::count(row)?];
    let found = varint::decode(row, &mut values);
    values.truncate(found);
    Ok(values)
}

/// Returns the end of each step's values in a list.
fn ends(kind: DType, bytes: &[u8], counts: &[u64]) -> Result<Vec<u32>> {
    let all = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    let mut ends = Vec::new();
    ends.try_reserve_exact(counts.len())?;
    let found = match kind {
        DType::Float32 => {
            let mut end = 0u64;
            for count in counts {
                end = end.saturating_add(count.saturating_mul(4));
                ends.push(u32::try_from(end).unwrap_or(u32::MAX));
            }
            bytes.len() as u64 / 4
        }
        DType::Int64 => {
            let mut rest = bytes.iter();
            for count in counts {
                for _ in 0..*count {
                    if !rest.any(|byte| *byte < 0x80) {
                        break;
                    }
                }
                ends.push(bytes.len().saturating_sub(rest.len()) as u32);
            }
            varint::count(bytes)? as u64
        }
        DType::Bytes => {
            let mut reader = WireReader::new(bytes);
            for count in counts {
                for _ in 0..*count {
                    if reader.take_field(0x0a).is_none() {
                        break;
                    }
                }
                ends.push(bytes.len().saturating_sub(reader.rest().len()) as u32);
            }
            count_strings(bytes) as u64
        }
    };
    if found != all {
        return Err(uneven(all, found));
    }
    Ok(ends)
}
