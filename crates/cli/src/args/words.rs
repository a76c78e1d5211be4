//! Record numbers that clap would take for options, such as `-3:`.

use std::ffi::OsString;

/// Precedes a record number that starts with `-`, so that it is no option. No argument of a process contains
/// this character.
pub(crate) const MARK: char = '\0';

/// Removes the mark of a negative record number.
pub(crate) fn unmarked(word: &OsString) -> OsString {
    match word.to_str().and_then(|text| text.strip_prefix(MARK)) {
        Some(number) => number.into(),
        None => word.clone(),
    }
}
