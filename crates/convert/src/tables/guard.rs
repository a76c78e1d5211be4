//! Panics of other crates' readers as errors.

use crate::error::ConvertError;
use std::path::Path;

/// Calls a function that reads untrusted bytes with the code of another crate. Its panic is an error; the
/// values that it used must then be dropped. `parquet` and `arrow-ipc` index into damaged data.
pub(super) fn guarded<T>(path: &Path, read: impl FnOnce() -> T) -> Result<T, ConvertError> {
    tfseek::error::catch_panic(read).map_err(|text| {
        ConvertError::data(
            path,
            format!("expected a sound file, found one that its reader cannot read: {text}"),
        )
    })
}
