//! The records of each distinct value of a shard.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::data::ColumnData;

/// The distinct values of a shard, ascending, and the records of each value, also ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardClasses {
    /// The distinct integers or codes.
    classes: Vec<i64>,
    /// The end of each class in `records`.
    ends: Vec<usize>,
    records: Vec<u64>,
}

impl ShardClasses {
    /// Collects the classes of the values. This costs a sort and two passes.
    #[expect(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "k is an index of `classes`, which is as long as `ends`; counts and sums are at most the number of values"
    )]
    pub(super) fn from_values(data: &ColumnData) -> ShardClasses {
        let present = || (0..data.len()).filter(|&i| data.has(i)).filter_map(|i| Some((i, data.raw(i)?)));
        let mut classes: Vec<i64> = present().map(|(_, raw)| raw).collect();
        let len = classes.len();
        classes.sort_unstable();
        classes.dedup();
        let mut ends = vec![0usize; classes.len()];
        let class_of = |raw| classes.binary_search(&raw);
        for k in present().filter_map(|(_, raw)| class_of(raw).ok()) {
            ends[k] += 1;
        }
        // Turns the counts into starts. Each record then increments the start of its class, which so becomes
        // the end.
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut records = vec![0; len];
        for (i, raw) in present() {
            if let Ok(k) = class_of(raw)
                && let Some(entry) = records.get_mut(ends[k])
            {
                *entry = i;
                ends[k] += 1;
            }
        }
        ShardClasses { classes, ends, records }
    }

    /// Decodes CLASSES, whose crc holds, and validates all of it against the values.
    pub(super) fn decode(bytes: &[u8], width: u16, data: &ColumnData) -> Result<ShardClasses, &'static str> {
        const CUT: &str = "the section is too short for its number of classes";
        let (k, rest) = bytes.split_first_chunk().ok_or(CUT)?;
        let len = usize::try_from(u64::from_le_bytes(*k)).ok().and_then(|k| k.checked_mul(8)).ok_or(CUT)?;
        let (ends, rest) = rest.split_at_checked(len).ok_or(CUT)?;
        let (classes, rest) = rest.split_at_checked(len).ok_or(CUT)?;
        let ends: Vec<u64> = ends.as_chunks().0.iter().map(|end| u64::from_le_bytes(*end)).collect();
        let classes: Vec<i64> =
            classes.as_chunks().0.iter().map(|class| i64::from_le_bytes(*class)).collect();
        let records: Vec<u64> = match width {
            4 => rest.as_chunks().0.iter().map(|i| u32::from_le_bytes(*i).into()).collect(),
            _ => rest.as_chunks().0.iter().map(|i| u64::from_le_bytes(*i)).collect(),
        };
        if !rest.len().is_multiple_of(usize::from(width))
            || ends.last().copied().unwrap_or(0) != records.len() as u64
        {
            return Err("the last list does not end at the end of the section");
        }
        if !classes.is_sorted_by(|a, b| a < b) || !ends.is_sorted_by(|a, b| a < b) || ends.first() == Some(&0)
        {
            return Err("the classes or their ends are not in ascending order");
        }
        // No end is above the last one, which equals `records.len()`.
        let ends: Vec<usize> = ends.into_iter().map(|end| end as usize).collect();
        let all = ShardClasses { classes, ends, records };
        for (class, list) in all.raw() {
            let of_class = |&i: &u64| data.has(i) && data.raw(i) == Some(class);
            if !list.is_sorted_by(|a, b| a < b) || !list.iter().all(of_class) {
                return Err("a list is not ascending or contains a record of another class");
            }
        }
        // No record is listed twice, and each one is in the list of its value. If the counts are equal, all
        // records are listed.
        if all.records.len() as u64 != data.count() {
            return Err("the lists leave out records that have a value");
        }
        Ok(all)
    }

    /// Returns the width of a record number, and the bytes of CLASSES.
    pub(super) fn encode(&self, n: u64) -> (u16, Vec<u8>) {
        let width = if n <= 1 << 32 { 4 } else { 8 };
        let mut bytes = (self.classes.len() as u64).to_le_bytes().to_vec();
        self.ends.iter().for_each(|&end| bytes.extend((end as u64).to_le_bytes()));
        self.classes.iter().for_each(|class| bytes.extend(class.to_le_bytes()));
        match width {
            // Record numbers are below n, so they fit into a u32.
            4 => self.records.iter().for_each(|&i| bytes.extend((i as u32).to_le_bytes())),
            _ => self.records.iter().for_each(|i| bytes.extend(i.to_le_bytes())),
        }
        (width, bytes)
    }

    /// Returns each stored class and its records.
    pub(crate) fn raw(&self) -> impl Iterator<Item = (i64, &[u64])> {
        let mut start = 0;
        self.classes.iter().zip(&self.ends).map(move |(&class, &end)| {
            let list = self.records.get(std::mem::replace(&mut start, end)..end);
            (class, list.unwrap_or_default())
        })
    }
}
