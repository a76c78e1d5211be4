//! HTML text. Everything that comes from records is escaped.

use std::fmt::{self, Display, Write};
use tfseek::error::printable;

/// A page that is written from its start to its end.
#[derive(Default)]
pub(super) struct Html {
    text: String,
}

impl Html {
    /// Adds markup, which contains nothing from records.
    pub(super) fn markup(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// Adds text, escaped.
    pub(super) fn text(&mut self, text: impl Display) {
        // Writing to a string does not fail.
        let _ = write!(Escape(&mut self.text), "{text}");
    }

    /// Adds an element with text in it. `tag` may have attributes, which contain nothing from records.
    pub(super) fn element(&mut self, tag: &str, text: impl Display) {
        self.nested(tag, |html| html.text(text));
    }

    /// Adds an element with content in it.
    pub(super) fn nested(&mut self, tag: &str, content: impl FnOnce(&mut Html)) {
        let name = tag.split(' ').next().unwrap_or(tag);
        self.markup("<");
        self.markup(tag);
        self.markup(">");
        content(self);
        self.markup("</");
        self.markup(name);
        self.markup(">");
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// A writer that escapes the characters that have a meaning in HTML, in text and in attributes, and those that
/// change the direction of the text after them.
struct Escape<'a>(&'a mut String);

impl Write for Escape<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '&' => self.0.push_str("&amp;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c if c.is_ascii() => self.0.push(c),
                c => write!(self.0, "{}", printable(&*c.encode_utf8(&mut [0; 4])))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_markup_is_not() {
        let mut html = Html::default();
        html.element("td class=\"n\"", "<b a='1' b=\"2\">&\u{202e}\n");
        assert_eq!(
            html.finish(),
            "<td class=\"n\">&lt;b a=&#39;1&#39; b=&quot;2&quot;&gt;&amp;\\u{202e}\n</td>"
        );
    }
}
