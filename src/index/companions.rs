//! Files about the records of a shard besides its index: columns, and tables of steps. Their headers identify the records as that of the index does.

use super::file::{OpenedFile, open_file, open_in_parts};
use super::layout::{CHECKED, IndexHeader, Refusal};
use super::lookup::Index;
use super::options::IndexOptions;
use super::store::candidates;
use crate::io::{Stamp, url_of};
use std::path::Path;

/// The result of a search for the file of a shard.
#[derive(Debug)]
pub(crate) enum CompanionSearch<T> {
    Found(T),
    /// No usable file. If there was an unusable one, the reason.
    Missing(Option<&'static str>),
}

impl<T> CompanionSearch<T> {
    /// Returns the better of two results: the first one if they are equal.
    fn or(self, other: CompanionSearch<T>) -> CompanionSearch<T> {
        match (&self, &other) {
            (CompanionSearch::Missing(_), CompanionSearch::Found(_))
            | (CompanionSearch::Missing(None), _) => other,
            _ => self,
        }
    }
}

/// The shard whose file is searched.
pub(crate) struct CompanionShard<'a> {
    pub(crate) path: &'a Path,
    pub(crate) index: &'a Index,
    /// Size and time of the shard. `None`: it has changed since it was opened.
    pub(crate) stamp: Option<&'a Stamp>,
    /// The parts of the file have checksums of bytes of the shard. So large files of a store are read in parts, and that of an object may have
    /// another time, as its index may.
    pub(crate) checked: bool,
}

impl CompanionShard<'_> {
    /// Returns true for the file of an object whose time is another one. The fingerprints, which are those of the index, have decided.
    fn is_copied(&self, known: &IndexHeader, stamp: &Stamp) -> bool {
        self.checked && url_of(self.path).is_some() && stamp.size == known.data_size
    }
}

/// The reasons of a search, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompanionReasons {
    pub(crate) invalid: &'static str,
    pub(crate) other: &'static str,
    pub(crate) changed: &'static str,
}

/// Searches for the file of a shard with the extension `ending` in the folders of its index, in the same order.
///
/// Returns the first file that has the records of the index and the size and time of the shard. If no file matches and the options trust columns,
/// returns the first that has the records of the index. Calls `other` with files of other records, and `refused` with those that `open` refuses.
pub(crate) fn search_companion<T>(
    shard: &CompanionShard<'_>,
    ending: &str,
    options: &IndexOptions,
    reasons: CompanionReasons,
    open: impl Fn(OpenedFile, &Path) -> Result<(IndexHeader, T), Refusal>,
    mut other: impl FnMut(IndexHeader, T),
    mut refused: impl FnMut(&Path, &str),
) -> CompanionSearch<T> {
    let mut best = CompanionSearch::Missing(None);
    for file in candidates(shard.path, ending, options) {
        let opened = match shard.checked {
            true => open_in_parts(&file, options),
            false => open_file(&file, options),
        };
        let found = match opened {
            Ok(None) => continue,
            Ok(Some(opened)) => open(opened, &file),
            Err(reason) => Err(reason),
        };
        let (known, found) = match found {
            Ok(found) => found,
            Err(reason) => {
                refused(&file, &reason);
                best = best.or(CompanionSearch::Missing(Some(reasons.invalid)));
                continue;
            }
        };
        if identity(&known) != identity(shard.index.header()) {
            other(known, found);
            best = best.or(CompanionSearch::Missing(Some(reasons.other)));
        } else if shard.stamp.is_some_and(|stamp| fits(&known, stamp) || shard.is_copied(&known, stamp)) {
            return CompanionSearch::Found(found);
        } else if options.trust_columns {
            best = best.or(CompanionSearch::Found(found));
        } else {
            best = best.or(CompanionSearch::Missing(Some(reasons.changed)));
        }
    }
    best
}

/// Returns true if a file about the records of a shard is one of the shard with this stamp. Without a time the fingerprints have decided.
fn fits(known: &IndexHeader, stamp: &Stamp) -> bool {
    match stamp.modified_ns {
        Some(_) => stamp.has(known.data_size, known.mtime_ns),
        None => stamp.size == known.data_size,
    }
}

/// Returns the fields that a file shares with the index of its shard.
fn identity(header: &IndexHeader) -> [u64; 6] {
    let IndexHeader { n_records, indexed_end, stream_end, fp_head, fp_tail, flags, .. } = *header;
    [n_records, indexed_end, stream_end, fp_head, fp_tail, (flags & !CHECKED).into()]
}

/// Returns the header of a file that can be saved. Size and time are those of the shard during the scan, and the rest of the
/// identity is that of the index in use. `None` if the two contradict each other.
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
