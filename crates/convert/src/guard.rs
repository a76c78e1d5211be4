//! Panics of other crates' readers as errors.

use crate::error::ConvertError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Calls a function that reads untrusted bytes with the code of another crate. Its panic is an error; the values that it used must then be
/// dropped.
pub(crate) fn guarded<T>(path: &Path, read: impl FnOnce() -> T) -> Result<T, ConvertError> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
        ConvertError::data(
            path,
            format!("expected a sound file, found one that its reader cannot read: {text}"),
        )
    })
}
