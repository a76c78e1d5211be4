//! A picture whose coefficients come in several scans: progressive files, and sequential ones whose scans
//! have some of the components.

use super::bits::Stop;
use super::header::{Component, Frame, Scan, Selected};
use super::huffman::{HuffmanTable, HuffmanTables};
use super::per_component::PerComponent;
use super::progressive::PartialBlock;
use super::rows::{PictureRows, write_pair};
use super::scan::{ScanData, UnitCursor};
use super::sequential::{BlockCodes, read_block};
use crate::error::PictureFault;
use crate::memory::grow;
use tfseek_wire::VectorWork;

/// The coefficients of a picture: the blocks of the first component, then of the next one.
#[derive(Default)]
pub(super) struct Coefficients {
    blocks: Vec<[i16; 64]>,
    /// For each block, a bit for each coefficient that is not 0, in the order of the file, or at least the
    /// last one's bit. The first coefficient's bit means nothing.
    filled: Vec<u64>,
}

impl Coefficients {
    /// Makes the blocks of a picture, without coefficients.
    pub(super) fn clear(&mut self, components: &[Component]) -> Result<(), PictureFault> {
        let blocks = components.iter().map(Component::padded_blocks).sum();
        self.blocks.clear();
        grow(&mut self.blocks, blocks, [0; 64])?;
        self.filled.clear();
        grow(&mut self.filled, blocks, 0)
    }

    /// Reads what a scan has for the block at `at`. `selected` is the position of its component in the scan.
    #[inline(always)]
    fn read(
        &mut self,
        scan: &Scan,
        codes: ComponentCodes<'_>,
        selected: usize,
        at: usize,
        units: &mut UnitCursor<'_>,
    ) -> Result<(), Stop> {
        let UnitCursor { bits, memory, .. } = units;
        let coefficients = &mut self.blocks[at];
        let filled = &mut self.filled[at];
        match codes {
            ComponentCodes::Sequential(codes) => {
                let last = read_block::<true>(bits, memory, selected, codes, coefficients)?;
                *filled = 1 << (last & 63);
                Ok(())
            }
            ComponentCodes::Progressive(table) => {
                PartialBlock { scan, bits, memory, coefficients, filled }.read(selected, table)
            }
        }
    }
}

/// The codes of a component of a scan.
#[derive(Clone, Copy)]
enum ComponentCodes<'a> {
    Sequential(BlockCodes<'a>),
    /// Scans of further bits of first coefficients have none.
    Progressive(Option<&'a HuffmanTable>),
}

/// A component of a scan.
#[derive(Clone, Copy)]
struct CoefficientPart<'a> {
    codes: ComponentCodes<'a>,
    component: Component,
    /// Position of its first block.
    start: usize,
}

impl<'a> CoefficientPart<'a> {
    fn new(
        tables: &'a HuffmanTables,
        frame: &Frame,
        scan: &Scan,
        selected: &Selected,
    ) -> Result<CoefficientPart<'a>, PictureFault> {
        let codes = match (frame.progressive, scan.from, scan.high) {
            (false, ..) => ComponentCodes::Sequential(BlockCodes::new(tables, selected)?),
            (_, 0, 0) => ComponentCodes::Progressive(Some(tables.dc(selected.dc)?)),
            (_, 0, _) => ComponentCodes::Progressive(None),
            _ => ComponentCodes::Progressive(Some(tables.ac(selected.ac)?)),
        };
        let component = frame.components[selected.component];
        let start = frame.components[..selected.component].iter().map(Component::padded_blocks).sum();
        Ok(CoefficientPart { codes, component, start })
    }
}

/// Reads a scan into the coefficients. Returns the number of bytes behind the last block.
pub(super) struct CoefficientScan<'a> {
    scan: ScanData<'a>,
    parts: PerComponent<CoefficientPart<'a>>,
    coefficients: &'a mut Coefficients,
}

impl<'a> CoefficientScan<'a> {
    pub(super) fn new(
        scan: ScanData<'a>,
        tables: &'a HuffmanTables,
        coefficients: &'a mut Coefficients,
    ) -> Result<CoefficientScan<'a>, PictureFault> {
        let part = |selected: &Selected| CoefficientPart::new(tables, scan.frame, scan.scan, selected);
        let parts = scan.scan.selected.try_map(part)?;
        Ok(CoefficientScan { scan, parts, coefficients })
    }
}

impl VectorWork for CoefficientScan<'_> {
    type Output = Result<usize, PictureFault>;

    #[inline(always)]
    fn run(self) -> Result<usize, PictureFault> {
        let CoefficientScan { scan, parts, coefficients } = self;
        let mut units = UnitCursor::new(&scan)?;
        let [across, down] = scan.scan.units(scan.frame);
        // A scan of one component has no units, but its blocks in rows.
        if let [part] = parts[..] {
            for y in 0..down {
                let row = part.start + y * part.component.blocks_across;
                for at in row..row + across {
                    units.begin()?;
                    let read = coefficients.read(scan.scan, part.codes, 0, at, &mut units);
                    units.end(read)?;
                }
            }
            return Ok(units.bits.unread());
        }
        for y in 0..down {
            for x in 0..across {
                units.begin()?;
                for (selected, part) in parts.iter().enumerate() {
                    let Component { blocks_across, h, v, .. } = part.component;
                    let mut row = part.start + y * v * blocks_across + x * h;
                    for _ in 0..v {
                        for at in row..row + h {
                            let read = coefficients.read(scan.scan, part.codes, selected, at, &mut units);
                            units.end(read)?;
                        }
                        row += blocks_across;
                    }
                }
            }
        }
        Ok(units.bits.unread())
    }
}

/// Computes the pixels of a picture whose coefficients are complete.
pub(super) struct CoefficientPicture<'a> {
    /// The quantization table of each component.
    pub(super) tables: PerComponent<[i16; 64]>,
    pub(super) coefficients: &'a Coefficients,
    pub(super) rows: PictureRows<'a>,
}

impl VectorWork for CoefficientPicture<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let CoefficientPicture { tables, coefficients, mut rows } = self;
        for y in rows.down.clone() {
            let mut start = 0;
            for (k, component) in rows.frame.components.iter().enumerate() {
                let from = rows.across.start * component.h;
                let n = rows.across.len() * component.h;
                for v in 0..component.v {
                    let at = start + (y * component.v + v) * component.blocks_across + from;
                    let (out, stride) = rows.samples_at(k, y, v, from);
                    let blocks = coefficients.blocks[at..at + n].chunks(2);
                    let filled = coefficients.filled[at..at + n].chunks(2);
                    for (i, (two, filled)) in blocks.zip(filled).enumerate() {
                        let right = two.get(1).unwrap_or(&[0; 64]);
                        let filled = filled.iter().fold(1, |all, filled| all | filled);
                        let last = (63 - u64::leading_zeros(filled)) as u8;
                        let out = &mut out[i * 2 * component.size..];
                        write_pair([&two[0], right], last, &tables[k], component.size, out, stride);
                    }
                }
                start += component.padded_blocks();
            }
            rows.write(y);
        }
    }
}
