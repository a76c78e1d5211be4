//! Messages that protobuf allows to be split into parts: the value of a map entry, and the lists in it.

use tfseek_wire::{WireReader, WireValue};

/// The part of a payload that the bytes of a message are. An enum that contains it keeps its tag in the same
/// four bytes, which can be copied as a whole. With a `bool`, copies of features would store one byte and
/// load four, which takes a modern processor ten cycles or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum MessageForm {
    /// The message itself.
    One,
    /// The whole entry.
    Entry,
}

/// The message that is the value of a map entry or a step of a feature list, and its offset in the payload.
///
/// Normally it is one slice. If an entry contains its value more than once, the values are merged: then this
/// is the entry, and its values are iterated in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueMessage<'a> {
    bytes: &'a [u8],
    start: u32,
    form: MessageForm,
}

impl<'a> ValueMessage<'a> {
    /// Creates a message of one slice. Payloads are shorter than 2^31 bytes.
    #[inline]
    pub(crate) fn one(bytes: &'a [u8], start: usize) -> ValueMessage<'a> {
        ValueMessage { bytes, start: start as u32, form: MessageForm::One }
    }

    /// Creates the merged message of all values of an entry.
    pub(crate) fn entry(bytes: &'a [u8], start: usize) -> ValueMessage<'a> {
        ValueMessage { bytes, start: start as u32, form: MessageForm::Entry }
    }

    /// Returns the message, if it is one slice.
    #[inline]
    pub(crate) fn as_one(self) -> Option<&'a [u8]> {
        (self.form == MessageForm::One).then_some(self.bytes)
    }

    /// Returns the offset of the bytes in the payload.
    #[inline]
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    /// Returns the number of bytes.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.bytes.len()
    }

    /// Returns the offset in the payload of `tail`, a suffix of the message.
    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "`tail` is a suffix of the message, whose end is inside of the payload"
    )]
    pub(crate) fn start_of_tail(self, tail: &[u8]) -> usize {
        self.start() + self.len() - tail.len()
    }

    /// Returns the messages to merge, in order. `depth` is the depth of the message. It matters only for
    /// validation.
    #[inline]
    pub(crate) fn messages(self, depth: u8) -> Messages<'a> {
        if self.form == MessageForm::Entry {
            let entry = WireReader::at(self.bytes, self.start(), depth.saturating_sub(1));
            Messages { one: None, entry }
        } else {
            let message = WireReader::at(self.bytes, self.start(), depth);
            Messages { one: Some(message), entry: WireReader::new(&[]) }
        }
    }
}

/// An iterator over the messages of a [`ValueMessage`]. It ends at a malformed field: the entry was validated
/// when it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages<'a> {
    one: Option<WireReader<'a>>,
    entry: WireReader<'a>,
}

impl Messages<'_> {
    fn none() -> Self {
        Messages { one: None, entry: WireReader::new(&[]) }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = WireReader<'a>;

    #[inline]
    fn next(&mut self) -> Option<WireReader<'a>> {
        if let Some(message) = self.one.take() {
            return Some(message);
        }
        while let Ok(Some(field)) = self.entry.next() {
            if let (2, WireValue::Len(message)) = field {
                return Some(self.entry.nested(message));
            }
        }
        None
    }
}

/// The values of a list that is not one slice: merged, unpacked, or in several chunks. Iterating walks the
/// message again, and skips the members of the oneof that a later member of another kind replaces.
///
/// It has the fields of a [`ValueMessage`]. With this layout, enums that contain it need no extra word for
/// their tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScatteredList<'a> {
    bytes: &'a [u8],
    start: u32,
    /// Number of members of the oneof to skip.
    skip: u32,
    form: MessageForm,
}

impl<'a> ScatteredList<'a> {
    pub(super) fn new(message: ValueMessage<'a>, skip: u32) -> ScatteredList<'a> {
        let ValueMessage { bytes, start, form } = message;
        ScatteredList { bytes, start, skip, form }
    }

    #[inline]
    pub(super) fn values(self) -> ListFields<'a> {
        let message = ValueMessage { bytes: self.bytes, start: self.start, form: self.form };
        ListFields { messages: message.messages(1), skip: self.skip, ..ListFields::none() }
    }
}

/// A list that is one slice, and its offset in the payload: a packed chunk of numbers, or a list message of
/// byte strings.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListSlice<'a> {
    bytes: &'a [u8],
    start: u32,
}

impl<'a> ListSlice<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8], start: usize) -> ListSlice<'a> {
        ListSlice { bytes, start: start as u32 }
    }

    #[inline]
    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(super) fn reader(self) -> WireReader<'a> {
        WireReader::at(self.bytes, self.start as usize, 0)
    }
}

/// An iterator over the fields `value = 1` of all lists of a [`ScatteredList`], or of one list message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListFields<'a> {
    messages: Messages<'a>,
    feature: WireReader<'a>,
    list: WireReader<'a>,
    skip: u32,
}

impl<'a> ListFields<'a> {
    /// Returns the fields of one list message.
    #[inline]
    pub(super) fn of(list: WireReader<'a>) -> ListFields<'a> {
        ListFields { list, ..ListFields::none() }
    }

    #[inline]
    pub(super) fn none() -> ListFields<'a> {
        let none = WireReader::new(&[]);
        ListFields { messages: Messages::none(), feature: none, list: none, skip: 0 }
    }

    /// Returns the offset in the payload of `last`, the bytes of the field that was returned last.
    #[inline]
    pub(super) fn start_of(&self, last: &[u8]) -> usize {
        self.list.start_of(last)
    }

    fn next_list(&mut self) -> Option<WireReader<'a>> {
        loop {
            while let Ok(Some((number, value))) = self.feature.next() {
                if let (1..=3, WireValue::Len(list)) = (number, value) {
                    let Some(skip) = self.skip.checked_sub(1) else {
                        return Some(self.feature.nested(list));
                    };
                    self.skip = skip;
                }
            }
            self.feature = self.messages.next()?;
        }
    }
}

impl<'a> Iterator for ListFields<'a> {
    type Item = WireValue<'a>;

    #[inline]
    fn next(&mut self) -> Option<WireValue<'a>> {
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
