//! What the index of a compressed shard leaves out: section 5 of a sidecar, which section 5 of
//! `docs/index.md` defines. The losses of a plain shard follow from its other sections. Each later use
//! reports the same losses by it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::layout::IndexHeader;
use super::table::BadBlock;
use crate::crc::crc32c;
use crate::io::Region;

/// Bytes before the entries: CRC, zero, decompressed bytes, bytes of the file.
const HEAD: usize = 4 + 4 + 8 + 8;
/// Bytes of an entry: records before the range, its start, its end.
const ENTRY: usize = 8 + 8 + 8;
/// Offset of the bytes that the CRC covers.
const CHECKED_AT: usize = 8;

/// The bytes of a compressed shard that its index leaves out, besides the gaps between its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Decompressed bytes after the last record.
    pub(crate) inflated: u64,
    /// Bytes at the end of the file, after the compressed data.
    pub(crate) bytes: u64,
    /// Ranges of the file that could not be decompressed, in order.
    pub(crate) ranges: Vec<NotInflatedRange>,
}

/// A range of a compressed file that could not be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotInflatedRange {
    /// Number of sound records before it.
    pub(crate) records: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Losses {
    pub(crate) fn encode(&self) -> LossTable {
        let entries = self.ranges.iter().flat_map(|range| [range.records, range.start, range.end]);
        let mut checked = Vec::new();
        for field in [self.inflated, self.bytes].into_iter().chain(entries) {
            checked.extend_from_slice(&field.to_le_bytes());
        }
        let mut bytes = crc32c(&checked).to_le_bytes().to_vec();
        bytes.resize(CHECKED_AT, 0);
        bytes.extend(checked);
        LossTable(Region::from(bytes))
    }
}

/// The section. It is verified at each use.
#[derive(Clone, Debug)]
pub(crate) struct LossTable(Region);

impl LossTable {
    /// Returns true if a section can have this length.
    pub(super) fn has_valid_len(len: u64) -> bool {
        len.checked_sub(HEAD as u64).is_some_and(|entries| entries.is_multiple_of(ENTRY as u64))
    }

    pub(super) fn open(bytes: Region) -> Option<LossTable> {
        LossTable::has_valid_len(bytes.len() as u64).then_some(LossTable(bytes))
    }

    pub(super) fn bytes(&self) -> &Region {
        &self.0
    }

    /// Decodes the section of a shard with this header.
    pub(super) fn decode(&self, header: &IndexHeader) -> Result<Losses, BadBlock> {
        let IndexHeader { data_size: size, n_records: records, .. } = *header;
        let bad = |reason| BadBlock { block: 0, reason };
        let truncated = || bad("the section of losses is truncated");
        let (crc, rest) = self.0.split_first_chunk::<4>().ok_or_else(truncated)?;
        let rest = rest.get(4..).ok_or_else(truncated)?;
        if u32::from_le_bytes(*crc) != crc32c(rest) {
            return Err(bad("the section of losses has a wrong checksum"));
        }
        let mut fields = rest.as_chunks::<8>().0.iter().map(|field| u64::from_le_bytes(*field));
        let inflated = fields.next().ok_or_else(truncated)?;
        let bytes = fields.next().ok_or_else(truncated)?;
        let mut ranges = Vec::new();
        let mut last = 0;
        while let (Some(before), Some(start), Some(end)) = (fields.next(), fields.next(), fields.next()) {
            if before < last || before > records || start > end || end > size {
                return Err(bad("a range in the section of losses is not inside the shard"));
            }
            last = before;
            ranges.push(NotInflatedRange { records: before, start, end });
        }
        if bytes > size {
            return Err(bad("the section of losses has more bytes than the shard"));
        }
        // Offsets after the last record, and sums of both numbers, then fit into 64 bits.
        if header.stream_end.checked_add(inflated).and_then(|end| end.checked_add(bytes)).is_none() {
            return Err(bad("the section of losses has more decompressed bytes than a stream can have"));
        }
        Ok(Losses { inflated, bytes, ranges })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_read_as_written_and_every_flipped_bit_is_detected() {
        let ranges = vec![
            NotInflatedRange { records: 3, start: 40, end: 60 },
            NotInflatedRange { records: 7, start: 90, end: 90 },
        ];
        let losses = Losses { inflated: 5, bytes: 2, ranges };
        let table = losses.encode();
        let header = IndexHeader { data_size: 100, n_records: 7, stream_end: 900, ..IndexHeader::default() };
        assert_eq!(table.decode(&header).unwrap(), losses);
        assert!(table.decode(&IndexHeader { data_size: 89, ..header }).is_err());
        assert!(table.decode(&IndexHeader { n_records: 6, ..header }).is_err());
        let bytes = table.bytes().to_vec();
        assert_eq!(bytes.len(), HEAD + 2 * ENTRY);
        for bit in (0..bytes.len() * 8).filter(|bit| !(32..64).contains(bit)) {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(LossTable::open(Region::from(bad)).unwrap().decode(&header).is_err(), "bit {bit}");
        }
        for len in (0..bytes.len()).filter(|len| *len != HEAD && *len != HEAD + ENTRY) {
            assert!(LossTable::open(Region::from(bytes[..len].to_vec())).is_none());
        }
    }

    #[test]
    fn more_decompressed_bytes_than_a_stream_can_have_are_corrupt() {
        let header = IndexHeader { data_size: 100, stream_end: 900, ..IndexHeader::default() };
        let decoded =
            |inflated, bytes| Losses { inflated, bytes, ranges: Vec::new() }.encode().decode(&header);
        assert!(decoded(u64::MAX - 902, 2).is_ok());
        for (inflated, bytes) in [(u64::MAX - 901, 2), (u64::MAX - 899, 0), (u64::MAX, 0)] {
            assert!(decoded(inflated, bytes).is_err(), "{inflated} and {bytes} bytes");
        }
    }

    #[test]
    fn ranges_in_another_order_and_more_bytes_than_the_shard_are_corrupt() {
        let header = IndexHeader { data_size: 100, n_records: 7, ..IndexHeader::default() };
        let range = |records, start, end| NotInflatedRange { records, start, end };
        let is_sound = |bytes, ranges| {
            let losses = Losses { inflated: 0, bytes, ranges };
            losses.encode().decode(&header).is_ok()
        };
        assert!(is_sound(100, vec![range(3, 0, 9), range(3, 20, 100)]));
        assert!(!is_sound(101, vec![]));
        assert!(!is_sound(0, vec![range(3, 0, 9), range(2, 20, 30)]));
        assert!(!is_sound(0, vec![range(3, 10, 9)]));
    }
}
