//! Allocations whose sizes come from files: without memory they are an error, and the process does not abort.

use std::collections::TryReserveError;

/// Returns an empty vector with room for `len` values, and no more.
pub(crate) fn room<T>(len: usize) -> Result<Vec<T>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(len)?;
    Ok(values)
}

/// Returns `len` zeros.
#[cfg(feature = "dataset")]
pub(crate) fn zeroed<T: Clone + Default>(len: u64) -> Result<Vec<T>, TryReserveError> {
    let mut values = Vec::new();
    // A saturated size cannot be allocated.
    grow_exact(&mut values, usize::try_from(len).unwrap_or(usize::MAX))?;
    Ok(values)
}

/// Extends `buf` with zeros to `len` bytes. After an error it is unchanged.
#[cfg(feature = "dataset")]
pub(crate) fn grow(buf: &mut Vec<u8>, len: usize) -> Result<(), TryReserveError> {
    buf.try_reserve(len.saturating_sub(buf.len()))?;
    buf.resize(len, 0);
    Ok(())
}

/// Like [`grow`], but reserves no extra capacity. For buffers that have their final size.
#[cfg(feature = "dataset")]
pub(crate) fn grow_exact<T: Clone + Default>(buf: &mut Vec<T>, len: usize) -> Result<(), TryReserveError> {
    buf.try_reserve_exact(len.saturating_sub(buf.len()))?;
    buf.resize(len, T::default());
    Ok(())
}
