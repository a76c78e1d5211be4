//! The kinds of the features of records, and whether they have one value.

use crate::error::ConvertError;
use std::collections::HashMap;
use tfseek::example::{DType, Example, Feature, FeatureList, MessageKind, SequenceExample};
use tfseek_tools::Inference;

/// Maximum number of bytes of all different keys.
const MAX_KEY_BYTES: usize = 64 << 20;

/// The features of records, as far as they decide about columns.
#[derive(Debug, Default)]
pub(super) struct ObservedFeatures {
    pub(super) records: u64,
    pub(super) features: ObservedKeys,
    pub(super) lists: ObservedKeys,
}

/// Keys in the order in which they were first found.
#[derive(Debug, Default)]
pub(super) struct ObservedKeys {
    pub(super) keys: Vec<ObservedKey>,
    numbers: HashMap<Box<str>, usize>,
    /// Numbers of the keys of the current record.
    current: Vec<usize>,
    key_bytes: usize,
}

/// One key of features or feature lists.
#[derive(Debug, Default)]
pub(super) struct ObservedKey {
    pub(super) name: Box<str>,
    /// Number of records that have it, of features with a kind.
    pub(super) present: u64,
    /// Number of features, or steps, of each kind.
    kinds: [u64; KINDS.len()],
    /// Number of features, or steps, without a kind.
    pub(super) kindless: u64,
    /// A feature with a kind has another number of values than one.
    pub(super) is_list: bool,
    /// Kind and number of values in the current record, whose last entry of a key counts.
    pending: Option<(Option<DType>, usize)>,
}

const KINDS: [DType; 3] = [DType::Bytes, DType::Float32, DType::Int64];

impl ObservedFeatures {
    /// Adds an Example.
    pub(super) fn add_example(&mut self, payload: &[u8]) -> Result<(), ConvertError> {
        self.records += 1;
        self.features.add(Example::new(payload))?;
        Ok(MessageKind::Example.check(payload)?)
    }

    /// Adds a SequenceExample.
    pub(super) fn add_sequence(&mut self, payload: &[u8]) -> Result<(), ConvertError> {
        self.records += 1;
        let record = SequenceExample::new(payload);
        self.features.add(record.context())?;
        // The last list of a key counts.
        let mut lists: Vec<(usize, FeatureList<'_>)> = Vec::new();
        let mut next = 0;
        for entry in record.feature_lists() {
            let (name, list) = entry?;
            let number = self.lists.number(name, next)?;
            next = number + 1;
            lists.retain(|(other, _)| *other != number);
            lists.push((number, list));
        }
        for (number, list) in lists {
            let Some(key) = self.lists.keys.get_mut(number) else { continue };
            key.present += 1;
            list.iter().for_each(|step| key.count(step.kind(), step.len()));
        }
        Ok(MessageKind::SequenceExample.check(payload)?)
    }

    /// Adds what was found in other records, after these.
    pub(super) fn append(&mut self, other: ObservedFeatures) -> Result<(), ConvertError> {
        self.records += other.records;
        self.features.append(other.features)?;
        self.lists.append(other.lists)
    }
}

impl ObservedKeys {
    fn add(&mut self, example: Example<'_>) -> Result<(), ConvertError> {
        let mut next = 0;
        self.current.clear();
        for entry in example.entries() {
            let (name, feature): (&str, Feature<'_>) = entry?;
            let number = self.number(name, next)?;
            next = number + 1;
            let Some(key) = self.keys.get_mut(number) else { continue };
            if key.pending.replace((feature.kind(), feature.len())).is_none() {
                self.current.push(number);
            }
        }
        for &number in &self.current {
            let Some(key) = self.keys.get_mut(number) else { continue };
            if let Some((kind, len)) = key.pending.take() {
                key.present += u64::from(kind.is_some());
                key.count(kind, len);
            }
        }
        Ok(())
    }

    /// Returns the number of a key. Most records have their keys in one order, so the one after the last is
    /// tried first.
    fn number(&mut self, name: &str, next: usize) -> Result<usize, ConvertError> {
        if self.keys.get(next).is_some_and(|key| *key.name == *name) {
            return Ok(next);
        }
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        let number = self.keys.len();
        self.key_bytes += name.len();
        if number >= Inference::MAX_KEYS || self.key_bytes > MAX_KEY_BYTES {
            let reason = format!(
                "expected at most {} different features with keys of at most {MAX_KEY_BYTES} bytes, found more",
                Inference::MAX_KEYS
            );
            return Err(ConvertError::Records(reason));
        }
        self.numbers.insert(name.into(), number);
        self.keys.push(ObservedKey { name: name.into(), ..ObservedKey::default() });
        Ok(number)
    }

    fn append(&mut self, other: ObservedKeys) -> Result<(), ConvertError> {
        for (next, key) in other.keys.into_iter().enumerate() {
            let number = self.number(&key.name, next)?;
            let Some(to) = self.keys.get_mut(number) else { continue };
            to.present += key.present;
            to.kindless += key.kindless;
            to.is_list |= key.is_list;
            for (to, from) in to.kinds.iter_mut().zip(key.kinds) {
                *to += from;
            }
        }
        Ok(())
    }
}

impl ObservedKey {
    fn count(&mut self, kind: Option<DType>, len: usize) {
        let Some(kind) = kind else {
            self.kindless += 1;
            return;
        };
        for (count, _) in self.kinds.iter_mut().zip(KINDS).filter(|(_, other)| *other == kind) {
            *count += 1;
        }
        self.is_list |= len != 1;
    }

    /// Returns the kinds that were found, and the number of features or steps of each.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (DType, u64)> {
        KINDS.into_iter().zip(self.kinds).filter(|(_, count)| *count > 0)
    }
}
