//! The coefficients of a scan.

use super::bits::{TwinBits, TwinStop};
use super::header::{TwinComponent, TwinFrame, TwinScan, ZIGZAG};
use super::huffman::HuffmanTable;
use super::support::PictureFault;

/// The state of a scan between blocks, until the next restart marker.
#[derive(Default)]
pub(super) struct Memory {
    /// The last first coefficient of each component of the scan.
    last: [i32; 4],
    /// Blocks that are known to end where they are.
    run: u32,
}

/// A block of a scan: the number of its component in the scan, and its place in the plane.
#[derive(Clone, Copy)]
pub(super) struct BlockPosition {
    pub(super) selected: usize,
    pub(super) across: usize,
    pub(super) down: usize,
}

/// The data of a scan.
pub(super) struct ScanData<'a> {
    /// The file.
    pub(super) data: &'a [u8],
    /// Position behind the header of the scan.
    pub(super) at: usize,
    /// Units between restart markers, or 0.
    pub(super) restart: usize,
    pub(super) frame: &'a TwinFrame,
    pub(super) scan: &'a TwinScan,
}

/// The work on the data of each block.
pub(super) trait Blocks {
    /// Reads a block.
    fn read(
        &mut self,
        bits: &mut TwinBits<'_>,
        memory: &mut Memory,
        place: BlockPosition,
    ) -> Result<(), TwinStop>;
}

/// Reads the blocks of a scan, in the order of the file. Returns the position behind the scan.
#[inline(always)]
pub(super) fn walk(scan: &ScanData<'_>, blocks: &mut impl Blocks) -> Result<usize, PictureFault> {
    let &ScanData { data, at, restart, frame, scan } = scan;
    let mut bits = TwinBits::new(data, at);
    let mut memory = Memory::default();
    let components: Vec<&TwinComponent> =
        scan.selected.iter().filter_map(|one| frame.components.get(one.component)).collect();
    // A scan of one component has no units: it has the blocks of the picture only.
    let (across, down) = match &components[..] {
        [component] => (component.width.div_ceil(8), component.height.div_ceil(8)),
        _ => (frame.units_across, frame.units_down),
    };
    let mut left = restart;
    let mut restarts = 0_u8;
    for y in 0..down {
        for x in 0..across {
            if restart > 0 {
                if left == 0 {
                    let next = restart_marker(data, bits.position(), restarts)?;
                    bits.restart(next);
                    memory = Memory::default();
                    restarts = (restarts + 1) % 8;
                    left = restart;
                }
                left -= 1;
            }
            if components.len() == 1 {
                blocks.read(&mut bits, &mut memory, BlockPosition { selected: 0, across: x, down: y })?;
                continue;
            }
            for (selected, component) in components.iter().enumerate() {
                for v in 0..component.v {
                    for h in 0..component.h {
                        let place = BlockPosition {
                            selected,
                            across: x * component.h + h,
                            down: y * component.v + v,
                        };
                        blocks.read(&mut bits, &mut memory, place)?;
                    }
                }
            }
        }
    }
    Ok(bits.position())
}

/// Returns the position behind the restart marker of this number, which is the next marker.
#[cold]
fn restart_marker(data: &[u8], at: usize, number: u8) -> Result<usize, PictureFault> {
    let mut at = at;
    match super::header::next_marker(data, &mut at)? {
        marker if marker == 0xd0 + number => Ok(at),
        0xd9 => Err(PictureFault::Truncated),
        _ => Err(PictureFault::Corrupt("order of restart markers")),
    }
}

/// Reads a first coefficient.
#[inline(always)]
fn first(
    bits: &mut TwinBits<'_>,
    memory: &mut Memory,
    selected: usize,
    dc: &HuffmanTable,
) -> Result<i32, TwinStop> {
    let entry = dc.read(bits)?;
    if entry.symbol() > 15 {
        return Err(TwinStop::Code);
    }
    let difference = entry.value(bits)?;
    let last = &mut memory.last[selected & 3];
    *last = last.wrapping_add(difference);
    Ok(*last)
}

/// Reads a block of a sequential file. Returns true if it has more than its first coefficient.
#[inline(always)]
pub(super) fn sequential(
    bits: &mut TwinBits<'_>,
    memory: &mut Memory,
    selected: usize,
    dc: &HuffmanTable,
    ac: &HuffmanTable,
    block: &mut [i16; 64],
) -> Result<bool, TwinStop> {
    block[0] = first(bits, memory, selected, dc)? as i16;
    let mut k = 1;
    while k < 64 {
        let entry = ac.read(bits)?;
        let run = usize::from(entry.symbol() >> 4);
        if entry.symbol() & 15 == 0 {
            if run < 15 {
                break;
            }
            k += 16;
            continue;
        }
        let value = entry.value(bits)?;
        k += run;
        let position = ZIGZAG.get(k).ok_or(TwinStop::Count)?;
        block[usize::from(position & 63)] = value as i16;
        k += 1;
    }
    Ok(k > 1)
}

/// Reads what a scan of a progressive file has for a block.
#[inline(always)]
pub(super) fn progressive(
    bits: &mut TwinBits<'_>,
    memory: &mut Memory,
    selected: usize,
    scan: &TwinScan,
    table: Option<&HuffmanTable>,
    block: &mut [i16; 64],
) -> Result<(), TwinStop> {
    match (scan.from, scan.high, table) {
        (0, 0, Some(table)) => block[0] = (first(bits, memory, selected, table)? << scan.low) as i16,
        // Further bits of first coefficients have no codes.
        (0, _, _) => {
            if bits.bit()? {
                block[0] |= 1 << scan.low;
            }
        }
        (_, 0, Some(table)) => ac_first(bits, memory, scan, table, block)?,
        (_, _, Some(table)) => ac_refine(bits, memory, scan, table, block)?,
        (_, _, None) => return Err(TwinStop::Code),
    }
    Ok(())
}

/// Reads the number of blocks that end, this one included.
#[inline(always)]
fn end_run(bits: &mut TwinBits<'_>, log: u32) -> Result<u32, TwinStop> {
    bits.fill();
    Ok((1 << log) + bits.take(log)? as u32)
}

#[inline(always)]
fn ac_first(
    bits: &mut TwinBits<'_>,
    memory: &mut Memory,
    scan: &TwinScan,
    table: &HuffmanTable,
    block: &mut [i16; 64],
) -> Result<(), TwinStop> {
    if memory.run > 0 {
        memory.run -= 1;
        return Ok(());
    }
    let mut k = scan.from;
    while k <= scan.to {
        let entry = table.read(bits)?;
        let run = usize::from(entry.symbol() >> 4);
        if entry.symbol() & 15 == 0 {
            if run < 15 {
                memory.run = end_run(bits, run as u32)? - 1;
                break;
            }
            k += 16;
            continue;
        }
        let value = entry.value(bits)?;
        k += run;
        if k > scan.to {
            return Err(TwinStop::Count);
        }
        block[usize::from(ZIGZAG[k & 63] & 63)] = (value << scan.low) as i16;
        k += 1;
    }
    Ok(())
}

/// Reads one more bit of the coefficients that are not 0, and those that become 1 or -1 at this bit.
#[inline(always)]
fn ac_refine(
    bits: &mut TwinBits<'_>,
    memory: &mut Memory,
    scan: &TwinScan,
    table: &HuffmanTable,
    block: &mut [i16; 64],
) -> Result<(), TwinStop> {
    let one = 1_i16 << scan.low;
    let mut k = scan.from;
    if memory.run == 0 {
        while k <= scan.to {
            let symbol = table.symbol(bits)?;
            let mut zeros = symbol >> 4;
            let new = match symbol & 15 {
                0 if zeros < 15 => {
                    memory.run = end_run(bits, u32::from(zeros))?;
                    break;
                }
                0 => 0,
                1 => {
                    if bits.bit()? {
                        one
                    } else {
                        -one
                    }
                }
                _ => return Err(TwinStop::Code),
            };
            loop {
                if k > scan.to {
                    // Sixteen zeros may end the block.
                    if new != 0 {
                        return Err(TwinStop::Count);
                    }
                    break;
                }
                let coefficient = &mut block[usize::from(ZIGZAG[k & 63] & 63)];
                k += 1;
                if *coefficient != 0 {
                    refine(bits, coefficient, one)?;
                } else if zeros == 0 {
                    *coefficient = new;
                    break;
                } else {
                    zeros -= 1;
                }
            }
        }
    }
    if memory.run > 0 {
        for k in k..=scan.to {
            let coefficient = &mut block[usize::from(ZIGZAG[k & 63] & 63)];
            if *coefficient != 0 {
                refine(bits, coefficient, one)?;
            }
        }
        memory.run -= 1;
    }
    Ok(())
}

#[inline(always)]
fn refine(bits: &mut TwinBits<'_>, coefficient: &mut i16, one: i16) -> Result<(), TwinStop> {
    if bits.bit()? && *coefficient & one == 0 {
        *coefficient = coefficient.wrapping_add(if *coefficient < 0 { -one } else { one });
    }
    Ok(())
}
