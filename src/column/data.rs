//! The values of a column file, once its sections were checked.

use super::layout::ValueEncoding;
use crate::filter::value::Value;
use crate::io::Region;

/// VALUES, PRESENT and DICT. All of it was checked, so looks at it cannot fail.
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
    /// Sections whose crcs hold and whose lengths are those of `n` values. What a forged file could say beyond that is
    /// refused here.
    pub(super) fn new(
        encoding: ValueEncoding,
        n: u64,
        values: Region,
        present: Region,
        dict: Option<Region>,
    ) -> Result<ColumnData, &'static str> {
        let spare = (n % 8) as u32;
        if spare != 0 && present.last().is_none_or(|last| last.checked_shr(spare) != Some(0)) {
            return Err("a value is present behind the last record");
        }
        let dict = dict.map(Dictionary::new).transpose()?;
        let data = ColumnData { encoding, n, values, present, dict };
        if let Some(Dictionary { d, .. }) = data.dict
            && (0..n).any(|i| data.raw(i).is_none_or(|code| code as u64 >= d as u64))
        {
            return Err("a code is not below the number of strings");
        }
        Ok(data)
    }

    pub(crate) fn len(&self) -> u64 {
        self.n
    }

    /// Whether record `i` has a value.
    #[inline]
    pub(crate) fn has(&self, i: u64) -> bool {
        let byte = usize::try_from(i / 8).ok().and_then(|at| self.present.get(at));
        i < self.n && byte.is_some_and(|byte| byte >> (i % 8) & 1 == 1)
    }

    /// How many records have a value.
    pub(crate) fn count(&self) -> u64 {
        self.present.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }

    /// The integer, the code, or the bits of the float.
    #[inline]
    pub(super) fn raw(&self, i: u64) -> Option<i64> {
        let at = usize::try_from(i).ok()?.checked_mul(self.encoding.width())?;
        let bytes = self.values.get(at..)?;
        Some(match self.encoding {
            ValueEncoding::Int64 => i64::from_le_bytes(*bytes.first_chunk()?),
            ValueEncoding::Float | ValueEncoding::Code32 => u32::from_le_bytes(*bytes.first_chunk()?).into(),
            ValueEncoding::Code16 => u16::from_le_bytes(*bytes.first_chunk()?).into(),
            ValueEncoding::Code8 => (*bytes.first()?).into(),
        })
    }

    /// The value of record `i`, if it has one.
    #[inline]
    pub(crate) fn get(&self, i: u64) -> Option<Value<'_>> {
        if !self.has(i) {
            return None;
        }
        self.value_of(self.raw(i)?)
    }

    /// The value that a class, or a stored entry, stands for.
    pub(super) fn value_of(&self, raw: i64) -> Option<Value<'_>> {
        Some(match self.encoding {
            ValueEncoding::Int64 => Value::Int(raw),
            ValueEncoding::Float => Value::Float(f32::from_bits(u32::try_from(raw).ok()?)),
            _ => Value::Bytes(self.dict.as_ref()?.get(usize::try_from(raw).ok()?)?),
        })
    }

    /// Calls `f` with each record whose value meets `wanted`, ascending. Of a string that occurs often it is asked once.
    pub(crate) fn matching(&self, wanted: impl Fn(Value<'_>) -> bool, mut f: impl FnMut(u64)) {
        match &self.dict {
            Some(dict) => {
                let met: Vec<bool> =
                    (0..dict.d).map(|j| dict.get(j).is_some_and(|s| wanted(Value::Bytes(s)))).collect();
                let met = |i: &u64| self.raw(*i).is_some_and(|code| met.get(code as usize) == Some(&true));
                (0..self.n).filter(|&i| self.has(i)).filter(met).for_each(&mut f);
            }
            None => (0..self.n).filter(|&i| self.get(i).is_some_and(&wanted)).for_each(&mut f),
        }
    }

    /// The sections' bytes, to be written again.
    pub(super) fn sections(&self) -> (&[u8], &[u8], Option<&[u8]>) {
        (&self.values, &self.present, self.dict.as_ref().map(|dict| &*dict.bytes))
    }
}

impl Dictionary {
    fn new(bytes: Region) -> Result<Dictionary, &'static str> {
        const CUT: &str = "the dictionary is cut off";
        let d = bytes.first_chunk().map(|d| u64::from_le_bytes(*d)).ok_or(CUT)?;
        // An end of eight bytes each, held against what is there before anything is made of it.
        let d = usize::try_from(d).ok().filter(|&d| d <= (bytes.len() - 8) / 8).ok_or(CUT)?;
        let dict = Dictionary { d, bytes };
        let mut before = None;
        for j in 0..d {
            let string = dict.get(j).ok_or("the strings are not one after the other")?;
            if before.is_some_and(|before| before >= string) {
                return Err("the strings are not in ascending order");
            }
            before = Some(string);
        }
        let end = 8 + 8 * d as u64 + dict.end(d).ok_or(CUT)?;
        if end != dict.bytes.len() as u64 {
            return Err("the strings do not end with the dictionary");
        }
        Ok(dict)
    }

    /// Where the `j`th string starts, counted from the first; the end of the last for `d`.
    fn end(&self, j: usize) -> Option<u64> {
        match j.checked_sub(1) {
            None => Some(0),
            Some(before) => {
                self.bytes.get(8 + 8 * before..)?.first_chunk().map(|end| u64::from_le_bytes(*end))
            }
        }
    }

    fn get(&self, j: usize) -> Option<&[u8]> {
        if j >= self.d {
            return None;
        }
        let strings = self.bytes.get(8 + 8 * self.d..)?;
        strings.get(usize::try_from(self.end(j)?).ok()?..usize::try_from(self.end(j + 1)?).ok()?)
    }
}
