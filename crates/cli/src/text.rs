//! Small JSON files that arguments name: schemas and saved states. Numbers of things in messages.

use crate::exit::{Failure, IO, Outcome, USAGE};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of such a file in bytes. It bounds memory if a path names, for example, an endless device.
///
/// A feature takes about 60 bytes of a schema, so the limit allows a million features. A state takes less than 1 KiB.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a file, a pipe or a device to its end and parses it. An error of the parser is a usage error, not a problem in the data.
pub(crate) fn parse_file<T>(
    path: &Path,
    what: &str,
    parse: impl FnOnce(&str) -> tfseek::Result<T>,
) -> Outcome<T> {
    let file = File::open(path).map_err(|e| Failure::io(path, e))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| Failure::io(path, e))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::usage(format!(
            "{}: expected {what}, found more than {MAX_BYTES} bytes",
            path.display()
        )));
    }
    let not_text = || {
        Failure::Message(IO, format!("{}: expected {what}, found bytes that are not UTF-8", path.display()))
    };
    let text = String::from_utf8(bytes).map_err(|_| not_text())?;
    parse(&text).map_err(|e| Failure::Message(USAGE, e.in_file(path).to_string()))
}

/// Returns a number of things: `1 record`, `2 records`.
pub(crate) fn count(n: u64, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}
