//! Loads that overlap: of index entries and records that will be read in a moment.
//!
//! A processor has a dozen cache misses under way, if it finds as many loads among the few hundred instructions that it looks
//! ahead. So addresses are computed first, and then nothing but loaded.

/// Addresses that will be loaded.
pub(super) struct Loads<'a> {
    bytes: [&'a u8; Loads::MOST],
    len: usize,
}

impl<'a> Loads<'a> {
    pub(super) const MOST: usize = 64;

    pub(super) fn new() -> Loads<'a> {
        Loads { bytes: [&0; Loads::MOST], len: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, byte: Option<&'a u8>) {
        if let Some(byte) = byte {
            if self.len == Loads::MOST {
                self.run();
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
    }

    pub(super) fn run(&mut self) {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        std::hint::black_box(bytes.iter().fold(0, |all, &&byte| all ^ byte));
        self.len = 0;
    }
}
