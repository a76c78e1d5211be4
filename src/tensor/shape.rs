//! Numbers of elements of shapes.

use crate::error::TensorError;

/// Most dimensions of a shape in TensorFlow.
pub(super) const MAX_DIMS: usize = 254;

/// Returns the number of elements of a shape. Dimensions are multiplied in order: TensorFlow rejects an
/// overflow even if a later dimension is 0.
pub(super) fn elements(shape: &[u64]) -> Result<u64, TensorError> {
    if shape.len() > MAX_DIMS {
        return Err(TensorError::TooManyDims { found: shape.len(), limit: MAX_DIMS });
    }
    let mut product = 1i64;
    for &dim in shape {
        let dim = i64::try_from(dim).map_err(|_| TensorError::Dim { found: dim.into() })?;
        product = product.checked_mul(dim).ok_or(TensorError::TooManyElements)?;
    }
    Ok(product.unsigned_abs())
}

/// Returns the number of bytes of elements of `size` bytes.
#[expect(clippy::arithmetic_side_effects, reason = "a product of two numbers of 64 bits has 128 bits")]
pub(super) fn byte_len(elements: u64, size: usize) -> u128 {
    u128::from(elements) * size as u128
}
