//! The journal of a fetch, which names the pieces that are here, and the list of files that it becomes.

use super::wanted::is_below;
use crate::error::{FetchReason, ToolsError};
use crate::write::sync::sync_folder;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tfseek::crc::crc32c;
use tfseek::io::{HiddenFolder, Stamp};
use tfseek::{Error, ErrorKind, Result};

/// The hidden folder of files that are not complete, and of the journal. It is inside the target, so that
/// files get their names by a rename.
pub(super) const HIDDEN: &str = ".tfseek-fetch";

/// The journal in it.
const JOURNAL: &str = "journal";

/// The folder and the name of the list of the files of a complete fetch.
const LIST: (&str, &str) = (".tfseek", "fetch.json");

/// The member of the list that has its version, and the version.
const MARK: (&str, u64) = ("tfseek_fetch", 1);

/// The objects and records of a fetch. A folder has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FetchRequest {
    /// The URL without query and user.
    pub(super) url: String,
    /// The key of the object, if the URL is not all.
    pub(super) key: Option<String>,
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
    let FetchRequest { url, key, split, filter } = request;
    let value = json!({MARK.0: MARK.1, "url": url, "split": split, "where": filter});
    let Value::Object(mut members) = value else { return Map::new() };
    members.extend(key.as_ref().map(|key| ("key".to_owned(), Value::from(&**key))));
    members
}

fn request_of(value: &Value) -> Option<FetchRequest> {
    if value.get(MARK.0)?.as_u64()? != MARK.1 {
        return None;
    }
    let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
    Some(FetchRequest { url: text("url")?, key: text("key"), split: text("split"), filter: text("where") })
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
    /// [`FetchReason::State`] for names of files elsewhere; a link in place of a hidden folder; I/O errors.
    pub(super) fn read(folder: &Path) -> Result<Left, ToolsError> {
        let mut left = Left::default();
        let text = |hidden: &str, name: &str| -> Result<Vec<u8>> {
            let hidden = folder.join(hidden);
            let opened = HiddenFolder::open(&hidden, false).map_err(|e| Error::from(e).in_file(&hidden))?;
            let read = || {
                let mut text = Vec::new();
                if let Some(mut file) = opened.map_or(Ok(None), |opened| opened.file(name, false))? {
                    file.read_to_end(&mut text)?;
                }
                Ok(text)
            };
            read().map_err(|e: io::Error| Error::from(e).in_file(&hidden.join(name)))
        };
        let list = text(LIST.0, LIST.1)?;
        if let Ok(list) = serde_json::from_slice::<Value>(&list)
            && let Some(request) = request_of(&list)
        {
            left.request = Some(request);
            left.was_complete = true;
            for file in list.get("files").and_then(Value::as_array).into_iter().flatten() {
                left.add_listed(file);
            }
            left.check_names(&folder.join(LIST.0).join(LIST.1))?;
        }
        let journal = text(HIDDEN, JOURNAL)?;
        let mut names = Vec::new();
        for line in journal.split(|c| *c == b'\n') {
            // The last line may be torn. What follows a damaged one cannot be trusted either.
            let Some(line) = checked(line) else { break };
            if left.add_line(line, &mut names).is_none() {
                break;
            }
        }
        left.check_names(&Journal::path(folder))?;
        Ok(left)
    }

    /// Refuses a state that places files elsewhere: no fetch wrote it.
    fn check_names(&self, state: &Path) -> Result<(), FetchReason> {
        let names = self.files.iter().flat_map(|(name, earlier)| [Some(name), earlier.placed.as_ref()]);
        match names.flatten().find(|name| !is_below(name)) {
            Some(found) => Err(FetchReason::State { path: state.into(), found: found.clone() }),
            None => Ok(()),
        }
    }

    fn add_listed(&mut self, file: &Value) -> Option<()> {
        let number = |name: &str| file.get(name)?.as_u64();
        let text = |name: &str| Some(file.get(name)?.as_str()?.to_owned());
        let mut earlier = Earlier::new(stamp_of(file)?);
        let records = number("read")?;
        let selected = number("records")?;
        earlier.done = Some(Done { records, selected, bytes: number("bytes")? });
        earlier.placed = text("path");
        self.files.insert(text("name")?, earlier);
        Some(())
    }

    /// Adds a line of the journal. `names` are the names of the files so far.
    fn add_line(&mut self, line: &str, names: &mut Vec<String>) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        if word == "fetch" {
            let request = request_of(&serde_json::from_str(rest).ok()?)?;
            // A list of another request belongs to a folder which was cleared by hand.
            if self.request.as_ref() != Some(&request) {
                *self = Left { request: Some(request), ..Left::default() };
            }
            return Some(());
        }
        if word == "file" {
            let file: Value = serde_json::from_str(rest).ok()?;
            let name = file.get("name")?.as_str()?.to_owned();
            let stamp = stamp_of(&file)?;
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
///
/// A file system does not tell which bytes of a file with holes arrived. A line has the checksum of its
/// piece, so nothing is synced for it: pieces that a loss of power took are seen, and requested again. The
/// path of a file is on the disk before the file gets it, because a folder with unknown files is refused.
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl Journal {
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join(HIDDEN).join(JOURNAL)
    }

    /// Begins a journal with what earlier runs have. The old one is replaced in one step.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn begin<'f>(
        folder: &Path,
        hidden: &HiddenFolder,
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
        let write = || {
            let file = replace(hidden, JOURNAL, text.as_bytes())?;
            sync_folder(&folder.join(HIDDEN))?;
            sync_folder(folder)?;
            Ok(file)
        };
        let file = write().map_err(|e: io::Error| Error::from(e).in_file(&path))?;
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

    /// Waits until the disk has all lines.
    pub(super) fn sync(&self) -> Result<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match file.as_ref() {
            Some(file) => file.sync_all().map_err(|e| Error::from(e).in_file(&self.path)),
            None => Err(ErrorKind::Cancelled.into()),
        }
    }

    /// Ends the journal. Threads that still wait for bytes write nothing more.
    pub(super) fn close(&self) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Replaces a file of a hidden folder in one step, and returns it, open behind its last byte. One process at
/// a time does so.
pub(super) fn replace(hidden: &HiddenFolder, name: &str, bytes: &[u8]) -> io::Result<File> {
    let new = format!("{name}.new");
    let mut file = hidden.file(&new, true)?.ok_or(io::ErrorKind::NotFound)?;
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    hidden.rename(new.as_ref(), name.as_ref())?;
    Ok(file)
}

fn done_line(file: usize, done: Done) -> String {
    format!("done {file} {} {} {}", done.records, done.selected, done.bytes)
}

/// Writes the list of a complete fetch, durably: the journal is removed after this.
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
    let hidden = folder.join(LIST.0);
    let text = Value::Object(list).to_string();
    let write = || {
        let opened = HiddenFolder::open(&hidden, true)?.ok_or(io::ErrorKind::NotFound)?;
        replace(&opened, LIST.1, text.as_bytes())?;
        sync_folder(&hidden)?;
        sync_folder(folder)
    };
    write().map_err(|e| Error::from(e).in_file(&hidden.join(LIST.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn request() -> FetchRequest {
        FetchRequest {
            url: "gs://b/x-*".into(),
            key: Some("k".into()),
            split: None,
            filter: Some("label > 3".into()),
        }
    }

    fn stamp(size: u64) -> Stamp {
        let mut stamp = Stamp::new(size);
        (stamp.modified_ns, stamp.version) = (Some(-5), Some("\"v\" é".into()));
        stamp
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let hidden = HiddenFolder::open(&dir.path().join(HIDDEN), true).unwrap().unwrap();
        let begun = Earlier { pieces: BTreeMap::from([(7, 1)]), ..Earlier::new(stamp(9)) };
        let other = Earlier::new(Stamp::new(3));
        let files = [("a b", &begun), ("c/d", &other)];
        let journal = Journal::begin(dir.path(), &hidden, &request(), files.into_iter()).unwrap();
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
        let journal = Journal::begin(dir.path(), &hidden, &request(), files.into_iter()).unwrap();
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
