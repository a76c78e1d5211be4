//! Names in a condition that the first records do not have.

use super::condition::{FeatureTest, Operand};
use super::expression::{Filter, list_key};
use crate::error::{Error, Result};
use crate::example::SequenceExample;
use std::collections::{BTreeMap, BTreeSet};

/// Longest name, in bytes, whose edits are counted, because the time grows with the square.
const MAX_EDITED: usize = 256;
/// Largest number of names that are collected. With more of them, an error has fewer names to choose from.
const MAX_NAMES: usize = 4096;
/// Largest number of names that an error lists.
const MAX_LISTED: usize = 8;

/// The names of the first records, which show that a name is misspelt.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstNames {
    /// The features, and true for those that had several values.
    features: BTreeMap<Box<str>, bool>,
    lists: BTreeSet<Box<str>>,
}

impl FirstNames {
    /// Adds the names of a record, up to its first damage.
    #[cold]
    pub(crate) fn add(&mut self, payload: &[u8]) {
        let record = SequenceExample::new(payload);
        for (name, feature) in record.context().entries().map_while(Result::ok) {
            self.add_feature(name, feature.len() > 1);
        }
        record.feature_lists().map_while(Result::ok).for_each(|(name, _)| self.add_list(name));
    }

    fn add_feature(&mut self, name: &str, several: bool) {
        if let Some(known) = self.features.get_mut(name) {
            *known |= several;
        } else if self.features.len() < MAX_NAMES {
            self.features.insert(name.into(), several);
        }
    }

    fn add_list(&mut self, name: &str) {
        if self.lists.len() < MAX_NAMES && !self.lists.contains(name) {
            self.lists.insert(name.into());
        }
    }

    /// Adds the names of other records.
    pub(crate) fn merge(&mut self, other: &FirstNames) {
        other.features.iter().for_each(|(name, several)| self.add_feature(name, *several));
        other.lists.iter().for_each(|name| self.add_list(name));
    }

    /// Returns true if a feature has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.features.contains_key(name)
    }

    /// Returns true if a feature list has this name.
    pub(crate) fn has_list(&self, name: &str) -> bool {
        self.lists.contains(name)
    }

    /// Returns the feature that a misspelt name is nearest to. True if the name is the last part of it, and
    /// it had several values: a condition tests them with `any`.
    pub(crate) fn nearest(&self, name: &str) -> Option<(&str, bool)> {
        let near = nearest(name, self.features.keys().map(|key| &**key))?;
        let is_last = near.rsplit_once('/').is_some_and(|(_, last)| last == name);
        Some((near, is_last && self.features.get(near).is_some_and(|several| *several)))
    }

    /// Returns the feature list that a misspelt name is nearest to.
    fn nearest_list(&self, name: &str) -> Option<&str> {
        nearest(name, self.lists.iter().map(|key| &**key))
    }

    /// Returns some of the features, for an error.
    pub(crate) fn some(&self) -> Box<[Box<str>]> {
        self.features.keys().take(MAX_LISTED).cloned().collect()
    }
}

impl Filter {
    /// Refuses the first of `unseen`, names that none of the first records has, that is similar to one of
    /// their features or equals one of their feature lists. Likewise of `unseen_lists`, which are names of
    /// feature lists in this condition.
    pub(crate) fn check_names<'n>(
        &self,
        unseen: impl IntoIterator<Item = &'n str>,
        unseen_lists: impl IntoIterator<Item = &'n str>,
        first: &FirstNames,
    ) -> Result<()> {
        let is_near = |name: &&str| {
            let key = list_key(name);
            first.nearest_list(key).is_some() || first.has(key)
        };
        if let Some(list) = unseen_lists.into_iter().find(is_near) {
            return Err(self.unknown_list(list, "none of the first records", first));
        }
        for name in unseen {
            let reason = match first.nearest(name) {
                _ if first.has_list(name) => {
                    let name = name.escape_debug();
                    format!("it is a feature list, whose steps `any(steps({name}))` tests")
                }
                Some((near, several)) => {
                    let near = near.escape_debug();
                    let test =
                        if several { format!(", whose values `any({near})` tests") } else { String::new() };
                    format!("the nearest name is \"{near}\"{test}")
                }
                None => continue,
            };
            let shown = name.escape_debug();
            let reason = format!("none of the first records has a feature \"{shown}\"; {reason}");
            return Err(self.error(self.place(name, false), reason));
        }
        Ok(())
    }

    /// Returns the error of a feature list, by its name in the condition, that these records lack.
    #[cold]
    pub(crate) fn unknown_list(&self, name: &str, records: &str, first: &FirstNames) -> Error {
        let key = list_key(name);
        let reason = match first.nearest_list(key) {
            Some(near) => format!("the nearest name is \"{}\"", near.escape_debug()),
            None if first.has(key) => "it is a feature, which its name without `steps` tests".to_owned(),
            None if first.lists.is_empty() => "the first records have no feature lists".to_owned(),
            None => {
                let lists =
                    first.lists.iter().take(MAX_LISTED).map(|list| format!("\"{}\"", list.escape_debug()));
                format!("the first records have {}", lists.collect::<Vec<_>>().join(", "))
            }
        };
        let shown = key.escape_debug();
        self.error(self.place(name, true), format!("{records} has a feature list \"{shown}\"; {reason}"))
            .feature(key.as_bytes())
    }

    /// Returns the byte offset of the first occurrence of a name.
    fn place(&self, name: &str, in_steps: bool) -> usize {
        let mut operands = self.tests.iter().flat_map(FeatureTest::operands);
        let is = |operand: &&Operand| operand.in_steps == in_steps && self.name(operand.feature) == name;
        operands.find(is).map_or(0, |found| found.at.0)
    }
}

/// Returns the name that a misspelt one is nearest to: one that differs only in case, has the same last part
/// (`image/class/label` for `label`), or is a few edits away.
///
/// ```
/// use tfseek::filter::nearest;
/// assert_eq!(nearest("lable", ["image", "label"]), Some("label"));
/// assert_eq!(nearest("no such name", ["image", "label"]), None);
/// ```
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let requested = name.to_lowercase();
    let last = |key: &str| key.rsplit_once('/').map_or(key, |(_, last)| last).to_owned();
    let rank = |key: &str| {
        let key = key.to_lowercase();
        if key == requested {
            return Some((0, 0));
        }
        let is_short = key.len().max(requested.len()) <= MAX_EDITED;
        let edits = if is_short { strsim::osa_distance(&key, &requested) } else { usize::MAX };
        if last(&key) == last(&requested) {
            return Some((1, edits));
        }
        (edits <= (requested.chars().count() / 3).max(1)).then_some((2, edits))
    };
    let ranked = names.into_iter().filter_map(|key| Some((rank(key)?, key)));
    ranked.min().map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::ExampleBuilder;

    #[test]
    fn a_feature_of_several_values_is_tested_with_any() {
        let mut first = FirstNames::default();
        let example = ExampleBuilder::new().float("items/price", [1.0, 2.0]).int64("image/label", [3]);
        first.add(&example.encode().unwrap());
        assert_eq!(first.nearest("price"), Some(("items/price", true)));
        assert_eq!(first.nearest("item/price"), Some(("items/price", false)));
        assert_eq!(first.nearest("label"), Some(("image/label", false)));
        let filter: Filter = "price > 1".parse().unwrap();
        let e = filter.check_names(["price"], [], &first).unwrap_err().to_string();
        assert!(
            e.contains("the nearest name is \"items/price\", whose values `any(items/price)` tests"),
            "{e}"
        );
    }

    #[test]
    fn nearest_key() {
        let keys = ["image/class/label", "image/class/text", "image/encoded", "Label", "tokens", "id"];
        for (feature, want) in [
            ("label", Some("Label")),
            ("text", Some("image/class/text")),
            ("image/tokens", Some("tokens")),
            ("imgae/encoded", Some("image/encoded")),
            ("imgae/class/id", Some("id")),
            ("image/clas/text", Some("image/class/text")),
            ("IMAGE/ENCODED", Some("image/encoded")),
            ("token", Some("tokens")),
            ("ids", Some("id")),
            ("nope", None),
            ("", None),
        ] {
            assert_eq!(nearest(feature, keys), want, "{feature}");
        }
        assert_eq!(nearest("label", []), None);
    }
}
