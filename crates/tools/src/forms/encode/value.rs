//! Values in the text of a record, which serde_json has checked and divides here: members of objects,
//! elements of lists, and scalars.
//!
//! The parts are pieces of the text, so numbers keep their digits, and errors have a place. Keys keep their
//! order, and one that is given twice is an error.

use crate::memory::{ensure, push};
use serde::Deserializer as _;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeSet, TryReserveError};
use std::fmt;

/// A value in the text of a record.
#[derive(Clone, Copy)]
pub(super) struct JsonValue<'a> {
    /// Without the space around it.
    text: &'a str,
}

/// A member of an object.
pub(super) struct Member<'a> {
    pub(super) key: Cow<'a, str>,
    /// The key in quotes, for its place.
    key_text: JsonValue<'a>,
    pub(super) value: JsonValue<'a>,
}

/// A scalar, or that a value is a list or an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Null,
    Bool(bool),
    /// The digits as written.
    Number(&'a str),
    Text(Cow<'a, str>),
    List,
    Object,
}

/// The reason why a value, or its key, is not the expected one.
#[derive(Debug)]
pub(super) struct ValueError<'a> {
    /// Part of the text of the record.
    pub(super) at: &'a str,
    /// Name of the feature, if the error concerns one.
    pub(super) feature: Option<String>,
    /// The expected value and the one that was found.
    pub(super) reason: String,
}

impl<'a> ValueError<'a> {
    /// Adds the name of the feature.
    pub(super) fn feature(mut self, name: &str) -> ValueError<'a> {
        self.feature.get_or_insert_with(|| name.to_owned());
        self
    }
}

impl<'a> JsonValue<'a> {
    pub(super) fn new(text: &'a str) -> JsonValue<'a> {
        JsonValue { text }
    }

    /// Returns an error with the place of this value.
    pub(super) fn error(self, reason: impl Into<String>) -> ValueError<'a> {
        ValueError { at: self.text, feature: None, reason: reason.into() }
    }

    /// Returns the error that another value was expected.
    pub(super) fn expected(self, what: &str) -> ValueError<'a> {
        match self.token() {
            Ok(token) => self.error(format!("expected {what}, found {token}")),
            Err(e) => e,
        }
    }

    /// Returns the error of a value that there is not enough memory for.
    #[cold]
    pub(super) fn no_memory(self) -> ValueError<'a> {
        self.error("not enough memory")
    }

    pub(super) fn token(self) -> Result<Token<'a>, ValueError<'a>> {
        Ok(match self.text.as_bytes().first() {
            Some(b'"') => Token::Text(self.string()?),
            Some(b'[') => Token::List,
            Some(b'{') => Token::Object,
            Some(b'n') => Token::Null,
            Some(b't') => Token::Bool(true),
            Some(b'f') => Token::Bool(false),
            _ => Token::Number(self.text),
        })
    }

    pub(super) fn is_null(self) -> bool {
        self.text.starts_with('n')
    }

    pub(super) fn is_list(self) -> bool {
        self.text.starts_with('[')
    }

    pub(super) fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    /// Decodes a string, which borrows from the text if it has no escapes.
    fn string(self) -> Result<Cow<'a, str>, ValueError<'a>> {
        let decoded = if self.text.contains('\\') {
            // serde_json decodes to a buffer that grows, and copies it.
            ensure(self.text.len().saturating_mul(3)).map_err(|_| self.no_memory())?;
            serde_json::from_str(self.text).map(Cow::Owned)
        } else {
            serde_json::from_str(self.text).map(Cow::Borrowed)
        };
        // The text has been checked but for this.
        decoded.map_err(|_| self.error("expected characters, found half of a surrogate pair"))
    }

    /// Returns the members of an object, in their order. Other values, and a key that is given twice, are
    /// errors.
    pub(super) fn members(self) -> Result<Vec<Member<'a>>, ValueError<'a>> {
        if !self.is_object() {
            return Err(self.expected("an object"));
        }
        let pairs = Deserializer::from_str(self.text).deserialize_map(Pairs);
        let pairs = pairs.map_err(|e| self.error(format!("expected an object, found {e}")))?;
        let pairs = pairs.map_err(|_| self.no_memory())?;
        let mut members = Vec::new();
        members.try_reserve_exact(pairs.len()).map_err(|_| self.no_memory())?;
        for (key, value) in pairs {
            let key_text = JsonValue::new(key.get());
            members.push(Member { key: key_text.string()?, key_text, value: JsonValue::new(value.get()) });
        }
        let mut keys = BTreeSet::new();
        match members.iter().find(|member| !keys.insert(&*member.key)) {
            Some(again) => Err(again.error(format!("the key {} is given twice", again.name()))),
            None => Ok(members),
        }
    }

    /// Calls a function with each element of a list, until it fails, and returns its results. Other values
    /// are errors: a list of `what` was expected.
    pub(super) fn elements<T>(
        self,
        what: &str,
        each: impl FnMut(JsonValue<'a>) -> Result<T, ValueError<'a>>,
    ) -> Result<Vec<T>, ValueError<'a>> {
        if !self.is_list() {
            return Err(self.expected(what));
        }
        let visited = Deserializer::from_str(self.text).deserialize_seq(Elements(each));
        visited.unwrap_or_else(|e| Err(self.error(format!("expected {what}, found {e}"))))
    }
}

impl<'a> Member<'a> {
    /// Returns an error with the place of the key.
    pub(super) fn error(&self, reason: impl Into<String>) -> ValueError<'a> {
        self.key_text.error(reason)
    }

    /// Returns the error that another key was expected, or none.
    pub(super) fn unexpected(&self, what: &str) -> ValueError<'a> {
        self.error(format!("expected {what}, found the key {}", self.name()))
    }

    /// Returns the key as a part of messages.
    pub(super) fn name(&self) -> Token<'_> {
        Token::Text(Cow::Borrowed(&self.key))
    }
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Result<Vec<(&'de RawValue, &'de RawValue)>, TryReserveError>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Ok(Vec::new());
        // The rest of an object must be read after an error too, else serde_json returns its own.
        while let Some(pair) = map.next_entry()? {
            if let Ok(all) = &mut pairs
                && let Err(e) = push(all, pair)
            {
                pairs = Err(e);
            }
        }
        Ok(pairs)
    }
}

struct Elements<F>(F);

impl<'de, T, F: FnMut(JsonValue<'de>) -> Result<T, ValueError<'de>>> Visitor<'de> for Elements<F> {
    type Value = Result<Vec<T>, ValueError<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut results = Ok(Vec::new());
        // The rest of a list must be read after an error too, else serde_json returns its own.
        while let Some(element) = list.next_element::<&RawValue>()? {
            if let Ok(all) = &mut results {
                match (self.0)(JsonValue::new(element.get())) {
                    Ok(result) => all.push(result),
                    Err(e) => results = Err(e),
                }
            }
        }
        Ok(results)
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX: usize = 40;
        let cut = |text: &str| match text.chars().nth(MAX) {
            Some(_) => (text.chars().take(MAX).collect(), ".."),
            None => (text.to_owned(), ""),
        };
        match self {
            Token::Null => f.write_str("null"),
            Token::Bool(value) => value.fmt(f),
            Token::Number(digits) => {
                let (digits, more) = cut(digits);
                write!(f, "{digits}{more}")
            }
            Token::Text(text) => {
                let (text, more) = cut(text);
                write!(f, "\"{}\"{more}", text.escape_debug())
            }
            Token::List => f.write_str("a list"),
            Token::Object => f.write_str("an object"),
        }
    }
}
