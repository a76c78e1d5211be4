//! Huffman tables.

use super::bits::{TwinBits, TwinStop, extend};
use super::support::PictureFault;

/// Codes of at most this many bits are found in one step, often with the bits of their value.
const FAST: u32 = 9;

/// A Huffman table as a file defines it: the number of codes of each length, and their symbols.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Definition {
    pub(super) counts: [u8; 16],
    pub(super) symbols: Vec<u8>,
}

/// What the first bits of the window mean, in one word, which is read at once: the number of bits of the
/// code, or of the code and its value; whether the value is among them; the symbol, which is the number of
/// zeros before the value and the number of its bits; the value.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry(u32);

impl Entry {
    const COMPLETE: u32 = 0x80;

    fn new(bits: u32, symbol: u8, value: Option<i16>) -> Entry {
        let complete = if value.is_some() { Entry::COMPLETE } else { 0 };
        Entry(bits | complete | u32::from(symbol) << 8 | u32::from(value.unwrap_or(0) as u16) << 16)
    }

    /// Returns the number of bits. 0 if the code is longer than the first bits.
    #[inline(always)]
    fn bits(self) -> u32 {
        self.0 & 0x7f
    }

    #[inline(always)]
    pub(super) fn symbol(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Returns the value. Its bits are consumed, if they have not been.
    #[inline(always)]
    pub(super) fn value(self, bits: &mut TwinBits<'_>) -> Result<i32, TwinStop> {
        if self.0 & Entry::COMPLETE != 0 {
            Ok(self.0 as i32 >> 16)
        } else {
            bits.signed(u32::from(self.symbol() & 15))
        }
    }
}

/// A Huffman table, for reading.
pub(super) struct HuffmanTable {
    definition: Definition,
    fast: Box<[Entry; 1 << FAST]>,
    /// For each length: the first 16 bits that belong to a longer code.
    limits: [u32; 17],
    /// For each length: what is added to a code for the position of its symbol.
    offsets: [i32; 17],
}

/// The tables of a file for first coefficients and for the others, by number.
#[derive(Default)]
pub(super) struct HuffmanTables {
    dc: [Slot; 4],
    ac: [Slot; 4],
}

#[derive(Default)]
struct Slot {
    table: Option<HuffmanTable>,
    /// False if the table belongs to an earlier file.
    current: bool,
}

/// Definitions that have not become tables, of first coefficients and of the others.
#[derive(Default)]
pub(super) struct Definitions {
    pub(super) dc: [Option<Definition>; 4],
    pub(super) ac: [Option<Definition>; 4],
}

impl HuffmanTables {
    /// Leaves the file. Its tables are kept only for files with the same.
    pub(super) fn forget(&mut self) {
        for slot in self.dc.iter_mut().chain(&mut self.ac) {
            slot.current = false;
        }
    }

    /// Prepares the tables that have been defined.
    pub(super) fn define(&mut self, definitions: &mut Definitions) -> Result<(), PictureFault> {
        let slots = self.dc.iter_mut().chain(&mut self.ac);
        for (slot, definition) in slots.zip(definitions.dc.iter_mut().chain(&mut definitions.ac)) {
            if let Some(definition) = definition.take() {
                slot.table = Some(HuffmanTable::new(definition, slot.table.take())?);
                slot.current = true;
            }
        }
        Ok(())
    }

    pub(super) fn dc(&self, number: usize) -> Result<&HuffmanTable, PictureFault> {
        self.dc[number].get()
    }

    pub(super) fn ac(&self, number: usize) -> Result<&HuffmanTable, PictureFault> {
        self.ac[number].get()
    }
}

impl Slot {
    fn get(&self) -> Result<&HuffmanTable, PictureFault> {
        self.table.as_ref().filter(|_| self.current).ok_or(PictureFault::Corrupt("missing huffman table"))
    }
}

impl HuffmanTable {
    /// Prepares a table. `previous` is reused if it has the same definition.
    pub(super) fn new(
        definition: Definition,
        previous: Option<HuffmanTable>,
    ) -> Result<HuffmanTable, PictureFault> {
        let fast = match previous {
            Some(table) if table.definition == definition => return Ok(table),
            Some(table) => table.fast,
            None => Box::new([Entry::default(); 1 << FAST]),
        };
        let mut table = HuffmanTable { definition, fast, limits: [0; 17], offsets: [0; 17] };
        table.fast.fill(Entry::default());
        let mut code = 0_u32;
        let mut at = 0_usize;
        for length in 1..=16_u32 {
            let count = usize::from(table.definition.counts[length as usize - 1]);
            table.offsets[length as usize] = at as i32 - code as i32;
            for k in at..at + count {
                let symbol =
                    *table.definition.symbols.get(k).ok_or(PictureFault::Corrupt("huffman table"))?;
                if code >= 1 << length {
                    return Err(PictureFault::Corrupt("huffman table"));
                }
                if length <= FAST {
                    table.set_fast(code, length, symbol);
                }
                code += 1;
            }
            at += count;
            table.limits[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Ok(table)
    }

    /// Sets the entries of all bits that begin with a code.
    fn set_fast(&mut self, code: u32, length: u32, symbol: u8) {
        let rest = FAST - length;
        let size = u32::from(symbol & 15);
        for tail in 0..1_u32 << rest {
            self.fast[(code << rest | tail) as usize] = match size {
                0 => Entry::new(length, symbol, Some(0)),
                _ if size > rest => Entry::new(length, symbol, None),
                _ => {
                    let value = extend((tail >> (rest - size)) as i32, size);
                    Entry::new(length + size, symbol, Some(value as i16))
                }
            };
        }
    }

    /// Reads a code. Those bits of its value that are not read yet are in the window.
    #[inline(always)]
    pub(super) fn read(&self, bits: &mut TwinBits<'_>) -> Result<Entry, TwinStop> {
        bits.fill();
        let entry = self.fast[bits.peek(FAST)];
        if entry.bits() == 0 {
            let symbol = self.symbol(bits)?;
            let value = if symbol & 15 == 0 { Some(0) } else { None };
            return Ok(Entry::new(0, symbol, value));
        }
        bits.consume(entry.bits())?;
        Ok(entry)
    }

    /// Reads a code, without its value.
    #[inline(never)]
    pub(super) fn symbol(&self, bits: &mut TwinBits<'_>) -> Result<u8, TwinStop> {
        bits.fill();
        let first = bits.peek(16) as u32;
        for length in 1..=16_u32 {
            if first < self.limits[length as usize] {
                bits.consume(length)?;
                let at = (first >> (16 - length)) as i32 + self.offsets[length as usize];
                return self.definition.symbols.get(at as usize).copied().ok_or(TwinStop::Code);
            }
        }
        // Zeros were added to the bits of a code that ends early, but no code begins with ones only.
        bits.consume(16)?;
        Err(TwinStop::Code)
    }
}
