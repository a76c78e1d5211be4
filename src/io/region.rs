//! Bytes with an owner.

use super::Map;
use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes and their owner, which keeps them alive: a map, a vector, a buffer of another library. `'static`, and cloned for
/// the price of a counter.
#[derive(Clone)]
pub struct Region {
    owner: Owner,
    range: Range<usize>,
}

/// Maps and vectors have variants of their own, so that access to them is no virtual call.
#[derive(Clone)]
enum Owner {
    Map(Arc<Map>),
    Vec(Arc<Vec<u8>>),
    Other(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl Region {
    /// Makes a region of all bytes of `owner`, which must return the same bytes at each call.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Region {
        let range = 0..owner.as_ref().len();
        Region { owner: Owner::Other(Arc::new(owner)), range }
    }

    /// Returns a part of this region, with the same owner; `None` if `range` does not lie inside.
    pub fn slice(&self, range: Range<usize>) -> Option<Region> {
        let start = self.range.start.checked_add(range.start)?;
        let end = self.range.start.checked_add(range.end)?;
        (start <= end && end <= self.range.end)
            .then(|| Region { owner: self.owner.clone(), range: start..end })
    }

    /// Asks the system to start reading these bytes in where they are mapped; returns at once. Advice only.
    pub(crate) fn will_need(&self, range: Range<usize>) {
        if let Owner::Map(map) = &self.owner {
            map.will_need(self.inside(range));
        }
    }

    /// Makes these bytes resident where they are mapped, so that a file that was cut, or a disk that fails, is an error here
    /// and no signal later. Bytes in memory need nothing.
    ///
    /// # Errors
    /// Those of [`Map::populate`].
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let Owner::Map(map) = &self.owner else { return Ok(()) };
        map.populate(self.inside(range))
    }

    /// A range of this region as one of its owner's bytes, cut at the region's end.
    fn inside(&self, range: Range<usize>) -> Range<usize> {
        let at = |k: usize| self.range.start.saturating_add(k).min(self.range.end);
        at(range.start)..at(range.end)
    }
}

impl From<Vec<u8>> for Region {
    fn from(bytes: Vec<u8>) -> Region {
        Region { range: 0..bytes.len(), owner: Owner::Vec(Arc::new(bytes)) }
    }
}

impl From<Map> for Region {
    fn from(map: Map) -> Region {
        Arc::new(map).into()
    }
}

impl From<Arc<Map>> for Region {
    fn from(map: Arc<Map>) -> Region {
        Region { range: 0..map.len(), owner: Owner::Map(map) }
    }
}

impl Deref for Region {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let all: &[u8] = match &self.owner {
            Owner::Map(map) => map,
            Owner::Vec(bytes) => bytes,
            Owner::Other(owner) => (**owner).as_ref(),
        };
        // Empty if the owner broke its promise: an error later on, and never a panic here.
        all.get(self.range.clone()).unwrap_or_default()
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
        let part = Region::from(b"abcdef".to_vec()).slice(1..5).unwrap();
        assert_eq!(&*part, b"bcde");
        assert_eq!(&*part.slice(1..3).unwrap(), b"cd");
        assert!(part.slice(0..5).is_none());
        assert!(part.slice(usize::MAX..usize::MAX).is_none());
        assert_eq!(&*part.slice(4..4).unwrap(), b"");
    }
}
