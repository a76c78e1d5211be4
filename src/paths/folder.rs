//! Resolution of existing paths: a file, or the shards in a folder.

use super::set::{FoundShard, ShardName};
use crate::error::{Error, PathsError, Result};
use std::fs;
use std::io;
use std::path::Path;

/// File name extensions of TFRecord files. `.gz` or `.zz` and `-NNNNN-of-NNNNN` may follow them.
pub const EXTENSIONS: [&str; 5] = [".tfrecord", ".tfrecords", ".tfrec", ".record", ".tfr"];

/// Returns the path itself, or the shards in it if it is a folder. `None` if it does not exist.
pub(super) fn existing(path: &Path) -> Result<Option<Vec<FoundShard>>> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => folder(path).map(Some),
        Ok(_) => Ok(Some(vec![FoundShard { path: path.to_path_buf(), searched: false }])),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Error::from(e).in_file(path)),
    }
}

fn folder(dir: &Path) -> Result<Vec<FoundShard>> {
    let in_dir = |e| Error::from(e).in_file(dir);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(in_dir)? {
        let name = entry.map_err(in_dir)?.file_name();
        if !has_extension(&name.to_string_lossy()) {
            continue;
        }
        let path = dir.join(name);
        // Links are followed. A dangling link is an error, because skipping it would silently lose a shard.
        if !fs::metadata(&path).map_err(|e| Error::from(e).in_file(&path))?.is_dir() {
            found.push(FoundShard { path, searched: true });
        }
    }
    if found.is_empty() {
        let pattern = dir.join("*.{tfrecord,tfrecords,tfrec,record,tfr}").display().to_string().into();
        return Err(PathsError::NoMatch { pattern }.into());
    }
    Ok(found)
}

/// Returns true if a file of this name counts as a shard of its folder.
fn has_extension(name: &str) -> bool {
    let plain = |name: &str| {
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zz")).unwrap_or(name);
        EXTENSIONS.iter().any(|e| name.ends_with(e))
    };
    let before_shard = || ShardName::parse(name).is_some_and(|m| m.suffix.is_empty() && plain(m.stem));
    // `x.tfrecord-00000-of-00002.gz` has its extension before the shard number and its compression after it.
    let between =
        || ShardName::parse(name).is_some_and(|m| matches!(m.suffix, ".gz" | ".zz") && plain(m.stem));
    !name.starts_with('.') && (plain(name) || before_shard() || between())
}
