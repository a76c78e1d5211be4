//! The bits of entropy-coded data.

use crate::error::PictureFault;

/// Why the data of a block cannot be read. Of one byte, for the innermost loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// No code begins with these bits, or its symbol means nothing here.
    Code,
    /// The block has more than 64 coefficients.
    Count,
}

impl From<Stop> for PictureFault {
    fn from(stop: Stop) -> PictureFault {
        match stop {
            Stop::Code => PictureFault::Corrupt("huffman code"),
            Stop::Count => PictureFault::Corrupt("number of coefficients"),
        }
    }
}

/// A cursor over the bits of a part of a scan.
///
/// Behind the end are bits without a meaning. Readers ask after each unit whether they read such bits
/// ([`Bits::is_overrun`]), so that nothing is counted for each code.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// Where the part ends.
    end: usize,
    /// Position of the byte whose bits come next, behind the bits of the window that count.
    at: usize,
    /// The next bits, from the highest on. Below those that count are more of the same data, or zeros.
    window: u64,
    /// Number of bits in the window that count.
    have: u32,
}

impl<'a> Bits<'a> {
    /// Returns the bits of `bytes[at..end]`. There are at least eight bytes behind them.
    pub(super) fn new(bytes: &'a [u8], at: usize, end: usize) -> Bits<'a> {
        Bits { bytes, end, at, window: 0, have: 0 }
    }

    /// Returns the number of bits before the next one.
    #[cfg(test)]
    pub(super) fn position(&self) -> usize {
        self.at * 8 - self.have as usize
    }

    /// Fills the window with at least 56 bits.
    ///
    /// Bits of a byte that is not counted are loaded again by the next fill, to the same place.
    #[inline(always)]
    pub(super) fn fill(&mut self) {
        let word = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk());
        self.window |= word.map_or(0, |word| u64::from_be_bytes(*word)) >> self.have;
        self.at += ((63 - self.have) >> 3) as usize;
        self.have |= 56;
    }

    /// Returns true if bits behind the end were consumed.
    #[inline(always)]
    pub(super) fn is_overrun(&self) -> bool {
        self.at > self.end + self.have as usize / 8
    }

    /// Returns the number of whole bytes before the end that were not consumed.
    pub(super) fn unread(&self) -> usize {
        self.end + self.have as usize / 8 - self.at
    }

    /// Returns the next `n` bits, 1 to 32, without consuming them.
    #[inline(always)]
    pub(super) fn peek(&self, n: u32) -> usize {
        (self.window >> (64 - n)) as usize
    }

    /// Consumes `n` bits, which are in the window.
    #[inline(always)]
    pub(super) fn consume(&mut self, n: u32) {
        self.have -= n;
        self.window <<= n & 63;
    }

    /// Takes back the last `n` bits that were consumed.
    #[cold]
    #[inline(never)]
    pub(super) fn push_back(&mut self, n: u32) {
        let bits = self.have + n;
        let bytes = bits.div_ceil(8);
        *self = Bits::new(self.bytes, self.at - bytes as usize, self.end);
        self.fill();
        self.consume(bytes * 8 - bits);
    }

    /// Consumes `n` bits, 0 to 16, and returns them as a number. They are in the window.
    #[inline(always)]
    pub(super) fn take(&mut self, n: u32) -> i32 {
        let value = (self.window >> 32 >> (32 - n)) as i32;
        self.consume(n);
        value
    }

    /// Returns one bit, and fills the window if it is empty.
    #[inline(always)]
    pub(super) fn bit(&mut self) -> bool {
        if self.have == 0 {
            self.fill();
        }
        self.take(1) != 0
    }

    /// Returns the value of `n` bits, 0 to 16, in the form of JPEG. They are in the window.
    #[inline(always)]
    pub(super) fn signed(&mut self, n: u32) -> i32 {
        extend(self.take(n), n)
    }
}

/// Returns the number that `n` bits mean: numbers that begin with a zero are negative. This is EXTEND in
/// section F.2.2.1 of ITU T.81, without a branch.
#[inline(always)]
pub(super) fn extend(value: i32, n: u32) -> i32 {
    // All ones if the first bit is a zero.
    let negative = (value << 1 >> n) - 1;
    value + (negative & (1 - (1 << n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_sign_of_their_first_bit() {
        assert_eq!(
            [(0, 1), (1, 1), (0, 2), (3, 2), (0, 15)].map(|(v, n)| extend(v, n)),
            [-1, 1, -3, 3, -32767]
        );
        assert_eq!(extend(0, 0), 0);
        for n in 1..16 {
            for value in 0..1 << n {
                let want = if value < 1 << (n - 1) { value - (1 << n) + 1 } else { value };
                assert_eq!(extend(value, n), want);
            }
        }
    }

    #[test]
    fn bits_behind_the_end_are_an_overrun() {
        let bytes = [0b1010_0101; 20];
        for n in 0..=12 {
            let mut bits = Bits::new(&bytes, 0, n);
            for k in 0..n * 8 {
                assert_eq!(bits.unread(), n - k.div_ceil(8));
                assert_eq!(bits.bit(), bytes[0] >> (7 - k % 8) & 1 == 1);
                assert!(!bits.is_overrun());
            }
            bits.bit();
            assert!(bits.is_overrun());
            bits.push_back(1);
            assert!(!bits.is_overrun());
        }
    }
}
