//! JSON text of saved statistics.

use std::fmt::{Display, Write};

/// A writer of JSON without spaces. The keys of an object have the order in which they are written.
#[derive(Default)]
pub(crate) struct JsonText {
    text: String,
    /// A comma precedes the next value.
    comma: bool,
}

impl JsonText {
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

    /// Writes a value, or null.
    pub(crate) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut JsonText, T)) {
        match value {
            Some(value) => write(self, value),
            None => self.raw("null"),
        }
    }

    pub(crate) fn string(&mut self, value: &str) {
        self.raw(serde_json::Value::from(value));
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_by_commas() {
        let mut json = JsonText::default();
        json.object(|json| {
            json.key("a").list([1, 2], |json, n| json.raw(n));
            json.key("b\n").optional(Some("\""), JsonText::string);
            json.key("c").list([0; 0], |json, n: i32| json.raw(n));
            json.key("d").optional(None, |json, n: i32| json.raw(n));
        });
        assert_eq!(json.finish(), r#"{"a":[1,2],"b\n":"\"","c":[],"d":null}"#);
    }
}
