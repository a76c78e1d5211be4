//! What is written is what was read.

use super::agree;
use super::twin::{self, Rules};
use std::collections::BTreeMap;
use tfseek::{Example, ExampleBuf, ExampleBuilder, Feature, FeatureBuf, KeyOrder, Result};
use tfseek::{SequenceExample, SequenceExampleBuf, SequenceExampleBuilder};

const ORDERS: [KeyOrder; 2] = [KeyOrder::Python, KeyOrder::Bytes];

/// What decodes is encoded, to bytes that mean the same and are encoded to themselves; by the owned message and by the
/// builder alike.
pub fn roundtrip(payload: &[u8]) {
    if let Ok(features) = features(Example::new(payload)) {
        let buf = ExampleBuf { features, has_features: true };
        for order in ORDERS {
            let bytes = buf.encode_in(order).unwrap();
            agree::example(&bytes);
            assert_eq!(meaning(&bytes), meaning(payload));
            let again =
                ExampleBuf { features: self::features(Example::new(&bytes)).unwrap(), has_features: true };
            assert_eq!(again, buf);
            assert_eq!(again.encode_in(order).unwrap(), bytes);

            let mut builder = ExampleBuilder::new();
            builder.key_order(order);
            for (key, feature) in &buf.features {
                builder.feature(key, feature.clone());
            }
            assert_eq!(builder.encode().unwrap(), bytes);
        }
    }
    if let Ok(buf) = sequence(payload) {
        for order in ORDERS {
            let bytes = buf.encode_in(order).unwrap();
            agree::sequence(&bytes);
            let maps = |payload: &[u8]| {
                twin::sequence(payload, Rules::default()).map(|s| (s.context.map, s.lists.map))
            };
            assert_eq!(maps(&bytes), maps(payload));
            let again = sequence(&bytes).unwrap();
            assert_eq!(again, buf);
            assert_eq!(again.encode_in(order).unwrap(), bytes);

            let mut builder = SequenceExampleBuilder::new();
            builder.key_order(order);
            for (key, feature) in &buf.context {
                builder.feature(key, feature.clone());
            }
            for (key, steps) in &buf.feature_lists {
                builder.feature_list(key, steps.clone());
            }
            assert_eq!(builder.encode().unwrap(), bytes);
        }
    }
}

fn meaning(payload: &[u8]) -> BTreeMap<twin::Key, twin::Feature> {
    twin::example(payload, Rules::default()).unwrap().map
}

fn features(example: Example<'_>) -> Result<BTreeMap<String, FeatureBuf>> {
    Ok(example.features()?.iter().map(|&(key, feature)| (key.to_owned(), owned(feature))).collect())
}

fn sequence(payload: &[u8]) -> Result<SequenceExampleBuf> {
    let view = SequenceExample::new(payload);
    let mut buf = SequenceExampleBuf { context: features(view.context())?, ..Default::default() };
    for entry in view.feature_lists() {
        let (key, steps) = entry?;
        buf.feature_lists.insert(key.to_owned(), steps.iter().map(owned).collect());
    }
    Ok(buf)
}

fn owned(feature: Feature<'_>) -> FeatureBuf {
    match feature {
        Feature::None => FeatureBuf::None,
        Feature::Bytes(list) => FeatureBuf::Bytes(list.to_vec()),
        Feature::Float(list) => FeatureBuf::Float(list.to_vec()),
        Feature::Int64(list) => FeatureBuf::Int64(list.to_vec()),
    }
}
