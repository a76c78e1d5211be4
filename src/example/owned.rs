//! Owned messages, which can be kept, compared, changed and encoded.

use super::encode;
use super::feature_buf::FeatureBuf;
use super::sequence::SequenceExample;
use super::view::Example;
use crate::error::{Error, Result};
use crate::memory::room;
use std::collections::BTreeMap;

/// An owned Example: a map of its features, which does not keep the order of the keys.
///
/// ```
/// use tfseek::example::{ExampleBuf, FeatureBuf};
/// let mut example = ExampleBuf::default();
/// assert_eq!(example.encode()?, b"");
/// example.features.insert("label".into(), FeatureBuf::Int64(vec![3]));
/// assert_eq!(example.encode()?, b"\x0a\x10\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x03");
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExampleBuf {
    /// The features by key.
    pub features: BTreeMap<String, FeatureBuf>,
    /// True if the field `features` is written even without features, as `0a 00`. An Example without features
    /// is either that or no bytes at all, and reading and encoding keeps the form. With features the flag
    /// does not affect the bytes, but it affects `==`.
    pub has_features: bool,
}

impl ExampleBuf {
    /// Encodes the message, with its keys in the order of [`sort_keys`](super::sort_keys).
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let features = encode::entries(&self.features)?;
        let mut out = Vec::new();
        encode::put_example(&features, self.has_features, &mut out)?;
        Ok(out)
    }
}

impl TryFrom<Example<'_>> for ExampleBuf {
    type Error = Error;

    /// Copies all features. When encoded, the message has the bytes that protobuf would write for this
    /// payload.
    ///
    /// # Errors
    /// As [`Example::validate`]. [`ErrorKind::Io`](crate::ErrorKind::Io) if there is not enough memory.
    fn try_from(example: Example<'_>) -> Result<ExampleBuf> {
        // Entry by entry, a map has small nodes only.
        let mut features = BTreeMap::new();
        for entry in example.entries() {
            let (key, feature) = entry?;
            features.insert(key.to_owned(), FeatureBuf::try_from(feature)?);
        }
        Ok(ExampleBuf { features, has_features: example.has_features() })
    }
}

/// An owned SequenceExample: maps of its context and its feature lists, which do not keep the order of the
/// keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceExampleBuf {
    /// The features of the context, by key.
    pub context: BTreeMap<String, FeatureBuf>,
    /// The steps of each feature list, by key. A list may have no steps.
    pub feature_lists: BTreeMap<String, Vec<FeatureBuf>>,
    /// True if the field `context` is written even if it is empty (`0a 00`).
    pub has_context: bool,
    /// True if the field `feature_lists` is written even if it is empty (`12 00`).
    pub has_feature_lists: bool,
}

impl SequenceExampleBuf {
    /// Encodes the message, with its keys in the order of [`sort_keys`](super::sort_keys).
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let context = encode::entries(&self.context)?;
        let lists = encode::entries(&self.feature_lists)?;
        let mut out = Vec::new();
        encode::put_sequence(&context, self.has_context, &lists, self.has_feature_lists, &mut out)?;
        Ok(out)
    }
}

impl TryFrom<SequenceExample<'_>> for SequenceExampleBuf {
    type Error = Error;

    /// Copies the context and all feature lists. When encoded, the message has the bytes that protobuf would
    /// write for this payload.
    ///
    /// # Errors
    /// As [`SequenceExample::validate`]. [`ErrorKind::Io`](crate::ErrorKind::Io) if there is not enough
    /// memory.
    fn try_from(sequence: SequenceExample<'_>) -> Result<SequenceExampleBuf> {
        let context = ExampleBuf::try_from(sequence.context())?;
        let mut feature_lists = BTreeMap::new();
        for entry in sequence.feature_lists() {
            let (key, list) = entry?;
            let mut steps = room(list.len())?;
            for step in list.iter() {
                steps.push(FeatureBuf::try_from(step)?);
            }
            feature_lists.insert(key.to_owned(), steps);
        }
        Ok(SequenceExampleBuf {
            context: context.features,
            feature_lists,
            has_context: context.has_features,
            has_feature_lists: sequence.has_feature_lists(),
        })
    }
}
