//! Reading: one pass validates and counts, a second one decodes typed values where there are any to decode.
//!
//! The order matters to what is allocated. By the time that memory is asked for, the shape's product is known, and has
//! been compared with the bytes that are there or, for a filled tensor, with the limit.

use super::dtype::{TensorDType, check_bools};
use super::proto::{self, Form};
use super::shape::{MAX_DIMS, elements};
use super::value::Tensor;
use super::value::{Data, STRING_COST};
use crate::error::{Error, ErrorKind, Result, TensorError, WireErrorKind};
use crate::wire::{Fault, MAX_LEN, WireReader, WireValue, varint};
use std::borrow::Cow;
use std::io;

/// What the first pass finds.
#[derive(Default)]
struct Fields<'a> {
    dtype: i32,
    shape: Shape,
    content: &'a [u8],
    /// Values in the typed field of the dtype that was asked for.
    values: usize,
}

#[derive(Default)]
struct Shape {
    /// The first of them, one more than there may be.
    dims: Vec<u64>,
    count: usize,
    negative: Option<i64>,
    unknown_rank: bool,
}

pub(super) fn parse(bytes: &[u8], dtype: TensorDType, limit: u64) -> Result<Tensor<'_>> {
    if bytes.len() as u64 > MAX_LEN {
        return Err(ErrorKind::TooLarge { len: bytes.len() as u128, limit: MAX_LEN }.into());
    }
    let typed = proto::typed_field(dtype);
    let fields = Fields::read(bytes, typed)?;

    match TensorDType::from_number(fields.dtype) {
        Some(stored) if stored == dtype => {}
        Some(stored) => {
            return Err(TensorError::DType { expected: dtype.name(), found: stored.name() }.into());
        }
        None => return Err(TensorError::UnsupportedDType { number: fields.dtype }.into()),
    }
    let (shape, n) = fields.shape.checked()?;

    let data = match (dtype.size(), fields.content) {
        (Some(size), []) => numbers(bytes, dtype, size, n, fields.values, limit)?,
        (Some(size), content) => {
            let expected = u128::from(n) * size as u128;
            if expected != content.len() as u128 {
                let expected = u64::try_from(expected).unwrap_or(u64::MAX);
                return Err(TensorError::ContentLen { expected, found: content.len() as u64 }.into());
            }
            if dtype == TensorDType::Bool {
                check_bools(content)?;
            }
            Data::Numbers(Cow::Borrowed(content))
        }
        (None, []) => strings(bytes, n, fields.values, limit)?,
        (None, content) => string_content(content, n)?,
    };
    // Every element costs bytes that are there, or that the limit allows.
    let len = usize::try_from(n).map_err(|_| out_of_memory())?;
    Ok(Tensor { dtype, shape, len, data })
}

impl<'a> Fields<'a> {
    fn read(bytes: &'a [u8], typed: u32) -> Result<Fields<'a>, Fault> {
        let mut fields = Fields::default();
        let mut reader = WireReader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            match (number, value) {
                // An enum keeps the low 32 bits of its varint.
                (proto::DTYPE, WireValue::Varint(dtype)) => fields.dtype = dtype as i32,
                (proto::SHAPE, WireValue::Len(shape)) => fields.shape.merge(reader.nested(shape))?,
                (proto::CONTENT, WireValue::Len(content)) => fields.content = content,
                _ => {
                    // A typed field of another dtype is ignored, but not if it is malformed.
                    if let Some(form) = Form::of(number) {
                        let count = form.count(value, reader)?;
                        if number == typed {
                            fields.values += count;
                        }
                    }
                }
            }
        }
        Ok(fields)
    }
}

impl Shape {
    /// Adds what another occurrence of the field says.
    fn merge(&mut self, mut reader: WireReader<'_>) -> Result<(), Fault> {
        while let Some((number, value)) = reader.next()? {
            match (number, value) {
                (proto::SHAPE_DIM, WireValue::Len(dim)) => {
                    let size = dim_size(reader.nested(dim))?;
                    self.count += 1;
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

    /// The dimensions and the number of elements.
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
                return Err(Fault::new(WireErrorKind::Utf8, reader.start_of(name)));
            }
            _ => {}
        }
    }
    Ok(size)
}

/// Numbers of a typed field, which has so many values: the first `n` of them, the last repeated where they are fewer.
fn numbers(
    bytes: &[u8],
    dtype: TensorDType,
    size: usize,
    n: u64,
    values: usize,
    limit: u64,
) -> Result<Data<'_>> {
    let number = proto::typed_field(dtype);
    // A complex number is two values; half of one at the end is none.
    let given =
        values / if matches!(dtype, TensorDType::Complex64 | TensorDType::Complex128) { 2 } else { 1 };
    let total = u128::from(n) * size as u128;
    if total == 0 {
        return Ok(Data::Numbers(Cow::Borrowed(&[])));
    }
    if (given as u64) < n {
        within(total, limit)?;
    }
    let total = usize::try_from(total).map_err(|_| out_of_memory())?;
    let mut out = Vec::new();
    out.try_reserve_exact(total).map_err(|_| out_of_memory())?;
    let mut reader = WireReader::new(bytes);
    while let Ok(Some((field, value))) = reader.next() {
        if out.len() >= total {
            break;
        }
        if field != number {
            continue;
        }
        match (Form::of(field), value) {
            (Some(Form::Float), WireValue::Fixed32(value)) => out.extend_from_slice(&value),
            (Some(Form::Double), WireValue::Fixed64(value)) => out.extend_from_slice(&value),
            (Some(Form::Float | Form::Double), WireValue::Len(chunk)) => {
                // What is behind the last element is ignored, and not copied.
                out.extend_from_slice(&chunk[..chunk.len().min(total - out.len())]);
            }
            (Some(Form::Varint), WireValue::Varint(value)) => put_varint(value, dtype, size, &mut out),
            (Some(Form::Varint), WireValue::Len(chunk)) => {
                let mut chunk = WireReader::new(chunk);
                while !chunk.is_empty() && out.len() < total {
                    let Ok(value) = chunk.varint() else { break };
                    put_varint(value, dtype, size, &mut out);
                }
            }
            _ => {}
        }
    }
    out.truncate(total.min(given.saturating_mul(size)));
    fill(&mut out, size, total);
    Ok(Data::Numbers(Cow::Owned(out)))
}

/// The low bits of a value, as many as the dtype has; of a bool whether it is not zero.
fn put_varint(value: u64, dtype: TensorDType, size: usize, out: &mut Vec<u8>) {
    let value = if dtype == TensorDType::Bool { u64::from(value != 0) } else { value };
    out.extend_from_slice(&value.to_le_bytes()[..size.min(8)]);
}

/// Repeats the last element up to `total` bytes, in ever larger pieces; zeros where there is none.
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

/// Strings of the typed field. What is repeated is not stored, but counts.
fn strings(bytes: &[u8], n: u64, values: usize, limit: u64) -> Result<Data<'_>> {
    let take = usize::try_from(n).unwrap_or(usize::MAX).min(values);
    let mut given = Vec::with_capacity(take);
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
        within(stored + u128::from(missing) * last + u128::from(n) * STRING_COST, limit)?;
    }
    Ok(Data::Strings(given))
}

/// Strings as `tensor_content` has them: all of their lengths, then all of their bytes.
fn string_content(content: &[u8], n: u64) -> Result<Data<'_>> {
    let bad = TensorError::StringContent { elements: n, found: content.len() as u64 };
    // Each length takes a byte, so what follows is bounded by the input.
    let Some(n) = usize::try_from(n).ok().filter(|&n| n <= content.len()) else { return Err(bad.into()) };
    let mut rest = content;
    let mut lengths = Vec::with_capacity(n);
    for _ in 0..n {
        lengths.push(varint32(&mut rest).ok_or(bad)?);
    }
    let mut values = Vec::with_capacity(n);
    for length in lengths {
        let (value, behind) = rest.split_at_checked(length as usize).ok_or(bad)?;
        values.push(Cow::Borrowed(value));
        rest = behind;
    }
    match rest {
        [] => Ok(Data::Strings(values)),
        _ => Err(bad.into()),
    }
}

/// A varint of at most five bytes, of whose value the low 32 bits count. This is no field of a message: TensorFlow
/// reads it by a rule of its own.
fn varint32(rest: &mut &[u8]) -> Option<u32> {
    let (value, behind) = varint::first::<5>(rest)?;
    *rest = behind;
    Some(value as u32)
}

fn within(len: u128, limit: u64) -> Result<()> {
    match len <= u128::from(limit) {
        true => Ok(()),
        false => Err(ErrorKind::TooLarge { len, limit }.into()),
    }
}

/// The limit allowed it, the machine does not.
#[cold]
fn out_of_memory() -> Error {
    Error::new(ErrorKind::Io(io::ErrorKind::OutOfMemory.into()))
}
