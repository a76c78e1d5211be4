//! The located values of a block of rows: spans of their payloads, or numbers.

use crate::example::{Feature, Taken, VALUE_DEPTH, ValueMessage, content_offset};

/// Number of rows in a block. All rows of a block are located before any of their values is decoded.
///
/// The number is large enough to fill each column with many values at a time, and small enough that the
/// payloads are still in the CPU cache when they are decoded.
pub(super) const BLOCK_ROWS: usize = 64;

/// The value of a map entry as a span of its payload, or as a number. Payloads are shorter than 2^31 bytes.
///
/// It is one word: a start in bits 0 to 30, a length in bits 32 to 62, and flags. Flags are examined before
/// the rest of the word. Numbers are located with their values, because their bytes are in a register when
/// the entry is compared. To decode all features of a record at once would need the memory of all columns in
/// one loop, and branches on types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueSpan(u64);

/// Flag of a whole map entry, whose value is in several pieces.
const ENTRY: u64 = 1 << 31;
/// Flag of the content of a list, and of numbers.
const USUAL: u64 = 1 << 63;
/// Flag of a number, besides [`USUAL`]. The other bits are the number's, at most seven bytes.
const NUMBER: u64 = 1 << 62;
/// The bits of a start, and of a length.
const OFFSET: u64 = (1 << 31) - 1;

/// The content of a list in its usual encoding: the packed chunk of numbers, or the only byte string.
#[derive(Clone, Copy)]
pub(super) struct ListContent {
    /// Offset in the payload.
    pub(super) start: usize,
    pub(super) len: usize,
}

impl ValueSpan {
    /// The span of an absent feature. Every value starts after the first byte of its payload.
    pub(super) const ABSENT: ValueSpan = ValueSpan(0);

    /// Creates the span of a message, or of the entry that contains its pieces.
    #[inline]
    pub(super) fn new(value: ValueMessage<'_>) -> ValueSpan {
        let ValueSpan(word) = ValueSpan::message_at(value.start(), value.len());
        ValueSpan(if value.as_one().is_some() { word } else { word | ENTRY })
    }

    /// Creates the span of a message in one piece.
    #[inline(always)]
    pub(super) fn message_at(start: usize, len: usize) -> ValueSpan {
        ValueSpan(start as u64 & OFFSET | (len as u64 & OFFSET) << 32)
    }

    /// Creates the value of an entry in its usual encoding: its span, whose length is below 2^30, or its
    /// bytes in the payload, at most seven.
    #[inline(always)]
    pub(super) fn usual(taken: Taken, start: usize, len: usize, bytes: u64) -> ValueSpan {
        debug_assert!(len as u64 & OFFSET < 1 << 30, "expected a shorter value");
        // Both are computed and one is selected, because the kinds of features cannot be predicted.
        let span = start as u64 | (len as u64) << 32;
        let word = if taken == Taken::Number { bytes } else { span };
        ValueSpan(word | (taken as u64) << 56)
    }

    /// Returns the bytes of a number that was validated when it was located.
    #[inline(always)]
    pub(super) fn as_number(self) -> Option<u64> {
        (self.0 >= USUAL | NUMBER).then_some(self.number_bytes())
    }

    /// Returns the bytes of a number. The span must be one.
    #[inline(always)]
    pub(super) fn number_bytes(self) -> u64 {
        self.0 & !(USUAL | NUMBER)
    }

    /// Returns true if all values are numbers.
    #[inline(always)]
    pub(super) fn are_numbers(spans: &[ValueSpan]) -> bool {
        spans.iter().fold(u64::MAX, |all, span| all & span.0) >= USUAL | NUMBER
    }

    /// Returns the content of a list in its usual encoding. Its kind is the slot's.
    #[inline(always)]
    pub(super) fn as_content(self) -> Option<ListContent> {
        let ValueSpan(word) = self;
        let content = ListContent { start: (word & OFFSET) as usize, len: (word >> 32 & OFFSET) as usize };
        (word & (USUAL | NUMBER) == USUAL).then_some(content)
    }

    /// Returns the value, if there is one. A number has no span, and was validated.
    #[inline(never)]
    pub(super) fn message(self, payload: &[u8]) -> Option<ValueMessage<'_>> {
        if !self.is_present() || self.as_number().is_some() {
            return None;
        }
        let ValueSpan(word) = self;
        let mut start = (word & OFFSET) as usize;
        let mut len = (word >> 32 & OFFSET) as usize;
        if let Some(content) = self.as_content() {
            let offset = content_offset(content.len);
            (start, len) = (content.start - offset, len + offset);
        }
        let bytes = payload.get(start..start + len).unwrap_or_default();
        let entry = word & (USUAL | ENTRY) == ENTRY;
        Some(if entry { ValueMessage::entry(bytes, start) } else { ValueMessage::one(bytes, start) })
    }

    /// Returns true if the entry is there.
    #[inline]
    pub(super) fn is_present(self) -> bool {
        self != ValueSpan::ABSENT
    }

    /// Returns true if the feature is there and has a kind. Its values have been validated.
    #[inline]
    pub(super) fn has_kind(self, payload: &[u8]) -> bool {
        self.0 >= USUAL || self.has_kind_slow(payload)
    }

    #[inline(never)]
    fn has_kind_slow(self, payload: &[u8]) -> bool {
        let feature = self.message(payload).map(|value| Feature::check(value, VALUE_DEPTH));
        feature.is_some_and(|feature| feature.is_ok_and(|feature| feature.kind().is_some()))
    }
}

/// Number of spans from one slot to the next: an odd number of cache lines, so that the spans of one row are
/// spread over all sets of the cache.
const STRIDE: usize = (BLOCK_ROWS.div_ceil(8) | 1) * 8;

/// Returns the position of the first span of a slot in a table. It is below 2^32, because a plan has fewer
/// slots than bytes of keys.
pub(super) fn first_span(slot: u32) -> u32 {
    slot * STRIDE as u32
}

/// The value spans of a block of rows: a table with one row per slot and one column per record.
#[derive(Default)]
pub(super) struct SpanTable {
    spans: Vec<ValueSpan>,
    rows: usize,
}

impl SpanTable {
    /// Resizes the table to `slots` slots in `rows` rows, at most [`BLOCK_ROWS`]. All are absent.
    pub(super) fn reset(&mut self, rows: usize, slots: usize) {
        self.rows = rows;
        self.spans.resize(slots * STRIDE, ValueSpan::ABSENT);
        for spans in self.spans.chunks_exact_mut(STRIDE) {
            spans.iter_mut().take(rows).for_each(|span| *span = ValueSpan::ABSENT);
        }
    }

    /// Returns the spans of a slot, by row.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the table has spans of all rows for each slot")]
    pub(super) fn slot(&self, slot: usize) -> &[ValueSpan] {
        &self.spans[slot * STRIDE..][..self.rows]
    }

    /// Returns the spans of the slot with this [`first_span`], by row.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "the table has spans of all rows for each slot")]
    pub(super) fn slot_mut(&mut self, first_span: u32) -> &mut [ValueSpan] {
        &mut self.spans[first_span as usize..][..self.rows]
    }

    /// Returns the spans of a row.
    #[inline]
    pub(super) fn row(&mut self, row: usize) -> RowSpans<'_> {
        RowSpans(self.spans.get_mut(row..).unwrap_or_default())
    }
}

/// The spans of one row in a [`SpanTable`].
pub(super) struct RowSpans<'a>(&'a mut [ValueSpan]);

impl RowSpans<'_> {
    /// Returns the span of the slot with this [`first_span`], if there is one.
    #[inline(always)]
    pub(super) fn slot(&mut self, first_span: u32) -> Option<&mut ValueSpan> {
        self.0.get_mut(first_span as usize)
    }
}
