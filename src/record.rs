//! One record: its payload and where it came from.

use crate::error::At;
use crate::example::{Example, SequenceExample};

/// A record that borrows its bytes. `Copy`; the payload is never looked at unless asked.
///
/// What is made from it lives as long as the bytes do, not as long as the `Record`.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    payload: &'a [u8],
    at: At<'a>,
}

impl<'a> Record<'a> {
    /// A record of these bytes, at this place.
    #[inline]
    pub fn new(payload: &'a [u8], at: At<'a>) -> Record<'a> {
        Record { payload, at }
    }

    /// The payload.
    #[inline]
    pub fn payload(self) -> &'a [u8] {
        self.payload
    }

    /// The record's shard, ordinal in the shard, and offset.
    #[inline]
    pub fn at(self) -> At<'a> {
        self.at
    }

    /// The payload as a `tf.train.Example`. Cannot fail: bytes are checked when a feature is looked up.
    #[inline]
    pub fn example(self) -> Example<'a> {
        Example::new(self.payload).at(self.at)
    }

    /// The payload as a `tf.train.SequenceExample`. Cannot fail, as [`example`](Record::example).
    #[inline]
    pub fn sequence_example(self) -> SequenceExample<'a> {
        SequenceExample::new(self.payload).at(self.at)
    }
}
