//! Violations of the wire format.

use crate::error::WireError;

/// A violation of the wire format, and its byte offset in the payload. It is one word and `Copy`, since hot
/// loops return it in results.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The violated rule.
    pub kind: WireError,
    /// Byte offset in the payload. Payloads are shorter than 2^31 bytes (W13).
    pub offset: u32,
}

impl Fault {
    /// Creates a fault at an offset in the payload.
    #[cold]
    #[inline]
    pub fn new(kind: WireError, offset: usize) -> Fault {
        Fault { kind, offset: offset as u32 }
    }

    /// Returns the fault with its offset moved by `base`, the start of the slice that the offset refers to.
    #[cold]
    #[inline]
    pub fn offset_by(self, base: usize) -> Fault {
        Fault { offset: self.offset.wrapping_add(base as u32), ..self }
    }
}
