//! Errors of conditions.

use std::fmt;

/// The reason why a condition is refused: it cannot be parsed, or it does not fit the records.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Text of the condition.
    pub text: Box<str>,
    /// Byte offset in the text of the part that is refused.
    pub offset: usize,
    /// Reason, with the expected and the found value.
    pub reason: Box<str>,
}

/// Largest number of characters that an excerpt has on each side of the offset.
const AROUND: usize = 50;

impl FilterError {
    /// Returns the part of the text around the offset, and a second line with a caret under the offset. Front
    /// ends print it after the message.
    ///
    /// ```
    /// use tfseek::{ErrorKind, Filter};
    /// let e = "label == 3 and name = 'cat'".parse::<Filter>().unwrap_err();
    /// let ErrorKind::Filter(e) = e.kind() else { unreachable!() };
    /// assert_eq!(e.excerpt(), "label == 3 and name = 'cat'\n                    ^");
    /// ```
    pub fn excerpt(&self) -> String {
        let (before, after) = self.text.split_at_checked(self.offset).unwrap_or((&self.text, ""));
        let line = before.rsplit_once('\n').map_or(before, |(_, line)| line);
        let rest = after.split_once('\n').map_or(after, |(rest, _)| rest);
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let skipped = line.chars().count().saturating_sub(AROUND);
        let head: String = line.chars().skip(skipped).map(plain).collect();
        let tail: String = rest.chars().take(AROUND).map(plain).collect();
        let start = if skipped > 0 { ".." } else { "" };
        let end = if rest.chars().nth(AROUND).is_some() { ".." } else { "" };
        let column = " ".repeat(start.len() + head.chars().count());
        format!("{start}{head}{tail}{end}\n{column}^")
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, offset: usize) -> String {
        FilterError { text: text.into(), offset, reason: "".into() }.excerpt()
    }

    #[test]
    fn an_excerpt_is_one_line_with_a_caret() {
        assert_eq!(excerpt("", 0), "\n^");
        assert_eq!(excerpt("a == b", 5), "a == b\n     ^");
        assert_eq!(excerpt("é == b", 6), "é == b\n     ^");
        assert_eq!(excerpt("a == 1\nor\tb = 2\nor c", 12), "or b = 2\n     ^");
        // Out of range, and inside a character: the caret is at the end.
        assert_eq!(excerpt("é", 9), "é\n ^");
        assert_eq!(excerpt("é", 1), "é\n ^");
        let long = excerpt(&"x".repeat(1000), 500);
        let (text, caret) = long.split_once('\n').unwrap();
        assert_eq!(text, format!("..{}..", "x".repeat(2 * AROUND)));
        assert_eq!(caret.len(), AROUND + 3);
    }
}
