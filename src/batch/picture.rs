//! Pictures in byte strings: the values that a decoder makes of them, in pooled memory.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::array::{ArrayBits, ArrayValues};
use super::column::BytesColumn;
use super::output::Batch;
use super::pool::{Buf, BufPool};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::grow_exact;
use crate::schema::ImageSpec;
use crate::tensor::TensorDType;
use std::sync::{Mutex, PoisonError};

/// A decoder of pictures, which a loader calls in its threads. The crate `tfseek-image` has one.
pub trait PictureDecoder: Send + Sync {
    /// Decodes a file to the memory of its pixels, which has the size of the spec. `draw` selects the rectangle of a random crop.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn decode(
        &self,
        file: &[u8],
        spec: &ImageSpec,
        draw: u64,
        pixels: PictureMemory<'_>,
    ) -> Result<(), Box<str>>;
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
    /// Decodes the pictures of a batch, in place of their files. `draw` returns the random word of a row and a name. Returns the rows that have
    /// no picture, ascending, each with its first error. The batch is then incomplete.
    pub(crate) fn decode(
        &self,
        batch: &mut Batch,
        decoder: &dyn PictureDecoder,
        draw: impl Fn(usize, &str) -> u64,
    ) -> Result<Vec<(usize, Error)>> {
        let mut refused: Vec<(usize, Error)> = Vec::new();
        for (column, name, spec) in batch.pictures() {
            let Some(files) = batch.files(column) else { continue };
            let drawn = spec.crop_with.as_deref().unwrap_or(&name);
            let mut one = |row: usize, pixels: PictureMemory<'_>| {
                let file = files.get(row).unwrap_or_default();
                if let Err(reason) = decoder.decode(file, &spec, draw(row, drawn), pixels) {
                    let error = Error::from(ErrorKind::Picture { reason }).feature(name.as_bytes());
                    refused.push((row, error));
                }
            };
            let (rows, each) = (files.len(), spec.values().unwrap_or_default());
            let bits = if spec.dtype == TensorDType::UInt16 {
                ArrayBits::Bits16(fill(&self.bits16, rows, each, |row, out| {
                    one(row, PictureMemory::Bits16(out));
                })?)
            } else {
                ArrayBits::Bits8(fill(&self.bits8, rows, each, |row, out| {
                    one(row, PictureMemory::Bits8(out));
                })?)
            };
            let [h, w] = spec.size.unwrap_or_default();
            let shape = [rows, h as usize, w as usize, usize::from(spec.channels)];
            batch.set_array(column, ArrayValues::new(spec.dtype, bits), shape);
        }
        refused.sort_by_key(|(row, _)| *row);
        refused.dedup_by_key(|(row, _)| *row);
        Ok(refused)
    }
}

/// Fills `rows` times `each` values of pooled memory.
fn fill<T: Clone + Default>(
    pool: &Mutex<BufPool<T>>,
    rows: usize,
    each: usize,
    mut row: impl FnMut(usize, &mut [T]),
) -> Result<Buf<T>> {
    let lock = || pool.lock().unwrap_or_else(PoisonError::into_inner);
    let mut memory = lock().take();
    // A saturated size cannot be allocated.
    let len = rows.saturating_mul(each);
    let kept = memory.values.len();
    grow_exact(&mut memory.values, len.max(kept))?;
    for (k, out) in memory.values.chunks_exact_mut(each.max(1)).take(rows).enumerate() {
        row(k, out);
    }
    Ok(lock().freeze(memory, len))
}

impl Batch {
    /// Returns the files of a column of pictures that are not decoded.
    fn files(&self, column: usize) -> Option<BytesColumn> {
        self.column(column)?.values().bytes().cloned()
    }
}
