//! The lists of the three kinds: `Copy` views that were validated and counted when they were looked up.

use super::source::{ListFields, ListSlice, ScatteredList};
use crate::error::{ErrorKind, Result};
use crate::memory::room;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use tfseek_wire::{WireReader, WireValue, varint};

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

    /// Returns the packed chunk of a list of numbers, or the message of a list of byte strings, if it is one
    /// slice.
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
    match len.checked_sub(DEBUG_VALUES) {
        None | Some(0) => f.write_str("]"),
        Some(more) => write!(f, ", .. {more} more]"),
    }
}

/// The values of a feature: `i64`, `f32` or `&[u8]`. It is `Copy`, and borrows the payload.
///
/// Integers are decoded as they are iterated. Floats have the bits of the file, NaN payloads included. Each
/// byte string is a slice of the payload.
#[derive(Clone, Copy)]
pub struct List<'a, T> {
    body: ListBody<'a>,
    values: PhantomData<T>,
}

impl<'a, T> List<'a, T> {
    #[inline]
    pub(super) fn new(body: ListBody<'a>) -> List<'a, T> {
        List { body, values: PhantomData }
    }

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
}

/// An iterator over the values of a [`List`].
#[derive(Clone, Copy, Debug)]
pub struct ListIter<'a, T> {
    /// What is left of a packed chunk of numbers.
    chunk: &'a [u8],
    /// The fields after it.
    fields: ListFields<'a>,
    left: usize,
    values: PhantomData<T>,
}

impl<'a, T> ListIter<'a, T> {
    #[inline]
    fn new((chunk, fields): (&'a [u8], ListFields<'a>), left: usize) -> ListIter<'a, T> {
        ListIter { chunk, fields, left, values: PhantomData }
    }

    /// Counts a value that is returned. There are more than were counted at lookup if the bytes have changed.
    #[inline]
    fn count_value(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

impl<T> FusedIterator for ListIter<'_, T> where Self: Iterator {}
impl<T> ExactSizeIterator for ListIter<'_, T> where Self: Iterator {}

// ---- int64 ----

impl<'a> List<'a, i64> {
    /// Returns an iterator over the values, in order.
    #[inline]
    pub fn iter(self) -> ListIter<'a, i64> {
        ListIter::new(self.body.numbers(), self.len())
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

    /// Decodes all values into `dst`, which must have the list's length. Faster than [`iter`](Self::iter): on
    /// processors with AVX2 and BMI2, a list is decoded in blocks of 64 bytes.
    ///
    /// # Errors
    /// [`ErrorKind::WrongLen`].
    pub fn decode_into(self, dst: &mut [i64]) -> Result<()> {
        self.body.check_len(dst.len())?;
        match self.body.as_one() {
            // The values were counted at lookup, so `dst` is filled. If the bytes have changed since then,
            // its end is unspecified.
            Some(chunk) => {
                varint::decode(chunk.bytes(), dst);
            }
            None => dst.iter_mut().zip(self.iter()).for_each(|(to, value)| *to = value),
        }
        Ok(())
    }

    /// Copies the values into a vector.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn try_to_vec(self) -> Result<Vec<i64>> {
        let mut values = room(self.len())?;
        match self.body.as_one() {
            Some(chunk) => {
                values.resize(self.len(), 0);
                let len = varint::decode(chunk.bytes(), &mut values);
                values.truncate(len);
            }
            None => values.extend(self.iter()),
        }
        Ok(values)
    }
}

impl Iterator for ListIter<'_, i64> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        while self.chunk.is_empty() {
            match self.fields.next()? {
                WireValue::Varint(value) => {
                    self.count_value();
                    return Some(value as i64);
                }
                WireValue::Len(chunk) => self.chunk = chunk,
                _ => {}
            }
        }
        // The list was validated at lookup. If the bytes have changed since then, it ends early.
        let mut chunk = WireReader::new(self.chunk);
        let value = chunk.varint().ok()?;
        self.chunk = chunk.rest();
        self.count_value();
        Some(value as i64)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'a> IntoIterator for List<'a, i64> {
    type Item = i64;
    type IntoIter = ListIter<'a, i64>;

    #[inline]
    fn into_iter(self) -> ListIter<'a, i64> {
        self.iter()
    }
}

impl fmt::Debug for List<'_, i64> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_list(f, "int64", self.iter(), self.len())
    }
}

// ---- float ----

impl<'a> List<'a, f32> {
    /// Returns an iterator over the values, in order.
    #[inline]
    pub fn iter(self) -> ListIter<'a, f32> {
        ListIter::new(self.body.numbers(), self.len())
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

    /// Returns the list in place, if it is one packed chunk that is aligned, and the machine is
    /// little-endian.
    ///
    /// Alignment depends on the offset in the file: with records of varying length, one list in four is
    /// aligned. For an empty list the result is always `Some`.
    #[inline]
    pub fn as_slice(self) -> Option<&'a [f32]> {
        match self.body.as_one() {
            _ if self.is_empty() => Some(&[]),
            Some(chunk) if cfg!(target_endian = "little") => bytemuck::try_cast_slice(chunk.bytes()).ok(),
            _ => None,
        }
    }

    /// Returns the list in place, if it is one packed chunk. Values are little-endian, at any alignment. A
    /// loop over them is as fast as a loop over `&[f32]`.
    #[inline]
    pub fn as_unaligned(self) -> Option<&'a [[u8; 4]]> {
        self.body.as_one().map(|chunk| chunk.bytes().as_chunks().0)
    }

    /// Copies all values into `dst`, which must have the list's length. One packed chunk is a plain copy of
    /// bytes.
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
            _ => dst.iter_mut().zip(self.iter()).for_each(|(to, value)| *to = value),
        }
        Ok(())
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

impl Iterator for ListIter<'_, f32> {
    type Item = f32;

    #[inline]
    fn next(&mut self) -> Option<f32> {
        loop {
            if let Some((value, rest)) = self.chunk.split_first_chunk() {
                self.chunk = rest;
                self.count_value();
                return Some(f32::from_le_bytes(*value));
            }
            match self.fields.next()? {
                WireValue::Fixed32(value) => {
                    self.count_value();
                    return Some(f32::from_le_bytes(value));
                }
                WireValue::Len(chunk) => self.chunk = chunk,
                _ => {}
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'a> IntoIterator for List<'a, f32> {
    type Item = f32;
    type IntoIter = ListIter<'a, f32>;

    #[inline]
    fn into_iter(self) -> ListIter<'a, f32> {
        self.iter()
    }
}

impl fmt::Debug for List<'_, f32> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_list(f, "float", self.iter(), self.len())
    }
}

// ---- bytes ----

impl<'a> List<'a, &'a [u8]> {
    /// Returns an iterator over the strings, in order.
    #[inline]
    pub fn iter(self) -> ListIter<'a, &'a [u8]> {
        let fields = match self.body.bytes {
            ListBytes::One(list) => ListFields::of(list.reader()),
            ListBytes::Scattered(list) => list.values(),
        };
        ListIter::new((&[], fields), self.len())
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

impl<'a> ListIter<'a, &'a [u8]> {
    /// Returns the next string and its offset in the payload.
    #[inline]
    pub(crate) fn next_with_start(&mut self) -> Option<(&'a [u8], usize)> {
        loop {
            if let WireValue::Len(value) = self.fields.next()? {
                self.count_value();
                return Some((value, self.fields.start_of(value)));
            }
        }
    }
}

impl<'a> Iterator for ListIter<'a, &'a [u8]> {
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

impl<'a> IntoIterator for List<'a, &'a [u8]> {
    type Item = &'a [u8];
    type IntoIter = ListIter<'a, &'a [u8]>;

    #[inline]
    fn into_iter(self) -> ListIter<'a, &'a [u8]> {
        self.iter()
    }
}

impl<'a> fmt::Debug for List<'a, &'a [u8]> {
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
