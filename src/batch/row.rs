//! `Row`: the input of a parser.

use crate::error::{At, Result};
use crate::io::Region;
use crate::record::Record;

/// One serialized record: its payload, its location for errors, and the memory that keeps its bytes alive.
///
/// Byte slices, byte vectors, [`Record`]s and [`Region`]s are rows. A batch can borrow the bytes of a
/// [`Region`], and of a [`Record`] that was borrowed from a map or a region. It copies the bytes of all other
/// rows.
pub trait Row {
    /// Returns the serialized `Example` or `SequenceExample`.
    fn payload(&self) -> &[u8];

    /// Returns the location of the record, for error messages.
    fn at(&self) -> At<'_> {
        At::NOWHERE
    }

    /// Returns the shared memory that contains the payload, if any, and the offset of the payload in it.
    ///
    /// If the payload is not at that offset, its bytes are copied.
    fn region(&self) -> Option<(&Region, usize)> {
        None
    }

    /// Verifies the payload. A parser calls this shortly before it reads the payload, so that long payloads
    /// are loaded from memory once. By default nothing is verified.
    ///
    /// # Errors
    /// The reason for which the row is refused.
    fn verify(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the [seed](crate::order::augmentation_seed) of all that is random in the pictures of the row.
    /// `None`: a parser takes the seed 0, the epoch 0, and the place of the row among the rows.
    fn augmentation_seed(&self) -> Option<u64> {
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

    fn verify(&self) -> Result<()> {
        (**self).verify()
    }

    fn augmentation_seed(&self) -> Option<u64> {
        (**self).augmentation_seed()
    }
}
