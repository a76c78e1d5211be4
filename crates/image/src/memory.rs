//! Memory whose size comes from files.

use crate::error::PictureFault;

/// Makes a vector of `len` values. Those that were there keep their values. Without memory it is an error.
pub(crate) fn resize<T: Clone + Default>(values: &mut Vec<T>, len: usize) -> Result<(), PictureFault> {
    values.truncate(len);
    grow(values, len, T::default())
}

/// Makes a vector at least `len` values long, by copies of `value`. Without memory it is an error.
pub(crate) fn grow<T: Clone>(values: &mut Vec<T>, len: usize, value: T) -> Result<(), PictureFault> {
    if values.len() < len {
        values.try_reserve_exact(len - values.len())?;
        values.resize(len, value);
    }
    Ok(())
}
