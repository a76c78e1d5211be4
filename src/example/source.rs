//! Where the bytes of a message are, when protobuf lets it come in pieces.

use crate::wire::{Reader, Value};

/// The message that is the value of a map entry, or a step of a feature list.
///
/// As a rule it is one slice. Where an entry holds its value twice, the two are to be merged: then this is the
/// entry, and its values are walked one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    One(&'a [u8]),
    Entry(&'a [u8]),
}

impl<'a> Source<'a> {
    /// The messages to merge, in order. The depth is that of the message: it counts only while it is checked.
    #[inline]
    pub(crate) fn messages(self, depth: u8) -> Messages<'a> {
        match self {
            Source::One(message) => Messages { one: Some(message), entry: Reader::new(&[], 0), depth },
            Source::Entry(entry) => Messages { one: None, entry: Reader::new(entry, depth - 1), depth },
        }
    }
}

/// See [`Source::messages`]. Stops at what is malformed: the entry was checked when it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages<'a> {
    one: Option<&'a [u8]>,
    entry: Reader<'a>,
    depth: u8,
}

impl<'a> Iterator for Messages<'a> {
    type Item = Reader<'a>;

    #[inline]
    fn next(&mut self) -> Option<Reader<'a>> {
        if let Some(message) = self.one.take() {
            return Some(Reader::new(message, self.depth));
        }
        while let Ok(Some(field)) = self.entry.next() {
            if let (2, Value::Len(message)) = field {
                return Some(Reader::new(message, self.depth));
            }
        }
        None
    }
}

/// The values of a list that is no single slice: merged, unpacked, or in many chunks. Walks the message again,
/// past what an earlier member of the oneof left behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk<'a> {
    source: Source<'a>,
    /// Members of the oneof before the first that counts.
    skip: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(source: Source<'a>, skip: usize) -> Walk<'a> {
        Walk { source, skip }
    }

    #[inline]
    pub(super) fn values(self) -> Values<'a> {
        let none = Reader::new(&[], 0);
        Values { messages: self.source.messages(1), feature: none, list: none, skip: self.skip }
    }
}

/// The fields `value = 1` of all the lists of a [`Walk`], or of one list message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    messages: Messages<'a>,
    feature: Reader<'a>,
    list: Reader<'a>,
    skip: usize,
}

impl<'a> Values<'a> {
    /// Of one list message.
    #[inline]
    pub(super) fn of(list: &'a [u8]) -> Values<'a> {
        Values { list: Reader::new(list, 0), ..Values::none() }
    }

    #[inline]
    pub(super) fn none() -> Values<'a> {
        let none = Reader::new(&[], 0);
        Values { messages: Messages { one: None, entry: none, depth: 0 }, feature: none, list: none, skip: 0 }
    }

    fn next_list(&mut self) -> Option<Reader<'a>> {
        loop {
            while let Ok(Some((number, value))) = self.feature.next() {
                if let (1..=3, Value::Len(list)) = (number, value) {
                    if self.skip == 0 {
                        return Some(Reader::new(list, 0));
                    }
                    self.skip -= 1;
                }
            }
            self.feature = self.messages.next()?;
        }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        loop {
            while let Ok(Some((number, value))) = self.list.next() {
                if number == 1 {
                    return Some(value);
                }
            }
            self.list = self.next_list()?;
        }
    }
}
