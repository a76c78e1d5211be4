//! Memory of a batch as Arrow buffers, without a copy, and allocations whose sizes come from files.

use arrow_buffer::Buffer;
use bytemuck::NoUninit;
use std::collections::TryReserveError;
use tfseek::batch::Buf;

/// Memory of the pool of a parser, as bytes. The pool gets it back when the last array over it is dropped.
struct SharedMemory<T>(Buf<T>);

impl<T: NoUninit> AsRef<[u8]> for SharedMemory<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// Returns a buffer over the values, which keeps them alive.
pub(crate) fn shared<T: NoUninit + Send + Sync>(values: &Buf<T>) -> Buffer {
    shared_bytes(SharedMemory(values.clone()))
}

/// Returns a buffer over the bytes of the owner, which keeps the owner alive.
pub(crate) fn shared_bytes(owner: impl AsRef<[u8]> + Send + 'static) -> Buffer {
    bytes::Bytes::from_owner(owner).into()
}

/// Collects the items, at most `len`.
///
/// # Errors
/// There is not enough memory for `len` items.
pub(crate) fn collected<T>(len: usize, items: impl Iterator<Item = T>) -> Result<Vec<T>, TryReserveError> {
    let mut all = Vec::new();
    all.try_reserve_exact(len)?;
    all.extend(items.take(len));
    Ok(all)
}
