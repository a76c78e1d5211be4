//! Bytes with an owner.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes and whatever keeps them alive: a map, a vector, a buffer of another library. `'static`, and cloned for
/// the price of a counter.
#[derive(Clone)]
pub struct Region {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl Region {
    /// All bytes of `owner`, which must give the same bytes at each call.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Region {
        let range = 0..owner.as_ref().len();
        Region { owner: Arc::new(owner), range }
    }

    /// A part of this region, with the same owner; `None` if `range` does not lie inside.
    pub fn slice(&self, range: Range<usize>) -> Option<Region> {
        let start = self.range.start.checked_add(range.start)?;
        let end = self.range.start.checked_add(range.end)?;
        (start <= end && end <= self.range.end)
            .then(|| Region { owner: Arc::clone(&self.owner), range: start..end })
    }
}

impl Deref for Region {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // Empty if the owner broke its promise: an error later on, and never a panic here.
        (*self.owner).as_ref().get(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Region {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_keeps_its_owner_and_its_bounds() {
        let part = Region::new(b"abcdef".to_vec()).slice(1..5).unwrap();
        assert_eq!(&*part, b"bcde");
        assert_eq!(&*part.slice(1..3).unwrap(), b"cd");
        assert!(part.slice(0..5).is_none());
        assert!(part.slice(usize::MAX..usize::MAX).is_none());
        assert_eq!(&*part.slice(4..4).unwrap(), b"");
    }
}
