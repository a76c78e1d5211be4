//! Values of features: integers, floats, byte strings.

use super::value::{JsonValue, Token, ValueError};
use crate::memory::{copied, push};
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use base64::{Engine, decoded_len_estimate};
use std::borrow::Cow;
use std::num::IntErrorKind::{NegOverflow, PosOverflow};
use tfseek::{DType, FeatureBuf};

/// The manner in which values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Integers are numbers, byte strings are strings in UTF-8 or objects with `base64`.
    Plain,
    /// Protobuf's: numbers may be strings, byte strings are strings in base64.
    Proto,
}

/// An empty list of a kind.
pub(super) fn empty(dtype: DType) -> FeatureBuf {
    match dtype {
        DType::Int64 => FeatureBuf::Int64(Vec::new()),
        DType::Float32 => FeatureBuf::Float(Vec::new()),
        DType::Bytes => FeatureBuf::Bytes(Vec::new()),
    }
}

/// Reads a feature in the plain manner: a value, a list of values, or null. `None` for null.
pub(super) fn feature(value: JsonValue<'_>, dtype: DType) -> Result<Option<FeatureBuf>, ValueError<'_>> {
    if value.is_null() {
        return Ok(None);
    }
    let mut values = empty(dtype);
    if value.is_list() {
        list(value, Manner::Plain, &mut values)?;
    } else {
        element(value, Manner::Plain, &mut values)?;
    }
    Ok(Some(values))
}

/// Reads a list to the end of `values`, whose kind its values must have.
pub(super) fn list<'a>(
    list: JsonValue<'a>,
    manner: Manner,
    values: &mut FeatureBuf,
) -> Result<(), ValueError<'a>> {
    list.elements("a list", |value| element(value, manner, values)).map(drop)
}

/// Reads one value to the end of `values`, whose kind it must have.
fn element<'a>(value: JsonValue<'a>, manner: Manner, values: &mut FeatureBuf) -> Result<(), ValueError<'a>> {
    match values {
        FeatureBuf::Int64(values) => push(values, int64(value, manner)?),
        FeatureBuf::Float(values) => push(values, float(value, manner)?),
        FeatureBuf::Bytes(values) => push(
            values,
            match (value.token()?, manner) {
                (Token::Text(text), Manner::Plain) => bytes(value, text)?,
                (Token::Text(text), Manner::Proto) => base64(value, &text)?,
                (Token::Object, Manner::Plain) => base64_object(value)?,
                (_, Manner::Plain) => return Err(value.expected("a string or {\"base64\": ..}")),
                (_, Manner::Proto) => return Err(value.expected("a string in base64")),
            },
        ),
        // No list is read into a feature without a kind.
        FeatureBuf::None => return Err(value.expected("no value")),
    }
    .map_err(|_| value.no_memory())
}

/// Returns the bytes of the text of a value.
pub(super) fn bytes<'a>(value: JsonValue<'a>, text: Cow<'a, str>) -> Result<Vec<u8>, ValueError<'a>> {
    match text {
        Cow::Owned(text) => Ok(text.into_bytes()),
        Cow::Borrowed(text) => copied(text.as_bytes()).map_err(|_| value.no_memory()),
    }
}

// Protobuf takes `1.0` for an int64, which is more often a mistake of the writer.
fn int64(value: JsonValue<'_>, manner: Manner) -> Result<i64, ValueError<'_>> {
    let digits = match value.token()? {
        Token::Number(digits) => Cow::Borrowed(digits),
        Token::Text(digits) if manner == Manner::Proto => digits,
        // As of Python and of tables.
        Token::Bool(bool) if manner == Manner::Plain => return Ok(bool.into()),
        _ => return Err(value.expected("an int64")),
    };
    // Rust also takes a plus sign.
    let is_integer = digits.bytes().all(|c| c == b'-' || c.is_ascii_digit()) && !digits.is_empty();
    match digits.parse() {
        Ok(number) if is_integer => Ok(number),
        Err(e) if is_integer && matches!(e.kind(), PosOverflow | NegOverflow) => {
            Err(value.expected("an int64 from -2^63 to 2^63 - 1"))
        }
        _ => Err(value.expected("an int64")),
    }
}

fn float(value: JsonValue<'_>, manner: Manner) -> Result<f32, ValueError<'_>> {
    let digits = match value.token()? {
        Token::Number(digits) => Cow::Borrowed(digits),
        Token::Text(text) => match &*text {
            "NaN" => return Ok(f32::NAN),
            "Infinity" => return Ok(f32::INFINITY),
            "-Infinity" => return Ok(f32::NEG_INFINITY),
            digits if manner == Manner::Proto && digits.ends_with(|c: char| c.is_ascii_digit()) => text,
            _ => return Err(value.expected(FLOAT)),
        },
        _ => return Err(value.expected(FLOAT)),
    };
    // Parsed as 32 bits at once: a double that is rounded a second time may differ in the last bit.
    match digits.parse::<f32>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err(value.expected("a float from -3.4028235e38 to 3.4028235e38")),
        Err(_) => Err(value.expected("a float")),
    }
}

const FLOAT: &str = "a float, \"NaN\", \"Infinity\" or \"-Infinity\"";

/// Decodes a string that is base64, also that for addresses and that without padding, as protobuf does.
pub(super) fn base64<'a>(value: JsonValue<'a>, text: &str) -> Result<Vec<u8>, ValueError<'a>> {
    let no_memory = |_| value.no_memory();
    let mut standard = Cow::Borrowed(text.as_bytes());
    if text.contains(['-', '_']) {
        let mut copy = copied(text.as_bytes()).map_err(no_memory)?;
        for byte in &mut copy {
            *byte = match *byte {
                b'-' => b'+',
                b'_' => b'/',
                other => other,
            };
        }
        standard = Cow::Owned(copy);
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(decoded_len_estimate(standard.len())).map_err(no_memory)?;
    let decoded = STANDARD_PAD_INDIFFERENT.decode_vec(&*standard, &mut bytes);
    decoded.map(|()| bytes).map_err(|_| value.expected("base64"))
}

/// Decodes an object with the key `base64`.
pub(super) fn base64_object(object: JsonValue<'_>) -> Result<Vec<u8>, ValueError<'_>> {
    let what = "a value, a list of values or {\"base64\": ..}, because features are not nested";
    let members = object.members()?;
    match &members[..] {
        [] => Err(object.error(format!("expected {what}, found an empty object"))),
        [member] if member.key == "base64" => match member.value.token()? {
            Token::Text(text) => base64(member.value, &text),
            _ => Err(member.value.expected("base64")),
        },
        [first, others @ ..] => {
            let other = if first.key == "base64" { others.first().unwrap_or(first) } else { first };
            Err(other.unexpected(what))
        }
    }
}
