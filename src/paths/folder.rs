//! Paths that exist: files, and the shards in a folder.

use super::set::{Found, Member};
use crate::error::{Error, PathsError, Result};
use std::fs;
use std::io;
use std::path::Path;

/// What ends the name of a TFRecord file, if `.gz` or `.zz` and `-NNNNN-of-NNNNN` are taken off it.
pub const EXTENSIONS: [&str; 5] = [".tfrecord", ".tfrecords", ".tfrec", ".record", ".tfr"];

/// The path itself, or the shards in it if it is a folder; `None` if it does not exist.
pub(super) fn existing(path: &Path) -> Result<Option<Vec<Found>>> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => folder(path).map(Some),
        Ok(_) => Ok(Some(vec![Found { path: path.to_path_buf(), searched: false }])),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Error::from(e).in_file(path)),
    }
}

fn folder(dir: &Path) -> Result<Vec<Found>> {
    let in_dir = |e| Error::from(e).in_file(dir);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(in_dir)? {
        let name = entry.map_err(in_dir)?.file_name();
        if !has_extension(&name.to_string_lossy()) {
            continue;
        }
        let path = dir.join(name);
        // Through links. One that leads nowhere is an error: a shard that is silently absent would be a loss.
        if !fs::metadata(&path).map_err(|e| Error::from(e).in_file(&path))?.is_dir() {
            found.push(Found { path, searched: true });
        }
    }
    if found.is_empty() {
        let pattern = dir.join("*.{tfrecord,tfrecords,tfrec,record,tfr}").display().to_string().into();
        return Err(PathsError::NoMatch { pattern }.into());
    }
    Ok(found)
}

/// Whether a file of this name is taken from a folder.
fn has_extension(name: &str) -> bool {
    let plain = |name: &str| {
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zz")).unwrap_or(name);
        EXTENSIONS.iter().any(|e| name.ends_with(e))
    };
    let before_shard = || Member::parse(name).is_some_and(|m| m.suffix.is_empty() && plain(m.stem));
    // `x-00000-of-00002.gz`, whose extension stands before the shard and whose compression after it.
    let between = || Member::parse(name).is_some_and(|m| matches!(m.suffix, ".gz" | ".zz") && plain(m.stem));
    !name.starts_with('.') && (plain(name) || before_shard() || between())
}
