//! Which records of a dataset a view has, and in what order.

use crate::failure::Result;
use pyo3::prelude::*;
use std::sync::Arc;
use tfseek::ErrorKind;
use tfseek::order::Subset;

/// Record numbers: a stride, or a list.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Ids {
    Stride { start: u64, step: i64, len: u64 },
    List(Arc<[u64]>),
}

impl Ids {
    pub(crate) fn all(len: u64) -> Ids {
        Ids::Stride { start: 0, step: 1, len }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Ids::Stride { len, .. } => *len,
            Ids::List(ids) => ids.len() as u64,
        }
    }

    /// The record at position `k`, which is below [`len`](Ids::len).
    pub(crate) fn at(&self, k: u64) -> u64 {
        match self {
            Ids::Stride { start, step, .. } => start.wrapping_add_signed(step.wrapping_mul(k as i64)),
            Ids::List(ids) => usize::try_from(k).ok().and_then(|k| ids.get(k)).copied().unwrap_or(u64::MAX),
        }
    }

    /// The record at a position as Python counts: -1 is the last.
    pub(crate) fn at_signed(&self, k: i64) -> Result<u64> {
        let len = self.len();
        let position = if k < 0 { len.checked_add_signed(k) } else { Some(k.unsigned_abs()) };
        match position {
            Some(position) if position < len => Ok(self.at(position)),
            _ => Err(ErrorKind::OutOfRange { what: "record", i: k.into(), len }.into()),
        }
    }

    /// Records `start`, `start + step`, .. of this view, `len` of them, all of which there are: as `slice.indices` gives them.
    pub(crate) fn stride(&self, start: i64, step: i64, len: u64) -> Ids {
        if len == 0 {
            return Ids::Stride { start: 0, step: 1, len: 0 };
        }
        match self {
            Ids::Stride { start: own, step: by, .. } => Ids::Stride {
                start: own.wrapping_add_signed(by.wrapping_mul(start)),
                step: by.wrapping_mul(step),
                len,
            },
            Ids::List(_) => {
                (0..len).map(|k| self.at((start + step * k as i64) as u64)).collect::<Vec<_>>().into()
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|k| self.at(k))
    }

    /// Whether these are all of `n` records, in their order.
    pub(crate) fn is_all(&self, n: u64) -> bool {
        *self == Ids::all(n)
    }

    /// As the subset that a loader takes.
    ///
    /// # Errors
    /// Unless the numbers ascend: an order is the loader's to make.
    pub(crate) fn subset(&self) -> Result<Subset> {
        Ok(Subset::from_ids(self.iter().collect::<Vec<_>>())?)
    }
}

impl From<Vec<u64>> for Ids {
    fn from(ids: Vec<u64>) -> Ids {
        Ids::List(ids.into())
    }
}

/// What `pickle` keeps: `(start, step, len)`, or the numbers as little-endian bytes.
#[derive(FromPyObject)]
pub(crate) enum Kept {
    Stride(u64, i64, u64),
    List(Vec<u8>),
}

impl Kept {
    pub(crate) fn ids(self) -> Ids {
        match self {
            Kept::Stride(start, step, len) => Ids::Stride { start, step, len },
            Kept::List(bytes) => {
                let (ids, _) = bytes.as_chunks::<8>();
                ids.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect::<Vec<_>>().into()
            }
        }
    }
}
