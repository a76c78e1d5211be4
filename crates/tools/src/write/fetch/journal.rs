//! The journal of a fetch, which names the pieces that are here, and the list of files that it becomes.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tfseek::crc::crc32c;
use tfseek::io::Stamp;
use tfseek::{Error, ErrorKind, Result};

/// The hidden folder of files that are not complete, and of the journal.
pub(super) const HIDDEN: &str = ".tfseek-fetch";

/// The list of the files of a complete fetch.
const LIST: &str = ".tfseek/fetch.json";

/// The member of the list that has its version, and the version.
const MARK: (&str, u64) = ("tfseek_fetch", 1);

/// The objects and records of a fetch. A folder has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FetchRequest {
    /// The URL without query and user.
    pub(super) url: String,
    pub(super) split: Option<String>,
    pub(super) filter: Option<String>,
}

/// A complete file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// Number of records that were read, and of those that were selected.
    pub(super) records: u64,
    pub(super) selected: u64,
    /// Number of bytes of the file here.
    pub(super) bytes: u64,
}

/// The pieces of a file that earlier runs fetched, and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Earlier {
    /// The version that they fetched.
    pub(super) stamp: Stamp,
    /// The checksums of the pieces that are here.
    pub(super) pieces: BTreeMap<u64, u32>,
    pub(super) done: Option<Done>,
    /// The path in the folder, if the file is there.
    pub(super) placed: Option<String>,
}

impl Earlier {
    pub(super) fn new(stamp: Stamp) -> Earlier {
        Earlier { stamp, pieces: BTreeMap::new(), done: None, placed: None }
    }

    /// Begins again with another version. A file of the old one is there until it is replaced.
    pub(super) fn begin_again(&mut self, stamp: Stamp) {
        *self = Earlier { placed: self.placed.take(), ..Earlier::new(stamp) };
    }
}

/// The files that earlier runs left in a folder.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) request: Option<FetchRequest>,
    /// By the names of the objects.
    pub(super) files: HashMap<String, Earlier>,
    /// True if the list is there: a fetch was completed.
    pub(super) was_complete: bool,
}

fn to_json(request: &FetchRequest) -> Map<String, Value> {
    let FetchRequest { url, split, filter } = request;
    let value = json!({MARK.0: MARK.1, "url": url, "split": split, "where": filter});
    value.as_object().cloned().unwrap_or_default()
}

fn request_of(value: &Value) -> Option<FetchRequest> {
    if value.get(MARK.0)?.as_u64()? != MARK.1 {
        return None;
    }
    let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
    Some(FetchRequest { url: text("url")?, split: text("split"), filter: text("where") })
}

fn stamp_json(stamp: &Stamp) -> Value {
    json!({"size": stamp.size, "modified_ns": stamp.modified_ns, "version": stamp.version})
}

fn stamp_of(value: &Value) -> Option<Stamp> {
    let mut stamp = Stamp::new(value.get("size")?.as_u64()?);
    stamp.modified_ns = value.get("modified_ns")?.as_i64();
    stamp.version = value.get("version")?.as_str().map(Into::into);
    Some(stamp)
}

impl Left {
    /// Reads what a folder has: its list, and the journal over it. What cannot be read is not there.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn read(folder: &Path) -> Result<Left> {
        let mut left = Left::default();
        // Opening a FIFO would wait for its writer.
        let is_other = |path: &Path| fs::metadata(path).is_ok_and(|found| !found.is_file());
        let read = |path: &Path| if is_other(path) { Ok(Vec::new()) } else { fs::read(path) };
        let text = |path: &Path| match read(path) {
            Ok(text) => Ok(text),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(Error::from(e).in_file(path)),
        };
        let list = text(&folder.join(LIST))?;
        if let Ok(list) = serde_json::from_slice::<Value>(&list)
            && let Some(request) = request_of(&list)
        {
            left.request = Some(request);
            left.was_complete = true;
            for file in list.get("files").and_then(Value::as_array).into_iter().flatten() {
                left.add_listed(file);
            }
        }
        let journal = text(&Journal::path(folder))?;
        let mut names = Vec::new();
        for line in journal.split(|c| *c == b'\n') {
            // The last line may be torn. What follows a damaged one cannot be trusted either.
            let Some(line) = checked(line) else { break };
            if left.add_line(line, &mut names).is_none() {
                break;
            }
        }
        Ok(left)
    }

    fn add_listed(&mut self, file: &Value) -> Option<()> {
        let number = |name: &str| file.get(name)?.as_u64();
        let text = |name: &str| Some(file.get(name)?.as_str()?.to_owned());
        let mut earlier = Earlier::new(stamp_of(file)?);
        let (records, selected) = (number("read")?, number("records")?);
        earlier.done = Some(Done { records, selected, bytes: number("bytes")? });
        earlier.placed = text("path");
        self.files.insert(text("name")?, earlier);
        Some(())
    }

    /// Adds a line of the journal. `names` are those of the files so far.
    fn add_line(&mut self, line: &str, names: &mut Vec<String>) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        if word == "fetch" {
            let request = request_of(&serde_json::from_str(rest).ok()?)?;
            // A list of another request is that of a folder which was cleared by hand.
            if self.request.as_ref() != Some(&request) {
                *self = Left { request: Some(request), ..Left::default() };
            }
            return Some(());
        }
        if word == "file" {
            let file: Value = serde_json::from_str(rest).ok()?;
            let (name, stamp) = (file.get("name")?.as_str()?.to_owned(), stamp_of(&file)?);
            match self.files.get_mut(&name) {
                Some(earlier) if earlier.stamp == stamp => {}
                Some(earlier) => earlier.begin_again(stamp),
                None => drop(self.files.insert(name.clone(), Earlier::new(stamp))),
            }
            names.push(name);
            return Some(());
        }
        let mut words = rest.split(' ');
        let name = names.get(words.next()?.parse::<usize>().ok()?)?;
        let file = self.files.get_mut(name)?;
        match word {
            "piece" => {
                let piece = words.next()?.parse().ok()?;
                file.pieces.insert(piece, u32::from_str_radix(words.next()?, 16).ok()?);
            }
            "again" => {
                let (_, stamp) = rest.split_once(' ')?;
                file.begin_again(stamp_of(&serde_json::from_str(stamp).ok()?)?);
            }
            "done" => {
                let mut number = || words.next()?.parse().ok();
                file.done = Some(Done { records: number()?, selected: number()?, bytes: number()? });
            }
            "placed" => file.placed = Some(rest.split_once(' ')?.1.to_owned()),
            _ => return None,
        }
        Some(())
    }
}

/// Returns the text of a line whose checksum is right.
fn checked(line: &[u8]) -> Option<&str> {
    let (crc, text) = str::from_utf8(line).ok()?.split_once(' ')?;
    (u32::from_str_radix(crc, 16).ok()? == crc32c(text.as_bytes())).then_some(text)
}

fn line(text: &str) -> String {
    format!("{:08x} {text}\n", crc32c(text.as_bytes()))
}

/// A journal that is written.
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl Journal {
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join(HIDDEN).join("journal")
    }

    /// Begins a journal with what earlier runs have. The old one is replaced in one step.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn begin<'f>(
        folder: &Path,
        request: &FetchRequest,
        files: impl Iterator<Item = (&'f str, &'f Earlier)>,
    ) -> Result<Journal> {
        let mut text = line(&format!("fetch {}", Value::Object(to_json(request))));
        let mut states = String::new();
        for (k, (name, earlier)) in files.enumerate() {
            let mut file = stamp_json(&earlier.stamp);
            if let Some(file) = file.as_object_mut() {
                file.insert("name".into(), name.into());
            }
            text += &line(&format!("file {file}"));
            for (piece, crc) in &earlier.pieces {
                states += &line(&format!("piece {k} {piece} {crc:x}"));
            }
            states += &earlier.done.map_or_else(String::new, |done| line(&done_line(k, done)));
            states +=
                &earlier.placed.as_ref().map_or_else(String::new, |at| line(&format!("placed {k} {at}")));
        }
        text += &states;
        let path = Journal::path(folder);
        let here = |e: io::Error| Error::from(e).in_file(&path);
        let new = path.with_extension("new");
        let begin = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            fs::rename(&new, &path)?;
            OpenOptions::new().append(true).open(&path)
        };
        let file = begin().map_err(here)?;
        Ok(Journal { file: Mutex::new(Some(file)), path })
    }

    /// Adds a line, at once and as a whole.
    fn add(&self, text: &str) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut() else { return Err(ErrorKind::Cancelled.into()) };
        file.write_all(line(text).as_bytes()).map_err(|e| Error::from(e).in_file(&self.path))
    }

    pub(super) fn piece(&self, file: usize, piece: u64, crc: u32) -> Result<()> {
        self.add(&format!("piece {file} {piece} {crc:x}"))
    }

    /// Notes that a file begins again, with another version.
    pub(super) fn again(&self, file: usize, stamp: &Stamp) -> Result<()> {
        self.add(&format!("again {file} {}", stamp_json(stamp)))
    }

    pub(super) fn done(&self, file: usize, done: Done) -> Result<()> {
        self.add(&done_line(file, done))
    }

    /// Notes that a file has a path in the folder, before it gets it.
    pub(super) fn placed(&self, file: usize, path: &str) -> Result<()> {
        self.add(&format!("placed {file} {path}"))
    }

    /// Ends the journal. Threads that still wait for bytes write nothing more.
    pub(super) fn close(&self) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn done_line(file: usize, done: Done) -> String {
    format!("done {file} {} {} {}", done.records, done.selected, done.bytes)
}

/// Writes the list of a complete fetch.
///
/// # Errors
/// I/O errors.
pub(super) fn write_list<'f>(
    folder: &Path,
    request: &FetchRequest,
    files: impl Iterator<Item = (&'f str, &'f Earlier)>,
) -> Result<()> {
    let file = |(name, earlier): (&str, &Earlier)| {
        let mut value = stamp_json(&earlier.stamp);
        if let (Some(value), Some(done)) = (value.as_object_mut(), earlier.done) {
            value.insert("name".into(), name.into());
            value.insert("path".into(), earlier.placed.clone().into());
            value.insert("read".into(), done.records.into());
            value.insert("records".into(), done.selected.into());
            value.insert("bytes".into(), done.bytes.into());
        }
        value
    };
    let mut list = to_json(request);
    list.insert("files".into(), files.map(file).collect());
    let path = folder.join(LIST);
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        let mut output = tfseek::io::Output::open(&path, tfseek::io::Existing::Replace)?;
        output.write_all(Value::Object(list).to_string().as_bytes())?;
        output.commit()
    };
    write().map_err(|e| Error::from(e).in_file(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> FetchRequest {
        FetchRequest { url: "gs://b/x-*".into(), split: None, filter: Some("label > 3".into()) }
    }

    fn stamp(size: u64) -> Stamp {
        let mut stamp = Stamp::new(size);
        (stamp.modified_ns, stamp.version) = (Some(-5), Some("\"v\" é".into()));
        stamp
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(HIDDEN)).unwrap();
        let begun = Earlier { pieces: BTreeMap::from([(7, 1)]), ..Earlier::new(stamp(9)) };
        let other = Earlier::new(Stamp::new(3));
        let files = [("a b", &begun), ("c/d", &other)];
        let journal = Journal::begin(dir.path(), &request(), files.into_iter()).unwrap();
        journal.piece(1, 4, u32::MAX).unwrap();
        journal.piece(0, 8, 0).unwrap();
        let done = Done { records: 5, selected: 2, bytes: 44 };
        journal.done(1, done).unwrap();
        journal.placed(1, "c/d e").unwrap();
        let text = fs::read(Journal::path(dir.path())).unwrap();
        let expected = Left::read(dir.path()).unwrap();
        assert_eq!(expected.request, Some(request()));
        assert_eq!(expected.files["a b"].pieces, BTreeMap::from([(7, 1), (8, 0)]));
        assert_eq!(expected.files["a b"].stamp, stamp(9));
        let second = &expected.files["c/d"];
        assert_eq!((second.done, second.placed.as_deref()), (Some(done), Some("c/d e")));
        // Of any part all whole lines are read, and of a damaged one those before the damage.
        for len in 0..text.len() {
            fs::write(Journal::path(dir.path()), &text[..len]).unwrap();
            let left = Left::read(dir.path()).unwrap();
            let pieces: usize = left.files.values().map(|file| file.pieces.len()).sum();
            let whole = text[..=len].split(|c| *c == b'\n').filter(|line| checked(line).is_some());
            let named = whole.filter(|line| line.get(9..14) == Some(b"piece"));
            assert!(pieces.abs_diff(named.count()) <= 1, "{len}");
            let mut flipped = text.clone();
            flipped[len] ^= 1;
            fs::write(Journal::path(dir.path()), &flipped).unwrap();
            let left = Left::read(dir.path()).unwrap();
            for (name, file) in &left.files {
                let known = &expected.files[name];
                assert!(file.pieces.iter().all(|piece| known.pieces.get(piece.0) == Some(piece.1)), "{len}");
            }
        }
        // A version that changed has no pieces.
        let journal = Journal::begin(dir.path(), &request(), files.into_iter()).unwrap();
        journal.again(0, &stamp(10)).unwrap();
        assert_eq!(Left::read(dir.path()).unwrap().files["a b"], Earlier::new(stamp(10)));
        journal.close();
        assert!(journal.piece(0, 1, 1).is_err());
    }

    #[test]
    fn lists_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let done = Some(Done { records: 5, selected: 2, bytes: 44 });
        let file = Earlier { done, placed: Some("x".into()), ..Earlier::new(stamp(9)) };
        write_list(dir.path(), &request(), [("y", &file)].into_iter()).unwrap();
        let left = Left::read(dir.path()).unwrap();
        assert!(left.was_complete && left.request == Some(request()));
        assert_eq!(left.files, HashMap::from([("y".to_owned(), file)]));
    }
}
