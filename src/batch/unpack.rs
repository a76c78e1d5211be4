//! Arrays in byte strings: the bytes of each row are checked and become values.
//!
//! That is done with the block of rows, while the payload is in the cache, so an array costs as much as a
//! float list. Row splits have 64 bits: a batch of raw bytes may have more than 2^31 items.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::array::ArrayMemory;
use super::column::RegionSpan;
use super::compile::{ArrayEncoding, ArrayPlan};
use super::row::Row;
use crate::error::{Error, ErrorKind, FeatureError, Result, TensorError, escaped};
use crate::tensor::TensorHeader;

/// The arrays of one slot, for all rows so far.
#[derive(Default)]
pub(super) struct SlotArrays {
    /// `None` for a slot without arrays.
    pub(super) memory: Option<ArrayMemory>,
    /// Reused memory for the dimensions of a tensor.
    dims: Vec<u64>,
    /// Reused memory for values of a tensor that are not stored as they are, and for padded bytes.
    decoded: Vec<u8>,
    /// Number of strings that were read, where rows have several.
    strings: usize,
    /// True if the values are labels.
    pub(super) labels: bool,
}

impl SlotArrays {
    /// Starts a batch of arrays, or of labels.
    pub(super) fn start(&mut self, memory: Option<(ArrayMemory, bool)>) {
        (self.memory, self.labels) = memory.map_or((None, false), |(memory, labels)| (Some(memory), labels));
        self.strings = 0;
    }

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
        let max = if plan.open { usize::MAX } else { total.saturating_mul(plan.elements) };
        for (k, (row, span)) in rows.iter().zip(spans).enumerate() {
            let count = self.append_string(plan, row, *span, max, limit).map_err(|error| (k, error))?;
            if plan.open {
                counts.try_reserve(1).map_err(|error| (k, error.into()))?;
                counts.push(count as u32);
            }
        }
        Ok(())
    }

    /// Appends the arrays of `rows`, of which each has as many strings as `strings` says. Their spans
    /// follow the ones of earlier rows.
    ///
    /// # Errors
    /// The first refused row, counted from the first of `rows`, with the number of its string as the step.
    pub(super) fn append_several<R: Row>(
        &mut self,
        plan: &ArrayPlan,
        rows: &[R],
        spans: &[RegionSpan],
        strings: &[u32],
        limit: u64,
    ) -> Result<(), (usize, Error)> {
        let mut spans = spans.iter().skip(self.strings);
        for (k, (row, &strings)) in rows.iter().zip(strings).enumerate() {
            for (step, span) in spans.by_ref().take(strings as usize).enumerate() {
                let appended = self.append_string(plan, row, *span, usize::MAX, limit);
                appended.map_err(|error| (k, error.step(step)))?;
            }
            self.strings = self.strings.saturating_add(strings as usize);
        }
        Ok(())
    }

    /// Appends the array of one string. Returns the number of its values, which is below 2^32.
    fn append_string<R: Row>(
        &mut self,
        plan: &ArrayPlan,
        row: &R,
        span: RegionSpan,
        max: usize,
        limit: u64,
    ) -> Result<usize> {
        let string = row.payload().get(span.start..).and_then(|bytes| bytes.get(..span.len as usize));
        let count = self.append_bytes(plan, string.unwrap_or_default(), max, limit);
        // An offset counts from the start of the payload.
        count.map_err(|error| match error.into_kind() {
            ErrorKind::Wire { reason, offset } => {
                ErrorKind::Wire { reason, offset: offset.saturating_add(span.start) }.into()
            }
            other => Error::from(other),
        })
    }

    /// Appends an array of these bytes. Returns the number of its values.
    fn append_bytes(&mut self, plan: &ArrayPlan, string: &[u8], max: usize, limit: u64) -> Result<usize> {
        let Some(memory) = &mut self.memory else { return Ok(0) };
        let size = plan.dtype.size().unwrap_or(1);
        match &plan.encoding {
            ArrayEncoding::Raw { little_endian, fixed_length: true } => {
                let len = plan.elements.saturating_mul(size);
                let bytes = match string.get(..len) {
                    Some(bytes) => bytes,
                    None => padded(string, len, limit.saturating_sub(memory.bytes()), &mut self.decoded)?,
                };
                Ok(memory.append(bytes, *little_endian, max)?)
            }
            ArrayEncoding::Raw { little_endian, .. } => {
                check_len(plan, size, string.len())?;
                Ok(memory.append(string, *little_endian, max)?)
            }
            ArrayEncoding::Label { numbers, unknown } => {
                let number = numbers.get(string).copied().or(*unknown).ok_or_else(|| unlisted(string))?;
                Ok(memory.append(&number.to_le_bytes(), true, max)?)
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

/// Returns the bytes of a string with zeros up to this length, in reused memory.
fn padded<'a>(string: &[u8], len: usize, limit: u64, memory: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    if len as u64 > limit {
        return Err(ErrorKind::TooLarge { len: len as u128, limit }.into());
    }
    memory.clear();
    memory.try_reserve(len)?;
    memory.extend_from_slice(string);
    memory.resize(len, 0);
    Ok(memory)
}

/// Returns the error for a string that a vocabulary does not have.
#[cold]
fn unlisted(string: &[u8]) -> Error {
    let shown = escaped(string.get(..MAX_SHOWN).unwrap_or(string));
    let more = if string.len() > MAX_SHOWN { " .." } else { "" };
    let reason = format!("expected a string of the vocabulary, found \"{shown}\"{more}").into();
    ErrorKind::Value { reason }.into()
}

/// Bytes of a string that an error shows.
const MAX_SHOWN: usize = 64;

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
