//! The columns of a batch, in TensorFlow's shapes.

use super::array::ArrayValues;
use super::pool::Buf;
use crate::error::Result;
use crate::io::Region;
use crate::memory::room;
use crate::schema::DType;
use std::fmt;
use std::slice;

/// One column. Arrays are row-major. All parts are `'static`; a clone shares the values and costs a few
/// reference counts.
#[derive(Clone, Debug)]
pub enum Column {
    /// Column of a `FixedLen`, `FixedLenSequence`, `Raw`, `Tensor`, `Image` or `Label` spec, and of an
    /// `Optional` spec with a default. Also of a ragged column, if a single record leaves no ragged dimension.
    Dense(Dense),
    /// Column of an `Optional` spec without a default.
    Optional(Optional),
    /// Column of a `VarLen` or `Sparse` spec.
    Sparse(Sparse),
    /// Column of a `Ragged` or `Several` spec, of a `Raw` or `Tensor` spec whose first dimension is open, and of
    /// arrays, pictures and labels of feature lists.
    Ragged(Ragged),
}

/// A dense array. The number of `values` is the product of `shape`.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Dense {
    /// Values, row-major.
    pub values: Values,
    /// Shape; the first dimension is the rows of the batch.
    pub shape: Vec<usize>,
}

/// A dense array in which values may be missing. The product of the shape is the number of values, and also
/// the number of bytes of `present`.
#[derive(Clone, Debug)]
pub struct Optional {
    /// Values. A missing value is 0, 0.0 or `""`.
    pub values: Values,
    /// 1 for each value that is present, and 0 for each that is missing.
    pub present: Buf<u8>,
    /// Shape of both arrays: the rows of the batch, or `[]` for a single record.
    pub shape: Vec<usize>,
}

/// A sparse tensor in coordinate (COO) format: the index of value `k` is `indices[k * rank..][..rank]`.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Sparse {
    /// Indices, of shape `[n, rank]`.
    pub indices: Buf<i64>,
    /// Values, of shape `[n]`.
    pub values: Values,
    /// Shape of the dense equivalent; its length is `rank`.
    pub dense_shape: Vec<u64>,
}

/// A ragged tensor: rows of different lengths.
///
/// Row `r` of the outermost dimension consists of the rows (or values)
/// `row_splits[0][r]..row_splits[0][r + 1]` of the next one.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Ragged {
    /// Values, row-major.
    pub values: Values,
    /// Shape of the values: `[n]`, followed by the lengths of innermost uniform rows.
    pub shape: Vec<usize>,
    /// Row splits of each ragged dimension, outermost first.
    pub row_splits: Vec<RowSplits>,
}

/// Row splits of one ragged dimension, of the type that the spec requests: in buffers, or in slices of any
/// origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowSplits<Narrow = Buf<i32>, Wide = Buf<i64>> {
    /// 32 bits.
    Int32(Narrow),
    /// 64 bits.
    Int64(Wide),
}

/// The values of a column.
#[derive(Clone, Debug)]
pub enum Values {
    /// Integers.
    Int64(Buf<i64>),
    /// Floats, with the bits of the file.
    Float32(Buf<f32>),
    /// Byte strings.
    Bytes(BytesColumn),
    /// Numbers of other types: of a `Raw`, `Tensor` or `Image` spec, or of a [decoder](super::ColumnDecoder).
    Array(ArrayValues),
}

impl Values {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Int64(values) => values.len(),
            Values::Float32(values) => values.len(),
            Values::Bytes(values) => values.len(),
            Values::Array(values) => values.len(),
        }
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name of the type of the values.
    pub(super) fn type_name(&self) -> String {
        match self {
            Values::Int64(_) => DType::Int64.to_string(),
            Values::Float32(_) => DType::Float32.to_string(),
            Values::Bytes(_) => DType::Bytes.to_string(),
            Values::Array(values) => format!("arrays of {}", values.dtype()),
        }
    }

    /// Returns the values if they are integers.
    pub(super) fn int64(&self) -> Option<&[i64]> {
        match self {
            Values::Int64(values) => Some(values),
            _ => None,
        }
    }

    /// Returns the values if they are floats.
    pub(super) fn float32(&self) -> Option<&[f32]> {
        match self {
            Values::Float32(values) => Some(values),
            _ => None,
        }
    }

    /// Returns the values if they are byte strings.
    pub(super) fn bytes(&self) -> Option<&BytesColumn> {
        match self {
            Values::Bytes(values) => Some(values),
            _ => None,
        }
    }
}

impl Dense {
    /// Creates a column. The product of the shape is the number of values.
    pub fn new(values: Values, shape: Vec<usize>) -> Dense {
        Dense { values, shape }
    }
}

impl Ragged {
    /// Creates a column. The product of the shape is the number of values. Each row splits begin with 0, do
    /// not decrease, and end with the number of rows of the next ones, the last with the number of the
    /// values' rows.
    pub fn new(values: Values, shape: Vec<usize>, row_splits: Vec<RowSplits>) -> Ragged {
        Ragged { values, shape, row_splits }
    }
}

impl From<Dense> for Column {
    fn from(column: Dense) -> Column {
        Column::Dense(column)
    }
}

impl From<Optional> for Column {
    fn from(column: Optional) -> Column {
        Column::Optional(column)
    }
}

impl From<Ragged> for Column {
    fn from(column: Ragged) -> Column {
        Column::Ragged(column)
    }
}

impl Column {
    /// Returns the values of any variant.
    pub fn values(&self) -> &Values {
        match self {
            Column::Dense(column) => &column.values,
            Column::Optional(column) => &column.values,
            Column::Sparse(column) => &column.values,
            Column::Ragged(column) => &column.values,
        }
    }

    /// Returns a column without values.
    pub(super) fn empty() -> Column {
        Column::Dense(Dense { values: Values::Int64(Buf::default()), shape: Vec::new() })
    }

    /// Takes the vector of the shape, empty, to reuse its memory.
    pub(super) fn take_shape(&mut self) -> Vec<usize> {
        let mut shape = match self {
            Column::Dense(Dense { shape, .. })
            | Column::Optional(Optional { shape, .. })
            | Column::Ragged(Ragged { shape, .. }) => std::mem::take(shape),
            Column::Sparse(_) => Vec::new(),
        };
        shape.clear();
        shape
    }

    /// Changes the column to a sparse tensor, reusing its vectors.
    pub(super) fn set_sparse(
        &mut self,
        indices: Buf<i64>,
        values: Values,
        dense_shape: impl IntoIterator<Item = u64>,
    ) {
        let mut reused = match self {
            Column::Sparse(sparse) => std::mem::take(&mut sparse.dense_shape),
            _ => Vec::new(),
        };
        reused.clear();
        reused.extend(dense_shape);
        *self = Column::Sparse(Sparse { indices, values, dense_shape: reused });
    }

    /// Releases the shared memory and keeps the vectors.
    pub(super) fn release(&mut self) {
        let none = Values::Int64(Buf::default());
        match self {
            Column::Dense(column) => column.values = none,
            Column::Optional(column) => (column.values, column.present) = (none, Buf::default()),
            Column::Sparse(column) => (column.values, column.indices) = (none, Buf::default()),
            Column::Ragged(column) => {
                column.values = none;
                column.row_splits.iter_mut().for_each(|splits| *splits = RowSplits::Int64(Buf::default()));
            }
        }
    }
}

/// A column of byte strings: spans of the records' memory, or contiguous copies.
///
/// Spans copy nothing and keep the records' memory (a map or a buffer) alive. A parser creates spans if every
/// row of the batch has a [`Region`]. Otherwise, or on request, it copies the bytes.
#[derive(Clone)]
pub struct BytesColumn {
    pub(super) repr: BytesRepr,
}

#[derive(Clone)]
pub(super) enum BytesRepr {
    Spans { spans: Buf<RegionSpan>, regions: Buf<Region> },
    Contiguous { data: Buf<u8>, offsets: Buf<i64> },
}

/// The span of one string: `len` bytes of region `region`, starting at `start`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RegionSpan {
    pub(super) start: usize,
    pub(super) len: u32,
    pub(super) region: u32,
}

impl BytesColumn {
    pub(super) fn contiguous(data: Buf<u8>, offsets: Buf<i64>) -> BytesColumn {
        BytesColumn { repr: BytesRepr::Contiguous { data, offsets } }
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        match &self.repr {
            BytesRepr::Spans { spans, .. } => spans.len(),
            BytesRepr::Contiguous { offsets, .. } => offsets.len() - 1,
        }
    }

    /// Returns true if there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns string `k`, in constant time.
    #[inline]
    pub fn get(&self, k: usize) -> Option<&[u8]> {
        match &self.repr {
            BytesRepr::Spans { spans, regions } => {
                let RegionSpan { start, len, region } = *spans.get(k)?;
                regions.get(region as usize)?.get(start..start.checked_add(len as usize)?)
            }
            BytesRepr::Contiguous { data, offsets } => {
                let [from, to] = *offsets.get(k..)?.first_chunk()?;
                data.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
            }
        }
    }

    /// Returns an iterator over the strings.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone + fmt::Debug {
        match &self.repr {
            BytesRepr::Spans { spans, regions } => {
                ColumnStrings::Spans { spans: spans.iter(), regions, number: 0, region: bytes_of(regions, 0) }
            }
            BytesRepr::Contiguous { data, offsets } => {
                ColumnStrings::Contiguous { data, ends: offsets.windows(2) }
            }
        }
    }

    /// Returns an iterator over the strings as regions, which share the memory of the column and keep it
    /// alive. Nothing is copied.
    ///
    /// The regions of a contiguous column keep all of its strings alive.
    pub fn regions(&self) -> impl ExactSizeIterator<Item = Region> {
        let copied = match &self.repr {
            BytesRepr::Spans { .. } => None,
            BytesRepr::Contiguous { data, .. } => Some(Region::new(data.clone())),
        };
        (0..self.len()).map(move |k| self.region(k, copied.as_ref()).unwrap_or_else(|| Vec::new().into()))
    }

    /// Returns string `k` as a region. `copied` has the bytes of a contiguous column.
    fn region(&self, k: usize, copied: Option<&Region>) -> Option<Region> {
        match &self.repr {
            BytesRepr::Spans { spans, regions } => {
                let RegionSpan { start, len, region } = *spans.get(k)?;
                regions.get(region as usize)?.slice(start..start.checked_add(len as usize)?)
            }
            BytesRepr::Contiguous { offsets, .. } => {
                let [from, to] = *offsets.get(k..)?.first_chunk()?;
                copied?.slice(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
            }
        }
    }

    /// Returns true if the strings are spans of the records' memory.
    pub fn is_borrowed(&self) -> bool {
        matches!(self.repr, BytesRepr::Spans { .. })
    }

    /// Returns the concatenated strings and `len + 1` offsets: string `k` is
    /// `data[offsets[k]..offsets[k + 1]]`.
    ///
    /// Copies the bytes unless the column is contiguous already.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if there is not enough memory.
    pub fn to_contiguous(&self) -> Result<(Buf<u8>, Buf<i64>)> {
        if let BytesRepr::Contiguous { data, offsets } = &self.repr {
            return Ok((data.clone(), offsets.clone()));
        }
        let total = self.iter().map(<[u8]>::len).sum();
        let mut data = room(total)?;
        let mut offsets = room(self.len() + 1)?;
        offsets.push(0);
        for value in self.iter() {
            data.extend_from_slice(value);
            offsets.push(data.len() as i64);
        }
        Ok((data.into(), offsets.into()))
    }
}

/// Copies the strings.
impl<S: AsRef<[u8]>> FromIterator<S> for BytesColumn {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> BytesColumn {
        let mut data = Vec::new();
        let mut offsets = vec![0];
        for string in strings {
            data.extend_from_slice(string.as_ref());
            offsets.push(data.len() as i64);
        }
        BytesColumn::contiguous(data.into(), offsets.into())
    }
}

/// An iterator over the strings of a [`BytesColumn`].
#[derive(Clone, Debug)]
enum ColumnStrings<'a> {
    /// Keeps the region of the last string, because consecutive strings are often in the same region.
    Spans {
        spans: slice::Iter<'a, RegionSpan>,
        regions: &'a [Region],
        number: u32,
        region: &'a [u8],
    },
    Contiguous {
        data: &'a [u8],
        ends: slice::Windows<'a, i64>,
    },
}

fn bytes_of(regions: &[Region], number: u32) -> &[u8] {
    regions.get(number as usize).map_or(&[], Region::as_ref)
}

impl<'a> Iterator for ColumnStrings<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            ColumnStrings::Spans { spans, regions, number, region } => {
                let span = spans.next()?;
                if span.region != *number {
                    (*number, *region) = (span.region, bytes_of(regions, span.region));
                }
                Some(region.get(span.start..).and_then(|b| b.get(..span.len as usize)).unwrap_or_default())
            }
            ColumnStrings::Contiguous { data, ends } => match *ends.next()? {
                [from, to] => Some(data.get(from as usize..to as usize).unwrap_or_default()),
                _ => None,
            },
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            ColumnStrings::Spans { spans, .. } => spans.size_hint(),
            ColumnStrings::Contiguous { ends, .. } => ends.size_hint(),
        }
    }
}

impl ExactSizeIterator for ColumnStrings<'_> {}

impl PartialEq for BytesColumn {
    fn eq(&self, other: &BytesColumn) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for BytesColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|value| value.escape_ascii().to_string())).finish()
    }
}
