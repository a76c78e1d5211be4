//! The fields of one message, without the fields of the messages in it.

/// A value on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RawValue<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Len(&'a [u8]),
}

/// The fields of a message in the order of its bytes.
pub(crate) struct RawFields<'a>(&'a [u8]);

impl<'a> RawFields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> RawFields<'a> {
        RawFields(message)
    }

    /// Returns the number and the value of the next field, `Some(None)` at the end, and `None` if the bytes
    /// are no message.
    #[allow(clippy::option_option, reason = "the end of a message is no failure")]
    pub(crate) fn next(&mut self) -> Option<Option<(u32, RawValue<'a>)>> {
        let bytes = &mut self.0;
        if bytes.is_empty() {
            return Some(None);
        }
        let tag = u32::try_from(varint(bytes)?).ok()?;
        if tag >> 3 == 0 {
            return None;
        }
        let value = match tag & 7 {
            0 => RawValue::Varint(varint(bytes)?),
            1 => RawValue::Fixed64(u64::from_le_bytes(take(bytes)?)),
            2 => {
                let len = usize::try_from(varint(bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(len)?;
                *bytes = rest;
                RawValue::Len(value)
            }
            5 => RawValue::Fixed32(u32::from_le_bytes(take(bytes)?)),
            // Groups are deprecated, and no type in TFRecord files is known to have one.
            _ => return None,
        };
        Some(Some((tag >> 3, value)))
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for k in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if k == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*value)
}
