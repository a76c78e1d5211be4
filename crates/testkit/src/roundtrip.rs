//! Property of the encoder: decoding and encoding preserve a message.

use super::agree;
use super::twin::{self, Rules};
use std::collections::BTreeMap;
use tfseek::{
    Example, ExampleBuf, ExampleBuilder, Result, SequenceExample, SequenceExampleBuf, SequenceExampleBuilder,
};

/// Checks that a payload that decodes is encoded to bytes with the same meaning, and that these bytes are
/// encoded to themselves. The owned message and the builder must give the same bytes.
pub fn roundtrip(payload: &[u8]) {
    if let Ok(buf) = example(payload) {
        let bytes = buf.encode().unwrap();
        agree::example(&bytes);
        assert_eq!(meaning(&bytes), meaning(payload));
        let again = example(&bytes).unwrap();
        assert_eq!(again, buf);
        assert_eq!(again.encode().unwrap(), bytes);

        let mut builder = ExampleBuilder::new();
        for (key, feature) in &buf.features {
            builder = builder.feature(key, feature.clone());
        }
        assert_eq!(builder.encode().unwrap(), bytes);
    }
    if let Ok(buf) = sequence(payload) {
        let bytes = buf.encode().unwrap();
        agree::sequence(&bytes);
        let maps =
            |payload: &[u8]| twin::sequence(payload, Rules::default()).map(|s| (s.context.map, s.lists.map));
        assert_eq!(maps(&bytes), maps(payload));
        let again = sequence(&bytes).unwrap();
        assert_eq!(again, buf);
        assert_eq!(again.encode().unwrap(), bytes);

        let mut builder = SequenceExampleBuilder::new();
        for (key, feature) in &buf.context {
            builder = builder.feature(key, feature.clone());
        }
        for (key, steps) in &buf.feature_lists {
            builder = builder.feature_list(key, steps.clone());
        }
        assert_eq!(builder.encode().unwrap(), bytes);
    }
}

fn meaning(payload: &[u8]) -> BTreeMap<twin::Key, twin::Feature> {
    twin::example(payload, Rules::default()).unwrap().map
}

/// Decodes an Example. `features` is set even if it is empty, as the builder does.
fn example(payload: &[u8]) -> Result<ExampleBuf> {
    Ok(ExampleBuf { has_features: true, ..ExampleBuf::try_from(Example::new(payload))? })
}

/// Decodes a SequenceExample. Empty parts are not set, as the builder does.
fn sequence(payload: &[u8]) -> Result<SequenceExampleBuf> {
    let buf = SequenceExampleBuf::try_from(SequenceExample::new(payload))?;
    Ok(SequenceExampleBuf { has_context: false, has_feature_lists: false, ..buf })
}
