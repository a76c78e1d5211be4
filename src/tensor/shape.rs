//! Shapes, and their numbers of elements.

use crate::error::TensorError;

/// The most dimensions that a shape of TensorFlow's has.
pub(super) const MAX_DIMS: usize = 254;

/// The number of elements of a shape, multiplied from the first dimension on: TensorFlow refuses an overflow even
/// where a later dimension is 0.
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
