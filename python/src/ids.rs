//! The record numbers of a view, in its order.

use crate::error::Result;
use crate::hooks;
use ::numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyInt, PyList};
use std::ops::Range;
use std::sync::Arc;
use tfseek::ErrorKind;
use tfseek::order::Subset;

/// Record numbers, as a stride or a list.
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

    /// Returns the record number at `k`, which is below [`len`](Ids::len).
    pub(crate) fn at(&self, k: u64) -> u64 {
        match self {
            Ids::Stride { start, step, .. } => start.wrapping_add_signed(step.wrapping_mul(k as i64)),
            Ids::List(ids) => usize::try_from(k).ok().and_then(|k| ids.get(k)).copied().unwrap_or(u64::MAX),
        }
    }

    /// Returns the record number at a Python index: -1 is the last.
    pub(crate) fn at_signed(&self, k: i64) -> Result<u64> {
        let len = self.len();
        let position = if k < 0 { len.checked_add_signed(k) } else { Some(k.unsigned_abs()) };
        match position {
            Some(position) if position < len => Ok(self.at(position)),
            _ => Err(ErrorKind::OutOfRange { what: "record", i: k.into(), len }.into()),
        }
    }

    /// Returns the `len` entries `start`, `start + step`, .. of this view. All of them exist, as
    /// `slice.indices` guarantees.
    pub(crate) fn stride(&self, start: i64, step: i64, len: u64) -> Ids {
        if len == 0 {
            return Ids::Stride { start: 0, step: 1, len: 0 };
        }
        match self {
            Ids::Stride { start: base, step: factor, .. } => Ids::Stride {
                start: base.wrapping_add_signed(factor.wrapping_mul(start)),
                step: factor.wrapping_mul(step),
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

    /// Returns true if these are all of `n` records, in order.
    pub(crate) fn is_all(&self, n: u64) -> bool {
        *self == Ids::all(n)
    }

    /// Returns the record numbers as ranges, in their order.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let mut all: Vec<Range<u64>> = Vec::new();
        for id in self.iter() {
            match all.last_mut() {
                Some(last) if last.end == id => last.end = id + 1,
                _ => all.push(id..id + 1),
            }
        }
        all
    }

    /// Returns the subset for a loader.
    ///
    /// # Errors
    /// If the numbers do not ascend, because the loader decides the order.
    pub(crate) fn subset(&self) -> Result<Subset> {
        Ok(Subset::from_ids(self.iter().collect::<Vec<_>>())?)
    }
}

/// Returns the record numbers of `ids` at the positions that `tfseek._ids.positions` returns for `key`.
pub(crate) fn numbers(py: Python<'_>, ids: &Ids, key: &Bound<'_, PyAny>) -> Result<Vec<u64>> {
    if let Some(positions) = plain_positions(key) {
        return positions.into_iter().map(|position| ids.at_signed(position)).collect();
    }
    let bytes: PyBackedBytes = hooks::positions(py)?.call1((key, ids.len()))?.extract()?;
    let (positions, _) = bytes.as_chunks::<8>();
    positions.iter().map(|position| ids.at_signed(i64::from_le_bytes(*position))).collect()
}

/// Returns the numbers of an int64 array or of a list of ints. `None` for everything else, such as masks.
fn plain_positions(key: &Bound<'_, PyAny>) -> Option<Vec<i64>> {
    if let Ok(list) = key.cast_exact::<PyList>() {
        // The type `bool` is not exactly `int`.
        return list.iter().map(|item| item.cast_exact::<PyInt>().ok()?.extract().ok()).collect();
    }
    let array = key.cast_exact::<PyArray1<i64>>().ok()?.try_readonly().ok()?;
    Some(array.as_array().iter().copied().collect())
}

impl From<Vec<u64>> for Ids {
    fn from(ids: Vec<u64>) -> Ids {
        Ids::List(ids.into())
    }
}

/// Pickled form of [`Ids`]: `(start, step, len)`, or the numbers as little-endian bytes.
#[derive(FromPyObject)]
pub(crate) enum PickledIds {
    Stride(u64, i64, u64),
    List(Vec<u8>),
}

impl PickledIds {
    pub(crate) fn ids(self) -> Ids {
        match self {
            PickledIds::Stride(start, step, len) => Ids::Stride { start, step, len },
            PickledIds::List(bytes) => {
                let (ids, _) = bytes.as_chunks::<8>();
                ids.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect::<Vec<_>>().into()
            }
        }
    }
}
