//! Pictures in byte strings: the values that a decoder makes of them, in pooled memory.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::array::{ArrayBits, ArrayValues};
use super::column::{BytesColumn, Column, Ragged, RowSplits, Values};
use super::output::Batch;
use super::pool::{Buf, BufPool};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::grow_exact;
use crate::schema::ImageSpec;
use crate::tensor::TensorDType;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A decoder of pictures, which a loader calls in its threads. The crate `tfseek-image` has one.
pub trait PictureDecoder: Send + Sync {
    /// Returns the height and the width of a picture, from the first bytes of its file. At most 100 million
    /// pixels.
    ///
    /// # Errors
    /// [`ErrorKind::Picture`] for what is wrong with the file, which a loader may leave out. All others end
    /// the epoch.
    fn size(&self, file: &[u8], spec: &ImageSpec) -> Result<[u32; 2]>;

    /// Decodes a file to the memory of its pixels, which has the size of the spec. `draw` selects the
    /// rectangle of a random crop. Long work ends with [`ErrorKind::Cancelled`] soon after `cancelled` is
    /// set.
    ///
    /// # Errors
    /// As for [`size`](PictureDecoder::size).
    fn decode(
        &self,
        file: &[u8],
        spec: &ImageSpec,
        draw: u64,
        pixels: PictureMemory<'_>,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<()>;
}

/// Memory for the pixels of a picture, of the type of its spec.
#[derive(Debug)]
pub enum PictureMemory<'a> {
    /// Values of 8 bits.
    Bits8(&'a mut [u8]),
    /// Values of 16 bits.
    Bits16(&'a mut [u16]),
}

/// Memory of decoded pictures, for one batch after the other.
#[derive(Default)]
pub(crate) struct PicturePools {
    bits8: Mutex<BufPool<u8>>,
    bits16: Mutex<BufPool<u16>>,
}

impl PicturePools {
    /// Decodes the pictures of a batch, in place of their files. `draw` returns the random word of a row and
    /// a name. Returns the rows that have no picture, ascending, each with its first error. The batch is then
    /// incomplete.
    ///
    /// Pictures of one size are a dense column. Others are a ragged one, with the lines of each picture and
    /// the pixels of each line as rows. It has at most `limit` bytes.
    pub(crate) fn decode(
        &self,
        batch: &mut Batch,
        decoder: &dyn PictureDecoder,
        draw: impl Fn(usize, &str) -> u64,
        limit: u64,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Vec<(usize, Error)>> {
        let mut refused: Vec<(usize, Error)> = Vec::new();
        for (column, name, spec) in batch.pictures() {
            let Some(files) = batch.files(column) else { continue };
            let drawn = spec.crop_with.as_deref().unwrap_or(&name);
            let mut refuse = |row: usize, e: Error| refused.push((row, e.feature(name.as_bytes())));
            let mut sizes = Vec::with_capacity(files.len());
            for (row, file) in files.iter().enumerate() {
                let size = spec.size.map_or_else(|| decoder.size(file, &spec), Ok);
                sizes.push(size.unwrap_or_else(|e| {
                    refuse(row, e);
                    [0, 0]
                }));
            }
            let channels = usize::from(spec.channels);
            let bytes = spec.dtype.size().unwrap_or(1);
            if spec.size.is_none() {
                let all = sizes.iter().map(|&size| values_of(size, channels) as u128).sum::<u128>();
                let len = all.saturating_mul(bytes as u128);
                if len > u128::from(limit) {
                    return Err(Error::from(ErrorKind::TooLarge { len, limit }).feature(name.as_bytes()));
                }
            }
            let mut one = |row: usize, pixels: PictureMemory<'_>| {
                let file = files.get(row).unwrap_or_default();
                let Some(&size) = sizes.get(row) else { return };
                let decoded = match spec.size {
                    _ if cancelled.load(Ordering::Relaxed) => Err(ErrorKind::Cancelled.into()),
                    Some(_) => decoder.decode(file, &spec, draw(row, drawn), pixels, cancelled),
                    // Refused before.
                    None if size == [0, 0] => Ok(()),
                    None => {
                        let own = ImageSpec { size: Some(size), resize: None, ..spec.clone() };
                        decoder.decode(file, &own, 0, pixels, cancelled)
                    }
                };
                if let Err(e) = decoded {
                    refuse(row, e);
                }
            };
            let lens = sizes.iter().map(|&size| values_of(size, channels));
            let bits = if spec.dtype == TensorDType::UInt16 {
                ArrayBits::Bits16(fill(&self.bits16, lens, |row, out| one(row, PictureMemory::Bits16(out)))?)
            } else {
                ArrayBits::Bits8(fill(&self.bits8, lens, |row, out| one(row, PictureMemory::Bits8(out)))?)
            };
            let values = Values::Array(ArrayValues::new(spec.dtype, bits));
            batch.set_column(column, |column| match spec.size {
                Some([h, w]) => column.set_dense(values, [files.len(), h as usize, w as usize, channels]),
                None => *column = Column::Ragged(ragged(values, &sizes, channels)),
            });
        }
        refused.sort_by_key(|(row, _)| *row);
        refused.dedup_by_key(|(row, _)| *row);
        Ok(refused)
    }
}

/// Returns the number of values of a picture. A saturated one cannot be allocated.
fn values_of([h, w]: [u32; 2], channels: usize) -> usize {
    (h as usize).saturating_mul(w as usize).saturating_mul(channels)
}

/// Returns pictures of these sizes, with the lines of each picture and the pixels of each line as rows.
fn ragged(values: Values, sizes: &[[u32; 2]], channels: usize) -> Ragged {
    let pixels = values.len().checked_div(channels).unwrap_or(0);
    let lines = splits(sizes.iter().map(|[h, _]| *h));
    let widths = sizes.iter().flat_map(|&[h, w]| std::iter::repeat_n(w, h as usize));
    Ragged::new(values, vec![pixels, channels], vec![lines, splits(widths)])
}

/// Returns the row splits of rows of these lengths.
fn splits(lens: impl Iterator<Item = u32>) -> RowSplits {
    let mut end = 0i64;
    let ends = lens.map(|len| {
        end = end.saturating_add(len.into());
        end
    });
    RowSplits::Int64(std::iter::once(0).chain(ends).collect::<Vec<_>>().into())
}

/// Fills pooled memory, with this number of values for each row.
fn fill<T: Clone + Default>(
    pool: &Mutex<BufPool<T>>,
    lens: impl Iterator<Item = usize> + Clone,
    mut row: impl FnMut(usize, &mut [T]),
) -> Result<Buf<T>> {
    let lock = || pool.lock().unwrap_or_else(PoisonError::into_inner);
    let mut memory = lock().take();
    // A saturated size cannot be allocated.
    let len = lens.clone().fold(0usize, usize::saturating_add);
    let kept = memory.values.len();
    grow_exact(&mut memory.values, len.max(kept))?;
    let mut rest = memory.values.as_mut_slice();
    for (k, len) in lens.enumerate() {
        let Some((out, after)) = rest.split_at_mut_checked(len) else { break };
        row(k, out);
        rest = after;
    }
    Ok(lock().freeze(memory, len))
}

impl Batch {
    /// Returns the files of a column of pictures that are not decoded.
    fn files(&self, column: usize) -> Option<BytesColumn> {
        self.column(column)?.values().bytes().cloned()
    }
}
