//! Arrays that grow batch by batch, and are written to an archive at the end.

use crate::archive::{Archive, BLOCK, BYTES, FLOAT32, INT32, INT64};
use crate::spill::{SequenceId, Spill};
use std::io::{self, BufReader, BufWriter, Read, Write};
use tfseek::batch::{RowSplits, Values};
use tfseek::{Error, ErrorKind, FeatureBuf};

/// The values of a column, over all batches.
#[derive(Debug)]
pub(crate) struct GrowingValues {
    dtype: GrowingDType,
    /// Number of values.
    pub(crate) len: u64,
    /// The values. Byte strings are concatenated.
    data: SequenceId,
}

#[derive(Debug)]
enum GrowingDType {
    Int64,
    Float32,
    /// Byte strings. The sequence has their lengths, 8 bytes each.
    Bytes(SequenceId),
}

impl GrowingValues {
    pub(crate) fn new(spill: &mut Spill, values: &Values) -> GrowingValues {
        let dtype = match values {
            Values::Int64(_) => GrowingDType::Int64,
            Values::Float32(_) => GrowingDType::Float32,
            Values::Bytes(_) => GrowingDType::Bytes(spill.add()),
        };
        GrowingValues { dtype, len: 0, data: spill.add() }
    }

    pub(crate) fn append(&mut self, spill: &mut Spill, values: &Values) -> io::Result<()> {
        match (&self.dtype, values) {
            (GrowingDType::Int64, Values::Int64(values)) => {
                append(spill, self.data, values.iter().map(|value| value.to_le_bytes()))?;
            }
            (GrowingDType::Float32, Values::Float32(values)) => {
                append(spill, self.data, values.iter().map(|value| value.to_bits().to_le_bytes()))?;
            }
            (GrowingDType::Bytes(lens), Values::Bytes(values)) => {
                for value in values.iter() {
                    spill.append(self.data, value)?;
                    spill.append(*lens, &(value.len() as u64).to_le_bytes())?;
                }
            }
            _ => return Err(other_schema()),
        }
        self.len += values.len() as u64;
        Ok(())
    }

    /// Writes the values as an array of this shape. If `rows` are padded, `padding` has the value, which is 0 or empty by default.
    pub(crate) fn write(
        &self,
        archive: &mut Archive,
        spill: &Spill,
        name: &str,
        shape: &[usize],
        rows: Option<&PaddedRows>,
        padding: Option<&FeatureBuf>,
    ) -> io::Result<()> {
        let missing = rows.map_or(0, |rows| rows.missing);
        let size = match self.dtype {
            GrowingDType::Int64 => 8,
            GrowingDType::Float32 => 4,
            GrowingDType::Bytes(lens) => {
                let fill: &[u8] = match padding {
                    Some(FeatureBuf::Bytes(values)) => values.first().map_or(&[], Vec::as_slice),
                    _ => &[],
                };
                return self.write_bytes(archive, spill, lens, (name, shape), rows, fill);
            }
        };
        check_size(shape, size)?;
        let (descr, fill) = match (&self.dtype, padding) {
            (GrowingDType::Float32, Some(FeatureBuf::Float(values))) => {
                (FLOAT32, values.first().map_or(0, |value| value.to_bits()).to_le_bytes().to_vec())
            }
            (GrowingDType::Float32, _) => (FLOAT32, vec![0; 4]),
            (_, Some(FeatureBuf::Int64(values))) => {
                (INT64, values.first().copied().unwrap_or(0).to_le_bytes().to_vec())
            }
            _ => (INT64, vec![0; 8]),
        };
        archive.start(name, descr, shape)?;
        let mut out = BufWriter::with_capacity(BLOCK, archive);
        let mut data = spill.reader(self.data);
        if missing == 0 {
            io::copy(&mut data, &mut out)?;
            return out.flush();
        }
        let mut data = BufReader::with_capacity(BLOCK, data);
        self.for_each_run(spill, rows, |values, missing| {
            copy(&mut data, values * size, &mut out)?;
            repeat(&fill, missing, &mut out)
        })?;
        out.flush()
    }

    fn write_bytes(
        &self,
        archive: &mut Archive,
        spill: &Spill,
        lens: SequenceId,
        (name, shape): (&str, &[usize]),
        rows: Option<&PaddedRows>,
        fill: &[u8],
    ) -> io::Result<()> {
        let missing = rows.map_or(0, |rows| rows.missing);
        let added = u128::from(missing) * fill.len() as u128;
        let total = dimension(u128::from(spill.len(self.data)) + added)?;
        check_size(shape, 8)?;
        archive.start(&format!("{name}::data"), BYTES, &[total])?;
        let mut out = BufWriter::with_capacity(BLOCK, &mut *archive);
        if added == 0 {
            io::copy(&mut spill.reader(self.data), &mut out)?;
        } else {
            let mut data = BufReader::with_capacity(BLOCK, spill.reader(self.data));
            let mut lens = BufReader::with_capacity(BLOCK, spill.reader(lens));
            self.for_each_run(spill, rows, |values, missing| {
                let mut len = 0;
                for _ in 0..values {
                    len += read_u64(&mut lens)?;
                }
                copy(&mut data, len, &mut out)?;
                repeat(fill, missing, &mut out)
            })?;
        }
        out.flush()?;
        drop(out);

        let count = dimension(u128::from(self.len) + u128::from(missing) + 1)?;
        archive.start(&format!("{name}::offsets"), INT64, &[count])?;
        let mut out = BufWriter::with_capacity(BLOCK, &mut *archive);
        let mut lens = BufReader::with_capacity(BLOCK, spill.reader(lens));
        let mut offset = 0u64;
        out.write_all(&offset.to_le_bytes())?;
        self.for_each_run(spill, rows, |values, missing| {
            for _ in 0..values {
                offset += read_u64(&mut lens)?;
                out.write_all(&offset.to_le_bytes())?;
            }
            for _ in 0..missing {
                offset += fill.len() as u64;
                out.write_all(&offset.to_le_bytes())?;
            }
            Ok(())
        })?;
        out.flush()?;
        drop(out);
        let dims: Vec<_> = shape.iter().map(|&dim| dim as i64).collect();
        archive.integers(&format!("{name}::shape"), &[dims.len()], &dims)
    }

    /// Calls `run` with numbers of values, and of padding values that follow them.
    fn for_each_run(
        &self,
        spill: &Spill,
        rows: Option<&PaddedRows>,
        mut run: impl FnMut(u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(rows) = rows.filter(|rows| rows.missing > 0) else { return run(self.len, 0) };
        let mut chunks = BufReader::with_capacity(BLOCK, spill.reader(rows.chunks));
        for _ in 0..spill.len(rows.chunks) / 16 {
            let (n, len) = (read_u64(&mut chunks)?, read_u64(&mut chunks)?);
            if len == rows.longest {
                run(n * len, 0)?;
            } else {
                for _ in 0..n {
                    run(len, rows.longest - len)?;
                }
            }
        }
        Ok(())
    }
}

/// The rows of a dense column: all have the length of the longest row of their batch.
#[derive(Debug)]
pub(crate) struct PaddedRows {
    /// Number of rows and number of values per row of each batch, 8 bytes each.
    chunks: SequenceId,
    /// Number of values of the longest row.
    longest: u64,
    /// Number of rows.
    rows: u64,
    /// Number of values of these rows.
    values: u64,
    /// Number of values that all rows lack to be as long as the longest. Known after [`end`](PaddedRows::end).
    missing: u64,
}

impl PaddedRows {
    pub(crate) fn new(spill: &mut Spill) -> PaddedRows {
        PaddedRows { chunks: spill.add(), longest: 0, rows: 0, values: 0, missing: 0 }
    }

    /// Appends `rows` rows of `len` values.
    pub(crate) fn append(&mut self, spill: &mut Spill, rows: usize, len: usize) -> io::Result<()> {
        let (rows, len) = (rows as u64, len as u64);
        self.longest = self.longest.max(len);
        if rows == 0 {
            return Ok(());
        }
        self.rows += rows;
        self.values += rows * len;
        append(spill, self.chunks, [rows, len].iter().map(|n| n.to_le_bytes()))
    }

    /// Ends the rows.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        let all = u128::from(self.rows) * u128::from(self.longest);
        self.missing = dimension(all - u128::from(self.values).min(all))? as u64;
        Ok(())
    }
}

/// The row splits of a dimension, over all batches.
#[derive(Debug)]
pub(crate) struct GrowingSplits {
    data: SequenceId,
    is_int32: bool,
    /// Number of splits.
    len: u64,
    /// The last split.
    last: u64,
}

impl GrowingSplits {
    pub(crate) fn new(spill: &mut Spill, splits: &RowSplits) -> GrowingSplits {
        let is_int32 = matches!(splits, RowSplits::Int32(_));
        GrowingSplits { data: spill.add(), is_int32, len: 0, last: 0 }
    }

    /// Returns the last split after these are appended, if it exceeds the type of the splits.
    pub(crate) fn overflow(&self, splits: &RowSplits) -> Option<u64> {
        let (more, limit) = match splits {
            RowSplits::Int32(splits) => (splits.last().copied().map_or(0, i64::from), i32::MAX as u64),
            RowSplits::Int64(splits) => (splits.last().copied().unwrap_or(0), i64::MAX as u64),
        };
        let last = self.last.saturating_add(more.unsigned_abs());
        (last > limit).then_some(last)
    }

    /// Appends the splits of a batch, which continue the last one. They must not overflow.
    pub(crate) fn append(&mut self, spill: &mut Spill, splits: &RowSplits) -> io::Result<()> {
        // The first split of a batch is 0: the end of the batch before it.
        let skip = usize::from(self.len > 0);
        let last = self.last;
        let (n, end) = match splits {
            RowSplits::Int32(splits) if self.is_int32 => {
                let continued = splits.iter().skip(skip).map(|&split| last as i32 + split);
                append(spill, self.data, continued.map(i32::to_le_bytes))?;
                (splits.len(), splits.last().map_or(0, |&split| split as u64))
            }
            RowSplits::Int64(splits) if !self.is_int32 => {
                let continued = splits.iter().skip(skip).map(|&split| last as i64 + split);
                append(spill, self.data, continued.map(i64::to_le_bytes))?;
                (splits.len(), splits.last().map_or(0, |&split| split as u64))
            }
            _ => return Err(other_schema()),
        };
        self.len += n.saturating_sub(skip) as u64;
        self.last += end;
        Ok(())
    }

    pub(crate) fn write(&self, archive: &mut Archive, spill: &Spill, name: &str) -> io::Result<()> {
        let descr = if self.is_int32 { INT32 } else { INT64 };
        archive.start(name, descr, &[dimension(self.len.into())?])?;
        let mut out = BufWriter::with_capacity(BLOCK, archive);
        io::copy(&mut spill.reader(self.data), &mut out)?;
        out.flush()
    }
}

/// The indices of a sparse column, over all batches.
#[derive(Debug)]
pub(crate) struct GrowingIndices {
    data: SequenceId,
    rank: usize,
}

impl GrowingIndices {
    pub(crate) fn new(spill: &mut Spill, rank: usize) -> GrowingIndices {
        GrowingIndices { data: spill.add(), rank }
    }

    /// Appends the indices of a batch after the first `rows` rows.
    pub(crate) fn append(&mut self, spill: &mut Spill, indices: &[i64], rows: u64) -> io::Result<()> {
        let rank = self.rank.max(1);
        // Rows count below 2^63, because each has taken memory.
        let moved = indices.iter().enumerate().map(|(k, &index)| {
            let offset = if k % rank == 0 { rows as i64 } else { 0 };
            index.wrapping_add(offset)
        });
        append(spill, self.data, moved.map(i64::to_le_bytes))
    }

    pub(crate) fn write(&self, archive: &mut Archive, spill: &Spill, name: &str, len: u64) -> io::Result<()> {
        archive.start(name, INT64, &[dimension(len.into())?, self.rank])?;
        let mut out = BufWriter::with_capacity(BLOCK, archive);
        io::copy(&mut spill.reader(self.data), &mut out)?;
        out.flush()
    }
}

/// The error of a batch with columns of other types than the first batch.
pub(crate) fn other_schema() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "expected batches of one schema, found other columns")
}

/// Returns a dimension of an array.
pub(crate) fn dimension(len: u128) -> io::Result<usize> {
    match usize::try_from(len) {
        Ok(dim) if dim as u64 <= i64::MAX as u64 => Ok(dim),
        _ => Err(too_large(len)),
    }
}

/// Checks that an array of this shape, with values of `size` bytes, has less than 2^63 bytes.
fn check_size(shape: &[usize], size: u64) -> io::Result<()> {
    let bytes = shape.iter().fold(u128::from(size), |bytes, &dim| bytes.saturating_mul(dim as u128));
    dimension(bytes).map(drop)
}

fn too_large(len: u128) -> io::Error {
    Error::from(ErrorKind::TooLarge { len, limit: i64::MAX as u64 }).into()
}

/// Appends values in blocks.
fn append<const N: usize>(
    spill: &mut Spill,
    id: SequenceId,
    values: impl Iterator<Item = [u8; N]>,
) -> io::Result<()> {
    let mut block = Vec::with_capacity(BLOCK.min(values.size_hint().0.saturating_mul(N)) + N);
    for value in values {
        block.extend_from_slice(&value);
        if block.len() >= BLOCK {
            spill.append(id, &block)?;
            block.clear();
        }
    }
    spill.append(id, &block)
}

fn read_u64(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Copies `len` bytes.
fn copy(from: &mut impl Read, len: u64, to: &mut impl Write) -> io::Result<()> {
    if io::copy(&mut from.take(len), to)? < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Writes `value` `n` times.
fn repeat(value: &[u8], n: u64, to: &mut impl Write) -> io::Result<()> {
    if value.is_empty() {
        return Ok(());
    }
    let per_block = (BLOCK / value.len()).max(1) as u64;
    let block = value.repeat(per_block.min(n) as usize);
    let mut left = n;
    while left > 0 {
        let values = left.min(per_block);
        to.write_all(block.get(..values as usize * value.len()).unwrap_or_default())?;
        left -= values;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::batch::Buf;

    #[test]
    fn splits_continue_up_to_their_type() {
        let mut spill = Spill::new(None, 1000);
        let batch = RowSplits::Int32(Buf::from(vec![0, 1, 3]));
        let mut splits = GrowingSplits::new(&mut spill, &batch);
        for _ in 0..3 {
            assert_eq!(splits.overflow(&batch), None);
            splits.append(&mut spill, &batch).unwrap();
        }
        let mut bytes = Vec::new();
        spill.reader(splits.data).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [0i32, 1, 3, 4, 6, 7, 9].map(i32::to_le_bytes).concat());
        assert_eq!((splits.len, splits.last), (7, 9));
        splits.last = i32::MAX as u64 - 3;
        assert_eq!(splits.overflow(&batch), None);
        splits.last += 1;
        assert_eq!(splits.overflow(&batch), Some(1 << 31));
        let long = RowSplits::Int64(Buf::from(vec![0, 1, 3]));
        assert_eq!(splits.overflow(&long), None);
        assert!(splits.append(&mut spill, &long).is_err());
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert_eq!(dimension(7).unwrap(), 7);
        assert!(dimension(1 << 63).is_err());
        assert!(check_size(&[1 << 40, 1 << 19], 8).is_ok());
        let e = Error::from(check_size(&[1 << 40, 1 << 20], 8).unwrap_err());
        assert!(matches!(e.kind(), ErrorKind::TooLarge { .. }), "{e}");
    }

    #[test]
    fn repeated_values() {
        for n in [0, 1, 3, BLOCK as u64 / 3, BLOCK as u64] {
            let mut found = Vec::new();
            repeat(b"abc", n, &mut found).unwrap();
            assert_eq!(found, b"abc".repeat(n as usize));
        }
    }
}
