//! `EpisodeKeys`: the features of episodes, and how their values are divided among steps.

use std::sync::Arc;
use tfseek::error::{Error, ErrorKind, Result};
use tfseek::example::DType;

/// Maximum number of features of an episode.
const MAX_KEYS: usize = 4096;
/// Maximum number of features with the lengths of another one.
const MAX_LEVELS: usize = 255;
/// Maximum bytes of a name.
const MAX_NAME: usize = 1 << 16;

/// A stored feature of the records of a data set whose records are episodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpisodeKey {
    /// Name of the feature in records.
    pub name: Box<str>,
    /// Kind of its list.
    pub kind: DType,
    /// The division of its values among steps.
    pub values: EpisodeValues,
}

/// The division of a feature's values among the steps of an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EpisodeValues {
    /// The values belong to the episode.
    Episode,
    /// Each step has this number of values.
    Steps {
        /// Number of values.
        width: u32,
    },
    /// Each step has as many items as a number in another feature states.
    Divided {
        /// The features with the numbers of items, from the outermost: the first has a number for each step,
        /// the next one a number for each of these items, and so on.
        lengths: Vec<Box<str>>,
        /// Number of values of each innermost item.
        width: u32,
    },
}

/// The stored features of episodes, sorted by name. A clone shares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpisodeKeys(Arc<[ResolvedKey]>);

/// A feature whose lengths are numbers of features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedKey {
    pub(crate) name: Box<str>,
    pub(crate) kind: DType,
    pub(crate) values: ResolvedValues,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedValues {
    Episode,
    Steps { width: u32 },
    Divided { lengths: Box<[u16]>, width: u32 },
}

impl ResolvedKey {
    /// Returns the number of values of a step, if it tells the number of steps of an episode.
    pub(crate) fn counts(&self) -> Option<u32> {
        match self.values {
            ResolvedValues::Steps { width } if width > 0 => Some(width),
            _ => None,
        }
    }
}

fn refused<T>(reason: String) -> Result<T> {
    Err(ErrorKind::Spec(reason.into()).into())
}

/// Returns the error of values that are not as they must be.
#[cold]
pub(crate) fn wrong(reason: impl Into<Box<str>>) -> Error {
    ErrorKind::Value { reason: reason.into() }.into()
}

impl EpisodeKeys {
    /// Sorts and checks features.
    ///
    /// # Errors
    /// [`ErrorKind::Spec`] if no feature has a known number of values for each step, for two features of one
    /// name, for lengths that are no int64 feature of steps or more than 255, and for more than 4096
    /// features.
    pub fn new(keys: impl IntoIterator<Item = EpisodeKey>) -> Result<EpisodeKeys> {
        let mut keys: Vec<EpisodeKey> = keys.into_iter().collect();
        keys.sort_by(|a, b| a.name.cmp(&b.name));
        if keys.len() > MAX_KEYS {
            return refused(format!(
                "expected at most {MAX_KEYS} features of an episode, found {}",
                keys.len()
            ));
        }
        let mut pairs = keys.iter().zip(keys.iter().skip(1));
        if let Some((EpisodeKey { name, .. }, _)) = pairs.find(|(a, b)| a.name == b.name) {
            return refused(format!("expected one feature {name:?} of an episode, found two"));
        }
        let number = |name: &str| {
            let found = keys.binary_search_by(|key| (*key.name).cmp(name)).ok()?;
            let key = keys.get(found).filter(|key| key.kind == DType::Int64)?;
            (!matches!(key.values, EpisodeValues::Episode)).then_some(found as u16)
        };
        let resolve = |key: &EpisodeKey| {
            let EpisodeKey { name, kind, values } = key;
            if name.len() > MAX_NAME {
                return refused(format!("expected names of at most {MAX_NAME} bytes, found {}", name.len()));
            }
            let values = match values {
                EpisodeValues::Episode => ResolvedValues::Episode,
                EpisodeValues::Steps { width } => ResolvedValues::Steps { width: *width },
                EpisodeValues::Divided { lengths, width } => {
                    let found: Option<Box<[u16]>> = lengths.iter().map(|name| number(name)).collect();
                    let Some(found) = found.filter(|found| !found.is_empty()) else {
                        return refused(format!(
                            "feature {name:?}: expected int64 features of steps as its lengths, found {lengths:?}"
                        ));
                    };
                    if found.len() > MAX_LEVELS {
                        let found = found.len();
                        return refused(format!(
                            "feature {name:?}: expected at most {MAX_LEVELS} features as its lengths, found {found}"
                        ));
                    }
                    ResolvedValues::Divided { lengths: found, width: *width }
                }
            };
            Ok(ResolvedKey { name: name.clone(), kind: *kind, values })
        };
        let resolved = keys.iter().map(resolve).collect::<Result<Arc<[_]>>>()?;
        if !resolved.iter().any(|key| key.counts().is_some()) {
            return refused(
                "expected a feature with a known number of values for each step, found none".to_owned(),
            );
        }
        Ok(EpisodeKeys(resolved))
    }

    /// Returns the number of features.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn all(&self) -> &[ResolvedKey] {
        &self.0
    }

    /// Returns the number of a feature.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.0.binary_search_by(|key| key.name.as_bytes().cmp(name)).ok()
    }

    /// Encodes the features for a file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = (self.0.len() as u32).to_le_bytes().to_vec();
        for key in &*self.0 {
            let (role, width, lengths): (u8, u32, &[u16]) = match &key.values {
                ResolvedValues::Episode => (0, 0, &[]),
                ResolvedValues::Steps { width } => (1, *width, &[]),
                ResolvedValues::Divided { lengths, width } => (2, *width, lengths),
            };
            let kind = match key.kind {
                DType::Bytes => 1,
                DType::Float32 => 2,
                DType::Int64 => 3,
            };
            out.extend([kind, role, lengths.len() as u8, 0]);
            out.extend(width.to_le_bytes());
            out.extend((key.name.len() as u32).to_le_bytes());
            out.extend(lengths.iter().flat_map(|k| k.to_le_bytes()));
            out.extend(key.name.as_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, kind: DType, values: EpisodeValues) -> EpisodeKey {
        EpisodeKey { name: name.into(), kind, values }
    }

    #[test]
    fn features_are_sorted_and_checked() {
        let steps = |width| EpisodeValues::Steps { width };
        let divided = |name: &str| EpisodeValues::Divided { lengths: vec![name.into()], width: 1 };
        let keys = EpisodeKeys::new([
            key("b", DType::Float32, divided("a")),
            key("a", DType::Int64, steps(1)),
            key("c", DType::Bytes, EpisodeValues::Episode),
        ])
        .unwrap();
        assert_eq!(keys.all().iter().map(|key| &*key.name).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!((keys.find(b"b"), keys.find(b"d")), (Some(1), None));
        for (bad, text) in [
            (vec![key("a", DType::Int64, steps(1)), key("a", DType::Int64, steps(1))], "found two"),
            (vec![key("a", DType::Int64, steps(0))], "found none"),
            (vec![key("a", DType::Int64, steps(1)), key("b", DType::Float32, divided("c"))], "its lengths"),
            (vec![key("a", DType::Float32, steps(1)), key("b", DType::Float32, divided("a"))], "its lengths"),
        ] {
            let e = EpisodeKeys::new(bad).unwrap_err().to_string();
            assert!(e.contains(text), "{e}");
        }
    }
}
