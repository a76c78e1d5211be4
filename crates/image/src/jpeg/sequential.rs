//! Sequential files: the coefficients of a block, and a picture whose components are in one scan.

use super::bits::{Bits, Stop};
use super::header::{Component, Selected, ZIGZAG};
use super::huffman::{HuffmanTable, HuffmanTables};
use super::pairs::{PAIR_BITS, Pair, PairTable};
use super::per_component::PerComponent;
use super::rows::{PictureRows, write_pair};
use super::scan::{Memory, ScanData, UnitCursor};
use crate::error::PictureFault;
use crate::memory::grow;
use tfseek_wire::VectorWork;

/// Units whose coefficients are in memory together: the blocks of a row of them are transformed in pairs.
const GROUP: usize = 32;

/// The blocks of a group of units.
#[derive(Default)]
pub(super) struct Group {
    /// Zeros between groups.
    coefficients: Vec<[i16; 64]>,
    /// For each block, the position in the file's order behind which it has no coefficients.
    lasts: Vec<u8>,
}

/// A component of a sequential scan.
#[derive(Clone, Copy)]
pub(super) struct SequentialPart<'a> {
    pub(super) component: &'a Component,
    /// Its position in the frame.
    pub(super) number: usize,
    pub(super) quantization: &'a [i16; 64],
    pub(super) codes: BlockCodes<'a>,
}

/// The Huffman tables of a block.
#[derive(Clone, Copy)]
pub(super) struct BlockCodes<'a> {
    pub(super) dc: &'a HuffmanTable,
    pub(super) ac: &'a HuffmanTable,
    pub(super) pairs: &'a PairTable,
}

impl<'a> BlockCodes<'a> {
    pub(super) fn new(
        tables: &'a HuffmanTables,
        selected: &Selected,
    ) -> Result<BlockCodes<'a>, PictureFault> {
        let dc = tables.dc(selected.dc)?;
        let ac = tables.ac(selected.ac)?;
        Ok(BlockCodes { dc, ac, pairs: ac.pairs()? })
    }
}

/// A sequential picture whose components are in one scan. Returns the number of bytes behind the last block.
pub(super) struct SequentialPicture<'a> {
    pub(super) scan: ScanData<'a>,
    pub(super) parts: PerComponent<SequentialPart<'a>>,
    pub(super) group: &'a mut Group,
    pub(super) rows: PictureRows<'a>,
}

impl VectorWork for SequentialPicture<'_> {
    type Output = Result<usize, PictureFault>;

    #[inline(always)]
    fn run(self) -> Result<usize, PictureFault> {
        let SequentialPicture { scan, parts, group, mut rows } = self;
        group.clear(&parts)?;
        let mut units = UnitCursor::new(&scan)?;
        for y in 0..scan.frame.units_down {
            let is_needed = rows.down.contains(&y);
            let needed = if is_needed { rows.across.clone() } else { 0..0 };
            for _ in 0..needed.start {
                group.read_unit::<false>(&mut units, &parts, 0)?;
            }
            for x in needed.clone().step_by(GROUP) {
                let n = GROUP.min(needed.end - x);
                for i in 0..n {
                    group.read_unit::<true>(&mut units, &parts, i)?;
                }
                group.transform(&parts, &mut rows, [x, y], n);
            }
            for _ in needed.end..scan.frame.units_across {
                group.read_unit::<false>(&mut units, &parts, 0)?;
            }
            if is_needed {
                rows.write(y);
            }
        }
        Ok(units.bits.unread())
    }
}

impl Group {
    /// Makes all blocks zeros.
    fn clear(&mut self, parts: &[SequentialPart<'_>]) -> Result<(), PictureFault> {
        let blocks = parts.iter().map(|part| part.component.h * part.component.v * GROUP).sum();
        self.coefficients.fill([0; 64]);
        grow(&mut self.coefficients, blocks, [0; 64])?;
        grow(&mut self.lasts, blocks, 0)
    }

    /// Reads the `i`-th unit of the group. Without `STORE` its coefficients are dropped.
    #[inline(always)]
    fn read_unit<const STORE: bool>(
        &mut self,
        units: &mut UnitCursor<'_>,
        parts: &[SequentialPart<'_>],
        i: usize,
    ) -> Result<(), PictureFault> {
        units.begin()?;
        // In registers.
        let mut bits = units.bits;
        let mut read = Ok(());
        let mut start = 0;
        'unit: for (selected, part) in parts.iter().enumerate() {
            let h = part.component.h;
            for _ in 0..part.component.v {
                let at = start + i * h;
                let blocks = self.coefficients[at..at + h].iter_mut().zip(&mut self.lasts[at..at + h]);
                for (block, last) in blocks {
                    match read_block::<STORE>(&mut bits, &mut units.memory, selected, part.codes, block) {
                        Ok(found) => *last = found as u8,
                        Err(stop) => {
                            read = Err(stop);
                            break 'unit;
                        }
                    }
                }
                start += GROUP * h;
            }
        }
        units.bits = bits;
        units.end(read)
    }

    /// Transforms `n` units from unit `x` of row `y` on to samples, and makes their blocks zeros.
    #[inline(always)]
    fn transform(
        &mut self,
        parts: &[SequentialPart<'_>],
        rows: &mut PictureRows<'_>,
        [x, y]: [usize; 2],
        n: usize,
    ) {
        let mut start = 0;
        for part in parts {
            let &Component { h, size, .. } = part.component;
            for v in 0..part.component.v {
                let (out, stride) = rows.samples_at(part.number, y, v, x * h);
                let (pairs, rest) = self.coefficients[start..start + n * h].as_chunks_mut::<2>();
                let (lasts, last) = self.lasts[start..start + n * h].as_chunks::<2>();
                for (i, ([left, right], &[a, b])) in pairs.iter_mut().zip(lasts).enumerate() {
                    let out = &mut out[i * 2 * size..];
                    write_pair([left, right], a.max(b), part.quantization, size, out, stride);
                    *left = [0; 64];
                    *right = [0; 64];
                }
                if let ([block], &[last]) = (rest, last) {
                    let out = &mut out[pairs.len() * 2 * size..];
                    write_pair([block, &[0; 64]], last, part.quantization, size, out, stride);
                    *block = [0; 64];
                }
                start += GROUP * h;
            }
        }
    }
}

/// Positions in a block of the coefficients of the file's order, also of those that a corrupt file has behind
/// the last one, and of the sums that [`Pair::END`] and [`Pair::END_ALONE`] make. So all positions of eight
/// bits are in the block.
static PLACES: [u8; 256] = {
    let mut places = [63; 256];
    let mut k = 0;
    while k < 256 {
        if k < 64 || k >= Pair::END {
            places[k] = ZIGZAG[k % 64];
        }
        k += 1;
    }
    places
};

/// Returns the position in the block of the k-th coefficient.
#[inline(always)]
fn place(k: usize) -> usize {
    usize::from(PLACES[k & 255] & 63)
}

/// Reads a block. Without `STORE` its coefficients are dropped. Returns the position in the file's order
/// behind which it has no coefficients.
#[inline(always)]
pub(super) fn read_block<const STORE: bool>(
    bits: &mut Bits<'_>,
    memory: &mut Memory,
    selected: usize,
    codes: BlockCodes<'_>,
    block: &mut [i16; 64],
) -> Result<usize, Stop> {
    let first = memory.first(bits, selected, codes.dc)?;
    if STORE {
        block[0] = first as i16;
    }
    let mut k = 0;
    'fill: loop {
        bits.fill();
        // Four steps have at most 40 bits.
        for _ in 0..4 {
            let pair = codes.pairs[bits.peek(PAIR_BITS)];
            if pair.bits == 0 {
                k = read_long::<STORE>(bits, codes.ac, pair, k, block)?;
                if k >= 63 {
                    return Ok(k & 63);
                }
                continue 'fill;
            }
            bits.consume(pair.bits.into());
            let one = k + usize::from(pair.advances[0]);
            k = one + usize::from(pair.advances[1]);
            if STORE {
                block[place(one)] = pair.values[0];
                block[place(k)] = pair.values[1];
            }
            if k >= 63 {
                return end_block::<STORE>(bits, pair, one, k, block);
            }
        }
    }
}

/// Reads a code that is not in the table of pairs, or whose value is not. The last coefficient is at `k`.
/// Returns its new position: 63 or more if the block ends, of which the lowest six bits count.
#[inline(always)]
fn read_long<const STORE: bool>(
    bits: &mut Bits<'_>,
    ac: &HuffmanTable,
    pair: Pair,
    k: usize,
    block: &mut [i16; 64],
) -> Result<usize, Stop> {
    let symbol = if pair.first_bits == 0 {
        ac.long_symbol(bits)?
    } else {
        bits.fill();
        bits.consume(pair.first_bits.into());
        pair.advances[0]
    };
    let run = usize::from(symbol >> 4);
    let size = u32::from(symbol & 15);
    if size == 0 {
        return Ok(if run < 15 { k + Pair::END } else { (k + 16).min(63) });
    }
    let value = bits.signed(size);
    let at = k + run + 1;
    if at > 63 {
        return Err(Stop::Count);
    }
    if STORE {
        block[place(at)] = value as i16;
    }
    Ok(at)
}

/// Ends a block with the pair that reaches or passes its last coefficient: `one` and `k` are the positions of
/// the pair. Returns the position behind which the block has no coefficients.
#[inline(always)]
fn end_block<const STORE: bool>(
    bits: &mut Bits<'_>,
    pair: Pair,
    one: usize,
    k: usize,
    block: &mut [i16; 64],
) -> Result<usize, Stop> {
    // The first of the pair ends the block, and the second belongs to the next one.
    if (63..Pair::END).contains(&one) {
        bits.push_back((pair.bits - pair.first_bits).into());
        // Only zeros may pass the end.
        if one > 63 && pair.values[0] != 0 {
            return Err(Stop::Count);
        }
        if STORE {
            block[63] = pair.values[0];
        }
        return Ok(63);
    }
    if k < Pair::END {
        let is_beyond = k > 63 && pair.values[1] != 0;
        return if is_beyond { Err(Stop::Count) } else { Ok(63) };
    }
    // A processor cannot predict which of the two comes, so there is no branch.
    Ok(if k < Pair::END_ALONE { k - Pair::END } else { k - Pair::END_ALONE })
}

#[cfg(test)]
mod tests {
    use super::super::huffman::Definition;
    use super::*;

    /// A table of codes of these lengths, 1 to 16, in order, with its symbols.
    fn table(codes: &[(u8, u8)]) -> HuffmanTable {
        let mut counts = [0; 16];
        codes.iter().for_each(|(length, _)| counts[usize::from(*length) - 1] += 1);
        let symbols: Vec<u8> = codes.iter().map(|(_, symbol)| *symbol).collect();
        let mut table = HuffmanTable::new(Definition { counts, symbols: &symbols }, None).unwrap();
        table.prepare_pairs();
        table
    }

    /// The codes of the tests, of one bit to 16: the end of the block, a 1 or -1 at once and behind three
    /// zeros, sixteen zeros, a value of ten bits, and a 1 or -1 behind fifteen zeros.
    const CODES: [(u8, u8); 6] = [(2, 0x00), (2, 0x01), (3, 0x31), (4, 0xf0), (5, 0x0a), (16, 0xf1)];

    /// Text of bits, and the code of a symbol of `CODES` in it.
    fn code(symbol: u8) -> String {
        let mut code = 0_u32;
        let mut length = 0;
        for (next, found) in CODES {
            code <<= next - length;
            length = next;
            if found == symbol {
                return format!("{code:0width$b}", width = usize::from(length));
            }
            code += 1;
        }
        panic!("no code of {symbol}");
    }

    /// Reads a block, and the number of bits that it had. Its first coefficient is 0, of one bit.
    fn read(bits: &str) -> (Result<usize, Stop>, [i16; 64], usize) {
        let mut bytes: Vec<u8> = format!("0{bits}")
            .as_bytes()
            .chunks(8)
            .map(|byte| byte.iter().enumerate().fold(0, |sum, (k, bit)| sum | (bit - b'0') << (7 - k)))
            .collect();
        let n = bytes.len();
        bytes.extend([0xaa; 100]);
        let dc = table(&[(1, 0)]);
        let ac = table(&CODES);
        let codes = BlockCodes { dc: &dc, ac: &ac, pairs: ac.pairs().unwrap() };
        let mut bits = Bits::new(&bytes, 0, n + 50);
        let mut block = [0; 64];
        let last = read_block::<true>(&mut bits, &mut Memory::default(), 0, codes, &mut block);
        let mut dropped = Bits::new(&bytes, 0, n + 50);
        let same = read_block::<false>(&mut dropped, &mut Memory::default(), 0, codes, &mut [0; 64]);
        assert_eq!(same, last);
        assert_eq!(dropped.position(), bits.position());
        (last, block, bits.position() - 1)
    }

    /// Reads a block code by code, as section F.2.2.2 of ITU T.81 says.
    fn read_slowly(symbols: &[(u8, i16)]) -> (Result<usize, Stop>, [i16; 64], usize) {
        let mut block = [0; 64];
        let mut k = 0;
        let mut used = 0;
        for (n, &(symbol, value)) in symbols.iter().enumerate() {
            used += code(symbol).len() + usize::from(symbol & 15);
            match symbol {
                0x00 => return (Ok(k), block, used),
                0xf0 => k += 16,
                _ => {
                    k += usize::from(symbol >> 4) + 1;
                    if k > 63 {
                        return (Err(Stop::Count), block, used);
                    }
                    block[usize::from(ZIGZAG[k])] = value;
                }
            }
            if k >= 63 {
                return (Ok(63), block, used);
            }
            assert!(n + 1 < symbols.len(), "the block does not end");
        }
        panic!("no symbols");
    }

    /// Blocks that end at each position, by each code, also behind the last coefficient.
    #[test]
    #[cfg_attr(miri, ignore = "too slow under Miri")]
    fn pairs_are_read_as_single_codes_are() {
        let mut state = 1_u32;
        let mut random = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % n
        };
        let mut ends = [0; 4];
        for round in 0..40_000 {
            let mut symbols = Vec::new();
            for _ in 0..70 {
                // The end of a block is rare, so that many reach their last coefficient.
                let choice = if random(60) == 0 { 0 } else { 1 + random(5) as usize };
                // Blocks of small runs only, and of all.
                let choice = if round % 2 == 0 { choice.min(2) } else { choice };
                let symbol = CODES[choice].1;
                let size = u32::from(symbol & 15);
                let tail = random(1 << size) as i32;
                symbols.push((symbol, super::super::bits::extend(tail, size) as i16, tail));
            }
            let text: String = symbols
                .iter()
                .map(|&(symbol, _, tail)| match usize::from(symbol & 15) {
                    0 => code(symbol),
                    size => format!("{}{tail:0size$b}", code(symbol)),
                })
                .collect();
            let symbols: Vec<(u8, i16)> = symbols.iter().map(|&(symbol, value, _)| (symbol, value)).collect();
            let (want, block, used) = read_slowly(&symbols);
            let (found, read, position) = read(&text);
            match (found, want) {
                (Ok(found), Ok(want)) => {
                    assert!(found >= want || want == 63, "{found} {want}");
                    assert_eq!((read, position), (block, used));
                    ends[if want < 63 {
                        0
                    } else if block[63] == 0 {
                        1
                    } else {
                        2
                    }] += 1;
                }
                (found, want) => {
                    assert_eq!(found, want);
                    ends[3] += 1;
                }
            }
        }
        assert!(ends.iter().all(|n| *n > 1000), "{ends:?}");
    }
}
