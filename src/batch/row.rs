//! The rows that a parser takes.

use crate::error::At;
use crate::io::Region;
use crate::record::Record;

/// One serialized record: its payload, where it came from, and what keeps its bytes alive.
///
/// Slices and vectors of bytes are rows, and so are [`Record`]s and [`Region`]s. Only the last two (a record as far as it
/// was lent by a map or a region) let a batch refer to their bytes instead of copying them.
pub trait Row {
    /// The serialized `Example` or `SequenceExample`.
    fn payload(&self) -> &[u8];

    /// Where it came from, for errors to name.
    fn at(&self) -> At<'_> {
        At::NOWHERE
    }

    /// The memory that the payload is part of, if it can be kept, and the offset at which the payload starts in it. If the
    /// payload is not there, its bytes are copied.
    fn region(&self) -> Option<(&Region, usize)> {
        None
    }
}

impl Row for [u8] {
    fn payload(&self) -> &[u8] {
        self
    }
}

impl<const N: usize> Row for [u8; N] {
    fn payload(&self) -> &[u8] {
        self
    }
}

impl Row for Vec<u8> {
    fn payload(&self) -> &[u8] {
        self
    }
}

impl Row for Region {
    fn payload(&self) -> &[u8] {
        self
    }

    fn region(&self) -> Option<(&Region, usize)> {
        Some((self, 0))
    }
}

impl Row for Record<'_> {
    fn payload(&self) -> &[u8] {
        (*self).payload()
    }

    fn at(&self) -> At<'_> {
        (*self).at()
    }

    fn region(&self) -> Option<(&Region, usize)> {
        (*self).region()
    }
}

impl<R: Row + ?Sized> Row for &R {
    fn payload(&self) -> &[u8] {
        (**self).payload()
    }

    fn at(&self) -> At<'_> {
        (**self).at()
    }

    fn region(&self) -> Option<(&Region, usize)> {
        (**self).region()
    }
}
