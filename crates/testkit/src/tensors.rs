//! Seeded serialized tensors: as TensorFlow writes them, in other encodings that protobuf allows, and
//! damaged.

use super::payloads::mutate;
use super::rng::Rng;
use tfseek::tensor::TensorDType;

pub fn dtype(k: u8) -> TensorDType {
    TensorDType::ALL[usize::from(k) % TensorDType::ALL.len()]
}

pub fn dtype_field(dtype: TensorDType) -> [u8; 2] {
    [0x08, dtype as u8]
}

pub fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn field(number: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(u64::from(number << 3 | 2), &mut out);
    varint(body.len() as u64, &mut out);
    out.extend(body);
    out
}

/// Returns field 2, the shape, with these dimensions.
pub fn shape(dims: &[i64]) -> Vec<u8> {
    let dim = |&size: &i64| {
        let mut body = Vec::new();
        if size != 0 {
            body.push(0x08);
            varint(size as u64, &mut body);
        }
        field(2, &body)
    };
    field(2, &dims.iter().flat_map(dim).collect::<Vec<_>>())
}

fn dims(rng: &mut Rng) -> Vec<i64> {
    (0..rng.below(4)).map(|_| rng.pick(&[0, 1, 1, 2, 2, 3, 3, 5])).collect()
}

/// Returns the fields of the values, as TensorFlow writes them.
fn values(rng: &mut Rng, dtype: TensorDType, n: usize) -> Vec<u8> {
    match dtype.size() {
        _ if n == 0 => Vec::new(),
        Some(_) if dtype == TensorDType::Bool => {
            field(4, &(0..n).map(|_| rng.below(2) as u8).collect::<Vec<_>>())
        }
        Some(size) => field(4, &rng.bytes(n * size)),
        None => (0..n).flat_map(|_| field(8, &string(rng))).collect(),
    }
}

fn string(rng: &mut Rng) -> Vec<u8> {
    let len = rng.pick(&[0, 1, 2, 5, 130]);
    rng.bytes(len)
}

pub fn canonical(rng: &mut Rng, dtype: TensorDType) -> Vec<u8> {
    let dims = dims(rng);
    let n = dims.iter().product::<i64>() as usize;
    [dtype_field(dtype).to_vec(), shape(&dims), values(rng, dtype, n)].concat()
}

/// Returns a tensor in an unusual encoding: typed fields, packed and not, some of other dtypes; merged
/// shapes; names; repeated content; strings as content; unknown fields; any order of fields.
pub fn odd(rng: &mut Rng, dtype: TensorDType) -> Vec<u8> {
    let dims = dims(rng);
    let n = dims.iter().product::<i64>() as usize;
    let cut = rng.below(dims.len() + 1);
    let mut fields = vec![dtype_field(dtype).to_vec(), shape(&dims[..cut]), shape(&dims[cut..])];
    match rng.below(6) {
        0 | 1 => fields.push(values(rng, dtype, n)),
        2 if dtype == TensorDType::String => {
            let strings = (0..n).map(|_| string(rng)).collect::<Vec<_>>();
            let mut content = Vec::new();
            strings.iter().for_each(|string| varint(string.len() as u64, &mut content));
            fields.push(field(4, &[content, strings.concat()].concat()));
        }
        _ => {}
    }
    for _ in 0..rng.below(4) {
        let own = own_field(dtype);
        let number = if rng.chance(200) { own } else { rng.pick(&[5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17]) };
        let count = rng.pick(&[0, 1, 1, 2, n, n + 1]);
        fields.push(typed(rng, number, count));
    }
    match rng.below(12) {
        0 => fields.push(field(4, b"")),
        1 => fields.push(field(2, &field(2, &field(2, "n\u{e4}me".as_bytes())))),
        2 => fields.push(vec![0x18, 0x01]),
        3 => fields.push(field(20, b"unknown")),
        4 => fields.push(field(2, &[0x18, rng.below(2) as u8])),
        5 => fields.push(vec![0x08, rng.below(30) as u8]),
        6 => fields.push(shape(&[rng.pick(&[-1, 1, 2, 100, 1000, i64::MAX])])),
        _ => {}
    }
    for k in (1..fields.len()).rev() {
        fields.swap(k, rng.below(k + 1));
    }
    fields.concat()
}

/// Returns a tensor of this shape: as TensorFlow writes it, or with typed values, which may be fewer or more
/// than the elements. The bytes of bools are any.
pub fn shaped(rng: &mut Rng, dtype: TensorDType, dims: &[i64]) -> Vec<u8> {
    let n = dims.iter().product::<i64>() as usize;
    let values = match rng.below(6) {
        0 => {
            let count = rng.pick(&[1, n, n, n + 1, 2 * n]);
            typed(rng, own_field(dtype), count)
        }
        1 if dtype == TensorDType::Bool && n > 0 => field(4, &rng.bytes(n)),
        _ => values(rng, dtype, n),
    };
    [dtype_field(dtype).to_vec(), shape(dims), values].concat()
}

/// Returns a tensor in an unusual encoding or in TensorFlow's, with some bytes changed.
pub fn mutated(rng: &mut Rng, dtype: TensorDType) -> Vec<u8> {
    let mut message = if rng.chance(64) { canonical(rng, dtype) } else { odd(rng, dtype) };
    for _ in 0..rng.below(4) {
        mutate(rng, &mut message);
    }
    message
}

fn own_field(dtype: TensorDType) -> u32 {
    match dtype {
        TensorDType::Float32 => 5,
        TensorDType::Float64 => 6,
        TensorDType::String => 8,
        TensorDType::Complex64 => 9,
        TensorDType::Int64 => 10,
        TensorDType::Bool => 11,
        TensorDType::Complex128 => 12,
        TensorDType::Float16 | TensorDType::BFloat16 => 13,
        TensorDType::UInt32 => 16,
        TensorDType::UInt64 => 17,
        _ => 7,
    }
}

/// Returns `count` values of a typed field, in one packed chunk or as separate fields.
fn typed(rng: &mut Rng, number: u32, count: usize) -> Vec<u8> {
    let packed = rng.chance(128);
    let mut out = Vec::new();
    for _ in 0..count {
        let (wire_type, value) = match number {
            5 | 9 => (5, rng.bytes(4)),
            6 | 12 => (1, rng.bytes(8)),
            8 => {
                out.extend(field(8, &string(rng)));
                continue;
            }
            _ => {
                let mut value = Vec::new();
                let bits = rng.pick(&[1, 7, 8, 9, 16, 31, 32, 33, 64]);
                varint(rng.u64() >> (64 - bits), &mut value);
                (0, value)
            }
        };
        if !packed {
            varint(u64::from(number << 3 | wire_type), &mut out);
        }
        out.extend(value);
    }
    if packed && number != 8 { field(number, &out) } else { out }
}
