//! Where a shard's column lies, whether it is the one, and where a new one goes.

use super::feature::FeatureColumn;
use crate::error::Result;
use crate::index::{
    CHECKED, Header, Index, IndexOptions, Save, Stamp, hex128, named_with, open_file, places, save_somewhere,
    target_dir, write,
};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// The longest name of a column in a file's name; a longer one is hashed.
const MAX_NAME: usize = 120;

/// What follows a shard's name, or its hash, in the name of its column file. Without dots the name splits one way, without
/// capitals it survives a file system that folds case.
fn ending(feature: &str) -> String {
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
    format!(".{name}.tfrc")
}

/// What the search for a column has come to.
#[derive(Debug)]
pub(crate) enum ColumnSearch {
    Column(FeatureColumn),
    /// Nothing that can be used, and why, if there was something.
    Nothing(Option<&'static str>),
}

/// Looks for the column of a shard where its index would be, in the same order. The first is taken that has the records of
/// `index` and this very size and time (`None`: the shard is not what it was when it was opened); else, if the caller trusts
/// columns, the first of the records.
pub(crate) fn search(
    path: &Path,
    feature: &str,
    index: &Index,
    stamp: Option<Stamp>,
    options: &IndexOptions,
    mut refused: impl FnMut(&Path, &str),
) -> ColumnSearch {
    let mut best = ColumnSearch::Nothing(None);
    for place in places(path, &ending(feature), options) {
        let column = match open_file(&place, options) {
            Ok(None) => continue,
            Ok(Some(held)) => FeatureColumn::opened(held, &place, feature),
            Err(reason) => Err(reason),
        };
        let column = match column {
            Ok(column) => column,
            Err(reason) => {
                refused(&place, &reason);
                best = best.or(ColumnSearch::Nothing(Some("the column file is refused")));
                continue;
            }
        };
        let known = column.header();
        if identity(known) != identity(index.header()) {
            best = best.or(ColumnSearch::Nothing(Some("the column is of other records")));
        } else if stamp == Some(Stamp { size: known.data_size, mtime_ns: known.mtime_ns }) {
            return ColumnSearch::Column(column);
        } else if options.trust_columns {
            best = best.or(ColumnSearch::Column(column));
        } else {
            let why = "the shard has another size or time than when the column was built";
            best = best.or(ColumnSearch::Nothing(Some(why)));
        }
    }
    best
}

impl ColumnSearch {
    /// The better of two; the first, when they are equally good.
    fn or(self, other: ColumnSearch) -> ColumnSearch {
        match (&self, &other) {
            (ColumnSearch::Nothing(_), ColumnSearch::Column(_)) | (ColumnSearch::Nothing(None), _) => other,
            _ => self,
        }
    }
}

/// What a column has in common with the index of its shard.
fn identity(header: &Header) -> [u64; 6] {
    let Header { n_records, indexed_end, stream_end, fp_head, fp_tail, flags, .. } = *header;
    [n_records, indexed_end, stream_end, fp_head, fp_tail, (flags & !CHECKED).into()]
}

/// Saves a column where `save` says, unless it is there: the column in its file, or why it stays in memory.
///
/// # Errors
/// Where it was asked for and cannot be written.
pub(crate) fn save(
    column: &FeatureColumn,
    path: &Path,
    options: &IndexOptions,
    save: Save,
) -> Result<io::Result<FeatureColumn>> {
    let ending = ending(column.feature());
    let written = match save {
        Save::Never => return Ok(Ok(column.clone())),
        Save::Unasked => save_somewhere(path, &ending, options, |w| column.write_to(w)),
        Save::Asked => {
            let target = named_with(&target_dir(path, options), path, &ending);
            if column.file() != Some(&target) {
                write(&target, |w| column.write_to(w)).map_err(|e| e.in_file(&target))?;
            }
            Ok(target)
        }
    };
    Ok(written.map(|target| column.in_file(&target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        for (feature, name) in [
            ("label", ".label.tfrc"),
            ("image/class.Text", ".image%2Fclass%2E%54ext.tfrc"),
            ("", "..tfrc"),
            ("é=%", ".%C3%A9%3D%25.tfrc"),
        ] {
            assert_eq!(ending(feature), name);
        }
        assert_eq!(ending(&"a".repeat(120)), format!(".{}.tfrc", "a".repeat(120)));
        let long = "A".repeat(41);
        assert_eq!(ending(&long), format!(".={}.tfrc", hex128(long.as_bytes())));
    }
}
