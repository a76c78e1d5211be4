//! The rules of the wire format, as errors.

use std::fmt;

/// The reason why a payload is not a well-formed message.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A varint continues past the end of its message or chunk.
    CutVarint,
    /// A varint has more than ten bytes.
    LongVarint,
    /// A tag has more than five bytes or more than 32 bits.
    BadTag,
    /// A tag has field number 0.
    FieldZero,
    /// A tag has wire type 6 or 7.
    WireType,
    /// A length has more than five bytes, or is larger than 2^31 - 1.
    BadLength,
    /// A length exceeds the enclosing message.
    LengthBeyondMessage,
    /// The message ends inside a fixed32 or fixed64 field.
    CutFixed,
    /// The length of packed floats is not a multiple of 4.
    PackedFloatLength,
    /// The length of packed doubles is not a multiple of 8.
    PackedDoubleLength,
    /// An end-group tag has no matching start-group tag.
    GroupEnd,
    /// A start-group tag has no matching end-group tag.
    GroupOpen,
    /// Messages and groups are nested more than 100 levels deep.
    TooDeep,
    /// A key, or the name of a dimension, is not UTF-8.
    Utf8,
    /// A map entry contains an unknown field. Decoders disagree on its meaning.
    MapEntryUnknownField,
    /// A field that the message does not have, in a record that is decoded whole. See
    /// `tfseek::example::MessageKind::check`.
    UnknownField,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WireError::CutVarint => "varint continues past the end of its message",
            WireError::LongVarint => "varint of more than 10 bytes",
            WireError::BadTag => "tag of more than 5 bytes or 32 bits",
            WireError::FieldZero => "field number 0",
            WireError::WireType => "wire type 6 or 7",
            WireError::BadLength => "length of more than 5 bytes or 31 bits",
            WireError::LengthBeyondMessage => "length exceeds the enclosing message",
            WireError::CutFixed => "fixed32 or fixed64 value is truncated",
            WireError::PackedFloatLength => "length of packed floats is not a multiple of 4",
            WireError::PackedDoubleLength => "length of packed doubles is not a multiple of 8",
            WireError::GroupEnd => "end-group tag without a start-group tag",
            WireError::GroupOpen => "start-group tag without an end-group tag",
            WireError::TooDeep => "more than 100 levels of messages and groups",
            WireError::Utf8 => "key or name is not UTF-8",
            WireError::MapEntryUnknownField => {
                "map entry contains an unknown field, on whose meaning decoders disagree"
            }
            WireError::UnknownField => "field that the message does not have",
        })
    }
}
