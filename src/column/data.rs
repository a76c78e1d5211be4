//! The validated values of a column file.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::layout::{DICT, PRESENT, VALUES, ValueEncoding};
use crate::filter::value::Value;
use crate::io::Region;
use std::ops::Range;

/// The contents of VALUES, PRESENT and DICT. They were validated, so access to them cannot fail.
#[derive(Debug)]
pub(crate) struct ColumnData {
    pub(super) encoding: ValueEncoding,
    n: u64,
    values: Region,
    present: Region,
    dict: Option<Dictionary>,
}

/// The strings of a column, ascending.
#[derive(Debug)]
struct Dictionary {
    d: usize,
    bytes: Region,
}

impl ColumnData {
    /// Validates sections with matching crcs and with the lengths of `n` values. This refuses any other
    /// inconsistency that a forged file can have. An error has the type of the section and the reason.
    pub(super) fn new(
        encoding: ValueEncoding,
        n: u64,
        values: Region,
        present: Region,
        dict: Option<Region>,
    ) -> Result<ColumnData, (u32, &'static str)> {
        let spare = (n % 8) as u32;
        if spare != 0 && present.last().is_none_or(|last| last.checked_shr(spare) != Some(0)) {
            return Err((PRESENT, "a bit after the last record is set"));
        }
        let dict = dict.map(Dictionary::new).transpose().map_err(|reason| (DICT, reason))?;
        let data = ColumnData { encoding, n, values, present, dict };
        if let Some(Dictionary { d, .. }) = data.dict
            && (0..n).any(|i| data.raw(i).is_none_or(|code| code as u64 >= d as u64))
        {
            return Err((VALUES, "a code is not below the number of strings in DICT"));
        }
        Ok(data)
    }

    pub(crate) fn len(&self) -> u64 {
        self.n
    }

    /// Returns true if record `i` has a value.
    #[inline]
    pub(crate) fn has(&self, i: u64) -> bool {
        let byte = usize::try_from(i / 8).ok().and_then(|at| self.present.get(at));
        i < self.n && byte.is_some_and(|byte| byte >> (i % 8) & 1 == 1)
    }

    /// Returns the number of records with a value.
    pub(crate) fn count(&self) -> u64 {
        self.present.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }

    /// Returns the number of these records with a value.
    pub(super) fn count_in(&self, records: Range<u64>) -> u64 {
        if records == (0..self.n) { self.count() } else { records.filter(|i| self.has(*i)).count() as u64 }
    }

    /// Returns the stored entry: the integer, the code, or the bits of the float.
    #[inline]
    pub(super) fn raw(&self, i: u64) -> Option<i64> {
        let at = usize::try_from(i).ok()?.checked_mul(self.encoding.width())?;
        let bytes = self.values.get(at..)?;
        Some(match self.encoding {
            ValueEncoding::Int64 => i64::from_le_bytes(*bytes.first_chunk()?),
            ValueEncoding::Float | ValueEncoding::Code32 | ValueEncoding::Count => {
                u32::from_le_bytes(*bytes.first_chunk()?).into()
            }
            ValueEncoding::Code16 => u16::from_le_bytes(*bytes.first_chunk()?).into(),
            ValueEncoding::Code8 => (*bytes.first()?).into(),
        })
    }

    /// Returns the value of record `i`, if it has one.
    #[inline]
    pub(crate) fn get(&self, i: u64) -> Option<Value<'_>> {
        if !self.has(i) {
            return None;
        }
        self.value_of(self.raw(i)?)
    }

    /// Returns the value of a stored entry or of a class.
    pub(super) fn value_of(&self, raw: i64) -> Option<Value<'_>> {
        Some(match self.encoding {
            ValueEncoding::Int64 | ValueEncoding::Count => Value::Int(raw),
            ValueEncoding::Float => Value::Float(f32::from_bits(u32::try_from(raw).ok()?)),
            _ => Value::Bytes(self.dict.as_ref()?.get(usize::try_from(raw).ok()?)?),
        })
    }

    /// Calls `f` with each of these records whose value meets `condition`, ascending. `condition` is called
    /// once for each distinct string.
    pub(crate) fn matching(
        &self,
        mut records: Range<u64>,
        condition: impl Fn(Value<'_>) -> bool,
        mut f: impl FnMut(u64),
    ) {
        records.end = records.end.min(self.n);
        match &self.dict {
            Some(dict) => {
                let met: Vec<bool> =
                    (0..dict.d).map(|j| dict.get(j).is_some_and(|s| condition(Value::Bytes(s)))).collect();
                let met = |i: &u64| self.raw(*i).is_some_and(|code| met.get(code as usize) == Some(&true));
                records.filter(|&i| self.has(i)).filter(met).for_each(&mut f);
            }
            None => records.filter(|&i| self.get(i).is_some_and(&condition)).for_each(&mut f),
        }
    }

    /// Returns the bytes of VALUES, PRESENT and DICT.
    pub(super) fn sections(&self) -> (&[u8], &[u8], Option<&[u8]>) {
        (&self.values, &self.present, self.dict.as_ref().map(|dict| &*dict.bytes))
    }
}

impl Dictionary {
    fn new(bytes: Region) -> Result<Dictionary, &'static str> {
        const CUT: &str = "the section is too short for its number of strings";
        let (d, rest) = bytes.split_first_chunk().ok_or(CUT)?;
        // Each string has an end of eight bytes. The count is compared with the section's length before it is
        // used.
        let d = usize::try_from(u64::from_le_bytes(*d)).ok().filter(|&d| d <= rest.len() / 8).ok_or(CUT)?;
        let dict = Dictionary { d, bytes };
        let mut last = None;
        for j in 0..d {
            let string = dict.get(j).ok_or("a string ends before it starts or after the section")?;
            if last.is_some_and(|last| last >= string) {
                return Err("the strings are not in ascending order");
            }
            last = Some(string);
        }
        let len = dict.strings().ok_or(CUT)?.len() as u64;
        if dict.start(d) != Some(len) {
            return Err("the last string does not end at the end of the section");
        }
        Ok(dict)
    }

    /// Returns all strings, one after the other.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "8 + 8 * d is at most the length of the section, by `new`"
    )]
    fn strings(&self) -> Option<&[u8]> {
        self.bytes.get(8 + 8 * self.d..)
    }

    /// Returns the start of string `j <= d`, relative to the first string. For `j = d` this is the end of the
    /// last string.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "j <= d, and 8 * d is less than the length of the section"
    )]
    fn start(&self, j: usize) -> Option<u64> {
        if j == 0 {
            return Some(0);
        }
        // String j starts at the end of string j - 1, which is entry j of the section's u64 entries: entry 0
        // is d.
        self.bytes.get(8 * j..)?.first_chunk().map(|end| u64::from_le_bytes(*end))
    }

    #[expect(clippy::arithmetic_side_effects, reason = "j < d")]
    fn get(&self, j: usize) -> Option<&[u8]> {
        if j >= self.d {
            return None;
        }
        let start = self.start(j)?;
        let end = self.start(j + 1)?;
        self.strings()?.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_section() {
        let dict = |d: u64, end: u64| [d.to_le_bytes(), end.to_le_bytes()].concat();
        let good = [dict(1, 1), b"a".to_vec()].concat();
        let column = |values: [u8; 3], present: u8, dict: &[u8]| {
            let values = Region::from(values.to_vec());
            let present = Region::from(vec![present]);
            ColumnData::new(ValueEncoding::Code8, 3, values, present, Some(Region::from(dict.to_vec())))
        };
        assert_eq!(column([0; 3], 0b101, &good).unwrap().get(2), Some(Value::Bytes(b"a")));
        for (values, present, dict, section) in [
            ([0; 3], 0b1101, good.clone(), PRESENT),
            ([0, 0, 1], 0b101, good, VALUES),
            ([0; 3], 0b101, dict(2, 1), DICT),
            ([0; 3], 0b101, dict(1, u64::MAX), DICT),
            ([0; 3], 0b101, dict(u64::MAX, 0), DICT),
            ([0; 3], 0b101, dict(0, 1), DICT),
        ] {
            assert_eq!(column(values, present, &dict).unwrap_err().0, section);
        }
    }
}
