//! Serialized tensors.

use crate::{tensor_twin, tensors};
use tfseek::tensor::{TensorDType, parse_tensor, serialize_strings, serialize_tensor};

/// Tests tensors. The first byte selects the requested dtype and the meaning of the rest.
///
/// The rest is a message, with or without a matching dtype field before it, or the values of a tensor that is
/// written and read. With the field, most messages pass the check of the dtype.
pub fn tensor(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    let dtype = TensorDType::ALL[usize::from(mode) % TensorDType::ALL.len()];
    match mode >> 4 & 3 {
        0 => tensor_twin::agree(rest, dtype),
        1 | 2 => tensor_twin::agree(&[&tensors::dtype_field(dtype), rest].concat(), dtype),
        _ => {
            let bytes = match dtype.size() {
                Some(size) => {
                    // Only bools other than 0 and 1 are refused.
                    let whole = &rest[..rest.len() / size * size];
                    match serialize_tensor(dtype, &[(whole.len() / size) as u64], whole) {
                        Ok(bytes) => bytes,
                        Err(_) => return assert!(dtype == TensorDType::Bool && whole.iter().any(|&b| b > 1)),
                    }
                }
                None => {
                    let strings = rest.split(|&b| b == 0).collect::<Vec<_>>();
                    serialize_strings(&[1, strings.len() as u64], &strings).unwrap()
                }
            };
            assert!(tensor_twin::borrows(&parse_tensor(&bytes, dtype).unwrap(), &bytes));
            tensor_twin::agree(&bytes, dtype);
        }
    }
}
