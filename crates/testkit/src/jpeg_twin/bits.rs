//! The bits of entropy-coded data.

use super::support::PictureFault;

/// Why the data of a block cannot be read. Of one byte, for the innermost loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TwinStop {
    /// The bits end.
    End,
    /// No code begins with these bits, or its symbol means nothing here.
    Code,
    /// The block has more than 64 coefficients.
    Count,
}

impl From<TwinStop> for PictureFault {
    fn from(stop: TwinStop) -> PictureFault {
        match stop {
            TwinStop::End => PictureFault::Truncated,
            TwinStop::Code => PictureFault::Corrupt("huffman code"),
            TwinStop::Count => PictureFault::Corrupt("number of coefficients"),
        }
    }
}

/// A cursor over entropy-coded data. It stops at the first marker: no bits are made up behind it.
pub(super) struct TwinBits<'a> {
    data: &'a [u8],
    at: usize,
    /// The next bits, from the highest on. Zeros follow them.
    window: u64,
    /// Number of bits in the window.
    have: u32,
}

impl<'a> TwinBits<'a> {
    pub(super) fn new(data: &'a [u8], at: usize) -> TwinBits<'a> {
        TwinBits { data, at, window: 0, have: 0 }
    }

    /// Returns the position behind the bytes that were read into the window. At a marker it is the marker's,
    /// because the window never passes one.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Drops the rest of the window, and continues at `at`.
    pub(super) fn restart(&mut self, at: usize) {
        *self = TwinBits::new(self.data, at);
    }

    /// Fills the window with at least 32 bits, or with all that are left before the next marker.
    #[inline(always)]
    pub(super) fn fill(&mut self) {
        if self.have >= 32 {
            return;
        }
        if let Some(bytes) = self.data.get(self.at..self.at + 8) {
            let word = u64::from_be_bytes([
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
            ]);
            // A byte of ones is a zero of the complement.
            let zeros = (!word).wrapping_sub(0x0101_0101_0101_0101) & word & 0x8080_8080_8080_8080;
            if zeros == 0 {
                self.window |= word >> self.have;
                let bytes = (63 - self.have) / 8;
                self.at += bytes as usize;
                self.have += bytes * 8;
                // Bits of a byte that is not counted are read again.
                self.window &= !(u64::MAX >> self.have);
                return;
            }
        }
        self.fill_by_bytes();
    }

    #[cold]
    #[inline(never)]
    fn fill_by_bytes(&mut self) {
        while self.have <= 56 {
            let Some(&byte) = self.data.get(self.at) else { return };
            let mut step = 1;
            if byte == 0xff {
                if self.data.get(self.at + 1) != Some(&0) {
                    return;
                }
                step = 2;
            }
            self.window |= u64::from(byte) << (56 - self.have);
            self.have += 8;
            self.at += step;
        }
    }

    /// Returns the next `n` bits, 1 to 32, without consuming them. Bits behind the end are zeros.
    #[inline(always)]
    pub(super) fn peek(&self, n: u32) -> usize {
        (self.window >> (64 - n)) as usize
    }

    /// Consumes `n` bits, 0 to 32.
    #[inline(always)]
    pub(super) fn consume(&mut self, n: u32) -> Result<(), TwinStop> {
        if n > self.have {
            return Err(TwinStop::End);
        }
        self.have -= n;
        self.window <<= n;
        Ok(())
    }

    /// Returns the next `n` bits, 0 to 16, as a number. The window must have been filled.
    #[inline(always)]
    pub(super) fn take(&mut self, n: u32) -> Result<i32, TwinStop> {
        let value = (self.window >> 32 >> (32 - n)) as i32;
        self.consume(n)?;
        Ok(value)
    }

    /// Returns one bit.
    #[inline(always)]
    pub(super) fn bit(&mut self) -> Result<bool, TwinStop> {
        self.fill();
        Ok(self.take(1)? != 0)
    }

    /// Returns the value of `n` bits, 0 to 16, in the form of JPEG: numbers that begin with a zero are
    /// negative.
    #[inline(always)]
    pub(super) fn signed(&mut self, n: u32) -> Result<i32, TwinStop> {
        Ok(extend(self.take(n)?, n))
    }
}

/// Returns the number that `n` bits mean.
#[inline(always)]
pub(super) fn extend(value: i32, n: u32) -> i32 {
    if n > 0 && value < 1 << (n - 1) { value - (1 << n) + 1 } else { value }
}
