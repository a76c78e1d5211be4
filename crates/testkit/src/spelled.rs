//! Encodings of given messages, in every form that protobuf allows, some of them damaged.

use super::payloads::{Generator, mutate};
use super::rng::Rng;
use std::collections::BTreeMap;
use tfseek::example::FeatureBuf;
use tfseek::{ExampleBuf, SequenceExampleBuf};

/// Encodes an Example. About half of the encodings keep its meaning. The others lose a part of it, or all.
pub fn example(rng: &mut Rng, message: &ExampleBuf) -> Vec<u8> {
    encode(rng, |generator, out| generator.given_map(out, 1, &message.features, Generator::given_feature))
}

/// Encodes a SequenceExample, like [`example`].
pub fn sequence(rng: &mut Rng, message: &SequenceExampleBuf) -> Vec<u8> {
    encode(rng, |generator, out| {
        generator.given_map(out, 1, &message.context, Generator::given_feature);
        generator.given_map(out, 2, &message.feature_lists, Generator::given_list);
    })
}

fn encode(rng: &mut Rng, write: impl Fn(&mut Generator<'_>, &mut Vec<u8>)) -> Vec<u8> {
    let (odd, bad) = (rng.pick(&[0, 10, 30, 80]), rng.pick(&[0, 0, 0, 1]));
    let mut out = Vec::new();
    write(&mut Generator { rng, odd, bad }, &mut out);
    for _ in 0..rng.pick(&[0, 0, 1, 1, 3]) {
        mutate(rng, &mut out);
    }
    out
}

impl Generator<'_> {
    /// Writes a map in field `field`, with its entries in any order.
    fn given_map<V>(
        &mut self,
        out: &mut Vec<u8>,
        field: u32,
        map: &BTreeMap<String, V>,
        encode: fn(&mut Self, &V) -> Vec<u8>,
    ) {
        let mut entries: Vec<_> = map.iter().collect();
        let mut message = Vec::new();
        while !entries.is_empty() {
            let (key, value) = entries.swap_remove(self.rng.below(entries.len()));
            self.unknown(&mut message, &[1]);
            let value = encode(self, value);
            if self.odd() {
                // The last entry of a key counts, so the following entry replaces this one.
                let entry = self.given_entry(key, &[]);
                self.len_field(&mut message, 1, &entry);
            }
            let entry = self.given_entry(key, &value);
            self.len_field(&mut message, 1, &entry);
            if self.odd() {
                self.len_field(out, field, &message);
                message.clear();
                self.unknown(out, &[1, 2]);
            }
        }
        self.unknown(&mut message, &[1]);
        self.len_field(out, field, &message);
        self.unknown(out, &[1, 2]);
    }

    fn given_entry(&mut self, key: &str, value: &[u8]) -> Vec<u8> {
        let (mut out, value_first) = (Vec::new(), self.odd());
        if value_first {
            self.len_field(&mut out, 2, value);
        }
        if self.odd() {
            self.len_field(&mut out, 1, b"an earlier key");
        }
        self.len_field(&mut out, 1, key.as_bytes());
        if !value_first {
            self.len_field(&mut out, 2, value);
        }
        if self.odd() {
            // An empty value is merged with the preceding value.
            self.len_field(&mut out, 2, &[]);
        }
        if self.odd > 0 && self.rng.chance(2) {
            self.unknown(&mut out, &[1, 2]);
        }
        out
    }

    fn given_list(&mut self, steps: &Vec<FeatureBuf>) -> Vec<u8> {
        let mut out = Vec::new();
        for step in steps {
            self.unknown(&mut out, &[1]);
            let step = self.given_feature(step);
            self.len_field(&mut out, 1, &step);
        }
        self.unknown(&mut out, &[1]);
        out
    }

    fn given_feature(&mut self, feature: &FeatureBuf) -> Vec<u8> {
        let mut out = Vec::new();
        self.unknown(&mut out, &[1, 2, 3]);
        let number = match feature {
            FeatureBuf::None => return out,
            FeatureBuf::Bytes(_) => 1,
            FeatureBuf::Float(_) => 2,
            FeatureBuf::Int64(_) => 3,
        };
        if self.odd() {
            // The following member of the oneof replaces this one.
            self.len_field(&mut out, 1 + number % 3, &[]);
        }
        let len = count(feature);
        let middle = if self.odd() { self.rng.below(len + 1) } else { len };
        for (from, to) in [(0, middle), (middle, len)] {
            // The second part is merged with the first.
            if from == 0 || from < to {
                let list = self.part(feature, from, to);
                self.len_field(&mut out, number, &list);
                self.unknown(&mut out, &[1, 2, 3]);
            }
        }
        out
    }

    fn part(&mut self, feature: &FeatureBuf, from: usize, to: usize) -> Vec<u8> {
        match feature {
            FeatureBuf::None => Vec::new(),
            FeatureBuf::Bytes(values) => {
                let mut out = Vec::new();
                for value in &values[from..to] {
                    self.unknown(&mut out, &[1]);
                    self.len_field(&mut out, 1, value);
                }
                out
            }
            FeatureBuf::Float(values) => self.numbers(5, to - from, |_, k, out| {
                out.extend(values[from + k].to_bits().to_le_bytes());
            }),
            FeatureBuf::Int64(values) => self.numbers(0, to - from, |generator, k, out| {
                generator.varint(out, values[from + k] as u64, 10)
            }),
        }
    }
}

/// Returns the number of a feature's values.
pub fn count(feature: &FeatureBuf) -> usize {
    match feature {
        FeatureBuf::None => 0,
        FeatureBuf::Bytes(values) => values.len(),
        FeatureBuf::Float(values) => values.len(),
        FeatureBuf::Int64(values) => values.len(),
    }
}
