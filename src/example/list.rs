//! The three kinds of lists: `Copy` views that were validated and counted when they were looked up.

use super::source::{ListFields, ListSlice, ScatteredList};
use crate::error::{ErrorKind, Result};
use crate::memory::room;
use crate::wire::{WireReader, WireValue, varint};
use std::fmt;
use std::iter::FusedIterator;

/// The bytes of a list's values, borrowed from the payload.
#[derive(Clone, Copy)]
enum ListBytes<'a> {
    /// One packed chunk of numbers, or one list message of byte strings.
    One(ListSlice<'a>),
    /// Any other form that protobuf allows.
    Scattered(ScatteredList<'a>),
}

/// The values of a list of any kind, validated and counted.
#[derive(Clone, Copy)]
pub(super) struct ListBody<'a> {
    bytes: ListBytes<'a>,
    len: usize,
}

impl<'a> ListBody<'a> {
    #[inline]
    pub(super) fn one(slice: ListSlice<'a>, len: usize) -> ListBody<'a> {
        ListBody { bytes: ListBytes::One(slice), len }
    }

    pub(super) fn checked(
        slice: Option<ListSlice<'a>>,
        scattered: ScatteredList<'a>,
        len: usize,
    ) -> ListBody<'a> {
        ListBody { bytes: slice.map_or(ListBytes::Scattered(scattered), ListBytes::One), len }
    }

    /// Returns the packed chunk of a list of numbers, or the message of a list of byte strings, if it is one slice.
    #[inline]
    fn as_one(self) -> Option<ListSlice<'a>> {
        match self.bytes {
            ListBytes::One(slice) => Some(slice),
            ListBytes::Scattered(_) => None,
        }
    }

    /// Returns the first packed chunk of a list of numbers, and the fields after it.
    #[inline]
    fn numbers(self) -> (&'a [u8], ListFields<'a>) {
        match self.bytes {
            ListBytes::One(chunk) => (chunk.bytes(), ListFields::none()),
            ListBytes::Scattered(list) => (&[], list.values()),
        }
    }

    fn check_len(self, buf: usize) -> Result<()> {
        if self.len == buf {
            return Ok(());
        }
        Err(ErrorKind::WrongLen { expected: self.len, found: buf }.into())
    }
}

/// Number of values that `Debug` prints.
const DEBUG_VALUES: usize = 8;

fn debug_list<T: fmt::Debug>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    values: impl Iterator<Item = T>,
    len: usize,
) -> fmt::Result {
    write!(f, "{name}[")?;
    for (k, value) in values.take(DEBUG_VALUES).enumerate() {
        if k > 0 {
            f.write_str(", ")?;
        }
        value.fmt(f)?;
    }
    match len.saturating_sub(DEBUG_VALUES) {
        0 => f.write_str("]"),
        more => write!(f, ", .. {more} more]"),
    }
}

// ---- int64 ----

/// A list of 64-bit integers. It is `Copy`. Values are decoded as they are iterated.
#[derive(Clone, Copy)]
pub struct Int64List<'a> {
    pub(super) body: ListBody<'a>,
}

impl<'a> Int64List<'a> {
    /// Returns the number of values. O(1).
    #[inline]
    pub fn len(self) -> usize {
        self.body.len
    }

    /// Returns true if there is no value.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns an iterator over the values, in order.
    #[inline]
    pub fn iter(self) -> Int64Iter<'a> {
        let (chunk, fields) = self.body.numbers();
        Int64Iter { chunk: WireReader::new(chunk), fields, left: self.len() }
    }

    /// Returns value `k`. Linear in `k`, unless every value takes one byte.
    pub fn get(self, k: usize) -> Option<i64> {
        match self.body.as_one() {
            // If there are as many bytes as values, each value is one byte.
            Some(chunk) if chunk.bytes().len() == self.len() => chunk.bytes().get(k).map(|&b| i64::from(b)),
            _ => self.iter().nth(k),
        }
    }

    /// Returns the first value.
    #[inline]
    pub fn first(self) -> Option<i64> {
        self.iter().next()
    }

    /// Decodes all values into `dst`, which must have the list's length. Faster than [`iter`](Self::iter): on processors with AVX2 and
    /// BMI2, a list is decoded in blocks of 64 bytes.
    ///
    /// # Errors
    /// [`ErrorKind::WrongLen`].
    pub fn decode_into(self, dst: &mut [i64]) -> Result<()> {
        self.body.check_len(dst.len())?;
        match self.body.as_one() {
            // The values were counted at lookup, so `dst` is filled. If the bytes have changed since then, its end is unspecified.
            Some(chunk) => {
                varint::decode(chunk.bytes(), dst);
            }
            None => {
                for (to, value) in dst.iter_mut().zip(self.iter()) {
                    *to = value;
                }
            }
        }
        Ok(())
    }

    /// Copies the values into a vector.
    pub fn to_vec(self) -> Vec<i64> {
        self.appended_to(Vec::with_capacity(self.len()))
    }

    /// Copies the values into a vector.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn try_to_vec(self) -> Result<Vec<i64>> {
        Ok(self.appended_to(room(self.len())?))
    }

    fn appended_to(self, mut values: Vec<i64>) -> Vec<i64> {
        match self.body.as_one() {
            Some(chunk) => {
                values.resize(self.len(), 0);
                let len = varint::decode(chunk.bytes(), &mut values);
                values.truncate(len);
            }
            None => values.extend(self.iter()),
        }
        values
    }
}

/// An iterator over the values of an [`Int64List`].
#[derive(Clone, Copy, Debug)]
pub struct Int64Iter<'a> {
    chunk: WireReader<'a>,
    fields: ListFields<'a>,
    left: usize,
}

impl Iterator for Int64Iter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        while self.chunk.is_empty() {
            match self.fields.next()? {
                WireValue::Varint(value) => {
                    self.left = self.left.saturating_sub(1);
                    return Some(value as i64);
                }
                WireValue::Len(chunk) => self.chunk = WireReader::new(chunk),
                _ => {}
            }
        }
        // The list was validated at lookup. If the bytes have changed since then, it ends early.
        let value = self.chunk.varint().ok()?;
        self.left = self.left.saturating_sub(1);
        Some(value as i64)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl FusedIterator for Int64Iter<'_> {}
impl ExactSizeIterator for Int64Iter<'_> {}

impl<'a> IntoIterator for Int64List<'a> {
    type Item = i64;
    type IntoIter = Int64Iter<'a>;

    #[inline]
    fn into_iter(self) -> Int64Iter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Int64List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_list(f, "int64", self.iter(), self.len())
    }
}

// ---- float ----

/// A list of 32-bit floats. It is `Copy`. The bits are those of the file, NaN payloads included.
#[derive(Clone, Copy)]
pub struct FloatList<'a> {
    pub(super) body: ListBody<'a>,
}

impl<'a> FloatList<'a> {
    /// Returns the number of values. O(1).
    #[inline]
    pub fn len(self) -> usize {
        self.body.len
    }

    /// Returns true if there is no value.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns an iterator over the values, in order.
    #[inline]
    pub fn iter(self) -> FloatIter<'a> {
        let (chunk, fields) = self.body.numbers();
        FloatIter { chunk: chunk.as_chunks().0, fields, left: self.len() }
    }

    /// Returns value `k`. O(1) for a list that is one packed chunk, linear in `k` otherwise.
    #[inline]
    pub fn get(self, k: usize) -> Option<f32> {
        match self.as_unaligned() {
            Some(values) => values.get(k).map(|&bytes| f32::from_le_bytes(bytes)),
            None => self.iter().nth(k),
        }
    }

    /// Returns the first value.
    #[inline]
    pub fn first(self) -> Option<f32> {
        self.get(0)
    }

    /// Returns the list in place, if it is one packed chunk that is aligned, and the machine is little-endian.
    ///
    /// Alignment depends on the offset in the file: with records of varying length, one list in four is aligned. For an empty list
    /// the result is always `Some`.
    #[inline]
    pub fn as_slice(self) -> Option<&'a [f32]> {
        match self.body.as_one() {
            _ if self.is_empty() => Some(&[]),
            Some(chunk) if cfg!(target_endian = "little") => bytemuck::try_cast_slice(chunk.bytes()).ok(),
            _ => None,
        }
    }

    /// Returns the list in place, if it is one packed chunk. Values are little-endian, at any alignment. A loop over them is as fast as
    /// a loop over `&[f32]`.
    #[inline]
    pub fn as_unaligned(self) -> Option<&'a [[u8; 4]]> {
        self.body.as_one().map(|chunk| chunk.bytes().as_chunks().0)
    }

    /// Copies all values into `dst`, which must have the list's length. One packed chunk is a plain copy of bytes.
    ///
    /// # Errors
    /// [`ErrorKind::WrongLen`].
    pub fn copy_to(self, dst: &mut [f32]) -> Result<()> {
        self.body.check_len(dst.len())?;
        match self.body.as_one() {
            Some(chunk) if cfg!(target_endian = "little") => {
                let dst: &mut [u8] = bytemuck::cast_slice_mut(dst);
                if dst.len() == chunk.bytes().len() {
                    dst.copy_from_slice(chunk.bytes());
                }
            }
            _ => {
                for (to, value) in dst.iter_mut().zip(self.iter()) {
                    *to = value;
                }
            }
        }
        Ok(())
    }

    /// Copies the values into a vector.
    pub fn to_vec(self) -> Vec<f32> {
        self.iter().collect()
    }

    /// Copies the values into a vector.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn try_to_vec(self) -> Result<Vec<f32>> {
        let mut values = room(self.len())?;
        values.extend(self.iter());
        Ok(values)
    }
}

/// An iterator over the values of a [`FloatList`].
#[derive(Clone, Copy, Debug)]
pub struct FloatIter<'a> {
    chunk: &'a [[u8; 4]],
    fields: ListFields<'a>,
    left: usize,
}

impl Iterator for FloatIter<'_> {
    type Item = f32;

    #[inline]
    fn next(&mut self) -> Option<f32> {
        loop {
            if let [value, rest @ ..] = self.chunk {
                self.chunk = rest;
                self.left = self.left.saturating_sub(1);
                return Some(f32::from_le_bytes(*value));
            }
            match self.fields.next()? {
                WireValue::Fixed32(value) => {
                    self.left = self.left.saturating_sub(1);
                    return Some(f32::from_le_bytes(value));
                }
                WireValue::Len(chunk) => self.chunk = chunk.as_chunks().0,
                _ => {}
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl FusedIterator for FloatIter<'_> {}
impl ExactSizeIterator for FloatIter<'_> {}

impl<'a> IntoIterator for FloatList<'a> {
    type Item = f32;
    type IntoIter = FloatIter<'a>;

    #[inline]
    fn into_iter(self) -> FloatIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for FloatList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_list(f, "float", self.iter(), self.len())
    }
}

// ---- bytes ----

/// A list of byte strings. It is `Copy`. Each string is a slice of the payload.
#[derive(Clone, Copy)]
pub struct BytesList<'a> {
    pub(super) body: ListBody<'a>,
}

impl<'a> BytesList<'a> {
    /// Returns the number of strings. O(1).
    #[inline]
    pub fn len(self) -> usize {
        self.body.len
    }

    /// Returns true if there is no string.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns an iterator over the strings, in order.
    #[inline]
    pub fn iter(self) -> BytesIter<'a> {
        let fields = match self.body.bytes {
            ListBytes::One(list) => ListFields::of(list.reader()),
            ListBytes::Scattered(list) => list.values(),
        };
        BytesIter { fields, left: self.len() }
    }

    /// Returns string `k`. Linear in `k`.
    pub fn get(self, k: usize) -> Option<&'a [u8]> {
        self.iter().nth(k)
    }

    /// Returns the first string.
    #[inline]
    pub fn first(self) -> Option<&'a [u8]> {
        // Normally the list begins with it.
        let usual = self.body.as_one().and_then(|list| list.reader().take_field(0x0a));
        usual.or_else(|| self.iter().next())
    }

    /// Copies the strings into a vector.
    pub fn to_vec(self) -> Vec<Vec<u8>> {
        self.iter().map(<[u8]>::to_vec).collect()
    }

    /// Copies the strings into a vector.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn try_to_vec(self) -> Result<Vec<Vec<u8>>> {
        let mut strings = room(self.len())?;
        for value in self.iter() {
            let mut copy = room(value.len())?;
            copy.extend_from_slice(value);
            strings.push(copy);
        }
        Ok(strings)
    }
}

/// An iterator over the strings of a [`BytesList`].
#[derive(Clone, Copy, Debug)]
pub struct BytesIter<'a> {
    fields: ListFields<'a>,
    left: usize,
}

impl<'a> BytesIter<'a> {
    /// Returns the next string and its offset in the payload.
    #[inline]
    pub(crate) fn next_with_start(&mut self) -> Option<(&'a [u8], usize)> {
        loop {
            if let WireValue::Len(value) = self.fields.next()? {
                self.left = self.left.saturating_sub(1);
                return Some((value, self.fields.start_of(value)));
            }
        }
    }
}

impl<'a> Iterator for BytesIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.next_with_start().map(|(value, _)| value)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl FusedIterator for BytesIter<'_> {}
impl ExactSizeIterator for BytesIter<'_> {}

impl<'a> IntoIterator for BytesList<'a> {
    type Item = &'a [u8];
    type IntoIter = BytesIter<'a>;

    #[inline]
    fn into_iter(self) -> BytesIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for BytesList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// A short string as text, or the length of a long one.
        struct DebugBytes<'a>(&'a [u8]);
        impl fmt::Debug for DebugBytes<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0.len() {
                    ..=64 => write!(f, "\"{}\"", self.0.escape_ascii()),
                    len => write!(f, "<{len} bytes>"),
                }
            }
        }
        debug_list(f, "bytes", self.iter().map(DebugBytes), self.len())
    }
}
