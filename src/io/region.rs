//! Reference-counted byte regions.

use super::Map;
use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A byte slice with its reference-counted owner: a map, a vector, or a buffer of another library. It is
/// `'static`, and a clone costs one increment of the counter.
#[derive(Clone)]
pub struct Region {
    owner: Owner,
    range: Range<usize>,
}

/// The owner of the bytes. Maps and vectors are separate variants, so that access to them needs no virtual
/// call.
#[derive(Clone)]
enum Owner {
    Map(Arc<Map>),
    Vec(Arc<Vec<u8>>),
    Other(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl Region {
    /// Creates a region of all bytes of `owner`, which must return the same bytes on each call.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Region {
        let range = 0..owner.as_ref().len();
        Region { owner: Owner::Other(Arc::new(owner)), range }
    }

    /// Returns a part of this region with the same owner. `None` if `range` is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Option<Region> {
        let start = self.range.start.checked_add(range.start)?;
        let end = self.range.start.checked_add(range.end)?;
        (start <= end && end <= self.range.end)
            .then(|| Region { owner: self.owner.clone(), range: start..end })
    }

    /// Advises the system to start reading these bytes if they are mapped. Returns immediately.
    pub(crate) fn will_need(&self, range: Range<usize>) {
        if let Owner::Map(map) = &self.owner {
            map.will_need(self.range_in_owner(range));
        }
    }

    /// Makes these bytes resident if they are mapped, so that a truncated file or a failing disk is an error
    /// here and not a signal later. Does nothing for bytes in memory.
    ///
    /// # Errors
    /// Errors of [`Map::populate`].
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let Owner::Map(map) = &self.owner else { return Ok(()) };
        map.populate(self.range_in_owner(range))
    }

    /// Returns the bytes. Always inlined, because each access to a record in memory asks for them.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.owner {
            Owner::Map(map) => map,
            Owner::Vec(bytes) => bytes,
            Owner::Other(owner) => (**owner).as_ref(),
        };
        // Empty if the owner returns fewer bytes than before. That leads to an error later, but never to a
        // panic here.
        all.get(self.range.clone()).unwrap_or_default()
    }

    /// Converts a range of this region to a range of the owner's bytes, clipped to the end of the region.
    fn range_in_owner(&self, range: Range<usize>) -> Range<usize> {
        let at = |k: usize| self.range.start + k.min(self.range.len());
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
        self.bytes()
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
    fn a_slice_keeps_its_bounds() {
        let part = Region::from(b"abcdef".to_vec()).slice(1..5).unwrap();
        assert_eq!(&*part, b"bcde");
        assert_eq!(&*part.slice(1..3).unwrap(), b"cd");
        assert!(part.slice(0..5).is_none());
        assert!(part.slice(usize::MAX..usize::MAX).is_none());
        assert_eq!(&*part.slice(4..4).unwrap(), b"");
    }
}
