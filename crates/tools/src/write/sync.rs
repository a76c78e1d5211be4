//! Folders on the disk: a name is durable once its folder is synced.

use std::fs::File;
use std::io;
use std::path::Path;

/// Syncs the folder in which a file or a folder got its name.
pub(crate) fn sync_name(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent == Path::new("") => sync_folder(Path::new(".")),
        Some(parent) => sync_folder(parent),
        None => Ok(()),
    }
}

/// Syncs a folder. A rename in it is durable only after this.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder)?.sync_all() {
        // The file system does not sync folders.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}
