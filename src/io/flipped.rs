//! An object of which one bit is wrong until its store is asked once more, for tests.

use super::{Fetched, Source, Stamp};
use crate::error::Result;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[derive(Debug)]
pub(crate) struct Flipped {
    bytes: Vec<u8>,
    wrong: usize,
    is_wrong: AtomicBool,
}

impl Flipped {
    /// Returns an object with these bytes, of which one is sent with a wrong bit.
    pub(crate) fn new(bytes: Vec<u8>, wrong: usize) -> Flipped {
        Flipped { bytes, wrong, is_wrong: true.into() }
    }
}

impl Source for Flipped {
    fn name(&self) -> &str {
        "flipped"
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn stamp(&self) -> Result<Stamp> {
        Ok(Stamp::new(self.len()))
    }

    fn want(&self, _: &[Range<u64>]) {}

    fn fetch(&self, range: Range<u64>, buf: &mut Vec<u8>) -> Result<Fetched> {
        let mut bytes = self.bytes.clone();
        if self.is_wrong.load(Relaxed) {
            bytes[self.wrong] ^= 16;
        }
        bytes.as_slice().fetch(range, buf)
    }

    fn distrust(&self, _: &Range<u64>) -> bool {
        self.is_wrong.swap(false, Relaxed)
    }
}
