//! Lists without an allocation, for the components of a frame or of a scan.

use std::ops::{Deref, DerefMut};

/// Maximum number of components in a frame.
pub(super) const MOST: usize = 4;

/// A list with one item for each component of a frame or of a scan.
#[derive(Clone, Copy, Default)]
pub(super) struct PerComponent<T> {
    items: [T; MOST],
    len: usize,
}

impl<T: Copy> PerComponent<T> {
    /// Appends an item. A list has at most [`MOST`].
    pub(super) fn push(&mut self, item: T) {
        self.items[self.len] = item;
        self.len += 1;
    }

    /// Makes a list of other items of this list, which has at least one.
    pub(super) fn try_map<U: Copy, E>(
        &self,
        mut make: impl FnMut(&T) -> Result<U, E>,
    ) -> Result<PerComponent<U>, E> {
        let mut items = [make(&self.items[0])?; MOST];
        for (new, item) in items.iter_mut().zip(self.iter()).skip(1) {
            *new = make(item)?;
        }
        Ok(PerComponent { items, len: self.len })
    }
}

impl<T> Deref for PerComponent<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.items[..self.len]
    }
}

impl<T> DerefMut for PerComponent<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[..self.len]
    }
}
