//! Names of the values of a feature, in place of numbers.

use super::condition::{ListItem, Literal, LiteralValue, Quantity, Test};
use super::expression::Filter;
use super::lex::Op;
use super::names::nearest;
use crate::error::Result;
use std::collections::{BTreeSet, HashMap};

/// Largest number of names that an error lists.
const MAX_LISTED: usize = 8;

impl Filter {
    /// Returns the condition with names of the values of an int64 feature: where it compares the feature with
    /// a string by `==`, `!=` or `in`, it compares it with the number of that name. If two numbers have one
    /// name, the name means the first. The condition prints as before.
    ///
    /// ```
    /// use tfseek::Filter;
    /// let filter: Filter = "label in 'cat', 'dog' and id != 3".parse()?;
    /// let named = filter.with_names("label", [("cat", 0), ("dog", 1), ("horse", 2)])?;
    /// assert_eq!(named, "label in 0, 1 and id != 3".parse()?);
    /// let e = filter.with_names("label", [("Cat", 0), ("dog", 1)]).unwrap_err();
    /// assert!(e.to_string().ends_with(r#"feature "label" has no value named "cat"; the nearest name is "Cat""#));
    /// # Ok::<(), tfseek::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Filter`](crate::ErrorKind::Filter) for a string that is no name. It has the nearest name,
    /// or the first ones.
    pub fn with_names<'n>(
        &self,
        feature: &str,
        names: impl IntoIterator<Item = (&'n str, i64)>,
    ) -> Result<Filter> {
        let mut named = self.clone();
        let mut strings = Vec::new();
        for test in &mut named.tests {
            let is_value = test.operand.quantity == Quantity::Value && !test.operand.in_steps;
            if is_value && self.name(test.feature()) == feature {
                strings.extend(strings_of(&mut test.test));
            }
        }
        if strings.is_empty() {
            return Ok(named);
        }
        let mut first = Vec::new();
        let mut numbers = HashMap::new();
        for (name, number) in names {
            if first.len() < MAX_LISTED {
                first.push(name);
            }
            numbers.entry(name.as_bytes()).or_insert(number);
        }
        for literal in strings {
            let LiteralValue::Str(string) = &literal.value else { continue };
            let Some(&number) = numbers.get(&**string) else {
                let known = numbers.keys().filter_map(|name| Some(str::from_utf8(name).ok()?.into()));
                let reason = unknown(feature, string, &known.collect(), &first);
                return Err(self.error(literal.at.0, reason));
            };
            let text = number.to_string();
            let float = text.parse().unwrap_or(f32::NAN);
            literal.value = LiteralValue::Number { text: text.into(), int: Some(number), float };
        }
        Ok(named)
    }
}

/// Returns the strings that values are compared with by equality.
fn strings_of(test: &mut Test) -> Vec<&mut Literal> {
    let literals = match test {
        Test::Compare(Op::Eq | Op::Ne, literal) => vec![literal],
        Test::In(items) => items
            .iter_mut()
            .filter_map(|item| match item {
                ListItem::One(literal) => Some(literal),
                ListItem::Range { .. } => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    literals.into_iter().filter(|literal| matches!(literal.value, LiteralValue::Str(_))).collect()
}

/// Describes a string that is no name.
#[cold]
fn unknown(feature: &str, string: &[u8], names: &BTreeSet<Box<str>>, first: &[&str]) -> String {
    let near = str::from_utf8(string).ok().and_then(|name| nearest(name, names.iter().map(|name| &**name)));
    let rest = match near {
        Some(near) => format!("the nearest name is {near:?}"),
        None => {
            let listed: Vec<_> = first.iter().map(|name| format!("{name:?}")).collect();
            let more = if names.len() > first.len() { ", .." } else { "" };
            format!("the names are {}{more}", listed.join(", "))
        }
    };
    format!("feature {feature:?} has no value named {:?}; {rest}", String::from_utf8_lossy(string))
}
