//! JSON of protobuf messages: fields in camelCase or snake_case, 64-bit integers as strings or numbers.
//! `null` is an absent field.

use serde_json::{Map, Value};

/// Maximum number of characters of a value in a message.
const SHOWN: usize = 40;

/// Returns a field. `name` is in camelCase; the field may have it in snake_case.
pub(crate) fn field<'v>(fields: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    fields.get(name).or_else(|| fields.get(&snake_case(name))).filter(|value| !value.is_null())
}

/// Returns the name that a field has: in camelCase, as given, or in snake_case. `None` if there is no such
/// field.
pub(crate) fn field_name(fields: &Map<String, Value>, name: &str) -> Option<String> {
    [name.to_owned(), snake_case(name)].into_iter().find(|name| fields.contains_key(name))
}

/// Sets a field under the name that it has, or else in camelCase.
pub(crate) fn set_field(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let name = field_name(fields, name).unwrap_or_else(|| name.to_owned());
    fields.insert(name, value);
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Returns an integer from 0 to 2^64 - 1.
pub(crate) fn unsigned(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) if text.bytes().all(|c| c.is_ascii_digit()) => text.parse().ok(),
        _ => value.as_u64(),
    }
}

/// Describes a value for messages.
pub(crate) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Returns the first characters of a text in quotes.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(SHOWN).collect();
    let more = if short.len() < text.len() { " .." } else { "" };
    format!("{short:?}{more}")
}
