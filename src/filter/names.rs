//! Names in a condition that the first records do not have.

use super::condition::FeatureTest;
use super::expression::Filter;
use crate::error::Result;
use std::collections::BTreeSet;

impl Filter {
    /// Refuses the first of `unseen`, names that none of the first records has, that is similar to one of their `keys` or equals one of
    /// their feature `lists`.
    pub(crate) fn check_names<'n>(
        &self,
        unseen: impl IntoIterator<Item = &'n str>,
        keys: &BTreeSet<Box<str>>,
        lists: &BTreeSet<Box<str>>,
    ) -> Result<()> {
        for name in unseen {
            let reason = match nearest(name, keys) {
                _ if lists.contains(name) => "it is a feature list, and conditions test features".to_owned(),
                Some(near) => format!("the nearest name is \"{}\"", near.escape_debug()),
                None => continue,
            };
            let mut operands = self.tests().iter().flat_map(FeatureTest::operands);
            let at =
                operands.find(|operand| self.name(operand.feature) == name).map_or(0, |found| found.at.0);
            let name = name.escape_debug();
            return Err(
                self.error(at, format!("none of the first records has a feature \"{name}\"; {reason}"))
            );
        }
        Ok(())
    }
}

/// Returns the nearest key: one that differs only in case, has the same last part (`image/class/label` for `label`), or is a few
/// edits away.
pub(crate) fn nearest(feature: &str, keys: &BTreeSet<Box<str>>) -> Option<Box<str>> {
    let requested = feature.to_lowercase();
    let last = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
    let rank = |key: &str| {
        let key = key.to_lowercase();
        if key == requested {
            return Some((0, 0));
        }
        if last(&key) == last(&requested) {
            return Some((1, key.chars().count()));
        }
        let edits = strsim::osa_distance(&key, &requested);
        (edits <= (requested.chars().count() / 3).max(1)).then_some((2, edits))
    };
    let ranked = keys.iter().filter_map(|key| Some((rank(key)?, key)));
    ranked.min().map(|(_, key)| key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_key() {
        let keys = ["image/class/label", "image/class/text", "image/encoded", "Label", "tokens", "id"];
        let keys: BTreeSet<Box<str>> = keys.into_iter().map(Box::from).collect();
        for (feature, want) in [
            ("label", Some("Label")),
            ("text", Some("image/class/text")),
            ("image/tokens", Some("tokens")),
            ("imgae/encoded", Some("image/encoded")),
            ("IMAGE/ENCODED", Some("image/encoded")),
            ("token", Some("tokens")),
            ("ids", Some("id")),
            ("nope", None),
            ("", None),
        ] {
            assert_eq!(nearest(feature, &keys).as_deref(), want, "{feature}");
        }
        assert_eq!(nearest("label", &BTreeSet::new()), None);
    }
}
