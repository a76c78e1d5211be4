//! Given messages, spelled in every manner that protobuf allows, and then damaged here and there.

use super::payloads::{Maker, mutate};
use super::rng::Rng;
use std::collections::BTreeMap;
use tfseek::example::FeatureBuf;
use tfseek::{ExampleBuf, SequenceExampleBuf};

/// An Example. About half of them keep their meaning; the others lose a part of it, or all.
pub fn example(rng: &mut Rng, message: &ExampleBuf) -> Vec<u8> {
    spell(rng, |maker, out| maker.given(out, 1, &message.features, Maker::given_feature))
}

/// A SequenceExample, as [`example`].
pub fn sequence(rng: &mut Rng, message: &SequenceExampleBuf) -> Vec<u8> {
    spell(rng, |maker, out| {
        maker.given(out, 1, &message.context, Maker::given_feature);
        maker.given(out, 2, &message.feature_lists, Maker::given_list);
    })
}

fn spell(rng: &mut Rng, write: impl Fn(&mut Maker<'_>, &mut Vec<u8>)) -> Vec<u8> {
    let (odd, bad) = (rng.pick(&[0, 10, 30, 80]), rng.pick(&[0, 0, 0, 1]));
    let mut out = Vec::new();
    write(&mut Maker { rng, odd, bad }, &mut out);
    for _ in 0..rng.pick(&[0, 0, 1, 1, 3]) {
        mutate(rng, &mut out);
    }
    out
}

impl Maker<'_> {
    /// A map in field `field`, its entries in any order.
    fn given<V>(
        &mut self,
        out: &mut Vec<u8>,
        field: u32,
        map: &BTreeMap<String, V>,
        spell: fn(&mut Self, &V) -> Vec<u8>,
    ) {
        let mut entries: Vec<_> = map.iter().collect();
        let mut message = Vec::new();
        while !entries.is_empty() {
            let (key, value) = entries.swap_remove(self.rng.below(entries.len()));
            self.unknown(&mut message, &[1]);
            let value = spell(self, value);
            if self.odd() {
                // Replaced by what follows: the last entry of a key counts.
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
            // Merged with what is there already.
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
            // Another member of the oneof, replaced by what follows.
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
            FeatureBuf::Int64(values) => {
                self.numbers(0, to - from, |maker, k, out| maker.varint(out, values[from + k] as u64, 10))
            }
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
