//! Blocked tables: ascending offsets in little more than four bytes each, with constant-time access.
//!
//! ```text
//! | block table: { base u64, crc32c u32, zero u32 } x ceil(m / 1024) | rel[0] rel[1] .. rel[m-1] |
//! value i = base[i div 1024] + rel[i]          rel: u32 (narrow) or u64 (wide)
//! crc = crc32c of the block's base and its rel entries
//! ```
//!
//! A block is verified the first time one of its values is used, and one bit per block records the result. So
//! the cost of opening a table does not grow with m. The CRC is necessary: a flipped bit in a base moves 1024
//! offsets at once, and if all records have the same length, the moved offsets point at valid headers.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::crc::{crc32c, crc32c_append};
use crate::error::{Result, no_memory};
use crate::io::Region;
use crate::memory::{room, zeroed};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of values in a block. The last block may have fewer.
pub(crate) const BLOCK: u64 = 1 << BLOCK_BITS;
const BLOCK_BITS: u32 = 10;
/// Bytes of an entry of the block table: base, crc, zero.
pub(crate) const BLOCK_ENTRY: usize = 8 + 4 + 4;

/// A builder of a table from single values. Uses four bytes per value while the table is narrow.
#[derive(Debug, Default)]
pub(crate) struct TableBuilder {
    bases: Vec<u64>,
    /// The CRCs of the first blocks of a narrow table, computed while their values are in the cache.
    crcs: Vec<u32>,
    /// The rel entries as they are stored on disk.
    rel: Vec<u8>,
    wide: bool,
    len: u64,
    /// True if the base of a block is 0, false if it is its first value.
    from_zero: bool,
    /// There was not enough memory. Only the number of values is right.
    is_lost: bool,
}

impl TableBuilder {
    /// Returns a builder of a table of offsets, which must be pushed in ascending order.
    pub(crate) fn offsets() -> TableBuilder {
        TableBuilder::default()
    }

    /// Returns a builder of a table of lengths, in any order.
    pub(crate) fn lengths() -> TableBuilder {
        TableBuilder { from_zero: true, ..TableBuilder::default() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[expect(clippy::arithmetic_side_effects, reason = "each value takes four bytes or more of memory")]
    #[inline]
    pub(crate) fn push(&mut self, value: u64) {
        if self.wide {
            return self.push_wide(value);
        }
        if self.len.is_multiple_of(BLOCK) {
            self.begin_block(value);
        }
        let base = self.bases.last().copied().unwrap_or_default();
        match u32::try_from(value.wrapping_sub(base)) {
            Ok(rel) => {
                self.rel.extend_from_slice(&rel.to_le_bytes());
                self.len += 1;
            }
            Err(_) => self.push_wide(value),
        }
    }

    /// Computes the CRC of the last block of a narrow table, which is full, and reserves the memory of the
    /// next one.
    #[inline(never)]
    fn begin_block(&mut self, first: u64) {
        if let (Some(base), Some(rel)) = (self.bases.last(), self.rel.last_chunk::<{ 4 << BLOCK_BITS }>()) {
            self.crcs.push(crc32c_append(crc32c(&base.to_le_bytes()), rel));
        }
        let rel = self.rel.try_reserve(4 << BLOCK_BITS);
        let reserved = rel.and_then(|()| self.bases.try_reserve(1)).and_then(|()| self.crcs.try_reserve(1));
        if reserved.is_err() {
            self.lose();
        }
        self.bases.push(if self.from_zero { 0 } else { first });
    }

    /// Drops the values, because there is not enough memory. [`finish`](TableBuilder::finish) returns the
    /// error.
    #[cold]
    fn lose(&mut self) {
        self.is_lost = true;
        self.rel.clear();
        self.bases.clear();
        self.crcs.clear();
    }

    /// Pushes the values `start + delta`, which are in ascending order. The memory of `deltas` is used for
    /// the entries of the table.
    #[expect(clippy::arithmetic_side_effects, reason = "each value takes four bytes or more of memory")]
    pub(crate) fn extend(&mut self, start: u64, deltas: &mut [u32]) {
        let mut rest = deltas;
        while let Some(&first) = rest.first() {
            let value = start.wrapping_add(first.into());
            // The first value of a block is its base.
            let room = match self.len % BLOCK {
                0 => 0,
                pushed => (BLOCK - pushed) as usize,
            };
            if self.wide || room == 0 {
                self.push(value);
                rest = rest.split_at_mut(1).1;
                continue;
            }
            let here = room.min(rest.len());
            let (block, after) = rest.split_at_mut(here);
            let base = self.bases.last().copied().unwrap_or_default();
            let last = block.last().map_or(value, |last| start.wrapping_add((*last).into()));
            let fits = |value: u64| u32::try_from(value.wrapping_sub(base)).is_ok();
            if fits(value) && fits(last) {
                // Both ends fit, so all sums fit.
                let shift = start.wrapping_sub(base) as u32;
                block.iter_mut().for_each(|delta| *delta = shift.wrapping_add(*delta).to_le());
                self.rel.extend_from_slice(bytemuck::cast_slice(block));
                self.len += here as u64;
            } else {
                block.iter().for_each(|&delta| self.push(start.wrapping_add(delta.into())));
            }
            rest = after;
        }
    }

    /// Pushes a value to a wide table, and makes a narrow table wide first. One block that spans 4 GiB makes
    /// the whole table wide. The records are then large on average, so the table is small.
    #[expect(clippy::arithmetic_side_effects, reason = "each value takes four bytes or more of memory")]
    #[cold]
    fn push_wide(&mut self, value: u64) {
        if !self.wide {
            let mut bytes = Vec::new();
            if bytes.try_reserve(2 * self.rel.len()).is_err() {
                self.lose();
            }
            let absolute = |(i, rel): (usize, &[u8; 4])| {
                let base = self.bases.get(i >> BLOCK_BITS).copied().unwrap_or_default();
                // The inverse of `wrapping_sub` in `push`. It wraps around if values are not in ascending
                // order.
                base.wrapping_add(u64::from(u32::from_le_bytes(*rel))).to_le_bytes()
            };
            bytes.extend(self.rel.as_chunks().0.iter().enumerate().flat_map(absolute));
            self.rel = bytes;
            self.wide = true;
            self.crcs.clear();
        }
        if self.rel.try_reserve(8).is_err() {
            self.lose();
        }
        self.rel.extend_from_slice(&value.to_le_bytes());
        self.len += 1;
    }

    /// Computes the remaining CRCs. The values are not copied.
    ///
    /// # Errors
    /// There was not enough memory.
    #[expect(clippy::arithmetic_side_effects, reason = "sixteen bytes for up to 1024 values in memory")]
    pub(crate) fn finish(mut self) -> Result<Table> {
        if self.is_lost {
            return Err(no_memory());
        }
        let m = self.len;
        let wide = self.wide;
        if wide {
            self.bases = zeroed(m.div_ceil(BLOCK))?;
        }
        let width = if wide { 8 } else { 4 };
        let mut blocks = room(self.bases.len() * BLOCK_ENTRY)?;
        let mut crcs = self.crcs.iter().copied();
        for (base, rel) in self.bases.iter().zip(self.rel.chunks(width << BLOCK_BITS)) {
            let base = base.to_le_bytes();
            let crc = crcs.next().unwrap_or_else(|| crc32c_append(crc32c(&base), rel));
            blocks.extend(base);
            blocks.extend(crc.to_le_bytes());
            blocks.extend([0; 4]);
        }
        let bytes = TableBytes::Own { blocks, rel: self.rel };
        Ok(Table { m, wide, bytes, verified: None, ends: TableEnds::default() })
    }
}

/// Bytes that are read ahead when a block of a mapped table is verified: 16 narrow blocks.
const AHEAD: usize = 64 << 10;

/// A blocked table, built by this process or read from a file.
#[derive(Debug)]
pub(crate) struct Table {
    m: u64,
    wide: bool,
    bytes: TableBytes,
    /// One bit per block, set once its CRC is verified. `None` for a table that this process built.
    verified: Option<Box<[AtomicU64]>>,
    /// The required first and last value, compared when their blocks are verified.
    ends: TableEnds,
}

/// The block table and the rel entries.
#[derive(Debug)]
enum TableBytes {
    Own { blocks: Vec<u8>, rel: Vec<u8> },
    Section { all: Region, split: usize },
}

/// The first and the last value of a table, if they are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableEnds {
    pub(crate) first: Option<u64>,
    pub(crate) last: Option<u64>,
}

/// A corrupt block. It becomes `IndexError::CorruptBlock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadBlock {
    pub(crate) block: u64,
    pub(crate) reason: &'static str,
}

impl Table {
    /// Opens a section of `m` values with entries of `param` bytes. Returns `None` if its length does not
    /// match.
    pub(crate) fn open(section: &Region, m: u64, param: u16, ends: TableEnds) -> Option<Table> {
        let m_here = usize::try_from(m).ok()?;
        let blocks = m_here.div_ceil(BLOCK as usize);
        let split = blocks.checked_mul(BLOCK_ENTRY)?;
        let end = m_here.checked_mul(usize::from(param))?.checked_add(split)?;
        if end != section.len() || !matches!(param, 4 | 8) {
            return None;
        }
        let verified = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Some(Table {
            m,
            wide: param == 8,
            bytes: TableBytes::Section { all: section.clone(), split },
            verified: Some(verified),
            ends,
        })
    }

    pub(crate) fn param(&self) -> u16 {
        if self.wide { 8 } else { 4 }
    }

    /// Returns the two parts of the section, in file order.
    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        self.slices().into()
    }

    #[inline(always)]
    fn slices(&self) -> (&[u8], &[u8]) {
        match &self.bytes {
            TableBytes::Own { blocks, rel } => (blocks, rel),
            TableBytes::Section { all, split } => all.split_at_checked(*split).unwrap_or_default(),
        }
    }

    /// Writes the section.
    ///
    /// # Errors
    /// Errors of `w`.
    pub(crate) fn write_to(&self, w: &mut impl Write) -> io::Result<()> {
        self.parts().into_iter().try_for_each(|part| w.write_all(part))
    }

    pub(crate) fn section_len(&self) -> u64 {
        self.parts().iter().map(|part| part.len() as u64).sum()
    }

    /// Returns value `i`.
    #[inline]
    pub(crate) fn get(&self, i: u64) -> Result<u64, BadBlock> {
        let (blocks, rel) = self.slices();
        self.value(blocks, rel, i)
    }

    /// Returns values `i` and `i + 1` on the fast path: the table is narrow, and both values are in one
    /// verified block. This covers all lookups but one in 1024. `None` means only that [`pair`](Table::pair)
    /// must take the slow path.
    #[expect(clippy::arithmetic_side_effects, reason = "`i < m`, and the table is in memory")]
    #[inline(always)]
    pub(crate) fn pair_fast(&self, i: u64) -> Option<(u64, u64)> {
        let block = i >> BLOCK_BITS;
        if self.wide || (i + 1).is_multiple_of(BLOCK) || !self.is_verified(block) {
            return None;
        }
        let (blocks, rel) = self.slices();
        let base = u64::from_le_bytes(field::<8>(blocks, block as usize * BLOCK_ENTRY)?);
        let both = u64::from_le_bytes(field::<8>(rel, i as usize * 4)?);
        Some((base.checked_add(both & 0xffff_ffff)?, base.checked_add(both >> 32)?))
    }

    /// Returns the first byte of value `i` if its block is verified. A mapped block is resident from then on.
    #[inline]
    pub(crate) fn entry(&self, i: u64) -> Option<&u8> {
        if !self.is_verified(i >> BLOCK_BITS) {
            return None;
        }
        let (_, rel) = self.slices();
        rel.get(usize::try_from(i).ok()?.checked_mul(usize::from(self.param()))?)
    }

    /// Returns values `i` and `i + 1`.
    #[expect(clippy::arithmetic_side_effects, reason = "`i < m`")]
    pub(crate) fn pair(&self, i: u64) -> Result<(u64, u64), BadBlock> {
        let (blocks, rel) = self.slices();
        Ok((self.value(blocks, rel, i)?, self.value(blocks, rel, i + 1)?))
    }

    /// Returns true if the CRC of a block is verified or needs no verification.
    #[inline(always)]
    fn is_verified(&self, block: u64) -> bool {
        self.verified.as_ref().is_none_or(|bits| {
            bits.get((block >> 6) as usize).is_some_and(|w| w.load(Relaxed) >> (block & 63) & 1 == 1)
        })
    }

    #[inline(always)]
    fn value(&self, blocks: &[u8], rel: &[u8], i: u64) -> Result<u64, BadBlock> {
        let block = i >> BLOCK_BITS;
        if !self.is_verified(block) {
            self.verify(block)?;
        }
        self.raw(blocks, rel, i)
    }

    /// Returns value `i` without verification of its block.
    #[expect(clippy::arithmetic_side_effects, reason = "`i <= m`, and the table is in memory")]
    #[inline(always)]
    fn raw(&self, blocks: &[u8], rel: &[u8], i: u64) -> Result<u64, BadBlock> {
        let block = i >> BLOCK_BITS;
        let base = field::<8>(blocks, block as usize * BLOCK_ENTRY).map(u64::from_le_bytes);
        let rel = if self.wide {
            field::<8>(rel, i as usize * 8).map(u64::from_le_bytes)
        } else {
            field::<4>(rel, i as usize * 4).map(|b| u32::from_le_bytes(b).into())
        };
        match (base, rel) {
            (Some(base), Some(rel)) => {
                base.checked_add(rel).ok_or(BadBlock { block, reason: "an entry overflows" })
            }
            _ => Err(BadBlock { block, reason: "the table is too short" }),
        }
    }

    /// Verifies the CRC of a block, and marks the block as verified.
    #[expect(clippy::arithmetic_side_effects, reason = "`block <= m / 1024`, and the table is in memory")]
    #[cold]
    fn verify(&self, block: u64) -> Result<(), BadBlock> {
        let Some(verified) = &self.verified else { return Ok(()) };
        let width = usize::from(self.param());
        let start = (block as usize) << BLOCK_BITS;
        let end = (start + BLOCK as usize).min(self.m as usize);
        if self.populate_block(block as usize, start * width..end * width).is_err() {
            return Err(BadBlock {
                block,
                reason: "its bytes cannot be read: the index file was truncated, or the disk failed",
            });
        }
        let (blocks, all) = self.slices();
        let entry = field::<BLOCK_ENTRY>(blocks, block as usize * BLOCK_ENTRY);
        let (Some(entry), Some(rel)) = (entry, all.get(start * width..end * width)) else {
            return Err(BadBlock { block, reason: "the table is too short" });
        };
        let stored = u32::from_le_bytes([entry[8], entry[9], entry[10], entry[11]]);
        if crc32c_append(crc32c(&entry[..8]), rel) != stored {
            return Err(BadBlock { block, reason: "crc32c mismatch" });
        }
        let holds = |i: u64, want: Option<u64>| want.is_none_or(|want| self.raw(blocks, all, i) == Ok(want));
        if block == 0 && !holds(0, self.ends.first) {
            return Err(BadBlock { block, reason: "the first entry is not 0" });
        }
        if end as u64 == self.m && !holds(self.m - 1, self.ends.last) {
            return Err(BadBlock { block, reason: "the last entry is not the end of the stream" });
        }
        // Relaxed is enough: the bytes do not change, so the bit orders no other memory access.
        if let Some(word) = verified.get((block >> 6) as usize) {
            word.fetch_or(1 << (block & 63), Relaxed);
        }
        Ok(())
    }

    /// Makes a mapped block resident: its entry in the block table, and bytes `rel` of the rel entries.
    ///
    /// Without the advice, a system may read megabytes around a page that is not in memory.
    #[expect(clippy::arithmetic_side_effects, reason = "both ranges are parts of a section in memory")]
    fn populate_block(&self, block: usize, rel: Range<usize>) -> io::Result<()> {
        let TableBytes::Section { all, split } = &self.bytes else { return Ok(()) };
        let entry = block * BLOCK_ENTRY..(block + 1) * BLOCK_ENTRY;
        let rel = split + rel.start..split + rel.end;
        all.will_need(entry.clone());
        all.will_need(rel.start..rel.start + AHEAD);
        all.populate(entry)?;
        all.populate(rel)
    }

    /// Makes a mapped table resident; see [`Region::populate`].
    pub(crate) fn populate(&self) -> io::Result<()> {
        match &self.bytes {
            TableBytes::Own { .. } => Ok(()),
            TableBytes::Section { all, .. } => all.populate(0..all.len()),
        }
    }

    /// Verifies every block, including those that are already verified.
    pub(crate) fn verify_all(&self) -> Result<(), BadBlock> {
        (0..self.m.div_ceil(BLOCK)).try_for_each(|block| self.verify(block))
    }
}

#[inline(always)]
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..).and_then(|b| b.first_chunk::<N>()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reopen(table: &Table) -> Table {
        let bytes: Vec<u8> = table.parts().concat();
        Table::open(&Region::from(bytes), table.m, table.param(), TableEnds::default()).unwrap()
    }

    fn build(values: impl IntoIterator<Item = u64>) -> Table {
        let mut builder = TableBuilder::offsets();
        values.into_iter().for_each(|v| builder.push(v));
        builder.finish().unwrap()
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn lengths_around_multiples_of_a_block() {
        for m in [1u64, 2, 1023, 1024, 1025, 2047, 2048, 2049, 5000] {
            let table = build((0..m).map(|i| i * 17));
            assert_eq!(table.section_len(), 16 * m.div_ceil(1024) + 4 * m);
            for table in [&table, &reopen(&table)] {
                assert!((0..m).all(|i| table.get(i) == Ok(i * 17)));
                assert!((0..m - 1).all(|i| table.pair(i) == Ok((i * 17, i * 17 + 17))));
                assert!(table.get(m).is_err());
                assert!(table.get(u64::from(u32::MAX / 16)).is_err());
            }
        }
        assert_eq!(build([]).section_len(), 0);
    }

    #[test]
    fn extended_tables_are_those_of_single_values() {
        for (start, step, pieces) in
            [(0, 17, 1), (1 << 40, 16, 7), (5, 3_000_000, 3), (u64::MAX - 90_000, 30, 2)]
        {
            let deltas: Vec<u32> = (0..3000).map(|i: u32| i.wrapping_mul(step)).collect();
            let mut one = TableBuilder::offsets();
            let mut many = TableBuilder::offsets();
            for piece in 0..pieces {
                // Pieces of other lengths than a block, the last ones farther away than a narrow block
                // reaches.
                let at = start + ((piece * piece) << 31) * u64::from(start < 1 << 41);
                let mut deltas = deltas[..deltas.len() - 100 * piece as usize].to_vec();
                deltas.iter().for_each(|&delta| one.push(at.wrapping_add(delta.into())));
                many.extend(at, &mut deltas);
            }
            assert_eq!((one.len, &one.bases), (many.len, &many.bases));
            assert_eq!((one.wide, &one.rel), (many.wide, &many.rel));
            let one = one.finish().unwrap();
            let many = many.finish().unwrap();
            assert_eq!(one.parts(), many.parts());
            assert_eq!(reopen(&many).verify_all(), Ok(()));
        }
    }

    #[test]
    fn the_4_gib_edge() {
        let g4 = 1u64 << 32;
        // The last value of a narrow block is at most 2^32 - 1 above its first.
        assert_eq!(build([5, 5 + g4 - 1]).param(), 4);
        let wide = build([5, 100, 5 + g4]);
        assert_eq!((wide.param(), wide.section_len()), (8, 16 + 24));
        assert_eq!(wide.parts()[0][..8], [0; 8], "the base of a wide table is 0");
        assert_eq!(reopen(&wide).pair(1), Ok((100, 5 + g4)));
        // Values that are far apart in different blocks stay narrow. A later switch to wide keeps the earlier
        // values.
        let far = (0..1024).chain((0..10).map(|i| (g4 << 8) + i));
        assert_eq!(build(far.clone()).param(), 4);
        let late = build(far.clone().chain([(g4 << 9)]));
        assert_eq!(late.param(), 8);
        for (i, v) in far.enumerate() {
            assert_eq!(reopen(&late).get(i as u64), Ok(v));
        }
        let mut lengths = TableBuilder::lengths();
        [7, 3, g4 - 1].into_iter().for_each(|v| lengths.push(v));
        let lengths = lengths.finish().unwrap();
        assert_eq!((lengths.param(), lengths.get(1)), (4, Ok(3)));
    }

    /// An index that is extended supplies the first offsets, and a forged one may supply any values.
    #[test]
    fn offsets_that_are_not_in_order_do_not_overflow() {
        let values = [u64::MAX, 0, 5 << 32, 7];
        let table = build(values);
        assert_eq!(table.param(), 8);
        assert!((0..4).all(|i| table.get(i) == Ok(values[i as usize])));
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn each_flipped_bit_is_found_on_first_use_of_its_block() {
        let table = build((0..1500).map(|i| i * 16));
        let good: Vec<u8> = table.parts().concat();
        let rel = 2 * BLOCK_ENTRY;
        for bit in 0..good.len() * 8 {
            let byte = bit / 8;
            if byte < rel && byte % BLOCK_ENTRY >= 12 {
                continue; // padding, not covered by the CRC
            }
            let block = if byte < rel { byte / BLOCK_ENTRY } else { (byte - rel) / 4096 } as u64;
            let mut bad = good.clone();
            bad[byte] ^= 1 << (bit % 8);
            let table = Table::open(&Region::new(bad), 1500, 4, TableEnds::default()).unwrap();
            assert_eq!(table.get(block * 1024 + 3).unwrap_err().block, block, "bit {bit}");
            assert!(table.get((1 - block) * 1024 + 3).is_ok());
            assert!(table.verify_all().is_err());
        }
    }

    #[test]
    fn sections_of_another_length_are_refused() {
        let bytes = build((0..1500).map(|i| i * 16)).parts().concat();
        let open = |bytes: &[u8], m, param| {
            Table::open(&Region::new(bytes.to_vec()), m, param, TableEnds::default())
        };
        assert!(open(&bytes, 1500, 4).is_some());
        assert!(open(&bytes[1..], 1500, 4).is_none() && open(&bytes, 1499, 4).is_none());
        assert!(open(&bytes, 1500, 8).is_none() && open(&bytes, u64::MAX, 4).is_none());
        // No entry of another width.
        assert!(open(&[0; 32], 0, 4).is_none() && open(&[], 0, 5).is_none() && open(&[], 0, 8).is_some());
    }

    #[test]
    fn entries_are_located_after_their_block_was_verified() {
        let bytes = build((0..1500).map(|i| i * 16)).parts().concat();
        let table = Table::open(&Region::new(bytes), 1500, 4, TableEnds::default()).unwrap();
        assert!(table.entry(3).is_none() && table.pair_fast(3).is_none());
        table.get(0).unwrap();
        assert_eq!((table.entry(3), table.pair_fast(3)), (Some(&48), Some((48, 64))));
        assert!(table.entry(1100).is_none() && table.entry(u64::MAX).is_none());
    }
}
