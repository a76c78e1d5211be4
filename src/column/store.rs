//! The locations of a shard's column files: search for a usable file, and save a new one.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::feature::FeatureColumn;
use crate::error::Result;
use crate::index::{
    CHECKED, Index, IndexHeader, IndexOptions, Save, candidates, hex128, open_file, save_required,
    save_somewhere,
};
use crate::io::Stamp;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Largest length of an escaped feature name in a file name. A longer one is replaced by a hash.
const MAX_NAME: usize = 120;

/// Returns the end of a column file's name, after the shard's name or its hash. The escaped feature name has no dots, so the file
/// name splits in one way. Capital letters are escaped, so it survives a case-insensitive file system. No escaped name has a `+`.
fn ending(feature: &str, counts: bool) -> String {
    let mut name = String::new();
    for byte in feature.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            _ => drop(write!(name, "%{byte:02X}")),
        }
    }
    if name.len() > MAX_NAME {
        name = format!("={}", hex128(feature.as_bytes()));
    }
    format!(".{name}{}.tfrc", if counts { "+len" } else { "" })
}

/// The result of a search for a column file.
#[derive(Debug)]
pub(crate) enum ColumnSearch {
    Column(FeatureColumn),
    /// No usable column. If there was an unusable one, the reason.
    Missing(Option<&'static str>),
}

/// Searches for the column of a shard in the folders of its index, in the same order: that of the values of a feature, or of their numbers.
///
/// Returns the first column that has the records of `index` and the size and time of `stamp`. `None` as the stamp means that the
/// shard has changed since it was opened. If no column matches and the options trust columns, returns the first column that has the
/// records of `index`.
pub(crate) fn search(
    path: &Path,
    (feature, counts): (&str, bool),
    index: &Index,
    stamp: Option<&Stamp>,
    options: &IndexOptions,
    mut refused: impl FnMut(&Path, &str),
) -> ColumnSearch {
    let mut best = ColumnSearch::Missing(None);
    for file in candidates(path, &ending(feature, counts), options) {
        let column = match open_file(&file, options) {
            Ok(None) => continue,
            Ok(Some(opened)) => FeatureColumn::opened(opened, &file, feature, counts),
            Err(reason) => Err(reason),
        };
        let column = match column {
            Ok(column) => column,
            Err(reason) => {
                refused(&file, &reason);
                best = best.or(ColumnSearch::Missing(Some("the column file is invalid")));
                continue;
            }
        };
        let known = column.header();
        if identity(known) != identity(index.header()) {
            best = best.or(ColumnSearch::Missing(Some("the column belongs to other records")));
        } else if stamp.is_some_and(|stamp| fits(known, stamp)) {
            return ColumnSearch::Column(column);
        } else if options.trust_columns {
            best = best.or(ColumnSearch::Column(column));
        } else {
            let why = "the shard's size or modification time has changed since the column was built";
            best = best.or(ColumnSearch::Missing(Some(why)));
        }
    }
    best
}

impl ColumnSearch {
    /// Returns the better of two results: the first one if they are equal.
    fn or(self, other: ColumnSearch) -> ColumnSearch {
        match (&self, &other) {
            (ColumnSearch::Missing(_), ColumnSearch::Column(_)) | (ColumnSearch::Missing(None), _) => other,
            _ => self,
        }
    }
}

/// Returns true if a column of the records of a shard is one of the shard with this stamp. Without a time the fingerprints have decided.
fn fits(known: &IndexHeader, stamp: &Stamp) -> bool {
    match stamp.modified_ns {
        Some(_) => stamp.has(known.data_size, known.mtime_ns),
        None => stamp.size == known.data_size,
    }
}

/// Returns the fields that a column shares with the index of its shard.
fn identity(header: &IndexHeader) -> [u64; 6] {
    let IndexHeader { n_records, indexed_end, stream_end, fp_head, fp_tail, flags, .. } = *header;
    [n_records, indexed_end, stream_end, fp_head, fp_tail, (flags & !CHECKED).into()]
}

/// Saves a column as `save` requires, unless it is already in the target file. Returns the column in its file. If it stays in
/// memory, returns the I/O error that prevented the save.
///
/// # Errors
/// A column that was requested ([`Save::Required`]) and cannot be written.
pub(crate) fn save(
    column: &FeatureColumn,
    path: &Path,
    options: &IndexOptions,
    save: Save,
) -> Result<io::Result<FeatureColumn>> {
    let ending = ending(column.feature(), column.has_counts());
    let written = match save {
        Save::Never => return Ok(Ok(column.clone())),
        Save::BestEffort => save_somewhere(path, &ending, options, |mut w| column.write_to(&mut w)),
        Save::Required => {
            Ok(save_required(path, &ending, column.file(), options, |mut w| column.write_to(&mut w))?)
        }
    };
    Ok(written.map(|target| column.in_file(&target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names() {
        for (feature, name) in [
            ("label", ".label.tfrc"),
            ("image/class.Text", ".image%2Fclass%2E%54ext.tfrc"),
            ("", "..tfrc"),
            ("é=%", ".%C3%A9%3D%25.tfrc"),
        ] {
            assert_eq!(ending(feature, false), name);
            assert_eq!(ending(feature, true), name.replace(".tfrc", "+len.tfrc"));
        }
        assert_eq!(ending(&"a".repeat(120), false), format!(".{}.tfrc", "a".repeat(120)));
        let long = "A".repeat(41);
        assert_eq!(ending(&long, false), format!(".={}.tfrc", hex128(long.as_bytes())));
    }
}
