//! Broken rules of the wire format.

use crate::error::{Error, WireError, WireErrorKind};

/// A broken rule, and its byte offset in the payload. One word, `Copy`: hot loops pass it around in results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(super) kind: WireErrorKind,
    /// Payloads are shorter than 2^31 bytes (W13).
    pub(super) offset: u32,
}

impl Fault {
    #[cold]
    pub(crate) fn new(kind: WireErrorKind, offset: usize) -> Fault {
        Fault { kind, offset: offset as u32 }
    }

    /// The same fault, of a slice that starts at `base`.
    #[cold]
    pub(crate) fn offset_by(self, base: usize) -> Fault {
        Fault { offset: self.offset.wrapping_add(base as u32), ..self }
    }
}

impl From<Fault> for WireError {
    #[cold]
    fn from(fault: Fault) -> WireError {
        WireError { kind: fault.kind, offset: fault.offset as usize }
    }
}

impl From<Fault> for Error {
    #[cold]
    fn from(fault: Fault) -> Error {
        WireError::from(fault).into()
    }
}
