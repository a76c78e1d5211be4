//! The locations of a shard's column files: search for a usable file, and save a new one.

use super::feature::FeatureColumn;
use crate::error::Result;
use crate::index::{
    CompanionReasons, CompanionSearch, CompanionShard, IndexOptions, Save, hex128, save_required,
    save_somewhere, search_companion,
};
use crate::io::url_of;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Largest length of an escaped feature name in a file name. A longer one is replaced by a hash.
const MAX_NAME: usize = 120;

/// Returns the end of a column file's name, after the shard's name or its hash. The escaped feature name has
/// no dots, so the file name splits in one way. Capital letters are escaped, so it survives a
/// case-insensitive file system. No escaped name has a `+`.
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
pub(crate) type ColumnSearch = CompanionSearch<FeatureColumn>;

const REASONS: CompanionReasons = CompanionReasons {
    invalid: "the column file is invalid",
    other: "the column belongs to other records",
    changed: "the shard's size or modification time has changed since the column was built",
};

/// Searches for the column of a shard in the folders of its index: the column of the values of a feature, or
/// of their numbers.
pub(crate) fn search(
    shard: &CompanionShard<'_>,
    (feature, counts): (&str, bool),
    options: &IndexOptions,
    refused: impl FnMut(&Path, &str),
) -> ColumnSearch {
    let open = |opened, file: &Path| {
        let column = FeatureColumn::opened(opened, file, feature, counts)?;
        // A file of a store that is damaged on its way is read once more.
        if url_of(file).is_some() {
            column.verify().map_err(|e| e.kind().to_string())?;
        }
        Ok((*column.header(), column))
    };
    search_companion(shard, &ending(feature, counts), options, REASONS, open, |_, _| (), refused)
}

/// Saves a column as `save` requires, unless it is already in the target file. Returns the column in its
/// file. If it stays in memory, returns the I/O error that prevented the save.
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
            let known = column.file();
            Ok(save_required(path, &ending, known, false, options, |mut w| column.write_to(&mut w))?)
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
