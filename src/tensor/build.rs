//! Writing of tensors, with the bytes of `tf.io.serialize_tensor`.
//!
//! ```text
//! TensorProto       08 dtype, 12 len TensorShapeProto, values
//! TensorShapeProto  12 len Dim, per dimension
//! Dim               08 size                             nothing if the size is 0
//! values, numbers   22 len bytes                        tensor_content; absent if there is no element
//! values, strings   42 len bytes, per element
//! ```
//!
//! Lengths are computed first and compared with the limit of a message, as in `example/encode.rs`.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "lengths of values in memory, with their sum in 128 bits"
)]

use super::dtype::check_bools;
use super::shape::{byte_len, elements};
use super::{Element, TensorDType};
use crate::error::{ErrorKind, Result, TensorError};
use quick_protobuf::sizeofs::sizeof_varint;
use tfseek_wire::{MAX_LEN, field_len, put_field, put_head, put_varint};

const DTYPE: u8 = 0x08;
const SHAPE: u8 = 0x12;
const DIM: u8 = 0x12;
const SIZE: u8 = 0x08;
const CONTENT: u8 = 0x22;
const STRING: u8 = 0x42;

/// Serializes numbers, bools or complex numbers given as bytes, little-endian and row-major.
///
/// ```
/// use tfseek::tensor::{TensorDType, serialize_tensor};
/// // Two float16 values: 1.0 and -2.0.
/// let bytes = serialize_tensor(TensorDType::Float16, &[2], &[0x00, 0x3c, 0x00, 0xc0])?;
/// assert_eq!(bytes, b"\x08\x13\x12\x04\x12\x02\x08\x02\x22\x04\x00\x3c\x00\xc0");
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Tensor`] if the shape is invalid, if the number of bytes does not match it, if a bool is
/// neither 0 nor 1, or if the dtype is `string` (use [`serialize_strings`]); [`ErrorKind::TooLarge`] above
/// 2^31 - 1 bytes.
pub fn serialize_tensor(dtype: TensorDType, shape: &[u64], bytes: &[u8]) -> Result<Vec<u8>> {
    let n = elements(shape)?;
    let Some(size) = dtype.size() else {
        return Err(TensorError::DType { expected: "a dtype of numbers", found: dtype.name() }.into());
    };
    let expected = byte_len(n, size);
    if expected != bytes.len() as u128 {
        let expected = u64::try_from(expected).unwrap_or(u64::MAX);
        return Err(TensorError::ContentLen { expected, found: bytes.len() as u64 }.into());
    }
    if dtype == TensorDType::Bool {
        check_bools(bytes)?;
    }
    let values = if bytes.is_empty() { 0 } else { field_len(bytes.len() as u64) };
    let mut out = header(dtype, shape, values.into())?;
    if !bytes.is_empty() {
        put_field(CONTENT, bytes, &mut out);
    }
    Ok(out)
}

/// Serializes numbers, bools or complex numbers, row-major.
///
/// ```
/// use tfseek::tensor::serialize_values;
/// assert_eq!(serialize_values(&[], &[7u8])?, b"\x08\x04\x12\x00\x22\x01\x07");
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Tensor`] if the shape is invalid or does not have as many elements as there are values;
/// [`ErrorKind::TooLarge`] above 2^31 - 1 bytes.
pub fn serialize_values<T: Element>(shape: &[u64], values: &[T]) -> Result<Vec<u8>> {
    let n = elements(shape)?;
    check_count(n, values.len())?;
    if values.is_empty() {
        return header(T::DTYPE, shape, 0);
    }
    let len = size_of_val(values) as u64;
    let mut out = header(T::DTYPE, shape, field_len(len).into())?;
    put_head(CONTENT, len, &mut out);
    for &value in values {
        value.put(&mut out);
    }
    Ok(out)
}

/// Serializes strings, row-major.
///
/// ```
/// use tfseek::tensor::serialize_strings;
/// assert_eq!(serialize_strings(&[2], &["a", ""])?, b"\x08\x07\x12\x04\x12\x02\x08\x02\x42\x01a\x42\x00");
/// # Ok::<(), tfseek::Error>(())
/// ```
///
/// # Errors
/// As [`serialize_values`].
pub fn serialize_strings<S: AsRef<[u8]>>(shape: &[u64], values: &[S]) -> Result<Vec<u8>> {
    put_strings(shape, values.iter().map(|value| value.as_ref()))
}

pub(super) fn put_strings<'s>(
    shape: &[u64],
    values: impl ExactSizeIterator<Item = &'s [u8]> + Clone,
) -> Result<Vec<u8>> {
    let n = elements(shape)?;
    check_count(n, values.len())?;
    // Each string takes at least two bytes. Checked first, because a filled tensor may have too many strings
    // to iterate over.
    let least = u128::from(n) * 2;
    if least > u128::from(MAX_LEN) {
        return Err(ErrorKind::TooLarge { len: least, limit: MAX_LEN }.into());
    }
    let len = values.clone().map(|value| u128::from(field_len(value.len() as u64))).sum();
    let mut out = header(TensorDType::String, shape, len)?;
    values.for_each(|value| put_field(STRING, value, &mut out));
    Ok(out)
}

fn check_count(elements: u64, values: usize) -> Result<(), TensorError> {
    if elements == values as u64 {
        Ok(())
    } else {
        Err(TensorError::Count { expected: elements, found: values as u64 })
    }
}

/// Writes dtype and shape, and reserves `values` bytes for the values.
fn header(dtype: TensorDType, shape: &[u64], values: u128) -> Result<Vec<u8>> {
    let dim_len = |dim: u64| if dim == 0 { 0 } else { sizeof_varint(dim) as u64 + 1 };
    let shape_len = shape.iter().map(|&dim| field_len(dim_len(dim))).sum();
    let len = u128::from(field_len(shape_len)) + 2 + values;
    if len > u128::from(MAX_LEN) {
        return Err(ErrorKind::TooLarge { len, limit: MAX_LEN }.into());
    }
    let mut out = Vec::with_capacity(len as usize);
    out.push(DTYPE);
    // All dtype numbers are below 128, so each is a varint of one byte.
    out.push(dtype as u8);
    put_head(SHAPE, shape_len, &mut out);
    for &dim in shape {
        put_head(DIM, dim_len(dim), &mut out);
        if dim != 0 {
            out.push(SIZE);
            put_varint(dim, &mut out);
        }
    }
    debug_assert_eq!(out.len() as u128 + values, len, "the computed length is wrong");
    Ok(out)
}
