//! Options for parsing a tensor.

use super::parse::parse;
use super::{Tensor, TensorDType};
use crate::error::Result;

/// Default limit of the bytes that a filled tensor may take: 64 MiB.
pub const DEFAULT_LIMIT: u64 = 64 << 20;

/// Options for parsing a tensor.
///
/// ```
/// use tfseek::ErrorKind;
/// use tfseek::tensor::{TensorDType, TensorOptions};
///
/// // A float32 tensor of shape [1_000_000] without values: by the fill rule, a million zeros.
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
    /// Creates the default options: filled tensors take at most 64 MiB.
    pub fn new() -> TensorOptions {
        TensorOptions::default()
    }

    /// Sets the limit, in bytes, of a tensor that has fewer values than elements. Default: 64 MiB. A string counts as its length plus
    /// 16 bytes. A tensor that has all of its values is bounded by the input, and not by this limit.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> TensorOptions {
        self.limit = bytes;
        self
    }

    /// Parses a serialized `TensorProto`, which must have the given dtype.
    ///
    /// # Errors
    /// As [`parse_tensor`].
    pub fn parse(self, bytes: &[u8], dtype: TensorDType) -> Result<Tensor<'_>> {
        parse(bytes, dtype, self.limit)
    }
}

/// Parses a serialized `TensorProto`, which must have the given dtype, like `tf.io.parse_tensor`.
///
/// # Errors
/// [`ErrorKind::Wire`](crate::ErrorKind::Wire) if the bytes are not a well-formed message;
/// [`ErrorKind::Tensor`](crate::ErrorKind::Tensor) if the message is not a tensor or has another dtype;
/// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) for a filled tensor of more than [`DEFAULT_LIMIT`] bytes. Offsets in errors
/// are relative to `bytes`. Use [`Error::at`](crate::Error::at) to add the location of `bytes`.
pub fn parse_tensor(bytes: &[u8], dtype: TensorDType) -> Result<Tensor<'_>> {
    TensorOptions::new().parse(bytes, dtype)
}
