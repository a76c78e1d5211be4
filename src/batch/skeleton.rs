//! Skeletons: the bytes that the records of one writer have in common.
//!
//! A writer stores the features of all records in one order. Then only values differ from record to record,
//! and the lengths of those with a variable length. A skeleton has all other bytes, in *stretches* that end
//! before a value of variable length.
//!
//! Every byte of a record that fits is accounted for: it equals the skeleton's byte, or it is a length that
//! agrees with the lengths around it, or part of a value. So a skeleton finds in a record what a walk over
//! its entries finds, or nothing. `fit` compares.

use super::sample::{MAX_NUMBER, SampleEntry, prefix};
use crate::example::{DType, Taken, entry_head};

/// Longest value of a constant length that is passed over inside of a stretch.
const MAX_INSIDE: usize = 32;
/// Longest value of an entry in its usual encoding.
const MAX_LONG: usize = (1 << 21) - 1;

/// The common bytes of records.
#[derive(Default)]
pub(super) struct Skeleton {
    pub(super) stretches: Vec<Stretch>,
    /// The bytes of all stretches.
    pub(super) windows: Vec<StretchWindow>,
    pub(super) longs: Vec<LongEntry>,
    /// Numbers of a constant length, and those after a stretch.
    pub(super) fixed: Vec<FixedNumber>,
    pub(super) varints: Vec<FoundVarint>,
    pub(super) contents: Vec<FoundContent>,
    /// Number of bytes before the current stretch, at least.
    position: usize,
}

/// Bytes up to a value of variable length, or to the end.
pub(super) struct Stretch {
    /// Number of bytes.
    pub(super) len: u32,
    pub(super) after: After,
}

/// The bytes after a stretch.
#[derive(Clone, Copy)]
pub(super) enum After {
    /// A value whose length is the last byte of the stretch: from `min` to `min + range`.
    Length {
        min: u8,
        range: u8,
    },
    /// A value of this length.
    Skip(u32),
    /// A whole entry with a value of any length.
    Long(usize),
    End,
}

/// Bytes of a window.
pub(super) const WINDOW: usize = 64;

/// Bytes of a stretch that are compared together. Its arrays are whole cache lines.
#[repr(C, align(64))]
pub(super) struct StretchWindow {
    /// The bytes, with a value of variable length without bytes.
    pub(super) template: [u8; WINDOW],
    /// The bits that are compared.
    pub(super) mask: [u8; WINDOW],
    /// All bits of the bytes that are lengths of the value after the stretch, or of what contains it.
    pub(super) lens: [u8; WINDOW],
    pub(super) stretch: usize,
    /// Start of the window, from the start of the stretch, modulo 2^32.
    pub(super) offset: u32,
}

/// An entry with a value of any length.
pub(super) struct LongEntry {
    pub(super) head: Box<[u8]>,
    pub(super) kind: DType,
    pub(super) content: bool,
}

/// A number of a constant length, from 1 to 7 bytes, that a slot needs.
pub(super) struct FixedNumber {
    pub(super) first_span: u32,
    pub(super) stretch: usize,
    /// Start of the eight bytes that end with the number, from the start of the stretch.
    pub(super) offset: u32,
    /// Number of bits before the number in these bytes.
    pub(super) before: u32,
}

/// A varint after a stretch, which a slot needs.
pub(super) struct FoundVarint {
    pub(super) first_span: u32,
    pub(super) stretch: usize,
    /// Length of the stretch, without eight bytes.
    pub(super) offset: u32,
}

/// A content or message that a slot needs.
pub(super) struct FoundContent {
    pub(super) first_span: u32,
    pub(super) taken: Taken,
    pub(super) place: ContentPlace,
}

#[derive(Clone, Copy)]
pub(super) enum ContentPlace {
    /// From the start of the stretch.
    Fixed { stretch: usize, offset: u32, len: u32 },
    /// After the stretch.
    Variable { stretch: usize },
    /// In a long entry.
    Long(usize),
}

/// The bytes of a stretch that is being built.
#[derive(Default)]
struct StretchBytes {
    template: Vec<u8>,
    mask: Vec<u8>,
    lens: Vec<u8>,
}

impl StretchBytes {
    fn push(&mut self, bytes: &[u8], mask: u8) {
        self.template.extend(bytes);
        self.mask.extend(std::iter::repeat_n(mask, bytes.len()));
        self.lens.extend(std::iter::repeat_n(0, bytes.len()));
    }
}

impl Skeleton {
    /// Compiles the entries of records. `None` for a value that is too long.
    pub(super) fn new(entries: &[SampleEntry]) -> Option<Skeleton> {
        // The shortest header of a payload.
        let mut skeleton = Skeleton { position: 2, ..Skeleton::default() };
        let mut bytes = StretchBytes::default();
        for entry in entries {
            skeleton.add(entry, &mut bytes)?;
        }
        skeleton.end(&mut bytes, After::End, 0);
        Some(skeleton)
    }

    fn add(&mut self, entry: &SampleEntry, bytes: &mut StretchBytes) -> Option<()> {
        let kind = entry.kind();
        let taken = entry.taken();
        let is_varint = taken == Taken::Number && kind == Some(DType::Int64);
        if entry.min == entry.max {
            let len = u32::try_from(entry.min).ok().filter(|len| *len as usize <= MAX_LONG)?;
            bytes.push(&prefix(&entry.key, kind, entry.min).0, u8::MAX);
            self.take(entry, bytes.template.len(), Some(len));
            if entry.min > MAX_INSIDE {
                self.end(bytes, After::Skip(len), entry.min);
                return Some(());
            }
            // All bytes of a varint except the last have the high bit.
            let (high, mask) = if is_varint { (0x80, 0x80) } else { (0, 0) };
            let value: Vec<u8> = (1..=len).map(|k| if k < len { high } else { 0 }).collect();
            bytes.push(&value, mask);
            return Some(());
        }
        let (empty, lens) = prefix(&entry.key, kind, 0);
        // With the largest value all lengths are below 128.
        let longest = empty.get(1).and_then(|len| 127usize.checked_sub(usize::from(*len)));
        match longest {
            Some(longest) if entry.max <= longest && empty.len() < 128 => {
                let (min, max) = if taken == Taken::Number { (1, MAX_NUMBER) } else { (0, longest) };
                let start = bytes.template.len();
                bytes.push(&empty, u8::MAX);
                for at in lens {
                    *bytes.lens.get_mut(start.checked_add(at)?)? = u8::MAX;
                }
                self.take(entry, bytes.template.len(), None);
                let least = min as u8;
                let range = max.checked_sub(min)? as u8;
                self.end(bytes, After::Length { min: least, range }, entry.min);
            }
            _ => {
                let long = self.longs.len();
                let head = entry_head(&entry.key);
                self.longs.push(LongEntry {
                    head,
                    kind: kind.unwrap_or(DType::Bytes),
                    content: kind.is_some(),
                });
                if let Some(slot) = entry.slot {
                    // A number in an entry of this length is located as content.
                    let taken = if kind.is_some() { Taken::Content } else { Taken::Message };
                    let place = ContentPlace::Long(long);
                    self.contents.push(FoundContent { first_span: slot.first_span, taken, place });
                }
                self.end(bytes, After::Long(long), entry.min);
            }
        }
        Some(())
    }

    /// Adds the value of an entry, which is at `offset` in the current stretch, and is after it if its length
    /// is variable.
    fn take(&mut self, entry: &SampleEntry, offset: usize, len: Option<u32>) {
        let Some(slot) = entry.slot else { return };
        let first_span = slot.first_span;
        let taken = entry.taken();
        let stretch = self.stretches.len();
        // More than eight bytes of an entry are before its value.
        let word = |end: usize| (end - 8) as u32;
        match (taken, len) {
            (Taken::Number, Some(len)) => {
                let before = 64 - len * 8;
                let offset = word(offset + len as usize);
                self.fixed.push(FixedNumber { first_span, stretch, offset, before });
            }
            (Taken::Number, None) => {
                self.varints.push(FoundVarint { first_span, stretch, offset: word(offset) });
            }
            (_, len) => {
                let place = match len {
                    Some(len) => ContentPlace::Fixed { stretch, offset: offset as u32, len },
                    None => ContentPlace::Variable { stretch },
                };
                self.contents.push(FoundContent { first_span, taken, place });
            }
        }
    }

    /// Ends a stretch, after which are at least `min` bytes.
    fn end(&mut self, bytes: &mut StretchBytes, after: After, min: usize) {
        let StretchBytes { template, mask, lens } = std::mem::take(bytes);
        let stretch = self.stretches.len();
        let len = template.len();
        for offset in (0..len).step_by(WINDOW) {
            // The last window ends with the stretch, and so inside of the payload, unless it would begin
            // before the payload.
            let before = (offset + WINDOW).saturating_sub(len);
            let before = if before > self.position + offset { 0 } else { before };
            let [template, mask, lens] = [&template, &mask, &lens].map(|bytes| window(bytes, offset, before));
            let offset = (offset as u32).wrapping_sub(before as u32);
            self.windows.push(StretchWindow { template, mask, lens, stretch, offset });
        }
        self.stretches.push(Stretch { len: len as u32, after });
        self.position += len + min;
    }
}

/// Returns the bytes of a window that begins `before` bytes before `start`. The bytes before `start` and
/// after the last one are 0.
fn window(bytes: &[u8], start: usize, before: usize) -> [u8; WINDOW] {
    let mut window = [0; WINDOW];
    let places = window.iter_mut().skip(before);
    places.zip(bytes.iter().skip(start)).for_each(|(to, byte)| *to = *byte);
    window
}
