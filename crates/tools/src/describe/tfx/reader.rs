//! Values of the fields of a text, and messages that several messages have.

use super::text::{TextField, TextValue, error};
use crate::error::ToolsError;

/// Reads fields, with errors at their place.
pub(super) struct FieldReader<'t> {
    pub(super) text: &'t [u8],
}

impl FieldReader<'_> {
    pub(super) fn error(&self, field: &TextField, reason: String) -> ToolsError {
        error(self.text, field.at, reason)
    }

    pub(super) fn unknown(&self, field: &TextField, message: &str) -> ToolsError {
        self.error(field, format!("expected a field of {message}, found `{}`", field.name))
    }

    pub(super) fn expected(&self, field: &TextField, what: &str) -> ToolsError {
        let found = match &field.value {
            TextValue::Word(word) => format!("`{word}`"),
            TextValue::Str(_) => "a string".to_owned(),
            TextValue::Message(_) => "a message".to_owned(),
        };
        self.error(field, format!("`{}`: expected {what}, found {found}", field.name))
    }

    pub(super) fn message<'m>(&self, field: &'m TextField) -> Result<&'m [TextField], ToolsError> {
        match &field.value {
            TextValue::Message(message) => Ok(message),
            _ => Err(self.expected(field, "a message")),
        }
    }

    pub(super) fn bytes(&self, field: &TextField) -> Result<Vec<u8>, ToolsError> {
        match &field.value {
            TextValue::Str(bytes) => Ok(bytes.to_vec()),
            _ => Err(self.expected(field, "a string")),
        }
    }

    pub(super) fn string(&self, field: &TextField) -> Result<String, ToolsError> {
        String::from_utf8(self.bytes(field)?).map_err(|_| self.error(field, "expected UTF-8".into()))
    }

    pub(super) fn word<'m>(&self, field: &'m TextField, what: &str) -> Result<&'m str, ToolsError> {
        match &field.value {
            TextValue::Word(word) => Ok(word),
            _ => Err(self.expected(field, what)),
        }
    }

    pub(super) fn int(&self, field: &TextField) -> Result<i64, ToolsError> {
        let what = "a 64-bit integer";
        let word = self.word(field, what)?;
        let (minus, digits) = word.strip_prefix('-').map_or((false, word), |rest| (true, rest));
        let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => i128::from_str_radix(hex, 16),
            None if digits.len() > 1 && digits.starts_with('0') => i128::from_str_radix(digits, 8),
            None => digits.parse(),
        };
        let value = value.ok().map(|value| if minus { -value } else { value });
        value.and_then(|value| i64::try_from(value).ok()).ok_or_else(|| self.expected(field, what))
    }

    pub(super) fn count(&self, field: &TextField) -> Result<u64, ToolsError> {
        u64::try_from(self.int(field)?).map_err(|_| self.expected(field, "a number of 0 or more"))
    }

    pub(super) fn float(&self, field: &TextField) -> Result<f64, ToolsError> {
        let word = self.word(field, "a number")?;
        let lower = word.to_ascii_lowercase();
        let number = match lower.strip_suffix('f') {
            Some(rest) if !lower.contains("inf") => rest,
            _ => &lower,
        };
        number.parse().map_err(|_| self.expected(field, "a number"))
    }

    pub(super) fn bool(&self, field: &TextField) -> Result<bool, ToolsError> {
        match self.word(field, "true or false")? {
            "true" | "True" | "t" | "1" => Ok(true),
            "false" | "False" | "f" | "0" => Ok(false),
            _ => Err(self.expected(field, "true or false")),
        }
    }

    /// Returns true for stages in which a feature is not checked.
    pub(super) fn is_ignored(&self, field: &TextField) -> Result<bool, ToolsError> {
        match self.word(field, "a lifecycle stage")? {
            "PLANNED" | "ALPHA" | "DEPRECATED" | "DEBUG_ONLY" | "DISABLED" | "1" | "2" | "5" | "6" | "7" => {
                Ok(true)
            }
            "UNKNOWN_STAGE" | "BETA" | "PRODUCTION" | "VALIDATION_DERIVED" | "0" | "3" | "4" | "9" => {
                Ok(false)
            }
            _ => Err(self.expected(field, "a lifecycle stage")),
        }
    }

    /// Reads `min` and `max` of a message.
    pub(super) fn range(&self, field: &TextField, of: &str) -> Result<(u64, Option<u64>), ToolsError> {
        let mut min = 0;
        let mut max = None;
        for field in self.message(field)? {
            match &*field.name {
                "min" => min = self.count(field)?,
                // TFDV takes 0 as no limit.
                "max" => max = Some(self.count(field)?).filter(|&max| max > 0),
                _ => return Err(self.unknown(field, of)),
            }
        }
        Ok((min, max))
    }

    /// Reads the number `name` of a message that has no other fields.
    pub(super) fn only_number(
        &self,
        field: &TextField,
        name: &str,
        of: &str,
    ) -> Result<Option<f64>, ToolsError> {
        let mut number = None;
        for field in self.message(field)? {
            if &*field.name != name {
                return Err(self.unknown(field, of));
            }
            number = Some(self.float(field)?);
        }
        Ok(number)
    }
}
