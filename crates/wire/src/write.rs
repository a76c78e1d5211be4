//! Encoding of varints and fields.

/// Appends a varint.
#[inline]
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field with a length: its tag of one byte, the length, and the bytes.
#[inline]
pub fn put_field(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    put_head(tag, bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends the tag of one byte and the length of a field. Its bytes follow.
#[inline]
pub fn put_head(tag: u8, len: u64, out: &mut Vec<u8>) {
    out.push(tag);
    put_varint(len, out);
}

/// Returns the bytes of a field with a tag of one byte, its length and `len` bytes. Saturates at `u64::MAX`.
#[inline]
#[expect(clippy::arithmetic_side_effects, reason = "a logarithm is at most 63")]
pub fn field_len(len: u64) -> u64 {
    // A varint has a byte per seven bits.
    len.saturating_add(u64::from((len | 1).ilog2() / 7 + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireReader;

    #[test]
    fn fields_are_read_again_and_have_their_lengths() {
        for len in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000] {
            let value = vec![7; len];
            let mut field = Vec::new();
            put_field(0x12, &value, &mut field);
            assert_eq!(field_len(len as u64), field.len() as u64, "{len}");
            let mut reader = WireReader::new(&field);
            assert_eq!(reader.take_field(0x12), Some(&value[..]), "{len}");
            assert!(reader.is_empty(), "{len}");
        }
    }

    #[test]
    fn lengths_of_varints() {
        for bits in 0..64 {
            for value in [1u64 << bits, (1 << bits) - 1, u64::MAX >> bits] {
                let mut head = Vec::new();
                put_head(0x0a, value, &mut head);
                assert_eq!(field_len(value), value.saturating_add(head.len() as u64), "{value}");
                assert_eq!(WireReader::new(&head[1..]).varint().unwrap(), value);
            }
        }
    }
}
