//! Violations of the wire format.

use crate::error::{Error, ErrorKind, WireError};

/// A violation of the wire format, and its byte offset in the payload. It is one word and `Copy`, since hot
/// loops return it in results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(super) kind: WireError,
    /// Byte offset in the payload. Payloads are shorter than 2^31 bytes (W13).
    pub(super) offset: u32,
}

impl Fault {
    #[cold]
    pub(crate) fn new(kind: WireError, offset: usize) -> Fault {
        Fault { kind, offset: offset as u32 }
    }

    /// Returns the fault with its offset moved by `base`, the start of the slice that the offset refers to.
    #[cold]
    pub(crate) fn offset_by(self, base: usize) -> Fault {
        Fault { offset: self.offset.wrapping_add(base as u32), ..self }
    }
}

impl From<Fault> for Error {
    #[cold]
    fn from(fault: Fault) -> Error {
        ErrorKind::Wire { reason: fault.kind, offset: fault.offset as usize }.into()
    }
}
