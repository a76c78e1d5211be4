//! JSON text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::{Display, Write};

/// A writer of JSON without spaces. The keys of an object have the order in which they are written.
#[derive(Default)]
pub(crate) struct JsonText {
    text: String,
    /// A comma precedes the next value.
    comma: bool,
    /// Integers beyond 2^53 are strings, because JavaScript rounds them.
    wide_as_text: bool,
}

impl JsonText {
    /// Creates a writer of JSON for a browser.
    pub(crate) fn for_browser() -> JsonText {
        JsonText { wide_as_text: true, ..JsonText::default() }
    }

    fn separate(&mut self) {
        if std::mem::replace(&mut self.comma, true) {
            self.text.push(',');
        }
    }

    /// Writes an object or a list, whose brackets are given.
    pub(crate) fn nested(&mut self, brackets: [char; 2], content: impl FnOnce(&mut JsonText)) {
        let [open, close] = brackets;
        self.separate();
        self.text.push(open);
        self.comma = false;
        content(self);
        self.text.push(close);
        self.comma = true;
    }

    pub(crate) fn object(&mut self, content: impl FnOnce(&mut JsonText)) {
        self.nested(['{', '}'], content);
    }

    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut JsonText, T),
    ) {
        self.nested(['[', ']'], |json| items.into_iter().for_each(|value| item(json, value)));
    }

    /// Writes the key of the next value.
    pub(crate) fn key(&mut self, key: &str) -> &mut JsonText {
        self.string(key);
        self.text.push(':');
        self.comma = false;
        self
    }

    /// Writes a number, or a word of JSON.
    pub(crate) fn raw(&mut self, value: impl Display) {
        self.separate();
        let _ = write!(self.text, "{value}");
    }

    /// Writes an integer.
    pub(crate) fn int(&mut self, value: i64) {
        if self.wide_as_text && value.unsigned_abs() > 1 << 53 {
            self.string(&value.to_string());
        } else {
            self.raw(value);
        }
    }

    /// Writes a value, or null.
    pub(crate) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut JsonText, T)) {
        match value {
            Some(value) => write(self, value),
            None => self.raw("null"),
        }
    }

    /// Writes a float, or null if it is not a finite number. Whole numbers are written without a fraction.
    pub(crate) fn float(&mut self, value: Option<f64>) {
        match value {
            Some(value) if value.fract() == 0.0 && value.abs() < 9e15 => self.raw(value as i64),
            Some(value) if value.is_finite() => self.raw(serde_json::Value::from(value)),
            _ => self.raw("null"),
        }
    }

    pub(crate) fn string(&mut self, value: &str) {
        self.raw(serde_json::Value::from(value));
    }

    /// Writes a byte string: a string if it is UTF-8, otherwise an object with base64.
    pub(crate) fn bytes(&mut self, value: &[u8]) {
        match std::str::from_utf8(value) {
            Ok(text) => self.string(text),
            Err(_) => self.object(|json| json.key("base64").string(&STANDARD.encode(value))),
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Browsers read integers up to 2^53 exactly.
    #[test]
    fn wide_integers_are_text_for_browsers() {
        for (mut json, expected) in [
            (JsonText::default(), "[9007199254740992,-9007199254740993]"),
            (JsonText::for_browser(), "[9007199254740992,\"-9007199254740993\"]"),
        ] {
            json.list([1 << 53, -(1 << 53) - 1], JsonText::int);
            assert_eq!(json.finish(), expected);
        }
    }

    #[test]
    fn values_are_separated_by_commas() {
        let mut json = JsonText::default();
        json.object(|json| {
            json.key("a").list([1, 2], |json, n| json.raw(n));
            json.key("b\n").bytes(b"\xff");
            json.key("c").list([0; 0], |json, n: i32| json.raw(n));
            json.key("d").list([Some(1.5), Some(2.0), None, Some(f64::NAN)], JsonText::float);
        });
        assert_eq!(json.finish(), r#"{"a":[1,2],"b\n":{"base64":"/w=="},"c":[],"d":[1.5,2,null,null]}"#);
    }
}
