//! Statistics of the top-level fields of payloads that are neither Examples nor SequenceExamples.

use super::bounds::{Bounds, joined, widened};
use super::numbers::IntStats;
use super::sizes::SizeCounters;
use crate::forms::fields::{MAX_NUMBERS, RawFields, RawValue, TypeCounts, ValueType};
use std::collections::BTreeMap;

/// Statistics of one field.
#[derive(Clone, Default)]
pub(crate) struct FieldStats {
    /// Values by type, in the order of [`ValueType::ALL`].
    pub(crate) types: [u64; 6],
    /// Values in each record that has the field.
    pub(crate) values: SizeCounters,
    /// Varints as 64-bit integers.
    pub(crate) ints: Option<Box<IntStats>>,
    /// Lengths of length-delimited values.
    pub(crate) lengths: SizeCounters,
    /// Bounds of four bytes as floats, and of eight bytes as doubles, without values that are not finite.
    pub(crate) floats: [Bounds<f64>; 2],
    /// Exact counting was ended to save memory.
    pub(crate) limited: bool,
}

impl FieldStats {
    fn add(&mut self, value: RawValue<'_>) {
        let value_type = ValueType::of(value);
        let types = self.types.iter_mut().zip(ValueType::ALL);
        types.filter(|(_, other)| *other == value_type).for_each(|(n, _)| *n += 1);
        match value {
            RawValue::Varint(value) => {
                self.ints.get_or_insert_with(|| Box::new(IntStats::new())).add(value as i64);
            }
            RawValue::Len(value) => self.lengths.add(value.len()),
            RawValue::Fixed32(bits) => self.add_float(0, f32::from_bits(bits).into()),
            RawValue::Fixed64(bits) => self.add_float(1, f64::from_bits(bits)),
        }
    }

    fn add_float(&mut self, k: usize, value: f64) {
        if value.is_finite()
            && let Some(bounds) = self.floats.get_mut(k)
        {
            *bounds = widened(*bounds, value);
        }
    }

    /// Returns the number of records that have the field.
    pub(crate) fn records(&self) -> u64 {
        self.values.n
    }

    pub(crate) fn flush(&mut self) {
        self.values.flush();
        self.lengths.flush();
        self.ints.iter_mut().for_each(|ints| ints.flush());
    }

    /// Ends exact counting, to save memory.
    fn approximate(&mut self) {
        self.limited = true;
        self.ints.iter_mut().for_each(|ints| ints.approximate());
    }

    fn merge(&mut self, other: &FieldStats) {
        if other.limited && !self.limited {
            self.approximate();
        }
        for (n, m) in self.types.iter_mut().zip(other.types) {
            *n += m;
        }
        self.values.merge(&other.values);
        self.lengths.merge(&other.lengths);
        if let Some(ints) = &other.ints {
            self.ints.get_or_insert_with(|| Box::new(IntStats::new())).merge(ints);
        }
        for (bounds, others) in self.floats.iter_mut().zip(other.floats) {
            *bounds = joined(*bounds, others);
        }
        if self.limited {
            // Integers that only the other one has.
            self.approximate();
        }
    }

    fn memory(&self) -> u64 {
        size_of::<FieldStats>() as u64
            + self.values.counters.bytes()
            + self.lengths.counters.bytes()
            + self.ints.as_ref().map_or(0, |ints| ints.bytes())
    }
}

/// Statistics of payloads by their fields.
#[derive(Clone, Default)]
pub(crate) struct PayloadFields {
    pub(crate) types: TypeCounts,
    pub(crate) fields: BTreeMap<u32, Box<FieldStats>>,
}

impl PayloadFields {
    /// Adds a payload: its type, and the fields for which `selects` returns true. Returns the number of
    /// fields that are not counted, because there are too many numbers, or `is_full` is true and the number
    /// is new.
    pub(crate) fn add(&mut self, payload: &[u8], selects: impl Fn(u32) -> bool, is_full: bool) -> u64 {
        let Some(numbers) = self.types.add(payload) else { return 0 };
        let mut not_counted = 0;
        for (number, n) in numbers.into_iter().filter(|(number, _)| selects(*number)) {
            match self.field(number, is_full) {
                Some(field) => field.values.add(n as usize),
                None => not_counted += 1,
            }
        }
        let mut raw = RawFields::new(payload);
        while let Some(Some((number, value))) = raw.next() {
            if selects(number)
                && let Some(field) = self.fields.get_mut(&number)
            {
                field.add(value);
            }
        }
        not_counted
    }

    /// Returns the statistics of a field, which are new if there is room.
    fn field(&mut self, number: u32, is_full: bool) -> Option<&mut FieldStats> {
        if (is_full || self.fields.len() >= MAX_NUMBERS) && !self.fields.contains_key(&number) {
            return None;
        }
        Some(self.fields.entry(number).or_default())
    }

    pub(crate) fn flush(&mut self) {
        self.fields.values_mut().for_each(|field| field.flush());
    }

    /// Adds the payloads of `other`. Returns the number of fields of records that are not counted.
    pub(crate) fn merge(&mut self, other: &PayloadFields, is_full: bool) -> u64 {
        self.types.merge(&other.types);
        let mut not_counted = 0;
        for (number, theirs) in &other.fields {
            match self.field(*number, is_full) {
                Some(field) => field.merge(theirs),
                None => not_counted += theirs.records(),
            }
        }
        not_counted
    }

    pub(crate) fn memory(&self) -> u64 {
        self.fields.values().map(|field| field.memory()).sum()
    }

    /// Ends exact counting, to save memory.
    pub(crate) fn approximate(&mut self) {
        for field in self.fields.values_mut() {
            if field.ints.as_ref().is_some_and(|ints| ints.exact_bytes() > 0) {
                field.approximate();
            }
        }
    }

    /// Returns the fields with their numbers, in ascending order, and their names if they are known. There
    /// are none if the payloads are no messages. The type has to fit all payloads: a message may be a text by
    /// accident, and the reverse.
    pub(crate) fn messages(&self) -> Vec<(u32, Option<&'static str>, &FieldStats)> {
        let Some(of) = self.types.payload_type().filter(|payload_type| payload_type.is_message()) else {
            return Vec::new();
        };
        self.fields.iter().map(|(&number, field)| (number, of.field_name(number), &**field)).collect()
    }
}
