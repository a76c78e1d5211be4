//! A naive twin of the tensor parser. Each element is a separate byte string. The twin reports only *that* a
//! message is refused, not the reason.

use super::twin::{Refused, Result, Value, fields, take, varint};
use tfseek::ErrorKind;
use tfseek::tensor::{Tensor, TensorDType, parse_tensor_within};

/// Limit on the size of a filled tensor in bytes. It is small to keep the twin fast.
pub const LIMIT: u64 = 4096;

/// The shape of a tensor, and its elements.
type Elements<E = Vec<Vec<u8>>> = (Vec<u64>, E);

/// Parses a tensor. Returns its shape and its elements.
pub fn tensor(bytes: &[u8], dtype: TensorDType) -> Result<Elements> {
    let Fields { shape, n, content, values } = read(bytes, dtype)?;
    let elements = match (content.is_empty(), dtype.size()) {
        (true, _) => filled(dtype, values, n)?,
        (false, Some(_)) => {
            if dtype == TensorDType::Bool && content.iter().any(|&b| b > 1) {
                return Err(Refused);
            }
            numbers(&content, dtype, n)?
        }
        (false, None) => strings(&content, n)?,
    };
    Ok((shape, elements))
}

/// Parses a tensor of numbers as the array of a column: the byte of a bool may be any, and there must be a
/// value unless the shape is empty. The elements are `None` if filling in the missing ones is too much for
/// the twin.
pub fn array(bytes: &[u8], dtype: TensorDType) -> Result<Elements<Option<Vec<Vec<u8>>>>> {
    let Fields { shape, n, content, values } = read(bytes, dtype)?;
    let elements = if content.is_empty() {
        let complex = matches!(dtype, TensorDType::Complex64 | TensorDType::Complex128);
        if n > 0 && values.len() < 1 + usize::from(complex) {
            return Err(Refused);
        }
        let Ok(elements) = filled(dtype, values, n) else { return Ok((shape, None)) };
        elements
    } else {
        numbers(&content, dtype, n)?
    };
    let bools = dtype == TensorDType::Bool;
    let one = |element: Vec<u8>| if bools { vec![u8::from(element != [0])] } else { element };
    Ok((shape, Some(elements.into_iter().map(one).collect())))
}

struct Fields {
    shape: Vec<u64>,
    /// Number of elements of the shape.
    n: u64,
    content: Vec<u8>,
    values: Vec<Vec<u8>>,
}

fn numbers(content: &[u8], dtype: TensorDType, n: u64) -> Result<Vec<Vec<u8>>> {
    let size = dtype.size().unwrap();
    if u128::from(n) * size as u128 != content.len() as u128 {
        return Err(Refused);
    }
    Ok(content.chunks(size).map(<[u8]>::to_vec).collect())
}

fn read(bytes: &[u8], dtype: TensorDType) -> Result<Fields> {
    let (mut number, mut content, mut unknown_rank) = (0, Vec::new(), false);
    let (mut dims, mut values) = (Vec::new(), Vec::new());
    for (field, value) in fields(bytes, 0)? {
        match (field, value) {
            (1, Value::Varint(v)) => number = v as i32,
            (2, Value::Len(shape)) => {
                for (field, value) in fields(shape, 1)? {
                    match (field, value) {
                        (2, Value::Len(dim)) => dims.push(size(dim)?),
                        (3, Value::Varint(v)) => unknown_rank = v != 0,
                        _ => {}
                    }
                }
            }
            (4, Value::Len(v)) => content = v.to_vec(),
            (_, value) => {
                let added = typed(field, value)?;
                if field == field_of(dtype) {
                    values.extend(added);
                }
            }
        }
    }
    if number != dtype as i32 || unknown_rank || dims.len() > 254 || dims.iter().any(|&d| d < 0) {
        return Err(Refused);
    }
    let n = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d)).ok_or(Refused)? as u64;
    Ok(Fields { shape: dims.into_iter().map(|d| d as u64).collect(), n, content, values })
}

fn size(dim: &[u8]) -> Result<i64> {
    let mut size = 0;
    for (field, value) in fields(dim, 2)? {
        match (field, value) {
            (1, Value::Varint(v)) => size = v as i64,
            (2, Value::Len(name)) => drop(std::str::from_utf8(name).map_err(|_| Refused)?),
            _ => {}
        }
    }
    Ok(size)
}

fn field_of(dtype: TensorDType) -> u32 {
    match dtype.to_string().as_str() {
        "float32" => 5,
        "float64" => 6,
        "string" => 8,
        "complex64" => 9,
        "int64" => 10,
        "bool" => 11,
        "complex128" => 12,
        "float16" | "bfloat16" => 13,
        "uint32" => 16,
        "uint64" => 17,
        _ => 7,
    }
}

/// Returns the values of a typed field: varints as eight bytes, other values as their own bytes.
fn typed(field: u32, value: Value<'_>) -> Result<Vec<Vec<u8>>> {
    let fixed = |chunk: &[u8], size: usize| {
        if !chunk.len().is_multiple_of(size) {
            return Err(Refused);
        }
        Ok(chunk.chunks(size).map(<[u8]>::to_vec).collect())
    };
    Ok(match (field, value) {
        (8, Value::Len(v)) => vec![v.to_vec()],
        (5 | 9, Value::Fixed32(v)) => vec![v.to_vec()],
        (5 | 9, Value::Len(chunk)) => fixed(chunk, 4)?,
        (6 | 12, Value::Fixed64(v)) => vec![v.to_vec()],
        (6 | 12, Value::Len(chunk)) => fixed(chunk, 8)?,
        (7 | 10 | 11 | 13 | 16 | 17, Value::Varint(v)) => vec![v.to_le_bytes().to_vec()],
        (7 | 10 | 11 | 13 | 16 | 17, Value::Len(mut chunk)) => {
            let mut values = Vec::new();
            while !chunk.is_empty() {
                values.push(varint(&mut chunk)?.to_le_bytes().to_vec());
            }
            values
        }
        _ => Vec::new(),
    })
}

/// Applies the fill rule: the last value repeats until there are `n` elements.
fn filled(dtype: TensorDType, values: Vec<Vec<u8>>, n: u64) -> Result<Vec<Vec<u8>>> {
    let values: Vec<Vec<u8>> = match dtype.to_string().as_str() {
        "string" => values,
        "complex64" | "complex128" => values.chunks_exact(2).map(|pair| pair.concat()).collect(),
        "bool" => values.into_iter().map(|v| vec![u8::from(v.iter().any(|&b| b != 0))]).collect(),
        _ => values.into_iter().map(|v| v[..dtype.size().unwrap()].to_vec()).collect(),
    };
    let last = values.last().cloned().unwrap_or(vec![0; dtype.size().unwrap_or(0)]);
    if (values.len() as u64) < n {
        let taken: usize = values.iter().map(Vec::len).sum();
        let missing = u128::from(n) - values.len() as u128;
        let strings = if dtype.size().is_none() { u128::from(n) * 16 } else { 0 };
        if taken as u128 + missing * last.len() as u128 + strings > u128::from(LIMIT) {
            return Err(Refused);
        }
    }
    Ok(values.into_iter().chain(std::iter::repeat(last)).take(n as usize).collect())
}

fn strings(content: &[u8], n: u64) -> Result<Vec<Vec<u8>>> {
    let (mut rest, mut lengths) = (content, Vec::new());
    for _ in 0..n {
        let before = rest;
        let length = varint(&mut rest)? as u32;
        if before.len() - rest.len() > 5 {
            return Err(Refused);
        }
        lengths.push(length as usize);
    }
    let values = lengths.into_iter().map(|len| take(&mut rest, len).map(<[u8]>::to_vec)).collect();
    if rest.is_empty() { values } else { Err(Refused) }
}

/// Returns true if all values of the tensor are borrowed from `bytes`.
pub fn borrows(tensor: &Tensor<'_>, bytes: &[u8]) -> bool {
    let bytes = bytes.as_ptr_range();
    let within = |value: &[u8]| value.is_empty() || bytes.contains(&value.as_ptr());
    match tensor.as_bytes() {
        Some(values) => within(values),
        None => tensor.strings().unwrap().all(within),
    }
}

/// Checks that parser and twin agree, and that a parsed tensor is unchanged after it is written and parsed
/// again.
pub fn agree(bytes: &[u8], dtype: TensorDType) {
    let parsed = parse_tensor_within(bytes, dtype, LIMIT);
    let (shape, elements) = match (&parsed, tensor(bytes, dtype)) {
        (Ok(_), Ok(twin)) => twin,
        (Err(e), Err(Refused)) => {
            assert!(
                matches!(
                    e.kind(),
                    ErrorKind::Wire { .. } | ErrorKind::Tensor(_) | ErrorKind::TooLarge { .. }
                ),
                "{e}"
            );
            return assert!(e.is_data());
        }
        (parsed, twin) => panic!("found {parsed:?}, the twin has {twin:?}"),
    };
    let tensor = parsed.unwrap();
    assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &shape[..]));
    match tensor.as_bytes() {
        Some(values) => {
            assert_eq!(values, elements.concat());
            assert!(values.len() <= (8 * bytes.len()).max(LIMIT as usize));
        }
        None => assert!(tensor.strings().unwrap().eq(elements.iter().map(Vec::as_slice))),
    }

    let written = tensor.serialize().unwrap();
    // The written tensor has all its values, so nothing is filled and the limit 0 suffices.
    let again = parse_tensor_within(&written, dtype, 0).unwrap();
    assert!(again == tensor && borrows(&again, &written));
    assert_eq!(again.serialize().unwrap(), written);
    assert!(tensor.into_owned() == again);
}
