//! Small JSON files that arguments name: schemas and saved states. Numbers of things in messages.

use crate::bytes::Key;
use crate::exit::{Failure, IO, Outcome, USAGE};
use crate::store;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;
use tfseek_tools::ToolsError;

pub(crate) use tfseek_tools::words::count;

/// Maximum size of such a file in bytes. It bounds memory if a path names, for example, an endless device.
///
/// A feature takes about 60 bytes of a schema, so the limit allows a million features. A state takes less
/// than 1 KiB.
const MAX_BYTES: u64 = 64 << 20;

/// Bytes in which [`read_object`] searches for the first character.
const START: u64 = 4096;

/// Returns what was parsed from the text of a file. An error of the parser is a usage error, not a problem in
/// the data.
pub(crate) fn parsed<T>(path: &Path, result: tfseek::Result<T>) -> Outcome<T> {
    result.map_err(|e| Failure::Message(USAGE, e.in_file(path).to_string()))
}

/// Returns the error of a file without a schema, likewise a usage error.
pub(crate) fn refused_schema(path: &Path, e: ToolsError) -> Failure {
    match e {
        ToolsError::Error(e) => Failure::Message(USAGE, e.in_file(path).to_string()),
        e => Failure::usage(format!("{}: expected a schema as JSON or in text format: {e}", path.display())),
    }
}

/// Refuses a URL where a local file is read.
pub(crate) fn check_local(path: &Path) -> Outcome {
    let Some(url) = path.to_str().filter(|_| store::is_object(path)) else { return Ok(()) };
    let url = tfseek::io::bare_url(url);
    Err(Failure::usage(format!("{url}: expected a local file, found a URL: only TFRecords are read there")))
}

/// Reads a small file of text, a pipe or a device to its end.
pub(crate) fn read_file(path: &Path, what: &str) -> Outcome<String> {
    check_local(path)?;
    read_text(path, open(path, what)?, what, MAX_BYTES)
}

/// Opens a file. The error of a missing one says what it should be, and how it is made.
fn open(path: &Path, what: &str) -> Outcome<File> {
    File::open(path).map_err(|e| {
        let hint = match what {
            _ if e.kind() != ErrorKind::NotFound => return Failure::io(path, e),
            "a schema" => " (`tfseek schema --json` prints one)",
            "a saved state" => " (`tfseek epoch --state-out` writes one)",
            "saved statistics" => " (`tfseek stats --save` writes them)",
            _ => "",
        };
        Failure::Message(IO, format!("{}: expected {what}, found no such file{hint}", path.display()))
    })
}

/// Reads a file of JSON that begins with a brace. An endless device has none, so at most `max` bytes are read
/// only from a file with one.
pub(crate) fn read_object(path: &Path, what: &str, max: u64) -> Outcome<String> {
    check_local(path)?;
    let mut file = open(path, what)?;
    let mut start = Vec::new();
    file.by_ref().take(START).read_to_end(&mut start).map_err(|e| Failure::io(path, e))?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|&byte| byte != b'{') {
        return Err(Failure::usage(format!("{}: expected {what}, found no JSON object", path.display())));
    }
    read_text(path, start.chain(file), what, max)
}

fn read_text(path: &Path, file: impl Read, what: &str, max: u64) -> Outcome<String> {
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(|e| Failure::io(path, e))?;
    if bytes.len() as u64 > max {
        return Err(Failure::usage(format!(
            "{}: expected {what}, found more than {max} bytes",
            path.display()
        )));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::Message(IO, format!("{}: expected {what}, found bytes that are not UTF-8", path.display()))
    })
}

/// Returns a duration with two or three digits and a unit: `413 us`, `1.2 ms`, `3.4 s`.
pub(crate) fn duration(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let mut value = nanos;
    let mut name = "ns";
    for larger in ["us", "ms", "s"] {
        // 999.5 us would round to 1000 us.
        if value < 999.5 {
            break;
        }
        (value, name) = (value / 1e3, larger);
    }
    if value < 99.95 && name != "ns" { format!("{value:.1} {name}") } else { format!("{value:.0} {name}") }
}

/// Returns the greatest width of each column of a table.
pub(crate) fn widths<const N: usize>(rows: impl IntoIterator<Item = [usize; N]>) -> [usize; N] {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.max(*width);
        }
    }
    widths
}

/// Returns the end of a message about a misspelt name.
pub(crate) fn nearest(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; the nearest name is {}", Key(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let text = |nanos| duration(Duration::from_nanos(nanos));
        let nanos = [
            0,
            999,
            1_000,
            9_940,
            413_000,
            999_499,
            999_500,
            1_234_000,
            12_340_000,
            413_000_000,
            999_600_000,
        ];
        let expected = [
            "0 ns", "999 ns", "1.0 us", "9.9 us", "413 us", "999 us", "1.0 ms", "1.2 ms", "12.3 ms",
            "413 ms", "1.0 s",
        ];
        assert_eq!(nanos.map(text), expected);
        assert_eq!(
            [3_400_000_000, 99_960_000_000, 1_234_000_000_000].map(text),
            ["3.4 s", "100 s", "1234 s"]
        );
    }
}
