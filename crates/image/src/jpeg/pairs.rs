//! Tables that give two coefficients of a block at once.

use super::bits::extend;

/// Bits that an entry is for. Larger tables leave the first-level cache, and take longer to make.
pub(super) const PAIR_BITS: u32 = 10;

/// The pairs of all first bits.
pub(super) type PairTable = [Pair; 1 << PAIR_BITS];

/// What the first bits of the window mean for the coefficients of a block: one or two of them with their
/// values, or the end of the block.
///
/// The fields are such that both coefficients can always be written, without a branch. Without a second
/// coefficient the first one is repeated. Sixteen zeros are a coefficient of 0. The end of the block advances
/// by [`Pair::END`], and repeats the first coefficient. If it is alone, it advances by [`Pair::END_ALONE`],
/// which writes a 0 behind the last coefficient.
#[derive(Clone, Copy, Default)]
pub(super) struct Pair {
    /// Number of bits of both codes with their values. 0 if the first code or its value is longer.
    pub(super) bits: u8,
    /// Number of bits of the first code with its value. If its value is longer, of the code alone.
    pub(super) first_bits: u8,
    /// By how much the first coefficient's position is above the last one's, and the second one's above the
    /// first one's. If the value is longer, the symbol of its code is in place of the first one.
    pub(super) advances: [u8; 2],
    pub(super) values: [i16; 2],
}

impl Pair {
    /// A multiple of 64, so that the position in the block is the same.
    pub(super) const END: usize = 128;
    /// One above a multiple of 64.
    pub(super) const END_ALONE: usize = 193;

    /// Returns the entry of one coefficient.
    fn single(bits: u32, advance: usize, value: i16) -> Pair {
        let bits = bits as u8;
        Pair { bits, first_bits: bits, advances: [advance as u8, 0], values: [value; 2] }
    }

    /// Returns the entry with a second coefficient, which is the first one of `next`. `None` if it has none,
    /// as when a code ends behind the bits of the table.
    fn followed_by(self, next: Pair) -> Option<Pair> {
        let bits = self.first_bits + next.first_bits;
        let first = self.values[0];
        let is_end = |pair: Pair| usize::from(pair.advances[0]) >= Pair::END;
        if self.bits == 0 || is_end(self) || next.bits == 0 || u32::from(bits) > PAIR_BITS {
            return None;
        }
        if !is_end(next) {
            let advances = [self.advances[0], next.advances[0]];
            return Some(Pair { bits, advances, values: [first, next.values[0]], ..self });
        }
        // Sixteen zeros may pass the end of the block, where END is not the same position.
        let end = Pair { bits, advances: [self.advances[0], Pair::END as u8], ..self };
        Some(end).filter(|_| first != 0)
    }
}

/// Makes the table of valid codes: `counts[n - 1]` of `n` bits, with their symbols in order.
pub(super) fn fill_pairs(table: &mut Vec<Pair>, counts: &[u8; 16], symbols: &[u8]) {
    table.clear();
    table.resize(1 << PAIR_BITS, Pair::default());
    let mut symbols = symbols.iter();
    let mut code = 0;
    for length in 1..=PAIR_BITS {
        let rest = PAIR_BITS - length;
        for &symbol in symbols.by_ref().take(counts[length as usize - 1].into()) {
            set_single(&mut table[code << rest..(code + 1) << rest], length, symbol);
            code += 1;
        }
        code <<= 1;
    }
    // An entry keeps its first coefficient when it gets a second one, so the order does not matter.
    for i in 0..table.len() {
        let next = table[i << table[i].first_bits & (table.len() - 1)];
        if let Some(pair) = table[i].followed_by(next) {
            table[i] = pair;
        }
    }
}

/// Sets the entries of all bits that begin with a code of `length` bits, without second coefficients.
fn set_single(entries: &mut [Pair], length: u32, symbol: u8) {
    let run = usize::from(symbol >> 4);
    let size = u32::from(symbol & 15);
    if size == 0 {
        // The end of the block, or sixteen zeros.
        let advance = if run < 15 { Pair::END_ALONE } else { 16 };
        entries.fill(Pair::single(length, advance, 0));
    } else if entries.len() >> size == 0 {
        entries.fill(Pair { first_bits: length as u8, advances: [symbol, 0], ..Pair::default() });
    } else {
        let same = entries.len() >> size;
        for (tail, entries) in entries.chunks_exact_mut(same).enumerate() {
            let value = extend(tail as i32, size) as i16;
            entries.fill(Pair::single(length + size, run + 1, value));
        }
    }
}
