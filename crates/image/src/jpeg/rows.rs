//! From blocks of coefficients to pixels, with the samples of two rows of units in memory.

use super::emit::{Samples, ScratchRows, Target};
use super::header::{Component, Frame};
use super::idct::{self, BlockPair};
use super::per_component::MOST;
use crate::crop::Rect;
use crate::error::PictureFault;
use crate::memory::grow;
use std::ops::Range;

/// The memory of [`PictureRows`].
#[derive(Default)]
pub(super) struct RowMemory {
    /// The samples of all components, one after the other: of each, two rows of units.
    samples: Vec<u8>,
    scratch: ScratchRows,
}

/// The pixels of a rectangle, which are written while rows of units are transformed from top to bottom.
///
/// The last row of pixels of a row of units also needs samples of the next one, if there are fewer samples
/// than pixels. So the samples of two rows are kept, with the odd row behind the even one.
pub(super) struct PictureRows<'a> {
    pub(super) frame: &'a Frame,
    /// The units that the pixels need, in a row and in a column.
    pub(super) across: Range<usize>,
    pub(super) down: Range<usize>,
    target: Target,
    out: &'a mut [u8],
    /// The samples of each component.
    planes: [&'a mut [u8]; MOST],
    scratch: &'a mut ScratchRows,
    /// The next row of pixels.
    next: usize,
}

/// Returns the units that a range of pixels needs, of `most` units of `blocks` blocks of `size` pixels.
/// Upsampling also needs the sample on each side of the range, which has at most as many pixels as the unit has
/// blocks.
fn needed(pixels: Range<usize>, blocks: usize, size: usize, most: usize) -> Range<usize> {
    let size = blocks * size;
    let first = pixels.start.max(blocks) - blocks;
    let last = pixels.end - 1 + blocks;
    first / size..most.min(last / size + 1)
}

/// Returns the number of samples of two rows of units.
fn plane_len(component: &Component) -> usize {
    component.stride() * component.v * component.size * 2
}

impl<'a> PictureRows<'a> {
    pub(super) fn new(
        frame: &'a Frame,
        target: Target,
        out: &'a mut [u8],
        memory: &'a mut RowMemory,
    ) -> Result<PictureRows<'a>, PictureFault> {
        grow(&mut memory.samples, frame.components.iter().map(plane_len).sum(), 0)?;
        let mut rest = &mut memory.samples[..];
        let planes = std::array::from_fn(|k| {
            let len = frame.components.get(k).map_or(0, plane_len);
            let (plane, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            plane
        });
        let Rect { top, left, height, width } = target.rect;
        let across = needed(left..left + width, frame.h, frame.size, frame.units_across);
        let down = needed(top..top + height, frame.v, frame.size, frame.units_down);
        let scratch = &mut memory.scratch;
        Ok(PictureRows { frame, across, down, target, out, planes, scratch, next: top })
    }

    /// Returns the samples of the k-th component from a block on, with the distance of their rows. The block
    /// is in row `v` of row `y` of units.
    #[inline(always)]
    pub(super) fn samples_at(&mut self, k: usize, y: usize, v: usize, across: usize) -> (&mut [u8], usize) {
        let component = &self.frame.components[k];
        let stride = component.stride();
        let row = (y % 2 * component.v + v) * component.size;
        (&mut self.planes[k][row * stride + across * component.size..], stride)
    }

    /// Writes the pixels that are complete with row `y` of units.
    #[inline(always)]
    pub(super) fn write(&mut self, y: usize) {
        let Rect { top, height, width, .. } = self.target.rect;
        let mut end = top + height;
        if y + 1 < self.down.end {
            end = end.min((y + 1) * self.frame.v * self.frame.size - self.frame.v / 2);
        }
        let planes = self.planes.each_ref().map(|plane| &**plane);
        let samples = Samples { frame: self.frame, planes: &planes[..self.frame.components.len()] };
        let len = width * self.target.channels;
        while self.next < end {
            let out = &mut self.out[(self.next - top) * len..][..len];
            samples.write_row(&self.target, self.next, self.scratch, out);
            self.next += 1;
        }
    }
}

/// Writes the samples of two neighbouring blocks to the rows that begin with `out`, `stride` apart. `last` is
/// the position in the file's order behind which both blocks have no coefficients, and `size` the component's.
#[inline(always)]
pub(super) fn write_pair(
    [left, right]: [&[i16; 64]; 2],
    last: u8,
    table: &[i16; 64],
    size: usize,
    out: &mut [u8],
    stride: usize,
) {
    if size == 1 {
        return idct::write_rows(&[[idct::mean(left[0], table), idct::mean(right[0], table)]], out, stride);
    }
    if last > 0 {
        // The first ten coefficients are in the first four rows and columns.
        return idct::write_samples(&BlockPair { left, right, table, small: last < 10 }, size, out, stride);
    }
    let flat = [idct::flat(left[0], table), idct::flat(right[0], table)];
    match size {
        8 => idct::write_rows(&[flat_row::<16>(flat); 8], out, stride),
        4 => idct::write_rows(&[flat_row::<8>(flat); 4], out, stride),
        _ => idct::write_rows(&[flat_row::<4>(flat); 2], out, stride),
    }
}

/// Returns a row of two flat blocks.
#[inline(always)]
fn flat_row<const PAIR: usize>([left, right]: [u8; 2]) -> [u8; PAIR] {
    let mut row = [left; PAIR];
    row[PAIR / 2..].fill(right);
    row
}
