//! Allocations whose sizes come from files: without memory they are an error, and the process does not abort.

use std::collections::TryReserveError;
use std::hint::black_box;

/// Bytes that are not checked.
const SMALL: usize = 64 << 10;

/// Returns a copy of the bytes.
pub(crate) fn copied(bytes: &[u8]) -> Result<Vec<u8>, TryReserveError> {
    let mut copy = Vec::new();
    append(&mut copy, bytes)?;
    Ok(copy)
}

/// Appends the bytes.
#[inline]
pub(crate) fn append(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), TryReserveError> {
    to.try_reserve(bytes.len())?;
    to.extend_from_slice(bytes);
    Ok(())
}

/// Appends an item.
#[inline]
pub(crate) fn push<T>(to: &mut Vec<T>, item: T) -> Result<(), TryReserveError> {
    to.try_reserve(1)?;
    to.push(item);
    Ok(())
}

/// Checks that there are this many bytes of memory: requests and frees them. For code that cannot return an
/// error without memory, such as other crates' code and many small allocations. A check of less than 64 KiB
/// always succeeds.
///
/// # Errors
/// There is not enough memory.
pub fn ensure(bytes: usize) -> Result<(), TryReserveError> {
    if bytes < SMALL {
        return Ok(());
    }
    let mut memory: Vec<u8> = Vec::new();
    memory.try_reserve_exact(bytes)?;
    // An allocation that is not used could be left out.
    black_box(&memory);
    Ok(())
}
