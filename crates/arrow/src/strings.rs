//! Columns of byte strings as Arrow arrays.

use crate::error::{Error, ErrorKind, Result};
use crate::memory::{collected, shared, shared_bytes};
use arrow_array::builder::make_view;
use arrow_array::{BinaryArray, BinaryViewArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use std::ops::Range;
use tfseek::batch::BytesColumn;

/// Longest string that lies in its view.
const MAX_INLINE: usize = 12;

/// Shortest string that is not copied where the batch refers to the memory of the records. Shorter ones are
/// copied together, so that an array has few buffers.
pub(crate) const MIN_SHARED: usize = 16 << 10;

/// Largest offset in a buffer, and largest number of offsets.
pub(crate) const MAX_OFFSET: usize = i32::MAX as usize;

/// One string of a column, as the owner of a buffer.
struct SharedString {
    strings: BytesColumn,
    number: usize,
}

impl AsRef<[u8]> for SharedString {
    fn as_ref(&self) -> &[u8] {
        self.strings.get(self.number).unwrap_or_default()
    }
}

/// Returns the strings of these ranges as views. Long strings are shared, or copied together.
pub(crate) fn views(strings: &BytesColumn, kept: &[Range<usize>]) -> Result<BinaryViewArray> {
    views_into(MAX_OFFSET, strings, kept)
}

/// Returns views into buffers of at most `max` bytes.
fn views_into(max: usize, strings: &BytesColumn, kept: &[Range<usize>]) -> Result<BinaryViewArray> {
    if let Some(array) = contiguous_views(max, strings, kept)? {
        return Ok(array);
    }
    let is_copied = |len: usize| len > MAX_INLINE && !(strings.is_borrowed() && len >= MIN_SHARED);
    let lens = kept_strings(strings, kept).map(|(_, value)| value.len());
    let mut left: usize = lens.filter(|&len| is_copied(len)).sum();
    let mut views = collected(kept.iter().map(Range::len).sum(), std::iter::empty())?;
    let mut buffers = Vec::new();
    // The copies that become a buffer, and its number.
    let mut copies = Vec::new();
    let mut slot = None;
    // Not a `for` loop: the iterator is a chain, which is faster inside out.
    kept_strings(strings, kept).try_for_each(|(number, value)| {
        let len = value.len();
        if len > max {
            return Err(Error::from(ErrorKind::TooLarge { len }));
        }
        if let Some(view) = inline_view(value) {
            views.push(view);
        } else if is_copied(len) {
            let buffer = match slot {
                Some(buffer) if copies.len() + len <= max => buffer,
                _ => {
                    finish(&mut buffers, slot, std::mem::take(&mut copies));
                    copies = collected(left.min(max), std::iter::empty())?;
                    buffers.push(Buffer::from_vec(Vec::<u8>::new()));
                    buffers.len() - 1
                }
            };
            slot = Some(buffer);
            left -= len;
            views.push(make_view(value, buffer as u32, copies.len() as u32));
            copies.extend_from_slice(value);
        } else {
            views.push(make_view(value, buffers.len() as u32, 0));
            buffers.push(shared_bytes(SharedString { strings: strings.clone(), number }));
        }
        Ok(())
    })?;
    finish(&mut buffers, slot, copies);
    Ok(BinaryViewArray::try_new(views.into(), buffers, None)?)
}

/// Returns the view of a string that lies in its view: the length in the low 32 bits, and the bytes above it.
/// `None` for a longer one.
///
/// The bytes are read as two words that overlap, which takes a third of the time of a copy of unknown length.
fn inline_view(value: &[u8]) -> Option<u128> {
    let len = value.len();
    let bytes = match len {
        0..4 => value.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u128::from(byte)),
        4..8 => {
            let first = value.first_chunk()?;
            let last = value.last_chunk()?;
            let [first, last] = [first, last].map(|four: &[u8; 4]| u128::from(u32::from_le_bytes(*four)));
            first | last << (8 * (len - 4))
        }
        8..=MAX_INLINE => {
            let first = value.first_chunk()?;
            let last = value.last_chunk()?;
            let [first, last] = [first, last].map(|eight: &[u8; 8]| u128::from(u64::from_le_bytes(*eight)));
            first | last << (8 * (len - 8))
        }
        _ => return None,
    };
    Some(bytes << 32 | len as u128)
}

/// Puts the copies into the buffer of this number.
fn finish(buffers: &mut [Buffer], slot: Option<usize>, copies: Vec<u8>) {
    if let Some(buffer) = slot.and_then(|slot| buffers.get_mut(slot)) {
        *buffer = Buffer::from_vec(copies);
    }
}

/// Returns views of contiguous strings, without a copy. `None` if they are not contiguous, or too far apart
/// to be worth sharing.
fn contiguous_views(
    max: usize,
    strings: &BytesColumn,
    kept: &[Range<usize>],
) -> Result<Option<BinaryViewArray>> {
    if strings.is_borrowed() {
        return Ok(None);
    }
    let (data, offsets) = strings.to_contiguous()?;
    let long = kept_strings(strings, kept).map(|(_, value)| value.len()).filter(|&len| len > MAX_INLINE);
    let referred: usize = long.sum();
    if referred < data.len() / 2 || data.len() > max {
        return Ok(None);
    }
    let views = kept_strings(strings, kept).map(|(number, value)| {
        inline_view(value).unwrap_or_else(|| {
            let start = offsets.get(number).copied().unwrap_or_default();
            make_view(value, 0, start as u32)
        })
    });
    let views: Vec<u128> = collected(kept.iter().map(Range::len).sum(), views)?;
    let buffers = if referred == 0 { Vec::new() } else { vec![shared(&data)] };
    Ok(Some(BinaryViewArray::try_new(views.into(), buffers, None)?))
}

/// Returns the strings of these ranges in one buffer, with offsets. The buffer is shared if it exists
/// already.
pub(crate) fn binary(strings: &BytesColumn, kept: &[Range<usize>]) -> Result<BinaryArray> {
    let (data, offsets): (Buffer, Vec<i32>) = if is_whole(strings, kept) {
        let (data, offsets) = strings.to_contiguous()?;
        check_len(data.len().max(strings.len()))?;
        (shared(&data), collected(offsets.len(), offsets.iter().map(|&offset| offset as i32))?)
    } else {
        let len: usize = kept_strings(strings, kept).map(|(_, value)| value.len()).sum();
        let count: usize = kept.iter().map(Range::len).sum();
        check_len(len.max(count))?;
        let mut data = collected(len, std::iter::empty())?;
        let mut offsets = collected(count + 1, std::iter::empty())?;
        offsets.push(0);
        for (_, value) in kept_strings(strings, kept) {
            data.extend_from_slice(value);
            offsets.push(data.len() as i32);
        }
        (Buffer::from_vec(data), offsets)
    };
    Ok(BinaryArray::try_new(OffsetBuffer::new(ScalarBuffer::from(offsets)), data, None)?)
}

/// Checks a number of bytes or of strings.
fn check_len(len: usize) -> Result<()> {
    if len > MAX_OFFSET { Err(ErrorKind::TooLarge { len }.into()) } else { Ok(()) }
}

/// Returns true if the ranges are one that has all strings.
fn is_whole(strings: &BytesColumn, kept: &[Range<usize>]) -> bool {
    matches!(kept, [all] if *all == (0..strings.len()))
}

/// Returns the strings of these ranges with their numbers.
pub(crate) fn kept_strings<'a>(
    strings: &'a BytesColumn,
    kept: &'a [Range<usize>],
) -> impl Iterator<Item = (usize, &'a [u8])> + 'a {
    // An iterator over all strings is faster than access by number.
    let whole = is_whole(strings, kept).then(|| strings.iter().enumerate());
    let ranges = if whole.is_some() { &[] } else { kept };
    let numbers = ranges.iter().cloned().flatten();
    let some = numbers.filter_map(|number| Some((number, strings.get(number)?)));
    whole.into_iter().flatten().chain(some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use tfseek::io::Region;
    use tfseek::schema::{DType, FeatureSpec, Schema};
    use tfseek::{BatchParser, ExampleBuilder};

    #[test]
    fn inline_views_are_those_of_arrow() {
        let bytes: Vec<u8> = (0..=255).rev().collect();
        for len in 0..=16 {
            for start in 0..=bytes.len() - len {
                let value = &bytes[start..start + len];
                let want = (len <= MAX_INLINE).then(|| make_view(value, 0, 0));
                assert_eq!(inline_view(value), want, "{value:?}");
            }
        }
    }

    #[test]
    fn copies_beyond_the_limit_of_a_buffer_are_in_several_buffers() {
        let lens = [40, 0, 50, 12, 30, 100, 13, 60];
        let rows: Vec<Region> = (0..)
            .zip(lens)
            .map(|(k, len)| Region::new(ExampleBuilder::new().bytes("s", [vec![k; len]]).encode().unwrap()))
            .collect();
        let schema =
            Schema::example().feature("s", FeatureSpec::fixed_len(&[], DType::Bytes)).build().unwrap();
        for contiguous in [false, true] {
            let parser = BatchParser::new(&schema).contiguous_bytes(contiguous);
            let batch = parser.parse(&rows).unwrap();
            let strings = batch.bytes("s").unwrap();
            let all = std::slice::from_ref(&(0..8));
            for kept in [all, &[0..3, 5..8], &[3..4, 6..7], &[]] {
                let want: Vec<&[u8]> = kept_strings(strings, kept).map(|(_, value)| value).collect();
                for max in [100, 110, 1000] {
                    let array = views_into(max, strings, kept).unwrap();
                    array.to_data().validate_full().unwrap();
                    assert!(array.iter().map(Option::unwrap).eq(want.iter().copied()), "{max} {kept:?}");
                    assert!(max == 1000 || array.data_buffers().iter().all(|buffer| buffer.len() <= max));
                }
            }
            let error = views_into(99, strings, all).unwrap_err();
            assert!(matches!(error.kind, ErrorKind::TooLarge { len: 100 }), "{error:?}");
        }
    }
}
