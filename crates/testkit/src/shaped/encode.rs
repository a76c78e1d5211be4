//! Encoding of planned messages, in any form that protobuf allows.

use super::super::payloads::Generator;
use super::super::twin::Feature;

/// A function that encodes a value as several messages, which decoders merge.
pub(super) type Parts<'f, V> = &'f mut dyn FnMut(&mut Generator<'_>, &V) -> Vec<Vec<u8>>;

impl Generator<'_> {
    /// Writes a map field with the planned entries and some others.
    pub(super) fn planned_map<V>(
        &mut self,
        out: &mut Vec<u8>,
        field: u32,
        plan: &[(String, V)],
        value: Parts<'_, V>,
    ) {
        let mut message = Vec::new();
        for (key, planned) in plan {
            if self.odd() {
                // The key of this entry is not in the plan, or a later entry replaces it.
                let key = if self.odd() { key.as_str() } else { self.rng.pick(&["other", "", "column"]) };
                if plan.iter().all(|(planned, _)| planned != key) || self.odd() {
                    let junk = if field == 1 { self.feature() } else { self.feature_list() };
                    let entry = self.entry_of(key, vec![junk]);
                    self.len_field(&mut message, 1, &entry);
                }
            }
            self.unknown(&mut message, &[1]);
            let parts = value(self, planned);
            let entry = self.entry_of(key, parts);
            self.len_field(&mut message, 1, &entry);
            if self.odd() {
                self.len_field(out, field, &message);
                message.clear();
                self.unknown(out, &[1, 2]);
            }
        }
        self.unknown(&mut message, &[1]);
        if !message.is_empty() || self.odd() || !plan.is_empty() {
            self.len_field(out, field, &message);
        }
        self.unknown(out, &[1, 2]);
    }

    fn entry_of(&mut self, key: &str, parts: Vec<Vec<u8>>) -> Vec<u8> {
        let mut out = Vec::new();
        let key_last = self.odd();
        if self.odd() {
            self.len_field(&mut out, 1, b"not the last key");
        }
        if !key_last {
            self.len_field(&mut out, 1, key.as_bytes());
        }
        for part in &parts {
            self.len_field(&mut out, 2, part);
        }
        if key_last {
            self.len_field(&mut out, 1, key.as_bytes());
        }
        if self.rng.chance(self.odd / 32) {
            // An entry with an unknown field is refused.
            self.unknown(&mut out, &[1, 2]);
        }
        out
    }

    /// Encodes a feature as one or more messages.
    pub(super) fn parts(&mut self, feature: &Feature) -> Vec<Vec<u8>> {
        let mut parts = vec![Vec::new()];
        let (number, len) = match feature {
            Feature::None => return parts,
            Feature::Bytes(v) => (1, v.len()),
            Feature::Float(v) => (2, v.len()),
            Feature::Int64(v) => (3, v.len()),
        };
        if self.odd() {
            // The following member of the oneof replaces this one.
            let other = 1 + number % 3;
            self.len_field(&mut parts[0], other, b"");
        }
        let mut at = 0;
        loop {
            let to = if self.odd() { at + self.rng.below(len - at + 1) } else { len };
            let list = self.list(feature, at, to);
            let part = parts.last_mut().unwrap();
            self.unknown(part, &[1, 2, 3]);
            self.len_field(part, number, &list);
            self.unknown(part, &[1, 2, 3]);
            at = to;
            if at == len {
                return parts;
            }
            if self.odd() {
                parts.push(Vec::new());
            }
        }
    }

    /// Encodes values `from..to` as a list message.
    fn list(&mut self, feature: &Feature, from: usize, to: usize) -> Vec<u8> {
        let (mut out, mut chunk) = (Vec::new(), Vec::new());
        for k in from..to {
            if self.odd() && !matches!(feature, Feature::Bytes(_)) {
                self.len_field(&mut out, 1, &chunk);
                chunk.clear();
            }
            if self.odd() {
                self.unknown(&mut out, &[1]);
            }
            // A value is written without a chunk only if no chunk is open, which keeps the order of values.
            let unpacked = self.odd() && chunk.is_empty();
            match feature {
                Feature::None => {}
                Feature::Bytes(v) => self.len_field(&mut out, 1, &v[k]),
                Feature::Float(v) => {
                    if unpacked {
                        self.tag(&mut out, 1, 5);
                    }
                    if unpacked { &mut out } else { &mut chunk }.extend(v[k].to_le_bytes());
                }
                Feature::Int64(v) => {
                    if unpacked {
                        self.tag(&mut out, 1, 0);
                    }
                    self.varint(if unpacked { &mut out } else { &mut chunk }, v[k] as u64, 10);
                }
            }
        }
        if self.bad > 0 && self.rng.chance(self.bad) {
            chunk.push(0x80);
        }
        if !chunk.is_empty() || self.odd() && !matches!(feature, Feature::Bytes(_)) {
            self.len_field(&mut out, 1, &chunk);
        }
        self.unknown(&mut out, &[1]);
        out
    }
}
