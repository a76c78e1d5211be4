//! Small files of JSON that arguments name: schemas and saved states.

use crate::exit::{Failure, IO, Outcome, USAGE};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of such a file. A feature takes some 60 bytes of a schema, so this is a million features; a state takes less than 1 KiB. It
/// bounds the memory that a wrong path takes: a device never ends.
const LIMIT: u64 = 64 << 20;

/// Reads a file, a pipe or a device to its end and parses it. A parser's errors are problems of the arguments, not of the data.
pub(crate) fn parsed<T>(
    path: &Path,
    what: &str,
    parse: impl FnOnce(&str) -> tfseek::Result<T>,
) -> Outcome<T> {
    let file = File::open(path).map_err(|e| Failure::io(path, e))?;
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|e| Failure::io(path, e))?;
    if bytes.len() as u64 > LIMIT {
        return Err(Failure::usage(format!("{}: more than {LIMIT} bytes: not {what}", path.display())));
    }
    let not_text = || Failure::Message(IO, format!("{}: not UTF-8, and so not {what}", path.display()));
    let text = String::from_utf8(bytes).map_err(|_| not_text())?;
    parse(&text).map_err(|e| Failure::Message(USAGE, e.in_file(path).to_string()))
}
