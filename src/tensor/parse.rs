//! Parsing of tensors: a first pass validates and counts, and a second pass decodes typed values, if there
//! are any.
//!
//! The order bounds the memory. Before values are allocated, the product of the shape is compared with the
//! bytes that are present or, for a filled tensor, with the limit.

use super::dtype::{TensorDType, check_bools};
use super::proto::{self, ValueEncoding};
use super::shape::{MAX_DIMS, byte_len, elements};
use super::value::Tensor;
use super::value::{STRING_COST, TensorData};
use crate::error::{ErrorKind, Result, TensorError, WireError, no_memory};
use crate::memory::room;
use std::borrow::Cow;
use tfseek_wire::{Fault, MAX_LEN, WireReader, WireValue, varint};

/// The shape of a `TensorProto`, as found by the first pass.
#[derive(Default)]
struct ParsedShape {
    /// The first dimensions that are not negative, at most `MAX_DIMS + 1`.
    dims: Vec<u64>,
    /// Number of all dimensions.
    count: usize,
    /// The first negative dimension.
    negative: Option<i64>,
    unknown_rank: bool,
}

/// Default limit of the bytes that a filled tensor may take: 64 MiB.
pub const DEFAULT_LIMIT: u64 = 64 << 20;

/// Parses a serialized `TensorProto`, which must have the given dtype, like `tf.io.parse_tensor`.
///
/// # Errors
/// [`ErrorKind::Wire`] if the bytes are not a well-formed message; [`ErrorKind::Tensor`] if the message is
/// not a tensor or has another dtype; [`ErrorKind::TooLarge`] for a filled tensor of more than
/// [`DEFAULT_LIMIT`] bytes. Offsets in errors are relative to `bytes`. Use [`Error::at`](crate::Error::at) to
/// add the location of `bytes`.
pub fn parse_tensor(bytes: &[u8], dtype: TensorDType) -> Result<Tensor<'_>> {
    parse_tensor_within(bytes, dtype, DEFAULT_LIMIT)
}

/// Parses as [`parse_tensor`] does, with another limit in bytes for a tensor that has fewer values than
/// elements. A string counts as its length plus 16 bytes. A tensor that has all of its values is bounded by
/// the input, and not by the limit.
///
/// ```
/// use tfseek::ErrorKind;
/// use tfseek::tensor::{TensorDType, parse_tensor, parse_tensor_within};
///
/// // A float32 tensor of shape [1_000_000] without values: by the fill rule, a million zeros.
/// let bytes = [0x08, 0x01, 0x12, 0x06, 0x12, 0x04, 0x08, 0xc0, 0x84, 0x3d];
/// assert_eq!(parse_tensor(&bytes, TensorDType::Float32)?.shape(), [1_000_000]);
/// let e = parse_tensor_within(&bytes, TensorDType::Float32, 1000).unwrap_err();
/// assert!(matches!(e.kind(), ErrorKind::TooLarge { len: 4_000_000, limit: 1000 }));
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// As [`parse_tensor`].
pub fn parse_tensor_within(bytes: &[u8], dtype: TensorDType, limit: u64) -> Result<Tensor<'_>> {
    let header = TensorHeader::read(bytes, dtype, Vec::new())?;
    let n = header.elements;
    let data = match (dtype.size(), header.content) {
        (Some(size), content) => {
            let mut decoded = Vec::new();
            let stored = header.numbers(size, limit, &mut decoded)?;
            if dtype == TensorDType::Bool && !content.is_empty() {
                check_bools(content)?;
            }
            TensorData::Numbers(stored.map_or(Cow::Owned(decoded), Cow::Borrowed))
        }
        (None, []) => strings(bytes, n, header.values, limit)?,
        (None, content) => string_content(content, n)?,
    };
    // Each element takes bytes that are present or that the limit allows.
    let len = usize::try_from(n).map_err(|_| no_memory())?;
    Ok(Tensor { dtype, shape: header.shape, len, data })
}

/// A message whose fields were found and validated, before its values are decoded.
pub(crate) struct TensorHeader<'a> {
    bytes: &'a [u8],
    dtype: TensorDType,
    /// The dimensions.
    pub(crate) shape: Vec<u64>,
    /// Number of elements of the shape.
    elements: u64,
    content: &'a [u8],
    /// Number of elements with values in the typed field of the dtype.
    values: usize,
}

impl<'a> TensorHeader<'a> {
    /// Reads the header of a tensor of this dtype. `dims` is memory for the dimensions.
    pub(crate) fn read(bytes: &'a [u8], dtype: TensorDType, mut dims: Vec<u64>) -> Result<TensorHeader<'a>> {
        if bytes.len() as u64 > MAX_LEN {
            return Err(ErrorKind::TooLarge { len: bytes.len() as u128, limit: MAX_LEN }.into());
        }
        dims.clear();
        let mut shape = ParsedShape { dims, ..ParsedShape::default() };
        let mut number = 0;
        let mut content: &[u8] = &[];
        let mut values = 0usize;
        let mut reader = WireReader::new(bytes);
        while let Some((field, value)) = reader.next()? {
            match (field, value) {
                // An enum is the low 32 bits of its varint.
                (proto::DTYPE, WireValue::Varint(value)) => number = value as i32,
                (proto::SHAPE, WireValue::Len(value)) => shape.merge(reader.nested(value))?,
                (proto::CONTENT, WireValue::Len(value)) => content = value,
                _ => {
                    // A typed field of another dtype is ignored, but it must be well-formed.
                    if let Some(encoding) = ValueEncoding::of(field) {
                        let count = encoding.count(value, reader)?;
                        if field == proto::typed_field(dtype) {
                            values = values.saturating_add(count);
                        }
                    }
                }
            }
        }
        match TensorDType::ALL.iter().find(|&&stored| stored as i32 == number) {
            Some(stored) if *stored == dtype => {}
            Some(stored) => {
                return Err(TensorError::DType { expected: dtype.name(), found: stored.name() }.into());
            }
            None => return Err(TensorError::UnsupportedDType { number }.into()),
        }
        let (shape, elements) = shape.checked()?;
        // A complex number is two values. Half a complex number at the end is ignored.
        if matches!(dtype, TensorDType::Complex64 | TensorDType::Complex128) {
            values /= 2;
        }
        Ok(TensorHeader { bytes, dtype, shape, elements, content, values })
    }

    /// Returns an error for a tensor with elements and without any value. TensorFlow reads it as zeros.
    /// Writers that mean zeros write them.
    pub(crate) fn check_given(&self) -> Result<(), TensorError> {
        if self.elements > 0 && self.content.is_empty() && self.values == 0 {
            return Err(TensorError::Count { expected: self.elements, found: 0 });
        }
        Ok(())
    }

    /// Returns the little-endian bytes of numbers of `size` bytes, if the message has them as they are.
    /// Otherwise decodes them into `decoded`, which is cleared before, and returns `None`. The bytes of bools
    /// are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] if values are missing and all would take more than `limit` bytes.
    pub(crate) fn numbers(&self, size: usize, limit: u64, decoded: &mut Vec<u8>) -> Result<Option<&'a [u8]>> {
        if self.content.is_empty() && self.elements > 0 {
            decode_numbers(self, size, limit, decoded)?;
            return Ok(None);
        }
        let expected = byte_len(self.elements, size);
        if expected != self.content.len() as u128 {
            let expected = u64::try_from(expected).unwrap_or(u64::MAX);
            return Err(TensorError::ContentLen { expected, found: self.content.len() as u64 }.into());
        }
        Ok(Some(self.content))
    }
}

impl ParsedShape {
    /// Adds the dimensions of another occurrence of the field.
    fn merge(&mut self, mut reader: WireReader<'_>) -> Result<(), Fault> {
        while let Some((number, value)) = reader.next()? {
            match (number, value) {
                (proto::SHAPE_DIM, WireValue::Len(dim)) => {
                    let size = dim_size(reader.nested(dim))?;
                    self.count = self.count.saturating_add(1);
                    match u64::try_from(size) {
                        Ok(size) if self.dims.len() <= MAX_DIMS => self.dims.push(size),
                        Ok(_) => {}
                        Err(_) => self.negative = self.negative.or(Some(size)),
                    }
                }
                (proto::SHAPE_UNKNOWN_RANK, WireValue::Varint(unknown)) => self.unknown_rank = unknown != 0,
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the dimensions and the number of elements.
    fn checked(self) -> Result<(Vec<u64>, u64), TensorError> {
        if self.unknown_rank {
            return Err(TensorError::UnknownRank);
        }
        if self.count > MAX_DIMS {
            return Err(TensorError::TooManyDims { found: self.count, limit: MAX_DIMS });
        }
        if let Some(dim) = self.negative {
            return Err(TensorError::Dim { found: dim.into() });
        }
        let n = elements(&self.dims)?;
        Ok((self.dims, n))
    }
}

fn dim_size(mut reader: WireReader<'_>) -> Result<i64, Fault> {
    let mut size = 0;
    while let Some((number, value)) = reader.next()? {
        match (number, value) {
            (proto::DIM_SIZE, WireValue::Varint(value)) => size = value as i64,
            (proto::DIM_NAME, WireValue::Len(name)) if std::str::from_utf8(name).is_err() => {
                return Err(Fault::new(WireError::Utf8, reader.start_of(name)));
            }
            _ => {}
        }
    }
    Ok(size)
}

/// Decodes as many numbers of the typed field as there are elements. If there are fewer, the last is
/// repeated.
fn decode_numbers(header: &TensorHeader<'_>, size: usize, limit: u64, out: &mut Vec<u8>) -> Result<()> {
    let &TensorHeader { bytes, dtype, elements: n, values: given, .. } = header;
    out.clear();
    let number = proto::typed_field(dtype);
    let total = byte_len(n, size);
    if (given as u64) < n {
        check_limit(total, limit)?;
    }
    let total = usize::try_from(total).map_err(|_| no_memory())?;
    out.try_reserve_exact(total)?;
    let mut reader = WireReader::new(bytes);
    while let Some(room) = total.checked_sub(out.len()).filter(|&room| room > 0)
        && let Ok(Some((field, value))) = reader.next()
    {
        if field != number {
            continue;
        }
        match (ValueEncoding::of(field), value) {
            (Some(ValueEncoding::Float), WireValue::Fixed32(value)) => out.extend_from_slice(&value),
            (Some(ValueEncoding::Double), WireValue::Fixed64(value)) => out.extend_from_slice(&value),
            (Some(ValueEncoding::Float | ValueEncoding::Double), WireValue::Len(chunk)) => {
                // Bytes after the last element are ignored, and not copied.
                out.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
            }
            (Some(ValueEncoding::Varint), WireValue::Varint(value)) => put_varint(value, dtype, size, out),
            (Some(ValueEncoding::Varint), WireValue::Len(chunk)) => {
                let mut chunk = WireReader::new(chunk);
                while !chunk.is_empty() && out.len() < total {
                    let Ok(value) = chunk.varint() else { break };
                    put_varint(value, dtype, size, out);
                }
            }
            _ => {}
        }
    }
    out.truncate(total.min(given.saturating_mul(size)));
    fill(out, size, total);
    Ok(())
}

/// Appends the low `size` bytes of a value. For bools, appends 1 if the value is not zero, and 0 otherwise.
fn put_varint(value: u64, dtype: TensorDType, size: usize, out: &mut Vec<u8>) {
    let value = if dtype == TensorDType::Bool { u64::from(value != 0) } else { value };
    let bytes = value.to_le_bytes();
    out.extend_from_slice(bytes.get(..size).unwrap_or(&bytes));
}

/// Repeats the last element up to `total` bytes, in pieces of increasing size. Without an element, fills with
/// zeros.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "`start` is at most `out.len()`, which only grows and is below `total` in the loop"
)]
fn fill(out: &mut Vec<u8>, size: usize, total: usize) {
    let start = out.len().saturating_sub(size);
    if out.is_empty() {
        out.resize(total, 0);
    }
    while out.len() < total {
        let piece = (out.len() - start).min(total - out.len());
        out.extend_from_within(start..start + piece);
    }
}

/// Collects the strings of the typed field. Repeated strings are not stored, but count towards the limit.
#[expect(clippy::arithmetic_side_effects, reason = "products have 128 bits, and `take` is at most `n`")]
fn strings(bytes: &[u8], n: u64, values: usize, limit: u64) -> Result<TensorData<'_>> {
    let take = usize::try_from(n).unwrap_or(usize::MAX).min(values);
    let mut given = room(take)?;
    let mut reader = WireReader::new(bytes);
    while let Ok(Some((field, value))) = reader.next() {
        if let (proto::STRING_VAL, WireValue::Len(value)) = (field, value) {
            if given.len() == take {
                break;
            }
            given.push(Cow::Borrowed(value));
        }
    }
    let missing = n - take as u64;
    if missing > 0 {
        let stored: u128 = given.iter().map(|value| value.len() as u128).sum();
        let last = given.last().map_or(0, |value| value.len() as u128);
        check_limit(stored + u128::from(missing) * last + u128::from(n) * STRING_COST, limit)?;
    }
    Ok(TensorData::Strings(given))
}

/// Splits a `tensor_content` of strings: all lengths, then all bytes.
fn string_content(content: &[u8], n: u64) -> Result<TensorData<'_>> {
    let bad = TensorError::StringContent { elements: n, found: content.len() as u64 };
    // Each length takes at least one byte, so the number of strings is bounded by the input.
    let Some(n) = usize::try_from(n).ok().filter(|&n| n <= content.len()) else { return Err(bad.into()) };
    let mut rest = content;
    let mut lengths = room(n)?;
    let mut values = room(n)?;
    for _ in 0..n {
        // Not a field of a message: TensorFlow reads at most five bytes, and takes the low 32 bits.
        let (length, after) = varint::first::<5>(rest).ok_or(bad)?;
        lengths.push(length as u32);
        rest = after;
    }
    for length in lengths {
        let (value, after) = rest.split_at_checked(length as usize).ok_or(bad)?;
        values.push(Cow::Borrowed(value));
        rest = after;
    }
    match rest {
        [] => Ok(TensorData::Strings(values)),
        _ => Err(bad.into()),
    }
}

fn check_limit(len: u128, limit: u64) -> Result<()> {
    if len <= u128::from(limit) { Ok(()) } else { Err(ErrorKind::TooLarge { len, limit }.into()) }
}
