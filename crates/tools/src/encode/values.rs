//! Values of features: integers, floats, byte strings.

use super::error::{JsonError, JsonPosition};
use super::lexer::{JsonReader, Token};
use crate::base64::from_base64;
use std::io::Read;
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
pub(super) fn feature<R: Read>(
    reader: &mut JsonReader<R>,
    dtype: DType,
) -> Result<Option<FeatureBuf>, JsonError> {
    let mut values = empty(dtype);
    match reader.peek_token()?.0 {
        Some(b'n') => {
            if let (token, at) = reader.token()?
                && token != Token::Null
            {
                return Err(JsonError::new(at, format!("expected a value, found {token}")));
            }
            return Ok(None);
        }
        Some(b'[') => {
            reader.token()?;
            list(reader, Manner::Plain, &mut values)?;
        }
        _ => value(reader, Manner::Plain, &mut values)?,
    }
    Ok(Some(values))
}

/// Reads the values of a list whose bracket has been read.
pub(super) fn list<R: Read>(
    reader: &mut JsonReader<R>,
    manner: Manner,
    values: &mut FeatureBuf,
) -> Result<(), JsonError> {
    let mut is_first = true;
    while reader.in_list(is_first)? {
        value(reader, manner, values)?;
        is_first = false;
    }
    Ok(())
}

/// Reads one value to the end of `values`, whose kind it must have.
fn value<R: Read>(
    reader: &mut JsonReader<R>,
    manner: Manner,
    values: &mut FeatureBuf,
) -> Result<(), JsonError> {
    let (token, at) = reader.token()?;
    match (values, token, manner) {
        (FeatureBuf::Bytes(values), Token::Object, Manner::Plain) => values.push(base64_object(reader, at)?),
        (values, token, manner) => scalar(token, at, manner, values)?,
    }
    Ok(())
}

/// Adds a scalar to the end of `values`, whose kind it must have.
pub(super) fn scalar(
    token: Token<'_>,
    at: JsonPosition,
    manner: Manner,
    values: &mut FeatureBuf,
) -> Result<(), JsonError> {
    match values {
        FeatureBuf::Int64(values) => values.push(int64(token, at, manner)?),
        FeatureBuf::Float(values) => values.push(float(token, at, manner)?),
        FeatureBuf::Bytes(values) => match (token, manner) {
            (Token::Text(text), Manner::Plain) => values.push(text.as_bytes().to_vec()),
            (Token::Text(text), Manner::Proto) => values.push(base64(text, at)?),
            (token, Manner::Plain) => {
                return Err(expected("a string or {\"base64\": ..}", &token, at));
            }
            (token, Manner::Proto) => return Err(expected("a string in base64", &token, at)),
        },
        // No list is read into a feature without a kind.
        FeatureBuf::None => return Err(expected("no value", &token, at)),
    }
    Ok(())
}

fn expected(what: &str, found: &Token<'_>, at: JsonPosition) -> JsonError {
    JsonError::new(at, format!("expected {what}, found {found}"))
}

fn int64(token: Token<'_>, at: JsonPosition, manner: Manner) -> Result<i64, JsonError> {
    let digits = match token {
        Token::Number(digits) => digits,
        Token::Text(digits) if manner == Manner::Proto => digits,
        _ => return Err(expected("an int64", &token, at)),
    };
    // Rust also takes a plus sign.
    let is_integer = digits.bytes().all(|c| c == b'-' || c.is_ascii_digit()) && !digits.is_empty();
    match digits.parse() {
        Ok(value) if is_integer => Ok(value),
        Err(e)
            if is_integer
                && matches!(
                    e.kind(),
                    std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow
                ) =>
        {
            Err(expected("an int64 from -2^63 to 2^63 - 1", &token, at))
        }
        _ => Err(expected("an int64", &token, at)),
    }
}

fn float(token: Token<'_>, at: JsonPosition, manner: Manner) -> Result<f32, JsonError> {
    let digits = match token {
        Token::Number(digits) => digits,
        Token::Text("NaN") => return Ok(f32::NAN),
        Token::Text("Infinity") => return Ok(f32::INFINITY),
        Token::Text("-Infinity") => return Ok(f32::NEG_INFINITY),
        Token::Text(digits) if manner == Manner::Proto && digits.ends_with(|c: char| c.is_ascii_digit()) => {
            digits
        }
        _ => return Err(expected("a float, \"NaN\", \"Infinity\" or \"-Infinity\"", &token, at)),
    };
    // Parsed as 32 bits at once: a double that is rounded a second time may differ in the last bit.
    match digits.parse::<f32>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(expected("a float from -3.4028235e38 to 3.4028235e38", &token, at)),
        Err(_) => Err(expected("a float", &token, at)),
    }
}

/// Decodes base64, also that for addresses and that without padding, as protobuf does.
pub(super) fn base64(text: &str, at: JsonPosition) -> Result<Vec<u8>, JsonError> {
    let is_standard = text.len().is_multiple_of(4) && !text.contains(['-', '_']);
    let decoded = if is_standard {
        from_base64(text)
    } else {
        let standard = text.replace('-', "+").replace('_', "/");
        let padding = (4 - standard.len() % 4) % 4;
        from_base64(&(standard + "===".get(..padding).unwrap_or_default()))
    };
    decoded.ok_or_else(|| expected("base64", &Token::Text(text), at))
}

/// Reads the rest of an object with `base64`, whose bracket has been read.
pub(super) fn base64_object<R: Read>(
    reader: &mut JsonReader<R>,
    at: JsonPosition,
) -> Result<Vec<u8>, JsonError> {
    let what = "an object with the key \"base64\" only";
    match reader.key(true)? {
        Some((key, _)) if key == "base64" => {}
        Some((key, at)) => {
            return Err(JsonError::new(at, format!("expected {what}, found the key {}", Token::Text(&key))));
        }
        None => return Err(JsonError::new(at, format!("expected {what}, found none"))),
    }
    let bytes = match reader.token()? {
        (Token::Text(text), at) => base64(text, at)?,
        (token, at) => return Err(expected("base64", &token, at)),
    };
    match reader.key(false)? {
        None => Ok(bytes),
        Some((key, at)) => {
            Err(JsonError::new(at, format!("expected {what}, found the key {}", Token::Text(&key))))
        }
    }
}
