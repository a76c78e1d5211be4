//! The features of records whose names match patterns.

use super::content::Content;
use crate::wildcards::matches;
use std::collections::{BTreeMap, BTreeSet};
use tfseek::filter::nearest;

/// Largest number of names that are kept.
const MAX_SEEN: usize = 4096;

/// Names of features of records, for messages about patterns without a match.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenNames(BTreeSet<String>);

impl SeenNames {
    pub(crate) fn add(&mut self, name: &str) {
        if self.0.len() < MAX_SEEN && !self.0.contains(name) {
            self.0.insert(name.to_owned());
        }
    }

    /// Returns the name that is nearest to a pattern, if one is similar to it.
    pub(crate) fn nearest(&self, pattern: &str) -> Option<&str> {
        nearest(pattern, self.0.iter().map(String::as_str))
    }
}

/// Patterns of the names of features, with the wildcards `*` and `?`.
///
/// ```
/// use tfseek::ExampleBuilder;
/// use tfseek::example::MessageKind;
/// use tfseek_tools::{Content, FeatureSelection};
///
/// let payload = ExampleBuilder::new().int64("id", [1]).int64("label", [3]).encode()?;
/// let mut content = Content::decode(&payload, MessageKind::Example)?;
/// let mut selection = FeatureSelection::new(&["lab*".to_owned(), "idd".to_owned()]);
/// selection.select(&mut content);
/// assert!(matches!(content, Content::Example(features) if features.len() == 1));
/// assert_eq!(selection.unmatched().collect::<Vec<_>>(), [("idd", Some("id"))]);
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FeatureSelection {
    /// The patterns, and whether a feature has matched.
    patterns: Vec<(String, bool)>,
    /// Added to as long as a pattern is unmatched.
    seen: SeenNames,
    /// At least one record was selected from.
    has_records: bool,
}

impl FeatureSelection {
    /// Selects the features of these names.
    pub fn new(patterns: &[String]) -> FeatureSelection {
        let patterns = patterns.iter().map(|pattern| (pattern.clone(), false)).collect();
        FeatureSelection { patterns, seen: SeenNames::default(), has_records: false }
    }

    /// Removes the other features of a record. A payload of another type has no features.
    pub fn select(&mut self, content: &mut Content<'_>) {
        self.has_records = true;
        match content {
            Content::Example(features) => self.select_in(features),
            Content::Sequence(context, lists) => {
                self.select_in(context);
                self.select_in(lists);
            }
            Content::Raw => *content = Content::Example(BTreeMap::new()),
        }
    }

    fn select_in<V>(&mut self, map: &mut BTreeMap<&str, V>) {
        for (pattern, matched) in &mut self.patterns {
            *matched = *matched || map.keys().any(|name| matches(pattern, name));
        }
        if self.patterns.iter().any(|(_, matched)| !matched) {
            map.keys().for_each(|name| self.seen.add(name));
        }
        map.retain(|name, _| self.patterns.iter().any(|(pattern, _)| matches(pattern, name)));
    }

    /// Returns the patterns that no feature has matched so far, each with the nearest of up to 4,096 names
    /// that records have had. There are none before the first record.
    pub fn unmatched(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.patterns
            .iter()
            .filter(|(_, matched)| self.has_records && !matched)
            .map(|(pattern, _)| (pattern.as_str(), self.seen.nearest(pattern)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfseek::example::MessageKind;
    use tfseek::{Feature, FeatureBuf, SequenceExampleBuilder};

    #[test]
    fn features_are_selected_and_patterns_counted() {
        let features = |names: &[&'static str]| {
            Content::Example(names.iter().map(|name| (*name, Feature::None)).collect())
        };
        let names = |content: &Content<'_>| match content {
            Content::Example(features) => features.keys().map(|&name| name.to_owned()).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let mut selection = FeatureSelection::new(&["a*".to_owned(), "b".to_owned(), "c?".to_owned()]);
        assert_eq!(selection.unmatched().count(), 0);
        let mut content = features(&["ab", "ac", "bb"]);
        selection.select(&mut content);
        assert_eq!(names(&content), ["ab", "ac"]);
        assert_eq!(selection.unmatched().collect::<Vec<_>>(), [("b", Some("ab")), ("c?", None)]);
        // Feature lists are features too.
        let steps = [FeatureBuf::Int64(vec![1])];
        let record = SequenceExampleBuilder::new()
            .int64("b", [1])
            .feature_list("cc", steps.clone())
            .feature_list("d", steps);
        let record = record.encode().unwrap();
        let mut content = Content::decode(&record, MessageKind::SequenceExample).unwrap();
        selection.select(&mut content);
        assert!(
            matches!(&content, Content::Sequence(context, lists) if context.len() == 1 && lists.len() == 1)
        );
        assert_eq!(selection.unmatched().count(), 0);
        // Names are kept no more.
        selection.select(&mut features(&["new"]));
        assert!(!selection.seen.0.contains("new"));
        let mut content = Content::Raw;
        selection.select(&mut content);
        assert_eq!(names(&content), [""; 0]);
    }
}
