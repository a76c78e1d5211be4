//! Files about the records of a shard besides its index: columns, and tables of records. Their headers identify
//! the records as the index's header does.

use super::file::{OpenedFile, open_file, open_in_parts};
use super::identity::{Sameness, fingerprints_beside, sameness};
use super::layout::{CHECKED, IndexHeader, Refusal};
use super::lookup::Index;
use super::options::IndexOptions;
use super::store::{candidates, hashed_with};
use crate::io::{Stamp, url_of};
use std::io;
use std::path::{Path, PathBuf};

/// The result of a search for the file of a shard.
#[derive(Debug)]
pub(crate) enum CompanionSearch<T> {
    Found(T),
    /// No usable file. If there were unusable ones, the reason of the first.
    Missing(Option<&'static str>),
}

/// The shard whose file is searched.
pub(crate) struct CompanionShard<'a> {
    pub(crate) path: &'a Path,
    pub(crate) index: &'a Index,
    /// Size and time of the shard. `None`: it has changed since it was opened.
    pub(crate) stamp: Option<&'a Stamp>,
    /// The parts of the file have checksums of bytes of the shard. So large files of a store are read in
    /// parts, and the file of an object may have another time, as its index may, if the object has a time or
    /// a version.
    pub(crate) checked: bool,
}

impl CompanionShard<'_> {
    /// Compares the shard with one from which a file was made that has the records of its index.
    ///
    /// The fingerprints decide for a file: one of the same size and time may have got its name, or may be
    /// under the name of an index that was copied. Checksums of records do not protect these files, as they
    /// protect an index. An object without a time may have been replaced by one with the same head and tail.
    /// So it is the same only by a version.
    fn sameness(&self, file: &Path, known: &IndexHeader, ending: &str, options: &IndexOptions) -> Sameness {
        let Some(stamp) = self.stamp else { return Sameness::Changed };
        let is_object = url_of(self.path).is_some();
        let is_copied = || self.checked && stamp.is_known() && stamp.size == known.data_size;
        match sameness(known, None, stamp) {
            Sameness::Unknown | Sameness::Same if !is_object && !self.checked => {
                let opened = options.storage.open(self.path);
                let found = opened.and_then(|opened| Ok(fingerprints_beside(opened.source(), known)?));
                let is_same = found.is_ok_and(|found| found == (known.fp_head, known.fp_tail));
                if is_same { Sameness::Same } else { Sameness::Changed }
            }
            Sameness::Unknown if !is_object => Sameness::Same,
            Sameness::Unknown if is_named_by_version(file, self.path, ending, options) => Sameness::Same,
            Sameness::Unknown | Sameness::Changed if is_object && is_copied() => Sameness::Same,
            sameness => sameness,
        }
    }
}

/// The reasons of a search, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompanionReasons {
    pub(crate) invalid: &'static str,
    pub(crate) other: &'static str,
    pub(crate) changed: &'static str,
}

const UNKNOWN: &str =
    "the object has no time and no version, so it may have been replaced since the file was built";

/// Returns the error of a file about an object that could never be used, because nothing tells whether the
/// object is the same. `None` for others.
pub(crate) fn never_used(stamp: Option<&Stamp>) -> Option<io::Error> {
    const TEXT: &str = "the object has no time and no version, so a saved file could not be told from one of a replaced object";
    let is_known = stamp.is_none_or(Stamp::is_known);
    (!is_known).then(|| io::Error::new(io::ErrorKind::Unsupported, TEXT))
}

/// Searches for the file of a shard with the extension `ending` in the folders of its index, in the same
/// order.
///
/// Returns the first file that has the records of the index and the size and time of the shard. Calls `other`
/// with files of other records, and `refused` with those that `open` refuses.
pub(crate) fn search_companion<T>(
    shard: &CompanionShard<'_>,
    ending: &str,
    options: &IndexOptions,
    reasons: CompanionReasons,
    open: impl Fn(OpenedFile, &Path) -> Result<(IndexHeader, T), Refusal>,
    mut other: impl FnMut(IndexHeader, T),
    mut refused: impl FnMut(&Path, &str),
) -> CompanionSearch<T> {
    let mut missing = None;
    for file in candidates(shard.path, ending, options) {
        let open = |opened| open(opened, &file);
        let found = if shard.checked {
            open_in_parts(&file, options, open)
        } else {
            open_file(&file, options, open).map(|found| found.map(|(found, _)| found))
        };
        let (known, found) = match found {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(reason) => {
                refused(&file, &reason);
                missing.get_or_insert(reasons.invalid);
                continue;
            }
        };
        if identity(&known) != identity(shard.index.header()) {
            other(known, found);
            missing.get_or_insert(reasons.other);
            continue;
        }
        match shard.sameness(&file, &known, ending, options) {
            Sameness::Same => return CompanionSearch::Found(found),
            Sameness::Changed => missing.get_or_insert(reasons.changed),
            Sameness::Unknown => missing.get_or_insert(UNKNOWN),
        };
    }
    CompanionSearch::Missing(missing)
}

/// Returns true for a file whose name is made of the version of its object.
fn is_named_by_version(file: &Path, object: &Path, ending: &str, options: &IndexOptions) -> bool {
    let named = |dir: &PathBuf| hashed_with(dir, object, ending, options).is_ok_and(|name| name == file);
    options.storage.version(object).is_some()
        && [&options.env_dir, &options.cache_dir].into_iter().flatten().any(named)
}

/// Returns the fields that a file shares with the index of its shard.
fn identity(header: &IndexHeader) -> [u64; 6] {
    let IndexHeader { n_records, indexed_end, stream_end, fp_head, fp_tail, flags, .. } = *header;
    [n_records, indexed_end, stream_end, fp_head, fp_tail, (flags & !CHECKED).into()]
}

/// Returns the header of a file that can be saved. The header has the shard's size and time during the scan,
/// and the rest of the identity from the index in use. `None` if the two contradict each other.
pub(crate) fn header_for(index: &Index, stamp: Option<&Stamp>) -> Option<IndexHeader> {
    let known = *index.header();
    let header = IndexHeader {
        data_size: stamp?.size,
        mtime_ns: stamp?.mtime_ns(),
        flags: known.flags | CHECKED,
        ..known
    };
    header.check().is_ok().then_some(header)
}

/// Returns the header of a file that stays in memory.
pub(crate) fn header_in_memory(index: &Index) -> IndexHeader {
    IndexHeader { flags: index.header().flags | CHECKED, ..*index.header() }
}
