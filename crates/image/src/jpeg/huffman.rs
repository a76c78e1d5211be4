//! Huffman tables.

use super::bits::{Bits, Stop};
use super::pairs::{Pair, PairTable, fill_pairs};
use crate::error::PictureFault;

/// Codes of at most this many bits are found in one step.
const FAST: u32 = 9;

/// A Huffman table as a file defines it: the number of codes of each length, and their symbols.
#[derive(Clone, Copy)]
pub(super) struct Definition<'a> {
    pub(super) counts: [u8; 16],
    pub(super) symbols: &'a [u8],
}

/// A code that the first bits of the window begin with.
#[derive(Clone, Copy, Default)]
struct Code {
    /// Number of its bits; 0 if there is none, or a longer one.
    bits: u8,
    /// The number of zeros before a value, and the number of its bits.
    symbol: u8,
}

/// A Huffman table, for reading.
pub(super) struct HuffmanTable {
    /// False if the table belongs to an earlier file.
    is_current: bool,
    counts: [u8; 16],
    symbols: Vec<u8>,
    fast: Box<[Code; 1 << FAST]>,
    /// For coefficients of sequential files; empty until it is needed.
    pairs: Vec<Pair>,
    /// For each length: the first 16 bits that belong to a longer code.
    limits: [u32; 17],
    /// For each length: what is added to a code for the position of its symbol.
    offsets: [i32; 17],
}

/// The tables of a file for first coefficients and for the others, by number.
#[derive(Default)]
pub(super) struct HuffmanTables {
    dc: [Option<HuffmanTable>; 4],
    ac: [Option<HuffmanTable>; 4],
}

/// Definitions that have not become tables, of first coefficients and of the others.
#[derive(Default)]
pub(super) struct Definitions<'a> {
    pub(super) dc: [Option<Definition<'a>>; 4],
    pub(super) ac: [Option<Definition<'a>>; 4],
}

impl HuffmanTables {
    /// Leaves the file. Its tables are kept only for files with the same.
    pub(super) fn forget(&mut self) {
        for table in self.dc.iter_mut().chain(&mut self.ac).flatten() {
            table.is_current = false;
        }
    }

    /// Prepares the tables that have been defined.
    pub(super) fn define(&mut self, definitions: &mut Definitions<'_>) -> Result<(), PictureFault> {
        let tables = self.dc.iter_mut().chain(&mut self.ac);
        for (table, definition) in tables.zip(definitions.dc.iter_mut().chain(&mut definitions.ac)) {
            if let Some(definition) = definition.take() {
                *table = Some(HuffmanTable::new(definition, table.take())?);
            }
        }
        Ok(())
    }

    /// Prepares a table for the coefficients of a sequential file.
    pub(super) fn prepare_pairs(&mut self, number: usize) {
        if let Some(table) = &mut self.ac[number] {
            table.prepare_pairs();
        }
    }

    pub(super) fn dc(&self, number: usize) -> Result<&HuffmanTable, PictureFault> {
        self.dc[number].as_ref().filter(|table| table.is_current).ok_or(MISSING)
    }

    pub(super) fn ac(&self, number: usize) -> Result<&HuffmanTable, PictureFault> {
        self.ac[number].as_ref().filter(|table| table.is_current).ok_or(MISSING)
    }
}

const MISSING: PictureFault = PictureFault::Corrupt("missing huffman table");

impl HuffmanTable {
    /// Prepares a table. `previous` is reused if it has the same definition, and else its memory.
    pub(super) fn new(
        definition: Definition<'_>,
        previous: Option<HuffmanTable>,
    ) -> Result<HuffmanTable, PictureFault> {
        let Definition { counts, symbols } = definition;
        let mut table = previous.unwrap_or_else(|| HuffmanTable {
            is_current: false,
            counts: [0; 16],
            symbols: Vec::new(),
            fast: Box::new([Code::default(); 1 << FAST]),
            pairs: Vec::new(),
            limits: [0; 17],
            offsets: [0; 17],
        });
        table.is_current = true;
        if table.counts == counts && table.symbols == symbols {
            return Ok(table);
        }
        table.counts = counts;
        table.symbols.clear();
        table.symbols.extend_from_slice(symbols);
        table.pairs.clear();
        table.fast.fill(Code::default());
        table.assign_codes()?;
        Ok(table)
    }

    /// Assigns the codes of each length to the symbols in order, as section C.2 of ITU T.81.
    fn assign_codes(&mut self) -> Result<(), PictureFault> {
        let mut code = 0_u32;
        let mut at = 0_usize;
        for length in 1..=16_u32 {
            let count = usize::from(self.counts[length as usize - 1]);
            self.offsets[length as usize] = at as i32 - code as i32;
            for k in at..at + count {
                let symbol = *self.symbols.get(k).ok_or(PictureFault::Corrupt("huffman table"))?;
                if code >= 1 << length {
                    return Err(PictureFault::Corrupt("huffman table"));
                }
                if length <= FAST {
                    let rest = FAST - length;
                    let entries = &mut self.fast[(code << rest) as usize..((code + 1) << rest) as usize];
                    entries.fill(Code { bits: length as u8, symbol });
                }
                code += 1;
            }
            at += count;
            self.limits[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Ok(())
    }

    /// Makes the table of pairs, unless it is there.
    pub(super) fn prepare_pairs(&mut self) {
        if self.pairs.is_empty() {
            fill_pairs(&mut self.pairs, &self.counts, &self.symbols);
        }
    }

    /// Returns the table of pairs, which was prepared.
    pub(super) fn pairs(&self) -> Result<&PairTable, PictureFault> {
        self.pairs.first_chunk().ok_or(MISSING)
    }

    /// Reads a code without its value, whose bits are in the window then.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: &mut Bits<'_>) -> Result<u8, Stop> {
        bits.fill();
        let code = self.fast[bits.peek(FAST)];
        if code.bits == 0 {
            return self.long_symbol(bits);
        }
        bits.consume(code.bits.into());
        Ok(code.symbol)
    }

    /// Reads the difference of a first coefficient.
    #[inline(always)]
    pub(super) fn difference(&self, bits: &mut Bits<'_>) -> Result<i32, Stop> {
        let size = self.symbol(bits)?;
        if size > 15 {
            return Err(Stop::Code);
        }
        Ok(bits.signed(size.into()))
    }

    /// Reads a code of any length, without its value.
    #[cold]
    #[inline(never)]
    pub(super) fn long_symbol(&self, bits: &mut Bits<'_>) -> Result<u8, Stop> {
        bits.fill();
        let first = bits.peek(16) as u32;
        for length in 1..=16_u32 {
            if first < self.limits[length as usize] {
                bits.consume(length);
                let at = (first >> (16 - length)) as i32 + self.offsets[length as usize];
                return self.symbols.get(at as usize).copied().ok_or(Stop::Code);
            }
        }
        // These bits may be behind the end: they count as read, so that this is found.
        bits.consume(16);
        Err(Stop::Code)
    }
}
