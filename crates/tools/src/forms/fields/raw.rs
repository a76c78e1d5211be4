//! The fields of one message, without the fields of the messages in it.

use tfseek_wire::varint::{MAX_VARINT, first};

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

/// Reads a varint of at most 64 bits, so that a tenth byte is 1 at most.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let (value, rest) = first::<MAX_VARINT>(bytes)?;
    if bytes.len() - rest.len() == MAX_VARINT && bytes.get(MAX_VARINT - 1) > Some(&1) {
        return None;
    }
    *bytes = rest;
    Some(value)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*value)
}
