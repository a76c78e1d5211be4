//! The state file of `tfseek tail --follow`: the position up to which records were printed.
//!
//! ```text
//! {"v": 1, "file": "/data/train-00003.tfrecord", "record": 1200, "offset": 734003}
//! ```

use crate::exit::{Failure, Outcome};
use crate::outputs;
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::time::{Duration, Instant};
use tfseek::io::Existing;

const VERSION: u64 = 1;

/// The time between two writes of a state.
const INTERVAL: Duration = Duration::from_secs(1);

/// A position in the files: the next record, its ordinal in its file and its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) path: PathBuf,
    pub(super) record: u64,
    pub(super) offset: u64,
}

impl Position {
    /// Returns the position of the first record of a file.
    pub(super) fn first(file: Option<&PathBuf>) -> Position {
        Position { path: file.cloned().unwrap_or_default(), record: 0, offset: 0 }
    }
}

/// A file with a position. It is replaced atomically.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    /// The position that was read or saved last.
    pub(super) saved: Option<Position>,
    written: Option<Instant>,
}

impl StateFile {
    /// Opens a state of these files. The state file need not exist.
    pub(super) fn open(path: &Path, files: &[PathBuf]) -> Outcome<StateFile> {
        let first = files.first().map_or(path, PathBuf::as_path);
        outputs::check_distinct([(path, first)], files.iter().map(PathBuf::as_path))?;
        // Opening a FIFO would wait for its writer.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(Failure::usage(format!(
                "{}: expected a regular file for --state, found another one",
                path.display()
            )));
        }
        let saved = match std::fs::read_to_string(path) {
            Ok(text) => Some(parse(&text).and_then(|saved| find(saved, files)).map_err(|reason| {
                Failure::usage(format!("{}: invalid state of tail --follow: {reason}", path.display()))
            })?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(Failure::io(path, e)),
        };
        Ok(StateFile { path: path.into(), saved, written: None })
    }

    /// Returns true if the state was not written within the last second.
    pub(super) fn is_due(&self) -> bool {
        self.written.is_none_or(|at| at.elapsed() >= INTERVAL)
    }

    /// Writes the position if it is another one. All records before it must have been flushed. A kill between
    /// the two repeats records and loses none.
    pub(super) fn save(&mut self, position: Position) -> Outcome {
        if self.saved.as_ref() == Some(&position) {
            return Ok(());
        }
        let file = absolute(&position.path).map_err(|e| Failure::io(&position.path, e))?;
        let Some(file) = file.to_str() else {
            let found = file.display();
            return Err(Failure::usage(format!("--state: expected a path in UTF-8, found {found}")));
        };
        let Position { record, offset, .. } = position;
        let json = json!({ "v": VERSION, "file": file, "record": record, "offset": offset });
        let output = outputs::create(&self.path, Existing::Replace)?;
        outputs::write(&self.path, output, format!("{json}\n").as_bytes())?;
        (self.saved, self.written) = (Some(position), Some(Instant::now()));
        Ok(())
    }
}

/// Parses a state. An unknown field is refused, because it may mean another position.
fn parse(text: &str) -> Result<Position, String> {
    let mut fields: Map<String, Value> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut number = |name: &str| {
        let found = fields.remove(name).unwrap_or_default();
        found.as_u64().ok_or_else(|| format!("{name}: expected a number, found {found}"))
    };
    let version = number("v")?;
    if version != VERSION {
        return Err(format!("v: expected {VERSION}, found {version}"));
    }
    let record = number("record")?;
    let offset = number("offset")?;
    let path = match fields.remove("file") {
        Some(Value::String(path)) => PathBuf::from(path),
        found => return Err(format!("file: expected a path, found {}", found.unwrap_or_default())),
    };
    match fields.keys().next() {
        Some(name) => Err(format!("expected v, file, record and offset, found {name:?}")),
        None => Ok(Position { path, record, offset }),
    }
}

/// Replaces the path of a position by the same file's path in the list. A state that fits none of them is an
/// error: to begin anew would repeat records, and to begin at the end would lose some.
fn find(saved: Position, files: &[PathBuf]) -> Result<Position, String> {
    let same = |path: &&PathBuf| absolute(path).is_ok_and(|path| path == saved.path);
    match files.iter().find(same) {
        Some(path) => Ok(Position { path: path.clone(), ..saved }),
        None => Err(format!(
            "file: expected one of the files to follow, found {}{}",
            saved.path.display(),
            if saved.path.exists() { "" } else { ", which does not exist" }
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_checked() {
        let good = r#"{"v":1,"file":"/a","record":2,"offset":40}"#;
        let want = Position { path: "/a".into(), record: 2, offset: 40 };
        assert_eq!(parse(good), Ok(want));
        for (bad, words) in [
            ("", "EOF"),
            ("[]", "expected a map"),
            (r#"{"v":2}"#, "v: expected 1, found 2"),
            (r#"{"v":1,"file":"/a","record":-1,"offset":4}"#, "record: expected a number, found -1"),
            (r#"{"v":1,"file":"/a","record":1}"#, "offset: expected a number, found null"),
            (r#"{"v":1,"file":3,"record":1,"offset":4}"#, "file: expected a path, found 3"),
            (r#"{"v":1,"file":"/a","record":1,"offset":4,"x":0}"#, "found \"x\""),
        ] {
            let e = parse(bad).unwrap_err();
            assert!(e.contains(words), "{bad}: {e}");
        }
    }
}
