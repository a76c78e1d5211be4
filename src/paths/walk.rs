//! Files that match wildcards, found folder by folder.

use super::folder::exists;
use super::set::folder_at;
use crate::error::{Error, PathsError, Result};
use glob::{MatchOptions, Pattern};
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The rules for one name, which is not hidden.
const NAME: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Returns true for text with the characters of wildcards.
pub(super) fn has_wildcard(s: &str) -> bool {
    s.contains(['*', '?', '['])
}

/// A pattern of one name.
pub(super) struct NamePattern(Pattern);

impl NamePattern {
    /// Parses a pattern. The error is the reason why it is invalid.
    pub(super) fn new(name: &str) -> Result<NamePattern, &'static str> {
        Pattern::new(name).map(NamePattern).map_err(|e| e.msg)
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.matches_with(name, NAME)
    }
}

/// Returns the files that match a pattern in the folder `base`, which is taken literally.
///
/// Reads each folder at most once for each name in the pattern: the matches of its first names are a set.
/// Otherwise several `**` would reach a deep folder in a number of ways that grows exponentially.
///
/// # Errors
/// An invalid pattern. A folder that cannot be read, or a file that cannot be examined, because it may be or
/// contain a shard.
pub(super) fn matches(base: &Path, word: &str) -> Result<BTreeSet<PathBuf>> {
    let mut found = Folders { read: 0 }.entries_of(base, word)?;
    // A pattern that ends in `/` matches folders only.
    found.retain(|path| !word.ends_with('/') && !path.is_dir());
    Ok(found)
}

/// Returns true for a pattern of the shards in folders, which ends in `**`.
pub(super) fn is_of_folders(word: &str) -> bool {
    word == "**" || word.ends_with("/**")
}

/// Returns the folders that such a pattern matches.
///
/// # Errors
/// As [`matches`].
pub(super) fn folders(base: &Path, word: &str) -> Result<BTreeSet<PathBuf>> {
    let mut found = Folders { read: 0 }.entries_of(base, word)?;
    found.retain(|path| path.as_os_str().is_empty() || path.is_dir());
    Ok(found)
}

/// The folders that a search reads.
struct Folders {
    /// Number of folders read. Tests bound it.
    read: u64,
}

impl Folders {
    /// Returns the files and folders that match a pattern.
    fn entries_of(&mut self, base: &Path, word: &str) -> Result<BTreeSet<PathBuf>> {
        let mut found = BTreeSet::from([base.to_path_buf()]);
        for name in Path::new(word).components() {
            let Some(name) = name.as_os_str().to_str() else { continue };
            found = match name {
                "**" => self.with_all_below(found)?,
                _ if has_wildcard(name) => {
                    let pattern = NamePattern::new(name).map_err(|reason| {
                        let pattern = base.join(word).display().to_string().into();
                        Error::from(PathsError::BadPattern { pattern, reason: reason.into() })
                    })?;
                    self.entries(&found, |name| pattern.matches(name))?
                }
                _ => existing_entries(found, name)?,
            };
        }
        Ok(found)
    }

    /// Returns the entries of folders whose names are `wanted` and not hidden: no pattern with a wildcard in
    /// its name matches `.tfseek`. Paths that are not folders have none.
    fn entries(
        &mut self,
        folders: &BTreeSet<PathBuf>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<BTreeSet<PathBuf>> {
        let mut found = BTreeSet::new();
        for folder in folders {
            let in_folder = |e: io::Error| Error::from(e).in_file(folder);
            let opened = folder_at(folder);
            if !opened.is_dir() {
                continue;
            }
            self.read += 1;
            for entry in fs::read_dir(opened).map_err(in_folder)? {
                let name = entry.map_err(in_folder)?.file_name();
                let text = name.to_string_lossy();
                if !text.starts_with('.') && wanted(&text) {
                    found.insert(folder.join(name));
                }
            }
        }
        Ok(found)
    }

    /// Returns folders, and all folders in them at any depth whose paths have no hidden name. Each folder is
    /// visited once, under the first of its shortest paths: links may lead around in a circle, or name one
    /// folder a billion times.
    fn with_all_below(&mut self, folders: BTreeSet<PathBuf>) -> Result<BTreeSet<PathBuf>> {
        let mut visited = HashSet::new();
        let mut is_new =
            |path: &PathBuf| visited.insert(folder_at(path).canonicalize().unwrap_or_else(|_| path.clone()));
        let mut all = BTreeSet::new();
        let mut new = folders;
        new.retain(&mut is_new);
        while !new.is_empty() {
            let mut below = self.entries(&new, |_| true)?;
            below.retain(|path| path.is_dir() && is_new(path));
            all.append(&mut new);
            new = below;
        }
        Ok(all)
    }
}

/// Returns the paths of the entry `name` of folders, where it exists.
fn existing_entries(folders: BTreeSet<PathBuf>, name: &str) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for folder in folders {
        let path = folder.join(name);
        if exists(&path)? {
            found.insert(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With nine `**/*` there are millions of ways through 18 folders.
    #[test]
    fn each_folder_is_read_once_for_each_name() {
        let dir = tempfile::tempdir().unwrap();
        let deep: PathBuf = (0..18).map(|_| "d").collect();
        fs::create_dir_all(dir.path().join(&deep)).unwrap();
        fs::write(dir.path().join(&deep).join("x"), "").unwrap();
        for wildcard in ["**/", "**/*/", "**/d/"] {
            let mut folders = Folders { read: 0 };
            let found = folders.entries_of(dir.path(), &(wildcard.repeat(9) + "x")).unwrap();
            assert_eq!(found.into_iter().collect::<Vec<_>>(), [dir.path().join(&deep).join("x")]);
            assert!(folders.read <= 18 * 19, "{wildcard}: {} folders", folders.read);
        }
    }

    /// Nine levels of ten links each name a billion paths of one file, and others lead around in a circle.
    #[test]
    #[cfg(unix)]
    fn links_are_followed_to_each_folder_once() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let level = |k: usize| dir.path().join(format!("data/d{k}"));
        for k in 0..10 {
            fs::create_dir_all(level(k)).unwrap();
            (0..10).for_each(|link| symlink(level(k + 1), level(k).join(format!("l{link}"))).unwrap());
            symlink("..", level(k).join("up")).unwrap();
        }
        fs::create_dir(level(10)).unwrap();
        fs::write(level(10).join("x"), "").unwrap();
        symlink(dir.path().join("data"), dir.path().join("a")).unwrap();
        let mut folders = Folders { read: 0 };
        let found = folders.entries_of(dir.path(), "**/x").unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(folders.read <= 13, "{}", folders.read);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn names_that_are_not_utf8() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OsStr::from_bytes(b"a\xff"));
        fs::write(&path, "").unwrap();
        assert_eq!(matches(dir.path(), "a*").unwrap(), BTreeSet::from([path]));
    }
}
