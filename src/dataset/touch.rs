//! Batched loads of index entries and records that will be read soon, so that their cache misses overlap.
//!
//! A processor can have about a dozen cache misses in flight, if it finds that number of loads within its
//! window of a few hundred instructions. So all addresses are computed first, and then loaded in a loop that
//! does nothing else.

/// A list of bytes to load.
pub(super) struct Loads<'a> {
    bytes: [&'a u8; Loads::CAPACITY],
    len: usize,
}

impl<'a> Loads<'a> {
    /// Capacity of the list.
    pub(super) const CAPACITY: usize = 64;

    pub(super) fn new() -> Loads<'a> {
        Loads { bytes: [&0; Loads::CAPACITY], len: 0 }
    }

    /// Adds a byte. If the list is full, loads its bytes first.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a full list is emptied first")]
    pub(super) fn push(&mut self, byte: Option<&'a u8>) {
        if let Some(byte) = byte {
            if self.len == Loads::CAPACITY {
                self.run();
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
    }

    /// Loads all bytes and clears the list.
    #[expect(clippy::indexing_slicing, reason = "the length is at most the capacity")]
    pub(super) fn run(&mut self) {
        let bytes = &self.bytes[..self.len];
        std::hint::black_box(bytes.iter().fold(0, |all, &&byte| all ^ byte));
        self.len = 0;
    }
}
