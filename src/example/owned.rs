//! Messages that own their features: to be kept, compared, changed and encoded.

use super::encode::{self, KeyOrder};
use super::feature_buf::FeatureBuf;
use super::sequence::{FeatureList, SequenceExample};
use super::view::Example;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// An Example that owns its features: a map, without an order of its own.
///
/// ```
/// use tfseek::example::{ExampleBuf, FeatureBuf, KeyOrder};
/// let mut example = ExampleBuf::default();
/// assert_eq!(example.encode(KeyOrder::Python)?, b"");
/// example.features.insert("label".into(), FeatureBuf::Int64(vec![3]));
/// assert_eq!(example.encode(KeyOrder::Python)?, b"\x0a\x10\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x03");
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExampleBuf {
    /// The features by key.
    pub features: BTreeMap<String, FeatureBuf>,
    /// Whether the field `features` is written though there are none: `0a 00` and no bytes at all are both an
    /// Example without features, and what was read is written again. With features it makes no difference to the
    /// bytes; it does to `==`.
    pub has_features: bool,
}

impl ExampleBuf {
    /// Encodes the message, keys in this order. A map was given none: [`KeyOrder::Given`] is [`KeyOrder::Bytes`] here.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes.
    pub fn encode(&self, order: KeyOrder) -> Result<Vec<u8>> {
        let features = encode::entries(&self.features, order);
        let mut out = Vec::new();
        encode::put_example(&features, self.has_features, &mut out)?;
        Ok(out)
    }
}

impl TryFrom<Example<'_>> for ExampleBuf {
    type Error = Error;

    /// Copies all features. Encoded again the message is what protobuf would write of this payload.
    ///
    /// # Errors
    /// As [`Example::validate`].
    fn try_from(example: Example<'_>) -> Result<ExampleBuf> {
        let features = example.entries().map(|entry| entry.map(|(key, f)| (key.to_owned(), f.into())));
        Ok(ExampleBuf { features: features.collect::<Result<_>>()?, has_features: example.has_features() })
    }
}

/// A SequenceExample that owns its context and its feature lists: maps, without an order of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceExampleBuf {
    /// The features of the whole record.
    pub context: BTreeMap<String, FeatureBuf>,
    /// The features of each step, by key. A list without steps is still there.
    pub feature_lists: BTreeMap<String, Vec<FeatureBuf>>,
    /// Whether the field `context` is written though it is empty (`0a 00`).
    pub has_context: bool,
    /// Whether the field `feature_lists` is written though it is empty (`12 00`).
    pub has_feature_lists: bool,
}

impl SequenceExampleBuf {
    /// Encodes the message, keys in this order. A map was given none: [`KeyOrder::Given`] is [`KeyOrder::Bytes`] here.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) above 2^31 - 1 bytes.
    pub fn encode(&self, order: KeyOrder) -> Result<Vec<u8>> {
        let context = encode::entries(&self.context, order);
        let lists = encode::entries(&self.feature_lists, order);
        let mut out = Vec::new();
        encode::put_sequence(&context, self.has_context, &lists, self.has_feature_lists, &mut out)?;
        Ok(out)
    }
}

impl TryFrom<SequenceExample<'_>> for SequenceExampleBuf {
    type Error = Error;

    /// Copies the context and all feature lists. Encoded again the message is what protobuf would write of this payload.
    ///
    /// # Errors
    /// As [`SequenceExample::validate`].
    fn try_from(sequence: SequenceExample<'_>) -> Result<SequenceExampleBuf> {
        let context = ExampleBuf::try_from(sequence.context())?;
        let steps = |list: FeatureList<'_>| list.iter().map(FeatureBuf::from).collect();
        let lists =
            sequence.feature_lists().map(|entry| entry.map(|(key, list)| (key.to_owned(), steps(list))));
        Ok(SequenceExampleBuf {
            context: context.features,
            feature_lists: lists.collect::<Result<_>>()?,
            has_context: context.has_features,
            has_feature_lists: sequence.has_feature_lists(),
        })
    }
}
