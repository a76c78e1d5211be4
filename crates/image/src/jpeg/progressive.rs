//! The coefficients of a block in a progressive scan.

use super::bits::{Bits, Stop};
use super::header::{Scan, ZIGZAG};
use super::huffman::HuffmanTable;
use super::scan::Memory;

/// A block, for which a scan has some bits of some coefficients.
pub(super) struct PartialBlock<'a, 'b> {
    pub(super) scan: &'a Scan,
    pub(super) bits: &'a mut Bits<'b>,
    pub(super) memory: &'a mut Memory,
    pub(super) coefficients: &'a mut [i16; 64],
    /// A bit for each coefficient that is not 0, in the order of the file. The first coefficient has none.
    pub(super) filled: &'a mut u64,
}

impl PartialBlock<'_, '_> {
    /// Reads what the scan has for the block. `selected` is the position of its component in the scan.
    #[inline(always)]
    pub(super) fn read(mut self, selected: usize, table: Option<&HuffmanTable>) -> Result<(), Stop> {
        let low = self.scan.low;
        match (self.scan.from, self.scan.high, table) {
            (0, 0, Some(table)) => {
                let first = self.memory.first(self.bits, selected, table)?;
                self.coefficients[0] = (first << low) as i16;
            }
            // Further bits of first coefficients have no codes.
            (0, _, _) => self.coefficients[0] |= i16::from(self.bits.bit()) << low,
            (_, 0, Some(table)) => self.read_first_bits(table)?,
            (_, _, Some(table)) => self.refine(table)?,
            (_, _, None) => return Err(Stop::Code),
        }
        Ok(())
    }

    /// Returns the k-th coefficient.
    #[inline(always)]
    fn coefficient(&mut self, k: usize) -> &mut i16 {
        &mut self.coefficients[usize::from(ZIGZAG[k & 63] & 63)]
    }

    /// Sets the k-th coefficient, which was 0.
    #[inline(always)]
    fn set(&mut self, k: usize, value: i16) {
        *self.coefficient(k) = value;
        // A corrupt value may lose its bits when it is shifted.
        *self.filled |= u64::from(value != 0) << (k & 63);
    }

    /// Reads the number of blocks that end, this one included.
    #[inline(always)]
    fn read_end_run(&mut self, log: u32) -> u32 {
        self.bits.fill();
        (1 << log) + self.bits.take(log) as u32
    }

    /// Reads the first bits of coefficients, as section G.1.2.2 of ITU T.81.
    #[inline(always)]
    fn read_first_bits(&mut self, table: &HuffmanTable) -> Result<(), Stop> {
        if self.memory.run > 0 {
            self.memory.run -= 1;
            return Ok(());
        }
        let mut k = self.scan.from;
        while k <= self.scan.to {
            let symbol = table.symbol(self.bits)?;
            let run = symbol >> 4;
            let size = symbol & 15;
            if size == 0 && run < 15 {
                self.memory.run = self.read_end_run(run.into()) - 1;
                break;
            }
            k += usize::from(run);
            if size > 0 {
                let value = self.bits.signed(size.into());
                if k > self.scan.to {
                    return Err(Stop::Count);
                }
                self.set(k, (value << self.scan.low) as i16);
            }
            k += 1;
        }
        Ok(())
    }

    /// Reads one more bit of the coefficients that are not 0, and those that become 1 or -1 at this bit, as
    /// section G.1.2.3 of ITU T.81.
    #[inline(always)]
    fn refine(&mut self, table: &HuffmanTable) -> Result<(), Stop> {
        let one = 1_i16 << self.scan.low;
        // Coefficients that the scan has still to read, and coefficients that were not 0 before it.
        let mut left = (u64::MAX << self.scan.from) & (u64::MAX >> (63 - self.scan.to));
        let old = *self.filled;
        if self.memory.run == 0 {
            while left != 0 {
                let symbol = table.symbol(self.bits)?;
                let zeros = u32::from(symbol >> 4);
                let new = match symbol & 15 {
                    0 if zeros < 15 => {
                        self.memory.run = self.read_end_run(zeros);
                        break;
                    }
                    0 => 0,
                    1 if self.bits.take(1) != 0 => one,
                    1 => -one,
                    _ => return Err(Stop::Code),
                };
                left = self.pass_zeros(left, old, zeros, new)?;
            }
        }
        if self.memory.run > 0 {
            let mut rest = left & old;
            while rest != 0 {
                self.refine_one(rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
            self.memory.run -= 1;
        }
        Ok(())
    }

    /// Passes `zeros` coefficients that are 0, refines the others before the next 0, and sets that one to
    /// `new`. Returns the coefficients that are left of `left`. Those in `old` were not 0.
    #[inline(always)]
    fn pass_zeros(&mut self, mut left: u64, old: u64, mut zeros: u32, new: i16) -> Result<u64, Stop> {
        loop {
            let next = left & old;
            // All that are left before the next one that was not 0.
            let before = left & next.wrapping_sub(1) & !next;
            let n = before.count_ones();
            if zeros < n {
                let k = left.trailing_zeros() + zeros;
                if new != 0 {
                    self.set(k as usize, new);
                }
                return Ok(left & (u64::MAX << 1 << (k & 63)));
            }
            zeros -= n;
            if next == 0 {
                // Sixteen zeros may end the block.
                return if new == 0 { Ok(0) } else { Err(Stop::Count) };
            }
            let k = next.trailing_zeros();
            self.refine_one(k as usize);
            left &= u64::MAX << 1 << (k & 63);
        }
    }

    /// Reads one more bit of the k-th coefficient, which is not 0.
    #[inline(always)]
    fn refine_one(&mut self, k: usize) {
        let one = 1_i16 << self.scan.low;
        let bit = self.bits.bit();
        let coefficient = self.coefficient(k);
        if bit && *coefficient & one == 0 {
            *coefficient = coefficient.wrapping_add(if *coefficient < 0 { -one } else { one });
        }
    }
}
