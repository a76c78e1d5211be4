//! The usual encoding of a map entry with a known key: all bytes before its value are predicted and compared
//! as a few words.

use super::kind::DType;
use tfseek_wire::{WireReader, keys_equal};

/// The high bit of each byte of a word.
const HIGH: u64 = 0x8080_8080_8080_8080;
/// The longest prefix that is compared as words.
const MAX_PREFIX: usize = 31;
/// Number of bytes that contain a prefix and a number.
const WINDOW: usize = MAX_PREFIX + 1 + 8;
/// The longest [`entry_head`] of a key whose length is one byte.
const MAX_HEAD: usize = 127 + 3;

/// What is taken from an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Taken {
    /// The message that is the entry's value. Its content is not compared.
    Message = 0,
    /// The content of a list: the packed chunk of numbers, which is not validated, or the only byte string.
    Content = 1 << 7,
    /// The only number of a list, which is validated: a float, or an integer of at most seven bytes.
    Number = 3 << 6,
}

/// The usual encoding of a map entry with a known key, as the bytes before its value.
///
/// All writers encode an entry as `0a L1 0a K key 12 L2 T L3 0a n`, followed by `n` bytes. The three lengths
/// differ from `n` by constants. So the prefix is known up to one number, its last byte, and is compared as
/// words in which `n` is added to each length. No branch depends on a single field.
///
/// A form that takes the message ends after `L2`, which is then `n`.
#[derive(Clone, Debug)]
pub(crate) struct EntryForm {
    /// The first word of the prefix, for `n = 0`. Its second byte is a length.
    first: u64,
    /// The last word of the prefix, for `n = 0`.
    last: u64,
    /// 1 in each byte of the last word that is a length.
    last_lens: u64,
    /// Two words between them, without lengths.
    middle: [u64; 2],
    middle_at: [u8; 2],
    /// The high bit of each byte if the value must be one varint, otherwise 0.
    varint: u64,
    prefix_len: u8,
    /// Smallest `n`, and the number of values above it. With the largest `n` all lengths are below 128.
    min: u8,
    range: u8,
    taken: Taken,
}

/// The value of an entry in its usual encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryValue {
    /// Offset in the payload of the bytes that the form takes.
    pub(crate) start: usize,
    pub(crate) len: usize,
    /// The bytes as a little-endian number, if the form takes a number.
    pub(crate) word: u64,
}

impl EntryForm {
    /// Returns the form of entries with this key and a list of this kind, which is not used for messages. It
    /// matches no entry if the key is too short or too long to be compared as words.
    #[expect(clippy::arithmetic_side_effects, reason = "lengths of a vector that is not empty")]
    pub(crate) fn new(key: &[u8], kind: DType, taken: Taken) -> EntryForm {
        let mut prefix = [&[0x0a, 0], &*entry_head(key), &[0]].concat();
        // The positions of the lengths, the outermost first.
        let mut lens = vec![1, prefix.len() - 1];
        if taken != Taken::Message {
            for tag in [kind.tag(), 0x0a] {
                lens.push(prefix.len() + 1);
                prefix.extend([tag, 0]);
            }
        }
        EntryForm::of_prefix(&mut prefix, &lens, kind, taken).unwrap_or(EntryForm::NONE)
    }

    /// A form that no entry has.
    pub(crate) const NONE: EntryForm = EntryForm {
        first: 0,
        last: 0,
        last_lens: 0,
        // Both are the same bytes.
        middle: [0, u64::MAX],
        middle_at: [0; 2],
        varint: 0,
        prefix_len: MAX_PREFIX as u8,
        min: 0,
        range: 0,
        taken: Taken::Message,
    };

    fn of_prefix(prefix: &mut [u8], lens: &[usize], kind: DType, taken: Taken) -> Option<EntryForm> {
        let len = prefix.len();
        // The first word must contain no other length than the outermost.
        if len > MAX_PREFIX || *lens.get(1)? < 8 {
            return None;
        }
        for &at in lens {
            // The number of bytes from here to the value.
            *prefix.get_mut(at)? = len.checked_sub(at)?.checked_sub(1)? as u8;
        }
        let is_len: Vec<u8> = (0..len).map(|at| u8::from(lens.contains(&at))).collect();
        let last_at = len.checked_sub(8)?;
        // Between the first and the last word, a prefix of more than 16 bytes has no length.
        let middle_at = match lens.get(1)?.checked_sub(8) {
            Some(end) if len > 16 => [end.min(8), if len > 24 { len.checked_sub(16)? } else { end.min(8) }],
            _ => [0; 2],
        };
        let [middle, other] = middle_at;
        let (min, max) = match (taken, kind) {
            (Taken::Number, DType::Int64) => (1, 7),
            (Taken::Number, _) => (4, 4),
            _ => (0, 0x7fu8.checked_sub(*prefix.get(1)?)?),
        };
        Some(EntryForm {
            first: word(prefix, 0)?,
            last: word(prefix, last_at)?,
            last_lens: word(&is_len, last_at)?,
            middle: [word(prefix, middle)?, word(prefix, other)?],
            middle_at: middle_at.map(|at| at as u8),
            varint: if (taken, kind) == (Taken::Number, DType::Int64) { HIGH } else { 0 },
            prefix_len: len as u8,
            min,
            range: max.checked_sub(min)?,
            taken,
        })
    }

    /// Returns what this form takes from an entry.
    #[inline(always)]
    pub(crate) fn taken(&self) -> Taken {
        self.taken
    }

    /// Takes the next field of `message`, if it is an entry of this form. Otherwise nothing is consumed.
    #[inline(always)]
    pub(super) fn take(&self, message: &mut WireReader<'_>) -> Option<EntryValue> {
        let rest = message.rest();
        let prefix_len = usize::from(self.prefix_len);
        let (len, word) = match rest.first_chunk() {
            Some(window) => self.compare(window)?,
            None if rest.len() < prefix_len => return None,
            None => self.compare_at_end(rest)?,
        };
        let (_, after) = rest.split_at_checked(prefix_len.wrapping_add(len))?;
        message.skip_to(after);
        Some(EntryValue { start: message.position().wrapping_sub(len), len, word })
    }

    /// Returns the length of the value and its first bytes, if the prefix is the predicted one.
    #[inline(always)]
    fn compare(&self, window: &[u8; WINDOW]) -> Option<(usize, u64)> {
        // The masks change nothing, and tell the compiler that all bytes are inside of the window.
        let inside = |at: usize| at % (MAX_PREFIX + 1);
        let prefix_len = usize::from(self.prefix_len);
        let len = *window.get(inside(prefix_len.wrapping_sub(1)))?;
        let value = |unused| Some(word(window, inside(prefix_len))? & u64::MAX.wrapping_shr(unused));
        self.compare_words(len, |at| word(window, inside(at)), value)
    }

    /// Compares an entry near the end of the message.
    #[inline(never)]
    fn compare_at_end(&self, rest: &[u8]) -> Option<(usize, u64)> {
        let prefix_len = usize::from(self.prefix_len);
        let len = *rest.get(prefix_len.wrapping_sub(1))?;
        let entry = rest.get(..prefix_len.wrapping_add(usize::from(len)))?;
        // The last word of the entry ends with the value.
        let value = |unused| Some(u64::from_le_bytes(*entry.last_chunk()?).wrapping_shr(unused));
        self.compare_words(len, |at| word(entry, at), value)
    }

    /// Compares the words of a prefix that ends with `len`. `value` returns the value, given the number of
    /// bits that it does not have.
    #[inline(always)]
    fn compare_words(
        &self,
        len: u8,
        word: impl Fn(usize) -> Option<u64>,
        value: impl Fn(u32) -> Option<u64>,
    ) -> Option<(usize, u64)> {
        let prefix_len = usize::from(self.prefix_len);
        if len.wrapping_sub(self.min) > self.range {
            return None;
        }
        let lens = u64::from(len);
        // No sum of bytes exceeds 127, so there is no carry.
        let first = word(0)? ^ self.first.wrapping_add(lens << 8);
        let last =
            word(prefix_len.wrapping_sub(8))? ^ self.last.wrapping_add(self.last_lens.wrapping_mul(lens));
        let mut differences = first | last;
        if prefix_len > 16 {
            let ([at, other_at], [middle, other]) = (self.middle_at, self.middle);
            differences |= word(usize::from(at))? ^ middle;
            differences |= word(usize::from(other_at))? ^ other;
        }
        // Shifts by 64 and more only concern values that are not used.
        let unused = 64u32.wrapping_sub(u32::from(len).wrapping_mul(8));
        let value = value(unused)?;
        // All bytes of a varint except the last have the high bit.
        differences |= (value & self.varint) ^ (self.varint >> 8).wrapping_shr(unused);
        (differences == 0).then_some((usize::from(len), value))
    }
}

/// Returns the bytes before the value's length in an entry with this key: `0a klen key 12`. If `klen` needs
/// more than one byte the result is meaningless, and is used for lookups only.
pub(crate) fn entry_head(key: &[u8]) -> Box<[u8]> {
    [&[0x0a, key.len() as u8], key, &[0x12]].concat().into()
}

/// Takes the next field of `message`, if it is an entry with this key in the usual encoding, of any length.
/// `head` is the [`entry_head`] of the key. If `content`, it returns the content of a list of this kind,
/// otherwise the message that is the entry's value.
#[inline(never)]
pub(super) fn take_long<'a>(
    message: WireReader<'a>,
    head: &[u8],
    kind: DType,
    content: bool,
) -> Option<(EntryValue, WireReader<'a>)> {
    if head.len() > MAX_HEAD {
        return None;
    }
    let (entry, after) = field(message.rest(), 0x0a)?;
    let (entry_start, value) = entry.split_at_checked(head.len().checked_sub(1)?)?;
    let (tag, key) = head.split_last()?;
    if !keys_equal(entry_start, key) {
        return None;
    }
    let mut value = only_field(value, *tag)?;
    if content {
        value = only_field(only_field(value, kind.tag())?, 0x0a)?;
    }
    let mut message = message;
    message.skip_to(after);
    Some((EntryValue { start: message.start_of(value), len: value.len(), word: 0 }, message))
}

/// Returns start and length of the value of the first entry of `entries`, as [`take_long`] takes it.
pub(crate) fn long_entry(entries: &[u8], head: &[u8], kind: DType, content: bool) -> Option<(usize, usize)> {
    let (value, _) = take_long(WireReader::new(entries), head, kind, content)?;
    Some((value.start, value.len))
}

/// Returns the first field and the bytes after it, if it has this tag and its length takes no more bytes than
/// it needs.
#[inline]
fn field(message: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (len, body) = match message {
        [first, len @ ..0x80, body @ ..] if *first == tag => (usize::from(*len), body),
        [first, low @ 0x80..=0xff, high @ 1..=0x7f, body @ ..] if *first == tag => {
            (usize::from(low & 0x7f) | usize::from(*high) << 7, body)
        }
        [first, low @ 0x80..=0xff, middle @ 0x80..=0xff, high @ 1..=0x7f, body @ ..] if *first == tag => {
            let low = usize::from(low & 0x7f) | usize::from(middle & 0x7f) << 7;
            (low | usize::from(*high) << 14, body)
        }
        _ => return None,
    };
    body.split_at_checked(len)
}

/// Returns the field that is all of a message.
#[inline]
fn only_field(message: &[u8], tag: u8) -> Option<&[u8]> {
    let (bytes, after) = field(message, tag)?;
    after.is_empty().then_some(bytes)
}

/// Returns the number of bytes between the start of a feature in its usual encoding and the content of its
/// list.
#[expect(clippy::arithmetic_side_effects, reason = "`len` is the length of a part of a payload")]
pub(crate) fn content_offset(len: usize) -> usize {
    let len_size = |len: usize| match len {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => 3usize,
    };
    let list = len_size(len) + 1;
    list + len_size(len + list) + 1
}

/// Returns the word of `bytes` at `at`.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an entry in its usual encoding, with `value` as the content of its list, or as its message.
    fn entry(key: &[u8], kind: DType, taken: Taken, value: &[u8]) -> Vec<u8> {
        let field = |tag: u8, bytes: &[u8]| [&[tag, bytes.len() as u8], bytes].concat();
        let value = match taken {
            Taken::Message => value.to_vec(),
            _ => field(kind.tag(), &field(0x0a, value)),
        };
        field(0x0a, &[field(0x0a, key), field(0x12, &value)].concat())
    }

    /// Calls `check` with a form, an entry, its value, and true if the form is expected to take it.
    fn for_all(check: impl Fn(&EntryForm, &[u8], &[u8], bool)) {
        let step = if cfg!(miri) { 11 } else { 1 };
        let values = (0..90).step_by(step).map(|len| vec![0x41; len]).chain((1..9).map(|len| {
            let mut varint = vec![0x85; len];
            varint[len - 1] = 7;
            varint
        }));
        let values: Vec<Vec<u8>> = values.collect();
        for key_len in (0..30).step_by(step) {
            let key = vec![b'k'; key_len];
            for kind in [DType::Bytes, DType::Float32, DType::Int64] {
                for taken in [Taken::Message, Taken::Content, Taken::Number] {
                    let form = EntryForm::new(&key, kind, taken);
                    for value in &values {
                        let wanted = match (taken, kind) {
                            (Taken::Number, DType::Int64) => {
                                (1..8).contains(&value.len())
                                    && value.iter().position(|byte| *byte < 0x80) == Some(value.len() - 1)
                            }
                            (Taken::Number, _) => value.len() == 4,
                            _ => true,
                        };
                        let longest = if taken == Taken::Message { 25 } else { 21 };
                        let wanted = wanted && (3..=longest).contains(&key_len);
                        let entry = entry(&key, kind, taken, value);
                        if entry.len() < 0x80 {
                            check(&form, &entry, value, wanted);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn forms_take_the_usual_encoding() {
        for_all(|form, entry, value, wanted| {
            for after in [0, 1, 7, 100] {
                let message = [entry, &vec![0xff; after]].concat();
                let mut reader = WireReader::new(&message);
                let word = value.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                let found = form.take(&mut reader).map(|found| {
                    let word_matches = form.taken() != Taken::Number || found.word == word;
                    (found.start, found.len, word_matches, reader.rest().len())
                });
                let want = (entry.len() - value.len(), value.len(), true, after);
                assert_eq!(found, wanted.then_some(want), "{form:?} {entry:02x?}");
            }
        });
    }

    /// A change of any bit before the value, and the loss of any byte, is noticed.
    #[test]
    fn forms_take_nothing_else() {
        for_all(|form, entry, value, wanted| {
            if !wanted || value.len() > 9 && value.len() < 80 {
                return;
            }
            let message = [entry, &[0x0a; 200]].concat();
            for at in 0..entry.len() - value.len() {
                for bit in 0..8 {
                    let mut changed = message.clone();
                    changed[at] ^= 1 << bit;
                    assert_eq!(form.take(&mut WireReader::new(&changed)), None, "{form:?} {at} {entry:02x?}");
                }
            }
            for len in 0..entry.len() {
                assert_eq!(form.take(&mut WireReader::new(&message[..len])), None, "{form:?} {entry:02x?}");
            }
        });
    }

    #[test]
    fn long_entries() {
        let field = |tag: u8, bytes: &[u8]| {
            let len = bytes.len();
            let head = match len {
                0..0x80 => vec![tag, len as u8],
                0x80..0x4000 => vec![tag, len as u8 | 0x80, (len >> 7) as u8],
                _ => vec![tag, len as u8 | 0x80, (len >> 7) as u8 | 0x80, (len >> 14) as u8],
            };
            [&head, bytes].concat()
        };
        for len in (0..300).chain(16_200..16_400).chain([1 << 20]) {
            let feature = field(0x1a, &field(0x0a, &vec![1; len]));
            assert_eq!(feature.len() - len, content_offset(len));
            let entry = field(0x0a, &[field(0x0a, b"key"), field(0x12, &feature)].concat());
            let message = [&entry, &[1, 2, 3][..]].concat();
            for content in [false, true] {
                let taken = take_long(WireReader::new(&message), &entry_head(b"key"), DType::Int64, content);
                let (value, after) = taken.unwrap();
                let len = if content { len } else { feature.len() };
                assert_eq!((value.start, value.len, after.rest()), (entry.len() - len, len, &[1, 2, 3][..]));
            }
            for (head, kind) in [(b"kez", DType::Int64), (b"key", DType::Float32)] {
                assert!(take_long(WireReader::new(&message), &entry_head(head), kind, true).is_none());
            }
        }
    }
}
