//! `SequenceExample<'a>`: a context and feature lists.

use super::feature::Feature;
use super::map::{MapEntries, VALUE_DEPTH, has_map};
use super::source::{Messages, ValueMessage};
use super::view::{Example, debug_entries};
use crate::error::{At, Error, Result};
use std::fmt;
use std::iter::FusedIterator;
use tfseek_wire::{Fault, WireReader, WireValue};

/// A `tf.train.SequenceExample` that borrows its payload. Like [`Example`], it is `Copy`, and each lookup
/// walks the payload.
///
/// ```
/// use tfseek::{Feature, FeatureBuf, SequenceExample, SequenceExampleBuilder};
/// let payload = SequenceExampleBuilder::new()
///     .int64("id", [5])
///     .feature_list("frames", [FeatureBuf::Float(vec![0.5]), FeatureBuf::Float(vec![1.5])])
///     .encode()?;
/// let sequence = SequenceExample::new(&payload);
/// assert_eq!(sequence.context().int64("id")?.first(), Some(5));
/// let frames = sequence.feature_list("frames")?.unwrap();
/// assert_eq!(frames.len(), 2);
/// assert!(matches!(frames.get(1), Some(Feature::Float(list)) if list.first() == Some(1.5)));
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct SequenceExample<'a> {
    /// The payload, viewed as an Example. The context is field 1, like an Example's features.
    context: Example<'a>,
}

impl<'a> SequenceExample<'a> {
    /// Creates a view of the SequenceExample in `payload`. O(1); reads nothing.
    #[inline]
    pub fn new(payload: &'a [u8]) -> SequenceExample<'a> {
        SequenceExample { context: Example::new(payload) }
    }

    /// Sets the location that errors report.
    #[inline]
    #[must_use]
    pub(crate) fn at(self, at: At<'a>) -> SequenceExample<'a> {
        SequenceExample { context: self.context.at(at) }
    }

    /// Returns the context, the features of the whole sequence. It is an [`Example`], since on the wire a
    /// context and an Example's features are the same.
    #[inline]
    pub fn context(self) -> Example<'a> {
        self.context
    }

    /// Returns the last feature list named `key`, or `None` if there is none. All of its steps are validated.
    ///
    /// # Errors
    /// As [`Example::get`].
    pub fn feature_list(self, key: &str) -> Result<Option<FeatureList<'a>>> {
        self.find(key.as_bytes()).map_err(|e| e.feature(key.as_bytes()))
    }

    /// Returns an iterator over all feature lists in wire order, duplicates included. Each list is fully
    /// validated. Nothing is allocated. The iterator ends after an error.
    pub fn feature_lists(
        self,
    ) -> impl FusedIterator<Item = Result<(&'a str, FeatureList<'a>)>> + Clone + fmt::Debug {
        FeatureListEntries { sequence: Some(self), state: None }
    }

    /// Returns true if the message `feature_lists` is present, even if it is empty. For the context there is
    /// [`Example::has_features`].
    pub fn has_feature_lists(self) -> bool {
        has_map(self.context.payload(), 2)
    }

    /// Validates everything that protobuf's own decoder validates.
    ///
    /// # Errors
    /// As [`Example::validate`].
    pub fn validate(self) -> Result<()> {
        self.context.validate()?;
        self.feature_lists().try_for_each(|entry| entry.map(drop))
    }

    fn find(self, key: &[u8]) -> Result<Option<FeatureList<'a>>> {
        let mut entries = self.context.open(2, false)?;
        let mut found = None;
        while let Some(entry) = entries.next().map_err(|fault| self.context.fault(fault))? {
            if entry.key == key {
                found = Some(FeatureList::check(entry.value).map_err(|fault| self.context.fault(fault))?);
            }
        }
        Ok(found)
    }
}

impl fmt::Debug for SequenceExample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SequenceExample { context: ")?;
        debug_entries(f, self.context.entries())?;
        f.write_str(", feature_lists: ")?;
        debug_entries(f, self.feature_lists())?;
        f.write_str(" }")
    }
}

/// An iterator over the feature lists of a [`SequenceExample`] in wire order, duplicates included.
#[derive(Clone, Copy)]
struct FeatureListEntries<'a> {
    sequence: Option<SequenceExample<'a>>,
    state: Option<MapEntries<'a>>,
}

impl<'a> FeatureListEntries<'a> {
    fn step(&mut self, sequence: SequenceExample<'a>) -> Result<Option<(&'a str, FeatureList<'a>)>> {
        let state = match &mut self.state {
            Some(state) => state,
            none => none.insert(sequence.context.open(2, true)?),
        };
        let fault = |fault| -> Error { sequence.context.fault(fault) };
        let Some((key, value)) = state.next_text().map_err(fault)? else { return Ok(None) };
        match FeatureList::check(value) {
            Ok(list) => Ok(Some((key, list))),
            Err(f) => Err(fault(f).feature(key.as_bytes())),
        }
    }
}

impl<'a> Iterator for FeatureListEntries<'a> {
    type Item = Result<(&'a str, FeatureList<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step(self.sequence?).transpose();
        if !matches!(step, Some(Ok(_))) {
            self.sequence = None;
        }
        step
    }
}

impl FusedIterator for FeatureListEntries<'_> {}

impl fmt::Debug for FeatureListEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_entries(f, *self)
    }
}

/// The steps of a feature list, all validated. It is `Copy`.
#[derive(Clone, Copy)]
pub struct FeatureList<'a> {
    value: ValueMessage<'a>,
    len: usize,
}

impl<'a> FeatureList<'a> {
    /// Number of levels from the payload down to a step.
    pub(crate) const STEP_DEPTH: u8 = VALUE_DEPTH + 1;

    #[expect(clippy::arithmetic_side_effects, reason = "each step takes at least one byte of the payload")]
    pub(crate) fn check(value: ValueMessage<'a>) -> Result<FeatureList<'a>, Fault> {
        let mut len = 0;
        for mut list in value.messages(VALUE_DEPTH) {
            while let Some(field) = list.next()? {
                if let (1, WireValue::Len(step)) = field {
                    Feature::check(ValueMessage::one(step, list.start_of(step)), FeatureList::STEP_DEPTH)?;
                    len += 1;
                }
            }
        }
        Ok(FeatureList { value, len })
    }

    /// Returns the number of steps. O(1).
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns true if there is no step.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns step `k`. Linear in `k`.
    pub fn get(self, k: usize) -> Option<Feature<'a>> {
        self.iter().nth(k)
    }

    /// Returns an iterator over the steps, in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Feature<'a>> + FusedIterator + Clone {
        FeatureSteps { messages: self.value.messages(1), list: WireReader::new(&[]), left: self.len }
    }
}

impl fmt::Debug for FeatureList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An iterator over the steps of a [`FeatureList`].
#[derive(Clone, Copy, Debug)]
struct FeatureSteps<'a> {
    messages: Messages<'a>,
    list: WireReader<'a>,
    left: usize,
}

impl<'a> Iterator for FeatureSteps<'a> {
    type Item = Feature<'a>;

    fn next(&mut self) -> Option<Feature<'a>> {
        loop {
            // The list was validated at lookup. If the bytes have changed since then, it ends early.
            while let Ok(Some(field)) = self.list.next() {
                if let (1, WireValue::Len(step)) = field {
                    self.left = self.left.saturating_sub(1);
                    return Feature::check(ValueMessage::one(step, self.list.start_of(step)), 1).ok();
                }
            }
            self.list = self.messages.next()?;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl FusedIterator for FeatureSteps<'_> {}
impl ExactSizeIterator for FeatureSteps<'_> {}
