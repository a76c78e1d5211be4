//! Names in a condition that the first records do not have.

use super::condition::FeatureTest;
use super::expression::Filter;
use crate::error::Result;
use std::collections::BTreeSet;

/// Longest name, in bytes, whose edits are counted, because the time grows with the square.
const MAX_EDITED: usize = 256;

impl Filter {
    /// Refuses the first of `unseen`, names that none of the first records has, that is similar to one of
    /// their `keys` or equals one of their feature `lists`.
    pub(crate) fn check_names<'n>(
        &self,
        unseen: impl IntoIterator<Item = &'n str>,
        keys: &BTreeSet<Box<str>>,
        lists: &BTreeSet<Box<str>>,
    ) -> Result<()> {
        for name in unseen {
            let reason = match nearest(name, keys.iter().map(|key| &**key)) {
                _ if lists.contains(name) => "it is a feature list, and conditions test features".to_owned(),
                Some(near) => {
                    format!("the nearest name is \"{}\"{}", near.escape_debug(), of_steps(name, near))
                }
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

/// Adds to the name of a feature of steps how a condition tests it.
fn of_steps(name: &str, near: &str) -> String {
    match near.strip_prefix("steps/") {
        Some(step) if step == name => format!(", whose values `any({})` tests", near.escape_debug()),
        _ => String::new(),
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

    #[test]
    fn features_of_steps() {
        assert_eq!(of_steps("reward", "steps/reward"), ", whose values `any(steps/reward)` tests");
        assert_eq!([of_steps("rewards", "steps/reward"), of_steps("label", "image/label")], ["", ""]);
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
