//! Arrays in byte strings: the bytes of each row are checked and become values.
//!
//! That is done with the block of rows, while the payload is in the cache, so an array costs as much as a
//! float list. Row splits have 64 bits: a batch of raw bytes may have more than 2^31 items.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::array::ArrayMemory;
use super::column::RegionSpan;
use super::compile::{ArrayEncoding, ArrayPlan};
use super::row::Row;
use crate::error::{Error, ErrorKind, FeatureError, Result, TensorError};
use crate::tensor::TensorHeader;

/// The arrays of one slot, for all rows so far.
#[derive(Default)]
pub(super) struct SlotArrays {
    /// `None` for a slot without arrays.
    pub(super) memory: Option<ArrayMemory>,
    /// Reused memory for the dimensions of a tensor.
    dims: Vec<u64>,
    /// Reused memory for values of a tensor that are not stored as they are.
    decoded: Vec<u8>,
}

impl SlotArrays {
    /// Appends the arrays of `rows`, which are the strings at `spans`. Appends the number of values of each
    /// row to `counts`, unless all have the same. The batch has `total` rows. A column with tensors that do
    /// not have all of their values has at most `limit` bytes.
    ///
    /// # Errors
    /// The first refused row, counted from the first of `rows`.
    pub(super) fn append<R: Row>(
        &mut self,
        plan: &ArrayPlan,
        rows: &[R],
        spans: &[RegionSpan],
        counts: &mut Vec<u32>,
        total: usize,
        limit: u64,
    ) -> Result<(), (usize, Error)> {
        for (k, (row, span)) in rows.iter().zip(spans).enumerate() {
            let string = row.payload().get(span.start..).and_then(|bytes| bytes.get(..span.len as usize));
            let count = self.append_row(plan, string.unwrap_or_default(), total, limit);
            // An offset counts from the start of the payload.
            let count = count.map_err(|error| match error.into_kind() {
                ErrorKind::Wire { reason, offset } => {
                    ErrorKind::Wire { reason, offset: offset.saturating_add(span.start) }.into()
                }
                other => Error::from(other),
            });
            let count = count.map_err(|error| (k, error))?;
            if plan.open {
                counts.try_reserve(1).map_err(|error| (k, error.into()))?;
                counts.push(count as u32);
            }
        }
        Ok(())
    }

    /// Appends the array of one row. Returns the number of its values, which is below 2^32.
    fn append_row(&mut self, plan: &ArrayPlan, string: &[u8], total: usize, limit: u64) -> Result<usize> {
        let Some(memory) = &mut self.memory else { return Ok(0) };
        let size = plan.dtype.size().unwrap_or(1);
        let max = if plan.open { usize::MAX } else { total.saturating_mul(plan.elements) };
        match plan.encoding {
            ArrayEncoding::Raw { little_endian } => {
                check_len(plan, size, string.len())?;
                Ok(memory.append(string, little_endian, max)?)
            }
            ArrayEncoding::Tensor => {
                let header = TensorHeader::read(string, plan.dtype, std::mem::take(&mut self.dims))?;
                check_shape(plan, &header.shape)?;
                header.check_given()?;
                // Below 4 GiB, so that the number of values fits into 32 bits. Other values are in the
                // payload, which is smaller.
                let limit = limit.saturating_sub(memory.bytes()).min(u32::MAX.into());
                let stored = header.numbers(size, limit, &mut self.decoded)?;
                let bytes = stored.unwrap_or(&self.decoded);
                let count = memory.append(bytes, true, max)?;
                self.dims = header.shape;
                Ok(count)
            }
        }
    }
}

/// Checks the length of the bytes of an array.
fn check_len(plan: &ArrayPlan, size: usize, found: usize) -> Result<(), FeatureError> {
    let item = (plan.elements as u64).saturating_mul(size as u64);
    if !plan.open && item != found as u64 {
        Err(FeatureError::ArrayLen { expected: item, found })
    } else if plan.open && !(found as u64).is_multiple_of(item) {
        Err(FeatureError::ArrayItems { of: item, found })
    } else {
        Ok(())
    }
}

/// Checks that a tensor has the planned shape.
fn check_shape(plan: &ArrayPlan, found: &[u64]) -> Result<(), TensorError> {
    let open = usize::from(plan.open);
    let rank = plan.sizes.len().saturating_add(open);
    if rank != found.len() {
        return Err(TensorError::Rank { expected: rank, found: found.len() });
    }
    for ((dim, &found), &expected) in found.iter().enumerate().skip(open).zip(&plan.sizes) {
        let expected = expected as u64;
        if expected != found {
            return Err(TensorError::DimSize { dim, expected, found });
        }
    }
    Ok(())
}
