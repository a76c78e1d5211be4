//! Where indexes and columns that were built are written.

use super::find::{self, hashed_with, named_with};
use super::options::IndexOptions;
use crate::error::{Error, Result};
use crate::io::{AtomicFile, folder};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where an index or a column that was built goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Save {
    /// Not beside the data, and if nowhere else, then nowhere.
    Unasked,
    /// Beside the data, or an error.
    Asked,
    /// Nowhere: a pack takes it.
    Never,
}

/// The folder of index files that were asked for.
pub(super) fn target_dir(path: &Path, options: &IndexOptions) -> PathBuf {
    options.index_dir.clone().unwrap_or_else(|| folder(path).join(find::BESIDE))
}

/// Writes an index file whole: in the target folder, made if missing.
pub(super) fn write(target: &Path, bytes: impl FnOnce(&mut AtomicFile) -> Result<()>) -> Result<()> {
    fs::create_dir_all(folder(target))?;
    let mut file = AtomicFile::create(target)?;
    bytes(&mut file)?;
    file.commit()?;
    Ok(())
}

/// Writes to the first of index_dir, TFSEEK_INDEX_DIR and cache that takes it: where. What the last one said, if none does.
pub(super) fn save_somewhere(
    path: &Path,
    ending: &str,
    options: &IndexOptions,
    bytes: impl Fn(&mut AtomicFile) -> Result<()>,
) -> io::Result<PathBuf> {
    let mut last = io::Error::other("there is no folder for indexes");
    let targets = [
        options.index_dir.as_deref().map(|dir| Ok(named_with(dir, path, ending))),
        options.env_dir.as_deref().map(|dir| hashed_with(dir, path, ending)),
        options.cache_dir.as_deref().map(|dir| hashed_with(dir, path, ending)),
    ];
    for target in targets.into_iter().flatten() {
        match target.map_err(Error::from).and_then(|target| write(&target, &bytes).map(|()| target)) {
            Ok(target) => return Ok(target),
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}
