//! How a tensor is to be read.

use super::parse::parse;
use super::{Tensor, TensorDType};
use crate::error::Result;

/// Bytes that a filled tensor may take unless told otherwise: 64 MiB.
pub const DEFAULT_LIMIT: u64 = 64 << 20;

/// Everything that can be said when a tensor is parsed.
///
/// ```
/// use tfseek::ErrorKind;
/// use tfseek::tensor::{TensorDType, TensorOptions};
///
/// // float32 of shape [1_000_000], and not one value: a million zeros, by the fill rule.
/// let bytes = [0x08, 0x01, 0x12, 0x06, 0x12, 0x04, 0x08, 0xc0, 0x84, 0x3d];
/// let options = TensorOptions::new();
/// assert_eq!(options.parse(&bytes, TensorDType::Float32)?.shape(), [1_000_000]);
/// let e = options.limit(1000).parse(&bytes, TensorDType::Float32).unwrap_err();
/// assert!(matches!(e.kind(), ErrorKind::TooLarge { len: 4_000_000, limit: 1000 }));
/// # Ok::<(), tfseek::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorOptions {
    limit: u64,
}

impl Default for TensorOptions {
    fn default() -> TensorOptions {
        TensorOptions { limit: DEFAULT_LIMIT }
    }
}

impl TensorOptions {
    /// The defaults: filled tensors of at most 64 MiB.
    pub fn new() -> TensorOptions {
        TensorOptions::default()
    }

    /// Bytes that a tensor may take if it gives fewer values than it has elements. Of strings each counts its length
    /// and 16 bytes. Tensors that give all of their values are bounded by the input, and not by this.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> TensorOptions {
        self.limit = bytes;
        self
    }

    /// Parses a serialized `TensorProto`, which must be of this dtype.
    ///
    /// # Errors
    /// As [`parse_tensor`].
    pub fn parse(self, bytes: &[u8], dtype: TensorDType) -> Result<Tensor<'_>> {
        parse(bytes, dtype, self.limit)
    }
}

/// Parses a serialized `TensorProto`, which must be of this dtype, as `tf.io.parse_tensor` does.
///
/// # Errors
/// [`ErrorKind::Wire`](crate::ErrorKind::Wire) if the bytes are not a well-formed message,
/// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if it is not a tensor or one of another dtype,
/// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) for a filled tensor of more than [`DEFAULT_LIMIT`] bytes. Their
/// offsets are those in `bytes`; to say where `bytes` came from, use [`Error::at`](crate::Error::at).
pub fn parse_tensor(bytes: &[u8], dtype: TensorDType) -> Result<Tensor<'_>> {
    TensorOptions::new().parse(bytes, dtype)
}
