//! New payloads with some of the features.

use crate::error::{OptionsReason, ToolsError};
use crate::forms::SeenNames;
use crate::wildcards::matches;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tfseek::example::MessageKind;
use tfseek::{ExampleBuf, Record, Result, SequenceExampleBuf};

/// A selection of features, and the patterns that have matched one.
pub(super) struct Rewrite {
    keep: Vec<(String, AtomicBool)>,
    drop: Vec<(String, AtomicBool)>,
    /// Added to as long as a pattern is unmatched.
    names: Mutex<SeenNames>,
    kind: MessageKind,
}

impl Rewrite {
    /// Returns the selection of the options, or `None` if all features are kept.
    pub(super) fn new(
        keep: &[String],
        drop: &[String],
        kind: MessageKind,
    ) -> Result<Option<Rewrite>, ToolsError> {
        if keep.is_empty() && drop.is_empty() {
            return Ok(None);
        }
        if kind == MessageKind::Other {
            return Err(ToolsError::Options(OptionsReason::NoFeatures));
        }
        let patterns =
            |of: &[String]| of.iter().map(|pattern| (pattern.clone(), AtomicBool::new(false))).collect();
        Ok(Some(Rewrite { keep: patterns(keep), drop: patterns(drop), names: Mutex::default(), kind }))
    }

    /// Returns the payload of the record with the selected features. The bytes are as
    /// `SerializeToString(deterministic=True)` writes them.
    pub(super) fn payload(&self, record: Record<'_>) -> Result<Vec<u8>> {
        self.kind.check(record.payload()).map_err(|e| e.at(record.at()))?;
        let encoded = match self.kind {
            MessageKind::SequenceExample => {
                let mut message = SequenceExampleBuf::try_from(record.sequence_example())?;
                self.add_names(message.context.keys().chain(message.feature_lists.keys()));
                message.context.retain(|name, _| self.keeps(name));
                message.feature_lists.retain(|name, _| self.keeps(name));
                message.encode()
            }
            _ => {
                let mut message = ExampleBuf::try_from(record.example())?;
                self.add_names(message.features.keys());
                message.features.retain(|name, _| self.keeps(name));
                message.encode()
            }
        };
        encoded.map_err(|e| e.at(record.at()))
    }

    fn keeps(&self, name: &str) -> bool {
        // All patterns are tried, so that each pattern with a feature is known.
        let any = |patterns: &[(String, AtomicBool)]| {
            patterns.iter().fold(false, |any, (pattern, seen)| {
                let matched = matches(pattern, name);
                if matched && !seen.load(Relaxed) {
                    seen.store(true, Relaxed);
                }
                any | matched
            })
        };
        (self.keep.is_empty() || any(&self.keep)) & !any(&self.drop)
    }

    /// Adds the names of a record, before they are compared with the patterns.
    fn add_names<'n>(&self, names: impl Iterator<Item = &'n String>) {
        if self.unmatched().is_some() {
            let mut seen = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            names.for_each(|name| seen.add(name));
        }
    }

    /// Returns the first pattern that has matched no feature so far.
    fn unmatched(&self) -> Option<&str> {
        let unmatched = self.keep.iter().chain(&self.drop).find(|(_, seen)| !seen.load(Relaxed));
        unmatched.map(|(pattern, _)| pattern.as_str())
    }

    /// Checks that each pattern has matched a feature.
    pub(super) fn check_patterns(&self) -> Result<(), ToolsError> {
        let Some(pattern) = self.unmatched() else { return Ok(()) };
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let near = names.nearest(pattern).map(str::to_owned);
        Err(ToolsError::NoFeature { pattern: pattern.to_owned(), near })
    }
}

/// Returns the payload that is written for a record.
pub(super) fn payload<'a>(rewrite: Option<&Rewrite>, record: Record<'a>) -> Result<Cow<'a, [u8]>> {
    Ok(match rewrite {
        Some(rewrite) => Cow::Owned(rewrite.payload(record)?),
        None => Cow::Borrowed(record.payload()),
    })
}
