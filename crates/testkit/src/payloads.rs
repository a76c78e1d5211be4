//! Seeded payloads: in the encoding of common encoders, in other encodings that protobuf allows, and damaged.

use super::rng::Rng;

/// Returns an Example in the encoding of common encoders: each key once, lists packed in one chunk.
pub fn canonical_example(rng: &mut Rng) -> Vec<u8> {
    Generator { rng, odd: 0, bad: 0 }.example()
}

/// Returns a SequenceExample in the encoding of common encoders.
pub fn canonical_sequence(rng: &mut Rng) -> Vec<u8> {
    Generator { rng, odd: 0, bad: 0 }.sequence()
}

/// Returns a well-formed Example in an unusual encoding that protobuf allows: lists that are not packed or
/// have many chunks, repeated and missing keys and values, members of the oneof that replace each other,
/// unknown fields and groups, over-long varints.
pub fn odd_example(rng: &mut Rng) -> Vec<u8> {
    let odd = rng.pick(&[10, 30, 80]);
    Generator { rng, odd, bad: 0 }.example()
}

/// Returns a SequenceExample in an unusual encoding, like [`odd_example`].
pub fn odd_sequence(rng: &mut Rng) -> Vec<u8> {
    let odd = rng.pick(&[10, 30, 80]);
    Generator { rng, odd, bad: 0 }.sequence()
}

/// Returns a damaged payload. Some are damaged in an inner message, with correct lengths around it; some have
/// changed bytes.
pub fn mutated(rng: &mut Rng, sequence: bool) -> Vec<u8> {
    let (odd, bad) = (rng.pick(&[0, 10, 30, 80]), rng.pick(&[0, 0, 2, 8]));
    let mut generator = Generator { rng, odd, bad };
    let mut payload = if sequence { generator.sequence() } else { generator.example() };
    for _ in 0..generator.rng.below(4) {
        mutate(generator.rng, &mut payload);
    }
    if generator.rng.chance(8) {
        let other = if sequence { generator.sequence() } else { generator.example() };
        payload.extend(other);
    }
    payload
}

/// Bytes with a special meaning to a decoder.
const SPECIAL_BYTES: &[u8] = &[0, 1, 2, 4, 8, 9, 10, 11, 12, 13, 14, 15, 18, 26, 127, 128, 255];

/// Makes at most one small change to a payload.
pub fn mutate(rng: &mut Rng, payload: &mut Vec<u8>) {
    let at = rng.below(payload.len() + 1);
    match rng.below(7) {
        0 | 1 if at < payload.len() => payload[at] ^= 1 << rng.below(8),
        2 if at < payload.len() => payload[at] = rng.pick(SPECIAL_BYTES),
        3 => payload.insert(at, rng.pick(SPECIAL_BYTES)),
        4 if at < payload.len() => drop(payload.remove(at)),
        5 if rng.chance(64) => payload.truncate(at),
        6 if rng.chance(64) => {
            let from = rng.below(payload.len() + 1);
            let (from, to) = (from.min(at), from.max(at));
            payload.extend_from_within(from..to);
        }
        _ => {}
    }
}

/// A generator of encoded messages.
pub(super) struct Generator<'r> {
    pub(super) rng: &'r mut Rng,
    /// Probability, in 256ths, of an unusual encoding at each point where protobuf allows one.
    pub(super) odd: u8,
    /// Probability, in 256ths, of a malformed unknown field.
    pub(super) bad: u8,
}

const KEYS: &[&str] =
    &["", "a", "b", "ab", "label", "image/encoded", "emb", "ids", "\u{e9}t\u{e9}", "\u{1f600}", "nul\0key"];

impl Generator<'_> {
    pub(super) fn odd(&mut self) -> bool {
        let odd = self.odd;
        self.rng.chance(odd)
    }

    fn example(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.map_field(&mut out, 1, Generator::feature);
        out
    }

    fn sequence(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.map_field(&mut out, 1, Generator::feature);
        self.map_field(&mut out, 2, Generator::feature_list);
        if self.odd() {
            self.map_field(&mut out, 1, Generator::feature);
        }
        out
    }

    fn map_field(&mut self, out: &mut Vec<u8>, field: u32, value: fn(&mut Self) -> Vec<u8>) {
        let entries = match self.rng.below(16) {
            0 => 0,
            // More entries than `features` sorts on the stack.
            1 if self.odd() => 60 + self.rng.below(20),
            _ => self.rng.below(8),
        };
        let mut message = Vec::new();
        for k in 0..entries {
            let key = if self.odd() {
                // Duplicates.
                self.rng.pick(KEYS).as_bytes().to_vec()
            } else {
                match KEYS.get(k) {
                    Some(key) => key.as_bytes().to_vec(),
                    None => format!("feature {k}").into_bytes(),
                }
            };
            self.unknown(&mut message, &[1]);
            let entry = self.entry(key, value);
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

    fn entry(&mut self, key: Vec<u8>, value: fn(&mut Self) -> Vec<u8>) -> Vec<u8> {
        // The fields in their order: true for a value, false for a key.
        let mut order = vec![false, true];
        if self.odd() {
            order.swap(0, 1);
        }
        if self.odd() {
            order.remove(self.rng.below(2));
        }
        while self.odd() {
            let at = self.rng.below(order.len() + 1);
            order.insert(at, self.rng.chance(128));
        }
        let mut out = Vec::new();
        let last_key = order.iter().rposition(|&is_value| !is_value);
        for (k, is_value) in order.into_iter().enumerate() {
            if is_value {
                let value = value(self);
                self.len_field(&mut out, 2, &value);
            } else if Some(k) == last_key {
                let key =
                    if self.bad > 0 && self.rng.chance(self.bad) { vec![b'k', 0xff] } else { key.clone() };
                self.len_field(&mut out, 1, &key);
            } else {
                let other = self.rng.pick(KEYS);
                self.len_field(&mut out, 1, other.as_bytes());
            }
        }
        // An unknown field in an entry is rare, because the payload is then refused (R6).
        if self.rng.chance(self.odd / 8) {
            self.unknown(&mut out, &[1, 2]);
        }
        out
    }

    pub(super) fn feature_list(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..self.rng.below(5) {
            self.unknown(&mut out, &[1]);
            let step = self.feature();
            self.len_field(&mut out, 1, &step);
        }
        self.unknown(&mut out, &[1]);
        out
    }

    pub(super) fn feature(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.rng.chance(16) {
            return out;
        }
        loop {
            self.unknown(&mut out, &[1, 2, 3]);
            let kind = 1 + self.rng.below(3) as u32;
            let list = match kind {
                1 => self.bytes_list(),
                2 => {
                    let count = self.count();
                    self.numbers(5, count, |generator, _, out| {
                        // Some of the floats are NaNs with payloads.
                        let bits = generator.rng.u64() as u32;
                        let nan = if generator.rng.chance(32) { 0x7f80_0000 } else { 0 };
                        out.extend((bits | nan).to_le_bytes());
                    })
                }
                _ => {
                    let count = self.count();
                    self.numbers(0, count, |generator, _, out| {
                        let value =
                            generator.rng.u64() >> generator.rng.pick(&[0, 1, 20, 32, 50, 57, 60, 63]);
                        generator.varint(out, value, 10);
                    })
                }
            };
            self.len_field(&mut out, kind, &list);
            if !self.odd() {
                break;
            }
        }
        self.unknown(&mut out, &[1, 2, 3]);
        out
    }

    fn bytes_list(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..self.count() {
            self.unknown(&mut out, &[1]);
            let len = self.rng.below(20);
            let value = self.rng.bytes(len);
            self.len_field(&mut out, 1, &value);
        }
        self.unknown(&mut out, &[1]);
        out
    }

    /// Returns a list of `count` numbers, packed in one chunk in the usual encoding. `write_number` writes
    /// the k-th number, and `wire_type` is the wire type of a number that is not packed.
    pub(super) fn numbers(
        &mut self,
        wire_type: u8,
        count: usize,
        write_number: impl Fn(&mut Self, usize, &mut Vec<u8>),
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let mut chunk = Vec::new();
        for k in 0..count {
            if self.odd() {
                self.len_field(&mut out, 1, &chunk);
                chunk.clear();
                self.unknown(&mut out, &[1]);
            }
            if self.odd() {
                self.tag(&mut out, 1, wire_type);
                write_number(self, k, &mut out);
            } else {
                write_number(self, k, &mut chunk);
            }
        }
        if self.bad > 0 && self.rng.chance(self.bad) {
            chunk.push(0x80);
        }
        if !chunk.is_empty() || self.odd() {
            self.len_field(&mut out, 1, &chunk);
        }
        self.unknown(&mut out, &[1]);
        out
    }

    pub(super) fn count(&mut self) -> usize {
        match self.rng.below(8) {
            0 => 0,
            1..4 => 1,
            4..7 => self.rng.below(12),
            _ => self.rng.below(60),
        }
    }

    /// Sometimes writes a field that the message does not have, or has with another wire type. `known` are
    /// the numbers of the message's own fields, which must not be length-delimited here.
    pub(super) fn unknown(&mut self, out: &mut Vec<u8>, known: &[u32]) {
        if self.bad > 0 && self.rng.chance(self.bad) {
            return self.malformed(out);
        }
        if !self.odd() {
            return;
        }
        let number = match self.rng.below(4) {
            0 => self.rng.pick(known),
            1 => (1 << 29) - 1,
            _ => 4 + self.rng.below(1000) as u32,
        };
        // Eight-byte values and groups are wire types that no message here uses for its own fields.
        let wire_type =
            if known.contains(&number) { self.rng.pick(&[1, 3]) } else { self.rng.pick(&[0, 1, 2, 3, 5]) };
        if wire_type == 3 {
            // The depth is near the limit of 100 levels for any enclosing message.
            let depth = if self.rng.chance(16) { 93 + self.rng.below(9) } else { 1 + self.rng.below(3) };
            return self.group(out, number, depth);
        }
        self.tag(out, number, wire_type);
        match wire_type {
            0 => {
                let value = self.rng.u64();
                self.varint(out, value, 10);
            }
            1 => out.extend(self.rng.u64().to_le_bytes()),
            5 => out.extend((self.rng.u64() as u32).to_le_bytes()),
            _ => {
                let len = self.rng.below(6);
                let value = self.rng.bytes(len);
                self.varint(out, len as u64, 5);
                out.extend(value);
            }
        }
    }

    fn group(&mut self, out: &mut Vec<u8>, number: u32, depth: usize) {
        self.tag(out, number, 3);
        if depth > 1 {
            self.group(out, 1 + number % 7, depth - 1);
        } else if self.rng.chance(128) {
            self.len_field(out, 1, b"in");
        }
        self.tag(out, number, 4);
    }

    fn malformed(&mut self, out: &mut Vec<u8>) {
        let bad: &[u8] = self.rng.pick(&[
            // field number 0; wire types 6 and 7; a group end without a start, with another number, and a
            // missing group end
            &[0x00, 0x00],
            &[0x26],
            &[0x27],
            &[0x24],
            &[0x23, 0x2c],
            &[0x23],
            // a varint of 11 bytes; a tag of 6 bytes; a tag of more than 32 bits
            &[0x20, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
            &[0xa0, 0x80, 0x80, 0x80, 0x80, 0x00, 0x00],
            &[0xa0, 0x80, 0x80, 0x80, 0x10, 0x00],
            // lengths: of 6 bytes; above 2^31 - 1; beyond the end of the message
            &[0x22, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
            &[0x22, 0x80, 0x80, 0x80, 0x80, 0x08],
            &[0x22, 0x80, 0x80, 0x80, 0x80, 0x10],
            &[0x22, 0x7f],
            // truncated values
            &[0x21, 0x00],
            &[0x25, 0x00],
            &[0x20, 0x80],
        ]);
        out.extend_from_slice(bad);
    }

    pub(super) fn len_field(&mut self, out: &mut Vec<u8>, number: u32, content: &[u8]) {
        self.tag(out, number, 2);
        self.varint(out, content.len() as u64, 5);
        out.extend_from_slice(content);
    }

    pub(super) fn tag(&mut self, out: &mut Vec<u8>, number: u32, wire_type: u8) {
        self.varint(out, u64::from(number) << 3 | u64::from(wire_type), 5);
    }

    /// Writes a varint in as few bytes as possible or, in an unusual encoding, in up to `max` bytes.
    pub(super) fn varint(&mut self, out: &mut Vec<u8>, mut value: u64, max: usize) {
        let start = out.len();
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        let len = out.len() - start;
        if self.odd() {
            let longer = len + self.rng.below(max - len + 1);
            if longer > len {
                *out.last_mut().unwrap() |= 0x80;
                out.resize(start + longer - 1, 0x80);
                out.push(0);
            } else if len == 10 {
                // Decoders drop the bits above 64.
                *out.last_mut().unwrap() |= self.rng.below(0x80) as u8 & 0x7e;
            }
        }
    }
}
