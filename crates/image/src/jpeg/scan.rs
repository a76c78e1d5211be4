//! The units of a scan, in the order of the file.

use super::bits::{Bits, Stop};
use super::entropy::EntropyData;
use super::header::{Frame, Scan};
use super::huffman::HuffmanTable;
use crate::error::PictureFault;

/// The state of a scan between blocks, until the next restart marker.
#[derive(Default)]
pub(super) struct Memory {
    /// The last first coefficient of each component of the scan.
    last: [i32; 4],
    /// Blocks that are known to end where they are.
    pub(super) run: u32,
}

impl Memory {
    /// Reads the first coefficient of a block.
    #[inline(always)]
    pub(super) fn first(
        &mut self,
        bits: &mut Bits<'_>,
        selected: usize,
        dc: &HuffmanTable,
    ) -> Result<i32, Stop> {
        let difference = dc.difference(bits)?;
        let last = &mut self.last[selected & 3];
        *last = last.wrapping_add(difference);
        Ok(*last)
    }
}

/// The data of a scan.
pub(super) struct ScanData<'a> {
    pub(super) entropy: &'a EntropyData,
    /// Units between restart markers, or 0.
    pub(super) restart: usize,
    pub(super) frame: &'a Frame,
    pub(super) scan: &'a Scan,
}

/// A cursor over the units of a scan.
pub(super) struct UnitCursor<'a> {
    entropy: &'a EntropyData,
    /// Number of restart markers before the unit.
    part: usize,
    restart: usize,
    /// Units before the next restart marker.
    left: usize,
    pub(super) bits: Bits<'a>,
    pub(super) memory: Memory,
}

impl<'a> UnitCursor<'a> {
    pub(super) fn new(scan: &ScanData<'a>) -> Result<UnitCursor<'a>, PictureFault> {
        let &ScanData { entropy, restart, .. } = scan;
        let bits = entropy.part(0)?;
        Ok(UnitCursor { entropy, part: 0, restart, left: restart, bits, memory: Memory::default() })
    }

    /// Begins a unit.
    #[inline(always)]
    pub(super) fn begin(&mut self) -> Result<(), PictureFault> {
        if self.restart > 0 {
            if self.left == 0 {
                self.part += 1;
                self.bits = self.entropy.part(self.part)?;
                self.memory = Memory::default();
                self.left = self.restart;
            }
            self.left -= 1;
        }
        Ok(())
    }

    /// Ends a unit, or what was read of it before a fault. If bits were read that are not there, the data
    /// end, and the fault is due to that.
    #[inline(always)]
    pub(super) fn end(&self, read: Result<(), Stop>) -> Result<(), PictureFault> {
        if self.bits.is_overrun() {
            return Err(PictureFault::Truncated);
        }
        read.map_err(PictureFault::from)
    }
}
